//! Waiting for a latch without wanting it, and for a variable that its holder changes (R4, R5).
//!
//! `acquire_or_wait` serves group work: the worker that gets the latch does the work for all. The others
//! sleep until they are woken and then look whether their part has been done. `wait_for_var` waits until
//! the exclusive holder has released the latch *or* has changed a variable; the log uses it to wait for
//! insertions in progress.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Picked, WaitMode};

use super::guard::LwLockExclusive;
use super::state::{EXCLUSIVE, GRANTS, HAS_WAITERS};
use super::waiter::Waiter;
use super::{LatchMode, LwLock};
use crate::class::{ClassHandle, Wait};
use crate::order;

impl<M: Machine, K: ClassHandle> LwLock<M, K> {
    /// Gets the latch exclusively, or sleeps until a wake-up reaches it and returns `None` without it. The wake-up is that of
    /// a release or of an [`update_var`](LwLockExclusive::update_var). The release may be older than the call: between it
    /// and its wake-up another worker may have got the latch, and the caller may have found it held. So the caller checks
    /// whether its work has been done, and calls again if not.
    #[track_caller]
    pub fn acquire_or_wait(&self) -> Option<LwLockExclusive<'_, M, K>> {
        order::acquiring::<M>(self.class(), core::ptr::from_ref(self).cast());
        if self.try_acquire(LatchMode::Exclusive) {
            return Some(LwLockExclusive::new(self));
        }
        M::label(core::ptr::from_ref(self).cast(), self.class().name);
        self.class().begin_wait();
        let worker = M::worker();
        let started = M::now();
        let mut delay = self.delay(Some(worker));
        let acquired = self.slow_path().acquire_or_wait(self, worker, &mut delay);
        let waited = M::now().saturating_sub(started);
        self.class()
            .record(Wait::UntilFree, delay.total_spins, u64::from(!acquired), waited);
        delay.finish::<M>();
        if !acquired {
            return None;
        }
        self.note_acquired(LatchMode::Exclusive);
        Some(LwLockExclusive::new(self))
    }

    /// Waits until the latch is not held exclusively (`Ok`) or `variable` differs from `old` (`Err` with its
    /// value). Shared holders do not matter. Acquire: what the holder wrote before it released or changed the
    /// variable is visible.
    #[track_caller]
    pub fn wait_for_var(&self, variable: &M::U64, old: u64) -> Result<(), u64> {
        // Acquire: pairs with the Release of the holder's `release`.
        if self.state.load(Acquire) & EXCLUSIVE == 0 {
            return Ok(());
        }
        let value = variable.load(Acquire);
        if value != old {
            return Err(value);
        }
        M::label(core::ptr::from_ref(self).cast(), self.class().name);
        self.class().begin_wait();
        let worker = M::worker();
        let started = M::now();
        let mut delay = self.delay(Some(worker));
        let (result, sleeps) = self
            .slow_path()
            .wait_for_var(self, variable, old, worker, &mut delay);
        self.class().record(
            Wait::UntilFree,
            delay.total_spins,
            sleeps,
            M::now().saturating_sub(started),
        );
        delay.finish::<M>();
        result
    }
}

impl<M: Machine, K: ClassHandle> LwLockExclusive<'_, M, K> {
    /// Sets `variable` and wakes the workers that wait for it to change.
    pub fn update_var(&self, variable: &M::U64, value: u64) {
        self.latch().update_var(variable, value);
    }

    /// Sets `variable` and releases the latch.
    pub fn release_clear_var(self, variable: &M::U64, value: u64) {
        // Release: a waiter may see the cleared variable before it sees the latch free, and returns then.
        variable.store(value, Release);
        drop(self);
    }
}

impl<M: Machine, K: ClassHandle> LwLock<M, K> {
    /// Sets `variable` and wakes the workers that wait for it to change; the caller holds the latch
    /// exclusively.
    pub fn update_var(&self, variable: &M::U64, value: u64) {
        debug_assert!(self.is_held_exclusive(), "update_var without the exclusive latch");
        // R4: the variable first, then the list. Release: pairs with the Acquire loads of the variable in
        // `wait_for_var`; what the holder wrote before it changed the variable is visible.
        variable.swap(value, AcqRel);
        // A holder needs no slot to wake others: it must not wait for one that they have.
        let mut delay = self.delay(M::known_worker());
        let mut picked = Picked::none();
        self.lock_list(&mut delay);
        // The workers that wait for "free" are at the head, all together.
        for waiter in self.queue.workers() {
            if !Waiter::of::<M>(waiter).waits(WaitMode::UntilFree) {
                break;
            }
            // SAFETY: the worker is on the list, and `LOCKED` is held.
            unsafe { self.queue.pick(&mut picked, waiter) };
        }
        if self.queue.is_empty() {
            // R10: the holder itself may have been overdue on the list when a waker set `OVERDUE`.
            self.state.fetch_and(!(HAS_WAITERS | GRANTS), Relaxed);
        }
        self.unlock_list();
        picked.post_all();
        delay.finish::<M>();
    }
}
