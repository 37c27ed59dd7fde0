//! Clearway's latches, and its bookkeeping of transactions, for programs in C and C++.
//!
//! The header is `include/clearway.h`; cbindgen makes it from this crate. Each function does what the Rust function does
//! that it names, and the rules for callers at the top of `clearway-latch` and `clearway-txn` hold: no latch is held while
//! its thread waits for a peer, latches with a rank are taken in ascending order, and no latch finds deadlocks.
//!
//! # Conventions
//! - A latch lies where the caller puts it. Its type says its size and alignment, and it must not be moved while a thread
//!   holds it or waits for it. A mutex, a condition variable and a shared/update/exclusive latch are idle when all their
//!   bytes are zero; the others have a function that makes them.
//! - A latch is released by the thread that took it, in the mode in which it holds it. A thread that releases what it does
//!   not hold breaks the latch for all. Builds with debug assertions abort if no thread holds the latch in that mode; they do
//!   not notice that another thread holds it.
//! - A pointer leads to a latch that was made and is not freed.
//! - An argument of an enumerated type is one of the type's named values.
//! - Nothing unwinds into the caller: where the Rust function panics, the process aborts and says why.
//! - Latches are for the threads of one process, but those of a segment. After `fork` the child has copies of the others, and
//!   must not use one that a thread of the parent held.
#![allow(non_camel_case_types)]

mod adaptive;
mod class;
mod commit_log;
mod known_xids;
mod lwlock;
mod mutex;
mod proc_array;
mod read_biased;
mod segment;
mod segment_lwlock;
mod segment_mutex;
mod segment_rwlock;
mod sux;

pub use adaptive::*;
pub use class::*;
pub use commit_log::*;
pub use known_xids::*;
pub use lwlock::*;
pub use mutex::*;
pub use proc_array::*;
pub use read_biased::*;
pub use segment::*;
pub use segment_lwlock::*;
pub use segment_mutex::*;
pub use segment_rwlock::*;
pub use sux::*;

/// The latch at `place`.
///
/// # Safety
/// `place` leads to a live `T`, or to bytes of its size and alignment that are one.
#[inline(always)]
unsafe fn at<'a, T>(place: *const T) -> &'a T {
    debug_assert!(!place.is_null(), "a null pointer in place of a latch");
    debug_assert!(
        place.is_aligned(),
        "a latch at an address that is not aligned for it"
    );
    // SAFETY: the caller's.
    unsafe { &*place }
}
