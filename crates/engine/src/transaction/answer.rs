//! What a session's answers depend on, where commits are seen before they are durable (`lock_release = early`).
//!
//! The rule, and the proof that it suffices: [`clearway_storage::commit::lock_release`]. The heap notes what it sees in
//! the [`SeenCommits`] of the transaction; this file tells it which kind of answer is in the making, and waits.
//!
//! | statement | its answer depends on |
//! | --- | --- |
//! | INSERT of given rows, UPDATE, DELETE without RETURNING; COPY FROM; control without rows | the mark for tags |
//! | all others, errors, notices, new values of settings | the mark for rows |
//!
//! # Who waits, and when
//! A caller of [`Session`](crate::Session) takes the answer as given when the call returns. So the session waits:
//! - at the end of a statement in a transaction block;
//! - at the end of a query string of several statements, and not between them;
//! - in `sync`, for an implicit transaction: what was executed in it counts from there;
//! - after an error.
//!
//! A caller that gathers answers and sends them later takes an [`AnswerGate`], and the session leaves the wait to it.

use std::sync::Arc;

use clearway_storage::{Lsn, SeenCommits, Storage};

use super::Transaction;

impl Transaction {
    /// A snapshot was taken just now.
    #[inline]
    pub(super) fn snapshot_taken(&self) {
        if let Some(seen) = &self.seen {
            seen.use_snapshot(self.storage.may_be_seen_early());
        }
    }

    /// Another snapshot is in use, taken some time ago.
    pub(super) fn snapshot_exchanged(&self) {
        if let Some(seen) = &self.seen {
            seen.use_snapshot(true);
        }
    }

    /// A statement begins. `with_rows`: its answer may hold more than the number of rows it has changed.
    #[inline]
    pub(crate) fn begin_answer(&self, with_rows: bool, synchronous: bool) {
        if let Some(seen) = &self.seen {
            seen.set_waits(synchronous);
            seen.begin_statement(with_rows);
        }
    }

    /// The answer in the making depends on all that the transaction has seen.
    pub(crate) fn answer_with_rows(&self) {
        if let Some(seen) = &self.seen {
            seen.answer_with_rows();
        }
    }

    /// The statement's answer is complete.
    #[inline]
    pub(crate) fn end_answer(&self) {
        if let Some(seen) = &self.seen {
            seen.end_statement();
        }
    }

    /// Waits until all that the answers so far depend on is durable, unless the caller does.
    #[inline]
    pub(crate) fn wait_before_answer(&self) {
        if let Some(seen) = &self.seen
            && !self.caller_waits
        {
            seen.wait_before_answer(&self.storage.wal);
        }
    }

    /// The statement goes on to another row.
    #[inline]
    pub(crate) fn next_row(&self) {
        if let Some(seen) = &self.seen {
            seen.next_row();
        }
    }

    /// Whether the tag depends on a commit that was seen for the row in hand, unless it is proven otherwise.
    #[inline]
    pub(crate) fn row_is_unproven(&self) -> bool {
        let position = self.seen.as_ref().map_or(Lsn(0), |seen| seen.unproven());
        position > self.storage.wal.flushed()
    }

    /// The row in hand counts as one whichever of the commits seen for it are lost.
    pub(crate) fn prove_row(&self) {
        if let Some(seen) = &self.seen {
            seen.prove_row();
        }
    }

    /// The transaction has made a key or a setting of what it has seen: later tags may tell of it.
    pub(crate) fn note_in_tags(&self) {
        if let Some(seen) = &self.seen {
            seen.note_in_tags();
        }
    }

    /// The answer depends on whatever other sessions have done.
    pub(crate) fn note_everything(&self) {
        if let Some(seen) = &self.seen {
            seen.note(self.storage.newest_seen_early());
        }
    }

    /// Leaves the waits to the caller.
    pub(crate) fn answer_gate(&mut self) -> AnswerGate {
        self.caller_waits = true;
        AnswerGate(self.seen.clone().map(|seen| (Arc::clone(&self.storage), seen)))
    }
}

/// Keeps answers of a session back until what they depend on is durable: for a caller that gathers them, and waits
/// once, before it sends them.
#[derive(Debug)]
pub struct AnswerGate(Option<(Arc<Storage>, Arc<SeenCommits>)>);

impl AnswerGate {
    /// Returns when everything that the session has answered so far may be shown to its client.
    #[inline]
    pub fn wait(&self) {
        if let Some((storage, seen)) = &self.0 {
            seen.wait_before_answer(&storage.wal);
        }
    }
}
