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

pub use adaptive::{AdaptiveExclusive, AdaptiveLatch, AdaptiveOptions, AdaptiveShared};
pub use bias::{BiasPolicy, BiasStatistics};
pub use class::{
    ClassOf, HISTOGRAM_BUCKETS, LatchClass, LatchClassStatistics, ModeStatistics, Unclassed, statistics,
};
pub use drop_in::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard, RwLockWriteGuard};
pub use futex::{
    CasLoop, FetchAddBts, HolderProtocol, SingleWake, SrwMutex, SrwMutexAlgorithm, SrwMutexGuard,
    SsuxExclusive, SsuxLock, SsuxShared, SsuxUpdate, SuxExclusive, SuxExclusiveForIo, SuxLock, SuxShared,
    SuxUpdate, SuxUpdateForIo,
};
pub use guard::{LwLockExclusive, LwLockShared};
pub use hybrid::{HybridExclusive, HybridLatch, HybridShared, HybridUpdate, Version};
pub use latched::{Latched, LatchedExclusive, LatchedShared};
pub use latched_by::{LatchedBy, LatchedByExclusive, LatchedByShared, ReaderWriterLatch};
pub use lock_api;
pub use lwlock::{LatchMode, LwLock};
pub use options::{Fairness, LwLockAlgorithm, LwLockOptions, SharedPath};
pub use read_biased::{ReadBiasedExclusive, ReadBiasedLatch, ReadBiasedShared};
pub use slot_choice::SlotChoice;
pub use spin::SpinPolicy;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
