//! Benches of different points become one bench.
//!
//! # Rules
//! 1. They are of one commit, build, machine and seed, and were asked for the same scale, warehouses, times, rounds,
//!    programs beside them and waiting for the disk. A variant's name means the same configuration in all of them.
//!    Otherwise their points are not of one bench.
//! 2. No point is in two of them: percentiles of two runs do not add up to those of one. Measure for more rounds instead.
//! 3. A ratio stays as it was measured, to the first variant in the same rounds. It is not computed across runs: those
//!    were not interleaved.

use std::path::{Path, PathBuf};

use crate::error::{LabError, Result};
use crate::result::BenchResult;

pub(super) fn merge(results: Vec<(PathBuf, BenchResult)>) -> Result<BenchResult> {
    let mut results = results.into_iter();
    let Some((first, mut whole)) = results.next() else {
        return Err(LabError::NothingToReport);
    };
    for (directory, result) in results {
        add(&mut whole, &directory, result, &first)?;
    }
    let place = |all: &[String], name: &str| all.iter().position(|other| other == name);
    let workloads = whole.parameters.workloads.clone();
    let names: Vec<String> = whole
        .variants
        .iter()
        .map(|variant| variant.name.clone())
        .collect();
    whole.parameters.clients.sort_unstable();
    // As one bench lists them.
    whole.cells.sort_by_key(|cell| {
        (
            place(&workloads, &cell.workload),
            cell.clients,
            place(&names, &cell.variant),
        )
    });
    Ok(whole)
}

fn add(whole: &mut BenchResult, directory: &Path, result: BenchResult, first: &Path) -> Result<()> {
    let refuse = |why: String| {
        Err(LabError::NotOneResult {
            directory: directory.to_owned(),
            why,
        })
    };
    let (ours, theirs) = (&whole.parameters, &result.parameters);
    let (from, also_from) = (&whole.provenance, &result.provenance);
    let differs = [
        ("format", whole.format != result.format),
        ("commit", from.commit != also_from.commit),
        ("build", from.build != also_from.build),
        ("machine", from.machine != also_from.machine),
        ("seed", from.seed != also_from.seed),
        ("scale", ours.scale != theirs.scale),
        (
            "number of warehouses",
            ours.warehouses.is_some() && theirs.warehouses.is_some() && ours.warehouses != theirs.warehouses,
        ),
        ("duration", ours.duration_s != theirs.duration_s),
        ("warm-up", ours.warm_up_s != theirs.warm_up_s),
        ("number of rounds", ours.rounds != theirs.rounds),
        (
            "synchronous commit",
            ours.synchronous_commit != theirs.synchronous_commit,
        ),
        ("list of programs beside", ours.beside != theirs.beside),
        ("varied switch", whole.varied != result.varied),
    ];
    if let Some((what, _)) = differs.iter().find(|(_, differs)| *differs) {
        return refuse(format!("its {what} is not that of {}", first.display()));
    }
    for variant in &result.variants {
        match whole.variants.iter().find(|other| other.name == variant.name) {
            Some(other) if other != variant => {
                return refuse(format!(
                    "its variant {} has another configuration than in {}",
                    variant.name,
                    first.display()
                ));
            }
            Some(_) => {}
            None => whole.variants.push(variant.clone()),
        }
    }
    for cell in result.cells {
        if whole.cell(&cell.workload, cell.clients, &cell.variant).is_some() {
            return refuse(format!(
                "{} with {} clients under {} is in a directory before it too; percentiles of two runs do not add up: \
                 measure for more rounds, or set the two side by side with --compare",
                cell.workload, cell.clients, cell.variant
            ));
        }
        whole.cells.push(cell);
    }
    extend(&mut whole.parameters.workloads, result.parameters.workloads);
    extend(&mut whole.parameters.clients, result.parameters.clients);
    whole.parameters.warehouses = whole.parameters.warehouses.or(result.parameters.warehouses);
    whole.balances.extend(result.balances);
    whole.consistency.extend(result.consistency);
    let shares = [from.others_share, also_from.others_share].into_iter().flatten();
    whole.provenance.others_share = shares.reduce(f64::max);
    whole.provenance.command = format!("{}; {}", whole.provenance.command, result.provenance.command);
    Ok(())
}

/// Appends what is not there yet.
fn extend<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Parameters;
    use crate::result::tests::example;

    fn of_clients(clients: &[usize]) -> BenchResult {
        let mut result = example();
        result.parameters.clients = clients.to_vec();
        result.cells.retain(|cell| clients.contains(&cell.clients));
        result
    }

    fn with_warehouses(warehouses: u32) -> Parameters {
        Parameters {
            warehouses: Some(warehouses),
            ..example().parameters
        }
    }

    fn merged(results: Vec<BenchResult>) -> Result<BenchResult> {
        let named = results.into_iter().enumerate();
        merge(
            named
                .map(|(number, result)| (PathBuf::from(format!("run-{number}")), result))
                .collect(),
        )
    }

    #[test]
    fn benches_of_different_points_become_one() {
        let whole = merged(vec![of_clients(&[4, 16]), of_clients(&[1]), of_clients(&[2, 8])]).unwrap();
        let one = example();
        assert_eq!(whole.parameters.clients, one.parameters.clients);
        assert_eq!(whole.cells.len(), one.cells.len());
        for (cell, of_one) in whole.cells.iter().zip(&one.cells) {
            assert_eq!(
                (&cell.workload, cell.clients, &cell.variant, cell.ratio),
                (&of_one.workload, of_one.clients, &of_one.variant, of_one.ratio)
            );
        }
        assert_eq!(whole.provenance.command.matches("clearway bench").count(), 3);
        // A host was as busy as in the busiest of its runs.
        let with_others = |others_share| {
            let mut result = of_clients(&[if others_share == Some(0.4) { 1 } else { 2 }]);
            result.provenance.others_share = others_share;
            result
        };
        let share = |other| {
            merged(vec![with_others(other), with_others(Some(0.4))])
                .unwrap()
                .provenance
                .others_share
        };
        assert_eq!((share(Some(0.1)), share(None)), (Some(0.4), Some(0.4)));
    }

    #[test]
    fn what_is_not_of_one_bench_is_refused_with_its_directory() {
        let refused = |change: fn(&mut BenchResult)| {
            let mut other = of_clients(&[2]);
            change(&mut other);
            merged(vec![of_clients(&[1]), other]).unwrap_err().to_string()
        };
        let scale = refused(|other| other.parameters.scale = 10);
        assert_eq!(scale, "run-1: its scale is not that of run-0");
        let warehouses = merged(vec![
            BenchResult {
                parameters: with_warehouses(2),
                ..of_clients(&[1])
            },
            BenchResult {
                parameters: with_warehouses(3),
                ..of_clients(&[2])
            },
        ]);
        assert_eq!(
            warehouses.unwrap_err().to_string(),
            "run-1: its number of warehouses is not that of run-0"
        );
        assert!(refused(|other| other.provenance.commit += "1").contains("its commit"));
        assert!(
            refused(|other| other.parameters.beside.busy_loops = 2).contains("its list of programs beside")
        );
        assert!(refused(|other| other.provenance.machine.cpus += 1).contains("its machine"));
        assert!(
            refused(|other| other.variants[1].config.autovacuum ^= true).contains("another configuration")
        );
        let twice = refused(|other| *other = of_clients(&[1]));
        assert!(
            twice.starts_with("run-1: select-only with 1 clients under classic"),
            "{twice}"
        );
    }
}
