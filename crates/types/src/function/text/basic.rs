//! Functions of whole strings: length, case, padding, characters by number.

use crate::error::{EngineError, Result, SqlState};
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::function::{check_length, int, made_of, out_of_range, output_text, text_of};
use crate::value::DataType::{Bool, Char, Int4, Int8, Text};
use crate::value::Value;

/// The functions.
pub(in crate::function) static ROWS: &[FunctionRow] = &[
    row(1317, "length", &[Text], Int4, Pure(length)),
    row(1381, "char_length", &[Text], Int4, Pure(length)),
    row(1369, "character_length", &[Text], Int4, Pure(length)),
    row(1374, "octet_length", &[Text], Int4, Pure(octet_length)),
    // The blanks of a `char` count here.
    row(1375, "octet_length", &[Char], Int4, Pure(octet_length)),
    row(1811, "bit_length", &[Text], Int4, Pure(bit_length)),
    row(870, "lower", &[Text], Text, Pure(lower)),
    row(871, "upper", &[Text], Text, Pure(upper)),
    row(872, "initcap", &[Text], Text, Pure(initcap)),
    row(1622, "repeat", &[Text, Int4], Text, Pure(repeat)),
    row(3062, "reverse", &[Text], Text, Pure(reverse)),
    row(
        873,
        "lpad",
        &[Text, Int4, Text],
        Text,
        Pure(|arguments| pad(arguments, true)),
    ),
    row(
        879,
        "lpad",
        &[Text, Int4],
        Text,
        Pure(|arguments| pad(arguments, true)),
    ),
    row(
        874,
        "rpad",
        &[Text, Int4, Text],
        Text,
        Pure(|arguments| pad(arguments, false)),
    ),
    row(
        880,
        "rpad",
        &[Text, Int4],
        Text,
        Pure(|arguments| pad(arguments, false)),
    ),
    row(1620, "ascii", &[Text], Int4, Pure(ascii)),
    row(1621, "chr", &[Int4], Text, Pure(chr)),
    row(2311, "md5", &[Text], Text, Pure(md5)),
    row(2089, "to_hex", &[Int4], Text, Pure(to_hex)),
    row(2090, "to_hex", &[Int8], Text, Pure(to_hex)),
    row(3696, "starts_with", &[Text, Text], Bool, Pure(starts_with)).operator("^@"),
    row(1258, "textcat", &[Text, Text], Text, Pure(concat)),
    row(3058, "concat", &[], Text, Pure(concat))
        .stable()
        .called_on_null()
        .variadic(),
    row(3059, "concat_ws", &[Text], Text, Pure(concat_ws))
        .stable()
        .called_on_null()
        .variadic(),
    row(
        438,
        "num_nulls",
        &[],
        Int4,
        Pure(|arguments| count(arguments, true)),
    )
    .called_on_null()
    .variadic(),
    row(
        440,
        "num_nonnulls",
        &[],
        Int4,
        Pure(|arguments| count(arguments, false)),
    )
    .called_on_null()
    .variadic(),
];

fn length(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Int4(text_of(&arguments[0])?.chars().count() as i32))
}

fn octet_length(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Int4(text_of(&arguments[0])?.len() as i32))
}

fn bit_length(arguments: &[Value]) -> Result<Value> {
    let bits = text_of(&arguments[0])?.len() * 8;
    i32::try_from(bits)
        .map(Value::Int4)
        .map_err(|_| out_of_range("integer"))
}

fn lower(arguments: &[Value]) -> Result<Value> {
    Ok(Value::from(&*made_of(&arguments[0])?.to_lowercase()))
}

fn upper(arguments: &[Value]) -> Result<Value> {
    Ok(Value::from(&*made_of(&arguments[0])?.to_uppercase()))
}

/// The first letter of each word in upper case, the others in lower case.
fn initcap(arguments: &[Value]) -> Result<Value> {
    let text = made_of(&arguments[0])?;
    let mut result = String::with_capacity(text.len());
    let mut in_word = false;
    for character in text.chars() {
        if in_word {
            result.extend(character.to_lowercase());
        } else {
            result.extend(character.to_uppercase());
        }
        in_word = character.is_alphanumeric();
    }
    Ok(Value::text(result))
}

fn repeat(arguments: &[Value]) -> Result<Value> {
    let count = int(&arguments[1])?.max(0) as usize;
    let unit = text_of(&arguments[0])?;
    check_length(unit.len().saturating_mul(count))?;
    // Of exactly that length: it becomes the value, without a copy.
    Ok(Value::text(unit.repeat(count)))
}

fn reverse(arguments: &[Value]) -> Result<Value> {
    Ok(Value::text(
        made_of(&arguments[0])?.chars().rev().collect::<String>(),
    ))
}

/// Brings a text to a length in characters: filled up on one side, or cut on the right.
fn pad(arguments: &[Value], left: bool) -> Result<Value> {
    let text = text_of(&arguments[0])?;
    let wanted = int(&arguments[1])?.max(0) as usize;
    let fill = match arguments.get(2) {
        Some(fill) => text_of(fill)?,
        None => " ",
    };
    let length = text.chars().count();
    if wanted <= length || fill.is_empty() {
        let end = text.char_indices().nth(wanted).map_or(text.len(), |(at, _)| at);
        check_length(end)?;
        return Ok(Value::from(&text[..end]));
    }
    let missing = wanted - length;
    let longest = fill.chars().map(char::len_utf8).max().unwrap_or(1);
    check_length(missing.saturating_mul(longest).saturating_add(text.len()))?;
    let filling = fill.chars().cycle().take(missing);
    let padded: String = match left {
        true => filling.chain(text.chars()).collect(),
        false => text.chars().chain(filling).collect(),
    };
    Ok(Value::text(padded))
}

fn ascii(arguments: &[Value]) -> Result<Value> {
    let first = text_of(&arguments[0])?.chars().next();
    Ok(Value::Int4(
        first.map_or(0, |character| u32::from(character) as i32),
    ))
}

fn chr(arguments: &[Value]) -> Result<Value> {
    let limit = |message: String| Err(EngineError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    let number = match u32::try_from(int(&arguments[0])?) {
        Ok(0) => return limit("null character not permitted".to_owned()),
        Ok(number) => number,
        Err(_) => {
            return Err(EngineError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "character number must be positive",
            ));
        }
    };
    match char::from_u32(number) {
        Some(character) => Ok(Value::text(character.to_string())),
        None if number > u32::from(char::MAX) => {
            limit(format!("requested character too large for encoding: {number}"))
        }
        None => limit(format!("requested character not valid for encoding: {number}")),
    }
}

fn md5(arguments: &[Value]) -> Result<Value> {
    use md5::Digest as _;
    let digest = md5::Md5::digest(text_of(&arguments[0])?.as_bytes());
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Value::text(digits))
}

fn to_hex(arguments: &[Value]) -> Result<Value> {
    match arguments[0] {
        Value::Int4(number) => Ok(Value::text(format!("{number:x}"))),
        Value::Int8(number) => Ok(Value::text(format!("{number:x}"))),
        ref other => Err(EngineError::internal(format!("to_hex of {other:?}"))),
    }
}

fn starts_with(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Bool(
        text_of(&arguments[0])?.starts_with(text_of(&arguments[1])?),
    ))
}

pub(super) fn concat(arguments: &[Value]) -> Result<Value> {
    joined("", arguments)
}

pub(super) fn concat_ws(arguments: &[Value]) -> Result<Value> {
    match &arguments[0] {
        Value::Null => Ok(Value::Null),
        separator => joined(text_of(separator)?, &arguments[1..]),
    }
}

/// The texts of values with a separator between them; NULLs are left out.
fn joined(separator: &str, values: &[Value]) -> Result<Value> {
    let texts: Vec<_> = values.iter().filter_map(output_text).collect();
    let length: usize = texts.iter().map(|text| text.len()).sum();
    check_length(length + separator.len() * texts.len())?;
    Ok(Value::text(texts.join(separator)))
}

/// The number of NULLs, or of the others.
pub(super) fn count(arguments: &[Value], nulls: bool) -> Result<Value> {
    let counted = arguments.iter().filter(|value| value.is_null() == nulls);
    Ok(Value::Int4(counted.count() as i32))
}
