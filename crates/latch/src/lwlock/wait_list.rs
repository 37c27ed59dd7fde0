//! The list of workers that sleep on an LwLock: a queue of workers that is changed only under `LOCKED`.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Picked, WaitMode, WaitQueue, WorkerId};

use super::fairness::HandOver;
use super::state::{GRANTS, HAS_WAITERS, LOCKED, WAKE_IN_PROGRESS};
use super::waiter::Waiter;
use super::{LatchMode, LwLock};
use crate::class::ClassHandle;
use crate::delay::Delay;

impl<M: Machine, K: ClassHandle> LwLock<M, K> {
    /// Takes `LOCKED`, spinning on plain reads while another worker has it.
    pub(super) fn lock_list(&self, delay: &mut Delay) {
        loop {
            // Acquire: pairs with the Release in `unlock_list`; the list's links are visible.
            if self.state.fetch_or(LOCKED, Acquire) & LOCKED == 0 {
                return;
            }
            while self.state.load(Relaxed) & LOCKED != 0 {
                delay.step::<M>(self.class().name);
            }
        }
    }

    /// Gives `LOCKED` back.
    pub(super) fn unlock_list(&self) {
        self.state.fetch_and(!LOCKED, Release);
    }

    /// Puts the calling worker on the list; `LOCKED` is held. A worker that waits for "free" goes to the
    /// head, so that all of these are woken together and none is behind an exclusive.
    ///
    /// `started` is when its wait began, and `again` whether it has been woken in vain since. Under `hand-over` and `writer-claims` such a
    /// worker keeps its place before those that want the latch.
    pub(super) fn push(&self, worker: WorkerId, mode: WaitMode, started: u64, again: bool) {
        let waiter = Waiter::new::<M>(mode, started);
        if mode == WaitMode::UntilFree {
            // SAFETY: the caller is the worker, and has `LOCKED`.
            unsafe { self.queue.push_front(worker, waiter.word()) };
        } else if again && self.hands_over() {
            let until_free = |word| Waiter::from_word(word).waits(WaitMode::UntilFree);
            // SAFETY: as above.
            unsafe { self.queue.push_behind(worker, waiter.word(), until_free) };
        } else {
            // SAFETY: as above.
            unsafe { self.queue.push_back(worker, waiter.word()) };
        }
    }

    /// Sleeps until taken off the list. Returns the number of posts that belong to the worker's other waits.
    #[cfg_attr(any(feature = "loom", feature = "shuttle"), track_caller)]
    pub(super) fn sleep(&self, worker: WorkerId) -> u32 {
        WaitQueue::<M>::sleep(worker, self.class().wait_event)
    }

    /// The latch became free while workers slept: takes off the list the workers that may now run, and posts
    /// them.
    ///
    /// These are all workers that wait for "free". Of those that want the latch, it is the first alone if
    /// that one wants it exclusively, and otherwise all that want it shared. If the first is overdue, the same workers get
    /// the latch itself ([`hand_over`](Self::hand_over)).
    #[cold]
    pub(super) fn wake(&self) {
        // A worker needs no slot to wake others: it must not wait for one that they have.
        let mut delay = self.delay(M::known_worker());
        self.lock_list(&mut delay);
        self.wake_and_unlock();
        delay.finish::<M>();
    }

    /// The rest of [`wake`](Self::wake), by a worker that has `LOCKED`, which this gives back.
    pub(super) fn wake_and_unlock(&self) {
        let mut picked = Picked::none();
        let hand_over = self.hand_over();
        let mode = self.pick(&mut picked, hand_over);
        // R5: a worker that waits for "free" will not look at the word, so it must not suppress other wake-ups. Nor will
        // one that has the latch already.
        let mut state = self.state.load(Relaxed);
        loop {
            let mut new = state & !LOCKED;
            if hand_over == HandOver::NotDue {
                new &= !WAKE_IN_PROGRESS;
                if mode.is_some() {
                    new |= WAKE_IN_PROGRESS;
                }
                // R7: an exclusive clears the count at its grant; no other worker does. R11: a wake-up ends a claim.
                if mode != Some(LatchMode::Exclusive) || self.has_claims() {
                    new &= !GRANTS;
                }
            }
            // R11: the flag of a list that is empty has those that pass the woken worker counted. Its release finds no worker.
            let counts_on = hand_over == HandOver::NotDue && mode.is_some() && self.has_claims();
            if self.queue.is_empty() && !counts_on {
                new &= !HAS_WAITERS;
                // R7: with no waiter left, no release will wake a reader that the full count refuses.
                if hand_over != HandOver::NotDue {
                    new &= !GRANTS;
                }
            }
            match self.state.compare_exchange_weak(state, new, Release, Relaxed) {
                Ok(_) => break,
                Err(found) => state = found,
            }
        }
        picked.post_all();
    }

    /// Takes off the list all that wait for "free", and of those that want the latch as the first of them does, or as it
    /// was handed over, all readers or the first exclusive. `LOCKED` is held. Returns the mode of those that want the latch;
    /// `None` if there are none.
    fn pick(&self, picked: &mut Picked<M>, hand_over: HandOver) -> Option<LatchMode> {
        let mut mode = match hand_over {
            HandOver::Granted(mode) => Some(mode),
            HandOver::NotDue | HandOver::Stopped => None,
        };
        for worker in self.queue.workers() {
            let wants = Waiter::of::<M>(worker).wants();
            if let Some(wanted) = wants {
                if hand_over == HandOver::Stopped {
                    // Those that wait for "free" are at the head.
                    break;
                }
                if *mode.get_or_insert(wanted) != wanted {
                    continue;
                }
            }
            // SAFETY: the worker is on the list, and `LOCKED` is held.
            unsafe { self.queue.pick(picked, worker) };
            if wants.is_some() && matches!(hand_over, HandOver::Granted(_)) {
                // SAFETY: as above, and `hand_over` has added the units of all workers that are picked here.
                unsafe { Waiter::grant::<M>(worker) };
            }
            if wants == Some(LatchMode::Exclusive) {
                break;
            }
        }
        mode
    }
}
