//! The part of the rows that satisfies a condition.
//!
//! As PostgreSQL estimates it: a constant is looked up among the most common values and in the histogram; a value that is
//! not known yet has the average part; conditions count as independent of each other, but for a lower and an upper bound
//! on one column. Where there are no statistics the usual guesses stand for them.
//!
//! | module | conditions |
//! | --- | --- |
//! | `range` | `<` and its kin |
//! | `pattern` | LIKE |
//! | `equal` | `=`, with a value and between columns |

mod equal;
mod pattern;
mod range;

use super::facts::{Fact, Facts};
use crate::expr::{CompareOp, Expr};
use crate::value::compare::trim_blanks;
use crate::value::{DataType, Value};

pub(crate) use equal::{matched_by_columns, of_columns};

/// Part of the rows that have a value which nothing is known of.
const EQUAL: f64 = 0.005;

/// Part of the rows on one side of a bound.
const RANGE: f64 = 1.0 / 3.0;

/// Part of the rows between two bounds.
const BETWEEN: f64 = 0.005;

/// Part of the rows that satisfy what is not understood.
const OTHER: f64 = 0.5;

/// Elements of an array that is not known.
const ELEMENTS: usize = 10;

impl Facts {
    /// The part of the rows that satisfies a condition.
    pub(crate) fn selectivity(&self, condition: &Expr) -> f64 {
        self.part(condition).clamp(0.0, 1.0)
    }

    /// The part of the rows that satisfies all of these.
    pub(crate) fn selectivity_of_all(&self, conditions: &[Expr]) -> f64 {
        let mut part = 1.0;
        // Bounds of columns, which go together: column, lower, upper.
        let mut bounds: Vec<(&Fact, &Expr, Option<f64>, Option<f64>)> = Vec::new();
        for condition in conditions {
            let own = self.selectivity(condition);
            let Some((column, fact, is_lower)) = self.bound(condition) else {
                part *= own;
                continue;
            };
            let at = bounds.iter().position(|(_, known, ..)| *known == column);
            let at = at.unwrap_or_else(|| {
                bounds.push((fact, column, None, None));
                bounds.len() - 1
            });
            let place = if is_lower {
                &mut bounds[at].2
            } else {
                &mut bounds[at].3
            };
            *place = Some(place.map_or(own, |other: f64| other.min(own)));
        }
        for (fact, _, lower, upper) in bounds {
            part *= match (lower, upper) {
                (Some(lower), Some(upper)) if lower == RANGE && upper == RANGE => BETWEEN,
                (Some(lower), Some(upper)) => match lower + upper - 1.0 + fact.null_fraction() {
                    between if between > 0.0 => between,
                    between if between < -0.01 => BETWEEN,
                    _ => 1.0e-10,
                },
                (one, other) => one.or(other).unwrap_or(1.0),
            };
        }
        part.clamp(0.0, 1.0)
    }

    /// The column that a condition bounds on one side: as an expression, what is known of it, and true for a lower bound.
    fn bound<'e>(&self, condition: &'e Expr) -> Option<(&'e Expr, &Fact, bool)> {
        let Expr::Compare { op, left, right, .. } = condition else {
            return None;
        };
        let (column, fact, op) = match (self.operand(left), self.operand(right)) {
            (Some(fact), None) => (left, fact, *op),
            (None, Some(fact)) => (right, fact, op.mirrored()),
            _ => return None,
        };
        match op {
            CompareOp::Greater | CompareOp::GreaterOrEqual => Some((column, fact, true)),
            CompareOp::Less | CompareOp::LessOrEqual => Some((column, fact, false)),
            _ => None,
        }
    }

    fn part(&self, condition: &Expr) -> f64 {
        match condition {
            Expr::Constant(value) => f64::from(u8::from(value.as_bool() == Some(true))),
            Expr::And(parts) => self.selectivity_of_all(parts),
            Expr::Or(parts) => parts.iter().fold(0.0, |part, other| {
                let other = self.selectivity(other);
                part + other - part * other
            }),
            Expr::Not(input) => 1.0 - self.selectivity(input),
            Expr::IsNull { input, negated } => {
                let nulls = match self.operand(input) {
                    Some(fact) if fact.statistics().is_some() => fact.null_fraction(),
                    _ => EQUAL,
                };
                if *negated { 1.0 - nulls } else { nulls }
            }
            Expr::IsTruth {
                input,
                truth,
                negated,
            } => {
                let part = match truth {
                    Some(true) => self.selectivity(input),
                    Some(false) => 1.0 - self.selectivity(input),
                    None => EQUAL,
                };
                if *negated { 1.0 - part } else { part }
            }
            Expr::Compare { op, left, right, .. } => self.compared(*op, left, right),
            Expr::Distinct {
                left, right, negated, ..
            } => {
                let same = self.compared(CompareOp::Equal, left, right);
                if *negated { same } else { 1.0 - same }
            }
            Expr::InList {
                input, list, negated, ..
            } => {
                let parts = list
                    .iter()
                    .map(|value| self.compared(CompareOp::Equal, input, value));
                let part = parts.sum::<f64>().min(1.0);
                if *negated { 1.0 - part } else { part }
            }
            Expr::Quantified {
                op,
                all,
                input,
                array,
                ..
            } => self.quantified(*op, *all, input, array),
            Expr::RowTest {
                input,
                op,
                rows,
                negated,
                ..
            } => {
                let row = |row: &Vec<Expr>| -> f64 {
                    let columns = input.iter().zip(row);
                    columns
                        .map(|(left, right)| self.compared(*op, left, right))
                        .product()
                };
                let part = rows.iter().map(row).sum::<f64>().min(1.0);
                if *negated { 1.0 - part } else { part }
            }
            Expr::Like {
                input,
                pattern,
                escape,
                ignore_case,
                negated,
            } => {
                let part = self.like(input, pattern, *escape, *ignore_case);
                if *negated { 1.0 - part } else { part }
            }
            Expr::Column(_) | Expr::Outer(_) => match self.operand(condition) {
                Some(fact) if fact.data_type() == Some(DataType::Bool) && fact.statistics().is_some() => {
                    equal::of_constant(fact, &Value::Bool(true))
                }
                _ => OTHER,
            },
            _ => OTHER,
        }
    }

    fn compared(&self, op: CompareOp, left: &Expr, right: &Expr) -> f64 {
        let (fact, other, op) = match (self.operand(left), self.operand(right)) {
            (Some(left), Some(right)) => {
                return match op {
                    CompareOp::Equal => of_columns(left, right),
                    CompareOp::NotEqual => 1.0 - of_columns(left, right),
                    _ => RANGE,
                };
            }
            (Some(fact), None) => (fact, right, op),
            (None, Some(fact)) => (fact, left, op.mirrored()),
            (None, None) => {
                return match op {
                    CompareOp::Equal => EQUAL,
                    CompareOp::NotEqual => 1.0 - EQUAL,
                    _ => RANGE,
                };
            }
        };
        let equal = || match other {
            Expr::Constant(value) => equal::of_constant(fact, value),
            _ => equal::of_unknown(fact),
        };
        match (op, other) {
            (CompareOp::Equal, _) => equal(),
            (CompareOp::NotEqual, _) => 1.0 - equal() - fact.null_fraction(),
            (_, Expr::Constant(value)) => range::of_constant(fact, op, value),
            _ => RANGE,
        }
    }

    fn quantified(&self, op: CompareOp, all: bool, input: &Expr, array: &Expr) -> f64 {
        let parts: Vec<f64> = match array {
            Expr::Constant(Value::Array(array)) => {
                let elements = array.elements().iter();
                elements
                    .map(|element| self.compared(op, input, &Expr::Constant(element.clone())))
                    .collect()
            }
            _ => vec![self.compared(op, input, &Expr::Parameter(0)); ELEMENTS],
        };
        match (op, all) {
            (CompareOp::Equal, false) => parts.iter().sum::<f64>().min(1.0),
            (_, false) => 1.0 - parts.iter().map(|part| 1.0 - part).product::<f64>(),
            (_, true) => parts.iter().product(),
        }
    }
}

/// A value as a number that is as far from others as the value is; `None` if the type has no such numbers.
fn scalar(value: &Value) -> Option<f64> {
    Some(match value {
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        Value::Float4(number) => f64::from(*number),
        Value::Float8(number) => *number,
        Value::Date(days) => f64::from(*days) * 86_400e6,
        Value::Timestamp(micros) | Value::TimestampTz(micros) | Value::Time(micros) => *micros as f64,
        Value::TimeTz(micros, zone) => (*micros + i64::from(*zone) * 1_000_000) as f64,
        Value::Interval(interval) => interval.span() as f64,
        Value::Numeric(_) => crate::value::text::to_text(value)?.parse().ok()?,
        Value::Lsn(position) => *position as f64,
        other => other.as_i64()? as f64,
    })
}

/// The order of two values that may have different types of one kind; `None` if there is none.
fn order(left: &Value, right: &Value) -> Option<std::cmp::Ordering> {
    match (left, right) {
        // A value of char(n) is kept with its blanks, and its constant comes without them.
        (Value::Text(left), Value::Text(right)) => {
            Some(trim_blanks(left).as_bytes().cmp(trim_blanks(right).as_bytes()))
        }
        _ => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => Some(left.cmp(&right)),
            _ if left.natural_type() == right.natural_type() => {
                Some(crate::value::compare::compare(left, right, left.natural_type()))
            }
            _ => scalar(left)?.partial_cmp(&scalar(right)?),
        },
    }
}

#[cfg(test)]
mod tests;
