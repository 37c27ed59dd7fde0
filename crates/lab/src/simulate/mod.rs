//! Experiments on the simulated machine.
//!
//! ```text
//!   experiment file (TOML) ──▶ clients × variants × seeds = points ──▶ a simulation each, on as many host threads as there are
//!                                                                 │ worker bodies: `pgbench`, `point_select`, `tpcc`, `reads`,
//!                                                                 │ `standby`, `replay`, `hot_parent`, `latch_mix`, and `busy_loops`
//!                                                                 │ of other programs
//!   table, result.json, report.html  ◀── throughput, latency, where the CPUs' time went, the hottest lines
//! ```
//!
//! The points of all seeds of one number of clients and variant are a cell ([`Cell`]): median, lowest and highest. An order
//! of variants is called one only if all seeds share it ([`Order`]).
//!
//! A point is one [`clearway_sim::Simulation`] and depends on nothing else, so that the table is the same however many
//! host threads compute it.

mod busy_loops;
mod calibrate;
mod change;
mod client;
mod cost;
mod experiment;
mod fold;
mod hot_parent;
mod import;
mod jams;
mod jobs;
mod latch_mix;
mod meter;
mod multixact;
mod of_its_time;
mod order;
mod pages;
mod pgbench;
mod point;
mod point_select;
mod reads;
mod replay;
mod report;
mod run;
mod seeds;
mod shard;
mod spread;
mod standby;
mod table;
mod this_host;
mod tpcc;
mod trust;

pub use crate::latches::catalogue::LatchFamily;
pub use crate::latches::simulated::SpinKind;
pub use calibrate::{Calibration, Placement, calibrate};
pub(crate) use change::{Change, changes};
pub use cost::{is_cost, set_costs};
pub use experiment::{
    Devices, EXPERIMENTS, Experiment, Parameters, Published, Variant, WorkloadKind, simulated_switches,
};
pub use hot_parent::HotParentFigures;
pub use import::{ImportedMachine, MachineTexts, import_machine};
pub use jams::{JAM_PREFIX, JAMS, Jam};
pub(crate) use jobs::{Job, run_jobs};
pub use multixact::MultixactForm;
pub use of_its_time::OfItsTime;
pub use order::{Group, Order, Verdict};
pub use point::{Point, Share};
pub use replay::ReplayFigures;
pub use report::{html, json};
pub use run::{SimulateOptions, SimulationResult, Sweep, run_experiment};
pub use seeds::Seeds;
pub use shard::Shard;
pub use spread::{Cell, Spread};
pub use standby::StandbyFigures;
pub(crate) use table::aligned;
pub use table::{overview, text};
pub use this_host::{HereCell, HereLine, HereLoop, HereOptions, HereResult, Summary, here_text, run_here};
pub use tpcc::TpccFigures;
