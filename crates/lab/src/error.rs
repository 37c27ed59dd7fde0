//! Reasons why a bench could not run, or must not be believed.

use std::path::PathBuf;

use clearway_engine::EngineError;
use clearway_engine::mechanisms::MechanismError;

/// A result of this crate.
pub type Result<T, E = LabError> = std::result::Result<T, E>;

/// The reason why a bench could not run, or must not be believed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A name that does not exist, with those that do.
    #[error("there is no {what} \"{name}\"; available: {available}")]
    UnknownName {
        /// The kind of the thing that was named.
        what: &'static str,
        /// The name.
        name: String,
        /// The names there are.
        available: String,
    },
    /// A latch of the program's own with a name that cannot be written everywhere.
    #[error(
        "a latch cannot have the name \"{name}\": use lower-case letters, digits, - and _, as in \"ticket-2\""
    )]
    BadLatchName {
        /// The name.
        name: String,
    },
    /// A latch of the program's own with the name of another.
    #[error("there is a latch \"{name}\" already: choose another name")]
    LatchNameTaken {
        /// The name.
        name: String,
    },
    /// A shard of an experiment that has fewer pieces.
    #[error(
        "shard {shard} has nothing to run: the experiment has {pieces} points and changes; use that many shards at most"
    )]
    EmptyShard {
        /// The shard.
        shard: String,
        /// Number of pieces.
        pieces: usize,
    },
    /// A report of no results.
    #[error("no result is given: name the directories that `--out` wrote")]
    NothingToReport,
    /// A result that is none of the same whole as the others.
    #[error("{}: {why}", .directory.display())]
    NotOneResult {
        /// The result's directory.
        directory: PathBuf,
        /// The reason.
        why: String,
    },
    /// A file that is no result of this version.
    #[error("{} is no result that this version can read: {why}", .path.display())]
    NotAResult {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: String,
    },
    /// A number that cannot work.
    #[error("{what} is {value}, but must be {must}")]
    BadNumber {
        /// The option.
        what: &'static str,
        /// Its value.
        value: String,
        /// The values that it may have.
        must: &'static str,
    },
    /// The follower of a bench's database does not follow.
    #[error("the follower: {0}")]
    Follower(String),
    /// The server that a follower asks does not work.
    #[error("the server that the follower asks: {0}")]
    Server(#[from] clearway_server::ServerError),
    /// The server that is measured, or the connection to it.
    #[error(transparent)]
    Measured(#[from] clearway_server::replication::receiver::ReceiverError),
    /// A wrong preset or switch.
    #[error(transparent)]
    Mechanism(#[from] MechanismError),
    /// A switch to be varied that has nothing to vary.
    #[error("{switch} has one variant, {variant}: nothing to compare; see `clearway mechanisms`")]
    OneVariant {
        /// The switch.
        switch: &'static str,
        /// Its variant.
        variant: &'static str,
    },
    /// Several presets to vary a switch under.
    #[error("--vary compares the variants of one switch under one preset; name one with --preset")]
    SeveralPresets,
    /// A switch that is both varied and set.
    #[error("--vary {switch} runs every variant, so --set {switch} has no meaning beside it")]
    SetAndVaried {
        /// The switch.
        switch: &'static str,
    },
    /// A comparison of slices on a kernel that has one for all threads.
    #[error(
        "this kernel has one time slice for all threads (Linux 6.12 and later let a thread choose): --vary time_slice \
         has nothing to compare"
    )]
    OneTimeSlice,
    /// A switch that has no part in a bench's single server.
    #[error("{switch} works on a standby, and a bench has none: --vary has nothing to compare; use {script}")]
    StandbysSwitch {
        /// The switch.
        switch: &'static str,
        /// The script that compares its variants.
        script: &'static str,
    },
    /// A program that was to run beside a bench does not run.
    #[error("a program beside the bench: {0}")]
    OtherProgram(std::io::Error),
    /// The engine refused something.
    #[error("{what}: {source}")]
    Engine {
        /// The attempted operation.
        what: String,
        /// The engine's error.
        source: EngineError,
    },
    /// The operating system refused something.
    #[error("{what} {}: {source}", .path.display())]
    Io {
        /// The attempted operation.
        what: &'static str,
        /// On which file.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The data directory holds tables of another scale.
    #[error("{} holds pgbench tables of scale {found}, but scale {wanted} was asked for; name another directory", .path.display())]
    OtherScale {
        /// The directory.
        path: PathBuf,
        /// The scale found.
        found: i64,
        /// The scale asked for.
        wanted: u32,
    },
    /// The data directory holds TPC-C tables of another size.
    #[error(
        "{} holds TPC-C tables of --warehouses {found} (0 if loading was interrupted), but --warehouses {wanted} was \
         asked for; name another directory",
        .path.display()
    )]
    OtherWarehouses {
        /// The directory.
        path: PathBuf,
        /// The warehouses found; 0 where loading was interrupted.
        found: i64,
        /// The warehouses asked for.
        wanted: u32,
    },
    /// An option of a workload that is not run.
    #[error(
        "{option} is for the workload {workload}, which is not among those to run: add --workload {workload}"
    )]
    WithoutWorkload {
        /// The option.
        option: &'static str,
        /// The workload that it is for.
        workload: &'static str,
    },
    /// TPC-C's tables are not what its transactions and the acknowledgements make them.
    #[error("TPC-C's tables of {variant} are not consistent: {what}")]
    Inconsistent {
        /// Whose database.
        variant: String,
        /// The conditions that do not hold, and where.
        what: String,
    },
    /// The sums after the run are not what the acknowledged transactions make them.
    #[error("the balances of {variant} do not add up: {what}")]
    Unbalanced {
        /// Whose database.
        variant: String,
        /// The difference.
        what: String,
    },
    /// A latch let two in that exclude each other.
    #[error("{latch} does not exclude: {what}")]
    Torn {
        /// The latch's name.
        latch: String,
        /// The values that were seen.
        what: String,
    },
    /// A client thread panicked.
    #[error("a client thread of {variant} panicked; its message is above")]
    ClientPanicked {
        /// Whose client.
        variant: String,
    },
    /// An experiment file that is none.
    #[error("{path}: {message}")]
    ExperimentFile {
        /// The file.
        path: String,
        /// The fault, with its line.
        message: String,
    },
    /// A tool's text from which no machine can be made.
    #[error("{}:{line}: {message}", .path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The fault.
        message: String,
    },
    /// A setting that is none.
    #[error("{message}")]
    Setting {
        /// The fault, and the choices.
        message: String,
    },
    /// A machine's description cannot be used.
    #[error(transparent)]
    Machine(#[from] clearway_sim::ModelError),
    /// Too few of a calibration's measurements were undisturbed.
    #[error(
        "this host is too busy to be calibrated: {undisturbed} of {wanted} measurements were undisturbed{}; end what runs \
         beside, and try again",
        .others_share.map_or_else(String::new, |share| format!(", and other programs used {:.0} % of the CPUs", share * 100.0))
    )]
    HostTooBusy {
        /// Measurements that count.
        undisturbed: usize,
        /// Measurements that were wanted.
        wanted: usize,
        /// The part of the CPUs that other programs used, 0 to 1.
        others_share: Option<f64>,
    },
    /// A simulation came to no end.
    #[error("{what}: {source}")]
    Simulation {
        /// The point.
        what: String,
        /// The cause.
        source: clearway_sim::SimulationError,
    },
    /// A point in which no transaction ended, so that nothing can be compared with it.
    #[error(
        "{what}: the preset ended no transaction in the measured time; measure longer, e.g. --set measure_ms=100"
    )]
    NothingMeasured {
        /// The point.
        what: String,
    },
    /// A plot could not be drawn.
    #[error("drawing a plot: {0}")]
    Plot(String),
}

impl LabError {
    pub(crate) fn engine(what: impl Into<String>) -> impl FnOnce(EngineError) -> LabError {
        let what = what.into();
        move |source| LabError::Engine { what, source }
    }

    pub(crate) fn io(what: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> LabError {
        let path = path.to_owned();
        move |source| LabError::Io { what, path, source }
    }
}
