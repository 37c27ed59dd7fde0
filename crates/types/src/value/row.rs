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
//! 2. A row has all segments up to some one: whatever writes a row anew writes all of them.
//! 3. A column of a segment that a row does not have reads as its *missing value*, the default of when it was added.
//!
//! Bytes that do not decode are an error (XX001), never a panic: they come from a file.

use std::borrow::Cow;
use std::fmt;

use crate::error::{EngineError, Result, SqlState};
use crate::value::array::{push_length, read_array, read_length, with_length, write_array};
use crate::value::long::{Pointer, StoredForm, restored};
use crate::value::{DataType, Interval, Jsonb, Numeric, RecordValue, Value, decode_binary, encode_binary};

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

    /// Takes a column out.
    pub fn remove(&mut self, column: u16) {
        if let Some(word) = self.bits.get_mut(usize::from(column) / 64) {
            *word &= !(1 << (column % 64));
        }
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

/// An attribute of a table as rows have it: a column, or what is left of one.
#[derive(Debug, Clone)]
pub struct StoredAttribute {
    /// The type.
    pub data_type: DataType,
    /// The column's place among those that there are; `None` once it is dropped.
    pub column: Option<u16>,
    /// The segment that it is in; they are in the order of the attributes.
    pub segment: u16,
    /// The value in rows without its segment.
    pub missing: Value,
}

/// The values of a row that were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Decoded {
    /// All are there.
    Whole,
    /// In the place of some there is a [`Value::Stored`]: they are stored apart from the row.
    Apart,
}

/// In front of a stored form: a length of 0 in two bytes, which no value is written with.
const STORED: [u8; 2] = [0x80, 0];

/// A varying column's part of a row.
enum Part<'b> {
    /// The value's own bytes.
    Content(&'b [u8]),
    /// A stored form.
    Stored(&'b [u8]),
}

/// The part at the front of `bytes`, and how many of them it takes.
#[inline]
fn read_part(bytes: &[u8]) -> Option<(Part<'_>, usize)> {
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
fn read_stored(bytes: &[u8], data_type: DataType) -> Option<(Value, Decoded)> {
    Some(match StoredForm::parse(bytes)? {
        StoredForm::Compressed { raw_length, blocks } => {
            let content = restored(raw_length, blocks)?;
            (value_of(content, data_type)?, Decoded::Whole)
        }
        StoredForm::Apart(_) => (Value::Stored(bytes.into()), Decoded::Apart),
    })
}

/// In the place of a column: it has been dropped.
const DROPPED: u16 = u16::MAX;

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

/// A column of fixed width.
#[derive(Debug, Clone, Copy)]
struct FixedColumn {
    column: u16,
    bit: u16,
    offset: u32,
}

/// A varying column.
#[derive(Debug, Clone, Copy)]
struct VaryingColumn {
    /// [`DROPPED`] for one that is not there any more.
    column: u16,
    bit: u16,
}

/// A part of a row with a bitmap of its own.
#[derive(Debug, Clone, Default)]
struct Segment {
    fixed: Vec<FixedColumn>,
    /// In order, dropped ones included.
    varying: Vec<VaryingColumn>,
    /// The start of the varying part.
    varying_start: usize,
    /// The bits of dropped columns of fixed width.
    dropped: Vec<u16>,
    /// The values in rows that do not have it; of the first one, none.
    missing: Vec<(u16, Value)>,
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

fn width(data_type: DataType) -> Option<u32> {
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
        DataType::Enum(_) => Some(8),
        DataType::Tid => Some(6),
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

impl Segment {
    /// The segment of these attributes.
    fn of(attributes: &[StoredAttribute]) -> Segment {
        let mut segment = Segment::default();
        let mut offset = attributes.len().div_ceil(8) as u32;
        for (bit, attribute) in attributes.iter().enumerate() {
            let (bit, column) = (bit as u16, attribute.column.unwrap_or(DROPPED));
            match width(attribute.data_type.base()) {
                Some(width) => {
                    match attribute.column {
                        Some(column) => segment.fixed.push(FixedColumn { column, bit, offset }),
                        None => segment.dropped.push(bit),
                    }
                    offset += width;
                }
                None => segment.varying.push(VaryingColumn { column, bit }),
            }
            if attribute.column.is_some() {
                segment.missing.push((column, attribute.missing.clone()));
            }
        }
        segment.varying_start = offset as usize;
        segment
    }

    /// Appends its part of a row; `false` as soon as it is clear that the row has more than `max` bytes.
    fn encode(&self, row: &[Value], types: &[DataType], max: usize, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        out.resize(start + self.varying_start, 0);
        let is_null = |out: &mut Vec<u8>, bit: u16| {
            out[start + usize::from(bit) / 8] |= 1 << (bit % 8);
        };
        for bit in &self.dropped {
            is_null(out, *bit);
        }
        for fixed in &self.fixed {
            match &row[usize::from(fixed.column)] {
                Value::Null => is_null(out, fixed.bit),
                value => write_fixed(value, &mut out[start + fixed.offset as usize..]),
            }
        }
        for varying in &self.varying {
            let at = usize::from(varying.column);
            match row.get(at) {
                Some(value) if !value.is_null() => {
                    if value.heap_bytes() > max {
                        return false;
                    }
                    write_varying(value, types[at], out);
                }
                _ => is_null(out, varying.bit),
            }
        }
        out.len() <= max
    }

    /// Fills in the needed ones of its first `count` varying columns; the bytes behind them.
    #[inline]
    fn decode_varying<'b>(
        &self,
        bytes: &'b [u8],
        count: usize,
        types: &[DataType],
        needed: &ColumnSet,
        row: &mut [Value],
        decoded: &mut Decoded,
    ) -> Result<&'b [u8]> {
        let mut rest = bytes.get(self.varying_start..).ok_or_else(damaged)?;
        for varying in &self.varying[..count] {
            let at = usize::from(varying.column);
            if is_null(bytes, usize::from(varying.bit)) {
                if needed.contains(varying.column) {
                    row[at] = Value::Null;
                }
                continue;
            }
            let (part, end) = read_part(rest).ok_or_else(damaged)?;
            if needed.contains(varying.column) {
                row[at] = match part {
                    Part::Content(content) => read_varying(content, types[at]).ok_or_else(damaged)?,
                    Part::Stored(stored) => {
                        let (value, found) = read_stored(stored, types[at]).ok_or_else(damaged)?;
                        if found == Decoded::Apart {
                            *decoded = Decoded::Apart;
                        }
                        value
                    }
                };
            }
            rest = &rest[end..];
        }
        Ok(rest)
    }

    /// Calls `look` for the stored forms of its columns that are there, with their columns; the bytes behind it.
    fn each_stored<'b>(&self, bytes: &'b [u8], look: &mut impl FnMut(u16, &'b [u8])) -> Result<&'b [u8]> {
        let mut rest = bytes.get(self.varying_start..).ok_or_else(damaged)?;
        for varying in &self.varying {
            if is_null(bytes, usize::from(varying.bit)) {
                continue;
            }
            let (part, end) = read_part(rest).ok_or_else(damaged)?;
            if let Part::Stored(stored) = part {
                look(varying.column, stored);
            }
            rest = &rest[end..];
        }
        Ok(rest)
    }
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
                    row[at] = if is_null(bytes, usize::from(bit)) {
                        Value::Null
                    } else {
                        read_fixed(self.types[at], &bytes[offset as usize..])
                    };
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
        // What is left of a dropped column belongs to no one.
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

    /// As [`update`](Self::update). `false`: columns of varying width have changed, the row has more than `max` bytes, and
    /// `out` holds no row.
    pub fn update_within(
        &self,
        old: &[u8],
        changes: &[(u16, Value)],
        max: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        if old.len() < self.first.varying_start {
            return Err(damaged());
        }
        if changes.iter().all(|(column, _)| self.is_fixed(*column)) {
            out.clear();
            out.extend_from_slice(old);
            for (column, value) in changes {
                self.patch(out, *column, value);
            }
            return Ok(true);
        }
        if changes.iter().any(|(_, value)| value.heap_bytes() > max) {
            return Ok(false);
        }
        let row = self.updated(old, changes.iter().cloned())?;
        Ok(self.encode_within(&row, max, out))
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

#[inline]
fn is_null(bytes: &[u8], bit: usize) -> bool {
    bytes[bit / 8] >> (bit % 8) & 1 == 1
}

#[inline]
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes[..N].try_into().expect("the slice has this length")
}

fn write_fixed(value: &Value, out: &mut [u8]) {
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
        Value::Uuid(v) => out[..16].copy_from_slice(v),
        Value::Enum(_, position) => out[..8].copy_from_slice(&position.to_le_bytes()),
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
        DataType::Enum(oid) => Value::Enum(oid, i64::from_le_bytes(array(bytes))),
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

/// The value of a type with this content; `None` if it is damaged. The bytes of a string become the value's.
pub fn value_of(content: Vec<u8>, data_type: DataType) -> Option<Value> {
    Some(match data_type.base() {
        DataType::Bytea => Value::Bytes(content.into()),
        DataType::Json => Value::Json(String::from_utf8(content).ok()?.into()),
        base if base.is_string() => Value::Text(String::from_utf8(content).ok()?.into()),
        base => read_varying(&content, base)?,
    })
}

/// The value of varying width with this content; `None` if it is damaged.
#[inline]
fn read_varying(content: &[u8], data_type: DataType) -> Option<Value> {
    Some(match data_type {
        DataType::Numeric => Value::Numeric(Numeric::from_stored(content)?),
        DataType::Bytea => Value::Bytes(content.into()),
        DataType::Json => Value::Json(std::str::from_utf8(content).ok()?.into()),
        DataType::Jsonb => Value::Jsonb(Jsonb::from_bytes(content)?),
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
