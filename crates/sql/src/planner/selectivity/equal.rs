//! `=`.
//!
//! Between two columns each value of the one with fewer distinct values is taken to be among those of the other, which is
//! 1 / max(d₁, d₂) of all pairs. If the most common values of both are known, their pairs are counted instead, and the rule
//! holds for the rest.

use std::cmp::Ordering;

use super::{EQUAL, order};
use crate::planner::facts::Fact;
use crate::statistics::ColumnStatistics;
use crate::value::Value;

/// Part of the rows that have a value.
pub(super) fn of_constant(fact: &Fact, value: &Value) -> f64 {
    if value.is_null() {
        return 0.0;
    }
    let distinct = fact.distinct();
    if fact.is_unique() {
        return 1.0 / fact.table.rows.max(1.0);
    }
    let Some(found) = fact.statistics() else {
        return 1.0 / distinct;
    };
    let is_same = |other: &Value| order(other, value) == Some(Ordering::Equal);
    if let Some((_, part)) = found.common.iter().find(|(other, _)| is_same(other)) {
        return f64::from(*part);
    }
    let others = (distinct - found.common.len() as f64).max(1.0);
    let part = (1.0 - common_part(found) - fact.null_fraction()).max(0.0) / others;
    // It is no more common than the least common of those that are known to be.
    found
        .common
        .last()
        .map_or(part, |(_, least)| part.min(f64::from(*least)))
}

/// Part of the rows that have a value which is not known yet.
pub(super) fn of_unknown(fact: &Fact) -> f64 {
    if fact.is_guessed() {
        return EQUAL.max(1.0 / fact.distinct());
    }
    let part = (1.0 - fact.null_fraction()) / fact.distinct();
    match fact.statistics().and_then(|found| found.common.first()) {
        Some((_, most)) if !fact.is_unique() => part.min(f64::from(*most)),
        _ => part,
    }
}

/// The part of the rows that the most common values have.
pub(super) fn common_part(found: &ColumnStatistics) -> f64 {
    found.common.iter().map(|(_, part)| f64::from(*part)).sum()
}

/// The part of all pairs of rows whose columns are equal.
pub(crate) fn of_columns(left: &Fact, right: &Fact) -> f64 {
    let (distinct_left, distinct_right) = (left.distinct(), right.distinct());
    let (nulls_left, nulls_right) = (left.null_fraction(), right.null_fraction());
    let by_number = (1.0 - nulls_left) * (1.0 - nulls_right) / distinct_left.max(distinct_right);
    let (Some(of_left), Some(of_right)) = (left.statistics(), right.statistics()) else {
        return by_number;
    };
    if of_left.common.is_empty() || of_right.common.is_empty() {
        return by_number;
    }
    let pairs = common_pairs(of_left, of_right);
    // What is not among the common values, or has no partner there, meets the rest of the other side.
    let rest = |found: &ColumnStatistics, nulls: f64| (1.0 - nulls - common_part(found)).max(0.0);
    let (rest_left, rest_right) = (rest(of_left, nulls_left), rest(of_right, nulls_right));
    let left_alone = (common_part(of_left) - pairs.part_left).max(0.0);
    let right_alone = (common_part(of_right) - pairs.part_right).max(0.0);
    let others = |distinct: f64, known: usize| (distinct - known as f64).max(1.0);
    let from_left = pairs.part
        + left_alone * rest_right / others(distinct_right, of_right.common.len())
        + rest_left * (rest_right + right_alone) / others(distinct_right, pairs.count);
    let from_right = pairs.part
        + right_alone * rest_left / others(distinct_left, of_left.common.len())
        + rest_right * (rest_left + left_alone) / others(distinct_left, pairs.count);
    from_left.min(from_right)
}

/// Values that are common on both sides.
struct CommonPairs {
    count: usize,
    /// Of all pairs of rows.
    part: f64,
    part_left: f64,
    part_right: f64,
}

fn common_pairs(left: &ColumnStatistics, right: &ColumnStatistics) -> CommonPairs {
    let sorted = |found: &ColumnStatistics| {
        let mut values: Vec<(Value, f64)> = found
            .common
            .iter()
            .map(|(value, part)| (value.clone(), f64::from(*part)))
            .collect();
        values.sort_by(|(left, _), (right, _)| order(left, right).unwrap_or(Ordering::Equal));
        values
    };
    let (left, right) = (sorted(left), sorted(right));
    let mut pairs = CommonPairs {
        count: 0,
        part: 0.0,
        part_left: 0.0,
        part_right: 0.0,
    };
    let (mut at_left, mut at_right) = (0, 0);
    while let (Some(one), Some(other)) = (left.get(at_left), right.get(at_right)) {
        match order(&one.0, &other.0) {
            Some(Ordering::Less) => at_left += 1,
            Some(Ordering::Greater) => at_right += 1,
            Some(Ordering::Equal) => {
                pairs.count += 1;
                pairs.part += one.1 * other.1;
                pairs.part_left += one.1;
                pairs.part_right += other.1;
                (at_left, at_right) = (at_left + 1, at_right + 1);
            }
            None => break,
        }
    }
    pairs
}

/// The part of the left rows that have an equal one on the right, where `rows` of the right side are left.
pub(crate) fn matched_by_columns(left: &Fact, right: &Fact, rows: f64) -> f64 {
    let (distinct_left, distinct_right) = (left.distinct(), right.distinct().min(rows.max(1.0)));
    let present = 1.0 - left.null_fraction();
    if left.is_guessed() || right.is_guessed() {
        return 0.5 * present;
    }
    present * (distinct_right / distinct_left).min(1.0)
}
