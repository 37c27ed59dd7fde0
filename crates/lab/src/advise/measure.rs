//! Throughputs of many points, one of each seed, with one progress bar for all.

use clearway_engine::Mechanisms;
use clearway_sim::MachineModel;

use crate::advise::verdict::Cell;
use crate::advise::workloads::has_replay_beside;
use crate::error::{LabError, Result};
use crate::progress::progress_bar;
use crate::simulate::{Experiment, Job, LatchFamily, OfItsTime, Point, SpinKind, Variant, run_jobs};

/// One workload with one number of clients under some mechanisms.
pub(super) struct Task {
    pub(super) machine: MachineModel,
    /// Without variants.
    pub(super) experiment: Experiment,
    pub(super) clients: usize,
    pub(super) mechanisms: Mechanisms,
}

/// Throughputs of a task, one of each seed.
pub(super) struct Measured {
    /// Transactions a simulated second.
    tps: Vec<f64>,
    /// Transactions that replay ended beside the readers, a simulated second; empty for other workloads.
    ended: Vec<f64>,
}

/// Runs tasks.
pub(super) struct Runner {
    pub(super) seeds: u64,
    pub(super) threads: usize,
    pub(super) progress: bool,
}

impl Runner {
    /// Runs the tasks with this many seeds, from 1 on.
    pub(super) fn measure(&self, what: &str, tasks: &[Task], seeds: u64) -> Result<Vec<Measured>> {
        let mut jobs: Vec<(usize, Job)> = Vec::new();
        for (number, task) in tasks.iter().enumerate() {
            let mut experiment = task.experiment.clone();
            experiment.variants = vec![variant_of(task.mechanisms)];
            for seed in 1..=seeds {
                let job = Job {
                    machine: task.machine.clone(),
                    experiment: experiment.clone(),
                    variant: 0,
                    clients: task.clients,
                    seed,
                    steps: steps(task),
                    trace: None,
                };
                jobs.push((number, job));
            }
        }
        // The last ones are run first: those that take longest.
        jobs.sort_by_key(|(_, job)| job.steps);
        let (numbers, jobs): (Vec<usize>, Vec<Job>) = jobs.into_iter().unzip();
        let length = jobs.iter().map(|job| job.steps).sum();
        let counts = format!("{what}  {{percent}} %  {{elapsed}}  {{left}}");
        let bar = progress_bar(self.progress, length, &counts);
        let points = run_jobs(&jobs, self.threads, &bar, |point: Point| {
            (point.tps, point.standby.map(|figures| figures.ended_per_second))
        })?;
        let nothing = || Measured {
            tps: Vec::new(),
            ended: Vec::new(),
        };
        let mut measured: Vec<Measured> = tasks.iter().map(|_| nothing()).collect();
        for (number, (tps, ended)) in numbers.into_iter().zip(points) {
            measured[number].tps.push(tps);
            measured[number].ended.extend(ended);
        }
        Ok(measured)
    }

    /// Number of simulations for this many tasks.
    pub(super) fn simulations(&self, tasks: usize) -> usize {
        tasks * self.seeds as usize
    }
}

/// The cost of a simulation for this host, roughly: simulated time in which CPUs are busy.
fn steps(task: &Task) -> u64 {
    let busy = (task.clients + task.experiment.background_workers()).min(2 * task.machine.cpus());
    (task.experiment.warm_up_ms + task.experiment.measure_ms) * busy as u64
}

fn variant_of(mechanisms: Mechanisms) -> Variant {
    Variant {
        name: "advised".to_owned(),
        latch: LatchFamily::default(),
        spin: SpinKind::default(),
        work_alone: false,
        multixact: None,
        of_its_time: OfItsTime::default(),
        warm_up_ms: None,
        mechanisms,
    }
}

/// The cells of two tasks that differ in their mechanisms: one, or two where replay is counted beside the readers.
///
/// # Errors
/// [`LabError::NothingMeasured`] if the preset got nothing done.
pub(super) fn cells_of(task: &Task, preset: &Measured, variant: &Measured) -> Result<Vec<Cell>> {
    let name = task.experiment.name.clone();
    let mut pairs = vec![(name.clone(), &preset.tps, &variant.tps)];
    if has_replay_beside(&task.experiment) {
        pairs.push((format!("{name} (replay)"), &preset.ended, &variant.ended));
    }
    let cell = |(workload, preset, variant): (String, &Vec<f64>, &Vec<f64>)| {
        let nothing = || LabError::NothingMeasured {
            what: format!("{workload} with {} clients", task.clients),
        };
        Cell::of(workload.clone(), task.clients, preset, variant).ok_or_else(nothing)
    };
    pairs.into_iter().map(cell).collect()
}
