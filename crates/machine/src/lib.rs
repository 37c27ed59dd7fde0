//! The machine under Clearway's latches and contended structures.
//!
//! Every algorithm that workers contend on is written once, generic over [`Machine`]. The type parameter says
//! what an atomic access, a futex, a sleep and a clock *are*:
//!
//! | machine | an atomic is | used for |
//! | --- | --- | --- |
//! | [`Native`] | `core::sync::atomic`, Linux futexes | production (the default everywhere) |
//! | [`Interprocess`] | the same, in memory that processes share | engines of many processes |
//! | [`Bare`] | `core::sync::atomic`; the program supplies the waits | kernels and programs without an operating system |
//! | `Loom` (feature `loom`) | loom's atomics | exhaustive checking of small cases under weak memory |
//! | `Shuttle` (feature `shuttle`) | shuttle's scheduler | randomised checking of larger cases |
//!
//! This crate also holds what every waiting worker needs whatever it waits for: the [worker slots](Workers)
//! with a [semaphore](Semaphore) each, the list of [wait events](WaitEvent), and the form of a
//! [switch](Switch) between variants of a mechanism, with the [dispatch](variants) over them. It knows nothing of latches.
//!
//! # Without std
//! With `default-features = false` the crate is `no_std` and allocates nothing. [`Native`] and everything
//! else that needs the operating system are missing, and [`Host`] is [`Bare`]. The target must have atomics
//! of 32 and 64 bits. Loom and shuttle bring std with them.

#![cfg_attr(not(feature = "std"), no_std)]
#![warn(clippy::std_instead_of_core)]

mod atomic;
mod bare;
mod core_words;
mod fatal;
mod growing_table;
mod half;
mod machine;
mod padded;
mod semaphore;
mod switch;
mod variants;
mod wait_event;
mod wait_queue;
mod worker;
mod worker_table;

#[cfg(feature = "std")]
mod current_cpu;
#[cfg(feature = "std")]
mod futex;
#[cfg(feature = "std")]
mod interprocess;
#[cfg(feature = "std")]
mod last_words;
#[cfg(feature = "std")]
mod native;
#[cfg(feature = "std")]
mod places;
#[cfg(feature = "std")]
mod scheduling;
#[cfg(feature = "std")]
mod stderr;
#[cfg(feature = "std")]
mod thread_attributes;
#[cfg(feature = "std")]
mod time_slice;
#[cfg(feature = "std")]
mod usage;
#[cfg(feature = "std")]
mod wall_clock;
#[cfg(feature = "std")]
mod watchdog;
#[cfg(feature = "std")]
mod zeroed_pages;

#[cfg(any(feature = "loom", feature = "shuttle"))]
mod asleep;
#[cfg(any(feature = "loom", feature = "shuttle"))]
mod futex_table;
#[cfg(feature = "loom")]
mod loom_machine;
#[cfg(feature = "shuttle")]
mod shuttle_machine;

pub use atomic::{AtomicPointer, AtomicWord, DataCell};
pub use bare::{Bare, Platform};
pub use core_words::{CoreData, CorePtr, CoreU32, CoreU64};
#[cfg(feature = "std")]
pub use fatal::{Reporter, set_reporter};
pub use fatal::{broken_invariant, fatal, report};
pub use growing_table::GrowingTable;
pub use half::{FutexWord, Half};
pub use machine::{CpuCounts, CpuHint, FutexOutcome, Machine, Work};
pub use padded::Padded;
pub use semaphore::Semaphore;
pub use switch::{Evidence, OnlyBeside, Switch, SwitchDescription, VariantText};
#[cfg(feature = "std")]
pub use wait_event::EventNotNamed;
pub use wait_event::{WaitClass, WaitEvent};
pub use wait_queue::{Picked, WaitQueue};
pub use worker::{AdaptiveCounts, SampledCount, WaitMode, WaitScope, WorkerId, WorkerSlot};
pub use worker_table::{WaitBucket, WakeUps, WorkerMemory, Workers};

#[cfg(feature = "std")]
pub use interprocess::{
    Activity, DeadWorker, HELD_MAX, HeldLatch, Interprocess, LatchSleep, ProcessId, Recovery, Registration,
    SegmentError, SegmentMemory, SegmentMode,
};
#[cfg(feature = "std")]
pub use last_words::tell_of_fatal_signals;
#[cfg(feature = "std")]
pub use native::{Native, WorkersInUse};
#[cfg(feature = "std")]
pub use places::HostCpus;
#[cfg(feature = "std")]
pub use scheduling::{CpuTurns, SchedulingPolicy, ThreadId};
#[cfg(feature = "std")]
pub use stderr::stderr_line;
#[cfg(feature = "std")]
pub use time_slice::{Clients, TimeSliceVariant};
#[cfg(feature = "std")]
pub use usage::Usage;
#[cfg(feature = "std")]
pub use wall_clock::wall_clock_us;
#[cfg(feature = "std")]
pub use watchdog::Watchdog;
#[cfg(feature = "std")]
pub use zeroed_pages::ZeroedPages;

#[cfg(any(feature = "loom", feature = "shuttle"))]
pub use futex_table::DeathInWait;
#[cfg(feature = "loom")]
pub use loom_machine::Loom;
#[cfg(feature = "shuttle")]
pub use shuttle_machine::Shuttle;

/// The machine that the program itself runs on, the default type parameter of every latch: [`Native`] with
/// std, [`Bare`] without.
#[cfg(feature = "std")]
pub type Host = Native;
/// The machine that the program itself runs on, the default type parameter of every latch: `Native` with std,
/// [`Bare`] without.
#[cfg(not(feature = "std"))]
pub type Host = Bare;

/// The README's example, as a test.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
