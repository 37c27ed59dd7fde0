//! `json_populate_record`, `json_populate_recordset` and those of `jsonb`: objects as values of a composite type, on top of one
//! that has the fields which an object lacks.

use super::part::Part;
use super::typed::filled;
use super::{invalid, json_of};
use crate::error::{EngineError, Result};
use crate::function::Function;
use crate::function::row::Implementation::Typed;
use crate::function::row::{FunctionRow, row};
use crate::value::json::Kind;
use crate::value::{ArrayValue, DataType, Value};

static RECORD: FunctionRow = row(0, "populate", &[], DataType::Unknown, Typed(record)).called_on_null();
static RECORDS: FunctionRow = row(0, "populate_set", &[], DataType::Unknown, Typed(records)).called_on_null();

/// A function that fills values of a composite type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Populate {
    /// The type of its second argument.
    pub of: DataType,
    /// True if that is an array of objects, for a row each.
    pub is_set: bool,
}

/// The function of this name.
pub fn named(name: &str) -> Option<Populate> {
    let (of, is_set) = match name {
        "json_populate_record" => (DataType::Json, false),
        "json_populate_recordset" => (DataType::Json, true),
        "jsonb_populate_record" => (DataType::Jsonb, false),
        "jsonb_populate_recordset" => (DataType::Jsonb, true),
        _ => return None,
    };
    Some(Populate { of, is_set })
}

impl Populate {
    /// The function behind a call that fills values of this type; of several an array.
    pub fn function(self, composite: DataType) -> Function {
        Function::over(if self.is_set { &RECORDS } else { &RECORD }, composite)
    }
}

/// The JSON of an argument; `None` for NULL.
fn part(value: &Value) -> Result<Option<Part<'_>>> {
    Ok(match value {
        Value::Null => None,
        Value::Jsonb(json) => Some(Part::Tree(json.as_ref())),
        other => Some(Part::Text(json_of(other)?)),
    })
}

fn record(arguments: &[Value], composite: DataType) -> Result<Value> {
    let Some(json) = part(&arguments[1])? else {
        return Ok(arguments[0].clone());
    };
    match json.kind() {
        Kind::Object => filled(&arguments[0], json, composite),
        Kind::Null => Ok(arguments[0].clone()),
        Kind::Array => Err(invalid("cannot call populate_composite on an array")),
        _ => Err(invalid("cannot call populate_composite on a scalar")),
    }
}

fn records(arguments: &[Value], composite: DataType) -> Result<Value> {
    let array = composite
        .array_type()
        .ok_or_else(|| EngineError::internal("there are no arrays of a composite type"))?;
    let Some(json) = part(&arguments[1])? else {
        return ArrayValue::of(array, Vec::new()).map(Value::from);
    };
    let name = match arguments[1] {
        Value::Jsonb(_) => "jsonb_populate_recordset",
        _ => "json_populate_recordset",
    };
    let refused = |what: &str| invalid(format!("cannot call {name} on {what}"));
    match json.kind() {
        Kind::Array => {}
        Kind::Object => return Err(refused("an object")),
        _ => return Err(refused("a scalar")),
    }
    let objects = json.elements()?.into_iter().map(|object| match object.kind() {
        Kind::Object => filled(&arguments[0], object, composite),
        _ => Err(invalid(format!("argument of {name} must be an array of objects"))),
    });
    ArrayValue::of(array, objects.collect::<Result<_>>()?).map(Value::from)
}
