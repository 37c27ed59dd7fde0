//! Running the points of an experiment side by side.

use std::borrow::Cow;
use std::path::PathBuf;

use clearway_sim::MachineModel;
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::progress::progress_bar;
use crate::simulate::change::changes;
use crate::simulate::experiment::Experiment;
use crate::simulate::jobs::{Job, run_jobs};
use crate::simulate::point::Point;
use crate::simulate::shard::Shard;

/// The most busy loops of other programs.
const BUSY_LOOPS_MAX: usize = 4_096;

/// The run of an experiment.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The experiment, with its settings applied.
    pub experiment: Experiment,
    /// The machine.
    pub machine: MachineModel,
    /// The seed of every point.
    pub seed: u64,
    /// The file for a trace of the last point's first measured half millisecond.
    pub trace: Option<PathBuf>,
    /// True if it is all run again with each cost that the machine has and each parameter 50 % lower and higher.
    pub sweep: bool,
    /// The pieces of the experiment to run; none: all of them.
    pub shard: Option<Shard>,
    /// True if a progress bar is shown.
    pub progress: bool,
    /// Host threads that compute points; 0 means as many as there are CPUs. The result does not depend on it.
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
    /// The pieces of it that this is; none: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Clients × variants; of a shard, those that it has run.
    pub points: Vec<Point>,
    /// Change of the last number of clients' results with each cost, if asked for.
    pub sweep: Vec<Sweep>,
}

/// The effect of one changed number at the largest number of clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sweep {
    /// The number's name.
    pub number: Cow<'static, str>,
    /// The factor of the change.
    pub factor: f64,
    /// Throughput of each variant.
    pub tps: Vec<f64>,
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
    if experiment.busy_loops() > BUSY_LOOPS_MAX {
        return Err(LabError::BadNumber {
            what: "beside",
            value: experiment.busy_loops().to_string(),
            must: "from 0 to 4096",
        });
    }
    let mut jobs = Vec::new();
    let mut add = |machine: &MachineModel, experiment: &Experiment, clients: usize| {
        for variant in 0..experiment.variants.len() {
            jobs.push(Job {
                machine: machine.clone(),
                experiment: experiment.clone(),
                variant,
                clients,
                seed: options.seed,
                steps: 1,
                trace: None,
            });
        }
    };
    for clients in &experiment.clients {
        add(&options.machine, experiment, *clients);
    }
    let largest = experiment.clients.iter().copied().max().unwrap_or(1);
    let mut changed = if options.sweep {
        changes(&options.machine, experiment)
    } else {
        Vec::new()
    };
    for change in &changed {
        add(&change.machine, &change.experiment, largest);
    }
    let mut points_max = experiment.clients.len() * experiment.variants.len();
    if let Some(last) = points_max.checked_sub(1) {
        jobs[last].trace.clone_from(&options.trace);
    }
    if let Some(shard) = options.shard {
        // A change of the sweep is one piece, with all its variants.
        let mut of_the_sweep = jobs.split_off(points_max);
        let pieces = points_max + changed.len();
        shard.check(pieces)?;
        let mut number = 0..pieces;
        jobs.retain(|_| number.next().is_some_and(|number| shard.has(number)));
        points_max = jobs.len();
        changed.retain(|_| {
            let rest = of_the_sweep.split_off(experiment.variants.len());
            let piece = std::mem::replace(&mut of_the_sweep, rest);
            let is_here = number.next().is_some_and(|number| shard.has(number));
            jobs.extend(piece.into_iter().filter(|_| is_here));
            is_here
        });
    }
    let counts = "{pos}/{len} points  {elapsed} (about {eta} left)";
    let bar = progress_bar(options.progress, jobs.len() as u64, counts);
    let mut points = run_jobs(&jobs, options.threads, &bar, |point| point)?;
    let swept = points.split_off(points_max);
    let sweep = changed
        .into_iter()
        .zip(swept.chunks(experiment.variants.len()))
        .map(|(change, points)| Sweep {
            number: Cow::Borrowed(change.number),
            factor: change.factor,
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
