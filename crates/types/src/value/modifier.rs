//! Fitting values to their types' modifiers: lengths, precisions and scales.

use crate::error::{EngineError, Result, SqlState};
use crate::memory;
use crate::value::datatype::length_of_typmod;
use crate::value::{DataType, Value, datetime};

/// Fits a value to its type's modifier: length, precision and scale.
#[inline]
pub fn apply_typmod(value: Value, data_type: DataType, typmod: i32, explicit: bool) -> Result<Value> {
    if typmod < 0 {
        return Ok(value);
    }
    Ok(match value {
        Value::Text(text) => Value::Text(fit_length(text, data_type, typmod, explicit)?),
        Value::Numeric(v) => Value::Numeric(v.fit(typmod)?),
        Value::Array(v) => {
            let element_type = v.element_type().base();
            v.try_map(data_type, |element| {
                apply_typmod(element, element_type, typmod, explicit)
            })?
            .into()
        }
        Value::Interval(v) => Value::Interval(datetime::fit_interval(v, typmod)),
        Value::Time(v) => Value::Time(datetime::round_time(v, typmod)),
        Value::TimeTz(v, zone) => Value::TimeTz(datetime::round_time(v, typmod), zone),
        Value::Timestamp(v) => Value::Timestamp(datetime::round_timestamp(v, typmod)),
        Value::TimestampTz(v) => Value::TimestampTz(datetime::round_timestamp(v, typmod)),
        other => other,
    })
}

/// Fits text to `char(n)` or `varchar(n)`: pads a char; what is too long is cut when `explicit` (a cast someone wrote)
/// or when only blanks are lost, else an error.
pub fn fit_length(text: Box<str>, data_type: DataType, typmod: i32, explicit: bool) -> Result<Box<str>> {
    let Some(length) = length_of_typmod(typmod) else {
        return Ok(text);
    };
    // Nearly all text is ASCII: then bytes are characters.
    let characters = if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    };
    if characters == length {
        return Ok(text);
    }
    if characters < length {
        if data_type != DataType::Char {
            return Ok(text);
        }
        memory::require(2 * (text.len() + length - characters))?;
        let mut padded = String::with_capacity(text.len() + length - characters);
        padded.push_str(&text);
        padded.extend(std::iter::repeat_n(' ', length - characters));
        return Ok(padded.into());
    }
    let end = text.char_indices().nth(length).map_or(text.len(), |(at, _)| at);
    if !explicit && !text[end..].bytes().all(|byte| byte == b' ') {
        return Err(EngineError::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("value too long for type {}({length})", data_type.name()),
        ));
    }
    Ok(text[..end].into())
}
