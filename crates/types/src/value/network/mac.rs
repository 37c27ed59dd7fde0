//! The text forms of `macaddr` and `macaddr8`: six or eight bytes in hexadecimal digits, written with colons between them.
//!
//! A `macaddr` is read in seven shapes, tried in turn. In those with a colon or a hyphen between all bytes a number may
//! have any digits, in the others two at most; as in C's `scanf`, blanks, a sign and `0x` may stand in front of each.
//! A `macaddr8` is read in pairs of digits, behind each of which one kind of separator may stand; of six bytes it gets
//! `ff:fe` in the middle.

use std::fmt::Write as _;

use crate::error::{EngineError, Result, SqlState, shown};
use crate::value::is_space;

/// Appends bytes with colons between them.
pub fn format_mac(bytes: &[u8], out: &mut String) {
    for (at, byte) in bytes.iter().enumerate() {
        let colon = if at > 0 { ":" } else { "" };
        let _ = write!(out, "{colon}{byte:02x}");
    }
}

/// A shape of a `macaddr`: what stands behind how many bytes, and the most characters of a byte.
struct Shape {
    separator: Option<char>,
    between: usize,
    digits: usize,
}

const fn shape(separator: Option<char>, between: usize, digits: usize) -> Shape {
    Shape {
        separator,
        between,
        digits,
    }
}

const SHAPES: [Shape; 7] = [
    shape(Some(':'), 1, usize::MAX),
    shape(Some('-'), 1, usize::MAX),
    shape(Some(':'), 3, 2),
    shape(Some('-'), 3, 2),
    shape(Some('.'), 2, 2),
    shape(Some('-'), 2, 2),
    shape(None, 6, 2),
];

/// Reads a `macaddr`.
pub fn parse_mac(text: &str) -> Result<[u8; 6]> {
    let numbers = SHAPES.iter().find_map(|shape| read_shape(text, shape));
    let numbers = numbers.ok_or_else(|| invalid(text, "macaddr"))?;
    let mut bytes = [0; 6];
    for (byte, number) in bytes.iter_mut().zip(numbers) {
        *byte = u8::try_from(number).map_err(|_| {
            EngineError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("invalid octet value in \"macaddr\" value: \"{}\"", shown(text)),
            )
        })?;
    }
    Ok(bytes)
}

/// The six numbers of a text in a shape; `None` if it has another one.
fn read_shape(text: &str, shape: &Shape) -> Option<[i64; 6]> {
    let mut rest = text;
    let mut numbers = [0; 6];
    for (at, number) in numbers.iter_mut().enumerate() {
        if let Some(separator) = shape.separator
            && at > 0
            && at % shape.between == 0
        {
            rest = rest.strip_prefix(separator)?;
        }
        (*number, rest) = read_number(rest, shape.digits)?;
    }
    rest.chars().all(is_space).then_some(numbers)
}

/// A number at the front of a text, of at most `width` characters behind the blanks, and what follows it.
fn read_number(text: &str, width: usize) -> Option<(i64, &str)> {
    let text = text.trim_start_matches(is_space);
    let mut at = 0;
    let next = |at: usize| text.as_bytes().get(at).copied().filter(|_| at < width);
    let is_negative = next(0) == Some(b'-');
    if matches!(next(0), Some(b'-' | b'+')) {
        at = 1;
    }
    let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
    if next(at) == Some(b'0') && matches!(next(at + 1), Some(b'x' | b'X')) && is_digit(next(at + 2)) {
        at += 2;
    }
    let start = at;
    let mut number = 0i64;
    while let Some(digit) = next(at).and_then(|byte| char::from(byte).to_digit(16)) {
        // Whatever is above a byte is out of range.
        number = (number * 16 + i64::from(digit)).min(i64::from(u32::MAX));
        at += 1;
    }
    (at > start).then_some((if is_negative { -number } else { number }, &text[at..]))
}

/// Reads a `macaddr8`.
pub fn parse_mac8(text: &str) -> Result<[u8; 8]> {
    read_pairs(text).ok_or_else(|| invalid(text, "macaddr8"))
}

fn read_pairs(text: &str) -> Option<[u8; 8]> {
    let mut rest = text.trim_start_matches(is_space).as_bytes();
    let (mut bytes, mut separator) = (Vec::with_capacity(8), None);
    // A single character at the end is not looked at, as in PostgreSQL.
    while let [high, low, behind @ ..] = rest {
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        if bytes.len() == 8 {
            return None;
        }
        bytes.push((digit(high)? << 4 | digit(low)?) as u8);
        rest = behind;
        if let [found @ (b':' | b'-' | b'.'), behind @ ..] = rest {
            if *separator.get_or_insert(*found) != *found {
                return None;
            }
            rest = behind;
        }
        if matches!(bytes.len(), 6 | 8) && rest.first().is_some_and(|byte| is_space(char::from(*byte))) {
            match rest.iter().all(|byte| is_space(char::from(*byte))) {
                true => break,
                false => return None,
            }
        }
    }
    match *bytes {
        [a, b, c, d, e, f] => Some([a, b, c, 0xff, 0xfe, d, e, f]),
        _ => bytes.try_into().ok(),
    }
}

#[cold]
fn invalid(text: &str, data_type: &str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {data_type}: \"{}\"", shown(text)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each as PostgreSQL 15 reads it.
    #[test]
    fn six_bytes_have_seven_shapes() {
        for text in [
            "08:00:2b:01:02:03",
            "08-00-2b-01-02-03",
            "08002b:010203",
            "08002b-010203",
            "0800.2b01.0203",
            "0800-2b01-0203",
            "08002b010203",
            "8:0:2b:1:2:3",
            " 08: 00:2b:01:02:0x3 ",
            "08 00 2b 01 02 03",
        ] {
            assert_eq!(parse_mac(text).unwrap(), [8, 0, 0x2b, 1, 2, 3], "{text}");
        }
        assert_eq!(parse_mac("0802.b01.203").unwrap(), [8, 2, 0xb0, 1, 0x20, 3]);
        for text in [
            "",
            "not",
            "08:00:2b:01:02",
            "08:00:2b:01:02:0g",
            "08:00:2b:01:02:03:04",
            "08:00:2b-01:02:03",
            "0800:2b01:0203",
            "08 :00:2b:01:02:03",
            "08002b0102034",
            "1.2.3",
        ] {
            let error = parse_mac(text).unwrap_err();
            assert_eq!(error.sqlstate(), SqlState::INVALID_TEXT_REPRESENTATION, "{text}");
        }
        for text in [
            "108:00:2b:01:02:03",
            "08:00:2b:01:02:-3",
            "fffffffffffffffffffff:0:0:0:0:0",
        ] {
            let error = parse_mac(text).unwrap_err();
            assert_eq!(error.sqlstate(), SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "{text}");
        }
    }

    #[test]
    fn eight_bytes_come_in_pairs() {
        let eight = [8, 0, 0x2b, 1, 2, 3, 4, 5];
        for text in [
            "08:00:2b:01:02:03:04:05 ",
            "08002b-0102030405",
            "0800.2b01.0203.0405",
            "08002b0102030405",
        ] {
            assert_eq!(parse_mac8(text).unwrap(), eight, "{text}");
        }
        for text in [
            " 08:00:2b:01:02:03",
            "08002b010203",
            "08:00:2b:01:02:03:",
            "08002b:010203",
        ] {
            assert_eq!(
                parse_mac8(text).unwrap(),
                [8, 0, 0x2b, 0xff, 0xfe, 1, 2, 3],
                "{text}"
            );
        }
        for text in [
            "",
            "123",
            "08:00:2b:01:02",
            "08:00:2b:01:02:03:04",
            "08:00-2b:01:02:03",
            "8:0:2b:1:2:3",
            "08::00:2b:01:02",
            "08:00:2b:01:02:03:04:05:06",
            "08002b010203 x",
            "08002b010203zz",
        ] {
            assert!(parse_mac8(text).is_err(), "{text}");
        }
    }
}
