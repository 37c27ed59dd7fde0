//! Advisory locks: how often the session has asked for each, and which its transaction has.
//!
//! The lock table holds each mode of each lock once, and gives a transaction's locks back at its end (K1 and K2 of
//! `txn/src/lock_table/session_locks.rs`). This file counts.
//!
//! | asked for by | at COMMIT, ROLLBACK | at ROLLBACK TO a savepoint before it | at `pg_advisory_unlock` |
//! | --- | --- | --- | --- |
//! | the session | stays | stays | goes when it was called as often |
//! | the transaction | goes | goes | stays, and the caller is warned |

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clearway_sql::context::AdvisoryLock;
use clearway_sql::error::Result;
use clearway_txn::{LockManager, LockMode, LockTag, ProcId};

use crate::interrupt::Interrupts;
use crate::lock_wait::LockWaiter;

/// A lock in a mode.
pub(crate) type HeldAdvisory = (LockTag, LockMode);

/// The advisory locks of a session.
#[derive(Debug, Default)]
pub(crate) struct AdvisoryLocks {
    /// Those of the session, with the number of times that it has asked.
    session: BTreeMap<HeldAdvisory, u64>,
    /// Those of the transaction, in the order in which it has asked; each once.
    transaction: Vec<HeldAdvisory>,
    of_transaction: BTreeSet<HeldAdvisory>,
}

/// The lock as the lock table knows it.
fn held(lock: AdvisoryLock) -> HeldAdvisory {
    let tag = LockTag::Advisory {
        high: lock.key.high,
        low: lock.key.low,
        is_pair: lock.key.is_pair,
    };
    match lock.shared {
        true => (tag, LockMode::Share),
        false => (tag, LockMode::Exclusive),
    }
}

impl AdvisoryLocks {
    /// Takes a lock; false if it is not to be waited for and is not free.
    pub(crate) fn lock(
        &mut self,
        waiter: &LockWaiter<'_>,
        lock: AdvisoryLock,
        for_transaction: bool,
        wait: Option<(&Interrupts, Option<Duration>)>,
    ) -> Result<bool> {
        let (tag, mode) = held(lock);
        let locks = waiter.locks();
        if !self.holds((tag, mode)) {
            crate::memory::require(size_of::<HeldAdvisory>() * 4)?;
            match wait {
                Some((interrupts, timeout)) => waiter.acquire(tag, mode, interrupts, timeout)?,
                None if !locks.try_acquire(waiter.proc, tag, mode) => return Ok(false),
                None => {}
            }
        }
        if !for_transaction {
            let count = self.session.entry((tag, mode)).or_default();
            if *count == 0 {
                locks.hold_for_session(waiter.proc, tag, mode, true);
            }
            *count += 1;
        } else if self.of_transaction.insert((tag, mode)) {
            self.transaction.push((tag, mode));
        }
        Ok(true)
    }

    fn holds(&self, lock: HeldAdvisory) -> bool {
        self.session.contains_key(&lock) || self.of_transaction.contains(&lock)
    }

    /// Gives a lock of the session back once. The mode, if the session does not have it.
    pub(crate) fn unlock(
        &mut self,
        locks: &LockManager,
        proc: ProcId,
        lock: AdvisoryLock,
    ) -> Result<(), LockMode> {
        let lock = held(lock);
        match self.session.get_mut(&lock) {
            None => return Err(lock.1),
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => {
                self.session.remove(&lock);
                self.give_back(locks, proc, lock);
            }
        }
        Ok(())
    }

    /// The session has no use for the lock any more; its transaction may.
    fn give_back(&self, locks: &LockManager, proc: ProcId, (tag, mode): HeldAdvisory) {
        match self.of_transaction.contains(&(tag, mode)) {
            true => locks.hold_for_session(proc, tag, mode, false),
            false => locks.release(proc, tag, mode),
        }
    }

    /// Gives back all locks of the session.
    pub(crate) fn unlock_all(&mut self, locks: &LockManager, proc: ProcId) {
        for (lock, _) in std::mem::take(&mut self.session) {
            self.give_back(locks, proc, lock);
        }
    }

    /// The locks of the transaction, in the order in which it has asked.
    pub(crate) fn of_transaction(&self) -> &[HeldAdvisory] {
        &self.transaction
    }

    /// The transaction has only the first `count` of its locks any more.
    pub(crate) fn keep(&mut self, count: usize) {
        for lock in self.transaction.drain(count..) {
            self.of_transaction.remove(&lock);
        }
    }
}
