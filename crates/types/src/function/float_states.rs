//! The states of aggregates over doubles, as arrays: what PostgreSQL's `avg`, `stddev` and `regr_…` are made of.
//!
//! | state | elements |
//! | --- | --- |
//! | of one column | number of rows, sum, sum of the squared deviations from the mean |
//! | of two columns | number of rows; sum and squares of x; sum and squares of y; sum of the products of the deviations |

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use crate::deviations::{Deviations, Pairs, overflow};
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{Bool, Float4, Float8};
use crate::value::{ArrayValue, DataType, Value};

const FLOATS: DataType = DataType::array_of(Float8);

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(208, "float4_accum", &[FLOATS, Float4], FLOATS, Pure(take_float4)),
    row(222, "float8_accum", &[FLOATS, Float8], FLOATS, Pure(take_float8)),
    row(276, "float8_combine", &[FLOATS, FLOATS], FLOATS, Pure(combine)),
    row(
        2806,
        "float8_regr_accum",
        &[FLOATS, Float8, Float8],
        FLOATS,
        Pure(take_pair),
    ),
    row(
        3342,
        "float8_regr_combine",
        &[FLOATS, FLOATS],
        FLOATS,
        Pure(combine_pairs),
    ),
    row(2515, "booland_statefunc", &[Bool, Bool], Bool, Pure(both)),
    row(2516, "boolor_statefunc", &[Bool, Bool], Bool, Pure(either)),
];

/// The numbers of a state; XX000 if it is none of so many.
fn state<const N: usize>(value: &Value, function: &str) -> Result<[f64; N]> {
    let wrong = || {
        EngineError::new(
            SqlState::INTERNAL_ERROR,
            format!("{function}: expected {N}-element float8 array"),
        )
    };
    let Value::Array(array) = value else {
        return Err(wrong());
    };
    if array.dimensions().len() != 1 {
        return Err(wrong());
    }
    let numbers = array.elements().iter().map(|element| match element {
        Value::Float8(number) => Some(*number),
        _ => None,
    });
    let numbers: Option<Vec<f64>> = numbers.collect();
    numbers
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(wrong)
}

fn array(numbers: &[f64]) -> Result<Value> {
    let elements = numbers.iter().map(|number| Value::Float8(*number));
    ArrayValue::of(FLOATS, elements.collect()).map(Value::from)
}

fn float(value: &Value) -> Result<f64> {
    match value {
        Value::Float4(number) => Ok(f64::from(*number)),
        Value::Float8(number) => Ok(*number),
        other => Err(EngineError::internal(format!("{other:?} is used as a double"))),
    }
}

fn take_float4(arguments: &[Value]) -> Result<Value> {
    take(arguments, "float4_accum")
}

fn take_float8(arguments: &[Value]) -> Result<Value> {
    take(arguments, "float8_accum")
}

fn take(arguments: &[Value], function: &str) -> Result<Value> {
    let [rows, sum, squares] = state(&arguments[0], function)?;
    let mut deviations = Deviations { sum, squares };
    let rows = rows + 1.0;
    deviations.take(rows, float(&arguments[1])?)?;
    array(&[rows, deviations.sum, deviations.squares])
}

fn take_pair(arguments: &[Value]) -> Result<Value> {
    let [rows, x, xx, y, yy, xy] = state(&arguments[0], "float8_regr_accum")?;
    let mut pairs = Pairs { x, xx, y, yy, xy };
    let rows = rows + 1.0;
    // As in the aggregates, y comes first.
    pairs.take(rows, float(&arguments[2])?, float(&arguments[1])?)?;
    array(&[rows, pairs.x, pairs.xx, pairs.y, pairs.yy, pairs.xy])
}

/// A sum of products of two states together, whose means differ by `of_x` and `of_y`; 22003 if finite ones make it
/// infinite.
fn together(one: f64, other: f64, weight: f64, of_x: f64, of_y: f64) -> Result<f64> {
    let sum = one + other + weight * of_x * of_y;
    match sum.is_infinite() && !one.is_infinite() && !other.is_infinite() {
        true => Err(overflow()),
        false => Ok(sum),
    }
}

/// A sum of two states together.
fn added(one: f64, other: f64) -> Result<f64> {
    together(one, other, 0.0, 0.0, 0.0)
}

fn combine(arguments: &[Value]) -> Result<Value> {
    let function = "float8_combine";
    let [rows, sum, squares] = state(&arguments[0], function)?;
    let [more_rows, more_sum, more_squares] = state(&arguments[1], function)?;
    if rows == 0.0 {
        return array(&[more_rows, more_sum, more_squares]);
    }
    if more_rows == 0.0 {
        return array(&[rows, sum, squares]);
    }
    let all = rows + more_rows;
    let apart = sum / rows - more_sum / more_rows;
    let squares = together(squares, more_squares, rows * more_rows / all, apart, apart)?;
    array(&[all, added(sum, more_sum)?, squares])
}

fn combine_pairs(arguments: &[Value]) -> Result<Value> {
    let function = "float8_regr_combine";
    let one: [f64; 6] = state(&arguments[0], function)?;
    let other: [f64; 6] = state(&arguments[1], function)?;
    if one[0] == 0.0 {
        return array(&other);
    }
    if other[0] == 0.0 {
        return array(&one);
    }
    let [rows, x, xx, y, yy, xy] = one;
    let [more_rows, more_x, more_xx, more_y, more_yy, more_xy] = other;
    let all = rows + more_rows;
    let weight = rows * more_rows / all;
    let (of_x, of_y) = (x / rows - more_x / more_rows, y / rows - more_y / more_rows);
    array(&[
        all,
        added(x, more_x)?,
        together(xx, more_xx, weight, of_x, of_x)?,
        added(y, more_y)?,
        together(yy, more_yy, weight, of_y, of_y)?,
        together(xy, more_xy, weight, of_x, of_y)?,
    ])
}

fn both(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Bool(
        arguments.iter().all(|value| value.as_bool() == Some(true)),
    ))
}

fn either(arguments: &[Value]) -> Result<Value> {
    Ok(Value::Bool(
        arguments.iter().any(|value| value.as_bool() == Some(true)),
    ))
}
