//! `format(template, values …)`.
//!
//! A place in the template is `%`, perhaps the number of a value and `$`, perhaps `-` and a width (digits, or `*` for
//! the next value, or `*n$` for one by its number), and `s` (text), `I` (a name) or `L` (a literal). `%%` is `%`.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

use crate::error::{EngineError, Result, SqlState};
use crate::function::quote::{quote_identifier, quote_literal};
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::function::{check_length, output_text, text_of};
use crate::value::DataType::Text;
use crate::value::Value;

/// The functions.
pub(in crate::function) static ROWS: &[FunctionRow] = &[
    row(3540, "format", &[Text], Text, Pure(format))
        .stable()
        .called_on_null(),
    row(3539, "format", &[Text], Text, Pure(format))
        .stable()
        .called_on_null()
        .variadic(),
];

/// The width of a place.
enum Width {
    Fixed(i32),
    /// That of the next value, or of the one of a number.
    Of(Option<usize>),
}

/// A place for a value.
struct Place {
    value: Option<usize>,
    left: bool,
    width: Option<Width>,
    kind: char,
}

pub(super) fn format(arguments: &[Value]) -> Result<Value> {
    if arguments[0].is_null() {
        return Ok(Value::Null);
    }
    let template = text_of(&arguments[0])?;
    let mut characters = template.chars().peekable();
    let mut result = String::with_capacity(template.len());
    // The number of the value that was used last.
    let mut last = 0;
    while let Some(character) = characters.next() {
        if character != '%' {
            result.push(character);
            continue;
        }
        if characters.next_if_eq(&'%').is_some() {
            result.push('%');
            continue;
        }
        let place = place(&mut characters)?;
        let mut take = |number: Option<usize>| {
            last = number.unwrap_or(last + 1);
            arguments
                .get(last)
                .ok_or_else(|| invalid("too few arguments for format()"))
        };
        let (mut left, mut width) = (place.left, 0);
        match place.width {
            Some(Width::Fixed(fixed)) => width = fixed as usize,
            Some(Width::Of(number)) => {
                let given = width_of(take(number)?)?;
                left |= given < 0;
                width = given.unsigned_abs() as usize;
            }
            None => {}
        }
        let text = shown(take(place.value)?, place.kind)?;
        let blanks = width.saturating_sub(text.chars().count());
        check_length(result.len().saturating_add(text.len()).saturating_add(blanks))?;
        let blanks = " ".repeat(blanks);
        match left {
            true => result.extend([&*text, &blanks]),
            false => result.extend([&*blanks, &text]),
        }
    }
    check_length(result.len())?;
    Ok(Value::text(result))
}

/// Reads a place behind its `%`.
fn place(characters: &mut Peekable<Chars<'_>>) -> Result<Place> {
    let mut place = Place {
        value: None,
        left: false,
        width: None,
        kind: 's',
    };
    match number(characters)? {
        Some(number) if characters.next_if_eq(&'$').is_some() => place.value = Some(numbered(number)?),
        // Digits without a dollar sign are the width.
        Some(number) => place.width = Some(Width::Fixed(number)),
        None => {}
    }
    if place.width.is_none() {
        while characters.next_if_eq(&'-').is_some() {
            place.left = true;
        }
        if characters.next_if_eq(&'*').is_some() {
            let number = match number(characters)? {
                Some(number) if characters.next_if_eq(&'$').is_some() => Some(numbered(number)?),
                Some(_) => {
                    return Err(invalid("width argument position must be ended by \"$\""));
                }
                None => None,
            };
            place.width = Some(Width::Of(number));
        } else {
            place.width = number(characters)?.map(Width::Fixed);
        }
    }
    let with_hint = |error: EngineError| error.with_hint("For a single \"%\" use \"%%\".");
    place.kind = match characters.next() {
        Some(kind @ ('s' | 'I' | 'L')) => kind,
        Some(other) => {
            let message = format!("unrecognized format() type specifier \"{other}\"");
            return Err(with_hint(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                message,
            )));
        }
        None => return Err(with_hint(invalid("unterminated format() type specifier"))),
    };
    Ok(place)
}

/// Digits, if there are any.
fn number(characters: &mut Peekable<Chars<'_>>) -> Result<Option<i32>> {
    let mut number = None;
    while let Some(digit) = characters.peek().and_then(|character| character.to_digit(10)) {
        characters.next();
        let larger = number
            .unwrap_or(0i32)
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(digit as i32));
        number = Some(larger.ok_or_else(|| {
            EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range")
        })?);
    }
    Ok(number)
}

fn numbered(number: i32) -> Result<usize> {
    match number {
        0 => Err(invalid(
            "format specifies argument 0, but arguments are numbered from 1",
        )),
        number => Ok(number as usize),
    }
}

fn width_of(value: &Value) -> Result<i32> {
    if value.is_null() {
        return Ok(0);
    }
    let text = output_text(value).unwrap_or_default();
    let width = match crate::value::decode_text(&text, crate::value::DataType::Int4, 0)? {
        Value::Int4(width) => width,
        other => return Err(EngineError::internal(format!("a width of {other:?}"))),
    };
    match width {
        i32::MIN => Err(EngineError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "number is out of range",
        )),
        width => Ok(width),
    }
}

/// A value as `s`, `I` or `L` shows it.
fn shown(value: &Value, kind: char) -> Result<Cow<'_, str>> {
    let text = output_text(value);
    match (kind, text) {
        ('I', None) => Err(EngineError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "null values cannot be formatted as an SQL identifier",
        )),
        ('I', Some(name)) => Ok(quote_identifier(&name).into()),
        ('L', None) => Ok("NULL".into()),
        ('L', Some(text)) => Ok(quote_literal(&text).into()),
        (_, text) => Ok(text.unwrap_or_default()),
    }
}

#[cold]
fn invalid(message: &'static str) -> EngineError {
    EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}
