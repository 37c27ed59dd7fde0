//! Measurements of TPC-C beside its throughput.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use clearway_sim::{Activity, Report, clock_ns, cpu_time_so_far, line_waits_so_far};
use clearway_txn::PROC_ARRAY_LATCH_TIME;
use serde::{Deserialize, Serialize};

use super::LATCH;
use crate::simulate::meter::Meter;
use crate::workload::tpcc::Kind;

/// The results of a simulated TPC-C, in the measured window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TpccFigures {
    /// New-orders, a simulated minute.
    pub new_orders_per_minute: f64,
    /// Transactions of each kind, in the order of [`Kind::ALL`].
    pub kinds: [u64; 5],
    /// Snapshots, a transaction.
    pub snapshots: f64,
    /// Of snapshots and ends of transactions with an xid, the snapshots. Under `snapshot = scan` and `proc_clear = single`
    /// that is the part of the acquisitions of the ProcArray latch that are shared.
    pub shared_share: f64,
    /// CPU time that waited for the cache lines of the ProcArray latch or polled them, of the CPU time that was not idle.
    pub latch_share: f64,
    /// CPU time in the functions that acquire and release the ProcArray latch, of the CPU time that was not idle: hits and
    /// atomic instructions, waiting for any line, polls, calls that sleep and wake others, and the switch back to a worker
    /// that slept there.
    #[serde(default)]
    pub acquire_release_share: f64,
}

/// The outcome of one transaction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Done {
    pub(super) kind: Kind,
    pub(super) snapshots: u64,
    pub(super) has_xid: bool,
}

/// The counts that all clients report to.
#[derive(Debug)]
pub(crate) struct Tally {
    meter: Rc<Meter>,
    kinds: RefCell<[u64; 5]>,
    snapshots: Cell<u64>,
    ends: Cell<u64>,
    /// The readings at the start and at the end of the window.
    at_start: Cell<Option<LatchTimes>>,
    at_end: Cell<Option<LatchTimes>>,
}

/// Time at the ProcArray latch until some instant, ns.
#[derive(Debug, Clone, Copy)]
struct LatchTimes {
    /// Waits for its lines, and polls of them.
    waits: u64,
    /// In its functions.
    acquire_release: u64,
}

impl LatchTimes {
    fn so_far() -> Self {
        Self {
            waits: line_waits_so_far(LATCH),
            acquire_release: cpu_time_so_far(PROC_ARRAY_LATCH_TIME),
        }
    }

    fn of(report: &Report) -> Self {
        let lines = report.lines.iter().find(|lines| lines.name == LATCH);
        let mut times = report.cpu_times.iter();
        let time = times.find(|time| time.name == PROC_ARRAY_LATCH_TIME);
        Self {
            waits: lines.map_or(0, |lines| lines.transfer_ns + lines.queue_ns + lines.spin_ns),
            acquire_release: time.map_or(0, |time| time.total_ns),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            waits: self.waits - before.waits,
            acquire_release: self.acquire_release.saturating_sub(before.acquire_release),
        }
    }
}

impl Tally {
    pub(super) fn within(meter: Rc<Meter>) -> Rc<Self> {
        Rc::new(Self {
            meter,
            kinds: RefCell::default(),
            snapshots: Cell::default(),
            ends: Cell::default(),
            at_start: Cell::default(),
            at_end: Cell::default(),
        })
    }

    /// A transaction that began at `began_ns` has ended now.
    pub(super) fn done(&self, began_ns: u64, done: Done) {
        // Notes the CPUs' time at the same transactions.
        let counted = self.meter.done(began_ns);
        let (now, window) = (clock_ns(), self.meter.window_ns());
        if self.at_start.get().is_none() && now >= window.start {
            self.at_start.set(Some(LatchTimes::so_far()));
        }
        if self.at_end.get().is_none() && now >= window.end {
            self.at_end.set(Some(LatchTimes::so_far()));
        }
        if counted {
            self.kinds.borrow_mut()[done.kind as usize] += 1;
            self.snapshots.set(self.snapshots.get() + done.snapshots);
            self.ends.set(self.ends.get() + u64::from(done.has_xid));
        }
    }

    pub(crate) fn figures(&self, measure_ms: u64, report: &Report) -> TpccFigures {
        let kinds = *self.kinds.borrow();
        let (snapshots, ends) = (self.snapshots.get() as f64, self.ends.get() as f64);
        let account = self.meter.window().unwrap_or(report.account);
        let busy_ns = (account.total() - account.picoseconds(Activity::Idle)) as f64 / 1e3;
        let times = match (self.at_start.get(), self.at_end.get()) {
            (Some(start), Some(end)) => end.since(start),
            _ => LatchTimes::of(report),
        };
        let share = |nanoseconds: u64| nanoseconds as f64 / busy_ns.max(1.0);
        TpccFigures {
            new_orders_per_minute: kinds[Kind::NewOrder as usize] as f64 * 60e3 / measure_ms as f64,
            kinds,
            snapshots: snapshots / (kinds.iter().sum::<u64>() as f64).max(1.0),
            shared_share: snapshots / (snapshots + ends).max(1.0),
            latch_share: share(times.waits),
            acquire_release_share: share(times.acquire_release),
        }
    }
}
