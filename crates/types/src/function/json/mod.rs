//! Functions and operators of `json` and `jsonb`.
//!
//! A `json` is read as a text, one level at a time, so that what a function gives of it is as it was written. A `jsonb`
//! is read in place; what changes one makes its tree, changes that, and writes it.
//!
//! | module | functions |
//! |---|---|
//! | `extract` | `->`, `->>`, `#>`, `#>>`; types, lengths |
//! | `contain` | `@>`, `?` and its kin |
//! | `change` | <code>&#124;&#124;</code>, `-`, `#-`, `jsonb_set`, `jsonb_insert` |
//! | `make` | `to_json`, `json_build_object`, `json_object` and their kin |
//! | `part` | a part of a tree or of a text |
//! | `parts` | those that give rows: `json_each`, `json_array_elements` |
//! | `path` | `jsonb_path_query` and its kin |
//! | `records` | `json_to_record`, `json_to_recordset` |
//! | `shape` | `json_strip_nulls`, `jsonb_pretty` |

mod change;
mod contain;
mod extract;
pub mod make;
mod part;
pub mod parts;
mod path;
pub mod populate;
pub mod records;
mod shape;
mod typed;

use super::row::FunctionRow;
use crate::error::{EngineError, Result, SqlState};
use crate::value::json::{JsonbRef, Kind, Level, level};
use crate::value::{Jsonb, Value};

pub(crate) use change::assign_part;

/// The functions.
pub(super) static TABLES: [&[FunctionRow]; 7] = [
    change::ROWS,
    contain::ROWS,
    extract::ROWS,
    make::ROWS,
    parts::ROWS,
    path::ROWS,
    shape::ROWS,
];

fn json_of(value: &Value) -> Result<&str> {
    match value {
        Value::Json(text) => Ok(text),
        other => Err(EngineError::internal(format!("{other:?} is used as json"))),
    }
}

fn jsonb_of(value: &Value) -> Result<JsonbRef<'_>> {
    match value {
        Value::Jsonb(json) => Ok(json.as_ref()),
        other => Err(EngineError::internal(format!("{other:?} is used as jsonb"))),
    }
}

/// The texts of an array, `None` for NULL.
fn texts_of(value: &Value) -> Result<impl Iterator<Item = Option<&str>>> {
    match value {
        Value::Array(array) => Ok(array.elements().iter().map(Value::as_str)),
        other => Err(EngineError::internal(format!("{other:?} is used as an array"))),
    }
}

fn jsonb_value(value: JsonbRef<'_>) -> Value {
    Value::Jsonb(value.to_owned())
}

fn owned(tree: &crate::value::json::Json) -> Result<Value> {
    Jsonb::of(tree).map(Value::Jsonb)
}

/// The value of `->>`: a string without its quotes, NULL for null.
fn text_of_jsonb(value: JsonbRef<'_>) -> Value {
    match value.kind() {
        Kind::Null => Value::Null,
        Kind::String => Value::text(value.text().unwrap_or_default()),
        _ => {
            let mut out = String::new();
            value.write(&mut out);
            Value::text(out)
        }
    }
}

/// The same of a piece of a `json`.
fn text_of_json(piece: &str) -> Result<Value> {
    Ok(match piece.as_bytes().first() {
        Some(b'n') => Value::Null,
        Some(b'"') => match crate::value::json::parse(piece)? {
            crate::value::json::Json::String(text) => Value::Text(text),
            _ => Value::Null,
        },
        _ => Value::text(piece),
    })
}

#[cold]
fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> EngineError {
    EngineError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The place that an index means in as many elements: a negative one counts from the end.
fn place(index: i64, count: usize) -> Option<usize> {
    let place = if index < 0 { index + count as i64 } else { index };
    usize::try_from(place).ok().filter(|place| *place < count)
}

/// The elements of a `json`; the error of a function for what is no array.
fn array_of(text: &str, not_array: impl FnOnce(bool) -> EngineError) -> Result<Vec<&str>> {
    match level(text)? {
        Level::Array(elements) => Ok(elements),
        Level::Object(_) => Err(not_array(false)),
        Level::Scalar(_) => Err(not_array(true)),
    }
}
