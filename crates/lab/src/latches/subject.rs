//! What is measured: each latch or lock behind one small trait, monomorphised, so that no call goes through a pointer
//! inside the measured loop.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex as StdMutex, PoisonError, RwLock as StdRwLock};

use clearway_latch::{
    AdaptiveLatch, CasLoop, ClassOf, FetchAddBts, HybridLatch, LatchClass, Latched, LatchedBy, LwLock,
    LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant, ReadBiasedLatch,
    ReaderWriterLatch, RwLock, SingleWake, SrwMutex, SsuxLock, Unclassed, lock_api,
};
use clearway_machine::{Native, Padded, WaitEvent};
use crossbeam_utils::sync::ShardedLock;
use parking_lot::{Mutex as ParkingLotMutex, RwLock as ParkingLotRwLock};

use super::point::{self, Measured, Point, Torn};

static CLASS: LatchClass = LatchClass::new("bench", WaitEvent::UserLatch, 0);

/// The classes of our latches here.
pub(crate) fn classes() -> [&'static LatchClass; 2] {
    [&CLASS, Unclassed::class()]
}

/// The data behind a latch: a writer adds one to both words.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pair(pub(super) [u64; 2]);

/// A latch over a [`Pair`].
pub(super) trait Guarded: Sync {
    /// Whether there is a latch at all.
    const EXCLUDES: bool = true;
    /// `look` may be called more than once, and only what the last call returned counts.
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R;
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R;
}

impl<L: ReaderWriterLatch> Guarded for LatchedBy<L, Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&self.shared())
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.exclusive())
    }
}

/// Ours and parking_lot's, behind the same container.
impl<L: lock_api::RawRwLock + Sync> Guarded for lock_api::RwLock<L, Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&lock_api::RwLock::read(self))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut lock_api::RwLock::write(self))
    }
}

/// Ours and parking_lot's, behind the same container.
impl<L: lock_api::RawMutex + Sync> Guarded for lock_api::Mutex<L, Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&self.lock())
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.lock())
    }
}

impl Guarded for StdRwLock<Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&StdRwLock::read(self).unwrap_or_else(PoisonError::into_inner))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut StdRwLock::write(self).unwrap_or_else(PoisonError::into_inner))
    }
}

impl Guarded for StdMutex<Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&self.lock().unwrap_or_else(PoisonError::into_inner))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Guarded for ShardedLock<Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&ShardedLock::read(self).unwrap_or_else(PoisonError::into_inner))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut ShardedLock::write(self).unwrap_or_else(PoisonError::into_inner))
    }
}

/// A hybrid latch beside its data, which are atomic words because an optimistic reader may see them change.
#[derive(Debug, Default)]
struct Hybrid<const OPTIMISTIC: bool> {
    latch: HybridLatch,
    words: [AtomicU64; 2],
}

impl<const OPTIMISTIC: bool> Hybrid<OPTIMISTIC> {
    #[inline]
    fn pair(&self) -> Pair {
        Pair([self.words[0].load(Relaxed), self.words[1].load(Relaxed)])
    }
}

impl<const OPTIMISTIC: bool> Guarded for Hybrid<OPTIMISTIC> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        if OPTIMISTIC {
            return self.latch.read(|| look(&self.pair()));
        }
        let _shared = self.latch.shared();
        look(&self.pair())
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        let _exclusive = self.latch.exclusive();
        let mut pair = self.pair();
        let result = change(&mut pair);
        self.words[0].store(pair.0[0], Relaxed);
        self.words[1].store(pair.0[1], Relaxed);
        result
    }
}

/// No latch, and new data in each turn: the cost of the bench's loop by itself. Kept data would add a store
/// that the next turn's load waits for. Beside a latch that wait is hidden by the locked instructions.
#[derive(Debug)]
struct Nothing;

impl Guarded for Nothing {
    const EXCLUDES: bool = false;

    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&Pair::default())
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut Pair::default())
    }
}

/// Measures the loop without a latch.
pub(super) fn measure_nothing(point: &Point) -> Result<Measured, Torn> {
    point::measure(point, &Nothing)
}

/// What a latch can do, and so with what it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ReaderWriter,
    /// Measured without readers only.
    Mutex,
}

/// A latch that can be measured.
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Bytes of the latch alone.
    pub(super) bytes: usize,
    pub(super) measure: fn(&Point) -> Result<Measured, Torn>,
}

impl Subject {
    /// What the latch of this name is compared with: parking_lot's of the same kind.
    pub(super) fn reference_of(name: &str) -> &'static str {
        match SUBJECTS.iter().find(|subject| subject.name == name) {
            Some(Subject {
                kind: Kind::Mutex, ..
            }) => "parking_lot-mutex",
            _ => "parking_lot",
        }
    }

    /// Whether it can be measured with this share of readers, in percent.
    pub(super) fn admits(&self, read_share: f64) -> bool {
        self.kind == Kind::ReaderWriter || read_share == 0.0
    }
}

/// ShardedLock's own words, a boxed slice of shards and one word of poison; and its shards on the heap, 8 of
/// a std lock each on cache lines of their own.
const SHARDED: usize = size_of::<ShardedLock<()>>() + 8 * 128;

/// A latch with the size of what it is without data, made anew for each point.
macro_rules! subject {
    ($kind:ident $name:literal, $bytes:expr, $type:ty = $new:expr) => {
        Subject {
            name: $name,
            kind: Kind::$kind,
            bytes: $bytes,
            measure: |point| {
                // From the start of a line, wherever the stack is: which of its words share a line is then
                // always the same.
                let latch: Padded<$type> = Padded($new);
                point::measure(point, &latch.0)
            },
        }
    };
}

fn lwlock(options: LwLockOptions) -> Latched<Pair> {
    Latched::new(&CLASS, options, Pair::default())
}

const PLAIN: LwLockOptions = LwLockOptions {
    algorithm: LwLockVariant::SingleCas,
    shared_path: LwLockSharedVariant::Cas,
    fairness: LwLockFairnessVariant::Barging,
};

type Srw<P> = lock_api::Mutex<SrwMutex<Unclassed, Native, P>, Pair>;

type TwoWords = lock_api::RwLock<SsuxLock<Unclassed, Native, SingleWake>, Pair>;

const LWLOCK: usize = size_of::<LwLock>();
const SRW_MUTEX: usize = size_of::<SrwMutex>();

pub(super) const SUBJECTS: &[Subject] = &[
    subject!(ReaderWriter "lwlock-queued", LWLOCK, Latched<Pair> =
        lwlock(LwLockOptions { algorithm: LwLockVariant::Queued, ..PLAIN })),
    subject!(ReaderWriter "lwlock-queued-scan", LWLOCK, Latched<Pair> =
        lwlock(LwLockOptions { algorithm: LwLockVariant::QueuedScan, ..PLAIN })),
    subject!(ReaderWriter "lwlock-single-cas", LWLOCK, Latched<Pair> = lwlock(PLAIN)),
    subject!(ReaderWriter "lwlock-fetch-add", LWLOCK, Latched<Pair> =
        lwlock(LwLockOptions { shared_path: LwLockSharedVariant::FetchAdd, ..PLAIN })),
    subject!(ReaderWriter "lwlock-after-n-shared", LWLOCK, Latched<Pair> =
        lwlock(LwLockOptions { fairness: LwLockFairnessVariant::AFTER_SHARED, ..PLAIN })),
    subject!(ReaderWriter "read-biased", size_of::<ReadBiasedLatch>(), LatchedBy<ReadBiasedLatch, Pair> =
        LatchedBy::with_latch(ReadBiasedLatch::new(&CLASS, PLAIN), Pair::default())),
    subject!(ReaderWriter "adaptive", size_of::<AdaptiveLatch>(), LatchedBy<AdaptiveLatch, Pair> =
        LatchedBy::with_latch(AdaptiveLatch::new(&CLASS), Pair::default())),
    subject!(ReaderWriter "ssux", size_of::<SsuxLock>(), RwLock<Pair> = RwLock::new(Pair::default())),
    subject!(ReaderWriter "ssux-two-words", size_of::<SsuxLock<Unclassed, Native, SingleWake>>(), TwoWords =
        TwoWords::new(Pair::default())),
    subject!(ReaderWriter "hybrid", size_of::<HybridLatch>(), Hybrid<false> = Hybrid::default()),
    subject!(ReaderWriter "hybrid-optimistic", size_of::<HybridLatch>(), Hybrid<true> = Hybrid::default()),
    subject!(ReaderWriter "parking_lot", size_of::<parking_lot::RawRwLock>(), ParkingLotRwLock<Pair> =
        ParkingLotRwLock::new(Pair::default())),
    subject!(ReaderWriter "std", size_of::<StdRwLock<()>>(), StdRwLock<Pair> = StdRwLock::new(Pair::default())),
    subject!(ReaderWriter "sharded", SHARDED, ShardedLock<Pair> = ShardedLock::new(Pair::default())),
    subject!(Mutex "srw-cas-loop", SRW_MUTEX, Srw<CasLoop> = Srw::new(Pair::default())),
    subject!(Mutex "srw-fetch-add-bts", SRW_MUTEX, Srw<FetchAddBts> = Srw::new(Pair::default())),
    subject!(Mutex "srw-single-wake", SRW_MUTEX, Srw<SingleWake> = Srw::new(Pair::default())),
    subject!(Mutex "parking_lot-mutex", size_of::<parking_lot::RawMutex>(), ParkingLotMutex<Pair> =
        ParkingLotMutex::new(Pair::default())),
    subject!(Mutex "std-mutex", size_of::<StdMutex<()>>(), StdMutex<Pair> = StdMutex::new(Pair::default())),
];
