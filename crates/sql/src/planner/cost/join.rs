//! Joins.
//!
//! The rows of a join follow from its sides' rows and its conditions, and from no method: of inner joins the product of all
//! rows and all conditions' parts.

use super::{Cost, Costs, at_least_one};
use crate::expr::{CompareOp, Expr};
use crate::plan::JoinKind;
use crate::planner::facts::Facts;
use crate::planner::selectivity::matched_by_columns;
use crate::settings::NOT_WANTED;

/// A method of joining.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JoinMethod {
    /// The right side lies in a hash table.
    Hash,
    /// The left side does.
    HashLeft,
    /// Both sides are read in the order of their keys.
    Merge,
    /// For each row of the left side the right side's index is asked.
    Lookup,
    /// For each row of the left side the right side is read again, kept or made anew.
    Loop,
}

/// The sides of a join.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JoinSides {
    pub(crate) kind: JoinKind,
    pub(crate) left: Cost,
    pub(crate) right: Cost,
    /// The rows of the join.
    pub(crate) rows: f64,
}

impl JoinSides {
    fn width(&self) -> f64 {
        match self.kind {
            JoinKind::Semi | JoinKind::Anti => self.left.width,
            _ => self.left.width + self.right.width,
        }
    }

    fn gives(&self, startup: f64, total: f64) -> Cost {
        Cost {
            startup,
            total,
            rows: self.rows,
            width: self.width(),
        }
    }
}

impl Costs<'_> {
    /// The rows of a join of sides with these rows.
    pub(crate) fn joined_rows(
        &self,
        kind: JoinKind,
        left: f64,
        right: f64,
        facts: &Facts,
        conditions: &[Expr],
    ) -> f64 {
        match kind {
            JoinKind::Semi => at_least_one(left * self.matched(facts, conditions, right)),
            JoinKind::Anti => at_least_one(left * (1.0 - self.matched(facts, conditions, right))),
            _ => {
                let inner = left * right * facts.selectivity_of_all(conditions);
                at_least_one(match kind {
                    JoinKind::Left => inner.max(left),
                    JoinKind::Right => inner.max(right),
                    JoinKind::Full => inner.max(left).max(right),
                    _ => inner,
                })
            }
        }
    }

    /// The part of the left rows that have a partner among so many right rows.
    fn matched(&self, facts: &Facts, conditions: &[Expr], right: f64) -> f64 {
        let part = |condition: &Expr| match condition {
            Expr::Compare {
                op: CompareOp::Equal,
                left: one,
                right: other,
                ..
            } => match (facts.operand(one), facts.operand(other)) {
                (Some(one), Some(other)) => matched_by_columns(one, other, right),
                _ => 0.5,
            },
            other => facts.selectivity(other).max(0.5),
        };
        conditions.iter().map(part).product::<f64>().clamp(0.0, 1.0)
    }

    /// By a hash table of the right side. `keys`: conditions that are checked by the key, of so many in all.
    pub(crate) fn hash_join(
        &self,
        sides: &JoinSides,
        keys: usize,
        conditions: usize,
        key_values: f64,
    ) -> Cost {
        let (settings, left, right) = (&self.settings, sides.left, sides.right);
        let by_key = keys as f64 * settings.operator;
        let build = right.total + (by_key + settings.row) * right.rows;
        let probe = left.run() + by_key * left.rows;
        // Rows of a bucket are compared: half of them until the one is found.
        let in_bucket = right.rows / key_values.clamp(1.0, right.rows.max(1.0));
        let compared = left.rows * in_bucket.max(1.0) * 0.5 * by_key;
        let rest = conditions.saturating_sub(keys) as f64 * settings.operator;
        let given = sides.rows * (settings.row + rest);
        let wanted = if settings.hash_joins { 0.0 } else { NOT_WANTED };
        // A table that does not fit is given up, and both sides are sorted.
        let spilled = if right.bytes() > settings.work_bytes {
            let sorted = |side: Cost| self.sorting(side, None).0;
            sorted(right) + sorted(left)
        } else {
            0.0
        };
        let startup = wanted + build + left.startup;
        sides.gives(startup, startup + probe + compared + given + spilled)
    }

    /// By reading both sides in the order of so many keys, of so many conditions in all; the sides' costs are those of
    /// reading them so.
    pub(crate) fn merge_join(&self, sides: &JoinSides, keys: usize, conditions: usize) -> Cost {
        let (settings, left, right) = (&self.settings, sides.left, sides.right);
        // A row of either side is copied, and compared with the other side's.
        let read = (left.rows + right.rows) * (settings.row + keys as f64 * settings.operator);
        let rest = conditions.saturating_sub(keys) as f64 * settings.operator;
        let given = sides.rows * (settings.row + rest);
        let wanted = if settings.merge_joins { 0.0 } else { NOT_WANTED };
        let startup = wanted + left.startup + right.startup;
        sides.gives(startup, startup + left.run() + right.run() + read + given)
    }

    /// By a loop in which the right side is opened again for each row of the left side; `right` is the cost of one time.
    pub(crate) fn loop_anew(&self, sides: &JoinSides, conditions: usize) -> Cost {
        let (left, right) = (sides.left, sides.right);
        let runs = left.rows.max(1.0);
        let times = left.rows * right.rows;
        self.looped(
            sides,
            left.startup + right.startup,
            runs * right.total,
            times,
            conditions,
        )
    }

    /// By a loop over the right side, which is kept.
    pub(crate) fn loop_kept(&self, sides: &JoinSides, conditions: usize) -> Cost {
        let (left, right) = (sides.left, sides.right);
        let settings = &self.settings;
        let runs = left.rows.max(1.0);
        let keeping = 2.0 * settings.operator * right.rows;
        let mut again = settings.operator * right.rows;
        if right.bytes() > settings.work_bytes {
            again += settings.sequential_page * (right.bytes() / 8_192.0).ceil();
        }
        let all = right.total + keeping + (runs - 1.0) * again;
        let times = left.rows * right.rows;
        self.looped(sides, left.startup + right.startup, all, times, conditions)
    }

    fn looped(&self, sides: &JoinSides, startup: f64, inner: f64, pairs: f64, conditions: usize) -> Cost {
        let settings = &self.settings;
        let wanted = if settings.loop_joins { 0.0 } else { NOT_WANTED };
        let pair = settings.row + conditions as f64 * settings.operator;
        let pairs = match sides.kind {
            // The first partner ends the search.
            JoinKind::Semi | JoinKind::Anti => (pairs + sides.left.rows) / 2.0,
            _ => pairs,
        };
        let total = wanted + sides.left.total + inner + pairs * pair;
        sides.gives(wanted + startup, total)
    }
}
