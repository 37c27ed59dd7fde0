//! A release after which the next holder may free the latch does not access its memory again.
//!
//! The platform's `wake` plays the next holder: it puts other bytes into the latch's memory, as an allocator would that has
//! given it away, and finds them again when the release is over.
//!
//! Mutation: such a release looks for a sleeper as a guard's does, and takes `WAKING` back when there is none.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use clearway_latch::lock_api::{RawMutex, RawRwLock};
use clearway_latch::{SrwMutex, SsuxLock, Unclassed};
use clearway_machine::{Bare, FutexOutcome, FutexWord, Platform};

/// Bytes of the next owner of the memory.
const OTHER: u64 = u64::MAX;

/// The memory of a latch, and the state in which a test has it.
static MEMORY: AtomicU64 = AtomicU64::new(0);
static SLEEPING: AtomicU64 = AtomicU64::new(0);

fn wait(word: FutexWord<'_>, expected: u32, _timeout: Option<Duration>) -> FutexOutcome {
    if word.load() != expected {
        return FutexOutcome::Changed;
    }
    SLEEPING.fetch_add(1, Relaxed);
    // The memory of its latch is gone: a sleeper stays asleep.
    loop {
        std::thread::park();
    }
}

fn wake(_word: FutexWord<'_>, _count: u32) -> u32 {
    MEMORY.store(OTHER, Relaxed);
    0
}

static PLATFORM: Platform = Platform {
    wait,
    wake,
    ..Platform::polling()
};

/// Acquires, lets another thread go to sleep, releases.
fn released(acquire: fn(), release: fn()) {
    MEMORY.store(0, Relaxed);
    let sleeping = SLEEPING.load(Relaxed);
    acquire();
    std::thread::spawn(acquire);
    while SLEEPING.load(Relaxed) == sleeping {
        std::thread::yield_now();
    }
    release();
    assert_eq!(MEMORY.load(Relaxed), OTHER, "the release came back to the word");
}

fn mutex() -> &'static SrwMutex<Unclassed, Bare> {
    // SAFETY: of the size of the latch or larger, aligned, and idle when zero.
    unsafe { &*MEMORY.as_ptr().cast() }
}

fn ssux() -> &'static SsuxLock<Unclassed, Bare> {
    // SAFETY: as above.
    unsafe { &*MEMORY.as_ptr().cast() }
}

// One test, since the latches share their memory.
#[test]
fn a_release_to_be_freed_is_the_last_access() {
    // SAFETY: there are no workers.
    unsafe { Bare::install(&PLATFORM) };
    released(
        || _ = mutex().lock(),
        // SAFETY: held by the thread.
        || unsafe { mutex().release_to_be_freed() },
    );
    released(
        || _ = ssux().lock_exclusive(),
        // SAFETY: held by the thread.
        || unsafe { ssux().release_exclusive_to_be_freed() },
    );
    released(
        || {
            // The first is a reader, the other one waits for it to leave.
            if !ssux().is_locked() {
                _ = ssux().lock_shared();
            } else {
                _ = ssux().lock_exclusive();
            }
        },
        // SAFETY: held by the thread.
        || unsafe { ssux().release_shared() },
    );
}
