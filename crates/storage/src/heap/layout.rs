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
//!
//! The last word of the header, from 24 on, is the hint word (`buffer::page_view`): readers set bits of the infomask
//! there while others read the page.

use crate::buffer::page_view::{HINT_SHIFT, HINT_WORD, HintedHeader, HintedPage, ITEM_HEADER};
use crate::heap::Tid;
use crate::page::{self, PAGE_HEADER, get_u64};

/// Bytes a line pointer.
pub(crate) const LINE_POINTER: usize = 4;
/// Bytes of the tuple header.
pub(crate) const TUPLE_HEADER: usize = ITEM_HEADER;

pub(crate) const XMIN: usize = 0;
pub(crate) const XMAX: usize = 8;
pub(crate) const CMIN: usize = 16;
pub(crate) const CMAX: usize = 20;
pub(crate) const NEXT: usize = 24;
pub(crate) const INFOMASK: usize = 30;

const _: () = assert!(NEXT == HINT_WORD && INFOMASK == HINT_WORD + HINT_SHIFT as usize / 8);

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
/// `xmax` leaves the row's key as it is: an UPDATE of other columns, or FOR NO KEY UPDATE.
pub(crate) const KEY_KEPT: u16 = 128;
/// The inserter has deleted the version itself, behind a savepoint: it may take that back.
pub(crate) const MAY_RETURN: u16 = 256;
/// The bits that speak of `xmax`.
pub(crate) const XMAX_BITS: u16 =
    XMAX_COMMITTED | XMAX_ABORTED | LOCK_ONLY | HOT_UPDATED | KEY_KEPT | MAY_RETURN;

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

/// The infomask in a hint word.
#[inline]
pub(crate) fn infomask_in(hint_word: u64) -> u16 {
    (hint_word >> HINT_SHIFT) as u16
}

/// The slot of the next version, or 0, in a hint word.
#[inline]
pub(crate) fn next_slot_in(hint_word: u64) -> u16 {
    (hint_word >> 32) as u16
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

/// The bytes at `LOWER` of a page whose free space goes from `lower` to `upper`.
pub(crate) fn bounds(lower: usize, upper: usize) -> [u8; 4] {
    (lower as u32 | (upper as u32) << 16).to_le_bytes()
}

/// A tuple on a page.
#[derive(Clone, Copy)]
pub(crate) struct Tuple<'p> {
    pub(crate) header: &'p HintedHeader,
    row: &'p [u8],
    /// Its offset on the page.
    pub(crate) offset: usize,
}

impl<'p> Tuple<'p> {
    /// The tuple at `slot`, if the line pointer is Normal.
    #[inline]
    pub(crate) fn at(page: HintedPage<'p>, slot: u16) -> Option<Tuple<'p>> {
        match line(page.front(), slot) {
            Line::Normal { offset, length } => Some(Tuple::new(page, offset, length)),
            _ => None,
        }
    }

    /// The tuple that a Normal line pointer of the page leads to.
    #[inline]
    pub(crate) fn new(page: HintedPage<'p>, offset: usize, length: usize) -> Tuple<'p> {
        match page.item(offset, length) {
            Some((header, row)) => Tuple { header, row, offset },
            None => no_tuple(offset, length),
        }
    }

    /// A tuple whose header was copied from its page, and its row, if that is asked for.
    #[inline]
    pub(crate) fn copied(header: &'p HintedHeader, row: &'p [u8]) -> Tuple<'p> {
        Tuple {
            header,
            row,
            offset: 0,
        }
    }

    /// Bytes that it takes on the page.
    pub(crate) fn size(&self) -> usize {
        tuple_size(self.row.len())
    }

    #[inline]
    pub(crate) fn xmin(&self) -> u64 {
        self.header.word::<{ XMIN / 8 }>()
    }

    #[inline]
    pub(crate) fn xmax(&self) -> u64 {
        self.header.word::<{ XMAX / 8 }>()
    }

    #[inline]
    pub(crate) fn cmin(&self) -> u32 {
        self.header.word::<{ CMIN / 8 }>() as u32
    }

    #[inline]
    pub(crate) fn cmax(&self) -> u32 {
        (self.header.word::<{ CMAX / 8 }>() >> 32) as u32
    }

    /// The version that replaced this one; `None` for a deleted or current one.
    pub(crate) fn next(&self) -> Option<Tid> {
        let word = self.header.hint_word();
        let slot = next_slot_in(word);
        (slot != 0).then_some(Tid {
            block: word as u32,
            slot,
        })
    }

    #[inline]
    pub(crate) fn infomask(&self) -> u16 {
        infomask_in(self.header.hint_word())
    }

    #[inline]
    pub(crate) fn has(&self, bits: u16) -> bool {
        self.infomask() & bits != 0
    }

    /// The row.
    #[inline]
    pub(crate) fn row(&self) -> &'p [u8] {
        self.row
    }
}

/// The header at the beginning of a tuple that was copied whole.
#[inline]
pub(crate) fn header_of_copy(tuple: &[u8]) -> HintedHeader {
    HintedHeader::of([XMIN, XMAX, CMIN, NEXT].map(|word| get_u64(tuple, word)))
}

#[cold]
fn no_tuple(offset: usize, length: usize) -> ! {
    panic!("a line pointer leads to {length} bytes at offset {offset}, where no row version can be")
}

/// True if no other tuple of the page reaches the header at `offset` (H3 of `page_view`).
pub(crate) fn stands_alone(page: HintedPage<'_>, offset: usize) -> bool {
    lines(page.front()).all(|(_, line)| match line {
        Line::Normal {
            offset: other,
            length,
        } => other == offset || other >= offset + TUPLE_HEADER || other + length <= offset,
        Line::Unused | Line::Redirect(_) | Line::Dead => true,
    })
}

/// The bytes of a new tuple, in place of what `out` holds.
pub(crate) fn encode_tuple(xmin: u64, cmin: u32, infomask: u16, row: &[u8], out: &mut Vec<u8>) {
    out.clear();
    append_tuple(xmin, cmin, infomask, row, out);
}

/// The bytes of a new tuple, behind what `out` holds.
pub(crate) fn append_tuple(xmin: u64, cmin: u32, infomask: u16, row: &[u8], out: &mut Vec<u8>) {
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
