//! Patterns of SIMILAR TO, written as regular expressions.

use crate::error::{EngineError, Result, SqlState};
use crate::function::{check_length, made_of, text_of};
use crate::value::Value;

/// `similar_to_escape(pattern [, escape])`.
///
/// `%` and `_` are any characters and any one; `| * + ? {m,n} ( ) […]` are as in regular expressions; the rest is
/// itself, and so is what follows the escape character.
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
    let (mut escaped, mut in_brackets) = (false, false);
    for character in pattern.chars() {
        if escaped {
            if character == '"' && !in_brackets {
                return Err(EngineError::not_supported(
                    "a separator in the pattern of SIMILAR",
                ));
            }
            result.push('\\');
            result.push(character);
            escaped = false;
        } else if Some(character) == escape {
            escaped = true;
        } else if in_brackets {
            if character == '\\' {
                result.push('\\');
            }
            result.push(character);
            in_brackets = character != ']';
        } else {
            match character {
                '[' => {
                    result.push('[');
                    in_brackets = true;
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
