//! SAVEPOINT, RELEASE and ROLLBACK TO, and errors in a block with savepoints (`transaction::savepoints`).
//!
//! ```text
//!   block ──error──▶ failed at the newest savepoint ──ROLLBACK TO──▶ block
//!                              │ COMMIT, ROLLBACK
//!                              ▼
//!                            none
//! ```

use clearway_sql::error::{EngineError, Result, SqlState};

use crate::output::Output;
use crate::session::Session;
use crate::transaction::{Phase, SessionHolds, SessionMark};

impl Session {
    pub(super) fn savepoint(&mut self, name: &str) -> Result<()> {
        self.check_block("SAVEPOINT")?;
        self.spill.bytes_max = self.settings.work_mem;
        let mark = SessionMark {
            settings: self.settings.replaced_count(),
            notifications: self.pending.get_mut().mark(),
            advisory_locks: self.advisory.get_mut().of_transaction().len(),
        };
        self.txn.add_savepoint(name, mark, &self.spill);
        Ok(())
    }

    pub(super) fn release(&mut self, name: &str) -> Result<()> {
        self.check_block("RELEASE SAVEPOINT")?;
        let index = self.txn.savepoint(name)?;
        self.txn.release_savepoint(index);
        Ok(())
    }

    pub(super) fn rollback_to(&mut self, name: &str, out: &mut dyn Output) -> Result<()> {
        self.check_block("ROLLBACK TO SAVEPOINT")?;
        let index = self.txn.savepoint(name)?;
        self.go_back_to(index)?;
        self.txn.phase = Phase::Block;
        self.tell_settings(out)
    }

    /// Tells the client of reported settings that were put back, or that a reload has changed.
    #[inline]
    pub(super) fn tell_settings(&mut self, out: &mut dyn Output) -> Result<()> {
        for name in std::mem::take(&mut self.untold_settings) {
            self.report(name, out)?;
        }
        Ok(())
    }

    /// After an error in a block with savepoints (V4 of `transaction::savepoints`).
    #[cold]
    pub(super) fn fail_at_savepoint(&mut self) {
        let newest = self.txn.newest_savepoint();
        // The client has an error already, and is told of another only by what it asks for next.
        if newest.is_some_and(|newest| self.go_back_to(newest).is_ok()) {
            self.txn.phase = Phase::FailedAtSavepoint;
        }
    }

    /// Goes back to a savepoint. After an error there is none any more, and the block has failed.
    fn go_back_to(&mut self, index: usize) -> Result<()> {
        let clock = self.txn.savepoint_clock(index);
        let holds = SessionHolds {
            advisory: self.advisory.get_mut().of_transaction(),
            sequences: &self.sequence_locks.get_mut().held(),
        };
        match self.txn.go_back_to(index, holds, &self.interrupts) {
            Ok(mark) => {
                clock.into_iter().for_each(|clock| self.cursors.gone_back(clock));
                let changed = self.settings.go_back_to(mark.settings);
                self.pending.get_mut().go_back_to(mark.notifications);
                self.advisory.get_mut().keep(mark.advisory_locks);
                self.untold_settings.extend(changed);
                let name = self.settings.value("application_name").unwrap_or_default();
                self.slot.set_application_name(name);
                Ok(())
            }
            Err(error) => {
                self.rollback();
                self.txn.phase = Phase::Failed;
                Err(error)
            }
        }
    }

    /// 25P01 outside of a transaction block.
    fn check_block(&self, name: &str) -> Result<()> {
        match self.txn.phase {
            Phase::Block | Phase::Failed | Phase::FailedAtSavepoint => Ok(()),
            Phase::None | Phase::Implicit => Err(EngineError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                format!("{name} can only be used in transaction blocks"),
            )),
        }
    }

    /// The time that portals are made at now. One that was made at a time that
    /// [`take_gone_portals`](Self::take_gone_portals) gives, or later, is gone.
    pub fn portal_clock(&self) -> u64 {
        self.txn.portal_clock()
    }

    /// The time from which on portals are gone with what ROLLBACK TO has taken back, if it has since the last call.
    #[inline]
    pub fn take_gone_portals(&mut self) -> Option<u64> {
        self.txn.take_gone_portals()
    }
}
