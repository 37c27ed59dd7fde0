//! The physical limit of group commit on this machine: what a program gets whose threads do a little work, append 200
//! bytes to a buffer in memory, and share the syncs of one file as well as can be.
//!
//! There is no database in it. A thread's commit is: work (a calibrated loop), reserve and copy 200 bytes, sleep until
//! a sync that began after the copy has ended. The file is written with zeros and synced before, and overwritten in a
//! circle, so that fdatasync writes no metadata, as with the segments of the log. The ways to share syncs are in
//! `sharing.rs`, a line each in `WAYS`.
//!
//!     cargo run --release -p clearway-lab --example commit_limit -- [FILE] [name=value]…
//!
//! | name | is | default |
//! | --- | --- | --- |
//! | `work_us` | work before each append, microseconds | 15 |
//! | `threads` | numbers of threads | 1,4,16,64 |
//! | `rounds` | how often each is measured; the ways take turns | 5 |
//! | `ms` | measured time of each | 300 |
//!
//! `docs/mechanisms/log.md` says what came out, and what it says about the log.

mod log;
mod sharing;

use std::error::Error;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clearway_machine::Native;

use crate::log::Log;
use crate::sharing::{Sharing, SyncSharing, WAYS};

/// Steps of the loop that stands for a transaction's work.
#[derive(Clone, Copy)]
struct Work {
    steps: u64,
}

impl Work {
    /// Work that takes `duration` on a CPU of its own: the least of several tries, since others may run as well.
    fn of(duration: Duration) -> Work {
        const TRIAL: u64 = 200_000;
        let least = (0..30).map(|_| {
            let started = Instant::now();
            Work { steps: TRIAL }.run();
            started.elapsed()
        });
        let least = least.min().unwrap_or_default().as_secs_f64().max(1e-9);
        Work {
            steps: (duration.as_secs_f64() / least * TRIAL as f64) as u64,
        }
    }

    fn run(self) {
        for step in 0..self.steps {
            black_box(step);
        }
    }
}

/// The settings of a measurement.
struct Settings {
    file: std::path::PathBuf,
    work: Duration,
    threads: Vec<usize>,
    rounds: usize,
    duration: Duration,
}

impl Settings {
    fn from_arguments() -> Result<Settings, Box<dyn Error>> {
        let mut settings = Settings {
            file: std::env::temp_dir().join("commit_limit.log"),
            work: Duration::from_micros(15),
            threads: vec![1, 4, 16, 64],
            rounds: 5,
            duration: Duration::from_millis(300),
        };
        for argument in std::env::args().skip(1) {
            match argument.split_once('=') {
                None => settings.file = argument.into(),
                Some(("work_us", value)) => settings.work = Duration::from_micros(value.parse()?),
                Some(("threads", value)) => {
                    settings.threads = value.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                Some(("rounds", value)) => settings.rounds = value.parse()?,
                Some(("ms", value)) => settings.duration = Duration::from_millis(value.parse()?),
                Some((name, _)) => return Err(format!("there is no setting {name}").into()),
            }
        }
        Ok(settings)
    }
}

/// The outcome of one run of one way.
struct Outcome {
    commits_a_second: f64,
    commits_a_sync: f64,
    cpu_us_a_commit: f64,
    switches_a_commit: f64,
}

fn measure(way: &SyncSharing, threads: usize, work: Work, duration: Duration, log: &Log) -> Outcome {
    let sharing = Sharing::new(way, threads);
    let stopped = AtomicBool::new(false);
    let start = Barrier::new(threads + 1);
    let (syncs, used) = (log.syncs(), Native::usage_of_process());
    std::thread::scope(|scope| {
        let flusher = way
            .flusher
            .then(|| scope.spawn(|| sharing.flush_until_stopped(log)));
        let clients: Vec<_> = (0..threads as u32)
            .map(|me| {
                let (sharing, stopped, start) = (&sharing, &stopped, &start);
                scope.spawn(move || {
                    start.wait();
                    let mut commits = 0u64;
                    while !stopped.load(Ordering::Relaxed) {
                        work.run();
                        log.append();
                        sharing.wait_durable(log, me);
                        commits += 1;
                    }
                    sharing.leave();
                    commits
                })
            })
            .collect();
        start.wait();
        let started = Instant::now();
        std::thread::sleep(duration);
        stopped.store(true, Ordering::Relaxed);
        let commits: u64 = clients.into_iter().map(|client| client.join().unwrap_or(0)).sum();
        let elapsed = started.elapsed();
        if let Some(flusher) = flusher {
            sharing.stop_flusher();
            let _ = flusher.join();
        }
        let used = Native::usage_of_process() - used;
        let commits = commits.max(1) as f64;
        Outcome {
            commits_a_second: commits / elapsed.as_secs_f64(),
            commits_a_sync: commits / (log.syncs() - syncs).max(1) as f64,
            cpu_us_a_commit: used.cpu_time.as_secs_f64() * 1e6 / commits,
            switches_a_commit: (used.voluntary_switches + used.involuntary_switches) as f64 / commits,
        }
    })
}

fn median(outcomes: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    let mut values: Vec<f64> = outcomes.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The most commits a second of any round: on a machine that others use too, the round that they disturbed least.
fn best(outcomes: &[Outcome]) -> f64 {
    outcomes
        .iter()
        .fold(0.0, |best, outcome| outcome.commits_a_second.max(best))
}

fn main() -> Result<(), Box<dyn Error>> {
    let settings = Settings::from_arguments()?;
    let work = Work::of(settings.work);
    let log = Log::create(&settings.file)?;
    println!(
        "{:>7}  {:<22} {:>10} {:>10} {:>10} {:>9} {:>11}",
        "threads", "way", "commits/s", "best round", "per sync", "CPU us", "switches"
    );
    for &threads in &settings.threads {
        let mut outcomes: Vec<Vec<Outcome>> = WAYS.iter().map(|_| Vec::new()).collect();
        for round in 0..settings.rounds.max(1) {
            for turn in 0..WAYS.len() {
                // Each round begins with another way.
                let place = (turn + round) % WAYS.len();
                outcomes[place].push(measure(&WAYS[place], threads, work, settings.duration, &log));
            }
        }
        for (way, outcomes) in WAYS.iter().zip(&outcomes) {
            println!(
                "{threads:>7}  {:<22} {:>10.0} {:>10.0} {:>10.1} {:>9.1} {:>11.2}",
                way.name,
                median(outcomes, |outcome| outcome.commits_a_second),
                best(outcomes),
                median(outcomes, |outcome| outcome.commits_a_sync),
                median(outcomes, |outcome| outcome.cpu_us_a_commit),
                median(outcomes, |outcome| outcome.switches_a_commit),
            );
        }
    }
    std::fs::remove_file(&settings.file)?;
    Ok(())
}
