//! Uses of tables by a statement, for those who check privileges.

use std::sync::Arc;

use crate::catalog::TableDef;

/// The use of a table or a view by a statement.
#[derive(Debug, Clone)]
pub struct TableAccess {
    /// The table.
    pub table: Arc<TableDef>,
    /// The view in whose query the table stands: its owner has to have the privileges. Absent for what the statement names.
    pub view: Option<u32>,
    /// True if FROM names it: it is read, though perhaps no column of it.
    pub is_read: bool,
    /// True if rows are inserted.
    pub inserts: bool,
    /// True if rows are updated, or locked.
    pub updates: bool,
    /// True if rows are deleted.
    pub deletes: bool,
    /// True if it is changed through a view above it: all columns count, since those of the view are not followed.
    pub whole: bool,
    /// The attributes that are read, given a value by INSERT, and by UPDATE.
    pub selected: Vec<u16>,
    /// See [`selected`](Self::selected).
    pub inserted: Vec<u16>,
    /// See [`selected`](Self::selected).
    pub updated: Vec<u16>,
}
