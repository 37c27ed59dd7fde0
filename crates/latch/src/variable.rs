//! Waiting for a latch without wanting it.
//!
//! `acquire_or_wait` serves group work: whoever gets the latch does the work for all; the others sleep until it is free
//! and then look whether their part has been done. `wait_for_var` waits until the exclusive holder has let go *or* has
//! moved a variable on; the log uses it to wait for insertions in progress.
//!
//! R4: *no change goes unseen.* The holder changes the variable first and locks the list second; a waiter locks the list
//! first, to get on it, and compares the variable second (queued) or while it holds the list (single CAS). Of the two that
//! lock the list one comes first. The waiter first: the holder finds it on the list. The holder first: the waiter's lock
//! acquires what the holder's unlock released, so the new value is seen.
//!
//! R5: a worker that waits here leaves the latch alone, so it must never be the one woken worker on whose account others
//! are not woken: being picked in mode `UntilFree` does not set WAKE_IN_PROGRESS.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, WaitMode, WorkerId};

use crate::LatchMode;
use crate::class::Wait;
use crate::delay::Delay;
use crate::guard::LwLockExclusive;
use crate::lwlock::LwLock;
use crate::options::LwLockVariant;
use crate::order;
use crate::state::{EXCLUSIVE, HAS_WAITERS, LOCKED, SHARED_MASK, UNLIMITED, WAKE_IN_PROGRESS, granted};
use crate::wait_list::{Picked, slot};

impl<M: Machine> LwLock<M> {
    /// Gets the latch exclusively, or sleeps until it is free and returns `None` without it.
    #[track_caller]
    pub fn acquire_or_wait(&self) -> Option<LwLockExclusive<'_, M>> {
        order::acquiring::<M>(self.class, core::ptr::from_ref(self).cast());
        if self.try_acquire(LatchMode::Exclusive) {
            return Some(LwLockExclusive::new(self));
        }
        M::label(core::ptr::from_ref(self).cast(), self.class.name);
        let worker = M::worker();
        let started = M::now();
        let mut delay = Delay::new::<M>(worker);
        let acquired = match self.algorithm {
            LwLockVariant::Queued | LwLockVariant::QueuedScan => {
                self.acquire_or_wait_queued(worker, &mut delay)
            }
            LwLockVariant::SingleCas => self.acquire_or_wait_single_cas(worker, &mut delay),
        };
        let waited = M::now().saturating_sub(started);
        self.class
            .record(Wait::UntilFree, delay.total_spins, u64::from(!acquired), waited);
        delay.finish::<M>();
        if !acquired {
            return None;
        }
        self.acquired(LatchMode::Exclusive);
        Some(LwLockExclusive::new(self))
    }

    fn acquire_or_wait_queued(&self, worker: WorkerId, delay: &mut Delay) -> bool {
        self.queue_self(worker, WaitMode::UntilFree, delay);
        if self.attempt(LatchMode::Exclusive) {
            self.dequeue_self(worker, delay);
            return true;
        }
        let surplus = self.sleep(worker);
        Self::repost(worker, surplus);
        false
    }

    fn acquire_or_wait_single_cas(&self, worker: WorkerId, delay: &mut Delay) -> bool {
        let mut state = self.state.load(Relaxed);
        loop {
            if state & (EXCLUSIVE | SHARED_MASK) == 0 {
                match self.state.compare_exchange_weak(
                    state,
                    granted(state, LatchMode::Exclusive, UNLIMITED),
                    Acquire,
                    Relaxed,
                ) {
                    Ok(_) => return true,
                    Err(found) => state = found,
                }
            } else if state & LOCKED == 0 {
                match self
                    .state
                    .compare_exchange_weak(state, state | LOCKED | HAS_WAITERS, Acquire, Relaxed)
                {
                    Ok(_) => {
                        self.push(worker, WaitMode::UntilFree);
                        self.unlock_list();
                        let surplus = self.sleep(worker);
                        Self::repost(worker, surplus);
                        return false;
                    }
                    Err(found) => state = found,
                }
            } else {
                delay.step::<M>(self.class.name);
                state = self.state.load(Relaxed);
            }
        }
    }

    /// Waits until nobody holds the latch exclusively (`Ok`) or `variable` differs from `old` (`Err` with its value).
    /// Shared holders do not matter. Acquire: what the holder wrote before it let go or moved the variable is visible.
    pub fn wait_for_var(&self, variable: &M::U64, old: u64) -> Result<(), u64> {
        // Acquire: pairs with the Release of the holder's `release`.
        if self.state.load(Acquire) & EXCLUSIVE == 0 {
            return Ok(());
        }
        let value = variable.load(Acquire);
        if value != old {
            return Err(value);
        }
        M::label(core::ptr::from_ref(self).cast(), self.class.name);
        let worker = M::worker();
        let started = M::now();
        let mut delay = Delay::new::<M>(worker);
        let (result, sleeps) = match self.algorithm {
            LwLockVariant::Queued | LwLockVariant::QueuedScan => {
                self.wait_for_var_queued(variable, old, worker, &mut delay)
            }
            LwLockVariant::SingleCas => self.wait_for_var_single_cas(variable, old, worker, &mut delay),
        };
        self.class.record(
            Wait::UntilFree,
            delay.total_spins,
            sleeps,
            M::now().saturating_sub(started),
        );
        delay.finish::<M>();
        result
    }

    /// `Some` when there is nothing to wait for.
    fn variable_verdict(&self, variable: &M::U64, old: u64) -> Option<Result<(), u64>> {
        if self.state.load(Acquire) & EXCLUSIVE == 0 {
            return Some(Ok(()));
        }
        let value = variable.load(Acquire);
        (value != old).then_some(Err(value))
    }

    fn wait_for_var_queued(
        &self,
        variable: &M::U64,
        old: u64,
        worker: WorkerId,
        delay: &mut Delay,
    ) -> (Result<(), u64>, u64) {
        let mut surplus = 0;
        let mut sleeps = 0;
        let result = loop {
            self.queue_self(worker, WaitMode::UntilFree, delay);
            // A woken worker may have set out for the latch before we were on the list: its release must wake us even
            // if it has not looked yet.
            self.state.fetch_and(!WAKE_IN_PROGRESS, Relaxed);
            // R4: our stay on the list comes before this look at the variable.
            if let Some(verdict) = self.variable_verdict(variable, old) {
                self.dequeue_self(worker, delay);
                break verdict;
            }
            sleeps += 1;
            surplus += self.sleep(worker);
            if let Some(verdict) = self.variable_verdict(variable, old) {
                break verdict;
            }
        };
        Self::repost(worker, surplus);
        (result, sleeps)
    }

    fn wait_for_var_single_cas(
        &self,
        variable: &M::U64,
        old: u64,
        worker: WorkerId,
        delay: &mut Delay,
    ) -> (Result<(), u64>, u64) {
        let mut surplus = 0;
        let mut sleeps = 0;
        let mut state = self.state.load(Acquire);
        let result = loop {
            if state & EXCLUSIVE == 0 {
                // Acquire by the load or failed CAS that showed it.
                M::fence(Acquire);
                break Ok(());
            }
            if state & LOCKED != 0 {
                delay.step::<M>(self.class.name);
                state = self.state.load(Relaxed);
                continue;
            }
            if let Err(found) = self
                .state
                .compare_exchange_weak(state, state | LOCKED, Acquire, Relaxed)
            {
                state = found;
                continue;
            }
            // R4: `update_var` locks the list after its store, so either we see the store or it will see us.
            let value = variable.load(Acquire);
            if value != old {
                self.unlock_list();
                break Err(value);
            }
            state = self.state.load(Relaxed);
            loop {
                if state & EXCLUSIVE == 0 {
                    break;
                }
                let queued = (state | HAS_WAITERS) & !WAKE_IN_PROGRESS;
                match self.state.compare_exchange_weak(state, queued, Relaxed, Relaxed) {
                    Ok(_) => break,
                    Err(found) => state = found,
                }
            }
            if state & EXCLUSIVE == 0 {
                self.unlock_list();
                M::fence(Acquire);
                break Ok(());
            }
            self.push(worker, WaitMode::UntilFree);
            self.unlock_list();
            sleeps += 1;
            surplus += self.sleep(worker);
            state = self.state.load(Acquire);
        };
        Self::repost(worker, surplus);
        (result, sleeps)
    }
}

impl<M: Machine> LwLockExclusive<'_, M> {
    /// Sets `variable` and wakes those that wait for it to change.
    pub fn update_var(&self, variable: &M::U64, value: u64) {
        self.latch().update_var(variable, value);
    }

    /// Sets `variable` and releases the latch.
    pub fn release_clear_var(self, variable: &M::U64, value: u64) {
        // Release: a waiter may see the cleared variable before it sees the latch free, and returns with it.
        variable.store(value, Release);
        drop(self);
    }
}

impl<M: Machine> LwLock<M> {
    /// Sets `variable` and wakes the workers that wait for it to change; the caller holds the latch exclusively.
    pub fn update_var(&self, variable: &M::U64, value: u64) {
        debug_assert!(self.is_held_exclusive(), "update_var without the exclusive latch");
        // R4: the variable first, then the list. Release: pairs with the Acquire in `variable_verdict` and at the start of
        // `wait_for_var`; what the holder wrote before it moved the variable is visible.
        variable.swap(value, AcqRel);
        let mut delay = Delay::new::<M>(M::worker());
        let mut picked = Picked::none();
        self.lock_list(&mut delay);
        // Those that wait for the latch to be free stand at the head, all together.
        let mut number = self.head.load(Relaxed);
        while number != WorkerId::NONE {
            let waiter = slot::<M>(number);
            if waiter.mode.load(Relaxed) != WaitMode::UntilFree as u32 {
                break;
            }
            let next = waiter.next.load(Relaxed);
            self.pick(&mut picked, number);
            number = next;
        }
        if self.list_is_empty() {
            self.state.fetch_and(!HAS_WAITERS, Relaxed);
        }
        self.unlock_list();
        Self::post_all(picked);
        delay.finish::<M>();
    }
}
