//! Rows that are kept in the order in which they came, and read again and again.
//!
//! The first `work_mem` bytes stay in memory, the rest lies in a temporary file. A reader is a place in both; several
//! may read at the same time.

use clearway_sql::error::Result;
use clearway_sql::value::Value;

use crate::spill::SpillOptions;
use crate::spill::record::{read_row, write_row};
use crate::spill::temporary::{Reader, Record, Temporary};

/// Bytes before a row in memory: its length.
const HEADER_BYTES: usize = 4;

/// Rows that have been kept.
#[derive(Debug)]
pub(crate) struct KeptRows {
    options: SpillOptions,
    memory: Vec<u8>,
    file: Option<Temporary>,
    count: u64,
    row: Vec<u8>,
}

/// A place in kept rows.
#[derive(Debug, Default)]
pub(crate) struct KeptReader {
    at: usize,
    file: Option<Reader>,
    record: Record,
    passed: u64,
    /// True if it gives no rows.
    ended: bool,
}

impl KeptReader {
    /// A place behind all rows.
    pub(crate) fn at_end() -> KeptReader {
        KeptReader {
            ended: true,
            ..KeptReader::default()
        }
    }

    /// Number of rows that it has given.
    pub(crate) fn passed(&self) -> u64 {
        self.passed
    }
}

impl KeptRows {
    /// No rows.
    pub(crate) fn new(options: &SpillOptions) -> KeptRows {
        KeptRows {
            options: options.clone(),
            memory: Vec::new(),
            file: None,
            count: 0,
            row: Vec::new(),
        }
    }

    /// Keeps a row.
    pub(crate) fn push(&mut self, row: &[Value]) -> Result<()> {
        self.row.clear();
        write_row(row, &mut self.row);
        self.count += 1;
        let fits = self.memory.len() + HEADER_BYTES + self.row.len() <= self.options.bytes_max;
        if self.file.is_none() && (fits || self.memory.is_empty()) {
            self.memory
                .extend_from_slice(&(self.row.len() as u32).to_ne_bytes());
            self.memory.extend_from_slice(&self.row);
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(Temporary::create(&self.options.directory)?),
        };
        file.write(&[], &self.row)
    }

    /// No more rows come.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), Temporary::finish)
    }

    /// Number of rows.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The next row, into `row`; `false` at the end.
    pub(crate) fn next(&self, reader: &mut KeptReader, row: &mut Vec<Value>) -> Result<bool> {
        if reader.ended {
            return Ok(false);
        }
        reader.passed += 1;
        if let Some((header, rest)) = self.memory[reader.at..].split_first_chunk::<HEADER_BYTES>() {
            let length = u32::from_ne_bytes(*header) as usize;
            reader.at += HEADER_BYTES + length;
            read_row(&mut &rest[..length], row)?;
            return Ok(true);
        }
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let from = reader.file.get_or_insert_with(|| Reader::new(0..file.end()));
        if !from.next(file, &mut reader.record)? {
            return Ok(false);
        }
        read_row(&mut &reader.record.payload[..], row)?;
        Ok(true)
    }
}
