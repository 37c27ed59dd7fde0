//! The values that arguments are.

use crate::error::{EngineError, Result};
use crate::value::{Interval, Value};

/// The interval that a value is.
pub(super) fn interval(value: &Value) -> Result<Interval> {
    match value {
        Value::Interval(interval) => Ok(*interval),
        other => Err(EngineError::internal(format!("{other:?} is used as an interval"))),
    }
}

/// The microseconds of a timestamp of either kind.
pub(super) fn moment(value: &Value) -> Result<i64> {
    match value {
        Value::Timestamp(micros) | Value::TimestampTz(micros) => Ok(*micros),
        other => Err(EngineError::internal(format!("{other:?} is used as a timestamp"))),
    }
}

/// The double that a value is.
pub(super) fn double(value: &Value) -> Result<f64> {
    match value {
        Value::Float8(number) => Ok(*number),
        other => Err(EngineError::internal(format!("{other:?} is used as a double"))),
    }
}
