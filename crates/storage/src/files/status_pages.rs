//! The commit log's pages on disk: relation 0.
//!
//! A page is written in place, so a crash can tear it. Before each write its image goes into the log, and
//! recovery merges that image: a status only ever changes from "in progress" to another one, so merging is an
//! OR, and the order of images and of commit records does not matter.
//!
//! A standby cannot log. It writes the image into a file of its own instead ([`StatusJournal`]).
//!
//! # One writer at a time
//! Pages with different numbers are written at once: by two banks of the commit log, and by a checkpoint beside a
//! session that needs a slot. Two things belong to all pages: the length of the file, which a page behind the end makes
//! larger by empty pages up to its own, and the journal, which holds one image.
//!
//! R1: *the file is written by one worker at a time, from the look at its length until the page is written, and with a
//! journal from the sync of the page before.* Otherwise one worker fills the room up to its page with empty pages while
//! another writes one of these, and what that one wrote is gone; or a second image replaces the first in the journal
//! while the first one's page is half written. The image in the log needs no such order, and is logged before.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use clearway_txn::{COMMIT_LOG_PAGE_HEADER, COMMIT_LOG_PAGE_SIZE, StatusDevice, Xid};

use crate::error::StorageError;
use crate::files::data_file::DataFiles;
use crate::files::status_journal::StatusJournal;
use crate::page::{self, Lsn, PAGE_HEADER, PAGE_SIZE, PageId, PageKind, RelId};
use crate::wal::Wal;
use crate::wal::record::RecordKind;

const _: () = assert!(COMMIT_LOG_PAGE_SIZE == PAGE_SIZE && COMMIT_LOG_PAGE_HEADER == PAGE_HEADER);

/// The device under the commit log.
#[derive(Debug, Clone)]
pub struct StatusPages {
    files: Arc<DataFiles>,
    wal: Arc<Wal>,
    recovery: Arc<Recovery>,
    journal: Option<Arc<StatusJournal>>,
    /// R1.
    writing: Arc<Mutex<()>>,
}

/// Recovery's treatment of commit-log pages.
#[derive(Debug)]
struct Recovery {
    running: AtomicBool,
    /// Torn pages met so far, until an image in the log heals them.
    torn: Mutex<BTreeMap<u32, StorageError>>,
}

impl StatusPages {
    pub(crate) fn new(files: Arc<DataFiles>, wal: Arc<Wal>) -> Self {
        let recovery = Recovery {
            running: AtomicBool::new(true),
            torn: Mutex::default(),
        };
        Self {
            files,
            wal,
            recovery: Arc::new(recovery),
            journal: None,
            writing: Arc::default(),
        }
    }

    /// Those of a standby, with the image that was in the journal: number and content of a page.
    pub(crate) fn with_journal(self, journal: Arc<StatusJournal>) -> Self {
        Self {
            journal: Some(journal),
            ..self
        }
    }

    /// An image of page `number` was in the log.
    pub(crate) fn healed(&self, number: u32) {
        self.recovery
            .torn
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .remove(&number);
    }

    /// Recovery has read the whole log: a page still torn is lost.
    pub(crate) fn end_recovery(&self) -> Result<(), StorageError> {
        self.recovery.running.store(false, Ordering::Release);
        match self
            .recovery
            .torn
            .lock()
            .unwrap_or_else(|e| e.into_inner())
            .pop_first()
        {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }
}

/// The storage error inside an error of the device.
pub(crate) fn storage_error(error: io::Error) -> StorageError {
    error
        .downcast::<StorageError>()
        .unwrap_or_else(|source| StorageError::Io {
            action: "read or write",
            file: "the commit log".into(),
            source,
        })
}

impl StatusDevice for StatusPages {
    fn read_page(&self, number: u32, bytes: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        let file = self.files.file(RelId::COMMIT_LOG).map_err(io::Error::other)?;
        if number >= file.blocks() {
            bytes.fill(0);
            return Ok(false);
        }
        match self.files.read(&file, place(number), bytes) {
            Ok(()) => Ok(true),
            Err(error @ StorageError::CorruptPage { .. })
                if self.recovery.running.load(Ordering::Acquire) =>
            {
                bytes.fill(0);
                self.recovery
                    .torn
                    .lock()
                    .unwrap_or_else(|e| e.into_inner())
                    .insert(number, error);
                Ok(false)
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn write_page(&self, number: u32, bytes: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
        let file = self.files.file(RelId::COMMIT_LOG).map_err(io::Error::other)?;
        let mut upto = Lsn(lsn);
        let journal = self.journal.as_ref().filter(|journal| journal.is_open());
        if journal.is_none() && !self.recovery.running.load(Ordering::Acquire) {
            self.wal.make_room_latched()?;
            let mut payload = number.to_le_bytes().to_vec();
            payload.extend_from_slice(&bytes[COMMIT_LOG_PAGE_HEADER..]);
            upto = self
                .wal
                .insert_any(RecordKind::STATUS_PAGE, Xid::INVALID, &payload);
            self.wal.flush(upto);
        }
        assert!(
            upto <= self.wal.flushed(),
            "R1 of the commit log: page {number} is written before its log is durable"
        );
        // R1.
        let _writing = self.writing.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(journal) = journal {
            if journal.syncs() {
                file.sync().map_err(io::Error::other)?;
            }
            journal
                .write(number, &bytes[COMMIT_LOG_PAGE_HEADER..])
                .map_err(io::Error::other)?;
        }
        let mut copy = [0; PAGE_SIZE];
        // Pages are written in any order, and the length counts all that come before.
        for skipped in file.blocks()..number {
            page::init(&mut copy, PageKind::COMMIT_LOG, 0);
            file.append(place(skipped), &mut copy).map_err(io::Error::other)?;
        }
        page::init(&mut copy, PageKind::COMMIT_LOG, 0);
        page::set_lsn(&mut copy, upto);
        copy[COMMIT_LOG_PAGE_HEADER..].copy_from_slice(&bytes[COMMIT_LOG_PAGE_HEADER..]);
        let written = if number < file.blocks() {
            file.write(place(number), &mut copy)
        } else {
            file.append(place(number), &mut copy)
        };
        written.map_err(io::Error::other)
    }
}

fn place(number: u32) -> PageId {
    PageId {
        rel: RelId::COMMIT_LOG,
        block: number,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use clearway_txn::Status;

    use super::*;
    use crate::storage::{Storage, StorageOptions};

    /// A damaged page may be in the log while that is replayed. Later it is an error: read as zeros, it would make
    /// committed transactions ones that never ended.
    #[test]
    fn a_damaged_page_is_an_error_after_recovery() {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            buffer_bytes: 1 << 20,
            fsync: false,
            ..StorageOptions::default()
        };
        let (storage, _) = Storage::open(dir.path(), options).unwrap();
        storage
            .commit_log
            .set(Xid::FIRST_NORMAL, Status::Committed, 0)
            .unwrap();
        storage.checkpoint().unwrap();
        let mut bytes = [0; PAGE_SIZE];
        let pages = StatusPages::new(Arc::clone(&storage.files), Arc::clone(&storage.wal));
        assert!(pages.read_page(0, &mut bytes).unwrap());
        let path = dir.path().join("base").join(RelId::COMMIT_LOG.0.to_string());
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(b"Mallory", 4_000).unwrap();
        assert!(!pages.read_page(0, &mut bytes).unwrap());
        pages.healed(0);
        pages.end_recovery().unwrap();
        let error = storage_error(pages.read_page(0, &mut bytes).unwrap_err());
        assert!(matches!(error, StorageError::CorruptPage { .. }), "{error}");
        storage.stop_threads();
    }
}
