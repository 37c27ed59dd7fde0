//! What a bound statement has become: everything execution needs, with no name left to look up.
//!
//! A row flows through a SELECT as an array of values whose meaning changes at two points only:
//!
//! ```text
//! scan ──▶ input row ──▶ filter ──▶ [aggregate ──▶ group row ──▶ having] ──▶ projection ──▶ output row
//!          one value per table column                keys, then results      visible, then hidden sort columns
//! ```
//!
//! [`Expr::Column`] counts in whichever row its stage reads. The input row is as wide as the table, but only the
//! columns in [`TableScan::needed`] are filled in. Sort keys are positions in the output row; columns past
//! [`SelectPlan::visible`] exist for sorting only and are not sent.
//!
//! A scan's `filter` is what its index bounds do not already guarantee; `recheck` is the whole WHERE clause, for a row
//! version that was reached by waiting for another transaction rather than through the index.

use std::sync::Arc;

use crate::sql::catalog::TableDef;
use crate::sql::expr::Expr;
use crate::value::{ColumnSet, DataType, Value};

pub use crate::sql::access::{AccessPath, KeyRange, RangeBound};
pub use crate::sql::aggregate::{AggregateCall, AggregateFunction};

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
    /// What to do.
    pub statement: Statement,
    /// The types of `$1`, `$2`, …
    pub param_types: Vec<DataType>,
    /// The columns of its result; `None` when it returns no rows.
    pub columns: Option<Vec<Column>>,
}

/// A bound statement.
#[derive(Debug, Clone)]
pub enum Statement {
    /// Nothing but blanks and comments.
    Empty,
    /// SELECT
    Select(Box<SelectPlan>),
    /// A query recognised as a whole, with its answer.
    Canned(CannedRows),
    /// INSERT
    Insert(Box<InsertPlan>),
    /// UPDATE
    Update(Box<UpdatePlan>),
    /// DELETE
    Delete(Box<DeletePlan>),
    /// EXPLAIN: lines of text
    Explain(Vec<String>),
    /// COPY
    Copy(Box<CopyPlan>),
    /// BEGIN, START TRANSACTION
    Begin(TransactionModes),
    /// COMMIT, END; with AND CHAIN when true
    Commit {
        /// Whether a new transaction starts at once.
        chain: bool,
    },
    /// ROLLBACK, ABORT
    Rollback {
        /// Whether a new transaction starts at once.
        chain: bool,
    },
    /// SET TRANSACTION, or SET SESSION CHARACTERISTICS AS TRANSACTION
    SetTransaction {
        /// What to set.
        modes: TransactionModes,
        /// For the session's later transactions rather than this one.
        session: bool,
    },
    /// SET name = value
    Set {
        /// The setting, lower case.
        name: String,
        /// Its value; `None` = DEFAULT.
        value: Option<String>,
        /// For this transaction only.
        local: bool,
    },
    /// RESET name; `None` = ALL
    Reset(Option<String>),
    /// SHOW name
    Show(String),
    /// SHOW ALL
    ShowAll,
    /// CREATE TABLE
    CreateTable(Box<CreateTable>),
    /// DROP TABLE
    DropTable {
        /// The tables; a name that does not exist has no definition.
        tables: Vec<(String, Option<Arc<TableDef>>)>,
        /// Whether a missing table is no error (a notice tells).
        if_exists: bool,
    },
    /// TRUNCATE
    Truncate {
        /// The tables.
        tables: Vec<Arc<TableDef>>,
        /// Whether their sequences start again.
        restart_identity: bool,
    },
    /// CREATE INDEX
    CreateIndex(Box<CreateIndex>),
    /// DROP INDEX
    DropIndex {
        /// The indexes; one that does not exist has no table.
        indexes: Vec<(String, Option<Arc<TableDef>>)>,
        /// Whether a missing index is no error (a notice tells).
        if_exists: bool,
        /// Said to be CONCURRENTLY: the same here, but refused in a transaction.
        concurrently: bool,
    },
    /// ALTER TABLE … ADD PRIMARY KEY or ADD UNIQUE: an index to create, its columns to become NOT NULL when primary
    AddConstraint(Box<CreateIndex>),
    /// ALTER TABLE … DROP CONSTRAINT
    DropConstraint {
        /// The table.
        table: Arc<TableDef>,
        /// The constraint's name, which is its index's.
        name: String,
        /// Whether a missing constraint is no error (a notice tells).
        if_exists: bool,
    },
    /// ALTER TABLE … SET (fillfactor = …)
    SetFillfactor {
        /// The table.
        table: Arc<TableDef>,
        /// The new value.
        fillfactor: u8,
    },
    /// VACUUM, with or without ANALYZE
    Vacuum {
        /// The tables; none = all.
        tables: Vec<Arc<TableDef>>,
        /// Also ANALYZE.
        analyze: bool,
    },
    /// ANALYZE
    Analyze {
        /// The tables; none = all.
        tables: Vec<Arc<TableDef>>,
    },
    /// CHECKPOINT
    Checkpoint,
    /// PREPARE name (types) AS statement
    Prepare {
        /// Its name.
        name: String,
        /// The declared parameter types.
        types: Vec<Option<DataType>>,
        /// The statement's text.
        sql: String,
    },
    /// EXECUTE name (arguments)
    Execute {
        /// Its name.
        name: String,
        /// The arguments, of whatever type they have.
        arguments: Vec<(Expr, DataType)>,
    },
    /// DEALLOCATE name; `None` = ALL
    Deallocate(Option<String>),
    /// DISCARD ALL
    DiscardAll,
    /// Accepted and without effect here (the tag to answer with), e.g. `CREATE EXTENSION IF NOT EXISTS`
    NoOperation(&'static str),
}

impl Statement {
    /// Whether a transaction that has failed still takes it.
    pub fn ends_transaction(&self) -> bool {
        matches!(self, Statement::Commit { .. } | Statement::Rollback { .. })
    }

    /// The statement's name, if it cannot run in a transaction that other statements belong to.
    pub fn outside_transactions_only(&self) -> Option<&'static str> {
        match self {
            Statement::Vacuum { .. } => Some("VACUUM"),
            Statement::DiscardAll => Some("DISCARD ALL"),
            Statement::CreateIndex(create) if create.concurrently => Some("CREATE INDEX CONCURRENTLY"),
            Statement::DropIndex {
                concurrently: true, ..
            } => Some("DROP INDEX CONCURRENTLY"),
            _ => None,
        }
    }

    /// Whether it is refused in a read-only transaction.
    pub fn writes(&self) -> bool {
        match self {
            Statement::Insert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::CreateTable(_)
            | Statement::DropTable { .. }
            | Statement::Truncate { .. }
            | Statement::CreateIndex(_)
            | Statement::DropIndex { .. }
            | Statement::AddConstraint(_)
            | Statement::DropConstraint { .. }
            | Statement::SetFillfactor { .. } => true,
            Statement::Copy(copy) => matches!(copy.direction, CopyDirection::FromStdin),
            Statement::Select(select) => select.lock.is_some(),
            _ => false,
        }
    }

    /// The command tag, without the row count that some tags end with.
    pub fn tag(&self) -> &'static str {
        match self {
            Statement::Empty => "",
            Statement::Select(_) | Statement::Canned(_) => "SELECT",
            Statement::Insert(_) => "INSERT 0",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Explain(_) => "EXPLAIN",
            Statement::Copy(_) => "COPY",
            Statement::Begin(modes) => {
                if modes.start_keyword {
                    "START TRANSACTION"
                } else {
                    "BEGIN"
                }
            }
            Statement::Commit { .. } => "COMMIT",
            Statement::Rollback { .. } => "ROLLBACK",
            Statement::SetTransaction { .. } | Statement::Set { .. } => "SET",
            Statement::Reset(_) => "RESET",
            Statement::Show(_) | Statement::ShowAll => "SHOW",
            Statement::CreateTable(_) => "CREATE TABLE",
            Statement::DropTable { .. } => "DROP TABLE",
            Statement::Truncate { .. } => "TRUNCATE TABLE",
            Statement::CreateIndex(_) => "CREATE INDEX",
            Statement::DropIndex { .. } => "DROP INDEX",
            Statement::AddConstraint(_)
            | Statement::DropConstraint { .. }
            | Statement::SetFillfactor { .. } => "ALTER TABLE",
            Statement::Vacuum { .. } => "VACUUM",
            Statement::Analyze { .. } => "ANALYZE",
            Statement::Checkpoint => "CHECKPOINT",
            Statement::Prepare { .. } => "PREPARE",
            Statement::Execute { .. } => "EXECUTE",
            Statement::Deallocate(None) => "DEALLOCATE ALL",
            Statement::Deallocate(Some(_)) => "DEALLOCATE",
            Statement::DiscardAll => "DISCARD ALL",
            Statement::NoOperation(tag) => tag,
        }
    }
}

/// Isolation of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// Each statement sees what was committed when it began. READ UNCOMMITTED means the same.
    ReadCommitted,
    /// Each statement sees what was committed when the transaction's first one began.
    RepeatableRead,
}

impl IsolationLevel {
    /// As SHOW tells it.
    pub const fn name(self) -> &'static str {
        match self {
            IsolationLevel::ReadCommitted => "read committed",
            IsolationLevel::RepeatableRead => "repeatable read",
        }
    }
}

/// What BEGIN and SET TRANSACTION may say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// The isolation level, if given.
    pub isolation: Option<IsolationLevel>,
    /// READ ONLY (true) or READ WRITE (false), if given.
    pub read_only: Option<bool>,
    /// Written START TRANSACTION, which answers with a tag of its own.
    pub start_keyword: bool,
}

/// A recognised query's answer.
#[derive(Debug, Clone)]
pub struct CannedRows {
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

/// Rows of a table, found one way or another.
#[derive(Debug, Clone)]
pub struct TableScan {
    /// The table.
    pub table: Arc<TableDef>,
    /// How its rows are found.
    pub access: AccessPath,
    /// What a found row must still satisfy.
    pub filter: Option<Expr>,
    /// The whole WHERE clause.
    pub recheck: Option<Expr>,
    /// The columns that any later stage reads, `filter` and `recheck` included.
    pub needed: ColumnSet,
}

/// Where a SELECT's input rows come from.
#[derive(Debug, Clone)]
pub enum Source {
    /// No FROM: one empty row.
    OneRow,
    /// A table or virtual table.
    Table(TableScan),
    /// `generate_series(start, stop [, step])`: rows of one value.
    Series(Series),
}

/// `generate_series` as a source of rows.
#[derive(Debug, Clone)]
pub struct Series {
    /// First value.
    pub start: Expr,
    /// Last value, at most.
    pub stop: Expr,
    /// Step; 1 when absent. Zero is an error (22023).
    pub step: Option<Expr>,
    /// Int4 or Int8; the three expressions have this type.
    pub data_type: DataType,
    /// WHERE
    pub filter: Option<Expr>,
}

/// SELECT
#[derive(Debug, Clone)]
pub struct SelectPlan {
    /// Where rows come from, already filtered.
    pub source: Source,
    /// Grouping and aggregates, if any.
    pub aggregate: Option<AggregatePlan>,
    /// The output row: the visible columns, then hidden ones for sorting.
    pub projection: Vec<Expr>,
    /// How many output columns are sent.
    pub visible: usize,
    /// DISTINCT over the visible columns.
    pub distinct: bool,
    /// ORDER BY; empty when absent or when the scan gives that order anyway.
    pub sort: Vec<SortKey>,
    /// LIMIT, a bigint; NULL = none.
    pub limit: Option<Expr>,
    /// OFFSET, a bigint; NULL = 0.
    pub offset: Option<Expr>,
    /// Stop the scan after this many rows that pass the filter (min and max over an index).
    pub stop_after: Option<u64>,
    /// FOR UPDATE and its relatives.
    pub lock: Option<RowLock>,
    /// The columns sent.
    pub columns: Vec<Column>,
}

/// Grouping and aggregates.
#[derive(Debug, Clone)]
pub struct AggregatePlan {
    /// GROUP BY, over the input row; empty = one group, present even without rows.
    pub keys: Vec<Expr>,
    /// The keys' types, for comparing.
    pub key_types: Vec<DataType>,
    /// The aggregate calls, over the input row.
    pub calls: Vec<AggregateCall>,
    /// HAVING, over the group row (keys, then results).
    pub having: Option<Expr>,
}

/// One ORDER BY key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortKey {
    /// Position in the output row.
    pub column: usize,
    /// That column's type.
    pub data_type: DataType,
    /// DESC
    pub descending: bool,
    /// NULLs before all other values.
    pub nulls_first: bool,
}

/// How strongly FOR … locks rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockStrength {
    /// FOR UPDATE
    Update,
    /// FOR NO KEY UPDATE
    NoKeyUpdate,
    /// FOR SHARE
    Share,
    /// FOR KEY SHARE
    KeyShare,
}

/// What to do about a row that someone else has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWaitPolicy {
    /// Wait.
    Block,
    /// NOWAIT: error 55P03.
    NoWait,
    /// SKIP LOCKED: leave it out.
    SkipLocked,
}

/// A FOR UPDATE clause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowLock {
    /// How strong.
    pub strength: LockStrength,
    /// What if it is taken.
    pub wait: LockWaitPolicy,
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
}

/// Where inserted rows come from.
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
    /// What is sent.
    pub columns: Vec<Column>,
}

/// UPDATE
#[derive(Debug, Clone)]
pub struct UpdatePlan {
    /// The rows to change.
    pub scan: TableScan,
    /// New values by column number, over the row as it is; converted to the column's type.
    pub assignments: Vec<(u16, Expr)>,
    /// Whether any assigned column is in an index: if not, the index needs no new entry.
    pub changes_indexed_columns: bool,
    /// RETURNING, over the new row.
    pub returning: Option<Returning>,
}

/// DELETE
#[derive(Debug, Clone)]
pub struct DeletePlan {
    /// The rows to delete.
    pub scan: TableScan,
    /// RETURNING, over the old row.
    pub returning: Option<Returning>,
}

/// CREATE TABLE
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// Its name.
    pub name: String,
    /// Whether an existing table is no error (a notice tells).
    pub if_not_exists: bool,
    /// Its columns; those of a primary key are NOT NULL already.
    pub columns: Vec<crate::sql::catalog::ColumnDef>,
    /// The indexes that PRIMARY KEY and UNIQUE ask for.
    pub indexes: Vec<IndexSpec>,
    /// WITH (fillfactor = …)
    pub fillfactor: u8,
}

/// An index to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSpec {
    /// Its name (made up by PostgreSQL's rule when none was given).
    pub name: String,
    /// Unique.
    pub unique: bool,
    /// The primary key.
    pub primary: bool,
    /// Made by a constraint.
    pub constraint: bool,
    /// The table's column numbers, in order.
    pub columns: Vec<u16>,
}

/// CREATE INDEX, or ALTER TABLE … ADD PRIMARY KEY | UNIQUE
#[derive(Debug, Clone)]
pub struct CreateIndex {
    /// The table.
    pub table: Arc<TableDef>,
    /// The index.
    pub index: IndexSpec,
    /// Whether an existing index is no error (a notice tells).
    pub if_not_exists: bool,
    /// Said to be CONCURRENTLY: writers wait all the same, and it is refused in a transaction.
    pub concurrently: bool,
}

/// COPY
#[derive(Debug, Clone)]
pub struct CopyPlan {
    /// Which way.
    pub direction: CopyDirection,
    /// The table (`None` for COPY (query) TO).
    pub table: Option<Arc<TableDef>>,
    /// The table's column numbers in the order of the data.
    pub columns: Vec<u16>,
    /// For columns not in the data: their defaults, converted. One per table column; `None` = in the data.
    pub defaults: Vec<Option<Expr>>,
    /// COPY TO: the query that gives the rows.
    pub query: Option<Box<SelectPlan>>,
    /// Format and its details.
    pub options: CopyOptions,
}

/// Which way a COPY goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyDirection {
    /// From the client into a table.
    FromStdin,
    /// From a table or query to the client.
    ToStdout,
}

/// COPY's formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFormat {
    /// PostgreSQL's text format.
    Text,
    /// Comma-separated values.
    Csv,
}

/// COPY's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    /// The format.
    pub format: CopyFormat,
    /// Between columns.
    pub delimiter: u8,
    /// What stands for NULL.
    pub null: String,
    /// The first line holds names.
    pub header: bool,
    /// CSV's quote.
    pub quote: u8,
    /// CSV's escape inside quotes.
    pub escape: u8,
    /// FREEZE: accepted; visibility here needs no freezing.
    pub freeze: bool,
}
