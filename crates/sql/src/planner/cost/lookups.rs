//! The number of lookups whose pages an index scan inside of a loop shares.
//!
//! A loop asks an index once for each row of its left side, and pages of earlier rounds are found again. As in PostgreSQL
//! the rounds are those of the table that the key comes from, with its own conditions only, if these are more than the rows
//! of the left side: other joins take rows away in an order that has little to do with the pages, and what such a table would
//! ask for is likely to be in memory from statement to statement.

use super::Costs;
use super::scan::conditions_of;
use crate::expr::Expr;
use crate::plan::{Node, TableScan};
use crate::planner::conditions::conjuncts;
use crate::planner::facts::{Facts, TableFacts};

/// True if an expression reads an argument.
fn reads_argument(expr: &Expr) -> bool {
    let mut reads = false;
    expr.walk(&mut |part| reads |= matches!(part, Expr::Outer(_)));
    reads
}

/// The arguments of an operator, if it is a table's scan.
fn arguments(node: &Node) -> &[Expr] {
    match node.unmeasured() {
        Node::Table { arguments, .. } => arguments,
        Node::Filter { input, .. } => arguments(input),
        _ => &[],
    }
}

impl Costs<'_> {
    /// Rounds of a loop's right side that is opened anew for each of the rows of the left side.
    pub(crate) fn rounds(&self, left: &Node, left_rows: f64, right: &Node) -> f64 {
        let mut fewest = f64::INFINITY;
        for argument in arguments(right) {
            argument.columns(&mut |column| {
                if let Some(rows) = self.rows_of_leaf_with(left, column) {
                    fewest = fewest.min(rows);
                }
            });
        }
        rounds_of(left_rows, fewest)
    }

    /// The rows of the table that gives a column, by its own conditions.
    fn rows_of_leaf_with(&self, node: &Node, column: u16) -> Option<f64> {
        if let Node::Table { scan, base, .. } = node {
            let end = base + scan.table.columns.len() as u16;
            return (*base..end).contains(&column).then(|| self.own_rows(scan));
        }
        let mut found = None;
        node.each_input(&mut |input| {
            found = found.or_else(|| crate::stack::checkpoint(|| self.rows_of_leaf_with(input, column)));
        });
        found
    }

    /// The rows of a table that satisfy its own conditions, those that read nothing else.
    pub(crate) fn own_rows(&self, scan: &TableScan) -> f64 {
        let table = TableFacts::of(self.catalog, &scan.table);
        let facts = Facts::of_table(table.clone(), &[], &Facts::default());
        let all = conditions_of(&scan.table, &scan.access)
            .into_iter()
            .chain(scan.filter.clone());
        let own: Vec<Expr> = all
            .flat_map(conjuncts)
            .filter(|condition| !reads_argument(condition))
            .collect();
        table.rows * facts.selectivity_of_all(&own)
    }
}

/// Rounds of a loop over so many rows; `fewest`: the least of the tables that the key comes from.
pub(crate) fn rounds_of(left_rows: f64, fewest: f64) -> f64 {
    let rows = left_rows.max(1.0);
    match fewest.is_finite() {
        true => rows.max(fewest),
        false => rows,
    }
}
