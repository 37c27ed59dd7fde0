//! The tables as binding and execution know them: shape, indexes, and the place of the rows.
//!
//! The catalog itself (how definitions are created and survive a restart) is elsewhere; this side only asks
//! through [`CatalogView`]. A definition never changes: a DDL statement makes a new one, and plans made with
//! the old one are made anew.

mod column_storage;
mod replica_identity;
mod unfinished;

use std::sync::{Arc, LazyLock};

use crate::error::{EngineError, Result, SqlState};
use crate::expr::Expr;
use crate::foreign_key::ForeignKeyDef;
use crate::index::IndexDef;
use crate::sequence::{NewSequence, SEQUENCE_COLUMNS, SequenceDef};
use crate::settings::PlannerSettings;
use crate::statistics::TableStatistics;
use crate::storage_parameters::StorageParameters;
use crate::value::{DataType, RowCodec, StoredAttribute, Value};
use crate::view::ViewDef;
pub use column_storage::{ColumnCompression, ColumnStorage};
pub use replica_identity::ReplicaIdentity;
pub use unfinished::{IndexStage, UnfinishedIndex};

/// The names of the columns that every table has by itself.
const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];

/// 42701 for a column's name that a system column has.
pub fn require_no_system_name(name: &str) -> Result<()> {
    match SYSTEM_COLUMNS.contains(&name) {
        true => Err(EngineError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column name \"{name}\" conflicts with a system column name"),
        )),
        false => Ok(()),
    }
}

/// The catalog in which a statement's names are looked up.
pub trait CatalogView {
    /// The table or virtual table of this (lower-case or quoted) name; `schema` is given when the name was qualified
    /// with one, and the search path leads to it otherwise.
    fn lookup_table(&self, schema: Option<&str>, name: &str) -> Option<Arc<TableDef>>;

    /// The table that the index of this name belongs to, if there is one.
    fn lookup_index(&self, schema: Option<&str>, name: &str) -> Option<Arc<TableDef>> {
        let _ = (schema, name);
        None
    }

    /// The table of this number.
    fn table_numbered(&self, oid: u32) -> Option<Arc<TableDef>> {
        let _ = oid;
        None
    }

    /// The tables with foreign keys that name rows of the table of this number, in the order of their numbers.
    fn referencing(&self, oid: u32) -> Vec<Arc<TableDef>> {
        let _ = oid;
        Vec::new()
    }

    /// The typed tables of a composite type, in the order of their numbers.
    fn tables_of_type(&self, of: u32) -> Vec<Arc<TableDef>> {
        let _ = of;
        Vec::new()
    }

    /// True if a name without a schema is looked for in this schema, and in `other` only afterwards if at all.
    fn is_searched_before(&self, schema: &SchemaRef, other: Option<&SchemaRef>) -> bool {
        let _ = other;
        schema.oid == SchemaRef::PUBLIC_OID
    }

    /// The schema of this name.
    fn schema(&self, name: &str) -> Option<SchemaRef> {
        (name == "public").then(SchemaRef::public)
    }

    /// 42501 if the role may not use the schema of this name.
    fn require_usage(&self, schema: &str) -> crate::error::Result<()> {
        let _ = schema;
        Ok(())
    }

    /// 42501 if the role may not create anything in a schema.
    fn require_create(&self, schema: &SchemaRef) -> crate::error::Result<()> {
        let _ = schema;
        Ok(())
    }

    /// The schema that a new relation goes to which is written without one: the first of the search path.
    fn creation_schema(&self) -> Option<SchemaRef> {
        Some(SchemaRef::public())
    }

    /// The schema that the session's temporary tables go to.
    fn temporary_schema(&self) -> Option<SchemaRef> {
        None
    }

    /// About how many rows a table has, if that is known.
    fn estimated_rows(&self, table: &TableDef) -> Option<u64> {
        let _ = table;
        None
    }

    /// The statistics of a table, if it was analyzed.
    fn statistics(&self, table: &TableDef) -> Option<Arc<TableStatistics>> {
        let _ = table;
        None
    }

    /// The settings that choose among plans.
    fn planner_settings(&self) -> PlannerSettings {
        PlannerSettings::default()
    }
}

/// A catalog without tables: enough for statements such as `select 1`.
pub struct EmptyCatalog;

impl CatalogView for EmptyCatalog {
    fn lookup_table(&self, _schema: Option<&str>, _name: &str) -> Option<Arc<TableDef>> {
        None
    }
}

/// A schema: its number, and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRef {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: Arc<str>,
}

impl SchemaRef {
    /// The number of the schema `public`.
    pub const PUBLIC_OID: u32 = 2_200;

    /// A schema of this number and name.
    pub fn new(oid: u32, name: &str) -> SchemaRef {
        SchemaRef {
            oid,
            name: name.into(),
        }
    }

    /// The numbers of the schemas of temporary tables begin here: no relation gets there.
    const TEMPORARY_OID_MIN: u32 = 0xC000_0000;

    /// The schema of the temporary tables of the session of this number.
    pub fn temporary(session: u32) -> SchemaRef {
        SchemaRef::new(
            SchemaRef::TEMPORARY_OID_MIN | session,
            &format!("pg_temp_{session}"),
        )
    }

    /// True for a schema of temporary tables.
    pub fn is_temporary(&self) -> bool {
        self.oid >= SchemaRef::TEMPORARY_OID_MIN
    }

    /// The schema `public`.
    pub fn public() -> SchemaRef {
        static NAME: LazyLock<Arc<str>> = LazyLock::new(|| "public".into());
        SchemaRef {
            oid: SchemaRef::PUBLIC_OID,
            name: Arc::clone(&NAME),
        }
    }
}

/// Table and index numbers begin here, as PostgreSQL's do for what users make.
pub const FIRST_OID: u32 = 16_384;

/// The source of a table's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableKind {
    /// A heap: the storage relation of this number.
    Heap {
        /// The relation's number.
        rel: u32,
    },
    /// Rows the engine makes up when asked; read only. The table's name says which.
    Virtual,
    /// The rows of a query ([`TableDef::view`]).
    View,
}

/// A table.
#[derive(Debug, Clone)]
pub struct TableDef {
    /// The table's own number, never used again for another.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Its schema.
    pub schema: SchemaRef,
    /// The source of its rows.
    pub kind: TableKind,
    /// Its columns, in order.
    pub columns: Vec<ColumnDef>,
    /// Its indexes, as far as statements read them.
    pub indexes: Vec<Arc<IndexDef>>,
    /// Those that are in the making, or on their way out.
    pub unfinished: Vec<UnfinishedIndex>,
    /// Its CHECK constraints, in the order of their names.
    pub checks: Vec<Arc<CheckDef>>,
    /// Its foreign keys, in the order of their numbers: so they are checked.
    pub foreign_keys: Vec<Arc<ForeignKeyDef>>,
    /// True if foreign keys name its rows; the catalog keeps it.
    pub is_referenced: bool,
    /// The layout of a row in bytes.
    pub codec: RowCodec,
    /// The storage relation of the values that are stored apart from their rows; `None` if no column has varying width.
    pub long_rel: Option<u32>,
    /// Its storage parameters.
    pub parameters: StorageParameters,
    /// True for an UNLOGGED table, which is logged like any other.
    pub unlogged: bool,
    /// The number of the composite type that a typed table has its columns from (CREATE TABLE … OF).
    pub of_type: Option<u32>,
    /// The columns by which a subscriber would find a changed row.
    pub replica_identity: ReplicaIdentity,
    /// The query, of a view.
    pub view: Option<Arc<ViewDef>>,
    /// The options, of a sequence: it is read like a table, and its kind is [`TableKind::Virtual`].
    pub sequence: Option<Arc<SequenceDef>>,
    /// Its attributes, in the order of their numbers, if they are not its columns in their order: some were dropped, or
    /// came later than rows.
    attributes: Vec<Attribute>,
}

/// An attribute of a table: a column, or what is left of one that was dropped. Its number is its place, from 1; numbers
/// never change and are never used again, while a column's place is that among the columns that there are.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The column's place; `None` once it is dropped.
    pub column: Option<u16>,
    /// The type.
    pub data_type: DataType,
    /// The segment of a row that it is in ([`RowCodec`]); `None` if rows have no place for it: it was dropped before the
    /// table was written anew.
    pub segment: Option<u16>,
    /// The value of a column in rows without its segment.
    pub missing: Option<Value>,
}

impl TableDef {
    /// A definition in `public`, whose row codec follows from the columns.
    pub fn new(oid: u32, name: impl Into<String>, kind: TableKind, columns: Vec<ColumnDef>) -> TableDef {
        let codec = RowCodec::new(columns.iter().map(|column| column.data_type));
        TableDef {
            oid,
            name: name.into(),
            schema: SchemaRef::public(),
            kind,
            columns,
            indexes: Vec::new(),
            unfinished: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            is_referenced: false,
            codec,
            long_rel: None,
            parameters: StorageParameters::default(),
            unlogged: false,
            of_type: None,
            replica_identity: ReplicaIdentity::Default,
            view: None,
            sequence: None,
            attributes: Vec::new(),
        }
    }

    /// A sequence in `public`.
    pub fn of_sequence(oid: u32, name: impl Into<String>, sequence: SequenceDef) -> TableDef {
        let columns = SEQUENCE_COLUMNS.into_iter().map(|(name, data_type)| ColumnDef {
            not_null: true,
            ..ColumnDef::new(name, data_type)
        });
        let mut table = TableDef::new(oid, name, TableKind::Virtual, columns.collect());
        table.sequence = Some(Arc::new(sequence));
        table
    }

    /// A table in the making, as its CHECK constraints see it.
    pub(crate) fn in_the_making(name: &str, columns: &[ColumnDef]) -> TableDef {
        TableDef::new(0, name, TableKind::Heap { rel: 0 }, columns.to_vec())
    }

    /// The number under which the catalog shows the table's long values.
    pub fn long_oid(&self) -> Option<u32> {
        Some(FIRST_OID + self.long_rel?)
    }

    /// The name under which the catalog shows them, in the schema `pg_toast`.
    pub fn long_name(&self) -> String {
        format!("pg_toast_{}", self.oid)
    }

    /// Its attributes, in the order of their numbers.
    pub fn attributes(&self) -> Vec<Attribute> {
        if !self.attributes.is_empty() {
            return self.attributes.clone();
        }
        let columns = (0..).zip(&self.columns);
        let attributes = columns.map(|(place, column)| Attribute {
            column: Some(place),
            data_type: column.data_type,
            segment: Some(0),
            missing: None,
        });
        attributes.collect()
    }

    /// Sets its attributes; the columns' types and the layout of rows follow from them.
    pub fn set_attributes(&mut self, attributes: Vec<Attribute>) {
        let stored = attributes.iter().filter_map(|attribute| {
            Some(StoredAttribute {
                data_type: attribute.data_type,
                column: attribute.column,
                segment: attribute.segment?,
                missing: attribute.missing.clone().unwrap_or(Value::Null),
            })
        });
        self.codec = RowCodec::of_attributes(&stored.collect::<Vec<_>>());
        let is_plain = |(place, attribute): (usize, &Attribute)| {
            attribute.column == Some(place as u16) && attribute.segment == Some(0)
        };
        self.attributes = match attributes.iter().enumerate().all(is_plain) {
            true => Vec::new(),
            false => attributes,
        };
    }

    /// The attribute's number of a column, from 1.
    pub fn attribute_number(&self, column: u16) -> u16 {
        let found = self
            .attributes
            .iter()
            .position(|attribute| attribute.column == Some(column));
        found.map_or(column, |place| place as u16) + 1
    }

    /// The column of an attribute's number; `None` if it is dropped or never was.
    pub fn column_of_attribute(&self, number: u16) -> Option<u16> {
        let place = usize::from(number.checked_sub(1)?);
        match self.attributes.is_empty() {
            true => (place < self.columns.len()).then_some(place as u16),
            false => self.attributes.get(place)?.column,
        }
    }

    /// Number of its attributes: the number of the last one.
    pub fn attribute_count(&self) -> usize {
        self.attributes.len().max(self.columns.len())
    }

    /// True if an attribute's number is not its column's place.
    pub fn has_attributes(&self) -> bool {
        !self.attributes.is_empty()
    }

    /// The columns that are made of others, with the expressions.
    pub fn generated(&self) -> impl Iterator<Item = (u16, &Expr)> {
        let columns = (0..).zip(&self.columns);
        columns.filter_map(|(place, column)| Some((place, column.generated()?)))
    }

    /// The number of the column of this name.
    pub fn column_number(&self, name: &str) -> Option<u16> {
        self.columns
            .iter()
            .position(|column| column.name == name)
            .map(|number| number as u16)
    }

    /// The primary key, if it has one.
    pub fn primary_key(&self) -> Option<&Arc<IndexDef>> {
        self.indexes.iter().find(|index| index.primary)
    }

    /// The indexes that a foreign key may lead to: their columns are the row's key.
    pub fn row_keys(&self) -> impl Iterator<Item = &Arc<IndexDef>> {
        let indexes = self.indexes.iter();
        indexes.filter(|index| index.unique && index.is_plain())
    }

    /// True if an UPDATE that assigns these columns may change the row's key, be it by a generated column: it locks the row
    /// against those that refer to it.
    pub fn may_change_row_key(&self, assigned: impl Iterator<Item = u16> + Clone) -> bool {
        let is_key = |column: u16| self.row_keys().any(|index| index.reads(column));
        let is_made_of = |expr: &Expr| {
            let mut reads = false;
            expr.walk(&mut |part| {
                if let Expr::Column(column) = part {
                    reads |= assigned.clone().any(|other| other == *column);
                }
            });
            reads
        };
        let mut generated = self.generated();
        assigned.clone().any(is_key) || generated.any(|(column, expr)| is_key(column) && is_made_of(expr))
    }

    /// True if an UPDATE that assigns these columns may change a key of an index, be it by a generated column.
    pub fn may_change_keys(&self, assigned: impl IntoIterator<Item = u16>) -> bool {
        let mut assigned = assigned.into_iter();
        assigned.any(|column| self.is_indexed(column))
            || self.generated().any(|(column, _)| self.is_indexed(column))
    }

    /// True if this column decides about an entry of any index.
    pub fn is_indexed(&self, column: u16) -> bool {
        self.all_indexes().any(|index| index.reads(column))
    }
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct ColumnDef {
    /// Its name.
    pub name: String,
    /// Its type.
    pub data_type: DataType,
    /// The type's modifier.
    pub typmod: i32,
    /// True if NULL is refused.
    pub not_null: bool,
    /// The value in an INSERT that leaves it out; NULL when absent.
    pub default: Option<ColumnDefault>,
    /// True if it takes its default only (`generated always as identity`). COPY may still give it a value, as in
    /// PostgreSQL.
    pub always_generated: bool,
    /// True if its numbers are an identity (`generated … as identity`), which has no default of its own, and not those of
    /// a serial column.
    pub is_identity: bool,
    /// The collation, if one was said that is not the type's; each compares bytes.
    pub collation: Option<Box<str>>,
    /// The storage that SET STORAGE has chosen; its type's if absent.
    pub chosen_storage: Option<ColumnStorage>,
    /// The method that SET COMPRESSION has chosen.
    pub compression: ColumnCompression,
    /// The statistics target that SET STATISTICS has chosen; the setting's if absent.
    pub statistics_target: Option<u16>,
}

impl ColumnDef {
    /// The storage of long values.
    pub fn storage(&self) -> ColumnStorage {
        self.chosen_storage
            .unwrap_or_else(|| ColumnStorage::of_type(self.data_type))
    }

    /// The expression that it is made of, if it is a generated column.
    pub fn generated(&self) -> Option<&Expr> {
        match &self.default {
            Some(ColumnDefault::Generated { expr, .. }) => Some(expr),
            _ => None,
        }
    }

    /// A nullable column without modifier or default.
    pub fn new(name: impl Into<String>, data_type: DataType) -> ColumnDef {
        ColumnDef {
            name: name.into(),
            data_type,
            typmod: -1,
            not_null: false,
            default: None,
            always_generated: false,
            is_identity: false,
            collation: None,
            chosen_storage: None,
            compression: ColumnCompression::Default,
            statistics_target: None,
        }
    }
}

/// A column's default.
#[derive(Debug, Clone)]
pub enum ColumnDefault {
    /// An expression, already converted to the column's type, beside the text it is kept as in the catalog
    /// (see [`crate::bind::bind_default`]).
    Expression {
        /// The text, in which relations are numbers ([`crate::relations_in`]).
        sql: String,
        /// The expression.
        expr: Expr,
    },
    /// The next number of the sequence of this number (`generated … as identity`).
    Identity(u32),
    /// An expression over the other columns of the row (`generated always as (…) stored`).
    Generated {
        /// The text, as PostgreSQL prints it; columns stand in it by their names.
        sql: String,
        /// The expression (see [`crate::bind::bind_generated`]).
        expr: Expr,
    },
    /// The next number of a sequence that is to be made with the column (`serial`, `generated … as identity`).
    NewSequence(Box<NewSequence>),
}

impl ColumnDefault {
    /// The relations that it names.
    pub fn relations(&self) -> Vec<u32> {
        match self {
            ColumnDefault::Expression { sql, .. } => crate::relations_in(sql),
            _ => Vec::new(),
        }
    }
}

/// A CHECK constraint of a table.
#[derive(Debug, Clone)]
pub struct CheckDef {
    /// Its own number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The condition as PostgreSQL prints it, with all parentheses; columns stand in it by their names.
    pub sql: String,
    /// The condition over a row of the table (see [`crate::bind::bind_check`]).
    pub expr: Expr,
    /// False after NOT VALID: it holds for rows that were stored since, and no other was looked at.
    pub validated: bool,
}

impl CheckDef {
    /// The columns that it reads, in the order of the condition.
    pub fn columns(&self) -> Vec<u16> {
        let mut columns = Vec::new();
        self.expr.walk(&mut |part| match part {
            Expr::Column(column) if !columns.contains(column) => columns.push(*column),
            _ => {}
        });
        columns
    }
}

impl ForeignKeyDef {
    /// The places of its columns in its table.
    pub fn places(&self, table: &TableDef) -> Vec<u16> {
        places(table, &self.columns)
    }

    /// The places of the referenced columns in their table.
    pub fn parent_places(&self, parent: &TableDef) -> Vec<u16> {
        places(parent, &self.parent_columns)
    }
}

/// The places of attributes that a constraint has: they are columns, since it goes with each of them.
fn places(table: &TableDef, attributes: &[u16]) -> Vec<u16> {
    let found = attributes.iter();
    found
        .filter_map(|number| table.column_of_attribute(*number))
        .collect()
}
