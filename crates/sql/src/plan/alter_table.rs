//! ALTER TABLE as it runs: a table, and actions in the order in which they are done.
//!
//! As in PostgreSQL the order is not that of the text: what is dropped goes first, be it a default, then types change, all
//! at once, columns come, they get their defaults and NOT NULL, and keys come last. So `add unique (a), add a int` is one
//! statement that works. Actions name columns, since an action before may have moved them.

use std::sync::Arc;

use crate::catalog::{ColumnCompression, ColumnDef, ColumnDefault, ColumnStorage, SchemaRef, TableDef};
use crate::expr::Expr;
use crate::foreign_key::{CheckTime, ReferentialAction};
use crate::plan::{Owner, TableMark};
use crate::sequence::{NewSequence, SequenceOptions};
use crate::value::DataType;

/// ALTER TABLE, or ALTER INDEX
#[derive(Debug, Clone)]
pub struct AlterTablePlan {
    /// The name as it is written.
    pub name: String,
    /// The table; `None` if there is none and that is no error (a notice tells).
    pub table: Option<Arc<TableDef>>,
    /// The actions.
    pub actions: Vec<TableAction>,
    /// The command tag.
    pub tag: &'static str,
}

/// A key to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// The primary key.
    pub primary: bool,
    /// NULLS NOT DISTINCT
    pub nulls_not_distinct: bool,
    /// DEFERRABLE, INITIALLY DEFERRED
    pub check_time: CheckTime,
    /// Its name, if one is given.
    pub name: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
}

/// A CHECK constraint to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheck {
    /// Its name, if one is given.
    pub name: Option<String>,
    /// The condition, as it is written.
    pub sql: String,
    /// False after NOT VALID.
    pub validated: bool,
}

/// The change of a column's type.
#[derive(Debug, Clone)]
pub struct TypeChange {
    /// The column.
    pub name: String,
    /// Its new type.
    pub data_type: DataType,
    /// The type's modifier.
    pub typmod: i32,
    /// The new value, of a row as it was before the statement; `None` if values are what they were.
    pub value: Option<Box<Expr>>,
    /// Its default, converted.
    pub default: Option<ColumnDefault>,
}

/// A key whose index is there.
#[derive(Debug, Clone)]
pub struct KeyUsingIndex {
    /// True for a primary key.
    pub primary: bool,
    /// DEFERRABLE, INITIALLY DEFERRED
    pub check_time: CheckTime,
    /// The constraint's name, which the index gets; `None`: that of the index.
    pub name: Option<String>,
    /// The index, in the table's schema.
    pub index: String,
}

/// A foreign key to be made.
#[derive(Debug, Clone)]
pub struct NewForeignKey {
    /// Its name, if one is given.
    pub name: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
    /// The referenced table; `None` is the table itself.
    pub parent: Option<Arc<TableDef>>,
    /// The referenced columns; none are those of the primary key.
    pub parent_columns: Vec<String>,
    /// MATCH FULL
    pub is_full: bool,
    /// ON DELETE
    pub on_delete: ReferentialAction,
    /// The columns of ON DELETE SET NULL or SET DEFAULT; none are all.
    pub on_delete_columns: Vec<String>,
    /// ON UPDATE
    pub on_update: ReferentialAction,
    /// DEFERRABLE, INITIALLY DEFERRED
    pub check_time: CheckTime,
    /// False after NOT VALID.
    pub validated: bool,
}

/// An action of ALTER TABLE.
#[derive(Debug, Clone)]
pub enum TableAction {
    /// DROP COLUMN
    DropColumn {
        /// The column.
        name: String,
        /// True if a missing one is no error.
        if_exists: bool,
        /// True if views over it go too.
        cascade: bool,
    },
    /// DROP CONSTRAINT
    DropConstraint {
        /// The constraint.
        name: String,
        /// True if a missing one is no error.
        if_exists: bool,
        /// True if views that need it go too.
        cascade: bool,
    },
    /// ALTER COLUMN … TYPE, of all columns of which the statement has it
    SetTypes(Vec<TypeChange>),
    /// ADD COLUMN
    AddColumn {
        /// The column.
        column: Box<ColumnDef>,
        /// True if there may be one of its name.
        if_not_exists: bool,
        /// The keys that it makes by itself.
        keys: Vec<NewKey>,
        /// Its CHECK constraints.
        checks: Vec<NewCheck>,
        /// Its foreign keys.
        foreign_keys: Vec<NewForeignKey>,
    },
    /// ALTER COLUMN … SET DEFAULT, DROP DEFAULT
    SetDefault {
        /// The column.
        name: String,
        /// The new default.
        default: Option<ColumnDefault>,
    },
    /// ALTER COLUMN … ADD GENERATED … AS IDENTITY
    AddIdentity {
        /// The column.
        name: String,
        /// GENERATED ALWAYS
        always: bool,
        /// Its sequence.
        sequence: Box<NewSequence>,
    },
    /// ALTER COLUMN … SET GENERATED, SET and RESTART of its sequence's options
    SetIdentity {
        /// The column.
        name: String,
        /// GENERATED ALWAYS, BY DEFAULT
        always: Option<bool>,
        /// The options.
        options: Box<SequenceOptions>,
    },
    /// ALTER COLUMN … DROP EXPRESSION
    DropExpression {
        /// The column.
        name: String,
        /// True if a column that is not generated is no error (a notice tells).
        if_exists: bool,
    },
    /// ALTER COLUMN … DROP IDENTITY
    DropIdentity {
        /// The column.
        name: String,
        /// True if a column that is no identity is no error (a notice tells).
        if_exists: bool,
    },
    /// ALTER COLUMN … SET NOT NULL, DROP NOT NULL
    SetNotNull {
        /// The column.
        name: String,
        /// SET
        not_null: bool,
    },
    /// ALTER COLUMN … SET STORAGE
    SetStorage {
        /// The column.
        name: String,
        /// The storage of its long values.
        storage: ColumnStorage,
    },
    /// ALTER COLUMN … SET COMPRESSION
    SetCompression {
        /// The column.
        name: String,
        /// The method.
        compression: ColumnCompression,
    },
    /// ADD PRIMARY KEY, ADD UNIQUE
    AddKey(NewKey),
    /// ADD PRIMARY KEY USING INDEX, ADD UNIQUE USING INDEX
    AddKeyUsingIndex(KeyUsingIndex),
    /// ADD CHECK
    AddCheck(NewCheck),
    /// ADD FOREIGN KEY
    AddForeignKey(Box<NewForeignKey>),
    /// VALIDATE CONSTRAINT
    ValidateConstraint(String),
    /// RENAME TO
    Rename(String),
    /// RENAME COLUMN
    RenameColumn {
        /// The column.
        from: String,
        /// Its new name.
        to: String,
    },
    /// RENAME CONSTRAINT
    RenameConstraint {
        /// The constraint.
        from: String,
        /// Its new name.
        to: String,
    },
    /// ALTER INDEX … RENAME
    RenameIndex {
        /// The index.
        from: String,
        /// Its new name.
        to: String,
    },
    /// OWNER TO
    Owner(Owner),
    /// SET SCHEMA
    SetSchema(SchemaRef),
    /// SET LOGGED, or SET UNLOGGED
    SetLogged(bool),
    /// OF a composite type of this number, or NOT OF
    OfType(Option<u32>),
    /// ALTER CONSTRAINT of a foreign key
    SetCheckTime {
        /// The constraint.
        name: String,
        /// Its new time of check.
        time: CheckTime,
    },
    /// An action that notes something.
    Mark(TableMark),
    /// SET and RESET of storage parameters; without a value: RESET.
    SetParameters(Vec<(String, Option<String>)>),
}

impl TableAction {
    /// The foreign keys that it makes.
    pub fn foreign_keys(&self) -> &[NewForeignKey] {
        match self {
            TableAction::AddColumn { foreign_keys, .. } => foreign_keys,
            TableAction::AddForeignKey(key) => std::slice::from_ref(&**key),
            _ => &[],
        }
    }

    /// Its turn among the actions of its statement.
    pub(crate) fn turn(&self) -> u8 {
        match self {
            TableAction::DropColumn { .. }
            | TableAction::DropConstraint { .. }
            | TableAction::SetDefault { default: None, .. }
            | TableAction::SetNotNull { not_null: false, .. }
            | TableAction::DropIdentity { .. }
            | TableAction::DropExpression { .. } => 0,
            TableAction::SetTypes(_) => 1,
            TableAction::AddColumn { .. } => 2,
            TableAction::SetDefault { .. }
            | TableAction::SetStorage { .. }
            | TableAction::SetCompression { .. }
            | TableAction::SetNotNull { .. } => 3,
            // Its column may be made NOT NULL by the same statement, as its options may be changed.
            TableAction::AddIdentity { .. }
            | TableAction::AddKey(_)
            | TableAction::AddKeyUsingIndex(_)
            | TableAction::AddCheck(_) => 4,
            TableAction::AddForeignKey(_) => 5,
            TableAction::SetIdentity { .. }
            | TableAction::Rename(_)
            | TableAction::RenameColumn { .. }
            | TableAction::RenameConstraint { .. }
            | TableAction::ValidateConstraint(_)
            | TableAction::RenameIndex { .. }
            | TableAction::Owner(_)
            | TableAction::SetSchema(_)
            | TableAction::SetLogged(_)
            | TableAction::OfType(_)
            | TableAction::SetCheckTime { .. }
            | TableAction::Mark(_)
            | TableAction::SetParameters(_) => 6,
        }
    }
}
