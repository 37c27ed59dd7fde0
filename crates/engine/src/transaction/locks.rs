//! The waits of a transaction: for locks, and for the end of other transactions.
//!
//! # The locks of a statement that changes definitions
//! It needs the catalog's lock, which every such statement takes, and those of its tables. Alice reads `t` for an hour:
//!
//! | | Bob: ALTER TABLE t | Carol: CREATE TABLE u |
//! | --- | --- | --- |
//! | Bob takes the catalog's lock, then waits for `t` | has the catalog's | waits for Bob, so for Alice |
//! | Bob waits for `t`, then takes the catalog's lock | has `t` | is done; but had Carol a block with a definition in it, and altered `t` next, each would wait for the other |
//! | L1 and L2 | has neither | is done, whatever Carol does next |
//!
//! - L1: while the session waits for one of these locks, it has none of the others that the statement has asked for.
//! - L2: when it has got the lock that it waited for, it takes the others only if none of them is to be waited for;
//!   otherwise it gives all back and waits for the one that it lacks.
//! - L3: after [`ROUNDS`] such waits it keeps what it has got, in the order of the statement's list. Others may be
//!   kept waiting then, and it makes progress.
//! - L4: what the transaction had before the statement it keeps, so a block that has changed definitions waits for tables
//!   with the catalog's lock. So does a statement for what it finds only while it runs: CASCADE, types in use, and a table
//!   that was made anew under its name while it waited.

use std::time::Duration;

use clearway_machine::invariant;
use clearway_txn::{LockMode, LockTag, Xid};

use super::Transaction;
use crate::interrupt::Interrupts;
use crate::lock_wait::LockWaiter;
use crate::settings::Settings;
use clearway_sql::error::Result;

/// L3: waits of a statement that changes definitions in which it holds nothing of its own.
const ROUNDS: u32 = 4;

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

    /// Takes the locks of a statement that changes definitions (L1 to L4).
    pub(crate) fn lock_to_define(
        &mut self,
        wanted: &[(u32, LockMode)],
        interrupts: &Interrupts,
        timeout: Option<Duration>,
    ) -> Result<()> {
        let before = self.held.len();
        for _ in 0..ROUNDS {
            let Some(&(oid, mode)) = wanted.iter().find(|(oid, mode)| !self.try_relation(*oid, *mode)) else {
                return Ok(());
            };
            // L2.
            self.unlock_relations_behind(before);
            self.lock_relation(oid, mode, interrupts, timeout)?;
        }
        // L3: from the beginning of the list.
        self.unlock_relations_behind(before);
        for (oid, mode) in wanted {
            self.lock_relation(*oid, *mode, interrupts, timeout)?;
        }
        Ok(())
    }

    /// Locks a table if that needs no waiting.
    fn try_relation(&mut self, oid: u32, mode: LockMode) -> bool {
        if self.held.contains(&(oid, mode)) {
            return true;
        }
        let locks = &self.storage.locks;
        let is_granted = locks.try_acquire(self.proc, LockTag::Relation(oid), mode);
        if is_granted {
            self.locked = true;
            self.held.push((oid, mode));
        }
        is_granted
    }

    /// Gives the locks of tables back but for the first `kept`.
    fn unlock_relations_behind(&mut self, kept: usize) {
        while self.held.len() > kept
            && let Some((oid, mode)) = self.held.pop()
        {
            self.unlock(LockTag::Relation(oid), mode);
        }
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
