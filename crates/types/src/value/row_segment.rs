//! A segment of a row ([`row`](super::row)): its bitmap, its columns of fixed width, and its varying ones.

use super::column_set::ColumnSet;
use super::row_value::{
    Decoded, Part, read_part, read_stored, read_varying, width, write_fixed, write_varying,
};
use crate::error::{EngineError, Result, SqlState};
use crate::value::{DataType, Value};

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

/// In the place of a column: it has been dropped.
pub(super) const DROPPED: u16 = u16::MAX;

/// A column of fixed width.
#[derive(Debug, Clone, Copy)]
pub(super) struct FixedColumn {
    pub(super) column: u16,
    pub(super) bit: u16,
    pub(super) offset: u32,
}

/// A varying column.
#[derive(Debug, Clone, Copy)]
pub(super) struct VaryingColumn {
    /// [`DROPPED`] for one that is not there any more.
    pub(super) column: u16,
    pub(super) bit: u16,
}

/// A part of a row with a bitmap of its own.
#[derive(Debug, Clone, Default)]
pub(super) struct Segment {
    pub(super) fixed: Vec<FixedColumn>,
    /// In order, dropped ones included.
    pub(super) varying: Vec<VaryingColumn>,
    /// The start of the varying part.
    pub(super) varying_start: usize,
    /// The bits of dropped columns of fixed width.
    pub(super) dropped: Vec<u16>,
    /// The values in rows that do not have it; of the first one, none.
    pub(super) missing: Vec<(u16, Value)>,
}

impl Segment {
    /// The segment of these attributes.
    pub(super) fn of(attributes: &[StoredAttribute]) -> Segment {
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
    pub(super) fn encode(&self, row: &[Value], types: &[DataType], max: usize, out: &mut Vec<u8>) -> bool {
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
    pub(super) fn decode_varying<'b>(
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
    pub(super) fn each_stored<'b>(
        &self,
        bytes: &'b [u8],
        look: &mut impl FnMut(u16, &'b [u8]),
    ) -> Result<&'b [u8]> {
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

/// True if this bit of the bitmap at the front of `bytes` is set.
#[inline]
pub(super) fn is_null(bytes: &[u8], bit: usize) -> bool {
    bytes[bit / 8] >> (bit % 8) & 1 == 1
}

#[cold]
pub(super) fn damaged() -> EngineError {
    EngineError::new(
        SqlState::DATA_CORRUPTED,
        "a stored row does not have the form of its table",
    )
}
