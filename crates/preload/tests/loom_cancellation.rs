//! A thread that waits for a condition and another one that cancels it, under loom: every schedule within a bound of
//! preemptions. A waiter that is left asleep is a deadlock.
//!
//! The registry is the library's own file. What the library does by unwinding is a return here.
//!
//! `cargo test -p clearway-preload --features loom --release --test loom_cancellation`

#[path = "../src/cancellation/registry.rs"]
#[allow(dead_code)]
mod registry;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{ClassOf, FetchAddBts, LatchClass, SpinPolicy, SrwCondvar, SrwMutex};
use clearway_machine::{AtomicWord, Loom, Machine, WaitEvent};
use loom::thread;
use registry::{Entry, Registry};

/// Sleeps at once.
#[derive(Debug)]
struct Sleeps;

impl ClassOf for Sleeps {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass =
            LatchClass::new("sleeps", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
        &CLASS
    }
}

type Word = <Loom as Machine>::U32;

struct Program {
    registry: Registry<Sleeps, Loom>,
    mutex: SrwMutex<Sleeps, Loom, FetchAddBts>,
    variable: SrwCondvar<Sleeps, Loom, FetchAddBts>,
    /// The cancellation that libc notes, of thread 64.
    pending: Word,
    /// 1 when there is no more to wait for.
    ready: Word,
}

impl Program {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            registry: Registry::new(),
            mutex: SrwMutex::idle(),
            variable: SrwCondvar::idle(),
            pending: Word::new(0),
            ready: Word::new(0),
        })
    }

    fn is_cancelled(&self, thread: usize) -> bool {
        // Relaxed: what libc's own look orders is not counted on.
        thread == 64 && self.pending.load(Relaxed) != 0
    }

    /// Waits until there is no more to wait for, or the thread is cancelled, as `condition::wait` does.
    fn wait(&self, thread: usize) {
        std::mem::forget(self.mutex.exclusive());
        while self.ready.load(Relaxed) == 0 {
            let before = self.registry.cancels();
            if self.is_cancelled(thread) {
                break;
            }
            let entry = Entry::new(thread, &self.variable);
            let is_listed = Cell::new(false);
            let mut was_cancelled = false;
            self.variable.wait_without(
                None,
                || {
                    // SAFETY: counted; the entry stays where it is.
                    is_listed.set(unsafe { self.registry.join(&entry, before) });
                    if is_listed.get() {
                        // SAFETY: held.
                        unsafe { self.mutex.release_to_be_freed() };
                    }
                    is_listed.get()
                },
                // SAFETY: counted still.
                || was_cancelled = is_listed.get() && unsafe { self.registry.leave(&entry) },
            );
            if is_listed.get() {
                std::mem::forget(self.mutex.exclusive());
            }
            if was_cancelled {
                assert!(self.is_cancelled(thread), "a thread that was not cancelled");
                break;
            }
        }
        // SAFETY: held.
        unsafe { self.mutex.release_to_be_freed() };
    }

    fn cancel(&self) {
        self.pending.store(1, Release);
        self.registry.cancel(64);
    }

    fn is_ready(&self) {
        {
            let _held = self.mutex.exclusive();
            self.ready.store(1, Relaxed);
        }
        self.variable.notify_one();
    }
}

fn explore(preemptions: usize, act: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(act);
}

/// Seen to catch: no notification of the thread that is cancelled; a thread that joins without a look at the cancellations; a
/// cancellation that is not counted, or whose count does not show that it is pending (deadlock).
#[test]
fn loom_a_cancelled_waiter_gives_up() {
    explore(3, || {
        Loom::workers();
        let program = Program::new();
        let waiter = {
            let program = Arc::clone(&program);
            thread::spawn(move || program.wait(64))
        };
        program.cancel();
        waiter.join().unwrap();
        assert_eq!(program.variable.waiters(), 0);
        assert!(program.pending.load(Acquire) == 1 && !program.mutex.is_held());
    });
}

/// Another thread waits for the same variable: it is not cancelled, and not lost.
#[test]
fn loom_another_waiter_waits_on() {
    explore(2, || {
        Loom::workers();
        let program = Program::new();
        let threads: Vec<_> = [64, 128]
            .into_iter()
            .map(|thread| {
                let program = Arc::clone(&program);
                thread::spawn(move || program.wait(thread))
            })
            .collect();
        program.cancel();
        program.is_ready();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(program.variable.waiters(), 0);
    });
}
