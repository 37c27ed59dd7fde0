//! The states of transactions for a reader, and the notes that its answers depend on (S8).

use std::io;
use std::sync::atomic::Ordering;

use clearway_machine::{Machine, Native};
use clearway_txn::{
    CommitLog, ProcArray, Snapshot, StatusDevice, TransactionState, Xid, final_state, transaction_state,
};

use super::{SeenCommits, SessionSnapshot};
use crate::commit::Commits;
use crate::files::status_pages::StatusPages;
use crate::wal::{LogDevice, SegmentFiles, Wal};

/// A transaction that looks at what others have done: its snapshot, and the notes of its session.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    snapshot: &'a Snapshot,
    /// `None` for one that answers no client.
    seen: Option<&'a SeenCommits>,
    /// True if the snapshot may see a commit that is not secured, and there are notes.
    looks_up: bool,
}

impl<'a> Reader<'a> {
    /// For answers of the session that `seen` belongs to.
    #[inline]
    pub fn of_session(snapshot: &'a SessionSnapshot, seen: &'a SeenCommits) -> Self {
        Self {
            snapshot: snapshot.snapshot(),
            seen: Some(seen),
            looks_up: snapshot.may_see_unsecured(),
        }
    }

    /// For work whose outcome no client is told of, and for a client that was promised nothing.
    #[inline]
    pub fn of_no_answer(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            seen: None,
            looks_up: false,
        }
    }
}

/// The structures that know how transactions stand, borrowed from their owners.
#[derive(Debug)]
pub struct CommitStates<'a, M: Machine = Native, D: LogDevice = SegmentFiles, S: StatusDevice = StatusPages> {
    /// The log.
    pub log: &'a Wal<M, D>,
    /// The ends of transactions.
    pub commit_log: &'a CommitLog<M, S>,
    /// The running transactions.
    pub array: &'a ProcArray<M>,
    /// State that commits share.
    pub commits: &'a Commits<M>,
}

#[expect(clippy::disallowed_methods, reason = "here the commits are noted (S8)")]
impl<M: Machine, D: LogDevice, S: StatusDevice> CommitStates<'_, M, D, S> {
    /// The state of `xid` when the reader's snapshot was taken. `Running` also means that it ended, or began, later.
    #[inline]
    pub fn at_snapshot(&self, reader: &Reader<'_>, xid: Xid) -> io::Result<TransactionState> {
        let state = reader.snapshot.state(xid, self.commit_log)?;
        if reader.looks_up && state == TransactionState::Committed {
            self.note(reader, xid);
        }
        Ok(state)
    }

    /// True if `xid`, which has committed by now, had committed when the reader's snapshot was taken.
    #[inline]
    pub fn committed_at_snapshot(&self, reader: &Reader<'_>, xid: Xid) -> io::Result<bool> {
        let committed = reader.snapshot.sees_committed(xid, self.commit_log)?;
        if reader.looks_up && committed {
            self.note(reader, xid);
        }
        Ok(committed)
    }

    /// The state of `xid` now, whatever the snapshot.
    #[inline]
    pub fn now(&self, reader: &Reader<'_>, xid: Xid) -> io::Result<TransactionState> {
        let state = transaction_state(self.array, self.commit_log, xid)?;
        if state == TransactionState::Committed {
            self.committed_now(reader, xid);
        }
        Ok(state)
    }

    /// `xid` has committed by now, as the reader has found by a hint bit.
    #[inline]
    pub fn committed_now(&self, reader: &Reader<'_>, xid: Xid) {
        if reader.seen.is_some() {
            self.note(reader, xid);
        }
    }

    /// The state now of `xid`, of which the reader has met a lock. A lock that is gone tells nothing of how its holder
    /// ended, so nothing is noted.
    pub fn of_locker(&self, xid: Xid) -> io::Result<TransactionState> {
        transaction_state(self.array, self.commit_log, xid)
    }

    /// The state of `xid` now, for work whose outcome no client is told of.
    pub fn of_no_answer(&self, xid: Xid) -> io::Result<TransactionState> {
        transaction_state(self.array, self.commit_log, xid)
    }

    /// As [`of_no_answer`](Self::of_no_answer), for an `xid` that does not run any more.
    pub fn final_of_no_answer(&self, xid: Xid) -> io::Result<TransactionState> {
        final_state(self.commit_log, xid)
    }

    /// True if `snapshot` shows what `xid` did, for work whose outcome no client is told of.
    pub fn shows(&self, snapshot: &SessionSnapshot, xid: Xid) -> io::Result<bool> {
        snapshot.snapshot().sees(xid, self.commit_log)
    }

    /// True if `snapshot` sees the definitions that `xid`, which has committed by now, has made. They were secured before
    /// they were published (L3).
    #[inline]
    pub fn sees_definition(&self, snapshot: &SessionSnapshot, xid: Xid) -> io::Result<bool> {
        snapshot.snapshot().sees_committed(xid, self.commit_log)
    }

    /// Notes the commit of `xid`, which the reader counts, if it is not secured.
    fn note(&self, reader: &Reader<'_>, xid: Xid) {
        // Acquire: pairs with the Release of a hint bit. What is known from the array is ordered by its latch.
        M::fence(Ordering::Acquire);
        if let Some(seen) = reader.seen
            && let Some(position) = self.commits.position_if_early(xid, self.log)
        {
            seen.note(position);
        }
    }
}
