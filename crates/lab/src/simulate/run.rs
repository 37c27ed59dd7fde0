//! Running the points of an experiment side by side.

use std::borrow::Cow;
use std::path::PathBuf;

use clearway_sim::MachineModel;
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::progress::progress_bar;
use crate::simulate::change::{Change, changes};
use crate::simulate::experiment::Experiment;
use crate::simulate::jobs::{Job, run_jobs};
use crate::simulate::order::{Order, Verdict};
use crate::simulate::point::Point;
use crate::simulate::seeds::Seeds;
use crate::simulate::shard::Shard;
use crate::simulate::spread::{Cell, Spread, ratios, summarize};
use crate::stats::median;

/// The most busy loops of other programs.
const BUSY_LOOPS_MAX: usize = 4_096;

/// The run of an experiment.
#[derive(Debug, Clone)]
pub struct SimulateOptions {
    /// The experiment, with its settings applied.
    pub experiment: Experiment,
    /// The machine.
    pub machine: MachineModel,
    /// The seeds of every point, and of every change of a sweep.
    pub seeds: Seeds,
    /// The file for a trace of half a millisecond of the last variant with the last number of clients, under the first
    /// seed.
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
    /// The seeds of every point.
    pub seeds: Seeds,
    /// The pieces of it that this is; none: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Clients × variants: what the seeds make of each; empty in a shard, which may lack seeds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<Cell>,
    /// By number of clients: the order of the variants that all seeds share; empty in a shard.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
    /// Clients × variants × seeds; of a shard, those that it has run.
    pub points: Vec<Point>,
    /// Change of the last number of clients' results with each cost, if asked for.
    pub sweep: Vec<Sweep>,
}

impl SimulationResult {
    /// Computes [`cells`](Self::cells) and [`orders`](Self::orders) from the points, which are all there.
    pub(crate) fn summarize(&mut self) {
        let variants = self.experiment.variants.len();
        (self.cells, self.orders) = summarize(&self.points, variants, self.seeds.count());
    }

    /// The points of a cell, one for each seed.
    pub(crate) fn points_of(&self, cell: usize) -> &[Point] {
        let seeds = self.seeds.count();
        self.points.get(cell * seeds..(cell + 1) * seeds).unwrap_or(&[])
    }
}

/// The effect of one changed number at the largest number of clients.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Sweep {
    /// The number's name.
    pub number: Cow<'static, str>,
    /// The factor of the change.
    pub factor: f64,
    /// Throughput of each variant, the median of the seeds.
    pub tps: Vec<f64>,
    /// The last variant's throughput to the first one's, ratios of equal seeds; none with one variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_to_first: Option<Spread>,
    /// The comparison of the last variant with the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The variant that is better than all others under every seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best: Option<String>,
}

impl Sweep {
    /// Of a change: its points are variants × seeds.
    fn of(change: &Change, points: &[Point], seeds: usize) -> Self {
        let rates: Vec<(&str, Vec<f64>)> = points
            .chunks(seeds)
            .map(|points| {
                let rates = points.iter().map(|point| point.tps).collect();
                (&*points[0].variant, rates)
            })
            .collect();
        let (last_to_first, verdict) = match rates.as_slice() {
            [(_, first), .., (_, last)] => (ratios(last, first), Some(Verdict::of(last, first))),
            _ => (None, None),
        };
        Self {
            number: Cow::Borrowed(change.number),
            factor: change.factor,
            tps: rates.iter().map(|(_, rates)| median(rates)).collect(),
            last_to_first,
            verdict,
            best: Order::of(points[0].clients, &rates).best().map(str::to_owned),
        }
    }
}

/// Runs an experiment.
pub fn run_experiment(options: &SimulateOptions) -> Result<SimulationResult> {
    let experiment = &options.experiment;
    check(experiment)?;
    let mut jobs = Vec::new();
    for clients in &experiment.clients {
        add_jobs(&mut jobs, options, &options.machine, experiment, *clients);
    }
    let points_max = jobs.len();
    let seeds = options.seeds.count();
    if let Some(last) = points_max.checked_sub(seeds) {
        jobs[last].trace.clone_from(&options.trace);
    }
    let mut changed = if options.sweep {
        changes(&options.machine, experiment)
    } else {
        Vec::new()
    };
    let largest = experiment.clients.iter().copied().max().unwrap_or(1);
    for change in &changed {
        add_jobs(&mut jobs, options, &change.machine, &change.experiment, largest);
    }
    let points_here = match options.shard {
        Some(shard) => {
            shard.check(points_max + changed.len())?;
            keep_shard(shard, &mut jobs, points_max, &mut changed)
        }
        None => points_max,
    };
    let bar = progress_bar(
        options.progress,
        jobs.len() as u64,
        "{pos}/{len} points  {elapsed}  {left}",
    );
    let mut points = run_jobs(&jobs, options.threads, &bar, |point| point)?;
    let swept = points.split_off(points_here);
    let sweep = changed
        .iter()
        .zip(swept.chunks(experiment.variants.len() * seeds))
        .map(|(change, points)| Sweep::of(change, points, seeds))
        .collect();
    let mut result = SimulationResult {
        experiment: experiment.clone(),
        machine: options.machine.clone(),
        seeds: options.seeds.clone(),
        shard: options.shard,
        cells: Vec::new(),
        orders: Vec::new(),
        points,
        sweep,
    };
    if options.shard.is_none() {
        result.summarize();
    }
    Ok(result)
}

/// An error if a number of workers cannot be simulated.
fn check(experiment: &Experiment) -> Result<()> {
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
    Ok(())
}

/// Adds a job for each variant and seed.
fn add_jobs(
    jobs: &mut Vec<Job>,
    options: &SimulateOptions,
    machine: &MachineModel,
    experiment: &Experiment,
    clients: usize,
) {
    for variant in 0..experiment.variants.len() {
        for seed in options.seeds.as_slice() {
            jobs.push(Job {
                machine: machine.clone(),
                experiment: experiment.clone(),
                variant,
                clients,
                seed: *seed,
                steps: 1,
                trace: None,
            });
        }
    }
}

/// Leaves the pieces of a shard in `jobs` and `changed`: of the first `points_max` jobs each is one, and each change, with
/// its jobs of all variants and seeds, is one. Returns the number of the former that are left.
fn keep_shard(shard: Shard, jobs: &mut Vec<Job>, points_max: usize, changed: &mut Vec<Change>) -> usize {
    let mut of_the_sweep = jobs.split_off(points_max);
    let of_a_change = of_the_sweep.len() / changed.len().max(1);
    let mut number = 0..points_max + changed.len();
    let mut is_here = || number.next().is_some_and(|number| shard.has(number));
    jobs.retain(|_| is_here());
    let points_here = jobs.len();
    changed.retain(|_| {
        let rest = of_the_sweep.split_off(of_a_change);
        let piece = std::mem::replace(&mut of_the_sweep, rest);
        let is_here = is_here();
        jobs.extend(piece.into_iter().filter(|_| is_here));
        is_here
    });
    points_here
}
