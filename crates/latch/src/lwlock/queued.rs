//! Variants `queued` and `queued-scan` of the switch `lwlock`: queue, try again, dequeue.
//!
//! A refused worker joins the list and looks at the word once more. If that look grants the latch, the worker
//! takes itself off the list; otherwise it sleeps.
//!
//! `queued` is what PostgreSQL ships: a worker's slot says whether it is still on the list. `queued-scan` is
//! what PostgreSQL shipped before 2022: the worker looks for itself on the list from the head, under the
//! list's lock. With n workers that reads n lines. The longer the list stays locked, the more workers find
//! the latch free when they have queued, and must dequeue.

use core::sync::atomic::Ordering::{Acquire, Relaxed};

use clearway_machine::{AtomicWord, Machine, WaitMode, WaitQueue, WorkerId};

use super::slow_path::{Granted, SlowPath};
use super::state::{EXCLUSIVE, GRANTS, HAS_WAITERS, Limit, WAKE_IN_PROGRESS};
use super::{LatchMode, LwLock};
use crate::class::ClassHandle;
use crate::delay::Delay;

/// A worker's slot says whether it is on the list: the baseline.
#[derive(Debug)]
pub(super) struct Queued;

/// A worker looks for itself on the list: the baseline of its time.
#[derive(Debug)]
pub(super) struct QueuedScan;

/// True if a worker is on a latch's list; `LOCKED` is held.
trait FindSelf: Sync {
    fn is_listed<M: Machine, K: ClassHandle>(latch: &LwLock<M, K>, worker: WorkerId) -> bool;
}

impl FindSelf for Queued {
    fn is_listed<M: Machine, K: ClassHandle>(_latch: &LwLock<M, K>, worker: WorkerId) -> bool {
        WaitQueue::<M>::is_queued(worker)
    }
}

impl FindSelf for QueuedScan {
    fn is_listed<M: Machine, K: ClassHandle>(latch: &LwLock<M, K>, worker: WorkerId) -> bool {
        latch.queue.workers().any(|listed| listed == worker)
    }
}

impl<M: Machine, K: ClassHandle, F: FindSelf> SlowPath<M, K> for F {
    fn acquire(
        &self,
        latch: &LwLock<M, K>,
        mode: LatchMode,
        worker: WorkerId,
        started: u64,
        delay: &mut Delay,
    ) -> Granted {
        let mut limit = latch.newcomer_limit();
        let mut surplus = 0;
        let mut sleeps = 0;
        let mut twice = false;
        let from = loop {
            if let Some(granted_from) = latch.try_grant_limited(latch.state.load(Relaxed), mode, limit) {
                break granted_from;
            }
            queue_self(latch, worker, mode.wait_mode(), started, sleeps > 0, delay);
            // R2: this look follows the caller's HAS_WAITERS on the same word.
            if let Some(granted_from) = latch.try_grant_limited(latch.state.load(Relaxed), mode, limit) {
                // R10.
                twice = dequeue_self::<M, K, F>(latch, worker, delay);
                break granted_from;
            }
            if latch.is_claimed_by(mode) {
                latch.claim();
            }
            sleeps += 1;
            surplus += latch.sleep(worker);
            if latch.was_handed_over(worker) {
                break latch.state.load(Relaxed);
            }
            // R3: from here on a release must wake again.
            latch.state.fetch_and(!WAKE_IN_PROGRESS, Relaxed);
            // R7: releases woke no worker because this one was about to look, so it must not be refused by
            // the count.
            limit = Limit::None;
        };
        WaitQueue::<M>::repost(worker, surplus);
        Granted { from, sleeps, twice }
    }

    fn acquire_or_wait(&self, latch: &LwLock<M, K>, worker: WorkerId, delay: &mut Delay) -> bool {
        queue_self(latch, worker, WaitMode::UntilFree, 0, false, delay);
        if latch.try_grant(LatchMode::Exclusive) {
            let _ = dequeue_self::<M, K, F>(latch, worker, delay);
            return true;
        }
        let surplus = latch.sleep(worker);
        WaitQueue::<M>::repost(worker, surplus);
        false
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
        let result = loop {
            queue_self(latch, worker, WaitMode::UntilFree, 0, false, delay);
            // A worker woken before the caller joined the list may not have looked yet. Its release must wake
            // the caller all the same.
            latch.state.fetch_and(!WAKE_IN_PROGRESS, Relaxed);
            // R4: joining the list comes before this look at the variable.
            if let Some(result) = end_of_wait(latch, variable, old) {
                let _ = dequeue_self::<M, K, F>(latch, worker, delay);
                break result;
            }
            sleeps += 1;
            surplus += latch.sleep(worker);
            if let Some(result) = end_of_wait(latch, variable, old) {
                break result;
            }
        };
        WaitQueue::<M>::repost(worker, surplus);
        (result, sleeps)
    }
}

/// The result of `wait_for_var`, if there is nothing to wait for.
fn end_of_wait<M: Machine, K: ClassHandle>(
    latch: &LwLock<M, K>,
    variable: &M::U64,
    old: u64,
) -> Option<Result<(), u64>> {
    if latch.state.load(Acquire) & EXCLUSIVE == 0 {
        return Some(Ok(()));
    }
    let value = variable.load(Acquire);
    (value != old).then_some(Err(value))
}

/// Puts the calling worker on the list, in a wait that began at `started`.
fn queue_self<M: Machine, K: ClassHandle>(
    latch: &LwLock<M, K>,
    worker: WorkerId,
    mode: WaitMode,
    started: u64,
    again: bool,
    delay: &mut Delay,
) {
    latch.lock_list(delay);
    latch.state.fetch_or(HAS_WAITERS, Relaxed);
    latch.push(worker, mode, started, again);
    latch.unlock_list();
}

/// Takes the calling worker off the list because it need not sleep. `true`: another worker had taken it off and handed the
/// latch over to it.
fn dequeue_self<M: Machine, K: ClassHandle, F: FindSelf>(
    latch: &LwLock<M, K>,
    worker: WorkerId,
    delay: &mut Delay,
) -> bool {
    latch.lock_list(delay);
    if F::is_listed(latch, worker) {
        // SAFETY: the caller is the worker, which is on the list, and has `LOCKED`.
        unsafe { latch.queue.remove(worker) };
        if latch.queue.is_empty() {
            // R7: with no waiter left, no release will wake a reader that the full count refuses.
            latch.state.fetch_and(!(HAS_WAITERS | GRANTS), Relaxed);
        }
        latch.unlock_list();
        return false;
    }
    latch.unlock_list();
    // Another worker has taken the caller off the list, so a post is coming.
    let surplus = latch.sleep(worker);
    WaitQueue::<M>::repost(worker, surplus);
    if latch.was_handed_over(worker) {
        return true;
    }
    // R3: the caller is the woken worker and clears the flag. R11: it has got the latch already, by a grant that left the
    // count, and no other worker would clear it. Without claims the count goes on (R7, R10).
    let counted = if latch.has_claims() { GRANTS } else { 0 };
    latch.state.fetch_and(!(WAKE_IN_PROGRESS | counted), Relaxed);
    false
}
