//! The result of a bench, in the form in which it is written to `result.json`.

use std::borrow::Cow;
use std::path::Path;

use clearway_engine::Config;
use serde::{Deserialize, Serialize};

use crate::costs::CommitCosts;
use crate::error::{LabError, Result};
use crate::other_programs::OtherPrograms;
use crate::stats;
use crate::workload::pgbench::{Acknowledged, Balances};
use crate::workload::tpcc;

/// Goes up when a field changes its meaning or goes away.
pub const FORMAT: u32 = 1;

/// A whole bench.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BenchResult {
    /// [`FORMAT`].
    pub format: u32,
    /// The provenance.
    pub provenance: Provenance,
    /// The parameters that were asked for.
    pub parameters: Parameters,
    /// The switch whose variants were compared; `None` where presets were.
    pub varied: Option<VariedSwitch>,
    /// The variants that were compared, A first.
    pub variants: Vec<VariantInfo>,
    /// One per workload × clients × variant.
    pub cells: Vec<Cell>,
    /// The sums after the run, one per variant.
    pub balances: Vec<BalanceCheck>,
    /// That TPC-C's tables are consistent, one per variant; none without the workload `tpcc`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consistency: Vec<ConsistencyCheck>,
}

/// A switch all of whose variants were compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariedSwitch {
    /// Its name in a configuration.
    pub name: Cow<'static, str>,
    /// The decision of the switch.
    pub about: Cow<'static, str>,
}

/// The provenance of a result: enough to run it again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Provenance {
    /// The commit the binary was built from.
    pub commit: String,
    /// `release` or `debug`.
    pub build: String,
    /// A hash of the parameters and configurations.
    pub config_hash: String,
    /// The start, UTC.
    pub date: String,
    /// The command line.
    pub command: String,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Rounds, that is samples behind each median.
    pub samples_per_cell: usize,
    /// On what.
    pub machine: Machine,
    /// Part of the CPUs' time that programs beside the bench used, without [those of its own](Parameters::beside), 0 to
    /// 1; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_share: Option<f64>,
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// As the kernel names it.
    pub cpu_model: String,
    /// The CPU family's number: virtual machines often hide the model.
    pub cpu_family: String,
    /// CPUs this process may use.
    pub cpus: usize,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// The kernel's release.
    pub kernel: String,
}

/// The parameters that were asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parameters {
    /// pgbench's scale.
    pub scale: u32,
    /// TPC-C's warehouses; none without the workload `tpcc`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warehouses: Option<u32>,
    /// Client counts.
    pub clients: Vec<usize>,
    /// Workloads by name.
    pub workloads: Vec<String>,
    /// Measured seconds per point.
    pub duration_s: f64,
    /// Seconds before that.
    pub warm_up_s: f64,
    /// Rounds.
    pub rounds: usize,
    /// True if commits waited for the disk.
    pub synchronous_commit: bool,
    /// The programs that ran beside.
    #[serde(default, skip_serializing_if = "OtherPrograms::is_none")]
    pub beside: OtherPrograms,
}

/// One of the variants compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VariantInfo {
    /// Its name in tables.
    pub name: String,
    /// The way it works, in a sentence or two, if it is the variant of one switch.
    pub text: Option<Cow<'static, str>>,
    /// The engine's whole configuration, mechanisms included.
    pub config: Config,
}

/// A share of the clients' time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitShare {
    /// `class:name`, or `running`.
    pub event: String,
    /// 0 to 1.
    pub share: f64,
}

/// One kind of transaction of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KindCell {
    /// Its name.
    pub kind: String,
    /// Committed a minute, the median over the rounds; of TPC-C's new-order this is NOPM.
    pub per_minute: f64,
    /// Median latency, microseconds, over all rounds.
    pub p50_us: f64,
    /// Its 99th percentile.
    pub p99_us: f64,
    /// Transactions measured, with those that were rolled back as their input wants.
    pub transactions: u64,
}

/// One workload × clients × variant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    /// The workload's name; with that of the mix if others ran beside it.
    pub workload: String,
    /// Number of clients, those of workloads beside it included.
    pub clients: usize,
    /// The variant's name.
    pub variant: String,
    /// Median transactions a second.
    pub tps: f64,
    /// Half the range over the rounds, as a share of the median.
    pub tps_spread: f64,
    /// Transactions a second of each round.
    pub tps_rounds: Vec<f64>,
    /// Median of the ratios to A in the same round; `None` for A itself.
    pub ratio: Option<f64>,
    /// The quartiles of these ratios; of fewer than five the least and the greatest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_bounds: Option<[f64; 2]>,
    /// Half the range of these ratios, as a share of their median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_spread: Option<f64>,
    /// Median latency of a transaction, microseconds, over all rounds.
    pub p50_us: f64,
    /// Its 99th percentile.
    pub p99_us: f64,
    /// Transactions measured.
    pub transactions: u64,
    /// By kind of transaction, where the workload has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<KindCell>,
    /// The cost of each of them, over all rounds; in a mix, an average of all its transactions.
    pub per_commit: CommitCosts,
    /// Transactions rolled back for another's sake and run again.
    pub retries: u64,
    /// Shares of the clients' time by wait, the largest first; in a mix, of the time of all its clients.
    pub waits: Vec<WaitShare>,
}

/// The sums of one variant's database after the run; a bench with a fault in them gives an error instead of a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BalanceCheck {
    /// The variant's name.
    pub variant: String,
    /// Sum over all accounts.
    pub accounts: i64,
    /// Sum over all tellers.
    pub tellers: i64,
    /// Sum over all branches.
    pub branches: i64,
    /// Sum over the history.
    pub history: i64,
    /// Writing transactions that were acknowledged to a client during the run.
    pub acknowledged_writes: i64,
}

impl BalanceCheck {
    pub(crate) fn new(variant: &str, sums: &Balances, acknowledged: &Acknowledged) -> BalanceCheck {
        BalanceCheck {
            variant: variant.to_owned(),
            accounts: sums.accounts,
            tellers: sums.tellers,
            branches: sums.branches,
            history: sums.history,
            acknowledged_writes: acknowledged.writes,
        }
    }
}

/// That TPC-C's consistency conditions hold in one variant's database after the run; a bench with a violation gives an
/// error instead of a result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ConsistencyCheck {
    /// The variant's name.
    pub variant: String,
    /// Orders that were acknowledged to a client during the run.
    pub new_orders: i64,
    /// Payments.
    pub payments: i64,
    /// Orders delivered.
    pub delivered: i64,
}

impl ConsistencyCheck {
    pub(crate) fn new(variant: &str, acknowledged: &tpcc::Acknowledged) -> ConsistencyCheck {
        ConsistencyCheck {
            variant: variant.to_owned(),
            new_orders: acknowledged.new_orders,
            payments: acknowledged.payments,
            delivered: acknowledged.delivered,
        }
    }
}

impl BenchResult {
    /// The cell of this workload, client count and variant.
    pub fn cell(&self, workload: &str, clients: usize, variant: &str) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.workload == workload && cell.clients == clients && cell.variant == variant)
    }

    /// Fills in every cell's ratio to the first variant.
    pub(crate) fn compare(&mut self) {
        let Some(base) = self.variants.first().map(|variant| variant.name.clone()) else {
            return;
        };
        let ratios: Vec<_> = self
            .cells
            .iter()
            .map(|cell| {
                if cell.variant == base {
                    return None;
                }
                let base = &self.cell(&cell.workload, cell.clients, &base)?.tps_rounds;
                let rounds = &cell.tps_rounds;
                let bounds = stats::paired_bounds(base, rounds)?;
                Some((
                    stats::paired_ratio(base, rounds)?,
                    (bounds, stats::paired_spread(base, rounds)?),
                ))
            })
            .collect();
        for (cell, ratio) in self.cells.iter_mut().zip(ratios) {
            let (ratio, bounds_and_spread) = ratio.unzip();
            cell.ratio = ratio;
            (cell.ratio_bounds, cell.ratio_spread) = bounds_and_spread.unzip();
        }
    }
}

impl Cell {
    /// True if the [bounds](Cell::ratio_bounds) of the ratio hold 1: the rounds do not say which of the two is faster.
    pub fn is_level(&self) -> bool {
        self.ratio_bounds
            .is_some_and(|[low, high]| (low..=high).contains(&1.0))
    }

    /// True if the ratio lies within its own spread and the rounds are far apart: it says nothing, though their middle half
    /// may be on one side of 1.
    pub fn is_unsteady(&self) -> bool {
        let both = self.ratio.zip(self.ratio_spread);
        both.is_some_and(|(ratio, spread)| stats::is_unsteady(ratio, spread))
    }
}

/// A result as JSON for people and programs.
pub(crate) fn json(result: &impl Serialize) -> String {
    let mut json = serde_json::to_string_pretty(result).unwrap_or_default();
    json.push('\n');
    json
}

/// Writes files into `directory`, which is created if need be.
pub(crate) fn write_files(directory: &Path, files: &[(&str, String)]) -> Result<()> {
    std::fs::create_dir_all(directory).map_err(LabError::io("creating", directory))?;
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(LabError::io("writing", &path))?;
    }
    Ok(())
}

impl std::fmt::Display for Provenance {
    /// One line below a table.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} on {} CPUs; commit {}; configuration {}; seed {}; {}",
            self.machine.cpu_model, self.machine.cpus, self.commit, self.config_hash, self.seed, self.date
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A small result to format.
    pub(crate) fn example() -> BenchResult {
        let variant = |name: &str| VariantInfo {
            name: name.to_owned(),
            text: None,
            config: Config::default(),
        };
        let cell = |workload: &str, clients: usize, variant: &str, tps: f64| Cell {
            workload: workload.to_owned(),
            clients,
            variant: variant.to_owned(),
            tps,
            tps_spread: 0.02,
            tps_rounds: vec![tps * 0.98, tps, tps * 1.02],
            ratio: None,
            ratio_bounds: None,
            ratio_spread: None,
            p50_us: clients as f64 / tps * 1e6,
            p99_us: clients as f64 / tps * 4e6,
            transactions: tps as u64,
            kinds: Vec::new(),
            per_commit: CommitCosts {
                syncs: 0.25,
                wake_ups: 1.5,
                wake_up_calls: 1.75,
                voluntary_switches: 2.0,
                involuntary_switches: 0.125,
                cpu_us: 40.0,
            },
            retries: 0,
            waits: vec![
                WaitShare {
                    event: "running".to_owned(),
                    share: 0.4,
                },
                WaitShare {
                    event: "IO:WALSync".to_owned(),
                    share: 0.35,
                },
                WaitShare {
                    event: "LWLock:WALWrite".to_owned(),
                    share: 0.25,
                },
            ],
        };
        let mut cells = Vec::new();
        for (workload, tps) in [("select-only", 500_000.0), ("tpcb-like", 6_000.0)] {
            for clients in [1, 2, 4, 8, 16] {
                cells.push(cell(workload, clients, "classic", tps * (clients as f64).sqrt()));
                cells.push(cell(
                    workload,
                    clients,
                    "clearway",
                    tps * (clients as f64).sqrt() * 1.1,
                ));
            }
        }
        let mut result = BenchResult {
            format: FORMAT,
            provenance: Provenance::now("clearway bench <test>".to_owned(), 1, 3, &()),
            parameters: Parameters {
                scale: 1,
                warehouses: None,
                clients: vec![1, 2, 4, 8, 16],
                workloads: vec!["select-only".to_owned(), "tpcb-like".to_owned()],
                duration_s: 1.0,
                warm_up_s: 0.1,
                rounds: 3,
                synchronous_commit: true,
                beside: OtherPrograms::default(),
            },
            varied: None,
            variants: vec![variant("classic"), variant("clearway")],
            cells,
            balances: Vec::new(),
            consistency: Vec::new(),
        };
        result.compare();
        result
    }

    #[test]
    fn ratios_are_to_the_first_variant() {
        let result = example();
        let ratio = |variant| result.cell("tpcb-like", 4, variant).unwrap().ratio;
        assert_eq!(ratio("classic"), None);
        assert!((ratio("clearway").unwrap() - 1.1).abs() < 1e-9);
    }

    #[test]
    fn a_ratio_is_level_if_its_bounds_hold_one() {
        let cell = |rounds: &[f64]| {
            let mut result = example();
            result.cells.truncate(2);
            result.cells[0].tps_rounds = vec![100.0; rounds.len()];
            result.cells[1].tps_rounds = rounds.to_vec();
            result.compare();
            result.cells.remove(1)
        };
        let level = cell(&[99.0, 103.0, 104.0]);
        assert_eq!(
            (level.ratio, level.ratio_bounds),
            (Some(1.03), Some([0.99, 1.04]))
        );
        assert!(level.is_level() && cell(&[101.0, 100.0]).is_level());
        assert!(!cell(&[101.0, 103.0, 104.0]).is_level() && !cell(&[98.0, 99.0]).is_level());
        // One round of five on the other side is not a quarter of them.
        assert!(!cell(&[90.0, 102.0, 103.0, 104.0, 105.0]).is_level());
        assert!(cell(&[90.0, 91.0, 103.0, 104.0, 105.0]).is_level());
        assert!(!example().cells[0].is_level());
        // Rounds of a host that others use: a median of 0.49 that no reader should see as one.
        let noise = cell(&[12.0, 45.0, 49.0, 80.0, 320.0]);
        assert!(
            noise.is_unsteady() && !noise.is_level(),
            "{:?}",
            noise.ratio_bounds
        );
        assert!(!cell(&[90.0, 102.0, 103.0, 104.0, 105.0]).is_unsteady());
        // Far from 1, a wide spread leaves the answer as it is.
        assert!(!cell(&[400.0, 1_000.0, 1_500.0]).is_unsteady());
    }
}
