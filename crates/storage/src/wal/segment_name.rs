//! The names of the log's segments, which are those that PostgreSQL's programs expect.
//!
//! ```text
//!   000000010000000A000000FF
//!   └──┬───┘└──┬───┘└──┬───┘
//!   timeline   │    the segment's number, modulo 256
//!              └─── the segment's number, divided by 256 (256 segments of 16 MiB are 4 GiB)
//! ```
//!
//! `pg_receivewal` and `pg_basebackup` write what they are sent into files of these names, compute the names from the
//! positions alone, and begin each file at a multiple of 16 MiB. So our directory of segments has their name too,
//! `pg_wal`: what `pg_basebackup` leaves behind is a directory that opens.
//!
//! The first segment has number 1. `pg_receivewal` takes an archive whose newest segment is number 0 for an empty
//! one, and a position of zero for "none".

use crate::page::Lsn;
use crate::wal::timeline::History;

pub use crate::wal::timeline::FIRST_TIMELINE;

/// Bytes in a segment.
pub const SEGMENT_SIZE: u64 = 16 << 20;
/// The number of a database's first segment.
pub const FIRST_SEGMENT: u64 = 1;
/// Suffix of the name of a segment that `pg_receivewal` has not received to its end.
pub const PARTIAL_SUFFIX: &str = ".partial";
/// Segments in 4 GiB, the part of a position that the last eight digits cannot hold.
const SEGMENTS_PER_FOUR_GIB: u64 = (1 << 32) / SEGMENT_SIZE;

/// The name of segment `number` on `timeline`.
pub fn segment_name(timeline: u32, number: u64) -> String {
    let (high, low) = (number / SEGMENTS_PER_FOUR_GIB, number % SEGMENTS_PER_FOUR_GIB);
    format!("{timeline:08X}{high:08X}{low:08X}")
}

/// The timeline and the number of the segment with this name; `None` if no segment is called so.
pub fn parse_segment_name(name: &str) -> Option<(u32, u64)> {
    if name.len() != 24
        || !name
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    {
        return None;
    }
    let part = |from: usize| u32::from_str_radix(&name[from..from + 8], 16).ok();
    let (timeline, high, low) = (part(0)?, part(8)?, part(16)?);
    let known = timeline >= FIRST_TIMELINE && u64::from(low) < SEGMENTS_PER_FOUR_GIB;
    known.then_some((timeline, u64::from(high) * SEGMENTS_PER_FOUR_GIB + u64::from(low)))
}

/// The timeline whose name segment `number` has in a log of this history (R2 of `timeline`).
pub fn timeline_of_segment(history: &History, number: u64) -> u32 {
    let last_byte = number * SEGMENT_SIZE + (SEGMENT_SIZE - 1);
    history.timeline_of(Lsn(last_byte))
}

/// The name of segment `number` in a log of this history.
pub fn segment_name_in(history: &History, number: u64) -> String {
    segment_name(timeline_of_segment(history, number), number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_postgresql() {
        for (timeline, number, name) in [
            (1, 1, "000000010000000000000001"),
            (1, 255, "0000000100000000000000FF"),
            (1, 256, "000000010000000100000000"),
            (0x2A, 0xABC * 256 + 0x7E, "0000002A00000ABC0000007E"),
        ] {
            assert_eq!(segment_name(timeline, number), name);
            assert_eq!(parse_segment_name(name), Some((timeline, number)));
        }
    }

    /// A segment that holds a fork is the new timeline's, also if the fork is its first byte; one that ends at a fork is
    /// the former one's.
    #[test]
    fn a_segment_has_the_name_of_the_timeline_that_it_ends_on() {
        let at = |segment: u64, offset: u64| Lsn(segment * SEGMENT_SIZE + offset);
        let history = History::first().forked(2, at(5, 40), "").forked(4, at(8, 0), "");
        let timelines: Vec<u32> = (3..10)
            .map(|number| timeline_of_segment(&history, number))
            .collect();
        assert_eq!(timelines, [1, 1, 2, 2, 2, 4, 4]);
        let twice = History::first().forked(2, at(5, 40), "").forked(3, at(5, 80), "");
        assert_eq!(
            (timeline_of_segment(&twice, 4), timeline_of_segment(&twice, 5)),
            (1, 3)
        );
        assert_eq!(segment_name_in(&twice, 5), "000000030000000000000005");
    }

    /// Files that `pg_receivewal` and `pg_basebackup` leave beside segments, and the names of earlier versions.
    #[test]
    fn other_names_are_no_segments() {
        for name in [
            "",
            "archive_status",
            "00000002.history",
            "0000000000000001",
            "000000010000000000000001.partial",
            "000000010000000000000001.new",
            "000000000000000000000001",
            "000000010000000000000100",
            "0000000100000000000000ff",
            "00000001000000000000000G",
            "+0000001+0000000+0000001",
            "0000000100000000000000é",
        ] {
            assert_eq!(parse_segment_name(name), None, "{name}");
        }
    }
}
