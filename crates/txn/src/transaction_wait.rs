//! Waiting for the end of another transaction: how an updater waits for the row's previous updater.
//!
//! Nobody takes a lock on his own xid at the start, as classic lock managers do; only those who wait pay. The waiter
//! writes the xid it waits for in its own slot, raises `awaited` in the runner's slot, and looks once more whether the
//! transaction runs. The runner, when its transaction has left the ProcArray, looks at `awaited`, and if it is raised
//! posts everyone who waits for its xid.
//!
//! # Why no wake-up is lost
//! A flag and a fact, each written by one side and read by the other: with a full fence between write and read on both
//! sides, at least one side sees the other. If the waiter's fence comes first, the runner sees `awaited`; if the runner's
//! comes first, the waiter sees that the transaction has left.
//!
//! The flag may still be raised when the slot's *next* transaction ends; that costs one look at the slots.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use clearway_machine::{AtomicWord, Machine, WaitEvent, WaitScope};

use crate::lock_table::{LockError, LockManager, LockWait, Slept};
use crate::{ProcId, Xid};

impl<M: Machine> LockManager<M> {
    /// Waits until `xid` has ended.
    pub fn wait_for_transaction(&self, proc: ProcId, xid: Xid, wait: LockWait<'_>) -> Result<(), LockError> {
        let Some(runner) = self.proc_array.find_running(xid) else {
            return Ok(());
        };
        debug_assert_ne!(runner, proc, "a session waits for its own transaction");
        let _event = WaitScope::<M>::enter(WaitEvent::LockTransaction);
        let me = self.wait_of(proc);
        me.awaited_xid.store(xid.0, Relaxed);
        self.wait_of(runner).awaited.store(1, Relaxed);
        // StoreLoad: pairs with the fence in `transaction_ended`.
        M::fence(SeqCst);
        let started = M::now();
        let mut checked = false;
        let result = loop {
            let ended = || !self.proc_array.is_running(xid);
            match self.sleep(proc, started, &mut checked, wait, ended) {
                Slept::Done => break Ok(()),
                Slept::GiveUp(error) => break Err(error),
                // A victim's wait ends under the partition latches, so that no second session of the cycle finds it.
                Slept::CheckDeadlock => {
                    if let Some(cycle) = self.find_deadlock(proc) {
                        break Err(LockError::Deadlock { cycle });
                    }
                }
            }
        };
        me.awaited_xid.store(0, Relaxed);
        result
    }

    /// The transaction `xid` of `proc` has left the ProcArray: wakes whoever waits for that.
    #[inline]
    pub fn transaction_ended(&self, proc: ProcId, xid: Xid) {
        // StoreLoad: pairs with the fence in `wait_for_transaction`.
        M::fence(SeqCst);
        let awaited = &self.wait_of(proc).awaited;
        if awaited.load(Relaxed) != 0 {
            awaited.store(0, Relaxed);
            self.post_waiters(xid);
        }
    }

    #[cold]
    fn post_waiters(&self, xid: Xid) {
        for waiter in self.proc_array.slots() {
            let wait = self.wait_of(waiter);
            if wait.awaited_xid.load(Relaxed) == xid.0 {
                wait.semaphore.post();
            }
        }
    }
}
