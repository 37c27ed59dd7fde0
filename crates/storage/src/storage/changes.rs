//! Room in the log, and the changes that are logged there.

use clearway_txn::Xid;

use super::Storage;
use crate::change::AtomicChange;
use crate::error::{Result, StorageError};

impl Storage {
    /// Makes sure that there is room in the log for the changes of one operation. It may have to make a
    /// segment, which is 16 MiB to write and to sync, so an operation calls this before it latches a page.
    pub fn make_log_room(&self) -> Result<()> {
        self.wal
            .make_room()
            .map_err(|error| StorageError::io("extend", &self.log_dir(), error))
    }

    /// Begins a change of pages, none of which is latched yet. A full disk is an error here, before anything
    /// is changed.
    pub fn begin_change(&self, xid: Xid) -> Result<AtomicChange<'_>> {
        self.make_log_room()?;
        Ok(AtomicChange::new(&*self.wal, xid))
    }

    /// As [`begin_change`](Self::begin_change), under page latches. The operation called
    /// [`make_log_room`](Self::make_log_room) before it took them.
    pub(crate) fn begin_change_latched(&self, xid: Xid) -> Result<AtomicChange<'_>> {
        self.wal
            .make_room_latched()
            .map_err(|error| StorageError::io("extend", &self.log_dir(), error))?;
        Ok(AtomicChange::new(&*self.wal, xid))
    }
}
