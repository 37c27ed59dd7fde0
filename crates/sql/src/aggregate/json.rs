//! The aggregates that make JSON of rows: `json_agg`, `json_object_agg` and those of `jsonb`.

use super::AggregateCall;
use super::row::{AggregateRow, other_state, row};
use super::state::{Accumulator, Gathered, State};
use crate::error::Result;
use crate::value::DataType::{self, Json, Jsonb, Text, Unknown};
use crate::value::Value;

/// The aggregates.
pub(super) static ROWS: &[AggregateRow] = &[
    row(
        3175,
        "json_agg",
        &[],
        Unknown,
        |_| State::Json(Box::new(Gathered::Text(None))),
        value,
    )
    .over_any(|arguments| elements(arguments, Json))
    .with_nulls()
    .in_order(),
    row(
        3267,
        "jsonb_agg",
        &[],
        Unknown,
        |_| State::Json(Box::new(Gathered::Elements(None, 0))),
        value,
    )
    .over_any(|arguments| elements(arguments, Jsonb))
    .with_nulls()
    .in_order(),
    row(
        3197,
        "json_object_agg",
        &[],
        Unknown,
        |_| State::Json(Box::new(Gathered::Text(None))),
        value,
    )
    .over_any(|arguments| members(arguments, Json))
    .with_nulls()
    .in_order(),
    row(
        3270,
        "jsonb_object_agg",
        &[],
        Unknown,
        |_| State::Json(Box::new(Gathered::Members(None, 0))),
        value,
    )
    .over_any(|arguments| members(arguments, Jsonb))
    .with_nulls()
    .in_order(),
];

/// The type that a value is given as: its text where the session makes that.
fn given(data_type: DataType) -> DataType {
    match data_type {
        Unknown => Text,
        DataType::Record | DataType::Composite(_) => data_type,
        other if other.needs_session() && !other.is_array() => Text,
        other => other,
    }
}

fn elements(arguments: &[DataType], result: DataType) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [Unknown] => None,
        [element] => Some((vec![given(element)], result)),
        _ => None,
    }
}

fn members(arguments: &[DataType], result: DataType) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [key, value] => Some((vec![given(key), given(value)], result)),
        _ => None,
    }
}

fn value(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    match state.state {
        State::Json(gathered) => gathered.finish(call.inputs.len() > 1 && call.argument_types.len() > 1),
        _ => Err(other_state(call)),
    }
}
