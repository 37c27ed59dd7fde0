//! The pages and the log that a tree uses, as a trait: so that checkers run the tree itself, on pages and a
//! log in memory (`tests/shuttle_btree.rs`).

use std::sync::Arc;

use clearway_machine::{Machine, Native};
use clearway_txn::Xid;

use crate::btree::RootHints;
use crate::buffer::{PinnedPage, RacyPage};
use crate::change::{AtomicChange, ChangeLog};
use crate::error::Result;
use crate::page::{PageId, RelId};
use crate::storage::Storage;
use crate::wal::Wal;

/// Pages, a log of their changes, and the roots remembered.
pub trait TreeStorage {
    /// The machine beneath.
    type Machine: Machine;
    /// The log of changes.
    type Log: ChangeLog;

    /// Keeps a page in memory.
    fn pin(&self, page: PageId) -> Result<PinnedPage<'_, Self::Machine>>;

    /// Adds an empty page to `rel` and keeps it in memory.
    fn extend(&self, rel: RelId) -> Result<PinnedPage<'_, Self::Machine>>;

    /// Makes sure that there is room in the log for the changes of one operation, before it latches a page.
    fn make_log_room(&self) -> Result<()>;

    /// Begins a change of pages, under page latches: after [`make_log_room`](Self::make_log_room).
    fn begin_change_latched(&self, xid: Xid) -> Result<AtomicChange<'_, Self::Machine, Self::Log>>;

    /// Begins a change of pages, none of which is latched yet.
    fn begin_change(&self, xid: Xid) -> Result<AtomicChange<'_, Self::Machine, Self::Log>> {
        self.make_log_room()?;
        self.begin_change_latched(xid)
    }

    /// The roots of the trees used last.
    fn root_hints(&self) -> &RootHints<Self::Machine>;

    /// True if pages can be read without latching them: [`BufferPool::reads_optimistically`](crate::BufferPool::reads_optimistically).
    fn reads_optimistically(&self) -> bool;

    /// True if pages can be read without pinning them: [`BufferPool::reads_unpinned`].
    ///
    /// [`BufferPool::reads_unpinned`]: crate::BufferPool::reads_unpinned
    fn reads_unpinned(&self) -> bool;

    /// Result of `read` on a page as it was at one instant: [`BufferPool::read`].
    ///
    /// [`BufferPool::read`]: crate::BufferPool::read
    /// [`BufferPool::reads_optimistically`]: crate::BufferPool::reads_optimistically
    fn read_page<R>(&self, page: PageId, read: impl FnMut(RacyPage<'_>) -> Option<R>) -> Result<Option<R>>;
}

impl TreeStorage for Storage {
    type Machine = Native;
    type Log = Wal;

    #[inline]
    fn pin(&self, page: PageId) -> Result<PinnedPage<'_>> {
        self.pin(page)
    }

    fn extend(&self, rel: RelId) -> Result<PinnedPage<'_>> {
        self.extend(rel)
    }

    fn make_log_room(&self) -> Result<()> {
        self.make_log_room()
    }

    fn begin_change_latched(&self, xid: Xid) -> Result<AtomicChange<'_>> {
        self.begin_change_latched(xid)
    }

    #[inline]
    fn root_hints(&self) -> &RootHints {
        &self.root_hints
    }

    #[inline]
    fn reads_optimistically(&self) -> bool {
        self.reads_optimistically()
    }

    #[inline]
    fn reads_unpinned(&self) -> bool {
        self.reads_unpinned()
    }

    #[inline]
    fn read_page<R>(&self, page: PageId, read: impl FnMut(RacyPage<'_>) -> Option<R>) -> Result<Option<R>> {
        self.read_page(page, read)
    }
}

impl<S: TreeStorage> TreeStorage for Arc<S> {
    type Machine = S::Machine;
    type Log = S::Log;

    #[inline]
    fn pin(&self, page: PageId) -> Result<PinnedPage<'_, Self::Machine>> {
        (**self).pin(page)
    }

    fn extend(&self, rel: RelId) -> Result<PinnedPage<'_, Self::Machine>> {
        (**self).extend(rel)
    }

    fn make_log_room(&self) -> Result<()> {
        (**self).make_log_room()
    }

    fn begin_change_latched(&self, xid: Xid) -> Result<AtomicChange<'_, Self::Machine, Self::Log>> {
        (**self).begin_change_latched(xid)
    }

    #[inline]
    fn root_hints(&self) -> &RootHints<Self::Machine> {
        (**self).root_hints()
    }

    #[inline]
    fn reads_optimistically(&self) -> bool {
        (**self).reads_optimistically()
    }

    #[inline]
    fn reads_unpinned(&self) -> bool {
        (**self).reads_unpinned()
    }

    #[inline]
    fn read_page<R>(&self, page: PageId, read: impl FnMut(RacyPage<'_>) -> Option<R>) -> Result<Option<R>> {
        (**self).read_page(page, read)
    }
}
