//! The SuxLock natively: many threads, random steps with recursion, and data that must never be seen torn.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use clearway_latch::{SuxExclusive, SuxLock, SuxUpdate, SuxUpdateForIo, Unclassed};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

const THREADS: u64 = 8;
const STEPS: usize = if cfg!(debug_assertions) { 20_000 } else { 100_000 };

struct Torn {
    latch: SuxLock,
    words: UnsafeCell<[u64; 2]>,
}

// SAFETY: the words are reached under the latch only, which is what the tests check.
unsafe impl Sync for Torn {}

impl Torn {
    fn new() -> Self {
        Self {
            latch: SuxLock::new(),
            words: UnsafeCell::new([0; 2]),
        }
    }

    /// The caller holds the latch.
    fn read(&self) -> u64 {
        // SAFETY: held, so no worker writes.
        let words = unsafe { *self.words.get() };
        assert_eq!(words[0], words[1], "a worker is writing");
        words[0]
    }

    /// The caller holds `_guard`'s latch alone.
    fn add_one(&self, _guard: &SuxExclusive<'_>) -> u64 {
        // SAFETY: exclusive, so no other worker reads or writes.
        let words = unsafe { &mut *self.words.get() };
        words[0] += 1;
        std::hint::black_box(&mut *words);
        words[1] += 1;
        assert_eq!(words[0], words[1], "two are writing");
        1
    }

    /// Nests at random up to `depth` under an update.
    fn under_update(&self, _held: &SuxUpdate<'_>, random: &mut SmallRng, depth: u32) -> u64 {
        let before = self.read();
        if depth == 0 {
            return 0;
        }
        match random.random_range(0..4) {
            0 => {
                // Not under an own exclusive further out, where it would wait for itself.
                let _shared = self.latch.try_shared();
                assert_eq!(self.read(), before, "a worker wrote beside an update");
                0
            }
            1 => {
                let again = self.latch.update();
                self.under_update(&again, random, depth - 1)
            }
            2 => {
                let exclusive = self.latch.exclusive();
                assert_eq!(self.read(), before, "a worker wrote beside an update");
                self.add_one(&exclusive) + self.under_exclusive(exclusive, random, depth - 1)
            }
            _ => match self.latch.try_exclusive() {
                Some(exclusive) => self.add_one(&exclusive),
                None => 0,
            },
        }
    }

    fn under_exclusive(&self, held: SuxExclusive<'_>, random: &mut SmallRng, depth: u32) -> u64 {
        if depth == 0 {
            return self.add_one(&held);
        }
        match random.random_range(0..3) {
            0 => self.under_exclusive(self.latch.exclusive(), random, depth - 1),
            1 => {
                // The outer hold goes first.
                let inner = self.latch.exclusive();
                drop(held);
                self.add_one(&inner)
            }
            _ => self.under_update(&held.update(), random, depth - 1),
        }
    }
}

#[test]
fn stress_recursion_never_tears() {
    let torn = Torn::new();
    let written: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|seed| {
                let torn = &torn;
                scope.spawn(move || {
                    let mut random = SmallRng::seed_from_u64(seed);
                    let mut written = 0;
                    for _ in 0..STEPS {
                        written += match random.random_range(0..6) {
                            0..=2 => {
                                let _guard = torn.latch.shared();
                                torn.read();
                                0
                            }
                            3 => {
                                let held = torn.latch.update();
                                let reader = torn.latch.shared();
                                let before = torn.read();
                                drop(reader);
                                assert_eq!(torn.read(), before, "a worker wrote beside an update");
                                torn.under_update(&held, &mut random, 3)
                            }
                            4 => torn.under_exclusive(torn.latch.exclusive(), &mut random, 3),
                            _ => match torn.latch.try_update() {
                                Some(held) => torn.under_update(&held, &mut random, 3),
                                None => 0,
                            },
                        };
                    }
                    written
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    assert!(!torn.latch.is_held());
    assert_eq!(torn.read(), written);
}

/// Pages are written out under an update that another thread ends, while their readers proceed and their
/// writers wait.
#[test]
fn stress_io_ends_in_another_thread() {
    let pages: Vec<Torn> = (0..4).map(|_| Torn::new()).collect();
    let (begun, ended) = mpsc::channel::<SuxUpdateForIo<'_>>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for (number, guard) in ended.into_iter().enumerate() {
                if number % 3 == 0 {
                    drop(guard.claim());
                }
            }
        });
        for seed in 0..4 {
            let (pages, begun) = (&pages, begun.clone());
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(seed);
                for _ in 0..STEPS / 4 {
                    let page = &pages[random.random_range(0..pages.len())];
                    match random.random_range(0..3) {
                        0 => {
                            page.add_one(&page.latch.exclusive());
                        }
                        1 => begun.send(page.latch.update_for_io()).unwrap(),
                        _ => {
                            let _guard = page.latch.shared();
                            page.read();
                        }
                    }
                }
            });
        }
        drop(begun);
    });
    assert!(pages.iter().all(|page| !page.latch.is_held()));
}

#[test]
fn panic_releases_every_hold() {
    let latch = SuxLock::<Unclassed>::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _outer = latch.update();
        let _inner = latch.exclusive();
        let _again = latch.exclusive();
        panic!("a worker fails");
    }));
    assert!(panicked.is_err());
    assert!(!latch.is_held());
    drop(latch.exclusive());
}

/// An acquisition that would wait for itself panics, in every build.
#[test]
fn waiting_for_oneself_is_refused() {
    let latch = SuxLock::<Unclassed>::new();
    let message = |act: &dyn Fn()| {
        let panic = catch_unwind(AssertUnwindSafe(act)).expect_err("refused");
        panic.downcast_ref::<String>().expect("a message").clone()
    };
    let exclusive = latch.exclusive();
    assert!(message(&|| drop(latch.shared())).contains("would wait for itself"));
    assert!(message(&|| drop(latch.update_for_io())).contains("would wait for itself"));
    assert!(latch.try_shared().is_none());
    assert!(exclusive.try_for_io().is_ok_and(|io| {
        assert!(latch.is_held_for_io() && !latch.is_owned_by_caller());
        drop(io);
        !latch.is_held()
    }));
    let (outer, inner) = (latch.update(), latch.update());
    let inner = inner.try_for_io().expect_err("not the only hold");
    drop(outer);
    drop(inner.try_for_io().expect("the only hold"));
    assert!(!latch.is_held());
}
