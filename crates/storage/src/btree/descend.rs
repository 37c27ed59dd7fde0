//! From the root to a page.

use crate::btree::node::{Bound, Node};
use crate::btree::optimistic::Step;
use crate::btree::{BTree, TreeStorage};
use crate::buffer::{PageShared, PageUpdate};
use crate::error::{Result, StorageError};
use crate::page::{self, PAGE_HEADER, PageId, PageKind, get_u32};

/// The offset of the root's number on page 0.
pub(crate) const META_ROOT: usize = PAGE_HEADER;

/// The path of a descent to a page.
#[derive(Debug, Default)]
pub(crate) struct Descent {
    /// The numbers of the pages passed above it, the root first.
    pub(crate) above: Vec<u32>,
    /// Pages that were left by their right link: their parent, when it was read, did not name that neighbour (R5).
    pub(crate) crossed: Vec<u32>,
}

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

    fn check(&self, block: u32, header: &[u8]) -> Result<()> {
        if page::kind(header) == PageKind::BTREE_NODE {
            return Ok(());
        }
        Err(self.inconsistent(block, "not a page of a B+tree"))
    }

    pub(crate) fn read<'s, S: TreeStorage>(
        &self,
        storage: &'s S,
        block: u32,
    ) -> Result<PageShared<'s, S::Machine>> {
        let page = storage.pin(self.page(block))?.into_shared();
        self.check(block, page.header())?;
        Ok(page)
    }

    pub(crate) fn update<'s, S: TreeStorage>(
        &self,
        storage: &'s S,
        block: u32,
    ) -> Result<PageUpdate<'s, S::Machine>> {
        let page = storage.pin(self.page(block))?.into_update();
        self.check(block, page.header())?;
        Ok(page)
    }

    pub(crate) fn root<S: TreeStorage>(&self, storage: &S) -> Result<u32> {
        let meta = storage.pin(self.page(0))?.into_shared();
        if page::kind(meta.header()) != PageKind::BTREE_META {
            return Err(self.inconsistent(0, "not the first page of a B+tree"));
        }
        Ok(get_u32(meta.bytes(), META_ROOT))
    }

    /// The page to begin a descent at: the root, or what was the root not long ago.
    #[inline]
    fn start<'s, S: TreeStorage>(&self, storage: &'s S) -> Result<PageShared<'s, S::Machine>> {
        if let Some(block) = storage.root_hints().get(self.rel) {
            let page = self.read(storage, block)?;
            if Node(page.bytes()).right().is_none() {
                return Ok(page);
            }
            storage.root_hints().forget(self.rel);
        }
        let block = self.root(storage)?;
        storage.root_hints().set(self.rel, block);
        self.read(storage, block)
    }

    /// Moves right from `page` to the one that covers `bound`; `crossed` is called with each page left behind.
    #[inline]
    pub(crate) fn move_right<'s, S: TreeStorage>(
        &self,
        storage: &'s S,
        mut page: PageShared<'s, S::Machine>,
        bound: Bound<'_>,
        mut crossed: impl FnMut(u32),
    ) -> Result<PageShared<'s, S::Machine>> {
        while let Some(right) = right_for(Node(page.bytes()), bound) {
            crossed(page.page_id().block);
            page = self.read(storage, right)?;
        }
        Ok(page)
    }

    /// As [`move_right`](Self::move_right), for writing. The left latch is released after the right one is taken, so
    /// that a unique check (R4) is not overtaken.
    pub(crate) fn move_right_update<'s, S: TreeStorage>(
        &self,
        storage: &'s S,
        mut page: PageUpdate<'s, S::Machine>,
        bound: Bound<'_>,
        mut crossed: impl FnMut(u32),
    ) -> Result<PageUpdate<'s, S::Machine>> {
        while let Some(right) = right_for(Node(page.bytes()), bound) {
            crossed(page.page_id().block);
            let next = self.update(storage, right)?;
            page = next;
        }
        Ok(page)
    }

    /// The number of the page at `level` that covers `bound`, or lies left of the one that does. `None`: the
    /// root is below that level.
    pub(crate) fn descend<S: TreeStorage>(
        &self,
        storage: &S,
        bound: Bound<'_>,
        level: u16,
        descent: &mut Descent,
    ) -> Result<Option<u32>> {
        let Descent { above, crossed } = descent;
        above.clear();
        let arrived = self.descend_optimistically(storage, bound, level, |block, step| {
            match step {
                Step::Down { .. } => above.push(block),
                Step::Right(_) => crossed.push(block),
                Step::Arrived => {}
            }
            None
        })?;
        if arrived.is_some() {
            return Ok(arrived);
        }
        above.clear();
        // A page that was once the root may be below the level that the caller asks for.
        let mut page = match level {
            0 => self.start(storage)?,
            _ => self.read(storage, self.root(storage)?)?,
        };
        if Node(page.bytes()).level() < level {
            return Ok(None);
        }
        loop {
            page = self.move_right(storage, page, bound, |block| crossed.push(block))?;
            let block = page.page_id().block;
            if Node(page.bytes()).level() == level {
                return Ok(Some(block));
            }
            above.push(block);
            page = self.child(storage, page, bound)?;
        }
    }

    /// As [`descend`](Self::descend), to the leaves.
    pub(crate) fn descend_to_leaf<S: TreeStorage>(
        &self,
        storage: &S,
        bound: Bound<'_>,
        descent: &mut Descent,
    ) -> Result<u32> {
        let leaf = self.descend(storage, bound, 0, descent)?;
        leaf.ok_or_else(|| self.inconsistent(0, "a root below the leaves"))
    }

    /// The leaf that covers `bound`, latched to read it.
    #[inline]
    pub(crate) fn find_leaf<'s, S: TreeStorage>(
        &self,
        storage: &'s S,
        bound: Bound<'_>,
    ) -> Result<PageShared<'s, S::Machine>> {
        if let Some(leaf) = self.find_leaf_number(storage, bound)? {
            let page = self.read(storage, leaf)?;
            let level = Node(page.bytes()).level();
            if level != 0 {
                return Err(self.inconsistent(leaf, &format!("a page of level {level} stands in for a leaf")));
            }
            return self.move_right(storage, page, bound, |_| {});
        }
        let mut page = self.start(storage)?;
        loop {
            page = self.move_right(storage, page, bound, |_| {})?;
            if Node(page.bytes()).level() == 0 {
                return Ok(page);
            }
            page = self.child(storage, page, bound)?;
        }
    }

    /// From an inner page to its child that covers `bound`. The child is one level down, or the tree is
    /// damaged; so every descent ends.
    #[inline]
    fn child<'s, S: TreeStorage>(
        &self,
        storage: &'s S,
        page: PageShared<'s, S::Machine>,
        bound: Bound<'_>,
    ) -> Result<PageShared<'s, S::Machine>> {
        let node = Node(page.bytes());
        let level = node.level();
        if node.len() == 0 {
            return Err(self.inconsistent(page.page_id().block, "an inner page without entries"));
        }
        let child = node.child(node.covering(bound));
        // R1: the parent first.
        drop(page);
        let page = self.read(storage, child)?;
        let found = Node(page.bytes()).level();
        if found + 1 != level {
            let problem = format!("a page of level {found} is the child of one of level {level}");
            return Err(self.inconsistent(child, &problem));
        }
        Ok(page)
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
