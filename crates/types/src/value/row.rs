//! A table row as bytes.
//!
//! ```text
//! ┌─────────────┬──────────────────────────────┬───────────────────────────────────────────┐
//! │ null bitmap │ fixed-width columns, in order│ varying columns, in order: length, bytes… │
//! └─────────────┴──────────────────────────────┴───────────────────────────────────────────┘
//!  ⌈columns/8⌉    1 to 16 bytes each                length: 1 byte to 127, else 2 to 4
//! ```
//!
//! A fixed-width column keeps its place even when it is NULL, so its offset is known when the table is: reading one
//! integer is one load, and changing one ([`RowCodec::patch`]) neither moves nor decodes anything else. Numbers are
//! little-endian. A bit set in the bitmap means NULL. In the place of a varying column's bytes there may be a stored form
//! ([`long`](super::long)).
//!
//! # Columns that come and go
//!
//! A column that is dropped keeps its place, as NULL in new rows. Columns that are added later make a *segment* of their
//! own behind the row, of the same form, so that the rows that are there need not change:
//!
//! ```text
//! create table t (a int, b text);  insert …          │ bitmap │ a │ b │
//! alter table t add c int default 7;                    the same row: c is missing, and reads as 7
//! insert …                                           │ bitmap │ a │ b │ bitmap │ c │
//! ```
//!
//! 1. A segment has at least one column, so at least one byte: a row that ends behind a segment was written before the
//!    next one was there.
//! 2. A row has all segments up to some one: code that writes a row anew writes all of them.
//! 3. A column of a segment that a row does not have reads as its *missing value*, the default of when it was added.
//!
//! Bytes that do not decode are an error (XX001), never a panic: they come from a file.

use std::borrow::Cow;

use super::column_set::ColumnSet;
use super::row_segment::{DROPPED, Segment, StoredAttribute, damaged, is_null};
use super::row_value::{Decoded, array, read_fixed, write_fixed, write_varying};
use crate::error::Result;
use crate::value::array::read_length;
use crate::value::long::{Pointer, StoredForm};
use crate::value::{DataType, Value};

/// The place of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At this offset from the row's start, with this bit of the bitmap.
    Fixed { offset: u32, bit: u16 },
    /// The n-th varying column.
    Varying(u16),
    /// In a later segment.
    Added,
}

/// The way in which [`RowCodec::update_within`] has made a row from an old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rewrite {
    /// Columns of fixed width were overwritten: the others, stored forms among them, are those of the old row.
    #[default]
    Patched,
    /// It was encoded anew.
    Rebuilt,
    /// It was not made: it has more bytes than it may.
    TooLong,
}

/// The layout of one table's rows.
#[derive(Debug, Clone)]
pub struct RowCodec {
    types: Vec<DataType>,
    places: Vec<Place>,
    first: Segment,
    /// The later segments.
    added: Vec<Segment>,
}

impl RowCodec {
    /// The layout for columns of these types.
    pub fn new(types: impl IntoIterator<Item = DataType>) -> RowCodec {
        let attributes: Vec<StoredAttribute> = (0..)
            .zip(types)
            .map(|(column, data_type)| StoredAttribute {
                data_type,
                column: Some(column),
                segment: 0,
                missing: Value::Null,
            })
            .collect();
        RowCodec::of_attributes(&attributes)
    }

    /// The layout for these attributes, in the order of their segments.
    pub fn of_attributes(attributes: &[StoredAttribute]) -> RowCodec {
        let mut segments = attributes
            .chunk_by(|one, other| one.segment == other.segment)
            .map(Segment::of);
        let first = segments.next().unwrap_or_default();
        let added: Vec<Segment> = segments.collect();
        let mut columns: Vec<(u16, DataType)> = attributes
            .iter()
            // A domain's values are those of its base type (U3 of `user_type`).
            .filter_map(|attribute| Some((attribute.column?, attribute.data_type.base())))
            .collect();
        columns.sort_unstable_by_key(|(column, _)| *column);
        let mut places = vec![Place::Added; columns.len()];
        for fixed in &first.fixed {
            places[usize::from(fixed.column)] = Place::Fixed {
                offset: fixed.offset,
                bit: fixed.bit,
            };
        }
        for (order, varying) in first.varying.iter().enumerate() {
            if varying.column != DROPPED {
                places[usize::from(varying.column)] = Place::Varying(order as u16);
            }
        }
        RowCodec {
            types: columns.into_iter().map(|(_, data_type)| data_type).collect(),
            places,
            first,
            added,
        }
    }

    /// Number of columns of a row.
    pub fn column_count(&self) -> usize {
        self.types.len()
    }

    /// Writes a row into `out`, replacing what is there.
    pub fn encode(&self, row: &[Value], out: &mut Vec<u8>) {
        self.encode_within(row, usize::MAX, out);
    }

    /// As [`encode`](Self::encode) a row of at most `max` bytes. `false`: it has more, and `out` holds no row.
    pub fn encode_within(&self, row: &[Value], max: usize, out: &mut Vec<u8>) -> bool {
        assert_eq!(
            row.len(),
            self.types.len(),
            "a row has as many values as its table columns"
        );
        out.clear();
        self.first.encode(row, &self.types, max, out)
            && self
                .added
                .iter()
                .all(|segment| segment.encode(row, &self.types, max, out))
    }

    /// Fills in the needed columns of `row`, which is as wide as the table; the others are left as they are. Those that
    /// are stored apart are left to the caller.
    pub fn decode(&self, bytes: &[u8], needed: &ColumnSet, row: &mut [Value]) -> Result<Decoded> {
        if bytes.len() < self.first.varying_start {
            return Err(damaged());
        }
        let mut varying = 0;
        let mut is_added = false;
        for column in needed.iter() {
            let at = usize::from(column);
            match self.places[at] {
                Place::Fixed { offset, bit } => {
                    row[at].put(match is_null(bytes, usize::from(bit)) {
                        true => Value::Null,
                        false => read_fixed(self.types[at], &bytes[offset as usize..]),
                    });
                }
                Place::Varying(order) => varying = usize::from(order) + 1,
                Place::Added => is_added = true,
            }
        }
        if is_added {
            return self.decode_added(bytes, needed, row);
        }
        let mut decoded = Decoded::Whole;
        if varying > 0 {
            self.first
                .decode_varying(bytes, varying, &self.types, needed, row, &mut decoded)?;
        }
        Ok(decoded)
    }

    /// Fills in what is needed of the varying columns and of the later segments.
    #[cold]
    fn decode_added(&self, bytes: &[u8], needed: &ColumnSet, row: &mut [Value]) -> Result<Decoded> {
        let count = self.first.varying.len();
        let mut decoded = Decoded::Whole;
        let mut rest = self
            .first
            .decode_varying(bytes, count, &self.types, needed, row, &mut decoded)?;
        for segment in &self.added {
            if rest.is_empty() {
                let missing = segment.missing.iter();
                for (column, value) in missing.filter(|(column, _)| needed.contains(*column)) {
                    row[usize::from(*column)] = value.clone();
                }
                continue;
            }
            if rest.len() < segment.varying_start {
                return Err(damaged());
            }
            for fixed in segment.fixed.iter().filter(|fixed| needed.contains(fixed.column)) {
                let at = usize::from(fixed.column);
                row[at] = match is_null(rest, usize::from(fixed.bit)) {
                    true => Value::Null,
                    false => read_fixed(self.types[at], &rest[fixed.offset as usize..]),
                };
            }
            let count = segment.varying.len();
            rest = segment.decode_varying(rest, count, &self.types, needed, row, &mut decoded)?;
        }
        Ok(decoded)
    }

    /// All columns of a row, with a [`Value::Stored`] for each that is stored apart.
    pub fn decode_all(&self, bytes: &[u8]) -> Result<Vec<Value>> {
        let mut row = vec![Value::Null; self.types.len()];
        let _ = self.decode(bytes, &ColumnSet::all(self.types.len()), &mut row)?;
        Ok(row)
    }

    /// All columns of a row, with a [`Value::Stored`] for each that has a stored form: to be written again.
    fn decode_as_stored(&self, bytes: &[u8]) -> Result<Vec<Value>> {
        let mut needed = ColumnSet::all(self.types.len());
        let mut row = vec![Value::Null; self.types.len()];
        self.each_stored(bytes, |column, stored| {
            needed.remove(column);
            row[usize::from(column)] = Value::Stored(stored.into());
        })?;
        let _ = self.decode(bytes, &needed, &mut row)?;
        Ok(row)
    }

    /// Calls `look` for the stored forms in a row, each with its column.
    fn each_stored<'b>(&self, bytes: &'b [u8], mut look: impl FnMut(u16, &'b [u8])) -> Result<()> {
        // What is left of a dropped column belongs to no column.
        let mut look = |column: u16, stored| {
            if column != DROPPED {
                look(column, stored);
            }
        };
        let mut rest = self.first.each_stored(bytes, &mut look)?;
        for segment in &self.added {
            if rest.is_empty() {
                break;
            }
            rest = segment.each_stored(rest, &mut look)?;
        }
        Ok(())
    }

    /// Calls `look` for each pointer in a row to a value that is stored apart, those of dropped columns included.
    #[inline]
    pub fn each_pointer(&self, bytes: &[u8], mut look: impl FnMut(Pointer)) -> Result<()> {
        let mut is_damaged = false;
        let mut parse = |_, stored| match StoredForm::parse(stored) {
            Some(StoredForm::Apart(pointer)) => look(pointer),
            Some(StoredForm::Compressed { .. }) => {}
            None => is_damaged = true,
        };
        let mut rest = self.first.each_stored(bytes, &mut parse)?;
        for segment in &self.added {
            if rest.is_empty() {
                break;
            }
            rest = segment.each_stored(rest, &mut parse)?;
        }
        if is_damaged { Err(damaged()) } else { Ok(()) }
    }

    /// True if the table has a column of varying width.
    pub fn has_varying(&self) -> bool {
        let is_there = |segment: &Segment| segment.varying.iter().any(|varying| varying.column != DROPPED);
        is_there(&self.first) || self.added.iter().any(is_there)
    }

    /// The columns of varying width.
    pub fn varying_columns(&self) -> impl Iterator<Item = u16> + '_ {
        std::iter::once(&self.first)
            .chain(&self.added)
            .flat_map(|segment| &segment.varying)
            .map(|varying| varying.column)
            .filter(|column| *column != DROPPED)
    }

    /// Bytes of a row but for its columns of varying width.
    pub fn fixed_bytes(&self) -> usize {
        let added = self.added.iter().map(|segment| segment.varying_start);
        self.first.varying_start + added.sum::<usize>()
    }

    /// The bytes that a column's value has in a row, its length not among them: a string's own, or written for this.
    pub fn content_of<'v>(&self, column: u16, value: &'v Value) -> Cow<'v, [u8]> {
        match value {
            Value::Text(text) | Value::Json(text) => Cow::Borrowed(text.as_bytes()),
            Value::Bytes(bytes) => Cow::Borrowed(bytes),
            Value::Jsonb(json) => Cow::Borrowed(json.bytes()),
            other => {
                let mut out = Vec::new();
                write_varying(other, self.types[usize::from(column)], &mut out);
                let used = read_length(&out).map_or(0, |(_, used)| used);
                out.drain(..used);
                Cow::Owned(out)
            }
        }
    }

    /// The type of a column, for its bytes.
    pub fn column_type(&self, column: u16) -> DataType {
        self.types[usize::from(column)]
    }

    /// The integer in a fixed-width integer column, read in place; `None` when NULL (or not such a column).
    #[inline]
    pub fn integer_at(&self, bytes: &[u8], column: u16) -> Option<i64> {
        let at = usize::from(column);
        let Place::Fixed { offset, bit } = self.places[at] else {
            return None;
        };
        if bytes.len() < self.first.varying_start || is_null(bytes, usize::from(bit)) {
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

    /// True if a column's width never changes and each row has it, so that [`RowCodec::patch`] takes it.
    pub fn is_fixed(&self, column: u16) -> bool {
        matches!(self.places[usize::from(column)], Place::Fixed { .. })
    }

    /// Overwrites a fixed-width column of an encoded row, NULL included. The row keeps its length.
    pub fn patch(&self, bytes: &mut [u8], column: u16, value: &Value) {
        let at = usize::from(column);
        let Place::Fixed { offset, bit } = self.places[at] else {
            panic!("column {column} has no fixed place")
        };
        let (byte, mask) = (usize::from(bit) / 8, 1 << (bit % 8));
        if value.is_null() {
            bytes[byte] |= mask;
        } else {
            bytes[byte] &= !mask;
            write_fixed(value, &mut bytes[offset as usize..]);
        }
    }

    /// Writes into `out` the row `old` with some columns replaced: patched where all have fixed width, else rebuilt. Stored
    /// forms stay as they are.
    pub fn update(&self, old: &[u8], changes: &[(u16, Value)], out: &mut Vec<u8>) -> Result<()> {
        self.update_within(old, changes, usize::MAX, out).map(|_| ())
    }

    /// As [`update`](Self::update), unless columns of varying width have changed and the row has more than `max` bytes.
    pub fn update_within(
        &self,
        old: &[u8],
        changes: &[(u16, Value)],
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<Rewrite> {
        if old.len() < self.first.varying_start {
            return Err(damaged());
        }
        if changes.iter().all(|(column, _)| self.is_fixed(*column)) {
            out.clear();
            out.extend_from_slice(old);
            for (column, value) in changes {
                self.patch(out, *column, value);
            }
            return Ok(Rewrite::Patched);
        }
        if changes.iter().any(|(_, value)| value.heap_bytes() > max) {
            return Ok(Rewrite::TooLong);
        }
        let row = self.updated(old, changes.iter().cloned())?;
        Ok(match self.encode_within(&row, max, out) {
            true => Rewrite::Rebuilt,
            false => Rewrite::TooLong,
        })
    }

    /// The columns of the row `old` with some replaced; the others as they are stored.
    pub fn updated(&self, old: &[u8], changes: impl IntoIterator<Item = (u16, Value)>) -> Result<Vec<Value>> {
        let mut row = self.decode_as_stored(old)?;
        for (column, value) in changes {
            row[usize::from(column)] = value;
        }
        Ok(row)
    }
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

    /// A row of before, one of after, and what a change of either makes of it.
    #[test]
    fn columns_come_and_go() {
        let attribute = |data_type, column, segment, missing| StoredAttribute {
            data_type,
            column,
            segment,
            missing,
        };
        let before = RowCodec::new([DataType::Int4, DataType::Text, DataType::Text, DataType::Int8]);
        let mut old = Vec::new();
        let values = [
            Value::Int4(7),
            Value::text("gone"),
            Value::text("b"),
            Value::Int8(9),
        ];
        before.encode(&values, &mut old);
        let after = RowCodec::of_attributes(&[
            attribute(DataType::Int4, None, 0, Value::Null),
            attribute(DataType::Text, None, 0, Value::Null),
            attribute(DataType::Text, Some(0), 0, Value::Null),
            attribute(DataType::Int8, Some(1), 0, Value::Null),
            attribute(DataType::Int4, Some(2), 1, Value::Int4(5)),
            attribute(DataType::Text, Some(3), 1, Value::Null),
            attribute(DataType::Text, Some(4), 2, Value::text("missing")),
        ]);
        let mut row = vec![
            Value::text("b"),
            Value::Int8(9),
            Value::Int4(5),
            Value::Null,
            Value::text("missing"),
        ];
        assert_eq!(after.decode_all(&old).unwrap(), row);
        let mut new = Vec::new();
        after.update(&old, &[(3, Value::text("c"))], &mut new).unwrap();
        row[3] = Value::text("c");
        assert_eq!(after.decode_all(&new).unwrap(), row);
        let mut patched = Vec::new();
        after.update(&old, &[(1, Value::Int8(10))], &mut patched).unwrap();
        assert_eq!(patched.len(), old.len(), "a row of before stays one");
        row[1] = Value::Int8(10);
        row[3] = Value::Null;
        assert_eq!(after.decode_all(&patched).unwrap(), row);
        for length in 0..old.len() {
            assert!(after.decode_all(&old[..length]).is_err(), "cut to {length}");
        }
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
