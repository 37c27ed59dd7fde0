//! Measuring operators of a plan (EXPLAIN ANALYZE).
//!
//! The plan of such a statement has counters (`clearway_sql::plan::Counter`), and operators of their own that fill them; a
//! plan without them has nothing to ask. Times include those of the operators below, rows that a condition has taken away
//! include theirs too.

use std::time::Instant;

use crate::executor::Execution;
use clearway_sql::plan::Counter;

/// A stretch of an operator's work.
#[derive(Debug)]
pub(crate) struct Stretch {
    started: Option<Instant>,
    removed: u32,
}

impl Stretch {
    /// Begins; the clock is read if `timing`.
    pub(crate) fn begin(execution: &Execution<'_>, timing: bool) -> Stretch {
        Stretch {
            started: timing.then(Instant::now),
            removed: execution.removed,
        }
    }

    /// Ends, and adds to the counter; the nanoseconds that it took.
    pub(crate) fn end(self, execution: &Execution<'_>, counter: &Counter) -> u64 {
        let removed = execution.removed.wrapping_sub(self.removed);
        Counter::add(&counter.removed, u64::from(removed));
        let ns = self
            .started
            .map_or(0, |started| started.elapsed().as_nanos() as u64);
        Counter::add(&counter.total_ns, ns);
        ns
    }
}

/// An operator's current loop.
#[derive(Debug, Default)]
pub(crate) struct Loop {
    spent_ns: u64,
    has_begun: bool,
}

impl Loop {
    /// The operator was opened.
    pub(crate) fn opened(counter: &Counter, ns: u64) -> Loop {
        Counter::add(&counter.loops, 1);
        Loop {
            spent_ns: ns,
            has_begun: false,
        }
    }

    /// The operator was asked for a row.
    pub(crate) fn asked(&mut self, counter: &Counter, ns: u64, found: bool) {
        Counter::add(&counter.rows, u64::from(found));
        self.spent_ns += ns;
        if !self.has_begun {
            self.has_begun = true;
            Counter::add(&counter.startup_ns, self.spent_ns);
        }
    }
}
