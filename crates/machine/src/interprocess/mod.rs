//! Workers of many processes over one memory that all of them map: the machine [`Interprocess`].
//!
//! It is [`Native`](crate::Native) but for two things: a futex is found by other processes (not `PRIVATE`), and the worker slots
//! are in the shared memory, so a list of waiting workers, which links slot numbers, means the same in each process. A latch
//! that keeps no address runs over it unchanged.
//!
//! | file | holds |
//! | --- | --- |
//! | `memory` | the form of a segment, attaching to it, taking a slot |
//! | `recovery` | the right to settle deaths, and who is dead |
//! | `claim` | who owns a slot, and what a worker was doing if it dies (rules P1 to P4) |
//! | `process` | the identity of a process, and whether it is alive |
//! | `error` | the errors |
//!
//! # Rules, besides P1 to P4
//! - P5: a process is attached to one segment at a time, since a machine has one table of workers.
//! - P6: a thread is a worker from [`SegmentMemory::register`] until the result is dropped. A child of `fork` inherits the
//!   mapping and the attachment, not the worker: the thread that lives on in it registers anew.
//! - P7: one process settles deaths at a time. If it dies of that, or if a dead worker held a latch or was about to change one,
//!   the segment is broken for good.
//!
//! # What it does not do
//! Latches that park by address ([`Workers::bucket`]: the hybrid latch) cannot be in a segment, since an address means another
//! thing in each process; the table has no buckets, so they panic. Threads of one process that die alone do not exist:
//! a thread that ends without giving its slot back keeps it as long as its process lives.

mod claim;
mod error;
mod memory;
mod process;
mod recovery;
#[cfg(test)]
mod testing;

use core::cell::Cell;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{self, Relaxed};
use core::time::Duration;
use std::sync::Once;

pub use self::claim::{Activity, HELD_MAX, HeldLatch, LatchSleep, SegmentMode};
pub use self::error::SegmentError;
pub use self::memory::{Registration, SegmentMemory};
pub use self::process::ProcessId;
pub use self::recovery::{DeadWorker, Recovery};
use crate::core_words::{CoreData, CorePtr, CoreU32, CoreU64};
use crate::futex::Reach;
use crate::{CpuCounts, CpuHint, FutexOutcome, Half, Machine, Native, Work, WorkerId, Workers, native};

/// The machine of latches in memory that processes share. Its workers are the threads that [`SegmentMemory::register`] has made
/// workers, in all processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Interprocess;

/// The calling thread's place in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Current {
    /// Of the process's attachment.
    generation: u32,
    /// The worker's number.
    number: u32,
}

impl Current {
    const NONE: Self = Self {
        generation: 0,
        number: WorkerId::NONE,
    };
}

thread_local! {
    static CURRENT: Cell<Current> = const { Cell::new(Current::NONE) };
}

/// A number for an attachment of this process. Never 0.
fn next_generation() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    LAST.fetch_add(1, Relaxed) + 1
}

/// From now on the thread that goes on in a child of `fork` is no worker there (P6).
fn forget_worker_in_children() {
    extern "C" fn forget() {
        CURRENT.set(Current::NONE);
        memory::renew_in_child();
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function may be called in a child: it writes one variable of its thread, which has no destructor, and
        // atomics.
        let failed = unsafe { libc::pthread_atfork(None, None, Some(forget)) };
        if failed != 0 {
            crate::fatal(format_args!("no memory to note what a fork has to do"));
        }
    });
}

/// Notes a sleep for as long as it lives (P3, P4).
struct Asleep(Option<&'static claim::Claim>);

impl Asleep {
    fn begin(half: Half) -> Self {
        let claim = memory::current_claim();
        if let Some(claim) = claim {
            claim.note_asleep(half);
        }
        Self(claim)
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        if let Some(claim) = self.0 {
            claim.note_awake();
        }
    }
}

#[cold]
fn no_worker() -> ! {
    panic!("a thread waits for a latch in shared memory, and is no worker of a segment")
}

// SAFETY: core's atomics. A thread keeps the number of the slot that it has claimed until it gives it back, and a slot has one
// owner in all processes (P1). The table is that of the process's segment, which is one as long as a latch in it is used.
unsafe impl Machine for Interprocess {
    const THREADS_ARE_WORKERS: bool = true;

    type U32 = CoreU32;
    type U64 = CoreU64;
    type Ptr<T: 'static> = CorePtr<T>;
    type Data<T> = CoreData<T>;

    #[inline(always)]
    fn fence(order: Ordering) {
        core::sync::atomic::fence(order);
    }

    #[inline(always)]
    fn spin_hint() {
        core::hint::spin_loop();
    }

    fn yield_now() {
        std::thread::yield_now();
    }

    fn futex_wait(word: &CoreU32, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        let _noted = Asleep::begin(Half::Low);
        native::wait(&word.0, expected, timeout, Reach::AllProcesses)
    }

    fn futex_wake(word: &CoreU32, count: u32) -> u32 {
        crate::futex::wake(&word.0, count, Reach::AllProcesses)
    }

    fn futex_wait_half(word: &CoreU64, half: Half, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        let _noted = Asleep::begin(half);
        let word = native::half_for_the_kernel(&word.0, half);
        native::wait(word, expected, timeout, Reach::AllProcesses)
    }

    fn futex_wake_half(word: &CoreU64, half: Half, count: u32) -> u32 {
        let word = native::half_for_the_kernel(&word.0, half);
        crate::futex::wake(word, count, Reach::AllProcesses)
    }

    fn sleep(duration: Duration) {
        std::thread::sleep(duration);
    }

    /// Nanoseconds of the clock that all processes share: they compare times that others have written.
    fn now() -> u64 {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the call writes the time.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn cpu() -> CpuHint {
        Native::cpu()
    }

    fn cpu_counts() -> CpuCounts {
        Native::cpu_counts()
    }

    #[inline(always)]
    fn charge(_work: Work) {}

    /// # Panics
    /// While the process has no segment.
    fn workers() -> &'static Workers<Self> {
        match memory::attached() {
            Some(attachment) => &attachment.workers,
            None => no_worker(),
        }
    }

    /// # Panics
    /// If the thread is no worker of the process's segment.
    fn worker() -> WorkerId {
        Self::known_worker().unwrap_or_else(|| no_worker())
    }

    fn known_worker() -> Option<WorkerId> {
        memory::current_worker()
    }
}
