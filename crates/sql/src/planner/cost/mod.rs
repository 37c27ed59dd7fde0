//! Costs: what a plan's operators take, in units of reading a page in sequence.
//!
//! The formulas are PostgreSQL's in substance, over its parameters ([`PlannerSettings`]). All are functions of a plan, the
//! catalog and the settings: the planner chooses by them, and EXPLAIN shows them, by computing them anew.
//!
//! | module | of |
//! | --- | --- |
//! | `scan` | reading a table |
//! | `join` | joins |
//! | `lookups` | the number of times that an index is asked by a join |
//! | `stage` | sorting, grouping, limits |
//! | `plan` | a plan, operator by operator |

mod join;
mod lookups;
mod plan;
mod scan;
mod stage;

use super::facts::Facts;
use crate::catalog::CatalogView;
pub use crate::explained::Cost;
use crate::expr::Expr;
use crate::settings::PlannerSettings;

pub(crate) use join::{JoinMethod, JoinSides};
pub(crate) use lookups::rounds_of;
pub(crate) use scan::ScanChoice;

/// Computes costs.
#[derive(Clone, Copy)]
pub(crate) struct Costs<'c> {
    pub(crate) catalog: &'c dyn CatalogView,
    pub(crate) settings: PlannerSettings,
}

impl<'c> Costs<'c> {
    pub(crate) fn new(catalog: &'c dyn CatalogView) -> Costs<'c> {
        Costs {
            catalog,
            settings: catalog.planner_settings(),
        }
    }

    /// Evaluating a condition for a row.
    fn of_condition(&self, condition: &Expr) -> f64 {
        let mut operators = 0.0;
        condition.walk(&mut |part| {
            operators += match part {
                Expr::Compare { .. }
                | Expr::Distinct { .. }
                | Expr::Arithmetic { .. }
                | Expr::Like { .. }
                | Expr::Call { .. }
                | Expr::Concat(..)
                | Expr::Negate(_)
                | Expr::Quantified { .. }
                | Expr::TestElements { .. }
                | Expr::RowTest { .. } => 1.0,
                Expr::InList { list, .. } => list.len() as f64 / 2.0,
                _ => 0.0,
            };
        });
        operators * self.settings.operator
    }

    /// Rows that satisfy a condition.
    pub(crate) fn filtered(&self, input: Cost, facts: &Facts, condition: &Expr) -> Cost {
        let conditions = match condition {
            Expr::And(parts) => parts.as_slice(),
            one => std::slice::from_ref(one),
        };
        Cost {
            total: input.total + input.rows * self.of_condition(condition),
            rows: at_least_one(input.rows * facts.selectivity_of_all(conditions)),
            ..input
        }
    }
}

/// A number of rows: a plan for none would have no cost.
pub(crate) fn at_least_one(rows: f64) -> f64 {
    rows.max(1.0)
}
