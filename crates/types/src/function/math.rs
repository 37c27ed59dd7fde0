//! Functions of numbers: over `numeric` exact or correctly rounded, over `double precision` as the machine has them.
//!
//! The choice between the two is that of overloads: integers and literals without a type become doubles, the preferred
//! type of numbers.

use self::MathFunction::{
    Div, Exp, Factorial, Gcd, Lcm, Ln, Log, Log10, MinScale, Power, Scale, Sign, Sqrt, TrimScale, Trunc,
    WidthBucket,
};
use super::row::Implementation::Pure;
use super::row::{FunctionRow, row};
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{Float8, Int4, Int8, Numeric};
use crate::value::{Numeric as Decimal, Value};

/// A function of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MathFunction {
    /// `sqrt(x)`
    Sqrt,
    /// `exp(x)`
    Exp,
    /// `ln(x)`
    Ln,
    /// `log(x)`, `log10(x)`: to base 10
    Log10,
    /// `log(base, x)`
    Log,
    /// `power(x, y)`, `x ^ y`
    Power,
    /// `sign(x)`
    Sign,
    /// `trunc(x [, places])`
    Trunc,
    /// `div(x, y)`: the whole part of the quotient
    Div,
    /// `gcd(x, y)`
    Gcd,
    /// `lcm(x, y)`
    Lcm,
    /// `factorial(n)`
    Factorial,
    /// `scale(x)`
    Scale,
    /// `min_scale(x)`
    MinScale,
    /// `trim_scale(x)`
    TrimScale,
    /// `width_bucket(x, low, high, count)`
    WidthBucket,
}

/// The functions.
pub(super) static ROWS: &[FunctionRow] = &[
    row(1344, "sqrt", &[Float8], Float8, Pure(|x| Sqrt.call(x))),
    row(1730, "sqrt", &[Numeric], Numeric, Pure(|x| Sqrt.call(x))),
    // The operator `|/` is of doubles only, and this is its name.
    row(230, "dsqrt", &[Float8], Float8, Pure(|x| Sqrt.call(x))),
    row(1347, "exp", &[Float8], Float8, Pure(|x| Exp.call(x))),
    row(1732, "exp", &[Numeric], Numeric, Pure(|x| Exp.call(x))),
    row(1341, "ln", &[Float8], Float8, Pure(|x| Ln.call(x))),
    row(1734, "ln", &[Numeric], Numeric, Pure(|x| Ln.call(x))),
    row(1340, "log", &[Float8], Float8, Pure(|x| Log10.call(x))),
    row(1741, "log", &[Numeric], Numeric, Pure(|x| Log10.call(x))),
    row(1194, "log10", &[Float8], Float8, Pure(|x| Log10.call(x))),
    row(1481, "log10", &[Numeric], Numeric, Pure(|x| Log10.call(x))),
    row(1736, "log", &[Numeric, Numeric], Numeric, Pure(|x| Log.call(x))),
    row(1368, "power", &[Float8, Float8], Float8, Pure(|x| Power.call(x))),
    row(
        2169,
        "power",
        &[Numeric, Numeric],
        Numeric,
        Pure(|x| Power.call(x)),
    ),
    row(1346, "pow", &[Float8, Float8], Float8, Pure(|x| Power.call(x))),
    row(1738, "pow", &[Numeric, Numeric], Numeric, Pure(|x| Power.call(x))),
    row(2310, "sign", &[Float8], Float8, Pure(|x| Sign.call(x))),
    row(1706, "sign", &[Numeric], Numeric, Pure(|x| Sign.call(x))),
    row(1343, "trunc", &[Float8], Float8, Pure(|x| Trunc.call(x))),
    row(1710, "trunc", &[Numeric], Numeric, Pure(|x| Trunc.call(x))),
    row(1709, "trunc", &[Numeric, Int4], Numeric, Pure(|x| Trunc.call(x))),
    row(1973, "div", &[Numeric, Numeric], Numeric, Pure(|x| Div.call(x))),
    row(5044, "gcd", &[Int4, Int4], Int4, Pure(|x| Gcd.call(x))),
    row(5045, "gcd", &[Int8, Int8], Int8, Pure(|x| Gcd.call(x))),
    row(5048, "gcd", &[Numeric, Numeric], Numeric, Pure(|x| Gcd.call(x))),
    row(5046, "lcm", &[Int4, Int4], Int4, Pure(|x| Lcm.call(x))),
    row(5047, "lcm", &[Int8, Int8], Int8, Pure(|x| Lcm.call(x))),
    row(5049, "lcm", &[Numeric, Numeric], Numeric, Pure(|x| Lcm.call(x))),
    row(1376, "factorial", &[Int8], Numeric, Pure(|x| Factorial.call(x))),
    row(3281, "scale", &[Numeric], Int4, Pure(|x| Scale.call(x))),
    row(5042, "min_scale", &[Numeric], Int4, Pure(|x| MinScale.call(x))),
    row(
        5043,
        "trim_scale",
        &[Numeric],
        Numeric,
        Pure(|x| TrimScale.call(x)),
    ),
    row(
        320,
        "width_bucket",
        &[Float8, Float8, Float8, Int4],
        Int4,
        Pure(|x| WidthBucket.call(x)),
    ),
    row(
        2170,
        "width_bucket",
        &[Numeric, Numeric, Numeric, Int4],
        Int4,
        Pure(|x| WidthBucket.call(x)),
    ),
];

impl MathFunction {
    /// Its value; no argument is NULL.
    fn call(self, arguments: &[Value]) -> Result<Value> {
        match arguments {
            [Value::Numeric(x)] => self.of_numeric(x),
            [Value::Float8(x)] => self.of_float(*x).map(Value::Float8),
            [Value::Int8(n)] if self == MathFunction::Factorial => Decimal::factorial(*n).map(Value::Numeric),
            [Value::Numeric(x), Value::Int4(places)] if self == MathFunction::Trunc => {
                x.truncate(*places).map(Value::Numeric)
            }
            [Value::Numeric(x), Value::Numeric(y)] => self.of_numerics(x, y),
            [Value::Float8(x), Value::Float8(y)] if self == MathFunction::Power => {
                power(*x, *y).map(Value::Float8)
            }
            [Value::Int4(x), Value::Int4(y)] => {
                let whole = self.of_whole(i64::from(*x), i64::from(*y))?;
                whole
                    .and_then(|whole| i32::try_from(whole).ok())
                    .map(Value::Int4)
                    .ok_or_else(|| range("integer"))
            }
            [Value::Int8(x), Value::Int8(y)] => {
                let whole = self.of_whole(*x, *y)?;
                whole
                    .and_then(|whole| i64::try_from(whole).ok())
                    .map(Value::Int8)
                    .ok_or_else(|| range("bigint"))
            }
            [
                Value::Numeric(x),
                Value::Numeric(low),
                Value::Numeric(high),
                Value::Int4(count),
            ] => x.width_bucket(low, high, *count).map(Value::Int4),
            [
                Value::Float8(x),
                Value::Float8(low),
                Value::Float8(high),
                Value::Int4(count),
            ] => bucket(*x, *low, *high, *count).map(Value::Int4),
            _ => Err(self.unexpected(arguments)),
        }
    }

    fn unexpected(self, arguments: &[Value]) -> EngineError {
        EngineError::internal(format!("{self:?} of {arguments:?}"))
    }

    fn of_numeric(self, x: &Decimal) -> Result<Value> {
        let whole = |scale: Option<u16>| Ok(scale.map_or(Value::Null, |scale| Value::Int4(i32::from(scale))));
        let result = match self {
            Sqrt => x.sqrt()?,
            Exp => x.exp()?,
            Ln => x.ln()?,
            Log10 => Decimal::from(10i64).log(x)?,
            Sign if x.is_nan() => Decimal::NAN,
            Sign => Decimal::from(i64::from(x.signum())),
            Trunc => x.truncate(0)?,
            TrimScale => x.trim_scale()?,
            Scale => return whole(x.scale()),
            MinScale => return whole(x.min_scale()),
            _ => return Err(self.unexpected(&[Value::Numeric(x.clone())])),
        };
        Ok(Value::Numeric(result))
    }

    fn of_numerics(self, x: &Decimal, y: &Decimal) -> Result<Value> {
        let result = match self {
            MathFunction::Log => x.log(y)?,
            MathFunction::Power => x.power(y)?,
            MathFunction::Div => x.divide_whole(y)?,
            MathFunction::Gcd => x.gcd(y)?,
            MathFunction::Lcm => x.lcm(y)?,
            _ => return Err(self.unexpected(&[Value::Numeric(x.clone()), Value::Numeric(y.clone())])),
        };
        Ok(Value::Numeric(result))
    }

    /// A divisor or multiple of whole numbers; `None` when it is beyond 128 bits.
    fn of_whole(self, x: i64, y: i64) -> Result<Option<i128>> {
        let (wide_x, wide_y) = (i128::from(x).abs(), i128::from(y).abs());
        let (mut divisor, mut rest) = (wide_x, wide_y);
        while rest != 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        match self {
            MathFunction::Gcd => Ok(Some(divisor)),
            MathFunction::Lcm if divisor == 0 => Ok(Some(0)),
            MathFunction::Lcm => Ok((wide_x / divisor).checked_mul(wide_y)),
            _ => Err(self.unexpected(&[Value::Int8(x), Value::Int8(y)])),
        }
    }

    fn of_float(self, x: f64) -> Result<f64> {
        Ok(match self {
            Sqrt if x < 0.0 => {
                return Err(bad(
                    SqlState::INVALID_ARGUMENT_FOR_POWER,
                    "cannot take square root of a negative number",
                ));
            }
            Sqrt => x.sqrt(),
            Exp => finite(x.exp(), x.is_finite(), x == f64::NEG_INFINITY)?,
            Ln | Log10 if x == 0.0 => {
                return Err(bad(
                    SqlState::INVALID_ARGUMENT_FOR_LOGARITHM,
                    "cannot take logarithm of zero",
                ));
            }
            Ln | Log10 if x < 0.0 => {
                let message = "cannot take logarithm of a negative number";
                return Err(bad(SqlState::INVALID_ARGUMENT_FOR_LOGARITHM, message));
            }
            Ln => x.ln(),
            Log10 => x.log10(),
            Sign if x == 0.0 || x.is_nan() => 0.0,
            Sign => x.signum(),
            Trunc => x.trunc(),
            _ => return Err(self.unexpected(&[Value::Float8(x)])),
        })
    }
}

fn power(x: f64, y: f64) -> Result<f64> {
    let zero_fits = x == 0.0 || x.is_infinite() || y.is_infinite();
    if x == 0.0 && y < 0.0 {
        return Err(bad(
            SqlState::INVALID_ARGUMENT_FOR_POWER,
            "zero raised to a negative power is undefined",
        ));
    }
    if x < 0.0 && y.is_finite() && y.fract() != 0.0 {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(bad(SqlState::INVALID_ARGUMENT_FOR_POWER, message));
    }
    finite(x.powf(y), x.is_finite() && y.is_finite(), zero_fits)
}

/// A result that overflowed to infinity or vanished to zero is an error.
fn finite(result: f64, from_finite: bool, zero_fits: bool) -> Result<f64> {
    if result.is_infinite() && from_finite {
        return Err(bad(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    if result == 0.0 && !zero_fits {
        return Err(bad(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: underflow",
        ));
    }
    Ok(result)
}

fn bucket(x: f64, low: f64, high: f64, count: i32) -> Result<i32> {
    let wrong = |message| Err(bad(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, message));
    if count <= 0 {
        return wrong("count must be greater than zero");
    }
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return wrong("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return wrong("lower and upper bounds must be finite");
    }
    if low == high {
        return wrong("lower bound cannot equal upper bound");
    }
    let (before, beyond) = if low < high {
        (x < low, x >= high)
    } else {
        (x > low, x <= high)
    };
    if before {
        return Ok(0);
    }
    if beyond {
        return count.checked_add(1).ok_or_else(|| range("integer"));
    }
    // Halved, the distance of two finite bounds is finite.
    let share = if (high - low).is_finite() {
        (x - low) / (high - low)
    } else {
        (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    };
    // Rounding may lift the last value of the last bucket onto its end.
    Ok(((f64::from(count) * share) as i32).min(count - 1) + 1)
}

#[cold]
fn bad(sqlstate: SqlState, message: &'static str) -> EngineError {
    EngineError::new(sqlstate, message)
}

#[cold]
fn range(type_name: &str) -> EngineError {
    EngineError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{type_name} out of range"),
    )
}
