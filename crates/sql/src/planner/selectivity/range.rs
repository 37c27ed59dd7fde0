//! `<`, `<=`, `>`, `>=` with a constant: the most common values are compared one by one; of the others the histogram tells
//! how many lie below. Within a step of the histogram values are taken to lie evenly.

use std::cmp::Ordering;

use super::equal::common_part;
use super::{RANGE, order, scalar};
use crate::expr::CompareOp;
use crate::planner::facts::Fact;
use crate::statistics::ColumnStatistics;
use crate::value::Value;

/// Part of the rows that satisfies `column op value`.
pub(super) fn of_constant(fact: &Fact, op: CompareOp, value: &Value) -> f64 {
    if value.is_null() {
        return 0.0;
    }
    let Some(found) = fact.statistics() else {
        return RANGE;
    };
    let holds = |other: &Value| order(other, value).is_some_and(|order| op.holds(order));
    let common = found.common.iter().filter(|(other, _)| holds(other));
    let of_common: f64 = common.map(|(_, part)| f64::from(*part)).sum();
    let rest = (1.0 - fact.null_fraction() - common_part(found)).max(0.0);
    let below = below(found, value).unwrap_or(0.5);
    let of_rest = match op {
        CompareOp::Less | CompareOp::LessOrEqual => below,
        _ => 1.0 - below,
    };
    of_common + rest * of_rest
}

/// The part of the values in a histogram that is below a value; `None` without a histogram.
pub(super) fn below(found: &ColumnStatistics, value: &Value) -> Option<f64> {
    let bounds = &found.bounds;
    let steps = bounds.len().checked_sub(1).filter(|steps| *steps > 0)?;
    let at = bounds.partition_point(|bound| order(bound, value) == Some(Ordering::Less));
    let part = match at {
        0 => 0.0,
        past if past > steps => 1.0,
        within => {
            let (lower, upper) = (&bounds[within - 1], &bounds[within]);
            ((within - 1) as f64 + place_between(lower, upper, value)) / steps as f64
        }
    };
    // The histogram is of a sample: what lies outside of it may be there all the same.
    let least = 0.01 / steps as f64;
    Some(part.clamp(least, 1.0 - least))
}

/// The place of a value in a step, from 0 to 1.
fn place_between(lower: &Value, upper: &Value, value: &Value) -> f64 {
    let numbers = match (lower, upper, value) {
        (Value::Text(lower), Value::Text(upper), Value::Text(value)) => {
            let common = lower
                .bytes()
                .zip(upper.bytes())
                .take_while(|(one, other)| one == other)
                .count();
            let number = |text: &str| fraction(text.as_bytes().get(common..).unwrap_or_default());
            Some((number(lower), number(upper), number(value)))
        }
        _ => scalar(lower)
            .zip(scalar(upper))
            .zip(scalar(value))
            .map(|((lower, upper), value)| (lower, upper, value)),
    };
    match numbers {
        Some((lower, upper, value)) if upper > lower && (upper - lower).is_finite() => {
            ((value - lower) / (upper - lower)).clamp(0.0, 1.0)
        }
        _ => 0.5,
    }
}

/// Bytes as the digits of a number below 1.
fn fraction(bytes: &[u8]) -> f64 {
    let digits = bytes.iter().take(12).rev();
    digits.fold(0.0, |number, byte| (number + f64::from(*byte)) / 256.0)
}
