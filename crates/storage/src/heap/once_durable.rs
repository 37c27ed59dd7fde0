//! Room on a page that the next flush of the log brings.
//!
//! A version stays until the commit that has replaced it is durable (L5 of `commit::lock_release`). Where commits wait for
//! the disk, that is a sync later. With `synchronous_commit = off` nothing asks for a sync, and the log writer makes one
//! after `wal_writer_delay`. Meanwhile a row that is updated forty thousand times a second fills two pages with versions
//! that only the disk keeps. Each page that the row leaves has its own entry in each index, and until vacuum comes each
//! look-up of the row goes through all of them, version by version.
//!
//! So an update asks the log writer for a flush, or waits for one:
//! 1. It asks when it leaves less than [`SCARCE`] of its page free, if the version that it has replaced was made by a commit
//!    that is not durable yet. That is once for each time that the page is filled, and early enough for most disks.
//! 2. On a full page where only the disk keeps [`MANY`] versions, it waits, without a latch, and then finds room. So [`MANY`]
//!    updates at least share a wait.
//! 3. On a full page with fewer of them it asks, and takes another page.
//!
//! No update waits twice for one position: what is not removable although the log is durable waits for standbys
//! (`Commits::secured`), or for a snapshot.
//!
//! Updates of many rows neither ask nor wait: the version that one of them replaces is old, and durable.

use clearway_txn::Xid;

use crate::buffer::PageExclusive;
use crate::heap::layout::Tuple;
use crate::page::{Lsn, PAGE_SIZE};
use crate::storage::Storage;

/// The free bytes of a page below which room is about to be missing.
const SCARCE: usize = PAGE_SIZE / 4;

/// The least number of versions on a page that a wait for the disk is worth.
const MANY: usize = 32;

/// The versions of a page that only the disk keeps.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct OnceDurable {
    count: usize,
    /// Once the log is durable up to here, all of them are removable.
    position: Lsn,
}

impl OnceDurable {
    /// Counts one, whose deleter's commit is durable with the log up to `position`.
    pub(super) fn add(&mut self, position: Lsn) {
        self.count += 1;
        self.position = self.position.max(position);
    }

    /// The number of them.
    pub(super) fn count(self) -> usize {
        self.count
    }

    /// Rules 2 and 3, for a page without room: where the log has to be durable before the update goes on. `None`: it takes
    /// another page.
    pub(super) fn awaited(self, storage: &Storage) -> Option<Lsn> {
        if self.count == 0 || storage.wal.flushed() >= self.position {
            return None;
        }
        if self.count >= MANY {
            return Some(self.position);
        }
        storage.wal.flush_soon(self.position);
        None
    }
}

/// Rule 1, the first half: true if a page's free space has gone from `before` to `after` in this update.
#[inline]
pub(super) fn became_scarce(before: usize, after: usize) -> bool {
    before >= SCARCE && after < SCARCE
}

/// Rule 1, the second half: the version that the update has replaced is the one at `slot`.
#[cold]
pub(super) fn ask_for_inserter(storage: &Storage, page: &PageExclusive<'_>, slot: u16) {
    if let Some(replaced) = Tuple::at(page.hinted(), slot)
        && let Some(position) = storage.position_if_early(Xid(replaced.xmin()))
    {
        storage.wal.flush_soon(position);
    }
}
