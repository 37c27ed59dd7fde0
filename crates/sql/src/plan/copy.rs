//! COPY: which way, which columns, and how they are written.

use std::sync::Arc;

use crate::catalog::TableDef;
use crate::expr::Expr;
use crate::plan::SelectPlan;

/// COPY
#[derive(Debug, Clone)]
pub struct CopyPlan {
    /// The direction.
    pub direction: CopyDirection,
    /// The table (`None` for COPY (query) TO).
    pub table: Option<Arc<TableDef>>,
    /// The table's column numbers in the order of the data.
    pub columns: Vec<u16>,
    /// For columns not in the data: their defaults, converted. One per table column; `None` = in the data.
    pub defaults: Vec<Option<Expr>>,
    /// COPY FROM … WHERE: the condition over a row of the table. It reads no generated column.
    pub condition: Option<Expr>,
    /// COPY TO: the query that gives the rows.
    pub query: Option<Arc<SelectPlan>>,
    /// Format and its details.
    pub options: CopyOptions,
}

/// The direction of a COPY.
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
    /// PostgreSQL's binary format.
    Binary,
}

/// COPY's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    /// The format.
    pub format: CopyFormat,
    /// Between columns.
    pub delimiter: u8,
    /// The text of NULL.
    pub null: String,
    /// The first line holds names.
    pub header: bool,
    /// HEADER MATCH: the names are those of the columns.
    pub matches: bool,
    /// CSV's quote.
    pub quote: u8,
    /// CSV's escape inside quotes.
    pub escape: u8,
    /// FREEZE: the table must have been made or emptied in the transaction. Visibility here needs no freezing.
    pub freeze: bool,
    /// Columns that a clause of FORCE treats in a way of their own.
    pub forced: ForcedColumns,
}

/// The columns of FORCE, which CSV has, by their places in the data; places beyond the list are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForcedColumns {
    /// FORCE QUOTE: values other than NULL are always in quotes.
    pub quote: Vec<bool>,
    /// FORCE NOT NULL: no text stands for NULL.
    pub not_null: Vec<bool>,
    /// FORCE NULL: the text of NULL stands for NULL in quotes too.
    pub null: Vec<bool>,
}
