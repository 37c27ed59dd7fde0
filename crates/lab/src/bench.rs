//! The bench from its options to its result.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clearway_engine::config::{ByteSize, Span};
use clearway_engine::mechanisms::MechanismError;
use clearway_engine::{Config, Engine, Mechanisms};
use clearway_machine::{Native, Switch, TimeSliceVariant};
use clearway_storage::standby::ReplayVariant;
use clearway_txn::{KnownXidsCompactionVariant, KnownXidsVariant};

use crate::costs::Counters;
use crate::error::{LabError, Result};
use crate::follower::Source;
use crate::host_use::HostUse;
use crate::latencies::{Latencies, percentile_us};
use crate::other_programs::{BUSY_LOOPS_MAX, OtherProgramCommand, OtherPrograms, Running};
use crate::progress::progress_bar;
use crate::result::{
    BalanceCheck, BenchResult, Cell, ConsistencyCheck, FORMAT, Parameters, Provenance, VariantInfo,
    VariedSwitch, WaitShare,
};
use crate::run::{self, Measured, Point};
use crate::sampler::Samples;
use crate::seed::seed_of;
use crate::tables::{Tables, Wanted};
use crate::workload::tpcc::{self, Population};
use crate::workload::{Mix, Sizes, Workload};
use crate::{schedule, stats};

/// Buffer memory per unit of pgbench's scale: tables, indexes, and room for the history to grow.
const BUFFER_BYTES_PER_SCALE: u64 = 24 << 20;

/// Buffer memory per item of a warehouse of TPC-C: tables and indexes, and twice as much for what is added.
const BUFFER_BYTES_PER_ITEM: u64 = 3 * 700;

/// The same per customer with its order.
const BUFFER_BYTES_PER_CUSTOMER: u64 = 3 * 2_300;

/// The most warehouses: those of a directory of a terabyte.
const WAREHOUSES_MAX: u32 = 10_000;

/// Buffer memory at the least and at the most.
const BUFFER_BYTES: (u64, u64) = (128 << 20, 8 << 30);

/// Part of a point's duration that is run before it, unmeasured.
const WARM_UP_SHARE: f64 = 0.1;

/// The question of a bench: variants, workloads and how they are run.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// pgbench's scale: 100,000 accounts each.
    pub scale: u32,
    /// The population of TPC-C's tables; none is one warehouse. Only for the workload `tpcc`.
    pub population: Option<Population>,
    /// Numbers of clients.
    pub clients: Vec<usize>,
    /// Measured time per point.
    pub duration: Duration,
    /// Measurements of each point.
    pub rounds: usize,
    /// Workloads, each alone or some side by side.
    pub workloads: Vec<Mix>,
    /// The switch whose variants these are, if they are those of one.
    pub varied: Option<VariedSwitch>,
    /// The variants that are compared; ratios are to the first.
    pub variants: Vec<Variant>,
    /// Buffer memory of each database; none is as much as holds everything.
    pub buffers: Option<ByteSize>,
    /// The directory of the databases, one directory per variant in it; none is a temporary directory.
    pub data: Option<PathBuf>,
    /// True if a commit waits for the disk.
    pub synchronous_commit: bool,
    /// The programs that run beside it while it measures.
    pub beside: OtherPrograms,
    /// The way to start one of them.
    pub other_program: OtherProgramCommand,
    /// Seed of the random numbers.
    pub seed: u64,
    /// The command line, for the provenance.
    pub command: String,
    /// True if a progress bar is drawn on standard error (if that is a terminal).
    pub progress: bool,
}

/// One of the configurations compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Its name in tables.
    pub name: String,
    /// Its directory's name.
    pub directory: String,
    /// The way it works, if it is the variant of one switch.
    pub text: Option<&'static str>,
    /// Its mechanisms.
    pub mechanisms: Mechanisms,
    /// True if a follower receives its log while it is measured.
    pub followed: bool,
}

/// The script that compares the variants of a switch natively, if the switch works on a standby only.
pub(crate) fn standby_script(switch: &str) -> Option<&'static str> {
    match switch {
        KnownXidsVariant::NAME | KnownXidsCompactionVariant::NAME => Some("scripts/standby-long-transaction"),
        ReplayVariant::NAME => Some("scripts/standby-replay"),
        _ => None,
    }
}

impl Variant {
    /// The variants that these presets and `name=variant` settings ask to compare.
    ///
    /// | presets | settings | compared |
    /// | --- | --- | --- |
    /// | none | none | classic, clearway |
    /// | none | some | clearway, clearway with the settings |
    /// | some | none | these |
    /// | some | some | each of these with the settings |
    pub fn choose(presets: &[String], settings: &[String]) -> Result<Vec<Variant>> {
        let preset = |name: &str| -> Result<Variant> {
            Ok(Variant {
                name: name.to_owned(),
                directory: name.to_owned(),
                text: None,
                mechanisms: Mechanisms::preset(name)?,
                followed: false,
            })
        };
        let with_settings = |mut variant: Variant| -> Result<Variant> {
            for setting in settings {
                variant.mechanisms.set(setting)?;
                variant.name.push('+');
                variant.name.push_str(setting);
            }
            variant.directory.clone_from(&variant.name);
            Ok(variant)
        };
        let mut variants = match (presets, settings) {
            ([], []) => vec![preset("classic")?, preset("clearway")?],
            ([], _) => vec![preset("clearway")?, with_settings(preset("clearway")?)?],
            _ => presets
                .iter()
                .map(|name| with_settings(preset(name)?))
                .collect::<Result<_>>()?,
        };
        let mut seen = Vec::new();
        variants.retain(|variant| {
            let new = !seen.contains(&variant.name);
            seen.push(variant.name.clone());
            new
        });
        Ok(variants)
    }

    /// Each of these, and each of these beside a follower.
    pub fn each_followed(variants: Vec<Variant>) -> Vec<Variant> {
        let both = |variant: Variant| {
            let mut followed = variant.clone();
            followed.name.push_str(" + follower");
            followed.directory.push_str("+follower");
            followed.followed = true;
            [variant, followed]
        };
        variants.into_iter().flat_map(both).collect()
    }

    /// Every variant of the switch of this name, the baseline first, with everything else as the preset and the
    /// `name=variant` settings say. Without a preset that is `clearway`.
    pub fn vary(
        switch: &str,
        presets: &[String],
        settings: &[String],
    ) -> Result<(VariedSwitch, Vec<Variant>)> {
        let varied = Mechanisms::switch(switch)?;
        if let [only] = varied.variants {
            return Err(LabError::OneVariant {
                switch: varied.name,
                variant: only.name,
            });
        }
        if varied.name == TimeSliceVariant::NAME && !matches!(Native::time_slice_ns(), Ok(Some(_))) {
            return Err(LabError::OneTimeSlice);
        }
        if let Some(script) = standby_script(varied.name) {
            return Err(LabError::StandbysSwitch {
                switch: varied.name,
                script,
            });
        }
        let preset = match presets {
            [] => "clearway",
            [preset] => preset,
            _ => return Err(LabError::SeveralPresets),
        };
        let mut mechanisms = Mechanisms::preset(preset)?;
        for setting in settings {
            mechanisms.set(setting)?;
            if setting
                .split('=')
                .next()
                .is_some_and(|name| name.trim() == varied.name)
            {
                return Err(LabError::SetAndVaried { switch: varied.name });
            }
        }
        let variants = varied.variants.iter().map(|variant| {
            let mut mechanisms = mechanisms;
            mechanisms.set_variant(varied.name, variant.name)?;
            Ok(Variant {
                name: variant.name.to_owned(),
                directory: format!("{}={}", varied.name, variant.name),
                text: Some(variant.text),
                mechanisms,
                followed: false,
            })
        });
        let described = VariedSwitch {
            name: Cow::Borrowed(varied.name),
            about: Cow::Borrowed(varied.about),
        };
        Ok((described, variants.collect::<Result<_, MechanismError>>()?))
    }
}

impl BenchOptions {
    fn check(&self) -> Result<()> {
        let refuse = |what, value: String, must| Err(LabError::BadNumber { what, value, must });
        if !(1..=20_000).contains(&self.scale) {
            return refuse("--scale", self.scale.to_string(), "1 to 20000");
        }
        if self.clients.is_empty() || self.clients.iter().any(|clients| !(1..=1_000).contains(clients)) {
            return refuse(
                "--clients",
                format!("{:?}", self.clients),
                "one or more numbers from 1 to 1000",
            );
        }
        let clients_min = self.workloads.iter().map(Mix::clients_min).max().unwrap_or(1);
        if self.clients.iter().any(|clients| *clients < clients_min) {
            return refuse(
                "--clients",
                format!("{:?}", self.clients),
                "at least one for each of the workloads side by side",
            );
        }
        if self.rounds == 0 {
            return refuse("--rounds", "0".to_owned(), "at least 1");
        }
        if self.duration < Duration::from_millis(10) {
            return refuse("--duration", format!("{:?}", self.duration), "at least 10ms");
        }
        if self.workloads.is_empty() {
            return refuse("--workload", "empty".to_owned(), "one or more names");
        }
        match self.population {
            Some(_) if !self.needs_tpcc() => {
                return Err(LabError::WithoutWorkload {
                    option: "--warehouses",
                    workload: Workload::Tpcc.name(),
                });
            }
            Some(population) if !(1..=WAREHOUSES_MAX).contains(&population.warehouses) => {
                return refuse("--warehouses", population.warehouses.to_string(), "1 to 10000");
            }
            _ => {}
        }
        if self.beside.busy_loops > BUSY_LOOPS_MAX {
            return refuse("--beside", self.beside.busy_loops.to_string(), "0 to 1000");
        }
        if self.variants.is_empty() {
            return refuse("--preset", "empty".to_owned(), "one or more names");
        }
        Ok(())
    }

    fn warm_up(&self) -> Duration {
        self.duration
            .mul_f64(WARM_UP_SHARE)
            .max(Duration::from_millis(50))
    }

    /// True if a workload runs on pgbench's tables.
    pub fn needs_pgbench(&self) -> bool {
        let mut parts = self.workloads.iter().flat_map(Mix::parts);
        parts.any(|workload| Workload::PGBENCH.contains(&workload))
    }

    /// True if a workload runs on TPC-C's tables.
    pub fn needs_tpcc(&self) -> bool {
        self.workloads.iter().any(|mix| mix.has(Workload::Tpcc))
    }

    /// The sizes of the tables.
    pub fn sizes(&self) -> Sizes {
        Sizes {
            scale: self.scale,
            population: self.population.unwrap_or(Population::standard(1)),
        }
    }

    /// Buffer memory that holds the tables and what is added to them.
    fn buffer_bytes(&self) -> u64 {
        let Sizes { scale, population } = self.sizes();
        let mut bytes = 0;
        if self.needs_pgbench() {
            bytes += u64::from(scale) * BUFFER_BYTES_PER_SCALE;
        }
        if self.needs_tpcc() {
            let customers = u64::from(population.customers.unsigned_abs()) * tpcc::DISTRICTS as u64;
            let of_items = u64::from(population.items.unsigned_abs()) * BUFFER_BYTES_PER_ITEM;
            bytes += u64::from(population.warehouses) * (of_items + customers * BUFFER_BYTES_PER_CUSTOMER);
        }
        bytes.clamp(BUFFER_BYTES.0, BUFFER_BYTES.1)
    }

    /// The time that the measuring will take, loading not counted.
    pub fn estimated_time(&self) -> Duration {
        let points = self.rounds * self.workloads.len() * self.clients.len() * self.variants.len();
        (self.duration + self.warm_up()) * points as u32
    }

    /// The engine's configuration for a variant. Unless they were chosen, buffers hold everything. No checkpoint falls
    /// due by the clock, so that points differ by what is compared and not by when they are measured.
    fn config(&self, variant: &Variant) -> Config {
        let clients = self.clients.iter().copied().max().unwrap_or(1) as u32;
        Config {
            shared_buffers: self.buffers.unwrap_or(ByteSize::from_bytes(self.buffer_bytes())),
            max_connections: clients.max(100) + 20,
            synchronous_commit: self.synchronous_commit.into(),
            checkpoint_timeout: Span::from_secs(3_600),
            max_wal_size: ByteSize::mib(8_192),
            mechanisms: variant.mechanisms,
            ..Config::default()
        }
    }
}

/// A variant's open database.
struct Database {
    name: String,
    engine: Arc<Engine>,
    /// There for a variant that is followed.
    source: Option<Source>,
    tables: Tables,
}

/// The results of the rounds of one cell.
struct Gathered {
    parts: Vec<GatheredPart>,
    /// Of the clients of all parts.
    waits: Samples,
    counted: Counters,
}

/// Their results of one workload.
struct GatheredPart {
    workload: Workload,
    tps: Vec<f64>,
    latencies: Latencies,
    retries: u64,
}

impl Gathered {
    fn new(mix: &Mix) -> Gathered {
        let parts = mix.parts().into_iter().map(|workload| GatheredPart {
            workload,
            tps: Vec::new(),
            latencies: Latencies::of(workload),
            retries: 0,
        });
        Gathered {
            parts: parts.collect(),
            waits: Samples::new(),
            counted: Counters::default(),
        }
    }

    fn transactions(&self) -> u64 {
        self.parts.iter().map(|part| part.latencies.all.len()).sum()
    }
}

/// Runs a bench: opens and fills a database per variant, measures every point of the [schedule], checks the sums.
pub fn run_bench(options: &BenchOptions) -> Result<BenchResult> {
    options.check()?;
    let configs: Vec<VariantInfo> = options
        .variants
        .iter()
        .map(|variant| VariantInfo {
            name: variant.name.clone(),
            text: variant.text.map(Cow::Borrowed),
            config: options.config(variant),
        })
        .collect();
    let parameters = Parameters {
        scale: options.scale,
        warehouses: options
            .needs_tpcc()
            .then_some(options.sizes().population.warehouses),
        clients: options.clients.clone(),
        workloads: options
            .workloads
            .iter()
            .flat_map(|mix| mix.parts().into_iter().map(|part| mix.part_name(part)))
            .collect(),
        duration_s: options.duration.as_secs_f64(),
        warm_up_s: options.warm_up().as_secs_f64(),
        rounds: options.rounds,
        synchronous_commit: options.synchronous_commit,
        beside: options.beside,
    };
    let mut provenance = Provenance::now(
        options.command.clone(),
        options.seed,
        options.rounds,
        &(&parameters, &configs),
    );

    let temporary = match &options.data {
        Some(_) => None,
        None => Some(tempfile::tempdir().map_err(LabError::io(
            "creating a temporary directory in",
            &std::env::temp_dir(),
        ))?),
    };
    let root = match (&options.data, &temporary) {
        (Some(data), _) => data.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => std::env::temp_dir(),
    };
    let mut databases = Vec::new();
    for (variant, info) in options.variants.iter().zip(&configs) {
        let mut database = open(&root.join(&variant.directory), info, options)?;
        if variant.followed {
            database.source = Some(Source::serve(&database.engine)?);
        }
        databases.push(database);
    }
    let host = HostUse::now();
    let beside = Running::start(options.beside, options.other_program, &root)?;
    let gathered = measure(options, &mut databases)?;
    // When they have ended, what they used is this process's own.
    beside.stop()?;
    provenance.others_share = host.and_then(|before| HostUse::now()?.share_since(&before));
    let (mut balances, mut consistency) = (Vec::new(), Vec::new());
    for database in databases {
        let (of_pgbench, of_tpcc) = close(database)?;
        balances.extend(of_pgbench);
        consistency.extend(of_tpcc);
    }

    let mut result = BenchResult {
        format: FORMAT,
        provenance,
        parameters,
        varied: options.varied.clone(),
        variants: configs,
        cells: cells(options, &gathered),
        balances,
        consistency,
    };
    result.compare();
    Ok(result)
}

/// Opens a variant's database and fills it unless it is full already.
fn open(directory: &Path, variant: &VariantInfo, options: &BenchOptions) -> Result<Database> {
    std::fs::create_dir_all(directory).map_err(LabError::io("creating", directory))?;
    let engine = Engine::open(directory, variant.config.clone())
        .map_err(LabError::engine(format!("opening {}", directory.display())))?;
    let wanted = Wanted {
        pgbench: options.needs_pgbench(),
        tpcc: options.needs_tpcc(),
        sizes: options.sizes(),
        progress: options.progress,
    };
    let tables = Tables::load(&engine, directory, &variant.name, wanted)?;
    Ok(Database {
        name: variant.name.clone(),
        engine,
        source: None,
        tables,
    })
}

/// Measures every point, in the order of the schedule.
fn measure(options: &BenchOptions, databases: &mut [Database]) -> Result<Vec<Gathered>> {
    let (workloads, clients, variants) = (options.workloads.len(), options.clients.len(), databases.len());
    let mut gathered: Vec<Gathered> = (0..workloads * clients * variants)
        .map(|cell| Gathered::new(&options.workloads[cell / (clients * variants)]))
        .collect();
    let steps = schedule::interleaved(options.rounds, workloads, clients, variants);
    let bar = progress_bar(options.progress, steps.len() as u64, "{pos}/{len} points  {left}");
    for step in steps {
        let database = &mut databases[step.variant];
        let mix = &options.workloads[step.workload];
        bar.set_message(format!(
            "{} × {} {}",
            mix.name(),
            options.clients[step.clients],
            database.name
        ));
        // The variants of one step draw the same numbers.
        let place = (step.round * workloads + step.workload) * clients + step.clients;
        let follower = database.source.as_ref().map(Source::follow).transpose()?;
        let Measured {
            parts,
            waits,
            counted,
            acknowledged,
        } = run::run(Point {
            engine: &database.engine,
            variant: &database.name,
            mix,
            clients: options.clients[step.clients],
            sizes: options.sizes(),
            warm_up: options.warm_up(),
            duration: options.duration,
            seed: seed_of(options.seed, place as u64),
        })?;
        if let Some(follower) = follower {
            follower.caught_up()?;
        }
        database.tables.acknowledged += acknowledged;
        let cell = &mut gathered[(step.workload * clients + step.clients) * variants + step.variant];
        for (known, measured) in cell.parts.iter_mut().zip(parts) {
            known.tps.push(measured.tps);
            known.latencies.add(&measured.latencies);
            known.retries += measured.retries;
        }
        cell.counted += counted;
        for (event, count) in waits {
            *cell.waits.entry(event).or_default() += count;
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(gathered)
}

/// Checks a database's sums and closes it.
fn close(database: Database) -> Result<(Option<BalanceCheck>, Option<ConsistencyCheck>)> {
    let checks = database.tables.check(&database.engine, &database.name)?;
    match database.source {
        Some(source) => source.stop()?,
        None => database
            .engine
            .shutdown()
            .map_err(LabError::engine(format!("closing {}", database.name)))?,
    }
    Ok(checks)
}

fn cells(options: &BenchOptions, gathered: &[Gathered]) -> Vec<Cell> {
    let points = options.clients.len() * options.variants.len();
    let mut cells = Vec::new();
    for (mix, gathered) in options.workloads.iter().zip(gathered.chunks(points)) {
        for (place, part) in mix.parts().into_iter().enumerate() {
            let mut gathered = gathered.iter();
            for clients in &options.clients {
                for (variant, point) in options.variants.iter().zip(gathered.by_ref()) {
                    cells.push(cell(mix.part_name(part), *clients, &variant.name, point, place));
                }
            }
        }
    }
    cells
}

/// The cell of one part of a point.
fn cell(workload: String, clients: usize, variant: &str, point: &Gathered, part: usize) -> Cell {
    let part = &point.parts[part];
    Cell {
        workload,
        clients,
        variant: variant.to_owned(),
        tps: stats::median(&part.tps),
        tps_spread: stats::spread(&part.tps),
        tps_rounds: part.tps.clone(),
        ratio: None,
        ratio_bounds: None,
        ratio_spread: None,
        p50_us: percentile_us(&part.latencies.all, 0.5),
        p99_us: percentile_us(&part.latencies.all, 0.99),
        transactions: part.latencies.all.len(),
        kinds: part.latencies.kind_cells(part.workload),
        per_commit: point.counted.per_commit(point.transactions()),
        retries: part.retries,
        waits: shares(&point.waits),
    }
}

/// Counts as shares, most first.
fn shares(waits: &Samples) -> Vec<WaitShare> {
    let all: u64 = waits.values().sum();
    let mut shares: Vec<WaitShare> = waits
        .iter()
        .map(|(event, count)| WaitShare {
            event: event.clone(),
            share: *count as f64 / all.max(1) as f64,
        })
        .collect();
    shares.sort_by(|a, b| b.share.total_cmp(&a.share));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(presets: &[&str], settings: &[&str]) -> Vec<String> {
        let own = |list: &[&str]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let variants = Variant::choose(&own(presets), &own(settings)).unwrap();
        variants.into_iter().map(|variant| variant.name).collect()
    }

    #[test]
    fn what_is_compared() {
        assert_eq!(names(&[], &[]), ["classic", "clearway"]);
        assert_eq!(
            names(&[], &["lwlock=queued"]),
            ["clearway", "clearway+lwlock=queued"]
        );
        assert_eq!(names(&["classic"], &[]), ["classic"]);
        assert_eq!(names(&["clearway", "clearway"], &[]), ["clearway"]);
        assert_eq!(
            names(&["classic"], &["lwlock=single-cas"]),
            ["classic+lwlock=single-cas"]
        );
    }

    #[test]
    fn a_switch_of_standbys_is_not_varied_in_a_bench() {
        for switch in ["known_xids", "known_xids_compaction", "replay"] {
            let error = Variant::vary(switch, &[], &[]).unwrap_err().to_string();
            assert!(error.contains("a bench has none"), "{error}");
            assert!(error.contains("use scripts/standby-"), "{error}");
        }
    }

    #[test]
    fn a_varied_switch_has_all_its_variants_and_everything_else_equal() {
        let setting = ["lwlock=queued-scan".to_owned()];
        let (switch, variants) = Variant::vary("log_flush", &["classic".to_owned()], &setting).unwrap();
        assert_eq!(switch.name, "log_flush");
        let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
        let described = Mechanisms::switch("log_flush").unwrap();
        let all: Vec<&str> = described.variants.iter().map(|variant| variant.name).collect();
        assert_eq!(names, all);
        for variant in &variants {
            assert_eq!(variant.directory, format!("log_flush={}", variant.name));
            let mut mechanisms = variant.mechanisms;
            assert!(mechanisms.list().contains(&("log_flush", &*variant.name)));
            mechanisms.set("log_flush=single").unwrap();
            mechanisms.set("lwlock=queued").unwrap();
            assert_eq!(mechanisms, Mechanisms::CLASSIC);
        }
        let (_, of_the_default) = Variant::vary("log_flush", &[], &[]).unwrap();
        assert!(
            of_the_default
                .iter()
                .any(|variant| variant.mechanisms == Mechanisms::CLEARWAY)
        );
    }

    #[test]
    fn a_switch_that_cannot_be_varied_is_refused() {
        let own = |list: &[&str]| list.iter().map(|text| text.to_string()).collect::<Vec<_>>();
        let refused = |switch: &str, presets: &[&str], settings: &[&str]| {
            let error = Variant::vary(switch, &own(presets), &own(settings)).unwrap_err();
            error.to_string()
        };
        let unknown = refused("log_flash", &[], &[]);
        assert!(unknown.contains("did you mean log_flush?"), "{unknown}");
        let unknown = refused("carburettor", &[], &[]);
        for switch in Mechanisms::SWITCHES {
            assert!(unknown.contains(switch.name), "{unknown}");
            if let [only] = switch.variants {
                let alone = refused(switch.name, &[], &[]);
                assert!(
                    alone.contains(switch.name) && alone.contains(only.name),
                    "{alone}"
                );
            }
        }
        assert!(refused("log_flush", &["classic", "clearway"], &[]).contains("--preset"));
        assert!(refused("log_flush", &[], &["log_flush=group"]).contains("--set log_flush"));
        assert!(refused("log_flush", &["fast"], &[]).contains("classic, clearway"));
    }

    #[test]
    fn a_wrong_preset_gets_the_list() {
        let error = Variant::choose(&["fast".to_owned()], &[])
            .unwrap_err()
            .to_string();
        assert!(error.contains("classic, clearway"), "{error}");
    }

    #[test]
    fn shares_add_up_to_one() {
        let waits = Samples::from([("a".to_owned(), 1), ("b".to_owned(), 3)]);
        let shares = shares(&waits);
        assert_eq!(
            shares[0],
            WaitShare {
                event: "b".to_owned(),
                share: 0.75
            }
        );
        assert_eq!(shares.iter().map(|wait| wait.share).sum::<f64>(), 1.0);
    }
}
