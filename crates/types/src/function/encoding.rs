//! `encode` and `decode`: bytes as text in base 64, in hexadecimal digits, or escaped.
//!
//! Base 64 has lines of 76 characters and `=` up to the last group of four, as RFC 2045 says; white space is passed over.

use super::bytes::bytes;
use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use super::{check_length, text_of};
use crate::error::{EngineError, Result, SqlState, shown};
use crate::value::DataType::{Bytea, Text};
use crate::value::Value;
use crate::value::bytes::{parse_escape, parse_hex, push_hex};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(1946, "encode", &[Bytea, Text], Text, Pure(encode)),
    row(1947, "decode", &[Text, Text], Bytea, Pure(decode)),
];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of a line.
const LINE: usize = 76;

#[cold]
fn invalid(message: impl Into<String>) -> EngineError {
    EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message.into())
}

#[cold]
fn unknown(name: &str) -> EngineError {
    invalid(format!("unrecognized encoding: \"{}\"", shown(name)))
}

fn encode(arguments: &[Value]) -> Result<Value> {
    let (bytes, name) = (bytes(&arguments[0])?, text_of(&arguments[1])?);
    check_length(bytes.len().saturating_mul(4))?;
    let mut out = String::new();
    match name.to_lowercase().as_str() {
        "hex" => push_hex(bytes, &mut out),
        "base64" => push_base64(bytes, &mut out),
        "escape" => push_escape(bytes, &mut out),
        _ => return Err(unknown(name)),
    }
    Ok(Value::text(out))
}

fn decode(arguments: &[Value]) -> Result<Value> {
    let (text, name) = (text_of(&arguments[0])?, text_of(&arguments[1])?);
    check_length(text.len())?;
    Ok(Value::Bytes(match name.to_lowercase().as_str() {
        "hex" => parse_hex(text)?,
        "base64" => read_base64(text)?.into(),
        "escape" => parse_escape(text.as_bytes())
            .ok_or_else(|| {
                EngineError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type bytea",
                )
            })?
            .into(),
        _ => return Err(unknown(name)),
    }))
}

/// Zero, bytes beyond ASCII and the backslash are escaped, the others stay.
fn push_escape(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            0 | 0x80.. => {
                out.push('\\');
                out.extend([byte >> 6, byte >> 3 & 7, byte & 7].map(|digit| char::from(b'0' + digit)));
            }
            other => out.push(char::from(*other)),
        }
    }
}

fn push_base64(bytes: &[u8], out: &mut String) {
    let mut in_line = 0;
    for group in bytes.chunks(3) {
        if in_line == LINE {
            out.push('\n');
            in_line = 0;
        }
        let at = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            out.push(match place <= group.len() {
                true => char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]),
                false => '=',
            });
        }
        in_line += 4;
    }
    // A line that is full ends, even if nothing follows.
    if in_line == LINE {
        out.push('\n');
    }
}

fn read_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut place, mut end) = (0u32, 0, 0);
    for character in text.chars() {
        let six = match character {
            ' ' | '\t' | '\n' | '\r' => continue,
            '=' => {
                if end == 0 {
                    end = match place {
                        2 => 1,
                        3 => 2,
                        _ => return Err(invalid("unexpected \"=\" while decoding base64 sequence")),
                    };
                }
                0
            }
            character => {
                let found = u8::try_from(character).ok();
                let found = found.and_then(|byte| ALPHABET.iter().position(|known| *known == byte));
                found.ok_or_else(|| {
                    invalid(format!(
                        "invalid symbol \"{character}\" found while decoding base64 sequence"
                    ))
                })? as u32
            }
        };
        bits = bits << 6 | six;
        place += 1;
        if place == 4 {
            out.push((bits >> 16) as u8);
            if end == 0 || end > 1 {
                out.push((bits >> 8) as u8);
            }
            if end == 0 || end > 2 {
                out.push(bits as u8);
            }
            (bits, place) = (0, 0);
        }
    }
    if place != 0 {
        return Err(invalid("invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}
