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

/// The phase of a run, which all its clients look at, and whether one of them has failed. It begins with warming up.
#[derive(Debug, Default)]
pub(crate) struct Course {
    phase: AtomicU8,
    failed: AtomicBool,
}

impl Course {
    /// Runs transactions until the run stops or another client has failed. `latencies` gets those that end in the measured
    /// phase.
    pub(crate) fn drive(&self, client: &mut Client, latencies: &mut Latencies) -> Result<(), EngineError> {
        let mut before = Instant::now();
        loop {
            let ended = client.transaction()?;
            let after = Instant::now();
            match self.phase.load(Ordering::Relaxed) {
                WARM_UP => {}
                MEASURE => latencies.record(ended, (after - before).as_nanos() as u64),
                _ => return Ok(()),
            }
            if self.failed.load(Ordering::Relaxed) {
                return Ok(());
            }
            before = after;
        }
    }

    /// A client has failed: the others need not go on.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    /// Clients count from now on.
    pub(crate) fn measure(&self) {
        self.phase.store(MEASURE, Ordering::Relaxed);
    }

    /// Clients finish what they are at, and leave.
    pub(crate) fn stop(&self) {
        self.phase.store(STOP, Ordering::Relaxed);
    }

    /// Sleeps, but not on when a client has failed.
    pub(crate) fn sleep(&self, duration: Duration) {
        let end = Instant::now() + duration;
        while let Some(left) = end
            .checked_duration_since(Instant::now())
            .filter(|left| !left.is_zero())
        {
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    }
}

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
    let course = Course::default();
    let ready = Barrier::new(point.clients + 1);
    let sampler = Sampler::default();
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..point.clients)
            .map(|number| {
                let (course, ready, sampler) = (&course, &ready, &sampler);
                scope.spawn(move || {
                    client(point, number, course, ready, sampler).inspect_err(|_| course.fail())
                })
            })
            .collect();
        ready.wait();
        course.sleep(point.warm_up);
        let before = Counters::now(point.engine);
        let started = Instant::now();
        course.measure();
        let looking = scope.spawn(|| sampler.run());
        course.sleep(point.duration);
        course.stop();
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
    course: &Course,
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
    course.drive(&mut client, &mut latencies)?;
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
