//! The SQL types, their PostgreSQL numbers and names, and type modifiers (`varchar(10)`'s 10).
//!
//! A *typmod* is an `i32` next to the type, encoded as PostgreSQL encodes it, because it goes over the wire in a row
//! description: −1 = none; `char(n)` and `varchar(n)` are n + 4; `numeric(p, s)` is (p << 16 | s) + 4,
//! s being 11 bits with a sign;
//! `timestamp(p)` is p.

use std::fmt;

/// A SQL type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DataType {
    /// `boolean`
    Bool,
    /// `smallint`
    Int2,
    /// `integer`
    Int4,
    /// `bigint`
    Int8,
    /// `real`
    Float4,
    /// `double precision`
    Float8,
    /// `numeric`
    Numeric,
    /// `text`
    Text,
    /// `character varying`
    Varchar,
    /// `character(n)`, padded with blanks that comparison ignores
    Char,
    /// `date`
    Date,
    /// `timestamp without time zone`
    Timestamp,
    /// `timestamp with time zone`
    TimestampTz,
    /// PostgreSQL's one-byte `"char"`, which some drivers (sysbench's) name as a parameter's type
    CharByte,
    /// `name`: catalog identifiers
    Name,
    /// `oid`: catalog numbers
    Oid,
    /// A literal or parameter whose type is not settled yet
    Unknown,
}

/// No type modifier.
pub const NO_TYPMOD: i32 = -1;

/// A type category of PostgreSQL: it decides which conversions happen without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// Truth values
    Boolean,
    /// Numbers
    Numeric,
    /// Strings
    String,
    /// Dates and times
    DateTime,
    /// Not settled
    Unknown,
}

impl DataType {
    /// Every type a column may have, and the internal ones.
    pub const ALL: [DataType; 17] = [
        DataType::Bool,
        DataType::Int2,
        DataType::Int4,
        DataType::Int8,
        DataType::Float4,
        DataType::Float8,
        DataType::Numeric,
        DataType::Text,
        DataType::Varchar,
        DataType::Char,
        DataType::Date,
        DataType::Timestamp,
        DataType::TimestampTz,
        DataType::CharByte,
        DataType::Name,
        DataType::Oid,
        DataType::Unknown,
    ];

    /// PostgreSQL's number of the type.
    pub const fn oid(self) -> u32 {
        match self {
            DataType::Bool => 16,
            DataType::CharByte => 18,
            DataType::Name => 19,
            DataType::Int8 => 20,
            DataType::Int2 => 21,
            DataType::Int4 => 23,
            DataType::Text => 25,
            DataType::Oid => 26,
            DataType::Float4 => 700,
            DataType::Float8 => 701,
            DataType::Unknown => 705,
            DataType::Char => 1042,
            DataType::Varchar => 1043,
            DataType::Date => 1082,
            DataType::Timestamp => 1114,
            DataType::TimestampTz => 1184,
            DataType::Numeric => 1700,
        }
    }

    /// The type with this PostgreSQL number.
    pub fn from_oid(oid: u32) -> Option<DataType> {
        DataType::ALL.into_iter().find(|data_type| data_type.oid() == oid)
    }

    /// The size a row description reports: bytes, or −1 for a varying length.
    pub const fn wire_size(self) -> i16 {
        match self {
            DataType::Bool | DataType::CharByte => 1,
            DataType::Int2 => 2,
            DataType::Int4 | DataType::Float4 | DataType::Date | DataType::Oid => 4,
            DataType::Int8 | DataType::Float8 | DataType::Timestamp | DataType::TimestampTz => 8,
            DataType::Name => 64,
            DataType::Numeric | DataType::Text | DataType::Varchar | DataType::Char => -1,
            DataType::Unknown => -2,
        }
    }

    /// The name error messages and EXPLAIN use.
    pub const fn name(self) -> &'static str {
        match self {
            DataType::Bool => "boolean",
            DataType::Int2 => "smallint",
            DataType::Int4 => "integer",
            DataType::Int8 => "bigint",
            DataType::Float4 => "real",
            DataType::Float8 => "double precision",
            DataType::Numeric => "numeric",
            DataType::Text => "text",
            DataType::Varchar => "character varying",
            DataType::Char => "character",
            DataType::Date => "date",
            DataType::Timestamp => "timestamp without time zone",
            DataType::TimestampTz => "timestamp with time zone",
            DataType::CharByte => "\"char\"",
            DataType::Name => "name",
            DataType::Oid => "oid",
            DataType::Unknown => "unknown",
        }
    }

    /// The type's category.
    pub const fn category(self) -> Category {
        match self {
            DataType::Bool => Category::Boolean,
            DataType::Int2
            | DataType::Int4
            | DataType::Int8
            | DataType::Float4
            | DataType::Float8
            | DataType::Numeric
            | DataType::Oid => Category::Numeric,
            DataType::Text | DataType::Varchar | DataType::Char | DataType::Name | DataType::CharByte => {
                Category::String
            }
            DataType::Date | DataType::Timestamp | DataType::TimestampTz => Category::DateTime,
            DataType::Unknown => Category::Unknown,
        }
    }

    /// True if it is one of the two floating-point types.
    pub const fn is_float(self) -> bool {
        matches!(self, DataType::Float4 | DataType::Float8)
    }

    /// True if it is one of the three integer types.
    pub const fn is_integer(self) -> bool {
        matches!(self, DataType::Int2 | DataType::Int4 | DataType::Int8)
    }

    /// True if it is a string type.
    pub const fn is_string(self) -> bool {
        matches!(self.category(), Category::String)
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The declared length of a `char(n)` or `varchar(n)` in characters.
pub fn length_of_typmod(typmod: i32) -> Option<usize> {
    (typmod >= 4).then(|| (typmod - 4) as usize)
}

/// Precision and scale of a `numeric(p, s)`. The scale may be negative, or larger than the precision.
pub fn numeric_of_typmod(typmod: i32) -> Option<(i32, i32)> {
    (typmod >= 4).then(|| {
        let packed = typmod - 4;
        (packed >> 16 & 0xffff, (packed & 0x7ff ^ 0x400) - 0x400)
    })
}

/// The typmod of `numeric(p, s)`.
pub fn numeric_typmod(precision: i32, scale: i32) -> i32 {
    (precision << 16 | scale & 0x7ff) + 4
}

/// The full name with its modifier, as `format_type` shows it: `character varying(10)`, `numeric(10,2)`.
pub fn format_type(data_type: DataType, typmod: i32) -> String {
    match data_type {
        DataType::Char | DataType::Varchar => match length_of_typmod(typmod) {
            Some(length) => format!("{}({length})", data_type.name()),
            None => data_type.name().to_owned(),
        },
        DataType::Numeric => match numeric_of_typmod(typmod) {
            Some((precision, scale)) => format!("numeric({precision},{scale})"),
            None => "numeric".to_owned(),
        },
        DataType::Timestamp if typmod >= 0 => format!("timestamp({typmod}) without time zone"),
        DataType::TimestampTz if typmod >= 0 => format!("timestamp({typmod}) with time zone"),
        _ => data_type.name().to_owned(),
    }
}
