//! A value inside of a row ([`row`](super::row)): its own bytes in a place of fixed width, a length and as many bytes, or a
//! stored form ([`long`](super::long)). Elements of arrays and fields of records are written alike.

use crate::value::array::{push_length, read_array, read_length, with_length, write_array};
use crate::value::long::{StoredForm, restored};
use crate::value::network::binary::{read_inet, write_inet};
use crate::value::{DataType, Interval, Jsonb, Numeric, RecordValue, Value, decode_binary, encode_binary};

/// The values of a row that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Decoded {
    /// All are there.
    Whole,
    /// In the place of some there is a [`Value::Stored`]: they are stored apart from the row.
    Apart,
}

/// The bytes that each value of a type takes in a row; `None` if they differ.
pub(super) fn width(data_type: DataType) -> Option<u32> {
    match data_type {
        DataType::Bool => Some(1),
        DataType::Int2 => Some(2),
        DataType::Int4 | DataType::Float4 | DataType::Date | DataType::Oid => Some(4),
        DataType::Int8 | DataType::Float8 | DataType::Timestamp | DataType::TimestampTz | DataType::PgLsn => {
            Some(8)
        }
        DataType::Time => Some(8),
        DataType::TimeTz => Some(12),
        DataType::Interval | DataType::Uuid => Some(16),
        DataType::Xid | DataType::Cid => Some(4),
        DataType::Enum(_) | DataType::MacAddr8 => Some(8),
        DataType::Tid | DataType::MacAddr => Some(6),
        other if other.is_oid() => Some(4),
        _ => None,
    }
}

impl DataType {
    /// True if all its values take as much of a row.
    pub fn has_fixed_width(self) -> bool {
        width(self).is_some()
    }

    /// A type of the system whose values take as much of a row: for a column that is dropped, since its own type may go.
    pub fn of_same_width(self) -> DataType {
        match self.base() {
            DataType::Enum(_) => DataType::Int8,
            base if width(base).is_some() => base,
            _ => DataType::Bytea,
        }
    }
}

/// In front of a stored form: a length of 0 in two bytes, which no value is written with.
const STORED: [u8; 2] = [0x80, 0];

/// A varying column's part of a row.
pub(super) enum Part<'b> {
    /// The value's own bytes.
    Content(&'b [u8]),
    /// A stored form.
    Stored(&'b [u8]),
}

/// The part at the front of `bytes`, and how many of them it takes.
#[inline]
pub(super) fn read_part(bytes: &[u8]) -> Option<(Part<'_>, usize)> {
    let (length, used) = read_length(bytes)?;
    if length == 0 && used > 1 {
        return read_stored_part(bytes);
    }
    let end = used + length;
    Some((Part::Content(bytes.get(used..end)?), end))
}

#[cold]
fn read_stored_part(bytes: &[u8]) -> Option<(Part<'_>, usize)> {
    let rest = bytes.strip_prefix(&STORED)?;
    let (length, used) = read_length(rest)?;
    let end = used + length;
    Some((Part::Stored(rest.get(used..end)?), STORED.len() + end))
}

/// The value of a stored form, restored if it is in the row.
#[cold]
pub(super) fn read_stored(bytes: &[u8], data_type: DataType) -> Option<(Value, Decoded)> {
    Some(match StoredForm::parse(bytes)? {
        StoredForm::Compressed { raw_length, blocks } => {
            let content = restored(raw_length, blocks)?;
            (value_of(content, data_type)?, Decoded::Whole)
        }
        StoredForm::Apart(_) => (Value::Stored(bytes.into()), Decoded::Apart),
    })
}

/// The first `N` bytes, which must be there.
#[inline]
pub(super) fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes[..N].try_into().expect("the slice has this length")
}

/// Writes a value of fixed width to the front of `out`.
pub(super) fn write_fixed(value: &Value, out: &mut [u8]) {
    match value {
        Value::Int4(v) | Value::Date(v) => out[..4].copy_from_slice(&v.to_le_bytes()),
        Value::Int8(v) | Value::Timestamp(v) | Value::TimestampTz(v) | Value::Time(v) => {
            out[..8].copy_from_slice(&v.to_le_bytes())
        }
        Value::Int2(v) => out[..2].copy_from_slice(&v.to_le_bytes()),
        Value::Bool(v) => out[0] = u8::from(*v),
        Value::Float4(v) => out[..4].copy_from_slice(&v.to_le_bytes()),
        Value::Float8(v) => out[..8].copy_from_slice(&v.to_le_bytes()),
        Value::Oid(v) => out[..4].copy_from_slice(&v.to_le_bytes()),
        Value::Lsn(v) => out[..8].copy_from_slice(&v.to_le_bytes()),
        Value::Tid(page, number) => {
            out[..4].copy_from_slice(&page.to_le_bytes());
            out[4..6].copy_from_slice(&number.to_le_bytes());
        }
        Value::TimeTz(time, zone) => {
            out[..8].copy_from_slice(&time.to_le_bytes());
            out[8..12].copy_from_slice(&zone.to_le_bytes());
        }
        Value::Interval(v) => {
            out[..8].copy_from_slice(&v.micros.to_le_bytes());
            out[8..12].copy_from_slice(&v.days.to_le_bytes());
            out[12..16].copy_from_slice(&v.months.to_le_bytes());
        }
        Value::MacAddr(v) => out[..6].copy_from_slice(v),
        Value::MacAddr8(v) => out[..8].copy_from_slice(v),
        Value::Uuid(v) => out[..16].copy_from_slice(v),
        Value::Enum(_, position) => out[..8].copy_from_slice(&position.to_le_bytes()),
        other => panic!("{other:?} has no fixed width"),
    }
}

/// The value of fixed width at the front of `bytes`.
#[inline]
pub(super) fn read_fixed(data_type: DataType, bytes: &[u8]) -> Value {
    match data_type {
        DataType::Int4 => Value::Int4(i32::from_le_bytes(array(bytes))),
        DataType::Int8 => Value::Int8(i64::from_le_bytes(array(bytes))),
        DataType::Int2 => Value::Int2(i16::from_le_bytes(array(bytes))),
        DataType::Bool => Value::Bool(bytes[0] != 0),
        DataType::Float4 => Value::Float4(f32::from_le_bytes(array(bytes))),
        DataType::Float8 => Value::Float8(f64::from_le_bytes(array(bytes))),
        DataType::Date => Value::Date(i32::from_le_bytes(array(bytes))),
        DataType::Timestamp => Value::Timestamp(i64::from_le_bytes(array(bytes))),
        DataType::TimestampTz => Value::TimestampTz(i64::from_le_bytes(array(bytes))),
        DataType::PgLsn => Value::Lsn(u64::from_le_bytes(array(bytes))),
        DataType::Tid => Value::Tid(
            u32::from_le_bytes(array(bytes)),
            u16::from_le_bytes(array(&bytes[4..])),
        ),
        DataType::Time => Value::Time(i64::from_le_bytes(array(bytes))),
        DataType::TimeTz => Value::TimeTz(
            i64::from_le_bytes(array(bytes)),
            i32::from_le_bytes(array(&bytes[8..])),
        ),
        DataType::Interval => Value::Interval(Interval {
            micros: i64::from_le_bytes(array(bytes)),
            days: i32::from_le_bytes(array(&bytes[8..])),
            months: i32::from_le_bytes(array(&bytes[12..])),
        }),
        DataType::Uuid => Value::Uuid(array(bytes)),
        DataType::MacAddr => Value::MacAddr(array(bytes)),
        DataType::MacAddr8 => Value::MacAddr8(array(bytes)),
        DataType::Enum(oid) => Value::Enum(oid, i64::from_le_bytes(array(bytes))),
        // The types of numbers of the catalog: no other has a fixed width.
        _ => Value::Oid(u32::from_le_bytes(array(bytes))),
    }
}

/// Appends a value of varying width with its length; nothing for NULL.
#[inline]
pub(super) fn write_varying(value: &Value, data_type: DataType, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => {
            push_length(text.len(), out);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Bytes(bytes) => {
            push_length(bytes.len(), out);
            out.extend_from_slice(bytes);
        }
        Value::Json(text) => {
            push_length(text.len(), out);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Jsonb(json) => {
            push_length(json.bytes().len(), out);
            out.extend_from_slice(json.bytes());
        }
        Value::Inet(value) | Value::Cidr(value) => with_length(out, |out| write_inet(*value, out)),
        Value::Numeric(value) => with_length(out, |out| value.to_stored(out)),
        Value::Array(array) => with_length(out, |out| write_array(array, write_element, out)),
        Value::Record(record) => match data_type {
            DataType::Composite(_) => with_length(out, |out| record.to_stored(write_element, out)),
            _ => with_length(out, |out| encode_binary(value, out)),
        },
        Value::Stored(stored) => {
            out.extend_from_slice(&STORED);
            push_length(stored.len(), out);
            out.extend_from_slice(stored);
        }
        Value::Null => {}
        other => panic!("{other:?} has no place in a column of type {data_type}"),
    }
}

/// The value of a type with this content; `None` if it is damaged. The bytes of a string, of `bytea`, `json` and `jsonb`
/// become the value's.
pub fn value_of(content: Vec<u8>, data_type: DataType) -> Option<Value> {
    Some(match data_type.base() {
        DataType::Bytea => Value::Bytes(content.into()),
        DataType::Json => Value::Json(String::from_utf8(content).ok()?.into()),
        DataType::Jsonb => Value::Jsonb(Jsonb::of_restored(content)?),
        base if base.is_string() => Value::Text(String::from_utf8(content).ok()?.into()),
        base => read_varying(&content, base)?,
    })
}

/// The value of varying width with this content; `None` if it is damaged.
#[inline]
pub(super) fn read_varying(content: &[u8], data_type: DataType) -> Option<Value> {
    Some(match data_type {
        DataType::Numeric => Value::Numeric(Numeric::from_stored(content)?),
        DataType::Bytea => Value::Bytes(content.into()),
        DataType::Json => Value::Json(std::str::from_utf8(content).ok()?.into()),
        DataType::Inet => Value::Inet(read_inet(content)?),
        DataType::Cidr => Value::Cidr(read_inet(content).filter(|value| value.is_network())?),
        DataType::Jsonb => Value::Jsonb(Jsonb::of_row(content)?),
        DataType::Array(_) | DataType::Int2Vector | DataType::OidVector => {
            read_array(content, data_type, read_element)?.into()
        }
        DataType::Record => decode_binary(content, data_type).ok()?,
        DataType::Composite(oid) => RecordValue::from_stored(content, oid, read_element)?.into(),
        _ => Value::Text(std::str::from_utf8(content).ok()?.into()),
    })
}

/// Appends an element of an array, or a field of a record.
fn write_element(value: &Value, data_type: DataType, out: &mut Vec<u8>) {
    let data_type = data_type.base();
    match width(data_type) {
        Some(width) => {
            let start = out.len();
            out.resize(start + width as usize, 0);
            write_fixed(value, &mut out[start..]);
        }
        None => write_varying(value, data_type, out),
    }
}

/// Takes an element of an array, or a field of a record, off the front of `bytes`.
fn read_element(bytes: &mut &[u8], data_type: DataType) -> Option<Value> {
    let data_type = data_type.base();
    let fixed = width(data_type);
    let (length, used) = match fixed {
        Some(width) => (width as usize, 0),
        None => read_length(bytes)?,
    };
    let (content, rest) = bytes[used..].split_at_checked(length)?;
    *bytes = rest;
    match fixed {
        Some(_) => Some(read_fixed(data_type, content)),
        None => read_varying(content, data_type),
    }
}
