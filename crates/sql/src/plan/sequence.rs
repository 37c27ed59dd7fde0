//! CREATE, ALTER and DROP SEQUENCE as they run.

use std::sync::Arc;

use crate::catalog::{SchemaRef, TableDef};
use crate::plan::Owner;
use crate::sequence::SequenceOptions;

/// CREATE SEQUENCE
#[derive(Debug, Clone)]
pub struct CreateSequence {
    /// Its schema.
    pub schema: SchemaRef,
    /// UNLOGGED, which is shown and changes nothing here.
    pub unlogged: bool,
    /// Its name.
    pub name: String,
    /// True if an existing relation is no error (a notice tells).
    pub if_not_exists: bool,
    /// Its options.
    pub options: SequenceOptions,
    /// The column that it belongs to.
    pub owner: Option<SequenceColumn>,
}

/// A column that a sequence is to belong to.
#[derive(Debug, Clone)]
pub struct SequenceColumn {
    /// The table.
    pub table: Arc<TableDef>,
    /// The column's place.
    pub column: u16,
}

/// ALTER SEQUENCE
#[derive(Debug, Clone)]
pub struct AlterSequencePlan {
    /// The sequence's name.
    pub name: String,
    /// The sequence; `None` if there is none and that is no error (a notice tells).
    pub sequence: Option<Arc<TableDef>>,
    /// The change.
    pub change: SequenceChange,
    /// The command tag: a sequence may be said to be a table.
    pub tag: &'static str,
}

/// A change of a sequence.
#[derive(Debug, Clone)]
pub enum SequenceChange {
    /// Other options.
    Options {
        /// Those that are given.
        options: SequenceOptions,
        /// OWNED BY; the inner absent for NONE
        owner: Option<Option<SequenceColumn>>,
    },
    /// Another name.
    Rename(String),
    /// Another owner.
    Owner(Owner),
    /// Another schema.
    SetSchema(SchemaRef),
    /// SET LOGGED, or SET UNLOGGED
    SetLogged(bool),
}
