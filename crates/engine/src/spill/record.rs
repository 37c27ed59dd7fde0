//! Rows as bytes and back, for what leaves memory.
//!
//! A value is a byte that tells its kind and the bytes that follow from it, so a row needs no description. Equal rows
//! need not have equal bytes: these are for keeping, index keys ([`encode_value`]) for comparing.

use clearway_sql::checkpoint;
use clearway_sql::error::{EngineError, Result};
use clearway_sql::plan::SortKey;
use clearway_sql::value::key::encode_value;
use clearway_sql::value::record::FieldNames;
use clearway_sql::value::{DataType, Jsonb, RecordValue, TypeOid, Value, decode_binary, encode_binary};

/// Appends a row.
pub(crate) fn write_row(row: &[Value], out: &mut Vec<u8>) {
    out.extend_from_slice(&(row.len() as u32).to_ne_bytes());
    for value in row {
        write_value(value, out);
    }
}

/// Appends a value.
pub(crate) fn write_value(value: &Value, out: &mut Vec<u8>) {
    let kind = match value {
        Value::Null => return out.push(NULL),
        Value::Bool(_) => 1,
        Value::Int2(_) => 2,
        Value::Int4(_) => 3,
        Value::Int8(_) => 4,
        Value::Float8(_) => 5,
        Value::Numeric(_) => NUMERIC,
        Value::Text(_) => TEXT,
        Value::Date(_) => 8,
        Value::Timestamp(_) => 9,
        Value::TimestampTz(_) => 10,
        Value::Oid(_) => 11,
        Value::Float4(_) => 12,
        Value::Array(_) => ARRAY,
        Value::Lsn(_) => 14,
        Value::Tid(..) => 15,
        Value::Record(record) if record.data_type() != DataType::Record => COMPOSITE,
        Value::Record(_) => RECORD,
        Value::Enum(..) => ENUM,
        Value::Time(_) => 17,
        Value::TimeTz(..) => 18,
        Value::Interval(_) => 19,
        Value::Uuid(_) => 20,
        Value::Inet(_) => INET,
        Value::Cidr(_) => CIDR,
        Value::MacAddr(_) => 28,
        Value::MacAddr8(_) => 29,
        Value::Bytes(_) => BYTES,
        Value::Json(_) => JSON,
        Value::Jsonb(_) => JSONB,
        Value::Stored(_) => STORED,
    };
    out.push(kind);
    if let Value::Text(text) = value {
        out.extend_from_slice(&(text.len() as u32).to_ne_bytes());
        return out.extend_from_slice(text.as_bytes());
    }
    if let Value::Enum(oid, position) = value {
        out.extend_from_slice(&oid.get().to_ne_bytes());
        return out.extend_from_slice(&position.to_be_bytes());
    }
    match value {
        Value::Array(array) => out.extend_from_slice(&array.data_type().oid().to_ne_bytes()),
        Value::Record(record) if kind == COMPOSITE => {
            out.extend_from_slice(&record.data_type().oid().to_ne_bytes());
        }
        _ => {}
    }
    let start = out.len();
    let counted = matches!(
        kind,
        NUMERIC | ARRAY | RECORD | COMPOSITE | INET | CIDR | BYTES | JSON | JSONB | STORED
    );
    if counted {
        out.extend_from_slice(&[0; 4]);
    }
    match value {
        Value::Jsonb(json) => out.extend_from_slice(json.bytes()),
        Value::Stored(stored) => out.extend_from_slice(stored),
        other => encode_binary(other, out),
    }
    if counted {
        let length = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&length.to_ne_bytes());
    }
    if has_names(value) {
        write_names(value, &mut None, out);
    }
}

/// True if behind the value's bytes come the names of the fields of the records in it.
fn has_names(value: &Value) -> bool {
    match value {
        Value::Record(record) => record.data_type() == DataType::Record,
        Value::Array(array) => array.element_type() == DataType::Record,
        _ => false,
    }
}

/// Mark of a record's names: it has none, the same as the record before, or others, whose number and texts follow.
const NO_NAMES: u8 = 0;
const SAME_NAMES: u8 = 1;
const OTHER_NAMES: u8 = 2;

/// Appends the names of the fields of the records in a value, from the outside in.
fn write_names(value: &Value, last: &mut Option<FieldNames>, out: &mut Vec<u8>) {
    if !has_names(value) {
        return;
    }
    let inner = match value {
        Value::Record(record) => {
            match (record.names(), &last) {
                (None, _) => out.push(NO_NAMES),
                (Some(names), Some(before)) if names == before => out.push(SAME_NAMES),
                (Some(names), _) => {
                    out.push(OTHER_NAMES);
                    out.extend_from_slice(&(names.len() as u32).to_ne_bytes());
                    for name in names.iter() {
                        out.extend_from_slice(&(name.len() as u32).to_ne_bytes());
                        out.extend_from_slice(name.as_bytes());
                    }
                    *last = Some(names.clone());
                }
            }
            record.fields()
        }
        Value::Array(array) => array.elements(),
        _ => return,
    };
    for value in inner {
        checkpoint(|| write_names(value, last, out));
    }
}

/// The value with the names that [`write_names`] has written.
fn read_names(value: Value, last: &mut Option<FieldNames>, bytes: &mut &[u8]) -> Result<Value> {
    if !has_names(&value) {
        return Ok(value);
    }
    match value {
        Value::Record(record) => {
            let names = match take(bytes, 1)?[0] {
                NO_NAMES => None,
                SAME_NAMES => last.clone(),
                OTHER_NAMES => {
                    let mut names: Vec<Box<str>> = Vec::new();
                    for _ in 0..read_u32(bytes)? {
                        let length = read_u32(bytes)? as usize;
                        let name = std::str::from_utf8(take(bytes, length)?).map_err(|_| damaged())?;
                        names.push(name.into());
                    }
                    *last = Some(names.into());
                    last.clone()
                }
                _ => return Err(damaged()),
            };
            let types = record.types().into();
            let mut fields = record.into_fields();
            for field in &mut fields {
                let read = checkpoint(|| read_names(std::mem::take(field), last, bytes));
                *field = read?;
            }
            Ok(RecordValue::new(fields, types)?.with_names(names).into())
        }
        Value::Array(array) => {
            let of = array.data_type();
            let read = array.try_map(of, |element| checkpoint(|| read_names(element, last, bytes)));
            Ok(read?.into())
        }
        other => Ok(other),
    }
}

const NULL: u8 = 0;
const NUMERIC: u8 = 6;
const TEXT: u8 = 7;
const BYTES: u8 = 21;
const JSON: u8 = 22;
const JSONB: u8 = 23;
/// The place of a long value.
const STORED: u8 = 30;
const INET: u8 = 26;
const CIDR: u8 = 27;
/// The array's type follows.
const ARRAY: u8 = 13;
const RECORD: u8 = 16;
/// The type's number follows.
const COMPOSITE: u8 = 24;
/// The type's number and the label's position follow.
const ENUM: u8 = 25;

/// Replaces `row` by the row at the front of `bytes`, and takes it off.
pub(crate) fn read_row(bytes: &mut &[u8], row: &mut Vec<Value>) -> Result<()> {
    row.clear();
    let count = read_u32(bytes)?;
    for _ in 0..count {
        row.push(read_value(bytes)?);
    }
    Ok(())
}

/// Takes a value off the front of `bytes`.
pub(crate) fn read_value(bytes: &mut &[u8]) -> Result<Value> {
    let kind = take(bytes, 1)?[0];
    let (data_type, length) = match kind {
        NULL => return Ok(Value::Null),
        1 => (DataType::Bool, 1),
        2 => (DataType::Int2, 2),
        3 => (DataType::Int4, 4),
        4 => (DataType::Int8, 8),
        5 => (DataType::Float8, 8),
        NUMERIC => (DataType::Numeric, read_u32(bytes)? as usize),
        TEXT => (DataType::Text, read_u32(bytes)? as usize),
        8 => (DataType::Date, 4),
        9 => (DataType::Timestamp, 8),
        10 => (DataType::TimestampTz, 8),
        11 => (DataType::Oid, 4),
        12 => (DataType::Float4, 4),
        14 => (DataType::PgLsn, 8),
        15 => (DataType::Tid, 6),
        RECORD => (DataType::Record, read_u32(bytes)? as usize),
        17 => (DataType::Time, 8),
        18 => (DataType::TimeTz, 12),
        19 => (DataType::Interval, 16),
        20 => (DataType::Uuid, 16),
        28 => (DataType::MacAddr, 6),
        29 => (DataType::MacAddr8, 8),
        INET => (DataType::Inet, read_u32(bytes)? as usize),
        CIDR => (DataType::Cidr, read_u32(bytes)? as usize),
        JSON => {
            let length = read_u32(bytes)? as usize;
            let text = std::str::from_utf8(take(bytes, length)?).map_err(|_| damaged())?;
            return Ok(Value::Json(text.into()));
        }
        JSONB => {
            let length = read_u32(bytes)? as usize;
            let json = Jsonb::from_bytes(take(bytes, length)?).ok_or_else(damaged)?;
            return Ok(Value::Jsonb(json));
        }
        STORED => {
            let length = read_u32(bytes)? as usize;
            return Ok(Value::Stored(take(bytes, length)?.into()));
        }
        BYTES => (DataType::Bytea, read_u32(bytes)? as usize),
        ENUM => {
            let oid = TypeOid::new(read_u32(bytes)?).ok_or_else(damaged)?;
            return Ok(Value::Enum(oid, read_u64(bytes)? as i64));
        }
        ARRAY | COMPOSITE => {
            let data_type = DataType::from_oid(read_u32(bytes)?).ok_or_else(damaged)?;
            (data_type, read_u32(bytes)? as usize)
        }
        _ => return Err(damaged()),
    };
    let value = decode_binary(take(bytes, length)?, data_type)?;
    read_names(value, &mut None, bytes)
}

/// Takes a number off the front of `bytes`.
pub(crate) fn read_u64(bytes: &mut &[u8]) -> Result<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or_else(damaged)?;
    *bytes = rest;
    Ok(u64::from_be_bytes(*number))
}

fn read_u32(bytes: &mut &[u8]) -> Result<u32> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(damaged)?;
    *bytes = rest;
    Ok(u32::from_ne_bytes(*number))
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Result<&'b [u8]> {
    let (now, later) = bytes.split_at_checked(count).ok_or_else(damaged)?;
    *bytes = later;
    Ok(now)
}

#[cold]
fn damaged() -> EngineError {
    EngineError::internal("a record of a temporary file is damaged")
}

/// Appends the bytes whose order is the order of rows under `keys`.
///
/// Index keys order ascending with NULLs last. A column's first byte tells NULL from the rest: it is replaced where
/// NULLs come first. The bytes after it are inverted where the order is descending; no key is the beginning of
/// another, so that turns their order around.
pub(crate) fn write_sort_key(row: &[Value], keys: &[SortKey], out: &mut Vec<u8>) {
    for key in keys {
        let value = &row[key.column];
        if value.is_null() {
            out.push(if key.nulls_first { 0x00 } else { 0xff });
            continue;
        }
        let start = out.len();
        encode_value(value, key.data_type, out);
        if key.descending {
            out[start + 1..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clearway_sql::value::{ArrayValue, compare, decode_text};
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn json_text() -> impl Strategy<Value = String> {
        let scalar = || prop_oneof!["[0-9]", "\"[a-c]{0,2}\"", "null|true|false"];
        prop_oneof![
            scalar(),
            prop::collection::vec(scalar(), 0..3).prop_map(|elements| format!("[{}]", elements.join(", "))),
            prop::collection::vec(scalar(), 0..3).prop_map(|values| {
                let members = values
                    .iter()
                    .enumerate()
                    .map(|(at, value)| format!("\"{at}\": {value}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    }

    fn value_and_type() -> impl Strategy<Value = (Vec<Value>, DataType)> {
        fn pairs(
            values: impl Strategy<Value = Value> + 'static,
            data_type: DataType,
        ) -> BoxedStrategy<(Vec<Value>, DataType)> {
            let or_null = prop_oneof![1 => Just(Value::Null), 4 => values];
            prop::collection::vec(or_null, 2)
                .prop_map(move |values| (values, data_type))
                .boxed()
        }
        prop_oneof![
            pairs((-3i32..3).prop_map(Value::Int4), DataType::Int4),
            pairs(any::<i64>().prop_map(Value::Int8), DataType::Int8),
            pairs(any::<f32>().prop_map(Value::Float4), DataType::Float4),
            pairs(any::<f64>().prop_map(Value::Float8), DataType::Float8),
            pairs("[a-c\u{e4} ]{0,4}".prop_map(Value::text), DataType::Text),
            pairs("[ab ]{0,3}".prop_map(Value::text), DataType::Char),
            pairs(
                prop::collection::vec(
                    prop_oneof![Just(Value::Null), "[ab,]{0,2}".prop_map(Value::text)],
                    0..3
                )
                .prop_map(|elements| {
                    ArrayValue::of(DataType::array_of(DataType::Text), elements)
                        .unwrap()
                        .into()
                }),
                DataType::array_of(DataType::Text)
            ),
            pairs(
                json_text().prop_map(|text| Value::Json(text.into())),
                DataType::Json
            ),
            pairs(
                json_text().prop_map(|text| decode_text(&text, DataType::Jsonb, 0).unwrap()),
                DataType::Jsonb
            ),
            pairs(
                (-5_000i64..5_000, 0u32..4).prop_map(|(digits, scale)| {
                    let text = format!("{digits}e-{scale}");
                    clearway_sql::value::decode_text(&text, DataType::Numeric, 0).unwrap()
                }),
                DataType::Numeric
            ),
        ]
    }

    #[test]
    fn a_place_survives() {
        let row = [Value::Stored([2; 27].into()), Value::Int4(1)];
        let (mut bytes, mut read) = (Vec::new(), Vec::new());
        write_row(&row, &mut bytes);
        read_row(&mut &bytes[..], &mut read).unwrap();
        assert_eq!(read, row);
        assert!(read_row(&mut &bytes[..20], &mut read).is_err());
    }

    proptest! {
        #[test]
        fn sort_keys_order_as_rows_do(
            (values, data_type) in value_and_type(),
            descending: bool,
            nulls_first: bool,
        ) {
            let key = SortKey { column: 0, data_type, descending, nulls_first };
            let bytes = |value: &Value| {
                let mut out = Vec::new();
                write_sort_key(std::slice::from_ref(value), std::slice::from_ref(&key), &mut out);
                out
            };
            let (left, right) = (&values[0], &values[1]);
            let expected = match (left.is_null(), right.is_null()) {
                (true, true) => Ordering::Equal,
                (true, false) if nulls_first => Ordering::Less,
                (true, false) => Ordering::Greater,
                (false, true) if nulls_first => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) if descending => compare(right, left, data_type),
                (false, false) => compare(left, right, data_type),
            };
            prop_assert_eq!(bytes(left).cmp(&bytes(right)), expected);
        }

        #[test]
        fn rows_survive((values, _) in value_and_type()) {
            let mut bytes = Vec::new();
            write_row(&values, &mut bytes);
            let mut row = vec![Value::Bool(true)];
            let mut rest = &bytes[..];
            read_row(&mut rest, &mut row).unwrap();
            prop_assert!(rest.is_empty());
            // As text: NaN is not equal to itself.
            prop_assert_eq!(format!("{values:?}"), format!("{row:?}"));
        }
    }
}
