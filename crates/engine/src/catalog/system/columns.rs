//! `pg_attribute` and `pg_attrdef`: the columns of tables, indexes and sequences, and their defaults.

use super::SYSTEM_TABLES;
use super::Sources;
use super::definition_text::default_expression;
use super::rows::{NO_TYPE, NULL, Rows, boolean, int2, int4, oid, text};
use super::types::row_of;
use crate::catalog::serial::{SEQUENCE_COLUMNS, serials};
use clearway_sql::{ColumnDef, ColumnDefault};

/// `pg_attribute`
pub(super) fn columns(sources: &Sources<'_>, rows: &mut Rows) {
    for table in SYSTEM_TABLES.iter() {
        for (number, column) in table.definition.columns.iter().enumerate() {
            push(rows, table.shape.oid, number, column, Of::Table);
        }
    }
    of_views(sources, rows);
    for entry in sources.catalog.tables() {
        for (number, column) in entry.def.columns.iter().enumerate() {
            push(rows, entry.def.oid, number, column, Of::Table);
        }
        for index in &entry.def.indexes {
            for (number, column) in index.columns.iter().enumerate() {
                let column = &entry.def.columns[usize::from(*column)];
                push(rows, index.oid, number, column, Of::Index);
            }
        }
        for serial in serials(&entry) {
            for (number, (name, data_type)) in SEQUENCE_COLUMNS.into_iter().enumerate() {
                let mut column = ColumnDef::new(name, data_type);
                column.not_null = true;
                push(rows, serial.oid(), number, &column, Of::Table);
            }
        }
    }
}

/// The columns of views.
fn of_views(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.views() {
        for (number, column) in entry.def.columns.iter().enumerate() {
            push(rows, entry.def.oid, number, column, Of::Table);
        }
    }
}

/// The kind of a relation that a column belongs to: an index has neither constraints nor defaults of its columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Table,
    Index,
}

fn push(rows: &mut Rows, relation: u32, number: usize, column: &ColumnDef, of: Of) {
    let row = row_of(column.data_type);
    let of_table = of == Of::Table;
    let identity = match (of_table && column.is_identity, column.always_generated) {
        (false, _) => "",
        (true, true) => "a",
        (true, false) => "d",
    };
    rows.push([
        ("attrelid", oid(relation)),
        ("attname", text(&column.name)),
        ("atttypid", oid(column.data_type.oid())),
        ("attstattarget", int4(-1)),
        ("attlen", int2(row.length)),
        ("attnum", int2(number as i16 + 1)),
        ("attndims", int4(i32::from(row.is_array()))),
        ("attcacheoff", int4(-1)),
        ("atttypmod", int4(column.typmod)),
        ("attbyval", boolean(row.by_value)),
        ("attalign", text(row.alignment)),
        ("attstorage", text(row.storage)),
        ("attcompression", text("")),
        ("attnotnull", boolean(of_table && column.not_null)),
        ("atthasdef", boolean(of_table && has_default(column))),
        ("atthasmissing", boolean(false)),
        ("attidentity", text(identity)),
        ("attgenerated", text("")),
        ("attisdropped", boolean(false)),
        ("attislocal", boolean(true)),
        ("attinhcount", int4(0)),
        ("attcollation", oid(row.collation)),
        ("attacl", NULL),
        ("attoptions", NULL),
        ("attfdwoptions", NULL),
        ("attmissingval", NULL),
    ]);
}

/// True if `pg_attrdef` has the column's default: it does not have the sequence of an identity column.
pub(super) fn has_default(column: &ColumnDef) -> bool {
    match column.default {
        Some(ColumnDefault::Serial) => !column.is_identity,
        Some(ColumnDefault::Expression { .. }) => true,
        None => false,
    }
}

/// The number of a column's default: one that no relation has, made of the table's number and the column's. The column
/// of all ones stands for the table's rule.
pub(super) fn default_oid(table: u32, column: usize) -> u32 {
    /// More than a table has columns.
    const COLUMNS: u32 = 2_048;
    1 << 31
        | (table
            .wrapping_mul(COLUMNS)
            .wrapping_add((column as u32).wrapping_add(1))
            & (u32::MAX >> 1))
}

/// `pg_attrdef`
pub(super) fn defaults(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.tables() {
        for (number, column) in entry.def.columns.iter().enumerate() {
            if has_default(column) {
                rows.push([
                    ("oid", oid(default_oid(entry.def.oid, number))),
                    ("adrelid", oid(entry.def.oid)),
                    ("adnum", int2(number as i16 + 1)),
                    (
                        "adbin",
                        default_expression(&entry, number).map_or(NO_TYPE, |sql| text(&sql)),
                    ),
                ]);
            }
        }
    }
}
