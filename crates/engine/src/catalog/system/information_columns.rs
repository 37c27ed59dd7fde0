//! `information_schema.columns`.

use std::sync::Arc;

use super::Sources;
use super::information_schema::{default_of, each_table, yes_or_no};
use super::rows::{NULL, Rows, int4, text};
use super::server::DEFAULT_COLLATION_OID;
use super::shape::Schema;
use super::types::{numbers_of, row_of};
use clearway_sql::sequence::SequenceNumbers;
use clearway_sql::value::datatype::length_of_typmod;
use clearway_sql::value::user_type::{UserType, base_and_modifier, definition_of};
use clearway_sql::value::{DataType, Value};
use clearway_sql::{ColumnDef, ColumnDefault, TableDef};

/// The most characters and bytes of strings of this type.
fn lengths_of(data_type: DataType, typmod: i32) -> (Value, Value) {
    /// Bytes of a string without a declared length.
    const BYTES_MAX: i32 = 1 << 30;
    /// Bytes of a character in UTF-8.
    const CHARACTER_BYTES: i32 = 4;
    match data_type {
        DataType::Varchar | DataType::Char => match length_of_typmod(typmod) {
            Some(length) => (int4(length as i32), int4(length as i32 * CHARACTER_BYTES)),
            None => (NULL, int4(BYTES_MAX)),
        },
        DataType::Text => (NULL, int4(BYTES_MAX)),
        _ => (NULL, NULL),
    }
}

fn time_precision_of(data_type: DataType, typmod: i32) -> Value {
    match data_type {
        DataType::Date => int4(0),
        DataType::Timestamp | DataType::TimestampTz | DataType::Time | DataType::TimeTz if typmod >= 0 => {
            int4(typmod)
        }
        DataType::Interval if typmod >= 0 && typmod & 0xffff != 0xffff => int4(typmod & 0xffff),
        DataType::Timestamp
        | DataType::TimestampTz
        | DataType::Time
        | DataType::TimeTz
        | DataType::Interval => int4(6),
        _ => NULL,
    }
}

/// `columns`
pub(super) fn columns(sources: &Sources<'_>, rows: &mut Rows) {
    each_table(sources, |table, _| {
        let changeable = sources.changeable_columns(table).unwrap_or_default();
        for number in 0..table.columns.len() {
            let is_updatable = changeable.get(number) == Some(&true);
            push(sources, rows, table, number, is_updatable);
        }
    });
}

/// The options of the sequence of an identity column.
fn identity_numbers(sources: &Sources<'_>, column: &ColumnDef) -> Option<SequenceNumbers> {
    let Some(ColumnDefault::Identity(sequence)) = column.default else {
        return None;
    };
    let entry = sources.catalog.table(sequence)?;
    Some(entry.def.sequence.as_ref()?.numbers)
}

fn push(sources: &Sources<'_>, rows: &mut Rows, table: &TableDef, number: usize, is_updatable: bool) {
    let column = &table.columns[number];
    // A column of a domain tells the domain's name, and otherwise of its base type.
    let (data_type, typmod) = base_and_modifier(column.data_type, column.typmod);
    let domain = definition_of(column.data_type).filter(|found| found.domain().is_some());
    let of_domain = |value: &dyn Fn(&UserType) -> Value| domain.as_deref().map_or(NULL, value);
    let row = row_of(data_type);
    let (precision, radix, scale) = numbers_of(data_type, typmod);
    let (characters, bytes) = lengths_of(data_type, typmod);
    let is_identity = column.is_identity;
    let of_identity = |value: Value| if is_identity { value } else { NULL };
    let is_generated = column.generated().is_some();
    let default = default_of(sources, table, number).map_or(NULL, |sql| text(&sql));
    let numbers = identity_numbers(sources, column);
    let of_numbers = |number: fn(&SequenceNumbers) -> i64| {
        (numbers.as_ref()).map_or(NULL, |numbers| text(&number(numbers).to_string()))
    };
    let has_collation = row.collation != 0 && row.collation != DEFAULT_COLLATION_OID;
    let of_collation = |value: &str| if has_collation { text(value) } else { NULL };
    // The type below the domain, which may be another one.
    let below = domain
        .as_deref()
        .and_then(UserType::domain)
        .map_or(data_type, |domain| domain.base);
    let type_name = match row.is_array() {
        true => "ARRAY".into(),
        false if below.user_oid().is_some() => "USER-DEFINED".into(),
        false => data_type.name(),
    };
    rows.push([
        ("table_catalog", text(sources.database)),
        ("table_schema", text(&table.schema.name)),
        ("table_name", text(&table.name)),
        ("column_name", text(&column.name)),
        (
            "ordinal_position",
            int4(i32::from(table.attribute_number(number as u16))),
        ),
        (
            "column_default",
            if is_generated { NULL } else { default.clone() },
        ),
        ("is_nullable", yes_or_no(!column.not_null)),
        ("data_type", text(&type_name)),
        ("character_maximum_length", characters),
        ("character_octet_length", bytes),
        ("numeric_precision", precision),
        ("numeric_precision_radix", radix),
        ("numeric_scale", scale),
        ("datetime_precision", time_precision_of(data_type, typmod)),
        ("interval_type", NULL),
        ("interval_precision", NULL),
        ("character_set_catalog", NULL),
        ("character_set_schema", NULL),
        ("character_set_name", NULL),
        ("collation_catalog", of_collation(sources.database)),
        ("collation_schema", of_collation(Schema::PgCatalog.name())),
        ("collation_name", of_collation("C")),
        ("domain_catalog", of_domain(&|_| text(sources.database))),
        ("domain_schema", of_domain(&|domain| text(&domain.schema))),
        ("domain_name", of_domain(&|domain| text(&domain.name))),
        ("udt_catalog", text(sources.database)),
        ("udt_schema", text(&schema_of_type(below))),
        ("udt_name", text(&below.internal_name())),
        ("scope_catalog", NULL),
        ("scope_schema", NULL),
        ("scope_name", NULL),
        ("maximum_cardinality", NULL),
        ("dtd_identifier", text(&(number + 1).to_string())),
        ("is_self_referencing", text("NO")),
        ("is_identity", yes_or_no(is_identity)),
        (
            "identity_generation",
            of_identity(text(match column.always_generated {
                true => "ALWAYS",
                false => "BY DEFAULT",
            })),
        ),
        ("identity_start", of_numbers(|numbers| numbers.start)),
        ("identity_increment", of_numbers(|numbers| numbers.increment)),
        ("identity_maximum", of_numbers(|numbers| numbers.max)),
        ("identity_minimum", of_numbers(|numbers| numbers.min)),
        (
            "identity_cycle",
            yes_or_no(numbers.is_some_and(|numbers| numbers.cycle)),
        ),
        (
            "is_generated",
            text(if is_generated { "ALWAYS" } else { "NEVER" }),
        ),
        ("generation_expression", if is_generated { default } else { NULL }),
        ("is_updatable", yes_or_no(is_updatable)),
    ]);
}

/// The schema of a type.
fn schema_of_type(data_type: DataType) -> Arc<str> {
    let found = definition_of(data_type.element().unwrap_or(data_type));
    found.map_or_else(
        || Schema::PgCatalog.name().into(),
        |found| Arc::clone(&found.schema),
    )
}
