//! LwLock on the real machine: many more threads than CPUs, random modes, and a counter that must never be
//! seen torn.
//!
//! Each thread draws its steps from its own seed, which the failing assertion prints.

#[path = "support/random.rs"]
mod random;

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clearway_latch::{
    LatchClass, LatchMode, Latched, LwLock, LwLockFairnessVariant, LwLockOptions, statistics,
};
use clearway_machine::{AtomicWord, Machine, Native, WaitEvent, Watchdog};
use random::Random;

const THREADS: u64 = 24;
const STEPS: u64 = 60_000;

/// Two words that are equal whenever no worker is inside exclusively.
struct Torn {
    latch: LwLock,
    words: UnsafeCell<[u64; 2]>,
    variable: <Native as Machine>::U64,
}

// SAFETY: `words` is reached under the latch only, which is what the test checks.
unsafe impl Sync for Torn {}

impl Torn {
    fn new(class: &'static LatchClass, options: LwLockOptions) -> Self {
        Self {
            latch: LwLock::new(class, options),
            words: UnsafeCell::new([0; 2]),
            variable: AtomicWord::new(0),
        }
    }

    /// Adds one to both words, with time in between. The caller holds the latch exclusively.
    fn add_one(&self, pause: u64) {
        let words = self.words.get();
        // SAFETY: the latch is held exclusively; volatile, so that both writes happen where they are written.
        unsafe {
            let value = (&raw const (*words)[0]).read_volatile();
            (&raw mut (*words)[0]).write_volatile(value + 1);
            for _ in 0..pause {
                std::hint::spin_loop();
            }
            (&raw mut (*words)[1]).write_volatile(value + 1);
        }
    }

    /// Reads both words. The caller holds the latch.
    fn check(&self, seed: u64) -> u64 {
        let words = self.words.get();
        // SAFETY: the latch is held.
        let (first, second) = unsafe {
            (
                (&raw const (*words)[0]).read_volatile(),
                (&raw const (*words)[1]).read_volatile(),
            )
        };
        assert_eq!(first, second, "torn, seed {seed}");
        first
    }
}

/// Does one random thing; how often it has added one.
fn step(torn: &Torn, random: &mut Random, seed: u64) -> u64 {
    let pause = random.below(30);
    match random.below(10) {
        0..=2 => {
            let _guard = torn.latch.exclusive();
            torn.check(seed);
            torn.add_one(pause);
            1
        }
        3..=5 => {
            let _guard = torn.latch.shared();
            torn.check(seed);
            0
        }
        6 => torn.latch.acquire_or_wait().map_or(0, |_guard| {
            torn.add_one(pause);
            1
        }),
        7 => {
            let old = torn.variable.load(Ordering::Acquire);
            if let Err(new) = torn.latch.wait_for_var(&torn.variable, old) {
                assert_ne!(old, new, "seed {seed}");
            }
            0
        }
        8 => {
            let guard = torn.latch.exclusive();
            torn.add_one(pause);
            guard.update_var(&torn.variable, torn.variable.load(Ordering::Relaxed) + 1);
            torn.add_one(pause);
            guard.release_clear_var(&torn.variable, 0);
            2
        }
        _ => {
            if let Some(_guard) = torn.latch.try_shared() {
                torn.check(seed);
            }
            torn.latch.try_exclusive().map_or(0, |_guard| {
                torn.add_one(pause);
                1
            })
        }
    }
}

#[test]
fn stress_random_modes_never_tear() {
    static CLASS: LatchClass = LatchClass::new("stress", WaitEvent::UserLatch, 0);
    for options in LwLockOptions::all() {
        let torn = Torn::new(&CLASS, options);
        let added: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|seed| {
                    let torn = &torn;
                    scope.spawn(move || {
                        let mut random = Random(seed);
                        (0..STEPS).map(|_| step(torn, &mut random, seed)).sum::<u64>()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        let _guard = torn.latch.exclusive();
        assert_eq!(torn.check(0), added, "{options:?}");
    }
}

#[test]
fn stress_sleepers_are_all_woken() {
    static CLASS: LatchClass = LatchClass::new("sleepers", WaitEvent::UserLatch, 0);
    for options in LwLockOptions::all() {
        let torn = Torn::new(&CLASS, options);
        for _ in 0..20 {
            let guard = torn.latch.exclusive();
            std::thread::scope(|scope| {
                for number in 0..12 {
                    let torn = &torn;
                    scope.spawn(move || match number % 3 {
                        0 => drop(torn.latch.exclusive()),
                        1 => drop(torn.latch.shared()),
                        _ => drop(torn.latch.acquire_or_wait()),
                    });
                }
                // Long enough that most of them sleep on the list when the latch is released.
                std::thread::sleep(Duration::from_millis(5));
                drop(guard);
            });
            assert!(!torn.latch.is_held());
        }
    }
    let all = statistics();
    let class = all.iter().find(|class| class.name == "sleepers").unwrap();
    assert!(class.exclusive.sleeps > 0 && class.shared.sleeps > 0 && class.until_free.sleeps > 0);
    for mode in [&class.exclusive, &class.shared, &class.until_free] {
        assert_eq!(
            mode.wait_ns.iter().sum::<u64>(),
            mode.conflicts,
            "each conflict is one wait"
        );
    }
    assert!(
        class.exclusive.wait_ns[20..].iter().sum::<u64>() > 0,
        "waits of milliseconds are seen as such"
    );
}

/// A waiter for a variable comes back while the latch is still held, and does not wait for readers.
#[test]
fn stress_variable_waiters_come_back() {
    static CLASS: LatchClass = LatchClass::new("variable", WaitEvent::UserLatch, 0);
    for options in LwLockOptions::all() {
        let torn = Torn::new(&CLASS, options);
        let guard = torn.latch.exclusive();
        std::thread::scope(|scope| {
            let waiters: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let mut seen = 0;
                        while seen < 1_000 {
                            match torn.latch.wait_for_var(&torn.variable, seen) {
                                Ok(()) => panic!("no worker released the latch"),
                                Err(value) => {
                                    assert!(value > seen, "the variable went backwards");
                                    seen = value;
                                }
                            }
                        }
                    })
                })
                .collect();
            for value in 1..=1_000 {
                guard.update_var(&torn.variable, value);
            }
            for waiter in waiters {
                waiter.join().unwrap();
            }
        });
        drop(guard);
        let _reader = torn.latch.shared();
        assert_eq!(
            torn.latch.wait_for_var(&torn.variable, 1_000),
            Ok(()),
            "shared holders are not waited for"
        );
    }
}

/// Readers that come without pause: the policy is barging, which promises an exclusive no bound, but on a
/// machine that schedules every thread one gets in.
#[test]
fn stress_exclusive_gets_in_between_readers() {
    let _watchdog = Watchdog::over_test();
    static CLASS: LatchClass = LatchClass::new("readers", WaitEvent::UserLatch, 0);
    for options in LwLockOptions::all() {
        let torn = Torn::new(&CLASS, options);
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..4 {
                let (torn, stop) = (&torn, &stop);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let _guard = torn.latch.shared();
                        torn.check(seed);
                    }
                });
            }
            for _ in 0..50 {
                let _guard = torn.latch.exclusive();
                torn.add_one(0);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn panic_releases_the_guard() {
    static CLASS: LatchClass = LatchClass::new("panic", WaitEvent::UserLatch, 0);
    for options in LwLockOptions::all() {
        let latched: Latched<u64> = Latched::new(&CLASS, options, 1);
        std::thread::scope(|scope| {
            // Another thread waits for the latch while its holder panics.
            let holder = latched.exclusive();
            let waiter = scope.spawn(|| *latched.shared());
            std::thread::sleep(Duration::from_millis(5));
            let outcome = catch_unwind(AssertUnwindSafe(move || {
                let mut holder = holder;
                *holder = 2;
                panic!("a worker fails inside");
            }));
            assert!(outcome.is_err());
            assert_eq!(waiter.join().unwrap(), 2);
        });
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _shared = latched.shared();
            panic!("a reader fails inside");
        }));
        assert!(outcome.is_err());
        assert!(!latched.latch().is_held());
        *latched.exclusive() += 1;
        assert_eq!(*latched.shared(), 3);
    }
}

#[test]
fn conditional_has_no_side_effect() {
    static CLASS: LatchClass = LatchClass::new("conditional", WaitEvent::UserLatch, 0);
    for options in LwLockOptions::all() {
        let latch: LwLock = LwLock::new(&CLASS, options);
        let exclusive = latch.try_exclusive().unwrap();
        assert!(latch.try_exclusive().is_none());
        assert!(latch.try_shared().is_none());
        assert!(latch.is_held_exclusive());
        drop(exclusive);
        let first = latch.try_shared().unwrap();
        let second = latch.try_shared().unwrap();
        assert!(latch.try_exclusive().is_none());
        assert!(latch.is_held() && !latch.is_held_exclusive());
        drop(first);
        assert!(latch.is_held());
        drop(second);
        assert!(!latch.is_held());
        drop(latch.acquire_or_wait().unwrap());
        assert!(latch.try_exclusive().is_some());
    }
}

/// Under the fairness policy: a limited number of readers pass a waiting exclusive, and then none until it
/// has had the latch.
///
/// Seen to catch: `wake` clearing GRANTS although it picked an exclusive; grants that are not counted.
#[test]
fn readers_pass_a_waiting_exclusive_so_often_and_no_more() {
    static CLASS: LatchClass = LatchClass::new("fair", WaitEvent::XidGen, 0);
    /// Of `after-n-shared`, outside of a checker.
    const LIMIT: usize = 64;
    for options in LwLockOptions::all() {
        let latch: LwLock = LwLock::new(
            &CLASS,
            LwLockOptions {
                fairness: LwLockFairnessVariant::AfterShared,
                ..options
            },
        );
        let been_in = AtomicBool::new(false);
        assert!(latch.try_acquire(LatchMode::Shared));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = latch.exclusive();
                been_in.store(true, Ordering::Relaxed);
            });
            // No other test in this program waits for this event.
            while !Native::workers()
                .claimed()
                .any(|(_, slot)| slot.wait_event() == WaitEvent::XidGen)
            {
                std::thread::yield_now();
            }
            let newcomers = (0..100)
                .take_while(|_| latch.try_acquire(LatchMode::Shared))
                .count();
            for _ in 0..=newcomers {
                // SAFETY: acquired above.
                unsafe { latch.release(LatchMode::Shared) };
            }
            let passed_later = (0..1_000).any(|_| {
                let acquired = latch.try_acquire(LatchMode::Shared);
                let passed = acquired && !been_in.load(Ordering::Relaxed);
                if acquired {
                    // SAFETY: acquired above.
                    unsafe { latch.release(LatchMode::Shared) };
                }
                passed
            });
            // Asked when the latch is free again: a panic before would leave the exclusive waiting.
            assert_eq!(newcomers, LIMIT, "{options:?}");
            assert!(!passed_later, "a reader passed the woken exclusive, {options:?}");
        });
        assert!(!latch.is_held());
    }
}

/// Waits until a worker sleeps on the list of a latch of `class`. No other test in this program may wait for its event.
fn wait_for_a_sleeper(event: WaitEvent) {
    while !Native::workers()
        .claimed()
        .any(|(_, slot)| slot.wait_event() == event)
    {
        std::thread::yield_now();
    }
}

/// Under `writer-claims` no reader passes an exclusive that sleeps. After it was woken, a worker whose turn is over passes it as
/// often as between two looks at the clock, and then not until the exclusive has had the latch. Once it has, readers get in as
/// ever.
///
/// Seen to catch: an exclusive queues without a claim; a turn is never over; the newcomers stay stopped for good.
#[test]
fn no_reader_passes_an_exclusive_that_claims_the_latch() {
    let _watchdog = Watchdog::over_test();
    static CLASS: LatchClass = LatchClass::new("claimed", WaitEvent::CommitLog, 0);
    let claims =
        LwLockOptions::all().filter(|options| options.fairness == LwLockFairnessVariant::WriterClaims);
    // Twice, as a wake-up in every other stretch of time hands the latch over.
    for options in claims.flat_map(|options| [options; 2]) {
        let latch: LwLock = LwLock::new(&CLASS, options);
        let been_in = AtomicBool::new(false);
        let (mut passed_sleeper, mut passed_woken) = (0, 0);
        assert!(latch.try_acquire(LatchMode::Shared));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = latch.exclusive();
                been_in.store(true, Ordering::SeqCst);
            });
            wait_for_a_sleeper(WaitEvent::CommitLog);
            let try_to_pass = || {
                let acquired = latch.try_acquire(LatchMode::Shared);
                let passed = acquired && !been_in.load(Ordering::SeqCst);
                if acquired {
                    // SAFETY: acquired above.
                    unsafe { latch.release(LatchMode::Shared) };
                }
                usize::from(passed)
            };
            for _ in 0..1_000 {
                passed_sleeper += try_to_pass();
            }
            // SAFETY: acquired above.
            unsafe { latch.release(LatchMode::Shared) };
            while !been_in.load(Ordering::SeqCst) {
                passed_woken += try_to_pass();
            }
        });
        assert_eq!(passed_sleeper, 0, "{options:?}");
        // A woken exclusive that finds a reader inside may have to sleep once more.
        assert!(passed_woken <= 3 * LOOK_AFTER, "{passed_woken}, {options:?}");
        assert!(latch.try_acquire(LatchMode::Shared), "{options:?}");
        // SAFETY: acquired above.
        unsafe { latch.release(LatchMode::Shared) };
        assert!(latch.try_exclusive().is_some(), "{options:?}");
    }
}

/// Readers that newcomers under `hand-over` may be before one of them looks at the clock.
const LOOK_AFTER: usize = 64;

/// An exclusive that has slept past the bound: no newcomer of either mode gets in, and the release gives it the latch.
///
/// Seen to catch: a worker is never overdue; a full count that is cleared though one is; a hand-over that takes the latch
/// for no worker.
#[test]
fn an_overdue_exclusive_is_handed_the_latch() {
    let _watchdog = Watchdog::over_test();
    static CLASS: LatchClass = LatchClass::new("overdue", WaitEvent::BufferMapping, 0);
    for options in LwLockOptions::all().filter(|options| options.fairness == LwLockFairnessVariant::HandOver)
    {
        let latch: LwLock = LwLock::new(&CLASS, options);
        let been_in = AtomicBool::new(false);
        assert!(latch.try_acquire(LatchMode::Shared));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _guard = latch.exclusive();
                been_in.store(true, Ordering::SeqCst);
            });
            wait_for_a_sleeper(WaitEvent::BufferMapping);
            std::thread::sleep(Duration::from_millis(3));
            let newcomers = (0..1_000)
                .take_while(|_| latch.try_acquire(LatchMode::Shared))
                .count();
            for _ in 0..newcomers {
                // SAFETY: acquired above.
                unsafe { latch.release(LatchMode::Shared) };
            }
            let refused = !latch.try_acquire(LatchMode::Shared);
            // SAFETY: acquired above.
            unsafe { latch.release(LatchMode::Shared) };
            let handed_over = latch.is_held_exclusive() || been_in.load(Ordering::SeqCst);
            assert_eq!(newcomers, LOOK_AFTER, "{options:?}");
            assert!(refused && handed_over, "{options:?}");
        });
        assert!(!latch.is_held() && latch.try_exclusive().is_some());
    }
}

/// Readers that have slept past the bound get the latch together, though an exclusive is among them on the list, and that
/// one gets it next.
///
/// Seen to catch: only the first reader is counted.
#[test]
fn overdue_readers_are_handed_the_latch_together() {
    let _watchdog = Watchdog::over_test();
    static CLASS: LatchClass = LatchClass::new("overdue readers", WaitEvent::BufferContent, 0);
    const READERS: usize = 4;
    for options in LwLockOptions::all().filter(|options| options.fairness == LwLockFairnessVariant::HandOver)
    {
        let torn = Torn::new(&CLASS, options);
        let all_inside = std::sync::Barrier::new(READERS);
        let guard = torn.latch.exclusive();
        std::thread::scope(|scope| {
            for number in 0..=READERS {
                let (torn, all_inside) = (&torn, &all_inside);
                scope.spawn(move || {
                    if number == 1 {
                        let _guard = torn.latch.exclusive();
                        torn.add_one(0);
                    } else {
                        let _guard = torn.latch.shared();
                        all_inside.wait();
                    }
                });
                while Native::workers()
                    .claimed()
                    .filter(|(_, slot)| slot.wait_event() == WaitEvent::BufferContent)
                    .count()
                    <= number
                {
                    std::thread::yield_now();
                }
            }
            std::thread::sleep(Duration::from_millis(3));
            drop(guard);
        });
        let _guard = torn.latch.exclusive();
        assert_eq!(torn.check(0), 1, "{options:?}");
    }
}

/// While the exclusive that waits is young, readers pass it as under `barging`: a full count is cleared.
///
/// Seen to catch: a full count is not cleared.
#[test]
fn readers_pass_a_young_exclusive_under_hand_over() {
    let _watchdog = Watchdog::over_test();
    static CLASS: LatchClass = LatchClass::new("young", WaitEvent::ProcArray, 0);
    for options in LwLockOptions::all().filter(|options| options.fairness == LwLockFairnessVariant::HandOver)
    {
        // A thread that loses its CPU for a millisecond makes the exclusive overdue; then the attempt says nothing.
        let passed = (0..1_000).any(|_| {
            let latch: LwLock = LwLock::new(&CLASS, options);
            let started = std::time::Instant::now();
            assert!(latch.try_acquire(LatchMode::Shared));
            std::thread::scope(|scope| {
                scope.spawn(|| drop(latch.exclusive()));
                wait_for_a_sleeper(WaitEvent::ProcArray);
                let newcomers = (0..3 * LOOK_AFTER)
                    .take_while(|_| latch.try_acquire(LatchMode::Shared))
                    .count();
                let young = started.elapsed() < Duration::from_micros(900);
                for _ in 0..=newcomers {
                    // SAFETY: acquired above.
                    unsafe { latch.release(LatchMode::Shared) };
                }
                assert!(!young || newcomers == 3 * LOOK_AFTER, "{newcomers}, {options:?}");
                young
            })
        });
        assert!(passed, "{options:?}: each attempt took a millisecond");
    }
}

/// Rule 7 of the crate: a worker in `acquire_or_wait` may return without the latch although the latch was held from before
/// its call until after its return.
#[test]
fn a_wait_until_free_may_end_although_the_latch_never_was() {
    static CLASS: LatchClass = LatchClass::new("until free", WaitEvent::UserLatch, 0);
    for options in LwLockOptions::all() {
        let latch = LwLock::<Native>::new(&CLASS, options);
        let variable = AtomicWord::new(0);
        let holder = latch.exclusive();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| latch.acquire_or_wait().is_none());
            let mut changes = 0;
            while !waiter.is_finished() {
                changes += 1;
                holder.update_var(&variable, changes);
                std::thread::yield_now();
            }
            assert!(waiter.join().unwrap(), "{options:?}");
            assert!(latch.is_held_exclusive(), "{options:?}");
        });
    }
}
