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
//! With synchronous standbys, the wait goes on until they have what the answer depends on (`replication`).
//!
//! A caller that gathers answers and sends them later takes an [`AnswerGate`], and the session leaves the wait to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clearway_storage::sync_replication::ReplicationLevel;
use clearway_storage::{Lsn, SeenCommits, Storage};

use super::Transaction;
use super::replication::{StandbyWait, WaitedFor, outcome};
use crate::error::EngineError;
use crate::interrupt::Interrupts;
use crate::output::Notice;
use crate::settings::{Settings, level};

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
    pub(crate) fn begin_answer(&self, with_rows: bool, settings: &Settings) {
        if let Some(seen) = &self.seen {
            let setting = settings.synchronous_commit;
            seen.set_waits(setting.is_synchronous());
            seen.set_level(setting.replication_level());
            seen.begin_statement(with_rows);
            let replication = &self.storage.sync_replication;
            if replication.is_configured() {
                let shows_warnings = settings.least_notice <= level("warning");
                self.shows_warnings.store(shows_warnings, Ordering::Relaxed);
                if setting.replication_level() == Some(ReplicationLevel::Applied) {
                    replication.want_applied(|| self.storage.newest_seen_early());
                }
            }
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

    /// Waits until all that the answers so far depend on is durable and replicated, unless the caller does.
    #[inline]
    pub(crate) fn wait_before_answer(&self, interrupts: &Interrupts) -> StandbyWait {
        match &self.seen {
            Some(seen) if !self.caller_waits => wait_before_answer(&self.storage, seen, interrupts),
            _ => StandbyWait::Replicated,
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
        position > self.storage.secured()
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
    pub(crate) fn answer_gate(&mut self, interrupts: Interrupts) -> AnswerGate {
        self.caller_waits = true;
        AnswerGate(self.seen.clone().map(|seen| Gate {
            storage: Arc::clone(&self.storage),
            seen,
            interrupts,
            shows_warnings: Arc::clone(&self.shows_warnings),
        }))
    }
}

#[inline]
fn wait_before_answer(storage: &Storage, seen: &SeenCommits, interrupts: &Interrupts) -> StandbyWait {
    seen.wait_before_answer(&storage.wal);
    let wait = seen.wait_replicated(&storage.sync_replication, || interrupts.canceled_or_stopped());
    outcome(wait, interrupts)
}

/// Keeps answers of a session back until what they depend on is durable and replicated: for a caller that gathers them,
/// and waits once, before it sends them.
#[derive(Debug)]
pub struct AnswerGate(Option<Gate>);

#[derive(Debug)]
struct Gate {
    storage: Arc<Storage>,
    seen: Arc<SeenCommits>,
    interrupts: Interrupts,
    shows_warnings: Arc<AtomicBool>,
}

impl AnswerGate {
    /// Returns when everything that the session has answered so far may be shown to its client; with a warning that it
    /// must be shown first, if the client has canceled the wait for standbys. An error: the server stops, and the answers
    /// must not be shown.
    #[inline]
    pub fn wait(&self) -> Result<Option<Notice>, EngineError> {
        let Some(gate) = &self.0 else { return Ok(None) };
        match wait_before_answer(&gate.storage, &gate.seen, &gate.interrupts) {
            StandbyWait::Replicated => Ok(None),
            StandbyWait::Canceled => {
                let shown = gate.shows_warnings.load(Ordering::Relaxed);
                Ok(shown.then(|| WaitedFor::Answer.warning()))
            }
            StandbyWait::Terminated => Err(WaitedFor::Answer.terminated()),
        }
    }
}
