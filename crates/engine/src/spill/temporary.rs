//! A file of records, written at its end and read in blocks.
//!
//! ```text
//!   ┌─────────────────┬─────────────────────┬─────┬─────────┐
//!   │ key length, u32 │ payload length, u32 │ key │ payload │ …
//!   └─────────────────┴─────────────────────┴─────┴─────────┘
//! ```
//!
//! Lengths are in the machine's byte order: the file never outlives its process.

use std::fs::{DirBuilder, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use crate::memory;
use crate::session_counts::TemporaryFiles;
use crate::spill::{BlockCounts, SpillOptions, file_error};
use clearway_sql::error::Result;

/// Bytes that are written or read at a time.
pub(crate) const BLOCK_BYTES: usize = 32 << 10;

/// The bytes before a record's key.
const HEADER_BYTES: usize = 8;

/// A record: its key, and what belongs to it.
#[derive(Debug, Default)]
pub(crate) struct Record {
    pub(crate) key: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// A file without a name.
#[derive(Debug)]
pub(crate) struct Temporary {
    file: File,
    directory: Arc<Path>,
    /// Bytes that are in the file.
    written: u64,
    /// The server's log tells of so many, or more; the greatest number: of none.
    log_from: u64,
    buffer: Vec<u8>,
}

/// Makes a file without a name in `directory`.
pub(super) fn unnamed_file(directory: &Path) -> io::Result<File> {
    let mut maker = DirBuilder::new();
    // As the data directory, which the owner's group may read or not.
    let beside = directory.parent().and_then(|data| std::fs::metadata(data).ok());
    let mode = beside.map_or(0o700, |data| data.mode() & 0o750);
    maker.recursive(true).mode(mode);
    maker.create(directory)?;
    tempfile::tempfile_in(directory)
}

impl Temporary {
    /// Makes a file where `options` say.
    pub(crate) fn create(options: &SpillOptions) -> Result<Temporary> {
        let directory = &options.directory;
        let made = unnamed_file(directory);
        let file = made.map_err(|error| file_error("creating", directory, &error))?;
        TemporaryFiles::add(1, 0);
        Ok(Temporary {
            file,
            directory: Arc::clone(directory),
            written: 0,
            log_from: options.log_from.unwrap_or(u64::MAX),
            buffer: Vec::with_capacity(BLOCK_BYTES),
        })
    }

    /// Appends a record.
    pub(crate) fn write(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(&(key.len() as u32).to_ne_bytes());
        self.buffer
            .extend_from_slice(&(payload.len() as u32).to_ne_bytes());
        self.buffer.extend_from_slice(key);
        self.buffer.extend_from_slice(payload);
        if self.buffer.len() >= BLOCK_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// The start of the next record.
    pub(crate) fn end(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// The end of what can be read.
    pub(crate) fn flushed(&self) -> u64 {
        self.written
    }

    /// Writes out what is buffered: it can be read from now on.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.file
            .write_all_at(&self.buffer, self.written)
            .map_err(|error| file_error("writing to", &self.directory, &error))?;
        BlockCounts::add_written(self.buffer.len());
        TemporaryFiles::add(0, self.buffer.len());
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BLOCK_BYTES);
        Ok(())
    }

    /// Takes away what is behind a position: what comes next begins there.
    pub(crate) fn cut_back(&mut self, position: u64) {
        match position.checked_sub(self.written) {
            Some(buffered) => self.buffer.truncate(buffered as usize),
            None => {
                self.written = position;
                self.buffer.clear();
            }
        }
    }

    /// Gives up the write buffer.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.flush()?;
        self.buffer = Vec::new();
        Ok(())
    }

    fn read(&self, at: u64, buffer: &mut [u8]) -> Result<()> {
        self.file
            .read_exact_at(buffer, at)
            .map_err(|error| file_error("reading from", &self.directory, &error))?;
        BlockCounts::add_read(buffer.len());
        Ok(())
    }
}

/// The file goes, and the server's log tells of its size.
impl Drop for Temporary {
    fn drop(&mut self) {
        if self.log_from == u64::MAX {
            return;
        }
        // Its length is the most that was in it, also where its end was taken back.
        let size = self.file.metadata().map_or(self.written, |file| file.len());
        if size >= self.log_from {
            tracing::info!(
                "temporary file: path \"{}\", size {size}",
                self.directory.display()
            );
        }
    }
}

/// Reads a range of a file, record after record.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The range that has not been read from the file.
    rest: Range<u64>,
    buffer: Vec<u8>,
    at: usize,
}

impl Reader {
    /// Reads records that lie in `range`.
    pub(crate) fn new(range: Range<u64>) -> Reader {
        Reader {
            rest: range,
            buffer: Vec::new(),
            at: 0,
        }
    }

    /// Replaces `record` by the next one; `false` at the end.
    pub(crate) fn next(&mut self, file: &Temporary, record: &mut Record) -> Result<bool> {
        if self.at == self.buffer.len() && self.rest.is_empty() {
            return Ok(false);
        }
        let mut header = [0; HEADER_BYTES];
        self.take(file, &mut header)?;
        let [a, b, c, d, e, f, g, h] = header;
        let key_length = u32::from_ne_bytes([a, b, c, d]) as usize;
        let payload_length = u32::from_ne_bytes([e, f, g, h]) as usize;
        memory::require(key_length + payload_length)?;
        record.key.resize(key_length, 0);
        record.payload.resize(payload_length, 0);
        self.take(file, &mut record.key)?;
        self.take(file, &mut record.payload)?;
        Ok(true)
    }

    /// Fills `into`, block by block.
    fn take(&mut self, file: &Temporary, mut into: &mut [u8]) -> Result<()> {
        while !into.is_empty() {
            if self.at == self.buffer.len() {
                let length = (self.rest.end - self.rest.start).min(BLOCK_BYTES as u64) as usize;
                debug_assert!(length > 0, "a record ends where its run ends");
                self.buffer.resize(length, 0);
                file.read(self.rest.start, &mut self.buffer)?;
                self.rest.start += length as u64;
                self.at = 0;
            }
            let count = into.len().min(self.buffer.len() - self.at);
            let (now, later) = into.split_at_mut(count);
            now.copy_from_slice(&self.buffer[self.at..self.at + count]);
            self.at += count;
            into = later;
        }
        Ok(())
    }
}
