//! A standby's protection against torn pages of the commit log.
//!
//! A page of the commit log is written in place, and a power cut can tear it. A primary logs the page's image before;
//! a standby's log is a copy of the primary's, in which it cannot write. The primary's images do not suffice: it logs
//! those of the pages that *it* writes, and the standby writes at other times.
//!
//! # Steps of a write
//! 1. Make the file of the commit log durable, with what step 3 of the write before has left.
//! 2. Write number, content and checksum into the journal, over what was there, and make it durable.
//! 3. Write the page in its place.
//!
//! A power cut during 3 leaves the journal with the whole image. One during 2 may tear the journal; then no page is torn,
//! by 1. At the start the image is merged into its page, which is right also if it is an old one: a status never changes
//! once it is set.
//!
//! One image at a time: no step 1 begins before step 3 of the write before has ended (R1 of `status_pages`).
//!
//! Costs: two syncs for each page written, which is one for 32,672 transactions, and those of a restartpoint.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::disk::{self, Disk, DiskFile, OpenMode, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::page::{get_u32, get_u64};

/// The journal's name in the data directory.
pub(crate) const NAME: &str = "status_journal";

const MAGIC: u64 = u64::from_le_bytes(*b"CLEARJRN");
/// Magic, page number, length.
const HEADER: usize = 16;
/// No page is longer.
const CONTENT_MAX: usize = crate::page::PAGE_SIZE;

/// The journal of one data directory.
#[derive(Debug)]
pub(crate) struct StatusJournal {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    fsync: bool,
    open: AtomicBool,
}

/// A page's number and its content behind the header.
pub(crate) type StatusImage = (u32, Vec<u8>);

impl StatusJournal {
    /// Opens the journal in `dir`, made if it is not there, and the image in it.
    pub(crate) fn open(disk: &dyn Disk, dir: &Path, fsync: bool) -> Result<(Self, Option<StatusImage>)> {
        let path = dir.join(NAME);
        let fail = |action, error| StorageError::io(action, &path, error);
        let file = disk
            .open(&path, OpenMode::Create)
            .map_err(|error| fail("open", error))?;
        let image = image_in(&*file).map_err(|error| fail("read", error))?;
        if fsync {
            // Its name, before anything depends on it.
            let names = disk
                .open_directory(dir)
                .and_then(|names| names.sync(SyncPurpose::DataDirectory));
            names.map_err(|error| StorageError::io("sync directory", dir, error))?;
        }
        let journal = Self {
            file,
            path,
            fsync,
            open: AtomicBool::new(true),
        };
        Ok((journal, image))
    }

    /// The image in the journal of `dir`, if there is one: for a standby's directory that is opened as something else.
    pub(crate) fn read(disk: &dyn Disk, dir: &Path) -> Result<Option<StatusImage>> {
        let path = dir.join(NAME);
        let read = match disk.open(&path, OpenMode::Existing) {
            Ok(file) => image_in(&*file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        read.map_err(|error| StorageError::io("read", &path, error))
    }

    /// True if pages are to be written here first: until [`close`](Self::close).
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }

    /// True if a write waits for the disk: step 1 is needed then.
    pub(crate) fn syncs(&self) -> bool {
        self.fsync
    }

    /// Step 2. The caller keeps other writers out until step 3 has ended.
    pub(crate) fn write(&self, number: u32, content: &[u8]) -> Result<()> {
        let bytes = encode(number, content);
        self.file
            .write_at(&bytes, 0)
            .map_err(|error| StorageError::io("write", &self.path, error))?;
        if self.fsync
            && let Err(error) = self.file.sync_all(SyncPurpose::StatusJournal)
        {
            disk::sync_failed(&self.path, &error);
        }
        Ok(())
    }

    /// The standby becomes a primary: pages are logged from now on. What is in the journal stays, and does no harm.
    pub(crate) fn close(&self) {
        self.open.store(false, Ordering::Release);
    }
}

fn image_in(file: &dyn DiskFile) -> io::Result<Option<StatusImage>> {
    let mut bytes = vec![0; HEADER + CONTENT_MAX + 4];
    let read = file.read_at(&mut bytes, 0)?;
    Ok(decode(&bytes[..read]))
}

fn encode(number: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    bytes.extend(number.to_le_bytes());
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(content);
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Option<StatusImage> {
    if bytes.len() < HEADER || get_u64(bytes, 0) != MAGIC {
        return None;
    }
    let (number, length) = (get_u32(bytes, 8), get_u32(bytes, 12) as usize);
    let end = HEADER + length;
    let is_whole = length <= CONTENT_MAX
        && bytes.len() >= end + 4
        && crc32c::crc32c(&bytes[..end]) == get_u32(bytes, end);
    is_whole.then(|| (number, bytes[HEADER..end].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::NativeDisk;

    #[test]
    fn the_last_image_is_there_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, image) = StatusJournal::open(&NativeDisk, dir.path(), true).unwrap();
        assert_eq!(image, None);
        journal.write(7, &[1; 8168]).unwrap();
        journal.write(9, &[2; 8168]).unwrap();
        let (_, image) = StatusJournal::open(&NativeDisk, dir.path(), true).unwrap();
        assert_eq!(image, Some((9, vec![2; 8168])));
    }

    /// Each byte of it counts.
    #[test]
    fn a_torn_journal_holds_no_image() {
        let whole = encode(3, &[5; 100]);
        assert!(decode(&whole).is_some());
        for at in 0..whole.len() {
            let mut torn = whole.clone();
            torn[at] ^= 0xFF;
            assert_eq!(decode(&torn), None, "byte {at}");
            assert_eq!(decode(&whole[..at]), None, "the first {at} bytes");
        }
    }
}
