//! BEGIN, COMMIT, ROLLBACK and SET TRANSACTION.

use crate::output::{Notice, Output};
use crate::session::Session;
use crate::transaction::Phase;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::plan::{IsolationLevel, TransactionModes};

impl Session {
    pub(super) fn begin_block(&mut self, modes: &TransactionModes, out: &mut dyn Output) -> Result<()> {
        match self.txn.phase {
            Phase::None => self.begin(Phase::Block),
            Phase::Implicit => self.txn.phase = Phase::Block,
            Phase::Block | Phase::Failed | Phase::FailedAtSavepoint => {
                return self.notice(
                    &Notice::warning(
                        SqlState::ACTIVE_SQL_TRANSACTION,
                        "there is already a transaction in progress",
                    ),
                    out,
                );
            }
        }
        self.apply_modes(modes)
    }

    pub(super) fn apply_modes(&mut self, modes: &TransactionModes) -> Result<()> {
        if let Some(isolation) = modes.isolation
            && isolation != self.txn.isolation
        {
            let refusal = match (self.txn.has_started_work(), self.txn.has_savepoints()) {
                (true, _) => Some("SET TRANSACTION ISOLATION LEVEL must be called before any query"),
                (false, true) => {
                    Some("SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction")
                }
                (false, false) => None,
            };
            if let Some(refusal) = refusal {
                return Err(EngineError::new(SqlState::ACTIVE_SQL_TRANSACTION, refusal));
            }
            self.check_serializable_here(modes)?;
            self.txn.isolation = isolation;
        }
        if let Some(deferrable) = modes.deferrable {
            let refusal = match (self.txn.has_savepoints(), self.txn.has_started_work()) {
                (true, _) => {
                    Some("SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction")
                }
                (false, true) => Some("SET TRANSACTION [NOT] DEFERRABLE must be called before any query"),
                (false, false) => None,
            };
            if let Some(refusal) = refusal {
                return Err(EngineError::new(SqlState::ACTIVE_SQL_TRANSACTION, refusal));
            }
            self.txn.deferrable = deferrable;
        }
        if let Some(read_only) = modes.read_only {
            let widens = !read_only && self.txn.read_only;
            let refusal = match (self.txn.has_savepoints(), self.txn.has_started_work()) {
                (true, _) => Some("cannot set transaction read-write mode inside a read-only transaction"),
                (false, true) => Some("transaction read-write mode must be set before any query"),
                (false, false) => None,
            };
            if let Some(refusal) = refusal.filter(|_| widens) {
                return Err(EngineError::new(SqlState::ACTIVE_SQL_TRANSACTION, refusal));
            }
            self.check_writable_here(modes)?;
            self.txn.read_only = read_only;
        }
        Ok(())
    }

    /// 0A000 for a transaction of a standby that is to write.
    pub(super) fn check_writable_here(&self, modes: &TransactionModes) -> Result<()> {
        if modes.read_only == Some(false) && self.engine.is_standby() {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot set transaction read-write mode during recovery",
            ));
        }
        Ok(())
    }

    /// 0A000 for a serializable transaction of a standby.
    fn check_serializable_here(&self, modes: &TransactionModes) -> Result<()> {
        if modes.isolation == Some(IsolationLevel::Serializable) && self.engine.is_standby() {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot use serializable mode in a hot standby",
            )
            .with_hint("You can use REPEATABLE READ instead."));
        }
        Ok(())
    }

    /// COMMIT or ROLLBACK; the tag to answer with.
    pub(super) fn end_block(
        &mut self,
        commit: bool,
        chain: bool,
        out: &mut dyn Output,
    ) -> Result<&'static str> {
        let (isolation, read_only) = (self.txn.isolation, self.txn.read_only);
        let deferrable = self.txn.deferrable;
        let was_block = self.txn.phase == Phase::Block || self.txn.phase.is_failed();
        if !was_block {
            if chain {
                return Err(EngineError::new(
                    SqlState::NO_ACTIVE_SQL_TRANSACTION,
                    format!(
                        "{} AND CHAIN can only be used in transaction blocks",
                        name_of(commit)
                    ),
                ));
            }
            self.notice(
                &Notice::warning(
                    SqlState::NO_ACTIVE_SQL_TRANSACTION,
                    "there is no transaction in progress",
                ),
                out,
            )?;
        }
        let answer = match self.txn.phase {
            Phase::None => name_of(commit),
            Phase::Failed => {
                // Rolled back already, when it failed.
                self.txn.phase = Phase::None;
                "ROLLBACK"
            }
            Phase::Block | Phase::Implicit if commit => {
                self.commit(out)?;
                "COMMIT"
            }
            Phase::Block | Phase::Implicit | Phase::FailedAtSavepoint => {
                self.rollback();
                "ROLLBACK"
            }
        };
        self.tell_settings(out)?;
        if chain {
            self.begin(Phase::Block);
            self.txn.isolation = isolation;
            self.txn.deferrable = deferrable;
            self.txn.read_only = read_only || self.engine.is_standby();
        }
        Ok(answer)
    }

    pub(super) fn set_transaction(
        &mut self,
        modes: &TransactionModes,
        session: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        if session {
            if let Some(isolation) = modes.isolation {
                self.set(
                    "default_transaction_isolation",
                    Some(isolation.name()),
                    false,
                    out,
                )?;
            }
            let flags = [
                ("default_transaction_read_only", modes.read_only),
                ("default_transaction_deferrable", modes.deferrable),
            ];
            for (name, flag) in flags {
                if let Some(flag) = flag {
                    self.set(name, Some(if flag { "on" } else { "off" }), false, out)?;
                }
            }
            return Ok(());
        }
        if self.txn.phase != Phase::Block {
            let warning = Notice::warning(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION can only be used in transaction blocks",
            );
            self.notice(&warning, out)?;
            // What the transaction of this statement alone cannot be is refused all the same.
            return self.check_writable_here(modes);
        }
        self.apply_modes(modes)
    }
}

fn name_of(commit: bool) -> &'static str {
    if commit { "COMMIT" } else { "ROLLBACK" }
}
