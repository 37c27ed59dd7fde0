//! The form of a log record. All numbers are little-endian; records start at multiples of 8.
//!
//! ```text
//! 0     4     8       12     16     18     20        24    32
//! | len | crc | place | link | kind | zero | pending | xid | payload … | zeros to a multiple of 8
//! ```
//!
//! `len` counts from the record's start to the end of its payload. `place` is the record's own position in the log, in
//! units of 8 bytes modulo 2^32, so that what an earlier life of a recycled segment left behind is not taken for a record.
//! `crc` is the CRC-32C of the payload, the whole position, and the header without `crc`, `place` and `link`. `link` is a
//! digest of the log before the record ([`LogLink`]), and is entered when the record is written out. `pending` is the
//! distance, in units of 8 bytes, from the position up to which the log was durable when the record was inserted to the
//! record's own: recovery tells a damaged log from an unfinished one by it.

use clearway_txn::Xid;

use super::link::LogLink;
pub use super::record_kind::{KindNotNamed, RecordKind};
use crate::page::{Lsn, get_u16, get_u32, get_u64};

/// Bytes before the payload.
pub const HEADER: usize = 32;
/// The offset of the CRC.
pub(super) const CRC: usize = 4;
/// The offset of the place.
const PLACE: usize = 8;
/// The offset of the link.
pub(super) const LINK: usize = 12;
/// No record is longer; a length above it is a torn tail.
pub const RECORD_MAX: usize = 1 << 20;

/// A record read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its kind.
    pub kind: RecordKind,
    /// The transaction that logged it; [`Xid::INVALID`] if none.
    pub xid: Xid,
    /// The log was durable up to here when the record was inserted.
    pub durable: Lsn,
    /// Its link, which shows what log it continues.
    pub link: LogLink,
    /// The link of the record that continues the log behind it.
    pub next_link: LogLink,
    /// The payload; `kind` tells its form.
    pub payload: &'a [u8],
}

/// Result of reading a record at a position of the log.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A whole record, and the number of bytes it takes.
    Record(Record<'a>, usize),
    /// The given bytes end before the record does; this many are needed.
    NeedMore(usize),
    /// No whole record.
    End,
}

/// Bytes a record with `payload` bytes of payload takes.
pub fn size(payload: usize) -> usize {
    (HEADER + payload).next_multiple_of(8)
}

/// The header of a record that is inserted at `position` when the log is durable up to `durable`; `payload_crc` is the
/// CRC-32C of its payload.
pub fn header(
    kind: RecordKind,
    xid: Xid,
    position: u64,
    durable: u64,
    payload: usize,
    payload_crc: u32,
) -> [u8; HEADER] {
    debug_assert!(durable <= position && (position - durable).is_multiple_of(8));
    // The largest u32 stands for any larger distance. That is far more than the log's ring can hold, and a
    // larger distance would only prove less.
    let pending = u32::try_from((position - durable) / 8).unwrap_or(u32::MAX);
    let mut header = [0; HEADER];
    header[0..4].copy_from_slice(&((HEADER + payload) as u32).to_le_bytes());
    header[PLACE..LINK].copy_from_slice(&place(position).to_le_bytes());
    header[16..18].copy_from_slice(&kind.number().to_le_bytes());
    header[20..24].copy_from_slice(&pending.to_le_bytes());
    header[24..32].copy_from_slice(&xid.0.to_le_bytes());
    let sum = header_crc(payload_crc, &header, position);
    header[CRC..PLACE].copy_from_slice(&sum.to_le_bytes());
    header
}

/// The header's word for `position`.
fn place(position: u64) -> u32 {
    (position / 8) as u32
}

/// True if a record at `position` may begin with the header `bytes`, by its place alone.
pub(super) fn may_begin_at(bytes: &[u8], position: u64) -> bool {
    get_u32(bytes, PLACE) == place(position)
}

fn header_crc(payload_crc: u32, header: &[u8], position: u64) -> u32 {
    let mut covered = [0; 28];
    covered[0..4].copy_from_slice(&header[0..4]);
    covered[4..12].copy_from_slice(&position.to_le_bytes());
    covered[12..28].copy_from_slice(&header[16..HEADER]);
    crc32c::crc32c_append(payload_crc, &covered)
}

/// Enters the links of the records that `bytes` consist of, the first of which gets `first`; the link of the record that
/// follows them.
pub fn enter_links(bytes: &mut [u8], first: LogLink) -> LogLink {
    let mut link = first;
    let mut at = 0;
    while at < bytes.len() {
        bytes[at + LINK..at + LINK + 4].copy_from_slice(&link.0.to_le_bytes());
        link = link.after(get_u32(bytes, at + CRC));
        at += (get_u32(bytes, at) as usize).next_multiple_of(8);
    }
    link
}

/// Reads the record that begins `bytes`, which are at `position` in the log. Its link may be any.
pub fn decode(bytes: &[u8], position: u64) -> Decoded<'_> {
    if bytes.len() < HEADER {
        return Decoded::NeedMore(HEADER);
    }
    let length = get_u32(bytes, 0) as usize;
    if !(HEADER..=RECORD_MAX).contains(&length) || !may_begin_at(bytes, position) {
        return Decoded::End;
    }
    let total = length.next_multiple_of(8);
    if bytes.len() < total {
        return Decoded::NeedMore(total);
    }
    let payload = &bytes[HEADER..length];
    if header_crc(crc32c::crc32c(payload), &bytes[..HEADER], position) != get_u32(bytes, CRC) {
        return Decoded::End;
    }
    let link = LogLink(get_u32(bytes, LINK));
    match RecordKind::from_number(get_u16(bytes, 16)) {
        Some(kind) => Decoded::Record(
            Record {
                kind,
                xid: Xid(get_u64(bytes, 24)),
                durable: Lsn(position.saturating_sub(8 * u64::from(get_u32(bytes, 20)))),
                link,
                next_link: link.after(get_u32(bytes, CRC)),
                payload,
            },
            total,
        ),
        None => Decoded::End,
    }
}
