//! Attempts for a time, and the condition variable, under shuttle: more workers and steps than loom can exhaust, in random
//! schedules.
//!
//! Overlap inside a latch is seen by the data cell, a sleeper left behind as a deadlock. The mutations that the cases are
//! for are in `crates/latch/mutations/timed.toml`.
//!
//! `cargo test -p clearway-latch --features shuttle --test shuttle_timed --release`

use std::sync::Arc;
use std::time::Duration;

use clearway_latch::{
    CasLoop, FetchAddBts, HolderProtocol, OneWord, SingleWake, SrwCondvar, SrwMutex, SsuxLock, SsuxProtocol,
    Unclassed,
};
use clearway_machine::{DataCell, Machine, Shuttle};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const WORKERS: u64 = 6;
const STEPS: usize = 4;
const SCHEDULES: usize = 1_000;

struct Shared<L> {
    latch: L,
    data: <Shuttle as Machine>::Data<u64>,
}

// SAFETY: the data is reached under the latch only, which is what the test checks.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl<L> Shared<L> {
    fn add_one(&self) -> u64 {
        // SAFETY: the caller holds the latch exclusively; the cell fails the test on overlap.
        self.data.with_mut(|data| unsafe { *data += 1 });
        1
    }

    fn take_one(&self) {
        // SAFETY: as above.
        self.data.with_mut(|data| unsafe { *data -= 1 });
    }

    fn read(&self) -> u64 {
        // SAFETY: the caller holds the latch; the cell fails the test on overlap.
        self.data.with(|data| unsafe { *data })
    }
}

/// Up to nine looks at shuttle's clock: none, one or two sleeps.
fn briefly() -> Duration {
    Duration::from_micros(thread_rng().gen_range(0..10))
}

/// Runs `step` by many workers at once, compares what they have added with what is there, and lets `idle` look at the end.
fn random<L: Sync + Send + 'static>(
    latch: fn() -> L,
    step: fn(&Shared<L>) -> u64,
    idle: fn(&L),
) -> impl Fn() + Send + Sync {
    move || {
        let shared = Arc::new(Shared {
            latch: latch(),
            data: DataCell::new(0),
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || (0..STEPS).map(|_| step(&shared)).sum::<u64>())
            })
            .collect();
        let added: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert_eq!(shared.read(), added);
        idle(&shared.latch);
    }
}

fn mutex<P: HolderProtocol>() {
    let step = |shared: &Shared<SrwMutex<Unclassed, Shuttle, P>>| match thread_rng().gen_range(0..2) {
        0 => {
            let _guard = shared.latch.exclusive();
            shared.add_one()
        }
        _ => {
            let guard = shared.latch.try_exclusive_for(briefly());
            guard.map_or(0, |_guard| shared.add_one())
        }
    };
    let idle = |latch: &SrwMutex<Unclassed, Shuttle, P>| {
        let word = format!("{latch:?}");
        assert!(word.contains("0x00000000"), "a registration is left: {word}");
    };
    shuttle::check_random(random(SrwMutex::idle, step, idle), SCHEDULES);
}

fn ssux<P: SsuxProtocol>() {
    let step = |shared: &Shared<SsuxLock<Unclassed, Shuttle, P>>| {
        let latch = &shared.latch;
        match thread_rng().gen_range(0..7) {
            0 => {
                let _guard = latch.exclusive();
                return shared.add_one();
            }
            1 => {
                let _guard = latch.shared();
                shared.read();
            }
            2 | 3 => {
                if let Some(_guard) = latch.try_exclusive_for(briefly()) {
                    return shared.add_one();
                }
            }
            4 => {
                if let Some(guard) = latch.try_update_for(briefly()) {
                    match guard.try_exclusive_for(briefly()) {
                        Ok(_guard) => return shared.add_one(),
                        Err(guard) => {
                            shared.read();
                            drop(guard);
                        }
                    }
                }
            }
            _ => {
                if let Some(_guard) = latch.try_shared_for(briefly()) {
                    shared.read();
                }
            }
        }
        0
    };
    let idle = |latch: &SsuxLock<Unclassed, Shuttle, P>| {
        let state = format!("{latch:?}");
        assert!(state.contains("0x00000000"), "a registration is left: {state}");
        drop(latch.shared());
        drop(latch.exclusive());
    };
    shuttle::check_random(random(SsuxLock::idle, step, idle), SCHEDULES);
}

#[test]
fn shuttle_mutex_single_wake() {
    mutex::<SingleWake>();
}

#[test]
fn shuttle_mutex_fetch_add() {
    mutex::<FetchAddBts>();
}

#[test]
fn shuttle_mutex_cas_loop() {
    mutex::<CasLoop>();
}

#[test]
fn shuttle_ssux_one_word() {
    ssux::<OneWord>();
}

#[test]
fn shuttle_ssux_two_words() {
    ssux::<SingleWake>();
}

type Queue = Shared<(SrwMutex<Unclassed, Shuttle>, SrwCondvar<Unclassed, Shuttle>)>;

fn put(shared: &Queue) {
    for _ in 0..STEPS {
        let guard = shared.latch.0.exclusive();
        shared.add_one();
        drop(guard);
        shared.latch.1.notify_one();
    }
}

fn take(shared: &Queue) {
    for step in 0..STEPS {
        let mut guard = shared.latch.0.exclusive();
        while shared.read() == 0 {
            if step % 2 == 0 {
                shared.latch.1.wait(&mut guard);
            } else {
                shared.latch.1.wait_for(&mut guard, briefly());
            }
        }
        shared.take_one();
    }
}

/// As many items are put as are taken, with a notification for each.
#[test]
fn shuttle_condvar_loses_no_notification() {
    shuttle::check_random(
        || {
            let shared: Arc<Queue> = Arc::new(Shared {
                latch: (SrwMutex::idle(), SrwCondvar::idle()),
                data: DataCell::new(0),
            });
            let workers: Vec<_> = (0..WORKERS)
                .map(|worker| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || {
                        if worker % 2 == 0 {
                            put(&shared)
                        } else {
                            take(&shared)
                        }
                    })
                })
                .collect();
            for worker in workers {
                worker.join().unwrap();
            }
            assert_eq!(shared.read(), 0);
        },
        SCHEDULES,
    );
}
