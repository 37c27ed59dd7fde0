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
//!    that is not durable yet. That is once for each time that the page is filled.
//! 2. A HOT update on a full page where only the disk keeps [`MANY`] versions waits, without a latch, and looks again. So
//!    [`MANY`] updates at least share a wait. It waits once: others may take the room that it has waited for. The
//!    log writer flushes for it, so that its statement can be told to stop (`wal/flush_requests.rs`).
//! 3. On a full page with fewer of them it asks, and takes another page. So does an update of an indexed column, which makes
//!    index entries wherever it goes.
//!
//! Rules 2 and 3 count the versions of a page, of one row or of several. A chain counts from its first version on, so where
//! sessions wait for the disk by themselves there are at most as many as sessions. While standbys are named no update
//! waits: what the disk has is not secured (L6).

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

    /// Rules 2 and 3, for a page without room: where the log has to be durable before the update goes on, if it `may_wait`.
    /// `None`: it takes another page.
    pub(super) fn awaited(self, storage: &Storage, may_wait: bool) -> Option<Lsn> {
        if self.count == 0 {
            return None;
        }
        if may_wait && self.count >= MANY && storage.are_secured_by_the_disk() {
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

/// Rule 1, the second half: the version that the update has replaced is the one at `slot`. One of its own transaction has
/// no position.
#[cold]
pub(super) fn ask_for_inserter(storage: &Storage, page: &PageExclusive<'_>, slot: u16) {
    if let Some(replaced) = Tuple::at(page.hinted(), slot)
        && let Some(position) = storage.position_if_early(Xid(replaced.xmin()))
    {
        storage.wal.flush_soon(position);
    }
}
