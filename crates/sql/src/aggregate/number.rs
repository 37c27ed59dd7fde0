//! Numbers of rows, sums and averages.
//!
//! `sum(smallint)` and `sum(integer)` are bigint, `sum(bigint)` is numeric, an average of whole numbers is numeric.

use super::AggregateCall;
use super::row::{AggregateRow, other_state, row};
use super::spread::no_deviations;
use super::state::{Accumulator, State};
use crate::error::{EngineError, Result, SqlState};
use crate::value::DataType::{Float4, Float8, Int2, Int4, Int8, Interval, Numeric, Unknown};
use crate::value::{self, DataType, Value};

/// The aggregates.
pub(super) static ROWS: &[AggregateRow] = &[
    row(2803, "count", &[], Int8, |_| State::Count, count).counting(),
    row(2147, "count", &[], Int8, |_| State::Count, count)
        .over_any(counted)
        .counting(),
    row(2107, "sum", &[Int8], Numeric, |_| State::Whole(0), sum),
    row(2108, "sum", &[Int4], Int8, |_| State::Whole(0), sum),
    row(2109, "sum", &[Int2], Int8, |_| State::Whole(0), sum),
    row(2110, "sum", &[Float4], Float4, |_| State::ShortFloat(0.0), sum).in_order(),
    row(2111, "sum", &[Float8], Float8, |_| State::Float(0.0), sum).in_order(),
    row(2114, "sum", &[Numeric], Numeric, no_numeric, sum),
    row(2113, "sum", &[Interval], Interval, no_interval, sum),
    row(2100, "avg", &[Int8], Numeric, |_| State::Whole(0), average),
    row(2101, "avg", &[Int4], Numeric, |_| State::Whole(0), average),
    row(2102, "avg", &[Int2], Numeric, |_| State::Whole(0), average),
    row(2103, "avg", &[Numeric], Numeric, no_numeric, average),
    row(2104, "avg", &[Float4], Float8, no_deviations, average).in_order(),
    row(2105, "avg", &[Float8], Float8, no_deviations, average).in_order(),
    row(2106, "avg", &[Interval], Interval, no_interval, average),
];

/// Values of any type are counted as they are.
fn counted(arguments: &[DataType]) -> Option<(Vec<DataType>, DataType)> {
    match *arguments {
        [Unknown] => Some((vec![DataType::Text], Int8)),
        [any] => Some((vec![any], Int8)),
        _ => None,
    }
}

fn no_interval(_: &AggregateCall) -> State {
    State::Interval(value::Interval::default())
}

fn no_numeric(_: &AggregateCall) -> State {
    State::Numeric(value::Numeric::ZERO)
}

fn count(_: &AggregateCall, state: Accumulator) -> Result<Value> {
    Ok(Value::Int8(state.rows))
}

fn sum(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    Ok(match state.state {
        State::Whole(sum) if call.result_type == Int8 => Value::Int8(
            i64::try_from(sum)
                .map_err(|_| EngineError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))?,
        ),
        State::Whole(sum) => Value::Numeric(value::Numeric::from(sum)),
        State::Float(sum) => Value::Float8(sum),
        State::ShortFloat(sum) => Value::Float4(sum),
        State::Numeric(sum) => Value::Numeric(sum),
        State::Interval(sum) => Value::Interval(sum),
        _ => return Err(other_state(call)),
    })
}

fn average(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    let rows = value::Numeric::from(state.rows);
    Ok(match state.state {
        State::Whole(sum) => Value::Numeric(value::Numeric::from(sum).divide(&rows)?),
        State::Numeric(sum) => Value::Numeric(sum.divide(&rows)?),
        State::Interval(sum) => Value::Interval(sum.divide(state.rows as f64)?),
        State::Deviations(sums) => Value::Float8(sums.sum / state.rows as f64),
        _ => return Err(other_state(call)),
    })
}
