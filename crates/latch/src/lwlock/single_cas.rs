//! Variants `single-cas`, `brief-polls` and `cohort` of the switch `lwlock`: one CAS proves the latch held and locks the list.
//!
//! A refused worker first polls, under `single-cas` for a part of its adaptive budget, 1/8 for exclusive and 1/2 for
//! shared, and under `brief-polls` for a fixed number of pauses. Then
//! it sets `LOCKED | HAS_WAITERS` by a CAS from the very word that refused it. Success proves that the latch
//! was held when the list was locked, so the worker joins the list and sleeps without another look, and no
//! worker ever dequeues itself.
//!
//! # Why brief
//! The list's lock is a bit of the word, and the list's ends are on the word's line. A worker that joins the list, and
//! one that wakes others, needs the line four or five times while it has the lock. Each look of a worker that polls for
//! the lock takes the line away in between, and with twelve such workers each of those times is a wait behind twelve
//! others. So the lock is held for microseconds, more workers come and poll, and they learn to poll for longer, because
//! in the end it pays for each of them. `brief-polls` looks three times and then sleeps for 0.1 ms, of which the
//! lock's holder needs a thousandth once it is left alone ([`Delay::brief`]).

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use clearway_machine::{AtomicWord, Machine, WaitMode, WaitQueue, WorkerId};

use super::cohort::Turn;
use super::slow_path::{Granted, SlowPath};
use super::state::{
    CLAIMED, EXCLUSIVE, HAS_WAITERS, LOCKED, Limit, WAKE_IN_PROGRESS, claimable_from_exclusive,
    claimable_from_readers, grantable, word_after_grant,
};
use super::{LatchMode, LwLock};
use crate::class::{ClassHandle, SpinPolicy};
use crate::delay::Delay;
use crate::spin::Spin;

/// Pauses of an exclusive before it queues, under `brief-polls`. Simulated on four sockets, anything from 8 to 64 does
/// the same, and 0 does 0.9 with few workers.
const BRIEF_EXCLUSIVE_PAUSES: u32 = 64;

/// Pauses of a reader before it queues, under `brief-polls`.
const BRIEF_SHARED_PAUSES: u32 = 256;

/// Pauses of a worker before it queues under `writer-claims`. With 40, workers sleep through sections of a microsecond, and
/// the wake-ups cost a third of the throughput.
const CLAIM_PAUSES: u32 = 300;

/// Pauses of a worker before its first look under `writer-claims`, unless it has claimed the latch: so long the worker that
/// has the line keeps it. With 64 empty sections are quicker, and a writer's 99.9th percentile is 1.5 times as long.
const YIELDED_PAUSES: u32 = 24;

/// The variants.
#[derive(Debug)]
pub(super) enum SingleCas {
    /// `single-cas`.
    Learned,
    /// `brief-polls`.
    Brief,
}

impl SingleCas {
    /// The polling of a worker before it queues. An exclusive that may claim the latch does not yield its CPU: the yield would
    /// return after the time slices of all others, and the worker would hold up every newcomer meanwhile. From the list the
    /// last reader's release wakes it at once.
    fn spin<M: Machine, K: ClassHandle>(&self, latch: &LwLock<M, K>, mode: LatchMode, delay: &Delay) -> Spin {
        let mut spin = Spin::with_budget::<M>(self.polls_before_queueing(latch, mode, delay));
        if latch.has_claims() {
            spin = spin.looking_after(YIELDED_PAUSES);
        }
        if latch.is_claimed_by(mode) {
            spin = spin.without_yields();
        }
        spin
    }

    /// Number of polls of a worker before it queues.
    fn polls_before_queueing<M: Machine, K: ClassHandle>(
        &self,
        latch: &LwLock<M, K>,
        mode: LatchMode,
        delay: &Delay,
    ) -> u32 {
        match (latch.class().spin_policy(), self, mode) {
            (SpinPolicy::None, ..) => 0,
            (SpinPolicy::Fixed(polls), ..) => polls,
            // To a checker the variants differ by nothing but how often they poll, and it cuts that to the same.
            (SpinPolicy::Adaptive, Self::Brief, LatchMode::Exclusive) if !M::EXPLORED => {
                BRIEF_EXCLUSIVE_PAUSES
            }
            (SpinPolicy::Adaptive, Self::Brief, LatchMode::Shared) if !M::EXPLORED => BRIEF_SHARED_PAUSES,
            // To a checker each pause is a step of its own, and one serves as well as many.
            (SpinPolicy::Adaptive, ..) if latch.has_claims() => {
                if M::EXPLORED {
                    1
                } else {
                    CLAIM_PAUSES
                }
            }
            (SpinPolicy::Adaptive, _, LatchMode::Exclusive) => delay.budget() / 8,
            (SpinPolicy::Adaptive, _, LatchMode::Shared) => delay.budget() / 2,
        }
    }
}

impl<M: Machine, K: ClassHandle> SlowPath<M, K> for SingleCas {
    fn acquire(
        &self,
        latch: &LwLock<M, K>,
        mode: LatchMode,
        worker: WorkerId,
        started: u64,
        delay: &mut Delay,
    ) -> Granted {
        let mut spin = self.spin(latch, mode, delay);
        let mut turn = Turn::of(latch, mode);
        let mut limit = latch.newcomer_limit();
        let claims = latch.is_claimed_by(mode);
        let mut surplus = 0;
        let mut sleeps = 0;
        let mut state = latch.state.load(Relaxed);
        let from = loop {
            if grantable(state, mode, limit) {
                if mode == LatchMode::Shared && latch.grants_by_addition(state) {
                    if latch.try_shared_by_addition() {
                        break state;
                    }
                    state = latch.state.load(Relaxed);
                    continue;
                }
                match latch.state.compare_exchange_weak(
                    state,
                    word_after_grant(state, mode, limit),
                    Acquire,
                    Relaxed,
                ) {
                    Ok(_) => break state,
                    Err(found) => state = found,
                }
            } else if claims
                && (claimable_from_readers(state) || (spin.has_looked() && claimable_from_exclusive(state)))
            {
                match latch
                    .state
                    .compare_exchange_weak(state, state | CLAIMED, Relaxed, Relaxed)
                {
                    Ok(_) => {
                        state |= CLAIMED;
                        // All newcomers wait for this worker.
                        spin.look_soon();
                        // R11: its own claim does not refuse it.
                        limit = limit.of_claimant();
                    }
                    Err(found) => state = found,
                }
            } else if state & LOCKED != 0 {
                // The worker that locked the list unlocks it within a few instructions, unless it has lost
                // its CPU.
                if delay.at_start() && turn.concerns() {
                    let slept = turn.sleeps_through();
                    // The word again, because `step` promises to poll what was loaded last.
                    state = latch.state.load(Relaxed);
                    if slept || state & LOCKED == 0 {
                        continue;
                    }
                }
                delay.step::<M>(latch.class().name);
                state = latch.state.load(Relaxed);
            } else if spin.poll::<M>() || turn.sleeps_through() {
                state = latch.state.load(Relaxed);
            } else {
                // Acquire: the list's links are visible, as in `lock_list`.
                match latch
                    .state
                    .compare_exchange_weak(state, state | LOCKED | HAS_WAITERS, Acquire, Relaxed)
                {
                    Ok(_) => {
                        latch.push(worker, mode.wait_mode(), started, sleeps > 0);
                        latch.unlock_list();
                        sleeps += 1;
                        surplus += latch.sleep(worker);
                        if latch.was_handed_over(worker) {
                            break latch.state.load(Relaxed);
                        }
                        // R3: clears the flag and looks, in one access.
                        state = latch.state.fetch_and(!WAKE_IN_PROGRESS, Relaxed) & !WAKE_IN_PROGRESS;
                        // R7: releases woke no worker because this one was about to look, so it must not be
                        // refused by the count.
                        limit = Limit::None;
                        delay.woken();
                        delay.total_spins += spin.polls();
                        spin = self.spin(latch, mode, delay);
                    }
                    Err(found) => state = found,
                }
            }
        };
        turn.granted();
        delay.total_spins += spin.polls();
        WaitQueue::<M>::repost(worker, surplus);
        // A worker that has queued takes the latch only after it was taken off the list, and asked whether it was handed over.
        Granted {
            from,
            sleeps,
            twice: false,
        }
    }

    fn acquire_or_wait(&self, latch: &LwLock<M, K>, worker: WorkerId, delay: &mut Delay) -> bool {
        let mut state = latch.state.load(Relaxed);
        loop {
            let limit = latch.newcomer_limit();
            if grantable(state, LatchMode::Exclusive, limit) {
                match latch.state.compare_exchange_weak(
                    state,
                    word_after_grant(state, LatchMode::Exclusive, limit),
                    Acquire,
                    Relaxed,
                ) {
                    Ok(_) => return true,
                    Err(found) => state = found,
                }
            } else if state & LOCKED == 0 {
                match latch
                    .state
                    .compare_exchange_weak(state, state | LOCKED | HAS_WAITERS, Acquire, Relaxed)
                {
                    Ok(_) => {
                        latch.push(worker, WaitMode::UntilFree, 0, false);
                        latch.unlock_list();
                        let surplus = latch.sleep(worker);
                        WaitQueue::<M>::repost(worker, surplus);
                        return false;
                    }
                    Err(found) => state = found,
                }
            } else {
                delay.step::<M>(latch.class().name);
                state = latch.state.load(Relaxed);
            }
        }
    }

    fn wait_for_var(
        &self,
        latch: &LwLock<M, K>,
        variable: &M::U64,
        old: u64,
        worker: WorkerId,
        delay: &mut Delay,
    ) -> (Result<(), u64>, u64) {
        let mut surplus = 0;
        let mut sleeps = 0;
        let mut state = latch.state.load(Acquire);
        let result = loop {
            if state & EXCLUSIVE == 0 {
                // Acquire for the load or the failed CAS that showed the word.
                M::fence(Acquire);
                break Ok(());
            }
            if state & LOCKED != 0 {
                delay.step::<M>(latch.class().name);
                state = latch.state.load(Relaxed);
                continue;
            }
            if let Err(found) = latch
                .state
                .compare_exchange_weak(state, state | LOCKED, Acquire, Relaxed)
            {
                state = found;
                continue;
            }
            // R4: `update_var` locks the list after its store. Either this load sees the store, or
            // `update_var` will find the caller on the list.
            let value = variable.load(Acquire);
            if value != old {
                latch.unlock_list();
                break Err(value);
            }
            state = latch.state.load(Relaxed);
            loop {
                if state & EXCLUSIVE == 0 {
                    break;
                }
                let queued = (state | HAS_WAITERS) & !WAKE_IN_PROGRESS;
                match latch.state.compare_exchange_weak(state, queued, Relaxed, Relaxed) {
                    Ok(_) => break,
                    Err(found) => state = found,
                }
            }
            if state & EXCLUSIVE == 0 {
                latch.unlock_list();
                M::fence(Acquire);
                break Ok(());
            }
            latch.push(worker, WaitMode::UntilFree, 0, false);
            latch.unlock_list();
            sleeps += 1;
            surplus += latch.sleep(worker);
            state = latch.state.load(Acquire);
        };
        WaitQueue::<M>::repost(worker, surplus);
        (result, sleeps)
    }
}
