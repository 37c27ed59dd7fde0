//! `pg_type`, `pg_range` and what the catalog tells of each type.
//!
//! A type that there is has a row with PostgreSQL's number and properties.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Sources;
use super::rows::{NULL, Rows, boolean, int2, int4, oid, text};
use super::server::USER_OID;
use super::shape::Schema;
use clearway_sql::value::datatype::numeric_of_typmod;
use clearway_sql::value::{DataType, Value};

/// oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typelem, typarray, typinput, typoutput,
/// typreceive, typsend, typmodin, typmodout, typsubscript, typanalyze, typalign, typstorage, typcollation
const LINES: &str = include_str!("data/types.txt");

/// A type as PostgreSQL's catalog has it.
#[derive(Debug)]
pub(crate) struct TypeRow {
    pub(crate) oid: u32,
    pub(crate) name: &'static str,
    pub(crate) length: i16,
    pub(crate) by_value: bool,
    kind: &'static str,
    category: &'static str,
    is_preferred: bool,
    element: u32,
    array: u32,
    functions: [u32; 8],
    pub(crate) alignment: &'static str,
    pub(crate) storage: &'static str,
    pub(crate) collation: u32,
}

impl TypeRow {
    fn read(line: &'static str) -> Option<TypeRow> {
        let mut words = line.split(' ');
        let mut number = || words.next()?.parse::<u32>().ok();
        let oid = number()?;
        let name = words.next()?;
        let length = words.next()?.parse().ok()?;
        let by_value = words.next()? == "t";
        let kind = words.next()?;
        let category = words.next()?;
        let is_preferred = words.next()? == "t";
        let mut number = || words.next()?.parse::<u32>().ok();
        let (element, array) = (number()?, number()?);
        let mut functions = [0; 8];
        for function in &mut functions {
            *function = number()?;
        }
        Some(TypeRow {
            oid,
            name,
            length,
            by_value,
            kind,
            category,
            is_preferred,
            element,
            array,
            functions,
            alignment: words.next()?,
            storage: words.next()?,
            collation: words.next()?.parse().ok()?,
        })
    }
}

impl TypeRow {
    /// True if it is an array.
    pub(crate) fn is_array(&self) -> bool {
        self.category == "A" && self.name.starts_with('_')
    }
}

/// The types, by number, in the order of their numbers.
static TYPES: LazyLock<Vec<TypeRow>> = LazyLock::new(|| {
    let mut types: Vec<TypeRow> = LINES.lines().filter_map(TypeRow::read).collect();
    types.sort_by_key(|row| row.oid);
    types
});

/// The places of the types in [`TYPES`].
static PLACES: LazyLock<HashMap<u32, usize>> =
    LazyLock::new(|| TYPES.iter().enumerate().map(|(at, row)| (row.oid, at)).collect());

/// True if values can have the type of this number.
pub(super) fn exists(oid: u32) -> bool {
    DataType::from_oid(oid).is_some()
}

/// The catalog's row of a type.
pub(crate) fn row_of(data_type: DataType) -> &'static TypeRow {
    match PLACES.get(&data_type.oid()) {
        Some(at) => &TYPES[*at],
        None => unreachable!("type {data_type} has no row"),
    }
}

/// The name in the catalog of a type, also of one that values cannot have.
pub(super) fn name_of(oid: u32) -> &'static str {
    PLACES.get(&oid).map_or("???", |at| TYPES[*at].name)
}

/// The name in SQL of a type, also of one that values cannot have.
pub(super) fn sql_name_of(oid: u32) -> &'static str {
    DataType::from_oid(oid).map_or_else(|| name_of(oid), DataType::name)
}

/// The number of the type with this name in SQL or in the catalog, also of one that values cannot have.
pub(super) fn named(name: &str) -> Option<u32> {
    let known = DataType::with_arrays().find(|data_type| data_type.name() == name);
    known
        .map(DataType::oid)
        .or_else(|| TYPES.iter().find(|row| row.name == name).map(|row| row.oid))
}

/// The types that the catalog shows.
pub(super) fn shown() -> impl Iterator<Item = &'static TypeRow> {
    TYPES.iter().filter(|row| exists(row.oid))
}

/// The numbers of the functions by which types are read and written.
pub(super) fn input_and_output_functions() -> impl Iterator<Item = u32> {
    shown()
        .flat_map(|row| row.functions)
        .filter(|function| *function != 0)
}

/// Precision, radix and scale of numbers of this type.
pub(super) fn numbers_of(data_type: DataType, typmod: i32) -> (Value, Value, Value) {
    let binary = |bits, scale| (int4(bits), int4(2), scale);
    match data_type {
        DataType::Int2 => binary(16, int4(0)),
        DataType::Int4 => binary(32, int4(0)),
        DataType::Int8 => binary(64, int4(0)),
        DataType::Float4 => binary(24, NULL),
        DataType::Float8 => binary(53, NULL),
        DataType::Numeric => match numeric_of_typmod(typmod) {
            Some((precision, scale)) => (int4(precision), int4(10), int4(scale)),
            None => (NULL, int4(10), NULL),
        },
        _ => (NULL, NULL, NULL),
    }
}

/// `pg_type`
pub(super) fn types(_: &Sources<'_>, rows: &mut Rows) {
    for row in shown() {
        let existing = |oid| if exists(oid) { oid } else { 0 };
        rows.push([
            ("oid", oid(row.oid)),
            ("typname", text(row.name)),
            ("typnamespace", oid(Schema::PgCatalog.oid())),
            ("typowner", oid(USER_OID)),
            ("typlen", int2(row.length)),
            ("typbyval", boolean(row.by_value)),
            ("typtype", text(row.kind)),
            ("typcategory", text(row.category)),
            ("typispreferred", boolean(row.is_preferred)),
            ("typisdefined", boolean(true)),
            ("typdelim", text(",")),
            ("typrelid", oid(0)),
            ("typsubscript", oid(row.functions[6])),
            ("typelem", oid(row.element)),
            ("typarray", oid(existing(row.array))),
            ("typinput", oid(row.functions[0])),
            ("typoutput", oid(row.functions[1])),
            ("typreceive", oid(row.functions[2])),
            ("typsend", oid(row.functions[3])),
            ("typmodin", oid(row.functions[4])),
            ("typmodout", oid(row.functions[5])),
            ("typanalyze", oid(row.functions[7])),
            ("typalign", text(row.alignment)),
            ("typstorage", text(row.storage)),
            ("typnotnull", boolean(false)),
            ("typbasetype", oid(0)),
            ("typtypmod", int4(-1)),
            ("typndims", int4(0)),
            ("typcollation", oid(row.collation)),
            ("typdefaultbin", NULL),
            ("typdefault", NULL),
            ("typacl", NULL),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_row() {
        assert_eq!(TYPES.len(), LINES.lines().count(), "each line is read");
        for data_type in DataType::with_arrays() {
            assert_eq!(row_of(data_type).oid, data_type.oid());
            assert_eq!(row_of(data_type).length, data_type.wire_size(), "{data_type}");
        }
    }
}
