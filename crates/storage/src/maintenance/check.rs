//! The check of what is on disk: the files, and the structures in them.
//!
//! Each structure has a module that checks its own rules (`heap::check`, `btree::check`). This module holds
//! the pass over a relation's file that comes first; `check_findings` is what all of them add to. If the file
//! is damaged, the structure in it is not checked: each missing page would be found again as a broken link.
//!
//! The file is read past the buffer pool, which may hold good copies of damaged pages. The relation's length
//! is taken before a checkpoint, so that the file holds every page below it (`lengths`, R1). A page may be
//! written while the check reads it, so a page that is wrong is read again.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use clearway_txn::{Status, XIDS_PER_PAGE, Xid};

use crate::error::findings::{Findings, Progress};
use crate::error::{Result, StorageError};
use crate::page::{self, PAGE_SIZE, PageId, PageKind, RelId};
use crate::storage::Storage;

/// Number of times that a wrong page is read.
const ATTEMPTS: u32 = 3;
/// Pages that are read between two calls of the progress callback.
const PROGRESS_PAGES: u32 = 256;

impl Storage {
    /// Number of pages of each relation that are on disk now. Makes a checkpoint.
    pub fn lengths_on_disk(&self) -> Result<BTreeMap<RelId, u32>> {
        let lengths = self.files.lengths();
        self.checkpoint()?;
        Ok(lengths)
    }

    /// An empty list of findings for `rel`.
    pub fn findings(&self, rel: RelId) -> Findings {
        Findings::new(rel, self.files.path(rel))
    }

    /// Reads the first `blocks` pages of a relation from its file, and checks each page's checksum and place.
    pub fn check_file<E: From<StorageError>>(
        &self,
        rel: RelId,
        blocks: u32,
        findings: &mut Findings,
        progress: Progress<'_, E>,
    ) -> std::result::Result<(), E> {
        let mut bytes = vec![0; PAGE_SIZE];
        for block in 0..blocks {
            if block.is_multiple_of(PROGRESS_PAGES) {
                progress(PROGRESS_PAGES.min(blocks - block))?;
            }
            match self.read_from_file(PageId { rel, block }, &mut bytes) {
                Ok(()) => {}
                Err(StorageError::CorruptPage { problem, .. }) => findings.page(block, problem),
                Err(error @ StorageError::MissingFile { .. }) => {
                    findings.add(None, error.to_string());
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read_from_file(&self, page: PageId, bytes: &mut [u8]) -> Result<()> {
        let file = self.files.file(page.rel)?;
        let mut attempt = 1;
        loop {
            match self.files.read(&file, page, bytes) {
                Err(StorageError::CorruptPage { .. }) if attempt < ATTEMPTS => {
                    attempt += 1;
                    thread::sleep(Duration::from_millis(5));
                }
                outcome => return outcome,
            }
        }
    }

    /// Checks that the commit log's pages are of that kind, and hold no status of a transaction that has not
    /// begun. The caller has checked their file.
    pub fn check_commit_log(&self, blocks: u32, findings: &mut Findings) -> Result<()> {
        let mut bytes = vec![0; PAGE_SIZE];
        for block in 0..blocks {
            let page = PageId {
                rel: RelId::COMMIT_LOG,
                block,
            };
            self.read_from_file(page, &mut bytes)?;
            if page::kind(&bytes) != PageKind::COMMIT_LOG {
                findings.page(block, "not a page of the commit log");
            }
        }
        let next = self.proc_array.next_xid();
        let end = u64::from(blocks) * XIDS_PER_PAGE;
        for xid in (next.0..end).map(Xid) {
            let began = || xid < self.proc_array.next_xid();
            if self.status(xid)? != Status::InProgress && !began() {
                let block = (xid.0 / XIDS_PER_PAGE) as u32;
                findings.page(
                    block,
                    format!("transaction {xid} has ended, but the next to begin is {next}"),
                );
                break;
            }
        }
        Ok(())
    }

    /// Checks each page of a heap: its line pointers, versions and HOT chains. The caller has checked its
    /// file.
    pub fn check_heap<E: From<StorageError>>(
        &self,
        rel: RelId,
        blocks: u32,
        findings: &mut Findings,
        progress: Progress<'_, E>,
    ) -> std::result::Result<(), E> {
        for block in 0..blocks {
            if block.is_multiple_of(PROGRESS_PAGES) {
                progress(PROGRESS_PAGES.min(blocks - block))?;
            }
            let page = self.pin(PageId { rel, block })?.into_shared();
            crate::heap::check::check_page(self, &page, findings)?;
        }
        Ok(())
    }

    /// The names in the directory of data files that belong to no relation.
    pub fn foreign_names(&self) -> Result<Vec<String>> {
        self.files.foreign_names()
    }
}
