//! Order and equality of two values of one type, neither of them NULL.
//!
//! What a B+tree does over bytes (`key`) and what a comparison does over values is one order; a property test holds
//! them together.

use std::cmp::Ordering;

use crate::value::{DataType, Value};

/// The order of two values of one type. NULLs order last and equal to each other, as in sorting; comparison operators
/// must look for NULL first.
#[inline]
pub fn compare(left: &Value, right: &Value, data_type: DataType) -> Ordering {
    match (left, right) {
        (Value::Int4(l), Value::Int4(r)) => l.cmp(r),
        (Value::Int8(l), Value::Int8(r)) => l.cmp(r),
        (Value::Int2(l), Value::Int2(r)) => l.cmp(r),
        (Value::Text(l), Value::Text(r)) if data_type == DataType::Char => {
            trim_blanks(l).as_bytes().cmp(trim_blanks(r).as_bytes())
        }
        (Value::Text(l), Value::Text(r)) => l.as_bytes().cmp(r.as_bytes()),
        (Value::Numeric(l), Value::Numeric(r)) => l.cmp(r),
        (Value::Float8(l), Value::Float8(r)) => compare_floats(*l, *r),
        (Value::Bool(l), Value::Bool(r)) => l.cmp(r),
        (Value::Date(l), Value::Date(r)) => l.cmp(r),
        (Value::Timestamp(l), Value::Timestamp(r)) => l.cmp(r),
        (Value::TimestampTz(l), Value::TimestampTz(r)) => l.cmp(r),
        (Value::Oid(l), Value::Oid(r)) => l.cmp(r),
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Greater,
        (_, Value::Null) => Ordering::Less,
        (l, r) => match (l.as_i64(), r.as_i64()) {
            (Some(l), Some(r)) => l.cmp(&r),
            _ => {
                debug_assert!(false, "{l:?} is compared with {r:?} as {data_type}");
                Ordering::Equal
            }
        },
    }
}

/// Whether two values of one type, neither NULL, are equal.
#[inline]
pub fn equal(left: &Value, right: &Value, data_type: DataType) -> bool {
    compare(left, right, data_type).is_eq()
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
