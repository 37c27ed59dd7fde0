//! Writing received log, byte for byte where the primary has it (S1).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Standby;
use crate::data_directory;
use crate::disk::SyncPurpose;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::storage::Storage;
use crate::wal::LogDevice;

/// The right to write a standby's log, for one worker at a time.
#[derive(Debug)]
pub struct LogReceiver {
    storage: Arc<Storage>,
    standby: Arc<Standby>,
    written: Lsn,
}

impl Storage {
    /// The right to receive, which nothing else has: the standby was not promoted, and receives nothing.
    pub fn receive_log(self: &Arc<Self>) -> Result<LogReceiver> {
        let no_standby = || StorageError::Standby {
            problem: "this server is no standby".to_owned(),
        };
        let standby = Arc::clone(self.standby().ok_or_else(no_standby)?);
        standby.refuse_primarys_directory(self)?;
        if standby.receiver_is_taken.swap(true, Ordering::AcqRel) {
            return Err(standby.failed("the standby receives log already, or is being promoted"));
        }
        let receiver = LogReceiver {
            storage: Arc::clone(self),
            written: standby.received(),
            standby,
        };
        Ok(receiver)
    }
}

impl LogReceiver {
    /// Where the next byte goes.
    pub fn position(&self) -> Lsn {
        self.written
    }

    /// Writes `bytes`, which stand at `position` in the primary's log. It has to be [`position`](Self::position).
    pub fn write(&mut self, position: Lsn, bytes: &[u8]) -> Result<()> {
        if position != self.written {
            return Err(self.standby.failed(format_args!(
                "log was sent from position {position} on, where that from {} on was expected",
                self.written
            )));
        }
        let end = Lsn(position.0 + bytes.len() as u64);
        let device = self.storage.wal.device();
        let written = device
            .make_room(end.0)
            .and_then(|()| device.write(position.0, bytes));
        written.map_err(|error| {
            StorageError::io(
                "write the log in",
                &self.storage.dir().join(data_directory::LOG),
                error,
            )
        })?;
        self.written = end;
        Ok(())
    }

    /// Makes what was written durable, and lets it be replayed; up to where the log is there now.
    pub fn sync(&mut self) -> Result<Lsn> {
        let from = self.standby.received();
        if from < self.written {
            let device = self.storage.wal.device();
            if let Err(error) = device.sync_range(from.0, self.written.0, SyncPurpose::LogFlush) {
                crate::disk::sync_failed(&self.storage.dir().join(data_directory::LOG), &error);
            }
            self.standby.progress.received_up_to(self.written);
        }
        Ok(self.written)
    }

    /// Goes on at the end of what is durable, which is less than before if following another timeline has taken back a part
    /// of a record.
    pub fn resume(&mut self) {
        self.written = self.standby.received();
    }

    /// The standby that receives.
    pub fn standby(&self) -> &Arc<Standby> {
        &self.standby
    }
}

impl Drop for LogReceiver {
    fn drop(&mut self) {
        self.standby.receiver_is_taken.store(false, Ordering::Release);
    }
}
