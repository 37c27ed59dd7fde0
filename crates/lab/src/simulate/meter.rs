//! Measurements of one point: latencies, and the CPUs' time in the measured window.

use std::cell::{Ref, RefCell};
use std::ops::Range;
use std::rc::Rc;

use clearway_sim::{Account, account_so_far, begin_line_account, clock_ns};
use hdrhistogram::Histogram;

use crate::latencies::latency_histogram;

/// The meter that all clients of a point report to.
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
    /// Counts the transactions that end in this window of simulated time.
    pub(crate) fn new(from_ns: u64, to_ns: u64) -> Self {
        Self {
            from_ns,
            to_ns,
            state: RefCell::new(MeterState {
                latency: latency_histogram(),
                at_start: None,
                at_end: None,
            }),
        }
    }

    /// Another one for the same window.
    pub(crate) fn like(&self) -> Rc<Self> {
        Rc::new(Self::new(self.from_ns, self.to_ns))
    }

    /// True if another transaction should begin.
    pub(crate) fn goes_on(&self) -> bool {
        clock_ns() < self.to_ns
    }

    /// The window, simulated time.
    pub(crate) fn window_ns(&self) -> Range<u64> {
        self.from_ns..self.to_ns
    }

    /// A transaction that began at `began_ns` has ended now; whether it counts.
    pub(crate) fn done(&self, began_ns: u64) -> bool {
        let now = clock_ns();
        let state = &mut *self.state.borrow_mut();
        if now >= self.from_ns && state.at_start.is_none() {
            state.at_start = Some(account_so_far());
            begin_line_account();
        }
        let counts = (self.from_ns..self.to_ns).contains(&now);
        if counts {
            state.latency.saturating_record(now - began_ns);
        } else if now >= self.to_ns && state.at_end.is_none() {
            state.at_end = Some(account_so_far());
        }
        counts
    }

    /// The part of the time from `began_ns` to `ended_ns` that lies in the window, 0 to 1.
    pub(crate) fn part_in_window(&self, began_ns: u64, ended_ns: u64) -> f64 {
        let (from, to) = (began_ns.max(self.from_ns), ended_ns.min(self.to_ns));
        to.saturating_sub(from) as f64 / (ended_ns - began_ns).max(1) as f64
    }

    /// Latencies of the counted transactions, nanoseconds.
    pub(crate) fn latency(&self) -> Ref<'_, Histogram<u64>> {
        Ref::map(self.state.borrow(), |state| &state.latency)
    }

    /// The CPUs' time in the window; `None` if no transaction has ended after it.
    pub(crate) fn window(&self) -> Option<Account> {
        let state = self.state.borrow();
        Some(state.at_end.as_ref()?.since(state.at_start.as_ref()?))
    }
}
