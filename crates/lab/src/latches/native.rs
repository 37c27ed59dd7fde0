//! Latches as the native bench measures them: behind one small trait, monomorphised, so that no call goes through a
//! pointer inside the measured loop.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex as StdMutex, PoisonError, RwLock as StdRwLock};

use clearway_latch::{HybridLatch, LatchedBy, ReaderWriterLatch, lock_api};
use crossbeam_utils::sync::ShardedLock;

/// The data behind a latch: a writer adds one to both words.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pair(pub(super) [u64; 2]);

/// A latch with a [`Pair`] behind it.
pub(super) trait PairUnderLatch: Sync {
    /// True if there is a latch at all.
    const EXCLUDES: bool = true;
    /// `look` may be called more than once, and only what the last call returned counts.
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R;
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R;
}

impl<L: ReaderWriterLatch> PairUnderLatch for LatchedBy<L, Pair> {
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
impl<L: lock_api::RawRwLock + Sync> PairUnderLatch for lock_api::RwLock<L, Pair> {
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
impl<L: lock_api::RawMutex + Sync> PairUnderLatch for lock_api::Mutex<L, Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&self.lock())
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.lock())
    }
}

impl PairUnderLatch for StdRwLock<Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&StdRwLock::read(self).unwrap_or_else(PoisonError::into_inner))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut StdRwLock::write(self).unwrap_or_else(PoisonError::into_inner))
    }
}

impl PairUnderLatch for StdMutex<Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&self.lock().unwrap_or_else(PoisonError::into_inner))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl PairUnderLatch for ShardedLock<Pair> {
    #[inline]
    fn read<R>(&self, look: impl Fn(&Pair) -> R) -> R {
        look(&ShardedLock::read(self).unwrap_or_else(PoisonError::into_inner))
    }
    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut Pair) -> R) -> R {
        change(&mut ShardedLock::write(self).unwrap_or_else(PoisonError::into_inner))
    }
}

/// A hybrid latch with its data, which are atomic words because an optimistic reader may see them change.
#[derive(Debug, Default)]
pub(super) struct HybridWithWords<const OPTIMISTIC: bool> {
    latch: HybridLatch,
    words: [AtomicU64; 2],
}

impl<const OPTIMISTIC: bool> HybridWithWords<OPTIMISTIC> {
    #[inline]
    fn pair(&self) -> Pair {
        Pair([self.words[0].load(Relaxed), self.words[1].load(Relaxed)])
    }
}

impl<const OPTIMISTIC: bool> PairUnderLatch for HybridWithWords<OPTIMISTIC> {
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
pub(super) struct NoLatch;

impl PairUnderLatch for NoLatch {
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
