//! Options as the catalog keeps them: texts of the form `name=value`, and `pg_options_to_table`, which gives a row for each.
//!
//! The function has two columns. The binder makes two calls of them, side by side: the names and the values.

use super::Function;
use super::row::{FunctionRow, Implementation, row};
use crate::error::Result;
use crate::value::{ArrayValue, DataType, Value};

static NAMES: FunctionRow = part("option_names", Implementation::Pure(names));
static VALUES: FunctionRow = part("option_values", Implementation::Pure(values));

const fn part(name: &'static str, implementation: Implementation) -> FunctionRow {
    row(0, name, &[], DataType::array_of(DataType::Text), implementation)
}

/// The functions behind the columns of `pg_options_to_table`, with the columns' names. No call can name them.
pub fn columns() -> [(&'static str, Function); 2] {
    let of = |row| Function::over(row, DataType::array_of(DataType::Text));
    [("option_name", of(&NAMES)), ("option_value", of(&VALUES))]
}

fn names(arguments: &[Value]) -> Result<Value> {
    parts(arguments, |option| {
        Value::text(option.split_once('=').map_or(option, |(name, _)| name))
    })
}

/// NULL where there is no value.
fn values(arguments: &[Value]) -> Result<Value> {
    parts(arguments, |option| {
        option
            .split_once('=')
            .map_or(Value::Null, |(_, value)| Value::text(value))
    })
}

fn parts(arguments: &[Value], part: fn(&str) -> Value) -> Result<Value> {
    let Some(Value::Array(options)) = arguments.first() else {
        return Ok(Value::Null);
    };
    let found = options
        .elements()
        .iter()
        .map(|option| option.as_str().map_or(Value::Null, part));
    ArrayValue::of(DataType::array_of(DataType::Text), found.collect()).map(Value::from)
}
