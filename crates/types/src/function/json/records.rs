//! `json_to_record`, `json_to_recordset` and those of `jsonb`: objects as rows whose columns the query declares.
//!
//! The binder makes one call for each column: the value of that key, of several objects an array of them.

use super::invalid;
use super::part::Part;
use super::typed::typed;
use crate::error::{EngineError, Result};
use crate::function::row::Implementation::Typed;
use crate::function::row::{FunctionRow, row};
use crate::function::{Function, text_of};
use crate::value::json::{JsonbRef, Kind, Level, level};
use crate::value::{ArrayValue, DataType, Value};

static COLUMN: FunctionRow = row(0, "column", &[], DataType::Unknown, Typed(column));
static FIELD: FunctionRow = row(0, "field", &[], DataType::Unknown, Typed(field));

/// A function with a list of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToRecord {
    /// The type of its argument.
    pub of: DataType,
    /// True if it takes an array of objects.
    pub is_set: bool,
}

/// The function of this name.
pub fn named(name: &str) -> Option<ToRecord> {
    let (of, is_set) = match name {
        "json_to_record" => (DataType::Json, false),
        "json_to_recordset" => (DataType::Json, true),
        "jsonb_to_record" => (DataType::Jsonb, false),
        "jsonb_to_recordset" => (DataType::Jsonb, true),
        _ => return None,
    };
    Some(ToRecord { of, is_set })
}

/// The function behind a column of this type, of value and key: for a set an array, with an element for each row.
pub fn column_of(data_type: DataType, is_set: bool) -> Function {
    Function::over(if is_set { &COLUMN } else { &FIELD }, data_type)
}

fn column(arguments: &[Value], data_type: DataType) -> Result<Value> {
    let array = data_type.array_type().ok_or_else(|| {
        EngineError::not_supported(format!("a column of type {data_type} of an array of objects"))
    })?;
    ArrayValue::of(array, values(arguments, true, data_type)?).map(Value::from)
}

fn field(arguments: &[Value], data_type: DataType) -> Result<Value> {
    let values = values(arguments, false, data_type)?;
    Ok(values.into_iter().next().unwrap_or_default())
}

fn values(arguments: &[Value], is_set: bool, data_type: DataType) -> Result<Vec<Value>> {
    let key = text_of(&arguments[1])?;
    match &arguments[0] {
        Value::Json(text) => of_text(text, key, is_set, data_type),
        Value::Jsonb(json) => of_jsonb(json.as_ref(), key, is_set, data_type),
        other => Err(EngineError::internal(format!("{other:?} is used as json"))),
    }
}

fn refused(is_set: bool, is_element: bool) -> EngineError {
    invalid(match (is_set, is_element) {
        (true, true) => "argument of json_to_recordset must be an array of objects",
        (true, false) => "cannot call json_to_recordset on a non-array",
        _ => "cannot call json_to_record on a non-object",
    })
}

fn of_text(text: &str, key: &str, is_set: bool, data_type: DataType) -> Result<Vec<Value>> {
    let member = |object: &str, is_element: bool| match level(object)? {
        Level::Object(members) => {
            let found = members.into_iter().rev().find(|(name, _)| **name == *key);
            found.map_or(Ok(Value::Null), |(_, piece)| typed(Part::Text(piece), data_type))
        }
        _ => Err(refused(is_set, is_element)),
    };
    match (is_set, level(text)?) {
        (false, _) => Ok(vec![member(text, false)?]),
        (true, Level::Array(objects)) => objects.into_iter().map(|object| member(object, true)).collect(),
        (true, _) => Err(refused(true, false)),
    }
}

fn of_jsonb(json: JsonbRef<'_>, key: &str, is_set: bool, data_type: DataType) -> Result<Vec<Value>> {
    let member = |object: JsonbRef<'_>, is_element: bool| match object.kind() {
        Kind::Object => object
            .get(key)
            .map_or(Ok(Value::Null), |value| typed(Part::Tree(value), data_type)),
        _ => Err(refused(is_set, is_element)),
    };
    match (is_set, json.kind()) {
        (false, _) => Ok(vec![member(json, false)?]),
        (true, Kind::Array) => json.elements().map(|object| member(object, true)).collect(),
        (true, _) => Err(refused(true, false)),
    }
}
