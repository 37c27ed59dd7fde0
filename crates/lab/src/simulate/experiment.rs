//! Experiment files.

use std::collections::BTreeMap;

use clearway_engine::{MechanismError, Mechanisms};
use clearway_machine::Switch;
use clearway_sim::Latency;
use clearway_txn::RelationLocksVariant;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{LabError, Result};
use crate::latches::catalogue::LatchFamily;
use crate::latches::simulated::SpinKind;

/// Name and text of each built-in experiment.
pub const EXPERIMENTS: [(&str, &str); 5] = [
    (
        "numa-simple-update",
        include_str!("../../experiments/numa-simple-update.toml"),
    ),
    ("numa-tpcb", include_str!("../../experiments/numa-tpcb.toml")),
    ("latch-mix", include_str!("../../experiments/latch-mix.toml")),
    (
        "innodb-update-index",
        include_str!("../../experiments/innodb-update-index.toml"),
    ),
    ("one-client", include_str!("../../experiments/one-client.toml")),
];

/// What an experiment file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// What it is called.
    pub name: String,
    /// One line for a list.
    pub description: String,
    /// A machine's name or the path of its description.
    pub machine: String,
    /// Further machines on which `clearway simulate` runs it unless told one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_on: Vec<String>,
    /// What each client does.
    pub workload: WorkloadKind,
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// Simulated time before measuring, ms.
    pub warm_up_ms: u64,
    /// Simulated time measured, ms.
    pub measure_ms: u64,
    /// What is compared.
    pub variants: Vec<Variant>,
    /// The workload's numbers.
    #[serde(default)]
    pub parameters: Parameters,
    /// The log's device.
    #[serde(default)]
    pub devices: Devices,
    /// What was measured elsewhere.
    #[serde(default)]
    pub published: Option<Published>,
}

/// What each client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// pgbench --skip-some-updates.
    SimpleUpdate,
    /// pgbench's default.
    TpcbLike,
    /// One latch.
    LatchMix,
}

/// One of what is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name in the table.
    pub name: String,
    /// Which latch a latch-mix has.
    #[serde(default)]
    pub latch: LatchFamily,
    /// What its waiters do before they sleep.
    #[serde(default)]
    pub spin: SpinKind,
    /// The engine's switches.
    #[serde(default, deserialize_with = "obeyed")]
    pub mechanisms: Mechanisms,
}

/// The switches that no simulated transaction and no simulated latch uses: relation locks are left out.
const NOT_SIMULATED: [&str; 1] = [RelationLocksVariant::NAME];

/// Names of the switches that simulated transactions and latches obey: the engine's, without those that nothing
/// simulated uses.
pub fn simulated_switches() -> Vec<&'static str> {
    let names = Mechanisms::SWITCHES.iter().map(|switch| switch.name);
    names.filter(|name| !NOT_SIMULATED.contains(name)).collect()
}

fn is_simulated(name: &str) -> bool {
    simulated_switches().contains(&name)
}

/// The workload's numbers; which of them count depends on the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Parameters {
    /// The server's work per transaction beside latches and waits, µs.
    pub work_us: f64,
    /// The client's work per statement, µs; 0: the client calls the engine in its own process, as in `clearway bench`.
    pub client_us: f64,
    /// The log's `commit_delay`, µs.
    pub commit_delay_us: f64,
    /// Reads among a latch-mix's acquisitions, %.
    pub read_percent: f64,
    /// A latch-mix's critical section, ns.
    pub critical_ns: f64,
    /// A latch-mix's work between acquisitions, ns.
    pub outside_ns: f64,
    /// What the times of the log's device are multiplied by.
    pub device_factor: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            work_us: 100.0,
            client_us: 10.0,
            commit_delay_us: 0.0,
            read_percent: 90.0,
            critical_ns: 100.0,
            outside_ns: 500.0,
            device_factor: 1.0,
        }
    }
}

impl Parameters {
    /// Every number by its name.
    pub fn numbers_mut(&mut self) -> [(&'static str, &mut f64); 7] {
        [
            ("work_us", &mut self.work_us),
            ("client_us", &mut self.client_us),
            ("commit_delay_us", &mut self.commit_delay_us),
            ("read_percent", &mut self.read_percent),
            ("critical_ns", &mut self.critical_ns),
            ("outside_ns", &mut self.outside_ns),
            ("device_factor", &mut self.device_factor),
        ]
    }
}

/// The log's device, as quantiles: pairs of a probability and microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Devices {
    /// Writing to the page cache; the CPU works meanwhile.
    pub log_write_us: Latency,
    /// Making the writes durable; the CPU is free meanwhile.
    pub log_sync_us: Latency,
}

impl Default for Devices {
    fn default() -> Self {
        Self {
            log_write_us: Latency::constant(5_000),
            log_sync_us: Latency::constant(40_000),
        }
    }
}

/// A curve measured elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Which variant it is of.
    pub variant: String,
    /// Numbers of clients with transactions a second.
    pub points: Vec<(usize, f64)>,
}

impl Published {
    /// What was measured with so many clients.
    pub fn tps(&self, clients: usize) -> Option<f64> {
        let point = self.points.iter().find(|(known, _)| *known == clients);
        point.map(|(_, tps)| *tps)
    }
}

impl Experiment {
    /// A built-in experiment, or the one in a file whose name ends in `.toml`.
    pub fn load(name: &str) -> Result<Self> {
        if name.ends_with(".toml") {
            let path = std::path::Path::new(name);
            let text =
                std::fs::read_to_string(path).map_err(LabError::io("cannot read the experiment", path))?;
            return Self::parse(name, &text);
        }
        match EXPERIMENTS.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Self::parse(name, text),
            None => Err(LabError::UnknownName {
                what: "experiment",
                name: name.to_owned(),
                available: format!(
                    "{}, here, or the path of a TOML file",
                    EXPERIMENTS.map(|(name, _)| name).join(", ")
                ),
            }),
        }
    }

    fn parse(path: &str, text: &str) -> Result<Self> {
        let experiment: Self = toml::from_str(text).map_err(|error| LabError::ExperimentFile {
            path: path.to_owned(),
            message: error.to_string(),
        })?;
        let wrong = |message: String| LabError::ExperimentFile {
            path: path.to_owned(),
            message,
        };
        if experiment.variants.is_empty() || experiment.clients.is_empty() {
            return Err(wrong(
                "there must be a variant and a number of clients at least".to_owned(),
            ));
        }
        if experiment.measure_ms == 0 {
            return Err(wrong("measure_ms must be 1 at least".to_owned()));
        }
        Ok(experiment)
    }

    /// `work_us=500`: a parameter; `lwlock=queued`: a switch of all variants, of which those that are the same then go.
    pub fn set(&mut self, setting: &str) -> Result<()> {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        if Mechanisms::SWITCHES.iter().any(|switch| switch.name == name) {
            return self.set_switch(name, value);
        }
        let number = match name {
            "warm_up_ms" | "measure_ms" => None,
            _ => match self
                .parameters
                .numbers_mut()
                .into_iter()
                .find(|(known, _)| *known == name)
            {
                Some((_, number)) => Some(number),
                None => {
                    return Err(LabError::UnknownName {
                        what: "parameter",
                        name: name.to_owned(),
                        available: Parameters::default()
                            .numbers_mut()
                            .map(|(name, _)| name)
                            .join(", ")
                            + ", warm_up_ms, measure_ms, "
                            + &simulated_switches().join(", "),
                    });
                }
            },
        };
        let parsed = value
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..=1e9).contains(value));
        let Some(parsed) = parsed else {
            return Err(LabError::BadNumber {
                what: "a parameter",
                value: setting.to_owned(),
                must: "NAME=NUMBER with a number from 0 to 1,000,000,000",
            });
        };
        match (number, name) {
            (Some(number), _) => *number = parsed,
            (None, "warm_up_ms") => self.warm_up_ms = parsed as u64,
            (None, _) => self.measure_ms = (parsed as u64).max(1),
        }
        Ok(())
    }

    fn set_switch(&mut self, name: &str, value: &str) -> Result<()> {
        let mistake = |error: MechanismError| LabError::Setting {
            message: error.to_string(),
        };
        Mechanisms::default().set_variant(name, value).map_err(mistake)?;
        if !is_simulated(name) {
            return Err(LabError::Setting {
                message: has_no_part(name),
            });
        }
        let mut kept: Vec<(Variant, bool)> = Vec::new();
        for variant in self.variants.drain(..) {
            let mut changed = variant.clone();
            changed.mechanisms.set_variant(name, value).map_err(mistake)?;
            let was_so = changed == variant;
            let twin = kept.iter_mut().find(|(twin, _)| {
                twin.mechanisms == changed.mechanisms
                    && (twin.latch, twin.spin) == (changed.latch, changed.spin)
            });
            match twin {
                // Of two variants that have become the same, keep the one whose name says what it is.
                Some(twin) if was_so && !twin.1 => *twin = (changed, true),
                Some(_) => {}
                None => kept.push((changed, was_so)),
            }
        }
        self.variants = kept.into_iter().map(|(variant, _)| variant).collect();
        Ok(())
    }
}

/// The switches of a variant; only those that are obeyed may be named.
fn obeyed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Mechanisms, D::Error> {
    let named = BTreeMap::<String, String>::deserialize(deserializer)?;
    let mut mechanisms = Mechanisms::default();
    if let Some(preset) = named.get("preset") {
        mechanisms = Mechanisms::preset(preset).map_err(D::Error::custom)?;
    }
    for (name, variant) in named.iter().filter(|(name, _)| *name != "preset") {
        mechanisms.set_variant(name, variant).map_err(D::Error::custom)?;
        if !is_simulated(name) {
            return Err(D::Error::custom(has_no_part(name)));
        }
    }
    Ok(mechanisms)
}

fn has_no_part(name: &str) -> String {
    format!(
        "{name} has no part in what is simulated; these have: {}",
        simulated_switches().join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_experiments_are_sound() {
        for (name, _) in EXPERIMENTS {
            let experiment = Experiment::load(name).unwrap();
            assert_eq!(experiment.name, name);
            for machine in std::iter::once(&experiment.machine).chain(&experiment.also_on) {
                clearway_sim::MachineModel::load(machine).unwrap();
            }
            assert!(!experiment.variants.is_empty() && !experiment.clients.is_empty());
        }
    }

    #[test]
    fn mistakes_are_answered_with_what_there_is() {
        let error = Experiment::load("numa").unwrap_err().to_string();
        assert!(
            error.contains("numa-simple-update") && error.contains("latch-mix"),
            "{error}"
        );
        let mut experiment = Experiment::load("latch-mix").unwrap();
        for (setting, hint) in [
            ("lwlock=best", "single-cas"),
            ("reads=3", "read_percent"),
            ("relation_locks=table", "lwlock_fairness"),
            ("read_percent=many", "NUMBER"),
            ("read_percent=-1", "NUMBER"),
        ] {
            let error = experiment.set(setting).unwrap_err().to_string();
            assert!(error.contains(hint), "{setting}: {error}");
        }
        experiment.set("read_percent=50").unwrap();
        assert_eq!(experiment.parameters.read_percent, 50.0);
    }

    #[test]
    fn a_switch_set_by_hand_leaves_no_twins() {
        let mut experiment = Experiment::load("numa-simple-update").unwrap();
        experiment.set("lwlock=single-cas").unwrap();
        let names: Vec<_> = experiment.variants.iter().map(|v| v.name.as_str()).collect();
        assert_eq!(names, ["single-cas"]);
    }
}
