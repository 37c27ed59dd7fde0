//! A queue of sleeping workers: a doubly linked list of worker slots, and the sleep and the post at its two
//! ends.
//!
//! The queue has no lock of its own. Its owner (a latch, or a [`WaitBucket`](crate::WaitBucket)) has one and
//! holds it for every access, except where a method says otherwise. The links are slot numbers, kept in the
//! slots.
//!
//! # One wait, in steps
//! 1. Under the owner's lock a worker joins: `waiting` becomes `Queued`. It unlocks and calls
//!    [`sleep`](WaitQueue::sleep).
//! 2. Another worker, under the lock, takes it off the queue into [`Picked`]: `waiting` becomes `Pending`.
//! 3. After unlocking, that worker calls [`Picked::post_all`]: `waiting` becomes `No`, and its
//!    semaphore is posted.
//! 4. `sleep` returns once `waiting` is `No`.
//!
//! The semaphore serves the worker's other waits too. A post that arrives while `waiting` is not `No` belongs
//! to another wait. `sleep` counts these surplus posts, and the worker posts them again when its wait is
//! over.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::core_words::CoreU32;
use crate::{AtomicWord, Machine, WaitEvent, WaitScope, WorkerId, WorkerSlot};

/// Values of [`WorkerSlot::waiting`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Waiting {
    /// On no queue.
    No = 0,
    /// On a queue.
    Queued = 1,
    /// Taken off a queue; a post is coming.
    Pending = 2,
}

/// A queue of sleeping workers. Changed only under its owner's lock.
#[derive(Debug)]
#[repr(C)]
pub struct WaitQueue<M: Machine> {
    head: M::U32,
    tail: M::U32,
}

impl<M: Machine<U32 = CoreU32>> WaitQueue<M> {
    /// An empty queue usable in statics.
    pub const fn new_const() -> Self {
        Self {
            head: CoreU32::new_const(WorkerId::NONE),
            tail: CoreU32::new_const(WorkerId::NONE),
        }
    }
}

impl<M: Machine> Default for WaitQueue<M> {
    fn default() -> Self {
        Self::new()
    }
}

fn slot<M: Machine>(number: u32) -> &'static WorkerSlot<M> {
    M::workers().slot(WorkerId(number))
}

impl<M: Machine> WaitQueue<M> {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            head: M::U32::new(WorkerId::NONE),
            tail: M::U32::new(WorkerId::NONE),
        }
    }

    /// True if the queue has no worker.
    pub fn is_empty(&self) -> bool {
        self.head.load(Relaxed) == WorkerId::NONE
    }

    /// The workers from the front. A worker that the iterator has returned may be taken off the queue before
    /// the next call; no other may.
    pub fn workers(&self) -> impl Iterator<Item = WorkerId> {
        let mut next = self.head.load(Relaxed);
        core::iter::from_fn(move || {
            let number = next;
            if number == WorkerId::NONE {
                return None;
            }
            next = slot::<M>(number).next.load(Relaxed);
            Some(WorkerId(number))
        })
    }

    /// Puts `worker` at the front. `mode` is for the queue's owner.
    ///
    /// # Panics
    /// If the worker is on a queue already.
    ///
    /// # Safety
    /// The caller is `worker`, and has the lock of the queue's owner.
    pub unsafe fn push_front(&self, worker: WorkerId, mode: u32) {
        let me = Self::slot_of_newcomer(worker, mode);
        let next = self.head.load(Relaxed);
        me.previous.store(WorkerId::NONE, Relaxed);
        me.next.store(next, Relaxed);
        match next {
            WorkerId::NONE => self.tail.store(worker.0, Relaxed),
            next => slot::<M>(next).previous.store(worker.0, Relaxed),
        }
        self.head.store(worker.0, Relaxed);
        me.waiting.store(Waiting::Queued as u32, Relaxed);
    }

    /// Puts `worker` at the back. `mode` is for the queue's owner.
    ///
    /// # Panics
    /// If the worker is on a queue already.
    ///
    /// # Safety
    /// The caller is `worker`, and has the lock of the queue's owner.
    pub unsafe fn push_back(&self, worker: WorkerId, mode: u32) {
        let me = Self::slot_of_newcomer(worker, mode);
        let previous = self.tail.load(Relaxed);
        me.previous.store(previous, Relaxed);
        me.next.store(WorkerId::NONE, Relaxed);
        match previous {
            WorkerId::NONE => self.head.store(worker.0, Relaxed),
            previous => slot::<M>(previous).next.store(worker.0, Relaxed),
        }
        self.tail.store(worker.0, Relaxed);
        me.waiting.store(Waiting::Queued as u32, Relaxed);
    }

    /// Puts `worker` behind those at the front whose mode `leads` accepts. `mode` is for the queue's owner.
    ///
    /// # Panics
    /// If the worker is on a queue already.
    ///
    /// # Safety
    /// The caller is `worker`, and has the lock of the queue's owner.
    pub unsafe fn push_behind(&self, worker: WorkerId, mode: u32, leads: impl Fn(u32) -> bool) {
        let me = Self::slot_of_newcomer(worker, mode);
        let mut previous = WorkerId::NONE;
        let mut next = self.head.load(Relaxed);
        while next != WorkerId::NONE && leads(slot::<M>(next).mode.load(Relaxed)) {
            previous = next;
            next = slot::<M>(next).next.load(Relaxed);
        }
        me.previous.store(previous, Relaxed);
        me.next.store(next, Relaxed);
        match previous {
            WorkerId::NONE => self.head.store(worker.0, Relaxed),
            previous => slot::<M>(previous).next.store(worker.0, Relaxed),
        }
        match next {
            WorkerId::NONE => self.tail.store(worker.0, Relaxed),
            next => slot::<M>(next).previous.store(worker.0, Relaxed),
        }
        me.waiting.store(Waiting::Queued as u32, Relaxed);
    }

    fn slot_of_newcomer(worker: WorkerId, mode: u32) -> &'static WorkerSlot<M> {
        let me = slot::<M>(worker.0);
        assert_eq!(
            me.waiting.load(Relaxed),
            Waiting::No as u32,
            "worker {} waits on two latches",
            worker.0
        );
        me.mode.store(mode, Relaxed);
        me
    }

    /// True if `worker` is on a queue, by its own slot.
    pub fn is_queued(worker: WorkerId) -> bool {
        slot::<M>(worker.0).waiting.load(Relaxed) == Waiting::Queued as u32
    }

    /// True if `worker` was taken off a queue and is still to be posted, by its own slot. Acquire: if not, the waker has read
    /// its link.
    pub fn is_picked(worker: WorkerId) -> bool {
        slot::<M>(worker.0).waiting.load(Acquire) == Waiting::Pending as u32
    }

    /// Takes `worker` off the queue because it will not sleep.
    ///
    /// # Safety
    /// The caller is `worker`, or stands in for it after its death. The worker is on this queue, and the caller has the lock
    /// of the queue's owner.
    pub unsafe fn remove(&self, worker: WorkerId) {
        self.unlink(worker.0);
        slot::<M>(worker.0).waiting.store(Waiting::No as u32, Relaxed);
    }

    /// Moves `worker` from the queue to `picked`.
    ///
    /// # Safety
    /// The worker is on this queue, and the caller has the lock of the queue's owner.
    pub unsafe fn pick(&self, picked: &mut Picked<M>, worker: WorkerId) {
        self.unlink(worker.0);
        let waiter = slot::<M>(worker.0);
        waiter.waiting.store(Waiting::Pending as u32, Relaxed);
        waiter.next.store(WorkerId::NONE, Relaxed);
        match picked.tail {
            WorkerId::NONE => picked.head = worker.0,
            tail => slot::<M>(tail).next.store(worker.0, Relaxed),
        }
        picked.tail = worker.0;
    }

    fn unlink(&self, number: u32) {
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

    /// Sleeps until another worker has taken the caller, `worker`, off the queue and posted it. Returns the
    /// number of surplus posts, which the caller gives back by [`repost`](Self::repost). Called without the
    /// owner's lock.
    #[cfg_attr(any(feature = "loom", feature = "shuttle"), track_caller)]
    pub fn sleep(worker: WorkerId, event: WaitEvent) -> u32 {
        let me = slot::<M>(worker.0);
        let _wait = WaitScope::<M>::enter(event);
        let mut surplus = 0;
        loop {
            me.semaphore.wait();
            // Acquire: pairs with the Release in `post_all`.
            if me.waiting.load(Acquire) == Waiting::No as u32 {
                return surplus;
            }
            surplus += 1;
        }
    }

    /// Gives back `surplus` posts, which belong to other waits of `worker`.
    pub fn repost(worker: WorkerId, surplus: u32) {
        for _ in 0..surplus {
            slot::<M>(worker.0).semaphore.post();
        }
    }
}

/// Workers taken off a queue and not yet posted, linked by their slots' `next`.
#[derive(Debug)]
#[must_use = "a picked worker sleeps until it is posted"]
pub struct Picked<M: Machine> {
    head: u32,
    tail: u32,
    machine: core::marker::PhantomData<fn() -> M>,
}

impl<M: Machine> Picked<M> {
    /// No workers.
    pub fn none() -> Self {
        Self {
            head: WorkerId::NONE,
            tail: WorkerId::NONE,
            machine: core::marker::PhantomData,
        }
    }

    /// Posts all of them. Called without the owner's lock.
    pub fn post_all(self) {
        let mut number = self.head;
        while number != WorkerId::NONE {
            let waiter = slot::<M>(number);
            // The link is read first: after "not waiting" the worker may join another queue.
            number = waiter.next.load(Relaxed);
            // Release: pairs with the Acquire in `sleep`; the unlinking is visible before "not waiting".
            waiter.waiting.store(Waiting::No as u32, Release);
            waiter.semaphore.post();
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::Native;

    #[test]
    fn a_worker_joins_behind_those_that_lead() {
        // No other thread knows the queue or goes by these slots.
        let claimed: Vec<_> = (0..4).map(|_| Native::workers().claim().unwrap()).collect();
        let queue = WaitQueue::<Native>::new();
        let leads = |mode| mode == 7;
        let order = || queue.workers().collect::<Vec<_>>();
        // SAFETY: as said above.
        unsafe { queue.push_behind(claimed[0], 1, leads) };
        assert_eq!(order(), [claimed[0]]);
        // SAFETY: as said above.
        unsafe { queue.push_front(claimed[1], 7) };
        // SAFETY: as said above.
        unsafe { queue.push_behind(claimed[2], 2, leads) };
        assert_eq!(order(), [claimed[1], claimed[2], claimed[0]]);
        // SAFETY: as said above.
        unsafe { queue.remove(claimed[0]) };
        // SAFETY: as said above.
        unsafe { queue.remove(claimed[2]) };
        // SAFETY: as said above.
        unsafe { queue.push_behind(claimed[3], 3, leads) };
        // SAFETY: as said above.
        unsafe { queue.push_back(claimed[0], 1) };
        assert_eq!(order(), [claimed[1], claimed[3], claimed[0]]);
        for &worker in &claimed {
            if WaitQueue::<Native>::is_queued(worker) {
                // SAFETY: as said above.
                unsafe { queue.remove(worker) };
            }
            // SAFETY: as said above.
            unsafe { Native::workers().release(worker) };
        }
        assert!(queue.is_empty());
    }
}
