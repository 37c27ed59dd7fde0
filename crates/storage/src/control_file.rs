//! The control file: where recovery begins.
//!
//! Two copies of 512 bytes, written in turn, each with a generation and a CRC-32C: a write torn by a crash leaves the other
//! copy, and the higher valid generation counts.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use clearway_machine::{Native, WaitEvent, WaitScope};
use clearway_txn::Xid;

use crate::error::{Result, StorageError};
use crate::page::{Lsn, get_u32, get_u64};

const COPY_SIZE: usize = 512;
const MAGIC: u64 = u64::from_le_bytes(*b"CLEARWAY");
const VERSION: u64 = 1;

/// What the control file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control {
    generation: u64,
    /// Recovery reads the log from here.
    pub(crate) redo: Lsn,
    /// The log holds whole records up to here at least.
    pub(crate) log_end: Lsn,
    /// All xids below were handed out before `redo`.
    pub(crate) next_xid: Xid,
    /// All relation numbers below were handed out before `redo`.
    pub(crate) next_rel: u32,
    /// Shut down in order: the log ends at `redo` and one checkpoint record.
    pub(crate) clean: bool,
}

#[derive(Debug)]
pub(crate) struct ControlFile {
    file: File,
    path: PathBuf,
    fsync: bool,
    generation: u64,
}

impl Control {
    fn encode(&self) -> [u8; COPY_SIZE] {
        let mut copy = [0; COPY_SIZE];
        let words = [
            MAGIC,
            VERSION,
            self.generation,
            self.redo.0,
            self.next_xid.0,
            u64::from(self.next_rel),
            u64::from(self.clean),
            self.log_end.0,
        ];
        for (word, place) in words.iter().zip(copy.chunks_exact_mut(8)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let sum = crc32c::crc32c(&copy[..COPY_SIZE - 4]);
        copy[COPY_SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
        copy
    }

    fn decode(copy: &[u8]) -> Option<Control> {
        let valid = get_u32(copy, COPY_SIZE - 4) == crc32c::crc32c(&copy[..COPY_SIZE - 4])
            && get_u64(copy, 0) == MAGIC
            && get_u64(copy, 8) == VERSION;
        valid.then(|| Control {
            generation: get_u64(copy, 16),
            redo: Lsn(get_u64(copy, 24)),
            next_xid: Xid(get_u64(copy, 32)),
            next_rel: get_u64(copy, 40) as u32,
            clean: get_u64(copy, 48) != 0,
            log_end: Lsn(get_u64(copy, 56)),
        })
    }
}

impl ControlFile {
    /// Opens the control file; `None` beside it if there was none.
    pub(crate) fn open(path: PathBuf, fsync: bool) -> Result<(Self, Option<Control>)> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::ControlFile);
        let fail = |action, error| StorageError::io(action, &path, error);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path);
        let file = file.map_err(|error| fail("open", error))?;
        let length = file.metadata().map_err(|error| fail("stat", error))?.len();
        if length == 0 {
            return Ok((
                Self {
                    file,
                    path,
                    fsync,
                    generation: 0,
                },
                None,
            ));
        }
        let mut copies = [0; 2 * COPY_SIZE];
        let mut read = 0;
        while read < copies.len() {
            match file
                .read_at(&mut copies[read..], read as u64)
                .map_err(|error| fail("read", error))?
            {
                0 => break,
                bytes => read += bytes,
            }
        }
        let control = copies
            .chunks(COPY_SIZE)
            .filter_map(Control::decode)
            .max_by_key(|copy| copy.generation);
        let Some(control) = control else {
            return Err(StorageError::CorruptFile {
                file: path,
                offset: 0,
                problem: "neither of its two copies has a valid checksum, magic number and version".into(),
            });
        };
        Ok((
            Self {
                file,
                path,
                fsync,
                generation: control.generation,
            },
            Some(control),
        ))
    }

    /// Writes the next copy and makes it durable.
    pub(crate) fn write(
        &mut self,
        redo: Lsn,
        log_end: Lsn,
        next_xid: Xid,
        next_rel: u32,
        clean: bool,
    ) -> Result<()> {
        let _wait = WaitScope::<Native>::enter(WaitEvent::ControlFile);
        self.generation += 1;
        let control = Control {
            generation: self.generation,
            redo,
            log_end,
            next_xid,
            next_rel,
            clean,
        };
        let offset = self.generation % 2 * COPY_SIZE as u64;
        let written = self.file.write_all_at(&control.encode(), offset);
        written.map_err(|error| StorageError::io("write", &self.path, error))?;
        if self.fsync
            && let Err(error) = self.file.sync_all()
        {
            // Whether this copy is on disk cannot be known any more, and the next one would overwrite the last good one.
            eprintln!(
                "clearway: could not sync {}: {error}; stopping",
                self.path.display()
            );
            std::process::abort();
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_copy_leaves_the_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("control");
        let (mut file, none) = ControlFile::open(path.clone(), true).unwrap();
        assert!(none.is_none());
        file.write(Lsn(100), Lsn(108), Xid(5), 20, false).unwrap();
        file.write(Lsn(200), Lsn(208), Xid(6), 21, true).unwrap();
        let (_, control) = ControlFile::open(path.clone(), true).unwrap();
        assert_eq!(control.unwrap().redo, Lsn(200));
        // Generation 2 lies in the first copy.
        file.file.write_all_at(&[0xFF; 100], 20).unwrap();
        let (_, control) = ControlFile::open(path.clone(), true).unwrap();
        assert_eq!(control.unwrap().redo, Lsn(100));
        file.file.write_all_at(&[0xFF; 100], 600).unwrap();
        let error = ControlFile::open(path, true).unwrap_err();
        assert!(matches!(error, StorageError::CorruptFile { .. }), "{error}");
    }
}
