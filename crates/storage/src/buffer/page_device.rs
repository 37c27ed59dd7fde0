//! The device beneath the buffer pool: the files that pages are read from and written to, and the log that
//! must be durable before a page is written.

use std::sync::Arc;

use crate::commit::Commits;
use crate::error::{Result, StorageError};
use crate::files::data_file::DataFiles;
use crate::page::{self, Lsn, PAGE_SIZE, PageId, RelId};
use crate::wal::Wal;

/// The pages' files and the log, as the buffer pool needs them. It is a trait so that checkers can use memory
/// instead.
pub trait PageDevice: Send + Sync {
    /// Fails unless the relation has the page.
    fn check_exists(&self, page: PageId) -> Result<()>;

    /// Adds a page to a relation: `enter` makes the page one that can be found, and then the relation's
    /// length counts it.
    fn extend(&self, rel: RelId, enter: &mut dyn FnMut(PageId)) -> Result<()>;

    /// Reads a page.
    fn read(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()>;

    /// Writes a page; it may put a checksum on it.
    fn write(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()>;

    /// The position after the newest commit that was seen before it was durable: hint bits on any page may show
    /// that commit.
    fn newest_early_commit(&self) -> Lsn;

    /// Makes the log durable up to `upto`.
    fn flush_log(&self, upto: Lsn);
}

impl<D: PageDevice> PageDevice for Arc<D> {
    fn check_exists(&self, page: PageId) -> Result<()> {
        (**self).check_exists(page)
    }

    fn extend(&self, rel: RelId, enter: &mut dyn FnMut(PageId)) -> Result<()> {
        (**self).extend(rel, enter)
    }

    fn read(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        (**self).read(page, bytes)
    }

    fn write(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        (**self).write(page, bytes)
    }

    fn newest_early_commit(&self) -> Lsn {
        (**self).newest_early_commit()
    }

    fn flush_log(&self, upto: Lsn) {
        (**self).flush_log(upto);
    }
}

/// The data files and the log of a directory.
#[derive(Debug)]
pub struct PagesOnDisk {
    pub(crate) files: Arc<DataFiles>,
    pub(crate) wal: Arc<Wal>,
    pub(crate) commits: Arc<Commits>,
}

impl PagesOnDisk {
    /// A page cannot be newer than the log that was durable before it was written.
    fn check_lsn(&self, page: PageId, bytes: &[u8]) -> Result<()> {
        let (lsn, end) = (page::lsn(bytes), self.wal.reserved());
        if lsn <= end {
            return Ok(());
        }
        Err(StorageError::Inconsistent {
            rel: page.rel.0,
            block: page.block,
            problem: format!("the page was last changed at log position {lsn}, but the log ends at {end}"),
        })
    }
}

impl PageDevice for PagesOnDisk {
    fn check_exists(&self, page: PageId) -> Result<()> {
        if page.block < self.files.blocks(page.rel)? {
            return Ok(());
        }
        Err(StorageError::NoSuchPage {
            rel: page.rel.0,
            block: page.block,
        })
    }

    fn extend(&self, rel: RelId, enter: &mut dyn FnMut(PageId)) -> Result<()> {
        self.files.file(rel)?.extend(enter)
    }

    fn read(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        let file = self.files.file(page.rel)?;
        self.files.read_counted(&file, page, bytes)?;
        self.check_lsn(page, bytes)
    }

    fn write(&self, page: PageId, bytes: &mut [u8; PAGE_SIZE]) -> Result<()> {
        assert!(
            page::lsn(&bytes[..]) <= self.wal.flushed(),
            "B3: page {} of relation {} is written before its log is durable",
            page.block,
            page.rel.0
        );
        self.files.file(page.rel)?.write(page, bytes)
    }

    fn newest_early_commit(&self) -> Lsn {
        self.commits.newest_early()
    }

    fn flush_log(&self, upto: Lsn) {
        self.wal.flush(upto);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageKind;
    use crate::storage::{Storage, StorageOptions};

    /// The log has lost its end: what a page tells of is nowhere else.
    #[test]
    fn a_page_newer_than_the_log_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let options = StorageOptions {
            buffer_bytes: 1 << 20,
            fsync: false,
            ..StorageOptions::default()
        };
        let (storage, _) = Storage::open(dir.path(), options).unwrap();
        let rel = storage.create_rel().unwrap();
        let page = storage.extend(rel).unwrap().page_id();
        let device = PagesOnDisk {
            files: Arc::clone(&storage.files),
            wal: Arc::clone(&storage.wal),
            commits: Arc::clone(&storage.commits),
        };
        let mut bytes = [0; PAGE_SIZE];
        let end = storage.wal.reserved();
        for (lsn, is_newer) in [(end, false), (Lsn(end.0 + (1 << 30)), true)] {
            page::init(&mut bytes, PageKind::HEAP, 0);
            page::set_lsn(&mut bytes, lsn);
            storage.files.file(rel).unwrap().write(page, &mut bytes).unwrap();
            let read = device.read(page, &mut bytes);
            assert_eq!(
                matches!(read, Err(StorageError::Inconsistent { .. })),
                is_newer,
                "{read:?}"
            );
        }
        storage.stop_threads();
    }
}
