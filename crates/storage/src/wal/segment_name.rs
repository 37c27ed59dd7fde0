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

/// Bytes in a segment.
pub const SEGMENT_SIZE: u64 = 16 << 20;
/// The timeline of a new database's log.
pub const FIRST_TIMELINE: u32 = 1;
/// The number of a database's first segment.
pub const FIRST_SEGMENT: u64 = 1;
/// Segments in 4 GiB, the part of a position that the last eight digits cannot hold.
const SEGMENTS_PER_FOUR_GIB: u64 = (1 << 32) / SEGMENT_SIZE;

/// The name of segment `number`.
pub fn segment_name(number: u64) -> String {
    let (high, low) = (number / SEGMENTS_PER_FOUR_GIB, number % SEGMENTS_PER_FOUR_GIB);
    format!("{FIRST_TIMELINE:08X}{high:08X}{low:08X}")
}

/// The name of the segment that holds `position`.
pub fn segment_name_at(position: u64) -> String {
    segment_name(position / SEGMENT_SIZE)
}

/// The number of the segment with this name; `None` if no segment is called so.
pub fn segment_number(name: &str) -> Option<u64> {
    if name.len() != 24
        || !name
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    {
        return None;
    }
    let part = |from: usize| u64::from_str_radix(&name[from..from + 8], 16).ok();
    let (timeline, high, low) = (part(0)?, part(8)?, part(16)?);
    let known = timeline == u64::from(FIRST_TIMELINE) && low < SEGMENTS_PER_FOUR_GIB;
    known.then_some(high * SEGMENTS_PER_FOUR_GIB + low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_postgresql() {
        for (number, name) in [
            (1, "000000010000000000000001"),
            (255, "0000000100000000000000FF"),
            (256, "000000010000000100000000"),
            (0xABC * 256 + 0x7E, "0000000100000ABC0000007E"),
        ] {
            assert_eq!(segment_name(number), name);
            assert_eq!(segment_number(name), Some(number));
        }
        assert_eq!(segment_name_at(SEGMENT_SIZE), segment_name(1));
        assert_eq!(segment_name_at(2 * SEGMENT_SIZE - 1), segment_name(1));
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
            "000000020000000000000001",
            "000000010000000000000100",
            "0000000100000000000000ff",
            "00000001000000000000000G",
            "+0000001+0000000+0000001",
            "0000000100000000000000é",
        ] {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }
}
