//! The end of an answer: how far it is to be trusted, and which figures of the machine it hangs on.
//!
//! Nothing here is a judgement of its own. The text puts together
//!
//! 1. how many of the orders all seeds share;
//! 2. the measurements that the model was held against (`validation.toml`) of this machine and workload, or that there are
//!    none, and the experiment's own published points;
//! 3. which of the machine's figures are estimates, by their sources;
//! 4. the figures that the answer hangs on. With a sweep they are the numbers whose change moves the result; without one,
//!    the costs of the activities that take much of the CPUs' time, which is a guess, and is called one.

use std::collections::BTreeMap;
use std::fmt::Write;

use clearway_sim::{Activity, MachineModel};
use serde::Deserialize;

use crate::simulate::experiment::WorkloadKind;
use crate::simulate::run::{SimulationResult, Sweep};
use crate::simulate::spread::nearest_to_median;

/// A measurement that the model was held against.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Validation {
    machines: Vec<String>,
    /// By their names in an experiment; none: single cache lines.
    workloads: Vec<String>,
    /// The published or measured figures, and the model's distance from them.
    found: String,
    /// The page or table that has the figures.
    source: String,
}

#[derive(Deserialize)]
struct Validations {
    row: Vec<Validation>,
}

fn validations() -> Vec<Validation> {
    let parsed: Result<Validations, _> = toml::from_str(include_str!("../../validation.toml"));
    // A test parses it.
    parsed.map_or_else(|_| Vec::new(), |parsed| parsed.row)
}

/// The part of the CPUs' time that is not idle from which on the costs of an activity count as influential.
const INFLUENTIAL: f64 = 0.1;

/// The most numbers of a sweep that are named.
const NAMED_MAX: usize = 6;

/// The lines of the text.
pub(crate) fn text(result: &SimulationResult) -> String {
    let mut text = String::new();
    for line in [
        seeds(result),
        validated(result),
        published(result),
        Some(estimates(&result.machine)),
        Some(hangs_on(result)),
        Some("believe orders and ratios, not absolute throughput (docs/simulator.md)".to_owned()),
    ]
    .into_iter()
    .flatten()
    {
        let _ = writeln!(text, "  - {line}");
    }
    text
}

fn seeds(result: &SimulationResult) -> Option<String> {
    if result.experiment.variants.len() < 2 {
        return None;
    }
    if result.seeds.count() == 1 {
        return Some(
            "one seed: another one may turn an order; --seeds 1..3 shows how far seeds are apart".to_owned(),
        );
    }
    let disagree: Vec<String> = result
        .orders
        .iter()
        .filter(|order| order.groups.iter().any(|group| group.seeds_disagree))
        .map(|order| order.clients.to_string())
        .collect();
    Some(if disagree.is_empty() {
        format!("{} agree about every order", result.seeds)
    } else {
        format!(
            "{} disagree about variants with {} clients: more seeds, or a longer --set measure_ms, may tell",
            result.seeds,
            disagree.join(", ")
        )
    })
}

/// The measurements of this machine and workload; of this workload elsewhere; or that there are none.
fn validated(result: &SimulationResult) -> Option<String> {
    let workload = &*workload_name(result.experiment.workload);
    let rows = validations();
    let is_of_workload = |row: &&Validation| row.workloads.iter().any(|known| *known == workload);
    let is_of_machine = |row: &&Validation| row.machines.contains(&result.machine.name);
    let of_both = rows
        .iter()
        .filter(|row| is_of_workload(row) && is_of_machine(row));
    let of_lines = rows
        .iter()
        .filter(|row| row.workloads.is_empty() && is_of_machine(row));
    let here: Vec<String> = of_both.chain(of_lines).map(cited).collect();
    if !here.is_empty() {
        return Some(format!("held against measurements: {}", here.join("; ")));
    }
    let elsewhere: Vec<String> = rows
        .iter()
        .filter(is_of_workload)
        .map(|row| format!("on {}, {}", row.machines.join(", "), cited(row)))
        .collect();
    Some(if elsewhere.is_empty() {
        format!("no measurement of {workload} on any machine has been held against the model")
    } else {
        format!(
            "no measurement of {} has been held against the model; of {workload}: {}",
            result.machine.name,
            elsewhere.join("; ")
        )
    })
}

/// The name in an experiment's file.
fn workload_name(workload: WorkloadKind) -> String {
    let name = serde_json::to_value(workload).ok();
    let name = name.as_ref().and_then(|name| name.as_str());
    name.unwrap_or_default().to_owned()
}

fn cited(row: &Validation) -> String {
    format!("{} ({})", row.found, row.source)
}

/// The distance of this run from the experiment's published points.
fn published(result: &SimulationResult) -> Option<String> {
    let published = result.experiment.published.as_ref()?;
    let mut errors = Vec::new();
    for cell in result
        .cells
        .iter()
        .filter(|cell| cell.variant == published.variant)
    {
        let tps = published.tps(cell.clients).filter(|tps| *tps > 0.0);
        errors.extend(tps.map(|tps| (cell.tps.median / tps - 1.0) * 100.0));
    }
    let low = errors.iter().copied().reduce(f64::min)?;
    let high = errors.iter().copied().reduce(f64::max)?;
    Some(format!(
        "this run's {} is {low:+.0} to {high:+.0} % from the published curve ({} points)",
        published.variant,
        errors.len()
    ))
}

/// True if a figure's source calls it an estimate.
fn is_estimate(machine: &MachineModel, cost: &str) -> bool {
    let source = machine.sources.get(cost);
    source.is_some_and(|source| source.to_ascii_lowercase().contains("estimated"))
}

/// The costs of a machine that have a part in its simulation, with their values.
fn costs(machine: &MachineModel) -> BTreeMap<&'static str, f64> {
    let topology = &machine.topology;
    let is_used = |cost: &str| match cost {
        "coherence.smt" | "os.smt_speed" => topology.threads_per_core > 1,
        "coherence.cross" | "coherence.memory_remote" => topology.sockets > 1,
        "coherence.cross_two" => topology.hops.is_some(),
        _ => true,
    };
    let mut machine = machine.clone();
    let all = machine.costs_mut().into_iter();
    all.filter(|(name, value)| is_used(name) && **value != 0.0)
        .map(|(name, value)| (name, *value))
        .collect()
}

fn estimates(machine: &MachineModel) -> String {
    let costs = costs(machine);
    let estimated: Vec<&str> = costs
        .keys()
        .copied()
        .filter(|cost| is_estimate(machine, cost))
        .collect();
    let by_hand = costs.keys().filter(|cost| {
        let source = machine.sources.get(**cost);
        source.is_some_and(|source| source == "set by hand")
    });
    let by_hand = match by_hand.count() {
        0 => String::new(),
        count => format!(", {count} set by hand"),
    };
    match estimated.len() {
        0 => format!(
            "none of the {} costs of {} that it uses is an estimate{by_hand}",
            costs.len(),
            machine.name
        ),
        count => format!(
            "of the {} costs of {} that it uses {count} are estimates{by_hand}: {}",
            costs.len(),
            machine.name,
            estimated.join(", ")
        ),
    }
}

fn hangs_on(result: &SimulationResult) -> String {
    if result.sweep.is_empty() {
        by_activity(result)
    } else {
        by_sweep(result)
    }
}

/// The costs of the activities that take much of the time with the most clients.
fn by_activity(result: &SimulationResult) -> String {
    let variants = result.experiment.variants.len();
    let cells = result.cells.len().saturating_sub(variants)..result.cells.len();
    let points: Vec<_> = cells
        .filter_map(|cell| nearest_to_median(result.points_of(cell)))
        .collect();
    let share = |activity: Activity| {
        let of = |point: &&crate::simulate::Point| {
            let share = |name: &str| {
                let share = point.shares.iter().find(|share| share.activity == name);
                share.map_or(0.0, |share| share.share)
            };
            let other = share(Activity::Idle.name()) + share(Activity::OtherPrograms.name());
            share(activity.name()) / (1.0 - other).max(1e-9)
        };
        points.iter().map(of).fold(0.0, f64::max)
    };
    let costs = costs(&result.machine);
    let mut parts = Vec::new();
    for activity in Activity::ALL {
        let share = share(activity);
        let names = behind(activity).iter();
        let of_machine: Vec<String> = names
            .filter_map(|name| costs.get(name).map(|value| figure(&result.machine, name, *value)))
            .collect();
        if share >= INFLUENTIAL && !of_machine.is_empty() {
            parts.push(format!(
                "{} (up to {:.0} % of the busy time): {}",
                activity.name(),
                share * 100.0,
                of_machine.join(", ")
            ));
        }
    }
    if parts.is_empty() {
        return "hangs on none of the machine's costs much, as a guess: its CPUs do work or are idle; --sweep tells"
            .to_owned();
    }
    format!(
        "hangs, as a guess from where the time went, on {}; --sweep tells",
        parts.join("; ")
    )
}

fn figure(machine: &MachineModel, name: &str, value: f64) -> String {
    let estimated = if is_estimate(machine, name) {
        ", an estimate"
    } else {
        ""
    };
    format!("{name} = {value}{estimated}")
}

/// The costs that an activity's time is made of.
fn behind(activity: Activity) -> &'static [&'static str] {
    match activity {
        Activity::Latch => &["coherence.rmw_hit", "coherence.load_hit", "coherence.fence"],
        Activity::Stall => &[
            "coherence.smt",
            "coherence.cluster",
            "coherence.socket",
            "coherence.cross",
            "coherence.cross_two",
            "coherence.departure",
            "coherence.memory",
        ],
        Activity::Spin => &["coherence.pause"],
        Activity::Syscall => &["os.syscall", "os.futex", "os.wake"],
        Activity::Switch => &["os.switch"],
        Activity::Work | Activity::Client | Activity::Idle | Activity::OtherPrograms => &[],
    }
}

/// The ratio of the last variant to the first, or the only one's throughput.
fn swept(tps: &[f64]) -> Option<f64> {
    match tps {
        [only] => Some(*only),
        [first, .., last] if *first > 0.0 => Some(last / first),
        _ => None,
    }
}

/// The numbers of the sweep that turn the best variant, and those that move the result most.
fn by_sweep(result: &SimulationResult) -> String {
    let clients = result.experiment.clients.iter().copied().max().unwrap_or(1);
    let order = result.orders.iter().find(|order| order.clients == clients);
    let best = order.and_then(|order| order.best());
    let turned: Vec<String> = result
        .sweep
        .iter()
        .filter(|sweep| best.is_some() && sweep.best.as_deref() != best)
        .map(|sweep| format!("{} × {}", sweep.number, sweep.factor))
        .collect();
    let mut text = match best {
        Some(best) if turned.is_empty() => {
            format!(
                "{best} stays the best in all {} changes of the sweep",
                result.sweep.len()
            )
        }
        Some(best) => format!(
            "{best} is the best no more in {} of {} changes of the sweep: {}",
            turned.len(),
            result.sweep.len(),
            turned.join(", ")
        ),
        None => format!("no variant is the best with {clients} clients"),
    };
    let mut ends: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for Sweep { number, tps, .. } in &result.sweep {
        ends.entry(number).or_default().extend(swept(tps));
    }
    let mut moved: Vec<(&str, f64, f64)> = ends
        .into_iter()
        .filter_map(|(number, ends)| {
            let low = ends.iter().copied().reduce(f64::min)?;
            Some((number, low, ends.iter().copied().reduce(f64::max)?))
        })
        .collect();
    moved.sort_by(|one, other| (other.2 / other.1).total_cmp(&(one.2 / one.1)));
    let what = if result.experiment.variants.len() > 1 {
        "the last to the first"
    } else {
        "throughput"
    };
    let moved: Vec<String> = moved
        .iter()
        .take(NAMED_MAX)
        .map(|(number, low, high)| {
            let estimated = if is_estimate(&result.machine, number) {
                ", an estimate"
            } else {
                ""
            };
            format!("{number} ({low:.2} to {high:.2}{estimated})")
        })
        .collect();
    let _ = write!(text, "; {what} hangs most on {}", moved.join(", "));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of a sentence: words that are numbers, without the punctuation around them.
    fn numbers(text: &str) -> Vec<String> {
        let words = text.split_whitespace();
        let trimmed =
            words.map(|word| word.trim_matches(|c: char| !(c.is_ascii_digit() || "+-".contains(c))));
        trimmed
            .filter(|word| word.parse::<f64>().is_ok())
            .map(str::to_owned)
            .collect()
    }

    /// A figure that its source has no more must not be printed under an answer.
    #[test]
    fn every_figure_of_a_validation_stands_in_its_source() {
        let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let rows = validations();
        assert!(rows.len() >= 6);
        for row in rows {
            let source = std::fs::read_to_string(repository.join(&row.source)).unwrap();
            let known = numbers(&source.replace(['"', ';', ','], " "));
            let found = numbers(&row.found);
            assert!(!found.is_empty(), "{}", row.found);
            for number in found {
                assert!(
                    known.contains(&number),
                    "{number} is not in {}: {}",
                    row.source,
                    row.found
                );
            }
            for machine in row.machines {
                MachineModel::load(&machine).unwrap();
            }
            for workload in row.workloads {
                let quoted = format!("\"{workload}\"");
                serde_json::from_str::<WorkloadKind>(&quoted).unwrap();
            }
        }
    }

    #[test]
    fn only_costs_that_the_machine_has_are_named() {
        let laptop = MachineModel::load("laptop").unwrap();
        assert!(!costs(&laptop).contains_key("coherence.cross"));
        let four_sockets = MachineModel::load("haswell-ex-4s").unwrap();
        let said = estimates(&four_sockets);
        assert!(
            said.contains("coherence.cross") && !said.contains("coherence.rmw_hit"),
            "{said}"
        );
        for activity in Activity::ALL {
            for name in behind(activity) {
                assert!(
                    four_sockets
                        .clone()
                        .costs_mut()
                        .iter()
                        .any(|(known, _)| known == name),
                    "{name}"
                );
            }
        }
    }
}
