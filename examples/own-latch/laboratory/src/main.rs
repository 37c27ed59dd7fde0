//! Prints both tables. `cargo run --release -p own-latch-laboratory`

use std::time::Duration;

use clearway_lab::latches::table;
use clearway_lab::{Result, simulate};
use own_latch_laboratory::{add_ticket_latch, measured, simulated};

fn main() -> Result<()> {
    add_ticket_latch()?;
    println!(
        "On this host:\n\n{}",
        table::text(&measured(vec![1, 2, 8], Duration::from_millis(200), 5)?, false)
    );
    println!("Simulated:\n\n{}", simulate::text(&simulated(None)?));
    Ok(())
}
