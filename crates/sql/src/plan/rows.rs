//! Statements that read or write rows.

use std::sync::Arc;

use crate::catalog::TableDef;
use crate::explained::{Counter, PlanTree};
use crate::expr::{Expr, Subquery};
use crate::plan::{Column, CopyDirection, CopyPlan, LockStrength, RowsPlan, SelectPlan, TableScan};

/// A statement that reads or writes rows.
#[derive(Debug, Clone)]
pub enum RowsStatement {
    /// SELECT. A portal that makes its rows when they are asked for keeps the plan.
    Select(Arc<SelectPlan>),
    /// INSERT
    Insert(Box<InsertPlan>),
    /// UPDATE
    Update(Box<UpdatePlan>),
    /// DELETE
    Delete(Box<DeletePlan>),
    /// MERGE
    Merge(Box<MergePlan>),
    /// COPY
    Copy(Box<CopyPlan>),
    /// EXPLAIN
    Explain(Box<ExplainedStatement>),
    /// EXPLAIN ANALYZE
    Measured(Box<MeasuredStatement>),
}

/// EXPLAIN of a statement that does not run.
#[derive(Debug, Clone)]
pub struct ExplainedStatement {
    /// Its plan.
    pub tree: PlanTree,
    /// The tables that it would change rows of, which are locked as if it did.
    pub changed: Vec<Arc<TableDef>>,
}

impl RowsStatement {
    /// The table that it changes rows of.
    pub fn changed_table(&self) -> Option<&Arc<TableDef>> {
        match self {
            RowsStatement::Insert(plan) => Some(&plan.table),
            RowsStatement::Update(plan) => Some(&plan.scan.table),
            RowsStatement::Delete(plan) => Some(&plan.scan.table),
            RowsStatement::Merge(plan) => Some(&plan.scan.table),
            RowsStatement::Copy(plan) => plan
                .table
                .as_ref()
                .filter(|_| plan.direction == CopyDirection::FromStdin),
            RowsStatement::Measured(measured) => measured.statement.changed_table(),
            RowsStatement::Select(_) | RowsStatement::Explain(_) => None,
        }
    }

    /// True if it changes rows, which a read-only transaction refuses.
    pub fn writes(&self) -> bool {
        match self {
            RowsStatement::Insert(_)
            | RowsStatement::Update(_)
            | RowsStatement::Delete(_)
            | RowsStatement::Merge(_) => true,
            RowsStatement::Copy(copy) => copy.direction == CopyDirection::FromStdin,
            RowsStatement::Select(_) | RowsStatement::Explain(_) => false,
            RowsStatement::Measured(measured) => measured.statement.writes(),
        }
    }

    /// False for EXPLAIN, which only shows a plan.
    pub fn runs(&self) -> bool {
        !matches!(self, RowsStatement::Explain(_))
    }

    /// As a refusal to write names it.
    pub fn written_name(&self) -> &'static str {
        match self {
            RowsStatement::Insert(_) => "INSERT",
            RowsStatement::Copy(_) => "COPY FROM",
            RowsStatement::Measured(measured) => measured.statement.written_name(),
            _ => self.tag(),
        }
    }

    /// The command tag, without the row count that all but EXPLAIN's ends with.
    pub fn tag(&self) -> &'static str {
        match self {
            RowsStatement::Select(_) => "SELECT",
            RowsStatement::Insert(_) => "INSERT 0",
            RowsStatement::Update(_) => "UPDATE",
            RowsStatement::Delete(_) => "DELETE",
            RowsStatement::Merge(_) => "MERGE",
            RowsStatement::Copy(_) => "COPY",
            RowsStatement::Explain(_) | RowsStatement::Measured(_) => "EXPLAIN",
        }
    }
}

/// WITH CHECK OPTION of a view that a statement changes rows through.
#[derive(Debug, Clone)]
pub struct RowCheck {
    /// The view's name.
    pub view: String,
    /// Its conditions, over the row as it is stored; all must be true.
    pub conditions: Vec<Expr>,
}

/// A statement that is run to be measured, and its plan, which shows its counters.
#[derive(Debug, Clone)]
pub struct MeasuredStatement {
    /// The statement.
    pub statement: RowsStatement,
    /// Its plan.
    pub tree: PlanTree,
    /// Counts the rows that it sends.
    pub top: Arc<Counter>,
    /// Counts the rows that it changes.
    pub changed: Arc<Counter>,
}

/// INSERT
#[derive(Debug, Clone)]
pub struct InsertPlan {
    /// The table.
    pub table: Arc<TableDef>,
    /// The rows to insert.
    pub source: InsertSource,
    /// True if the table has generated columns.
    pub generates: bool,
    /// ON CONFLICT
    pub conflict: Option<Box<OnConflict>>,
    /// RETURNING, over the inserted row.
    pub returning: Option<Returning>,
    /// The conditions on an inserted row.
    pub checks: Option<Box<[RowCheck]>>,
}

/// The source of inserted rows.
#[derive(Debug, Clone)]
pub enum InsertSource {
    /// VALUES: per row one expression per table column, defaults filled in, converted to the column's type.
    Rows(Vec<Vec<Expr>>),
    /// A query, and per table column an expression over the query's output row.
    Select {
        /// The query.
        select: Box<SelectPlan>,
        /// One expression per table column.
        columns: Vec<Expr>,
    },
}

/// RETURNING
#[derive(Debug, Clone)]
pub struct Returning {
    /// Over the row as stored (for DELETE: as it was).
    pub projection: Vec<Expr>,
    /// The columns that are sent.
    pub columns: Vec<Column>,
    /// True if it reads the place of the row's version. That is the value behind the row's columns; for an INSERT the
    /// transaction that has locked the row follows, 0 without one.
    pub tells_place: bool,
}

/// The rows that a statement with FROM, USING or a query in it changes.
#[derive(Debug, Clone)]
pub struct JoinedRows {
    /// The rows; the changed table's columns come first in the row, then the place of its row.
    pub rows: RowsPlan,
    /// WHERE and all conditions of joins, over the row, for a newer version of the changed table's row.
    pub recheck: Option<Expr>,
    /// The queries of `SET (…) = (SELECT …)` with the number of their columns. The assignments find their values behind
    /// the row.
    pub row_queries: Vec<(Subquery, usize)>,
}

/// UPDATE
#[derive(Debug, Clone)]
pub struct UpdatePlan {
    /// The rows to change.
    pub scan: TableScan,
    /// The rows to change, if more than one table tells which; then the assignments and RETURNING are over its row.
    pub joined: Option<Box<JoinedRows>>,
    /// New values by column number, over the row as it is; converted to the column's type.
    pub assignments: Vec<(u16, Expr)>,
    /// True if any assigned column is in an index: if not, the index needs no new entry.
    pub changes_indexed_columns: bool,
    /// True if the table has generated columns.
    pub generates: bool,
    /// RETURNING, over the new row.
    pub returning: Option<Returning>,
    /// The conditions on a new row.
    pub checks: Option<Box<[RowCheck]>>,
}

/// DELETE
#[derive(Debug, Clone)]
pub struct DeletePlan {
    /// The rows to delete.
    pub scan: TableScan,
    /// The rows to delete, if more than one table tells which; then RETURNING is over its row.
    pub joined: Option<Box<JoinedRows>>,
    /// RETURNING, over the old row.
    pub returning: Option<Returning>,
}

/// MERGE
#[derive(Debug, Clone)]
pub struct MergePlan {
    /// The target, for newer versions of its rows.
    pub scan: TableScan,
    /// The source's rows beside the target's; the place of the target's row is NULL where none fits. `recheck` is ON.
    pub joined: JoinedRows,
    /// WHEN, in order. The first that fits a row is the one that counts.
    pub clauses: Vec<MergeClause>,
    /// The name that the target is known by.
    pub name: String,
}

/// WHEN … THEN of MERGE.
#[derive(Debug, Clone)]
pub struct MergeClause {
    /// True if it is for rows of the source that a row of the target fits, false if for the others.
    pub matched: bool,
    /// AND, over the row.
    pub condition: Option<Expr>,
    /// THEN
    pub action: MergeAction,
}

/// The action of a WHEN.
#[derive(Debug, Clone)]
pub enum MergeAction {
    /// UPDATE
    Update(RowAssignments),
    /// DELETE
    Delete,
    /// INSERT: per column of the target an expression over the row, converted to the column's type.
    Insert(Vec<Expr>),
    /// DO NOTHING
    Nothing,
}

/// SET of a statement whose rows operators find.
#[derive(Debug, Clone)]
pub struct RowAssignments {
    /// New values by column number, over the row with those of the queries behind it.
    pub values: Vec<(u16, Expr)>,
    /// The queries of `SET (…) = (SELECT …)` with the number of their columns.
    pub row_queries: Vec<(Subquery, usize)>,
    /// True if any assigned column is in an index.
    pub changes_indexed_columns: bool,
}

/// ON CONFLICT of INSERT.
#[derive(Debug, Clone)]
pub struct OnConflict {
    /// The unique indexes in which a row of the same key is a conflict, by their places among those of the table.
    pub arbiters: Vec<usize>,
    /// True if the statement says which.
    pub names_arbiters: bool,
    /// The action on the row that is there.
    pub action: ConflictAction,
}

/// The action of ON CONFLICT.
#[derive(Debug, Clone)]
pub enum ConflictAction {
    /// DO NOTHING
    Nothing,
    /// DO UPDATE
    Update(ConflictUpdate),
    /// DO SELECT: RETURNING gives the row that is there.
    Select(ConflictSelect),
}

impl ConflictAction {
    /// WHERE
    pub fn condition(&self) -> Option<&Expr> {
        match self {
            ConflictAction::Nothing => None,
            ConflictAction::Update(update) => update.condition.as_ref(),
            ConflictAction::Select(select) => select.condition.as_ref(),
        }
    }

    /// The columns that are given a value in the row that is there, with their new values.
    pub fn assignments(&self) -> &[(u16, Expr)] {
        match self {
            ConflictAction::Update(update) => &update.set.values,
            ConflictAction::Nothing | ConflictAction::Select(_) => &[],
        }
    }
}

/// DO SELECT of ON CONFLICT; WHERE sees what it sees in DO UPDATE.
#[derive(Debug, Clone)]
pub struct ConflictSelect {
    /// FOR …
    pub lock: Option<LockStrength>,
    /// WHERE
    pub condition: Option<Expr>,
}

/// DO UPDATE of ON CONFLICT, over the row that is there and, behind it, the row that was to be inserted (EXCLUDED) and the
/// place of the version that is there.
#[derive(Debug, Clone)]
pub struct ConflictUpdate {
    /// SET
    pub set: RowAssignments,
    /// WHERE
    pub condition: Option<Expr>,
}
