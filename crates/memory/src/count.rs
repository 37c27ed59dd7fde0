//! Balances of threads, and their sum.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicUsize, Ordering};

use clearway_machine::{Native, Padded};

use crate::Ledger;

/// A thread tells when its balance has moved by this much.
const TOLD_BYTES: i64 = 64 << 10;

/// Parts of the sum, so that threads which tell often do not share a line.
const PARTS: usize = 16;

struct Thread {
    /// Bytes since the thread last told.
    untold: Cell<i64>,
    /// Bytes that it has told.
    told: Cell<i64>,
    /// Bytes that it has been promised and has not taken.
    promised: Cell<u64>,
    /// Its part of the sum, from 1; 0: it has none yet.
    part: Cell<usize>,
}

thread_local! {
    // R2: constant at first, and nothing to drop.
    static THREAD: Thread = const {
        Thread {
            untold: Cell::new(0),
            told: Cell::new(0),
            promised: Cell::new(0),
            part: Cell::new(0),
        }
    };
}

static SUM: [Padded<AtomicI64>; PARTS] = [const { Padded(AtomicI64::new(0)) }; PARTS];
static PARTS_GIVEN: AtomicUsize = AtomicUsize::new(0);

/// The sum from which the engine wants to look again.
static MARK: AtomicI64 = AtomicI64::new(i64::MAX);

/// The engine's flag; null until there is an engine.
static ATTENTION: AtomicPtr<AtomicBool> = AtomicPtr::new(std::ptr::null_mut());

static LEDGER: Ledger<Native> = Ledger::new_const();

/// The calling thread has been given so many bytes.
#[inline(always)]
pub(crate) fn add(bytes: usize) {
    THREAD.with(|thread| {
        let untold = thread.untold.get() + bytes as i64;
        thread.untold.set(untold);
        if untold > TOLD_BYTES {
            tell(thread);
        }
    });
}

/// The calling thread has given back so many bytes.
#[inline(always)]
pub(crate) fn subtract(bytes: usize) {
    THREAD.with(|thread| {
        let untold = thread.untold.get() - bytes as i64;
        thread.untold.set(untold);
        if untold < -TOLD_BYTES {
            tell(thread);
        }
    });
}

#[cold]
#[inline(never)]
fn tell(thread: &Thread) {
    let untold = thread.untold.replace(0);
    thread.told.set(thread.told.get() + untold);
    let mut part = thread.part.get();
    if part == 0 {
        part = 1 + PARTS_GIVEN.fetch_add(1, Ordering::Relaxed) % PARTS;
        thread.part.set(part);
    }
    // Relaxed: a count that stands alone.
    SUM[part - 1].fetch_add(untold, Ordering::Relaxed);
    if untold <= 0 {
        return;
    }
    let promised = thread.promised.get();
    if promised > 0 {
        let kept = promised.min(untold as u64);
        thread.promised.set(promised - kept);
        LEDGER.kept(kept);
    }
    if sum() > MARK.load(Ordering::Relaxed) {
        raise_attention();
    }
}

/// Bytes that all threads have, up to what they have not told.
pub(crate) fn sum() -> i64 {
    SUM.iter().map(|part| part.load(Ordering::Relaxed)).sum()
}

/// Bytes that the calling thread has.
#[inline]
pub(crate) fn of_thread() -> i64 {
    THREAD.with(|thread| thread.told.get() + thread.untold.get())
}

/// Tells what the calling thread has not told yet: it is about to end.
pub(crate) fn settle() {
    THREAD.with(tell);
}

/// Has the engine look when the sum is beyond `sum`.
pub(crate) fn set_mark(sum: i64) {
    MARK.store(sum, Ordering::Relaxed);
}

/// The flag to raise from now on.
pub(crate) fn set_attention(flag: &'static AtomicBool) {
    ATTENTION.store(std::ptr::from_ref(flag).cast_mut(), Ordering::Release);
}

pub(crate) fn raise_attention() {
    let flag = ATTENTION.load(Ordering::Acquire);
    // SAFETY: null, or from a `&'static AtomicBool`.
    if let Some(flag) = unsafe { flag.as_ref() } {
        flag.store(true, Ordering::Relaxed);
    }
}

/// Promises bytes to the calling thread, in the place of what it was promised before and has not taken.
pub(crate) fn promise(bytes: u64, has: impl FnOnce(u64) -> bool) -> bool {
    drop_promise();
    let promised = LEDGER.ask(bytes, has);
    if promised {
        THREAD.with(|thread| thread.promised.set(bytes));
    }
    promised
}

/// The calling thread takes no more of what it was promised.
pub(crate) fn drop_promise() {
    THREAD.with(|thread| match thread.promised.replace(0) {
        0 => {}
        left => LEDGER.kept(left),
    });
}

/// Bytes that all threads together have been promised and have not taken.
pub(crate) fn promised() -> u64 {
    LEDGER.outstanding()
}
