//! Rows of a cursor that have been fetched or are held, to be read in any order: in `work_mem` bytes of memory, and in a
//! temporary file beyond.

use clearway_sql::error::Result;
use clearway_sql::value::Value;
use clearway_storage::heap::Tid;

use crate::executor::place::{place_of, place_value};
use crate::spill::{KeptReader, KeptRows, SpillOptions};

/// Kept rows.
#[derive(Debug)]
pub(super) struct Kept {
    rows: KeptRows,
    reader: KeptReader,
    /// Number of the cursor's rows before the first of them.
    first: u64,
    /// True if rows have come that readers do not see yet.
    is_unflushed: bool,
    /// The row that was read last, and its place behind it.
    row: Vec<Value>,
}

impl Kept {
    pub(super) fn new(spill: &SpillOptions) -> Kept {
        Kept::behind(spill, 0)
    }

    /// Those that come behind so many rows, which are not kept.
    pub(super) fn behind(spill: &SpillOptions, first: u64) -> Kept {
        Kept {
            rows: KeptRows::seekable(spill),
            reader: KeptReader::default(),
            first,
            is_unflushed: false,
            row: Vec::new(),
        }
    }

    /// True if the row behind so many rows is one of them.
    pub(super) fn has(&self, before: u64) -> bool {
        (self.first..self.first + self.rows.count()).contains(&before)
    }

    /// Keeps the next row, with its place in its table.
    pub(super) fn push(&mut self, row: &[Value], place: Option<Tid>) -> Result<()> {
        self.row.clear();
        self.row.extend_from_slice(row);
        self.row.push(place.map_or(Value::Null, place_value));
        self.is_unflushed = true;
        self.rows.push(&self.row)
    }

    /// Reads the row behind so many rows.
    pub(super) fn read(&mut self, before: u64) -> Result<bool> {
        if std::mem::take(&mut self.is_unflushed) {
            self.rows.flush()?;
        }
        self.rows.seek(&mut self.reader, before - self.first)?;
        self.rows.next(&mut self.reader, &mut self.row)
    }

    /// The row that was read last.
    pub(super) fn row(&self) -> &[Value] {
        &self.row[..self.row.len().saturating_sub(1)]
    }

    /// The place of the row that was read last.
    pub(super) fn place(&self) -> Option<Tid> {
        self.row.last().and_then(place_of)
    }

    /// No more rows come.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.is_unflushed = false;
        self.rows.finish()
    }
}
