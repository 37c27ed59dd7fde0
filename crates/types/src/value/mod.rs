//! Values and their types.
//!
//! A [`Value`] is one SQL value, NULL included, 24 bytes, carrying only what its bits mean; what SQL type it *has* is
//! known statically by the expression or column it belongs to ([`DataType`]). So `varchar`, `char(n)`, `text` and
//! `name` all share [`Value::Text`]: a `char(n)` value is stored with its blanks, and code that compares or encodes it
//! gets the type and leaves them out.
//!
//! | module | job |
//! |---|---|
//! | `type_table` | all types: numbers, names, categories |
//! | `datatype` | what follows from the table; modifiers |
//! | `text`, `datetime` | PostgreSQL's text form, in and out |
//! | `binary` | PostgreSQL's binary form, in and out |
//! | `compare` | order and equality |
//! | `numeric` | exact decimals |
//! | `lsn` | positions in the log, places of rows |
//! | `bytes`, `uuid` | the text forms of `bytea` and `uuid` |
//! | `network` | addresses of hosts, networks and devices |
//! | `json` | JSON: trees, the bytes of `jsonb`, their forms |
//! | `array` | arrays: elements, dimensions, their forms |
//! | `user_type` | the types that users define |
//! | `record` | records: fields and their types, their forms |
//! | `arithmetic` | `+ - * / %`, with overflow found |
//! | `cast` | conversion between types; what is implicit, on assignment, explicit |
//! | `modifier` | what type modifiers do to values |
//! | `key` | order-preserving bytes for index keys |
//! | `long` | long values as rows keep them: compressed, or stored apart |
//! | `sent` | long values as clients get them: in pieces |
//! | `row` | a table row as bytes, and single columns out of it |
//! | `row_bytes` | a bound for the texts of a row |
//!
//! The collation is "C": strings order by their bytes, which in UTF-8 is code-point order. The encoding is UTF-8,
//! and the character NUL is refused, as PostgreSQL refuses it; the key encoding relies on that.

pub mod arithmetic;
pub mod array;
pub mod binary;
pub mod bytes;
pub mod cast;
mod column_set;
pub mod compare;
pub mod datatype;
pub mod datetime;
pub mod json;
pub mod key;
pub mod long;
pub mod lsn;
mod modifier;
pub mod network;
pub mod numeric;
pub mod place;
/// The characters that PostgreSQL takes for white space around a value.
pub(crate) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c')
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int8(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Int4(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.into())
    }
}

#[cfg(test)]
mod properties;
pub mod range_offset;
pub mod record;
pub mod row;
mod row_bytes;
mod row_segment;
pub mod row_value;
pub mod sent;
pub mod text;
pub mod type_table;
pub mod user_type;
pub mod uuid;

pub use array::ArrayValue;
pub use binary::{decode_binary, encode_binary};
pub use column_set::ColumnSet;
pub use compare::{compare, compare_checked};
pub use datatype::{CatalogObject, Category, DataType, NO_TYPMOD, format_type};
pub use datetime::Interval;
pub use json::Jsonb;
pub use key::{KeyBuffer, encode_identities, encode_key};
pub use network::Inet;
pub use numeric::Numeric;
pub use record::RecordValue;
pub use row::{Rewrite, RowCodec};
pub use row_bytes::TextsTogether;
pub use row_segment::StoredAttribute;
pub use row_value::Decoded;
pub use text::{decode_text, encode_text};
pub use type_table::{ElementType, TypeInfo, TypeOid};

/// One SQL value.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// NULL, of any type
    #[default]
    Null,
    /// `boolean`
    Bool(bool),
    /// `smallint`
    Int2(i16),
    /// `integer`
    Int4(i32),
    /// `bigint`
    Int8(i64),
    /// `real`
    Float4(f32),
    /// `double precision`
    Float8(f64),
    /// `numeric`
    Numeric(Numeric),
    /// All string types
    Text(Box<str>),
    /// `date`: days since 2000-01-01; `i32::MAX` and `i32::MIN` are the infinities
    Date(i32),
    /// `timestamp`: microseconds since 2000-01-01 00:00; `i64::MAX` and `i64::MIN` are the infinities
    Timestamp(i64),
    /// `timestamptz`: microseconds since 2000-01-01 00:00 UTC
    TimestampTz(i64),
    /// `time`: microseconds since midnight, up to 24:00
    Time(i64),
    /// `timetz`: microseconds since midnight, and seconds west of Greenwich
    TimeTz(i64, i32),
    /// `interval`
    Interval(Interval),
    /// `uuid`
    Uuid([u8; 16]),
    /// `inet`
    Inet(Inet),
    /// `cidr`: no bit behind the prefix is set
    Cidr(Inet),
    /// `macaddr`
    MacAddr([u8; 6]),
    /// `macaddr8`
    MacAddr8([u8; 8]),
    /// `bytea`
    Bytes(Box<[u8]>),
    /// `oid`, the types that show names for one, `xid` and `cid`
    Oid(u32),
    /// `pg_lsn`
    Lsn(u64),
    /// `tid`: page, and number in it
    Tid(u32, u16),
    /// An array, or a vector of the catalog
    Array(Box<ArrayValue>),
    /// `json`: the text as it was written
    Json(Box<str>),
    /// `jsonb`
    Jsonb(Jsonb),
    /// A record, or a value of a composite type
    Record(Box<RecordValue>),
    /// A value of an enumeration: the type's number, and the position of its label
    Enum(TypeOid, i64),
    /// The stored form of a value in a row; no expression ever sees one (L3 of [`long`])
    Stored(Box<[u8]>),
}

const _: () = assert!(size_of::<Value>() == 24);

impl Value {
    /// A string value.
    pub fn text(text: impl Into<Box<str>>) -> Value {
        Value::Text(text.into())
    }

    /// The bytes it has on the heap.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Json(text) => text.len(),
            Value::Jsonb(json) => json.bytes().len(),
            Value::Stored(stored) => stored.len(),
            Value::Numeric(number) => number.heap_bytes(),
            Value::Array(array) => array.heap_bytes(),
            Value::Record(record) => record.heap_bytes(),
            _ => 0,
        }
    }

    /// False if it was read from damaged bytes, as far as reading has not told: of `jsonb`, reading looks at the head alone.
    pub fn is_whole(&self) -> bool {
        match self {
            Value::Jsonb(json) => json.is_whole(),
            Value::Array(array) => array.elements().iter().all(Value::is_whole),
            Value::Record(record) => record.fields().iter().all(Value::is_whole),
            _ => true,
        }
    }

    /// The answers of IS NULL and of IS NOT NULL: of a record both ask all its fields.
    #[inline]
    pub fn nulls(&self) -> (bool, bool) {
        match self {
            Value::Null => (true, false),
            Value::Record(record) => (
                record.fields().iter().all(Value::is_null),
                !record.fields().iter().any(Value::is_null),
            ),
            _ => (false, true),
        }
    }

    /// True if it is NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// True if it has nothing on the heap, so that dropping it does nothing.
    #[inline]
    fn is_plain(&self) -> bool {
        use Value::*;
        matches!(
            self,
            Null | Bool(_)
                | Int2(_)
                | Int4(_)
                | Int8(_)
                | Float4(_)
                | Float8(_)
                | Date(_)
                | Timestamp(_)
                | TimestampTz(_)
                | Time(_)
                | TimeTz(..)
                | Interval(_)
                | Uuid(_)
                | Oid(_)
                | Lsn(_)
                | Tid(..)
                | Enum(..)
                | Inet(_)
                | MacAddr(_)
                | MacAddr8(_)
        )
    }

    /// Drops it, by a call only if there is something to drop: most values of most rows have nothing on the heap, and the
    /// compiler's own drop is a call and a jump over all kinds.
    #[inline]
    pub fn discard(self) {
        if self.is_plain() {
            std::mem::forget(self);
        }
    }

    /// Assigns `value`, and [discards](Self::discard) what was there.
    #[inline]
    pub fn put(&mut self, value: Value) {
        std::mem::replace(self, value).discard();
    }

    /// Empties a row.
    #[inline]
    pub fn clear_row(row: &mut Vec<Value>) {
        while let Some(value) = row.pop() {
            value.discard();
        }
    }

    /// Makes a row one of `count` NULLs.
    #[inline]
    pub fn reset_row(row: &mut Vec<Value>, count: usize) {
        if row.len() == count {
            row.iter_mut().for_each(|value| value.put(Value::Null));
        } else {
            Value::clear_row(row);
            // Not `resize`, which clones a value that it is given: that is a match over its kinds, for each column.
            row.resize_with(count, || Value::Null);
        }
    }

    /// The integer of any of the integer types.
    #[inline]
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int2(v) => Some(i64::from(*v)),
            Value::Int4(v) => Some(i64::from(*v)),
            Value::Int8(v) => Some(*v),
            Value::Oid(v) => Some(i64::from(*v)),
            _ => None,
        }
    }

    /// The string of any of the string types.
    #[inline]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value; `None` for NULL and for anything else.
    #[inline]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(v) => Some(*v),
            _ => None,
        }
    }

    /// The type these bits have when nothing else is said.
    pub fn natural_type(&self) -> DataType {
        match self {
            Value::Null => DataType::Unknown,
            Value::Bool(_) => DataType::Bool,
            Value::Int2(_) => DataType::Int2,
            Value::Int4(_) => DataType::Int4,
            Value::Int8(_) => DataType::Int8,
            Value::Float4(_) => DataType::Float4,
            Value::Float8(_) => DataType::Float8,
            Value::Numeric(_) => DataType::Numeric,
            Value::Text(_) => DataType::Text,
            Value::Date(_) => DataType::Date,
            Value::Timestamp(_) => DataType::Timestamp,
            Value::TimestampTz(_) => DataType::TimestampTz,
            Value::Time(_) => DataType::Time,
            Value::TimeTz(..) => DataType::TimeTz,
            Value::Interval(_) => DataType::Interval,
            Value::Uuid(_) => DataType::Uuid,
            Value::Inet(_) => DataType::Inet,
            Value::Cidr(_) => DataType::Cidr,
            Value::MacAddr(_) => DataType::MacAddr,
            Value::MacAddr8(_) => DataType::MacAddr8,
            Value::Bytes(_) => DataType::Bytea,
            Value::Json(_) => DataType::Json,
            Value::Jsonb(_) => DataType::Jsonb,
            Value::Oid(_) => DataType::Oid,
            Value::Lsn(_) => DataType::PgLsn,
            Value::Tid(..) => DataType::Tid,
            Value::Array(array) => array.data_type(),
            Value::Record(record) => record.data_type(),
            Value::Enum(oid, _) => DataType::Enum(*oid),
            Value::Stored(_) => DataType::Unknown,
        }
    }
}
