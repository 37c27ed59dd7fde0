//! The waits of a transaction: for locks, and for the end of other transactions.

use std::time::Duration;

use clearway_machine::invariant;
use clearway_txn::{LockMode, LockTag, Xid};

use super::Transaction;
use crate::interrupt::Interrupts;
use crate::lock_wait::LockWaiter;
use crate::settings::Settings;
use clearway_sql::error::Result;

impl Transaction {
    /// The statement that begins now looks for a deadlock after a wait of the length that is set.
    #[inline]
    pub(crate) fn set_deadlock_timeout(&mut self, settings: &Settings) {
        let timeout = settings.deadlock_timeout;
        self.storage.locks.set_deadlock_timeout(self.proc, timeout);
        self.log_lock_waits = settings.log_lock_waits.then_some(timeout);
    }

    fn waiter(&self) -> LockWaiter<'_> {
        LockWaiter {
            manager: &self.storage.locks,
            sessions: &self.sessions,
            proc: self.proc,
            circle: None,
            log_after: self.log_lock_waits,
        }
    }

    /// The transaction has locks that its end gives back: advisory ones, of which it does not know itself.
    pub(crate) fn has_locked(&mut self) {
        self.locked = true;
    }

    /// Locks a table for the rest of the transaction; free when it holds that mode already.
    #[inline]
    pub(crate) fn lock_relation(
        &mut self,
        oid: u32,
        mode: LockMode,
        interrupts: &Interrupts,
        timeout: Option<Duration>,
    ) -> Result<()> {
        if self.held.contains(&(oid, mode)) {
            return Ok(());
        }
        self.wait_for_lock(LockTag::Relation(oid), mode, interrupts, timeout)?;
        self.held.push((oid, mode));
        Ok(())
    }

    /// True if it holds a lock on a table, of whatever mode.
    #[inline]
    pub(crate) fn holds_lock(&self, oid: u32) -> bool {
        self.held.iter().any(|(held, _)| *held == oid)
    }

    /// Takes any lock, waiting for it.
    pub(crate) fn wait_for_lock(
        &mut self,
        tag: LockTag,
        mode: LockMode,
        interrupts: &Interrupts,
        timeout: Option<Duration>,
    ) -> Result<()> {
        self.locked = true;
        self.waiter().acquire(tag, mode, interrupts, timeout)
    }

    /// Gives a lock back before the transaction's end.
    pub(crate) fn unlock(&mut self, tag: LockTag, mode: LockMode) {
        self.storage.locks.release(self.proc, tag, mode);
    }

    /// Waits until another transaction has ended.
    pub(crate) fn wait_for_transaction(
        &mut self,
        xid: Xid,
        interrupts: &Interrupts,
        timeout: Option<Duration>,
    ) -> Result<()> {
        invariant!(3 of executor, !self.is_own(xid), "transaction {xid} waits for its own end");
        self.waiter().wait_for_transaction(xid, interrupts, timeout)
    }
}
