//! `pg_lsn`, a position in the log, and `tid`, the place of a row: their text forms.

use crate::error::{EngineError, Result, SqlState, shown as shortened};
use crate::value::{DataType, is_space};

/// Appends a position's two halves in hexadecimal digits.
pub fn format_lsn(position: u64, out: &mut String) {
    out.push_str(&format!("{:X}/{:X}", position >> 32, position & 0xFFFF_FFFF));
}

/// The position that a text tells.
pub fn parse_lsn(text: &str) -> Result<u64> {
    let half = |digits: &str| {
        let is_one = (1..=8).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        is_one.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
    };
    let found = text
        .split_once('/')
        .and_then(|(high, low)| Some(half(high)? << 32 | half(low)?));
    found.ok_or_else(|| invalid(text, DataType::PgLsn))
}

/// Appends a row's place: its page and its number there.
pub fn format_tid(page: u32, number: u16, out: &mut String) {
    out.push_str(&format!("({page},{number})"));
}

/// The place that a text tells.
pub fn parse_tid(text: &str) -> Result<(u32, u16)> {
    let inner = text
        .trim_matches(is_space)
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'));
    let parts = inner.and_then(|inner| inner.split_once(','));
    let found = parts.and_then(|(page, number)| {
        let number = number.trim_start_matches(is_space).parse().ok()?;
        Some((page.trim_start_matches(is_space).parse().ok()?, number))
    });
    found.ok_or_else(|| invalid(text, DataType::Tid))
}

#[cold]
fn invalid(text: &str, data_type: DataType) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!(
            "invalid input syntax for type {data_type}: \"{}\"",
            shortened(text)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_read_as_they_are_written() {
        for at in [0, 1, 0xFFFF_FFFF, 0x1_0000_0000, 0x16_B374_D848, u64::MAX] {
            let mut text = String::new();
            format_lsn(at, &mut text);
            assert_eq!(parse_lsn(&text).unwrap(), at);
        }
        assert_eq!(parse_lsn("16/b374d848").unwrap(), 0x16_B374_D848);
        for wrong in [
            "",
            "/",
            "1",
            "1/",
            "/1",
            "1/2/3",
            "x/1",
            "1/ 2",
            "+1/2",
            "123456789/0",
        ] {
            assert_eq!(
                parse_lsn(wrong).unwrap_err().sqlstate().as_str(),
                "22P02",
                "{wrong}"
            );
        }
    }

    #[test]
    fn places_are_read_as_they_are_written() {
        let mut text = String::new();
        format_tid(7, 3, &mut text);
        assert_eq!(text, "(7,3)");
        assert_eq!(parse_tid(" (7, 3) ").unwrap(), (7, 3));
        for wrong in ["", "7,3", "(7)", "(7,3", "(-1,3)", "(7,70000)"] {
            assert!(parse_tid(wrong).is_err(), "{wrong}");
        }
    }
}
