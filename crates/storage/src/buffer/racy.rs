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

use crate::page::PAGE_SIZE;

/// The bytes of a page that the reader need not have latched: two looks at a value may differ.
#[derive(Debug, Clone, Copy)]
pub struct RacyPage<'a> {
    bytes: *const u8,
    frame: PhantomData<&'a ()>,
}

/// A number wherever it stands, read with one instruction.
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
}
