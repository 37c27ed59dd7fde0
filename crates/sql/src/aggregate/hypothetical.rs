//! The place that a row would have in an order: `rank`, `dense_rank`, `percent_rank` and `cume_dist` of direct arguments.
//!
//! The rows before the hypothetical one are counted, and those that equal it, and the different ones before it.

use super::AggregateCall;
use super::row::{AggregateRow, Kind, other_state, row};
use super::state::{Accumulator, Hypothetical, State};
use crate::error::Result;
use crate::value::DataType::{self, Float8, Int8};
use crate::value::Value;

const fn place(
    oid: u32,
    name: &'static str,
    result: DataType,
    finish: fn(&AggregateCall, Accumulator) -> Result<Value>,
) -> AggregateRow {
    row(
        oid,
        name,
        &[],
        result,
        |_| State::Hypothetical(Box::default()),
        finish,
    )
    .with_nulls()
    .counting()
    .of_kind(Kind::Hypothetical, |_, _, direct| {
        Ok(State::Hypothetical(Box::new(Hypothetical {
            direct,
            ..Hypothetical::default()
        })))
    })
}

/// The aggregates. What they return over which types, the binder finds: a direct argument and its key of the order have
/// a type of their own.
pub(super) static ROWS: &[AggregateRow] = &[
    place(3986, "rank", Int8, |call, state| {
        of(call, state, |place, _| Value::Int8(place.before + 1))
    })
    .over_any(|types| over_any(types, Int8)),
    place(3992, "dense_rank", Int8, |call, state| {
        of(call, state, |place, _| Value::Int8(place.different + 1))
    })
    .over_any(|types| over_any(types, Int8)),
    place(3988, "percent_rank", Float8, |call, state| {
        of(call, state, |place, rows| {
            Value::Float8(if rows == 0 {
                0.0
            } else {
                place.before as f64 / rows as f64
            })
        })
    })
    .over_any(|types| over_any(types, Float8)),
    place(3990, "cume_dist", Float8, |call, state| {
        of(call, state, |place, rows| {
            Value::Float8((place.before + place.equal + 1) as f64 / (rows + 1) as f64)
        })
    })
    .over_any(|types| over_any(types, Float8)),
];

/// Direct arguments, and as many keys.
fn over_any(types: &[DataType], result: DataType) -> Option<(Vec<DataType>, DataType)> {
    let (direct, keys) = types.split_at(types.len() / 2);
    (!direct.is_empty() && direct == keys).then(|| (types.to_vec(), result))
}

fn of(
    call: &AggregateCall,
    state: Accumulator,
    result: impl FnOnce(&Hypothetical, i64) -> Value,
) -> Result<Value> {
    match state.state {
        State::Hypothetical(place) => Ok(result(&place, state.rows)),
        _ => Err(other_state(call)),
    }
}
