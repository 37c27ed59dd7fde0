//! Fetching one row, and scanning all.

use clearway_txn::{InTheWay, RowLockMode, Xid};

use crate::buffer::FrameRing;
use crate::buffer::PageShared;
use crate::error::Result;
use crate::heap::chain::{chain, chain_start};
use crate::heap::layout::{Tuple, slot_count};
use crate::heap::left_behind;
use crate::heap::row_lock::row_lock_mode;
use crate::heap::visibility::{self, Liveness, WriterConflict, liveness, writer_conflict};
use crate::heap::{Heap, Tid, TxnContext};
use crate::page::{self, PageId};

/// The state of one version of a row for a transaction that wants to change or lock it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionOutcome<R> {
    /// It is the newest version, and no other transaction has changed or locked it.
    NoConflict(R),
    /// This transaction has changed the row already.
    SelfModified,
    /// Wait for the end of this transaction, and try again.
    Wait(InTheWay),
    /// Deleted.
    Deleted,
    /// Replaced.
    Changed {
        /// The version that replaced it.
        latest: Tid,
    },
}

/// The row that stands where another is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rival {
    /// There is none, and there will be none.
    None,
    /// This version is alive.
    Alive(Tid),
    /// That depends on how this transaction ends.
    DependsOn(Xid),
}

impl Heap {
    /// The visible version of the row that index entries lead to by `root`: `read` gets its place and bytes.
    #[inline]
    pub fn fetch<R>(
        &self,
        ctx: &TxnContext<'_>,
        root: Tid,
        mut read: impl FnMut(Tid, &[u8]) -> R,
    ) -> Result<Option<R>> {
        if ctx.storage.reads_unpinned()
            && let Some(found) = self.fetch_unpinned(ctx, root, &mut read)?
        {
            return Ok(found);
        }
        self.fetch_pinned(ctx, root, &mut read)
    }

    /// The version of a row that the snapshot sees, from a version on that an earlier snapshot saw (WHERE CURRENT OF):
    /// that one, or what replaced it. `None` if the row is gone.
    ///
    /// The earlier snapshot is held, so that neither the version is pruned nor its place used again. Those behind it were
    /// made later.
    pub fn visible_from<R>(
        &self,
        ctx: &TxnContext<'_>,
        from: Tid,
        read: impl FnOnce(Tid, &[u8]) -> R,
    ) -> Result<Option<R>> {
        let (mut tid, mut expected) = (from, None::<u64>);
        loop {
            let page = self.shared_page(ctx, tid.block)?;
            let Some(tuple) = Tuple::at(page.hinted(), tid.slot) else {
                return Ok(None);
            };
            // R2.
            if expected.is_some_and(|xmax| xmax != tuple.xmin()) {
                return Ok(None);
            }
            if visibility::visible(ctx, &page, &tuple)? {
                return Ok(Some(read(tid, tuple.row())));
            }
            match tuple.next() {
                Some(next) if next != tid => {
                    expected = Some(tuple.xmax());
                    tid = next;
                }
                _ => return Ok(None),
            }
        }
    }

    /// The page, pinned and latched for reading.
    #[inline]
    pub(super) fn shared_page<'a>(&self, ctx: &TxnContext<'a>, block: u32) -> Result<PageShared<'a>> {
        let page = PageId { rel: self.rel, block };
        Ok(ctx.storage.pin(page)?.into_shared())
    }

    /// [`fetch`](Self::fetch) from a page that is pinned and latched.
    #[inline]
    pub(super) fn fetch_pinned<R>(
        &self,
        ctx: &TxnContext<'_>,
        root: Tid,
        read: &mut impl FnMut(Tid, &[u8]) -> R,
    ) -> Result<Option<R>> {
        let page = self.shared_page(ctx, root.block)?;
        let hinted = page.hinted();
        let Some(start) = chain_start(hinted, root.slot) else {
            return Ok(None);
        };
        let mut passed = 0;
        for (slot, tuple) in chain(hinted, start) {
            if visibility::visible(ctx, &page, &tuple)? {
                return Ok(Some(read(
                    Tid {
                        block: root.block,
                        slot,
                    },
                    tuple.row(),
                )));
            }
            passed += 1;
        }
        if passed >= left_behind::LONG {
            left_behind::prune_chain(ctx, page, start)?;
        }
        Ok(None)
    }

    /// The state of the version at exactly `tid` for a transaction that wants to change it or to lock it in `mode`, whatever
    /// its snapshot; transactions that share the row are left out. `read` gets the bytes of a version that is free. Nothing
    /// is changed.
    pub fn version<R>(
        &self,
        ctx: &TxnContext<'_>,
        tid: Tid,
        mode: RowLockMode,
        read: impl FnOnce(&[u8]) -> R,
    ) -> Result<VersionOutcome<R>> {
        let page = self.shared_page(ctx, tid.block)?;
        let Some(tuple) = Tuple::at(page.hinted(), tid.slot) else {
            return Ok(VersionOutcome::Deleted);
        };
        Ok(
            match writer_conflict(ctx, &page, &tuple, row_lock_mode(ctx, mode))? {
                WriterConflict::KeyKept {
                    next: latest,
                    is_committed: true,
                } => VersionOutcome::Changed { latest },
                WriterConflict::None | WriterConflict::KeyKept { .. } => {
                    VersionOutcome::NoConflict(read(tuple.row()))
                }
                WriterConflict::Running(xid) => VersionOutcome::Wait(self.waits_for(ctx, tid, xid)),
                WriterConflict::SelfModified => VersionOutcome::SelfModified,
                WriterConflict::Deleted => VersionOutcome::Deleted,
                WriterConflict::Replaced(latest) => VersionOutcome::Changed { latest },
            },
        )
    }

    /// The state, for a unique check, of the row that index entries lead to by `root`.
    pub(crate) fn liveness(&self, ctx: &TxnContext<'_>, root: Tid) -> Result<Liveness> {
        let page = self.shared_page(ctx, root.block)?;
        let hinted = page.hinted();
        let Some(start) = chain_start(hinted, root.slot) else {
            return Ok(Liveness::Dead);
        };
        for (_, tuple) in chain(hinted, start) {
            match liveness(ctx, &tuple)? {
                Liveness::Dead => {}
                found => return Ok(found),
            }
        }
        Ok(Liveness::Dead)
    }

    /// The row that index entries lead to by `root`, for a transaction that wants to put another with the same key there.
    pub fn rival(&self, ctx: &TxnContext<'_>, root: Tid) -> Result<Rival> {
        let page = self.shared_page(ctx, root.block)?;
        let hinted = page.hinted();
        let Some(start) = chain_start(hinted, root.slot) else {
            return Ok(Rival::None);
        };
        for (slot, tuple) in chain(hinted, start) {
            let block = root.block;
            match liveness(ctx, &tuple)? {
                Liveness::Dead => {}
                Liveness::Alive => return Ok(Rival::Alive(Tid { block, slot })),
                Liveness::DependsOn(xid) => return Ok(Rival::DependsOn(xid)),
            }
        }
        Ok(Rival::None)
    }

    /// A scan over the rows on one page that are visible to `ctx`; none if there is no such page.
    pub fn scan_page(&self, ctx: &TxnContext<'_>, block: u32) -> Result<HeapScan> {
        Ok(HeapScan {
            heap: *self,
            ring: None,
            block,
            blocks: ctx.storage.block_count(self.rel)?.min(block.saturating_add(1)),
            seen: Box::default(),
        })
    }

    /// A scan over all rows visible to `ctx`.
    pub fn scan(&self, ctx: &TxnContext<'_>) -> Result<HeapScan> {
        let blocks = ctx.storage.block_count(self.rel)?;
        Ok(HeapScan {
            heap: *self,
            ring: ctx.storage.scan_ring(blocks).map(Box::new),
            block: 0,
            blocks,
            seen: Box::default(),
        })
    }
}

/// A scan over a heap, a page at a time. Pages added after its start hold nothing its snapshot sees.
///
/// It pins and latches each page once, and copies the rows that it sees: between two rows it holds nothing, so its caller may
/// change the table, and a row costs no access to the pool. A version's bytes never change while a snapshot sees it (R4).
#[derive(Debug)]
pub struct HeapScan {
    heap: Heap,
    /// The frames that the scan uses, if the table is big. Apart, because few scans have any.
    ring: Option<Box<FrameRing>>,
    block: u32,
    blocks: u32,
    /// The rows of the page before `block`. Apart, so that a scan is small to move.
    seen: Box<SeenRows>,
}

/// The rows of a page that a scan has seen and not yet given.
#[derive(Debug, Default)]
struct SeenRows {
    versions: Vec<SeenVersion>,
    bytes: Vec<u8>,
    /// The number of the next version, and where its bytes start.
    at: usize,
    start: usize,
}

impl SeenRows {
    fn clear(&mut self) {
        self.versions.clear();
        self.bytes.clear();
        (self.at, self.start) = (0, 0);
    }

    fn push(&mut self, slot: u16, root: u16, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        let end = self.bytes.len() as u32;
        self.versions.push(SeenVersion { slot, root, end });
    }

    /// The next version, and its bytes.
    #[inline]
    fn next(&mut self) -> Option<(SeenVersion, &[u8])> {
        let version = *self.versions.get(self.at)?;
        let row = &self.bytes[self.start..version.end as usize];
        self.at += 1;
        self.start = version.end as usize;
        Some((version, row))
    }
}

/// A visible version of a row on a page.
#[derive(Debug, Clone, Copy)]
struct SeenVersion {
    slot: u16,
    root: u16,
    /// The end of its bytes, which begin where those of the version before end.
    end: u32,
}

impl HeapScan {
    /// The next visible row: `read` gets its place and bytes.
    pub fn next<R>(
        &mut self,
        ctx: &TxnContext<'_>,
        mut read: impl FnMut(Tid, &[u8]) -> R,
    ) -> Result<Option<R>> {
        self.advance(ctx, |slot, _, block, row| read(Tid { block, slot }, row))
    }

    /// The next visible row: `read` gets the place that index entries lead to, and the bytes.
    pub fn next_with_root<R>(
        &mut self,
        ctx: &TxnContext<'_>,
        mut read: impl FnMut(Tid, &[u8]) -> R,
    ) -> Result<Option<R>> {
        self.advance(ctx, |_, root, block, row| read(Tid { block, slot: root }, row))
    }

    fn advance<R>(
        &mut self,
        ctx: &TxnContext<'_>,
        mut read: impl FnMut(u16, u16, u32, &[u8]) -> R,
    ) -> Result<Option<R>> {
        loop {
            if let Some((SeenVersion { slot, root, .. }, row)) = self.seen.next() {
                return Ok(Some(read(slot, root, self.block - 1, row)));
            }
            if self.block >= self.blocks {
                return Ok(None);
            }
            self.collect(ctx)?;
        }
    }

    /// Notes the visible versions of the next page.
    fn collect(&mut self, ctx: &TxnContext<'_>) -> Result<()> {
        let page = ctx
            .storage
            .pin_in(
                PageId {
                    rel: self.heap.rel,
                    block: self.block,
                },
                self.ring.as_deref_mut(),
            )?
            .into_shared();
        self.block += 1;
        self.seen.clear();
        if page::is_new(page.header()) {
            return Ok(());
        }
        let hinted = page.hinted();
        for root in 1..=slot_count(page.header()) {
            let Some(start) = chain_start(hinted, root) else {
                continue;
            };
            for (slot, tuple) in chain(hinted, start) {
                if visibility::visible(ctx, &page, &tuple)? {
                    self.seen.push(slot, root, tuple.row());
                    break;
                }
            }
        }
        Ok(())
    }
}
