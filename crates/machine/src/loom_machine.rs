//! The machine of loom: every atomic access is a branch of an exhaustive search under C11-like weak memory.
//!
//! An execution is one run of a test's closure. Everything global lives in loom's own lazy statics, so that
//! each execution starts from nothing: the worker slots, the futex table, the clock.
//!
//! # Futexes
//! Loom has none. They are a table of sleepers under one loom mutex, which stands for the kernel's lock of a
//! hash bucket: for wakers, the comparison with the expected value and the entry into the table are one step,
//! as in Linux. A sleeper parks; a waker takes it out of the table and unparks it. Loom reports a sleeper
//! that is never woken as a deadlock, which is how a lost wake-up shows.
//!
//! # What this machine does not show
//! The futex table's mutex orders a waker before a later sleeper, also when the waker found no sleeper; Linux
//! promises less in that case. A wait with a timeout ends after other threads have had their turn, since loom has no time;
//! a wake-up may come before. Sleepers return without a cause only where a test calls [`Loom::interrupt`] or
//! [`Loom::end_waits_early`].
//!
//! # A failed execution
//! After a deadlock or a failed assertion all threads unwind, and the guards that they drop release their latches. Words of
//! this machine do nothing then, since an access to loom would be a panic within a panic: a load finds 0, and an exchange
//! succeeds. What is loom's own, such as its `Arc`, still makes one, so a test shares by `std::sync::Arc`. After loom's
//! message of a deadlock the workers that are asleep are listed with their lines.
//!
//! # `SeqCst` accesses
//! Loom treats them as acquire/release. What a protocol needs of them is mostly one thing: a thread's `SeqCst` load comes
//! after its own `SeqCst` write of another word. So before such a load this machine makes a `SeqCst` fence, if the thread
//! has made a `SeqCst` write since its last one. The fence orders the thread's weaker writes too, which the accesses do
//! not; and an order of `SeqCst` accesses of which none is such a pair is not shown. A protocol that needs a total order
//! uses fences.

use core::sync::atomic::{AtomicBool, AtomicU32 as PlainU32, AtomicU64 as PlainU64, Ordering};
use core::time::Duration;
use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

use crate::asleep::{is_unwinding, watch_panics};
use crate::atomic::forward_atomic_pointer;
use crate::futex_table::futex_table;
use crate::{
    AtomicWord, CpuCounts, CpuHint, DataCell, DeathInWait, FutexOutcome, Half, Machine, Work, WorkerId,
    Workers,
};

/// The machine inside `loom::model`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Loom;

/// As many workers as loom can have threads.
const WORKERS_MAX: u32 = loom::MAX_THREADS as u32;

/// A 32-bit atomic of [`Loom`].
#[derive(Debug)]
pub struct LoomU32(AtomicU32);

/// A 64-bit atomic of [`Loom`].
#[derive(Debug)]
pub struct LoomU64(AtomicU64);

/// An atomic pointer of [`Loom`].
#[derive(Debug)]
pub struct LoomPtr<T>(AtomicPtr<T>);

loom::thread_local! {
    /// True if the thread has made a `SeqCst` write that no `SeqCst` fence or load of it has followed.
    static WROTE_SEQ_CST: core::cell::Cell<bool> = core::cell::Cell::new(false);
}

/// Notes a write, by an RMW or a store, of this order.
fn note_write(order: Ordering) {
    if order == Ordering::SeqCst {
        WROTE_SEQ_CST.with(|wrote| wrote.set(true));
    }
}

/// Orders a load of this order behind the thread's earlier `SeqCst` writes.
fn order_load(order: Ordering) {
    if order == Ordering::SeqCst && WROTE_SEQ_CST.with(|wrote| wrote.replace(false)) {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }
}

/// As `forward_atomic_word!`, with the steps under "`SeqCst` accesses".
macro_rules! loom_word {
    ($wrapper:ty, $inner:path, $value:ty) => {
        // SAFETY: the inner word's own methods, with orders at least as strong.
        unsafe impl AtomicWord<$value> for $wrapper {
            fn new(value: $value) -> Self {
                watch_panics();
                Self(<$inner>::new(value))
            }
            fn load(&self, order: Ordering) -> $value {
                if is_unwinding() {
                    return 0;
                }
                order_load(order);
                self.0.load(order)
            }
            fn store(&self, value: $value, order: Ordering) {
                if is_unwinding() {
                    return;
                }
                self.0.store(value, order);
                note_write(order);
            }
            fn swap(&self, value: $value, order: Ordering) -> $value {
                if is_unwinding() {
                    return 0;
                }
                let before = self.0.swap(value, order);
                note_write(order);
                before
            }
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if is_unwinding() {
                    return Ok(current);
                }
                let result = self.0.compare_exchange(current, new, success, failure);
                if result.is_ok() {
                    note_write(success);
                }
                result
            }
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if is_unwinding() {
                    return Ok(current);
                }
                let result = self.0.compare_exchange_weak(current, new, success, failure);
                if result.is_ok() {
                    note_write(success);
                }
                result
            }
            loom_word!(@modify $value, fetch_add, fetch_sub, fetch_or, fetch_and);
        }
    };
    (@modify $value:ty, $($method:ident),*) => {$(
        fn $method(&self, value: $value, order: Ordering) -> $value {
            if is_unwinding() {
                return 0;
            }
            let before = self.0.$method(value, order);
            note_write(order);
            before
        }
    )*};
}

loom_word!(LoomU32, AtomicU32, u32);
loom_word!(LoomU64, AtomicU64, u64);

/// A latch-guarded cell of [`Loom`]: unordered accesses fail the test.
#[derive(Debug)]
pub struct LoomData<T>(loom::cell::UnsafeCell<T>);

forward_atomic_pointer!(LoomPtr, AtomicPtr::<T>);

// SAFETY: the pointer of loom's cell, which is the same as long as the cell stays where it is.
unsafe impl<T> DataCell<T> for LoomData<T> {
    fn new(value: T) -> Self {
        Self(loom::cell::UnsafeCell::new(value))
    }
    #[track_caller]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        self.0.with(read)
    }
    #[track_caller]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        self.0.with_mut(write)
    }
}

/// The globals of an execution. The plain atomics are no branches of the search: they change only while their
/// thread runs, and loom runs one thread at a time.
struct World {
    workers: Workers<Loom>,
    workers_next: PlainU32,
    sleepers: Mutex<Vec<Sleeper>>,
    clock_ns: PlainU64,
}

loom::lazy_static! {
    static ref WORLD: World = World {
        workers: Workers::new(WORKERS_MAX as usize),
        workers_next: PlainU32::new(0),
        sleepers: Mutex::new(Vec::new()),
        clock_ns: PlainU64::new(0),
    };
}

loom::thread_local! {
    static CURRENT: WorkerId = claim_slot();
}

fn claim_slot() -> WorkerId {
    let number = WORLD.workers_next.fetch_add(1, Ordering::Relaxed);
    assert!(number < WORKERS_MAX, "more threads than loom's limit");
    WorkerId(number)
}

futex_table!(loom, WORLD.sleepers);

impl Loom {
    /// Ends the wait of the thread that has slept longest, though no thread has woken it, as a signal does. `false` if none
    /// sleeps. For a thread of a test: loom tries it at every instant.
    pub fn interrupt() -> bool {
        let mut sleepers = WORLD.sleepers.lock().unwrap();
        let Some(sleeper) = (!sleepers.is_empty()).then(|| sleepers.remove(0)) else {
            return false;
        };
        sleeper.woken.store(true, Ordering::Relaxed);
        sleeper.thread.unpark();
        true
    }

    /// Ends the next `count` futex waits of the calling thread at once, though no thread has woken it, as a signal may. Needs
    /// no thread of its own, unlike [`interrupt`](Self::interrupt), so larger cases can have it. A wait that finds another
    /// value than it expects does not count.
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

// SAFETY: loom's atomics; a number for each of its threads, of one table for each execution.
unsafe impl Machine for Loom {
    const EXPLORED: bool = true;

    type U32 = LoomU32;
    type U64 = LoomU64;
    type Ptr<T: 'static> = LoomPtr<T>;
    type Data<T> = LoomData<T>;

    fn fence(order: Ordering) {
        if is_unwinding() {
            return;
        }
        loom::sync::atomic::fence(order);
    }

    fn spin_hint() {
        // A yield, so that loom runs another thread before the next poll: it cannot explore endless polling.
        loom::thread::yield_now();
    }

    fn yield_now() {
        loom::thread::yield_now();
    }

    #[track_caller]
    fn futex_wait(word: &LoomU32, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        if is_unwinding() {
            return FutexOutcome::Woken;
        }
        let address = core::ptr::from_ref(word).addr();
        wait(
            Half::Low,
            address,
            || word.0.load(Ordering::Relaxed),
            expected,
            timeout,
        )
    }

    fn futex_wake(word: &LoomU32, count: u32) -> u32 {
        if is_unwinding() {
            return 0;
        }
        wake(core::ptr::from_ref(word).addr(), count)
    }

    #[track_caller]
    fn futex_wait_half(word: &LoomU64, half: Half, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        if is_unwinding() {
            return FutexOutcome::Woken;
        }
        let address = core::ptr::from_ref(word).addr() + half.offset();
        wait(
            half,
            address,
            || half.of(word.0.load(Ordering::Relaxed)),
            expected,
            timeout,
        )
    }

    fn futex_wake_half(word: &LoomU64, half: Half, count: u32) -> u32 {
        if is_unwinding() {
            return 0;
        }
        wake(core::ptr::from_ref(word).addr() + half.offset(), count)
    }

    fn sleep(_duration: Duration) {
        loom::thread::yield_now();
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

    fn workers() -> &'static Workers<Loom> {
        &WORLD.workers
    }

    fn worker() -> WorkerId {
        CURRENT.with(|worker| *worker)
    }
}
