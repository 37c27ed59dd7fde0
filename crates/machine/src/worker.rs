//! Worker slots: what each thread that waits keeps where others can reach it.
//!
//! A slot is claimed on a thread's first wait and returned when the thread ends. Latch wait lists link *slot
//! numbers*, never pointers, so a list survives being looked at by a debugger, a simulator or another process.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use crate::{AtomicWord, Machine, Padded, Semaphore, WaitEvent};

/// The number of a worker slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u32);

impl WorkerId {
    /// What a link holds that points nowhere.
    pub const NONE: u32 = u32::MAX;
}

/// How a worker waits on a latch's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum WaitMode {
    /// Wants the latch for itself.
    Exclusive = 0,
    /// Wants the latch along with other readers.
    Shared = 1,
    /// Wants to be told when the latch is free, not to have it.
    UntilFree = 2,
}

/// One worker's slot. The fields `waiting`, `mode`, `next` and `previous` belong to the wait list that the worker is
/// on and change under that list's lock; they are atomics only so that every machine sees each access.
#[derive(Debug)]
pub struct WorkerSlot<M: Machine> {
    /// Posted by whoever ends this worker's wait.
    pub semaphore: Semaphore<M>,
    /// 0 = not waiting, 1 = on a list, 2 = taken off a list and about to be posted.
    pub waiting: M::U32,
    /// A [`WaitMode`] as a number.
    pub mode: M::U32,
    /// Next slot on the list, or [`WorkerId::NONE`].
    pub next: M::U32,
    /// Previous slot on the list, or [`WorkerId::NONE`].
    pub previous: M::U32,
    /// On a [`WaitBucket`]'s list, the address of the latch waited for.
    pub address: M::U64,
    /// The published [`WaitEvent`].
    wait_event: M::U32,
    /// The worker's `spins_per_delay` (see the adaptive delay); 0 until first used.
    pub spins_per_delay: M::U32,
    /// 1 while a thread owns the slot.
    claimed: M::U32,
}

impl<M: Machine> WorkerSlot<M> {
    fn new() -> Self {
        Self {
            semaphore: Semaphore::new(),
            waiting: M::U32::new(0),
            mode: M::U32::new(0),
            next: M::U32::new(WorkerId::NONE),
            previous: M::U32::new(WorkerId::NONE),
            address: M::U64::new(0),
            wait_event: M::U32::new(WaitEvent::Running as u32),
            spins_per_delay: M::U32::new(0),
            claimed: M::U32::new(0),
        }
    }

    /// What the worker waits for at this instant. Relaxed: a sample, ordered with nothing.
    pub fn wait_event(&self) -> WaitEvent {
        WaitEvent::from_number(self.wait_event.load(Ordering::Relaxed))
    }

    /// Whether a thread owns the slot.
    pub fn is_claimed(&self) -> bool {
        self.claimed.load(Ordering::Relaxed) != 0
    }
}

/// A list of workers that wait for latches too small to have one of their own. Latches share a bucket if their addresses
/// fall into it, so each slot on the list says which latch it waits for.
#[derive(Debug)]
pub struct WaitBucket<M: Machine> {
    /// 1 while a worker reads or changes the list.
    pub locked: M::U32,
    /// First slot on the list, or [`WorkerId::NONE`].
    pub head: M::U32,
    /// Last slot on the list, or [`WorkerId::NONE`].
    pub tail: M::U32,
}

impl<M: Machine> WaitBucket<M> {
    fn new() -> Self {
        Self {
            locked: M::U32::new(0),
            head: M::U32::new(WorkerId::NONE),
            tail: M::U32::new(WorkerId::NONE),
        }
    }
}

/// Buckets for a full table of workers: enough that two contended latches seldom share one.
const BUCKETS_MAX: usize = 256;

/// The table of all worker slots of a machine.
#[derive(Debug)]
pub struct Workers<M: Machine> {
    slots: Box<[Padded<WorkerSlot<M>>]>,
    buckets: Box<[Padded<WaitBucket<M>>]>,
    /// The shared estimate of `spins_per_delay` that new workers start from, in 1/16ths so that the running mean
    /// does not lose its fraction.
    pub spins_per_delay_estimate: M::U32,
    /// One past the highest slot ever claimed: how far samplers look.
    claimed_end: M::U32,
}

impl<M: Machine> Workers<M> {
    /// A table of `capacity` unclaimed slots.
    pub fn new(capacity: usize) -> Self {
        Self {
            slots: (0..capacity).map(|_| Padded(WorkerSlot::new())).collect(),
            buckets: (0..(capacity / 16).next_power_of_two().min(BUCKETS_MAX))
                .map(|_| Padded(WaitBucket::new()))
                .collect(),
            spins_per_delay_estimate: M::U32::new(100 * 16),
            claimed_end: M::U32::new(0),
        }
    }

    /// How many workers there can be at once.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }

    /// The slot of `worker`.
    #[inline]
    pub fn slot(&self, worker: WorkerId) -> &WorkerSlot<M> {
        &self.slots[worker.0 as usize]
    }

    /// The bucket in which workers wait for the latch at `address`.
    pub fn bucket(&self, address: usize) -> &WaitBucket<M> {
        // Fibonacci hashing: the high bits of the product depend on all bits of the address.
        let hash = (address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }

    /// Takes a free slot; `None` when all are taken.
    pub fn claim(&self) -> Option<WorkerId> {
        for (number, slot) in self.slots.iter().enumerate() {
            // Acquire: pairs with the Release in `release`; the previous owner's last writes come first.
            if slot.claimed.load(Ordering::Relaxed) == 0
                && slot
                    .claimed
                    .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                let end = number as u32 + 1;
                let mut seen = self.claimed_end.load(Ordering::Relaxed);
                while seen < end {
                    match self
                        .claimed_end
                        .compare_exchange(seen, end, Ordering::Relaxed, Ordering::Relaxed)
                    {
                        Ok(_) => break,
                        Err(found) => seen = found,
                    }
                }
                return Some(WorkerId(number as u32));
            }
        }
        None
    }

    /// Returns a slot. Its worker waits for nothing any more; leftover posts are drained.
    pub fn release(&self, worker: WorkerId) {
        let slot = self.slot(worker);
        debug_assert_eq!(
            slot.waiting.load(Ordering::Relaxed),
            0,
            "a worker that waits gives its slot back"
        );
        while slot.semaphore.try_wait() {}
        // What this worker has learned about spinning joins the estimate that new workers start from. Concurrent updates
        // may lose one another; a running mean does not mind.
        let spins = slot.spins_per_delay.load(Ordering::Relaxed);
        if spins != 0 {
            let estimate = self.spins_per_delay_estimate.load(Ordering::Relaxed);
            self.spins_per_delay_estimate
                .store(estimate - estimate / 16 + spins, Ordering::Relaxed);
            slot.spins_per_delay.store(0, Ordering::Relaxed);
        }
        slot.wait_event
            .store(WaitEvent::Running as u32, Ordering::Relaxed);
        slot.claimed.store(0, Ordering::Release);
    }

    /// The slots claimed now, for samplers.
    pub fn claimed(&self) -> impl Iterator<Item = (WorkerId, &WorkerSlot<M>)> {
        let end = self.claimed_end.load(Ordering::Relaxed) as usize;
        self.slots[..end]
            .iter()
            .enumerate()
            .filter(|(_, slot)| slot.is_claimed())
            .map(|(number, slot)| (WorkerId(number as u32), &slot.0))
    }
}

/// Publishes a wait event for as long as it lives, then restores the one before (waits nest: a spin delay inside a
/// latch wait).
#[derive(Debug)]
pub struct WaitScope<M: Machine> {
    slot: &'static WorkerSlot<M>,
    before: u32,
    not_send: PhantomData<*const ()>,
}

impl<M: Machine> WaitScope<M> {
    /// Publishes `event` for the calling worker.
    #[inline]
    pub fn enter(event: WaitEvent) -> Self {
        let slot = M::workers().slot(M::worker());
        // Only the owner writes its event, so a load and a store are enough.
        let before = slot.wait_event.load(Ordering::Relaxed);
        slot.wait_event.store(event as u32, Ordering::Relaxed);
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
        self.slot.wait_event.store(self.before, Ordering::Relaxed);
    }
}
