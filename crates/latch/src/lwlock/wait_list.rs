//! The list of workers that sleep on an LwLock: a queue of workers that is changed only under `LOCKED`.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Picked, WaitMode, WaitQueue, WorkerId};

use super::LwLock;
use super::state::{GRANTS, HAS_WAITERS, LOCKED, WAKE_IN_PROGRESS};
use crate::delay::Delay;

impl<M: Machine> LwLock<M> {
    /// Takes `LOCKED`, spinning on plain reads while another worker has it.
    pub(super) fn lock_list(&self, delay: &mut Delay) {
        loop {
            // Acquire: pairs with the Release in `unlock_list`; the list's links are visible.
            if self.state.fetch_or(LOCKED, Acquire) & LOCKED == 0 {
                return;
            }
            while self.state.load(Relaxed) & LOCKED != 0 {
                delay.step::<M>(self.class.name);
            }
        }
    }

    /// Gives `LOCKED` back.
    pub(super) fn unlock_list(&self) {
        self.state.fetch_and(!LOCKED, Release);
    }

    /// Puts the calling worker on the list; `LOCKED` is held. A worker that waits for "free" goes to the
    /// head, so that all of these are woken together and none is behind an exclusive.
    pub(super) fn push(&self, worker: WorkerId, mode: WaitMode) {
        if mode == WaitMode::UntilFree {
            self.queue.push_front(worker, mode as u32);
        } else {
            self.queue.push_back(worker, mode as u32);
        }
    }

    /// Sleeps until taken off the list. Returns the number of posts that belong to the worker's other waits.
    pub(super) fn sleep(&self, worker: WorkerId) -> u32 {
        WaitQueue::<M>::sleep(worker, self.class.wait_event)
    }

    /// The mode in which `worker`, on the list, waits.
    pub(super) fn mode_of(worker: WorkerId) -> u32 {
        M::workers().slot(worker).mode.load(Relaxed)
    }

    /// The latch became free while workers slept: takes off the list the workers that may now run, and posts
    /// them.
    ///
    /// These are all workers that wait for "free". Of those that want the latch, it is the first alone if
    /// that one wants it exclusively, and otherwise all that want it shared.
    #[cold]
    pub(super) fn wake(&self) {
        let mut delay = self.delay(M::worker());
        let mut picked = Picked::none();
        let mut woke_wanting = false;
        let mut woke_exclusive = false;
        self.lock_list(&mut delay);
        for waiter in self.queue.workers() {
            let mode = Self::mode_of(waiter);
            if woke_wanting && mode == WaitMode::Exclusive as u32 {
                continue;
            }
            self.queue.pick(&mut picked, waiter);
            // R5: a worker that waits for "free" will not look at the word, so it must not suppress other
            // wake-ups.
            woke_wanting |= mode != WaitMode::UntilFree as u32;
            if mode == WaitMode::Exclusive as u32 {
                woke_exclusive = true;
                break;
            }
        }
        let mut state = self.state.load(Relaxed);
        loop {
            let mut new = state & !(LOCKED | WAKE_IN_PROGRESS);
            if woke_wanting {
                new |= WAKE_IN_PROGRESS;
            }
            if self.queue.is_empty() {
                new &= !HAS_WAITERS;
            }
            // R7: an exclusive clears the count at its grant; no other worker does.
            if !woke_exclusive {
                new &= !GRANTS;
            }
            match self.state.compare_exchange_weak(state, new, Release, Relaxed) {
                Ok(_) => break,
                Err(found) => state = found,
            }
        }
        picked.post_all();
        delay.finish::<M>();
    }
}
