//! HybridLatch on the real machine: many more threads than CPUs, every mode and transition, and two words
//! that must never be seen apart.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use clearway_latch::{ClassOf, HybridCell, HybridLatch, LatchClass, SpinPolicy, Unclassed};
use clearway_machine::WaitEvent;

const THREADS: u64 = 24;
const STEPS: u64 = 40_000;

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

struct Torn<C: ClassOf> {
    latch: HybridLatch<C>,
    words: [AtomicU64; 2],
    updates: AtomicU64,
}

impl<C: ClassOf> Torn<C> {
    fn words(&self) -> [u64; 2] {
        [self.words[0].load(Relaxed), self.words[1].load(Relaxed)]
    }

    fn check(&self) -> [u64; 2] {
        let words = self.words();
        assert_eq!(words[0], words[1], "torn");
        words
    }

    fn write(&self, pause: u64) -> u64 {
        let before = self.check();
        self.words[0].store(before[0] + 1, Relaxed);
        for _ in 0..pause {
            std::hint::spin_loop();
        }
        self.words[1].store(before[1] + 1, Relaxed);
        1
    }

    fn as_update(&self) {
        assert_eq!(self.updates.fetch_add(1, Relaxed), 0, "two updates");
        self.updates.fetch_sub(1, Relaxed);
    }

    fn step(&self, random: u64) -> u64 {
        let pause = random >> 8 & 63;
        match random % 16 {
            0 => {
                let _guard = self.latch.exclusive();
                self.write(pause)
            }
            1 => {
                let update = self.latch.update();
                self.as_update();
                let before = self.check();
                let exclusive = update.upgrade();
                assert_eq!(self.check(), before, "a worker wrote beside an update");
                let written = self.write(pause);
                let update = exclusive.downgrade_to_update();
                self.as_update();
                drop(update);
                written
            }
            2 => {
                let exclusive = self.latch.exclusive();
                let written = self.write(pause);
                let words = self.check();
                let _shared = exclusive.downgrade_to_shared();
                assert_eq!(self.check(), words, "a worker wrote beside a reader");
                written
            }
            3 => match self.latch.shared().try_upgrade() {
                Ok(update) => {
                    self.as_update();
                    let _guard = update.upgrade();
                    self.write(pause)
                }
                Err(_shared) => {
                    self.check();
                    0
                }
            },
            4 => match self.latch.try_exclusive() {
                Some(_guard) => self.write(pause),
                None => 0,
            },
            5 => {
                let Some(version) = self.latch.optimistic() else {
                    return 0;
                };
                let words = self.words();
                match self.latch.try_exclusive_at(version) {
                    Some(_guard) => {
                        assert_eq!(self.check(), words, "a worker wrote in between");
                        self.write(pause)
                    }
                    None => 0,
                }
            }
            6..10 => {
                let _guard = self.latch.shared();
                self.check();
                0
            }
            _ => {
                let words = self.latch.read(|| self.words());
                assert_eq!(words[0], words[1], "a torn read was validated");
                0
            }
        }
    }
}

fn stress<C: ClassOf>() {
    let torn = Torn::<C> {
        latch: HybridLatch::new(),
        words: Default::default(),
        updates: AtomicU64::new(0),
    };
    let written: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|seed| {
                let torn = &torn;
                scope.spawn(move || {
                    let mut random = (seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                    let mut written = 0;
                    for _ in 0..STEPS {
                        random ^= random << 13;
                        random ^= random >> 7;
                        random ^= random << 17;
                        written += torn.step(random >> 16);
                    }
                    written
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert_eq!(torn.words(), [written; 2]);
    assert!(!torn.latch.is_held());
}

#[test]
fn stress_every_step_under_each_spin_policy() {
    stress::<Sleeping>();
    stress::<SpinningBriefly>();
    stress::<Learning>();
    let statistics = Sleeping::class().statistics();
    for mode in [&statistics.exclusive, &statistics.shared, &statistics.update] {
        assert!(mode.sleeps > 0 && mode.spins == 0, "{mode:?}");
    }
}

/// Readers without pause cannot starve a writer: its request excludes them. A writer gets a thousand sections
/// while they read; the assertion is that this test ends.
#[test]
fn stress_readers_cannot_starve_a_writer() {
    let latch = HybridLatch::<Unclassed>::new();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    let _guard = latch.shared();
                    std::hint::spin_loop();
                }
            });
        }
        for _ in 0..1_000 {
            drop(latch.exclusive());
        }
        stop.store(true, Relaxed);
    });
}

#[test]
fn panic_releases_the_guard() {
    let latch = HybridLatch::<Unclassed>::new();
    for act in [
        (|latch| {
            let _guard = latch.exclusive();
            panic!("on purpose");
        }) as fn(&HybridLatch<Unclassed>),
        |latch| {
            let _guard = latch.update().upgrade().downgrade_to_update();
            panic!("on purpose");
        },
        |latch| {
            let _guard = latch.exclusive().downgrade_to_shared();
            panic!("on purpose");
        },
    ] {
        assert!(catch_unwind(AssertUnwindSafe(|| act(&latch))).is_err());
        assert!(!latch.is_held());
        drop(latch.exclusive());
    }
}

#[test]
fn conditional_modes_say_no_and_leave_nothing_behind() {
    let latch = HybridLatch::<Unclassed>::new();
    let shared = latch.shared();
    assert!(latch.try_exclusive().is_none());
    let update = latch.try_update().expect("readers do not exclude an update");
    assert!(latch.try_update().is_none());
    let reader = latch.try_shared().expect("an update does not exclude readers");
    assert!(reader.try_upgrade().is_err(), "there is an update already");
    drop((shared, update));
    let version = latch.optimistic().expect("idle");
    drop(latch.update());
    assert!(latch.validate(version), "an update writes nothing");
    let exclusive = latch.try_exclusive_at(version).expect("idle");
    assert!(latch.optimistic().is_none() && latch.try_shared().is_none() && latch.try_update().is_none());
    drop(exclusive);
    assert!(!latch.validate(version) && latch.try_exclusive_at(version).is_none());
    assert!(latch.try_update_at(version).is_none() && !latch.is_held());
}

#[test]
fn a_cell_is_read_whole_beside_writers() {
    let cell: HybridCell<[u64; 5], 5> = HybridCell::new([0; 5]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut newest = 0;
                while !stop.load(Relaxed) {
                    let words = cell.read();
                    assert!(words.iter().all(|word| *word == words[0]) && words[0] >= newest);
                    newest = words[0];
                    if let Some(words) = cell.try_read() {
                        assert!(words.iter().all(|word| *word == words[0]) && words[0] >= newest);
                    }
                }
            });
        }
        let writers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..20_000 {
                        cell.update(|words| *words = words.map(|word| word + 1));
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Relaxed);
    });
    assert_eq!(cell.read(), [40_000; 5]);
}
