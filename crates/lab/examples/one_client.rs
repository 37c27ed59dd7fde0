//! One client of the bench, in process, for tools that count what a transaction costs:
//! `crates/lab/benches/count-instructions`.
//!
//! | arguments | does |
//! | --- | --- |
//! | `load DIRECTORY` | makes a database with pgbench's tables, scale 1, in which many rows have been updated |
//! | `run DIRECTORY WORKLOAD COUNT [CHOICE …]` | warms up, then runs that many transactions in `measured` |
//! | `run … statements=top` | the same, and counts the statements in `pg_stat_statements` |
//! | `choices` | lists what CHOICE can be: a preset, or a variant beside the others of the preset `clearway` |

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use clearway_engine::config::{ByteSize, Span};
use clearway_engine::{Config, Engine, EngineError, MechanismError, Mechanisms, TrackedStatements};
use clearway_lab::workload::Workload;
use clearway_lab::workload::pgbench::{self, Balances, Client};

/// The binary's: what an allocation costs is part of what is counted.
#[path = "../../clearway/src/allocator.rs"]
mod allocator;

const SCALE: u32 = 1;

/// Updates after loading: each page of the accounts has been full and was pruned.
const UPDATES: u64 = 20_000;

/// Transactions before the measured ones. All pages are in memory afterwards and have been changed since the
/// checkpoint, so that hardly any is logged as a whole; buffers that grow have grown.
const WARM_UP: u64 = 10_000;

/// An engine in which nothing falls due by the clock, so that two runs do the same.
fn open(
    directory: &Path,
    synchronous_commit: bool,
    mechanisms: Mechanisms,
    track: TrackedStatements,
) -> Result<Arc<Engine>, EngineError> {
    let mut pg_stat_statements = Config::default().pg_stat_statements;
    pg_stat_statements.track = track;
    Engine::open(
        directory,
        Config {
            pg_stat_statements,
            shared_buffers: ByteSize::mib(128),
            checkpoint_timeout: Span::from_secs(3_600),
            autovacuum: false,
            max_wal_size: ByteSize::mib(8_192),
            synchronous_commit: synchronous_commit.into(),
            mechanisms,
            ..Config::default()
        },
    )
}

/// The mechanisms that assignments `preset=NAME` and `SWITCH=VARIANT` choose, one after the other.
fn chosen(choices: &[&str]) -> Result<Mechanisms, MechanismError> {
    let mut mechanisms = Mechanisms::default();
    for choice in choices {
        match choice.strip_prefix("preset=") {
            Some(preset) => mechanisms = Mechanisms::preset(preset)?,
            None => mechanisms.set(choice)?,
        }
    }
    Ok(mechanisms)
}

/// Every argument of [`chosen`] that makes a difference, the presets first.
fn choices() -> Vec<String> {
    let presets = Mechanisms::PRESETS
        .iter()
        .map(|preset| format!("preset={preset}"));
    let mut choices: Vec<String> = presets.collect();
    for (switch, (name, best)) in Mechanisms::SWITCHES.iter().zip(Mechanisms::CLEARWAY.list()) {
        let others = switch.variants.iter().filter(|variant| variant.name != best);
        choices.extend(others.map(|variant| format!("{name}={}", variant.name)));
    }
    choices
}

fn run(client: &mut Client, count: u64) -> Result<(), EngineError> {
    for _ in 0..count {
        client.transaction()?;
    }
    Ok(())
}

/// Its name is what tools look for: they count what happens in it and below.
#[inline(never)]
fn measured(client: &mut Client, count: u64) -> Result<(), EngineError> {
    run(client, count)
}

fn main() -> Result<(), Box<dyn Error>> {
    allocator::install();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["load", directory] => {
            // Under `lock_release = early` what is pruned depends on how far the log writer has come, and so would the
            // pages that are measured.
            let nothing = TrackedStatements::None;
            let engine = open(Path::new(directory), false, Mechanisms::CLASSIC, nothing)?;
            pgbench::load(&engine, SCALE, &mut |_| ())?;
            run(
                &mut Client::new(&engine, Workload::SimpleUpdate, SCALE, 1)?,
                UPDATES,
            )?;
            engine.shutdown()?;
        }
        ["choices"] => choices().iter().for_each(|choice| println!("{choice}")),
        ["run", directory, workload, count, ref choices @ ..] => {
            let (statements, choices): (Vec<&str>, Vec<&str>) = choices
                .iter()
                .copied()
                .partition(|choice| *choice == "statements=top");
            let track = match statements.is_empty() {
                true => TrackedStatements::None,
                false => TrackedStatements::Top,
            };
            let engine = open(Path::new(directory), true, chosen(&choices)?, track)?;
            Balances::read(&engine)?;
            let mut client = Client::new(&engine, Workload::from_name(workload)?, SCALE, 2)?;
            run(&mut client, WARM_UP)?;
            measured(&mut client, count.parse()?)?;
            drop(client);
            engine.shutdown()?;
        }
        _ => return Err("load DIRECTORY, run DIRECTORY WORKLOAD COUNT [CHOICE …], or choices".into()),
    }
    Ok(())
}
