//! Standing in for a worker that has died asleep on an LwLock in memory that processes share (R12).
//!
//! A worker that is killed while it sleeps leaves one of three states, which its slot tells apart under `LOCKED`:
//!
//! | its slot | it is | the worker that stands in |
//! | --- | --- | --- |
//! | queued | on the list | takes it off |
//! | picked | between the waker's list and its post | comes again: a waker that lives posts within a few instructions |
//! | not waiting | woken, and has not looked | clears what a woken worker clears; releases what was handed over |
//!
//! Then it looks at the word as a woken worker does, and wakes the next if the latch is free.
//!
//! # Example: the wake-up of a dead worker
//! Dora and Emil sleep; Alice releases.
//!
//! | time | Alice | Dora | Emil | the worker that stands in |
//! | --- | --- | --- | --- | --- |
//! | 1 | takes Dora off the list, sets `WAKE_IN_PROGRESS`, posts | | sleeps | |
//! | 2 | | is killed | sleeps | |
//! | 3 | takes and releases: wakes no worker because of the flag | | sleeps | |
//! | 4 | | | sleeps | clears the flag, sees a free latch with waiters: wakes Emil |
//!
//! Without time 4 Emil sleeps for ever on a free latch.
//!
//! # Why the flag may be another worker's
//! Between Dora's death and time 4 another worker may have been woken, whose flag is cleared here before it looks. R3 holds: a
//! release that woke no worker because of the flag came before this clearing, and the look that follows it is here.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, WaitQueue, WorkerId};

use super::options::LwLockVariant;
use super::state::{EXCLUSIVE, GRANTS, HAS_WAITERS, LOCKED, SHARED_UNIT, WAKE_IN_PROGRESS, must_wake};
use super::waiter::Waiter;
use super::{LatchMode, LwLock};
use crate::class::ClassHandle;

/// The result of one attempt to stand in for a dead worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a worker that is not settled yet keeps a wake-up that others wait for"]
pub enum RecoveredWaiter {
    /// The dead worker is on no list, and what was meant for it has gone on to the next.
    Settled,
    /// Nothing was done: another worker has the list locked, or is about to post the dead one. If that one lives the next
    /// attempt finds it done.
    NotYet,
}

impl<M: Machine, K: ClassHandle> LwLock<M, K> {
    /// Stands in for `worker`, which has died asleep on this latch: no wake-up is lost with it. One attempt, which does not
    /// wait.
    ///
    /// # Safety
    /// The worker is dead: it was in [`acquire`](Self::acquire), [`acquire_or_wait`](Self::acquire_or_wait) or
    /// [`wait_for_var`](Self::wait_for_var) of this latch, in the sleep itself and not before or behind it, and will execute
    /// no further instruction. No other worker stands in for it, and its number is not given to another before this has
    /// returned [`Settled`](RecoveredWaiter::Settled). The latch is not of the variants `queued` and `queued-scan`, where
    /// a worker that has the latch may sleep.
    pub unsafe fn recover_waiter(&self, worker: WorkerId) -> RecoveredWaiter {
        debug_assert!(
            !matches!(self.algorithm, LwLockVariant::Queued | LwLockVariant::QueuedScan),
            "a worker of this variant may hold the latch asleep"
        );
        // Acquire: the list's links are visible, as in `lock_list`.
        if self.state.fetch_or(LOCKED, Acquire) & LOCKED != 0 {
            return RecoveredWaiter::NotYet;
        }
        if WaitQueue::<M>::is_picked(worker) {
            self.unlock_list();
            return RecoveredWaiter::NotYet;
        }
        let was_queued = WaitQueue::<M>::is_queued(worker);
        if was_queued {
            // SAFETY: the caller stands in for the worker, which is on this latch's list, and has `LOCKED`.
            unsafe { self.queue.remove(worker) };
        }
        let was_granted = !was_queued && self.hands_over() && Waiter::was_granted::<M>(worker);
        if was_granted {
            self.give_back_unused_grant();
        }
        self.look_for_woken_worker();
        RecoveredWaiter::Settled
    }

    /// Subtracts the unit that was handed over to a worker which never ran with it. `LOCKED` is held.
    fn give_back_unused_grant(&self) {
        // The unit is in the word: an exclusive one is alone there.
        let mode = match self.state.load(Relaxed) & EXCLUSIVE {
            0 => LatchMode::Shared,
            _ => LatchMode::Exclusive,
        };
        let unit = match mode {
            LatchMode::Exclusive => EXCLUSIVE,
            LatchMode::Shared => SHARED_UNIT,
        };
        // Release: the hand-over has acquired on behalf of the dead worker what the holder before it wrote.
        self.state.fetch_sub(unit, Release);
    }

    /// Clears what a woken worker clears, looks, and wakes the next if the latch is free. `LOCKED` is held, and given back.
    fn look_for_woken_worker(&self) {
        let is_empty = self.queue.is_empty();
        let mut state = self.state.load(Relaxed);
        loop {
            // R3, R7, R11: the flag, a full count and a claim were to be cleared by the worker that died.
            let mut cleared = state & !(WAKE_IN_PROGRESS | GRANTS);
            if is_empty {
                cleared &= !HAS_WAITERS;
            }
            let wakes = must_wake(cleared);
            let new = if wakes { cleared } else { cleared & !LOCKED };
            // Release: pairs with the Acquire in `lock_list`; the list's links are visible.
            match self.state.compare_exchange_weak(state, new, Release, Relaxed) {
                Ok(_) if wakes => return self.wake_and_unlock(),
                Ok(_) => return,
                Err(found) => state = found,
            }
        }
    }
}
