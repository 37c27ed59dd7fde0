//! The engine's side of [`clearway_storage::commit::answers`], which has the rules S1 to S11, notes what answers depend on,
//! and waits. This file says which kind of answer is in the making and at which level, when to wait, and what the client
//! gets if the wait is ended.
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
//! Before a transaction that has an id commits, the session waits for what it owes beyond its commit's own level (S7): the setting was lowered since.
//!
//! A caller that gathers answers and sends them later takes an [`AnswerGate`], and the session leaves the wait to it.
//!
//! # What ends a wait
//! | | the client gets |
//! | --- | --- |
//! | all that is owed is durable and replicated | the answers |
//! | a cancel request, `statement_timeout` | 57014 in their place; its transaction, if one is open, has failed |
//! | the server's end | 57P01, and nothing of the answers |
//!
//! The commits of a batch by then stay, as they do if the connection is lost before the answer.
//!
//! That holds for both waits, for this server's disk and for standbys. While the disk does not answer, the log writer is in
//! the kernel for the session (`wal/flush_requests.rs` of the storage). A session's own commit flushes by itself, and is
//! not to be stopped: its record is in the log.
//!
//! # What is shown of the session meanwhile
//! It is `active` until the gate is passed: the gate tells its activity slot, just before the caller sends.

use std::sync::Arc;

use clearway_storage::{AnswerLevel, Gate, Lsn, RowInHand, SeenCommits, Storage};

use super::Transaction;
use super::replication::WaitedFor;
use crate::activity::ActivitySlot;
use crate::clock;
use crate::interrupt::Interrupts;
use crate::settings::Settings;
use crate::synchronous_commit::SynchronousCommit;
use clearway_sql::error::{EngineError, Result};

/// The level of an answer under `setting`, which a commit under it waits for as well.
#[inline]
fn answer_level(setting: SynchronousCommit) -> AnswerLevel {
    match setting.replication_level() {
        Some(level) => AnswerLevel::replicated(level),
        None => AnswerLevel::local(setting.is_synchronous()),
    }
}

impl Transaction {
    /// A statement begins. `with_rows`: its answer may hold more than the number of rows it has changed.
    #[inline]
    pub(crate) fn begin_answer(&self, with_rows: bool, settings: &Settings) {
        let level = answer_level(settings.synchronous_commit);
        self.seen.set_level(level);
        self.seen.begin_statement(with_rows);
        let replication = &self.storage.sync_replication;
        if level == AnswerLevel::Applied && replication.is_configured() {
            replication.want_applied(|| self.storage.newest_seen_early());
        }
    }

    /// The statement looks at tables. A session of the level `Applied` is shown no row of them before all has been applied
    /// that may be missing among the recent commits.
    #[inline]
    pub(super) fn looks_at_tables(&self) {
        let replication = &self.storage.sync_replication;
        if self.seen.level() == AnswerLevel::Applied && replication.is_configured() {
            self.seen
                .owe_at(AnswerLevel::Applied, replication.applied_floor());
        }
    }

    /// The answer in the making tells of the commit whose record ends there.
    pub(crate) fn owe_commit(&self, position: Lsn, settings: &Settings) {
        self.seen
            .owe_at(answer_level(settings.synchronous_commit), position);
    }

    /// A statement has failed, perhaps before its beginning. `stopped`: because it was asked to stop, which is all that
    /// the error tells.
    pub(crate) fn fail_answer(&self, stopped: bool, settings: &Settings) {
        if stopped {
            self.seen.answer_with_nothing();
        } else {
            self.seen.raise_level(answer_level(settings.synchronous_commit));
            self.seen.answer_with_rows();
        }
    }

    /// None of the answers since the last gate leaves.
    pub(crate) fn give_up_answers(&self) {
        self.seen.give_up_answers();
    }

    /// S7: waits before a commit under `setting` for what is owed and the commit would not wait for.
    #[inline]
    pub(crate) fn wait_before_commit(
        &self,
        setting: SynchronousCommit,
        interrupts: &Interrupts,
    ) -> Result<()> {
        if self.xid.is_some() && self.seen.owes_more_than(answer_level(setting)) {
            pass_gate(&self.storage, &self.seen, interrupts)?;
        }
        Ok(())
    }

    /// The answer in the making depends on all that the transaction has seen.
    pub(crate) fn answer_with_rows(&self) {
        self.seen.answer_with_rows();
    }

    /// The statement's answer is complete.
    #[inline]
    pub(crate) fn end_answer(&self) {
        self.seen.end_statement();
    }

    /// Waits until all that the answers so far depend on is durable and replicated, unless the caller does. The error to
    /// be told in their place, if it does not come to that.
    #[inline]
    pub(crate) fn wait_before_answer(&self, interrupts: &Interrupts) -> Result<()> {
        if !self.caller_waits {
            pass_gate(&self.storage, &self.seen, interrupts)?;
        }
        Ok(())
    }

    /// The statement goes on to another row.
    #[inline]
    pub(crate) fn begin_row(&self) -> RowInHand {
        self.seen.begin_row()
    }

    /// The statement has looked at rows of which none can be proven.
    #[inline]
    pub(crate) fn end_row(&self) {
        self.seen.end_row();
    }

    /// True if the tag depends on a commit that was seen for the row in hand, unless it is proven otherwise.
    #[inline]
    pub(crate) fn row_is_unproven(&self) -> bool {
        self.seen.unproven() > self.storage.secured()
    }

    /// The row in hand counts as one whichever of the commits seen for it are lost.
    pub(crate) fn prove_row(&self, row: RowInHand) {
        self.seen.prove_row(row);
    }

    /// The transaction has made a key or a setting of what it has seen: later tags may tell of it.
    pub(crate) fn note_in_tags(&self) {
        self.seen.note_in_tags();
    }

    /// Leaves the waits to the caller.
    pub(crate) fn answer_gate(&mut self, interrupts: Interrupts) -> AnswerGate {
        self.caller_waits = true;
        AnswerGate {
            storage: Arc::clone(&self.storage),
            slot: Arc::clone(&self.slot),
            seen: self.seen(),
            interrupts,
        }
    }

    /// The marks of the session's answers.
    pub(crate) fn seen(&self) -> Arc<SeenCommits> {
        Arc::clone(&self.seen)
    }

    /// True if the caller waits before it shows an answer.
    #[inline]
    pub(crate) fn leaves_waits_to_caller(&self) -> bool {
        self.caller_waits
    }
}

/// The session's way through its gate.
#[inline]
fn pass_gate(storage: &Storage, seen: &SeenCommits, interrupts: &Interrupts) -> Result<()> {
    match seen.owes_nothing() {
        true => Ok(()),
        false => wait_at_gate(storage, seen, interrupts),
    }
}

#[inline(never)]
fn wait_at_gate(storage: &Storage, seen: &SeenCommits, interrupts: &Interrupts) -> Result<()> {
    // Memory ends no wait: the answer is there, and nothing more is taken.
    let (stop, time_left) = (|| interrupts.canceled_or_late(), || interrupts.time_left());
    match seen.pass_gate(&storage.wal, &storage.sync_replication, stop, time_left) {
        Gate::Passed => Ok(()),
        Gate::StoppedBeforeDurable => Err(stopped_before_durable(interrupts)),
        Gate::StoppedBeforeReplicated if interrupts.server_stops() => Err(WaitedFor::Answer.terminated()),
        Gate::StoppedBeforeReplicated => Err(WaitedFor::Answer.stopped(interrupts.error())),
    }
}

/// For a client whose answer did not become durable before it was told to stop.
#[cold]
fn stopped_before_durable(interrupts: &Interrupts) -> EngineError {
    let error = interrupts.error();
    error.with_detail("The answer depends on transactions that have committed, but might not be durable yet.")
}

/// Keeps answers of a session back until what they depend on is durable and replicated: for a caller that gathers them,
/// and waits once, before it sends them.
#[derive(Debug)]
pub struct AnswerGate {
    storage: Arc<Storage>,
    slot: Arc<ActivitySlot>,
    seen: Arc<SeenCommits>,
    interrupts: Interrupts,
}

impl AnswerGate {
    /// Returns when everything that the session has answered so far may be shown to its client. On an error they must
    /// not be shown, and the client gets the error. With 57P01 the session ends; after any other the caller calls
    /// [`Session::give_up_answers`](crate::Session::give_up_answers).
    #[inline]
    pub fn wait(&self) -> Result<(), EngineError> {
        pass_gate(&self.storage, &self.seen, &self.interrupts)?;
        self.slot.answer_leaves(clock::now_us);
        Ok(())
    }
}
