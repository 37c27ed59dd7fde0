//! The costs that an advice depends on: those that turn it when they are half as high, or half as high again.
//!
//! Of a switch's cells two decide: the one that the variant wins most, and the one that it loses most. Both are run
//! again with each of [`INFLUENTIAL`] changed, first with one seed. A change that seems to turn the verdict is run with
//! all seeds before it is named, so that noise is not taken for a cause.

use std::borrow::Cow;

use clearway_engine::Mechanisms;
use clearway_sim::MachineModel;

use crate::advise::measure::{Runner, Task, cells_of};
use crate::advise::verdict::{Cell, Judged, WIN_MIN};
use crate::error::Result;
use crate::simulate::{Change, Experiment, changes};

/// The numbers that moved ratios most in the sweeps of docs/log.md, and those that a host or a disk may be
/// far from.
pub const INFLUENTIAL: [&str; 10] = [
    "coherence.smt",
    "coherence.socket",
    "coherence.cross",
    "coherence.load_factor",
    "os.wake",
    "os.idle_exit",
    "os.switch",
    "os.smt_speed",
    "work_us",
    "device_factor",
];

/// A changed number that turns an advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The number's name.
    pub number: Cow<'static, str>,
    /// The factor of the change.
    pub factor: f64,
    /// The cell that does not hold any more, as it is then.
    pub cell: Cell,
}

/// The fate of an advice under the changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turns {
    /// Number of changes that were tried.
    pub tried: usize,
    /// Those that turn it; one change may do so in both deciding cells.
    pub found: Vec<Turn>,
}

impl Turns {
    /// Number of changes that turn it.
    pub fn turned(&self) -> usize {
        let mut changes: Vec<_> = self
            .found
            .iter()
            .map(|turn| (&turn.number, turn.factor.to_bits()))
            .collect();
        changes.sort_unstable();
        changes.dedup();
        changes.len()
    }
}

/// One change in one of the deciding cells.
struct Trial {
    number: &'static str,
    factor: f64,
    /// True if it is the cell that the variant must win.
    must_win: bool,
    /// The workload of the cell, of a task's cells.
    workload: String,
    tasks: [Task; 2],
}

/// A deciding cell with the experiment it was measured by.
pub(super) struct Deciding<'a> {
    pub(super) cell: &'a Cell,
    pub(super) experiment: &'a Experiment,
    pub(super) must_win: bool,
}

/// The cells that decide: the one won most, and, if it is another, the one lost most.
pub(super) fn deciding<'a>(
    judged: &'a Judged,
    experiment_of: impl Fn(&Cell) -> Option<&'a Experiment>,
) -> Vec<Deciding<'a>> {
    let (best, worst) = (judged.best(), judged.worst());
    let worst = worst.filter(|worst| best.is_some_and(|best| best != *worst));
    let both = best
        .map(|cell| (cell, true))
        .into_iter()
        .chain(worst.map(|cell| (cell, false)));
    let known = both.filter_map(|(cell, must_win)| {
        experiment_of(cell).map(|experiment| Deciding {
            cell,
            experiment,
            must_win,
        })
    });
    known.collect()
}

/// The influential numbers that turn the advice, and the number of simulations that it took to find out.
pub(super) fn turns(
    what: &str,
    runner: &Runner,
    machine: &MachineModel,
    deciding: &[Deciding<'_>],
    [preset, variant]: [Mechanisms; 2],
) -> Result<(Turns, usize)> {
    let mut trials = Vec::new();
    for decisive in deciding {
        let all = changes(machine, decisive.experiment).into_iter();
        for change in all.filter(|change| counts(change, decisive.experiment)) {
            let task = |mechanisms| Task {
                machine: change.machine.clone(),
                experiment: change.experiment.clone(),
                clients: decisive.cell.clients,
                mechanisms,
            };
            trials.push(Trial {
                number: change.number,
                factor: change.factor,
                must_win: decisive.must_win,
                workload: decisive.cell.workload.clone(),
                tasks: [task(preset), task(variant)],
            });
        }
    }
    let mut tried: Vec<_> = trials
        .iter()
        .map(|trial| (trial.number, trial.factor.to_bits()))
        .collect();
    tried.sort_unstable();
    tried.dedup();
    let mut simulations = 2 * trials.len();
    let (first, _): (Vec<_>, Vec<_>) = run(what, runner, trials, 1)?
        .into_iter()
        .partition(|(trial, cell)| fails(trial, cell));
    let suspects: Vec<Trial> = first.into_iter().map(|(trial, _)| trial).collect();
    simulations += runner.simulations(2 * suspects.len());
    let all = run(what, runner, suspects, runner.seeds)?.into_iter();
    let turned = all.filter(|(trial, cell)| fails(trial, cell));
    let turned = turned.map(|(trial, cell)| Turn {
        number: Cow::Borrowed(trial.number),
        factor: trial.factor,
        cell,
    });
    let turns = Turns {
        tried: tried.len(),
        found: turned.collect(),
    };
    Ok((turns, simulations))
}

/// True if the change is one of those that are tried: a disk counts only where commits go to it.
fn counts(change: &Change, experiment: &Experiment) -> bool {
    INFLUENTIAL.contains(&change.number)
        && (change.number != "device_factor" || experiment.workload.uses_devices())
}

fn run(what: &str, runner: &Runner, trials: Vec<Trial>, seeds: u64) -> Result<Vec<(Trial, Cell)>> {
    if trials.is_empty() {
        return Ok(Vec::new());
    }
    let mut tasks = Vec::new();
    let mut rest = Vec::new();
    for trial in trials {
        let [preset, variant] = trial.tasks;
        tasks.extend([preset, variant]);
        rest.push((trial.number, trial.factor, trial.must_win, trial.workload));
    }
    let measured = runner.measure(what, &tasks, seeds)?;
    let mut done = Vec::new();
    let mut tasks = tasks.into_iter();
    for ((number, factor, must_win, workload), pair) in rest.into_iter().zip(measured.chunks(2)) {
        let (Some(preset), Some(variant), [of_preset, of_variant]) = (tasks.next(), tasks.next(), pair)
        else {
            break;
        };
        let cells = cells_of(&variant, of_preset, of_variant)?;
        let Some(cell) = cells.into_iter().find(|cell| cell.workload == workload) else {
            continue;
        };
        let trial = Trial {
            number,
            factor,
            must_win,
            workload,
            tasks: [preset, variant],
        };
        done.push((trial, cell));
    }
    Ok(done)
}

fn fails(trial: &Trial, cell: &Cell) -> bool {
    if trial.must_win {
        cell.ratio < WIN_MIN
    } else {
        cell.loses_too_much()
    }
}
