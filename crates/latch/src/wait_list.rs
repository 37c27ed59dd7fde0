//! The list of workers that sleep on a latch: a doubly linked list of slot numbers, changed only under `LOCKED`.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, WaitMode, WaitScope, WorkerId, WorkerSlot};

use crate::delay::Delay;
use crate::lwlock::LwLock;
use crate::state::{GRANTS, HAS_WAITERS, LOCKED, WAKE_IN_PROGRESS};

/// Values of a slot's `waiting`.
pub(crate) const NOT_WAITING: u32 = 0;
pub(crate) const WAITING: u32 = 1;
pub(crate) const PENDING: u32 = 2;

/// Workers taken off the list and not yet posted, chained through their slots' `next`.
#[derive(Debug)]
pub(crate) struct Picked {
    head: u32,
    tail: u32,
}

impl Picked {
    pub(crate) fn none() -> Self {
        Self {
            head: WorkerId::NONE,
            tail: WorkerId::NONE,
        }
    }
}

pub(crate) fn slot<M: Machine>(number: u32) -> &'static WorkerSlot<M> {
    M::workers().slot(WorkerId(number))
}

impl<M: Machine> LwLock<M> {
    /// Takes `LOCKED`, spinning on plain reads while another has it.
    pub(crate) fn lock_list(&self, delay: &mut Delay) {
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
    pub(crate) fn unlock_list(&self) {
        self.state.fetch_and(!LOCKED, Release);
    }

    pub(crate) fn list_is_empty(&self) -> bool {
        self.head.load(Relaxed) == WorkerId::NONE
    }

    /// Puts the calling worker on the list; `LOCKED` is held. A worker that only waits for the latch to be free goes to
    /// the head, so that those are woken together and never stand behind an exclusive.
    pub(crate) fn push(&self, worker: WorkerId, mode: WaitMode) {
        let me = slot::<M>(worker.0);
        assert_eq!(
            me.waiting.load(Relaxed),
            NOT_WAITING,
            "worker {} waits on two latches",
            worker.0
        );
        me.mode.store(mode as u32, Relaxed);
        if mode == WaitMode::UntilFree {
            let next = self.head.load(Relaxed);
            me.previous.store(WorkerId::NONE, Relaxed);
            me.next.store(next, Relaxed);
            match next {
                WorkerId::NONE => self.tail.store(worker.0, Relaxed),
                next => slot::<M>(next).previous.store(worker.0, Relaxed),
            }
            self.head.store(worker.0, Relaxed);
        } else {
            let previous = self.tail.load(Relaxed);
            me.previous.store(previous, Relaxed);
            me.next.store(WorkerId::NONE, Relaxed);
            match previous {
                WorkerId::NONE => self.head.store(worker.0, Relaxed),
                previous => slot::<M>(previous).next.store(worker.0, Relaxed),
            }
            self.tail.store(worker.0, Relaxed);
        }
        me.waiting.store(WAITING, Relaxed);
    }

    /// Whether `number` is on the list, by looking at it from the head; `LOCKED` is held.
    pub(crate) fn find_on_list(&self, number: u32) -> bool {
        let mut at = self.head.load(Relaxed);
        while at != WorkerId::NONE && at != number {
            at = slot::<M>(at).next.load(Relaxed);
        }
        at == number
    }

    /// Takes `number` off the list; `LOCKED` is held.
    pub(crate) fn unlink(&self, number: u32) {
        let waiter = slot::<M>(number);
        let (previous, next) = (waiter.previous.load(Relaxed), waiter.next.load(Relaxed));
        match previous {
            WorkerId::NONE => self.head.store(next, Relaxed),
            previous => slot::<M>(previous).next.store(next, Relaxed),
        }
        match next {
            WorkerId::NONE => self.tail.store(previous, Relaxed),
            next => slot::<M>(next).previous.store(previous, Relaxed),
        }
    }

    /// Moves `number` from the list to `picked`; `LOCKED` is held.
    pub(crate) fn pick(&self, picked: &mut Picked, number: u32) {
        self.unlink(number);
        let waiter = slot::<M>(number);
        waiter.waiting.store(PENDING, Relaxed);
        waiter.next.store(WorkerId::NONE, Relaxed);
        match picked.tail {
            WorkerId::NONE => picked.head = number,
            tail => slot::<M>(tail).next.store(number, Relaxed),
        }
        picked.tail = number;
    }

    /// Posts everybody picked; `LOCKED` is no longer held.
    pub(crate) fn post_all(picked: Picked) {
        let mut number = picked.head;
        while number != WorkerId::NONE {
            let waiter = slot::<M>(number);
            // The link is read first: once `waiting` says NOT, the worker may put itself on another list.
            number = waiter.next.load(Relaxed);
            // Release: pairs with the Acquire in `sleep`; the unlinking is visible before "not waiting".
            waiter.waiting.store(NOT_WAITING, Release);
            waiter.semaphore.post();
        }
    }

    /// Sleeps until taken off the list. Returns the posts that were meant for other waits of this worker, which the
    /// caller posts again when it is done.
    pub(crate) fn sleep(&self, worker: WorkerId) -> u32 {
        let me = slot::<M>(worker.0);
        let _wait = WaitScope::<M>::enter(self.class.wait_event);
        let mut surplus = 0;
        loop {
            me.semaphore.wait();
            if me.waiting.load(Acquire) == NOT_WAITING {
                return surplus;
            }
            surplus += 1;
        }
    }

    /// Gives back posts that belonged to other waits.
    pub(crate) fn repost(worker: WorkerId, surplus: u32) {
        for _ in 0..surplus {
            slot::<M>(worker.0).semaphore.post();
        }
    }

    /// The latch became free while waiters slept: takes those off the list that may now run, and posts them.
    ///
    /// Those that wait for it to be free, and either the first that wants it alone if that one wants it exclusively, or
    /// every one that wants it shared.
    #[cold]
    pub(crate) fn wake(&self) {
        let mut delay = Delay::new::<M>(M::worker());
        let mut picked = Picked::none();
        let mut woke_wanting = false;
        let mut woke_exclusive = false;
        self.lock_list(&mut delay);
        let mut number = self.head.load(Relaxed);
        while number != WorkerId::NONE {
            let waiter = slot::<M>(number);
            let next = waiter.next.load(Relaxed);
            let mode = waiter.mode.load(Relaxed);
            if woke_wanting && mode == WaitMode::Exclusive as u32 {
                number = next;
                continue;
            }
            self.pick(&mut picked, number);
            // Those that do not want the latch will not look at it, so they must not suppress other wake-ups.
            woke_wanting |= mode != WaitMode::UntilFree as u32;
            if mode == WaitMode::Exclusive as u32 {
                woke_exclusive = true;
                break;
            }
            number = next;
        }
        let mut state = self.state.load(Relaxed);
        loop {
            let mut new = state & !(LOCKED | WAKE_IN_PROGRESS);
            if woke_wanting {
                new |= WAKE_IN_PROGRESS;
            }
            if self.list_is_empty() {
                new &= !HAS_WAITERS;
            }
            // R7: an exclusive will clear the count when it comes in; nobody else will.
            if !woke_exclusive {
                new &= !GRANTS;
            }
            match self.state.compare_exchange_weak(state, new, Release, Relaxed) {
                Ok(_) => break,
                Err(found) => state = found,
            }
        }
        Self::post_all(picked);
        delay.finish::<M>();
    }
}
