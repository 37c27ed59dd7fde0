//! Functions of strings.

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use super::{check_length, made_of, output_text, text_of};
use crate::error::{EngineError, Result};
use crate::value::DataType::{Int4, Text};
use crate::value::Value;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(1317, "length", &[Text], Int4, Pure(length)),
    row(1381, "char_length", &[Text], Int4, Pure(length)),
    row(1369, "character_length", &[Text], Int4, Pure(length)),
    row(870, "lower", &[Text], Text, Pure(lower)),
    row(871, "upper", &[Text], Text, Pure(upper)),
    row(1622, "repeat", &[Text, Int4], Text, Pure(repeat)),
    row(3058, "concat", &[], Text, Pure(concat))
        .stable()
        .called_on_null()
        .variadic(),
];

fn length(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Int4(text_of(&arguments[0])?.chars().count() as i32))
}

fn lower(arguments: &[Value]) -> Result<Value> {
    Ok(Value::from(&*made_of(&arguments[0])?.to_lowercase()))
}

fn upper(arguments: &[Value]) -> Result<Value> {
    Ok(Value::from(&*made_of(&arguments[0])?.to_uppercase()))
}

fn repeat(arguments: &[Value]) -> Result<Value> {
    let count = arguments[1]
        .as_i64()
        .ok_or_else(|| EngineError::internal(format!("repeat {:?} times", arguments[1])))?
        .max(0) as usize;
    let unit = text_of(&arguments[0])?;
    check_length(unit.len().saturating_mul(count))?;
    Ok(Value::from(&*unit.repeat(count)))
}

fn concat(arguments: &[Value]) -> Result<Value> {
    let texts: Vec<_> = arguments.iter().filter_map(output_text).collect();
    check_length(texts.iter().map(|text| text.len()).sum())?;
    Ok(Value::from(&*texts.concat()))
}
