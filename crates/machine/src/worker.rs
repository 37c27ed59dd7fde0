//! Worker slots: the data of a waiting thread that other threads reach.
//!
//! A thread claims a slot at its first wait and returns it when it ends. Latch wait lists link *slot
//! numbers*, never pointers, so a debugger, a simulator or another process can walk a list.

use core::marker::PhantomData;
use core::ops::Deref;
use core::sync::atomic::Ordering;

use crate::core_words::{CoreU32, CoreU64};
use crate::{AtomicWord, Bare, Machine, Padded, Semaphore, WaitEvent, WaitQueue};

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
#[repr(align(64))]
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

    fn clear(&self) {
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

/// One worker's slot. The fields `waiting`, `mode`, `next` and `previous` belong to the [`WaitQueue`] that
/// the worker is on and change under the lock of the queue's owner. They are atomics only so that every
/// machine sees each access.
#[derive(Debug)]
pub struct WorkerSlot<M: Machine> {
    /// Posted by the worker that ends this worker's wait.
    pub semaphore: Semaphore<M>,
    /// 0 = not waiting, 1 = on a queue, 2 = taken off a queue and about to be posted.
    pub(crate) waiting: M::U32,
    /// For the owner of the [`WaitQueue`] that the worker is on.
    pub(crate) mode: M::U32,
    /// Next slot on the list, or [`WorkerId::NONE`].
    pub(crate) next: M::U32,
    /// Previous slot on the list, or [`WorkerId::NONE`].
    pub(crate) previous: M::U32,
    /// On a [`WaitBucket`]'s list, the address of the latch waited for.
    pub address: M::U64,
    /// The published [`WaitEvent`].
    wait_event: M::U32,
    /// The worker's `spins_per_delay` (see the adaptive delay); 0 until first used.
    pub spins_per_delay: M::U32,
    /// The worker's counts at adaptive latches.
    pub adaptive: AdaptiveCounts<M>,
    /// Calls of the kernel to wake sleepers, by all owners that the slot has had. A word of `core` on every machine: it
    /// is a statistic and no part of an algorithm, so checkers need not see it, and a simulation does not pay for it.
    wake_up_calls: CoreU64,
    /// Sleepers that those calls found.
    woken: CoreU64,
    /// 1 while a thread owns the slot.
    claimed: M::U32,
}

const _: () = assert!(size_of::<WorkerSlot<Bare>>() == 128);

impl<M: Machine<U32 = CoreU32, U64 = CoreU64>> WorkerSlot<M> {
    const fn new_const() -> Self {
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
            adaptive: AdaptiveCounts::new(),
            wake_up_calls: CoreU64::new_const(0),
            woken: CoreU64::new_const(0),
            claimed: M::U32::new(0),
        }
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

/// A queue of workers that wait for latches too small to have one of their own. Latches share a bucket if
/// their addresses hash to it, so each slot on the queue says which latch it waits for.
#[derive(Debug)]
pub struct WaitBucket<M: Machine> {
    /// 1 while a worker reads or changes the queue.
    pub locked: M::U32,
    /// The workers that wait.
    pub queue: WaitQueue<M>,
}

impl<M: Machine<U32 = CoreU32>> WaitBucket<M> {
    const fn new_const() -> Self {
        Self {
            locked: CoreU32::new_const(0),
            queue: WaitQueue::new_const(),
        }
    }
}

impl<M: Machine> WaitBucket<M> {
    #[cfg(feature = "std")]
    fn new() -> Self {
        Self {
            locked: M::U32::new(0),
            queue: WaitQueue::new(),
        }
    }
}

/// The most buckets of a table: enough that two contended latches seldom share one.
#[cfg(feature = "std")]
const BUCKETS_MAX: usize = 256;

/// The first estimate of `spins_per_delay`, in 1/16ths of a poll.
const SPINS_PER_DELAY_ESTIMATE: u32 = 100 * 16;

/// The memory of a table of workers, for a `static` of a program that has no allocator: `WORKERS` slots and
/// `BUCKETS` buckets, a power of two, each on 128 bytes of its own.
#[derive(Debug)]
pub struct WorkerMemory<const WORKERS: usize, const BUCKETS: usize = 8> {
    slots: [Padded<WorkerSlot<Bare>>; WORKERS],
    buckets: [Padded<WaitBucket<Bare>>; BUCKETS],
}

impl<const WORKERS: usize, const BUCKETS: usize> WorkerMemory<WORKERS, BUCKETS> {
    /// Unclaimed slots and empty lists.
    pub const fn new() -> Self {
        const {
            assert!(
                BUCKETS.is_power_of_two(),
                "the number of buckets is a power of two"
            );
            assert!(WORKERS < WorkerId::NONE as usize, "more workers than numbers");
        }
        Self {
            slots: [const { Padded(WorkerSlot::new_const()) }; WORKERS],
            buckets: [const { Padded(WaitBucket::new_const()) }; BUCKETS],
        }
    }
}

impl<const WORKERS: usize, const BUCKETS: usize> Default for WorkerMemory<WORKERS, BUCKETS> {
    fn default() -> Self {
        Self::new()
    }
}

/// The storage of a table's entries.
#[derive(Debug)]
enum Entries<T: 'static> {
    #[cfg(feature = "std")]
    Owned(Box<[T]>),
    Static(&'static [T]),
}

impl<T> Deref for Entries<T> {
    type Target = [T];
    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            #[cfg(feature = "std")]
            Entries::Owned(entries) => entries,
            Entries::Static(entries) => entries,
        }
    }
}

/// The table of all worker slots of a machine.
#[derive(Debug)]
pub struct Workers<M: Machine> {
    slots: Entries<Padded<WorkerSlot<M>>>,
    buckets: Entries<Padded<WaitBucket<M>>>,
    /// Of machines with several NUMA nodes; else empty.
    node_terms: Entries<Padded<M::U32>>,
    /// The shared estimate of `spins_per_delay` that new workers start from, in 1/16ths so that the running
    /// mean does not lose its fraction.
    pub spins_per_delay_estimate: M::U32,
    /// One past the highest slot ever claimed: how far samplers look.
    claimed_end: M::U32,
    /// Slots that neither have a worker nor are promised to one that looks for them.
    free: M::U32,
}

impl Workers<Bare> {
    /// A table in `memory`, for a `static`. Only one table should use a memory: two would be one table with
    /// two estimates.
    pub const fn within<const WORKERS: usize, const BUCKETS: usize>(
        memory: &'static WorkerMemory<WORKERS, BUCKETS>,
    ) -> Self {
        Self {
            slots: Entries::Static(&memory.slots),
            buckets: Entries::Static(&memory.buckets),
            node_terms: Entries::Static(&[]),
            spins_per_delay_estimate: CoreU32::new_const(SPINS_PER_DELAY_ESTIMATE),
            free: CoreU32::new_const(WORKERS as u32),
            claimed_end: CoreU32::new_const(0),
        }
    }
}

impl<M: Machine> Workers<M> {
    /// A table of `capacity` unclaimed slots.
    #[cfg(feature = "std")]
    pub fn new(capacity: usize) -> Self {
        let buckets = (capacity / 16).next_power_of_two().min(BUCKETS_MAX);
        Self {
            slots: Entries::Owned((0..capacity).map(|_| Padded(WorkerSlot::new())).collect()),
            buckets: Entries::Owned((0..buckets).map(|_| Padded(WaitBucket::new())).collect()),
            node_terms: Entries::Owned((0..buckets).map(|_| Padded(M::U32::new(0))).collect()),
            spins_per_delay_estimate: M::U32::new(SPINS_PER_DELAY_ESTIMATE),
            free: M::U32::new(capacity as u32),
            claimed_end: M::U32::new(0),
        }
    }

    /// The most workers there can be at once.
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
        &self.buckets[hash(address) & (self.buckets.len() - 1)]
    }

    /// A word in which workers agree which NUMA node's turn it is at the latch at `address`. Latches share a word if
    /// their addresses hash to it, so it can be no more than a hint. `None` where the table has none. The caller has
    /// accessed the word at `address` before ([`Machine::number_of`]).
    pub fn node_term(&self, address: usize) -> Option<&M::U32> {
        let last = self.node_terms.len().checked_sub(1)?;
        Some(&self.node_terms[hash(M::number_of(address)) & last].0)
    }

    /// Takes back what workers leave for later ones, so that the table is as new. The caller knows that no slot is taken.
    pub fn forget_hints(&self) {
        self.spins_per_delay_estimate
            .store(SPINS_PER_DELAY_ESTIMATE, Ordering::Relaxed);
        for term in self.node_terms.iter() {
            term.0.store(0, Ordering::Relaxed);
        }
    }

    /// Takes a free slot; `None` if at some instant during the call no slot was free.
    ///
    /// A scan alone would not do: a slot may become free behind it while another one is taken before it, so that each look
    /// finds a worker though one slot is free all the time. So a caller first takes one off the count `free`. The count is
    /// never above the number of unclaimed slots less the callers that have taken one off and not found it: `release` gives
    /// the slot back first. So there is a slot for each such caller, and a scan in vain means that another caller has found
    /// one meanwhile.
    pub fn claim(&self) -> Option<WorkerId> {
        // Acquire: pairs with the Release in `release`, so that every slot that was counted is seen to be free.
        let mut free = self.free.load(Ordering::Relaxed);
        while free != 0 {
            match self
                .free
                .compare_exchange_weak(free, free - 1, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Some(self.claim_promised()),
                Err(found) => free = found,
            }
        }
        None
    }

    /// Finds the slot of a caller that has taken one off `free`.
    fn claim_promised(&self) -> WorkerId {
        loop {
            for (number, slot) in self.slots.iter().enumerate() {
                // Acquire: pairs with the Release in `release`; the previous owner's last writes come first. Also of a slot
                // that another caller has found: what this one does not see free by then, it sees in the next scan.
                // Release: for that.
                if slot.claimed.load(Ordering::Acquire) == 0
                    && slot
                        .claimed
                        .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Acquire)
                        .is_ok()
                {
                    self.note_claimed(number as u32 + 1);
                    return WorkerId(number as u32);
                }
            }
        }
    }

    /// Samplers look at least up to `end` from here on.
    fn note_claimed(&self, end: u32) {
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
    }

    /// Returns a slot, whose worker waits for nothing. Drains leftover posts.
    ///
    /// # Safety
    /// The caller is the worker that has claimed the slot, and goes by it no longer: the next worker gets the same number.
    pub unsafe fn release(&self, worker: WorkerId) {
        let slot = self.slot(worker);
        debug_assert_eq!(
            slot.waiting.load(Ordering::Relaxed),
            0,
            "a worker that waits gives its slot back"
        );
        while slot.semaphore.try_wait() {}
        // The next worker has counted nothing yet.
        slot.adaptive.clear();
        // The worker's learned budget enters the estimate that new workers start from. Concurrent updates may
        // overwrite each other, which a running mean tolerates.
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
        // Release: pairs with the Acquire in `claim`. After the slot: what is counted can be found.
        self.free.fetch_add(1, Ordering::Release);
    }

    /// Wake-ups of all workers that there have been. Only [`Native`](crate::Native) counts them.
    pub fn wake_ups(&self) -> WakeUps {
        let end = self.claimed_end.load(Ordering::Relaxed) as usize;
        let mut all = WakeUps::default();
        for slot in &self.slots[..end] {
            all.calls += slot.wake_up_calls.load(Ordering::Relaxed);
            all.woken += slot.woken.load(Ordering::Relaxed);
        }
        all
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

/// Fibonacci hashing: the high bits of the product depend on all bits of the address.
fn hash(address: usize) -> usize {
    ((address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize
}

/// Wake-ups that workers have paid for, since the program began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WakeUps {
    /// Calls of the kernel.
    pub calls: u64,
    /// Sleepers that they found. A call that finds none costs less: its sleeper was still on its way to sleep, or
    /// awake.
    pub woken: u64,
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
