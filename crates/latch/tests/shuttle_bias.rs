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
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, LatchClass, LwLockFairnessVariant, LwLockOptions,
    LwLockSharedVariant, LwLockVariant, ReadBiasedLatch, ReadBiasedOptions, ReaderWriterLatch, WriterVariant,
};
use clearway_machine::{DataCell, Machine, Shuttle, WaitEvent};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

static CLASS: LatchClass = LatchClass::new("shuttle", WaitEvent::UserLatch, 0);

const WORKERS: usize = 6;
const STEPS: usize = 4;

/// Of all combinations of one test together.
const SCHEDULES: usize = 2_000;

/// Under a checker a reader's count of polls is all that tells `brief-polls` from `single-cas`, and it is cut to the same.
fn differs_here(algorithm: LwLockVariant) -> bool {
    algorithm != LwLockVariant::BriefPolls
}

/// The options of the LwLocks of a latch, under one fairness.
fn settings(fairness: LwLockFairnessVariant) -> impl Iterator<Item = LwLockOptions> {
    LwLockOptions::all()
        .filter(move |options| options.fairness == fairness && differs_here(options.algorithm))
}

/// The settings of a latch whose slots do without `fetch-add`, as [`settings`].
fn settings_by_cas(fairness: LwLockFairnessVariant) -> impl Iterator<Item = LwLockOptions> {
    settings(fairness).filter(|options| options.shared_path == LwLockSharedVariant::Cas)
}

fn read_biased(writer: WriterVariant, lwlock: LwLockOptions) -> ReadBiasedLatch<2, Shuttle> {
    let options = ReadBiasedOptions {
        writer,
        ..lwlock.into()
    };
    ReadBiasedLatch::new(&CLASS, options)
}

fn adaptive(bias: BiasPolicy, lwlock: LwLockOptions) -> AdaptiveLatch<2, Shuttle> {
    let options = AdaptiveOptions {
        bias,
        lwlock,
        ..AdaptiveOptions::default()
    };
    AdaptiveLatch::with_options(&CLASS, options)
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

/// Has each worker repeat `step`; returns the number of times that they have added one.
fn workers_of<L: ReaderWriterLatch + 'static>(
    shared: &Arc<Shared<L>>,
    step: impl Fn(usize, &Shared<L>) -> u64 + Send + Sync + Copy + 'static,
) -> u64 {
    let workers: Vec<_> = (0..WORKERS)
        .map(|number| {
            let shared = Arc::clone(shared);
            thread::spawn(move || (0..STEPS).map(|_| step(number, &shared)).sum::<u64>())
        })
        .collect();
    workers.into_iter().map(|worker| worker.join().unwrap()).sum()
}

fn explored<L: ReaderWriterLatch + 'static>(
    latch: impl Fn() -> L + Send + Sync + 'static,
    step: impl Fn(usize, &Shared<L>) -> u64 + Send + Sync + Copy + 'static,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let shared = Arc::new(Shared {
            latch: latch(),
            data: DataCell::new(0),
        });
        let added = workers_of(&shared, step);
        assert!(!shared.latch.is_held());
        let _guard = shared.latch.try_exclusive().unwrap();
        assert_eq!(shared.read(), added);
    }
}

/// Random schedules of workers that may do anything, and schedules with few preemptions of half that write and half that
/// read: there sleepers wait for long, and latches are handed over.
fn check<L: ReaderWriterLatch + 'static>(
    settings: impl Iterator<Item = LwLockOptions>,
    latch: impl Fn(LwLockOptions) -> L + Send + Sync + Copy + 'static,
) {
    let settings: Vec<_> = settings.collect();
    let schedules = SCHEDULES / settings.len();
    for lwlock in settings {
        println!("{lwlock:?}");
        let anything = explored(move || latch(lwlock), |_, shared| shared.random_step());
        shuttle::check_random(anything, schedules / 2);
        let writers_and_readers = explored(
            move || latch(lwlock),
            |number, shared| {
                if number % 2 == 0 {
                    let _guard = shared.latch.exclusive();
                    shared.add_one()
                } else {
                    let _guard = shared.latch.shared();
                    shared.read();
                    0
                }
            },
        );
        shuttle::check_pct(writers_and_readers, schedules / 2, 3);
    }
}

/// A test for each fairness, of all that can be set beside it.
macro_rules! each_latch {
    ($($name:ident: $settings:ident, $latch:expr;)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn shuttle_barging() {
                check($settings(LwLockFairnessVariant::Barging), $latch);
            }

            #[test]
            fn shuttle_after_n_shared() {
                check($settings(LwLockFairnessVariant::AfterShared), $latch);
            }

            /// Mutation seen to fail here: a reader that was granted a slot twice gives one back without telling the
            /// writer that has counted it (deadlock).
            #[test]
            fn shuttle_hand_over() {
                check($settings(LwLockFairnessVariant::HandOver), $latch);
            }

            #[test]
            fn shuttle_writer_claims() {
                check($settings(LwLockFairnessVariant::WriterClaims), $latch);
            }
        })*
    };
}

each_latch! {
    one_by_one: settings, |lwlock| read_biased(WriterVariant::OneByOne, lwlock);
    announce: settings_by_cas, |lwlock| read_biased(WriterVariant::Announce, lwlock);
    hand_over: settings_by_cas, |lwlock| read_biased(WriterVariant::HandOver, lwlock);
    adapting: settings, |lwlock| adaptive(BiasPolicy::Adaptive, lwlock);
    biased: settings, |lwlock| adaptive(BiasPolicy::Always, lwlock);
}
