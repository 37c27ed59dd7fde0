//! The state of one group and one call.

mod hypothetical;
mod json;
mod list;
mod percentile;

use std::cmp::Ordering;

use super::AggregateCall;
use crate::deviations::{Deviations, Pairs, overflow};
use crate::error::{EngineError, Result};
use crate::value::numeric::PowerSums;
use crate::value::{Interval, Numeric, Value, compare_checked};
pub(super) use hypothetical::Hypothetical;
pub(super) use json::Gathered;
pub(super) use list::{Joined, JoinedBytes, List};
pub(super) use percentile::{Mode, Percentiles, Place};

/// One group's state of one aggregate call.
#[derive(Debug, Clone)]
pub struct Accumulator {
    /// Rows taken; of those that a strict aggregate passes by none is counted.
    pub(super) rows: i64,
    pub(super) state: State,
}

// Grouping keeps one for each group and call.
const _: () = assert!(size_of::<Accumulator>() <= 64);

impl Accumulator {
    pub(super) fn new(state: State) -> Accumulator {
        Accumulator { rows: 0, state }
    }

    /// The bytes that it has on the heap beside itself: a text that is the least or the greatest, long numbers, lists.
    pub fn heap_bytes(&self) -> usize {
        match &self.state {
            State::Least(value) | State::Greatest(value) => value.heap_bytes(),
            State::Numeric(number) => number.heap_bytes(),
            State::Powers(sums) => sums.heap_bytes(),
            State::List(list) => list.heap_bytes(),
            State::Text(text) => text.heap_bytes(),
            State::Bytes(bytes) => bytes.heap_bytes(),
            State::Json(gathered) => gathered.heap_bytes(),
            State::Pairs(_) => size_of::<Pairs>(),
            State::Percentiles(wanted) => wanted.heap_bytes(),
            _ => 0,
        }
    }
}

/// The parts of a state.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// The number of rows is all.
    Count,
    /// A sum of whole numbers. In 128 bits it does not overflow before its result does.
    Whole(i128),
    /// A sum of doubles
    Float(f64),
    /// A sum of `real`, rounded to one after each addition as in PostgreSQL
    ShortFloat(f32),
    /// A sum of numerics
    Numeric(Numeric),
    /// A sum of intervals
    Interval(Interval),
    /// A sum of doubles, and of the squared deviations from the mean so far
    Deviations(Deviations),
    /// Sums of numerics and of their squares
    Powers(Box<PowerSums>),
    /// The sums of two columns
    Pairs(Box<Pairs>),
    /// The least so far
    Least(Value),
    /// The greatest so far
    Greatest(Value),
    /// The bits that all have
    BitAnd(i64),
    /// The bits that any has
    BitOr(i64),
    /// The bits that an odd number have
    BitXor(i64),
    /// True if all are
    All(bool),
    /// True if any is
    Any(bool),
    /// The values of `array_agg`
    List(Box<List>),
    /// The text of `string_agg`
    Text(Box<Joined>),
    /// The bytes of `string_agg`
    Bytes(Box<JoinedBytes>),
    /// The JSON of `json_agg` and its kin
    Json(Box<Gathered>),
    /// Rows of an order, by their numbers
    Percentiles(Box<Percentiles>),
    /// The most frequent value of an order
    Mode(Box<Mode>),
    /// The place of a row in an order
    Hypothetical(Box<Hypothetical>),
}

impl State {
    /// Takes the arguments of the `rows`-th row.
    #[inline]
    pub(super) fn take(&mut self, call: &AggregateCall, rows: i64, arguments: &[Value]) -> Result<()> {
        match (self, arguments) {
            (State::Count, _) => Ok(()),
            (State::Hypothetical(place), _) => {
                place.take(call, arguments);
                Ok(())
            }
            (State::Json(gathered), _) => gathered.take(call, arguments),
            (state, [value]) => state.take_one(call, rows, value),
            (State::Pairs(sums), [y, x]) => match (float(y), float(x)) {
                (Some(y), Some(x)) => sums.take(rows as f64, x, y),
                _ => Err(call.unexpected(y)),
            },
            (State::Text(text), [value, delimiter]) => text.take(value, delimiter),
            (State::Bytes(bytes), [value, delimiter]) => bytes.take(value, delimiter),
            _ => Err(EngineError::internal(format!(
                "{:?} is given other arguments",
                call.function.row()
            ))),
        }
    }

    fn take_one(&mut self, call: &AggregateCall, rows: i64, value: &Value) -> Result<()> {
        let unexpected = || call.unexpected(value);
        let whole = || value.as_i64().ok_or_else(unexpected);
        let truth = || value.as_bool().ok_or_else(unexpected);
        let double = || float(value).ok_or_else(unexpected);
        match self {
            State::Whole(sum) => *sum += i128::from(whole()?),
            State::Float(sum) => *sum = checked_sum(*sum, double()?)?,
            State::ShortFloat(sum) => *sum = checked_short_sum(*sum, value).ok_or_else(unexpected)??,
            State::Numeric(sum) => match value {
                Value::Numeric(added) => *sum = sum.add(added)?,
                _ => return Err(unexpected()),
            },
            State::Interval(sum) => match value {
                Value::Interval(added) => *sum = sum.plus(*added)?,
                _ => return Err(unexpected()),
            },
            State::Deviations(sums) => sums.take(rows as f64, double()?)?,
            State::Powers(sums) => match (value, value.as_i64()) {
                (Value::Numeric(value), _) => sums.take(value),
                (_, Some(whole)) => sums.take(&Numeric::from(whole)),
                _ => return Err(unexpected()),
            },
            State::Least(best) => replace_if(best, value, call, Ordering::is_lt)?,
            State::Greatest(best) => replace_if(best, value, call, Ordering::is_gt)?,
            State::BitAnd(bits) => *bits &= whole()?,
            State::BitOr(bits) => *bits |= whole()?,
            State::BitXor(bits) => *bits ^= whole()?,
            State::All(all) => *all &= truth()?,
            State::Any(any) => *any |= truth()?,
            State::List(list) => list.push(call, value)?,
            State::Percentiles(wanted) => wanted.take(rows, value),
            State::Mode(mode) => mode.take(call, value),
            State::Json(_)
            | State::Count
            | State::Pairs(_)
            | State::Text(_)
            | State::Bytes(_)
            | State::Hypothetical(_) => {
                return Err(unexpected());
            }
        }
        Ok(())
    }
}

/// Replaces a value by another that is NULL or compares so.
fn replace_if(
    best: &mut Value,
    value: &Value,
    call: &AggregateCall,
    better: fn(Ordering) -> bool,
) -> Result<()> {
    if best.is_null() || better(compare_checked(value, best, call.argument_types[0])?) {
        *best = value.clone();
    }
    Ok(())
}

/// A double of either width.
pub(super) fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float4(value) => Some(f64::from(*value)),
        Value::Float8(value) => Some(*value),
        _ => None,
    }
}

/// The sum of two doubles; 22003 when finite ones make an infinite one.
fn checked_sum(sum: f64, added: f64) -> Result<f64> {
    let total = sum + added;
    if total.is_infinite() && sum.is_finite() && added.is_finite() {
        return Err(overflow());
    }
    Ok(total)
}

/// The same of `real`; `None` if the value is none.
fn checked_short_sum(sum: f32, added: &Value) -> Option<Result<f32>> {
    let Value::Float4(added) = added else {
        return None;
    };
    let total = sum + added;
    if total.is_infinite() && sum.is_finite() && added.is_finite() {
        return Some(Err(overflow()));
    }
    Some(Ok(total))
}
