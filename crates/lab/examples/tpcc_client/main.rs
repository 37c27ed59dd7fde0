//! TPC-C against a server, over PostgreSQL's protocol, for `scripts/tpcc`: the transactions, tables and checks of
//! `clearway bench --workload tpcc`, on sessions of any server that speaks it.
//!
//! The server is found by PGHOST (a directory with a Unix-domain socket, or a host), PGPORT, PGUSER and PGDATABASE.
//!
//! | arguments | does |
//! | --- | --- |
//! | `load W` | makes and fills the tables of W warehouses |
//! | `run W CLIENTS SECONDS SEED` | a tenth of the time unmeasured, then measures; prints a line of JSON |
//! | `check W` | the consistency conditions 1 to 4; a violation ends it with an error |
//! | `tiny` after any of these | tables of a few thousand rows, to see whether everything runs |
//!
//! A client is a thread with one session. `run` also fails if the tables have not grown by what was acknowledged.

mod wire;

use std::error::Error;
use std::time::Duration;

use clearway_lab::result::KindCell;
use clearway_lab::tpcc_sessions::{SessionsRun, run_sessions};
use clearway_lab::workload::tpcc::{self, Client, Population, Totals, consistency};

use wire::Wire;

/// An error of any thread.
type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str =
    "usage: tpcc_client load W | run W CLIENTS SECONDS SEED | check W   (each may end with: tiny)";

fn main() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let tiny = arguments.last().is_some_and(|last| last == "tiny");
    if tiny {
        arguments.pop();
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let population = |warehouses: &str| -> Result<Population, Failure> {
        let standard = Population::standard(warehouses.parse().ok().filter(|count| *count > 0).ok_or(USAGE)?);
        Ok(match tiny {
            true => Population {
                items: 1_000,
                customers: 60,
                ..standard
            },
            false => standard,
        })
    };
    match arguments[..] {
        ["load", warehouses] => {
            tpcc::load_into(&mut Wire::open()?, population(warehouses)?, &mut |_| ())?;
            Ok(())
        }
        ["run", warehouses, clients, seconds, seed] => {
            let clients: usize = clients.parse().map_err(|_| USAGE)?;
            let seconds: f64 = seconds.parse().map_err(|_| USAGE)?;
            let seed: u64 = seed.parse().map_err(|_| USAGE)?;
            if clients == 0 || !(0.1..=86_400.0).contains(&seconds) {
                return Err(USAGE.into());
            }
            run(population(warehouses)?, clients, seconds, seed)
        }
        ["check", warehouses] => {
            population(warehouses)?;
            match consistency::violations_in(&mut Wire::open()?)?[..] {
                [] => Ok(()),
                ref violations => Err(violations.join("; ").into()),
            }
        }
        _ => Err(USAGE.into()),
    }
}

/// Runs this many clients and prints their results.
fn run(population: Population, clients: usize, seconds: f64, seed: u64) -> Result<(), Failure> {
    let mut session = Wire::open()?;
    let before = Totals::read_from(&mut session)?;
    // Opened one by one, so that a server that refuses one of them is an error before anything runs.
    let mut open = Vec::new();
    for place in 0..clients {
        let own_seed = seed.wrapping_mul(1_000_003).wrapping_add(place as u64);
        open.push(Client::on(Box::new(Wire::open()?), population, place, own_seed)?);
    }
    let warm_up = Duration::from_secs_f64(seconds / 10.0);
    let run = run_sessions(open, warm_up, Duration::from_secs_f64(seconds))?;
    let after = Totals::read_from(&mut session)?;
    match after.faults(&before, &run.acknowledged)[..] {
        [] => {}
        ref faults => return Err(faults.join("; ").into()),
    }
    println!("{}", json(&run));
    Ok(())
}

fn json(run: &SessionsRun) -> serde_json::Value {
    let of = |microseconds: fn(&KindCell) -> f64| {
        let by_name = run.kinds.iter();
        let by_name = by_name.map(|kind| (kind.kind.clone(), (microseconds(kind) / 1e3).into()));
        serde_json::Value::Object(by_name.collect())
    };
    serde_json::json!({
        "nopm": run.new_orders_per_minute(),
        "tps": run.tps,
        "retries": run.retries,
        "p50_ms": of(|kind| kind.p50_us),
        "p99_ms": of(|kind| kind.p99_us),
    })
}
