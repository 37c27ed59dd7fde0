//! Patterns of SIMILAR TO, written as regular expressions.

use crate::error::{EngineError, Result, SqlState};
use crate::function::{check_length, made_of, text_of};
use crate::value::Value;

/// `similar_to_escape(pattern [, escape])`.
///
/// `%` and `_` are any characters and any one; `| * + ? {m,n} ( ) […]` are as in regular expressions; the rest is
/// itself, and so is what follows the escape character. A quotation mark behind it separates two parts:
///
/// ```text
/// a#"b%#"c    ^(?:a){1,1}?(b.*){1,1}(?:c)$    what SUBSTRING gives is the part in parentheses
/// ```
///
/// The first part is as short as it can be, then the second as long as it can be. A bar stays within its part.
pub(super) fn to_escape(arguments: &[Value]) -> Result<Value> {
    let pattern = made_of(&arguments[0])?;
    let escape = match arguments.get(1) {
        None => Some('\\'),
        Some(escape) => {
            let mut characters = text_of(escape)?.chars();
            let escape = characters.next();
            if characters.next().is_some() {
                return Err(
                    EngineError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                        .with_hint("Escape string must be empty or one character."),
                );
            }
            escape
        }
    };
    check_length(pattern.len().saturating_mul(3))?;
    let mut result = String::from("^(?:");
    // Brackets that are open, and whether the first of them has only begun: a `]` that is the first in it, also behind a
    // `^`, is a character like others.
    let (mut escaped, mut brackets, mut at_start) = (false, 0_usize, false);
    let mut separators = 0;
    for character in pattern.chars() {
        if escaped {
            if character == '"' && brackets == 0 {
                result.push_str(match separators {
                    0 => "){1,1}?(",
                    1 => "){1,1}(?:",
                    _ => return Err(too_many_separators()),
                });
                separators += 1;
            } else {
                result.push('\\');
                result.push(character);
            }
            escaped = false;
        } else if Some(character) == escape {
            escaped = true;
        } else if brackets > 0 {
            if character == '\\' {
                result.push('\\');
            }
            result.push(character);
            match character {
                ']' if !at_start => brackets -= 1,
                '[' => brackets += 1,
                _ => {}
            }
            at_start &= character == '^' && result.ends_with("[^");
        } else {
            match character {
                '[' => {
                    result.push('[');
                    (brackets, at_start) = (1, true);
                }
                '%' => result.push_str(".*"),
                '_' => result.push('.'),
                '(' => result.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    result.push('\\');
                    result.push(character);
                }
                other => result.push(other),
            }
        }
    }
    result.push_str(")$");
    Ok(Value::text(result))
}

#[cold]
fn too_many_separators() -> EngineError {
    EngineError::new(
        SqlState::from_code("2200C"),
        "SQL regular expression may not contain more than two escape-double-quote separators",
    )
}
