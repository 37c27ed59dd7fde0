//! From the root to a page.

use crate::btree::BTree;
use crate::btree::node::{Bound, Node};
use crate::buffer::{PageShared, PageUpdate};
use crate::error::{Result, StorageError};
use crate::page::{self, PAGE_HEADER, PageId, PageKind, get_u32};
use crate::storage::Storage;

/// Where the root's number stands on page 0.
pub(crate) const META_ROOT: usize = PAGE_HEADER;
/// Deeper than any tree of 2^32 pages; a longer path is a cycle.
const DEPTH_MAX: usize = 64;

impl BTree {
    pub(crate) fn page(&self, block: u32) -> PageId {
        PageId { rel: self.rel, block }
    }

    pub(crate) fn inconsistent(&self, block: u32, problem: &str) -> StorageError {
        StorageError::Inconsistent {
            rel: self.rel.0,
            block,
            problem: problem.into(),
        }
    }

    fn check(&self, block: u32, bytes: &[u8]) -> Result<()> {
        if page::kind(bytes) == PageKind::BTREE_NODE {
            return Ok(());
        }
        Err(self.inconsistent(block, "not a page of a B+tree"))
    }

    pub(crate) fn read<'s>(&self, storage: &'s Storage, block: u32) -> Result<PageShared<'s>> {
        let page = storage.pin(self.page(block))?.into_shared();
        self.check(block, page.bytes())?;
        Ok(page)
    }

    pub(crate) fn update<'s>(&self, storage: &'s Storage, block: u32) -> Result<PageUpdate<'s>> {
        let page = storage.pin(self.page(block))?.into_update();
        self.check(block, page.bytes())?;
        Ok(page)
    }

    pub(crate) fn root(&self, storage: &Storage) -> Result<u32> {
        let meta = storage.pin(self.page(0))?.into_shared();
        if page::kind(meta.bytes()) != PageKind::BTREE_META {
            return Err(self.inconsistent(0, "not the first page of a B+tree"));
        }
        Ok(get_u32(meta.bytes(), META_ROOT))
    }

    /// The page to begin a descent at: the root, or what was the root not long ago.
    #[inline]
    fn start<'s>(&self, storage: &'s Storage) -> Result<PageShared<'s>> {
        if let Some(block) = storage.root_hints.get(self.rel) {
            let page = self.read(storage, block)?;
            if Node(page.bytes()).right().is_none() {
                return Ok(page);
            }
            storage.root_hints.forget(self.rel);
        }
        let block = self.root(storage)?;
        storage.root_hints.set(self.rel, block);
        self.read(storage, block)
    }

    /// Moves right from `page` to the one that covers `bound`.
    #[inline]
    pub(crate) fn move_right<'s>(
        &self,
        storage: &'s Storage,
        mut page: PageShared<'s>,
        bound: Bound<'_>,
    ) -> Result<PageShared<'s>> {
        while let Some(right) = right_for(Node(page.bytes()), bound) {
            page = self.read(storage, right)?;
        }
        Ok(page)
    }

    /// As [`move_right`](Self::move_right), for writing. The left latch is let go after the right one is taken, so that a
    /// unique check (R4) is not overtaken.
    pub(crate) fn move_right_update<'s>(
        &self,
        storage: &'s Storage,
        mut page: PageUpdate<'s>,
        bound: Bound<'_>,
    ) -> Result<PageUpdate<'s>> {
        while let Some(right) = right_for(Node(page.bytes()), bound) {
            let next = self.update(storage, right)?;
            page = next;
        }
        Ok(page)
    }

    /// The number of the page at `level` that covers `bound`, or lies left of the one that does; `path` becomes the numbers of
    /// the pages above it, the root first.
    pub(crate) fn descend(
        &self,
        storage: &Storage,
        bound: Bound<'_>,
        level: u16,
        path: &mut Vec<u32>,
    ) -> Result<u32> {
        path.clear();
        if let Some(pinned) = self.descend_optimistically(storage, bound, level, |block| path.push(block))? {
            return Ok(pinned.page_id().block);
        }
        path.clear();
        // What was the root may be below an inner level that is asked for.
        let mut page = match level {
            0 => self.start(storage)?,
            _ => self.read(storage, self.root(storage)?)?,
        };
        loop {
            page = self.move_right(storage, page, bound)?;
            let node = Node(page.bytes());
            if node.level() <= level {
                return Ok(page.page_id().block);
            }
            if path.len() == DEPTH_MAX || node.len() == 0 {
                return Err(self.inconsistent(
                    page.page_id().block,
                    "the path from the root does not end, or ends in an empty page",
                ));
            }
            path.push(page.page_id().block);
            let child = node.child(node.covering(bound));
            // R1: the parent first.
            drop(page);
            page = self.read(storage, child)?;
        }
    }

    /// The leaf that covers `bound`, latched to read it.
    #[inline]
    pub(crate) fn find_leaf<'s>(&self, storage: &'s Storage, bound: Bound<'_>) -> Result<PageShared<'s>> {
        if let Some(pinned) = self.descend_optimistically(storage, bound, 0, |_| {})? {
            let page = pinned.into_shared();
            self.check(page.page_id().block, page.bytes())?;
            return self.move_right(storage, page, bound);
        }
        let mut page = self.start(storage)?;
        let mut depth = 0;
        loop {
            page = self.move_right(storage, page, bound)?;
            let node = Node(page.bytes());
            if node.level() == 0 {
                return Ok(page);
            }
            if node.len() == 0 || depth == DEPTH_MAX {
                let problem = "the path from the root does not end, or ends in an empty page";
                return Err(self.inconsistent(page.page_id().block, problem));
            }
            depth += 1;
            let child = node.child(node.covering(bound));
            // R1: the parent first.
            drop(page);
            page = self.read(storage, child)?;
        }
    }
}

/// The right neighbour, if `bound` is not covered by the node.
#[inline]
fn right_for(node: Node<'_>, bound: Bound<'_>) -> Option<u32> {
    match node.high() {
        Some(high) if bound >= high => node.right(),
        _ => None,
    }
}
