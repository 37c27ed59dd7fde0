//! The functions behind an assignment to an element or a slice of an array, or to a field of a record.

use super::Function;
use super::row::{FunctionRow, Implementation, row};
use crate::error::{EngineError, Result, SqlState};
use crate::function::json::assign_part as assign_part_of_jsonb;
use crate::memory;
use crate::value::array::Bounds;
use crate::value::user_type::{UserType, definition_of};
use crate::value::{ArrayValue, DataType, RecordValue, Value};

/// `a[i][j]… = x`: array, value, subscripts.
static ELEMENT: FunctionRow = row(
    0,
    "assign_element",
    &[],
    DataType::Unknown,
    Implementation::Typed(assign_element),
)
.called_on_null();
/// `a[i:j]… = x`: array, value, then two arguments a dimension, false for a bound that is left out.
static SLICE: FunctionRow = row(
    0,
    "assign_slice",
    &[],
    DataType::Unknown,
    Implementation::Typed(assign_slice),
)
.called_on_null();

/// `j['key'][0]… = x`: `jsonb`, value, path.
static PART_OF_JSONB: FunctionRow = row(
    0,
    "assign_part",
    &[],
    DataType::Jsonb,
    Implementation::Pure(assign_part_of_jsonb),
)
.called_on_null();

/// `c.f.g… = x`: record, value, the fields' numbers from the outermost, from 0.
static FIELD: FunctionRow = row(
    0,
    "assign_field",
    &[],
    DataType::Unknown,
    Implementation::Typed(assign_field),
)
.called_on_null();

/// The function that assigns to a field of a value of this composite type. No call can name it.
pub fn field_assignment(composite: DataType) -> Function {
    Function::over(&FIELD, composite)
}

/// The function that assigns to a part of an array of this type, or of a `jsonb`. No call can name it.
pub fn assignment(array_type: DataType, is_slice: bool) -> Function {
    match (array_type, is_slice) {
        (DataType::Jsonb, _) => Function::over(&PART_OF_JSONB, array_type),
        (_, true) => Function::over(&SLICE, array_type),
        (_, false) => Function::over(&ELEMENT, array_type),
    }
}

/// NULL is an array without elements.
fn target(value: &Value, array_type: DataType) -> Result<ArrayValue> {
    memory::require(value.heap_bytes() * 2)?;
    Ok(match value {
        Value::Array(array) => (**array).clone(),
        _ => ArrayValue::empty(array_type),
    })
}

fn subscript(value: &Value) -> Result<Option<i32>> {
    match value {
        Value::Int4(subscript) => Ok(Some(*subscript)),
        Value::Bool(_) => Ok(None),
        _ => Err(EngineError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "array subscript in assignment must not be null",
        )),
    }
}

fn assign_element(arguments: &[Value], array_type: DataType) -> Result<Value> {
    let subscripts: Vec<i32> = arguments[2..]
        .iter()
        .filter_map(|value| subscript(value).transpose())
        .collect::<Result<_>>()?;
    let array = target(&arguments[0], array_type)?;
    array
        .with_element_at(&subscripts, arguments[1].clone())
        .map(Value::from)
}

fn assign_slice(arguments: &[Value], array_type: DataType) -> Result<Value> {
    let mut bounds = Vec::with_capacity(arguments.len() / 2);
    for pair in arguments[2..].chunks_exact(2) {
        bounds.push(Bounds {
            lower: subscript(&pair[0])?,
            upper: subscript(&pair[1])?,
        });
    }
    let array = target(&arguments[0], array_type)?;
    match &arguments[1] {
        Value::Array(source) => array.with_slice(&bounds, source).map(Value::from),
        // As in PostgreSQL, NULL changes nothing.
        _ => Ok(array.into()),
    }
}

fn assign_field(arguments: &[Value], composite: DataType) -> Result<Value> {
    memory::require(arguments[0].heap_bytes() * 2)?;
    let path: Vec<usize> = arguments[2..]
        .iter()
        .filter_map(|number| usize::try_from(number.as_i64()?).ok())
        .collect();
    with_field(&arguments[0], composite, &path, &arguments[1])
}

/// The record with a field replaced; NULL is one whose fields all are.
fn with_field(record: &Value, of: DataType, path: &[usize], value: &Value) -> Result<Value> {
    let Some((number, inner)) = path.split_first() else {
        return Ok(value.clone());
    };
    let definition = definition_of(of.base());
    let composite = definition.as_deref().and_then(UserType::composite);
    let composite = composite.ok_or_else(|| EngineError::internal("a type is not composite"))?;
    let mut fields = match record {
        Value::Record(record) => record.fields().to_vec(),
        _ => vec![Value::Null; composite.fields.len()],
    };
    let (Some(field), Some(slot)) = (composite.fields.get(*number), fields.get_mut(*number)) else {
        return Err(EngineError::internal("a composite type has fewer fields"));
    };
    *slot = with_field(slot, field.data_type, inner, value)?;
    let record = RecordValue::new(fields, composite.types().collect())?;
    Ok(record.as_type(of.base()).into())
}
