//! Functions of numbers in their own type, and between numbers and text.

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use super::{made_of, number_format, out_of_range};
use crate::error::{EngineError, Result};
use crate::value::DataType::{Float4, Float8, Int2, Int4, Int8, Numeric, Text};
use crate::value::arithmetic::{self, ArithmeticOp};
use crate::value::{self, Value};

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(1398, "abs", &[Int2], Int2, Pure(abs)),
    row(1397, "abs", &[Int4], Int4, Pure(abs)),
    row(1396, "abs", &[Int8], Int8, Pure(abs)),
    row(1394, "abs", &[Float4], Float4, Pure(abs)),
    row(1395, "abs", &[Float8], Float8, Pure(abs)),
    row(1705, "abs", &[Numeric], Numeric, Pure(abs)),
    row(940, "mod", &[Int2, Int2], Int2, Pure(remainder)),
    row(941, "mod", &[Int4, Int4], Int4, Pure(remainder)),
    row(947, "mod", &[Int8, Int8], Int8, Pure(remainder)),
    row(1728, "mod", &[Numeric, Numeric], Numeric, Pure(remainder)),
    row(2309, "floor", &[Float8], Float8, Pure(floor)),
    row(1712, "floor", &[Numeric], Numeric, Pure(floor)),
    row(2308, "ceil", &[Float8], Float8, Pure(ceil)),
    row(1711, "ceil", &[Numeric], Numeric, Pure(ceil)),
    row(2320, "ceiling", &[Float8], Float8, Pure(ceil)),
    row(2167, "ceiling", &[Numeric], Numeric, Pure(ceil)),
    row(1342, "round", &[Float8], Float8, Pure(round)),
    row(1708, "round", &[Numeric], Numeric, Pure(round)),
    row(1707, "round", &[Numeric, Int4], Numeric, Pure(round)),
    row(1773, "to_char", &[Int4, Text], Text, Pure(to_char)).stable(),
    row(1774, "to_char", &[Int8, Text], Text, Pure(to_char)).stable(),
    row(1772, "to_char", &[Numeric, Text], Text, Pure(to_char)).stable(),
    row(1775, "to_char", &[Float4, Text], Text, Pure(to_char)).stable(),
    row(1776, "to_char", &[Float8, Text], Text, Pure(to_char)).stable(),
    row(1777, "to_number", &[Text, Text], Numeric, Pure(to_number)).stable(),
];

fn abs(arguments: &[Value]) -> Result<Value> {
    Ok(match &arguments[0] {
        Value::Int2(v) => Value::Int2(v.checked_abs().ok_or_else(|| out_of_range("smallint"))?),
        Value::Int4(v) => Value::Int4(v.checked_abs().ok_or_else(|| out_of_range("integer"))?),
        Value::Int8(v) => Value::Int8(v.checked_abs().ok_or_else(|| out_of_range("bigint"))?),
        Value::Float4(v) => Value::Float4(v.abs()),
        Value::Float8(v) => Value::Float8(v.abs()),
        Value::Numeric(v) => Value::Numeric(v.abs()),
        other => return Err(EngineError::internal(format!("abs of {other:?}"))),
    })
}

fn remainder(arguments: &[Value]) -> Result<Value> {
    arithmetic::apply(ArithmeticOp::Remainder, &arguments[0], &arguments[1])
}

fn floor(arguments: &[Value]) -> Result<Value> {
    rounded(&arguments[0], f64::floor, value::Numeric::floor)
}

fn ceil(arguments: &[Value]) -> Result<Value> {
    rounded(&arguments[0], f64::ceil, value::Numeric::ceil)
}

fn round(arguments: &[Value]) -> Result<Value> {
    let places = match arguments.get(1) {
        Some(Value::Int4(places)) => *places,
        _ => 0,
    };
    rounded(&arguments[0], f64::round_ties_even, |number| number.round(places))
}

/// A number made whole, or one of fewer places, in its own type.
fn rounded(
    value: &Value,
    of_float: fn(f64) -> f64,
    of_numeric: impl FnOnce(&value::Numeric) -> Result<value::Numeric>,
) -> Result<Value> {
    match value {
        Value::Float8(v) => Ok(Value::Float8(of_float(*v))),
        Value::Numeric(v) => of_numeric(v).map(Value::Numeric),
        other => Err(EngineError::internal(format!("rounding of {other:?}"))),
    }
}

fn to_char(arguments: &[Value]) -> Result<Value> {
    number_format::to_char(&arguments[0], made_of(&arguments[1])?).map(Value::text)
}

fn to_number(arguments: &[Value]) -> Result<Value> {
    let number = number_format::to_number(made_of(&arguments[0])?, made_of(&arguments[1])?)?;
    Ok(number.map_or(Value::Null, Value::Numeric))
}
