//! Sorting, grouping, limits.

use super::{Cost, Costs, at_least_one};
use crate::expr::Expr;
use crate::planner::facts::{Fact, Facts};
use crate::settings::NOT_WANTED;

/// Groups of rows by expressions that nothing is known of.
const UNKNOWN_GROUPS: f64 = 200.0;

impl Costs<'_> {
    /// Sorting; `most`: no more rows come out.
    pub(crate) fn sort(&self, input: Cost, most: Option<f64>) -> Cost {
        let (sorting, wanted) = self.sorting(input, most);
        let startup = wanted + input.total + sorting;
        Cost {
            startup,
            total: startup + self.settings.operator * input.rows,
            ..input
        }
    }

    /// The cost of sorting rows that are there, and what is added if sorting is not wanted.
    pub(crate) fn sorting(&self, input: Cost, most: Option<f64>) -> (f64, f64) {
        let settings = &self.settings;
        let rows = input.rows.max(2.0);
        let comparison = 2.0 * settings.operator;
        let bytes = |rows: f64| rows * (input.width + 24.0);
        let kept = most.filter(|most| 2.0 * most < rows && bytes(2.0 * most) <= settings.work_bytes);
        let mut sorting = comparison * rows * kept.map_or(rows, |most| 2.0 * most.max(1.0)).log2();
        if kept.is_none() && bytes(rows) > settings.work_bytes {
            let pages = (bytes(rows) / 8_192.0).ceil();
            // Written and read once, in sequence for the greater part.
            sorting += 2.0 * pages * (0.75 * settings.sequential_page + 0.25 * settings.random_page);
        }
        let wanted = if settings.sorts { 0.0 } else { NOT_WANTED };
        (sorting, wanted)
    }

    /// Rows in groups by keys, with so many aggregates.
    pub(crate) fn group(&self, input: Cost, groups: f64, keys: usize, calls: usize, width: f64) -> Cost {
        let settings = &self.settings;
        let work = (keys + calls) as f64 * settings.operator * input.rows;
        let startup = input.total + work;
        Cost {
            startup,
            total: startup + groups * (settings.row + calls as f64 * 0.0),
            rows: groups,
            width,
        }
    }

    /// The number of groups that rows form by these keys: the product of the keys' distinct values, those of one table no
    /// more than its rows that are left.
    pub(crate) fn groups(&self, facts: &Facts, keys: &[&Expr], rows: f64) -> f64 {
        if keys.is_empty() {
            return 1.0;
        }
        let mut tables: Vec<(&Fact, f64)> = Vec::new();
        let mut groups = 1.0;
        for key in keys {
            match facts.operand(key) {
                Some(fact) => {
                    let known = tables
                        .iter_mut()
                        .find(|(other, _)| std::sync::Arc::ptr_eq(&other.table, &fact.table));
                    match known {
                        Some((_, distinct)) => *distinct *= fact.distinct(),
                        None => tables.push((fact, fact.distinct())),
                    }
                }
                None if matches!(key, Expr::Constant(_)) => {}
                None => groups *= UNKNOWN_GROUPS,
            }
        }
        for (fact, distinct) in tables {
            let all = fact.table.rows;
            let distinct = distinct.min(all);
            // Of the values with all / distinct rows each, those of which at least one row is left.
            let part = (rows / all).min(1.0);
            groups *= (distinct * (1.0 - (1.0 - part).powf(all / distinct))).max(1.0);
        }
        at_least_one(groups.min(rows))
    }

    /// LIMIT and OFFSET, as far as they are known.
    pub(crate) fn limit(&self, input: Cost, limit: Option<f64>, offset: Option<f64>) -> Cost {
        let mut cost = input;
        let share = |rows: f64| input.run() * (rows / input.rows.max(1.0)).min(1.0);
        if let Some(offset) = offset {
            let left_out = offset.min(input.rows);
            cost.startup += share(left_out);
            cost.rows = at_least_one(input.rows - left_out);
        }
        if let Some(limit) = limit {
            let given = limit.min(cost.rows);
            cost.rows = at_least_one(given);
            cost.total = cost.startup + share(given);
        }
        cost
    }
}
