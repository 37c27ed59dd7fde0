//! HybridLatch under shuttle: six workers that do anything, in random schedules.
//!
//! `cargo test -p clearway-latch --features shuttle --test shuttle_hybrid --release`

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{HybridLatch, Unclassed};
use clearway_machine::{AtomicWord, Machine, Shuttle};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const WORKERS: usize = 6;
const STEPS: usize = 4;
const SCHEDULES: usize = 2_000;

type Word = <Shuttle as Machine>::U64;

struct Shared {
    latch: HybridLatch<Unclassed, Shuttle>,
    /// Equal whenever no worker writes.
    words: [Word; 2],
    /// Counts of the workers inside, by mode, to be compared with each other.
    readers: Word,
    updates: Word,
}

impl Shared {
    fn reading<R>(&self, act: impl FnOnce() -> R) -> R {
        self.readers.fetch_add(1, Relaxed);
        let words = self.words();
        assert_eq!(words[0], words[1], "torn under a shared latch");
        let result = act();
        assert_eq!(self.words(), words, "a worker wrote beside a reader");
        self.readers.fetch_sub(1, Relaxed);
        result
    }

    fn updating<R>(&self, act: impl FnOnce() -> R) -> R {
        assert_eq!(self.updates.fetch_add(1, Relaxed), 0, "two updates");
        let result = act();
        self.updates.fetch_sub(1, Relaxed);
        result
    }

    fn words(&self) -> [u64; 2] {
        [self.words[0].load(Relaxed), self.words[1].load(Relaxed)]
    }

    fn write(&self) -> u64 {
        assert_eq!(self.readers.load(Relaxed), 0, "a reader beside a writer");
        self.updating(|| {
            for word in &self.words {
                word.store(word.load(Relaxed) + 1, Relaxed);
            }
        });
        assert_eq!(self.readers.load(Relaxed), 0, "a reader beside a writer");
        1
    }

    /// One step of a worker that may do anything; how often it has written.
    fn step(&self) -> u64 {
        match thread_rng().gen_range(0..9) {
            0 => {
                let _guard = self.latch.exclusive();
                self.write()
            }
            1 => {
                let _guard = self.latch.shared();
                self.reading(|| 0)
            }
            2 => {
                let update = self.latch.update();
                self.updating(|| ());
                let exclusive = update.upgrade();
                let written = self.write();
                let _update = exclusive.downgrade_to_update();
                self.updating(|| written)
            }
            3 => {
                let exclusive = self.latch.exclusive();
                let written = self.write();
                let _shared = exclusive.downgrade_to_shared();
                self.reading(|| written)
            }
            4 => {
                let update = self.latch.update();
                self.updating(|| ());
                let _shared = update.downgrade();
                self.reading(|| 0)
            }
            5 => match self.latch.shared().try_upgrade() {
                Ok(update) => {
                    self.updating(|| ());
                    let _exclusive = update.upgrade();
                    self.write()
                }
                Err(_shared) => self.reading(|| 0),
            },
            6 => match self.latch.try_exclusive() {
                Some(_guard) => self.write(),
                None => 0,
            },
            7 => {
                let Some(version) = self.latch.optimistic() else {
                    return 0;
                };
                let words = self.words();
                if !self.latch.validate(version) {
                    return 0;
                }
                assert_eq!(words[0], words[1], "a torn read was validated");
                match self.latch.try_exclusive_at(version) {
                    Some(_guard) => {
                        assert_eq!(self.words(), words, "a worker wrote in between");
                        self.write()
                    }
                    None => 0,
                }
            }
            _ => {
                let words = self.latch.read(|| self.words());
                assert_eq!(words[0], words[1], "a torn read was validated");
                0
            }
        }
    }
}

fn six_workers() {
    let shared = Arc::new(Shared {
        latch: HybridLatch::idle(),
        words: [Word::new(0), Word::new(0)],
        readers: Word::new(0),
        updates: Word::new(0),
    });
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || (0..STEPS).map(|_| shared.step()).sum::<u64>())
        })
        .collect();
    let written: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
    assert!(!shared.latch.is_held());
    assert_eq!(shared.words(), [written; 2]);
}

#[test]
fn shuttle_random_steps() {
    shuttle::check_random(six_workers, SCHEDULES);
}

#[test]
fn shuttle_few_preemptions() {
    shuttle::check_pct(six_workers, SCHEDULES, 3);
}
