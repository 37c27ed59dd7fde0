//! Worker slots: the data of a waiting thread that other threads reach.
//!
//! A thread claims a slot at its first wait and returns it when it ends. Latch wait lists link *slot
//! numbers*, never pointers, so a debugger, a simulator or another process can walk a list.

use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::core_words::{CoreU32, CoreU64};
use crate::{AtomicWord, Bare, Machine, Semaphore, WaitEvent};

/// The number of a worker slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u32);

impl WorkerId {
    /// The end of a list, in place of a slot number.
    pub const NONE: u32 = u32::MAX;
}

/// A worker's request on a latch's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum WaitMode {
    /// Wants the latch for itself.
    Exclusive = 0,
    /// Wants the latch with other readers.
    Shared = 1,
    /// Waits until the latch is free, and does not want it.
    UntilFree = 2,
}

/// A worker's counts at adaptive latches, wrapping. On a cache line that no other worker writes: the rest of the slot
/// lies on one that its neighbours on a wait list change.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct AdaptiveCounts<M: Machine> {
    /// Times that the worker, as a reader of a plain latch, met another one.
    pub meetings: SampledCount<M>,
    /// Acquisitions as a writer of a biased latch, or of one in a trial.
    pub writes: SampledCount<M>,
    /// Most polls of the worker, as a writer, for the readers of a biased latch; 0 until it has done so once. Not
    /// `spins_per_delay`, because what a biased latch teaches must not change how its worker waits at a plain one.
    pub spins_for_slots: M::U32,
    /// The same, as a reader, for the writer of a biased latch.
    pub spins_for_writer: M::U32,
}

/// A count that the caller samples at a fixed interval.
#[derive(Debug)]
#[repr(transparent)]
pub struct SampledCount<M: Machine>(M::U32);

impl<M: Machine> SampledCount<M> {
    /// Counts once more, and returns the count. Only the slot's owner calls this, so a load and a store are enough.
    #[inline]
    pub fn next(&self) -> u32 {
        let count = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(count, Ordering::Relaxed);
        count
    }
}

impl<M: Machine> AdaptiveCounts<M> {
    #[cfg(feature = "std")]
    fn new() -> Self {
        Self {
            meetings: SampledCount(M::U32::new(0)),
            writes: SampledCount(M::U32::new(0)),
            spins_for_slots: M::U32::new(0),
            spins_for_writer: M::U32::new(0),
        }
    }

    pub(crate) fn clear(&self) {
        self.meetings.0.store(0, Ordering::Relaxed);
        self.writes.0.store(0, Ordering::Relaxed);
        self.spins_for_slots.store(0, Ordering::Relaxed);
        self.spins_for_writer.store(0, Ordering::Relaxed);
    }
}

impl<M: Machine<U32 = CoreU32>> AdaptiveCounts<M> {
    const fn new_const() -> Self {
        Self {
            meetings: SampledCount(CoreU32::new_const(0)),
            writes: SampledCount(CoreU32::new_const(0)),
            spins_for_slots: CoreU32::new_const(0),
            spins_for_writer: CoreU32::new_const(0),
        }
    }
}

/// One worker's slot. The fields `waiting`, `mode`, `next` and `previous` belong to the [`WaitQueue`](crate::WaitQueue)
/// that the worker is on and change under the lock of the queue's owner. They are atomics only so that every
/// machine sees each access.
//
// repr(C) because programs that were compiled apart use the same slots, in memory that they share.
#[derive(Debug)]
#[repr(C)]
pub struct WorkerSlot<M: Machine> {
    /// Posted by the worker that ends this worker's wait.
    pub semaphore: Semaphore<M>,
    /// 0 = not waiting, 1 = on a queue, 2 = taken off a queue and about to be posted.
    pub(crate) waiting: M::U32,
    /// For the owner of the [`WaitQueue`](crate::WaitQueue) that the worker is on.
    pub(crate) mode: M::U32,
    /// Next slot on the list, or [`WorkerId::NONE`].
    pub(crate) next: M::U32,
    /// Previous slot on the list, or [`WorkerId::NONE`].
    pub(crate) previous: M::U32,
    /// On a [`WaitBucket`](crate::WaitBucket)'s list, the address of the latch waited for.
    pub address: M::U64,
    /// The published [`WaitEvent`].
    pub(crate) wait_event: M::U32,
    /// The worker's `spins_per_delay` (see the adaptive delay); 0 until first used.
    pub spins_per_delay: M::U32,
    /// Calls of the kernel to wake sleepers, by all owners that the slot has had. A word of `core` on every machine: it
    /// is a statistic and no part of an algorithm, so checkers need not see it, and a simulation does not pay for it.
    pub(crate) wake_up_calls: CoreU64,
    /// Sleepers that those calls found.
    pub(crate) woken: CoreU64,
    /// 1 while a thread owns the slot.
    pub(crate) claimed: M::U32,
    /// The worker's counts at adaptive latches.
    pub adaptive: AdaptiveCounts<M>,
}

const _: () = assert!(size_of::<WorkerSlot<Bare>>() == 128);

impl<M: Machine<U32 = CoreU32, U64 = CoreU64>> WorkerSlot<M> {
    pub(crate) const fn new_const() -> Self {
        Self {
            semaphore: Semaphore::new_const(),
            waiting: CoreU32::new_const(0),
            mode: CoreU32::new_const(0),
            next: CoreU32::new_const(WorkerId::NONE),
            previous: CoreU32::new_const(WorkerId::NONE),
            address: CoreU64::new_const(0),
            wait_event: CoreU32::new_const(WaitEvent::Running as u32),
            spins_per_delay: CoreU32::new_const(0),
            adaptive: AdaptiveCounts::new_const(),
            wake_up_calls: CoreU64::new_const(0),
            woken: CoreU64::new_const(0),
            claimed: CoreU32::new_const(0),
        }
    }
}

impl<M: Machine> WorkerSlot<M> {
    #[cfg(feature = "std")]
    pub(crate) fn new() -> Self {
        Self {
            semaphore: Semaphore::new(),
            waiting: M::U32::new(0),
            mode: M::U32::new(0),
            next: M::U32::new(WorkerId::NONE),
            previous: M::U32::new(WorkerId::NONE),
            address: M::U64::new(0),
            wait_event: M::U32::new(WaitEvent::Running as u32),
            spins_per_delay: M::U32::new(0),
            adaptive: AdaptiveCounts::new(),
            wake_up_calls: CoreU64::new_const(0),
            woken: CoreU64::new_const(0),
            claimed: M::U32::new(0),
        }
    }

    /// Makes the slot of a worker that waits for nothing as new, but for whose it is. A post that is still on its way to it
    /// belongs to no wait, and the next worker passes it by (the queue's surplus posts).
    pub(crate) fn clear(&self) {
        while self.semaphore.try_wait() {}
        // The next worker has counted and learned nothing yet.
        self.adaptive.clear();
        self.spins_per_delay.store(0, Ordering::Relaxed);
        self.wait_event
            .store(WaitEvent::Running as u32, Ordering::Relaxed);
    }

    /// The event that the worker waits for at this instant. Relaxed: a sample, ordered with nothing.
    pub fn wait_event(&self) -> WaitEvent {
        WaitEvent::from_number(self.wait_event.load(Ordering::Relaxed))
    }

    /// Counts a call of the kernel that found `woken` sleepers. Only the slot's owner calls this, so a load and a store
    /// are enough.
    #[cfg(feature = "std")]
    pub(crate) fn count_wake_up(&self, woken: u32) {
        let calls = self.wake_up_calls.load(Ordering::Relaxed);
        self.wake_up_calls.store(calls + 1, Ordering::Relaxed);
        let sum = self.woken.load(Ordering::Relaxed);
        self.woken.store(sum + u64::from(woken), Ordering::Relaxed);
    }

    /// The mode with which the worker was put on its queue, or the one that [`set_mode`](Self::set_mode) has set since.
    #[inline]
    pub fn mode(&self) -> u32 {
        self.mode.load(Ordering::Relaxed)
    }

    /// Tells the worker something before it is posted, in place of what it was put on its queue with.
    ///
    /// # Safety
    /// The caller is the owner of the queue that the worker is on or was taken off, which has not posted it yet: by the mode
    /// a worker may conclude that a latch was handed over to it.
    #[inline]
    pub unsafe fn set_mode(&self, mode: u32) {
        self.mode.store(mode, Ordering::Relaxed);
    }

    /// True if a thread owns the slot.
    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) != 0
    }
}

/// Publishes a wait event while it lives, then restores the one before (waits nest: a spin delay inside a
/// latch wait). Where the machine does not know the worker, nothing is published.
#[derive(Debug)]
pub struct WaitScope<M: Machine> {
    slot: Option<&'static WorkerSlot<M>>,
    before: u32,
    not_send: PhantomData<*const ()>,
}

impl<M: Machine> WaitScope<M> {
    /// Publishes `event` for the calling worker.
    #[inline]
    pub fn enter(event: WaitEvent) -> Self {
        let slot = M::known_worker().map(|worker| M::workers().slot(worker));
        // Only the owner writes its event, so a load and a store are enough.
        let before = slot.map_or(WaitEvent::Running as u32, |slot| {
            let before = slot.wait_event.load(Ordering::Relaxed);
            slot.wait_event.store(event as u32, Ordering::Relaxed);
            before
        });
        Self {
            slot,
            before,
            not_send: PhantomData,
        }
    }
}

impl<M: Machine> Drop for WaitScope<M> {
    #[inline]
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.wait_event.store(self.before, Ordering::Relaxed);
        }
    }
}
