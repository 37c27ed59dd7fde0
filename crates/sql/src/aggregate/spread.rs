//! Variances and standard deviations.
//!
//! Those of whole numbers and numerics are computed exactly, from the sum and the sum of squares, and rounded once.
//! Those of doubles come from the deviations from the mean so far (Youngs and Cramer, 1971), which lose less than
//! squares do; the operations have PostgreSQL's order, so that the digits are the same.

use super::AggregateCall;
use super::row::{AggregateRow, other_state, row};
use super::state::{Accumulator, State};
use crate::deviations::Deviations;
use crate::error::Result;
use crate::value::DataType::{Float4, Float8, Int2, Int4, Int8, Numeric};
use crate::value::Value;
use crate::value::numeric::PowerSums;

/// The rows of one name: over the types in the order of these numbers.
macro_rules! spread {
    ($($name:literal $finish:ident $int8:literal $int4:literal $int2:literal $float4:literal $float8:literal $numeric:literal;)*) => {
        &[$(
            row($int8, $name, &[Int8], Numeric, no_powers, $finish),
            row($int4, $name, &[Int4], Numeric, no_powers, $finish),
            row($int2, $name, &[Int2], Numeric, no_powers, $finish),
            row($float4, $name, &[Float4], Float8, no_deviations, $finish).in_order(),
            row($float8, $name, &[Float8], Float8, no_deviations, $finish).in_order(),
            row($numeric, $name, &[Numeric], Numeric, no_powers, $finish),
        )*]
    };
}

/// The aggregates.
pub(super) static ROWS: &[AggregateRow] = spread! {
    "variance" sample_variance 2148 2149 2150 2151 2152 2153;
    "stddev" sample_deviation 2154 2155 2156 2157 2158 2159;
    "var_samp" sample_variance 2641 2642 2643 2644 2645 2646;
    "stddev_samp" sample_deviation 2712 2713 2714 2715 2716 2717;
    "var_pop" variance 2718 2719 2720 2721 2722 2723;
    "stddev_pop" deviation 2724 2725 2726 2727 2728 2729;
};

/// No doubles.
pub(super) fn no_deviations(_: &AggregateCall) -> State {
    State::Deviations(Deviations::default())
}

fn no_powers(_: &AggregateCall) -> State {
    State::Powers(Box::<PowerSums>::default())
}

fn variance(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    let rows = state.rows;
    spread(call, state, rows, false)
}

fn deviation(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    let rows = state.rows;
    spread(call, state, rows, true)
}

fn sample_variance(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    let rows = state.rows - 1;
    spread(call, state, rows, false)
}

fn sample_deviation(call: &AggregateCall, state: Accumulator) -> Result<Value> {
    let rows = state.rows - 1;
    spread(call, state, rows, true)
}

/// The variance, or its root; NULL when a sample has one value only.
fn spread(call: &AggregateCall, state: Accumulator, divisor: i64, root: bool) -> Result<Value> {
    if divisor == 0 {
        return Ok(Value::Null);
    }
    match state.state {
        State::Powers(sums) => sums.variance(state.rows, divisor, root).map(Value::Numeric),
        State::Deviations(sums) => {
            let variance = sums.squares / divisor as f64;
            Ok(Value::Float8(if root { variance.sqrt() } else { variance }))
        }
        _ => Err(other_state(call)),
    }
}
