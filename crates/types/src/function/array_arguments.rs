//! VARIADIC: functions that take an array in the place of their last arguments.
//!
//! ```text
//!   format('%s %s', variadic array[1, 2])      format('%s %s', 1, 2)
//! ```
//!
//! The array's elements are the arguments, without its dimensions. For a NULL there are none in `format`, and the other
//! functions give NULL.

use crate::error::{EngineError, Result};
use crate::memory;
use crate::value::Value;
use crate::value::array::elements_of;

/// The value for the elements of the last argument in its place.
pub(super) fn spread(arguments: &[Value], of: impl Fn(&[Value]) -> Result<Value>) -> Result<Value> {
    let Some((array, in_front)) = arguments.split_last() else {
        return Err(EngineError::internal("VARIADIC has no array"));
    };
    let elements = elements_of(array)?;
    memory::require((in_front.len() + elements.len()) * size_of::<Value>())?;
    of(&[in_front, elements].concat())
}

/// The same, and NULL where the last argument is.
pub(super) fn or_null(arguments: &[Value], of: impl Fn(&[Value]) -> Result<Value>) -> Result<Value> {
    match arguments.last() {
        Some(Value::Null) => Ok(Value::Null),
        _ => spread(arguments, of),
    }
}
