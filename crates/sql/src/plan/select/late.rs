//! Columns whose long values are restored late.
//!
//! A value beyond a page has its place in the row ([`crate::value::long`]). What is kept between a scan and the stage that
//! looks at the value (the table of a hash join, the records of a sort) keeps the place, of a few bytes, and the value is
//! restored behind that: it is in memory once, and not at all of a row that falls out in between.

use std::sync::Arc;

use crate::catalog::TableDef;

/// A column of a row that may hold the place of a long value.
#[derive(Debug, Clone)]
pub struct LateColumn {
    /// Its place in the row.
    pub at: u16,
    /// The table that it comes from.
    pub table: Arc<TableDef>,
    /// Its place in the table's row.
    pub column: u16,
}
