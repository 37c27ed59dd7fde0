//! Order and equality of two values of one type.
//!
//! The order of a B+tree over bytes (`key`) and that of a comparison over values are one; a property test holds them
//! together.
//!
//! The binder brings both sides of a comparison to one type; only whole numbers of different widths, and a real and a
//! double in NULLIF, meet as they are.
//! Should values of two other types meet, they are not called equal: there is no answer ([`compare_checked`]), and a
//! sort, which must have one, orders them by the place of their types in [`DataType::ALL`].

use std::cmp::Ordering;

use crate::error::{EngineError, Result};
use crate::value::datetime::time_in_greenwich;
use crate::value::record::dissimilar;
use crate::value::{DataType, Value};

/// The order of two values, neither of them NULL, or an error when their types have no common order.
#[inline]
pub fn compare_checked(left: &Value, right: &Value, data_type: DataType) -> Result<Ordering> {
    order(left, right, data_type).ok_or_else(|| mismatch(left, right, data_type))
}

/// The order of two values of one type, for sorting: it is total. NULLs order last and equal to each other; comparison
/// operators must look for NULL first.
#[inline]
pub fn compare(left: &Value, right: &Value, data_type: DataType) -> Ordering {
    order(left, right, data_type).unwrap_or_else(|| {
        let place = |value: &Value| {
            let kind = value.natural_type();
            DataType::ALL.iter().position(|data_type| *data_type == kind)
        };
        match (left.is_null(), right.is_null()) {
            (false, false) => place(left).cmp(&place(right)),
            (left, right) => left.cmp(&right),
        }
    })
}

/// The order of two values, neither of them NULL; `None` when their types have no common order.
#[inline]
fn order(left: &Value, right: &Value, data_type: DataType) -> Option<Ordering> {
    Some(match (left, right) {
        (Value::Int4(l), Value::Int4(r)) => l.cmp(r),
        (Value::Int8(l), Value::Int8(r)) => l.cmp(r),
        (Value::Int2(l), Value::Int2(r)) => l.cmp(r),
        (Value::Text(l), Value::Text(r)) if data_type == DataType::Char => {
            trim_blanks(l).as_bytes().cmp(trim_blanks(r).as_bytes())
        }
        (Value::Text(l), Value::Text(r)) => l.as_bytes().cmp(r.as_bytes()),
        (Value::Numeric(l), Value::Numeric(r)) => l.compare(r),
        (Value::Float8(l), Value::Float8(r)) => compare_floats(*l, *r),
        (Value::Float4(l), Value::Float4(r)) => compare_floats(f64::from(*l), f64::from(*r)),
        (Value::Bool(l), Value::Bool(r)) => l.cmp(r),
        (Value::Date(l), Value::Date(r)) => l.cmp(r),
        (Value::Timestamp(l), Value::Timestamp(r)) => l.cmp(r),
        (Value::TimestampTz(l), Value::TimestampTz(r)) => l.cmp(r),
        (Value::Interval(l), Value::Interval(r)) => l.compare(*r),
        (Value::Time(l), Value::Time(r)) => l.cmp(r),
        (Value::TimeTz(l, zone), Value::TimeTz(r, other)) => {
            (time_in_greenwich(*l, *zone), zone).cmp(&(time_in_greenwich(*r, *other), other))
        }
        (Value::Uuid(l), Value::Uuid(r)) => l.cmp(r),
        // Any two, since one is the other without bits behind its prefix.
        (Value::Inet(l) | Value::Cidr(l), Value::Inet(r) | Value::Cidr(r)) => l.compare(*r),
        (Value::MacAddr(l), Value::MacAddr(r)) => l.cmp(r),
        (Value::MacAddr8(l), Value::MacAddr8(r)) => l.cmp(r),
        (Value::Bytes(l), Value::Bytes(r)) => l.cmp(r),
        // No operator compares two; what must have some order has this.
        (Value::Json(l), Value::Json(r)) => l.as_bytes().cmp(r.as_bytes()),
        (Value::Jsonb(l), Value::Jsonb(r)) => l.as_ref().order(r.as_ref()),
        (Value::Oid(l), Value::Oid(r)) => l.cmp(r),
        (Value::Lsn(l), Value::Lsn(r)) => l.cmp(r),
        (Value::Tid(l, first), Value::Tid(r, second)) => (l, first).cmp(&(r, second)),
        (Value::Array(l), Value::Array(r)) => l.order(r, order)?,
        (Value::Record(l), Value::Record(r)) => l.order(r, order)?,
        // Positions order as labels do.
        (Value::Enum(l, one), Value::Enum(r, other)) if l == r => one.cmp(other),
        (Value::Float4(l), Value::Float8(r)) => compare_floats(f64::from(*l), *r),
        (l, r) => l.as_i64()?.cmp(&r.as_i64()?),
    })
}

#[cold]
fn mismatch(left: &Value, right: &Value, data_type: DataType) -> EngineError {
    let unordered = |(left, right): &(&Value, &Value)| {
        !left.is_null() && !right.is_null() && order(left, right, left.natural_type()).is_none()
    };
    match (left, right) {
        (Value::Record(l), Value::Record(r)) => {
            let mut pairs = l.fields().iter().zip(r.fields());
            return match pairs.find(unordered) {
                Some((left, right)) if matches!((left, right), (Value::Record(_), Value::Record(_))) => {
                    mismatch(left, right, DataType::Record)
                }
                _ => dissimilar(l, r),
            };
        }
        (Value::Array(l), Value::Array(r)) => {
            let mut pairs = l.elements().iter().zip(r.elements());
            if let Some((left, right)) = pairs.find(unordered) {
                return mismatch(left, right, l.element_type());
            }
        }
        _ => {}
    }
    EngineError::internal(format!(
        "a value of type {} is compared with one of type {} as {data_type}",
        left.natural_type(),
        right.natural_type()
    ))
}

/// PostgreSQL's order of floats: −0 equals 0; NaN equals NaN and is above everything.
#[inline]
fn compare_floats(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right)
        .unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

/// A `char(n)` value without its padding.
#[inline]
pub fn trim_blanks(text: &str) -> &str {
    text.trim_end_matches(' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Numeric;

    #[test]
    fn values_of_two_types_are_not_equal_but_an_error() {
        let (numeric, whole) = (Value::Numeric(Numeric::ONE), Value::Int4(2));
        assert!(compare_checked(&numeric, &whole, DataType::Numeric).is_err());
        assert!(compare_checked(&Value::from("1"), &whole, DataType::Text).is_err());
        // A sort needs an order: the same from both sides, and never "equal".
        assert_eq!(compare(&numeric, &whole, DataType::Numeric), Ordering::Greater);
        assert_eq!(compare(&whole, &numeric, DataType::Numeric), Ordering::Less);
        assert_eq!(
            compare_checked(&Value::Int2(3), &Value::Int8(3), DataType::Int8).unwrap(),
            Ordering::Equal
        );
    }
}
