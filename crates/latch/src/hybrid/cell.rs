//! A hybrid latch that holds its data: values of a few words, which are read without writing anything.
//!
//! The value lies in atomic words of 64 bits, so that a read beside a write is no data race: it finds words of two values,
//! and the latch's version says so (R3 of the latch). What a caller gets is made of words of one value only.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Host, Machine};

use super::HybridLatch;
use crate::class::{ClassOf, Unclassed};

/// A value that is `N` words of 64 bits.
///
/// ```
/// use clearway_latch::{HybridCell, Words};
///
/// /// A page and the place in it.
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// struct Root {
///     page: u64,
///     height: u32,
/// }
///
/// impl Words<2> for Root {
///     fn to_words(self) -> [u64; 2] {
///         [self.page, self.height.into()]
///     }
///     fn from_words([page, height]: [u64; 2]) -> Self {
///         Self { page, height: height as u32 }
///     }
/// }
///
/// let root: HybridCell<Root, 2> = HybridCell::new(Root { page: 7, height: 1 });
/// root.update(|root| *root = Root { page: 12, height: root.height + 1 });
/// assert_eq!(root.read(), Root { page: 12, height: 2 });
/// ```
pub trait Words<const N: usize>: Copy {
    /// The value's words.
    fn to_words(self) -> [u64; N];

    /// The value of words that one call of [`to_words`](Self::to_words) has made.
    fn from_words(words: [u64; N]) -> Self;
}

impl<const N: usize> Words<N> for [u64; N] {
    fn to_words(self) -> [u64; N] {
        self
    }

    fn from_words(words: [u64; N]) -> Self {
        words
    }
}

/// Implements [`Words`] for numbers of at most 64 bits, which `as` brings back as they were.
macro_rules! number_as_word {
    ($($number:ty),*) => {$(
        impl Words<1> for $number {
            fn to_words(self) -> [u64; 1] {
                [self as u64]
            }

            fn from_words([word]: [u64; 1]) -> Self {
                word as $number
            }
        }
    )*};
}

number_as_word!(u64, i64, u32, i32, u16, i16, u8, i8, usize, isize);

impl Words<1> for f64 {
    fn to_words(self) -> [u64; 1] {
        [self.to_bits()]
    }

    fn from_words([word]: [u64; 1]) -> Self {
        f64::from_bits(word)
    }
}

/// A value of `N` words under a [`HybridLatch`]. A read copies the words and looks at the latch twice; it writes nothing
/// unless writers spoil a few attempts, so that readers on many CPUs share the lines. 8 bytes, and 8 for each word.
#[derive(Debug)]
pub struct HybridCell<T, const N: usize, C: ClassOf = Unclassed, M: Machine = Host> {
    latch: HybridLatch<C, M>,
    /// They change only under the latch in exclusive mode (R1).
    words: [M::U64; N],
    value: PhantomData<T>,
}

impl<T: Words<N>, const N: usize, C: ClassOf, M: Machine> HybridCell<T, N, C, M> {
    /// A cell that holds `value`.
    pub fn new(value: T) -> Self {
        Self {
            latch: HybridLatch::idle(),
            words: value.to_words().map(M::U64::new),
            value: PhantomData,
        }
    }

    /// The words, perhaps of two values.
    #[inline]
    fn load(&self) -> [u64; N] {
        // Relaxed: the latch orders them, before and after.
        core::array::from_fn(|index| self.words[index].load(Relaxed))
    }

    /// The value. After a few attempts in vain the latch is taken in shared mode.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> T {
        T::from_words(self.latch.read(|| self.load()))
    }

    /// The value, unless a worker is changing it.
    #[inline]
    pub fn try_read(&self) -> Option<T> {
        let version = self.latch.optimistic()?;
        let words = self.load();
        self.latch.validate(version).then(|| T::from_words(words))
    }

    /// Calls `change` with the value, under the latch in exclusive mode, and keeps what it leaves. If it panics, the value
    /// stays as it was.
    #[inline]
    #[track_caller]
    pub fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let _exclusive = self.latch.exclusive();
        let mut value = T::from_words(self.load());
        let result = change(&mut value);
        for (word, new) in self.words.iter().zip(value.to_words()) {
            word.store(new, Relaxed);
        }
        result
    }

    /// Puts `value` in place of the value.
    #[inline]
    #[track_caller]
    pub fn set(&self, value: T) {
        self.update(|old| *old = value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Cell<T> = HybridCell<T, 1>;

    #[test]
    fn numbers_come_back_as_they_were() {
        for number in [i64::MIN, -1, 0, i64::MAX] {
            assert_eq!(Cell::new(number).read(), number);
        }
        assert_eq!(Cell::new(-3_i8).read(), -3);
        assert_eq!(Cell::new(i32::MIN).read(), i32::MIN);
        assert_eq!(Cell::new(-0.5).read(), -0.5);
        assert!(Cell::new(f64::NAN).read().is_nan());
    }

    #[cfg(feature = "std")]
    #[test]
    fn a_change_that_panics_changes_nothing() {
        let cell: HybridCell<[u64; 2], 2> = HybridCell::new([1, 2]);
        let change = || {
            cell.update(|value| {
                value[0] = 7;
                panic!("in the middle");
            })
        };
        std::panic::catch_unwind(core::panic::AssertUnwindSafe(change)).unwrap_err();
        assert_eq!(cell.read(), [1, 2]);
        cell.set([3, 4]);
        assert_eq!(cell.try_read(), Some([3, 4]));
        assert_eq!(cell.update(|value| core::mem::replace(value, [5, 6])), [3, 4]);
    }
}
