//! `+ - * / %` and unary minus. Both operands have one type (the binder sees to it), but for dates, where the operators
//! mix a date with a number of days.

use crate::error::{EngineError, Result, SqlState};
use crate::value::{DataType, Numeric, Value};

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArithmeticOp {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Remainder,
}

impl ArithmeticOp {
    /// As written in SQL.
    pub fn symbol(self) -> &'static str {
        match self {
            ArithmeticOp::Add => "+",
            ArithmeticOp::Subtract => "-",
            ArithmeticOp::Multiply => "*",
            ArithmeticOp::Divide => "/",
            ArithmeticOp::Remainder => "%",
        }
    }

    /// The types the operands are converted to and the result's type; `None` when there is no such operator.
    pub fn resolve(self, left: DataType, right: DataType) -> Option<(DataType, DataType, DataType)> {
        use ArithmeticOp::*;
        use DataType::{Date, Float4, Float8, Int4, Int8, Numeric, PgLsn, Unknown};
        // The types of a number of bytes that a position in the log is moved by.
        let moves = |data_type: DataType| data_type.is_integer() || matches!(data_type, Numeric | Unknown);
        match (self, left, right) {
            (Add, Date, Int4 | DataType::Int2) => return Some((Date, Int4, Date)),
            (Add, Int4 | DataType::Int2, Date) => return Some((Int4, Date, Date)),
            (Subtract, Date, Int4 | DataType::Int2) => return Some((Date, Int4, Date)),
            (Subtract, Date, Date | Unknown) => return Some((Date, Date, Int4)),
            (Subtract, PgLsn, PgLsn | Unknown) | (Subtract, Unknown, PgLsn) => {
                return Some((PgLsn, PgLsn, Numeric));
            }
            (Add | Subtract, PgLsn, bytes) if moves(bytes) => return Some((PgLsn, Numeric, PgLsn)),
            (Add, bytes, PgLsn) if moves(bytes) => return Some((Numeric, PgLsn, PgLsn)),
            _ => {}
        }
        let common = match (left, right) {
            (Unknown, Unknown) => return None,
            (Unknown, other) | (other, Unknown) => other,
            (Float4, Float4) => Float4,
            // A real meets another kind of number as a double.
            (Float4 | Float8, other) | (other, Float4 | Float8) if other.category() == Float8.category() => {
                Float8
            }
            (Numeric, other) | (other, Numeric) if other.category() == Float8.category() => Numeric,
            (l, r) if l.is_integer() && r.is_integer() => {
                if l == Int8 || r == Int8 {
                    Int8
                } else if l == Int4 || r == Int4 {
                    Int4
                } else {
                    DataType::Int2
                }
            }
            _ => return None,
        };
        let known = common.is_integer() || common == Numeric || (common.is_float() && self != Remainder);
        known.then_some((common, common, common))
    }
}

macro_rules! integers {
    ($op:expr, $l:expr, $r:expr, $variant:ident, $name:literal) => {{
        let (l, r) = ($l, $r);
        let result = match $op {
            ArithmeticOp::Add => l.checked_add(r),
            ArithmeticOp::Subtract => l.checked_sub(r),
            ArithmeticOp::Multiply => l.checked_mul(r),
            ArithmeticOp::Divide | ArithmeticOp::Remainder if r == 0 => return Err(division_by_zero()),
            ArithmeticOp::Divide => l.checked_div(r),
            ArithmeticOp::Remainder => Some(l.wrapping_rem(r)),
        };
        result
            .map(Value::$variant)
            .ok_or_else(|| out_of_range(concat!($name, " out of range")))
    }};
}

macro_rules! floats {
    ($op:expr, $l:expr, $r:expr, $variant:ident) => {{
        let (l, r) = ($l, $r);
        let result = match $op {
            ArithmeticOp::Add => l + r,
            ArithmeticOp::Subtract => l - r,
            ArithmeticOp::Multiply => l * r,
            ArithmeticOp::Divide if r == 0.0 && !l.is_nan() => return Err(division_by_zero()),
            ArithmeticOp::Divide => l / r,
            ArithmeticOp::Remainder => l % r,
        };
        if result.is_infinite() && l.is_finite() && r.is_finite() {
            return Err(out_of_range("value out of range: overflow"));
        }
        let vanished = result == 0.0
            && match $op {
                ArithmeticOp::Multiply => l != 0.0 && r != 0.0,
                ArithmeticOp::Divide => l != 0.0 && r.is_finite(),
                _ => false,
            };
        if vanished {
            return Err(out_of_range("value out of range: underflow"));
        }
        Ok(Value::$variant(result))
    }};
}

/// The operator's value; NULL when an operand is.
#[inline]
pub fn apply(op: ArithmeticOp, left: &Value, right: &Value) -> Result<Value> {
    match (left, right) {
        (Value::Int4(l), Value::Int4(r)) => integers!(op, *l, *r, Int4, "integer"),
        (Value::Int8(l), Value::Int8(r)) => integers!(op, *l, *r, Int8, "bigint"),
        (Value::Int2(l), Value::Int2(r)) => integers!(op, *l, *r, Int2, "smallint"),
        (Value::Float8(l), Value::Float8(r)) => floats!(op, *l, *r, Float8),
        (Value::Numeric(l), Value::Numeric(r)) => numerics(op, l, r).map(Value::Numeric),
        (Value::Float4(l), Value::Float4(r)) => floats!(op, *l, *r, Float4),
        (Value::Null, _) | (_, Value::Null) => Ok(Value::Null),
        (Value::Date(l), Value::Date(r)) if op == ArithmeticOp::Subtract => {
            if is_infinite(*l) || is_infinite(*r) {
                let message = "cannot subtract infinite dates";
                return Err(EngineError::new(SqlState::DATETIME_FIELD_OVERFLOW, message));
            }
            l.checked_sub(*r)
                .map(Value::Int4)
                .ok_or_else(|| out_of_range("date out of range"))
        }
        (Value::Date(date), Value::Int4(days)) | (Value::Int4(days), Value::Date(date)) => {
            if is_infinite(*date) {
                return Ok(Value::Date(*date));
            }
            let moved = match op {
                ArithmeticOp::Subtract => date.checked_sub(*days),
                _ => date.checked_add(*days),
            };
            moved
                .filter(|date| crate::value::datetime::is_valid_date(*date))
                .map(Value::Date)
                .ok_or_else(|| EngineError::new(SqlState::DATETIME_FIELD_OVERFLOW, "date out of range"))
        }
        (Value::Lsn(l), Value::Lsn(r)) if op == ArithmeticOp::Subtract => {
            Ok(Value::Numeric(Numeric::from(i128::from(*l) - i128::from(*r))))
        }
        (Value::Lsn(position), Value::Numeric(bytes)) | (Value::Numeric(bytes), Value::Lsn(position)) => {
            move_position(op, *position, bytes)
        }
        _ => Err(EngineError::internal(format!(
            "{left:?} {} {right:?}",
            op.symbol()
        ))),
    }
}

/// A position in the log moved by a number of bytes, which is rounded.
fn move_position(op: ArithmeticOp, position: u64, bytes: &Numeric) -> Result<Value> {
    if bytes.is_nan() {
        let what = if op == ArithmeticOp::Subtract {
            "subtract NaN from"
        } else {
            "add NaN to"
        };
        return Err(EngineError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot {what} pg_lsn"),
        ));
    }
    let moved = bytes.to_i128().and_then(|bytes| match op {
        ArithmeticOp::Subtract => i128::from(position).checked_sub(bytes),
        _ => i128::from(position).checked_add(bytes),
    });
    moved
        .and_then(|moved| u64::try_from(moved).ok())
        .map(Value::Lsn)
        .ok_or_else(|| out_of_range("pg_lsn out of range"))
}

/// Unary minus.
pub fn negate(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Null => Value::Null,
        Value::Int2(v) => Value::Int2(
            v.checked_neg()
                .ok_or_else(|| out_of_range("smallint out of range"))?,
        ),
        Value::Int4(v) => Value::Int4(
            v.checked_neg()
                .ok_or_else(|| out_of_range("integer out of range"))?,
        ),
        Value::Int8(v) => Value::Int8(
            v.checked_neg()
                .ok_or_else(|| out_of_range("bigint out of range"))?,
        ),
        Value::Float4(v) => Value::Float4(-v),
        Value::Float8(v) => Value::Float8(-v),
        Value::Numeric(v) => Value::Numeric(v.negate()),
        other => return Err(EngineError::internal(format!("- {other:?}"))),
    })
}

fn is_infinite(date: i32) -> bool {
    date == i32::MAX || date == i32::MIN
}

fn numerics(op: ArithmeticOp, l: &Numeric, r: &Numeric) -> Result<Numeric> {
    match op {
        ArithmeticOp::Add => l.add(r),
        ArithmeticOp::Subtract => l.subtract(r),
        ArithmeticOp::Multiply => l.multiply(r),
        ArithmeticOp::Divide => l.divide(r),
        ArithmeticOp::Remainder => l.remainder(r),
    }
}

#[cold]
fn division_by_zero() -> EngineError {
    EngineError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

#[cold]
fn out_of_range(message: &'static str) -> EngineError {
    EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_and_zero_are_errors() {
        let code = |op, l, r| apply(op, &l, &r).unwrap_err().sqlstate();
        use ArithmeticOp::*;
        assert_eq!(
            code(Add, Value::Int4(i32::MAX), Value::Int4(1)),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE
        );
        assert_eq!(
            code(Divide, Value::Int4(i32::MIN), Value::Int4(-1)),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE
        );
        assert_eq!(
            code(Divide, Value::Int8(1), Value::Int8(0)),
            SqlState::DIVISION_BY_ZERO
        );
        assert_eq!(
            code(Divide, Value::Float8(1.0), Value::Float8(0.0)),
            SqlState::DIVISION_BY_ZERO
        );
        assert_eq!(
            code(Multiply, Value::Float8(1e300), Value::Float8(1e300)),
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE
        );
        assert_eq!(
            apply(Remainder, &Value::Int4(i32::MIN), &Value::Int4(-1)).unwrap(),
            Value::Int4(0)
        );
        assert_eq!(
            apply(Divide, &Value::Int4(-7), &Value::Int4(2)).unwrap(),
            Value::Int4(-3)
        );
    }
}
