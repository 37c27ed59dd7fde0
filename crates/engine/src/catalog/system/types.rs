//! `pg_type`, `pg_range` and what the catalog tells of each type.
//!
//! A type that there is has a row with PostgreSQL's number and properties.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use super::Sources;
use super::definition_text::with_type;
use super::rows::{NULL, Rows, boolean, int2, int4, oid, text};
use super::server::USER_OID;
use super::shape::Schema;
use clearway_sql::function::quote_identifier;
use clearway_sql::types_by_name;
use clearway_sql::value::datatype::numeric_of_typmod;
use clearway_sql::value::user_type::UserType;
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

/// The facts that the catalog tells alike of all types of a kind that users make.
const fn of_kind(
    kind: &'static str,
    category: &'static str,
    length: i16,
    functions: [u32; 8],
    alignment: &'static str,
    storage: &'static str,
) -> TypeRow {
    TypeRow {
        oid: 0,
        name: "_",
        length,
        by_value: length == 4,
        kind,
        category,
        is_preferred: false,
        element: 0,
        array: 0,
        functions,
        alignment,
        storage,
        collation: 0,
    }
}

/// Enumerations
static ENUM: TypeRow = of_kind("e", "E", 4, [3_506, 3_507, 3_532, 3_533, 0, 0, 0, 0], "i", "p");
/// Composite types
static COMPOSITE: TypeRow = of_kind("c", "C", -1, [2_290, 2_291, 2_402, 2_403, 0, 0, 0, 0], "d", "x");
/// Arrays of enumerations
static ENUMS: TypeRow = of_kind("b", "A", -1, ARRAY, "i", "x");
/// Arrays of composite types
static COMPOSITES: TypeRow = of_kind("b", "A", -1, ARRAY, "d", "x");
/// The functions of arrays.
const ARRAY: [u32; 8] = [750, 751, 2_400, 2_401, 0, 0, 6_179, 3_816];
/// The function that reads the text of a domain's value, and the one for the binary form.
const DOMAIN_IN: u32 = 2_597;
const DOMAIN_RECV: u32 = 2_598;

/// The catalog's row of a type; of one that users have made, what it tells of all such types: of a domain, of its base.
pub(crate) fn row_of(data_type: DataType) -> &'static TypeRow {
    match data_type {
        DataType::Enum(_) => return &ENUM,
        DataType::Composite(_) => return &COMPOSITE,
        DataType::Domain(_) => match data_type.base() {
            DataType::Domain(_) => return &COMPOSITE,
            base => return row_of(base),
        },
        DataType::Array(element) => match element.data_type() {
            DataType::Enum(_) => return &ENUMS,
            DataType::Composite(_) => return &COMPOSITES,
            DataType::Domain(_) => {
                return match row_of(element.data_type()).alignment {
                    "d" => &COMPOSITES,
                    _ => &ENUMS,
                };
            }
            _ => {}
        },
        _ => {}
    }
    match PLACES.get(&data_type.oid()) {
        Some(at) => &TYPES[*at],
        None => unreachable!("type {data_type} has no row"),
    }
}

/// The name in the catalog of a type, also of one that values cannot have.
pub(super) fn name_of(oid: u32) -> &'static str {
    PLACES.get(&oid).map_or("???", |at| TYPES[*at].name)
}

/// The name of a type that only the catalog has; `None` for a number that is no type's.
pub(crate) fn listed_name(oid: u32) -> Option<String> {
    PLACES.get(&oid).map(|at| quote_identifier(TYPES[*at].name))
}

/// The name in SQL of a type, also of one that values cannot have.
pub(super) fn sql_name_of(oid: u32) -> Cow<'static, str> {
    DataType::from_oid(oid).map_or_else(|| quote_identifier(name_of(oid)).into(), DataType::name)
}

/// The number of the type with this name in SQL or in the catalog, also of one that values cannot have.
pub(crate) fn named(name: &str) -> Option<u32> {
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
    let of_users = [&ENUM, &COMPOSITE, &ENUMS].into_iter();
    shown()
        .chain(of_users)
        .flat_map(|row| row.functions)
        .chain([DOMAIN_IN, DOMAIN_RECV])
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

/// `pg_enum`
pub(super) fn labels(sources: &Sources<'_>, rows: &mut Rows) {
    for found in sources.catalog.user_types() {
        for label in found.enumeration().iter().flat_map(|of| &of.labels) {
            rows.push([
                ("oid", oid(label.oid)),
                ("enumtypid", oid(found.oid.get())),
                ("enumsortorder", Value::Float4(label.order)),
                ("enumlabel", text(&label.label)),
            ]);
        }
    }
}

/// A type that users have made, and the type of its arrays.
fn push_user_type(found: &UserType, rows: &mut Rows) {
    let data_type = found.data_type();
    let array = data_type.array_type();
    let row = row_of(data_type);
    let (mut kind, mut functions) = (row.kind, row.functions);
    let (mut not_null, mut base, mut typmod, mut default) = (false, 0, -1, NULL);
    if let Some(domain) = found.domain() {
        kind = "d";
        (functions[0], functions[2]) = (DOMAIN_IN, DOMAIN_RECV);
        (functions[4], functions[5], functions[6]) = (0, 0, 0);
        (not_null, base, typmod) = (domain.not_null, domain.base.oid(), domain.typmod);
        default = domain.default.as_deref().map_or(NULL, |sql| {
            text(&with_type(&types_by_name(sql), domain.base.base()))
        });
    }
    let relation = found
        .composite()
        .map_or(0, |of| of.table.unwrap_or(found.oid.get()));
    let mut push = |data_type: DataType, row: &TypeRow, functions: [u32; 8], own: [Value; 9]| {
        let [
            kind,
            relation,
            element,
            array,
            not_null,
            base,
            typmod,
            default,
            preferred,
        ] = own;
        rows.push([
            ("oid", oid(data_type.oid())),
            ("typname", text(&data_type.internal_name())),
            ("typnamespace", oid(found.schema_oid)),
            ("typowner", oid(found.owner)),
            ("typlen", int2(row.length)),
            ("typbyval", boolean(row.by_value)),
            ("typtype", kind),
            ("typcategory", text(row.category)),
            ("typispreferred", preferred),
            ("typisdefined", boolean(true)),
            ("typdelim", text(",")),
            ("typrelid", relation),
            ("typsubscript", oid(functions[6])),
            ("typelem", element),
            ("typarray", array),
            ("typinput", oid(functions[0])),
            ("typoutput", oid(functions[1])),
            ("typreceive", oid(functions[2])),
            ("typsend", oid(functions[3])),
            ("typmodin", oid(functions[4])),
            ("typmodout", oid(functions[5])),
            ("typanalyze", oid(functions[7])),
            ("typalign", text(row.alignment)),
            ("typstorage", text(row.storage)),
            ("typnotnull", not_null),
            ("typbasetype", base),
            ("typtypmod", typmod),
            ("typndims", int4(0)),
            ("typcollation", oid(row.collation)),
            ("typdefaultbin", default.clone()),
            ("typdefault", default),
            ("typacl", NULL),
        ]);
    };
    let own = [
        text(kind),
        oid(relation),
        oid(0),
        oid(array.map_or(0, DataType::oid)),
        boolean(not_null),
        oid(base),
        int4(typmod),
        default,
        boolean(row.is_preferred && kind == "d"),
    ];
    push(data_type, row, functions, own);
    if let Some(array) = array {
        let of_array = [
            text("b"),
            oid(0),
            oid(data_type.oid()),
            oid(0),
            boolean(false),
            oid(0),
            int4(-1),
            NULL,
            boolean(false),
        ];
        push(array, row_of(array), ARRAY, of_array);
    }
}

/// `pg_type`
pub(super) fn types(sources: &Sources<'_>, rows: &mut Rows) {
    for found in sources.catalog.user_types() {
        push_user_type(&found, rows);
    }
    for found in sources.catalog.row_types() {
        push_user_type(&found, rows);
    }
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
