//! The machine of shuttle: random schedules of larger cases, sequentially consistent.
//!
//! Shuttle switches threads at its own atomics and locks, and replays a failing schedule from its printed
//! seed. It does not model weak memory; loom does that for the small cases. As under loom, everything global
//! belongs to one execution, and futexes are a table of sleepers under one mutex that stands for the kernel's
//! bucket lock. A sleeper that is never woken is reported as a deadlock. A wait with a timeout ends after other threads
//! have had their turn; a wake-up may come before.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32 as PlainU32, AtomicU64 as PlainU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use crate::atomic::{forward_atomic_pointer, forward_atomic_word};
use crate::futex_table::futex_table;
use crate::{
    CpuCounts, CpuHint, DataCell, DeathInWait, FutexOutcome, Half, Machine, Work, WorkerId, Workers,
};

/// The machine inside `shuttle::check_random` and its relatives.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shuttle;

/// More than any shuttle test starts.
const WORKERS_MAX: u32 = 32;

/// A 32-bit atomic of [`Shuttle`].
#[derive(Debug)]
pub struct ShuttleU32(AtomicU32);

/// A 64-bit atomic of [`Shuttle`].
#[derive(Debug)]
pub struct ShuttleU64(AtomicU64);

/// An atomic pointer of [`Shuttle`].
#[derive(Debug)]
pub struct ShuttlePtr<T>(AtomicPtr<T>);

/// A latch-guarded cell of [`Shuttle`]: each access yields in its middle, and two accesses that overlap but
/// must not fail the test.
#[derive(Debug)]
pub struct ShuttleData<T> {
    value: UnsafeCell<T>,
    /// Readers inside, or [`WRITER`].
    inside: PlainU32,
}

const WRITER: u32 = u32::MAX;

forward_atomic_word!(ShuttleU32, AtomicU32, u32);
forward_atomic_word!(ShuttleU64, AtomicU64, u64);
forward_atomic_pointer!(ShuttlePtr, AtomicPtr::<T>);

// SAFETY: the cell's own pointer, which is the same as long as the cell stays where it is.
unsafe impl<T> DataCell<T> for ShuttleData<T> {
    fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            inside: PlainU32::new(0),
        }
    }
    #[track_caller]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        let before = self.inside.fetch_add(1, Ordering::Relaxed);
        assert!(before < WRITER - 64, "a reader meets a writer inside");
        shuttle::thread::yield_now();
        let result = read(self.value.get());
        self.inside.fetch_sub(1, Ordering::Relaxed);
        result
    }
    #[track_caller]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        let before = self.inside.swap(WRITER, Ordering::Relaxed);
        assert_eq!(before, 0, "a writer meets another worker inside");
        shuttle::thread::yield_now();
        let result = write(self.value.get());
        assert_eq!(
            self.inside.swap(0, Ordering::Relaxed),
            WRITER,
            "a worker came in beside a writer"
        );
        result
    }
}

/// The globals of an execution. The plain atomics are no scheduling points; shuttle runs one thread at a
/// time.
struct World {
    workers: Workers<Shuttle>,
    workers_next: PlainU32,
    sleepers: Mutex<Vec<Sleeper>>,
    clock_ns: PlainU64,
}

shuttle::lazy_static! {
    static ref WORLD: World = World {
        workers: Workers::new(WORKERS_MAX as usize),
        workers_next: PlainU32::new(0),
        sleepers: Mutex::new(Vec::new()),
        clock_ns: PlainU64::new(0),
    };
}

shuttle::thread_local! {
    static CURRENT: WorkerId = claim_slot();
}

fn claim_slot() -> WorkerId {
    let number = WORLD.workers_next.fetch_add(1, Ordering::Relaxed);
    assert!(
        number < WORKERS_MAX,
        "more than {WORKERS_MAX} threads in one shuttle test"
    );
    WorkerId(number)
}

futex_table!(shuttle, WORLD.sleepers);

impl Shuttle {
    /// Ends the next `count` futex waits of the calling thread at once, though no thread has woken it, as a signal may. A wait
    /// that finds another value than it expects does not count.
    pub fn end_waits_early(count: u32) {
        end_waits_early(count);
    }

    /// Runs `life` until it ends, or until its first futex wait, in which the calling thread dies at `end`: then the half of the
    /// word on which it waited, the lower one for a word of 32 bits.
    /// The thread's frames are unwound, so what the case tests has no destructors with effects there.
    pub fn run_until_death<R>(end: DeathInWait, life: impl FnOnce() -> R) -> Result<R, Half> {
        run_until_death(end, life)
    }
}

// SAFETY: shuttle's atomics; a number for each of its threads, of one table for each execution.
unsafe impl Machine for Shuttle {
    const EXPLORED: bool = true;

    type U32 = ShuttleU32;
    type U64 = ShuttleU64;
    type Ptr<T: 'static> = ShuttlePtr<T>;
    type Data<T> = ShuttleData<T>;

    fn fence(order: Ordering) {
        shuttle::sync::atomic::fence(order);
    }

    fn spin_hint() {
        shuttle::thread::yield_now();
    }

    fn yield_now() {
        shuttle::thread::yield_now();
    }

    #[track_caller]
    fn futex_wait(word: &ShuttleU32, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        let address = core::ptr::from_ref(word).addr();
        wait(
            Half::Low,
            address,
            || word.0.load(Ordering::SeqCst),
            expected,
            timeout,
        )
    }

    fn futex_wake(word: &ShuttleU32, count: u32) -> u32 {
        wake(core::ptr::from_ref(word).addr(), count)
    }

    #[track_caller]
    fn futex_wait_half(
        word: &ShuttleU64,
        half: Half,
        expected: u32,
        timeout: Option<Duration>,
    ) -> FutexOutcome {
        let address = core::ptr::from_ref(word).addr() + half.offset();
        wait(
            half,
            address,
            || half.of(word.0.load(Ordering::SeqCst)),
            expected,
            timeout,
        )
    }

    fn futex_wake_half(word: &ShuttleU64, half: Half, count: u32) -> u32 {
        wake(core::ptr::from_ref(word).addr() + half.offset(), count)
    }

    fn sleep(_duration: Duration) {
        shuttle::thread::yield_now();
    }

    fn now() -> u64 {
        // A microsecond a call: the same on each run of the same schedule.
        WORLD.clock_ns.fetch_add(1_000, Ordering::Relaxed)
    }

    fn cpu() -> CpuHint {
        // Two nodes, so that code that asks for the node goes both ways.
        CpuHint {
            node: Self::worker().0 % 2,
            ..CpuHint::default()
        }
    }

    fn cpu_counts() -> CpuCounts {
        CpuCounts {
            nodes: 2,
            ..CpuCounts::default()
        }
    }

    fn charge(_work: Work) {}

    #[track_caller]
    fn label(_address: *const (), name: &'static str) {
        note_wanted(name);
    }

    fn workers() -> &'static Workers<Shuttle> {
        &WORLD.workers
    }

    fn worker() -> WorkerId {
        CURRENT.with(|worker| *worker)
    }
}
