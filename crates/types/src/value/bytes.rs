//! The text forms of `bytea`.
//!
//! | form | the bytes `61 00 5c` |
//! |---|---|
//! | hex | `\x61005c` |
//! | escape | `a\000\\`: three octal digits for what is not printable ASCII |
//!
//! Input takes both; output is hex unless the setting `bytea_output` is `escape`.

use crate::error::{EngineError, Result, SqlState};
use crate::memory;

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends two digits for each byte.
pub fn push_hex(bytes: &[u8], out: &mut String) {
    out.reserve(2 * bytes.len());
    for byte in bytes {
        out.push(char::from(DIGITS[usize::from(byte >> 4)]));
        out.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
}

/// Appends the hex form.
pub fn format_hex(bytes: &[u8], out: &mut String) {
    out.push_str("\\x");
    push_hex(bytes, out);
}

/// Appends the escape form.
pub fn format_escape(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' => out.push(char::from(*byte)),
            other => {
                out.push('\\');
                out.extend([other >> 6, other >> 3 & 7, other & 7].map(|digit| char::from(b'0' + digit)));
            }
        }
    }
}

/// Reads either form.
pub fn parse_bytes(text: &str) -> Result<Box<[u8]>> {
    memory::require(text.len())?;
    match text.strip_prefix("\\x") {
        Some(digits) => parse_hex(digits),
        None => parse_escape(text.as_bytes())
            .map(Vec::into_boxed_slice)
            .ok_or_else(|| {
                EngineError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type bytea",
                )
            }),
    }
}

/// The bytes of pairs of hexadecimal digits, with white space between the pairs.
pub fn parse_hex(text: &str) -> Result<Box<[u8]>> {
    let invalid = |message: String| EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let mut bytes = Vec::with_capacity(text.len() / 2);
    let mut characters = text.chars();
    let digit = |character: char| {
        character
            .to_digit(16)
            .ok_or_else(|| invalid(format!("invalid hexadecimal digit: \"{character}\"")))
    };
    while let Some(first) = characters.next() {
        if matches!(first, ' ' | '\n' | '\t' | '\r') {
            continue;
        }
        let high = digit(first)?;
        let second = characters
            .next()
            .ok_or_else(|| invalid("invalid hexadecimal data: odd number of digits".to_owned()))?;
        bytes.push((high << 4 | digit(second)?) as u8);
    }
    Ok(bytes.into())
}

/// The bytes of the escape form; `None` for a backslash that escapes nothing.
pub fn parse_escape(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let byte;
        (rest, byte) = match (first, behind) {
            (b'\\', [b'\\', behind @ ..]) => (behind, b'\\'),
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', behind @ ..]) => {
                (behind, (a & 3) << 6 | (b & 7) << 3 | (c & 7))
            }
            (b'\\', _) => return None,
            (other, behind) => (behind, *other),
        };
        bytes.push(byte);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read_as_they_are_written() {
        let all: Vec<u8> = (0..=255).collect();
        let (mut hex, mut escape) = (String::new(), String::new());
        format_hex(&all, &mut hex);
        format_escape(&all, &mut escape);
        assert_eq!(*parse_bytes(&hex).unwrap(), all[..]);
        assert_eq!(*parse_bytes(&escape).unwrap(), all[..]);
        assert!(escape.starts_with("\\000\\001") && escape.contains("[\\\\]"));
    }

    #[test]
    fn what_is_neither_is_an_error() {
        for text in ["\\", "\\9", "\\400", "\\x1", "\\x1g", "a\\b"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
        assert_eq!(*parse_bytes("\\xDe aD").unwrap(), [0xde, 0xad]);
    }
}
