//! Queries with nothing around their bodies.

use sqlparser::ast;

/// True if no ORDER BY, LIMIT, OFFSET, FETCH or FOR UPDATE stands around a query's body; a WITH may.
pub(crate) fn is_bare(query: &ast::Query) -> bool {
    query.order_by.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
}
