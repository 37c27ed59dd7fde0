//! Rows that are kept in the order in which they came, and read again and again.
//!
//! The first `work_mem` bytes stay in memory, the rest lies in a temporary file. A reader is a place in both; several
//! may read at the same time, and while rows are added: it sees those that were there at the last
//! [`flush`](KeptRows::flush).
//!
//! A reader can go to any row ([`KeptRows::seek`]) of rows that were made for it ([`KeptRows::seekable`]). The places of
//! some rows are kept, at equal distances; a reader goes to the one before the wanted row and passes the rows between.
//! Every second place is dropped when they take too much memory, so that they stay within a share of `work_mem`
//! however many rows there are.

use clearway_sql::error::{EngineError, Result};
use clearway_sql::value::Value;

use crate::spill::SpillOptions;
use crate::spill::record::{read_row, write_row};
use crate::spill::temporary::{Reader, Record, Temporary};

/// Bytes before a row in memory: its length.
const HEADER_BYTES: usize = 4;

/// Rows from one kept place to the next, at first.
const ROWS_PER_PLACE: u64 = 16;

/// Part of `work_mem` that places may take.
const PART_OF_PLACES: usize = 16;

/// Rows that have been kept.
#[derive(Debug)]
pub(crate) struct KeptRows {
    options: SpillOptions,
    memory: Vec<u8>,
    file: Option<Temporary>,
    count: u64,
    row: Vec<u8>,
    places: Option<Places>,
}

/// The places of some rows: those whose number is a multiple of `distance`.
#[derive(Debug)]
struct Places {
    distance: u64,
    /// Bytes of rows before each; those in memory come first.
    starts: Vec<u64>,
}

/// A place in kept rows.
#[derive(Debug, Default)]
pub(crate) struct KeptReader {
    at: usize,
    file: Option<Reader>,
    /// The end in the file of what `file` reads.
    file_end: u64,
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
            places: None,
        }
    }

    /// No rows; readers will be able to go to any of those that come.
    pub(crate) fn seekable(options: &SpillOptions) -> KeptRows {
        KeptRows {
            places: Some(Places {
                distance: ROWS_PER_PLACE,
                starts: Vec::new(),
            }),
            ..KeptRows::new(options)
        }
    }

    /// Keeps a row.
    pub(crate) fn push(&mut self, row: &[Value]) -> Result<()> {
        self.row.clear();
        write_row(row, &mut self.row);
        self.note_place();
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
            None => self.file.insert(Temporary::create(&self.options)?),
        };
        file.write(&[], &self.row)
    }

    /// Lets readers see all rows so far.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), Temporary::flush)
    }

    /// Moves a reader behind all rows so far.
    pub(crate) fn skip_all(&self, reader: &mut KeptReader) {
        reader.at = self.memory.len();
        reader.file = None;
        reader.file_end = self.file.as_ref().map_or(0, Temporary::end);
        reader.passed = self.count;
    }

    /// Keeps the place of the row that comes next, if it is one of those whose places are kept.
    fn note_place(&mut self) {
        let Some(places) = &mut self.places else { return };
        if !self.count.is_multiple_of(places.distance) {
            return;
        }
        let places_max = (self.options.bytes_max / PART_OF_PLACES / size_of::<u64>()).max(2);
        if places.starts.len() >= places_max {
            let mut number = 0;
            places.starts.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            places.distance *= 2;
            if !self.count.is_multiple_of(places.distance) {
                return;
            }
        }
        let in_file = self.file.as_ref().map_or(0, Temporary::end);
        places.starts.push(self.memory.len() as u64 + in_file);
    }

    /// Moves a reader: the next row that it gives is the one of this number, counted from 0.
    pub(crate) fn seek(&self, reader: &mut KeptReader, number: u64) -> Result<()> {
        let Some(places) = &self.places else {
            return Err(EngineError::internal("these rows are read in their order alone"));
        };
        let nearest = number / places.distance;
        let is_near = reader.passed <= number && reader.passed >= nearest * places.distance;
        if !is_near && let Some(start) = places.starts.get(nearest as usize) {
            let in_memory = self.memory.len() as u64;
            reader.at = (*start).min(in_memory) as usize;
            reader.file = None;
            // The file is read from there on.
            reader.file_end = start.saturating_sub(in_memory);
            reader.passed = nearest * places.distance;
        }
        while reader.passed < number && self.pass(reader)? {}
        Ok(())
    }

    /// Goes past a row; `false` at the end.
    fn pass(&self, reader: &mut KeptReader) -> Result<bool> {
        if let Some((header, _)) = self.memory[reader.at..].split_first_chunk::<HEADER_BYTES>() {
            reader.at += HEADER_BYTES + u32::from_ne_bytes(*header) as usize;
        } else if !self.next_in_file(reader)? {
            return Ok(false);
        }
        reader.passed += 1;
        Ok(true)
    }

    /// Reads the next row of the file into the reader's record; `false` at the end.
    fn next_in_file(&self, reader: &mut KeptReader) -> Result<bool> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        loop {
            if let Some(from) = &mut reader.file
                && from.next(file, &mut reader.record)?
            {
                return Ok(true);
            }
            let end = file.flushed();
            if reader.file_end >= end {
                return Ok(false);
            }
            reader.file = Some(Reader::new(reader.file_end..end));
            reader.file_end = end;
        }
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
        if let Some((header, rest)) = self.memory[reader.at..].split_first_chunk::<HEADER_BYTES>() {
            let length = u32::from_ne_bytes(*header) as usize;
            reader.at += HEADER_BYTES + length;
            reader.passed += 1;
            read_row(&mut &rest[..length], row)?;
            return Ok(true);
        }
        if !self.next_in_file(reader)? {
            return Ok(false);
        }
        reader.passed += 1;
        read_row(&mut &reader.record.payload[..], row)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two readers, one of which adds the rows that it reads; all in memory, and most of them in a file.
    #[test]
    fn rows_are_read_while_others_are_added() {
        let directory = tempfile::tempdir().unwrap();
        for bytes_max in [1 << 20, 100] {
            let options = SpillOptions::new(directory.path().join("tmp").into(), bytes_max);
            let mut kept = KeptRows::new(&options);
            let (mut first, mut second) = (KeptReader::default(), KeptReader::default());
            let mut row = Vec::new();
            for number in 0..5_000i64 {
                kept.push(&[Value::Int8(number)]).unwrap();
                kept.skip_all(&mut first);
                // It follows at half the speed, and sees no row twice.
                if number % 2 == 0 {
                    kept.flush().unwrap();
                    assert!(kept.next(&mut second, &mut row).unwrap());
                    assert_eq!(row, [Value::Int8(number / 2)]);
                }
            }
            kept.finish().unwrap();
            assert!(!kept.next(&mut first, &mut row).unwrap());
            for number in second.passed()..5_000 {
                assert!(kept.next(&mut second, &mut row).unwrap());
                assert_eq!(row, [Value::Int8(number as i64)]);
            }
            assert!(!kept.next(&mut second, &mut row).unwrap());
        }
    }
}
