//! Pages, as statements reach them.

use std::time::Duration;

use super::Storage;
#[cfg(doc)]
use crate::buffer::BufferPool;
use crate::buffer::{FrameRing, PinnedPage, RacyPage};
use crate::error::{Result, StorageError};
use crate::page::{Lsn, PageId, RelId};
use crate::wal::LogWait;

/// The questions of a wait to its statement.
#[derive(Debug)]
pub(super) struct StopAsked {
    stop_asked: fn() -> bool,
    time_left: fn() -> Option<Duration>,
}

impl Storage {
    /// Waits for a buffer, while all are pinned, and for room on a page ask these functions, in the thread that waits:
    /// whether to stop, and after what time the answer may be another without a call of
    /// [`Wal::interrupt_waits`](crate::wal::Wal::interrupt_waits). The first ones count.
    pub fn set_stop_asked(&self, stop_asked: fn() -> bool, time_left: fn() -> Option<Duration>) {
        self.pool.set_stop_asked(stop_asked);
        let _ = self.stop_asked.set(StopAsked {
            stop_asked,
            time_left,
        });
    }

    /// Waits until everything before `position` of the log is durable; an error if the statement is to stop. The caller
    /// holds no latch.
    #[cold]
    pub(crate) fn wait_for_durable(&self, position: Lsn) -> Result<()> {
        let asked = self.stop_asked.get();
        let stop = || asked.is_some_and(|asked| (asked.stop_asked)());
        let time_left = || asked.and_then(|asked| (asked.time_left)());
        match self.wal.wait_flushed(position, stop, time_left) {
            LogWait::Durable => Ok(()),
            LogWait::Stopped => Err(StorageError::StopAsked),
        }
    }

    /// [`BufferPool::reads_optimistically`].
    #[inline]
    pub(crate) fn reads_optimistically(&self) -> bool {
        self.pool.reads_optimistically()
    }

    /// [`BufferPool::reads_unpinned`].
    #[inline]
    pub(crate) fn reads_unpinned(&self) -> bool {
        self.pool.reads_unpinned()
    }

    /// [`BufferPool::read`].
    #[inline]
    pub(crate) fn read_page<R>(
        &self,
        page: PageId,
        read: impl FnMut(RacyPage<'_>) -> Option<R>,
    ) -> Result<Option<R>> {
        self.pool.read(page, read)
    }

    /// Keeps a page in memory.
    #[inline]
    pub fn pin(&self, page: PageId) -> Result<PinnedPage<'_>> {
        self.pool.pin(page)
    }

    /// As [`pin`](Self::pin); if the page is not in memory, it gets a frame of the ring, if there is one.
    #[inline]
    pub(crate) fn pin_in(&self, page: PageId, ring: Option<&mut FrameRing>) -> Result<PinnedPage<'_>> {
        match ring {
            None => self.pool.pin(page),
            Some(ring) => self.pool.pin_in(page, ring),
        }
    }

    /// Adds an empty page, of the kind `NEW`, to `rel` and keeps it in memory. After a crash the relation may
    /// or may not have it, until it is changed.
    pub fn extend(&self, rel: RelId) -> Result<PinnedPage<'_>> {
        self.pool.extend(rel)
    }

    /// As [`extend`](Self::extend); the page gets a frame of the ring, if there is one.
    pub(crate) fn extend_in(&self, rel: RelId, ring: Option<&mut FrameRing>) -> Result<PinnedPage<'_>> {
        self.pool.extend_in(rel, ring)
    }

    /// A ring of frames for a scan of `pages` pages, if that would sweep the buffer pool.
    pub(crate) fn scan_ring(&self, pages: u32) -> Option<FrameRing> {
        self.pool.scan_ring(pages)
    }

    /// A ring of frames for a bulk write.
    pub fn write_ring(&self) -> FrameRing {
        self.pool.write_ring()
    }

    /// Number of pages of a relation that are in memory, as far as a look without pins can tell.
    pub fn resident_pages(&self, rel: RelId) -> usize {
        self.pool.resident_pages(rel)
    }
}
