//! A field's text as a value of its column.
//!
//! Integers of up to 18 digits and short ASCII texts of `char(n)` are most of what is loaded, and take a fraction of the
//! general way here. What is not of that form, errors included, goes that way: the value is the same by both.

use clearway_sql::error::Result;
use clearway_sql::value::cast::apply_typmod;
use clearway_sql::value::datatype::length_of_typmod;
use clearway_sql::value::{DataType, Value, decode_text};

/// The longest text that is padded here.
const PADDED_MAX: usize = 1 << 10;

/// The value of `text` in a column of this type and modifier. `now` is the time that a date such as `today` is counted from.
#[inline]
pub(super) fn field_value(text: &str, (data_type, typmod): (DataType, i32), now: i64) -> Result<Value> {
    let found = match data_type {
        DataType::Int4 => short_integer(text)
            .and_then(|number| i32::try_from(number).ok())
            .map(Value::Int4),
        DataType::Int8 => short_integer(text).map(Value::Int8),
        DataType::Char => padded(text, typmod).map(Value::Text),
        _ => None,
    };
    match found {
        Some(value) => Ok(value),
        None => {
            let value = decode_text(text, data_type, now)?;
            apply_typmod(value, data_type, typmod, false)
        }
    }
}

/// The number that up to 18 digits spell, perhaps behind a minus sign.
fn short_integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if !(1..=18).contains(&digits.len()) {
        return None;
    }
    let mut number = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if negative { -number } else { number })
}

/// An ASCII text with the blanks that fill its column.
fn padded(text: &str, typmod: i32) -> Option<Box<str>> {
    let length = length_of_typmod(typmod).filter(|length| (text.len()..=PADDED_MAX).contains(length))?;
    if !text.is_ascii() {
        return None;
    }
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(length, b' ');
    String::from_utf8(bytes).ok().map(String::into_boxed_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways give one value, or one error.
    #[test]
    fn a_field_has_the_value_that_the_general_way_gives() {
        let texts = [
            "0",
            "-0",
            "7",
            "-7",
            "007",
            "+7",
            " 7",
            "7 ",
            "",
            "-",
            "--7",
            "7x",
            "x",
            "1e3",
            "0x10",
            "1_000",
            "٣",
            "2147483647",
            "2147483648",
            "-2147483648",
            "-2147483649",
            "999999999999999999",
            "-999999999999999999",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "abc",
            "abcd",
            "abcd ",
            "abcde",
            "åbc",
            "åbcd",
            "åbcde",
            "   ",
            "     ",
        ];
        let columns = [
            (DataType::Int2, -1),
            (DataType::Int4, -1),
            (DataType::Int8, -1),
            (DataType::Char, -1),
            (DataType::Char, 4 + 4),
            (DataType::Char, 4 + 2_000),
            (DataType::Varchar, 4 + 4),
            (DataType::Text, -1),
        ];
        for (data_type, typmod) in columns {
            for text in texts {
                let general = decode_text(text, data_type, 0)
                    .and_then(|value| apply_typmod(value, data_type, typmod, false));
                let same = match (field_value(text, (data_type, typmod), 0), general) {
                    (Ok(value), Ok(other)) => value == other,
                    (Err(error), Err(other)) => error.to_string() == other.to_string(),
                    _ => false,
                };
                assert!(same, "{text:?} as {data_type:?} with {typmod}");
            }
        }
    }
}
