//! REINDEX.

use std::sync::Arc;

use crate::catalog::{SchemaRef, TableDef};

/// REINDEX, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReindexAsRead<N> {
    /// The objects whose indexes are made anew.
    pub kind: ReindexKind,
    /// Their name.
    pub name: N,
    /// VERBOSE
    pub verbose: bool,
    /// CONCURRENTLY
    pub concurrently: bool,
}

/// The kind of object that REINDEX names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReindexKind {
    /// One index
    Index,
    /// All of a table
    Table,
    /// Those of all tables in a schema
    Schema,
    /// Those of all tables
    Database,
    /// Those of the system's tables
    System,
}

/// REINDEX
#[derive(Debug, Clone)]
pub struct Reindex {
    /// The indexes.
    pub target: ReindexTarget,
    /// True if a message tells of each index.
    pub verbose: bool,
    /// True if others go on to read and write meanwhile.
    pub concurrently: bool,
}

/// The indexes that are made anew.
#[derive(Debug, Clone)]
pub enum ReindexTarget {
    /// One of a table
    Index {
        /// The table.
        table: Arc<TableDef>,
        /// The index's number.
        index: u32,
    },
    /// All of a table
    Table(Arc<TableDef>),
    /// All of a schema
    Schema(SchemaRef),
    /// All of the database of this name, which is the session's or an error
    Database(String),
    /// All of the system's tables, which have none, of the database of this name
    System(String),
}

impl Reindex {
    /// The statement's name, if it cannot run in a transaction that other statements belong to.
    pub fn outside_transactions_only(&self) -> Option<&'static str> {
        match self.target {
            ReindexTarget::Schema(_) => Some("REINDEX SCHEMA"),
            ReindexTarget::Database(_) => Some("REINDEX DATABASE"),
            ReindexTarget::System(_) => Some("REINDEX SYSTEM"),
            ReindexTarget::Index { .. } | ReindexTarget::Table(_) => {
                self.concurrently.then_some("REINDEX CONCURRENTLY")
            }
        }
    }

    /// True if it is one step of a transaction.
    pub fn is_one_step(&self) -> bool {
        self.outside_transactions_only().is_none()
    }
}
