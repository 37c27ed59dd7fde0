//! Correlation, covariance and linear regression of two columns: `f(y, x)`.
//!
//! The sums are those of the variance of doubles, for both columns and for their product. Each function is a quotient
//! of them; the operations have PostgreSQL's order, so that the digits are the same.

use super::AggregateCall;
use super::row::{AggregateRow, other_state, row};
use super::state::{Accumulator, State};
use crate::deviations::Pairs;
use crate::error::Result;
use crate::value::DataType::{self, Float8, Int8};
use crate::value::Value;

const TWO: &[DataType] = &[Float8, Float8];

const fn of_pairs(
    oid: u32,
    name: &'static str,
    finish: fn(&AggregateCall, Accumulator) -> Result<Value>,
) -> AggregateRow {
    row(oid, name, TWO, Float8, no_pairs, finish).in_order()
}

/// The aggregates.
pub(super) static ROWS: &[AggregateRow] = &[
    row(
        2818,
        "regr_count",
        TWO,
        Int8,
        |_| State::Count,
        |_, state| Ok(Value::Int8(state.rows)),
    )
    .counting(),
    of_pairs(2819, "regr_sxx", |call, state| {
        of(call, state, |sums, _| Some(sums.xx))
    }),
    of_pairs(2820, "regr_syy", |call, state| {
        of(call, state, |sums, _| Some(sums.yy))
    }),
    of_pairs(2821, "regr_sxy", |call, state| {
        of(call, state, |sums, _| Some(sums.xy))
    }),
    of_pairs(2822, "regr_avgx", |call, state| {
        of(call, state, |sums, rows| Some(sums.x / rows))
    }),
    of_pairs(2823, "regr_avgy", |call, state| {
        of(call, state, |sums, rows| Some(sums.y / rows))
    }),
    of_pairs(2824, "regr_r2", |call, state| of(call, state, determination)),
    of_pairs(2825, "regr_slope", |call, state| of(call, state, slope)),
    of_pairs(2826, "regr_intercept", |call, state| of(call, state, intercept)),
    of_pairs(2827, "covar_pop", |call, state| {
        of(call, state, |sums, rows| Some(sums.xy / rows))
    }),
    of_pairs(2828, "covar_samp", |call, state| {
        of(call, state, |sums, rows| {
            (rows > 1.0).then(|| sums.xy / (rows - 1.0))
        })
    }),
    of_pairs(2829, "corr", |call, state| of(call, state, correlation)),
];

fn no_pairs(_: &AggregateCall) -> State {
    State::Pairs(Box::default())
}

fn correlation(sums: &Pairs, _: f64) -> Option<f64> {
    (sums.xx != 0.0 && sums.yy != 0.0).then(|| sums.xy / (sums.xx * sums.yy).sqrt())
}

/// The square of the correlation; 1 where y is constant.
fn determination(sums: &Pairs, _: f64) -> Option<f64> {
    if sums.xx == 0.0 {
        return None;
    }
    Some(match sums.yy == 0.0 {
        true => 1.0,
        false => (sums.xy * sums.xy) / (sums.xx * sums.yy),
    })
}

fn slope(sums: &Pairs, _: f64) -> Option<f64> {
    (sums.xx != 0.0).then(|| sums.xy / sums.xx)
}

fn intercept(sums: &Pairs, rows: f64) -> Option<f64> {
    (sums.xx != 0.0).then(|| (sums.y - sums.x * sums.xy / sums.xx) / rows)
}

fn of(
    call: &AggregateCall,
    state: Accumulator,
    result: impl FnOnce(&Pairs, f64) -> Option<f64>,
) -> Result<Value> {
    match state.state {
        State::Pairs(sums) => Ok(result(&sums, state.rows as f64).map_or(Value::Null, Value::Float8)),
        _ => Err(other_state(call)),
    }
}
