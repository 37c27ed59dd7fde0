//! The functions that give one of their arguments, which are brought to one type.

use std::cmp::Ordering;

use super::Function;
use super::row::{FunctionRow, Implementation, row};
use super::signature::Signature;
use crate::common_type::common_type;
use crate::error::{EngineError, Result};
use crate::value::{DataType, Value, compare_checked};

static COALESCE: FunctionRow =
    row(0, "coalesce", &[], DataType::Unknown, Implementation::Coalesce).called_on_null();
static NULLIF: FunctionRow = of_several("nullif", Implementation::Typed(null_if));
static GREATEST: FunctionRow = of_several("greatest", Implementation::Typed(greatest));
static LEAST: FunctionRow = of_several("least", Implementation::Typed(least));

const fn of_several(name: &'static str, implementation: Implementation) -> FunctionRow {
    row(0, name, &[], DataType::Unknown, implementation).called_on_null()
}

static BETWEEN_SYMMETRIC: FunctionRow = of_several("between_symmetric", Implementation::Typed(is_between));

/// The function behind BETWEEN SYMMETRIC over values of one type: value, bound, bound. No call can name it.
pub fn between_symmetric(data_type: DataType) -> Function {
    Function::over(&BETWEEN_SYMMETRIC, data_type)
}

/// One of these functions, if it is its name.
pub(super) fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    if arguments.is_empty() {
        return None;
    }
    let function = match name {
        "coalesce" => &COALESCE,
        "greatest" => &GREATEST,
        "least" => &LEAST,
        "nullif" if arguments.len() == 2 => return null_if_of(arguments),
        _ => return None,
    };
    let kind = common_type(arguments)?;
    Some(Signature {
        function: Function::over(function, kind),
        arguments: vec![kind; arguments.len()],
        result: kind,
    })
}

/// NULLIF's result is the first argument as `=` takes it; integers need no conversion to be compared.
fn null_if_of(arguments: &[DataType]) -> Option<Signature> {
    use DataType::{Float4, Float8, Text, Unknown, Varchar};
    let arguments = [arguments[0].base(), arguments[1].base()];
    let kind = common_type(&arguments)?;
    let integers = arguments.iter().all(|argument| argument.is_integer());
    let (kind, converted) = match arguments {
        _ if integers => (kind, arguments.to_vec()),
        _ if kind == Varchar => (Text, vec![Text; 2]),
        // A real stays one, and is compared with any other number as a double.
        [Float4, Float4 | Unknown] | [Unknown, Float4] => (kind, vec![Float4; 2]),
        [Float4, _] => (Float8, vec![Float4, Float8]),
        [_, Float4] => (Float8, vec![Float8; 2]),
        _ => (kind, vec![kind; 2]),
    };
    Some(Signature {
        function: Function::over(&NULLIF, kind),
        result: converted[0],
        arguments: converted,
    })
}

fn null_if(arguments: &[Value], data_type: DataType) -> Result<Value> {
    let same = !arguments[0].is_null()
        && !arguments[1].is_null()
        && compare_checked(&arguments[0], &arguments[1], data_type)?.is_eq();
    Ok(if same { Value::Null } else { arguments[0].clone() })
}

fn greatest(arguments: &[Value], data_type: DataType) -> Result<Value> {
    extreme(arguments, data_type, Ordering::is_gt)
}

fn least(arguments: &[Value], data_type: DataType) -> Result<Value> {
    extreme(arguments, data_type, Ordering::is_lt)
}

/// The value that `is_better` than the others, NULLs aside; the first of equal ones.
fn extreme(arguments: &[Value], data_type: DataType, is_better: fn(Ordering) -> bool) -> Result<Value> {
    let mut found = &Value::Null;
    for value in arguments.iter().filter(|value| !value.is_null()) {
        if found.is_null() || is_better(compare_checked(value, found, data_type)?) {
            found = value;
        }
    }
    Ok(found.clone())
}

/// True if the first is between the others, which may be in either order; NULL if a NULL leaves it open.
fn is_between(arguments: &[Value], data_type: DataType) -> Result<Value> {
    let [value, one, other] = arguments else {
        return Err(EngineError::internal(
            "BETWEEN SYMMETRIC has other than three operands",
        ));
    };
    let order = |bound: &Value| match value.is_null() || bound.is_null() {
        true => Ok(None),
        false => compare_checked(value, bound, data_type).map(Some),
    };
    let (one, other) = (order(one)?, order(other)?);
    let within = |low: Option<Ordering>, high: Option<Ordering>| match (
        low.map(Ordering::is_ge),
        high.map(Ordering::is_le),
    ) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    };
    let found = match (within(one, other), within(other, one)) {
        (Some(true), _) | (_, Some(true)) => Some(true),
        (Some(false), Some(false)) => Some(false),
        _ => None,
    };
    Ok(found.map_or(Value::Null, Value::Bool))
}
