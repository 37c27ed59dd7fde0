//! Counters of a plan that is run to be measured (EXPLAIN ANALYZE).

use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of an operator. Written by one thread, the one that runs the statement.
#[derive(Debug, Default)]
pub struct Counter {
    /// The number of times that it was opened.
    pub loops: AtomicU64,
    /// Rows that it gave, of all loops.
    pub rows: AtomicU64,
    /// Rows that its condition took away, and the conditions of what is below it.
    pub removed: AtomicU64,
    /// Time until the first row, of all loops.
    pub startup_ns: AtomicU64,
    /// Time until the last row, of all loops.
    pub total_ns: AtomicU64,
}

impl Counter {
    /// Adds to one of the counts.
    pub fn add(count: &AtomicU64, number: u64) {
        count.fetch_add(number, Ordering::Relaxed);
    }

    /// Sets all counts to zero.
    pub(crate) fn reset(&self) {
        let all = [
            &self.loops,
            &self.rows,
            &self.removed,
            &self.startup_ns,
            &self.total_ns,
        ];
        all.into_iter()
            .for_each(|count| count.store(0, Ordering::Relaxed));
    }

    /// One of the counts.
    pub fn get(count: &AtomicU64) -> u64 {
        count.load(Ordering::Relaxed)
    }
}

/// The counters of a SELECT.
#[derive(Debug, Default)]
pub struct StageCounters {
    /// Of its source.
    pub source: Counter,
    /// Of grouping.
    pub aggregate: Counter,
    /// Of DISTINCT.
    pub distinct: Counter,
    /// Of sorting.
    pub sort: Counter,
    /// False if no clock is read.
    pub timing: bool,
}
