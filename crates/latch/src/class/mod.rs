//! Latch classes: a name, a rank, a spin policy, and counters for all latches of the class.
//!
//! Large latches have a reference to their class. Latches of 4 or 8 bytes have no room for one and name it by
//! a type parameter, a [`ClassOf`].
//!
//! Conflicts, spins, sleeps and wait times are counted on the slow path only: a worker that gets its latch at
//! the first attempt touches nothing but the latch word. Acquisitions are counted too if the build has the
//! feature `count-acquisitions`.
//!
//! A class that no worker has waited for is 48 bytes, or 56 with the count of acquisitions. Its counters, 12 KiB, are made
//! at the first wait; without the feature `std` they lie in the class.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the class, the statistics |
//! | `counters` | the counters of waits, made at the first one |
//! | `spin_policy` | whether a worker polls before it sleeps on a latch of the class |
//! | `acquisitions` | counting every acquisition (feature `count-acquisitions`) |

#[cfg(feature = "count-acquisitions")]
pub(crate) mod acquisitions;
mod counters;
mod spin_policy;

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};

use clearway_machine::{Machine, WaitEvent};

use self::counters::ClassCounters;
pub use self::spin_policy::SpinPolicy;

/// Buckets of the wait-time histogram: bucket `i` counts waits of 2^i to 2^(i+1) nanoseconds.
pub const HISTOGRAM_BUCKETS: usize = 40;

/// The properties that latches of one kind share. Declared as a `static`.
#[derive(Debug)]
pub struct LatchClass {
    /// The name in reports.
    pub name: &'static str,
    /// The wait event of a worker that sleeps on such a latch.
    pub wait_event: WaitEvent,
    /// Latches are taken in order of ascending rank; 0 for a latch without a place in the order. Debug builds
    /// check it.
    pub rank: u16,
    spin_policy: AtomicU32,
    registered: AtomicBool,
    /// The class that was registered before this one.
    next: AtomicPtr<LatchClass>,
    #[cfg(feature = "count-acquisitions")]
    place: std::sync::OnceLock<u8>,
    counters: ClassCounters,
}

#[cfg(feature = "std")]
const _: () = assert!(size_of::<LatchClass>() <= 56);

/// A kind of wait, for the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    Exclusive,
    Shared,
    /// Update mode, of the latches that have it.
    Update,
    UntilFree,
}

/// Names the class of latches that are too small to carry a reference to it. Implemented by empty types:
///
/// ```
/// use clearway_latch::{ClassOf, LatchClass};
/// use clearway_machine::WaitEvent;
///
/// #[derive(Debug)]
/// struct IndexPages;
///
/// impl ClassOf for IndexPages {
///     fn class() -> &'static LatchClass {
///         static CLASS: LatchClass = LatchClass::new("IndexPages", WaitEvent::UserLatch, 0);
///         &CLASS
///     }
/// }
/// ```
pub trait ClassOf: core::fmt::Debug + 'static {
    /// The class.
    fn class() -> &'static LatchClass;
}

/// A latch's reference to its class: a pointer, or what stands for one in memory that processes map at different addresses.
pub trait ClassHandle: Copy + core::fmt::Debug + Send + Sync + 'static {
    /// The class.
    fn class(self) -> &'static LatchClass;
}

impl ClassHandle for &'static LatchClass {
    #[inline(always)]
    fn class(self) -> &'static LatchClass {
        self
    }
}

/// The default class: `user`, without a rank.
#[derive(Debug)]
pub struct Unclassed;

impl ClassOf for Unclassed {
    #[inline]
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass = LatchClass::new("user", WaitEvent::UserLatch, 0);
        &CLASS
    }
}

/// The counters of one mode of a class since the process started.
#[derive(Debug, Clone)]
pub struct ModeStatistics {
    /// Acquisitions that succeeded; `None` in a build without the feature `count-acquisitions`, and for waits
    /// that acquire nothing.
    pub acquisitions: Option<u64>,
    /// Acquisitions that were not granted at the first attempt.
    pub conflicts: u64,
    /// Polls while spinning.
    pub spins: u64,
    /// Sleeps on the semaphore.
    pub sleeps: u64,
    /// Waits by duration: bucket `i` counts those of 2^i to 2^(i+1) nanoseconds; bucket 0 also those that
    /// were over before the clock was read (by the first look after a pause, in latches with update mode and
    /// in SrwMutex).
    pub wait_ns: [u64; HISTOGRAM_BUCKETS],
}

impl ModeStatistics {
    /// The quantile `quantile` of the wait times, in nanoseconds; `None` if there were none. Up to twice the
    /// true value, since it is the end of a bucket.
    pub fn wait_ns_at(&self, quantile: f64) -> Option<u64> {
        let all: u64 = self.wait_ns.iter().sum();
        // Rounded up by hand: core has no `ceil`.
        let exact = all as f64 * quantile;
        let wanted = (exact as u64 + u64::from(exact as u64 as f64 != exact)).max(1);
        let mut counted = 0;
        let bucket = self.wait_ns.iter().position(|count| {
            counted += count;
            counted >= wanted
        })?;
        Some((2 << bucket) - 1)
    }
}

/// The counters of one class since the process started.
#[derive(Debug, Clone)]
pub struct LatchClassStatistics {
    /// The class's name.
    pub name: &'static str,
    /// Waits for exclusive mode.
    pub exclusive: ModeStatistics,
    /// Waits for shared mode.
    pub shared: ModeStatistics,
    /// Waits for update mode; all zero for latches that have none.
    pub update: ModeStatistics,
    /// Waits for the latch to be free (acquire_or_wait, wait_for_var).
    pub until_free: ModeStatistics,
}

/// The class that was registered last; `next` links the others. Classes are only ever put in front, so this
/// word needs no lock.
static LAST_CLASS: AtomicPtr<LatchClass> = AtomicPtr::new(ptr::null_mut());

impl LatchClass {
    /// A class for a `static`, with the policy [`SpinPolicy::Adaptive`].
    pub const fn new(name: &'static str, wait_event: WaitEvent, rank: u16) -> Self {
        Self {
            name,
            wait_event,
            rank,
            spin_policy: AtomicU32::new(SpinPolicy::Adaptive.to_word()),
            registered: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
            #[cfg(feature = "count-acquisitions")]
            place: std::sync::OnceLock::new(),
            counters: ClassCounters::new(),
        }
    }

    /// The class with another spin policy.
    pub const fn spinning(mut self, policy: SpinPolicy) -> Self {
        self.spin_policy = AtomicU32::new(policy.to_word());
        self
    }

    /// The spin policy of a worker before it sleeps on a latch of this class. Read once per wait, on the slow path.
    pub fn spin_policy(&self) -> SpinPolicy {
        SpinPolicy::from_word(self.spin_policy.load(Ordering::Relaxed))
    }

    /// Changes the spin policy; waits that have begun keep the old one.
    pub fn set_spin_policy(&self, policy: SpinPolicy) {
        self.spin_policy.store(policy.to_word(), Ordering::Relaxed);
    }

    /// Puts the class on the list that [`classes`] reads, once.
    fn register(&'static self) {
        if self.registered.load(Ordering::Relaxed) || self.registered.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut last = LAST_CLASS.load(Ordering::Relaxed);
        loop {
            self.next.store(last, Ordering::Relaxed);
            // Release: pairs with the Acquire in `classes`; a reader that finds the class sees its `next`.
            match LAST_CLASS.compare_exchange_weak(
                last,
                ptr::from_ref(self).cast_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(found) => last = found,
            }
        }
    }

    /// The place of the counts of the class's acquisitions.
    #[cfg(feature = "count-acquisitions")]
    #[inline]
    pub(crate) fn place(&'static self) -> u8 {
        *self.place.get_or_init(|| {
            self.register();
            acquisitions::new_place()
        })
    }

    /// Counts an acquisition, if the build counts them. Not on a machine whose threads are no workers: its program may not
    /// allow for the thread-local data and the allocations that counting needs, and the feature may be another crate's wish.
    #[inline]
    pub(crate) fn count<M: Machine>(&'static self, mode: Wait) {
        #[cfg(feature = "count-acquisitions")]
        if M::THREADS_ARE_WORKERS && !M::EXPLORED {
            acquisitions::count(self.place(), mode);
        }
        let _ = (mode, M::THREADS_ARE_WORKERS, M::EXPLORED);
    }

    #[cfg(feature = "count-acquisitions")]
    fn acquisitions(&self, mode: Wait) -> Option<u64> {
        let place = self.place.get();
        Some(place.map_or(0, |place| acquisitions::total(*place, mode)))
    }

    #[cfg(not(feature = "count-acquisitions"))]
    fn acquisitions(&self, _mode: Wait) -> Option<u64> {
        None
    }

    /// A worker is about to wait for a latch of the class. Each wait that ends with [`record`](Self::record) begins with this,
    /// because the counters may have to be made: not while the worker holds the latch that it has waited for.
    #[inline]
    pub(crate) fn begin_wait(&'static self) {
        self.counters.make();
    }

    /// Adds one finished wait. It is lost if there was no memory for the class's counters.
    pub(crate) fn record(&'static self, wait: Wait, spins: u64, sleeps: u64, wait_ns: u64) {
        self.register();
        self.counters.add(wait, spins, sleeps, wait_ns);
    }

    /// The class's counters.
    pub fn statistics(&self) -> LatchClassStatistics {
        LatchClassStatistics {
            name: self.name,
            exclusive: self.read(Wait::Exclusive, self.acquisitions(Wait::Exclusive)),
            shared: self.read(Wait::Shared, self.acquisitions(Wait::Shared)),
            update: self.read(Wait::Update, self.acquisitions(Wait::Update)),
            until_free: self.read(Wait::UntilFree, None),
        }
    }

    fn read(&self, wait: Wait, acquisitions: Option<u64>) -> ModeStatistics {
        let mut sum = ModeStatistics {
            acquisitions,
            conflicts: 0,
            spins: 0,
            sleeps: 0,
            wait_ns: [0; HISTOGRAM_BUCKETS],
        };
        self.counters.add_to(wait, &mut sum);
        sum
    }
}

/// The classes that ever had a conflict, or in a build that counts acquisitions, all that have a latch; the
/// latest first.
pub fn classes() -> impl Iterator<Item = &'static LatchClass> {
    // SAFETY: `register` puts only `&'static LatchClass` and null into `LAST_CLASS` and `next`, and a class
    // is written only through its atomics.
    let class_at = |place: *mut LatchClass| unsafe { place.cast_const().as_ref() };
    // Acquire: pairs with the Release in `register`. The older classes are visible too, since each was put in
    // front by an RMW of the same word.
    core::iter::successors(class_at(LAST_CLASS.load(Ordering::Acquire)), move |class| {
        class_at(class.next.load(Ordering::Relaxed))
    })
}

/// The counters of all [`classes`], sorted by name.
#[cfg(feature = "std")]
pub fn statistics() -> Vec<LatchClassStatistics> {
    let mut all: Vec<_> = classes().map(LatchClass::statistics).collect();
    all.sort_by_key(|class| class.name);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_that_register_at_once_are_all_listed_once() {
        static CLASSES: [LatchClass; 64] =
            [const { LatchClass::new("registered", WaitEvent::UserLatch, 0) }; 64];
        std::thread::scope(|scope| {
            for first in 0..4 {
                scope
                    .spawn(move || (0..64).for_each(|number| CLASSES[(first * 16 + number) % 64].register()));
            }
        });
        assert!(classes().all(|class| class.registered.load(Ordering::Relaxed)));
        assert_eq!(classes().filter(|class| class.name == "registered").count(), 64);
    }

    #[test]
    fn threads_count_apart_and_are_added_up() {
        static CLASS: LatchClass = LatchClass::new("striped", WaitEvent::UserLatch, 0);
        // All at once, or a thread would get the stack of one that has ended.
        let together = std::sync::Barrier::new(16);
        let stripes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        together.wait();
                        CLASS.begin_wait();
                        (0..100).for_each(|_| CLASS.record(Wait::Update, 2, 1, 1_000));
                        counters::stripe()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(
            stripes.iter().any(|stripe| *stripe != stripes[0]),
            "all in one: {stripes:?}"
        );
        let counted = CLASS.statistics().update;
        assert_eq!(
            (counted.conflicts, counted.spins, counted.sleeps),
            (1_600, 3_200, 1_600)
        );
        assert_eq!(counted.wait_ns[9], 1_600);
        assert_eq!(CLASS.statistics().shared.conflicts, 0);
    }

    #[test]
    fn a_quantile_is_the_end_of_its_bucket() {
        static CLASS: LatchClass = LatchClass::new("quantile", WaitEvent::UserLatch, 0);
        let mut counted = CLASS.read(Wait::Shared, None);
        assert_eq!(counted.wait_ns_at(0.5), None);
        (counted.wait_ns[3], counted.wait_ns[10]) = (99, 1);
        assert_eq!(counted.wait_ns_at(0.0), Some(15));
        assert_eq!(counted.wait_ns_at(0.99), Some(15), "exactly 99 of 100");
        assert_eq!(counted.wait_ns_at(0.991), Some(2047), "99.1 is rounded up");
        assert_eq!(counted.wait_ns_at(1.0), Some(2047));
    }
}
