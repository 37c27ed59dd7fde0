//! The transaction that a snapshot last found committed: a second question about it needs no commit log.
//!
//! Rows that one transaction has written are side by side: a table that was loaded by one COPY, read back from disk
//! without hint bits, asks about the same xid for every row. Each question acquires and releases a latch that all
//! sessions share, under most variants of the commit log.
//!
//! # Why it may be kept
//! - A status does not change once it is *committed* (R4 of the commit log), and is asked only of a transaction that
//!   the snapshot regards as finished.
//! - It is kept when the snapshot's memory is used for the next snapshot: that one is newer, and regards as finished
//!   whatever this one did (S2, S5).
//! - Only *committed* is kept. A transaction without a status counts as rolled back, and if a commit's steps were in
//!   the wrong order that answer would change. Tests look for that change, so it must stay visible.
//!
//! Costs: 8 bytes in the session's own snapshot, and a comparison for each row without a hint.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Xid;

/// The xid, or 0. It is an atomic so that a snapshot may be lent to other threads. One session uses it, so it is not an
/// atomic of the machine: there is nothing to explore, and no line to account for.
#[derive(Debug, Default)]
pub(super) struct LastCommitted(AtomicU64);

impl LastCommitted {
    /// True if it is this one.
    #[inline]
    pub(super) fn is(&self, xid: Xid) -> bool {
        xid.is_valid() && self.0.load(Relaxed) == xid.0
    }

    #[inline]
    pub(super) fn set(&self, xid: Xid) {
        self.0.store(xid.0, Relaxed);
    }
}

impl Clone for LastCommitted {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Relaxed)))
    }
}

/// The last question is no part of a snapshot's value: all are equal.
impl PartialEq for LastCommitted {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for LastCommitted {}

#[cfg(test)]
mod tests {
    use clearway_latch::LwLockVariant;
    use clearway_machine::Native;

    use crate::snapshot::SnapshotVariant;
    use crate::{CommitLog, NoPages, ProcArray, ProcArrayOptions, Snapshot, Status, TransactionState, Xid};

    fn log_with(statuses: &[(u64, Status)]) -> CommitLog<Native, NoPages> {
        let log = CommitLog::new(NoPages, LwLockVariant::SingleCas);
        for &(xid, status) in statuses {
            log.set(Xid(xid), status, 0).unwrap();
        }
        log
    }

    /// Shown by a second log that says otherwise: the last commit is not asked about again, another is, and so is one
    /// that was rolled back. Mutations that it catches: nothing is kept; the first is kept and not the last; a
    /// transaction that was rolled back is kept as committed.
    #[test]
    fn the_last_commit_is_remembered_and_nothing_else() {
        use TransactionState::{Aborted, Committed, Running};
        for &variant in <SnapshotVariant as clearway_machine::Switch>::ALL {
            let options = ProcArrayOptions {
                snapshot: variant,
                ..ProcArrayOptions::default()
            };
            let array = ProcArray::<Native>::new(2, options, Xid(100));
            let proc = array.attach().unwrap();
            let log = log_with(&[
                (10, Status::Committed),
                (11, Status::Committed),
                (12, Status::Aborted),
            ]);
            let other = log_with(&[
                (10, Status::Aborted),
                (11, Status::Aborted),
                (12, Status::Committed),
            ]);
            let mut snapshot = Snapshot::default();
            assert_eq!(
                snapshot.state(Xid(10), &log).unwrap(),
                Running,
                "it was never taken"
            );
            array.snapshot(proc, &mut snapshot);
            let state = |snapshot: &Snapshot, xid, log| snapshot.state(Xid(xid), log).unwrap();
            assert_eq!(state(&snapshot, 10, &log), Committed);
            assert_eq!(state(&snapshot, 11, &log), Committed);
            assert_eq!(state(&snapshot, 11, &other), Committed, "{variant:?}");
            assert_eq!(state(&snapshot, 10, &other), Aborted, "{variant:?}");
            assert_eq!(state(&snapshot, 12, &log), Aborted);
            assert_eq!(state(&snapshot, 12, &log), Aborted, "{variant:?}: asked again");
            assert_eq!(state(&snapshot, 12, &other), Committed, "{variant:?}");
            // The next snapshot in the same memory, and a copy, know it still.
            array.snapshot(proc, &mut snapshot);
            assert_eq!(state(&snapshot.clone(), 12, &log), Committed, "{variant:?}");
        }
    }
}
