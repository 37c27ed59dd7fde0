//! Records of the program's own: logging them, and the program's part of a checkpoint (`wal::own_records`).

use clearway_txn::Xid;

use super::Storage;
use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::wal::record::{self, RecordKind};

impl Storage {
    /// Logs a record of one of the program's own kinds for transaction `xid` ([`Xid::INVALID`]: for none); the position after
    /// it. It is durable when the log is, up to there. A full disk is an error, and so is what could not be replayed: another
    /// kind, or any while this directory was opened without `StorageOptions::own_records`. The caller latches no page.
    pub fn log_own(&self, kind: RecordKind, xid: Xid, payload: &[u8]) -> Result<Lsn> {
        let refused = |problem| {
            Err(StorageError::NotLogged {
                kind: kind.to_string(),
                problem,
            })
        };
        if kind.own_number().is_none() {
            return refused("it is none of the program's own (RecordKind::own)");
        }
        if self.options.own_records.is_none() {
            return refused("the directory was opened without own_records, which would replay it");
        }
        if self.is_standby() {
            return refused("a standby logs nothing");
        }
        let size = record::size(payload.len());
        if size > self.wal.record_max() {
            return Err(StorageError::TooLarge {
                what: "log record",
                size,
                max: self.wal.record_max(),
            });
        }
        self.make_log_room()?;
        Ok(self.wal.insert_any(kind, xid, payload))
    }

    /// The program's part of a checkpoint with this redo position.
    pub(crate) fn make_own_durable(&self, redo: Lsn) -> Result<()> {
        let Some(own_records) = &self.options.own_records else {
            return Ok(());
        };
        own_records
            .make_durable(redo, &self.wal)
            .map_err(|problem| StorageError::OwnCheckpoint {
                redo,
                problem: problem.to_string(),
            })
    }
}
