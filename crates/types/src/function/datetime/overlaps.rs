//! OVERLAPS: two periods have a moment in common.
//!
//! A period is given by two moments in either order, or by one and a length. It has its first moment and not its last,
//! unless they are the same moment. A moment that is NULL is not known: the answer is NULL if it depends on it. The bound of
//! a period that is known counts as one of its moments.

use std::cmp::Ordering;

use super::operators::{later, time_later};
use crate::error::Result;
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::value::DataType::{Bool, Interval as Span, Time, TimeTz, Timestamp, TimestampTz};
use crate::value::{DataType, Value, compare};

/// The function of two periods of a type: with moments alone, with lengths alone, with the second's length, with the first's.
macro_rules! periods {
    ($kind:ident, $later:path, [$both:literal, $spans:literal, $second:literal, $first:literal]) => {
        [
            of_moments($both, &[$kind, $kind, $kind, $kind], |x| {
                overlap(x, $kind, None, None)
            }),
            of_moments($spans, &[$kind, Span, $kind, Span], |x| {
                overlap(x, $kind, Some($later), Some($later))
            }),
            of_moments($second, &[$kind, $kind, $kind, Span], |x| {
                overlap(x, $kind, None, Some($later))
            }),
            of_moments($first, &[$kind, Span, $kind, $kind], |x| {
                overlap(x, $kind, Some($later), None)
            }),
        ]
    };
}

/// The functions of timestamps.
pub(in crate::function) static TIMESTAMPS: &[FunctionRow] =
    &periods!(Timestamp, later, [2041, 2042, 2043, 2044]);

/// The functions of timestamps with a zone: a length of days or months depends on the session's.
pub(in crate::function) static TIMESTAMPS_WITH_ZONE: &[FunctionRow] = &{
    let [both, spans, second, first] = periods!(TimestampTz, later, [1304, 1305, 1306, 1307]);
    [both, spans.stable(), second.stable(), first.stable()]
};

/// The functions of times.
pub(in crate::function) static TIMES: &[FunctionRow] = &periods!(Time, time_later, [1308, 1309, 1310, 1311]);

/// The function of times with a zone.
pub(in crate::function) static TIMES_WITH_ZONE: &[FunctionRow] =
    &[of_moments(1271, &[TimeTz, TimeTz, TimeTz, TimeTz], |x| {
        overlap(x, TimeTz, None, None)
    })];

const fn of_moments(
    oid: u32,
    arguments: &'static [DataType],
    overlap: fn(&[Value]) -> Result<Value>,
) -> FunctionRow {
    row(oid, "overlaps", arguments, Bool, Pure(overlap)).called_on_null()
}

/// A moment and a length to the moment after it.
type Later = fn(&[Value]) -> Result<Value>;

/// A period that has one moment at least that is known, the first of two.
struct Period<'v> {
    start: &'v Value,
    /// NULL if it is not known, and then it may be before the start.
    end: &'v Value,
}

impl<'v> Period<'v> {
    fn between(one: &'v Value, other: &'v Value, kind: DataType) -> Option<Period<'v>> {
        let (start, end) = match (one.is_null(), other.is_null()) {
            (true, true) => return None,
            (true, false) => (other, one),
            (false, false) if compare(one, other, kind) == Ordering::Greater => (other, one),
            _ => (one, other),
        };
        Some(Period { start, end })
    }
}

/// The answer for the periods of four arguments; the second of each two is a length where there is a way to add it.
fn overlap(
    arguments: &[Value],
    kind: DataType,
    first: Option<Later>,
    second: Option<Later>,
) -> Result<Value> {
    let end = |later: Option<Later>, pair: &[Value]| match later {
        Some(_) if pair[0].is_null() || pair[1].is_null() => Ok(Value::Null),
        Some(later) => later(pair),
        None => Ok(pair[1].clone()),
    };
    let (one, other) = arguments.split_at(2);
    let (one_end, other_end) = (end(first, one)?, end(second, other)?);
    let periods = (
        Period::between(&one[0], &one_end, kind),
        Period::between(&other[0], &other_end, kind),
    );
    let (Some(one), Some(other)) = periods else {
        return Ok(Value::Null);
    };
    let (before, after) = match compare(one.start, other.start, kind) {
        Ordering::Equal if one.end.is_null() || other.end.is_null() => return Ok(Value::Null),
        Ordering::Equal => return Ok(Value::Bool(true)),
        Ordering::Less => (one, other),
        Ordering::Greater => (other, one),
    };
    Ok(match before.end {
        Value::Null => Value::Null,
        end if compare(after.start, end, kind) == Ordering::Less => Value::Bool(true),
        _ if after.end.is_null() => Value::Null,
        _ => Value::Bool(false),
    })
}
