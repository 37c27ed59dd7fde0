//! Progress of a session's COPY, which others may read at any time (`pg_stat_progress_copy`).
//!
//! The session alone writes it, without a clock and without a lock. What is read need not be of one moment.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use clearway_sql::plan::CopyDirection;

/// No COPY runs.
const NONE: u32 = 0;
const FROM: u32 = 1;
const TO: u32 = 2;

/// The progress of the COPY that a session runs, if it runs one.
#[derive(Debug, Default)]
pub(crate) struct CopyProgress {
    direction: AtomicU32,
    relation: AtomicU32,
    bytes: AtomicU64,
    rows: AtomicU64,
}

/// A COPY that runs, as it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyShown {
    /// True for COPY FROM.
    pub(crate) is_from: bool,
    /// The table; 0 for that of a query.
    pub(crate) relation: u32,
    /// Bytes that came from the client, or went to it.
    pub(crate) bytes: u64,
    /// Rows that were taken, or sent.
    pub(crate) rows: u64,
}

/// A COPY is shown for as long as this lives.
#[must_use]
#[derive(Debug)]
pub(crate) struct RunningCopy<'a>(&'a CopyProgress);

impl Drop for RunningCopy<'_> {
    fn drop(&mut self) {
        self.0.direction.store(NONE, Ordering::Relaxed);
    }
}

impl RunningCopy<'_> {
    /// Adds bytes that have come or gone.
    #[inline]
    pub(crate) fn add_bytes(&self, more: usize) {
        let bytes = self.0.bytes.load(Ordering::Relaxed);
        self.0.bytes.store(bytes + more as u64, Ordering::Relaxed);
    }

    /// Sets the number of rows that have been taken or sent.
    #[inline]
    pub(crate) fn set_rows(&self, rows: u64) {
        self.0.rows.store(rows, Ordering::Relaxed);
    }
}

impl CopyProgress {
    /// A COPY begins.
    pub(crate) fn begin(&self, direction: CopyDirection, relation: u32) -> RunningCopy<'_> {
        self.relation.store(relation, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        self.rows.store(0, Ordering::Relaxed);
        let direction = match direction {
            CopyDirection::FromStdin => FROM,
            CopyDirection::ToStdout => TO,
        };
        // Release: pairs with the Acquire in `shown`, so that what is shown is not of the COPY before.
        self.direction.store(direction, Ordering::Release);
        RunningCopy(self)
    }

    /// The COPY that runs.
    pub(crate) fn shown(&self) -> Option<CopyShown> {
        let direction = self.direction.load(Ordering::Acquire);
        (direction != NONE).then(|| CopyShown {
            is_from: direction == FROM,
            relation: self.relation.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            rows: self.rows.load(Ordering::Relaxed),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_shown_from_its_beginning_to_its_end() {
        let progress = CopyProgress::default();
        assert_eq!(progress.shown(), None);
        let running = progress.begin(CopyDirection::FromStdin, 16_384);
        running.add_bytes(10);
        running.add_bytes(5);
        running.set_rows(3);
        let shown = progress.shown().unwrap();
        assert_eq!(
            (shown.is_from, shown.relation, shown.bytes, shown.rows),
            (true, 16_384, 15, 3)
        );
        drop(running);
        assert_eq!(progress.shown(), None);
        let _running = progress.begin(CopyDirection::ToStdout, 0);
        let shown = progress.shown().unwrap();
        assert_eq!(
            (shown.is_from, shown.relation, shown.bytes, shown.rows),
            (false, 0, 0, 0)
        );
    }
}
