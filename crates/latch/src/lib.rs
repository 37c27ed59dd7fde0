//! Latches: short locks on in-memory structures, generic over the [`Machine`](clearway_machine::Machine).
//!
//! Mechanisms, a folder each; its `mod.rs` holds what the mechanism protects, its contract and its rules:
//!
//! | folder | holds |
//! | --- | --- |
//! | `lwlock` | [`LwLock`]: shared and exclusive, a list of waiters |
//! | `biased` | [`ReadBiasedLatch`] and [`AdaptiveLatch`]: readers that do not share a cache line |
//! | `hybrid` | [`HybridLatch`]: shared, update, exclusive, and optimistic reads, in 8 bytes |
//! | `futex` | [`SrwMutex`] in 4 bytes, [`SsuxLock`] and [`SuxLock`] with shared, update and exclusive modes |
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
//! | `drop_in` | `Mutex<T>` and `RwLock<T>` of `lock_api` over the futex latches |
//!
//! # Rules for callers
//! 1. A latch is held for nanoseconds to microseconds. What is held until a transaction ends is a lock
//!    (`clearway-txn`). Two exceptions do I/O under a latch on purpose: the log's write latch, and the latches around
//!    reading a page.
//! 2. The worker that acquires releases. Guards are not `Send`.
//! 3. A worker takes latches in ascending `rank` of their classes; two of one class only where that class states an
//!    order. Debug builds check it and panic with both names and both places; release builds do not.
//! 4. A holder must not acquire the same latch again in any mode, not even shared under shared: an exclusive may wait
//!    between the two. Debug builds panic instead of hanging. Only `SuxLock` allows it, to its owner.
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
    ClassOf, HISTOGRAM_BUCKETS, LatchClass, LatchClassStatistics, ModeStatistics, SpinPolicy, Unclassed,
    classes,
};
pub use drop_in::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
pub use futex::{
    CasLoop, FetchAddBts, HolderProtocol, OneWord, SingleWake, SrwMutex, SrwMutexAlgorithm, SrwMutexGuard,
    SsuxExclusive, SsuxLock, SsuxProtocol, SsuxShared, SsuxUpdate, SuxExclusive, SuxExclusiveForIo, SuxLock,
    SuxShared, SuxUpdate, SuxUpdateForIo,
};
pub use hybrid::{HybridExclusive, HybridLatch, HybridShared, HybridUpdate, Version};
pub use latched::{
    Latched, LatchedBy, LatchedByExclusive, LatchedByShared, LatchedExclusive, LatchedShared,
    ReaderWriterLatch,
};
pub use lock_api;
pub use lwlock::guard::{LwLockExclusive, LwLockShared};
pub use lwlock::options::{LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant};
pub use lwlock::{LatchMode, LwLock};
#[cfg(feature = "std")]
pub use order::held_classes;
pub use spin_latch::{SpinLatch, SpinLatchGuard};

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
