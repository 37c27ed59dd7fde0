//! The catalogue of latches: what `bench latches` measures, what a latch-mix and `simulate here` simulate, and what
//! the command line's help prints.
//!
//! A *family* is a latch's algorithm; an experiment file names it (`latch = "hybrid"`). A *bench latch* is a family
//! with options. Only the LwLock has options: one bench latch for each variant of each of its switches, made from the
//! switches' own lists. So a new family is an entry of `latches!` below, and a new variant of an LwLock's switch is
//! here already. Latches that a program [adds](super::add_latch) come after those.

use std::rc::Rc;
use std::sync::{Mutex as StdMutex, PoisonError, RwLock as StdRwLock};

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, CasLoop, ClassOf, FetchAddBts, HybridLatch, LatchClass,
    Latched, LatchedBy, LwLock, LwLockOptions, OneWord, ReadBiasedLatch, ReadBiasedOptions, RwLock,
    SingleWake, SlotChoice, SrwMutex, SsuxLock, Unclassed, WriterVariant, lock_api,
};
use clearway_machine::{Native, Padded, Switch, WaitEvent};
use clearway_sim::Simulated;
use crossbeam_utils::sync::ShardedLock;
use parking_lot::{Mutex as ParkingLotMutex, RwLock as ParkingLotRwLock};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use super::native::{HybridWithWords, Pair};
use super::point::{self, Measured, Point, Torn};
use super::simulated::{LatchWithWords, OptimisticReads, PollThenSleep, SleepAtOnce, SpinKind, with_words};

/// The modes of a latch, which decide what it is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Modes {
    ReaderWriter,
    /// Measured without readers only.
    Mutex,
}

/// Makes an idle latch with two words behind it, inside of a simulation.
type MakeSimulated = fn(LwLockOptions, SpinKind) -> Rc<dyn LatchWithWords>;

/// An algorithm of the catalogue.
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) text: &'static str,
    pub(super) modes: Modes,
    /// Bytes of the latch alone.
    pub(super) bytes: usize,
    pub(super) measure: fn(LwLockOptions, &Point) -> Result<Measured, Torn>,
    /// None: a lock of another library, which runs natively only.
    pub(super) simulated: Option<MakeSimulated>,
}

/// The class of our native latches that want one.
static CLASS: LatchClass = LatchClass::new("bench", WaitEvent::UserLatch, 0);

/// The classes of our native latches.
pub(crate) fn classes() -> [&'static LatchClass; 2] {
    [&CLASS, Unclassed::class()]
}

/// An entry a latch: its text, how it is built natively with a [`Pair`] behind it, and how it is built on the
/// simulated machine. `C` is the simulated latch's class.
macro_rules! latches {
    ($(
        $(#[doc = $text:literal])+
        $modes:ident $name:literal, $bytes:expr, |$options:ident|
            native: $native:ty = $new_native:expr
            $(, simulated: $new_simulated:expr)?;
    )+) => {
        const CATALOGUE: &[Entry] = &[$(
            Entry {
                name: $name,
                text: concat!($($text),+).trim_ascii(),
                modes: Modes::$modes,
                bytes: $bytes,
                measure: |$options, point| {
                    let _ = $options;
                    // From the start of a line, wherever the stack is: which of its words share a line is then
                    // always the same.
                    let latch: Padded<$native> = Padded($new_native);
                    point::measure(point, &latch.0)
                },
                simulated: latches!(@simulated $options $($new_simulated)?),
            },
        )+];
    };
    (@simulated $options:ident) => { None };
    (@simulated $options:ident $new:expr) => {
        Some(|options, spin| {
            fn of_class<C: ClassOf>($options: LwLockOptions) -> Rc<dyn LatchWithWords> {
                let _ = $options;
                with_words($new)
            }
            match spin {
                SpinKind::Adaptive => of_class::<PollThenSleep>(options),
                SpinKind::None => of_class::<SleepAtOnce>(options),
            }
        })
    };
}

fn by_worker(lwlock: LwLockOptions, writer: WriterVariant) -> ReadBiasedOptions {
    ReadBiasedOptions {
        writer,
        ..lwlock.into()
    }
}

fn by_core(lwlock: LwLockOptions, writer: WriterVariant) -> ReadBiasedOptions {
    ReadBiasedOptions {
        slot: SlotChoice::Core,
        ..by_worker(lwlock, writer)
    }
}

fn read_biased(lwlock: LwLockOptions, writer: WriterVariant) -> LatchedBy<ReadBiasedLatch, Pair> {
    LatchedBy::with_latch(
        ReadBiasedLatch::new(&CLASS, by_worker(lwlock, writer)),
        Pair::default(),
    )
}

fn read_biased_by_core<const K: usize>(
    lwlock: LwLockOptions,
    writer: WriterVariant,
) -> LatchedBy<ReadBiasedLatch<K>, Pair> {
    LatchedBy::with_latch(
        ReadBiasedLatch::new(&CLASS, by_core(lwlock, writer)),
        Pair::default(),
    )
}

fn adaptive_by_core(lwlock: LwLockOptions) -> AdaptiveOptions {
    AdaptiveOptions {
        slot: SlotChoice::Core,
        ..adaptive(lwlock)
    }
}

fn adaptive(lwlock: LwLockOptions) -> AdaptiveOptions {
    AdaptiveOptions {
        lwlock,
        ..AdaptiveOptions::default()
    }
}

fn never_biased(lwlock: LwLockOptions) -> AdaptiveOptions {
    AdaptiveOptions {
        bias: BiasPolicy::Never,
        ..adaptive(lwlock)
    }
}

fn biased(lwlock: LwLockOptions) -> AdaptiveOptions {
    AdaptiveOptions {
        bias: BiasPolicy::Always,
        ..adaptive(lwlock)
    }
}

/// ShardedLock's own words, a boxed slice of shards and one word of poison; and its shards on the heap, 8 of
/// a std lock each on cache lines of their own.
const SHARDED: usize = size_of::<ShardedLock<()>>() + 8 * 128;

const SRW_MUTEX: usize = size_of::<SrwMutex>();

type Srw<P> = lock_api::Mutex<SrwMutex<Unclassed, Native, P>, Pair>;

type TwoWords = lock_api::RwLock<SsuxLock<Unclassed, Native, SingleWake>, Pair>;

latches! {
    /// An LwLock.
    ReaderWriter "lwlock", size_of::<LwLock>(), |options|
        native: Latched<Pair> = Latched::new(&CLASS, options, Pair::default()),
        simulated: LwLock::<Simulated>::new(C::class(), options);
    /// An LwLock cut into 16, of which a reader takes one and a writer all.
    ReaderWriter "read-biased", size_of::<ReadBiasedLatch>(), |options|
        native: LatchedBy<ReadBiasedLatch, Pair> =
            LatchedBy::with_latch(ReadBiasedLatch::new(&CLASS, options), Pair::default()),
        simulated: ReadBiasedLatch::<16, Simulated>::new(C::class(), options);
    /// As read-biased; a writer announces itself in all slots and then waits once.
    ReaderWriter "read-biased-announce", size_of::<ReadBiasedLatch>(), |options|
        native: LatchedBy<ReadBiasedLatch, Pair> = read_biased(options, WriterVariant::Announce),
        simulated: ReadBiasedLatch::<16, Simulated>::new(C::class(), by_worker(options, WriterVariant::Announce));
    /// As read-biased-announce; a writer that leaves hands the slots to one that waits.
    ReaderWriter "read-biased-hand-over", size_of::<ReadBiasedLatch>(), |options|
        native: LatchedBy<ReadBiasedLatch, Pair> = read_biased(options, WriterVariant::HandOver),
        simulated: ReadBiasedLatch::<16, Simulated>::new(C::class(), by_worker(options, WriterVariant::HandOver));
    /// As read-biased, with a slot a core, at most 32.
    ReaderWriter "read-biased-by-core", size_of::<ReadBiasedLatch<32>>(), |options|
        native: LatchedBy<ReadBiasedLatch<32>, Pair> = read_biased_by_core(options, WriterVariant::OneByOne),
        simulated: ReadBiasedLatch::<32, Simulated>::new(C::class(), by_core(options, WriterVariant::OneByOne));
    /// As read-biased-by-core with 16 slots; a writer announces itself.
    ReaderWriter "read-biased-announce-by-core", size_of::<ReadBiasedLatch>(), |options|
        native: LatchedBy<ReadBiasedLatch, Pair> = read_biased_by_core(options, WriterVariant::Announce),
        simulated: ReadBiasedLatch::<16, Simulated>::new(C::class(), by_core(options, WriterVariant::Announce));
    /// An LwLock that turns read-biased, and back, by what it measures.
    ReaderWriter "adaptive", size_of::<AdaptiveLatch>(), |options|
        native: LatchedBy<AdaptiveLatch, Pair> =
            LatchedBy::with_latch(AdaptiveLatch::with_options(&CLASS, adaptive(options)), Pair::default()),
        simulated: AdaptiveLatch::<16, Simulated>::with_options(C::class(), adaptive(options));
    /// As adaptive, with a slot a core, at most 32.
    ReaderWriter "adaptive-by-core", size_of::<AdaptiveLatch<32>>(), |options|
        native: LatchedBy<AdaptiveLatch<32>, Pair> =
            LatchedBy::with_latch(AdaptiveLatch::with_options(&CLASS, adaptive_by_core(options)), Pair::default()),
        simulated: AdaptiveLatch::<32, Simulated>::with_options(C::class(), adaptive_by_core(options));
    /// An adaptive latch that is never biased.
    ReaderWriter "adaptive-plain", size_of::<AdaptiveLatch>(), |options|
        native: LatchedBy<AdaptiveLatch, Pair> =
            LatchedBy::with_latch(AdaptiveLatch::with_options(&CLASS, never_biased(options)), Pair::default()),
        simulated: AdaptiveLatch::<16, Simulated>::with_options(C::class(), never_biased(options));
    /// An adaptive latch that is biased whatever it measures.
    ReaderWriter "adaptive-biased", size_of::<AdaptiveLatch>(), |options|
        native: LatchedBy<AdaptiveLatch, Pair> =
            LatchedBy::with_latch(AdaptiveLatch::with_options(&CLASS, biased(options)), Pair::default()),
        simulated: AdaptiveLatch::<16, Simulated>::with_options(C::class(), biased(options));
    /// A futex latch with a third mode, update, whose state is one word.
    ReaderWriter "ssux", size_of::<SsuxLock>(), |options|
        native: RwLock<Pair> = RwLock::new(Pair::default()),
        simulated: SsuxLock::<C, Simulated, OneWord>::idle();
    /// An ssux whose state is two words, as InnoDB's.
    ReaderWriter "ssux-two-words", size_of::<SsuxLock<Unclassed, Native, SingleWake>>(), |options|
        native: TwoWords = TwoWords::new(Pair::default()),
        simulated: SsuxLock::<C, Simulated, SingleWake>::idle();
    /// A hybrid latch, a word with a version, whose readers acquire it shared.
    ReaderWriter "hybrid", size_of::<HybridLatch>(), |options|
        native: HybridWithWords<false> = HybridWithWords::default(),
        simulated: HybridLatch::<C, Simulated>::idle();
    /// A hybrid latch whose readers acquire nothing unless a writer comes between.
    ReaderWriter "hybrid-optimistic", size_of::<HybridLatch>(), |options|
        native: HybridWithWords<true> = HybridWithWords::default(),
        simulated: OptimisticReads(HybridLatch::<C, Simulated>::idle());
    /// parking_lot's RwLock.
    ReaderWriter "parking_lot", size_of::<parking_lot::RawRwLock>(), |options|
        native: ParkingLotRwLock<Pair> = ParkingLotRwLock::new(Pair::default());
    /// The standard library's RwLock.
    ReaderWriter "std", size_of::<StdRwLock<()>>(), |options|
        native: StdRwLock<Pair> = StdRwLock::new(Pair::default());
    /// crossbeam's ShardedLock.
    ReaderWriter "sharded", SHARDED, |options|
        native: ShardedLock<Pair> = ShardedLock::new(Pair::default());
    /// A futex mutex whose word is changed by compare-and-swap.
    Mutex "srw-cas-loop", SRW_MUTEX, |options|
        native: Srw<CasLoop> = Srw::new(Pair::default()),
        simulated: SrwMutex::<C, Simulated, CasLoop>::idle();
    /// A futex mutex whose word is changed by instructions that cannot fail.
    Mutex "srw-fetch-add-bts", SRW_MUTEX, |options|
        native: Srw<FetchAddBts> = Srw::new(Pair::default()),
        simulated: SrwMutex::<C, Simulated, FetchAddBts>::idle();
    /// A futex mutex as before that wakes one waiter at a time.
    Mutex "srw-single-wake", SRW_MUTEX, |options|
        native: Srw<SingleWake> = Srw::new(Pair::default()),
        simulated: SrwMutex::<C, Simulated, SingleWake>::idle();
    /// parking_lot's Mutex.
    Mutex "parking_lot-mutex", size_of::<parking_lot::RawMutex>(), |options|
        native: ParkingLotMutex<Pair> = ParkingLotMutex::new(Pair::default());
    /// The standard library's Mutex.
    Mutex "std-mutex", size_of::<StdMutex<()>>(), |options|
        native: StdMutex<Pair> = StdMutex::new(Pair::default());
}

/// Entries that the program has added.
static ADDED: StdMutex<Vec<&'static Entry>> = StdMutex::new(Vec::new());

/// The entries of this catalogue, and after them those that the program has added.
fn entries() -> impl Iterator<Item = &'static Entry> {
    let added = ADDED.lock().unwrap_or_else(PoisonError::into_inner).clone();
    CATALOGUE.iter().chain(added)
}

/// Adds an entry, for the life of the process; `false`: there is a latch with its name.
pub(super) fn add(entry: Entry) -> bool {
    let mut added = ADDED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_taken =
        |other: &&'static Entry| BenchLatch::of(other).iter().any(|latch| latch.name == entry.name);
    if entry.name == LWLOCK
        || CATALOGUE
            .iter()
            .chain(added.iter().copied())
            .any(|other| is_taken(&other))
    {
        return false;
    }
    added.push(Box::leak(Box::new(entry)));
    true
}

/// The family that has options.
const LWLOCK: &str = "lwlock";

/// An algorithm of the catalogue that can be simulated; in an experiment file, its name. The default is the LwLock.
#[derive(Clone, Copy)]
pub struct LatchFamily(&'static Entry);

impl LatchFamily {
    /// Every family that can be simulated.
    pub fn all() -> impl Iterator<Item = Self> {
        entries().filter(|entry| entry.simulated.is_some()).map(Self)
    }

    /// Its name in an experiment file.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// A description, in a sentence.
    pub fn text(self) -> &'static str {
        self.0.text
    }

    /// An idle latch of the family with two words behind it; call it inside of the simulation.
    pub(crate) fn simulated(self, options: LwLockOptions, spin: SpinKind) -> Rc<dyn LatchWithWords> {
        let make = self
            .0
            .simulated
            .expect("a family is simulated: `all` leaves out the others");
        make(options, spin)
    }
}

impl Default for LatchFamily {
    fn default() -> Self {
        Self(&CATALOGUE[0])
    }
}

impl PartialEq for LatchFamily {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for LatchFamily {}

impl std::fmt::Debug for LatchFamily {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

impl Serialize for LatchFamily {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for LatchFamily {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::all().find(|family| family.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(Self::name).collect();
            D::Error::custom(format!(
                "there is no latch {name:?}; there are: {}",
                names.join(", ")
            ))
        })
    }
}

/// A latch that `bench latches` measures.
#[derive(Clone)]
pub(crate) struct BenchLatch {
    pub(crate) name: String,
    /// A description, in a sentence.
    pub(crate) text: String,
    entry: &'static Entry,
    options: LwLockOptions,
}

impl BenchLatch {
    /// Every one, in the order of the tables.
    pub(crate) fn all() -> Vec<Self> {
        entries().flat_map(Self::of).collect()
    }

    /// Those of an entry.
    fn of(entry: &'static Entry) -> Vec<Self> {
        if entry.name != LWLOCK {
            return vec![Self {
                name: entry.name.to_owned(),
                text: entry.text.to_owned(),
                entry,
                options: LwLockOptions::default(),
            }];
        }
        let variants = variants_of_lwlock().into_iter();
        let latches = variants.map(|(switch, variant, options)| Self {
            name: format!("{LWLOCK}-{variant}"),
            text: format!("An LwLock with {switch} = {variant}."),
            entry,
            options,
        });
        latches.collect()
    }

    /// Those that can be simulated too.
    pub(crate) fn all_simulated() -> Vec<Self> {
        let mut all = Self::all();
        all.retain(|latch| latch.entry.simulated.is_some());
        all
    }

    /// Bytes of the latch alone.
    pub(crate) fn bytes(&self) -> usize {
        self.entry.bytes
    }

    /// True if it can be measured with this share of readers, in percent.
    pub(crate) fn admits(&self, read_share: f64) -> bool {
        self.entry.modes == Modes::ReaderWriter || read_share == 0.0
    }

    /// The name of the latch that it is compared with: parking_lot's of the same kind.
    pub(super) fn reference(&self) -> &'static str {
        match self.entry.modes {
            Modes::Mutex => "parking_lot-mutex",
            Modes::ReaderWriter => "parking_lot",
        }
    }

    /// Measures one that is made anew for the point.
    pub(super) fn measure(&self, point: &Point) -> Result<Measured, Torn> {
        (self.entry.measure)(self.options, point)
    }

    /// An idle one with two words behind it, for one of [`all_simulated`](Self::all_simulated); call it inside of the
    /// simulation.
    pub(crate) fn simulated(&self) -> Rc<dyn LatchWithWords> {
        LatchFamily(self.entry).simulated(self.options, SpinKind::Adaptive)
    }
}

/// The names, for a message.
pub(crate) fn names(latches: &[BenchLatch]) -> String {
    let names: Vec<_> = latches.iter().map(|latch| latch.name.as_str()).collect();
    names.join(", ")
}

/// Switch, variant and options for every variant of every switch of an LwLock, with the default variants of the other
/// switches. The default of the whole latch is listed once, under the name of its algorithm.
fn variants_of_lwlock() -> Vec<(&'static str, &'static str, LwLockOptions)> {
    fn each<S: Switch>(
        with: impl Fn(S) -> LwLockOptions,
    ) -> impl Iterator<Item = (&'static str, &'static str, LwLockOptions)> {
        S::ALL
            .iter()
            .map(move |&variant| (S::NAME, variant.name(), with(variant)))
    }
    let default = LwLockOptions::default();
    let differs = |(_, _, options): &(_, _, LwLockOptions)| *options != default;
    each(|algorithm| LwLockOptions { algorithm, ..default })
        .chain(
            each(|shared_path| LwLockOptions {
                shared_path,
                ..default
            })
            .filter(differs),
        )
        .chain(each(|fairness| LwLockOptions { fairness, ..default }).filter(differs))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once_and_the_variants_of_the_lwlock_among_them() {
        let mut names: Vec<_> = BenchLatch::all().into_iter().map(|latch| latch.name).collect();
        for variant in [
            "lwlock-queued",
            "lwlock-single-cas",
            "lwlock-fetch-add",
            "lwlock-after-n-shared",
            "lwlock-hand-over",
            "lwlock-cohort",
        ] {
            assert!(names.iter().any(|name| name == variant), "{variant} in {names:?}");
        }
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
        assert_eq!(LatchFamily::default().name(), LWLOCK);
        assert!(
            BenchLatch::all()
                .iter()
                .all(|latch| names.iter().any(|name| name == latch.reference()))
        );
    }
}
