//! Angles in radians and degrees, and hyperbolic functions, over `double precision`.
//!
//! A function of degrees gives the exact result where there is one: `sind(30)` is 0.5. An angle is brought to the first
//! quadrant, and there sine is computed up to 30 and cosine up to 60 degrees, divided by what they are at the end.

use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::Float8;
use crate::value::Value;

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(
        1610,
        "pi",
        &[],
        Float8,
        Pure(|_| Ok(Value::Float8(std::f64::consts::PI))),
    ),
    row(1345, "cbrt", &[Float8], Float8, Pure(|x| of(x, |x| Ok(x.cbrt())))),
    row(
        1608,
        "degrees",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| in_range(x, x / RADIANS_PER_DEGREE))),
    ),
    row(
        1609,
        "radians",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| in_range(x, x * RADIANS_PER_DEGREE))),
    ),
    row(
        1604,
        "sin",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| finite(x).map(f64::sin))),
    ),
    row(
        1605,
        "cos",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| finite(x).map(f64::cos))),
    ),
    row(
        1606,
        "tan",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| finite(x).map(f64::tan))),
    ),
    row(
        1607,
        "cot",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| finite(x).map(|x| 1.0 / x.tan()))),
    ),
    row(
        1600,
        "asin",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| unit(x).map(f64::asin))),
    ),
    row(
        1601,
        "acos",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| unit(x).map(f64::acos))),
    ),
    row(1602, "atan", &[Float8], Float8, Pure(|x| of(x, |x| Ok(x.atan())))),
    row(
        1603,
        "atan2",
        &[Float8, Float8],
        Float8,
        Pure(|x| of_two(x, f64::atan2)),
    ),
    row(2462, "sinh", &[Float8], Float8, Pure(|x| of(x, |x| Ok(x.sinh())))),
    row(2463, "cosh", &[Float8], Float8, Pure(|x| of(x, |x| Ok(x.cosh())))),
    row(2464, "tanh", &[Float8], Float8, Pure(|x| of(x, |x| Ok(x.tanh())))),
    row(
        2465,
        "asinh",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| Ok(x.asinh()))),
    ),
    row(2466, "acosh", &[Float8], Float8, Pure(|x| of(x, acosh))),
    row(
        2467,
        "atanh",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| unit(x).map(f64::atanh))),
    ),
    row(
        2735,
        "sind",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| finite(x).map(sine))),
    ),
    row(
        2736,
        "cosd",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| finite(x).map(cosine))),
    ),
    row(
        2737,
        "tand",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| finite(x).map(|x| tangent(x, false)))),
    ),
    row(
        2738,
        "cotd",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| finite(x).map(|x| tangent(x, true)))),
    ),
    row(
        2731,
        "asind",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| unit(x).map(arc_sine))),
    ),
    row(
        2732,
        "acosd",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| unit(x).map(arc_cosine))),
    ),
    row(
        2733,
        "atand",
        &[Float8],
        Float8,
        Pure(|x| of(x, |x| Ok(arc_degrees(x.atan())))),
    ),
    row(
        2734,
        "atan2d",
        &[Float8, Float8],
        Float8,
        Pure(|x| of_two(x, |y, x| arc_degrees(y.atan2(x)))),
    ),
];

fn of(arguments: &[Value], function: impl FnOnce(f64) -> Result<f64>) -> Result<Value> {
    match arguments {
        [Value::Float8(x)] => function(*x).map(Value::Float8),
        other => Err(EngineError::internal(format!("{other:?} are no double"))),
    }
}

fn of_two(arguments: &[Value], function: impl FnOnce(f64, f64) -> f64) -> Result<Value> {
    match arguments {
        [Value::Float8(x), Value::Float8(y)] => Ok(Value::Float8(function(*x, *y))),
        other => Err(EngineError::internal(format!("{other:?} are no doubles"))),
    }
}

#[cold]
fn out_of_range(message: &'static str) -> EngineError {
    EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

/// An angle, which is finite or no number.
fn finite(x: f64) -> Result<f64> {
    match x.is_infinite() {
        true => Err(out_of_range("input is out of range")),
        false => Ok(x),
    }
}

/// A number from −1 to 1, or no number.
fn unit(x: f64) -> Result<f64> {
    match x.abs() > 1.0 {
        true => Err(out_of_range("input is out of range")),
        false => Ok(x),
    }
}

fn in_range(x: f64, result: f64) -> Result<f64> {
    match () {
        () if result.is_infinite() && x.is_finite() => Err(out_of_range("value out of range: overflow")),
        () if result == 0.0 && x != 0.0 => Err(out_of_range("value out of range: underflow")),
        () => Ok(result),
    }
}

fn acosh(x: f64) -> Result<f64> {
    match x < 1.0 {
        true => Err(out_of_range("input is out of range")),
        false => Ok(x.acosh()),
    }
}

/// Sine of 0 to 30 degrees.
fn small_sine(degrees: f64) -> f64 {
    let end = (30.0 * RADIANS_PER_DEGREE).sin();
    (degrees * RADIANS_PER_DEGREE).sin() / end / 2.0
}

/// Cosine of 0 to 60 degrees.
fn small_cosine(degrees: f64) -> f64 {
    let end = 1.0 - (60.0 * RADIANS_PER_DEGREE).cos();
    1.0 - (1.0 - (degrees * RADIANS_PER_DEGREE).cos()) / end / 2.0
}

/// Sine of the first quadrant.
fn quadrant_sine(degrees: f64) -> f64 {
    match degrees <= 30.0 {
        true => small_sine(degrees),
        false => small_cosine(90.0 - degrees),
    }
}

/// Cosine of the first quadrant.
fn quadrant_cosine(degrees: f64) -> f64 {
    match degrees <= 60.0 {
        true => small_cosine(degrees),
        false => small_sine(90.0 - degrees),
    }
}

fn sine(degrees: f64) -> f64 {
    let (mut angle, mut sign) = (degrees % 360.0, 1.0);
    if angle < 0.0 {
        (angle, sign) = (-angle, -sign);
    }
    if angle > 180.0 {
        (angle, sign) = (360.0 - angle, -sign);
    }
    if angle > 90.0 {
        angle = 180.0 - angle;
    }
    sign * quadrant_sine(angle)
}

fn cosine(degrees: f64) -> f64 {
    let (mut angle, mut sign) = ((degrees % 360.0).abs(), 1.0);
    if angle > 180.0 {
        angle = 360.0 - angle;
    }
    if angle > 90.0 {
        (angle, sign) = (180.0 - angle, -sign);
    }
    sign * quadrant_cosine(angle)
}

/// Tangent, or cotangent.
fn tangent(degrees: f64, inverse: bool) -> f64 {
    let (mut angle, mut sign) = (degrees % 360.0, 1.0);
    if angle < 0.0 {
        (angle, sign) = (-angle, -sign);
    }
    if angle > 180.0 {
        (angle, sign) = (360.0 - angle, -sign);
    }
    if angle > 90.0 {
        (angle, sign) = (180.0 - angle, -sign);
    }
    let ratio = |angle: f64| match inverse {
        true => quadrant_cosine(angle) / quadrant_sine(angle),
        false => quadrant_sine(angle) / quadrant_cosine(angle),
    };
    // Zero has no sign.
    sign * (ratio(angle) / ratio(45.0)) + 0.0
}

/// Degrees of an arc sine or its kin; those of 0.5 are exact.
fn arc_sine(x: f64) -> f64 {
    let magnitude = x.abs();
    let degrees = match magnitude <= 0.5 {
        true => magnitude.asin() / 0.5f64.asin() * 30.0,
        false => 90.0 - magnitude.acos() / 0.5f64.acos() * 60.0,
    };
    degrees.copysign(x)
}

fn arc_cosine(x: f64) -> f64 {
    match x {
        _ if x < 0.0 => 90.0 + arc_sine(-x),
        _ if x <= 0.5 => 90.0 - x.asin() / 0.5f64.asin() * 30.0,
        _ => x.acos() / 0.5f64.acos() * 60.0,
    }
}

fn arc_degrees(radians: f64) -> f64 {
    radians / 1f64.atan() * 45.0
}
