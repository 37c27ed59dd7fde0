//! Simulations side by side on the CPUs of the host.

use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clearway_sim::MachineModel;
use indicatif::ProgressBar;

use crate::error::{LabError, Result};
use crate::simulate::experiment::Experiment;
use crate::simulate::point::{Point, TraceWindow, run_point};

/// One simulation to run.
pub(crate) struct Job {
    pub(crate) machine: MachineModel,
    pub(crate) experiment: Experiment,
    /// Index of the experiment's variant.
    pub(crate) variant: usize,
    pub(crate) clients: usize,
    pub(crate) seed: u64,
    /// Steps by which the progress bar goes on when it is done.
    pub(crate) steps: u64,
    /// The file for a trace of its first measured half millisecond.
    pub(crate) trace: Option<PathBuf>,
}

/// Runs the jobs on `threads` threads, 0: as many as there are CPUs, the last one first. The results of `keep` are in
/// the order of the jobs.
///
/// # Errors
/// That of the first job that has one; all of them have run.
pub(crate) fn run_jobs<T: Send>(
    jobs: &[Job],
    threads: usize,
    bar: &ProgressBar,
    keep: impl Fn(Point) -> T + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<T>>>> = Mutex::new((0..jobs.len()).map(|_| None).collect());
    let threads = match threads {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        threads => threads,
    };
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    // The largest first: they take longest.
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(number) = jobs.len().checked_sub(number + 1) else {
                        break;
                    };
                    let job = &jobs[number];
                    bar.set_message(format!("{} clients", job.clients));
                    let result = run_job(job).map(&keep);
                    bar.inc(job.steps);
                    done.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(result);
                }
            });
        }
    });
    bar.finish_and_clear();
    done.into_inner()
        .unwrap_or_else(PoisonError::into_inner)
        .into_iter()
        .flatten()
        .collect()
}

fn run_job(job: &Job) -> Result<Point> {
    let variant = &job.experiment.variants[job.variant];
    let window = job.trace.is_some().then(|| {
        let from_ns = job.experiment.warm_up_ns(variant);
        TraceWindow {
            from_ns,
            to_ns: from_ns + 500_000,
        }
    });
    let (point, trace) = run_point(
        &job.machine,
        &job.experiment,
        variant,
        job.clients,
        job.seed,
        window,
    )?;
    if let (Some(trace), Some(path)) = (trace, &job.trace) {
        let write = || {
            let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
            trace.write(&mut file)?;
            std::io::Write::flush(&mut file)
        };
        write().map_err(LabError::io("cannot write the trace", path))?;
    }
    Ok(point)
}
