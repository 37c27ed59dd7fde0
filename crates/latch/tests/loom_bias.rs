//! The read-biased latches under loom: every schedule of a few workers within a bound of preemptions, under
//! weak memory.
//!
//! A worker that is left asleep is reported by loom as a deadlock; data that two workers reach without the
//! latch having ordered them is reported as a causality violation. Each test names mutations of the code that
//! it was seen to catch. Survived: not clearing `WRITER_SLEEPS` after a sleep, which costs needless wake-ups
//! and nothing else.
//!
//! `cargo test -p clearway-latch --features loom --test loom_bias --release`

use std::sync::Arc;

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, LatchClass, LwLockFairnessVariant, LwLockOptions,
    LwLockVariant, ReadBiasedLatch, ReadBiasedOptions, ReaderWriterLatch, SpinPolicy, WriterVariant,
};
use clearway_machine::{DataCell, Loom, Machine, WaitEvent};
use loom::thread;

/// No worker polls, so every wait is a sleep, where wake-ups can be lost.
static CLASS: LatchClass = LatchClass::new("loom", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);

/// Of latches whose readers poll for a writer before they queue.
static POLLING: LatchClass =
    LatchClass::new("polling", WaitEvent::UserLatch, 0).spinning(SpinPolicy::Fixed(1));

type Cell = <Loom as Machine>::Data<u64>;
type ReadBiased = ReadBiasedLatch<2, Loom>;

fn read_biased_with(writer: WriterVariant, lwlock: impl Into<LwLockOptions>) -> ReadBiased {
    let options = ReadBiasedOptions {
        writer,
        ..lwlock.into().into()
    };
    ReadBiasedLatch::new(&CLASS, options)
}

/// Slots whose sleepers dequeue themselves, and may be handed the slot meanwhile.
fn queued_hand_over() -> LwLockOptions {
    LwLockOptions {
        algorithm: LwLockVariant::Queued,
        fairness: LwLockFairnessVariant::HandOver,
        ..LwLockOptions::default()
    }
}

fn one_by_one() -> ReadBiased {
    read_biased_with(WriterVariant::OneByOne, LwLockVariant::SingleCas)
}

fn one_by_one_queued() -> ReadBiased {
    read_biased_with(WriterVariant::OneByOne, queued_hand_over())
}

/// Slots that a writer claims when it waits for one.
fn one_by_one_claims() -> ReadBiased {
    let lwlock = LwLockOptions {
        fairness: LwLockFairnessVariant::WriterClaims,
        ..LwLockOptions::default()
    };
    read_biased_with(WriterVariant::OneByOne, lwlock)
}

fn announce() -> ReadBiased {
    read_biased_with(WriterVariant::Announce, LwLockVariant::SingleCas)
}

fn announce_queued() -> ReadBiased {
    read_biased_with(WriterVariant::Announce, queued_hand_over())
}

/// Under a checker it hands over once, then gives back.
fn hand_over() -> ReadBiased {
    read_biased_with(WriterVariant::HandOver, LwLockVariant::SingleCas)
}

fn hand_over_after_n_shared() -> ReadBiased {
    let lwlock = LwLockOptions {
        fairness: LwLockFairnessVariant::AfterShared,
        ..LwLockOptions::default()
    };
    read_biased_with(WriterVariant::HandOver, lwlock)
}

fn adaptive_with(
    class: &'static LatchClass,
    bias: BiasPolicy,
    fairness: LwLockFairnessVariant,
) -> AdaptiveLatch<2, Loom> {
    let options = AdaptiveOptions {
        bias,
        lwlock: LwLockOptions {
            fairness,
            ..LwLockOptions::default()
        },
        ..AdaptiveOptions::default()
    };
    AdaptiveLatch::with_options(class, options)
}

fn adaptive_of(class: &'static LatchClass, bias: BiasPolicy) -> AdaptiveLatch<2, Loom> {
    adaptive_with(class, bias, LwLockFairnessVariant::Barging)
}

/// Under a checker it turns at every occasion.
fn adaptive() -> AdaptiveLatch<2, Loom> {
    adaptive_of(&CLASS, BiasPolicy::Adaptive)
}

/// Biased to begin with, and turned plain by its second writer if there were not enough readers.
fn turning() -> AdaptiveLatch<2, Loom> {
    let latch = adaptive();
    latch.expect_readers();
    latch
}

/// As `turning`, and its word is handed over to a worker that has slept for long.
fn turning_hand_over() -> AdaptiveLatch<2, Loom> {
    let latch = adaptive_with(&CLASS, BiasPolicy::Adaptive, LwLockFairnessVariant::HandOver);
    latch.expect_readers();
    latch
}

/// As `turning`, and a writer that waits for its word claims it.
fn turning_claims() -> AdaptiveLatch<2, Loom> {
    let latch = adaptive_with(&CLASS, BiasPolicy::Adaptive, LwLockFairnessVariant::WriterClaims);
    latch.expect_readers();
    latch
}

fn biased() -> AdaptiveLatch<2, Loom> {
    adaptive_of(&CLASS, BiasPolicy::Always)
}

/// As `biased`, and its readers poll for a writer.
fn biased_polling() -> AdaptiveLatch<2, Loom> {
    adaptive_of(&POLLING, BiasPolicy::Always)
}

/// As `turning`, and its readers poll for a writer.
fn turning_polling() -> AdaptiveLatch<2, Loom> {
    let latch = adaptive_of(&POLLING, BiasPolicy::Adaptive);
    latch.expect_readers();
    latch
}

/// A latch and data under it.
struct Shared<L> {
    latch: L,
    data: Cell,
}

impl<L: ReaderWriterLatch> Shared<L> {
    fn add_one(&self) {
        // SAFETY: the caller holds the latch exclusively; loom fails the test if that does not order the
        // accesses.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn read(&self) -> u64 {
        // SAFETY: the caller holds the latch; loom fails the test if that does not order the accesses.
        self.data.with(|data| unsafe { *data })
    }

    fn write_once(&self) {
        let _guard = self.latch.exclusive();
        self.add_one();
    }

    fn read_once(&self) -> u64 {
        let _guard = self.latch.shared();
        self.read()
    }
}

/// Runs `worker` in `workers` threads, one of them the model's own, and `after` when they are done.
fn explore<L: ReaderWriterLatch + 'static>(
    workers: usize,
    preemptions: usize,
    latch: impl Fn() -> L + Send + Sync + 'static,
    worker: impl Fn(usize, &Shared<L>) + Send + Sync + Copy + 'static,
    after: impl Fn(&Shared<L>) + Send + Sync + 'static,
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        // The machine's globals come to life before there is a thread to race with; worker 0 is the model's
        // own thread.
        Loom::workers();
        Loom::worker();
        let shared = Arc::new(Shared {
            latch: latch(),
            data: Cell::new(0),
        });
        let threads: Vec<_> = (1..workers)
            .map(|number| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || worker(number, &shared))
            })
            .collect();
        worker(0, &shared);
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(!shared.latch.is_held());
        after(&shared);
    });
}

/// One writer, the others read.
///
/// Mutations seen to fail here: the barrier of the reader or of the writer taken out (R3); the reader's
/// second look (d) left out, asking only for BIASED, or `Relaxed`; exclusive not waiting for the slots; a
/// slot left or found empty `Relaxed` (R4); BIASED cleared by a reader that goes (R2); `is_empty` or `drain`
/// passing over a slot; read-biased: exclusive passing over a slot (R1). All as causality violations.
fn readers_and_writer<L: ReaderWriterLatch + 'static>(latch: fn() -> L, workers: usize, preemptions: usize) {
    explore(
        workers,
        preemptions,
        latch,
        |number, shared| {
            if number == 0 {
                shared.write_once();
            } else {
                assert!(shared.read_once() <= 1);
            }
        },
        |_| (),
    );
}

/// One reader, the others write.
///
/// Mutations seen to fail here: as above, of the barriers, looks, slots and orders; `WRITER_SLEEPS` set
/// `Relaxed`.
fn writers_and_reader<L: ReaderWriterLatch + 'static>(latch: fn() -> L, workers: usize, preemptions: usize) {
    explore(
        workers,
        preemptions,
        latch,
        |number, shared| {
            if number == 1 {
                assert!(shared.read_once() <= 2);
            } else {
                shared.write_once();
            }
        },
        move |shared| {
            assert_eq!(shared.read_once(), workers as u64 - 1);
        },
    );
}

/// Three writers, of which one may hand the slots to the next, which may give them back; then the model's own thread
/// reads.
///
/// Mutations seen to fail here: hand-over: handing over though no writer waits (the latch stays held), a count of
/// waiting writers that is not taken back (the same), giving the slots back without forgetting that they were handed
/// over (causality violation).
fn three_writers<L: ReaderWriterLatch + 'static>(latch: fn() -> L, preemptions: usize) {
    explore(
        3,
        preemptions,
        latch,
        |_, shared| shared.write_once(),
        |shared| assert_eq!(shared.read_once(), 3),
    );
}

/// A conditional writer, a conditional reader, and a writer that waits; in the end the latch is free.
///
/// Mutations seen to fail here: `try_exclusive` without its barrier, or ignoring the slots (causality
/// violation); the last reader making no wake-up call, or the writer sleeping without comparing the slot's
/// word (deadlock); read-biased: a rollback that forgets a slot, or that releases without wake-ups
/// (deadlock).
fn conditional<L: ReaderWriterLatch + 'static>(latch: fn() -> L, preemptions: usize) {
    explore(
        3,
        preemptions,
        latch,
        |number, shared| match number {
            0 => {
                if let Some(_guard) = shared.latch.try_exclusive() {
                    shared.add_one();
                }
            }
            1 => {
                if let Some(_guard) = shared.latch.try_shared() {
                    assert!(shared.read() <= 2);
                }
            }
            _ => shared.write_once(),
        },
        |shared| assert!(shared.latch.try_exclusive().is_some()),
    );
}

/// A conditional writer that a reader may refuse, while another reader waits for a part that the attempt has
/// taken.
///
/// Mutations seen to fail here: `try_exclusive` without its barrier, or ignoring the slots (causality
/// violation); adaptive: rollback without wake-ups (deadlock).
fn rollback<L: ReaderWriterLatch + 'static>(latch: fn() -> L, preemptions: usize) {
    explore(
        3,
        preemptions,
        latch,
        |number, shared| {
            if number == 0 {
                if let Some(_guard) = shared.latch.try_exclusive() {
                    shared.add_one();
                }
            } else {
                assert!(shared.read_once() <= 1);
            }
        },
        |shared| assert!(shared.latch.try_exclusive().is_some()),
    );
}

/// A conditional writer that is refused late, because a reader enters during the attempt. The same reader
/// comes once more, and may wait for the attempt. (No code should do that. Here it saves a third worker, and
/// so schedules.)
///
/// Mutations seen to fail here: adaptive: rollback without wake-ups (deadlock).
fn rollback_while_a_reader_waits<L: ReaderWriterLatch + 'static>(latch: fn() -> L, preemptions: usize) {
    explore(
        2,
        preemptions,
        latch,
        |number, shared| {
            if number == 0 {
                if let Some(_guard) = shared.latch.try_exclusive() {
                    shared.add_one();
                }
            } else {
                let _guard = shared.latch.shared();
                let seen = shared.read();
                assert_eq!(shared.read_once(), seen);
            }
        },
        |shared| assert!(shared.latch.try_exclusive().is_some()),
    );
}

/// Each worker reads, then writes.
///
/// Mutations seen to fail here: the barriers and looks as above; BIASED cleared before the slots were seen
/// empty (R2); a visit that is not undone, the last reader making no wake-up call, `WRITER_SLEEPS` not set
/// before the sleep (deadlock); read-biased: every second worker taking the slots in descending order (R2,
/// deadlock).
fn each_reads_and_writes<L: ReaderWriterLatch + 'static>(latch: fn() -> L, preemptions: usize) {
    explore(
        2,
        preemptions,
        latch,
        |_, shared| {
            assert!(shared.read_once() <= 2);
            shared.write_once();
            assert!(shared.read_once() >= 1);
        },
        |shared| {
            assert_eq!(shared.read_once(), 2);
        },
    );
}

/// One worker writes three times, another reads. An adaptive latch that begins biased begins to count at the
/// first, is turned plain by the second, and the third comes in by the plain path.
///
/// Mutations seen to fail here: the reader's second look asking only for EXCLUSIVE (R1); BIASED cleared
/// before the slots were seen empty (R2). Both as causality violations. Nothing else was seen to catch the
/// first.
fn three_writes_and_a_reader<L: ReaderWriterLatch + 'static>(latch: fn() -> L, preemptions: usize) {
    explore(
        2,
        preemptions,
        latch,
        |number, shared| {
            if number == 0 {
                for _ in 0..3 {
                    shared.write_once();
                }
            } else {
                assert!(shared.read_once() <= 3);
            }
        },
        |_| (),
    );
}

/// One writer and one reader, of whose futex waits the first two each end though no worker has woken them.
///
/// Mutations seen to fail here: a wait for the readers of a slot, or of all slots, that is not in a loop (causality
/// violation).
fn waits_end_early<L: ReaderWriterLatch + 'static>(latch: fn() -> L, preemptions: usize) {
    explore(
        2,
        preemptions,
        latch,
        |number, shared| {
            Loom::end_waits_early(2);
            if number == 0 {
                shared.write_once();
            } else {
                assert!(shared.read_once() <= 1);
            }
        },
        |_| (),
    );
}

/// The cases, in a module for each latch.
macro_rules! each_latch {
    ($latches:tt $cases:tt) => {
        each_latch!(@latches $latches $cases);
    };
    (@latches { $($latch:ident)* } $cases:tt) => {
        $(each_latch!(@cases $latch $cases);)*
    };
    (@cases $latch:ident { $($name:ident => $case:ident($($argument:expr),*);)* }) => {
        mod $latch {
            use super::*;
            $(#[test] fn $name() { $case(super::$latch, $($argument),*) })*
        }
    };
}

each_latch! {
    {
        one_by_one one_by_one_queued one_by_one_claims announce announce_queued hand_over hand_over_after_n_shared
        adaptive turning turning_hand_over turning_claims biased
    }
    {
    loom_reader_and_writer => readers_and_writer(2, 3);
    loom_readers_and_writer => readers_and_writer(3, 2);
    loom_two_writers => writers_and_reader(2, 3);
    loom_writers_and_reader => writers_and_reader(3, 1);
    loom_three_writers => three_writers(2);
    loom_conditional => conditional(2);
    loom_rollback => rollback(2);
    loom_rollback_while_a_reader_waits => rollback_while_a_reader_waits(3);
    loom_three_writes_and_a_reader => three_writes_and_a_reader(2);
    loom_each_reads_and_writes => each_reads_and_writes(2);
    loom_waits_end_early => waits_end_early(3);
    }
}

/// A writer waits for a plain latch, and its reader turns it biased before it leaves and comes back by a slot.
///
/// Mutation seen to fail here: a writer that had to wait takes the word that it first found for the one that granted it,
/// so it does not look at the slots (causality violation).
#[test]
fn loom_bias_comes_while_a_writer_waits() {
    explore(
        2,
        3,
        adaptive,
        |number, shared| {
            if number == 0 {
                shared.write_once();
            } else {
                let guard = shared.latch.shared();
                shared.latch.expect_readers();
                drop(guard);
                assert!(shared.read_once() <= 1);
            }
        },
        |_| (),
    );
}

/// A writer waits for a plain latch. Its reader turns it biased, comes in by a slot as well, and then hands the latch over:
/// the writer waits for the slot.
///
/// Mutation seen to fail here: the writer takes the word from before its sleep for the one that granted it (causality
/// violation).
#[test]
fn loom_bias_comes_while_a_writer_is_handed_the_latch() {
    explore(
        2,
        3,
        || adaptive_with(&CLASS, BiasPolicy::Adaptive, LwLockFairnessVariant::HandOver),
        |number, shared| {
            if number == 0 {
                shared.write_once();
            } else {
                let plain = shared.latch.shared();
                shared.latch.expect_readers();
                let by_slot = shared.latch.shared();
                // The writer becomes overdue: a checker's clock goes by its calls.
                for _ in 0..8 {
                    Loom::now();
                }
                drop(plain);
                assert!(shared.read() <= 1);
                drop(by_slot);
            }
        },
        |_| (),
    );
}

/// Readers that find a writer at a biased latch poll, and come in by a slot afterwards, or queue.
mod readers_that_poll {
    use super::*;

    #[test]
    fn loom_reader_and_writer() {
        readers_and_writer(biased_polling, 2, 3);
    }

    #[test]
    fn loom_readers_and_writer() {
        readers_and_writer(biased_polling, 3, 1);
    }

    #[test]
    fn loom_each_reads_and_writes() {
        each_reads_and_writes(biased_polling, 2);
    }

    /// Mutation seen to fail here: a reader that polled for the writer of a latch that has turned plain holds it by nothing.
    #[test]
    fn loom_three_writes_and_a_reader() {
        three_writes_and_a_reader(turning_polling, 2);
    }
}
