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
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use clearway_lab::workload::tpcc::{self, Acknowledged, Client, Kind, Population, Totals, consistency};
use hdrhistogram::Histogram;

use wire::Wire;

/// An error of any thread.
type Failure = Box<dyn Error + Send + Sync>;

const USAGE: &str =
    "usage: tpcc_client load W | run W CLIENTS SECONDS SEED | check W   (each may end with: tiny)";

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// A client's measurements.
struct Measured {
    latency: Vec<Histogram<u64>>,
    new_orders: u64,
    retries: u64,
    acknowledged: Acknowledged,
}

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
    let phase = AtomicU8::new(WARM_UP);
    // Opened one by one, so that a server that refuses one of them is an error before anything runs.
    let mut open = Vec::new();
    for place in 0..clients {
        let own_seed = seed.wrapping_mul(1_000_003).wrapping_add(place as u64);
        open.push(Client::on(Box::new(Wire::open()?), population, place, own_seed)?);
    }
    let (measured, elapsed) = std::thread::scope(|scope| {
        let phase = &phase;
        let threads: Vec<_> = open
            .into_iter()
            .map(|client| scope.spawn(move || measure(client, phase)))
            .collect();
        std::thread::sleep(Duration::from_secs_f64(seconds / 10.0));
        phase.store(MEASURE, Ordering::Relaxed);
        let started = Instant::now();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        phase.store(STOP, Ordering::Relaxed);
        let elapsed = started.elapsed();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(measured) => measured,
            Err(_) => Err("a client's thread panicked; its message is above".into()),
        });
        (joined.collect::<Result<Vec<Measured>, Failure>>(), elapsed)
    });
    let mut whole = Measured::new()?;
    for client in measured? {
        whole.add(&client)?;
    }
    let after = Totals::read_from(&mut session)?;
    match after.faults(&before, &whole.acknowledged)[..] {
        [] => {}
        ref faults => return Err(faults.join("; ").into()),
    }
    println!("{}", whole.json(elapsed.as_secs_f64()));
    Ok(())
}

/// A client's transactions until the phase is `STOP`.
fn measure(mut client: Client, phase: &AtomicU8) -> Result<Measured, Failure> {
    let mut measured = Measured::new()?;
    loop {
        let before = Instant::now();
        let (kind, committed) = client.transaction()?;
        match phase.load(Ordering::Relaxed) {
            WARM_UP => {}
            MEASURE => {
                measured.latency[kind as usize].saturating_record(before.elapsed().as_nanos() as u64);
                measured.new_orders += u64::from(committed && kind == Kind::NewOrder);
            }
            _ => break,
        }
    }
    measured.retries = client.retries;
    measured.acknowledged = client.acknowledged;
    Ok(measured)
}

impl Measured {
    fn new() -> Result<Measured, Failure> {
        let histogram = || Histogram::new_with_bounds(1, 60_000_000_000, 2);
        Ok(Measured {
            latency: Kind::ALL.iter().map(|_| histogram()).collect::<Result<_, _>>()?,
            new_orders: 0,
            retries: 0,
            acknowledged: Acknowledged::default(),
        })
    }

    fn add(&mut self, other: &Measured) -> Result<(), Failure> {
        for (sum, latency) in self.latency.iter_mut().zip(&other.latency) {
            sum.add(latency)?;
        }
        self.new_orders += other.new_orders;
        self.retries += other.retries;
        self.acknowledged += other.acknowledged;
        Ok(())
    }

    fn json(&self, seconds: f64) -> serde_json::Value {
        let transactions: u64 = self.latency.iter().map(Histogram::len).sum();
        let milliseconds =
            |kind: Kind, quantile| self.latency[kind as usize].value_at_quantile(quantile) as f64 / 1e6;
        let of = |quantile| {
            let by_name = Kind::ALL.map(|kind| (kind.name().to_owned(), milliseconds(kind, quantile).into()));
            serde_json::Value::Object(by_name.into_iter().collect())
        };
        serde_json::json!({
            "nopm": self.new_orders as f64 * 60.0 / seconds,
            "tps": transactions as f64 / seconds,
            "retries": self.retries,
            "p50_ms": of(0.5),
            "p99_ms": of(0.99),
        })
    }
}
