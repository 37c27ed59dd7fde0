//! Counts of the log as a whole (`pg_stat_wal`).
//!
//! Records, bytes and writes are counted by the worker that writes the log out, one at a time; the others are rare. So no
//! insertion pays for them. The counts order nothing, and are no part of what a checker explores.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counts, as they are kept.
#[derive(Debug, Default)]
pub(super) struct LogStatistics {
    records: AtomicU64,
    bytes: AtomicU64,
    writes: AtomicU64,
    images: AtomicU64,
    full: AtomicU64,
}

/// Counts of a log since it was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogTotals {
    /// Records that were written out.
    pub records: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Whole pages in records, of changes.
    pub images: u64,
    /// Times that a record found the ring full, and its worker wrote the log out.
    pub full: u64,
    /// Times that log was written out.
    pub writes: u64,
    /// Times that it was made durable.
    pub syncs: u64,
}

impl LogStatistics {
    /// The caller, who alone writes the log at the time, has written so many records.
    pub(super) fn wrote(&self, records: u64, bytes: u64) {
        for (sum, more) in [(&self.records, records), (&self.bytes, bytes), (&self.writes, 1)] {
            sum.store(sum.load(Relaxed) + more, Relaxed);
        }
    }

    /// A change has logged so many whole pages.
    pub(super) fn logged_images(&self, images: u64) {
        self.images.fetch_add(images, Relaxed);
    }

    /// A record has found the ring full.
    pub(super) fn found_full(&self) {
        self.full.fetch_add(1, Relaxed);
    }

    /// The counts now.
    pub(super) fn totals(&self, syncs: u64) -> LogTotals {
        LogTotals {
            records: self.records.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            images: self.images.load(Relaxed),
            full: self.full.load(Relaxed),
            writes: self.writes.load(Relaxed),
            syncs,
        }
    }
}

impl LogTotals {
    /// The counts since an earlier reading.
    #[must_use]
    pub fn since(self, before: LogTotals) -> LogTotals {
        LogTotals {
            records: self.records.saturating_sub(before.records),
            bytes: self.bytes.saturating_sub(before.bytes),
            images: self.images.saturating_sub(before.images),
            full: self.full.saturating_sub(before.full),
            writes: self.writes.saturating_sub(before.writes),
            syncs: self.syncs.saturating_sub(before.syncs),
        }
    }
}
