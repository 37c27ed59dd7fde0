//! The read-biased latches on the real machine: many more threads than CPUs, random modes, and a counter that
//! must never be seen torn.
//!
//! Mutations seen to fail here: the reader's second look left out, or asking only for BIASED; exclusive not
//! waiting for the slots, or passing over one; BIASED cleared before the slots were seen empty;
//! `try_exclusive` ignoring the slots (all: torn).
//!
//! Each thread draws its steps from its own seed, which the failing assertion prints.

#[path = "support/random.rs"]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, LatchClass, LatchedBy, LwLockFairnessVariant, LwLockOptions,
    LwLockVariant, ReadBiasedLatch, ReadBiasedOptions, ReaderWriterLatch, SlotChoice, WriterVariant,
};
use clearway_machine::WaitEvent;
use random::Random;

static CLASS: LatchClass = LatchClass::new("stress", WaitEvent::UserLatch, 0);

const THREADS: u64 = 24;
const STEPS: u64 = 40_000;

fn read_biased() -> ReadBiasedLatch {
    ReadBiasedLatch::new(&CLASS, LwLockVariant::SingleCas)
}

fn read_biased_by_cpu() -> ReadBiasedLatch<4> {
    let by_cpu = ReadBiasedOptions {
        slot: SlotChoice::Cpu,
        ..LwLockVariant::Queued.into()
    };
    ReadBiasedLatch::new(&CLASS, by_cpu)
}

fn read_biased_with(writer: WriterVariant) -> ReadBiasedLatch {
    let options = ReadBiasedOptions {
        writer,
        ..LwLockVariant::SingleCas.into()
    };
    ReadBiasedLatch::new(&CLASS, options)
}

fn announce() -> ReadBiasedLatch {
    read_biased_with(WriterVariant::Announce)
}

fn hand_over() -> ReadBiasedLatch {
    read_biased_with(WriterVariant::HandOver)
}

/// Slots that go to sleepers which have waited for long, and sleepers that dequeue themselves meanwhile.
fn hand_over_queued() -> ReadBiasedLatch<4> {
    let lwlock = LwLockOptions {
        algorithm: LwLockVariant::Queued,
        fairness: LwLockFairnessVariant::HandOver,
        ..LwLockOptions::default()
    };
    let options = ReadBiasedOptions {
        writer: WriterVariant::HandOver,
        ..lwlock.into()
    };
    ReadBiasedLatch::new(&CLASS, options)
}

/// As `hand_over_queued`, with writers one by one, each of which claims the slot that it waits for.
fn one_by_one_claims() -> ReadBiasedLatch<4> {
    let lwlock = LwLockOptions {
        fairness: LwLockFairnessVariant::WriterClaims,
        ..LwLockOptions::default()
    };
    ReadBiasedLatch::new(&CLASS, lwlock)
}

/// Turns biased and back, and its word is claimed by writers that wait.
fn adaptive_claims() -> AdaptiveLatch {
    let options = AdaptiveOptions {
        lwlock: LwLockOptions {
            fairness: LwLockFairnessVariant::WriterClaims,
            ..LwLockOptions::default()
        },
        ..AdaptiveOptions::default()
    };
    AdaptiveLatch::with_options(&CLASS, options)
}

/// A slot a core, so that not all slots are in use.
fn announce_by_core() -> ReadBiasedLatch {
    let options = ReadBiasedOptions {
        slot: SlotChoice::Core,
        writer: WriterVariant::Announce,
        ..LwLockVariant::Queued.into()
    };
    ReadBiasedLatch::new(&CLASS, options)
}

fn adaptive() -> AdaptiveLatch {
    AdaptiveLatch::new(&CLASS)
}

fn adaptive_by_cpu() -> AdaptiveLatch<4> {
    let by_cpu = AdaptiveOptions {
        slot: SlotChoice::Cpu,
        ..AdaptiveOptions::default()
    };
    AdaptiveLatch::with_options(&CLASS, by_cpu)
}

fn biased() -> AdaptiveLatch {
    let biased = AdaptiveOptions {
        bias: BiasPolicy::Always,
        ..AdaptiveOptions::default()
    };
    AdaptiveLatch::with_options(&CLASS, biased)
}

/// Two words that are equal whenever no worker is inside exclusively.
type Torn<L> = LatchedBy<L, [u64; 2]>;

/// Adds one to both words, with time in between.
fn add_one(words: &mut [u64; 2], pause: u64) -> u64 {
    let value = words[0];
    // Volatile, so that both writes happen where they are written.
    // SAFETY: the words are borrowed.
    unsafe { (&raw mut words[0]).write_volatile(value + 1) };
    for _ in 0..pause {
        std::hint::spin_loop();
    }
    // SAFETY: as above.
    unsafe { (&raw mut words[1]).write_volatile(value + 1) };
    1
}

/// Reads both words, with time in between.
fn check(words: &[u64; 2], pause: u64, seed: u64) -> u64 {
    // SAFETY: the words are borrowed; volatile, so that both reads happen where they are written.
    let first = unsafe { (&raw const words[0]).read_volatile() };
    for _ in 0..pause {
        std::hint::spin_loop();
    }
    // SAFETY: as above.
    let second = unsafe { (&raw const words[1]).read_volatile() };
    assert_eq!(first, second, "torn, seed {seed}");
    first
}

/// Does one random thing, a write in `writes` of 100 cases; how often it has added one.
fn step<L: ReaderWriterLatch>(torn: &Torn<L>, random: &mut Random, writes: u64, seed: u64) -> u64 {
    let pause = random.below(30);
    let conditional = random.below(4) == 0;
    if random.below(100) < writes {
        if conditional {
            torn.try_exclusive()
                .map_or(0, |mut words| add_one(&mut words, pause))
        } else {
            add_one(&mut torn.exclusive(), pause)
        }
    } else {
        if conditional {
            if let Some(words) = torn.try_shared() {
                check(&words, pause, seed);
            }
        } else {
            check(&torn.shared(), pause, seed);
        }
        0
    }
}

fn random_modes_never_tear<L: ReaderWriterLatch>(latch: fn() -> L) {
    // The share of writes changes in the middle, so that a latch that adapts has to.
    for writes in [[40, 2], [1, 60]] {
        let torn = Torn::with_latch(latch(), [0; 2]);
        let added: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|seed| {
                    let torn = &torn;
                    scope.spawn(move || {
                        let mut random = Random(seed);
                        (0..STEPS)
                            .map(|number| {
                                let writes = writes[(number * 2 / STEPS) as usize];
                                step(torn, &mut random, writes, seed)
                            })
                            .sum::<u64>()
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(!torn.latch().is_held());
        assert_eq!(check(&torn.exclusive(), 0, 0), added);
    }
}

/// Readers that come without pause on more threads than CPUs do not starve writers. The test asks for
/// progress, not for a time: the readers stop only when the last of `writers` is done. (A read-biased latch
/// promises a writer as little as LwLock does; on a machine that schedules every thread the writer gets the
/// latch.)
fn writers_get_in_between_readers<L: ReaderWriterLatch>(latch: fn() -> L, writers: u64) {
    let torn = Torn::with_latch(latch(), [0; 2]);
    let (stop, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seed in 0..6 {
            let (torn, stop, reads) = (&torn, &stop, &reads);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    check(&torn.shared(), 20, seed);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 0..writers {
            // Readers are at it between any two writers.
            let seen = reads.load(Ordering::Relaxed);
            while reads.load(Ordering::Relaxed) < seen + 100 {
                std::hint::spin_loop();
            }
            assert_eq!(check(&torn.shared(), 0, 0), number);
            add_one(&mut torn.exclusive(), 0);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// The latch works after a holder has panicked; sleepers are woken.
fn panic_releases_the_guard<L: ReaderWriterLatch>(latch: fn() -> L) {
    let torn = Torn::with_latch(latch(), [1; 2]);
    std::thread::scope(|scope| {
        let holder = torn.exclusive();
        let waiter = scope.spawn(|| torn.shared()[0]);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let outcome = catch_unwind(AssertUnwindSafe(move || {
            let mut holder = holder;
            holder[0] = 2;
            panic!("a worker fails inside");
        }));
        assert!(outcome.is_err());
        assert_eq!(waiter.join().unwrap(), 2);
    });
    std::thread::scope(|scope| {
        let holder = torn.shared();
        let waiter = scope.spawn(|| torn.exclusive()[1] = 2);
        std::thread::sleep(std::time::Duration::from_millis(5));
        let outcome = catch_unwind(AssertUnwindSafe(move || {
            let _holder = holder;
            panic!("a reader fails inside");
        }));
        assert!(outcome.is_err());
        waiter.join().unwrap();
    });
    assert!(!torn.latch().is_held());
    assert_eq!(check(&torn.shared(), 0, 0), 2);
}

fn conditional_has_no_side_effect<L: ReaderWriterLatch>(latch: fn() -> L) {
    let latch = latch();
    let exclusive = latch.try_exclusive().unwrap();
    std::thread::scope(|scope| {
        // Another worker, so another slot.
        scope.spawn(|| {
            assert!(latch.try_exclusive().is_none());
            assert!(latch.try_shared().is_none());
        });
    });
    drop(exclusive);
    assert!(!latch.is_held());
    let first = latch.try_shared().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let second = latch.try_shared().unwrap();
            assert!(latch.try_exclusive().is_none());
            drop(second);
            assert!(latch.try_exclusive().is_none());
            // What the refused attempts took has been given back.
            assert!(latch.try_shared().is_some());
        });
    });
    assert!(latch.try_exclusive().is_none());
    drop(first);
    assert!(!latch.is_held());
    assert!(latch.try_exclusive().is_some());
    assert!(!latch.is_held());
}

macro_rules! each_latch {
    ($($latch:ident),*) => {
        $(mod $latch {
            #[test]
            fn stress_random_modes_never_tear() {
                super::random_modes_never_tear(super::$latch);
            }

            #[test]
            fn panic_releases_the_guard() {
                super::panic_releases_the_guard(super::$latch);
            }

            #[test]
            fn conditional_has_no_side_effect() {
                super::conditional_has_no_side_effect(super::$latch);
            }
        })*
    };
}

each_latch!(
    read_biased,
    read_biased_by_cpu,
    announce,
    hand_over,
    hand_over_queued,
    one_by_one_claims,
    adaptive_claims,
    announce_by_core,
    adaptive,
    adaptive_by_cpu,
    biased
);

#[test]
fn stress_writers_get_in_between_readers() {
    writers_get_in_between_readers(read_biased, 5);
    writers_get_in_between_readers(announce, 5);
}

/// Writers that come without pause, and so hand the slots over again and again, do not shut readers out for good.
///
/// Mutation, seen not to end: hand over without a bound.
#[test]
fn stress_readers_get_in_between_writers() {
    let torn = Torn::with_latch(hand_over(), [0; 2]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    add_one(&mut torn.exclusive(), 200);
                }
            });
        }
        let readers: Vec<_> = (0..2)
            .map(|seed| {
                let torn = &torn;
                scope.spawn(move || {
                    for _ in 0..20 {
                        check(&torn.shared(), 0, seed);
                    }
                })
            })
            .collect();
        for reader in readers {
            reader.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
}
