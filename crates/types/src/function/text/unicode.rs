//! `unistr`: escapes of characters by their numbers.

use crate::error::{EngineError, Result, SqlState};
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::function::text_of;
use crate::value::DataType::Text;
use crate::value::Value;

/// The functions.
pub(in crate::function) static ROWS: &[FunctionRow] = &[row(6198, "unistr", &[Text], Text, Pure(unistr))];

/// A text with `\XXXX`, `\uXXXX`, `\+XXXXXX` and `\UXXXXXXXX` as the characters of these numbers, and `\\` as `\`.
/// Characters beyond 16 bits may be two numbers, as in UTF-16.
fn unistr(arguments: &[Value]) -> Result<Value> {
    let mut rest = text_of(&arguments[0])?;
    let mut result = String::with_capacity(rest.len());
    let mut high = None;
    while let Some(first) = rest.chars().next() {
        if first != '\\' || rest.as_bytes().get(1) == Some(&b'\\') {
            require(high.is_none())?;
            result.push(first);
            rest = &rest[first.len_utf8() + usize::from(first == '\\')..];
            continue;
        }
        let (number, length) = number(rest).ok_or_else(invalid_escape)?;
        rest = &rest[length..];
        if number == 0 || number > 0x10_FFFF {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid Unicode code point: {number:04X}"),
            ));
        }
        let whole = match (high, number) {
            (None, 0xD800..=0xDBFF) => {
                high = Some(number);
                continue;
            }
            (Some(first), 0xDC00..=0xDFFF) => 0x1_0000 + ((first - 0xD800) << 10) + (number - 0xDC00),
            (None, number) => number,
            (Some(_), _) => return Err(invalid_pair()),
        };
        high = None;
        result.push(char::from_u32(whole).ok_or_else(invalid_pair)?);
    }
    require(high.is_none())?;
    Ok(Value::text(result))
}

/// The number of the escape at the start of a text, and the escape's length in bytes.
fn number(text: &str) -> Option<(u32, usize)> {
    let bytes = text.as_bytes();
    let (start, digits) = match bytes.get(1)? {
        b'u' => (2, 4),
        b'+' => (2, 6),
        b'U' => (2, 8),
        _ => (1, 4),
    };
    let written = bytes.get(start..start + digits)?;
    if !written.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let number = u32::from_str_radix(&text[start..start + digits], 16).ok()?;
    Some((number, start + digits))
}

fn require(is_whole: bool) -> Result<()> {
    is_whole.then_some(()).ok_or_else(invalid_pair)
}

#[cold]
fn invalid_pair() -> EngineError {
    EngineError::new(SqlState::SYNTAX_ERROR, "invalid Unicode surrogate pair")
}

#[cold]
fn invalid_escape() -> EngineError {
    EngineError::new(SqlState::SYNTAX_ERROR, "invalid Unicode escape")
        .with_hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
}
