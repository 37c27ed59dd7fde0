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
    /// Pages that it used and log that it wrote, and what is below it.
    pub pages: PageCounters,
}

/// The counts of pages, and of log.
#[derive(Debug, Default)]
pub struct PageCounters {
    /// Found in memory.
    pub hit: AtomicU64,
    /// Read from their files.
    pub read: AtomicU64,
    /// Changed for the first time since they were written.
    pub dirtied: AtomicU64,
    /// Written to their files.
    pub written: AtomicU64,
    /// Blocks of temporary files that were read.
    pub temporary_read: AtomicU64,
    /// Blocks of temporary files that were written.
    pub temporary_written: AtomicU64,
    /// Records that were written to the log,
    pub log_records: AtomicU64,
    /// whole pages in them,
    pub log_images: AtomicU64,
    /// and their bytes.
    pub log_bytes: AtomicU64,
}

impl PageCounters {
    /// All counts, in the order in which they are shown.
    pub(crate) fn all(&self) -> [&AtomicU64; 9] {
        [
            &self.hit,
            &self.read,
            &self.dirtied,
            &self.written,
            &self.temporary_read,
            &self.temporary_written,
            &self.log_records,
            &self.log_images,
            &self.log_bytes,
        ]
    }
}

/// The subject of a measurement beside rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// Time.
    pub timing: bool,
    /// Pages.
    pub buffers: bool,
    /// The log that is written.
    pub wal: bool,
}

impl Measured {
    /// True if pages or log are counted.
    pub fn counts_work(self) -> bool {
        self.buffers || self.wal
    }
}

impl Counter {
    /// Adds to one of the counts.
    pub fn add(count: &AtomicU64, number: u64) {
        // One thread writes it.
        count.store(Counter::get(count).wrapping_add(number), Ordering::Relaxed);
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
            .chain(self.pages.all())
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
    /// The subject of the measurement beside rows.
    pub what: Measured,
}
