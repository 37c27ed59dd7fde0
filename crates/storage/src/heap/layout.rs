//! The heap page and the tuple header.
//!
//! ```text
//! | page header | line pointers → | free space | ← tuples |
//!
//! line pointer, 32 bits: offset (15) | state (2) | length (15); a Redirect's offset is the slot it leads to
//!
//! tuple, at a multiple of 8:
//! 0      8      16     20     24           28          30         32
//! | xmin | xmax | cmin | cmax | next block | next slot | infomask | row …
//! ```

use crate::heap::Tid;
use crate::page::{self, PAGE_HEADER, get_u16, get_u32, get_u64};

/// Bytes a line pointer.
pub(crate) const LINE_POINTER: usize = 4;
/// Bytes of the tuple header.
pub(crate) const TUPLE_HEADER: usize = 32;

pub(crate) const XMIN: usize = 0;
pub(crate) const XMAX: usize = 8;
pub(crate) const CMIN: usize = 16;
pub(crate) const CMAX: usize = 20;
pub(crate) const NEXT: usize = 24;
pub(crate) const INFOMASK: usize = 30;

/// The inserter committed (a hint).
pub(crate) const XMIN_COMMITTED: u16 = 1;
/// The inserter rolled back (a hint).
pub(crate) const XMIN_ABORTED: u16 = 2;
/// The deleter committed (a hint).
pub(crate) const XMAX_COMMITTED: u16 = 4;
/// The deleter rolled back (a hint).
pub(crate) const XMAX_ABORTED: u16 = 8;
/// `xmax` has only locked the row.
pub(crate) const LOCK_ONLY: u16 = 16;
/// `next` is this version's successor in a HOT chain.
pub(crate) const HOT_UPDATED: u16 = 32;
/// No index leads here.
pub(crate) const HEAP_ONLY: u16 = 64;
/// The bits that speak of `xmax`.
pub(crate) const XMAX_BITS: u16 = XMAX_COMMITTED | XMAX_ABORTED | LOCK_ONLY | HOT_UPDATED;

/// Page flag: some line pointer is Unused.
pub(crate) const HAS_UNUSED: u16 = 1;
/// From this bit on, the page's flags hold what `replace` has noted.
pub(crate) const ENDED_SHIFT: u32 = 1;
/// Offset of the page's flags.
pub(crate) const PAGE_FLAGS: usize = 14;

/// A line pointer, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    Unused,
    Normal { offset: usize, length: usize },
    Redirect(u16),
    Dead,
}

impl Line {
    #[inline]
    pub(crate) fn decode(word: [u8; LINE_POINTER]) -> Line {
        let word = u32::from_le_bytes(word);
        let (low, high) = ((word & 0x7FFF) as usize, (word >> 17) as usize);
        match word >> 15 & 3 {
            0 => Line::Unused,
            1 => Line::Normal {
                offset: low,
                length: high,
            },
            2 => Line::Redirect(low as u16),
            _ => Line::Dead,
        }
    }

    #[inline]
    pub(crate) fn encode(self) -> [u8; LINE_POINTER] {
        let word = match self {
            Line::Unused => 0,
            Line::Normal { offset, length } => offset as u32 | 1 << 15 | (length as u32) << 17,
            Line::Redirect(slot) => u32::from(slot) | 2 << 15,
            Line::Dead => 3 << 15,
        };
        word.to_le_bytes()
    }
}

/// The offset of line pointer `slot` (from 1) on the page.
pub(crate) fn line_offset(slot: u16) -> usize {
    PAGE_HEADER + (usize::from(slot) - 1) * LINE_POINTER
}

/// Number of line pointers on the page.
#[inline]
pub(crate) fn slot_count(bytes: &[u8]) -> u16 {
    slots_below(page::lower(bytes))
}

/// Number of line pointers on a page whose free space begins at `lower`.
#[inline]
pub(crate) fn slots_below(lower: usize) -> u16 {
    ((lower.max(PAGE_HEADER) - PAGE_HEADER) / LINE_POINTER) as u16
}

/// Line pointer `slot`; Unused if there is none.
#[inline]
pub(crate) fn line(bytes: &[u8], slot: u16) -> Line {
    if slot == 0 || slot > slot_count(bytes) {
        return Line::Unused;
    }
    Line::decode(page::array_at(bytes, line_offset(slot)))
}

/// All line pointers of the page, not decoded.
#[inline]
pub(crate) fn line_words(bytes: &[u8]) -> &[[u8; LINE_POINTER]] {
    let end = line_offset(slot_count(bytes) + 1);
    bytes.get(line_offset(1)..end).unwrap_or_default().as_chunks().0
}

/// All line pointers of the page, with their numbers.
#[inline]
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = (u16, Line)> {
    (1..).zip(line_words(bytes).iter().map(|word| Line::decode(*word)))
}

/// Bytes a tuple takes on the page.
pub(crate) fn tuple_size(row: usize) -> usize {
    (TUPLE_HEADER + row).next_multiple_of(8)
}

/// Bytes between the line pointers and the tuples.
pub(crate) fn free_space(bytes: &[u8]) -> usize {
    page::upper(bytes).saturating_sub(page::lower(bytes))
}

/// A tuple on a page.
#[derive(Clone, Copy)]
pub(crate) struct Tuple<'p> {
    page: &'p [u8],
    /// Its offset on the page.
    pub(crate) offset: usize,
    length: usize,
}

impl<'p> Tuple<'p> {
    /// The tuple at `slot`, if the line pointer is Normal.
    #[inline]
    pub(crate) fn at(page: &'p [u8], slot: u16) -> Option<Tuple<'p>> {
        match line(page, slot) {
            Line::Normal { offset, length } => Some(Tuple::new(page, offset, length)),
            _ => None,
        }
    }

    /// The tuple that a Normal line pointer of the page leads to.
    #[inline]
    pub(crate) fn new(page: &'p [u8], offset: usize, length: usize) -> Tuple<'p> {
        Tuple { page, offset, length }
    }

    /// A tuple that was copied from its page, or the header of one.
    #[inline]
    pub(crate) fn copied(bytes: &'p [u8]) -> Tuple<'p> {
        debug_assert!(
            bytes.len() >= TUPLE_HEADER,
            "a copied tuple of {} bytes",
            bytes.len()
        );
        Tuple {
            page: bytes,
            offset: 0,
            length: bytes.len(),
        }
    }

    /// Bytes that it takes on the page.
    pub(crate) fn size(&self) -> usize {
        self.length.next_multiple_of(8)
    }

    #[inline]
    pub(crate) fn xmin(&self) -> u64 {
        get_u64(self.page, self.offset + XMIN)
    }

    #[inline]
    pub(crate) fn xmax(&self) -> u64 {
        get_u64(self.page, self.offset + XMAX)
    }

    #[inline]
    pub(crate) fn cmin(&self) -> u32 {
        get_u32(self.page, self.offset + CMIN)
    }

    #[inline]
    pub(crate) fn cmax(&self) -> u32 {
        get_u32(self.page, self.offset + CMAX)
    }

    /// The version that replaced this one; `None` for a deleted or current one.
    pub(crate) fn next(&self) -> Option<Tid> {
        let slot = get_u16(self.page, self.offset + NEXT + 4);
        (slot != 0).then(|| Tid {
            block: get_u32(self.page, self.offset + NEXT),
            slot,
        })
    }

    #[inline]
    pub(crate) fn infomask(&self) -> u16 {
        get_u16(self.page, self.offset + INFOMASK)
    }

    #[inline]
    pub(crate) fn has(&self, bits: u16) -> bool {
        self.infomask() & bits != 0
    }

    /// The row.
    #[inline]
    pub(crate) fn row(&self) -> &'p [u8] {
        &self.page[self.offset + TUPLE_HEADER..self.offset + self.length]
    }
}

/// The bytes of a new tuple.
pub(crate) fn encode_tuple(xmin: u64, cmin: u32, infomask: u16, row: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&xmin.to_le_bytes());
    out.extend_from_slice(&0u64.to_le_bytes());
    out.extend_from_slice(&cmin.to_le_bytes());
    out.extend_from_slice(&[0; 10]);
    out.extend_from_slice(&infomask.to_le_bytes());
    out.extend_from_slice(row);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_pointers_survive_encoding() {
        let lines = [
            Line::Unused,
            Line::Normal {
                offset: 8184,
                length: 32,
            },
            Line::Normal {
                offset: 24,
                length: 8160,
            },
            Line::Redirect(291),
            Line::Dead,
        ];
        for line in lines {
            assert_eq!(Line::decode(line.encode()), line);
        }
    }
}
