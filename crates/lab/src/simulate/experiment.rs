//! Experiment files.

use std::collections::BTreeMap;

use clearway_engine::{MechanismError, Mechanisms};
use clearway_machine::{Switch, TimeSliceVariant};
use clearway_sim::Latency;
use clearway_storage::PageRoomVariant;
use clearway_storage::wal::LogSyncVariant;
use clearway_txn::RelationLocksVariant;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::{LabError, Result};
use crate::latches::catalogue::LatchFamily;
use crate::latches::simulated::SpinKind;
use crate::simulate::jams::{JAM_PREFIX, Jam};
use crate::simulate::multixact::MultixactForm;
use crate::simulate::of_its_time::OfItsTime;

/// Name and text of each built-in experiment.
pub const EXPERIMENTS: [(&str, &str); 16] = [
    (
        "numa-simple-update",
        include_str!("../../experiments/numa-simple-update.toml"),
    ),
    ("numa-tpcb", include_str!("../../experiments/numa-tpcb.toml")),
    ("log-flush", include_str!("../../experiments/log-flush.toml")),
    ("log-insert", include_str!("../../experiments/log-insert.toml")),
    ("commit-log", include_str!("../../experiments/commit-log.toml")),
    ("proc-clear", include_str!("../../experiments/proc-clear.toml")),
    ("snapshots", include_str!("../../experiments/snapshots.toml")),
    ("latch-mix", include_str!("../../experiments/latch-mix.toml")),
    (
        "innodb-update-index",
        include_str!("../../experiments/innodb-update-index.toml"),
    ),
    (
        "read-not-in-buffers",
        include_str!("../../experiments/read-not-in-buffers.toml"),
    ),
    (
        "point-select",
        include_str!("../../experiments/point-select.toml"),
    ),
    ("one-client", include_str!("../../experiments/one-client.toml")),
    (
        "standby-long-transaction",
        include_str!("../../experiments/standby-long-transaction.toml"),
    ),
    (
        "standby-replay",
        include_str!("../../experiments/standby-replay.toml"),
    ),
    (
        "read-biased-tpcc",
        include_str!("../../experiments/read-biased-tpcc.toml"),
    ),
    ("hot-parent", include_str!("../../experiments/hot-parent.toml")),
];

/// The content of an experiment file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// One line for a list.
    pub description: String,
    /// A machine's name or the path of its description.
    pub machine: String,
    /// Further machines on which `clearway simulate` runs it unless one is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also_on: Vec<String>,
    /// The work of each client.
    pub workload: WorkloadKind,
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// Simulated time before measuring, ms.
    pub warm_up_ms: u64,
    /// Simulated time measured, ms.
    pub measure_ms: u64,
    /// True if commits wait for the disk; if not, a log writer flushes behind them.
    #[serde(default = "yes")]
    pub synchronous_commit: bool,
    /// The variants that are compared.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Variants that are compared beside, before those: each combination of the variants of some switches.
    #[serde(default, skip_serializing)]
    pub every: Option<SwitchCombinations>,
    /// The workload's numbers.
    #[serde(default)]
    pub parameters: Parameters,
    /// The log's device.
    #[serde(default)]
    pub devices: Devices,
    /// Measurements made elsewhere.
    #[serde(default)]
    pub published: Option<Published>,
}

fn yes() -> bool {
    true
}

fn is_false(it: &bool) -> bool {
    !it
}

/// A variant for each combination of all variants of some switches, so that what is built later joins by itself.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchCombinations {
    /// Names of the switches; the combinations of the first one's baseline come first.
    pub switches: Vec<String>,
    /// All other switches.
    #[serde(default, deserialize_with = "obeyed")]
    pub mechanisms: Mechanisms,
}

impl SwitchCombinations {
    /// The combinations, each named by its variants.
    fn variants(&self) -> std::result::Result<Vec<Variant>, String> {
        let mut all = vec![(Vec::new(), self.mechanisms)];
        for name in &self.switches {
            let switch = Mechanisms::switch(name).map_err(|error| error.to_string())?;
            if !is_simulated(name) {
                return Err(has_no_part(name));
            }
            let mut longer = Vec::new();
            for (names, mechanisms) in &all {
                for choice in switch.variants {
                    let (mut names, mut mechanisms) = (names.clone(), *mechanisms);
                    names.push(choice.name);
                    mechanisms
                        .set_variant(name, choice.name)
                        .map_err(|error| error.to_string())?;
                    longer.push((names, mechanisms));
                }
            }
            all = longer;
        }
        let variant = |(names, mechanisms): (Vec<&str>, Mechanisms)| Variant {
            name: names.join(" "),
            latch: LatchFamily::default(),
            spin: SpinKind::default(),
            work_alone: false,
            multixact: None,
            of_its_time: OfItsTime::default(),
            warm_up_ms: None,
            mechanisms,
        };
        Ok(all.into_iter().map(variant).collect())
    }
}

/// The work of each client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// pgbench --skip-some-updates.
    SimpleUpdate,
    /// pgbench's default.
    TpcbLike,
    /// pgbench --select-only, prepared: one row by its key, all pages in memory.
    PointSelect,
    /// Reading pages that are in no frame.
    ReadNotInBuffers,
    /// pgbench --select-only, and --skip-some-updates in `write_percent` of the transactions.
    Mixed,
    /// Reads on a standby beside its replay, while a transaction of the primary stays open.
    StandbyLongTransaction,
    /// A standby's replay of tpcb-like; a client is a worker that changes pages.
    StandbyReplay,
    /// TPC-C's five transactions in the standard's mix.
    Tpcc,
    /// Children inserted under few parents, whose rows their transactions share.
    HotParent,
    /// One latch.
    LatchMix,
}

impl WorkloadKind {
    /// True if the workload obeys the parameter of this name.
    pub(crate) fn uses(self, parameter: &str) -> bool {
        let is_of_latch_mix = ["read_percent", "critical_ns", "outside_ns"].contains(&parameter);
        let is_of_mixed = parameter == "write_percent";
        let is_of_long_transaction = ["replay_us", "range_xids"].contains(&parameter);
        let is_of_standby = ["running_xids", "primary_sessions"].contains(&parameter);
        let is_of_replay =
            ["read_us", "list_us", "change_us", "apart_us", "readers", "scale"].contains(&parameter);
        let is_of_hot_parent = ["parents", "alone_percent"].contains(&parameter);
        let is_of_statuses = ["status_questions", "status_xids"].contains(&parameter);
        is_of_latch_mix == (self == Self::LatchMix)
            && (self == Self::Mixed || !is_of_mixed)
            && (self == Self::StandbyLongTransaction || !is_of_long_transaction)
            && (self == Self::StandbyReplay || !is_of_replay)
            && (self == Self::HotParent || !is_of_hot_parent)
            && (self.asks_for_statuses() || !is_of_statuses)
            && (matches!(self, Self::StandbyLongTransaction | Self::StandbyReplay) || !is_of_standby)
            // A yes or no, and numbers of programs, levels and sessions.
            && !["overlap", "arrays", "calls", "beside", "index_levels", "idle_sessions"].contains(&parameter)
    }

    /// True if a device takes part: the log's, or that of pages.
    pub(crate) fn uses_devices(self) -> bool {
        self.has_log() || self == Self::ReadNotInBuffers
    }

    /// True if its transactions may ask how others have ended.
    fn asks_for_statuses(self) -> bool {
        matches!(self, Self::SimpleUpdate | Self::TpcbLike | Self::Mixed)
    }

    /// True if it writes to the log.
    fn has_log(self) -> bool {
        matches!(
            self,
            Self::SimpleUpdate | Self::TpcbLike | Self::Mixed | Self::Tpcc | Self::HotParent
        )
    }
}

/// One of what is compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name in the table.
    pub name: String,
    /// The latch of a latch-mix.
    #[serde(default)]
    pub latch: LatchFamily,
    /// The way in which its waiters pass the time before they sleep.
    #[serde(default)]
    pub spin: SpinKind,
    /// True if the work of a transaction is all that it does: what is left to win.
    #[serde(default, skip_serializing_if = "is_false")]
    pub work_alone: bool,
    /// Of a hot-parent: rows are shared by sets in files, in this form, and `row_locks` has no part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multixact: Option<MultixactForm>,
    /// Sizes that its mechanisms had when a published figure was measured.
    #[serde(default, skip_serializing_if = "OfItsTime::is_empty")]
    pub of_its_time: OfItsTime,
    /// Its own simulated time before measuring, ms: for mechanisms that try ways before they settle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_ms: Option<u64>,
    /// The engine's switches.
    #[serde(default, deserialize_with = "obeyed")]
    pub mechanisms: Mechanisms,
}

/// The switches that no experiment sets. Of the simulated transactions only point SELECTs and TPC-C's take relation
/// locks, and as their preset has them; none has a heap page, the simulated disk has one
/// kind of sync, and a time slice is the simulated system's.
const NOT_SIMULATED: [&str; 4] = [
    PageRoomVariant::NAME,
    LogSyncVariant::NAME,
    RelationLocksVariant::NAME,
    TimeSliceVariant::NAME,
];

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
    /// Transactions of a mixed workload that write, %.
    pub write_percent: f64,
    /// Reads among a latch-mix's acquisitions, %.
    pub read_percent: f64,
    /// A latch-mix's critical section, ns.
    pub critical_ns: f64,
    /// A latch-mix's work between acquisitions, ns; at least what a client's loop takes by itself, 3.
    pub outside_ns: f64,
    /// Factor of the times of the devices.
    pub device_factor: f64,
    /// A standby's work to replay a transaction, beside what it tells the sessions of it, µs.
    pub replay_us: f64,
    /// Xids that the primary has handed out since the transaction began that stays open; 0: there is none.
    pub range_xids: f64,
    /// Other transactions that run on the primary at a time.
    pub running_xids: f64,
    /// Sessions that the primary may have, for which the standby has room.
    pub primary_sessions: f64,
    /// Reading the records of a replayed transaction, µs.
    pub read_us: f64,
    /// Copying and listing them for other workers, µs.
    pub list_us: f64,
    /// Changing their pages, µs.
    pub change_us: f64,
    /// Additional time for that in a worker that has not read them, µs.
    pub apart_us: f64,
    /// Sessions that read while replay is measured.
    pub readers: f64,
    /// The scale of the primary's pgbench: how many branches there are.
    pub scale: f64,
    /// 1: the next stretch is gathered while workers change pages; 0: only when they are done.
    pub overlap: f64,
    /// 1: TPC-C handles the lines of an order, the districts of a delivery and the stocks of a stock-level in one statement
    /// each, as HammerDB does; 0: a statement each, which `clearway bench` has for all but stock-level.
    pub arrays: f64,
    /// 1: a transaction of TPC-C is one request of its client; 0: each statement is one.
    pub calls: f64,
    /// Busy loops of other programs on the same host.
    pub beside: f64,
    /// Rows that children refer to, 1 at least.
    pub parents: f64,
    /// Transactions that lock their parent FOR UPDATE, %.
    pub alone_percent: f64,
    /// Of a read-not-in-buffers: pages of an index, all in frames, that a read goes down before its page; 2 at most. The
    /// first is the same for all.
    pub index_levels: f64,
    /// Transactions of which an update asks the commit log how they have ended.
    pub status_questions: f64,
    /// The newest xids, among which those are.
    pub status_xids: f64,
    /// Further sessions of a workload that writes to the log, or of a point-select, which wait for their clients all the time.
    pub idle_sessions: f64,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            work_us: 100.0,
            client_us: 10.0,
            commit_delay_us: 0.0,
            write_percent: 10.0,
            read_percent: 90.0,
            critical_ns: 100.0,
            outside_ns: 500.0,
            device_factor: 1.0,
            replay_us: 5.0,
            range_xids: 1e6,
            running_xids: 16.0,
            primary_sessions: 1_000.0,
            read_us: 3.4,
            list_us: 1.0,
            change_us: 5.8,
            apart_us: 2.8,
            readers: 0.0,
            scale: 10.0,
            overlap: 1.0,
            arrays: 1.0,
            calls: 1.0,
            beside: 0.0,
            parents: 1.0,
            alone_percent: 0.0,
            index_levels: 0.0,
            status_questions: 0.0,
            status_xids: 1e6,
            idle_sessions: 0.0,
        }
    }
}

impl Parameters {
    /// The largest value of the parameter of this name. Each parent is a row that this host holds.
    fn most(name: &str) -> f64 {
        match name {
            "parents" | "status_xids" => 1e6,
            "index_levels" => 2.0,
            "idle_sessions" => 1e5,
            _ => 1e9,
        }
    }

    /// Every number by its name.
    pub fn numbers_mut(&mut self) -> [(&'static str, &mut f64); 28] {
        [
            ("work_us", &mut self.work_us),
            ("client_us", &mut self.client_us),
            ("commit_delay_us", &mut self.commit_delay_us),
            ("write_percent", &mut self.write_percent),
            ("read_percent", &mut self.read_percent),
            ("critical_ns", &mut self.critical_ns),
            ("outside_ns", &mut self.outside_ns),
            ("device_factor", &mut self.device_factor),
            ("replay_us", &mut self.replay_us),
            ("range_xids", &mut self.range_xids),
            ("running_xids", &mut self.running_xids),
            ("primary_sessions", &mut self.primary_sessions),
            ("read_us", &mut self.read_us),
            ("list_us", &mut self.list_us),
            ("change_us", &mut self.change_us),
            ("apart_us", &mut self.apart_us),
            ("readers", &mut self.readers),
            ("scale", &mut self.scale),
            ("overlap", &mut self.overlap),
            ("arrays", &mut self.arrays),
            ("calls", &mut self.calls),
            ("beside", &mut self.beside),
            ("parents", &mut self.parents),
            ("alone_percent", &mut self.alone_percent),
            ("index_levels", &mut self.index_levels),
            ("status_questions", &mut self.status_questions),
            ("status_xids", &mut self.status_xids),
            ("idle_sessions", &mut self.idle_sessions),
        ]
    }
}

/// The log's device and the pages' files, as quantiles: pairs of a probability and microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Devices {
    /// Writing to the page cache; the CPU works meanwhile.
    pub log_write_us: Latency,
    /// Making the writes durable; the CPU is free meanwhile.
    pub log_sync_us: Latency,
    /// Reading a page that is in the kernel's cache; the CPU works meanwhile.
    #[serde(default = "page_read")]
    pub page_read_us: Latency,
}

fn page_read() -> Latency {
    Latency::constant(2_000)
}

impl Default for Devices {
    fn default() -> Self {
        Self {
            log_write_us: Latency::constant(5_000),
            log_sync_us: Latency::constant(40_000),
            page_read_us: page_read(),
        }
    }
}

/// A curve measured elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The variant that it is of.
    pub variant: String,
    /// Numbers of clients with transactions a second.
    pub points: Vec<(usize, f64)>,
}

impl Published {
    /// The throughput that was measured with this many clients.
    pub fn tps(&self, clients: usize) -> Option<f64> {
        let point = self.points.iter().find(|(known, _)| *known == clients);
        point.map(|(_, tps)| *tps)
    }
}

impl Experiment {
    /// A built-in experiment, a jam of the catalogue (`jam/NAME`), or the experiment in a file whose name ends in `.toml`.
    pub fn load(name: &str) -> Result<Self> {
        if let Some(jam) = name.strip_prefix(JAM_PREFIX) {
            return Self::of_jam(Jam::find(jam)?);
        }
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
                    "{}, {JAM_PREFIX}NAME, here, or the path of a TOML file",
                    EXPERIMENTS.map(|(name, _)| name).join(", ")
                ),
            }),
        }
    }

    /// The experiment that shows a jam.
    fn of_jam(jam: &Jam) -> Result<Self> {
        let name = jam.full_name();
        let mut experiment = Self::parse(&name, jam.text)?;
        for setting in jam.settings {
            experiment.set(setting)?;
        }
        let variants = jam.variants.iter().map(|wanted| {
            let found = experiment.variants.iter().find(|variant| variant.name == *wanted);
            found.cloned().ok_or_else(|| LabError::ExperimentFile {
                path: name.clone(),
                message: format!("there is no variant \"{wanted}\""),
            })
        });
        experiment.variants = variants.collect::<Result<_>>()?;
        experiment.clients = jam.clients.to_vec();
        experiment.also_on.clear();
        jam.story.clone_into(&mut experiment.description);
        experiment.name = name;
        Ok(experiment)
    }

    /// The experiment that the text of a file describes; `path` is named in errors.
    ///
    /// # Errors
    /// [`LabError::ExperimentFile`]: what is wrong with the text.
    pub fn parse(path: &str, text: &str) -> Result<Self> {
        let wrong = |message: String| LabError::ExperimentFile {
            path: path.to_owned(),
            message,
        };
        let mut experiment: Self = toml::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if let Some(every) = experiment.every.take() {
            let combinations = every.variants().map_err(wrong)?;
            experiment.variants.splice(..0, combinations);
        }
        if experiment.variants.is_empty() || experiment.clients.is_empty() {
            return Err(wrong(
                "there must be a variant and a number of clients at least".to_owned(),
            ));
        }
        let is_hot_parent = experiment.workload == WorkloadKind::HotParent;
        let has_sets = |variant: &&Variant| variant.multixact.is_some();
        if let Some(variant) = experiment.variants.iter().find(has_sets)
            && !is_hot_parent
        {
            let name = &variant.name;
            return Err(wrong(format!(
                "variant \"{name}\": multixact is for the workload hot-parent"
            )));
        }
        for Variant {
            name,
            of_its_time,
            mechanisms,
            ..
        } in &experiment.variants
        {
            of_its_time
                .check(mechanisms)
                .map_err(|mistake| wrong(format!("variant \"{name}\": {mistake}")))?;
        }
        if experiment.measure_ms == 0 {
            return Err(wrong("measure_ms must be 1 at least".to_owned()));
        }
        for (name, number) in experiment.parameters.numbers_mut() {
            let most = Parameters::most(name);
            if !(0.0..=most).contains(number) {
                return Err(wrong(format!("{name} = {number} must be from 0 to {most}")));
            }
        }
        Ok(experiment)
    }

    /// Workers beside the clients: the server's own, and the busy loops of other programs.
    pub(crate) fn background_workers(&self) -> usize {
        self.busy_loops() + self.server_workers()
    }

    /// Busy loops of other programs.
    pub(crate) fn busy_loops(&self) -> usize {
        self.parameters.beside as usize
    }

    fn server_workers(&self) -> usize {
        match self.workload {
            WorkloadKind::StandbyLongTransaction => 1,
            // One reads the log.
            WorkloadKind::StandbyReplay => 1 + self.parameters.readers as usize,
            _ => usize::from(self.has_log_writer()),
        }
    }

    /// Simulated time before a variant is measured, ns.
    pub(crate) fn warm_up_ns(&self, variant: &Variant) -> u64 {
        variant.warm_up_ms.unwrap_or(self.warm_up_ms) * 1_000_000
    }

    /// True if a worker flushes the log behind the commits.
    pub(crate) fn has_log_writer(&self) -> bool {
        self.workload.has_log() && !self.synchronous_commit
    }

    /// `work_us=500`: a parameter; `lwlock=queued`: a switch of all variants, of which those that are the same then go.
    pub fn set(&mut self, setting: &str) -> Result<()> {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        if Mechanisms::SWITCHES.iter().any(|switch| switch.name == name) {
            return self.set_switch(name, value);
        }
        if name == "synchronous_commit" {
            self.synchronous_commit = match value {
                "on" => true,
                "off" => false,
                _ => {
                    return Err(LabError::Setting {
                        message: format!("synchronous_commit is on or off, not \"{value}\""),
                    });
                }
            };
            return Ok(());
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
                            + ", warm_up_ms, measure_ms, synchronous_commit, "
                            + &simulated_switches().join(", "),
                    });
                }
            },
        };
        let parsed = value
            .parse::<f64>()
            .ok()
            .filter(|value| (0.0..=Parameters::most(name)).contains(value));
        let Some(parsed) = parsed else {
            return Err(LabError::BadNumber {
                what: "a parameter",
                value: setting.to_owned(),
                must: match name {
                    "parents" | "status_xids" => "NAME=NUMBER with a number from 0 to 1,000,000",
                    "index_levels" => "NAME=NUMBER with a number from 0 to 2",
                    "idle_sessions" => "NAME=NUMBER with a number from 0 to 100,000",
                    _ => "NAME=NUMBER with a number from 0 to 1,000,000,000",
                },
            });
        };
        match (number, name) {
            (Some(number), _) => *number = parsed,
            (None, "warm_up_ms") => {
                self.warm_up_ms = parsed as u64;
                for variant in &mut self.variants {
                    variant.warm_up_ms = None;
                }
            }
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
            changed.of_its_time = changed.of_its_time.beside(&changed.mechanisms);
            let was_so = changed == variant;
            let twin = kept.iter_mut().find(|(twin, _)| {
                twin.mechanisms == changed.mechanisms
                    && twin.of_its_time == changed.of_its_time
                    && (twin.latch, twin.spin, twin.work_alone, twin.multixact)
                        == (changed.latch, changed.spin, changed.work_alone, changed.multixact)
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
    // A list of all switches is what a result holds, and no choice of an experiment's.
    let is_complete = Mechanisms::SWITCHES
        .iter()
        .all(|switch| named.contains_key(switch.name));
    for (name, variant) in named.iter().filter(|(name, _)| *name != "preset") {
        mechanisms.set_variant(name, variant).map_err(D::Error::custom)?;
        if !is_simulated(name) && !is_complete {
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
    fn a_parameter_out_of_its_range_is_refused() {
        let mut experiment = Experiment::load("hot-parent").unwrap();
        experiment.set("parents=1000000").unwrap();
        for setting in ["parents=1000001", "work_us=-1", "work_us=1e10"] {
            let error = experiment.set(setting).unwrap_err();
            assert!(matches!(error, LabError::BadNumber { .. }), "{error}");
            let (name, value) = setting.split_once('=').unwrap();
            let text = format!(
                "name = \"x\"\ndescription = \"\"\nmachine = \"haswell-ex-4s\"\nworkload = \"hot-parent\"\n\
                 warm_up_ms = 1\nmeasure_ms = 1\nclients = [1]\nparameters = {{ {name} = {value} }}\n[[variants]]\nname = \"a\"\n"
            );
            let error = Experiment::parse("x.toml", &text).unwrap_err();
            assert!(
                error.to_string().contains(name) && error.to_string().contains("must be from 0 to"),
                "{error}"
            );
        }
    }

    /// By its text: a description of a machine in the folder `by-path` is none.
    fn is_machine(text: &str) -> bool {
        text.contains("\n[topology]\n")
    }

    /// Every file in the folder is an experiment, or the machine of one; those at the top are built in.
    #[test]
    fn every_file_in_the_folder_can_be_run() {
        let repository = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folder = repository.join("crates/lab/experiments");
        let files_in = |folder: std::path::PathBuf| {
            let entries = std::fs::read_dir(folder).unwrap();
            let paths = entries.map(|entry| entry.unwrap().path());
            paths
                .filter(|path| path.extension().is_some_and(|end| end == "toml"))
                .collect::<Vec<_>>()
        };
        let top = files_in(folder.clone());
        assert_eq!(top.len(), EXPERIMENTS.len());
        for path in top {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(EXPERIMENTS.iter().any(|(known, _)| *known == name), "{name}");
        }
        let mut by_path = 0;
        for path in files_in(folder.join("by-path")) {
            let path = path.to_str().unwrap();
            if is_machine(&std::fs::read_to_string(path).unwrap()) {
                clearway_sim::MachineModel::load(path).unwrap();
                continue;
            }
            let experiment = Experiment::load(path).unwrap();
            // A path is relative to the repository.
            let machine = if experiment.machine.ends_with(".toml") {
                repository.join(&experiment.machine).to_str().unwrap().to_owned()
            } else {
                experiment.machine
            };
            clearway_sim::MachineModel::load(&machine).unwrap();
            by_path += 1;
        }
        assert!(by_path > 0);
    }

    #[test]
    fn every_variant_of_a_switch_becomes_one_of_the_experiment() {
        let names = |name: &str| -> Vec<String> {
            let experiment = Experiment::load(name).unwrap();
            experiment
                .variants
                .into_iter()
                .map(|variant| variant.name)
                .collect()
        };
        let variants_of = |name: &str| Mechanisms::switch(name).unwrap().variants;
        let expected: Vec<&str> = variants_of("commit_log").iter().map(|v| v.name).collect();
        assert_eq!(names("commit-log"), expected);
        let combinations = names("log-flush");
        assert_eq!(
            combinations.len(),
            variants_of("lock_release").len() * variants_of("log_flush").len()
        );
        assert_eq!(combinations[..2], ["after-flush single", "after-flush split"]);
        let last_of = |name: &str| variants_of(name).last().unwrap().name;
        let (last_release, last_flush) = (last_of("lock_release"), last_of("log_flush"));
        let experiment = Experiment::load("log-flush").unwrap();
        let last = experiment.variants.last().unwrap();
        assert_eq!(last.name, format!("{last_release} {last_flush}"));
        assert_eq!(last.mechanisms.lock_release.name(), last_release);
        assert_eq!(last.mechanisms.log_flush.name(), last_flush);
    }

    #[test]
    fn a_switch_that_nothing_simulated_uses_makes_no_variants() {
        let text =
            include_str!("../../experiments/commit-log.toml").replace("\"commit_log\"", "\"relation_locks\"");
        let error = Experiment::parse("it", &text).unwrap_err().to_string();
        assert!(error.contains("relation_locks has no part"), "{error}");
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
            ("synchronous_commit=0", "on or off"),
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
        assert_eq!(names, ["single-cas", "clearway"]);
    }
}
