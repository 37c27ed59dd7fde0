//! INSERT, UPDATE and DELETE in WITH.
//!
//! Such a statement runs exactly once and to its end, whether its rows are read or not. Its common table expression has
//! the rows of RETURNING; the statement's plan lists it ([`crate::plan::Plan::changes`]).

use std::sync::Arc;

use sqlparser::ast;

use crate::bind::Binder;
use crate::bind::select::only_leaf;
use crate::bind::with::{Bound, Inline};
use crate::error::{EngineError, Result, SqlState};
use crate::plan::{Change, Statement};
use crate::query::Rows;

/// True if a query of WITH is a statement that changes rows.
pub(super) fn changes_rows(query: &ast::Query) -> bool {
    matches!(
        &*query.body,
        ast::SetExpr::Insert(_) | ast::SetExpr::Update(_) | ast::SetExpr::Delete(_) | ast::SetExpr::Merge(_)
    )
}

impl Binder<'_> {
    pub(super) fn changing_bound(&mut self, cte: &ast::Cte) -> Result<Bound> {
        let statement = match &*cte.query.body {
            ast::SetExpr::Insert(statement)
            | ast::SetExpr::Update(statement)
            | ast::SetExpr::Delete(statement) => statement,
            _ => {
                return Err(EngineError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "MERGE not supported in WITH query",
                )
                .or_position(self.position(cte.alias.name.span)));
            }
        };
        let (statement, columns) = self.after_with(cte.query.with.as_ref(), false, |binder| {
            binder.with_entries(|binder| binder.statement(statement))
        })?;
        let Statement::Rows(statement) = statement else {
            return Err(EngineError::internal("a statement of WITH changes no rows"));
        };
        let gives_rows = columns.is_some();
        let mut columns = columns.unwrap_or_default();
        self.name_columns(cte, &mut columns)?;
        let block = only_leaf(columns, Rows::Change);
        let bound = self.numbered(block, Inline::Never);
        self.with.changes.push(Change {
            number: bound.number,
            statement: Arc::new(statement),
        });
        Ok(Bound { gives_rows, ..bound })
    }
}
