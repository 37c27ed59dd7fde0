//! Statements that change definitions.

use std::sync::Arc;

use crate::catalog::{ColumnDef, SchemaRef, TableDef};
use crate::foreign_key::CheckTime;
use crate::index::KeyOptions;
use crate::object_address::ObjectAddress;
use crate::plan::GrantPlan;
use crate::plan::SelectPlan;
use crate::plan::reindex::Reindex;
use crate::plan::{
    AlterSequencePlan, AlterTablePlan, CreateSequence, NewCheck, NewForeignKey, Owner, RoleStatement,
    TypeStatement,
};
use crate::storage_parameters::StorageParameters;
use crate::value::user_type::UserType;
use crate::view::ViewDef;

/// A statement that changes definitions.
#[derive(Debug, Clone)]
pub enum DefinitionStatement {
    /// CREATE TABLE
    CreateTable(Box<CreateTable>),
    /// CREATE TABLE … AS, SELECT INTO
    CreateTableAs(Box<CreateTableAs>),
    /// DROP TABLE
    DropTable {
        /// The tables; a name that does not exist has no definition.
        tables: Vec<(String, Option<Arc<TableDef>>)>,
        /// True if a missing table is no error (a notice tells).
        if_exists: bool,
        /// True if what depends on them goes as well.
        cascade: bool,
    },
    /// CREATE VIEW
    CreateView(Box<CreateViewPlan>),
    /// ALTER VIEW
    AlterView(Box<AlterViewPlan>),
    /// DROP VIEW
    DropView {
        /// The views; a name that does not exist has no definition.
        views: Vec<(String, Option<Arc<TableDef>>)>,
        /// True if a missing view is no error (a notice tells).
        if_exists: bool,
        /// True if what depends on them goes as well.
        cascade: bool,
    },
    /// CREATE SEQUENCE
    CreateSequence(Box<CreateSequence>),
    /// ALTER SEQUENCE
    AlterSequence(Box<AlterSequencePlan>),
    /// DROP SEQUENCE
    DropSequence {
        /// The sequences; a name that does not exist has no definition.
        sequences: Vec<(String, Option<Arc<TableDef>>)>,
        /// True if a missing sequence is no error (a notice tells).
        if_exists: bool,
        /// True if what depends on them goes as well.
        cascade: bool,
    },
    /// TRUNCATE
    Truncate {
        /// The tables.
        tables: Vec<Arc<TableDef>>,
        /// Those that CASCADE adds, since their rows name rows of the others.
        cascaded: Vec<Arc<TableDef>>,
        /// True if their sequences start again.
        restart_identity: bool,
    },
    /// CREATE INDEX
    CreateIndex(Box<CreateIndex>),
    /// DROP INDEX
    DropIndex {
        /// The indexes; one that does not exist has no table.
        indexes: Vec<(String, Option<Arc<TableDef>>)>,
        /// True if a missing index is no error (a notice tells).
        if_exists: bool,
        /// True if others go on to read and write meanwhile.
        concurrently: bool,
    },
    /// REINDEX
    Reindex(Box<Reindex>),
    /// ALTER TABLE, ALTER INDEX
    AlterTable(Box<AlterTablePlan>),
    /// CREATE SCHEMA
    CreateSchema {
        /// Its name; the owner's if there is none.
        name: Option<String>,
        /// AUTHORIZATION
        owner: Option<Owner>,
        /// True if an existing schema is no error (a notice tells).
        if_not_exists: bool,
        /// The statements in it, in the order in which they run.
        elements: Vec<String>,
    },
    /// ALTER SCHEMA … RENAME
    RenameSchema {
        /// Its name.
        name: String,
        /// Its name from now on.
        to: String,
    },
    /// ALTER SCHEMA … OWNER
    SchemaOwner {
        /// Its name.
        name: String,
        /// The owner.
        owner: Owner,
    },
    /// DROP SCHEMA
    DropSchema {
        /// The schemas' names.
        names: Vec<String>,
        /// True if a missing schema is no error (a notice tells).
        if_exists: bool,
        /// True if what is in them goes too.
        cascade: bool,
    },
    /// ALTER TABLE … SET (…), RESET (…)
    SetParameters {
        /// The table.
        table: Arc<TableDef>,
        /// Storage parameters with their new values; `None` for one that is reset.
        changes: Vec<(String, Option<String>)>,
    },
    /// COMMENT ON
    Comment(Box<CommentOn>),
    /// About roles
    Role(Box<RoleStatement>),
    /// GRANT, REVOKE
    Grant(Box<GrantPlan>),
    /// CREATE, ALTER or DROP TYPE
    Type(Box<TypeStatement>),
}

impl DefinitionStatement {
    /// As a refusal to write names it.
    pub fn written_name(&self) -> &'static str {
        match self {
            DefinitionStatement::CreateTableAs(create) if create.is_select_into => "SELECT INTO",
            DefinitionStatement::CreateTableAs(_) => "CREATE TABLE AS",
            other => other.tag(),
        }
    }

    /// The command tag; that of CREATE TABLE … AS is for one that has made rows.
    pub fn tag(&self) -> &'static str {
        match self {
            DefinitionStatement::CreateTable(_) => "CREATE TABLE",
            DefinitionStatement::CreateTableAs(create) if create.with_data || create.is_execute => "SELECT",
            DefinitionStatement::CreateTableAs(_) => "CREATE TABLE AS",
            DefinitionStatement::DropTable { .. } => "DROP TABLE",
            DefinitionStatement::CreateView(_) => "CREATE VIEW",
            DefinitionStatement::AlterView(_) => "ALTER VIEW",
            DefinitionStatement::DropView { .. } => "DROP VIEW",
            DefinitionStatement::CreateSequence(_) => "CREATE SEQUENCE",
            DefinitionStatement::AlterSequence(alter) => alter.tag,
            DefinitionStatement::DropSequence { .. } => "DROP SEQUENCE",
            DefinitionStatement::Type(statement) => statement.tag(),
            DefinitionStatement::Truncate { .. } => "TRUNCATE TABLE",
            DefinitionStatement::CreateIndex(_) => "CREATE INDEX",
            DefinitionStatement::CreateSchema { .. } => "CREATE SCHEMA",
            DefinitionStatement::RenameSchema { .. } | DefinitionStatement::SchemaOwner { .. } => {
                "ALTER SCHEMA"
            }
            DefinitionStatement::DropSchema { .. } => "DROP SCHEMA",
            DefinitionStatement::DropIndex { .. } => "DROP INDEX",
            DefinitionStatement::Reindex(_) => "REINDEX",
            DefinitionStatement::AlterTable(alter) => alter.tag,
            DefinitionStatement::SetParameters { .. } => "ALTER TABLE",
            DefinitionStatement::Comment(_) => "COMMENT",
            DefinitionStatement::Role(role) => role.tag(),
            DefinitionStatement::Grant(grant) => grant.tag(),
        }
    }
}

/// CREATE TABLE
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// Its schema; it is temporary if that is.
    pub schema: SchemaRef,
    /// Its fate at a commit.
    pub on_commit: OnCommit,
    /// Its name.
    pub name: String,
    /// True if an existing table is no error (a notice tells).
    pub if_not_exists: bool,
    /// The number of the composite type that it has its columns from, of a typed table.
    pub of_type: Option<u32>,
    /// Its columns; those of a primary key are NOT NULL already.
    pub columns: Vec<ColumnDef>,
    /// The indexes that PRIMARY KEY and UNIQUE ask for.
    pub indexes: Vec<IndexSpec>,
    /// Its CHECK constraints.
    pub checks: Vec<NewCheck>,
    /// Its foreign keys.
    pub foreign_keys: Vec<NewForeignKey>,
    /// WITH (…)
    pub parameters: StorageParameters,
    /// UNLOGGED
    pub unlogged: bool,
    /// Comments that it takes over from other relations.
    pub comments: Vec<TakenComment>,
}

/// A comment that a new table takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenComment {
    /// The object that has it.
    pub from: ObjectAddress,
    /// The part of the new table that gets it.
    pub to: TablePart,
}

/// A part of a table that may have a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablePart {
    /// A column, by its place.
    Column(u16),
    /// An index, by its place.
    Index(u16),
    /// The constraint that an index enforces, by the index's place.
    Constraint(u16),
    /// A CHECK constraint, by its place in the statement.
    Check(u16),
}

/// CREATE VIEW
#[derive(Debug, Clone)]
pub struct CreateViewPlan {
    /// Its schema.
    pub schema: SchemaRef,
    /// Its name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnDef>,
    /// Its query.
    pub view: Arc<ViewDef>,
    /// The view that it replaces.
    pub replaced: Option<Arc<TableDef>>,
    /// True if it is temporary because it reads a temporary table (a notice tells).
    pub made_temporary: bool,
}

/// ALTER VIEW
#[derive(Debug, Clone)]
pub struct AlterViewPlan {
    /// The view's name.
    pub name: String,
    /// The view; `None` if there is none and that is no error (a notice tells).
    pub view: Option<Arc<TableDef>>,
    /// The change.
    pub change: ViewChange,
}

/// A change of a view.
#[derive(Debug, Clone)]
pub enum ViewChange {
    /// Another name.
    Rename(String),
    /// Another name of a column.
    RenameColumn {
        /// The column.
        column: u16,
        /// Its new name.
        name: String,
    },
    /// Other options.
    Define(Arc<ViewDef>),
    /// Another owner.
    Owner(Owner),
}

/// COMMENT ON
#[derive(Debug, Clone)]
pub struct CommentOn {
    /// The object.
    pub on: Commented,
    /// The comment; `None` takes it away.
    pub text: Option<String>,
}

/// The object of a comment.
#[derive(Debug, Clone)]
pub enum Commented {
    /// A relation or a part of one.
    Object(ObjectAddress),
    /// A type that a user has made, or a constraint of it if it is a domain, at this address.
    Type(Arc<UserType>, ObjectAddress),
    /// The schema of this name.
    Schema(String),
    /// The database of this name.
    Database(String),
    /// The role of this name.
    Role(String),
}

/// CREATE TABLE … AS, or SELECT INTO
#[derive(Debug, Clone)]
pub struct CreateTableAs {
    /// The table.
    pub create: CreateTable,
    /// Its rows.
    pub select: Box<SelectPlan>,
    /// False if it is made without them.
    pub with_data: bool,
    /// Written SELECT INTO.
    pub is_select_into: bool,
    /// Written AS EXECUTE.
    pub is_execute: bool,
}

/// The table that the rows of a query go to, as CREATE TABLE … AS and SELECT INTO name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntoTable {
    /// The schema that is written.
    pub schema: Option<String>,
    /// Its name.
    pub name: String,
    /// The place of the name in the message.
    pub position: u32,
    /// TEMPORARY
    pub temporary: bool,
    /// UNLOGGED
    pub unlogged: bool,
    /// ON COMMIT
    pub on_commit: Option<OnCommit>,
    /// True if an existing table is no error (a notice tells).
    pub if_not_exists: bool,
    /// Names for its first columns.
    pub columns: Vec<String>,
    /// WITH (…)
    pub parameters: StorageParameters,
    /// False after WITH NO DATA.
    pub with_data: bool,
    /// Written SELECT INTO.
    pub is_select_into: bool,
    /// Written AS EXECUTE.
    pub is_execute: bool,
}

impl Default for IntoTable {
    fn default() -> IntoTable {
        IntoTable {
            schema: None,
            name: String::new(),
            position: 0,
            temporary: false,
            unlogged: false,
            on_commit: None,
            if_not_exists: false,
            columns: Vec::new(),
            parameters: StorageParameters::default(),
            with_data: true,
            is_select_into: false,
            is_execute: false,
        }
    }
}

/// Fate of a temporary table at a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnCommit {
    /// It stays as it is.
    PreserveRows,
    /// Its rows go.
    DeleteRows,
    /// It goes.
    Drop,
}

/// An index to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSpec {
    /// Its name (made up by PostgreSQL's rule when none was given).
    pub name: String,
    /// Unique.
    pub unique: bool,
    /// NULLS NOT DISTINCT
    pub nulls_not_distinct: bool,
    /// The primary key.
    pub primary: bool,
    /// Made by a constraint.
    pub constraint: bool,
    /// DEFERRABLE, INITIALLY DEFERRED, of the constraint.
    pub check_time: CheckTime,
    /// The parts of its key, in order.
    pub keys: Vec<NewIndexKey>,
    /// The columns of INCLUDE.
    pub included: Vec<u16>,
    /// Its predicate, as it was written.
    pub predicate: Option<String>,
}

impl IndexSpec {
    /// That of PRIMARY KEY or UNIQUE over these columns.
    pub fn of_constraint(name: String, columns: impl IntoIterator<Item = u16>, primary: bool) -> IndexSpec {
        let keys = columns.into_iter().map(|column| NewIndexKey {
            value: NewIndexedValue::Column(column),
            options: KeyOptions::default(),
        });
        IndexSpec {
            name,
            unique: true,
            nulls_not_distinct: false,
            primary,
            constraint: true,
            check_time: CheckTime::default(),
            keys: keys.collect(),
            included: Vec::new(),
            predicate: None,
        }
    }

    /// The same with NULLS NOT DISTINCT, if that is said.
    pub fn with_nulls_not_distinct(self, nulls_not_distinct: bool) -> IndexSpec {
        IndexSpec {
            nulls_not_distinct,
            ..self
        }
    }

    /// The same, checked at this time.
    pub fn checked_at(self, check_time: CheckTime) -> IndexSpec {
        IndexSpec { check_time, ..self }
    }
}

/// A part of the key of an index to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewIndexKey {
    /// Its value.
    pub value: NewIndexedValue,
    /// The rest of what the statement says of it.
    pub options: KeyOptions,
}

/// The value of a part of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewIndexedValue {
    /// That of the column of this number.
    Column(u16),
    /// That of an expression, as it was written.
    Expression(String),
}

/// CREATE INDEX, or the index of a key that ALTER TABLE adds
#[derive(Debug, Clone)]
pub struct CreateIndex {
    /// The table.
    pub table: Arc<TableDef>,
    /// The index.
    pub index: IndexSpec,
    /// True if an existing index is no error (a notice tells).
    pub if_not_exists: bool,
    /// True if others go on to write meanwhile.
    pub concurrently: bool,
    /// USING hash: the index is a B+tree all the same (a notice tells).
    pub asks_for_hash: bool,
}
