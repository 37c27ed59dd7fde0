//! One point: a simulation of so many clients on one variant, and what is measured of it.

use std::cell::RefCell;
use std::rc::Rc;

use clearway_sim::{Account, Activity, MachineModel, Report, Simulation, account_so_far, clock_ns};
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::error::{LabError, Result};
use crate::run::latency_histogram;
use crate::simulate::experiment::{Experiment, Variant, WorkloadKind};
use crate::simulate::{latch_mix, pgbench};

/// Steps after which a point is given up as a livelock.
const STEPS_MAX: u64 = 20_000_000_000;

/// A part of the CPUs' time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// What for.
    pub activity: &'static str,
    /// 0 to 1.
    pub share: f64,
}

/// What came out at one point.
#[derive(Debug, Clone, Serialize)]
pub struct Point {
    /// How many clients.
    pub clients: usize,
    /// The variant's name.
    pub variant: String,
    /// Transactions (or acquisitions) a simulated second.
    pub tps: f64,
    /// How many were counted.
    pub transactions: u64,
    /// Half of them took at most so long, µs.
    pub p50_us: f64,
    /// 99 % of them took at most so long, µs.
    pub p99_us: f64,
    /// Where the CPUs' time went in the measured window.
    pub shares: Vec<Share>,
    /// Sleeps and cache lines over the whole run.
    pub report: Report,
}

/// What all clients of a point report to.
#[derive(Debug)]
pub(crate) struct Meter {
    from_ns: u64,
    to_ns: u64,
    state: RefCell<MeterState>,
}

#[derive(Debug)]
struct MeterState {
    latency: Histogram<u64>,
    at_start: Option<Account>,
    at_end: Option<Account>,
}

impl Meter {
    /// Whether another transaction should begin.
    pub(crate) fn goes_on(&self) -> bool {
        clock_ns() < self.to_ns
    }

    /// A transaction that began at `began_ns` has ended now.
    pub(crate) fn done(&self, began_ns: u64) {
        let now = clock_ns();
        let state = &mut *self.state.borrow_mut();
        if now >= self.from_ns && state.at_start.is_none() {
            state.at_start = Some(account_so_far());
        }
        if (self.from_ns..self.to_ns).contains(&now) {
            state.latency.saturating_record(now - began_ns);
        } else if now >= self.to_ns && state.at_end.is_none() {
            state.at_end = Some(account_so_far());
        }
    }
}

/// What is written beside the point.
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
    let mut simulation = Simulation::new(model, clients.max(1), seed);
    simulation.set_step_budget(STEPS_MAX);
    if let Some(window) = trace {
        simulation.trace(window.from_ns, window.to_ns);
    }
    let from_ns = experiment.warm_up_ms * 1_000_000;
    let to_ns = from_ns + experiment.measure_ms * 1_000_000;
    let meter = Rc::new(Meter {
        from_ns,
        to_ns,
        state: RefCell::new(MeterState {
            latency: latency_histogram(),
            at_start: None,
            at_end: None,
        }),
    });
    match experiment.workload {
        WorkloadKind::SimpleUpdate | WorkloadKind::TpcbLike => {
            pgbench::spawn(&mut simulation, experiment, variant, clients, &meter);
        }
        WorkloadKind::LatchMix => latch_mix::spawn(&mut simulation, experiment, variant, clients, &meter),
    }
    let report = simulation.run().map_err(|source| LabError::Simulation {
        what: format!("{} with {clients} clients of {}", experiment.name, variant.name),
        source,
    })?;
    let trace = simulation.take_trace();
    let state = meter.state.borrow();
    let window = match (&state.at_start, &state.at_end) {
        (Some(start), Some(end)) => end.since(start),
        _ => report.account,
    };
    let point = Point {
        clients,
        variant: variant.name.clone(),
        tps: state.latency.len() as f64 * 1e3 / experiment.measure_ms as f64,
        transactions: state.latency.len(),
        p50_us: state.latency.value_at_quantile(0.5) as f64 / 1e3,
        p99_us: state.latency.value_at_quantile(0.99) as f64 / 1e3,
        shares: Activity::ALL
            .iter()
            .map(|activity| Share {
                activity: activity.name(),
                share: window.share(*activity),
            })
            .collect(),
        report,
    };
    Ok((point, trace))
}
