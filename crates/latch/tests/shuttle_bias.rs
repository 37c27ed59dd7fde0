//! The read-biased latches under shuttle: more workers and more steps than loom can exhaust, in random
//! schedules.
//!
//! Overlap inside the latch is seen by the data cell, a sleeper left behind as a deadlock. A failing schedule
//! is printed and can be replayed with `shuttle::replay`. Memory is sequentially consistent here: what a
//! missing fence does, loom shows.
//!
//! Mutations seen to fail here: the reader's second look left out, or asking only for BIASED; exclusive not
//! waiting for the slots, or passing over one; BIASED cleared before the slots were seen empty, or by a
//! reader that goes; `try_exclusive` ignoring the slots (all: a worker inside meets another); rollback
//! without wake-ups, in either latch; the last reader making no wake-up call; `WRITER_SLEEPS` not set before
//! the sleep; a sleep without comparing the slot's word; every second worker taking the slots in descending
//! order; a rollback that forgets a slot (all: deadlock).
//!
//! `cargo test -p clearway-latch --features shuttle --test shuttle_bias --release`

use std::sync::Arc;

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, LatchClass, LwLockVariant, ReadBiasedLatch,
    ReadBiasedOptions, ReaderWriterLatch, WriterVariant,
};
use clearway_machine::{DataCell, Machine, Shuttle, WaitEvent};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

static CLASS: LatchClass = LatchClass::new("shuttle", WaitEvent::UserLatch, 0);

const WORKERS: usize = 6;
const STEPS: usize = 4;
const SCHEDULES: usize = 1_500;

fn read_biased() -> ReadBiasedLatch<4, Shuttle> {
    ReadBiasedLatch::new(&CLASS, LwLockVariant::SingleCas)
}

fn read_biased_with(writer: WriterVariant) -> ReadBiasedLatch<4, Shuttle> {
    let options = ReadBiasedOptions {
        writer,
        ..LwLockVariant::SingleCas.into()
    };
    ReadBiasedLatch::new(&CLASS, options)
}

fn announce() -> ReadBiasedLatch<4, Shuttle> {
    read_biased_with(WriterVariant::Announce)
}

fn hand_over() -> ReadBiasedLatch<4, Shuttle> {
    read_biased_with(WriterVariant::HandOver)
}

fn near_last() -> ReadBiasedLatch<4, Shuttle> {
    read_biased_with(WriterVariant::NearLast)
}

fn adaptive() -> AdaptiveLatch<4, Shuttle> {
    AdaptiveLatch::new(&CLASS)
}

fn biased() -> AdaptiveLatch<4, Shuttle> {
    let bias = AdaptiveOptions {
        bias: BiasPolicy::Always,
        ..AdaptiveOptions::default()
    };
    AdaptiveLatch::with_options(&CLASS, bias)
}

struct Shared<L> {
    latch: L,
    data: <Shuttle as Machine>::Data<u64>,
}

// SAFETY: the data is reached under the latch only, which is what the test checks.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl<L: ReaderWriterLatch> Shared<L> {
    fn add_one(&self) -> u64 {
        // SAFETY: the caller holds the latch exclusively; the cell fails the test on overlap.
        self.data.with_mut(|data| unsafe { *data += 1 });
        1
    }

    fn read(&self) -> u64 {
        // SAFETY: the caller holds the latch; the cell fails the test on overlap.
        self.data.with(|data| unsafe { *data })
    }

    /// One step of a worker that may do anything; how many times it has added one.
    fn random_step(&self) -> u64 {
        match thread_rng().gen_range(0..10) {
            0..=2 => {
                let _guard = self.latch.exclusive();
                self.add_one()
            }
            3..=6 => {
                let _guard = self.latch.shared();
                self.read();
                0
            }
            7 => {
                if let Some(_guard) = self.latch.try_shared() {
                    self.read();
                }
                0
            }
            _ => match self.latch.try_exclusive() {
                Some(_guard) => self.add_one(),
                None => 0,
            },
        }
    }
}

fn random_modes<L: ReaderWriterLatch + 'static>(latch: fn() -> L) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new(Shared {
            latch: latch(),
            data: DataCell::new(0),
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || (0..STEPS).map(|_| shared.random_step()).sum::<u64>())
            })
            .collect();
        let added: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        assert!(!shared.latch.is_held());
        let _guard = shared.latch.try_exclusive().unwrap();
        assert_eq!(shared.read(), added);
    }
}

macro_rules! each_latch {
    ($($latch:ident),*) => {
        $(mod $latch {
            use super::*;

            #[test]
            fn shuttle_random_modes() {
                shuttle::check_random(random_modes(super::$latch), SCHEDULES);
            }

            #[test]
            fn shuttle_few_preemptions() {
                shuttle::check_pct(random_modes(super::$latch), SCHEDULES, 3);
            }
        })*
    };
}

each_latch!(read_biased, announce, hand_over, near_last, adaptive, biased);
