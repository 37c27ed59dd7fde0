//! The forms of a view's query that pass no changes on to a table.

use sqlparser::ast;

use crate::expr::Expr;
use crate::query::{Block, Relation, Rows};

/// The reason why a view's query passes no changes on.
pub(super) fn reason(query: &ast::Query, block: &Block) -> Option<&'static str> {
    let select = match &*query.body {
        ast::SetExpr::Select(select) => Some(select),
        ast::SetExpr::SetOperation { .. } => {
            return Some("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.");
        }
        _ => None,
    };
    if let Some(select) = select {
        if !matches!(select.distinct, None | Some(ast::Distinct::All)) {
            return Some("Views containing DISTINCT are not automatically updatable.");
        }
        if !matches!(&select.group_by, ast::GroupByExpr::Expressions(keys, _) if keys.is_empty()) {
            return Some("Views containing GROUP BY are not automatically updatable.");
        }
        if select.having.is_some() {
            return Some("Views containing HAVING are not automatically updatable.");
        }
    }
    if query.with.is_some() {
        return Some("Views containing WITH are not automatically updatable.");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Some("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    if block.aggregate.is_some() {
        return Some("Views that return aggregate functions are not automatically updatable.");
    }
    let one = select.and_then(|select| match select.from.as_slice() {
        [entry] if entry.joins.is_empty() => Some(&entry.relation),
        _ => None,
    });
    let named = matches!(
        one,
        Some(ast::TableFactor::Table {
            args: None,
            sample: None,
            ..
        })
    );
    match &block.from {
        Relation::Join(_) if named => {
            Some("Views that return set-returning functions are not automatically updatable.")
        }
        Relation::Leaf(leaf) if named && matches!(leaf.rows, Rows::Table(_) | Rows::Query { .. }) => None,
        _ => Some("Views that do not select from a single table or view are not automatically updatable."),
    }
}

/// The reason why WITH CHECK OPTION is not for a view with this query.
pub(super) fn reason_against_check(query: &ast::Query, block: &Block) -> Option<&'static str> {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(_));
    let none = || !block.projection[..block.visible].iter().any(is_column);
    reason(query, block)
        .or_else(|| none().then_some("Views that have no updatable columns are not automatically updatable."))
}
