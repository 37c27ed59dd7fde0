//! The rows of a partition, and places in them.
//!
//! A row is kept with the number of its group behind it, counted from 0.

use clearway_sql::error::Result;
use clearway_sql::value::Value;

use crate::spill::{KeptReader, KeptRows, SpillOptions};

/// The rows of a partition, and the current one.
#[derive(Debug)]
pub(super) struct PartitionRows {
    rows: Option<KeptRows>,
    /// Group of the row that came last, then of the current one.
    group: u64,
    current: u64,
    reader: KeptReader,
}

impl PartitionRows {
    /// No partition.
    pub(super) fn none() -> PartitionRows {
        PartitionRows {
            rows: None,
            group: 0,
            current: 0,
            reader: KeptReader::default(),
        }
    }

    /// No rows so far.
    pub(super) fn new(options: &SpillOptions) -> PartitionRows {
        PartitionRows {
            rows: Some(KeptRows::seekable(options)),
            ..PartitionRows::none()
        }
    }

    /// Number of rows.
    pub(super) fn count(&self) -> u64 {
        self.rows.as_ref().map_or(0, KeptRows::count)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Keeps a row, which may begin a group.
    pub(super) fn push(&mut self, row: &mut Vec<Value>, begins_group: bool) -> Result<()> {
        self.group += u64::from(begins_group && !self.is_empty());
        row.push(Value::Int8(self.group as i64));
        self.rows.as_mut().map_or(Ok(()), |rows| rows.push(row))
    }

    /// No more rows come.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.rows.as_mut().map_or(Ok(()), KeptRows::finish)
    }

    /// Goes to the next row, into `row` without its group; `false` at the end, when the rows are given up.
    pub(super) fn next_row(&mut self, row: &mut Vec<Value>) -> Result<bool> {
        let Some(rows) = &self.rows else {
            return Ok(false);
        };
        self.current = self.reader.passed();
        if self.current == rows.count() || !rows.next(&mut self.reader, row)? {
            *self = PartitionRows::none();
            return Ok(false);
        }
        self.group = take_group(row);
        Ok(true)
    }

    /// The number of the current row, from 0.
    pub(super) fn current(&self) -> u64 {
        self.current
    }

    /// The current row's group.
    pub(super) fn group(&self) -> u64 {
        self.group
    }
}

fn take_group(row: &mut Vec<Value>) -> u64 {
    row.pop().and_then(|group| group.as_i64()).unwrap_or(0) as u64
}

/// A reader of a partition's rows, and the row that it read last.
#[derive(Debug, Default)]
pub(super) struct RowReader {
    reader: KeptReader,
    row: Vec<Value>,
    group: u64,
    /// The number of the row that is here.
    at: Option<u64>,
}

impl RowReader {
    /// The row of this number, and its group; `None` behind the last row.
    pub(super) fn row(&mut self, partition: &PartitionRows, number: u64) -> Result<Option<(&[Value], u64)>> {
        if self.at != Some(number) {
            let Some(rows) = partition.rows.as_ref().filter(|rows| number < rows.count()) else {
                return Ok(None);
            };
            self.at = None;
            rows.seek(&mut self.reader, number)?;
            if !rows.next(&mut self.reader, &mut self.row)? {
                return Ok(None);
            }
            self.group = take_group(&mut self.row);
            self.at = Some(number);
        }
        Ok(Some((&self.row, self.group)))
    }
}
