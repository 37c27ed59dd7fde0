//! Latches: short locks on in-memory structures, generic over the [`Machine`](clearway_machine::Machine).
//!
//! | file | holds |
//! | --- | --- |
//! | `class` | what a latch is called and what its class has counted |
//! | `spin` | whether to poll before sleeping: the class's policy |
//! | `order` | in debug builds, whether latches are taken in order of rank |
//! | `acquisitions` | counting every acquisition (feature `count-acquisitions`) |
//! | `state` | the bits of the LwLock word |
//! | `wait_list` | the list of sleeping workers |
//! | `delay` | the adaptive spin delay |
//! | `options` | the choices an LwLock is built with |
//! | `lwlock` | acquire and release, both algorithms |
//! | `variable` | acquire_or_wait, and waiting for a variable |
//! | `guard` | the RAII guards |
//! | `parking` | where workers sleep that wait for a latch of one word |
//! | `futex` | a mutex of 4 bytes, and shared, update and exclusive in 8: SrwMutex, SsuxLock, SuxLock |
//! | `drop_in` | the same as containers: `Mutex<T>` and `RwLock<T>` of `lock_api` |
//! | `hybrid` | shared, update, exclusive, and optimistic reads |
//! | `read_biased` | a latch cut into K: cheap for readers, dear for writers |
//! | `adaptive` | a latch that turns read-biased by itself |
//! | `bias` | when it does |
//! | `reader_slots` | where its readers make themselves known |
//! | `slot_choice` | by what a reader picks its slot |
//! | `latched` | a latch with the data it protects |
//! | `latched_by` | the same for any reader-writer latch |
//!
//! A latch is held for nanoseconds to microseconds, by code that never waits for a user; what is held to the end of a
//! transaction is a *lock* and lives in `clearway-txn`.

//!
//! # Without an operating system
//! With `default-features = false` the crate is `no_std`, allocates nothing, and the default machine is
//! [`Bare`](clearway_machine::Bare). What needs no more than atomics works at once: `Mutex`, `RwLock`, [`SrwMutex`] and [`SsuxLock`],
//! waiting by polling, and [`HybridLatch`] for as long as nobody polls in vain. To sleep instead of polling, and for latches that
//! keep a list of waiters ([`LwLock`] and what is made of it, `HybridLatch`) or an owner ([`SuxLock`]), the program says once how its
//! threads wait and what they are called: [`Bare::install`](clearway_machine::Bare::install). Without that, such a latch panics on
//! first having to know. The check of the order of latches, `statistics` and `count-acquisitions` need std; [`classes`] does not.
//! `crates/latch/bare-metal` is a whole program.

#![cfg_attr(not(feature = "std"), no_std)]
#![warn(clippy::std_instead_of_core)]

#[cfg(feature = "count-acquisitions")]
mod acquisitions;
mod adaptive;
mod bias;
mod class;
mod delay;
mod drop_in;
mod futex;
mod guard;
mod hybrid;
mod latched;
mod latched_by;
mod lwlock;
mod options;
mod order;
mod parking;
mod read_biased;
mod reader_slots;
mod slot_choice;
mod spin;
mod state;
mod variable;
mod wait_list;
mod waiting;

pub use adaptive::{AdaptiveExclusive, AdaptiveLatch, AdaptiveOptions, AdaptiveShared};
pub use bias::{BiasPolicy, BiasStatistics};
#[cfg(feature = "std")]
pub use class::statistics;
pub use class::{
    ClassOf, HISTOGRAM_BUCKETS, LatchClass, LatchClassStatistics, ModeStatistics, Unclassed, classes,
};
pub use drop_in::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
pub use futex::{
    CasLoop, FetchAddBts, HolderProtocol, OneWord, SingleWake, SrwMutex, SrwMutexAlgorithm, SrwMutexGuard,
    SsuxExclusive, SsuxLock, SsuxProtocol, SsuxShared, SsuxUpdate, SuxExclusive, SuxExclusiveForIo, SuxLock,
    SuxShared, SuxUpdate, SuxUpdateForIo,
};
pub use guard::{LwLockExclusive, LwLockShared};
pub use hybrid::{HybridExclusive, HybridLatch, HybridShared, HybridUpdate, Version};
pub use latched::{Latched, LatchedExclusive, LatchedShared};
pub use latched_by::{LatchedBy, LatchedByExclusive, LatchedByShared, ReaderWriterLatch};
pub use lock_api;
pub use lwlock::{LatchMode, LwLock};
pub use options::{LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant};
#[cfg(feature = "std")]
pub use order::held_classes;
pub use read_biased::{ReadBiasedExclusive, ReadBiasedLatch, ReadBiasedShared};
pub use slot_choice::SlotChoice;
pub use spin::SpinPolicy;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
