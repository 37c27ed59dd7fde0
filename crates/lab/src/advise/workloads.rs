//! The workloads that a switch has a part in, with the numbers of built-in experiments.

use crate::error::{LabError, Result};
use crate::simulate::{Experiment, WorkloadKind};

/// A workload, as one of the built-in experiments has it.
pub(super) struct Workload {
    pub(super) name: &'static str,
    /// The experiment whose times, devices and parameters it has.
    experiment: &'static str,
    /// The settings in which it differs from that experiment.
    settings: &'static [&'static str],
}

/// The preset's `log_flush = polling` tries its ways to wait in the first 300 ms; before, it is another mechanism.
const SETTLED: &str = "warm_up_ms=400";

pub(super) const WORKLOADS: [Workload; 9] = [
    Workload {
        name: "point-select",
        experiment: "point-select",
        settings: &[],
    },
    Workload {
        name: "mixed",
        experiment: "snapshots",
        settings: &[SETTLED],
    },
    Workload {
        name: "simple-update",
        experiment: "numa-simple-update",
        settings: &[SETTLED, "measure_ms=60", "commit_delay_us=0"],
    },
    // Commits that do not wait for the disk: the log's memory is what sessions meet at.
    Workload {
        name: "simple-update-async",
        experiment: "log-insert",
        settings: &[],
    },
    Workload {
        name: "tpcb-like",
        experiment: "numa-tpcb",
        settings: &[SETTLED, "measure_ms=60", "commit_delay_us=0"],
    },
    Workload {
        name: "read-not-in-buffers",
        experiment: "read-not-in-buffers",
        settings: &[],
    },
    // A tenth of the experiment's range, and as many sessions of the primary as the engine has by default, twice: the
    // arrays for more take longer to make than to measure.
    Workload {
        name: "standby-long-transaction",
        experiment: "standby-long-transaction",
        settings: &["range_xids=100000", "primary_sessions=1000"],
    },
    Workload {
        name: "standby-replay",
        experiment: "standby-replay",
        settings: &["measure_ms=40"],
    },
    Workload {
        name: "hot-parent",
        experiment: "hot-parent",
        settings: &[SETTLED, "measure_ms=60"],
    },
];

/// Each switch with the workloads whose shared memory it decides about, the most telling one first.
const PARTS: [(&str, &[&str]); 21] = [
    ("lwlock", &["tpcb-like", "mixed"]),
    ("lwlock_shared", &["mixed", "tpcb-like"]),
    ("lwlock_fairness", &["mixed", "tpcb-like"]),
    ("proc_array_latch", &["mixed", "tpcb-like"]),
    ("page_latch", &["tpcb-like", "read-not-in-buffers"]),
    ("page_read", &["point-select", "tpcb-like"]),
    (
        "buffer_map",
        &["point-select", "read-not-in-buffers", "tpcb-like"],
    ),
    ("buffer_clock", &["read-not-in-buffers"]),
    ("snapshot", &["mixed", "point-select", "tpcb-like"]),
    ("known_xids", &["standby-long-transaction", "standby-replay"]),
    ("known_xids_compaction", &["standby-long-transaction"]),
    ("replay", &["standby-replay"]),
    ("proc_clear", &["simple-update", "mixed"]),
    ("commit_log", &["simple-update-async", "tpcb-like"]),
    ("log_reserve", &["simple-update-async", "simple-update"]),
    ("log_insert", &["simple-update-async", "simple-update"]),
    ("log_flush", &["simple-update", "tpcb-like", "mixed"]),
    ("log_wake", &["simple-update", "tpcb-like"]),
    ("lock_release", &["tpcb-like", "mixed"]),
    ("commit_order", &["simple-update", "tpcb-like"]),
    ("row_locks", &["hot-parent"]),
];

/// Names of the workloads that the switch has a part in, the most telling first; empty for one that is not simulated.
pub fn workloads_of(switch: &str) -> &'static [&'static str] {
    let part = PARTS.iter().find(|(known, _)| *known == switch);
    part.map_or(&[], |(_, workloads)| workloads)
}

impl Workload {
    /// The workload of this name.
    pub(super) fn named(name: &str) -> Result<&'static Self> {
        let known = WORKLOADS.iter().find(|workload| workload.name == name);
        known.ok_or_else(|| LabError::UnknownName {
            what: "workload",
            name: name.to_owned(),
            available: WORKLOADS.map(|workload| workload.name).join(", "),
        })
    }

    /// Its experiment, with these settings, and without variants.
    pub(super) fn experiment(&self, settings: &[String]) -> Result<Experiment> {
        let mut experiment = Experiment::load(self.experiment)?;
        experiment.variants.clear();
        let own = self.settings.iter().copied();
        for setting in own.chain(settings.iter().map(String::as_str)) {
            experiment.set(setting)?;
        }
        self.name.clone_into(&mut experiment.name);
        Ok(experiment)
    }

    /// Numbers of clients that it is run with on a machine of `cpus` CPUs; `asked` if it is not empty.
    ///
    /// A client of standby-replay is a worker that changes pages. One more reads the log, so there are never as many as
    /// CPUs; a configuration has 64 at most, and few are what an experiment has found to be of use.
    pub(super) fn clients(&self, cpus: usize, asked: &[usize], quick: bool) -> Vec<usize> {
        let workers: &[usize] = if quick { &[1, 4] } else { &[1, 2, 4, 8] };
        let mut clients = if self.experiment == "standby-replay" {
            let fit = |workers: &&usize| **workers == 1 || **workers < cpus;
            workers.iter().filter(fit).copied().collect()
        } else if !asked.is_empty() {
            asked.to_vec()
        } else if quick {
            vec![1, cpus]
        } else {
            vec![1, cpus, 2 * cpus]
        };
        clients.sort_unstable();
        clients.dedup();
        clients
    }
}

/// True if a workload has replay beside its readers.
pub(super) fn has_replay_beside(experiment: &Experiment) -> bool {
    experiment.workload == WorkloadKind::StandbyLongTransaction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::simulated_switches;

    #[test]
    fn every_simulated_switch_has_a_workload_and_no_other_has() {
        let known: Vec<&str> = PARTS.iter().map(|(switch, _)| *switch).collect();
        assert_eq!(known, simulated_switches());
        for (switch, workloads) in PARTS {
            assert!(!workloads.is_empty(), "{switch}");
            for name in workloads {
                assert_eq!(
                    Workload::named(name).unwrap().experiment(&[]).unwrap().name,
                    *name
                );
            }
        }
        assert!(workloads_of("relation_locks").is_empty());
    }

    #[test]
    fn clients_follow_the_machine() {
        let select = Workload::named("point-select").unwrap();
        assert_eq!(select.clients(16, &[], false), [1, 16, 32]);
        assert_eq!(select.clients(1, &[], false), [1, 2]);
        assert_eq!(select.clients(16, &[], true), [1, 16]);
        assert_eq!(select.clients(16, &[9, 3, 9], false), [3, 9]);
        let replay = Workload::named("standby-replay").unwrap();
        assert_eq!(replay.clients(8, &[100], false), [1, 2, 4]);
        assert_eq!(replay.clients(1, &[], false), [1]);
    }
}
