//! The table of worker slots, and what else waiting workers share: the buckets of latches too small for a list of
//! their own.
//!
//! # Rules of claiming
//! `room` counts two things in one word: free slots (low half) and segments of the table (high half).
//!
//! - W1: a caller that claims takes one off the free slots first, and then looks for a slot that no worker has. A slot is
//!   counted as free after it is given back, and those of a segment after the segment is found by all.
//! - W2: so the count is never above the number of unclaimed slots less the callers that have taken one off and not found
//!   it yet: there is a slot for each of them, and a look in vain means that another caller has found one meanwhile.
//! - W3: a segment is counted once: the CAS that counts it also raises the number of segments, and expects the old one.
//!   Any caller that finds no slot free may make the next segment, or find it made, and count it.
//!
//! # Why the simpler version is wrong
//! A look alone would not do: a slot may become free behind it while another one is taken before it, so that each look
//! finds a worker though one slot is free all the time. With the number of segments in a word of its own, two callers
//! would both add the slots of one segment, or a third one would make another segment in between.

use core::sync::atomic::Ordering;

use crate::core_words::{CoreU32, CoreU64};
use crate::growing_table::{Entries, GrowingTable};
use crate::{AtomicWord, Bare, Machine, Padded, WaitQueue, WorkerId, WorkerSlot};

/// The free slots in `Workers::room`; the bits above count segments.
const FREE: u64 = SEGMENT - 1;
/// One more segment in `Workers::room`.
const SEGMENT: u64 = 1 << 32;

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

/// The table of all worker slots of a machine.
#[derive(Debug)]
pub struct Workers<M: Machine> {
    slots: GrowingTable<M, Padded<WorkerSlot<M>>>,
    buckets: Entries<Padded<WaitBucket<M>>>,
    /// Of machines with several NUMA nodes; else empty.
    node_terms: Entries<Padded<M::U32>>,
    /// The shared estimate of `spins_per_delay` that new workers start from, in 1/16ths so that the running
    /// mean does not lose its fraction.
    pub spins_per_delay_estimate: M::U32,
    /// One past the highest slot ever claimed: how far samplers look.
    claimed_end: M::U32,
    /// Slots that neither have a worker nor are promised to one that looks for them, and segments (W1 to W3).
    room: M::U64,
}

impl Workers<Bare> {
    /// A table in `memory`, for a `static`. Only one table should use a memory: two would be one table with
    /// two estimates.
    pub const fn within<const WORKERS: usize, const BUCKETS: usize>(
        memory: &'static WorkerMemory<WORKERS, BUCKETS>,
    ) -> Self {
        Self {
            slots: GrowingTable::of_static(&memory.slots),
            buckets: Entries::Static(&memory.buckets),
            node_terms: Entries::Static(&[]),
            spins_per_delay_estimate: CoreU32::new_const(SPINS_PER_DELAY_ESTIMATE),
            room: CoreU64::new_const(WORKERS as u64),
            claimed_end: CoreU32::new_const(0),
        }
    }
}

#[cfg(feature = "std")]
impl<M: Machine<U32 = CoreU32, U64 = CoreU64>> Workers<M> {
    /// A table over slots that other processes use too, which are given out elsewhere: [`claim`](Self::claim) finds none. It
    /// has no buckets.
    pub(crate) fn of_slots(slots: &'static [Padded<WorkerSlot<M>>]) -> Self {
        Self {
            slots: GrowingTable::of_static(slots),
            buckets: Entries::Static(&[]),
            node_terms: Entries::Static(&[]),
            spins_per_delay_estimate: CoreU32::new_const(SPINS_PER_DELAY_ESTIMATE),
            room: CoreU64::new_const(0),
            claimed_end: CoreU32::new_const(slots.len() as u32),
        }
    }
}

impl<M: Machine> Workers<M> {
    /// A table of `capacity` unclaimed slots.
    #[cfg(feature = "std")]
    pub fn new(capacity: usize) -> Self {
        Self::growing(capacity, capacity)
    }

    /// A table of `first` unclaimed slots, to which others are added as workers need them, up to `limit` in all.
    ///
    /// # Panics
    /// If `limit` is not below 2^31, or if there are to be later slots than those of the beginning, of which there are none.
    #[cfg(feature = "std")]
    pub fn growing(first: usize, limit: usize) -> Self {
        assert!(limit < 1 << 31, "more workers than numbers");
        let slots = GrowingTable::growing(first, limit, |_| Padded(WorkerSlot::new()));
        let first = slots.first_length();
        let buckets = (first / 16).next_power_of_two().min(BUCKETS_MAX);
        Self {
            slots,
            buckets: Entries::Owned((0..buckets).map(|_| Padded(WaitBucket::new())).collect()),
            node_terms: Entries::Owned((0..buckets).map(|_| Padded(M::U32::new(0))).collect()),
            spins_per_delay_estimate: M::U32::new(SPINS_PER_DELAY_ESTIMATE),
            room: M::U64::new(first as u64),
            claimed_end: M::U32::new(0),
        }
    }

    /// The most workers there can be at once.
    pub fn capacity(&self) -> usize {
        self.slots.limit()
    }

    /// The workers for which there are slots before any is added.
    pub fn capacity_at_first(&self) -> usize {
        self.slots.first_length()
    }

    /// The slot of `worker`. Its claim happens before the call: the number comes from the worker itself, or through a
    /// Release and an Acquire, as a lock gives them.
    ///
    /// # Panics
    /// If no worker ever had this number.
    #[inline]
    pub fn slot(&self, worker: WorkerId) -> &WorkerSlot<M> {
        match self.slots.find(worker.0 as usize) {
            Some(slot) => slot,
            None => no_such_worker(worker),
        }
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

    /// Takes a free slot, of a segment that is added if no other is free. `None` if at some instant during the call none
    /// was free and none could be added: there are [`capacity`](Self::capacity) workers, or there is no memory.
    pub fn claim(&self) -> Option<WorkerId> {
        let mut room = self.room.load(Ordering::Relaxed);
        loop {
            let (more, order) = if room & FREE != 0 {
                // Acquire: pairs with the Release in `release` and in the other branch, so that every slot that was counted
                // is found, and seen to be free (W1).
                (room - 1, Ordering::Acquire)
            } else {
                let added = self.slots.add_segment((room / SEGMENT) as usize)?;
                // Release: for the Acquire above; the segment is found by callers that see its slots counted (W1, W3).
                (room + SEGMENT + added as u64, Ordering::Release)
            };
            match self
                .room
                .compare_exchange_weak(room, more, order, Ordering::Relaxed)
            {
                Ok(_) if room & FREE != 0 => return Some(self.claim_promised()),
                Ok(_) => room = more,
                Err(found) => room = found,
            }
        }
    }

    /// Finds the slot of a caller that has taken one off the count (W2). The lowest, so that samplers look at few.
    fn claim_promised(&self) -> WorkerId {
        loop {
            for (number, slot) in self.slots.below(self.capacity()) {
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
        // The worker's learned budget enters the estimate that new workers start from. Concurrent updates may
        // overwrite each other, which a running mean tolerates.
        let spins = slot.spins_per_delay.load(Ordering::Relaxed);
        if spins != 0 {
            let estimate = self.spins_per_delay_estimate.load(Ordering::Relaxed);
            self.spins_per_delay_estimate
                .store(estimate - estimate / 16 + spins, Ordering::Relaxed);
        }
        slot.clear();
        slot.claimed.store(0, Ordering::Release);
        // Release: pairs with the Acquire in `claim`. After the slot: what is counted can be found (W1).
        self.room.fetch_add(1, Ordering::Release);
    }

    /// Wake-ups of all workers that there have been. Only [`Native`](crate::Native) counts them.
    pub fn wake_ups(&self) -> WakeUps {
        let end = self.claimed_end.load(Ordering::Relaxed) as usize;
        let mut all = WakeUps::default();
        for (_, slot) in self.slots.below(end) {
            all.calls += slot.wake_up_calls.load(Ordering::Relaxed);
            all.woken += slot.woken.load(Ordering::Relaxed);
        }
        all
    }

    /// The slots claimed now, for samplers.
    pub fn claimed(&self) -> impl Iterator<Item = (WorkerId, &WorkerSlot<M>)> {
        let end = self.claimed_end.load(Ordering::Relaxed) as usize;
        self.slots
            .below(end)
            .filter(|(_, slot)| slot.is_claimed())
            .map(|(number, slot)| (WorkerId(number as u32), &slot.0))
    }
}

#[cold]
fn no_such_worker(worker: WorkerId) -> ! {
    panic!("there is no worker {}", worker.0)
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
