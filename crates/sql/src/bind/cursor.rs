//! DECLARE, and WHERE CURRENT OF.

use std::sync::Arc;

use sqlparser::ast;

use crate::access::AccessPath;
use crate::bind::changed_view::ChangedRelation;
use crate::bind::{Binder, bind_checked};
use crate::error::{EngineError, Result, SqlState};
use crate::parse::current_of;
use crate::parse::utility::AsRead;
use crate::plan::{DeclareCursor, Plan, Resolved, RowsStatement, Statement, TableScan};

impl Binder<'_> {
    /// DECLARE with its query bound. A parameter of the query is the statement's.
    pub(super) fn declare(&mut self, declare: &DeclareCursor<AsRead>) -> Result<DeclareCursor<Resolved>> {
        let mut plan = bind_checked(&declare.query, self.catalog, &self.params, self.check)?;
        self.params = plan.param_types.iter().copied().map(Some).collect();
        check_query(declare, &plan)?;
        self.accesses.append(&mut plan.accesses);
        Ok(DeclareCursor {
            name: declare.name.clone(),
            binary: declare.binary,
            scroll: declare.scroll,
            insensitive: declare.insensitive,
            hold: declare.hold,
            query: Arc::new(plan),
        })
    }

    /// The cursor of WHERE CURRENT OF, if that is the condition of an UPDATE or DELETE.
    pub(super) fn cursor_of<'t>(
        &self,
        selection: Option<&'t ast::Expr>,
        relation: &ChangedRelation,
    ) -> Result<Option<&'t str>> {
        let Some(cursor) = selection.and_then(current_of) else {
            return Ok(None);
        };
        if relation.view.is_some() {
            return Err(EngineError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "WHERE CURRENT OF on a view is not implemented",
            ));
        }
        Ok(Some(cursor))
    }
}

/// The scan of the row that a cursor is on. A newer version of the row is the row, too.
pub(super) fn scan_current_of(scan: TableScan, cursor: Option<&str>) -> TableScan {
    match cursor {
        None => scan,
        Some(cursor) => TableScan {
            access: AccessPath::CurrentOf(cursor.to_owned()),
            ..scan
        },
    }
}

/// Refuses a query that no cursor can have, or not with these options.
fn check_query(declare: &DeclareCursor<AsRead>, plan: &Plan) -> Result<()> {
    let not_supported = |message: String| EngineError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
    if !plan.changes.is_empty() {
        let message = "DECLARE CURSOR must not contain data-modifying statements in WITH";
        return Err(not_supported(message.to_owned()));
    }
    if !matches!(plan.statement, Statement::Rows(RowsStatement::Select(_))) {
        let message = "DECLARE CURSOR is for a query that gives rows";
        return Err(EngineError::new(SqlState::SYNTAX_ERROR, message));
    }
    let Some(lock) = plan.reads.iter().filter_map(|read| read.locked).max() else {
        return Ok(());
    };
    let clause = lock.clause();
    if declare.hold {
        return Err(
            not_supported(format!("DECLARE CURSOR WITH HOLD ... {clause} is not supported"))
                .with_detail("Holdable cursors must be READ ONLY."),
        );
    }
    if declare.scroll == Some(true) {
        return Err(
            not_supported(format!("DECLARE SCROLL CURSOR ... {clause} is not supported"))
                .with_detail("Scrollable cursors must be READ ONLY."),
        );
    }
    if declare.insensitive {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {clause} is not valid");
        return Err(EngineError::new(SqlState::INVALID_CURSOR_DEFINITION, message)
            .with_detail("Insensitive cursors must be READ ONLY."));
    }
    Ok(())
}
