//! Measuring operators of a plan (EXPLAIN ANALYZE).
//!
//! The plan of such a statement has counters (`clearway_sql::plan::Counter`), and operators of their own that fill them; a
//! plan without them has nothing to ask. Times include those of the operators below; rows that a condition has taken away
//! and pages include theirs too.

use std::time::Instant;

use clearway_storage::PageCounts;
use clearway_storage::wal::LogCounts;

use crate::executor::Execution;
use crate::spill::BlockCounts;
use clearway_sql::plan::{Counter, Measured, PageCounters};

/// Pages and blocks that the calling thread has used, and log that it has written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Used {
    pages: PageCounts,
    temporary: BlockCounts,
    log: LogCounts,
}

impl Used {
    /// Those since the thread began.
    pub(crate) fn now() -> Used {
        Used {
            pages: PageCounts::of_thread(),
            temporary: BlockCounts::of_thread(),
            log: LogCounts::of_thread(),
        }
    }

    /// Adds what was used since then.
    pub(crate) fn add_to(self, counters: &PageCounters) {
        let now = Used::now();
        let pages = now.pages.since(self.pages);
        let temporary = now.temporary.since(self.temporary);
        Counter::add(&counters.hit, pages.hit);
        Counter::add(&counters.read, pages.read);
        Counter::add(&counters.dirtied, pages.dirtied);
        Counter::add(&counters.written, pages.written);
        Counter::add(&counters.temporary_read, temporary.read);
        Counter::add(&counters.temporary_written, temporary.written);
        let log = now.log.since(self.log);
        Counter::add(&counters.log_records, log.records);
        Counter::add(&counters.log_images, log.images);
        Counter::add(&counters.log_bytes, log.bytes);
    }
}

/// A stretch of an operator's work.
#[derive(Debug)]
pub(crate) struct Stretch {
    started: Option<Instant>,
    used: Option<Used>,
    removed: u32,
}

impl Stretch {
    /// Begins; the clock and the counts of pages are read if they are wanted.
    pub(crate) fn begin(execution: &Execution<'_>, what: Measured) -> Stretch {
        Stretch {
            started: what.timing.then(Instant::now),
            used: what.counts_work().then(Used::now),
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
        if let Some(used) = self.used {
            used.add_to(&counter.pages);
        }
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
