//! LIKE with a constant pattern.
//!
//! The common values are matched one by one, and so are the bounds of a histogram of a hundred steps, as a sample of the
//! other values. Of a smaller one the part between the pattern's fixed beginning and its successor is taken, times a guess
//! for the rest of the pattern: each further character lets a fifth through, each `_` nine tenths, and each `%` gives back
//! a factor of five.

use super::equal::common_part;
use super::range::below;
use crate::expr::Expr;
use crate::planner::facts::Facts;
use crate::statistics::ColumnStatistics;
use crate::value::Value;
use crate::value::text::like;

/// Part of the rows that match where nothing is known.
const MATCHES: f64 = 0.005;

/// Bounds of a histogram that are enough to stand for the values.
const BOUNDS_ENOUGH: usize = 100;

impl Facts {
    /// Part of the rows that match a pattern.
    pub(super) fn like(&self, input: &Expr, pattern: &Expr, escape: Option<char>, ignore_case: bool) -> f64 {
        let Expr::Constant(Value::Text(pattern)) = pattern else {
            return MATCHES;
        };
        let (prefix, rest) = split(pattern, escape);
        let Some(found) = self.operand(input).and_then(|fact| fact.statistics()) else {
            let fixed = if ignore_case { 0.2 } else { MATCHES };
            return if prefix.is_empty() {
                rest
            } else {
                fixed.min(rest.max(MATCHES))
            };
        };
        let fold = |text: &str| {
            if ignore_case {
                text.to_lowercase()
            } else {
                text.to_owned()
            }
        };
        let pattern = fold(pattern);
        let matches = |value: &Value| {
            let text = value.as_str().unwrap_or_default();
            like(&fold(text), &pattern, escape, || Ok(())).unwrap_or(false)
        };
        let common = found.common.iter().filter(|(value, _)| matches(value));
        let of_common: f64 = common.map(|(_, part)| f64::from(*part)).sum();
        let others = (1.0 - f64::from(found.null_fraction) - common_part(found)).max(0.0);
        let of_others = match found.bounds.len() {
            count @ BOUNDS_ENOUGH.. => {
                let matching = found.bounds.iter().filter(|value| matches(value)).count();
                (matching as f64 / count as f64).clamp(0.0001, 0.9999)
            }
            _ if prefix.is_empty() || ignore_case => rest,
            _ => begins_with(found, &prefix) * rest,
        };
        of_common + others * of_others
    }
}

/// Part of the values in the histogram that begin with a text.
fn begins_with(found: &ColumnStatistics, prefix: &str) -> f64 {
    let Some(from) = below(found, &Value::from(prefix)) else {
        return MATCHES;
    };
    let mut after = prefix.to_owned();
    let to = match after.pop().and_then(|last| char::from_u32(u32::from(last) + 1)) {
        Some(next) => {
            after.push(next);
            below(found, &Value::from(&*after)).unwrap_or(1.0)
        }
        None => 1.0,
    };
    (to - from).max(0.0001)
}

/// A pattern's fixed beginning, and the part of the texts with this beginning that the rest lets through.
fn split(pattern: &str, escape: Option<char>) -> (String, f64) {
    let (mut prefix, mut part, mut is_fixed) = (String::new(), 1.0, true);
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let (character, is_literal) = match character {
            escaped if Some(escaped) == escape => (characters.next().unwrap_or(escaped), true),
            other => (other, false),
        };
        match character {
            '%' if !is_literal => (is_fixed, part) = (false, part * 5.0),
            '_' if !is_literal => (is_fixed, part) = (false, part * 0.9),
            fixed if is_fixed => prefix.push(fixed),
            _ => part *= 0.2,
        }
    }
    (prefix, f64::min(part, 1.0))
}
