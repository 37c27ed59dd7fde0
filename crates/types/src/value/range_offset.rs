//! Offsets of RANGE frames: which types they have, and whether a value lies within one of another value.
//!
//! Whole numbers are compared in 128 bits, where no sum overflows: a bound beyond a type's range is then larger than all
//! its values, as it should be. A NaN is larger than every number and as far from another NaN as nothing.

use std::cmp::Ordering;

use crate::error::{EngineError, Result, SqlState};
use crate::value::datetime::MICROS_PER_DAY;
use crate::value::{DataType, Interval, Numeric, Value, compare_checked};

/// The types of offsets that a column of this type can have.
pub fn offset_types(column: DataType) -> &'static [DataType] {
    use DataType::*;
    match column {
        Int2 | Int4 => &[Int2, Int4, Int8],
        Int8 => &[Int8],
        Float4 | Float8 => &[Float8],
        Numeric => &[Numeric],
        Date | Time | TimeTz | Timestamp | TimestampTz | Interval => &[Interval],
        _ => &[],
    }
}

/// The side of a bound on which a value is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RangeSide {
    /// Values at most as large as the bound.
    AtMost,
    /// Values at least as large as the bound.
    AtLeast,
}

impl RangeSide {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            RangeSide::AtMost => ordering.is_le(),
            RangeSide::AtLeast => ordering.is_ge(),
        }
    }
}

/// True if `value` lies on this side of `base + offset`, or of `base - offset`; none of them is NULL. 22013 for an
/// offset that is negative or no number.
pub fn in_range(
    value: &Value,
    base: &Value,
    offset: &Value,
    subtract: bool,
    side: RangeSide,
) -> Result<bool> {
    if let (Some(value), Some(base), Some(offset)) = (value.as_i64(), base.as_i64(), offset.as_i64()) {
        require(offset >= 0)?;
        let distance = if subtract {
            -i128::from(offset)
        } else {
            i128::from(offset)
        };
        return Ok(side.holds(i128::from(value).cmp(&(i128::from(base) + distance))));
    }
    match (value, base, offset) {
        (Value::Numeric(value), Value::Numeric(base), Value::Numeric(offset)) => {
            numeric_in_range(value, base, offset, subtract, side)
        }
        (value, base, Value::Interval(offset)) => time_in_range(value, base, *offset, subtract, side),
        (value, base, Value::Float8(offset)) => match (float(value), float(base)) {
            (Some(value), Some(base)) => float_in_range(value, base, *offset, subtract, side),
            _ => Err(EngineError::internal("a RANGE offset for values of another type")),
        },
        _ => Err(EngineError::internal("a RANGE offset of another type")),
    }
}

fn require(valid: bool) -> Result<()> {
    match valid {
        true => Ok(()),
        false => Err(EngineError::new(
            SqlState::from_code("22013"),
            "invalid preceding or following size in window function",
        )),
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float4(value) => Some(f64::from(*value)),
        Value::Float8(value) => Some(*value),
        _ => None,
    }
}

/// The answer if one of the two is NaN.
fn of_nan(value: bool, base: bool, side: RangeSide) -> Option<bool> {
    match (value, base) {
        (true, true) => Some(true),
        (true, false) => Some(side == RangeSide::AtLeast),
        (false, true) => Some(side == RangeSide::AtMost),
        (false, false) => None,
    }
}

fn float_in_range(value: f64, base: f64, offset: f64, subtract: bool, side: RangeSide) -> Result<bool> {
    require(offset >= 0.0)?;
    if let Some(answer) = of_nan(value.is_nan(), base.is_nan(), side) {
        return Ok(answer);
    }
    let bound = if subtract { base - offset } else { base + offset };
    // Infinity less infinity: every value is within an infinite distance.
    Ok(value
        .partial_cmp(&bound)
        .is_none_or(|ordering| side.holds(ordering)))
}

fn numeric_in_range(
    value: &Numeric,
    base: &Numeric,
    offset: &Numeric,
    subtract: bool,
    side: RangeSide,
) -> Result<bool> {
    require(!offset.is_nan() && offset.signum() >= 0)?;
    if let Some(answer) = of_nan(value.is_nan(), base.is_nan(), side) {
        return Ok(answer);
    }
    let bound = if subtract {
        base.subtract(offset)?
    } else {
        base.add(offset)?
    };
    Ok(bound.is_nan() || side.holds(value.compare(&bound)))
}

fn time_in_range(
    value: &Value,
    base: &Value,
    offset: Interval,
    subtract: bool,
    side: RangeSide,
) -> Result<bool> {
    let moved = |timestamp: i64| match subtract {
        true => offset.before(timestamp),
        false => offset.after(timestamp),
    };
    match (value, base) {
        (Value::Time(_) | Value::TimeTz(..), _) => {
            // Only its time counts, and so only it must not be negative.
            require(offset.micros >= 0)?;
            let distance = if subtract { -offset.micros } else { offset.micros };
            match (value, base) {
                (Value::Time(value), Value::Time(base)) => {
                    Ok(side.holds(i128::from(*value).cmp(&(i128::from(*base) + i128::from(distance)))))
                }
                (Value::TimeTz(..), Value::TimeTz(base, zone)) => {
                    let bound = base
                        .checked_add(distance)
                        .map(|bound| Value::TimeTz(bound, *zone));
                    // What no 64 bits hold is beyond every time.
                    Ok(match bound {
                        None => side == RangeSide::AtMost,
                        Some(bound) => side.holds(compare_checked(value, &bound, DataType::TimeTz)?),
                    })
                }
                _ => Err(EngineError::internal("a RANGE offset for values of another type")),
            }
        }
        _ => {
            require(offset.span() >= 0)?;
            let ordering = match (value, base) {
                (Value::Date(value), Value::Date(base)) => moment_of(*value).cmp(&moved(moment_of(*base))?),
                (Value::Timestamp(value), Value::Timestamp(base)) => value.cmp(&moved(*base)?),
                (Value::TimestampTz(value), Value::TimestampTz(base)) => {
                    let by = if subtract { offset.reversed() } else { offset };
                    value.cmp(&by.after_in_session(*base)?)
                }
                (Value::Interval(value), Value::Interval(base)) => {
                    let bound = if subtract {
                        base.subtract(offset)?
                    } else {
                        base.plus(offset)?
                    };
                    value.compare(bound)
                }
                _ => return Err(EngineError::internal("a RANGE offset for values of another type")),
            };
            Ok(side.holds(ordering))
        }
    }
}

/// The first moment of a day.
fn moment_of(days: i32) -> i64 {
    match days {
        i32::MAX => i64::MAX,
        i32::MIN => i64::MIN,
        days => i64::from(days).saturating_mul(MICROS_PER_DAY),
    }
}
