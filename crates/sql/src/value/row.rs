//! A table row as bytes.
//!
//! ```text
//! ┌─────────────┬──────────────────────────────┬───────────────────────────────────────────┐
//! │ null bitmap │ fixed-width columns, in order│ varying columns, in order: length, bytes… │
//! └─────────────┴──────────────────────────────┴───────────────────────────────────────────┘
//!  ⌈columns/8⌉    1, 2, 4 or 8 bytes each          length: 1 byte to 127, else 2 to 4
//! ```
//!
//! A fixed-width column keeps its place even when it is NULL, so its offset is known when the table is: reading one
//! integer is one load, and changing one ([`RowCodec::patch`]) neither moves nor decodes anything else. Numbers are
//! little-endian. A bit set in the bitmap means NULL.
//!
//! Bytes that do not decode are an error (XX001), never a panic: they come from a file.

use std::fmt;

use crate::error::{EngineError, Result, SqlState};
use crate::value::array::{push_length, read_array, read_length, with_length, write_array};
use crate::value::{DataType, Numeric, Value};

/// The columns of a table that are wanted.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ColumnSet {
    bits: Vec<u64>,
}

impl ColumnSet {
    /// No column.
    pub fn new() -> ColumnSet {
        ColumnSet::default()
    }

    /// The first `count` columns.
    pub fn all(count: usize) -> ColumnSet {
        let mut set = ColumnSet::new();
        (0..count).for_each(|column| set.insert(column as u16));
        set
    }

    /// Adds a column.
    pub fn insert(&mut self, column: u16) {
        let word = usize::from(column) / 64;
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        self.bits[word] |= 1 << (column % 64);
    }

    /// True if a column is in it.
    #[inline]
    pub fn contains(&self, column: u16) -> bool {
        self.bits
            .get(usize::from(column) / 64)
            .is_some_and(|word| word >> (column % 64) & 1 == 1)
    }

    /// Adds all columns of another set.
    pub fn union(&mut self, other: &ColumnSet) {
        other.iter().for_each(|column| self.insert(column));
    }

    /// Its columns, in order.
    pub fn iter(&self) -> impl Iterator<Item = u16> + '_ {
        let (mut at, mut rest) = (0, self.bits.first().copied().unwrap_or(0));
        std::iter::from_fn(move || {
            while rest == 0 {
                at += 1;
                rest = *self.bits.get(at)?;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some((at * 64 + bit) as u16)
        })
    }

    /// True if it has no column.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }
}

impl fmt::Debug for ColumnSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The place of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At this offset from the row's start.
    Fixed(u32),
    /// The n-th varying column.
    Varying(u16),
}

/// The layout of one table's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowCodec {
    types: Vec<DataType>,
    places: Vec<Place>,
    /// The varying columns, in order.
    varying: Vec<u16>,
    /// The start of the varying part.
    varying_start: usize,
}

const fn width(data_type: DataType) -> Option<u32> {
    match data_type {
        DataType::Bool => Some(1),
        DataType::Int2 => Some(2),
        DataType::Int4 | DataType::Float4 | DataType::Date | DataType::Oid => Some(4),
        DataType::Int8 | DataType::Float8 | DataType::Timestamp | DataType::TimestampTz | DataType::PgLsn => {
            Some(8)
        }
        DataType::Xid | DataType::Cid => Some(4),
        DataType::Tid => Some(6),
        other if other.is_oid() => Some(4),
        _ => None,
    }
}

impl RowCodec {
    /// The layout for columns of these types.
    pub fn new(types: impl IntoIterator<Item = DataType>) -> RowCodec {
        let types: Vec<DataType> = types.into_iter().collect();
        let mut offset = types.len().div_ceil(8) as u32;
        let mut varying = Vec::new();
        let mut places = Vec::with_capacity(types.len());
        for (column, data_type) in types.iter().enumerate() {
            places.push(match width(*data_type) {
                Some(width) => {
                    offset += width;
                    Place::Fixed(offset - width)
                }
                None => {
                    varying.push(column as u16);
                    Place::Varying(varying.len() as u16 - 1)
                }
            });
        }
        RowCodec {
            types,
            places,
            varying,
            varying_start: offset as usize,
        }
    }

    /// Number of columns of a row.
    pub fn column_count(&self) -> usize {
        self.types.len()
    }

    /// Writes a row into `out`, replacing what is there.
    pub fn encode(&self, row: &[Value], out: &mut Vec<u8>) {
        assert_eq!(
            row.len(),
            self.types.len(),
            "a row has as many values as its table columns"
        );
        out.clear();
        out.resize(self.varying_start, 0);
        for (column, value) in row.iter().enumerate() {
            if value.is_null() {
                out[column / 8] |= 1 << (column % 8);
            } else if let Place::Fixed(offset) = self.places[column] {
                write_fixed(value, &mut out[offset as usize..]);
            }
        }
        for column in &self.varying {
            write_varying(&row[usize::from(*column)], self.types[usize::from(*column)], out);
        }
    }

    /// Fills in the needed columns of `row`, which is as wide as the table; the others are left as they are.
    pub fn decode(&self, bytes: &[u8], needed: &ColumnSet, row: &mut [Value]) -> Result<()> {
        if bytes.len() < self.varying_start {
            return Err(damaged());
        }
        let mut last_varying = None;
        for column in needed.iter() {
            let at = usize::from(column);
            match self.places[at] {
                Place::Fixed(offset) => {
                    row[at] = if is_null(bytes, at) {
                        Value::Null
                    } else {
                        read_fixed(self.types[at], &bytes[offset as usize..])
                    };
                }
                Place::Varying(order) => last_varying = Some(usize::from(order)),
            }
        }
        let Some(last_varying) = last_varying else {
            return Ok(());
        };
        let mut rest = &bytes[self.varying_start..];
        for column in &self.varying[..=last_varying] {
            let at = usize::from(*column);
            if is_null(bytes, at) {
                if needed.contains(*column) {
                    row[at] = Value::Null;
                }
                continue;
            }
            let (length, used) = read_length(rest).ok_or_else(damaged)?;
            let end = used + length;
            let content = rest.get(used..end).ok_or_else(damaged)?;
            if needed.contains(*column) {
                row[at] = read_varying(content, self.types[at]).ok_or_else(damaged)?;
            }
            rest = &rest[end..];
        }
        Ok(())
    }

    /// All columns of a row.
    pub fn decode_all(&self, bytes: &[u8]) -> Result<Vec<Value>> {
        let mut row = vec![Value::Null; self.types.len()];
        self.decode(bytes, &ColumnSet::all(self.types.len()), &mut row)?;
        Ok(row)
    }

    /// The integer in a fixed-width integer column, read in place; `None` when NULL (or not such a column).
    #[inline]
    pub fn integer_at(&self, bytes: &[u8], column: u16) -> Option<i64> {
        let at = usize::from(column);
        let Place::Fixed(offset) = self.places[at] else {
            return None;
        };
        if bytes.len() < self.varying_start || is_null(bytes, at) {
            return None;
        }
        let from = &bytes[offset as usize..];
        match self.types[at] {
            DataType::Int4 => Some(i64::from(i32::from_le_bytes(array(from)))),
            DataType::Int8 => Some(i64::from_le_bytes(array(from))),
            DataType::Int2 => Some(i64::from(i16::from_le_bytes(array(from)))),
            _ => None,
        }
    }

    /// True if a column's width never changes, so that [`RowCodec::patch`] takes it.
    pub fn is_fixed(&self, column: u16) -> bool {
        matches!(self.places[usize::from(column)], Place::Fixed(_))
    }

    /// Overwrites a fixed-width column of an encoded row, NULL included. The row keeps its length.
    pub fn patch(&self, bytes: &mut [u8], column: u16, value: &Value) {
        let at = usize::from(column);
        let Place::Fixed(offset) = self.places[at] else {
            panic!("column {column} has no fixed width")
        };
        if value.is_null() {
            bytes[at / 8] |= 1 << (at % 8);
        } else {
            bytes[at / 8] &= !(1 << (at % 8));
            write_fixed(value, &mut bytes[offset as usize..]);
        }
    }

    /// Writes into `out` the row `old` with some columns replaced: patched where all have fixed width, else rebuilt.
    pub fn update(&self, old: &[u8], changes: &[(u16, Value)], out: &mut Vec<u8>) -> Result<()> {
        if old.len() < self.varying_start {
            return Err(damaged());
        }
        if changes.iter().all(|(column, _)| self.is_fixed(*column)) {
            out.clear();
            out.extend_from_slice(old);
            for (column, value) in changes {
                self.patch(out, *column, value);
            }
            return Ok(());
        }
        let mut row = self.decode_all(old)?;
        for (column, value) in changes {
            row[usize::from(*column)] = value.clone();
        }
        self.encode(&row, out);
        Ok(())
    }
}

#[inline]
fn is_null(bytes: &[u8], column: usize) -> bool {
    bytes[column / 8] >> (column % 8) & 1 == 1
}

#[inline]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes[..N].try_into().expect("the slice has this length")
}

fn write_fixed(value: &Value, out: &mut [u8]) {
    match value {
        Value::Int4(v) | Value::Date(v) => out[..4].copy_from_slice(&v.to_le_bytes()),
        Value::Int8(v) | Value::Timestamp(v) | Value::TimestampTz(v) => {
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
        other => panic!("{other:?} has no fixed width"),
    }
}

#[inline]
fn read_fixed(data_type: DataType, bytes: &[u8]) -> Value {
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
        // The types of numbers of the catalog: no other has a fixed width.
        _ => Value::Oid(u32::from_le_bytes(array(bytes))),
    }
}

/// Appends a value of varying width with its length; nothing for NULL.
#[inline]
fn write_varying(value: &Value, data_type: DataType, out: &mut Vec<u8>) {
    match value {
        Value::Text(text) => {
            push_length(text.len(), out);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Numeric(value) => with_length(out, |out| value.to_stored(out)),
        Value::Array(array) => with_length(out, |out| write_array(array, write_element, out)),
        Value::Null => {}
        other => panic!("{other:?} has no place in a column of type {data_type}"),
    }
}

/// The value of varying width with this content; `None` if it is damaged.
#[inline]
fn read_varying(content: &[u8], data_type: DataType) -> Option<Value> {
    Some(match data_type {
        DataType::Numeric => Value::Numeric(Numeric::from_stored(content)?),
        DataType::Array(_) | DataType::Int2Vector | DataType::OidVector => {
            read_array(content, data_type, read_element)?.into()
        }
        _ => Value::Text(std::str::from_utf8(content).ok()?.into()),
    })
}

/// Appends an element of an array.
fn write_element(value: &Value, data_type: DataType, out: &mut Vec<u8>) {
    match width(data_type) {
        Some(width) => {
            let start = out.len();
            out.resize(start + width as usize, 0);
            write_fixed(value, &mut out[start..]);
        }
        None => write_varying(value, data_type, out),
    }
}

/// Takes an element of an array off the front of `bytes`.
fn read_element(bytes: &mut &[u8], data_type: DataType) -> Option<Value> {
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

#[cold]
fn damaged() -> EngineError {
    EngineError::new(
        SqlState::DATA_CORRUPTED,
        "a stored row does not have the form of its table",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts() -> RowCodec {
        RowCodec::new([DataType::Int4, DataType::Int4, DataType::Int4, DataType::Char])
    }

    #[test]
    fn an_account_is_98_bytes() {
        let mut bytes = Vec::new();
        let row = [
            Value::Int4(7),
            Value::Int4(1),
            Value::Int4(-5),
            Value::text(" ".repeat(84)),
        ];
        accounts().encode(&row, &mut bytes);
        assert_eq!(bytes.len(), 98);
        assert_eq!(accounts().decode_all(&bytes).unwrap(), row);
        assert_eq!(accounts().integer_at(&bytes, 2), Some(-5));
    }

    #[test]
    fn patching_changes_one_column_only() {
        let mut bytes = Vec::new();
        let mut row = vec![Value::Int4(7), Value::Null, Value::Int4(-5), Value::text("x")];
        accounts().encode(&row, &mut bytes);
        accounts().patch(&mut bytes, 2, &Value::Int4(100));
        accounts().patch(&mut bytes, 1, &Value::Int4(3));
        accounts().patch(&mut bytes, 0, &Value::Null);
        row[0] = Value::Null;
        row[1] = Value::Int4(3);
        row[2] = Value::Int4(100);
        assert_eq!(accounts().decode_all(&bytes).unwrap(), row);
    }

    #[test]
    fn a_set_gives_its_columns_in_order() {
        let mut set = ColumnSet::new();
        assert_eq!(set.iter().next(), None);
        let columns = [0, 3, 63, 64, 200, 255];
        columns.iter().rev().for_each(|&column| set.insert(column));
        assert_eq!(set.iter().collect::<Vec<_>>(), columns);
    }

    #[test]
    fn damaged_rows_are_errors() {
        let mut bytes = Vec::new();
        accounts().encode(
            &[Value::Int4(7), Value::Null, Value::Null, Value::text("xyz")],
            &mut bytes,
        );
        for length in 0..bytes.len() {
            assert!(
                accounts().decode_all(&bytes[..length]).is_err(),
                "cut to {length}"
            );
        }
    }
}
