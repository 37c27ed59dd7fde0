//! A page as an optimistic reader sees it: without a latch, and perhaps without a pin, while another worker may write
//! or use the frame for another page.
//!
//! Each value is copied out with one volatile read, so that the compiler neither reads twice nor assumes that
//! two reads agree. A value may be from before a change or after it, or for unaligned ones from both. Nothing
//! here trusts it: an offset is checked against the page, and the reader uses what it concluded only if the
//! version, the latch's or the frame's, has not moved.
//!
//! By the letter of the memory model a read that races with a plain write is undefined, whatever becomes of
//! the value; Rust has no sanctioned form of this other than making every byte an atomic, which would make
//! the writers' copies slower. This is the form that crossbeam's `AtomicCell` uses for the same purpose. It
//! is confined to this file.

use std::marker::PhantomData;
use std::mem::MaybeUninit;

use crate::page::PAGE_SIZE;

/// The bytes of a page that the reader need not have latched: two looks at a value may differ.
#[derive(Debug, Clone, Copy)]
pub struct RacyPage<'a> {
    bytes: *const u8,
    frame: PhantomData<&'a ()>,
}

/// A number wherever it is, read with one instruction.
#[repr(C, packed)]
struct Unaligned<T>(T);

macro_rules! read {
    ($($(#[$doc:meta])* $name:ident: $int:ty, $decode:ident;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(self, offset: usize) -> Option<$int> {
            const SIZE: usize = size_of::<$int>();
            if offset > PAGE_SIZE - SIZE {
                return None;
            }
            // SAFETY: the offset is on the page, whose memory lives for `'a`; every value of
            // the bytes is a value of the type. For the race see the top of this file.
            let number = unsafe { self.bytes.add(offset).cast::<Unaligned<$int>>().read_volatile() };
            Some(<$int>::$decode(number.0))
        }
    )*};
}

impl<'a> RacyPage<'a> {
    /// The page at `bytes`.
    ///
    /// # Safety
    /// `bytes` can be read for `'a`: those of a frame, whose memory is the pool's. Other workers may write them.
    pub(crate) unsafe fn new(bytes: *const [u8; PAGE_SIZE]) -> Self {
        Self {
            bytes: bytes.cast(),
            frame: PhantomData,
        }
    }

    /// A page that does not change.
    #[inline]
    pub(crate) fn latched(bytes: &'a [u8; PAGE_SIZE]) -> Self {
        Self {
            bytes: bytes.as_ptr(),
            frame: PhantomData,
        }
    }

    read! {
        /// The number at `offset`; `None` if that is not on the page.
        u16_at: u16, from_le;
        /// The number at `offset`; `None` if that is not on the page.
        u32_at: u32, from_le;
        /// The number at `offset`; `None` if that is not on the page.
        u64_at: u64, from_le;
        /// The big-endian number at `offset`; `None` if that is not on the page.
        u64_be_at: u64, from_be;
    }

    /// The byte at `offset`; `None` if that is not on the page.
    #[inline]
    pub fn u8_at(self, offset: usize) -> Option<u8> {
        if offset >= PAGE_SIZE {
            return None;
        }
        // SAFETY: as in the reads above.
        Some(unsafe { self.bytes.add(offset).read_volatile() })
    }

    /// The `SIZE` bytes at `offset`, a multiple of 8 of them; `None` if they are not on the page.
    #[inline]
    pub(crate) fn array_at<const SIZE: usize>(self, offset: usize) -> Option<[u8; SIZE]> {
        const { assert!(SIZE.is_multiple_of(WORD)) };
        let mut array = [0; SIZE];
        for (number, word) in array.as_chunks_mut::<WORD>().0.iter_mut().enumerate() {
            *word = self.u64_at(offset + number * WORD)?.to_le_bytes();
        }
        Some(array)
    }

    /// Copies `length` bytes from `offset` on over what is in `copy`, in whole words; `None` if these are not on the
    /// page.
    #[inline]
    pub(crate) fn copy(self, offset: usize, length: usize, copy: &mut RacyCopy) -> Option<()> {
        copy.length = 0;
        let words = length.div_ceil(WORD);
        if offset > PAGE_SIZE || words > (PAGE_SIZE - offset) / WORD {
            return None;
        }
        for (number, word) in copy.words[..words].iter_mut().enumerate() {
            // SAFETY: as in the reads above: all the words are on the page.
            let read = unsafe {
                self.bytes
                    .add(offset + number * WORD)
                    .cast::<Unaligned<u64>>()
                    .read_volatile()
            };
            word.write(read.0);
        }
        copy.length = length;
        Some(())
    }
}

/// Bytes that are copied at a time.
const WORD: usize = 8;

/// Bytes copied from a page, on the stack.
pub(crate) struct RacyCopy {
    /// The words up to `length` bytes are initialised.
    words: [MaybeUninit<u64>; PAGE_SIZE / WORD],
    length: usize,
}

impl RacyCopy {
    /// Nothing.
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            words: [const { MaybeUninit::uninit() }; PAGE_SIZE / WORD],
            length: 0,
        }
    }

    /// The bytes that were copied last.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `copy` has initialised the words that hold `self.length` bytes, and any byte is a `u8`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.length) }
    }
}
