//! Definitions as the bytes of rows of the catalog heap.
//!
//! One row holds everything about a table: its columns, its indexes, the files of its sequences. A DDL statement is
//! then an insert, update or delete of one row, and is as atomic, durable and revocable as any row change. The format
//! is JSON with short names: definitions are read once at start, and a row one can read with `strings` has saved more
//! time than a compact one would.
//!
//! A row's first key tells its kind: `comment` one on an object, `schema` a schema, `role` a role, `member` a membership,
//! `user_type` a type ([`super::stored_type`]), any other a table.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::catalog::access::{Access, Acl, DefaultAclKey};
use crate::catalog::role::{Membership, Role};
use crate::catalog::row_format::{BYTES_MAX, FORMAT, check_format, damaged, is_false, is_public, public};
use crate::catalog::schema::{SchemaEntry, first_access};
use crate::catalog::stored_index::{StoredIndex, index_of, stored_index};
use crate::catalog::stored_roles::{self, RoleRow};
use crate::catalog::stored_type::{TYPE, decode_type};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::sequence::{SequenceDef, SequenceNumbers, SequenceOwner};
use clearway_sql::storage_parameters::StorageParameters;
use clearway_sql::value::DataType;
use clearway_sql::value::datetime::in_force::{self as date_times, DateTimeSettings};
use clearway_sql::value::text::{decode_text, to_text};
use clearway_sql::value::user_type::UserType;
use clearway_sql::view::{CheckOption, ConstraintUse, NamedTable, TextName, ViewDef, ViewUse};
use clearway_sql::{
    Attribute, CheckDef, CheckTime, ColumnCompression, ColumnDef, ColumnDefault, ColumnStorage,
    ForeignKeyDef, IndexStage, ObjectAddress, ReferentialAction, ReplicaIdentity, SchemaRef, TableDef,
    TableKind, UnfinishedIndex,
};

/// The beginning of a row that is a comment.
const COMMENT: &[u8] = b"{\"comment\":";

/// The beginning of a row that is a schema.
const SCHEMA: &[u8] = b"{\"schema\":";

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSchema {
    /// First: see [`SCHEMA`].
    schema: String,
    format: u32,
    oid: u32,
    /// Absent: as the schema has it first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access: Option<Access>,
    /// Of `public`, which is there where no row says otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    dropped: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredComment {
    /// First: see [`COMMENT`].
    comment: String,
    format: u32,
    catalog: u32,
    object: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    column: i32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredTable {
    format: u32,
    oid: u32,
    name: String,
    /// The schema's number.
    #[serde(default = "public", skip_serializing_if = "is_public")]
    schema: u32,
    rel: u32,
    /// The relation of the values that are stored apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    long: Option<u32>,
    /// Of definitions that have no list of parameters.
    #[serde(default = "whole_page", skip_serializing_if = "is_whole_page")]
    fillfactor: u8,
    /// Storage parameters with their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "is_false")]
    unlogged: bool,
    /// The number of a typed table's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of: Option<u32>,
    /// The letter of REPLICA IDENTITY, if not the default's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replica_identity: Option<char>,
    columns: Vec<StoredColumn>,
    /// Absent if the columns are its attributes in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<StoredAttribute>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<StoredIndex>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    checks: Vec<StoredCheck>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    foreign_keys: Vec<StoredForeignKey>,
    /// The relation that holds the statistics of the last ANALYZE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    statistics: Option<u32>,
    /// Of a view, whose `rel` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    view: Option<StoredView>,
    /// Of a sequence, which has no columns of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequence: Option<StoredSequence>,
    #[serde(default, skip_serializing_if = "Access::is_default")]
    access: Access,
}

/// The fill factor of a table that was given none.
fn whole_page() -> u8 {
    100
}

fn is_whole_page(fillfactor: &u8) -> bool {
    *fillfactor == whole_page()
}

/// A sequence's options, and the column that it belongs to.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSequence {
    r#type: u32,
    start: i64,
    increment: i64,
    min: i64,
    max: i64,
    cache: i64,
    #[serde(default, skip_serializing_if = "is_false")]
    cycle: bool,
    /// Table, attribute, and whether it is an identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<(u32, u16, bool)>,
}

fn stored_sequence(sequence: &SequenceDef) -> StoredSequence {
    let numbers = &sequence.numbers;
    StoredSequence {
        r#type: numbers.data_type.oid(),
        start: numbers.start,
        increment: numbers.increment,
        min: numbers.min,
        max: numbers.max,
        cache: numbers.cache,
        cycle: numbers.cycle,
        owner: sequence
            .owner
            .map(|owner| (owner.table, owner.attribute, owner.identity)),
    }
}

fn sequence_of(stored: &StoredSequence, rel: u32) -> Result<SequenceDef> {
    let data_type = DataType::from_oid(stored.r#type)
        .filter(|data_type| data_type.is_integer())
        .ok_or_else(|| damaged(format!("type {} of a sequence", stored.r#type)))?;
    if stored.increment == 0 || stored.cache < 1 || stored.min >= stored.max {
        return Err(damaged("a sequence that does not count"));
    }
    let owner = stored.owner.map(|(table, attribute, identity)| SequenceOwner {
        table,
        attribute,
        identity,
    });
    Ok(SequenceDef {
        rel,
        numbers: SequenceNumbers {
            data_type,
            start: stored.start,
            increment: stored.increment,
            min: stored.min,
            max: stored.max,
            cache: stored.cache,
            cycle: stored.cycle,
        },
        owner,
    })
}

/// A view's query, and what it uses; see [`clearway_sql::view`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredView {
    sql: String,
    /// Place, number and columns of each table that the text names.
    tables: Vec<(u32, u32, u16)>,
    /// Tables and columns.
    uses: Vec<(u32, u16)>,
    /// Tables and indexes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    constraints: Vec<(u32, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    barrier: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    invoker: Option<bool>,
    /// Tables, attributes and the names that the text has for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<(u32, u16, String)>,
    /// DateStyle and TimeZone that the text was written under, if not the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    date_times: Option<(String, String)>,
}

fn stored_view(view: &ViewDef) -> StoredView {
    let tables = view.tables.iter();
    StoredView {
        sql: view.sql.clone(),
        tables: tables
            .map(|named| (named.at, named.table, named.columns))
            .collect(),
        uses: view.uses.iter().map(|used| (used.table, used.column)).collect(),
        constraints: view
            .constraints
            .iter()
            .map(|used| (used.table, used.index))
            .collect(),
        names: view
            .names
            .iter()
            .map(|known| (known.table, known.column, known.name.clone()))
            .collect(),
        check: view.check.map(|check| check.word().to_owned()),
        barrier: view.barrier,
        invoker: view.invoker,
        date_times: view
            .date_times
            .as_ref()
            .map(|settings| (settings.date_style(), settings.zone.name().to_owned())),
    }
}

fn view_of(stored: StoredView) -> Result<ViewDef> {
    let check = match stored.check.as_deref() {
        None => None,
        Some("local") => Some(CheckOption::Local),
        Some("cascaded") => Some(CheckOption::Cascaded),
        Some(other) => return Err(damaged(format!("the check option {other}"))),
    };
    let tables = stored.tables.into_iter();
    let uses = stored.uses.into_iter();
    let constraints = stored.constraints.into_iter();
    Ok(ViewDef {
        sql: stored.sql,
        tables: tables
            .map(|(at, table, columns)| NamedTable { at, table, columns })
            .collect(),
        uses: uses.map(|(table, column)| ViewUse { table, column }).collect(),
        constraints: constraints
            .map(|(table, index)| ConstraintUse { table, index })
            .collect(),
        names: stored
            .names
            .into_iter()
            .map(|(table, column, name)| TextName { table, column, name })
            .collect(),
        check,
        barrier: stored.barrier,
        invoker: stored.invoker,
        date_times: match &stored.date_times {
            None => None,
            Some((style, zone)) => DateTimeSettings::of_shown(style, zone)
                .map_err(|_| damaged(format!("the time zone {zone} of a view")))?,
        },
    })
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredColumn {
    name: String,
    r#type: u32,
    #[serde(
        rename = "mod",
        default = "no_modifier",
        skip_serializing_if = "is_no_modifier"
    )]
    modifier: i32,
    #[serde(default, skip_serializing_if = "is_false")]
    not_null: bool,
    /// GENERATED ALWAYS
    #[serde(default, skip_serializing_if = "is_false")]
    always: bool,
    /// GENERATED BY DEFAULT AS IDENTITY
    #[serde(default, skip_serializing_if = "is_false")]
    identity: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default: Option<String>,
    /// The expression of a generated column.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    generated: Option<String>,
    /// The number of an identity's sequence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    numbers: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    collation: Option<Box<str>>,
    /// The letter of SET STORAGE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    storage: Option<char>,
    /// The word of SET COMPRESSION.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    compression: Option<String>,
    /// The number of SET STATISTICS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target: Option<u16>,
}

/// An attribute; see [`Attribute`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAttribute {
    /// Absent for a dropped one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    column: Option<u16>,
    r#type: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    segment: Option<u16>,
    /// The missing value as SQL writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
}

fn stored_attributes(table: &TableDef) -> Vec<StoredAttribute> {
    if !table.has_attributes() {
        return Vec::new();
    }
    let _as_kept = date_times::under(None);
    let attributes = table.attributes().into_iter();
    let stored = attributes.map(|attribute| StoredAttribute {
        column: attribute.column,
        r#type: match attribute.column {
            Some(_) => attribute.data_type.oid(),
            None => attribute.data_type.of_same_width().oid(),
        },
        segment: attribute.segment,
        missing: attribute.missing.as_ref().and_then(to_text),
    });
    stored.collect()
}

fn attribute_of(stored: &StoredAttribute, columns: usize) -> Result<Attribute> {
    let data_type = DataType::from_oid(stored.r#type)
        .ok_or_else(|| damaged(format!("type {} of an attribute", stored.r#type)))?;
    if stored.column.is_some_and(|column| usize::from(column) >= columns) {
        return Err(damaged("an attribute of a column that is not there"));
    }
    let missing = stored.missing.as_deref();
    let _as_kept = date_times::under(None);
    Ok(Attribute {
        column: stored.column,
        data_type,
        segment: stored.segment,
        missing: missing.map(|text| decode_text(text, data_type, 0)).transpose()?,
    })
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCheck {
    oid: u32,
    name: String,
    sql: String,
    /// Rows from before it may not satisfy it.
    #[serde(default, skip_serializing_if = "is_false")]
    not_valid: bool,
}

fn stored_check(check: &CheckDef) -> StoredCheck {
    StoredCheck {
        oid: check.oid,
        name: check.name.clone(),
        sql: check.sql.clone(),
        not_valid: !check.validated,
    }
}

fn check_of(stored: StoredCheck, table: &TableDef) -> Result<Arc<CheckDef>> {
    Ok(Arc::new(CheckDef {
        expr: clearway_sql::bind_check(&stored.sql, table)?,
        oid: stored.oid,
        name: stored.name,
        sql: stored.sql,
        validated: !stored.not_valid,
    }))
}

/// A foreign key; its columns are attributes' numbers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredForeignKey {
    oid: u32,
    name: String,
    columns: Vec<u16>,
    parent: u32,
    parent_columns: Vec<u16>,
    index: u32,
    /// MATCH FULL
    #[serde(default, skip_serializing_if = "is_false")]
    full: bool,
    /// The actions' letters.
    #[serde(default = "no_action", skip_serializing_if = "is_no_action")]
    on_delete: char,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    on_delete_columns: Vec<u16>,
    #[serde(default = "no_action", skip_serializing_if = "is_no_action")]
    on_update: char,
    #[serde(default, skip_serializing_if = "is_false")]
    deferrable: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    deferred: bool,
    /// Rows from before it may name no row.
    #[serde(default, skip_serializing_if = "is_false")]
    not_valid: bool,
}

fn stored_foreign_key(key: &ForeignKeyDef) -> StoredForeignKey {
    StoredForeignKey {
        oid: key.oid,
        name: key.name.clone(),
        columns: key.columns.clone(),
        parent: key.parent,
        parent_columns: key.parent_columns.clone(),
        index: key.index,
        full: key.is_full,
        on_delete: key.on_delete.letter(),
        on_delete_columns: key.on_delete_columns.clone(),
        on_update: key.on_update.letter(),
        deferrable: key.check_time.deferrable,
        deferred: key.check_time.initially_deferred,
        not_valid: !key.validated,
    }
}

fn foreign_key_of(stored: StoredForeignKey, table: &TableDef) -> Result<Arc<ForeignKeyDef>> {
    let action = |letter: char| {
        ReferentialAction::of_letter(letter)
            .ok_or_else(|| damaged(format!("action {letter} of foreign key \"{}\"", stored.name)))
    };
    let is_column = |number: &u16| table.column_of_attribute(*number).is_some();
    let own = stored.columns.iter().chain(&stored.on_delete_columns);
    if !own.into_iter().all(is_column) || stored.columns.len() != stored.parent_columns.len() {
        return Err(damaged(format!("columns of foreign key \"{}\"", stored.name)));
    }
    Ok(Arc::new(ForeignKeyDef {
        on_delete: action(stored.on_delete)?,
        on_update: action(stored.on_update)?,
        oid: stored.oid,
        name: stored.name,
        columns: stored.columns,
        parent: stored.parent,
        parent_columns: stored.parent_columns,
        index: stored.index,
        is_full: stored.full,
        on_delete_columns: stored.on_delete_columns,
        check_time: CheckTime {
            deferrable: stored.deferrable,
            initially_deferred: stored.deferred,
        },
        validated: !stored.not_valid,
    }))
}

fn no_action() -> char {
    ReferentialAction::NoAction.letter()
}

fn is_no_action(letter: &char) -> bool {
    *letter == no_action()
}

fn no_modifier() -> i32 {
    -1
}

fn is_no_modifier(modifier: &i32) -> bool {
    *modifier == -1
}

fn is_zero(value: &i32) -> bool {
    *value == 0
}

/// A row of the catalog heap.
#[derive(Debug, Clone)]
pub(crate) enum CatalogRow {
    /// The owner of the database, and who may do what with it.
    Database(Access),
    /// A list of ALTER DEFAULT PRIVILEGES.
    Defaults(DefaultAclKey, Acl),
    /// A role.
    Role(Role),
    /// A membership in a role.
    Member(Membership),
    /// A schema; its entry without a place.
    Schema(SchemaEntry),
    /// A type.
    Type(Arc<UserType>),
    /// A table.
    Table(Definition),
    /// A comment.
    Comment(Comment),
}

/// The object that a row of the catalog heap is about: no two rows that a snapshot sees have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum RowKey {
    /// The database.
    Database,
    /// The list of ALTER DEFAULT PRIVILEGES for these objects.
    Defaults(DefaultAclKey),
    /// The role of this number.
    Role(u32),
    /// The membership in this role of this member.
    Member(u32, u32),
    /// The schema of this number. Before tables, which are found in schemas.
    Schema(u32),
    /// The type of this number. Before the tables, whose columns have it.
    Type(u32),
    /// The table of this number.
    Table(u32),
    /// The comment on this object.
    Comment(ObjectAddress),
}

impl CatalogRow {
    /// The object that it is about.
    pub(crate) fn key(&self) -> RowKey {
        match self {
            CatalogRow::Database(_) => RowKey::Database,
            CatalogRow::Defaults(key, _) => RowKey::Defaults(*key),
            CatalogRow::Role(role) => RowKey::Role(role.oid),
            CatalogRow::Member(membership) => RowKey::Member(membership.pair.0, membership.pair.1),
            CatalogRow::Schema(entry) => RowKey::Schema(entry.schema.oid),
            CatalogRow::Type(found) => RowKey::Type(found.oid.get()),
            CatalogRow::Table(definition) => RowKey::Table(definition.table.oid),
            CatalogRow::Comment(comment) => RowKey::Comment(comment.on),
        }
    }
}

/// A comment on an object.
#[derive(Debug, Clone)]
pub(crate) struct Comment {
    pub(crate) on: ObjectAddress,
    pub(crate) text: String,
}

/// A definition and the relation of its statistics.
#[derive(Debug, Clone)]
pub(crate) struct Definition {
    pub(crate) table: Arc<TableDef>,
    pub(crate) statistics: Option<u32>,
    pub(crate) access: Arc<Access>,
}

/// Encodes a definition as a catalog row.
pub(crate) fn encode(definition: &Definition) -> Result<Vec<u8>> {
    let table = &definition.table;
    let rel = match (table.kind, &table.sequence) {
        (TableKind::Heap { rel }, _) => rel,
        (TableKind::View, _) => 0,
        (TableKind::Virtual, Some(sequence)) => sequence.rel,
        (TableKind::Virtual, None) => {
            return Err(EngineError::internal("a virtual table has no catalog row"));
        }
    };
    let columns = table
        .columns
        .iter()
        .filter(|_| table.sequence.is_none())
        .map(|column| StoredColumn {
            name: column.name.clone(),
            r#type: column.data_type.oid(),
            modifier: column.typmod,
            not_null: column.not_null,
            always: column.always_generated,
            identity: column.is_identity && !column.always_generated,
            default: match &column.default {
                Some(ColumnDefault::Expression { sql, .. }) => Some(sql.clone()),
                _ => None,
            },
            generated: match &column.default {
                Some(ColumnDefault::Generated { sql, .. }) => Some(sql.clone()),
                _ => None,
            },
            numbers: match column.default {
                Some(ColumnDefault::Identity(sequence)) => Some(sequence),
                _ => None,
            },
            collation: column.collation.clone(),
            storage: column.chosen_storage.map(ColumnStorage::letter),
            compression: match column.compression.is_default() {
                true => None,
                false => Some(column.compression.word().to_owned()),
            },
            target: column.statistics_target,
        })
        .collect();
    let indexes = table
        .indexes_and_stages()
        .map(|(index, stage)| stored_index(index, stage))
        .collect();
    let stored = StoredTable {
        format: FORMAT,
        oid: table.oid,
        name: table.name.clone(),
        schema: table.schema.oid,
        rel,
        long: table.long_rel,
        fillfactor: whole_page(),
        parameters: table
            .parameters
            .iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        unlogged: table.unlogged,
        of: table.of_type,
        replica_identity: (table.replica_identity != ReplicaIdentity::Default)
            .then(|| table.replica_identity.letter()),
        columns,
        attributes: stored_attributes(table),
        indexes,
        checks: table.checks.iter().map(|check| stored_check(check)).collect(),
        foreign_keys: table
            .foreign_keys
            .iter()
            .map(|key| stored_foreign_key(key))
            .collect(),
        statistics: definition.statistics,
        view: table.view.as_deref().map(stored_view),
        sequence: table.sequence.as_deref().map(stored_sequence),
        access: (*definition.access).clone(),
    };
    let bytes = serde_json::to_vec(&stored)
        .map_err(|error| EngineError::internal(format!("cannot encode a definition: {error}")))?;
    if bytes.len() > BYTES_MAX {
        return Err(EngineError::new(
            match table.kind {
                TableKind::View => SqlState::PROGRAM_LIMIT_EXCEEDED,
                _ => SqlState::TOO_MANY_COLUMNS,
            },
            match table.kind {
                TableKind::View => format!("the definition of view \"{}\" is too long", table.name),
                _ => format!("the definition of table \"{}\" is too long", table.name),
            },
        )
        .with_detail(format!(
            "It takes {} bytes; the limit is {BYTES_MAX}.",
            bytes.len()
        )));
    }
    Ok(bytes)
}

/// Encodes a schema as a catalog row.
pub(crate) fn encode_schema(entry: &SchemaEntry) -> Result<Vec<u8>> {
    let stored = StoredSchema {
        schema: entry.schema.name.to_string(),
        format: FORMAT,
        oid: entry.schema.oid,
        access: Some((*entry.access).clone()).filter(|access| *access != first_access(entry.schema.oid)),
        dropped: entry.is_dropped,
    };
    let bytes = serde_json::to_vec(&stored)
        .map_err(|error| EngineError::internal(format!("cannot encode a schema: {error}")))?;
    debug_assert!(bytes.starts_with(SCHEMA));
    Ok(bytes)
}

/// Encodes a comment as a catalog row.
pub(crate) fn encode_comment(comment: &Comment) -> Result<Vec<u8>> {
    let stored = StoredComment {
        comment: comment.text.clone(),
        format: FORMAT,
        catalog: comment.on.catalog,
        object: comment.on.object,
        column: comment.on.column,
    };
    let bytes = serde_json::to_vec(&stored)
        .map_err(|error| EngineError::internal(format!("cannot encode a comment: {error}")))?;
    if bytes.len() > BYTES_MAX {
        return Err(
            EngineError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "the comment is too long").with_detail(
                format!("It takes {} bytes; the limit is {BYTES_MAX}.", bytes.len()),
            ),
        );
    }
    debug_assert!(bytes.starts_with(COMMENT));
    Ok(bytes)
}

fn storage_of(letter: char) -> Result<ColumnStorage> {
    ColumnStorage::of_letter(letter).ok_or_else(|| damaged(format!("storage {letter} of a column")))
}

fn stage_of(word: &str) -> Result<IndexStage> {
    IndexStage::from_word(word).ok_or_else(|| damaged(format!("an index that is {word}")))
}

/// Decodes a catalog row.
pub(crate) fn decode(bytes: &[u8]) -> Result<CatalogRow> {
    if bytes.starts_with(COMMENT) {
        return decode_comment(bytes).map(CatalogRow::Comment);
    }
    if let Some(row) = stored_roles::decode(bytes).map_err(damaged)? {
        return Ok(match row {
            RoleRow::Database(access) => CatalogRow::Database(access),
            RoleRow::Role(role) => CatalogRow::Role(role),
            RoleRow::Defaults(key, acl) => CatalogRow::Defaults(key, acl),
            RoleRow::Member(membership) => CatalogRow::Member(membership),
        });
    }
    if bytes.starts_with(SCHEMA) {
        return decode_schema(bytes).map(CatalogRow::Schema);
    }
    if is_type(bytes) {
        return decode_type(bytes).map(CatalogRow::Type);
    }
    decode_table(bytes, Parts::All).map(CatalogRow::Table)
}

/// The table or view of a row as far as the type of its rows needs it: without expressions, which may name types that are not
/// known yet. `None` for any other row, and for a sequence.
pub(crate) fn decode_columns(bytes: &[u8]) -> Result<Option<Definition>> {
    let others: [&[u8]; 3] = [COMMENT, SCHEMA, TYPE];
    if others.iter().any(|other| bytes.starts_with(other))
        || stored_roles::decode(bytes).map_err(damaged)?.is_some()
    {
        return Ok(None);
    }
    let definition = decode_table(bytes, Parts::Columns)?;
    Ok(Some(definition).filter(|definition| definition.table.sequence.is_none()))
}

/// The parts of a table that are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    Columns,
    All,
}

/// True if a row is a type: it is decoded before the rows that may name it.
pub(crate) fn is_type(bytes: &[u8]) -> bool {
    bytes.starts_with(TYPE)
}

fn decode_schema(bytes: &[u8]) -> Result<SchemaEntry> {
    let stored: StoredSchema = serde_json::from_slice(bytes).map_err(damaged)?;
    check_format(stored.format)?;
    Ok(SchemaEntry {
        schema: SchemaRef::new(stored.oid, &stored.schema),
        tid: None,
        is_dropped: stored.dropped,
        access: Arc::new(stored.access.unwrap_or_else(|| first_access(stored.oid))),
    })
}

fn decode_comment(bytes: &[u8]) -> Result<Comment> {
    let stored: StoredComment = serde_json::from_slice(bytes).map_err(damaged)?;
    check_format(stored.format)?;
    Ok(Comment {
        on: ObjectAddress {
            catalog: stored.catalog,
            object: stored.object,
            column: stored.column,
        },
        text: stored.comment,
    })
}

fn decode_table(bytes: &[u8], parts: Parts) -> Result<Definition> {
    let stored: StoredTable = serde_json::from_slice(bytes).map_err(damaged)?;
    check_format(stored.format)?;
    let mut columns = Vec::with_capacity(stored.columns.len());
    let mut generated = Vec::new();
    for column in stored.columns {
        generated.extend(column.generated.map(|sql| (columns.len() as u16, sql)));
        let data_type = DataType::from_oid(column.r#type)
            .ok_or_else(|| damaged(format!("type {} of column \"{}\"", column.r#type, column.name)))?;
        let mut definition = ColumnDef::new(column.name, data_type);
        definition.typmod = column.modifier;
        definition.not_null = column.not_null;
        definition.collation = column.collation;
        definition.always_generated = column.always;
        definition.is_identity = column.always || column.identity;
        definition.statistics_target = column.target;
        definition.chosen_storage = column.storage.map(storage_of).transpose()?;
        if let Some(word) = column.compression {
            let known = ColumnCompression::of_word(&word);
            definition.compression =
                known.ok_or_else(|| damaged(format!("compression {word} of a column")))?;
        }
        definition.default = match (column.numbers, column.default) {
            (Some(sequence), _) => Some(ColumnDefault::Identity(sequence)),
            (None, Some(_)) if parts == Parts::Columns => None,
            (None, Some(sql)) => {
                let expr = clearway_sql::bind_default(&sql, data_type, column.modifier)?;
                Some(ColumnDefault::Expression { sql, expr })
            }
            (None, None) => None,
        };
        columns.push(definition);
    }
    let kind = match stored.view {
        Some(_) => TableKind::View,
        None => TableKind::Heap { rel: stored.rel },
    };
    let mut table = match &stored.sequence {
        Some(sequence) => TableDef::of_sequence(stored.oid, stored.name, sequence_of(sequence, stored.rel)?),
        None => TableDef::new(stored.oid, stored.name, kind, columns),
    };
    table.view = stored.view.map(view_of).transpose()?.map(Arc::new);
    let older =
        (stored.fillfactor != whole_page()).then(|| ("fillfactor".to_owned(), stored.fillfactor.to_string()));
    table.parameters = StorageParameters::stored(older.into_iter().chain(stored.parameters).collect());
    table.unlogged = stored.unlogged;
    table.of_type = stored.of;
    if let Some(letter) = stored.replica_identity {
        let known = ReplicaIdentity::of_letter(letter);
        table.replica_identity = known.ok_or_else(|| damaged(format!("replica identity {letter}")))?;
    }
    table.long_rel = stored.long;
    if !stored.attributes.is_empty() {
        let attributes = stored.attributes.iter();
        let attributes = attributes.map(|attribute| attribute_of(attribute, table.columns.len()));
        table.set_attributes(attributes.collect::<Result<_>>()?);
        if table.codec.column_count() != table.columns.len() {
            return Err(damaged("the attributes of a table are not those of its columns"));
        }
    }
    if stored.schema != SchemaRef::PUBLIC_OID {
        // The catalog has its name.
        table.schema = SchemaRef::new(stored.schema, "");
    }
    if parts == Parts::Columns {
        return Ok(Definition {
            table: Arc::new(table),
            statistics: None,
            access: Arc::new(stored.access),
        });
    }
    for index in stored.indexes {
        let stage = index.stage.as_deref().map(stage_of).transpose()?;
        let index = Arc::new(index_of(index, &table)?);
        match stage {
            None => table.indexes.push(index),
            Some(stage) => table.unfinished.push(UnfinishedIndex { index, stage }),
        }
    }
    for (place, sql) in generated {
        let expr = clearway_sql::bind_generated(&sql, &table, place)?;
        table.columns[usize::from(place)].default = Some(ColumnDefault::Generated { sql, expr });
    }
    let checks = stored.checks.into_iter();
    table.checks = checks
        .map(|check| check_of(check, &table))
        .collect::<Result<_>>()?;
    let keys = stored.foreign_keys.into_iter();
    table.foreign_keys = keys
        .map(|key| foreign_key_of(key, &table))
        .collect::<Result<_>>()?;
    Ok(Definition {
        table: Arc::new(table),
        statistics: stored.statistics,
        access: Arc::new(stored.access),
    })
}
