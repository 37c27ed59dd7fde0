//! The futex latches on the real machine: many more threads than CPUs, every mode and transition, and two
//! words that must never be seen apart.
//!
//! Each thread draws its steps from its own seed, which the failing assertion prints.

#[path = "support/random.rs"]
mod random;

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use clearway_latch::{
    CasLoop, ClassOf, FetchAddBts, HolderProtocol, LatchClass, OneWord, SingleWake, SpinPolicy, SrwMutex,
    SsuxLock, SsuxProtocol, SsuxUpdate,
};
use clearway_machine::{Native, WaitEvent};
use random::Random;

const THREADS: u64 = 24;
const STEPS: u64 = 20_000;

macro_rules! class {
    ($name:ident, $policy:expr) => {
        #[derive(Debug)]
        struct $name;

        impl ClassOf for $name {
            fn class() -> &'static LatchClass {
                static CLASS: LatchClass =
                    LatchClass::new(stringify!($name), WaitEvent::UserLatch, 0).spinning($policy);
                &CLASS
            }
        }
    };
}

class!(Sleeping, SpinPolicy::None);
class!(SpinningBriefly, SpinPolicy::Fixed(20));
class!(Learning, SpinPolicy::Adaptive);

/// Two words that are equal whenever no worker is inside exclusively, and counts of the workers inside.
struct Torn<L> {
    latch: L,
    words: UnsafeCell<[u64; 2]>,
    readers: AtomicU64,
    owners: AtomicU64,
}

// SAFETY: `words` is reached under the latch only, which is what the test checks.
unsafe impl<L: Sync> Sync for Torn<L> {}

impl<L> Torn<L> {
    fn new(latch: L) -> Self {
        Self {
            latch,
            words: UnsafeCell::new([0; 2]),
            readers: AtomicU64::new(0),
            owners: AtomicU64::new(0),
        }
    }

    /// Adds one to both words, with time in between. The caller holds the latch exclusively.
    fn add_one(&self, pause: u64, seed: u64) -> u64 {
        assert_eq!(self.owners.fetch_add(1, Relaxed), 0, "two owners, seed {seed}");
        assert_eq!(
            self.readers.load(Relaxed),
            0,
            "a reader beside a writer, seed {seed}"
        );
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
        assert_eq!(
            self.readers.load(Relaxed),
            0,
            "a reader beside a writer, seed {seed}"
        );
        self.owners.fetch_sub(1, Relaxed);
        1
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

    /// As a reader; the caller holds the latch in shared mode.
    fn reading(&self, seed: u64) -> u64 {
        self.readers.fetch_add(1, Relaxed);
        let value = self.check(seed);
        self.readers.fetch_sub(1, Relaxed);
        value
    }

    /// As the updater; the caller holds the latch in update mode.
    fn updating(&self, seed: u64) -> u64 {
        assert_eq!(self.owners.fetch_add(1, Relaxed), 0, "two owners, seed {seed}");
        let value = self.check(seed);
        self.owners.fetch_sub(1, Relaxed);
        value
    }
}

/// Runs `step` by all threads and compares what they have added with what is there.
fn stress<L: Sync>(latch: L, step: impl Fn(&Torn<L>, &mut Random, u64) -> u64 + Sync) {
    let torn = Torn::new(latch);
    let added: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|seed| {
                let (torn, step) = (&torn, &step);
                scope.spawn(move || {
                    let mut random = Random(seed);
                    (0..STEPS).map(|_| step(torn, &mut random, seed)).sum::<u64>()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(torn.check(0), added);
}

fn mutex_step<C: ClassOf, P: HolderProtocol>(
    torn: &Torn<SrwMutex<C, Native, P>>,
    random: &mut Random,
    seed: u64,
) -> u64 {
    let pause = random.below(30);
    if random.below(5) == 0 {
        torn.latch
            .try_exclusive()
            .map_or(0, |_guard| torn.add_one(pause, seed))
    } else {
        let _guard = torn.latch.exclusive();
        torn.add_one(pause, seed)
    }
}

fn upgrade<C: ClassOf, P: SsuxProtocol>(
    torn: &Torn<SsuxLock<C, Native, P>>,
    guard: SsuxUpdate<'_, C, Native, P>,
    seed: u64,
) -> u64 {
    let before = torn.updating(seed);
    let _guard = guard.exclusive();
    assert_eq!(
        torn.check(seed),
        before,
        "a worker wrote beside an update, seed {seed}"
    );
    torn.add_one(1, seed)
}

fn ssux_step<C: ClassOf, P: SsuxProtocol>(
    torn: &Torn<SsuxLock<C, Native, P>>,
    random: &mut Random,
    seed: u64,
) -> u64 {
    let latch = &torn.latch;
    let pause = random.below(30);
    match random.below(12) {
        0..=3 => {
            let _guard = latch.shared();
            torn.reading(seed);
            0
        }
        4 | 5 => {
            let _guard = latch.exclusive();
            torn.add_one(pause, seed)
        }
        6 => upgrade(torn, latch.update(), seed),
        7 => {
            let guard = latch.exclusive();
            let added = torn.add_one(pause, seed);
            let guard = guard.update();
            let value = torn.updating(seed);
            let _guard = guard.shared();
            assert_eq!(torn.reading(seed), value, "a worker wrote between, seed {seed}");
            added
        }
        8 => {
            let guard = latch.exclusive();
            let added = torn.add_one(pause, seed);
            let _guard = guard.shared();
            torn.reading(seed);
            added
        }
        9 => match latch.shared().try_update() {
            Ok(guard) => upgrade(torn, guard, seed),
            Err(_still_shared) => {
                torn.reading(seed);
                0
            }
        },
        10 => latch.try_update().map_or(0, |guard| match guard.try_exclusive() {
            Ok(_guard) => torn.add_one(pause, seed),
            Err(_still_update) => {
                torn.updating(seed);
                0
            }
        }),
        _ => latch
            .try_exclusive()
            .map_or(0, |_guard| torn.add_one(pause, seed)),
    }
}

fn mutex_of_every_policy<P: HolderProtocol>() {
    stress(SrwMutex::<Sleeping, Native, P>::new(), mutex_step);
    stress(SrwMutex::<SpinningBriefly, Native, P>::new(), mutex_step);
    stress(SrwMutex::<Learning, Native, P>::new(), mutex_step);
}

fn ssux_of_every_policy<P: SsuxProtocol>() {
    stress(SsuxLock::<Sleeping, Native, P>::idle(), ssux_step);
    stress(SsuxLock::<SpinningBriefly, Native, P>::idle(), ssux_step);
    stress(SsuxLock::<Learning, Native, P>::idle(), ssux_step);
}

#[test]
fn stress_cas_loop_never_tears() {
    mutex_of_every_policy::<CasLoop>();
    ssux_of_every_policy::<CasLoop>();
}

#[test]
fn stress_fetch_add_bts_never_tears() {
    mutex_of_every_policy::<FetchAddBts>();
    ssux_of_every_policy::<FetchAddBts>();
}

#[test]
fn stress_single_wake_never_tears() {
    mutex_of_every_policy::<SingleWake>();
    ssux_of_every_policy::<SingleWake>();
}

#[test]
fn stress_one_word_never_tears() {
    ssux_of_every_policy::<OneWord>();
}

fn sleepers_are_all_woken<P: HolderProtocol, S: SsuxProtocol>() {
    class!(Sleepers, SpinPolicy::None);
    let mutex = SrwMutex::<Sleepers, Native, P>::new();
    let ssux = SsuxLock::<Sleepers, Native, S>::idle();
    for round in 0..20 {
        std::thread::scope(|scope| {
            let held = (mutex.exclusive(), ssux.exclusive());
            for number in 0..12 {
                let (mutex, ssux) = (&mutex, &ssux);
                scope.spawn(move || match number % 4 {
                    0 => drop(mutex.exclusive()),
                    1 => drop(ssux.exclusive()),
                    2 => drop(ssux.update()),
                    _ => drop(ssux.shared()),
                });
            }
            // Long enough that most of them sleep when the latches are released.
            std::thread::sleep(Duration::from_millis(5));
            if round % 2 == 0 {
                drop(held.1.update().shared());
            }
        });
        assert!(!mutex.is_held() && !ssux.is_held());
    }
    let statistics = Sleepers::class().statistics();
    assert!(statistics.exclusive.sleeps > 0 && statistics.shared.sleeps > 0 && statistics.update.sleeps > 0);
    for mode in [&statistics.exclusive, &statistics.shared, &statistics.update] {
        assert_eq!(
            mode.wait_ns.iter().sum::<u64>(),
            mode.conflicts,
            "each conflict is one wait"
        );
        assert_eq!(mode.spins, 0, "the class does not poll");
    }
}

#[test]
fn stress_sleepers_are_all_woken() {
    sleepers_are_all_woken::<CasLoop, CasLoop>();
    sleepers_are_all_woken::<FetchAddBts, FetchAddBts>();
    sleepers_are_all_woken::<SingleWake, SingleWake>();
    sleepers_are_all_woken::<SingleWake, OneWord>();
}

/// Readers come without pause and never all leave on their own. An exclusive is admitted nevertheless,
/// because it excludes new readers first. Each reader stays until another one is inside or readers are
/// excluded, so without the writer's priority the count of readers would never be zero.
#[test]
fn stress_exclusive_gets_in_although_readers_never_pause() {
    class!(Greedy, SpinPolicy::None);
    static LATCH: SsuxLock<Greedy> = SsuxLock::new();
    let (stop, entered) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    let guard = LATCH.shared();
                    let mine = entered.fetch_add(1, Relaxed) + 1;
                    // Until the next reader is inside, or readers are excluded.
                    while entered.load(Relaxed) == mine && !stop.load(Relaxed) {
                        if LATCH.try_shared().is_none() {
                            break;
                        }
                        std::thread::yield_now();
                    }
                    drop(guard);
                }
            });
        }
        for _ in 0..200 {
            let before = entered.load(Relaxed);
            let guard = LATCH.exclusive();
            drop(guard);
            // Admit some again, so that every acquisition meets readers.
            while entered.load(Relaxed) < before + 2 {
                std::thread::yield_now();
            }
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn panic_releases_every_guard() {
    let mutex = SrwMutex::<Sleeping>::new();
    let ssux = SsuxLock::<Sleeping>::new();
    std::thread::scope(|scope| {
        // Others wait while the holder panics.
        let held = (mutex.exclusive(), ssux.exclusive());
        let waiters = [
            scope.spawn(|| drop(mutex.exclusive())),
            scope.spawn(|| drop(ssux.shared())),
            scope.spawn(|| drop(ssux.exclusive())),
        ];
        std::thread::sleep(Duration::from_millis(5));
        let outcome = catch_unwind(AssertUnwindSafe(move || {
            let _held = held;
            panic!("a worker fails inside");
        }));
        assert!(outcome.is_err());
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
    let fails = |act: &dyn Fn()| {
        assert!(catch_unwind(AssertUnwindSafe(act)).is_err());
        assert!(!ssux.is_held());
    };
    fails(&|| {
        let _guard = ssux.shared();
        panic!("a reader fails");
    });
    fails(&|| {
        let _guard = ssux.update();
        panic!("an updater fails");
    });
    fails(&|| {
        let _guard = ssux.update().exclusive();
        panic!("fails after a transition");
    });
    fails(&|| {
        let _guard = ssux.exclusive().update().shared();
        panic!("fails after two");
    });
    drop(ssux.exclusive());
    drop(mutex.exclusive());
}

#[test]
fn modes_admit_what_they_should() {
    let latch = SsuxLock::<Sleeping>::new();
    {
        let _shared = latch.shared();
        assert!(latch.try_exclusive().is_none());
        assert!(!latch.is_owned(), "a failed try leaves nothing behind");
        drop(latch.try_shared().expect("shared beside shared"));
        drop(latch.try_update().expect("update beside shared"));
    }
    {
        let _update = latch.update();
        drop(latch.try_shared().expect("shared beside update"));
        assert!(latch.try_update().is_none());
        assert!(latch.try_exclusive().is_none());
    }
    {
        let _exclusive = latch.exclusive();
        assert!(latch.try_shared().is_none());
        assert!(latch.try_update().is_none());
        assert!(latch.try_exclusive().is_none());
    }
    assert!(!latch.is_held());
}

#[test]
fn transitions_change_the_mode_and_nothing_else() {
    let latch = SsuxLock::<Sleeping>::new();
    let guard = latch.exclusive().update();
    drop(latch.try_shared().expect("down to update"));
    let guard = guard.exclusive();
    assert!(latch.try_shared().is_none(), "up to exclusive");
    let guard = guard.shared();
    assert_eq!(
        (latch.shared_holders(), latch.is_owned()),
        (1, false),
        "down to shared"
    );
    let guard = guard.try_update().expect("no other worker is here");
    assert_eq!(
        (latch.shared_holders(), latch.is_owned()),
        (0, true),
        "up to update"
    );

    let reader = latch.try_shared().expect("an updater admits readers");
    let guard = guard.try_exclusive().expect_err("a reader is inside");
    drop(latch.try_shared().expect("a failed attempt leaves the door open"));
    let reader = reader.try_update().expect_err("there is an updater");
    drop(reader);
    let guard = guard.try_exclusive().expect("the reader has gone");
    drop(guard);
    assert!(!latch.is_held());
}
