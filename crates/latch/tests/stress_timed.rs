//! Attempts for a time, and the condition variable, on the real machine: more threads than CPUs, times from none to longer
//! than a hold, so that every attempt is given up now and then at any of its steps.

#[path = "support/random.rs"]
mod random;
#[path = "support/sleeps.rs"]
mod sleeps;

use std::cell::UnsafeCell;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_latch::{
    CasLoop, FetchAddBts, HolderProtocol, OneWord, SingleWake, SrwCondvar, SrwMutex, SsuxLock, SsuxProtocol,
};
use clearway_machine::{Native, Watchdog};
use random::Random;
use sleeps::Sleeps;

const THREADS: u64 = 12;
const STEPS: u64 = 1_500;

/// A latch, and a count that only the holder of its exclusive mode changes, in two steps.
struct Counted<L> {
    latch: L,
    count: UnsafeCell<u64>,
    /// Attempts that were given up.
    given_up: AtomicU64,
}

// SAFETY: `count` is reached under the latch only, which is what the test checks.
unsafe impl<L: Sync> Sync for Counted<L> {}

impl<L> Counted<L> {
    /// The caller holds the latch exclusively.
    fn add_one(&self, random: &mut Random) -> u64 {
        let count = self.count.get();
        // SAFETY: exclusive; volatile, so that a second holder in between is seen.
        unsafe {
            let before = count.read_volatile();
            if random.below(8) == 0 {
                std::thread::yield_now();
            }
            count.write_volatile(before + 1);
        }
        1
    }

    /// The caller holds the latch.
    fn read(&self) -> u64 {
        // SAFETY: held.
        unsafe { self.count.get().read_volatile() }
    }

    fn give_up(&self) -> u64 {
        self.given_up.fetch_add(1, Relaxed);
        0
    }
}

fn briefly(random: &mut Random) -> Duration {
    Duration::from_micros(random.below(60))
}

/// Runs `step` by all threads, and compares what they have added with what is there.
fn stress<L: Sync>(latch: L, step: impl Fn(&Counted<L>, &mut Random) -> u64 + Sync) -> Counted<L> {
    let _watched = Watchdog::over_test();
    let counted = Counted {
        latch,
        count: UnsafeCell::new(0),
        given_up: AtomicU64::new(0),
    };
    let added: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (counted, step) = (&counted, &step);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    (0..STEPS).map(|_| step(counted, &mut random)).sum::<u64>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(counted.read(), added);
    assert!(counted.given_up.load(Relaxed) > 0, "no attempt was given up");
    counted
}

fn mutex<P: HolderProtocol>() {
    let counted = stress(SrwMutex::<Sleeps, Native, P>::new(), |counted, random| {
        if random.below(2) == 0 {
            let _guard = counted.latch.exclusive();
            return counted.add_one(random);
        }
        match counted.latch.try_exclusive_for(briefly(random)) {
            Some(_guard) => counted.add_one(random),
            None => counted.give_up(),
        }
    });
    let word = format!("{:?}", counted.latch);
    assert!(word.contains("0x00000000"), "a registration is left: {word}");
}

fn ssux<P: SsuxProtocol>() {
    let counted = stress(SsuxLock::<Sleeps, Native, P>::idle(), |counted, random| {
        let latch = &counted.latch;
        let time = briefly(random);
        match random.below(8) {
            0 => {
                let _guard = latch.exclusive();
                counted.add_one(random)
            }
            1 => {
                let _guard = latch.shared();
                counted.read();
                0
            }
            2 | 3 => match latch.try_exclusive_for(time) {
                Some(_guard) => counted.add_one(random),
                None => counted.give_up(),
            },
            4 => match latch.try_update_for(time) {
                Some(guard) => match guard.try_exclusive_for(time) {
                    Ok(_guard) => counted.add_one(random),
                    Err(_guard) => counted.give_up(),
                },
                None => counted.give_up(),
            },
            5 => {
                let Ok(_guard) = latch.update().try_exclusive_for(time) else {
                    return counted.give_up();
                };
                counted.add_one(random)
            }
            _ => match latch.try_shared_for(time) {
                Some(_guard) => {
                    counted.read();
                    0
                }
                None => counted.give_up(),
            },
        }
    });
    let state = format!("{:?}", counted.latch);
    assert!(state.contains("0x00000000"), "a registration is left: {state}");
}

#[test]
fn mutex_single_wake() {
    mutex::<SingleWake>();
}

#[test]
fn mutex_fetch_add() {
    mutex::<FetchAddBts>();
}

#[test]
fn mutex_cas_loop() {
    mutex::<CasLoop>();
}

#[test]
fn ssux_one_word() {
    ssux::<OneWord>();
}

#[test]
fn ssux_two_words() {
    ssux::<SingleWake>();
}

type Condvar = clearway_latch::lock_api::Condvar<SrwCondvar<Sleeps>>;

/// Producers and consumers of as many items, some of which wait for a time and come again.
#[test]
fn condvar_loses_no_notification() {
    const ITEMS: u64 = 20_000;
    const WORKERS: u64 = 4;
    let _watched = Watchdog::over_test();
    let queued = clearway_latch::lock_api::Mutex::<SrwMutex<Sleeps>, u64>::new(0);
    let (more, room) = (Condvar::new(), Condvar::new());
    std::thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (more, room, queued) = (&more, &room, &queued);
            scope.spawn(move || {
                for _ in 0..ITEMS / WORKERS {
                    let mut queued = queued.lock();
                    room.wait_while(&mut queued, |queued| *queued == 3);
                    *queued += 1;
                    drop(queued);
                    more.notify_one();
                }
            });
            scope.spawn(move || {
                for item in 0..ITEMS / WORKERS {
                    let mut queued = queued.lock();
                    while *queued == 0 {
                        if (item + worker) % 2 == 0 {
                            more.wait_for(&mut queued, Duration::from_micros(item % 50));
                        } else {
                            more.wait(&mut queued);
                        }
                    }
                    *queued -= 1;
                    drop(queued);
                    room.notify_one();
                }
            });
        }
    });
    assert_eq!(*queued.lock(), 0);
}
