//! Parts of strings: taken out, looked for, replaced.

use crate::error::{EngineError, Result, SqlState};
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::function::{check_length, int, made_of, out_of_range, text_of};
use crate::value::DataType::{Int4, Text};
use crate::value::Value;

/// The functions.
pub(in crate::function) static ROWS: &[FunctionRow] = &[
    row(
        885,
        "btrim",
        &[Text],
        Text,
        Pure(|arguments| trim(arguments, true, true)),
    ),
    row(
        884,
        "btrim",
        &[Text, Text],
        Text,
        Pure(|arguments| trim(arguments, true, true)),
    ),
    row(
        881,
        "ltrim",
        &[Text],
        Text,
        Pure(|arguments| trim(arguments, true, false)),
    ),
    row(
        875,
        "ltrim",
        &[Text, Text],
        Text,
        Pure(|arguments| trim(arguments, true, false)),
    ),
    row(
        882,
        "rtrim",
        &[Text],
        Text,
        Pure(|arguments| trim(arguments, false, true)),
    ),
    row(
        876,
        "rtrim",
        &[Text, Text],
        Text,
        Pure(|arguments| trim(arguments, false, true)),
    ),
    row(937, "substring", &[Text, Int4], Text, Pure(substring)),
    row(936, "substring", &[Text, Int4, Int4], Text, Pure(substring)),
    row(883, "substr", &[Text, Int4], Text, Pure(substring)),
    row(877, "substr", &[Text, Int4, Int4], Text, Pure(substring)),
    row(1637, "like_escape", &[Text, Text], Text, Pure(like_escape)),
    row(849, "position", &[Text, Text], Int4, Pure(position)),
    row(868, "strpos", &[Text, Text], Int4, Pure(position)),
    row(1405, "overlay", &[Text, Text, Int4], Text, Pure(overlay)),
    row(1404, "overlay", &[Text, Text, Int4, Int4], Text, Pure(overlay)),
    row(3060, "left", &[Text, Int4], Text, Pure(left)),
    row(3061, "right", &[Text, Int4], Text, Pure(right)),
    row(2087, "replace", &[Text, Text, Text], Text, Pure(replace)),
    row(878, "translate", &[Text, Text, Text], Text, Pure(translate)),
    row(2088, "split_part", &[Text, Text, Int4], Text, Pure(split_part)),
];

fn trim(arguments: &[Value], start: bool, end: bool) -> Result<Value> {
    let mut text = made_of(&arguments[0])?;
    let set = match arguments.get(1) {
        Some(set) => text_of(set)?,
        None => " ",
    };
    let set: Vec<char> = set.chars().collect();
    if start {
        text = text.trim_start_matches(&*set);
    }
    if end {
        text = text.trim_end_matches(&*set);
    }
    Ok(Value::from(text))
}

/// The byte at which a character is, counted from 0; the end if there are fewer.
fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(at, _)| at)
}

/// The characters from the one numbered `start` (from 1, or before it), `length` of them or all.
fn characters(text: &str, start: i64, length: Option<i64>) -> Result<&str> {
    if length.is_some_and(|length| length < 0) {
        return Err(negative_length());
    }
    let first = start.max(1);
    let rest = &text[byte_of(text, first as usize - 1)..];
    Ok(match length {
        None => rest,
        Some(length) => &rest[..byte_of(rest, (start + length - first).max(0) as usize)],
    })
}

fn substring(arguments: &[Value]) -> Result<Value> {
    let length = arguments.get(2).map(int).transpose()?;
    let start = i64::from(int(&arguments[1])?);
    let part = characters(made_of(&arguments[0])?, start, length.map(i64::from))?;
    Ok(Value::from(part))
}

/// A pattern of LIKE with the backslash as its escape character, from one with another or with none.
fn like_escape(arguments: &[Value]) -> Result<Value> {
    let (pattern, escape) = (made_of(&arguments[0])?, text_of(&arguments[1])?);
    let mut characters = escape.chars();
    let escape = characters.next();
    if characters.next().is_some() {
        return Err(
            EngineError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
                .with_hint("Escape string must be empty or one character."),
        );
    }
    if escape == Some('\\') {
        return Ok(Value::from(pattern));
    }
    check_length(pattern.len().saturating_mul(2))?;
    let mut result = String::with_capacity(pattern.len());
    let mut escaped = false;
    for character in pattern.chars() {
        match character {
            one if Some(one) == escape && !escaped => {
                result.push('\\');
                escaped = true;
                continue;
            }
            '\\' if !escaped => result.push_str("\\\\"),
            other => result.push(other),
        }
        escaped = false;
    }
    Ok(Value::text(result))
}

/// The number of the character where a text begins in another, from 1; 0 if it is not there.
fn position(arguments: &[Value]) -> Result<Value> {
    let text = text_of(&arguments[0])?;
    let found = text.find(text_of(&arguments[1])?);
    Ok(Value::Int4(
        found.map_or(0, |byte| text[..byte].chars().count() as i32 + 1),
    ))
}

/// A text with a part of it replaced, as long as its replacement unless it is said.
fn overlay(arguments: &[Value]) -> Result<Value> {
    let (text, replacement) = (text_of(&arguments[0])?, text_of(&arguments[1])?);
    let start = int(&arguments[2])?;
    if start <= 0 {
        return Err(negative_length());
    }
    let length = match arguments.get(3) {
        Some(length) => int(length)?,
        None => replacement.chars().count() as i32,
    };
    let behind = start.checked_add(length).ok_or_else(|| out_of_range("integer"))?;
    let before = characters(text, 1, Some(i64::from(start) - 1))?;
    let after = characters(text, i64::from(behind), None)?;
    check_length(before.len() + replacement.len() + after.len())?;
    Ok(Value::text([before, replacement, after].concat()))
}

/// The first characters, or all but as many at the end.
fn left(arguments: &[Value]) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let count = i64::from(int(&arguments[1])?);
    let kept = match count {
        0.. => count,
        _ => text.chars().count() as i64 + count,
    };
    Ok(Value::from(&text[..byte_of(text, kept.max(0) as usize)]))
}

/// The last characters, or all but as many at the start.
fn right(arguments: &[Value]) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let left_out = match int(&arguments[1])? {
        // PostgreSQL negates it, which it cannot be.
        i32::MIN => 0,
        count @ ..0 => i64::from(-count),
        count => text.chars().count() as i64 - i64::from(count),
    };
    Ok(Value::from(&text[byte_of(text, left_out.max(0) as usize)..]))
}

fn replace(arguments: &[Value]) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let (from, to) = (text_of(&arguments[1])?, text_of(&arguments[2])?);
    if from.is_empty() {
        return Ok(Value::from(text));
    }
    if to.len() > from.len() {
        let more = (to.len() - from.len()).saturating_mul(text.matches(from).count());
        check_length(text.len().saturating_add(more))?;
    }
    Ok(Value::text(text.replace(from, to)))
}

/// Each character of the first set becomes the one at its place in the second, or nothing.
fn translate(arguments: &[Value]) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let from: Vec<char> = text_of(&arguments[1])?.chars().collect();
    let to: Vec<char> = text_of(&arguments[2])?.chars().collect();
    check_length(text.len().saturating_mul(2))?;
    let translated = text.chars().filter_map(|character| {
        match from.iter().position(|candidate| *candidate == character) {
            Some(place) => to.get(place).copied(),
            None => Some(character),
        }
    });
    Ok(Value::text(translated.collect::<String>()))
}

/// The field of a number between separators, counted from 1, or from the end.
fn split_part(arguments: &[Value]) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let (separator, number) = (text_of(&arguments[1])?, int(&arguments[2])?);
    if number == 0 {
        return Err(EngineError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "field position must not be zero",
        ));
    }
    if separator.is_empty() {
        let whole = if number.abs() == 1 { text } else { "" };
        return Ok(Value::from(whole));
    }
    let place = number.unsigned_abs() as usize - 1;
    let part = match number {
        ..0 => {
            let fields = text.split(separator).count();
            fields
                .checked_sub(place + 1)
                .and_then(|place| text.split(separator).nth(place))
        }
        _ => text.split(separator).nth(place),
    };
    Ok(Value::from(part.unwrap_or_default()))
}

#[cold]
fn negative_length() -> EngineError {
    EngineError::new(SqlState::SUBSTRING_ERROR, "negative substring length not allowed")
}
