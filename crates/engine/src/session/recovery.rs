//! The session on a standby: replay may end its transaction, and the standby may become a primary.
//!
//! # A transaction that replay has ended
//! Between two calls of a session its transaction may be ended in its place (`txn/src/transaction_turn.rs`;
//! `engine/standby/conflict.rs` says when). Each call begins with a look whether that happened:
//!
//! | the transaction was | it becomes | the client learns of it by |
//! | --- | --- | --- |
//! | a block | failed | 40001 for its next statement, and 25P02 from then on; ROLLBACK, or COMMIT, which answers ROLLBACK, ends it |
//! | implicit, a pipeline before its Sync | none | 40001 for the next message of the pipeline; at its Sync all is answered |
//!
//! PostgreSQL closes the connection of a session that is idle in a transaction. Here the client can go on with it.
//!
//! # The promotion
//! Transactions that begin afterwards may write, also in sessions that were there before. The one that is running stays
//! read only. The setting `in_hot_standby` tells the client.

use crate::engine::Engine;
use crate::interrupt::{CancelReason, conflict_error};
use crate::output::Output;
use crate::session::Session;
use crate::transaction::Phase;
use clearway_sql::error::{EngineError, Result, SqlState};

/// State that a session has in addition if the directory was opened as a standby.
#[derive(Debug, Default)]
pub(super) struct OnStandby {
    /// Replay has ended the transaction, and the client does not know it yet.
    ended_for: Option<CancelReason>,
    /// The client knows that there is no standby any more.
    knows_promotion: bool,
}

impl OnStandby {
    pub(super) fn of(engine: &Engine) -> Option<OnStandby> {
        engine.storage.standby().map(|_| OnStandby {
            knows_promotion: !engine.is_standby(),
            ..OnStandby::default()
        })
    }
}

impl Session {
    /// A call of the session begins: its turn (T2 of the transaction's turn). Free on a primary.
    #[inline]
    pub(super) fn begin_call(&mut self) {
        if self.reloads != self.engine.reloads() {
            self.take_reloaded();
        }
        if self.standby.is_some()
            && let Some(reason) = self.slot.turn.begin()
        {
            self.transaction_was_ended(reason);
        }
    }

    /// A call of the session ends.
    #[inline]
    pub(super) fn end_call(&self) {
        if self.standby.is_some() {
            self.slot.turn.end();
        }
    }

    /// As [`end_call`](Self::end_call), at the end of a pipeline.
    pub(super) fn end_synced_call(&mut self) {
        if self.txn.phase == Phase::None
            && let Some(standby) = &mut self.standby
        {
            standby.ended_for = None;
        }
        self.end_call();
    }

    #[cold]
    fn transaction_was_ended(&mut self, reason: u32) {
        let phase = self.txn.phase;
        if matches!(phase, Phase::None | Phase::Failed) {
            return;
        }
        // Of what others wait for there is nothing left; the rest is the session's own.
        self.rollback();
        if matches!(phase, Phase::Block | Phase::FailedAtSavepoint) {
            self.txn.phase = Phase::Failed;
        }
        if let Some(standby) = &mut self.standby {
            standby.ended_for = CancelReason::from_number(reason);
        }
    }

    /// The error if the session cannot run a statement now: its transaction has failed, or was ended. `ends`: the
    /// statement ends a transaction.
    #[inline]
    pub(super) fn refusal(&mut self, ends: bool) -> Option<EngineError> {
        let failed = self.txn.phase.is_failed();
        if let Some(standby) = &mut self.standby
            && let Some(reason) = standby.ended_for.take()
            && !(failed && ends)
        {
            return Some(conflict_error(reason, "transaction"));
        }
        (failed && !ends).then(failed_transaction)
    }

    /// Tells the client once that the standby was promoted.
    #[inline]
    pub(super) fn tell_of_promotion(&mut self, out: &mut dyn Output) -> Result<()> {
        match &mut self.standby {
            Some(standby) if !standby.knows_promotion && !self.engine.is_standby() => {
                standby.knows_promotion = true;
                self.settings.set_default("in_hot_standby", "off")?;
                self.report("in_hot_standby", out)
            }
            _ => Ok(()),
        }
    }
}

/// 25P02.
#[cold]
fn failed_transaction() -> EngineError {
    EngineError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}
