//! Going on with the log in its next file, so that a program that keeps whole files has what was logged so far.
//!
//! The rest of the file is filled by records that say nothing. Other sessions log meanwhile, so the last record may reach into the
//! next file; that does no harm.

use clearway_txn::Xid;

use super::Storage;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::wal::SEGMENT_SIZE;
use crate::wal::record::{HEADER, RecordKind};

/// The most bytes of a record that fills.
const FILLER_MAX: u64 = 256 << 10;

impl Storage {
    /// Fills the log's current file and makes it durable; the position at which the next one begins. A file in which nothing
    /// was logged stays the current one. A full disk is an error, and so is a standby, which logs nothing.
    pub fn switch_log_file(&self) -> Result<Lsn> {
        if self.is_standby() {
            return Err(StorageError::Standby {
                problem: "a standby logs nothing".to_owned(),
            });
        }
        let begin = self.wal.reserved().0;
        let end = begin.next_multiple_of(SEGMENT_SIZE);
        loop {
            let at = self.wal.reserved().0;
            if at >= end {
                break;
            }
            let most = FILLER_MAX.min(self.wal.record_max() as u64);
            let payload = (end - at).min(most).saturating_sub(HEADER as u64) as usize;
            self.make_log_room()?;
            let filler = vec![0; payload];
            self.wal.insert_any(RecordKind::NOTHING, Xid::INVALID, &filler);
        }
        self.wal.flush(Lsn(end));
        Ok(Lsn(end))
    }
}
