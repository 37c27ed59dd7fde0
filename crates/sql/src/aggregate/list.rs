//! The aggregates that put values together: `array_agg` and `string_agg`.

use super::AggregateCall;
use super::row::{AggregateRow, other_state, row};
use super::state::{Accumulator, State};
use crate::error::Result;
use crate::value::DataType::{Bytea, Text, Unknown};
use crate::value::array::nested;
use crate::value::{ArrayValue, DataType, Value};

/// The aggregates.
pub(super) static ROWS: &[AggregateRow] = &[
    row(
        2335,
        "array_agg",
        &[],
        Unknown,
        |_| State::List(Box::default()),
        array,
    )
    .over_any(elements)
    .with_nulls()
    .in_order(),
    row(
        4053,
        "array_agg",
        &[],
        Unknown,
        |_| State::List(Box::default()),
        array,
    )
    .over_any(arrays)
    .with_nulls()
    .in_order(),
    row(
        3538,
        "string_agg",
        &[Text, Text],
        Text,
        |_| State::Text(Box::default()),
        text,
    )
    .with_nulls()
    .in_order(),
    row(
        3545,
        "string_agg",
        &[Bytea, Bytea],
        Bytea,
        |_| State::Bytes(Box::default()),
        bytes,
    )
    .with_nulls()
    .in_order(),
];

fn elements(arguments: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [DataType::Array(_)] => None,
        [element] => Some((vec![element], element.array_type()?)),
        _ => None,
    }
}

fn arrays(arguments: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [array @ DataType::Array(_)] => Some((vec![array], array)),
        _ => None,
    }
}

/// The array of the values, which are arrays themselves if that is their type.
fn array(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    let State::List(list) = state.state else {
        return Err(other_state(call));
    };
    let values = list.values;
    if !matches!(call.argument_types[0], DataType::Array(_)) {
        return ArrayValue::of(call.result_type, values).map(Value::from);
    }
    nested(call.result_type, &values)
}

fn text(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    match state.state {
        State::Text(joined) => Ok(joined.text.map_or(Value::Null, Value::text)),
        _ => Err(other_state(call)),
    }
}

fn bytes(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    match state.state {
        State::Bytes(joined) => Ok(joined
            .bytes
            .map_or(Value::Null, |bytes| Value::Bytes(bytes.into()))),
        _ => Err(other_state(call)),
    }
}
