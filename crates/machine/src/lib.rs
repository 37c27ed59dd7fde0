//! The machine under Clearway's latches and contended structures.
//!
//! Every algorithm that workers contend on is written once, generic over [`Machine`]. The type parameter says
//! what an atomic access, a futex, a sleep and a clock *are*:
//!
//! | machine | an atomic is | used for |
//! | --- | --- | --- |
//! | [`Native`] | `std::sync::atomic`, Linux futexes | production (the default everywhere) |
//! | `Loom` (feature `loom`) | loom's atomics | exhaustive checking of small cases under weak memory |
//! | `Shuttle` (feature `shuttle`) | shuttle's scheduler | randomised checking of larger cases |
//!
//! This crate also holds what every waiting worker needs whatever it waits for: the [worker slots](Workers) with a
//! [semaphore](Semaphore) each, and the list of [wait events](WaitEvent). It knows nothing of latches.

mod atomic;
mod machine;
mod native;
mod padded;
mod scheduling;
mod semaphore;
mod wait_event;
mod worker;

#[cfg(feature = "loom")]
mod loom_machine;
#[cfg(feature = "shuttle")]
mod shuttle_machine;

pub use atomic::{AtomicPointer, AtomicWord, DataCell};
pub use machine::{CpuHint, FutexOutcome, Machine, Work};
pub use native::{Native, NativeU32, NativeU64};
pub use padded::Padded;
pub use scheduling::SchedulingPolicy;
pub use semaphore::Semaphore;
pub use wait_event::{WaitClass, WaitEvent};
pub use worker::{WaitBucket, WaitMode, WaitScope, WorkerId, WorkerSlot, Workers};

#[cfg(feature = "loom")]
pub use loom_machine::Loom;
#[cfg(feature = "shuttle")]
pub use shuttle_machine::Shuttle;
