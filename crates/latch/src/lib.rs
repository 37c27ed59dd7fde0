//! Latches: short locks on in-memory structures, generic over the [`Machine`](clearway_machine::Machine).
//!
//! # Which latch
//!
//! | you have | take | bytes |
//! | --- | --- | --- |
//! | a Rust program that uses std's or parking_lot's locks | [`Mutex<T>`](Mutex), [`RwLock<T>`](RwLock), [`Condvar`] | 4, 8, 8 |
//! | readers that read again while they read | [`RecursiveRwLock<T>`](RecursiveRwLock) | 8 |
//! | an engine whose latches show by name what is waited for, with statistics and a checked order | [`Latched<T>`](Latched) over an [`LwLock`] | 24 |
//! | a latch in each row, bucket or node, with a class of its own | [`SrwMutex`], [`SsuxLock`] | 4, 8 |
//! | a page that one worker changes while others read on, until it writes | [`SsuxLock`] or [`HybridLatch`]: update mode | 8 |
//! | the upper pages of an index, read far more often than written | [`HybridLatch`]: optimistic reads | 8 |
//! | a value of a few words, read far more often than written | [`HybridCell`] | 8, and the value |
//! | one structure that all CPUs read and few change | [`AdaptiveLatch`], which finds out; [`ReadBiasedLatch`], which knows | 2,176, 2,304 |
//! | an exclusive hold that another thread ends, or that its owner takes again | [`SuxLock`] | 16 |
//! | a few words for a few instructions | [`SpinLatch`] | 16 |
//! | many processes over one shared memory | [`SegmentLwLock`](interprocess::SegmentLwLock), `SegmentMutex`, `SegmentRwLock` | 24, 12, 16 |
//!
//! # Examples
//!
//! In place of parking_lot's: the same containers, guards and methods.
//!
//! ```
//! use std::time::Duration;
//! use clearway_latch::{Condvar, Mutex, RwLock, RwLockUpgradableReadGuard};
//!
//! static JOBS: Mutex<Vec<u64>> = Mutex::new(Vec::new());
//! static MORE: Condvar = Condvar::new();
//! static NAMES: RwLock<Vec<&str>> = RwLock::new(Vec::new());
//!
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         JOBS.lock().push(7);
//!         MORE.notify_one();
//!     });
//!     let mut jobs = JOBS.lock();
//!     MORE.wait_while(&mut jobs, |jobs| jobs.is_empty());
//!     assert_eq!(jobs.pop(), Some(7));
//! });
//!
//! // Readers go on beside an upgradable read; one that takes too long to upgrade is one still.
//! let names = NAMES.upgradable_read();
//! if !names.contains(&"Alice") {
//!     let mut names = RwLockUpgradableReadGuard::try_upgrade_for(names, Duration::from_secs(1)).unwrap();
//!     names.push("Alice");
//! }
//! assert!(NAMES.try_read_for(Duration::from_millis(1)).is_some());
//! ```
//!
//! A class says what a kind of latch is: its name, the wait event of a worker that sleeps on one, its rank in the order of
//! latches. Debug builds panic where the order is broken, before it becomes a deadlock.
//!
//! ```
//! use clearway_latch::{LatchClass, Latched, LwLockOptions};
//! use clearway_machine::WaitEvent;
//!
//! static CLASS: LatchClass = LatchClass::new("Accounts", WaitEvent::UserLatch, 100);
//! static ACCOUNTS: Latched<[u64; 10]> = Latched::in_static(&CLASS, LwLockOptions::BEST, [0; 10]);
//!
//! ACCOUNTS.exclusive()[3] += 1;
//! assert_eq!(ACCOUNTS.shared()[3], 1);
//! let waited = |class: &clearway_latch::LatchClassStatistics| class.name == "Accounts" && class.shared.conflicts > 0;
//! assert!(!clearway_latch::statistics().iter().any(waited), "no worker ever waited");
//! ```
//!
//! Shared, update, exclusive without data of its own, and the transitions between them:
//!
//! ```
//! use clearway_latch::SsuxLock;
//!
//! static PAGE: SsuxLock = SsuxLock::new();
//!
//! let update = PAGE.update();
//! assert!(PAGE.try_update().is_none(), "one updater at a time");
//! let exclusive = update.exclusive(); // waits for the readers inside
//! let shared = exclusive.shared(); // and nothing was changed in between
//! # drop(shared);
//! ```
//!
//! An optimistic read writes nothing, so readers on many CPUs share the cache line. What it read counts only if no worker has
//! written meanwhile; so it reads atomics.
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
//! use clearway_latch::HybridLatch;
//!
//! static LATCH: HybridLatch = HybridLatch::new();
//! static PAIR: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
//!
//! let exclusive = LATCH.exclusive();
//! PAIR.iter().for_each(|word| word.store(1, Relaxed));
//! drop(exclusive);
//! let [first, second] = LATCH.read(|| [PAIR[0].load(Relaxed), PAIR[1].load(Relaxed)]);
//! assert_eq!(first, second);
//! ```
//!
//! Many readers on many CPUs, each with a cache line of its own:
//!
//! ```
//! use clearway_latch::{AdaptiveLatch, LatchClass, LatchedBy};
//! use clearway_machine::WaitEvent;
//!
//! static ROUTES: LatchClass = LatchClass::new("Routes", WaitEvent::UserLatch, 0);
//!
//! let latch: AdaptiveLatch = AdaptiveLatch::new(&ROUTES);
//! let routes = LatchedBy::with_latch(latch, vec!["a", "b"]);
//! assert_eq!(routes.shared().len(), 2);
//! routes.exclusive().push("c");
//! ```
//!
//! # Panics, forks, threads
//! - A panic while a guard is held drops the guard, which releases the latch. Nothing is poisoned: what the holder left half
//!   changed is there for the next one, as under parking_lot and unlike std.
//! - Guards are not `Send`: a latch is released by the thread that acquired it. `SuxUpdateForIo` and `SuxExclusiveForIo` are,
//!   for an I/O that another thread ends.
//! - After a `fork` the child has the calling thread alone. A latch that another thread held at that moment stays held in the
//!   child for ever, and the worker slots of the others stay taken. So the child calls `exec`, or uses no latch that another
//!   thread of its parent could have held. A latch that the forking thread held is held by the child's as well, each in its own
//!   memory. Futexes are private: of latches in memory that processes share, only those of [`interprocess`] work.
//!
//! # Features
//!
//! | feature | adds |
//! | --- | --- |
//! | `std` (default) | the latches of an operating system's threads, the check of their order, statistics, attempts until an `Instant` |
//! | `count-acquisitions` | a count of every acquisition by class and mode, not only of conflicts |
//! | `loom`, `shuttle` | the model checkers' machines, for tests of what is built on these latches |
//!
//! # Inside
//!
//! Mechanisms, a folder each; its `mod.rs` holds what the mechanism protects, its contract and its rules:
//!
//! | folder | holds |
//! | --- | --- |
//! | `lwlock` | [`LwLock`]: shared and exclusive, a list of waiters |
//! | `biased` | [`ReadBiasedLatch`] and [`AdaptiveLatch`]: readers that do not share a cache line |
//! | `hybrid` | [`HybridLatch`]: shared, update, exclusive, and optimistic reads, in 8 bytes |
//! | `interprocess` | latches in memory that processes share, and the deaths of these |
//! | `futex` | [`SrwMutex`] in 4 bytes and its [`SrwCondvar`], [`SsuxLock`] and [`SuxLock`] with shared, update and exclusive modes |
//!
//! Parts that they share:
//!
//! | file | holds |
//! | --- | --- |
//! | `class` | the name, rank, spin policy and statistics of a kind of latch; counting acquisitions |
//! | `order` | in debug builds, the check that latches are taken in order of rank |
//! | `spin`, `delay` | polling before a sleep, by the class's policy, and the learned budget |
//! | `waiting` | one wait: polls, sleeps, and what is recorded of them |
//! | `parking` | sleeping on a latch that has no list of its own |
//! | `spin_latch` | [`SpinLatch`]: exclusive, polled, for a few instructions |
//! | `latched` | a latch with the data it protects |
//! | `drop_in` | `Mutex<T>`, `Condvar` and `RwLock<T>` of `lock_api` over the futex latches |
//!
//! # Rules for callers
//! 1. A latch is held for nanoseconds to microseconds. What is held until a transaction ends is a lock
//!    (`clearway-txn`). Two exceptions do I/O under a latch on purpose: the log's write latch, and the latches around
//!    reading a page.
//! 2. The worker that acquires releases. Guards are not `Send`.
//! 3. A worker takes latches in ascending `rank` of their classes; two of one class only where that class states an
//!    order. Debug builds check it and panic with both names and both places; release builds do not.
//! 4. A holder must not acquire the same latch again in any mode, not even shared under shared: an exclusive may wait
//!    between the two. Debug builds panic instead of hanging. Only `SuxLock` allows it, to its owner, and
//!    [`SsuxLock::acquire_shared_recursive`] and [`RecursiveRwLock`], to a reader.
//! 5. A holder does not wait for anything that a waiter for the latch may have to do.
//! 6. A woken worker does not own the latch: it tries again. Newcomers may pass it (barging), so no bound on the wait
//!    is promised.
//! 7. `acquire_or_wait` returns `None` if a wake-up has reached the caller: that of a release, which may have come before
//!    the call, or of an `update_var`. So it does not say that the latch was free since the call, still less that it is
//!    now. The caller checks whether its work has been done, and calls again if not.
//! 8. `wait_for_var(var, old)`: only the exclusive holder of that latch changes `var`, by `update_var` or
//!    `release_clear_var`. `Ok` says that there was an instant after the call began without an exclusive holder.
//! 9. A worker sleeps on one latch at a time and has one semaphore for all kinds of waits. Other code that sleeps on
//!    that semaphore counts the posts that are not for it and posts them again, as the latch does.
//! 10. `is_held` and `is_held_exclusive` are for assertions by the holder; for any other caller the answer may be out
//!     of date.
//!
//! # Without an operating system
//! With `default-features = false` the crate is `no_std`, allocates nothing, and the default machine is
//! [`Bare`](clearway_machine::Bare). Latches that need only atomics work at once: `Mutex`, `RwLock`,
//! [`SrwMutex`] and [`SsuxLock`], which wait by polling, and [`HybridLatch`] as long as no worker has to
//! park.
//!
//! For sleeping instead of polling, and for latches with a list of waiters ([`LwLock`], the biased latches,
//! `HybridLatch`) or an owner ([`SuxLock`]), the program calls
//! [`Bare::install`](clearway_machine::Bare::install) once: it says how threads wait, and what number each
//! has. Without that, such a latch panics when it first needs to know.
//!
//! The check of the order of latches, `statistics` and `count-acquisitions` need std; [`classes`] does not.
//! `crates/latch/bare-metal` is a whole program.

#![cfg_attr(not(feature = "std"), no_std)]
#![warn(clippy::std_instead_of_core)]

mod biased;
mod class;
mod delay;
mod drop_in;
mod futex;
mod hybrid;
#[cfg(feature = "std")]
pub mod interprocess;
mod latched;
mod lwlock;
mod order;
mod parking;
mod spin;
mod spin_latch;
mod waiting;

pub use biased::{
    AdaptiveExclusive, AdaptiveLatch, AdaptiveOptions, AdaptiveShared, BiasPolicy, BiasStatistics,
    ReadBiasedExclusive, ReadBiasedLatch, ReadBiasedOptions, ReadBiasedShared, SlotChoice, WriterVariant,
};
#[cfg(feature = "std")]
pub use class::statistics;
pub use class::{
    ClassHandle, ClassOf, HISTOGRAM_BUCKETS, LatchClass, LatchClassStatistics, ModeStatistics, SpinPolicy,
    Unclassed, classes,
};
pub use drop_in::{
    Condvar, Mutex, MutexGuard, RawRecursiveRwLock, RecursiveRwLock, RwLock, RwLockReadGuard,
    RwLockUpgradableReadGuard, RwLockWriteGuard,
};
pub use futex::{
    CasLoop, FetchAddBts, HolderProtocol, LastSleep, OneWord, SingleWake, SrwCondvar, SrwMutex,
    SrwMutexAlgorithm, SrwMutexGuard, SsuxExclusive, SsuxLock, SsuxProtocol, SsuxShared, SsuxUpdate,
    SuxExclusive, SuxExclusiveForIo, SuxLock, SuxShared, SuxUpdate, SuxUpdateForIo,
};
pub use hybrid::{HybridCell, HybridExclusive, HybridLatch, HybridShared, HybridUpdate, Version, Words};
pub use latched::{
    Latched, LatchedBy, LatchedByExclusive, LatchedByShared, LatchedExclusive, LatchedShared,
    ReaderWriterLatch,
};
pub use lock_api;
pub use lwlock::guard::{LwLockExclusive, LwLockShared};
pub use lwlock::options::{LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant};
pub use lwlock::{LatchMode, LwLock, RecoveredWaiter};
#[cfg(feature = "std")]
pub use order::held_classes;
pub use spin_latch::{SpinLatch, SpinLatchGuard};

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
