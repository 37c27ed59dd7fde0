//! Advice on the variant of each mechanism that serves a machine best, as far as a simulation can tell.
//!
//! # An example
//!
//! A machine of 16 CPUs is asked about `log_flush`. The preset has `polling`; the others are run in its place, everything
//! else as the preset has it, on the workloads that commit to the disk, with 1, 16 and 32 clients, each with three seeds:
//!
//! ```text
//!                 simulate, each seed    ratios of equal seeds: median, spread       the rule
//!   polling  ──▶  tps tps tps  ─┐
//!   group    ──▶  tps tps tps  ─┼──▶  1 client 1.00, 16: 1.04 ± 0.01  ──▶  advised
//!   split    ──▶  tps tps tps  ─┴──▶  1 client 0.97, 16: 1.08 ± 0.01  ──▶  loses with one client
//! ```
//!
//! (The figures of this picture are made up; docs/simulator/advise.md has real ones.)
//!
//! # The rule
//!
//! A *cell* is one workload with one number of clients. Its *ratio* is the variant's throughput to the preset's: the
//! median of the ratios of equal seeds. Its *spread* is how far these ratios are apart.
//!
//! R1. A variant **wins** a cell if it is better than the preset's by 2 % or more, and by more than the spread. R2. It
//! is **allowed** if it wins a cell, loses no more than 1 % in any cell of one client, and no more than 2 % in any
//! other. The spread excuses no loss. R3. The cells that decide, the one won most and the one lost most, are run again
//! with influential costs halved and raised by half ([`INFLUENTIAL`]). Those that turn the verdict are named. An
//! allowed variant is **stable** if no more than a quarter of these changes turn it. Among many cells some are won by
//! accident, and an accident does not outlive a change. R4. Of the variants that are allowed and stable, the one with
//! the highest geometric mean of its ratios is **advised**. If there is none, the preset's **stays**, and the table
//! shows what the closest one would win and lose. R5. The advised variants are then run **together** against the preset
//! on all workloads. If a cell loses more than R2 allows, the one with the lowest mean is given up, and the rest is run
//! again.
//!
//! R2 is harder on a loss than on a win, since a preset is chosen for more than these workloads.
//!
//! # What it does not do
//!
//! It changes one switch at a time: two that only win together are not found. A switch that the preset's variant of
//! another one does not obey, or that nothing simulated uses, stays as the preset has it. It is a simulation:
//! docs/simulator.md says what to believe of one.

mod configuration;
mod measure;
mod sensitivity;
mod text;
mod verdict;
mod workloads;

use std::collections::BTreeSet;

use clearway_engine::Mechanisms;
use clearway_machine::SwitchDescription;
use clearway_sim::MachineModel;

use crate::advise::measure::{Runner, Task, cells_of};
use crate::advise::workloads::{WORKLOADS, Workload};
use crate::error::{LabError, Result};
use crate::simulate::{Experiment, simulated_switches};

pub use configuration::configuration;
pub use sensitivity::{INFLUENTIAL, Turn, Turns};
pub use text::{advice_text, cells_text};
pub use verdict::{
    Cell, ELSEWHERE_MIN, Finding, Judged, ONE_CLIENT_MIN, WIN_MIN, allowed, closest, is_stable,
};
pub use workloads::workloads_of;

/// The question to advise on.
#[derive(Debug, Clone)]
pub struct AdviseOptions {
    /// The machine that is advised on.
    pub machine: MachineModel,
    /// The switches asked for; none: all that are simulated.
    pub switches: Vec<String>,
    /// The workloads that count; none: all.
    pub workloads: Vec<String>,
    /// Numbers of clients; none: 1, as many as the machine has CPUs, and twice as many. Not those of standby-replay,
    /// whose clients are workers.
    pub clients: Vec<usize>,
    /// Seeds of each point, 2 to 100.
    pub seeds: u64,
    /// True if each switch is run on its most telling workload alone, and with no more clients than CPUs.
    pub quick: bool,
    /// Numbers of the experiments, as `work_us=300`.
    pub settings: Vec<String>,
    /// True if a progress bar is shown.
    pub progress: bool,
    /// Host threads; 0: as many as there are CPUs. The advice does not depend on it.
    pub threads: usize,
}

/// The advice. The same options give the same advice.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The machine.
    pub machine: MachineModel,
    /// Seeds of each point.
    pub seeds: u64,
    /// True if the workloads and clients are those of a quick look.
    pub quick: bool,
    /// All switches of the engine, in its order.
    pub switches: Vec<SwitchAdvice>,
    /// The advised variants together against the preset; `None` where fewer than two are advised.
    pub together: Option<Judged>,
    /// Number of simulations that were run.
    pub simulations: usize,
}

/// The advice on one switch.
#[derive(Debug, Clone)]
pub struct SwitchAdvice {
    /// The switch.
    pub switch: &'static SwitchDescription,
    /// The preset's variant.
    pub preset: &'static str,
    /// The finding.
    pub outcome: Outcome,
}

/// The finding on one switch.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Nothing simulated uses it.
    NotSimulated,
    /// It was not asked for, or none of its workloads was.
    NotAsked,
    /// The preset's variant of another switch does not obey it.
    NotObeyed {
        /// The other switch.
        beside: &'static str,
    },
    /// Its variants were run.
    Judged {
        /// All variants but the preset's.
        variants: Vec<Judged>,
        /// Index of the advised one.
        advised: Option<usize>,
        /// Index of the one that is shown beside the preset's: the advised one, or the closest.
        shown: Option<usize>,
        /// The reason why the one that is shown, though allowed, is not advised.
        given_up: Option<GivenUp>,
        /// The changes that turn the verdict on the one that is shown; nothing was tried if it is not allowed.
        turns: Turns,
    },
}

/// The reason why a variant that the rule allows is not advised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// Too many changes of costs turn the verdict (R3).
    Unstable,
    /// The advised variants lost too much together (R5).
    Together,
}

impl SwitchAdvice {
    /// The variant that is advised in place of the preset's.
    pub fn advised(&self) -> Option<&Judged> {
        match &self.outcome {
            Outcome::Judged {
                variants, advised, ..
            } => variants.get((*advised)?),
            _ => None,
        }
    }

    /// The variant that is shown beside the preset's; `None` if none was run.
    pub fn shown(&self) -> Option<&Judged> {
        match &self.outcome {
            Outcome::Judged { variants, shown, .. } => variants.get((*shown)?),
            _ => None,
        }
    }

    fn give_up(&mut self) {
        if let Outcome::Judged {
            advised, given_up, ..
        } = &mut self.outcome
        {
            *advised = None;
            *given_up = Some(GivenUp::Together);
        }
    }
}

impl Advice {
    /// The mechanisms advised: the preset's but for what is better.
    pub fn mechanisms(&self) -> Result<Mechanisms> {
        let mut mechanisms = Mechanisms::CLEARWAY;
        for advice in &self.switches {
            if let Some(judged) = advice.advised() {
                mechanisms.set_variant(advice.switch.name, &judged.variant)?;
            }
        }
        Ok(mechanisms)
    }
}

impl Advice {
    /// Gives up the advised variant with the lowest mean, so that the preset's stays there (R5).
    pub fn give_up_weakest(&mut self) {
        let mean = |it: &SwitchAdvice| it.advised().map_or(1.0, Judged::mean);
        let advised = self.switches.iter_mut().filter(|it| it.advised().is_some());
        if let Some(weakest) = advised.min_by(|a, b| mean(a).total_cmp(&mean(b))) {
            weakest.give_up();
        }
    }
}

/// A workload that is run, and with how many clients.
struct Run {
    experiment: Experiment,
    clients: Vec<usize>,
}

/// A variant of a switch that is held against the preset's.
struct Candidate {
    switch: &'static str,
    variant: &'static str,
    mechanisms: Mechanisms,
}

impl AdviseOptions {
    /// True if all that is named exists and every number can be.
    ///
    /// # Errors
    /// A name that does not exist, or a number out of range, with what there is.
    pub fn check(&self) -> Result<()> {
        for name in &self.switches {
            Mechanisms::switch(name)?;
            if !simulated_switches().contains(&name.as_str()) {
                return Err(LabError::UnknownName {
                    what: "simulated switch",
                    name: name.clone(),
                    available: simulated_switches().join(", "),
                });
            }
        }
        for name in &self.workloads {
            Workload::named(name)?;
        }
        for name in &self.switches {
            if self.workloads_asked(name).is_empty() {
                return Err(LabError::Setting {
                    message: format!(
                        "{name} has no part in the workloads asked for; it has in {}",
                        workloads_of(name).join(", ")
                    ),
                });
            }
        }
        if !(2..=100).contains(&self.seeds) {
            return Err(LabError::BadNumber {
                what: "--seeds",
                value: self.seeds.to_string(),
                must: "from 2 to 100: the margin of error is how far apart they are",
            });
        }
        for clients in &self.clients {
            if !(1..=4_096).contains(clients) {
                return Err(LabError::BadNumber {
                    what: "a number of clients",
                    value: clients.to_string(),
                    must: "from 1 to 4096",
                });
            }
        }
        for setting in &self.settings {
            let name = setting.split('=').next().unwrap_or_default();
            if Mechanisms::switch(name).is_ok() {
                return Err(LabError::Setting {
                    message: format!(
                        "{name} is a switch, which is what is advised on: ask with --switch {name}"
                    ),
                });
            }
            WORKLOADS[0].experiment(std::slice::from_ref(setting))?;
        }
        Ok(())
    }

    /// The workloads that the switch is run on.
    fn workloads_asked(&self, switch: &str) -> Vec<&'static str> {
        let asked = |name: &&str| self.workloads.is_empty() || self.workloads.iter().any(|it| it == name);
        let mut names: Vec<&str> = workloads_of(switch).iter().copied().filter(asked).collect();
        if self.quick {
            names.truncate(1);
        }
        names
    }

    fn run_of(&self, workload: &Workload) -> Result<Run> {
        Ok(Run {
            experiment: workload.experiment(&self.settings)?,
            clients: workload.clients(self.machine.cpus(), &self.clients, self.quick),
        })
    }

    /// The outcome of a switch that needs no run; `None`: its variants are to be run.
    fn known_of(&self, switch: &SwitchDescription) -> Option<Outcome> {
        if !simulated_switches().contains(&switch.name) {
            return Some(Outcome::NotSimulated);
        }
        let is_asked = self.switches.is_empty() || self.switches.iter().any(|name| name == switch.name);
        if !is_asked || self.workloads_asked(switch.name).is_empty() {
            return Some(Outcome::NotAsked);
        }
        let others = Mechanisms::CLEARWAY.list();
        let beside = switch.only_beside.filter(|beside| {
            !others
                .iter()
                .all(|(other, variant)| beside.admits(other, variant))
        });
        beside.map(|beside| Outcome::NotObeyed {
            beside: beside.switch,
        })
    }
}

/// Runs the variants of each switch and judges them.
///
/// # Errors
/// What [`AdviseOptions::check`] finds, and a simulation that comes to no end or measures nothing.
pub fn run_advise(options: &AdviseOptions) -> Result<Advice> {
    options.check()?;
    let runner = Runner {
        seeds: options.seeds,
        threads: options.threads,
        progress: options.progress,
    };
    let presets = Mechanisms::CLEARWAY.list();
    let preset_of = |name: &str| {
        presets
            .iter()
            .find(|(known, _)| *known == name)
            .map_or("", |(_, it)| it)
    };
    let candidates = candidates(options, preset_of)?;
    let (mut judged, simulations) = judge(options, &runner, &candidates)?;
    let mut switches: Vec<SwitchAdvice> = Vec::new();
    for switch in Mechanisms::SWITCHES {
        let outcome = options.known_of(switch).unwrap_or_else(|| {
            let (own, others) = judged.drain(..).partition(|(name, _)| *name == switch.name);
            judged = others;
            let own: Vec<(&str, Judged)> = own;
            let variants: Vec<Judged> = own.into_iter().map(|(_, judged)| judged).collect();
            Outcome::Judged {
                advised: None,
                shown: closest(&variants),
                variants,
                given_up: None,
                turns: Turns::default(),
            }
        });
        switches.push(SwitchAdvice {
            switch,
            preset: preset_of(switch.name),
            outcome,
        });
    }
    let mut advice = Advice {
        machine: options.machine.clone(),
        seeds: options.seeds,
        quick: options.quick,
        switches,
        together: None,
        simulations,
    };
    choose_stable(options, &runner, &mut advice)?;
    run_together(options, &runner, &mut advice)?;
    Ok(advice)
}

fn candidates(options: &AdviseOptions, preset_of: impl Fn(&str) -> &'static str) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    for switch in Mechanisms::SWITCHES {
        if options.known_of(switch).is_some() {
            continue;
        }
        for variant in switch
            .variants
            .iter()
            .filter(|it| it.name != preset_of(switch.name))
        {
            let mut mechanisms = Mechanisms::CLEARWAY;
            mechanisms.set_variant(switch.name, variant.name)?;
            candidates.push(Candidate {
                switch: switch.name,
                variant: variant.name,
                mechanisms,
            });
        }
    }
    Ok(candidates)
}

/// Every candidate with its cells, and how many simulations that took.
fn judge(
    options: &AdviseOptions,
    runner: &Runner,
    candidates: &[Candidate],
) -> Result<(Vec<(&'static str, Judged)>, usize)> {
    let mut tasks = Vec::new();
    // Which task is the preset's, and which candidate's each other one is.
    let mut compared: Vec<(usize, usize, usize)> = Vec::new();
    for workload in &WORKLOADS {
        let takes_part = |it: &&Candidate| options.workloads_asked(it.switch).contains(&workload.name);
        if !candidates.iter().any(|it| takes_part(&it)) {
            continue;
        }
        let run = options.run_of(workload)?;
        for clients in &run.clients {
            let task = |mechanisms| Task {
                machine: options.machine.clone(),
                experiment: run.experiment.clone(),
                clients: *clients,
                mechanisms,
            };
            let preset = tasks.len();
            tasks.push(task(Mechanisms::CLEARWAY));
            for (number, candidate) in candidates.iter().enumerate() {
                if takes_part(&candidate) {
                    compared.push((preset, tasks.len(), number));
                    tasks.push(task(candidate.mechanisms));
                }
            }
        }
    }
    let measured = runner.measure("each switch alone", &tasks, runner.seeds)?;
    let mut judged: Vec<(&'static str, Judged)> = candidates
        .iter()
        .map(|candidate| {
            let nothing = Judged {
                variant: candidate.variant.to_owned(),
                cells: Vec::new(),
            };
            (candidate.switch, nothing)
        })
        .collect();
    for (preset, variant, candidate) in compared {
        let cells = cells_of(&tasks[variant], &measured[preset], &measured[variant])?;
        judged[candidate].1.cells.extend(cells);
    }
    Ok((judged, runner.simulations(tasks.len())))
}

/// R5.
fn run_together(options: &AdviseOptions, runner: &Runner, advice: &mut Advice) -> Result<()> {
    loop {
        let advised: Vec<&SwitchAdvice> = advice
            .switches
            .iter()
            .filter(|it| it.advised().is_some())
            .collect();
        if advised.len() < 2 {
            advice.together = None;
            return Ok(());
        }
        let names: BTreeSet<&str> = advised
            .iter()
            .flat_map(|it| options.workloads_asked(it.switch.name))
            .collect();
        let mechanisms = advice.mechanisms()?;
        let mut tasks = Vec::new();
        for workload in WORKLOADS.iter().filter(|workload| names.contains(workload.name)) {
            let run = options.run_of(workload)?;
            for clients in &run.clients {
                for mechanisms in [Mechanisms::CLEARWAY, mechanisms] {
                    tasks.push(Task {
                        machine: options.machine.clone(),
                        experiment: run.experiment.clone(),
                        clients: *clients,
                        mechanisms,
                    });
                }
            }
        }
        let measured = runner.measure("all together", &tasks, runner.seeds)?;
        advice.simulations += runner.simulations(tasks.len());
        let mut together = Judged {
            variant: "together".to_owned(),
            cells: Vec::new(),
        };
        for (tasks, measured) in tasks.chunks(2).zip(measured.chunks(2)) {
            if let ([task, _], [preset, variant]) = (tasks, measured) {
                together.cells.extend(cells_of(task, preset, variant)?);
            }
        }
        let is_sound = !together.cells.iter().any(Cell::loses_too_much);
        advice.together = Some(together);
        if is_sound {
            return Ok(());
        }
        advice.give_up_weakest();
    }
}

/// R3 and R4.
fn choose_stable(options: &AdviseOptions, runner: &Runner, advice: &mut Advice) -> Result<()> {
    let mut experiments = Vec::new();
    for workload in &WORKLOADS {
        experiments.push(workload.experiment(&options.settings)?);
    }
    let experiment_of = |cell: &Cell| {
        let name = cell.workload.split(' ').next();
        experiments
            .iter()
            .find(|experiment| Some(experiment.name.as_str()) == name)
    };
    for it in &mut advice.switches {
        let Outcome::Judged {
            variants,
            advised,
            shown,
            given_up,
            turns,
        } = &mut it.outcome
        else {
            continue;
        };
        for number in allowed(variants) {
            let judged = &variants[number];
            let mut mechanisms = Mechanisms::CLEARWAY;
            mechanisms.set_variant(it.switch.name, &judged.variant)?;
            let deciding = sensitivity::deciding(judged, experiment_of);
            let what = format!("{} = {}, costs changed", it.switch.name, judged.variant);
            let pair = [Mechanisms::CLEARWAY, mechanisms];
            let (found, simulations) = sensitivity::turns(&what, runner, &options.machine, &deciding, pair)?;
            advice.simulations += simulations;
            let stable = is_stable(found.turned(), found.tried);
            // The first of those that are not stable is shown, unless a stable one follows.
            if stable || given_up.is_none() {
                *shown = Some(number);
                *turns = found;
                *given_up = (!stable).then_some(GivenUp::Unstable);
            }
            if stable {
                *advised = Some(number);
                break;
            }
        }
    }
    Ok(())
}
