//! Functions of enumerations: `enum_first`, `enum_last`, `enum_range`. Their arguments tell the type, and may be NULL.

use crate::error::{EngineError, Result, SqlState};
use crate::function::Function;
use crate::function::row::{FunctionRow, Implementation, row};
use crate::function::signature::Signature;
use crate::value::user_type::{EnumLabel, UserType, definition_of, require_committed};
use crate::value::{ArrayValue, DataType, Value};

static FIRST: FunctionRow = over(3528, "enum_first", Implementation::Typed(first));
static LAST: FunctionRow = over(3529, "enum_last", Implementation::Typed(last));
static RANGE: FunctionRow = over(3531, "enum_range", Implementation::Typed(all));
static RANGE_BETWEEN: FunctionRow = over(3530, "enum_range", Implementation::Typed(between));

const fn over(oid: u32, name: &'static str, implementation: Implementation) -> FunctionRow {
    row(oid, name, &[], DataType::Unknown, implementation)
        .called_on_null()
        .stable()
}

/// One of these functions, if it is its name and an argument is of an enumeration.
pub(super) fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    let (function, count) = match (name, arguments.len()) {
        ("enum_first", 1) => (&FIRST, 1),
        ("enum_last", 1) => (&LAST, 1),
        ("enum_range", 1) => (&RANGE, 1),
        ("enum_range", 2) => (&RANGE_BETWEEN, 2),
        _ => return None,
    };
    let mut known = arguments
        .iter()
        .copied()
        .filter(|kind| *kind != DataType::Unknown);
    let kind = known.next()?.base();
    if !matches!(kind, DataType::Enum(_)) || !known.all(|other| other.base() == kind) {
        return None;
    }
    Some(Signature {
        function: Function::over(function, kind),
        arguments: vec![kind; count],
        result: match name {
            "enum_range" => kind.array_type()?,
            _ => kind,
        },
    })
}

/// Calls `with` with the labels of an enumeration.
fn with_labels<T>(of: DataType, with: impl FnOnce(&[EnumLabel]) -> Result<T>) -> Result<T> {
    let found = definition_of(of);
    match found.as_deref().and_then(UserType::enumeration) {
        Some(labels) => with(&labels.labels),
        None => Err(EngineError::internal("an enumeration is not in the catalog")),
    }
}

fn value(of: DataType, label: &EnumLabel) -> Result<Value> {
    require_committed(of, label)?;
    match of {
        DataType::Enum(oid) => Ok(Value::Enum(oid, label.position)),
        _ => Err(EngineError::internal("a label of no enumeration")),
    }
}

fn end(of: DataType, label: Option<&EnumLabel>) -> Result<Value> {
    match label {
        Some(label) => value(of, label),
        None => Err(EngineError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("enum {of} contains no values"),
        )),
    }
}

fn first(_: &[Value], of: DataType) -> Result<Value> {
    with_labels(of, |labels| end(of, labels.first()))
}

fn last(_: &[Value], of: DataType) -> Result<Value> {
    with_labels(of, |labels| end(of, labels.last()))
}

fn all(_: &[Value], of: DataType) -> Result<Value> {
    range(of, &Value::Null, &Value::Null)
}

fn between(arguments: &[Value], of: DataType) -> Result<Value> {
    range(of, &arguments[0], &arguments[1])
}

/// The values between two bounds; a bound that is NULL is none.
fn range(of: DataType, low: &Value, high: &Value) -> Result<Value> {
    let position = |bound: &Value| match bound {
        Value::Enum(_, position) => Some(*position),
        _ => None,
    };
    let (low, high) = (position(low), position(high));
    let array = of
        .array_type()
        .ok_or_else(|| EngineError::internal("an enumeration without arrays"))?;
    let values = with_labels(of, |labels| {
        let inside = labels.iter().filter(|label| {
            low.is_none_or(|low| label.position >= low) && high.is_none_or(|high| label.position <= high)
        });
        inside.map(|label| value(of, label)).collect::<Result<Vec<_>>>()
    })?;
    ArrayValue::of(array, values).map(Value::from)
}
