//! Records that are read in the order in which they came, while more come.
//!
//! A log is in memory up to a bound, and in a temporary file from then on. A position is the number of bytes before a
//! record, the same in memory and in the file, so that a log can be cut back to a position of before, and what was read up
//! to one stays read when the records move.

use crate::spill::SpillOptions;
use crate::spill::temporary::{Reader, Record, Temporary};
use clearway_sql::error::Result;

/// The bytes before a record: the length of a key, which is empty, and that of the record.
const HEADER_BYTES: usize = 8;

/// Records in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct RecordLog {
    memory: Vec<u8>,
    file: Option<Temporary>,
}

/// A reader's place in a log.
#[derive(Debug, Default)]
pub(crate) struct LogCursor {
    at: u64,
    reader: Option<Reader>,
    record: Record,
}

impl LogCursor {
    /// The position of the next record.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }
}

impl RecordLog {
    /// The position behind the last record.
    pub(crate) fn end(&self) -> u64 {
        match &self.file {
            Some(file) => file.end(),
            None => self.memory.len() as u64,
        }
    }

    /// True if there is no record.
    pub(crate) fn is_empty(&self) -> bool {
        self.end() == 0
    }

    /// Adds a record.
    pub(crate) fn push(&mut self, record: &[u8], options: &SpillOptions) -> Result<()> {
        if let Some(file) = &mut self.file {
            return file.write(&[], record);
        }
        let length = (record.len() as u32).to_ne_bytes();
        self.memory.extend_from_slice(&0u32.to_ne_bytes());
        self.memory.extend_from_slice(&length);
        self.memory.extend_from_slice(record);
        if self.memory.len() > options.bytes_max {
            let mut file = Temporary::create(options)?;
            let memory = std::mem::take(&mut self.memory);
            let mut rest = &memory[..];
            while let Some((record, behind)) = first(rest) {
                file.write(&[], record)?;
                rest = behind;
            }
            self.file = Some(file);
        }
        Ok(())
    }

    /// Takes away the records from a position on.
    pub(crate) fn cut_back(&mut self, position: u64) {
        if position == 0 {
            *self = RecordLog::default();
        } else if let Some(file) = &mut self.file {
            file.cut_back(position);
        } else {
            self.memory.truncate(position as usize);
        }
    }

    /// The next record, and the position behind it goes into the cursor; `None` behind the last that has come so far.
    pub(crate) fn next<'c>(&mut self, cursor: &'c mut LogCursor) -> Result<Option<&'c [u8]>> {
        if cursor.at >= self.end() {
            return Ok(None);
        }
        match &mut self.file {
            None => {
                let Some((record, _)) = first(&self.memory[cursor.at as usize..]) else {
                    return Ok(None);
                };
                cursor.record.payload.clear();
                cursor.record.payload.extend_from_slice(record);
            }
            Some(file) => {
                let mut found = match &mut cursor.reader {
                    Some(reader) => reader.next(file, &mut cursor.record)?,
                    None => false,
                };
                if !found {
                    file.flush()?;
                    let reader = cursor.reader.insert(Reader::new(cursor.at..file.flushed()));
                    found = reader.next(file, &mut cursor.record)?;
                }
                if !found {
                    return Ok(None);
                }
            }
        }
        cursor.at += (HEADER_BYTES + cursor.record.payload.len()) as u64;
        Ok(Some(&cursor.record.payload))
    }
}

/// The first record of some, and what is behind it.
fn first(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let [_, _, _, _, a, b, c, d] = *header;
    rest.split_at_checked(u32::from_ne_bytes([a, b, c, d]) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(log: &mut RecordLog) -> Vec<u32> {
        let mut cursor = LogCursor::default();
        let mut found = Vec::new();
        while let Some(record) = log.next(&mut cursor).unwrap() {
            found.push(u32::from_ne_bytes(record.try_into().unwrap()));
        }
        found
    }

    /// Records of before and behind the move into the file are read in order, those too that come while they are read.
    #[test]
    fn records_come_in_order_in_memory_and_beyond() {
        let directory = tempfile::tempdir().unwrap();
        let options = SpillOptions::new(directory.path().into(), 1_000);
        let mut log = RecordLog::default();
        let mut cursor = LogCursor::default();
        let mut read = Vec::new();
        for number in 0..20_000u32 {
            log.push(&number.to_ne_bytes(), &options).unwrap();
            if number % 3 == 0
                && let Some(record) = log.next(&mut cursor).unwrap()
            {
                read.push(u32::from_ne_bytes(record.try_into().unwrap()));
            }
        }
        assert!(log.file.is_some() && log.memory.is_empty());
        while let Some(record) = log.next(&mut cursor).unwrap() {
            read.push(u32::from_ne_bytes(record.try_into().unwrap()));
        }
        assert!(read.iter().copied().eq(0..20_000));
    }

    #[test]
    fn a_log_is_cut_back_to_a_position() {
        let directory = tempfile::tempdir().unwrap();
        for bytes_max in [1_000, 1 << 20] {
            let options = SpillOptions::new(directory.path().into(), bytes_max);
            let mut log = RecordLog::default();
            let mut positions = Vec::new();
            for number in 0..10_000u32 {
                positions.push(log.end());
                log.push(&number.to_ne_bytes(), &options).unwrap();
            }
            for left in [9_999, 9_990, 5_000, 10, 1] {
                log.cut_back(positions[left]);
                assert!(records(&mut log).into_iter().eq(0..left as u32));
                log.push(&7u32.to_ne_bytes(), &options).unwrap();
                assert_eq!(records(&mut log).last(), Some(&7));
            }
            log.cut_back(0);
            assert!(log.is_empty() && records(&mut log).is_empty());
        }
    }
}
