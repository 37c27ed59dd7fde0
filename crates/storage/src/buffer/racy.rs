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
//!
//! Hint words change beside any reader, and are loaded as the atomics that they are (H2 of `page_view`). So a read of a
//! latched page ([`RacyPage::latched`]) races with nothing.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::page_view::{HEADER_WORDS, HINT_WORD, HintedHeader, PageView};
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

    /// A page that does not change, except for its hints.
    #[inline]
    pub(super) fn latched(page: PageView<'a>) -> Self {
        Self {
            bytes: page.start(),
            frame: PhantomData,
        }
    }

    /// A page of one's own.
    #[cfg(test)]
    pub(crate) fn own(bytes: &'a mut crate::buffer::frame::PageBytes) -> Self {
        Self {
            bytes: bytes.0.get().cast(),
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

    /// The word at `offset`, which may be a hint word; `None` if no word of the page begins there.
    #[inline]
    fn word_at(self, offset: usize) -> Option<u64> {
        if offset > PAGE_SIZE - WORD || !offset.is_multiple_of(WORD) {
            return None;
        }
        // SAFETY: the word is on the page, whose memory lives for `'a`, and aligned as that is. For the race with other
        // writers than those of hints see the top of this file.
        let word = unsafe { AtomicU64::from_ptr(self.bytes.add(offset).cast::<u64>().cast_mut()) };
        Some(u64::from_le(word.load(Ordering::Relaxed)))
    }

    /// The hint word of the item at `offset`; `None` if no item can be there.
    #[inline]
    pub(crate) fn hint_word_of(self, offset: usize) -> Option<u64> {
        self.word_at(offset + HINT_WORD)
    }

    /// The header of the item at `offset`; `None` if no item can be there.
    #[inline]
    pub(crate) fn header_of(self, offset: usize) -> Option<HintedHeader> {
        let mut words = [0; HEADER_WORDS];
        for (number, word) in words.iter_mut().enumerate() {
            *word = self.word_at(offset + number * WORD)?;
        }
        Some(HintedHeader::of(words))
    }

    /// Copies `length` bytes of the item at `offset` over what is in `copy`, in whole words; `None` if no item can be
    /// there.
    #[inline]
    pub(crate) fn copy(self, offset: usize, length: usize, copy: &mut RacyCopy) -> Option<()> {
        copy.length = 0;
        let words = length.div_ceil(WORD);
        if offset > PAGE_SIZE || !offset.is_multiple_of(WORD) || words > (PAGE_SIZE - offset) / WORD {
            return None;
        }
        for (number, target) in copy.words[..words].iter_mut().enumerate() {
            // SAFETY: as in `word_at`: all the words are on the page.
            let word = unsafe {
                AtomicU64::from_ptr(self.bytes.add(offset + number * WORD).cast::<u64>().cast_mut())
            };
            target.write(word.load(Ordering::Relaxed));
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
