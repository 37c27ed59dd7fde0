//! Where the word of `holder` is: in 32 bits of its own, or in the lower half of 64 whose upper half counts readers and changes in one
//! step with it.
//!
//! Values are those of everything that changes in one step, with the word in the lower 32 bits.

use core::sync::atomic::Ordering;

use clearway_machine::{AtomicWord, CoreU32, CoreU64, Half, Machine};

use crate::waiting::Waiting;

/// The operations that the protocol needs, as those of `core::sync::atomic`.
pub trait Place<M: Machine>: core::fmt::Debug + Send + Sync + 'static {
    /// All bits zero.
    fn new() -> Self;
    /// Everything.
    fn load(&self, order: Ordering) -> u64;
    /// Replaces everything, if it is `current`.
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering) -> Result<u64, u64>;
    /// As `compare_exchange`, but may fail for no reason.
    fn compare_exchange_weak(&self, current: u64, new: u64, success: Ordering) -> Result<u64, u64>;
    /// Adds, and returns what was there.
    fn fetch_add(&self, value: u64, order: Ordering) -> u64;
    /// Subtracts, and returns what was there.
    fn fetch_sub(&self, value: u64, order: Ordering) -> u64;
    /// Sets bits of the word, and returns what was there.
    fn fetch_or(&self, bits: u64, order: Ordering) -> u64;
    /// Clears bits of the word, and returns what was there.
    fn fetch_clear(&self, bits: u64, order: Ordering) -> u64;
    /// Sleeps while the word is as in `seen`; whether it did.
    fn sleep(&self, waiting: &mut Waiting, seen: u64) -> bool;
    /// Wakes up to `count` of those that sleep on the word; how many.
    fn wake(&self, count: u32) -> u32;
}

/// A place that a `const` can make.
pub trait ConstPlace {
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

/// 32 bits that hold the word and nothing else.
#[derive(Debug)]
pub struct Alone<M: Machine>(M::U32);

impl<M: Machine<U32 = CoreU32>> ConstPlace for Alone<M> {
    const IDLE: Self = Self(CoreU32::new_const(0));
}

impl<M: Machine> Place<M> for Alone<M> {
    forward!(u32);

    fn sleep(&self, waiting: &mut Waiting, seen: u64) -> bool {
        waiting.sleep_on_futex::<M>(|| M::futex_wait(&self.0, seen as u32, None))
    }

    fn wake(&self, count: u32) -> u32 {
        M::futex_wake(&self.0, count)
    }
}

/// 64 bits: the word below, the readers inside above.
#[derive(Debug)]
pub struct BesideReaders<M: Machine>(M::U64);

impl<M: Machine<U64 = CoreU64>> ConstPlace for BesideReaders<M> {
    const IDLE: Self = Self(CoreU64::new_const(0));
}

impl<M: Machine> Place<M> for BesideReaders<M> {
    forward!(u64);

    fn sleep(&self, waiting: &mut Waiting, seen: u64) -> bool {
        waiting.sleep_on_futex::<M>(|| M::futex_wait_half(&self.0, Half::Low, Half::Low.of(seen)))
    }

    fn wake(&self, count: u32) -> u32 {
        M::futex_wake_half(&self.0, Half::Low, count)
    }
}

impl<M: Machine> BesideReaders<M> {
    /// Sleeps while the readers inside are as in `seen`.
    pub(super) fn sleep_on_readers(&self, waiting: &mut Waiting, seen: u64) {
        waiting.sleep_on_futex::<M>(|| M::futex_wait_half(&self.0, Half::High, Half::High.of(seen)));
    }

    /// Wakes the one that sleeps until the readers have left.
    pub(super) fn wake_owner(&self) {
        M::futex_wake_half(&self.0, Half::High, 1);
    }
}
