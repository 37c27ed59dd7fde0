//! LwLock under shuttle: more workers and more steps than loom can exhaust, in random schedules.
//!
//! Overlap inside the latch is seen by the data cell, a sleeper left behind as a deadlock. A failing schedule
//! is printed and can be replayed with `shuttle::replay`.
//!
//! `cargo test -p clearway-latch --features shuttle --test shuttle_lwlock --release`

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use clearway_latch::{LatchClass, LwLock, LwLockOptions};
use clearway_machine::{AtomicWord, DataCell, Machine, Shuttle, WaitEvent};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

static CLASS: LatchClass = LatchClass::new("shuttle", WaitEvent::UserLatch, 0);

const WORKERS: usize = 6;
const STEPS: usize = 4;
const SCHEDULES: usize = 1_000;

struct Shared {
    latch: LwLock<Shuttle>,
    data: <Shuttle as Machine>::Data<u64>,
    variable: <Shuttle as Machine>::U64,
}

// SAFETY: the data is reached under the latch only, which is what the test checks.
unsafe impl Sync for Shared {}

impl Shared {
    fn add_one(&self) {
        // SAFETY: the caller holds the latch exclusively; the cell fails the test on overlap.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn read(&self) -> u64 {
        // SAFETY: the caller holds the latch; the cell fails the test on overlap.
        self.data.with(|data| unsafe { *data })
    }
}

/// One step of a worker that may do anything; how many times it has added one.
fn random_step(shared: &Shared) -> u64 {
    match thread_rng().gen_range(0..8) {
        0 | 1 => {
            let _guard = shared.latch.exclusive();
            shared.add_one();
            1
        }
        2 | 3 => {
            let _guard = shared.latch.shared();
            shared.read();
            0
        }
        4 => match shared.latch.acquire_or_wait() {
            Some(_guard) => {
                shared.add_one();
                1
            }
            None => 0,
        },
        5 => {
            let old = shared.variable.load(Acquire);
            if let Err(new) = shared.latch.wait_for_var(&shared.variable, old) {
                assert_ne!(old, new);
            }
            0
        }
        6 => {
            let guard = shared.latch.exclusive();
            shared.add_one();
            guard.update_var(&shared.variable, shared.variable.load(Relaxed) + 1);
            shared.add_one();
            guard.release_clear_var(&shared.variable, 0);
            2
        }
        _ => match shared.latch.try_exclusive() {
            Some(_guard) => {
                shared.add_one();
                1
            }
            None => 0,
        },
    }
}

fn random_modes(options: LwLockOptions) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new(Shared {
            latch: LwLock::new(&CLASS, options),
            data: DataCell::new(0),
            variable: AtomicWord::new(0),
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || (0..STEPS).map(|_| random_step(&shared)).sum::<u64>())
            })
            .collect();
        let added: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        let _guard = shared.latch.shared();
        assert_eq!(shared.read(), added);
    }
}

#[test]
fn shuttle_random_modes() {
    for options in LwLockOptions::all() {
        shuttle::check_random(random_modes(options), SCHEDULES);
    }
}

#[test]
fn shuttle_few_preemptions() {
    for options in LwLockOptions::all() {
        shuttle::check_pct(random_modes(options), SCHEDULES, 3);
    }
}
