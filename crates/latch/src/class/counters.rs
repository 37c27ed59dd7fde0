//! The counters of a class's waits.
//!
//! Workers that meet at a latch must not meet again at its class's counters. So each class has several sets of them, 12 KiB
//! in all, on lines of their own. A worker counts in the set that its stack's address selects, and a reader of the
//! statistics adds the sets up.
//!
//! A program may have thousands of classes, of which few ever see a wait. So the sets are made when the first wait of the
//! class begins:
//!
//! - C1: the pointer changes once, from null, by a CAS, which is a Release. A worker that loses unmaps its own sets. So a
//!   count that was added is in the sets that all later readers find.
//! - C2: the sets are made before the wait, not after: then the worker holds the latch, for which others may be polling.
//!   (A writer that waits for the readers of a biased latch has the word already: it makes them once for its class.)
//! - C3: their memory is the system's, so counting does not enter the program's allocator. (The slot that a waiting thread
//!   gets at its first wait may: a latch of the allocator itself needs more than this.)
//!
//! Without std there is neither an allocator nor a system: the sets lie in the class.

use core::ptr;
#[cfg(feature = "std")]
use core::sync::atomic::AtomicPtr;
use core::sync::atomic::{AtomicU64, Ordering};

#[cfg(feature = "std")]
use clearway_machine::ZeroedPages;

use super::{HISTOGRAM_BUCKETS, ModeStatistics, Wait};

/// Sets of counters of a class.
const STRIPES: usize = 8;

/// Binary logarithm of the usual minimum distance between the stacks of two threads.
const STACK_SHIFT: u32 = 20;

/// The set in which the calling worker counts. Two workers may share one, which affects speed only.
pub(super) fn stripe() -> usize {
    let on_the_stack = 0_u8;
    (core::hint::black_box(ptr::from_ref(&on_the_stack)).addr() >> STACK_SHIFT) % STRIPES
}

/// One set of a class's counters.
#[derive(Debug)]
struct Counters {
    exclusive: ModeCounters,
    shared: ModeCounters,
    update: ModeCounters,
    until_free: ModeCounters,
}

impl Counters {
    #[cfg(not(feature = "std"))]
    const fn new() -> Self {
        Self {
            exclusive: ModeCounters::new(),
            shared: ModeCounters::new(),
            update: ModeCounters::new(),
            until_free: ModeCounters::new(),
        }
    }

    fn of(&self, wait: Wait) -> &ModeCounters {
        match wait {
            Wait::Exclusive => &self.exclusive,
            Wait::Shared => &self.shared,
            Wait::Update => &self.update,
            Wait::UntilFree => &self.until_free,
        }
    }
}

/// Counters of one mode in one set.
#[derive(Debug)]
#[repr(align(128))]
struct ModeCounters {
    conflicts: AtomicU64,
    spins: AtomicU64,
    sleeps: AtomicU64,
    wait_ns: [AtomicU64; HISTOGRAM_BUCKETS],
}

impl ModeCounters {
    #[cfg(not(feature = "std"))]
    const fn new() -> Self {
        Self {
            conflicts: AtomicU64::new(0),
            spins: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            wait_ns: [const { AtomicU64::new(0) }; HISTOGRAM_BUCKETS],
        }
    }

    fn add_to(&self, sum: &mut ModeStatistics) {
        sum.conflicts += self.conflicts.load(Ordering::Relaxed);
        sum.spins += self.spins.load(Ordering::Relaxed);
        sum.sleeps += self.sleeps.load(Ordering::Relaxed);
        for (sum, counter) in sum.wait_ns.iter_mut().zip(&self.wait_ns) {
            *sum += counter.load(Ordering::Relaxed);
        }
    }
}

/// The sets of a class.
type Sets = [Counters; STRIPES];

/// The counters of a class, once a worker has waited for one of its latches.
#[cfg(feature = "std")]
#[derive(Debug)]
pub(super) struct ClassCounters(AtomicPtr<Sets>);

#[cfg(feature = "std")]
impl ClassCounters {
    pub(super) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Makes the sets, if they are not there and there is memory for them.
    #[inline]
    pub(super) fn make(&self) {
        if self.0.load(Ordering::Relaxed).is_null() {
            self.make_first();
        }
    }

    #[cold]
    fn make_first(&self) {
        let Some(pages) = ZeroedPages::new(size_of::<Sets>()) else {
            return;
        };
        let sets = pages.start().cast::<Sets>().as_ptr();
        // Release: pairs with the Acquire in `sets` (C1).
        let made = self
            .0
            .compare_exchange(ptr::null_mut(), sets, Ordering::Release, Ordering::Relaxed);
        if made.is_ok() {
            pages.leak();
        }
    }

    fn sets(&self) -> Option<&'static Sets> {
        // Acquire: pairs with the Release in `make_first`.
        let sets = self.0.load(Ordering::Acquire);
        // SAFETY: null, or pages that are kept for good, as many as the sets need, at the start of a page and so aligned;
        // zeros are valid sets, which are written by atomics only.
        unsafe { sets.as_ref() }
    }
}

/// The counters of a class.
#[cfg(not(feature = "std"))]
#[derive(Debug)]
pub(super) struct ClassCounters(Sets);

#[cfg(not(feature = "std"))]
impl ClassCounters {
    pub(super) const fn new() -> Self {
        Self([const { Counters::new() }; STRIPES])
    }

    pub(super) fn make(&self) {}

    fn sets(&self) -> Option<&Sets> {
        Some(&self.0)
    }
}

impl ClassCounters {
    /// Adds one finished wait.
    pub(super) fn add(&self, wait: Wait, spins: u64, sleeps: u64, wait_ns: u64) {
        let Some(sets) = self.sets() else {
            return;
        };
        let counters = sets[stripe()].of(wait);
        let bucket = (63 - (wait_ns | 1).leading_zeros() as usize).min(HISTOGRAM_BUCKETS - 1);
        counters.conflicts.fetch_add(1, Ordering::Relaxed);
        counters.wait_ns[bucket].fetch_add(1, Ordering::Relaxed);
        if spins > 0 {
            counters.spins.fetch_add(spins, Ordering::Relaxed);
        }
        if sleeps > 0 {
            counters.sleeps.fetch_add(sleeps, Ordering::Relaxed);
        }
    }

    /// Adds all waits of one mode to `sum`.
    pub(super) fn add_to(&self, wait: Wait, sum: &mut ModeStatistics) {
        for counters in self.sets().into_iter().flatten() {
            counters.of(wait).add_to(sum);
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    /// Mutation: the worker that comes second replaces the sets, and what was counted in the first ones is lost.
    #[test]
    fn workers_that_wait_first_at_once_count_in_the_same_sets() {
        for _ in 0..200 {
            let counters: &ClassCounters = Box::leak(Box::new(ClassCounters::new()));
            let together = std::sync::Barrier::new(4);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        together.wait();
                        counters.make();
                        counters.add(Wait::Shared, 3, 0, 100);
                    });
                }
            });
            let all = counters.sets().unwrap().iter();
            let waits: u64 = all.map(|set| set.shared.conflicts.load(Ordering::Relaxed)).sum();
            assert_eq!(waits, 4);
        }
    }

    #[test]
    fn a_class_without_a_wait_has_no_sets() {
        let counters = ClassCounters::new();
        assert!(counters.sets().is_none());
        counters.add(Wait::Shared, 0, 0, 0);
        assert!(counters.sets().is_none(), "made before a wait, not after it (C2)");
    }
}
