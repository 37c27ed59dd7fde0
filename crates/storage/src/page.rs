//! The page: 8 KiB, with a header of 24 bytes that every kind of page shares.
//!
//! ```text
//! 0        8          12      14      16      18      20        22         24
//! | lsn    | checksum | kind  | flags | lower | upper | special | reserved | content …
//! ```
//!
//! `lsn` is the log position after the last change; the log is durable up to there before the page is
//! written. `checksum` is the CRC-32C of the page with this field zero, combined with the page's relation and
//! number, so that a page in another's place is an error. It is set when the page is written and checked when
//! it is read. A page of zeros is never valid (`lengths`, R2). Free space lies between `lower` and `upper`;
//! full-page images leave it out.

use std::fmt;
use std::str::FromStr;

/// Bytes in a page.
pub const PAGE_SIZE: usize = 8192;
/// Bytes of the header.
pub const PAGE_HEADER: usize = 24;

const LSN: usize = 0;
const CHECKSUM: usize = 8;
pub(crate) const KIND: usize = 12;
const FLAGS: usize = 14;
/// Offset of the header field `lower`.
pub const LOWER: usize = 16;
/// Offset of the header field `upper`.
pub const UPPER: usize = 18;
const SPECIAL: usize = 20;

/// The number of a relation: a table's heap, an index, a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelId(pub u32);

impl RelId {
    /// The commit log.
    pub const COMMIT_LOG: RelId = RelId(0);
    /// The catalog's heap.
    pub const CATALOG: RelId = RelId(1);
    /// The first number for everything else.
    pub const FIRST_NORMAL: RelId = RelId(16);
}

/// A page's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PageId {
    /// The relation.
    pub rel: RelId,
    /// The page in it.
    pub block: u32,
}

impl PageId {
    /// Relation and block as one number, the key of the buffer mapping.
    pub fn to_u64(self) -> u64 {
        u64::from(self.rel.0) << 32 | u64::from(self.block)
    }

    pub(crate) fn from_u64(number: u64) -> Self {
        PageId {
            rel: RelId((number >> 32) as u32),
            block: number as u32,
        }
    }
}

/// A position in the log, in bytes from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 as u32)
    }
}

/// A text that is no position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a position of the log looks like 0/5000028")]
pub struct NoPosition;

impl FromStr for Lsn {
    type Err = NoPosition;

    /// Reads what [`Display`](fmt::Display) writes, and PostgreSQL's programs: two halves of up to eight hexadecimal digits.
    fn from_str(text: &str) -> Result<Lsn, NoPosition> {
        let half = |digits: &str| {
            // Signs, which the standard library would take, are none.
            let is_sound =
                (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            is_sound.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
        };
        let (high, low) = text.split_once('/').ok_or(NoPosition)?;
        match (half(high), half(low)) {
            (Some(high), Some(low)) => Ok(Lsn(high << 32 | low)),
            _ => Err(NoPosition),
        }
    }
}

/// The kind of a page's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageKind(pub u16);

impl PageKind {
    /// Nothing yet.
    pub const NEW: PageKind = PageKind(0);
    /// Commit log.
    pub const COMMIT_LOG: PageKind = PageKind(1);
    /// Rows.
    pub const HEAP: PageKind = PageKind(2);
    /// A B+tree's first page.
    pub const BTREE_META: PageKind = PageKind(3);
    /// A B+tree's node.
    pub const BTREE_NODE: PageKind = PageKind(4);
    /// A sequence.
    pub const SEQUENCE: PageKind = PageKind(5);
}

/// The `N` bytes at `at`. One comparison where the compiler knows the length of `bytes`, as it does of a page.
#[inline]
pub(crate) fn chunk_at<const N: usize>(bytes: &[u8], at: usize) -> &[u8; N] {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(chunk) => chunk,
        None => past_the_end(N, at, bytes.len()),
    }
}

#[cold]
fn past_the_end(count: usize, at: usize, length: usize) -> ! {
    panic!("{count} bytes at offset {at} of {length}")
}

/// The `N` bytes at `at`, loaded as an array. With `copy_from_slice` the compiler may call `memcpy`, and a
/// search in an index page reads about thirty numbers.
#[inline]
pub(crate) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    *chunk_at(bytes, at)
}

/// Reads a little-endian u16.
#[inline]
pub(crate) fn get_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

/// Reads a little-endian u32.
#[inline]
pub(crate) fn get_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// Reads a little-endian u64.
#[inline]
pub(crate) fn get_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// The position after the page's last change.
#[inline]
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(get_u64(page, LSN))
}

pub(crate) fn set_lsn(page: &mut [u8], lsn: Lsn) {
    page[LSN..LSN + 8].copy_from_slice(&lsn.0.to_le_bytes());
}

/// The kind of the page's content.
#[inline]
pub fn kind(page: &[u8]) -> PageKind {
    PageKind(get_u16(page, KIND))
}

/// The page's flags; each kind has its own.
#[inline]
pub fn flags(page: &[u8]) -> u16 {
    get_u16(page, FLAGS)
}

/// The start of free space.
#[inline]
pub fn lower(page: &[u8]) -> usize {
    usize::from(get_u16(page, LOWER))
}

/// The end of free space.
#[inline]
pub fn upper(page: &[u8]) -> usize {
    usize::from(get_u16(page, UPPER))
}

/// The start of the kind's own trailer.
#[inline]
pub fn special(page: &[u8]) -> usize {
    usize::from(get_u16(page, SPECIAL))
}

/// Makes `page` an empty page of `kind` with a trailer of `special_size` bytes.
pub(crate) fn init(page: &mut [u8], kind: PageKind, special_size: usize) {
    assert!(
        special_size <= PAGE_SIZE - PAGE_HEADER,
        "a trailer of {special_size} bytes"
    );
    let special = (PAGE_SIZE - special_size) as u16;
    page.fill(0);
    page[KIND..KIND + 2].copy_from_slice(&kind.0.to_le_bytes());
    page[LOWER..LOWER + 2].copy_from_slice(&(PAGE_HEADER as u16).to_le_bytes());
    page[UPPER..UPPER + 2].copy_from_slice(&special.to_le_bytes());
    page[SPECIAL..SPECIAL + 2].copy_from_slice(&special.to_le_bytes());
}

/// True if the page was added to its relation and not changed since.
pub fn is_new(page: &[u8]) -> bool {
    kind(page) == PageKind::NEW
}

/// The part of a checksum that the content decides.
fn content_sum(bytes: &[u8]) -> u32 {
    let before = crc32c::crc32c(&bytes[..CHECKSUM]);
    let zeroed = crc32c::crc32c_append(before, &[0; 4]);
    crc32c::crc32c_append(zeroed, &bytes[CHECKSUM + 4..])
}

/// The part of a checksum that the relation decides. The factor is odd, so different relations have different parts.
fn relation_sum(rel: RelId) -> u32 {
    rel.0.wrapping_mul(0x9E37_79B1)
}

/// For the same content, two pages of one relation never have the same checksum. Nor have two relations the
/// same checksum for pages with the same number.
fn checksum(page: PageId, bytes: &[u8]) -> u32 {
    content_sum(bytes) ^ relation_sum(page.rel) ^ page.block
}

/// Puts the checksum on a page about to be written.
pub(crate) fn seal(page: PageId, bytes: &mut [u8]) {
    let sum = checksum(page, bytes);
    bytes[CHECKSUM..CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
}

/// The fault of a page just read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageDamage {
    /// Nothing but zeros.
    Zeros,
    /// The content does not fit the checksum and the place.
    Checksum {
        /// The checksum on the page.
        found: u32,
        /// The checksum of what is there.
        expected: u32,
    },
}

/// Checks a page just read.
pub(crate) fn verify(page: PageId, bytes: &[u8]) -> Result<(), PageDamage> {
    let found = get_u32(bytes, CHECKSUM);
    let expected = checksum(page, bytes);
    if found == 0 && bytes.iter().all(|&byte| byte == 0) {
        Err(PageDamage::Zeros)
    } else if found == expected {
        Ok(())
    } else {
        Err(PageDamage::Checksum { found, expected })
    }
}

/// The number of the page of `rel` that the checksum would be right for. Every content has one; it means
/// something only if the relation has such a page.
pub(crate) fn block_of(rel: RelId, bytes: &[u8]) -> u32 {
    get_u32(bytes, CHECKSUM) ^ content_sum(bytes) ^ relation_sum(rel)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: PageId = PageId {
        rel: RelId(17),
        block: 3,
    };

    /// Copied over another page of the relation, or over the same page of another relation.
    #[test]
    fn a_page_in_another_place_is_seen() {
        let mut page = vec![0; PAGE_SIZE];
        init(&mut page, PageKind::NEW, 0);
        seal(HERE, &mut page);
        for (rel, block) in [(17, 2), (17, 4), (16, 3), (18, 3), (0, 0), (3, 17)] {
            let there = PageId {
                rel: RelId(rel),
                block,
            };
            assert!(verify(there, &page).is_err(), "{there:?}");
        }
        assert_eq!(block_of(HERE.rel, &page), HERE.block);
        assert!(block_of(RelId(18), &page) > 1_000_000, "no such page");
    }

    /// One page in four billion has it.
    #[test]
    fn a_page_with_the_checksum_zero_is_sound() {
        let mut page = vec![0; PAGE_SIZE];
        init(&mut page, PageKind::HEAP, 0);
        let here = PageId {
            block: checksum(PageId { block: 0, ..HERE }, &page),
            ..HERE
        };
        seal(here, &mut page);
        assert_eq!(get_u32(&page, CHECKSUM), 0);
        assert_eq!(verify(here, &page), Ok(()));
    }

    #[test]
    fn a_position_is_read_as_it_is_shown() {
        for (position, text) in [
            (0, "0/0"),
            (0x500_0028, "0/5000028"),
            (0x1_0000_00AB, "1/AB"),
            (u64::MAX, "FFFFFFFF/FFFFFFFF"),
        ] {
            assert_eq!(Lsn(position).to_string(), text);
            assert_eq!(text.parse(), Ok(Lsn(position)));
        }
        assert_eq!("ffffffff/000000ab".parse(), Ok(Lsn(0xFFFF_FFFF_0000_00AB)));
        for text in [
            "",
            "/",
            "1",
            "1/",
            "/1",
            "+1/0",
            "1/-1",
            "1/000000000",
            "1/2/3",
            "1/G",
            " 1/2",
        ] {
            assert_eq!(text.parse::<Lsn>(), Err(NoPosition), "{text:?}");
        }
    }

    #[test]
    fn a_flipped_bit_is_seen() {
        let mut page = vec![0; PAGE_SIZE];
        assert_eq!(verify(HERE, &page), Err(PageDamage::Zeros));
        init(&mut page, PageKind::HEAP, 16);
        set_lsn(&mut page, Lsn(77));
        seal(HERE, &mut page);
        assert_eq!(verify(HERE, &page), Ok(()));
        for byte in [0, 9, 30, PAGE_SIZE - 1] {
            page[byte] ^= 4;
            assert!(verify(HERE, &page).is_err(), "byte {byte}");
            page[byte] ^= 4;
        }
        assert_eq!(
            (lsn(&page), kind(&page), special(&page)),
            (Lsn(77), PageKind::HEAP, PAGE_SIZE - 16)
        );
    }
}
