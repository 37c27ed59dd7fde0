//! Functions of numbers: over `numeric` exact or correctly rounded, over `double precision` as the machine has them.
//!
//! The choice between the two is PostgreSQL's: a numeric argument makes it numeric unless another
//! is a real or a double; integers and literals without a type become doubles.

use crate::common_type::common_type;
use crate::error::{EngineError, Result, SqlState};
use crate::value::{Category, DataType, Numeric, Value};

/// A function of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MathFunction {
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

/// The function of this name for arguments of these types, the types its arguments are converted to, and its result's.
/// `None`: it is none of these.
pub(super) fn resolve(name: &str, arguments: &[DataType]) -> Option<(MathFunction, Vec<DataType>, DataType)> {
    use DataType::{Int4, Int8, Numeric};
    use MathFunction::*;
    let real = real_type(arguments);
    let (function, wanted, result) = match (name, arguments.len()) {
        ("sqrt", 1) => (Sqrt, vec![real?], real?),
        // The operator `|/` is of doubles only, and this is its name.
        ("dsqrt", 1) => (Sqrt, vec![DataType::Float8], DataType::Float8),
        ("exp", 1) => (Exp, vec![real?], real?),
        ("ln", 1) => (Ln, vec![real?], real?),
        ("log" | "log10", 1) => (Log10, vec![real?], real?),
        ("log", 2) => (Log, vec![Numeric; 2], Numeric),
        ("power" | "pow", 2) => (Power, vec![real?; 2], real?),
        ("sign", 1) => (Sign, vec![real?], real?),
        ("trunc", 1) => (Trunc, vec![real?], real?),
        ("trunc", 2) => (Trunc, vec![Numeric, Int4], Numeric),
        ("div", 2) => (Div, vec![Numeric; 2], Numeric),
        ("gcd" | "lcm", 2) => {
            let kind = whole_type(arguments)?;
            (if name == "gcd" { Gcd } else { Lcm }, vec![kind; 2], kind)
        }
        ("factorial", 1) => (Factorial, vec![Int8], Numeric),
        ("scale", 1) => (Scale, vec![Numeric], Int4),
        ("min_scale", 1) => (MinScale, vec![Numeric], Int4),
        ("trim_scale", 1) => (TrimScale, vec![Numeric], Numeric),
        ("width_bucket", 4) => {
            let kind = real_type(&arguments[..3])?;
            (WidthBucket, vec![kind, kind, kind, Int4], Int4)
        }
        _ => return None,
    };
    Some((function, wanted, result))
}

/// `numeric` or `double precision`, whichever these arguments mean; `None` if one is no number.
fn real_type(arguments: &[DataType]) -> Option<DataType> {
    let number = |kind: &DataType| kind.category() == Category::Numeric || *kind == DataType::Unknown;
    if !arguments.iter().all(number) {
        return None;
    }
    let numeric = arguments.contains(&DataType::Numeric) && !arguments.iter().any(|kind| kind.is_float());
    Some(if numeric {
        DataType::Numeric
    } else {
        DataType::Float8
    })
}

/// The type in which two whole numbers or numerics are compared by divisors.
fn whole_type(arguments: &[DataType]) -> Option<DataType> {
    match common_type(arguments)? {
        DataType::Int2 | DataType::Int4 => Some(DataType::Int4),
        kind @ (DataType::Int8 | DataType::Numeric) => Some(kind),
        _ => None,
    }
}

impl MathFunction {
    /// The name by which PostgreSQL has it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            MathFunction::Sqrt => "sqrt",
            MathFunction::Exp => "exp",
            MathFunction::Ln => "ln",
            MathFunction::Log10 | MathFunction::Log => "log",
            MathFunction::Power => "power",
            MathFunction::Sign => "sign",
            MathFunction::Trunc => "trunc",
            MathFunction::Div => "div",
            MathFunction::Gcd => "gcd",
            MathFunction::Lcm => "lcm",
            MathFunction::Factorial => "factorial",
            MathFunction::Scale => "scale",
            MathFunction::MinScale => "min_scale",
            MathFunction::TrimScale => "trim_scale",
            MathFunction::WidthBucket => "width_bucket",
        }
    }

    /// Its value; no argument is NULL.
    pub fn call(self, arguments: &[Value]) -> Result<Value> {
        match arguments {
            [Value::Numeric(x)] => self.of_numeric(x),
            [Value::Float8(x)] => self.of_float(*x).map(Value::Float8),
            [Value::Int8(n)] if self == MathFunction::Factorial => Numeric::factorial(*n).map(Value::Numeric),
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

    fn of_numeric(self, x: &Numeric) -> Result<Value> {
        use MathFunction::*;
        let whole = |scale: Option<u16>| Ok(scale.map_or(Value::Null, |scale| Value::Int4(i32::from(scale))));
        let result = match self {
            Sqrt => x.sqrt()?,
            Exp => x.exp()?,
            Ln => x.ln()?,
            Log10 => Numeric::from(10i64).log(x)?,
            Sign if x.is_nan() => Numeric::NAN,
            Sign => Numeric::from(i64::from(x.signum())),
            Trunc => x.truncate(0)?,
            TrimScale => x.trim_scale()?,
            Scale => return whole(x.scale()),
            MinScale => return whole(x.min_scale()),
            _ => return Err(self.unexpected(&[Value::Numeric(x.clone())])),
        };
        Ok(Value::Numeric(result))
    }

    fn of_numerics(self, x: &Numeric, y: &Numeric) -> Result<Value> {
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
        use MathFunction::*;
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
