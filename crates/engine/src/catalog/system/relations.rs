//! `pg_class`, and the views that list tables and indexes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use clearway_storage::RelId;

use super::Sources;
use super::definition_text::index_definition;
use super::operator_classes::{BTREE_OID, HEAP_OID};
use super::rows::{FIRST_MULTIXACT, NULL, Rows, boolean, frozen, int2, int4, oid, text, texts};
use super::server::USER_OID;
use super::shape::Schema;
use super::{SYSTEM_TABLES, SystemTable};
use crate::catalog::TableEntry;
use clearway_sql::TableDef;
use clearway_sql::value::Value;
use clearway_sql::value::user_type::{CompositeType, ROW_TYPE_OFFSET, UserType};

/// A row of `pg_class`, as far as rows differ.
struct Relation<'a> {
    oid: u32,
    name: &'a str,
    /// The type of its rows, or 0.
    row_type: u32,
    /// The type that a typed table has its columns from, or 0.
    of_type: u32,
    schema: u32,
    persistence: &'static str,
    kind: &'static str,
    access_method: u32,
    file: u32,
    pages: u32,
    rows: f32,
    has_index: bool,
    has_rules: bool,
    has_triggers: bool,
    columns: usize,
    checks: usize,
    identity: char,
    options: Value,
    /// The number of its long values, or 0.
    long_values: u32,
}

impl Relation<'_> {
    fn push(self, sources: &Sources<'_>, rows: &mut Rows) {
        let entry = sources.catalog.table(self.oid);
        // Only what has rows has transactions in it.
        let (frozen, minmxid) = match self.kind {
            "r" => (frozen(sources.storage), FIRST_MULTIXACT),
            _ => (Value::Oid(0), Value::Oid(0)),
        };
        rows.push([
            ("oid", oid(self.oid)),
            ("relname", text(self.name)),
            ("relnamespace", oid(self.schema)),
            ("reltype", oid(self.row_type)),
            ("reloftype", oid(self.of_type)),
            ("relowner", oid(sources.owner_of(self.oid))),
            ("relam", oid(self.access_method)),
            ("relfilenode", oid(self.file)),
            ("reltablespace", oid(0)),
            ("relpages", int4(self.pages.cast_signed())),
            ("reltuples", Value::Float4(self.rows)),
            ("relallvisible", int4(0)),
            ("reltoastrelid", oid(self.long_values)),
            ("relhasindex", boolean(self.has_index)),
            ("relisshared", boolean(false)),
            ("relpersistence", text(self.persistence)),
            ("relkind", text(self.kind)),
            ("relnatts", int2(self.columns as i16)),
            ("relchecks", int2(self.checks as i16)),
            ("relhasrules", boolean(self.has_rules)),
            ("relhastriggers", boolean(self.has_triggers)),
            ("relhassubclass", boolean(false)),
            ("relrowsecurity", boolean(false)),
            ("relforcerowsecurity", boolean(false)),
            ("relispopulated", boolean(true)),
            ("relreplident", Value::text(self.identity.to_string())),
            ("relispartition", boolean(false)),
            ("relrewrite", oid(0)),
            ("relfrozenxid", frozen),
            ("relminmxid", minmxid),
            (
                "relacl",
                sources.acl(entry.and_then(|entry| entry.access.acl.as_ref())),
            ),
            ("reloptions", self.options),
            ("relpartbound", NULL),
        ]);
    }
}

/// `pg_class`
pub(super) fn classes(sources: &Sources<'_>, rows: &mut Rows) {
    for table in SYSTEM_TABLES.iter() {
        of_system(table).push(sources, rows);
    }
    for entry in sources.catalog.tables() {
        of_table(sources, &entry, rows);
    }
    for entry in sources.catalog.sequences() {
        of_sequence(&entry).push(sources, rows);
    }
    for entry in sources.catalog.views() {
        of_view(&entry.def).push(sources, rows);
    }
    for found in sources.catalog.user_types() {
        if let Some(composite) = found.composite() {
            of_composite(&found, composite).push(sources, rows);
        }
    }
}

/// A composite type, whose fields `pg_attribute` has as those of a relation.
fn of_composite<'t>(found: &'t UserType, composite: &CompositeType) -> Relation<'t> {
    Relation {
        oid: found.oid.get(),
        name: &found.name,
        row_type: found.oid.get(),
        of_type: 0,
        schema: found.schema_oid,
        persistence: "p",
        kind: "c",
        access_method: 0,
        long_values: 0,
        file: 0,
        pages: 0,
        rows: 0.0,
        has_index: false,
        has_rules: false,
        has_triggers: false,
        columns: composite.fields.len(),
        checks: 0,
        identity: 'n',
        options: NULL,
    }
}

fn of_view(view: &TableDef) -> Relation<'_> {
    let options = view.view.as_ref().map(|view| view.options()).unwrap_or_default();
    Relation {
        oid: view.oid,
        name: &view.name,
        row_type: view.oid + ROW_TYPE_OFFSET,
        of_type: 0,
        schema: view.schema.oid,
        persistence: persistence(view),
        kind: "v",
        access_method: 0,
        file: 0,
        pages: 0,
        rows: -1.0,
        has_index: false,
        has_rules: true,
        has_triggers: false,
        columns: view.columns.len(),
        checks: 0,
        identity: 'n',
        options: match options.is_empty() {
            true => NULL,
            false => texts(options.into_iter()),
        },
        long_values: 0,
    }
}

fn of_system(table: &SystemTable) -> Relation<'static> {
    let (kind, access_method, identity) = match table.shape.is_view {
        true => ("v", 0, 'n'),
        false => ("r", HEAP_OID, 'n'),
    };
    Relation {
        oid: table.shape.oid,
        name: table.shape.name,
        row_type: 0,
        of_type: 0,
        schema: table.shape.schema.oid(),
        persistence: "p",
        kind,
        access_method,
        file: 0,
        pages: 0,
        rows: -1.0,
        has_index: false,
        has_rules: table.shape.is_view,
        has_triggers: false,
        columns: table.definition.columns.len(),
        checks: 0,
        identity,
        options: NULL,
        long_values: 0,
    }
}

/// Storage parameters as `pg_class.reloptions` has them.
fn options_of<'p>(given: impl Iterator<Item = (&'p str, &'p str)>) -> Value {
    let mut given = given.map(|(name, value)| format!("{name}={value}")).peekable();
    match given.peek() {
        None => NULL,
        Some(_) => texts(given),
    }
}

/// The letter of a relation's persistence.
fn persistence(table: &TableDef) -> &'static str {
    match (table.schema.is_temporary(), table.unlogged) {
        (true, _) => "t",
        (false, true) => "u",
        (false, false) => "p",
    }
}

/// The pages of a relation; none if it has been dropped meanwhile.
pub(super) fn pages(sources: &Sources<'_>, rel: u32) -> u32 {
    sources.storage.block_count(RelId(rel)).unwrap_or(0)
}

/// The rows of a table, as far as they are known: −1 for a table that was not looked at since the start.
fn known_rows(entry: &TableEntry, pages: u32) -> f32 {
    match entry.runtime.live_rows.load(Ordering::Relaxed) {
        ..=0 if pages > 0 => -1.0,
        rows => rows.max(0) as f32,
    }
}

/// True if constraints of a table are checked by what PostgreSQL has triggers for: foreign keys, which tools look for where
/// there are triggers, and deferrable unique keys.
fn has_triggers(table: &TableDef) -> bool {
    let mut indexes = table.indexes.iter();
    table.is_referenced || !table.foreign_keys.is_empty() || indexes.any(|index| index.check_time.deferrable)
}

/// The rows of a table and its indexes.
fn of_table(sources: &Sources<'_>, entry: &TableEntry, rows: &mut Rows) {
    let table = &entry.def;
    let table_pages = pages(sources, entry.rel());
    let count = known_rows(entry, table_pages);
    Relation {
        oid: table.oid,
        name: &table.name,
        row_type: table.oid + ROW_TYPE_OFFSET,
        of_type: table.of_type.unwrap_or(0),
        schema: table.schema.oid,
        persistence: persistence(table),
        kind: "r",
        access_method: HEAP_OID,
        file: entry.rel(),
        pages: table_pages,
        rows: count,
        has_index: table.has_indexes(),
        has_rules: false,
        has_triggers: has_triggers(&entry.def),
        columns: table.attribute_count(),
        checks: table.checks.len(),
        identity: table.replica_identity.letter(),
        options: options_of(table.parameters.of_table()),
        long_values: table.long_oid().unwrap_or(0),
    }
    .push(sources, rows);
    of_long_values(sources, table, rows);
    for index in table.all_indexes() {
        Relation {
            oid: index.oid,
            name: &index.name,
            row_type: 0,
            of_type: 0,
            schema: table.schema.oid,
            persistence: persistence(table),
            kind: "i",
            access_method: BTREE_OID,
            file: index.rel,
            pages: pages(sources, index.rel),
            rows: count,
            has_index: false,
            has_rules: false,
            has_triggers: false,
            columns: index.keys.len() + index.included.len(),
            checks: 0,
            identity: 'n',
            options: NULL,
            long_values: 0,
        }
        .push(sources, rows);
    }
}

/// The long values of a table: a relation that no statement names.
fn of_long_values(sources: &Sources<'_>, table: &TableDef, rows: &mut Rows) {
    let (Some(rel), Some(oid)) = (table.long_rel, table.long_oid()) else {
        return;
    };
    Relation {
        oid,
        name: &table.long_name(),
        row_type: 0,
        of_type: 0,
        schema: Schema::LongValues.oid(),
        persistence: persistence(table),
        kind: "t",
        access_method: HEAP_OID,
        file: rel,
        pages: pages(sources, rel),
        rows: -1.0,
        has_index: false,
        has_rules: false,
        has_triggers: false,
        columns: 0,
        checks: 0,
        identity: 'n',
        options: options_of(table.parameters.of_long_values()),
        long_values: 0,
    }
    .push(sources, rows);
}

fn of_sequence(entry: &TableEntry) -> Relation<'_> {
    let table = &entry.def;
    Relation {
        oid: table.oid,
        name: &table.name,
        row_type: 0,
        of_type: 0,
        schema: table.schema.oid,
        persistence: persistence(table),
        kind: "S",
        access_method: 0,
        file: table.sequence.as_ref().map_or(0, |sequence| sequence.rel),
        pages: 1,
        rows: 1.0,
        has_index: false,
        has_rules: false,
        has_triggers: false,
        columns: table.columns.len(),
        checks: 0,
        identity: 'n',
        options: NULL,
        long_values: 0,
    }
}

/// The query of a view as `pg_get_viewdef` tells it; NULL if it cannot be told.
pub(super) fn view_text(sources: &Sources<'_>, view: &TableDef) -> Value {
    clearway_sql::deparse::view_definition(view, sources.names, false).map_or(NULL, Value::text)
}

/// `pg_tables`
pub(super) fn tables(sources: &Sources<'_>, rows: &mut Rows) {
    let system = SYSTEM_TABLES.iter().filter(|table| !table.shape.is_view);
    let system = system.map(|table| (Arc::clone(&table.definition), false));
    let users = sources.catalog.tables().into_iter();
    let users = users.map(|entry| {
        let has_indexes = entry.def.has_indexes();
        (Arc::clone(&entry.def), has_indexes)
    });
    for (table, has_indexes) in users.chain(system) {
        rows.push([
            ("schemaname", text(&table.schema.name)),
            ("tablename", text(&table.name)),
            ("tableowner", text(&sources.owner_name(table.oid))),
            ("tablespace", NULL),
            ("hasindexes", boolean(has_indexes)),
            ("hasrules", boolean(false)),
            ("hastriggers", boolean(has_triggers(&table))),
            ("rowsecurity", boolean(false)),
        ]);
    }
}

/// `pg_views`; no statement defines those of the system.
pub(super) fn views(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.views() {
        rows.push([
            ("schemaname", text(&entry.def.schema.name)),
            ("viewname", text(&entry.def.name)),
            ("viewowner", text(&sources.owner_name(entry.def.oid))),
            ("definition", view_text(sources, &entry.def)),
        ]);
    }
    for table in SYSTEM_TABLES.iter().filter(|table| table.shape.is_view) {
        rows.push([
            ("schemaname", text(table.shape.schema.name())),
            ("viewname", text(table.shape.name)),
            ("viewowner", text(&sources.role_name(USER_OID))),
            ("definition", NULL),
        ]);
    }
}

/// `pg_indexes`
pub(super) fn indexes(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.tables() {
        for index in entry.def.all_indexes() {
            rows.push([
                ("schemaname", text(&entry.def.schema.name)),
                ("tablename", text(&entry.def.name)),
                ("indexname", text(&index.name)),
                ("tablespace", NULL),
                ("indexdef", text(&index_definition(&entry.def, index, true))),
            ]);
        }
    }
}
