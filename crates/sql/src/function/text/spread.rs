//! VARIADIC: functions that take an array in the place of their last arguments.
//!
//! ```text
//!   format('%s %s', variadic array[1, 2])      format('%s %s', 1, 2)
//! ```
//!
//! The array's elements are the arguments, without its dimensions. For a NULL there are none in `format`, and the other
//! functions give NULL.

use super::basic::{concat, concat_ws, count};
use super::format::format;
use crate::error::{EngineError, Result};
use crate::function::row::Implementation::Pure;
use crate::function::row::{FunctionRow, row};
use crate::function::{Function, Signature};
use crate::memory;
use crate::value::DataType::{Int4, Text};
use crate::value::array::elements_of;
use crate::value::cast::{CastContext, can_cast};
use crate::value::{DataType, Value};

static CONCAT: FunctionRow = row(3058, "concat", &[], Text, Pure(|x| or_null(x, concat)))
    .stable()
    .called_on_null()
    .spread();
static CONCAT_WS: FunctionRow = row(3059, "concat_ws", &[Text], Text, Pure(|x| or_null(x, concat_ws)))
    .stable()
    .called_on_null()
    .spread();
static FORMAT: FunctionRow = row(3539, "format", &[Text], Text, Pure(|x| spread(x, format)))
    .stable()
    .called_on_null()
    .spread();
static NUM_NULLS: FunctionRow = row(
    438,
    "num_nulls",
    &[],
    Int4,
    Pure(|x| or_null(x, |x| count(x, true))),
)
.called_on_null()
.spread();
static NUM_NONNULLS: FunctionRow = row(
    440,
    "num_nonnulls",
    &[],
    Int4,
    Pure(|x| or_null(x, |x| count(x, false))),
)
.called_on_null()
.spread();

/// The function of this name that takes so many arguments in front of an array.
fn named(name: &str, in_front: usize) -> Option<&'static FunctionRow> {
    let mut rows = [&CONCAT, &CONCAT_WS, &FORMAT, &NUM_NULLS, &NUM_NONNULLS].into_iter();
    rows.find(|row| row.name == name && row.arguments.len() == in_front)
}

/// The value for the elements of the last argument in its place.
fn spread(arguments: &[Value], of: impl Fn(&[Value]) -> Result<Value>) -> Result<Value> {
    let Some((array, in_front)) = arguments.split_last() else {
        return Err(EngineError::internal("VARIADIC has no array"));
    };
    let elements = elements_of(array)?;
    memory::require((in_front.len() + elements.len()) * size_of::<Value>())?;
    of(&[in_front, elements].concat())
}

/// The same, and NULL where the last argument is.
fn or_null(arguments: &[Value], of: impl Fn(&[Value]) -> Result<Value>) -> Result<Value> {
    match arguments.last() {
        Some(Value::Null) => Ok(Value::Null),
        _ => spread(arguments, of),
    }
}

/// The function of this name for arguments of these types, of which the last is an array in the place of several.
pub fn resolve(name: &str, arguments: &[DataType]) -> Option<Signature> {
    let (array, in_front) = arguments.split_last()?;
    let row = named(name, in_front.len())?;
    let mut pairs = in_front.iter().zip(row.arguments);
    let fits = pairs.all(|(from, to)| can_cast(*from, *to, CastContext::Implicit));
    fits.then(|| Signature {
        function: Function::of_row(row),
        arguments: row.arguments.iter().copied().chain([*array]).collect(),
        result: row.result,
    })
}
