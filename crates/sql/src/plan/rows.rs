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
    /// COPY
    Copy(Box<CopyPlan>),
    /// EXPLAIN
    Explain(Box<PlanTree>),
    /// EXPLAIN ANALYZE
    Measured(Box<MeasuredStatement>),
}

impl RowsStatement {
    /// True if it is refused in a read-only transaction.
    pub fn writes(&self) -> bool {
        match self {
            RowsStatement::Select(select) => select.lock.is_some(),
            RowsStatement::Insert(_) | RowsStatement::Update(_) | RowsStatement::Delete(_) => true,
            RowsStatement::Copy(copy) => copy.direction == CopyDirection::FromStdin,
            RowsStatement::Explain(_) => false,
            RowsStatement::Measured(measured) => measured.statement.writes(),
        }
    }

    /// As a refusal to write names it.
    pub fn written_name(&self) -> &'static str {
        let lock = match self {
            RowsStatement::Select(select) => select.lock.as_ref(),
            RowsStatement::Insert(_) => return "INSERT",
            RowsStatement::Copy(_) => return "COPY FROM",
            RowsStatement::Measured(measured) => return measured.statement.written_name(),
            _ => None,
        };
        match lock.map(|lock| lock.strength) {
            Some(LockStrength::Update) => "SELECT FOR UPDATE",
            Some(LockStrength::NoKeyUpdate) => "SELECT FOR NO KEY UPDATE",
            Some(LockStrength::Share) => "SELECT FOR SHARE",
            Some(LockStrength::KeyShare) => "SELECT FOR KEY SHARE",
            None => self.tag(),
        }
    }

    /// The command tag, without the row count that all but EXPLAIN's ends with.
    pub fn tag(&self) -> &'static str {
        match self {
            RowsStatement::Select(_) => "SELECT",
            RowsStatement::Insert(_) => "INSERT 0",
            RowsStatement::Update(_) => "UPDATE",
            RowsStatement::Delete(_) => "DELETE",
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
