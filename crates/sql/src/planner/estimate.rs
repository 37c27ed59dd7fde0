//! Estimated numbers of rows.
//!
//! Without statistics of values the usual guesses stand for them: one row in two hundred has a given value, one in
//! three lies in a range, half satisfy anything else.

use crate::access::AccessPath;
use crate::catalog::CatalogView;
use crate::expr::{CompareOp, Expr};
use crate::plan::{Node, TableScan};
use crate::query::{Leaf, Rows};

/// Part of the rows that have a given value in a column.
const EQUAL: f64 = 0.005;

/// Part of the rows that lie in a range.
const RANGE: f64 = 1.0 / 3.0;

/// Part of the rows that satisfy any other condition.
const OTHER: f64 = 0.5;

/// Rows of what nothing is known of.
const UNKNOWN_ROWS: f64 = 1_000.0;

/// Rows of functions that give some.
const FUNCTION_ROWS: f64 = 10.0;

/// Part of the rows that satisfy a condition.
pub(super) fn selectivity(condition: &Expr) -> f64 {
    match condition {
        Expr::Compare {
            op: CompareOp::Equal, ..
        } => EQUAL,
        Expr::Compare {
            op: CompareOp::NotEqual,
            ..
        } => 1.0 - EQUAL,
        Expr::Compare { .. } => RANGE,
        Expr::InList {
            list, negated: false, ..
        } => (EQUAL * list.len() as f64).min(OTHER),
        Expr::IsNull { negated: false, .. } => EQUAL,
        Expr::And(parts) => parts.iter().map(selectivity).product(),
        Expr::Or(parts) => parts.iter().map(selectivity).sum::<f64>().min(1.0),
        _ => OTHER,
    }
}

/// Rows of a leaf, without conditions.
pub(super) fn rows(catalog: &dyn CatalogView, leaf: &Leaf) -> f64 {
    match &leaf.rows {
        Rows::Table(table) => catalog
            .estimated_rows(table)
            .map_or(UNKNOWN_ROWS, |rows| (rows as f64).max(1.0)),
        Rows::Values(rows) => rows.len().max(1) as f64,
        Rows::Functions(_) => FUNCTION_ROWS,
        Rows::Query { .. }
        | Rows::Series(_)
        | Rows::Set(_)
        | Rows::Shared { .. }
        | Rows::Recursive(_)
        | Rows::Working(_)
        | Rows::Change => UNKNOWN_ROWS,
    }
}

/// Rows that a scan gives, of a table of so many.
pub(super) fn scanned(scan: &TableScan, rows: f64) -> f64 {
    let found = match &scan.access {
        AccessPath::Sequential => rows,
        AccessPath::UniquePoint { .. } => 1.0,
        AccessPath::Points { values, .. } => (rows * EQUAL * values.len() as f64).min(rows),
        AccessPath::Range {
            prefix, lower, upper, ..
        } => {
            let bounds = i32::from(lower.is_some()) + i32::from(upper.is_some());
            rows * EQUAL.powi(prefix.len() as i32) * RANGE.powi(bounds)
        }
    };
    (found * scan.filter.as_ref().map_or(1.0, selectivity)).max(1.0)
}

/// The cost of finding a scan's rows once, in rows read.
pub(super) fn scan_cost(scan: &TableScan, rows: f64) -> f64 {
    /// Going down a tree, beside reading a row of a sequential scan.
    const DESCENT: f64 = 4.0;
    match &scan.access {
        AccessPath::Sequential => rows,
        _ => {
            let unfiltered = TableScan {
                filter: None,
                ..scan.clone()
            };
            DESCENT + 2.0 * scanned(&unfiltered, rows)
        }
    }
}

/// True if a node's rows are made by reading an index for given values.
pub(super) fn is_looked_up(node: &Node) -> bool {
    matches!(node, Node::Table { scan, .. } if !matches!(scan.access, AccessPath::Sequential))
}
