//! One point: a number of clients on one engine, for a time.
//!
//! | phase | clients | this thread |
//! | --- | --- | --- |
//! | get ready | open a session, prepare, wait | waits for all |
//! | warm up | run transactions, count nothing | sleeps |
//! | measure | count those that end in this phase | sleeps; the sampler looks |
//! | stop | finish what they are at, leave | joins |

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use clearway_engine::{Engine, EngineError, SqlState};
use clearway_machine::{Clients, Native, Switch};

use crate::costs::Counters;
use crate::error::{LabError, Result};
use crate::latencies::Latencies;
use crate::sampler::{Sampler, Samples};
use crate::seed::seed_of;
use crate::workload::client::Client;
use crate::workload::{Acknowledged, Mix, Sizes, Workload};

const WARM_UP: u8 = 0;
const MEASURE: u8 = 1;
const STOP: u8 = 2;

/// A point to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) variant: &'a str,
    pub(crate) mix: &'a Mix,
    pub(crate) clients: usize,
    pub(crate) sizes: Sizes,
    pub(crate) warm_up: Duration,
    pub(crate) duration: Duration,
    pub(crate) seed: u64,
}

/// The result of a point.
#[derive(Debug)]
pub(crate) struct Measured {
    /// In the order of [`Mix::parts`].
    pub(crate) parts: Vec<MeasuredPart>,
    /// Of the clients of all parts.
    pub(crate) waits: Samples,
    /// The rise of the counters in the measured window.
    pub(crate) counted: Counters,
    pub(crate) acknowledged: Acknowledged,
}

/// The result for the clients of one workload.
#[derive(Debug)]
pub(crate) struct MeasuredPart {
    workload: Workload,
    pub(crate) tps: f64,
    pub(crate) latencies: Latencies,
    pub(crate) retries: u64,
}

struct ClientResult {
    workload: Workload,
    latencies: Latencies,
    acknowledged: Acknowledged,
    retries: u64,
}

/// Runs one point.
pub(crate) fn run(point: Point<'_>) -> Result<Measured> {
    let phase = AtomicU8::new(WARM_UP);
    let failed = AtomicBool::new(false);
    let ready = Barrier::new(point.clients + 1);
    let sampler = Sampler::default();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..point.clients)
            .map(|number| {
                let (phase, failed, ready, sampler) = (&phase, &failed, &ready, &sampler);
                scope.spawn(move || {
                    let result = client(point, number, phase, failed, ready, sampler);
                    if result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        ready.wait();
        sleep_unless(point.warm_up, &failed);
        let before = Counters::now(point.engine);
        let started = Instant::now();
        phase.store(MEASURE, Ordering::Relaxed);
        let looking = scope.spawn(|| sampler.run());
        sleep_unless(point.duration, &failed);
        phase.store(STOP, Ordering::Relaxed);
        let elapsed = started.elapsed();
        let counted = Counters::now(point.engine) - before;
        sampler.stop();
        let (waits, looking) = looking.join().unwrap_or_default();
        let parts = point.mix.parts().into_iter().map(|workload| MeasuredPart {
            workload,
            tps: 0.0,
            latencies: Latencies::of(workload),
            retries: 0,
        });
        let mut measured = Measured {
            parts: parts.collect(),
            waits,
            counted: counted.without(looking),
            acknowledged: Acknowledged::default(),
        };
        for client in clients {
            let result = client
                .join()
                .map_err(|_| LabError::ClientPanicked {
                    variant: point.variant.to_owned(),
                })?
                .map_err(LabError::engine(format!(
                    "a {} client of {}",
                    point.mix.name(),
                    point.variant
                )))?;
            measured.acknowledged += result.acknowledged;
            let part = measured
                .parts
                .iter_mut()
                .find(|part| part.workload == result.workload)
                .expect("clients run workloads of the mix");
            part.latencies.add(&result.latencies);
            part.retries += result.retries;
        }
        for part in &mut measured.parts {
            part.tps = part.latencies.all.len() as f64 / elapsed.as_secs_f64();
            part.latencies.end_round(elapsed.as_secs_f64());
        }
        Ok(measured)
    })
}

fn client(
    point: Point<'_>,
    number: usize,
    phase: &AtomicU8,
    failed: &AtomicBool,
    ready: &Barrier,
    sampler: &Sampler,
) -> Result<ClientResult, EngineError> {
    sampler.register_this_thread();
    let scheduled = take_time_slice(point.engine);
    let workload = point.mix.workload_of(number);
    let client = Client::open(
        point.engine,
        workload,
        point.sizes,
        point.mix.place_of(number),
        seed_of(point.seed, number as u64),
    );
    // Everyone passes the barrier, also one that has failed already.
    ready.wait();
    scheduled?;
    let mut client = client?;
    let mut latencies = Latencies::of(workload);
    let mut before = Instant::now();
    loop {
        let ended = client.transaction()?;
        let after = Instant::now();
        match phase.load(Ordering::Relaxed) {
            WARM_UP => {}
            MEASURE => latencies.record(ended, (after - before).as_nanos() as u64),
            _ => break,
        }
        if failed.load(Ordering::Relaxed) {
            break;
        }
        before = after;
    }
    Ok(ClientResult {
        workload,
        latencies,
        acknowledged: client.acknowledged(),
        retries: client.retries(),
    })
}

/// Gives the calling thread the slice that the engine's switch `time_slice` names.
fn take_time_slice(engine: &Engine) -> Result<(), EngineError> {
    let time_slice = engine.config().mechanisms.time_slice;
    Native::set_time_slice(time_slice, Clients::InProcess).map_err(|error| {
        EngineError::new(
            SqlState::IO_ERROR,
            format!("the kernel refuses time_slice = {}: {error}", time_slice.name()),
        )
        .with_hint("Choose the kernel's slice: --set time_slice=system.")
    })
}

/// Sleeps, but not on when a client has failed.
fn sleep_unless(duration: Duration, failed: &AtomicBool) {
    let end = Instant::now() + duration;
    while let Some(left) = end
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero())
    {
        if failed.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(100)));
    }
}
