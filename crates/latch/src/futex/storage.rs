//! The storage of `holder`'s word: in 32 bits of its own, or in the lower half of 64 bits whose upper half counts
//! readers and changes in the same step.
//!
//! A value is everything that changes in one step, with the word in the lower 32 bits.

use core::sync::atomic::Ordering;

use clearway_machine::{AtomicWord, CoreU32, CoreU64, Half, Machine};

use crate::waiting::Waiting;

/// The operations that the protocol needs, as those of `core::sync::atomic`.
pub trait WordStorage<M: Machine>: core::fmt::Debug + Send + Sync + 'static {
    /// All bits zero.
    fn new() -> Self;
    /// Loads everything.
    fn load(&self, order: Ordering) -> u64;
    /// Replaces everything, if it is `current`.
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering) -> Result<u64, u64>;
    /// As `compare_exchange`, but may fail spuriously.
    fn compare_exchange_weak(&self, current: u64, new: u64, success: Ordering) -> Result<u64, u64>;
    /// Adds. Returns the old value.
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// Subtracts. Returns the old value.
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64;
    /// Sets bits of the word. Returns the old value.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;
    /// Clears bits of the word. Returns the old value.
    fn fetch_clear(&self, bits: u64, order: Ordering) -> u64;
    /// Sleeps while the word is as in `seen`. Returns whether it slept.
    fn sleep(&self, waiting: &mut Waiting, seen: u64) -> bool;
    /// Wakes up to `count` sleepers of the word. Returns how many.
    fn wake(&self, count: u32) -> u32;
}

/// Storage that a `const` can make.
pub trait ConstStorage {
    /// All bits zero.
    const IDLE: Self;
}

macro_rules! forward {
    ($value:ty) => {
        #[inline(always)]
        fn new() -> Self {
            Self(AtomicWord::new(0))
        }
        #[inline(always)]
        fn load(&self, order: Ordering) -> u64 {
            u64::from(self.0.load(order))
        }
        #[inline(always)]
        fn compare_exchange(&self, current: u64, new: u64, success: Ordering) -> Result<u64, u64> {
            let result =
                self.0
                    .compare_exchange(current as $value, new as $value, success, Ordering::Relaxed);
            result.map(u64::from).map_err(u64::from)
        }
        #[inline(always)]
        fn compare_exchange_weak(&self, current: u64, new: u64, success: Ordering) -> Result<u64, u64> {
            let result =
                self.0
                    .compare_exchange_weak(current as $value, new as $value, success, Ordering::Relaxed);
            result.map(u64::from).map_err(u64::from)
        }
        #[inline(always)]
        fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
            u64::from(self.0.fetch_add(value as $value, order))
        }
        #[inline(always)]
        fn fetch_sub(&self, value: u64, order: Ordering) -> u64 {
            u64::from(self.0.fetch_sub(value as $value, order))
        }
        #[inline(always)]
        fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
            u64::from(self.0.fetch_or(bits as $value, order))
        }
        #[inline(always)]
        fn fetch_clear(&self, bits: u64, order: Ordering) -> u64 {
            u64::from(self.0.fetch_and(!(bits as $value), order))
        }
    };
}

/// 32 bits for the word alone.
#[derive(Debug)]
pub struct OwnWord<M: Machine>(M::U32);

impl<M: Machine<U32 = CoreU32>> ConstStorage for OwnWord<M> {
    const IDLE: Self = Self(CoreU32::new_const(0));
}

impl<M: Machine> WordStorage<M> for OwnWord<M> {
    forward!(u32);

    fn sleep(&self, waiting: &mut Waiting, seen: u64) -> bool {
        waiting.sleep_on_futex::<M>(|limit| M::futex_wait(&self.0, seen as u32, limit))
    }

    fn wake(&self, count: u32) -> u32 {
        M::futex_wake(&self.0, count)
    }
}

/// 64 bits: the word in the lower half, the readers inside in the upper half.
#[derive(Debug)]
pub struct WordBesideReaders<M: Machine>(M::U64);

impl<M: Machine<U64 = CoreU64>> ConstStorage for WordBesideReaders<M> {
    const IDLE: Self = Self(CoreU64::new_const(0));
}

impl<M: Machine> WordStorage<M> for WordBesideReaders<M> {
    forward!(u64);

    fn sleep(&self, waiting: &mut Waiting, seen: u64) -> bool {
        waiting.sleep_on_futex::<M>(|limit| M::futex_wait_half(&self.0, Half::Low, Half::Low.of(seen), limit))
    }

    fn wake(&self, count: u32) -> u32 {
        M::futex_wake_half(&self.0, Half::Low, count)
    }
}

impl<M: Machine> WordBesideReaders<M> {
    /// Sleeps while the upper half is as in `seen`.
    pub(super) fn sleep_on_readers(&self, waiting: &mut Waiting, seen: u64) {
        waiting
            .sleep_on_futex::<M>(|limit| M::futex_wait_half(&self.0, Half::High, Half::High.of(seen), limit));
    }

    /// Wakes the owner, which sleeps until the readers have left.
    pub(super) fn wake_owner(&self) {
        M::futex_wake_half(&self.0, Half::High, 1);
    }
}
