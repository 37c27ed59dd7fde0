//! `pg_attribute` and `pg_attrdef`: the columns of tables, indexes and sequences, and their defaults.

use super::SYSTEM_TABLES;
use super::Sources;
use super::definition_text::default_expression;
use super::rows::{NO_TYPE, NULL, Rows, array, boolean, int2, int4, oid, text};
use super::server::collation_named;
use super::types::row_of;
use clearway_sql::expr::Expr;
use clearway_sql::value::{DataType, Value};
use clearway_sql::{ColumnDef, ColumnDefault, IndexDef, TableDef, index_column_names};

/// `pg_attribute`
pub(super) fn columns(sources: &Sources<'_>, rows: &mut Rows) {
    for table in SYSTEM_TABLES.iter() {
        for (number, column) in table.definition.columns.iter().enumerate() {
            push(rows, table.shape.oid, number, column, Of::Table, None, sources);
        }
    }
    of_views(sources, rows);
    for entry in sources.catalog.tables() {
        of_table(&entry.def, rows, sources);
        for index in entry.def.all_indexes() {
            let names = index_column_names(index, &entry.def);
            for (number, name) in names.into_iter().enumerate() {
                let column = &column_of_index(index, &entry.def, number, name);
                push(rows, index.oid, number, column, Of::Index, None, sources);
            }
        }
    }
    for found in sources.catalog.user_types() {
        for (number, field) in found.composite().iter().flat_map(|of| &of.fields).enumerate() {
            let column = ColumnDef {
                typmod: field.typmod,
                ..ColumnDef::new(&*field.name, field.data_type)
            };
            push(rows, found.oid.get(), number, &column, Of::Table, None, sources);
        }
    }
    of_the_system(sources, rows);
    for sequence in sources.catalog.sequences() {
        for (number, column) in sequence.def.columns.iter().enumerate() {
            push(rows, sequence.def.oid, number, column, Of::Table, None, sources);
        }
    }
}

/// The columns that PostgreSQL's tables and sequences have by themselves: name, type, number.
const SYSTEM_COLUMNS: [(&str, DataType, i16); 6] = [
    ("ctid", DataType::Tid, -1),
    ("xmin", DataType::Xid, -2),
    ("cmin", DataType::Cid, -3),
    ("xmax", DataType::Xid, -4),
    ("cmax", DataType::Cid, -5),
    ("tableoid", DataType::Oid, -6),
];

/// The system columns of all tables, tables of the system included, and of sequences.
fn of_the_system(sources: &Sources<'_>, rows: &mut Rows) {
    let of_system = SYSTEM_TABLES.iter().filter(|table| !table.shape.is_view);
    let relations = of_system
        .map(|table| table.shape.oid)
        .chain(sources.catalog.tables().into_iter().map(|entry| entry.def.oid))
        .chain(sources.catalog.sequences().into_iter().map(|entry| entry.def.oid));
    for relation in relations {
        for (name, data_type, number) in SYSTEM_COLUMNS {
            let column = ColumnDef {
                not_null: true,
                ..ColumnDef::new(name, data_type)
            };
            push_numbered(rows, relation, number, &column, Of::System, None, sources);
        }
    }
}

/// A column of an index, under the name that it has there.
fn column_of_index(index: &IndexDef, table: &TableDef, number: usize, name: String) -> ColumnDef {
    let included = || index.included.get(number - index.keys.len()).copied();
    let of_table = match number < index.keys.len() {
        true => index.column(number),
        false => included(),
    };
    let mut column = match of_table {
        Some(column) => table.columns[usize::from(column)].clone(),
        None => ColumnDef::new("", index.types[number]),
    };
    column.name = name;
    let targets = &index.marks.statistics_targets;
    let of_part = targets.iter().find(|(part, _)| usize::from(*part) == number);
    column.statistics_target = of_part.map(|(_, target)| *target);
    column
}

/// The columns of views.
fn of_views(sources: &Sources<'_>, rows: &mut Rows) {
    for entry in sources.catalog.views() {
        for (number, column) in entry.def.columns.iter().enumerate() {
            push(rows, entry.def.oid, number, column, Of::Table, None, sources);
        }
    }
}

/// The columns of a table, those that have been dropped included.
fn of_table(table: &TableDef, rows: &mut Rows, sources: &Sources<'_>) {
    for (number, attribute) in table.attributes().into_iter().enumerate() {
        match attribute.column {
            Some(column) => {
                let column = &table.columns[usize::from(column)];
                push(
                    rows,
                    table.oid,
                    number,
                    column,
                    Of::Table,
                    attribute.missing,
                    sources,
                );
            }
            None => {
                let name = format!("........pg.dropped.{}........", number + 1);
                let column = ColumnDef::new(name, attribute.data_type);
                push(rows, table.oid, number, &column, Of::Dropped, None, sources);
            }
        }
    }
}

/// The letter of a column's storage: the one that was chosen, or its type's.
fn storage_of(column: &ColumnDef, of_type: &str) -> Value {
    match column.chosen_storage {
        Some(storage) => storage.letter_value(),
        None => text(of_type),
    }
}

/// The kind of a relation that a column belongs to: an index has neither constraints nor defaults of its columns.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Table,
    Index,
    /// A table that does not have the column any more.
    Dropped,
    /// A table or a sequence, of a column of the system.
    System,
}

/// A column of a relation that is that many-th, counted from 0.
fn push(
    rows: &mut Rows,
    relation: u32,
    number: usize,
    column: &ColumnDef,
    of: Of,
    missing: Option<Value>,
    sources: &Sources<'_>,
) {
    push_numbered(rows, relation, number as i16 + 1, column, of, missing, sources);
}

fn push_numbered(
    rows: &mut Rows,
    relation: u32,
    number: i16,
    column: &ColumnDef,
    of: Of,
    missing: Option<Value>,
    sources: &Sources<'_>,
) {
    let is_dropped = of == Of::Dropped;
    let entry = sources.catalog.table(relation);
    let acl = entry.and_then(|entry| entry.access.columns.get(&number.cast_unsigned()));
    let kept = |number: u32| if is_dropped { 0 } else { number };
    let row = row_of(column.data_type);
    let of_table = of == Of::Table;
    let collation = column.collation.as_deref().and_then(collation_named);
    let collation = collation.unwrap_or(row.collation);
    let identity = match (of_table && column.is_identity, column.always_generated) {
        (false, _) => "",
        (true, true) => "a",
        (true, false) => "d",
    };
    rows.push([
        ("attrelid", oid(relation)),
        ("attname", text(&column.name)),
        ("atttypid", oid(kept(column.data_type.oid()))),
        (
            "attstattarget",
            int4(match of {
                Of::Dropped | Of::System => 0,
                Of::Table | Of::Index => column.statistics_target.map_or(-1, i32::from),
            }),
        ),
        ("attlen", int2(row.length)),
        ("attnum", int2(number)),
        ("attndims", int4(i32::from(row.is_array()))),
        ("attcacheoff", int4(-1)),
        ("atttypmod", int4(column.typmod)),
        ("attbyval", boolean(row.by_value)),
        ("attalign", text(row.alignment)),
        ("attstorage", storage_of(column, row.storage)),
        ("attcompression", text(column.compression.letter())),
        (
            "attnotnull",
            boolean((of_table || of == Of::System) && column.not_null),
        ),
        ("atthasdef", boolean(of_table && has_default(column))),
        ("atthasmissing", boolean(missing.is_some())),
        ("attidentity", text(identity)),
        (
            "attgenerated",
            text(if of_table && column.generated().is_some() {
                "s"
            } else {
                ""
            }),
        ),
        ("attisdropped", boolean(is_dropped)),
        ("attislocal", boolean(true)),
        ("attinhcount", int4(0)),
        ("attcollation", oid(collation)),
        ("attacl", sources.acl(acl)),
        ("attoptions", NULL),
        ("attfdwoptions", NULL),
        (
            "attmissingval",
            missing.map_or(NULL, |value| shown_missing(column.data_type, value)),
        ),
    ]);
}

/// A missing value as `pg_attribute` has it: in an array.
fn shown_missing(data_type: DataType, value: Value) -> Value {
    match data_type.array_type() {
        Some(whole) => array(whole, std::iter::once(value)),
        // An array, whose elements stand for themselves.
        None => value,
    }
}

/// True if `pg_attrdef` has the column's default: it does not have the sequence of an identity column.
pub(super) fn has_default(column: &ColumnDef) -> bool {
    match &column.default {
        // That of a column without a default.
        Some(ColumnDefault::Expression {
            expr: Expr::Constant(Value::Null),
            ..
        }) => column.data_type.base() != column.data_type,
        Some(ColumnDefault::Expression { .. } | ColumnDefault::Generated { .. }) => true,
        _ => false,
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
    for entry in [sources.catalog.tables(), sources.catalog.views()].concat() {
        for (number, column) in entry.def.columns.iter().enumerate() {
            if has_default(column) {
                let attribute = entry.def.attribute_number(number as u16).cast_signed();
                rows.push([
                    ("oid", oid(default_oid(entry.def.oid, number))),
                    ("adrelid", oid(entry.def.oid)),
                    ("adnum", int2(attribute)),
                    (
                        "adbin",
                        default_expression(sources.catalog, &entry.def, number)
                            .map_or(NO_TYPE, |sql| text(&sql)),
                    ),
                ]);
            }
        }
    }
}
