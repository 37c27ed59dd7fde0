//! Values of other types that JSON is read as.

use super::invalid;
use super::part::Part;
use crate::error::{EngineError, Result, SqlState};
use crate::value::cast::apply_typmod;
use crate::value::json::Kind;
use crate::value::user_type::{UserType, definition_of};
use crate::value::{ArrayValue, DataType, RecordValue, Value, decode_text};

/// A JSON value as one of this type: null as NULL, an array as an array, a string by its text, anything else by the text of
/// its JSON.
pub(super) fn typed(value: Part<'_>, data_type: DataType) -> Result<Value> {
    match (value.kind(), data_type.base()) {
        (Kind::Null, _) => Ok(Value::Null),
        (_, DataType::Jsonb) => value.jsonb(),
        (_, DataType::Json) => Ok(value.json()),
        (Kind::Array, DataType::Array(element)) => {
            let parts = value.elements()?;
            let mut elements = Vec::with_capacity(parts.len());
            for part in parts {
                if part.kind() == Kind::Array {
                    return Err(EngineError::not_supported(
                        "an array of several dimensions of JSON",
                    ));
                }
                elements.push(typed(part, element.data_type())?);
            }
            ArrayValue::of(data_type, elements).map(Value::from)
        }
        (Kind::Object, composite @ DataType::Composite(_)) => {
            crate::stack::checkpoint(|| filled(&Value::Null, value, composite))
        }
        (Kind::Array, DataType::Composite(_)) => Err(invalid("cannot call populate_composite on an array")),
        (_, DataType::Array(_)) => Err(EngineError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "expected JSON array",
        )),
        _ => match value.text()? {
            Value::Text(text) => decode_text(&text, data_type, 0),
            other => Ok(other),
        },
    }
}

/// An object as a value of a composite type; `base` has the fields that it lacks.
pub(super) fn filled(base: &Value, object: Part<'_>, of: DataType) -> Result<Value> {
    let definition = definition_of(of.base());
    let composite = definition.as_deref().and_then(UserType::composite);
    let composite = composite.ok_or_else(|| EngineError::internal("a type is not composite"))?;
    let mut fields = match base {
        Value::Record(record) => record.fields().to_vec(),
        _ => vec![Value::Null; composite.fields.len()],
    };
    let members = object.members(composite.fields.iter().map(|field| field.name.as_str()))?;
    for ((slot, field), member) in fields.iter_mut().zip(&composite.fields).zip(members) {
        let Some(member) = member else {
            continue;
        };
        // What was there is what a member that is an object is filled in.
        let value = match (member.kind(), field.data_type.base()) {
            (Kind::Object, inner @ DataType::Composite(_)) => {
                crate::stack::checkpoint(|| filled(slot, member, inner))?
            }
            _ => typed(member, field.data_type)?,
        };
        *slot = apply_typmod(value, field.data_type, field.typmod, false)?;
    }
    let record = RecordValue::new(fields, composite.types().collect())?;
    Ok(record.as_type(of.base()).into())
}
