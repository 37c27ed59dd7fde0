//! Reading a relation's file for a copy, while pages are written to it.
//!
//! A page that is read while it is written may be torn. The copy's log mends that, except for the commit log's
//! pages on a standby (B3 of `backup`). Those are read one by one, each as a whole:
//!
//! 1. Read the page. If its checksum is right, or it is all zeros and was never written, it is used.
//! 2. Otherwise a write of it is under way, or the page is damaged. Wait a millisecond and read it again, for at most
//!    [`ATTEMPTS`] times; then it is damaged.
//!
//! A caller reads pieces of any length. The page is kept until the next one is wanted: if it was read again for the rest of
//! it, the copy would have halves of two versions.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::disk::DiskFile;
use crate::error::{Result, StorageError};
use crate::page::{self, PAGE_SIZE, PageDamage, PageId, RelId};
use crate::storage::Storage;

/// Number of times that a page is read before it counts as damaged. A write takes microseconds, or as long as the
/// system stalls.
const ATTEMPTS: u32 = 2_000;
/// Time between two of them.
const PAUSE: Duration = Duration::from_millis(1);

/// A relation's file, as long as it was when it was opened.
#[derive(Debug)]
pub struct RelationCopy {
    file: Arc<dyn DiskFile>,
    storage: Arc<Storage>,
    rel: RelId,
    /// Its length in bytes.
    pub length: u64,
    /// For a file that is read in whole pages: the last one.
    page: Option<Mutex<WholePage>>,
}

struct WholePage {
    /// `None`: none was read.
    block: Option<u32>,
    bytes: Box<[u8; PAGE_SIZE]>,
}

impl fmt::Debug for WholePage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WholePage")
            .field("block", &self.block)
            .finish_non_exhaustive()
    }
}

impl RelationCopy {
    /// The file of `rel`; `None` if there is none any more.
    pub(super) fn open(
        storage: &Arc<Storage>,
        rel: RelId,
        reads_whole_pages: bool,
    ) -> Result<Option<RelationCopy>> {
        let Some(file) = storage.files.open_for_copy(rel)? else {
            return Ok(None);
        };
        let length = file
            .length()
            .map_err(|error| StorageError::io("stat", &storage.files.path(rel), error))?;
        let page = reads_whole_pages.then(|| {
            Mutex::new(WholePage {
                block: None,
                bytes: Box::new([0; PAGE_SIZE]),
            })
        });
        Ok(Some(RelationCopy {
            file,
            storage: Arc::clone(storage),
            rel,
            length,
            page,
        }))
    }

    /// Reads at `offset`. Where the file has become shorter there are zeros.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let Some(page) = &self.page else {
            return self.read(bytes, offset);
        };
        let mut page = page.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done as u64;
            let within = (at % PAGE_SIZE as u64) as usize;
            self.read_page(&mut page, (at / PAGE_SIZE as u64) as u32)?;
            let count = (PAGE_SIZE - within).min(bytes.len() - done);
            bytes[done..done + count].copy_from_slice(&page.bytes[within..within + count]);
            done += count;
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let read = self
            .file
            .read_at(bytes, offset)
            .map_err(|error| StorageError::io("read", &self.storage.files.path(self.rel), error))?;
        bytes[read..].fill(0);
        Ok(())
    }

    /// Makes `page` the one of this number.
    fn read_page(&self, page: &mut WholePage, block: u32) -> Result<()> {
        if page.block == Some(block) {
            return Ok(());
        }
        page.block = None;
        let offset = u64::from(block) * PAGE_SIZE as u64;
        for attempt in 1.. {
            self.read(&mut page.bytes[..], offset)?;
            let place = PageId { rel: self.rel, block };
            match page::verify(place, &page.bytes[..]) {
                Ok(()) | Err(PageDamage::Zeros) => break,
                Err(PageDamage::Checksum { .. }) if attempt < ATTEMPTS => std::thread::sleep(PAUSE),
                Err(PageDamage::Checksum { found, expected }) => {
                    return Err(StorageError::CorruptPage {
                        file: self.storage.files.path(self.rel),
                        block,
                        offset,
                        problem: format!("checksum {found:08x}, expected {expected:08x}"),
                    });
                }
            }
        }
        page.block = Some(block);
        Ok(())
    }
}
