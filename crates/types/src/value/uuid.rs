//! The text form of `uuid`: 32 hexadecimal digits.
//!
//! Input takes digits of either case, perhaps in braces, with a hyphen behind any group of four of them. Output has
//! groups of 8, 4, 4, 4 and 12.

use crate::error::{EngineError, Result, SqlState, shown};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends the text of a uuid.
pub fn format_uuid(uuid: &[u8; 16], out: &mut String) {
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Reads a uuid.
pub fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    read(text).ok_or_else(|| {
        EngineError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type uuid: \"{}\"", shown(text)),
        )
    })
}

fn read(text: &str) -> Option<[u8; 16]> {
    let (inside, in_braces) = match text.strip_prefix('{') {
        Some(inside) => (inside, true),
        None => (text, false),
    };
    let mut rest = inside.as_bytes();
    let mut uuid = [0; 16];
    for (at, byte) in uuid.iter_mut().enumerate() {
        let [high, low, behind @ ..] = rest else {
            return None;
        };
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        *byte = (digit(high)? << 4 | digit(low)?) as u8;
        rest = match behind {
            [b'-', behind @ ..] if at % 2 == 1 && at < 15 => behind,
            behind => behind,
        };
    }
    let end: &[u8] = if in_braces { b"}" } else { b"" };
    (rest == end).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hyphens_may_stand_behind_groups_of_four() {
        let known = parse_uuid("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11").unwrap();
        for text in [
            "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
            "{a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11}",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        ] {
            assert_eq!(parse_uuid(text).unwrap(), known, "{text}");
        }
        for text in [
            "",
            "{a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11}",
            "a0e-ebc999c0b4ef8bb6d6bb9bd380a11",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11-",
            " a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "g0eebc999c0b4ef8bb6d6bb9bd380a11",
        ] {
            assert!(parse_uuid(text).is_err(), "{text}");
        }
    }
}
