//! The facts of the catalog that functions ask for: names and numbers of relations, definitions as text, sizes,
//! sequences.

use std::net::SocketAddr;

use crate::error::{EngineError, Result, SqlState};
use crate::object_address::ObjectAddress;
use crate::value::CatalogObject;

/// The name of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationName {
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its letter in `pg_class.relkind`.
    pub kind: char,
}

/// The sizes of a relation in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelationBytes {
    /// The relation itself.
    pub own: i64,
    /// Its indexes.
    pub indexes: i64,
    /// The values that are stored apart from its rows.
    pub long_values: i64,
}

/// A type's number and its name in the catalog.
pub type TypeName = (u32, &'static str);

/// The types of a function's arguments and of its result; true if it returns a set.
pub type FunctionTypes = (Vec<TypeName>, TypeName, bool);

/// A side of a session's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionSide {
    /// The client's
    Client,
    /// The server's
    Server,
}

/// The object of a privilege.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivilegeOn {
    /// A relation.
    Relation(u32),
    /// A column of a relation, by its attribute's number.
    Column(u32, i16),
    /// At least one column of a relation.
    AnyColumn(u32),
    /// A schema.
    Schema(u32),
    /// The database.
    Database,
    /// Membership in a role: `usage` of its privileges, or being a `member`.
    Role(u32),
}

/// A statistic of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableStatistic {
    /// The time of the last VACUUM.
    LastVacuum,
    /// The time of the last vacuum by the server itself.
    LastAutovacuum,
    /// The time of the last ANALYZE.
    LastAnalyze,
    /// The time of the last analysis by the server itself.
    LastAutoanalyze,
    /// The number of VACUUMs.
    Vacuums,
    /// The number of vacuums by the server itself.
    Autovacuums,
    /// The number of ANALYZEs.
    Analyzes,
    /// The number of analyses by the server itself.
    Autoanalyzes,
    /// Rows that are live, about.
    LiveRows,
    /// Versions of rows that are dead and not removed, about.
    DeadRows,
    /// Rows changed since the last ANALYZE, about.
    ChangedRows,
    /// Rows inserted by transactions that committed.
    Inserted,
    /// Rows updated by transactions that committed.
    Updated,
    /// Rows deleted by transactions that committed.
    Deleted,
    /// Scans of the whole table that were begun.
    Scans,
}

/// The order of a key's part in an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexOrder {
    /// DESC
    pub descending: bool,
    /// NULLS FIRST
    pub nulls_first: bool,
}

/// The catalog as functions see it.
pub trait CatalogFacts {
    /// The number of the relation of this name, looked for along the search path if no schema is given.
    fn relation_oid(&self, schema: Option<&str>, name: &str) -> Option<u32>;
    /// The number of the schema of this name.
    fn schema_oid(&self, name: &str) -> Option<u32>;
    /// The name of the schema of this number.
    fn schema_name(&self, oid: u32) -> Option<String>;
    /// The schemas of the search path that there are, in its order; with those that it need not name, if that is asked
    /// for.
    fn schemas_on_path(&self, with_implicit: bool) -> Vec<String>;
    /// The number of the schema of the session's temporary tables; 0 if it has none.
    fn temporary_schema(&self) -> u32;
    /// The relation of this number.
    fn relation(&self, oid: u32) -> Option<RelationName>;
    /// The number of another object of this name, as `regproc` and its kin read it: of operators the symbol, and of what
    /// has arguments all of the text.
    fn object_oid(&self, _kind: CatalogObject, _schema: Option<&str>, _name: &str) -> Option<u32> {
        None
    }
    /// The number of the role of this name.
    fn role_named(&self, name: &str) -> Option<u32>;
    /// The name of the role of this number.
    fn role_name(&self, oid: u32) -> Option<String>;
    /// True if a role (0: all roles) has a privilege, in lower case, on an object; with `option` the right to grant it.
    fn has_privilege(&self, role: u32, on: PrivilegeOn, privilege: &str, option: bool) -> bool;
    /// True if several functions or operators have this name.
    fn names_several(&self, _kind: CatalogObject, _name: &str) -> bool {
        false
    }
    /// The name of another object, as `regproc` and its kin show it: in quotes and with its schema where that is needed.
    fn object_name(&self, _kind: CatalogObject, _oid: u32) -> Option<String> {
        None
    }
    /// The number of the column of this name, counted from 1; the columns of a relation that there is not are none.
    fn column_number(&self, relation: u32, name: &str) -> Option<i16>;
    /// True if a relation has a column of this number that is not dropped. Those of the system have negative numbers.
    fn has_column(&self, relation: u32, number: i16) -> bool;
    /// The statement that would make an index, or the name of one of its columns, counted from 1; without the schema of
    /// the table only if that is not asked for and the table is found without.
    fn index_definition(&self, oid: u32, column: i32, with_schema: bool) -> Option<String>;
    /// The constraint of this number as in CREATE TABLE.
    fn constraint_definition(&self, oid: u32, pretty: bool) -> Option<String>;
    /// The name of the sequence that belongs to a column.
    fn sequence_of(&self, relation: u32, column: i16) -> Option<String>;
    /// The query of the view of this number, as text; the bool is true for the form with few parentheses.
    fn view_definition(&self, oid: u32, pretty: bool) -> Result<Option<String>>;
    /// The rule of this number, as text.
    fn rule_definition(&self, oid: u32, pretty: bool) -> Result<Option<String>>;
    /// The comment on an object.
    fn comment(&self, on: ObjectAddress) -> Option<String>;
    /// The comment on the object of this number, whatever catalog has it; of those that no other database shares.
    fn any_comment(&self, object: u32) -> Option<String>;
    /// The types of a function's arguments and of its result, with their names in the catalog; true if it returns a set.
    fn function_types(&self, oid: u32) -> Option<FunctionTypes>;
    /// A statistic of a table; `None` for one that is not kept, or of what is no table.
    fn table_statistic(&self, oid: u32, what: TableStatistic) -> Option<i64>;
    /// The number that the next transaction gets.
    fn next_transaction(&self) -> u64;
    /// The columns of an index: the order of those of its key, `None` for one of INCLUDE.
    fn index_order(&self, oid: u32) -> Option<Vec<Option<IndexOrder>>>;
    /// A default, generated column or predicate of a relation, whose text is given as the catalog has it, without the
    /// parentheses that precedence makes needless; `None` if the relation has none of this text.
    fn pretty_expression(&self, relation: u32, text: &str) -> Option<String>;
    /// The sizes of a relation.
    fn relation_bytes(&self, oid: u32) -> Option<RelationBytes>;
    /// The sizes of all relations together.
    fn database_bytes(&self) -> i64;
    /// The next number of a sequence.
    fn next_value(&self, sequence: u32) -> Result<i64>;
    /// Makes this the number that a sequence has given last, or the one that it gives next.
    fn set_value(&self, sequence: u32, value: i64, is_called: bool) -> Result<i64>;
    /// The number that the session has got last from a sequence, or from any.
    fn current_value(&self, sequence: Option<u32>) -> Result<i64>;
    /// The number that a sequence has given last; `None` if it has given none.
    fn sequence_last_value(&self, sequence: u32) -> Result<Option<i64>>;
    /// The start of the server, as a timestamptz value.
    fn server_start(&self) -> i64;
    /// The time at which the configuration was read last, as a timestamptz value.
    fn configuration_load(&self) -> i64;
    /// The address and port of one side of the session's connection; `None` over a Unix-domain socket.
    fn connection_address(&self, side: ConnectionSide) -> Option<SocketAddr>;
}

impl dyn CatalogFacts + '_ {
    /// True if the name of this relation alone leads to it.
    pub fn is_visible(&self, oid: u32, name: &str) -> bool {
        self.relation_oid(None, name) == Some(oid)
    }
}

/// 42P01 for a relation that there is not.
pub fn no_relation(name: &str) -> EngineError {
    EngineError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{name}\" does not exist"),
    )
}
