//! Waiting for the end of another transaction: how an updater waits for the row's previous updater.
//!
//! No transaction takes a lock on its own xid at the start, as in classic lock managers; only waiters pay. The waiter
//! writes the xid it waits for in `waited_for_xids`, raises `transaction_has_waiter` in the runner's slot, and looks
//! once more whether the transaction runs. The runner, when its transaction has left the ProcArray, looks at
//! `transaction_has_waiter`, and if it is raised lowers it and posts every session that waits for its xid.
//!
//! # Why no wake-up is lost
//! Two words, each written by one side and read by the other: the waiter writes its wait and reads the runner's xid;
//! the runner clears its xid and reads `transaction_has_waiter`. On both sides a SeqCst fence is between, and the
//! two fences have an order:
//! - the waiter's comes first: the runner reads `transaction_has_waiter` = 1 and then the waiter's xid, and posts;
//! - the runner's comes first: the waiter reads that the transaction has left, and does not sleep.
//!
//! Without them both may read old values (each store still in its own CPU's buffer), and the waiter sleeps on.
//!
//! The runner lowers `transaction_has_waiter` only after its fence. A waiter whose raise that undoes wrote it before;
//! either its fence came first, and the runner's look at `waited_for_xids`, which follows, finds it, or its fence comes
//! later, and it sees the end. A waiter for the slot's *next* transaction learns of that one only after the session has
//! begun it, so after the lowering. A raise that comes late stays up until the next end, which costs that one a look at
//! the waits.
//!
//! Cost to a transaction without waiters: a fence and one load of a line of its own.
//!
//! # What a transaction takes back
//! A transaction that goes back to a savepoint frees rows and goes on. A waiter cannot know whether its row is among them,
//! so each take-back ends all waits for the transaction, and the waiters look at their rows again. The runner counts its
//! take-backs in its slot, beside its xid, after it has freed the rows, and then does as at its end.
//!
//! A waiter has looked at its row *before* it calls. A take-back between the two would leave it asleep until the next one or
//! the end. So a waiter remembers which count it knows: one that it does not know yet ends the wait at once. The caller looks
//! again, knowing that count, and what it then finds taken is taken behind it.

use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use clearway_machine::{AtomicWord, Machine, WaitEvent, WaitScope};

use crate::lock_table::{LockError, LockManager, LockWait, SleepOutcome};
use crate::{ProcId, Xid};

impl<M: Machine> LockManager<M> {
    /// Waits until `xid` has ended, that is until it has left the ProcArray; the commit log says how. Or until it has taken
    /// something back that this session does not know of: the caller looks again.
    pub fn wait_for_transaction(&self, proc: ProcId, xid: Xid, wait: LockWait<'_>) -> Result<(), LockError> {
        let Some(runner) = self.proc_array.find_running(xid) else {
            return Ok(());
        };
        debug_assert_ne!(runner, proc, "a session waits for its own transaction");
        let _event = WaitScope::<M>::enter(WaitEvent::LockTransaction);
        let waited_for_xid = &self.waited_for_xids[proc.0 as usize];
        let me = self.wait_of(proc);
        me.waited_for_proc.store(runner.0, Relaxed);
        // Release, all three stores: pair with the Acquire loads of `deadlock`, whose R2 says why. Relaxed: its own number.
        me.transaction_waits
            .store(me.transaction_waits.load(Relaxed) + 1, Release);
        waited_for_xid.store(xid.0, Release);
        self.wait_of(runner).transaction_has_waiter.store(1, Relaxed);
        // StoreLoad: pairs with the fence in `wake_waiters`, and with those of other waits (R3 of `deadlock`).
        M::fence(SeqCst);
        let started = self.wait_starts(proc);
        let mut checked = false;
        let take_backs = &self.wait_of(runner).take_backs;
        let known = me.known_take_backs.of(xid);
        let result = loop {
            let ended = || self.proc_array.xid_of(runner) != Some(xid) || take_backs.of(xid) != known;
            match self.sleep(proc, started, &mut checked, wait, ended) {
                SleepOutcome::Done => break Ok(()),
                SleepOutcome::GiveUp(error) => break Err(error),
                // A victim's wait ends under the partition latches, so that no second session of the cycle finds it.
                SleepOutcome::CheckDeadlock => {
                    if let Some(cycle) = self.look_for_deadlock(proc) {
                        break Err(LockError::Deadlock { cycle });
                    }
                }
            }
        };
        waited_for_xid.store(0, Release);
        me.known_take_backs.set(xid, take_backs.of(xid));
        result
    }

    /// `xid` of `proc`, which calls this, has taken something back and goes on: those who wait for it look again.
    pub fn wake_after_take_back(&self, proc: ProcId, xid: Xid) {
        let me = self.wait_of(proc);
        me.take_backs.set(xid, me.take_backs.of(xid) + 1);
        // StoreLoad: pairs with the fence in `wait_for_transaction`. The flag stays raised: its raiser may wait on.
        M::fence(SeqCst);
        if me.transaction_has_waiter.load(Relaxed) != 0 {
            self.post_waiters(xid);
        }
    }

    /// Ends `xid` of `proc` for all other sessions: it leaves the ProcArray, its locks are released, and the
    /// sessions that wait for its end are woken. The commit log says how it has ended, unless it counts as interrupted by a
    /// crash.
    ///
    /// Called by the session itself, before it begins another transaction.
    #[inline]
    pub fn end_transaction(&self, proc: ProcId, xid: Xid) {
        self.proc_array.end(proc, Some(xid));
        // R6 of the lock table: what the woken may need is given back first.
        self.release_all(proc);
        self.wake_waiters(proc, xid);
    }

    /// As [`end_transaction`](Self::end_transaction), for a commit that has entered the order of commits: it leaves when
    /// each commit has left whose record lies before its own. If it has to wait for that, `meanwhile` is called first.
    #[inline]
    pub fn end_commit(&self, proc: ProcId, xid: Xid, durable: u64, meanwhile: impl FnOnce()) {
        self.proc_array.end_commit(proc, xid, durable, meanwhile);
        // R6 of the lock table.
        self.release_all(proc);
        self.wake_waiters(proc, xid);
    }

    /// The transaction `xid` of `proc` has left the ProcArray.
    #[inline]
    fn wake_waiters(&self, proc: ProcId, xid: Xid) {
        // StoreLoad: pairs with the fence in `wait_for_transaction`.
        M::fence(SeqCst);
        let has_waiter = &self.wait_of(proc).transaction_has_waiter;
        if has_waiter.load(Relaxed) != 0 {
            has_waiter.store(0, Relaxed);
            self.post_waiters(xid);
        }
    }

    #[cold]
    fn post_waiters(&self, xid: Xid) {
        for waiter in self.proc_array.slots() {
            if self.transaction_waited_for(waiter) == Some(xid) {
                self.wait_of(waiter).semaphore.post();
            }
        }
    }
}
