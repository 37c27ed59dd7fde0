//! The waits of a transaction: for locks, and for the end of other transactions.

use std::time::Duration;

use clearway_machine::invariant;
use clearway_txn::{LockMode, LockTag, LockWait, Xid};

use super::Transaction;
use crate::convert::lock_error;
use crate::interrupt::Interrupts;
use clearway_sql::error::Result;

impl Transaction {
    /// The statement that begins now looks for a deadlock after a wait of this length.
    #[inline]
    pub(crate) fn set_deadlock_timeout(&self, timeout: Duration) {
        self.storage.locks.set_deadlock_timeout(self.proc, timeout);
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
        let cancel = || interrupts.pending();
        self.storage
            .locks
            .acquire(
                self.proc,
                tag,
                mode,
                LockWait {
                    timeout,
                    cancel: &cancel,
                },
            )
            .map_err(|error| lock_error(error, interrupts))
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
        let cancel = || interrupts.pending();
        self.storage
            .locks
            .wait_for_transaction(
                self.proc,
                xid,
                LockWait {
                    timeout,
                    cancel: &cancel,
                },
            )
            .map_err(|error| lock_error(error, interrupts))
    }
}
