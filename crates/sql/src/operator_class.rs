//! Operator classes of B+trees that a definition may name.
//!
//! Strings sort by their bytes, as under `COLLATE "C"`, so each class of a type sorts as its default one does, and a class
//! decides nothing but how an index is shown. The pattern classes are there for definitions that ask for them.

use crate::value::DataType;

/// Name of a class, the type it takes, whether it is the type's default.
const CLASSES: &[(&str, DataType, bool)] = &[
    ("bool_ops", DataType::Bool, true),
    ("bpchar_ops", DataType::Char, true),
    ("bpchar_pattern_ops", DataType::Char, false),
    ("bytea_ops", DataType::Bytea, true),
    ("cidr_ops", DataType::Inet, false),
    ("date_ops", DataType::Date, true),
    ("float4_ops", DataType::Float4, true),
    ("float8_ops", DataType::Float8, true),
    ("inet_ops", DataType::Inet, true),
    ("int2_ops", DataType::Int2, true),
    ("int4_ops", DataType::Int4, true),
    ("int8_ops", DataType::Int8, true),
    ("interval_ops", DataType::Interval, true),
    ("jsonb_ops", DataType::Jsonb, true),
    ("macaddr8_ops", DataType::MacAddr8, true),
    ("macaddr_ops", DataType::MacAddr, true),
    ("name_ops", DataType::Name, true),
    ("numeric_ops", DataType::Numeric, true),
    ("oid_ops", DataType::Oid, true),
    ("pg_lsn_ops", DataType::PgLsn, true),
    ("text_ops", DataType::Text, true),
    ("text_pattern_ops", DataType::Text, false),
    ("time_ops", DataType::Time, true),
    ("timestamp_ops", DataType::Timestamp, true),
    ("timestamptz_ops", DataType::TimestampTz, true),
    ("timetz_ops", DataType::TimeTz, true),
    ("uuid_ops", DataType::Uuid, true),
    ("varchar_ops", DataType::Text, false),
    ("varchar_pattern_ops", DataType::Text, false),
];

/// The fate of a class that a definition names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedClass {
    /// It is the type's default.
    Default,
    /// It is another of the type.
    Other,
    /// It takes another type.
    OfOtherType,
    /// There is none of this name.
    Unknown,
}

/// Looks a class up by its name, for keys of a type.
pub fn class_named(name: &str, key: DataType) -> NamedClass {
    let key = match key {
        DataType::Varchar => DataType::Text,
        DataType::Cidr => DataType::Inet,
        other => other,
    };
    match CLASSES.iter().find(|(class, ..)| *class == name) {
        None if name == "array_ops" && key.is_array() => NamedClass::Default,
        None if name == "array_ops" => NamedClass::OfOtherType,
        None => NamedClass::Unknown,
        Some((_, data_type, _)) if *data_type != key => NamedClass::OfOtherType,
        Some((_, _, true)) => NamedClass::Default,
        Some((_, _, false)) => NamedClass::Other,
    }
}
