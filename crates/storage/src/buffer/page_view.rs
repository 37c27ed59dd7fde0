//! The bytes of a page as the holder of its latch may see them.
//!
//! # Invariant
//! - H1: while a page latch is held, in whatever mode, bytes of the page change in two ways. The holder of the exclusive
//!   latch changes them, through `&mut`. Any holder sets hints, and a hint changes a *hint word* and nothing else.
//! - H2: a hint word is the last of the four words of an item's header, on a page of kind `HEAP`: eight bytes at a
//!   multiple of 8. The holder of a latch reads and changes it as one `AtomicU64`.
//! - H3: no reference to bytes that is not an atomic's, `&[u8]` above all, reaches a hint word.
//!
//! Rust asks for H3: bytes behind a `&[u8]` must not change as long as the reference lives, whether or not their user
//! would mind.
//!
//! ```text
//! page of kind HEAP   | header | line pointers |   free   | … | header of an item  …  data | header  …  data |
//!                     |<------- front() ------>|                                   |     |
//!                                                             words 0 to 2: plain, 3: hints; item(): header and data
//! ```
//!
//! # How each accessor keeps H3
//! 1. `header`: the first 24 bytes, in front of all items.
//! 2. `bytes`: all bytes, of a page whose kind has no hints. A page of kind `HEAP` is refused. The kind stands in the
//!    header, so it changes under the exclusive latch only.
//! 3. [`HintedPage::front`]: header and line pointers. [`HintedPage::item`] gives no item that begins there.
//! 4. [`HintedPage::item`]: a [`HintedHeader`], whose fourth word *is* an `AtomicU64`, and the data behind it. The data
//!    holds no hint word of another item because items do not overlap. The heap places them so (rule 1 of `heap::check`),
//!    and a page that comes from a file or the log has passed a checksum. It is the one fact here that is not checked each
//!    time: that would take a look at all line pointers. Builds with debug assertions take it whenever a hint is set.
//! 5. `copy`: all bytes, loaded as atomic words into memory of the caller's: what is written to a file.
//!
//! # Why a hint, of 16 bits, is set in a word of 64
//! Atomic accesses of different sizes to the same bytes are no defined race in Rust. A copy of a page loads 1,024 words of
//! 64 bits; with words of 16 it would take four times as long.
//!
//! # What this is not
//! Readers without a latch meet writers; what they do is told in `racy`, and confined to that file. They load hint words
//! as H2 says, so where such a reader does hold the latch (`page_read = pinned`), nothing is undefined.
//!
//! Costs: a reader of a heap page compares the page's kind once for each latch. A load or a change of a hint word is the
//! same instruction as for plain bytes, or for 16 of them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::frame::PageBytes;
use crate::page::{self, PAGE_HEADER, PAGE_SIZE, PageKind};

/// Bytes of a word.
const WORD: usize = 8;
/// Words of an item's header.
pub(crate) const HEADER_WORDS: usize = 4;
/// Bytes of an item's header.
pub(crate) const ITEM_HEADER: usize = HEADER_WORDS * WORD;
/// Offset of the hint word in an item's header.
pub(crate) const HINT_WORD: usize = ITEM_HEADER - WORD;
/// The bits of a hint word from this one on, its last 16, are hints.
pub(crate) const HINT_SHIFT: u32 = 48;

/// A latched page.
#[derive(Clone, Copy)]
pub(crate) struct PageView<'a> {
    bytes: &'a PageBytes,
}

impl<'a> PageView<'a> {
    /// The page at `bytes`.
    ///
    /// # Safety
    /// For `'a`, nothing but hints changes the bytes (H1).
    #[inline]
    pub(super) unsafe fn new(bytes: &'a PageBytes) -> Self {
        Self { bytes }
    }

    /// The page's first byte, for reads that keep H2 and H3 themselves.
    #[inline]
    pub(super) fn start(self) -> *const u8 {
        self.bytes.0.get().cast()
    }

    /// The page's header.
    #[inline]
    pub(crate) fn header(self) -> &'a [u8; PAGE_HEADER] {
        // SAFETY: on the page; no item begins in the header, so no hint word is there (H1, H3).
        unsafe { &*self.start().cast() }
    }

    #[inline]
    fn has_hints(self) -> bool {
        page::kind(self.header()) == PageKind::HEAP
    }

    /// All bytes of a page whose kind has no hints.
    ///
    /// # Panics
    /// The page is of kind `HEAP`.
    #[inline]
    #[track_caller]
    pub(crate) fn bytes(self) -> &'a [u8; PAGE_SIZE] {
        assert!(!self.has_hints(), "H3: hints may change the bytes of a heap page");
        // SAFETY: a page of this kind has no hint words, so nothing changes (H1).
        unsafe { &*self.start().cast() }
    }

    /// A copy of all bytes. Its hints are those of some instant each, Relaxed: a caller that goes by one has a fence
    /// behind the copy.
    pub(crate) fn copy(self) -> Box<[u8; PAGE_SIZE]> {
        // SAFETY: a page is aligned for words and as long as so many; other holders of the latch read all of it, and
        // change hint words as atomics of this size (H2).
        let words: &[AtomicU64; PAGE_SIZE / WORD] = unsafe { &*self.start().cast() };
        let mut copy = Box::<[u8; PAGE_SIZE]>::new_uninit();
        let target = copy.as_mut_ptr().cast::<[u8; WORD]>();
        for (number, word) in words.iter().enumerate() {
            // SAFETY: the copy has room for as many words as the page has.
            unsafe {
                target
                    .add(number)
                    .write(word.load(Ordering::Relaxed).to_ne_bytes())
            };
        }
        // SAFETY: all words have been written.
        unsafe { copy.assume_init() }
    }

    /// The page as one with items that have hints. A page of another kind has none.
    #[inline]
    pub(crate) fn hinted(self) -> HintedPage<'a> {
        let (front, items) = if self.has_hints() {
            let lower = page::lower(self.header()).clamp(PAGE_HEADER, PAGE_SIZE);
            (lower, lower)
        } else {
            (PAGE_HEADER, usize::MAX)
        };
        HintedPage {
            view: self,
            front,
            items,
        }
    }
}

/// A latched page whose items have hints.
#[derive(Clone, Copy)]
pub(crate) struct HintedPage<'a> {
    view: PageView<'a>,
    /// The end of header and line pointers.
    front: usize,
    /// The least offset of an item.
    items: usize,
}

impl<'a> HintedPage<'a> {
    /// Header and line pointers.
    #[inline]
    pub(crate) fn front(self) -> &'a [u8] {
        // SAFETY: on the page, and no item begins there (H3).
        unsafe { std::slice::from_raw_parts(self.view.start(), self.front) }
    }

    /// Header and data of the item of `length` bytes, the header included, at `offset`; `None` if no item can be there.
    #[inline]
    pub(crate) fn item(self, offset: usize, length: usize) -> Option<(&'a HintedHeader, &'a [u8])> {
        let is_sound = offset.is_multiple_of(WORD)
            && (self.items..=PAGE_SIZE).contains(&offset)
            && (ITEM_HEADER..=PAGE_SIZE - offset).contains(&length);
        if !is_sound {
            return None;
        }
        // SAFETY: both are on the page, and aligned. The three words are no hint words, since items do not overlap; the
        // fourth is one, and is accessed as this type has it (H2). The data is as point 4 above says (H3).
        unsafe {
            let start = self.view.start().add(offset);
            let data = std::slice::from_raw_parts(start.add(ITEM_HEADER), length - ITEM_HEADER);
            Some((&*start.cast::<HintedHeader>(), data))
        }
    }
}

/// The header of an item, on its page or copied from there.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HintedHeader {
    /// Little-endian, as on the page.
    plain: [u64; HEADER_WORDS - 1],
    /// Little-endian, too.
    hinted: AtomicU64,
}

const _: () = assert!(size_of::<HintedHeader>() == ITEM_HEADER && align_of::<HintedHeader>() == WORD);
const _: () = assert!(std::mem::offset_of!(HintedHeader, hinted) == HINT_WORD);

impl HintedHeader {
    /// A header of these words.
    #[inline]
    pub(crate) const fn of(words: [u64; HEADER_WORDS]) -> Self {
        let [first, second, third, hinted] = words;
        Self {
            plain: [first.to_le(), second.to_le(), third.to_le()],
            hinted: AtomicU64::new(hinted.to_le()),
        }
    }

    /// One of the words before the last.
    #[inline]
    pub(crate) fn word<const NUMBER: usize>(&self) -> u64 {
        const { assert!(NUMBER < HEADER_WORDS - 1) };
        u64::from_le(self.plain[NUMBER])
    }

    /// The hint word. Relaxed: who goes by a hint, and by what its setter knew, has an Acquire fence behind this.
    #[inline]
    pub(crate) fn hint_word(&self) -> u64 {
        u64::from_le(self.hinted.load(Ordering::Relaxed))
    }

    /// Sets hints.
    #[inline]
    pub(super) fn set_hints(&self, bits: u16) {
        // Release: a reader that goes by the hint, and has a fence behind that, knows what the one that set it knew.
        self.hinted
            .fetch_or((u64::from(bits) << HINT_SHIFT).to_le(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
