//! A statement after binding: everything execution needs, with no name left to look up.
//!
//! A row flows through a SELECT as an array of values whose meaning changes at two points only:
//!
//! ```text
//! scan ──▶ input row ──▶ filter ──▶ [aggregate ──▶ group row ──▶ having] ──▶ projection ──▶ output row
//!          one value per table column                keys, then results      visible, then hidden sort columns
//! ```
//!
//! [`Expr::Column`](crate::expr::Expr::Column) counts in whichever row its stage reads. The input row is as wide
//! as the table, but only the columns in [`TableScan::needed`] are filled in. Sort keys are positions in the output
//! row; columns past [`SelectPlan::visible`] exist for sorting only and are not sent.
//!
//! A scan's `filter` is what its index bounds do not already guarantee; `recheck` is the whole WHERE clause, for a row
//! version that was reached by waiting for another transaction rather than through the index.
//!
//! | module | statements |
//! | --- | --- |
//! | `access` | which privileges they need |
//! | `control` | about the transaction, the session, maintenance |
//! | `cursor` | DECLARE, FETCH, MOVE |
//! | `definition`, `alter_table`, `sequence`, `user_type` | CREATE, ALTER, DROP, TRUNCATE |
//! | `measure` | counters of a plan that EXPLAIN ANALYZE runs |
//! | `role` | about roles |
//! | `wait_for_lsn` | WAIT FOR LSN |
//! | `stage` | the form of the names in those of `control` |
//! | `rows`, `select`, `copy` | SELECT, INSERT, UPDATE, DELETE, MERGE, COPY, EXPLAIN |

mod access;
mod alter_table;
mod control;
mod copy;
mod cursor;
mod definition;
mod grant;
mod measure;
mod reindex;
mod role;
mod rows;
mod select;
mod sequence;
mod stage;
mod table_mark;
mod user_type;
mod wait_for_lsn;

use std::sync::Arc;

use crate::catalog::TableDef;
use crate::value::DataType;

pub use crate::access::{AccessPath, KeyRange, RangeBound};
pub use crate::aggregate::AggregateCall;
pub use crate::explained::{Counter, Measured, PageCounters, StageCounters};
pub use crate::sort_key::SortKey;
pub use access::TableAccess;
pub use alter_table::{
    AlterTablePlan, KeyUsingIndex, NewCheck, NewForeignKey, NewKey, TableAction, TypeChange,
};
pub use control::{
    ConstraintName, ControlStatement, IsolationLevel, MaintainedTable, TableLockMode, TransactionModes,
};
pub use copy::{CopyDirection, CopyFormat, CopyOptions, CopyPlan, ForcedColumns};
pub use cursor::{ALL_ROWS, DeclareCursor, FetchCursor, FetchDirection};
pub use definition::{
    AlterViewPlan, CommentOn, Commented, CreateIndex, CreateTable, CreateTableAs, CreateViewPlan,
    DefinitionStatement, IndexSpec, IntoTable, NewIndexKey, NewIndexedValue, OnCommit, TablePart,
    TakenComment, ViewChange,
};
pub use grant::{GrantObjects, GrantPlan};
pub use reindex::{Reindex, ReindexAsRead, ReindexKind, ReindexTarget};
pub use role::{DefaultsOf, Owner, RoleOptions, RoleStatement, Secret};
pub use rows::{
    ConflictAction, ConflictSelect, ConflictUpdate, DeletePlan, ExplainedStatement, InsertPlan, InsertSource,
    JoinedRows, MeasuredStatement, MergeAction, MergeClause, MergePlan, OnConflict, Returning,
    RowAssignments, RowCheck, RowsStatement, UpdatePlan,
};
pub use select::{
    AggregatePlan, FrameBound, FrameExclusion, FrameUnit, JoinKind, KeyJoin, LateColumn, LockStrength,
    LockWaitPolicy, LockedRows, LockedTable, LoopJoin, MeasuredNode, MeasuredSource, MergeJoin, Node,
    Recheck, RecursivePlan, RowLock, RowsPlan, SelectPlan, Series, SetCall, SetFunctions, SetOperator,
    SetPlan, Source, TableScan, WindowCall, WindowFrame, WindowPlan, WindowStage,
};
pub use sequence::{AlterSequencePlan, CreateSequence, SequenceChange, SequenceColumn};
pub use stage::{Resolved, Stage};
pub use table_mark::TableMark;
pub use user_type::{AttributeChange, DomainChange, TypeChange as UserTypeChange, TypeStatement};
pub use wait_for_lsn::{WaitForLsn, WaitMode};

/// A column of a result, as a row description tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name shown to the client.
    pub name: String,
    /// The type of its values.
    pub data_type: DataType,
    /// The type's modifier (the length of a `varchar(n)` plus four, and so on); −1 for none.
    pub type_modifier: i32,
    /// The table it comes from unchanged; 0 when it is computed.
    pub table_oid: u32,
    /// Its number in that table, from 1; 0 when it is computed.
    pub attribute: i16,
}

impl Column {
    /// A computed column.
    pub fn computed(name: impl Into<String>, data_type: DataType) -> Column {
        Column {
            name: name.into(),
            data_type,
            type_modifier: -1,
            table_oid: 0,
            attribute: 0,
        }
    }
}

/// A statement ready to run, with what a client may ask about it beforehand.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The bound statement.
    pub statement: Statement,
    /// The types of `$1`, `$2`, …
    pub param_types: Vec<DataType>,
    /// The columns of its result; `None` when it returns no rows.
    pub columns: Option<Vec<Column>>,
    /// The queries inside its expressions and its common table expressions, by their numbers.
    pub subqueries: Vec<Arc<SelectPlan>>,
    /// The statements of its WITH that change rows.
    pub changes: Vec<Change>,
    /// The tables that it reads, wherever they stand.
    pub reads: Vec<TableRead>,
    /// The error of a part of an expression that is constant.
    pub failure: Option<crate::error::EngineError>,
    /// The uses that it makes of tables.
    pub accesses: Vec<TableAccess>,
}

/// A statement of a WITH that changes rows.
#[derive(Debug, Clone)]
pub struct Change {
    /// The number of the common table expression, whose rows RETURNING gives.
    pub number: usize,
    /// The statement.
    pub statement: Arc<RowsStatement>,
}

impl Plan {
    /// The error that running it would end with, whatever rows there are.
    pub fn check(&self) -> crate::error::Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// The name by which a read-only transaction refuses it, if it does.
    pub fn written_name(&self) -> Option<&'static str> {
        match &self.statement {
            Statement::Definition(statement) => Some(statement.written_name()),
            Statement::Rows(statement) => {
                if statement.writes() || !self.changes.is_empty() {
                    return Some(statement.written_name());
                }
                let locked = self.reads.iter().find_map(|read| read.locked);
                locked.filter(|_| statement.runs()).map(LockStrength::statement)
            }
            Statement::Control(ControlStatement::Declare(declare)) => declare.query.written_name(),
            Statement::Control(_) => None,
        }
    }

    /// The columns of the rows of FETCH are those of the cursor that it names; that cursor's name.
    pub fn fetched_cursor(&self) -> Option<&str> {
        match &self.statement {
            Statement::Control(ControlStatement::Fetch(fetch)) if !fetch.is_move => Some(&fetch.name),
            _ => None,
        }
    }

    /// The columns of the rows of EXECUTE are those of the statement that it names; that statement's name.
    pub fn executed_statement(&self) -> Option<&str> {
        match &self.statement {
            Statement::Control(ControlStatement::Execute {
                name,
                explained: None,
                ..
            }) => Some(name),
            _ => None,
        }
    }
}

/// A table that a statement reads.
#[derive(Debug, Clone)]
pub struct TableRead {
    /// The table.
    pub table: Arc<TableDef>,
    /// The strength of the lock of its rows, if they are locked.
    pub locked: Option<LockStrength>,
}

/// A bound statement, by what runs it: the session itself, `definition`, or the executor.
#[derive(Debug, Clone)]
pub enum Statement {
    /// About the transaction, the session, or maintenance.
    Control(ControlStatement),
    /// Changes definitions.
    Definition(DefinitionStatement),
    /// Reads or writes rows.
    Rows(RowsStatement),
}

impl Statement {
    /// True if a transaction that has failed takes it: COMMIT, ROLLBACK, ROLLBACK TO and an empty text.
    pub fn fits_failed_transaction(&self) -> bool {
        matches!(
            self,
            Statement::Control(
                ControlStatement::Empty
                    | ControlStatement::Commit { .. }
                    | ControlStatement::Rollback { .. }
                    | ControlStatement::RollbackTo(_)
            )
        )
    }

    /// The statement's name, if it cannot run in a transaction that other statements belong to.
    pub fn outside_transactions_only(&self) -> Option<&'static str> {
        match self {
            Statement::Control(ControlStatement::Vacuum { .. } | ControlStatement::NoOperation("VACUUM")) => {
                Some("VACUUM")
            }
            Statement::Control(ControlStatement::DiscardAll) => Some("DISCARD ALL"),
            Statement::Control(ControlStatement::DropDatabase { .. }) => Some("DROP DATABASE"),
            Statement::Control(ControlStatement::AlterSystem { .. }) => Some("ALTER SYSTEM"),
            Statement::Definition(DefinitionStatement::CreateIndex(create)) if create.concurrently => {
                Some("CREATE INDEX CONCURRENTLY")
            }
            Statement::Definition(DefinitionStatement::DropIndex {
                concurrently: true, ..
            }) => Some("DROP INDEX CONCURRENTLY"),
            Statement::Definition(DefinitionStatement::Reindex(reindex)) => {
                reindex.outside_transactions_only()
            }
            _ => None,
        }
    }

    /// The command tag, without the row count that some tags end with.
    pub fn tag(&self) -> &'static str {
        match self {
            Statement::Control(statement) => statement.tag(),
            Statement::Definition(statement) => statement.tag(),
            Statement::Rows(statement) => statement.tag(),
        }
    }
}

impl From<ControlStatement> for Statement {
    fn from(statement: ControlStatement) -> Statement {
        Statement::Control(statement)
    }
}

impl From<DefinitionStatement> for Statement {
    fn from(statement: DefinitionStatement) -> Statement {
        Statement::Definition(statement)
    }
}

impl From<RowsStatement> for Statement {
    fn from(statement: RowsStatement) -> Statement {
        Statement::Rows(statement)
    }
}
