//! Bytes that are taken back from their end: the part of a transaction's row changes for which memory has no room.
//!
//! The file is made with the first bytes, and goes with the transaction.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use clearway_storage::heap::Overflow;

use crate::spill::temporary::unnamed_file;

/// A stack of bytes in a temporary file.
#[derive(Debug)]
pub(crate) struct SpilledStack {
    directory: Arc<Path>,
    file: Option<File>,
    length: u64,
}

impl SpilledStack {
    /// An empty one, without a file.
    pub(crate) fn new(directory: &Arc<Path>) -> SpilledStack {
        SpilledStack {
            directory: Arc::clone(directory),
            file: None,
            length: 0,
        }
    }
}

impl Overflow for SpilledStack {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => self.file.insert(unnamed_file(&self.directory)?),
        };
        file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn take(&mut self, into: &mut [u8]) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| !into.is_empty()) else {
            return Ok(());
        };
        let start = self.length.saturating_sub(into.len() as u64);
        file.read_exact_at(into, start)?;
        self.length = start;
        Ok(())
    }

    fn path(&self) -> &Path {
        &self.directory
    }
}
