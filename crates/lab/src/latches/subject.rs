//! What is measured: each latch or lock behind one small trait, monomorphised, so that no call goes through a pointer
//! inside the measured loop.

use std::sync::RwLock as StdRwLock;

use clearway_latch::{LatchClass, Latched, LwLockAlgorithm};
use clearway_machine::{Native, WaitEvent};
use crossbeam_utils::sync::ShardedLock;
use parking_lot::RwLock as ParkingLotRwLock;

use super::point::{self, Measured, Point, Torn};

static CLASS: LatchClass = LatchClass::new("bench", WaitEvent::UserLatch, 0);

/// The data behind a latch: a writer adds one to both words.
#[derive(Debug, Default)]
pub(super) struct Pair(pub(super) [u64; 2]);

/// A reader-writer latch over a [`Pair`].
pub(super) trait Guarded: Sync {
    fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R;
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R;
}

impl Guarded for Latched<Pair, Native> {
    #[inline]
    fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R {
        look(&self.shared())
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.exclusive())
    }
}

impl Guarded for ParkingLotRwLock<Pair> {
    #[inline]
    fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R {
        look(&self.read())
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.write())
    }
}

impl Guarded for StdRwLock<Pair> {
    #[inline]
    fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R {
        look(&self.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.write().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

impl Guarded for ShardedLock<Pair> {
    #[inline]
    fn read<R>(&self, look: impl FnOnce(&Pair) -> R) -> R {
        look(&self.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.write().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

/// A latch that can be measured.
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// Bytes of the latch alone.
    pub(super) bytes: usize,
    pub(super) measure: fn(&Point) -> Result<Measured, Torn>,
}

/// The one that the others are compared with.
pub(super) const REFERENCE: &str = "parking_lot";

const DATA: usize = size_of::<Pair>();
/// ShardedLock's own words: a boxed slice of shards, and one word of poison. Its shards, 8 of a std lock each on cache
/// lines of their own, are on the heap.
const SHARDS: usize = 8 * 128;

pub(super) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "lwlock-queued",
        bytes: size_of::<Latched<Pair, Native>>() - DATA,
        measure: |point| {
            point::measure(
                point,
                &Latched::<_, Native>::new(&CLASS, LwLockAlgorithm::Queued, Pair::default()),
            )
        },
    },
    Subject {
        name: "lwlock-single-cas",
        bytes: size_of::<Latched<Pair, Native>>() - DATA,
        measure: |point| {
            point::measure(
                point,
                &Latched::<_, Native>::new(&CLASS, LwLockAlgorithm::SingleCas, Pair::default()),
            )
        },
    },
    Subject {
        name: REFERENCE,
        bytes: size_of::<ParkingLotRwLock<Pair>>() - DATA,
        measure: |point| point::measure(point, &ParkingLotRwLock::new(Pair::default())),
    },
    Subject {
        name: "std",
        bytes: size_of::<StdRwLock<Pair>>() - DATA,
        measure: |point| point::measure(point, &StdRwLock::new(Pair::default())),
    },
    Subject {
        name: "sharded",
        bytes: size_of::<ShardedLock<Pair>>() - DATA + SHARDS,
        measure: |point| point::measure(point, &ShardedLock::new(Pair::default())),
    },
];
