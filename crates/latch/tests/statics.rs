//! Latches that are made by the compiler.

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, LatchClass, Latched, LatchedBy, LwLockOptions,
    ReadBiasedLatch, ReadBiasedOptions, ReaderWriterLatch, SlotChoice, WriterVariant,
};
use clearway_machine::WaitEvent;

static CLASS: LatchClass = LatchClass::new("InStatic", WaitEvent::UserLatch, 0);
static NUMBERS: Latched<[u64; 4]> = Latched::in_static(&CLASS, LwLockOptions::BEST, [0; 4]);

#[test]
fn a_latch_in_a_static_excludes_and_is_one_of_its_class() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1_000).for_each(|at| NUMBERS.exclusive()[at % 4] += 1));
        }
    });
    assert_eq!(*NUMBERS.shared(), [1_000; 4]);
    let counts = CLASS.statistics();
    assert_eq!(counts.name, "InStatic");
    if let (Some(exclusive), Some(shared)) = (counts.exclusive.acquisitions, counts.shared.acquisitions) {
        assert_eq!((exclusive, shared), (4_000, 1));
    }
}

static MANY_READERS: LatchClass = LatchClass::new("ManyReaders", WaitEvent::UserLatch, 0);
const NEVER: AdaptiveOptions = AdaptiveOptions {
    lwlock: LwLockOptions::BEST,
    bias: BiasPolicy::Never,
    slot: SlotChoice::Worker,
};
const ADAPTIVE: AdaptiveOptions = AdaptiveOptions {
    lwlock: LwLockOptions::BEST,
    bias: BiasPolicy::Always,
    slot: SlotChoice::Cpu,
};
static ROUTES: LatchedBy<AdaptiveLatch, u64> =
    LatchedBy::in_static_with(AdaptiveLatch::in_static(&MANY_READERS, ADAPTIVE), 0);

const READ_BIASED: ReadBiasedOptions = ReadBiasedOptions {
    lwlock: LwLockOptions::BEST,
    slot: SlotChoice::Worker,
    writer: WriterVariant::HandOver,
};
static NAMES: LatchedBy<ReadBiasedLatch<3>, u64> =
    LatchedBy::in_static_with(ReadBiasedLatch::in_static(&MANY_READERS, READ_BIASED), 0);

/// Adds under `latch` and reads by turns, from four threads.
fn contend<L: ReaderWriterLatch + Sync>(latch: &LatchedBy<L, u64>) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let before = *latch.shared();
                    *latch.exclusive() += 1;
                    assert!(*latch.shared() > before);
                }
            });
        }
    });
    assert_eq!(*latch.shared(), 4_000);
}

/// A latch's text without the places of counts, which a latch in a static learns later.
fn text(latch: &impl std::fmt::Debug) -> String {
    let text = format!("{latch:?}");
    let parts = text.split("place: ");
    parts
        .map(|part| part.trim_start_matches(char::is_numeric))
        .collect()
}

#[test]
fn latches_of_many_readers_in_a_static_are_as_others_of_their_options() {
    static PLAIN: AdaptiveLatch = AdaptiveLatch::in_static(&MANY_READERS, NEVER);
    assert!(ROUTES.latch().is_biased() && !PLAIN.is_biased());
    contend(&ROUTES);
    contend(&NAMES);
    let made = ReadBiasedLatch::<3>::new(&MANY_READERS, READ_BIASED);
    assert_eq!(text(NAMES.latch()), text(&made), "idle again");
    let made: AdaptiveLatch = AdaptiveLatch::with_options(&MANY_READERS, NEVER);
    assert_eq!(text(&PLAIN), text(&made));
}
