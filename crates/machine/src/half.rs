//! The halves of a 64-bit word, for futexes, which compare 32 bits.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// 32 bits of a 64-bit word, chosen by value and not by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Bits 0 to 31.
    Low,
    /// Bits 32 to 63.
    High,
}

impl Half {
    /// These bits of `value`.
    #[inline(always)]
    pub const fn of(self, value: u64) -> u32 {
        match self {
            Half::Low => value as u32,
            Half::High => (value >> 32) as u32,
        }
    }

    /// Bytes from the start of the word to this half.
    #[inline(always)]
    pub const fn offset(self) -> usize {
        match (self, cfg!(target_endian = "little")) {
            (Half::Low, true) | (Half::High, false) => 0,
            (Half::High, true) | (Half::Low, false) => 4,
        }
    }
}

/// The 32 bits on which a platform's [`wait`](crate::Platform::wait) and [`wake`](crate::Platform::wake) act:
/// an atomic of their own, or half of one of 64 bits.
#[derive(Debug, Clone, Copy)]
pub struct FutexWord<'a>(Place<'a>);

#[derive(Debug, Clone, Copy)]
enum Place<'a> {
    Whole(&'a AtomicU32),
    Half(&'a AtomicU64, Half),
}

impl<'a> FutexWord<'a> {
    pub(crate) fn whole(word: &'a AtomicU32) -> Self {
        Self(Place::Whole(word))
    }

    pub(crate) fn half(word: &'a AtomicU64, half: Half) -> Self {
        Self(Place::Half(word, half))
    }

    /// The bits now. Relaxed: a platform looks under the lock of its list of sleepers, and the latch looks
    /// again afterwards.
    pub fn load(&self) -> u32 {
        match self.0 {
            Place::Whole(word) => word.load(Relaxed),
            Place::Half(word, half) => half.of(word.load(Relaxed)),
        }
    }

    /// Their address, which identifies the word, and which a kernel with futexes of its own takes. Read the
    /// bits by [`load`](Self::load) only.
    pub fn address(&self) -> *const u32 {
        match self.0 {
            Place::Whole(word) => word.as_ptr().cast_const(),
            Place::Half(word, half) => word
                .as_ptr()
                .cast_const()
                .cast::<u32>()
                .wrapping_byte_add(half.offset()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_where_their_bits_are() {
        let word = AtomicU64::new(0x1111_2222_3333_4444);
        for (half, bits) in [(Half::Low, 0x3333_4444), (Half::High, 0x1111_2222)] {
            let futex = FutexWord::half(&word, half);
            assert_eq!(futex.load(), bits);
            // SAFETY: the address is inside `word`, which has no writer.
            assert_eq!(unsafe { futex.address().read() }, bits);
        }
        let whole = AtomicU32::new(7);
        assert_eq!(FutexWord::whole(&whole).load(), 7);
        assert!(core::ptr::eq(FutexWord::whole(&whole).address(), whole.as_ptr()));
    }
}
