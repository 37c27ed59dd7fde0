//! One point: a simulation of a number of clients on one variant, and its measurements.

use std::borrow::Cow;
use std::rc::Rc;

use clearway_sim::{Activity, MachineModel, Report, Simulation};
use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use crate::simulate::experiment::{Experiment, Variant, WorkloadKind};
use crate::simulate::hot_parent::HotParentFigures;
use crate::simulate::meter::Meter;
use crate::simulate::replay::ReplayFigures;
use crate::simulate::standby::StandbyFigures;
use crate::simulate::tpcc::TpccFigures;
use crate::simulate::{
    busy_loops, hot_parent, latch_mix, pgbench, point_select, reads, replay, standby, tpcc,
};

/// Steps after which a point is given up as a livelock.
const STEPS_MAX: u64 = 20_000_000_000;

/// A part of the CPUs' time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The activity that took it.
    pub activity: Cow<'static, str>,
    /// 0 to 1.
    pub share: f64,
}

/// The result of one point.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// Number of clients.
    pub clients: usize,
    /// The variant's name.
    pub variant: String,
    /// Seed of its random numbers.
    pub seed: u64,
    /// Transactions (or acquisitions) a simulated second.
    pub tps: f64,
    /// Number of counted transactions.
    pub transactions: u64,
    /// Median latency, µs.
    pub p50_us: f64,
    /// 99th percentile of the latency, µs.
    pub p99_us: f64,
    /// CPU time of a transaction (or acquisition) in the measured window, µs: that of the server and of the client, without
    /// idle time and other programs.
    pub cpu_us: f64,
    /// Shares of the CPUs' time in the measured window, by activity.
    pub shares: Vec<Share>,
    /// Accesses a transaction that change a cache line which several sessions used, from the end of the warm-up on.
    pub shared_changes: f64,
    /// Of a standby: what replay reached, and what snapshots took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<StandbyFigures>,
    /// Of replay by several workers: how their time is spent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayFigures>,
    /// Of TPC-C: its own throughput, and what it does at the ProcArray latch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpcc: Option<TpccFigures>,
    /// Of a hot parent: how many share it, and the time that it takes to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_parent: Option<HotParentFigures>,
    /// Sleeps and cache lines over the whole run.
    pub report: Report,
}

/// The window of the trace that is written beside the point.
pub(crate) struct TraceWindow {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
}

/// Runs one point.
pub(crate) fn run_point(
    model: &MachineModel,
    experiment: &Experiment,
    variant: &Variant,
    clients: usize,
    seed: u64,
    trace: Option<TraceWindow>,
) -> Result<(Point, Option<clearway_sim::Trace>)> {
    let workers = clients + experiment.background_workers();
    let mut simulation = Simulation::new(model, workers.max(1), seed);
    simulation.set_step_budget(STEPS_MAX);
    if let Some(window) = trace {
        simulation.trace(window.from_ns, window.to_ns);
    }
    let from_ns = experiment.warm_up_ns(variant);
    let to_ns = from_ns + experiment.measure_ms * 1_000_000;
    let meter = Rc::new(Meter::new(from_ns, to_ns));
    let mut tally = None;
    let mut tpcc_tally = None;
    let mut parent_tally = None;
    match experiment.workload {
        WorkloadKind::PointSelect if variant.work_alone => {
            point_select::spawn_work_alone(&mut simulation, experiment, clients, &meter);
        }
        WorkloadKind::PointSelect => {
            let transaction = point_select::transaction;
            pgbench::spawn(&mut simulation, experiment, variant, clients, &meter, transaction);
        }
        WorkloadKind::SimpleUpdate | WorkloadKind::TpcbLike | WorkloadKind::Mixed => {
            let transaction = pgbench::Session::transaction;
            pgbench::spawn(&mut simulation, experiment, variant, clients, &meter, transaction);
        }
        WorkloadKind::Tpcc => {
            tpcc_tally = Some(tpcc::spawn(&mut simulation, experiment, variant, clients, &meter));
        }
        WorkloadKind::HotParent => {
            parent_tally = Some(hot_parent::spawn(
                &mut simulation,
                experiment,
                variant,
                clients,
                &meter,
            ));
        }
        WorkloadKind::ReadNotInBuffers => reads::spawn(&mut simulation, experiment, variant, clients, &meter),
        WorkloadKind::StandbyLongTransaction => {
            tally = Some(standby::spawn(
                &mut simulation,
                experiment,
                variant,
                clients,
                &meter,
            ));
        }
        WorkloadKind::StandbyReplay => replay::spawn(&mut simulation, experiment, variant, clients, &meter),
        WorkloadKind::LatchMix => latch_mix::spawn(&mut simulation, experiment, variant, clients, &meter),
    }
    busy_loops::spawn(&mut simulation, experiment.busy_loops(), &meter);
    let report = simulation.run().map_err(|source| LabError::Simulation {
        what: format!("{} with {clients} clients of {}", experiment.name, variant.name),
        source,
    })?;
    let trace = simulation.take_trace();
    let latency = meter.latency();
    let window = meter.window().unwrap_or(report.account);
    let not_its_own = window.picoseconds(Activity::Idle) + window.picoseconds(Activity::OtherPrograms);
    let cpu_us = (window.total() - not_its_own) as f64 / 1e6 / latency.len().max(1) as f64;
    let shared_changes: u64 = report.lines.iter().map(|lines| lines.shared_changes).sum();
    let point = Point {
        clients,
        variant: variant.name.clone(),
        seed,
        tps: latency.len() as f64 * 1e3 / experiment.measure_ms as f64,
        transactions: latency.len(),
        p50_us: latency.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: latency.value_at_quantile(0.99) as f64 / 1e3,
        cpu_us,
        shares: Activity::ALL
            .into_iter()
            .filter(|activity| *activity != Activity::OtherPrograms || experiment.busy_loops() > 0)
            .map(|activity| Share {
                activity: Cow::Borrowed(activity.name()),
                share: window.share(activity),
            })
            .collect(),
        shared_changes: shared_changes as f64 / latency.len().max(1) as f64,
        replay: (experiment.workload == WorkloadKind::StandbyReplay)
            .then(|| ReplayFigures::of(&report, clients, to_ns)),
        tpcc: tpcc_tally.map(|tally| tally.figures(experiment.measure_ms, &report)),
        hot_parent: parent_tally.map(|tally| tally.figures()),
        standby: tally.map(|tally| tally.figures(experiment.measure_ms)),
        report,
    };
    Ok((point, trace))
}
