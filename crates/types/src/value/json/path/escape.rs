//! The escapes in names and strings of a path: `\n`, `\x41`, `\u0041`, `\u{1f604}`.

use crate::error::{EngineError, Result, SqlState};

/// The faults of an escape.
pub(super) enum EscapeFault {
    /// It is cut short, or not of hexadecimal digits: 42601, with so many bytes of the text.
    Malformed(&'static str, usize),
    /// It means no character.
    Value(EngineError),
}

/// Reads the escapes at the start of a text, as many as there are: halves of a pair of code units may not be apart.
/// Appends what they mean, and gives the number of bytes that they take.
pub(super) fn read(text: &str, out: &mut String) -> Result<usize, EscapeFault> {
    let bytes = text.as_bytes();
    match bytes.get(1) {
        None | Some(b'\n') => Err(EscapeFault::Malformed("unexpected end after backslash", 1)),
        Some(b'u') => code_units(text, out),
        Some(b'x') => {
            let digits = hexadecimal(bytes, 2, 2);
            if digits < 2 {
                return Err(EscapeFault::Malformed(
                    "invalid hex character sequence",
                    2 + digits,
                ));
            }
            push(number(&text[2..4]), &mut None, out).map_err(EscapeFault::Value)?;
            Ok(4)
        }
        Some(_) => {
            let escaped = text[1..].chars().next().unwrap_or('\\');
            out.push(match escaped {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                other => other,
            });
            Ok(1 + escaped.len_utf8())
        }
    }
}

/// A run of `\u` escapes.
fn code_units(text: &str, out: &mut String) -> Result<usize, EscapeFault> {
    let bytes = text.as_bytes();
    let malformed = |end| EscapeFault::Malformed("invalid unicode sequence", end);
    let (mut at, mut high) = (0, None);
    while bytes[at..].starts_with(b"\\u") {
        let (digits, end) = match bytes.get(at + 2) {
            Some(b'{') => {
                let count = hexadecimal(bytes, at + 3, 6);
                let close = at + 3 + count;
                if count == 0 || bytes.get(close) != Some(&b'}') {
                    return Err(malformed(close));
                }
                (&text[at + 3..close], close + 1)
            }
            _ => {
                let count = hexadecimal(bytes, at + 2, 4);
                if count < 4 {
                    return Err(malformed(at + 2 + count));
                }
                (&text[at + 2..at + 6], at + 6)
            }
        };
        push(number(digits), &mut high, out).map_err(EscapeFault::Value)?;
        at = end;
    }
    match high {
        None => Ok(at),
        Some(_) => Err(EscapeFault::Value(half_of_a_pair(LOW_AFTER_HIGH))),
    }
}

/// The number of hexadecimal digits from a byte on, up to a limit.
fn hexadecimal(bytes: &[u8], from: usize, limit: usize) -> usize {
    let digits = bytes.iter().skip(from).take(limit);
    digits.take_while(|byte| byte.is_ascii_hexdigit()).count()
}

fn number(digits: &str) -> u32 {
    digits.bytes().fold(0, |number, digit| {
        number << 4 | char::from(digit).to_digit(16).unwrap_or(0)
    })
}

const LOW_AFTER_HIGH: &str = "Unicode low surrogate must follow a high surrogate.";
const HIGH_AFTER_HIGH: &str = "Unicode high surrogate must not follow a high surrogate.";

/// Appends a code point, or a half of a pair of code units, of which `high` is the first half if there is one.
fn push(code: u32, high: &mut Option<u32>, out: &mut String) -> Result<()> {
    match (code, high.take()) {
        (0, _) => Err(EngineError::new(
            SqlState::from_code("22P05"),
            "unsupported Unicode escape sequence",
        )
        .with_detail("\\u0000 cannot be converted to text.")),
        (0xd800..0xdc00, Some(_)) => Err(half_of_a_pair(HIGH_AFTER_HIGH)),
        (0xd800..0xdc00, None) => {
            *high = Some(code);
            Ok(())
        }
        (0xdc00..0xe000, Some(first)) => {
            out.extend(char::from_u32(0x10000 + ((first & 0x3ff) << 10 | (code & 0x3ff))));
            Ok(())
        }
        (0xdc00..0xe000, None) | (_, Some(_)) => Err(half_of_a_pair(LOW_AFTER_HIGH)),
        (code, None) => match char::from_u32(code) {
            Some(character) => {
                out.push(character);
                Ok(())
            }
            None => Err(EngineError::new(
                SqlState::SYNTAX_ERROR,
                "invalid Unicode code point",
            )),
        },
    }
}

#[cold]
fn half_of_a_pair(detail: &'static str) -> EngineError {
    EngineError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        "invalid input syntax for type jsonpath",
    )
    .with_detail(detail)
}
