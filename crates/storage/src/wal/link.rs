//! The link of log records: each record carries a digest of all log before it.
//!
//! Protects: a log from being continued by another one. A record's position and CRC show that it is whole and in its
//! place. They do not show that it belongs to the log in front of it.
//!
//! # An example
//! Alice and Bob are copies of one directory, and each of them was written to. Carol follows Alice up to 1000, loses her,
//! and is connected to Bob.
//!
//! | time | Alice | Bob | Carol |
//! | --- | --- | --- | --- |
//! | 1 | a record from 900 to 1000 | another record from 900 to 1000 | |
//! | 2 | | | receives Alice's record; the next one has to carry the link A |
//! | 3 | | a record from 1000 to 1100, with the link B | |
//! | 4 | | | is sent Bob's record: whole, and in its place. B is not A, so Carol refuses it |
//!
//! Without the link Carol would apply Bob's record to pages that are Alice's.
//!
//! # Rules
//! - K1: the link of a record is [`LogLink::after`] of the link and the CRC of the record in front of it. So two logs whose
//!   records carry the same link at one position are the same up to there, but for one chance in 2^32.
//! - K2: the worker that writes the log out enters the links, in the order of the records. A record's CRC does not cover
//!   its link, so that an insertion needs neither its predecessor nor a latch: the place of a record is one addition.
//! - K3: a record on the device has its link. What is in the ring alone may lack it, and no worker reads it there.
//! - K4: a reader that has read a record knows the link of the next one. A reader that begins in the middle takes the first
//!   record's link for the right one, since it has nothing to compare it with.
//! - K5: a whole record with another link ends the log, as bytes that are no record do.
//!
//! The chain goes on over the beginning of a timeline.
//!
//! # Why an insertion does not enter the link
//! PostgreSQL's records have the position of their predecessor, which an insertion learns when it reserves its place: both
//! words change under one spin latch. Under `log_reserve = fetch-add` a place is one atomic addition, which knows no
//! predecessor. And the predecessor's position says less: two copies of one directory may well have records of the same
//! sizes.
//!
//! Costs: no bytes, since a record keeps the lower half of its position only, and its CRC covers the whole; 8 bytes through
//! CRC-32C for each record, by the worker that writes it out.

/// The link of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogLink(pub u32);

impl LogLink {
    /// That of the first record of a log.
    pub const FIRST: LogLink = LogLink(0);

    /// The link of the record that follows one with this link and this CRC (K1).
    #[inline]
    pub fn after(self, crc: u32) -> LogLink {
        LogLink(crc32c::crc32c_append(self.0, &crc.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_depends_on_all_records_before() {
        let link = |crcs: [u32; 3]| crcs.into_iter().fold(LogLink::FIRST, LogLink::after);
        let one = link([1, 2, 3]);
        for other in [[7, 2, 3], [1, 7, 3], [1, 2, 7], [2, 1, 3], [1, 3, 2]] {
            assert_ne!(link(other), one, "{other:?}");
        }
    }
}
