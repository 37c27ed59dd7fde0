//! Running the points of an experiment side by side.

use std::borrow::Cow;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use clearway_sim::MachineModel;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::simulate::experiment::Experiment;
use crate::simulate::point::{Point, TraceWindow, run_point};
use crate::simulate::shard::Shard;

/// What to run.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The experiment, with its settings applied.
    pub experiment: Experiment,
    /// The machine.
    pub machine: MachineModel,
    /// The seed of every point.
    pub seed: u64,
    /// Where to write a trace of the last point's first measured half millisecond.
    pub trace: Option<PathBuf>,
    /// Whether to run it all again with each cost that the machine has and each parameter 50 % lower and higher.
    pub sweep: bool,
    /// Which of the experiment's pieces to run; none: all of them.
    pub shard: Option<Shard>,
    /// Whether to show a progress bar.
    pub progress: bool,
    /// How many host threads compute points; 0 means as many as there are CPUs. The result does not depend on it.
    pub threads: usize,
}

/// Result of an experiment. The same options give the same bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SimulationResult {
    /// The experiment as it was run.
    pub experiment: Experiment,
    /// The machine as it was simulated.
    pub machine: MachineModel,
    /// The seed.
    pub seed: u64,
    /// Which of its pieces this is; none: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Clients × variants; of a shard, those that it has run.
    pub points: Vec<Point>,
    /// How the last number of clients changes with each cost, if asked for.
    pub sweep: Vec<Sweep>,
}

/// What one changed number does at the largest number of clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sweep {
    /// The number's name.
    pub number: Cow<'static, str>,
    /// What it was multiplied by.
    pub factor: f64,
    /// Throughput of each variant.
    pub tps: Vec<f64>,
}

/// One simulation to run.
struct Job {
    machine: MachineModel,
    experiment: Experiment,
    variant: usize,
    clients: usize,
    trace: bool,
}

/// Runs an experiment.
pub fn run_experiment(options: &SimulateOptions) -> Result<SimulationResult> {
    let experiment = &options.experiment;
    for clients in &experiment.clients {
        if !(1..=4_096).contains(clients) {
            return Err(LabError::BadNumber {
                what: "a number of clients",
                value: clients.to_string(),
                must: "from 1 to 4096",
            });
        }
    }
    let mut jobs = Vec::new();
    let mut add = |machine: &MachineModel, experiment: &Experiment, clients: usize| {
        for variant in 0..experiment.variants.len() {
            jobs.push(Job {
                machine: machine.clone(),
                experiment: experiment.clone(),
                variant,
                clients,
                trace: false,
            });
        }
    };
    for clients in &experiment.clients {
        add(&options.machine, experiment, *clients);
    }
    let largest = experiment.clients.iter().copied().max().unwrap_or(1);
    let mut changes = Vec::new();
    if options.sweep {
        for factor in [0.5, 1.5] {
            let mut machine = options.machine.clone();
            for index in 0..machine.costs_mut().len() {
                let mut changed = options.machine.clone();
                let mut costs = changed.costs_mut();
                let (name, cost) = &mut costs[index];
                if **cost == 0.0 {
                    // What the machine does not have.
                    continue;
                }
                // A speed above 1 is none; a hardware thread is at best not slowed at all.
                **cost = if *name == "os.smt_speed" {
                    (**cost * factor).min(1.0)
                } else {
                    **cost * factor
                };
                changes.push((*name, factor));
                add(&changed, experiment, largest);
            }
            for index in 0..experiment.parameters.clone().numbers_mut().len() {
                let mut changed = experiment.clone();
                let (name, number) = &mut changed.parameters.numbers_mut()[index];
                if **number == 0.0 || !experiment.workload.uses(name) {
                    continue;
                }
                **number *= factor;
                changes.push((*name, factor));
                add(&options.machine, &changed, largest);
            }
        }
    }
    let mut points_max = experiment.clients.len() * experiment.variants.len();
    if options.trace.is_some()
        && let Some(last) = points_max.checked_sub(1)
    {
        jobs[last].trace = true;
    }
    if let Some(shard) = options.shard {
        // A change of the sweep is one piece, with all its variants.
        let mut of_the_sweep = jobs.split_off(points_max);
        let pieces = points_max + changes.len();
        shard.check(pieces)?;
        let mut number = 0..pieces;
        jobs.retain(|_| number.next().is_some_and(|number| shard.has(number)));
        points_max = jobs.len();
        changes.retain(|_| {
            let rest = of_the_sweep.split_off(experiment.variants.len());
            let piece = std::mem::replace(&mut of_the_sweep, rest);
            let is_here = number.next().is_some_and(|number| shard.has(number));
            jobs.extend(piece.into_iter().filter(|_| is_here));
            is_here
        });
    }
    let mut points = run_jobs(&jobs, options)?;
    let swept = points.split_off(points_max);
    let sweep = changes
        .into_iter()
        .zip(swept.chunks(experiment.variants.len()))
        .map(|((number, factor), points)| Sweep {
            number: Cow::Borrowed(number),
            factor,
            tps: points.iter().map(|point| point.tps).collect(),
        })
        .collect();
    Ok(SimulationResult {
        experiment: experiment.clone(),
        machine: options.machine.clone(),
        seed: options.seed,
        shard: options.shard,
        points,
        sweep,
    })
}

fn run_jobs(jobs: &[Job], options: &SimulateOptions) -> Result<Vec<Point>> {
    let bar = if options.progress {
        ProgressBar::new(jobs.len() as u64)
    } else {
        ProgressBar::hidden()
    };
    if let Ok(style) =
        ProgressStyle::with_template("{bar:30} {pos}/{len} points  {elapsed} (about {eta} left)  {msg}")
    {
        bar.set_style(style);
    }
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<Option<Result<Point>>>> = Mutex::new((0..jobs.len()).map(|_| None).collect());
    let threads = match options.threads {
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
                    let result = run_job(job, options);
                    bar.inc(1);
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

fn run_job(job: &Job, options: &SimulateOptions) -> Result<Point> {
    let variant = &job.experiment.variants[job.variant];
    let window = job.trace.then(|| {
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
        options.seed,
        window,
    )?;
    if let (Some(trace), Some(path)) = (trace, &options.trace) {
        let write = || {
            let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
            trace.write(&mut file)?;
            std::io::Write::flush(&mut file)
        };
        write().map_err(LabError::io("cannot write the trace", path))?;
    }
    Ok(point)
}
