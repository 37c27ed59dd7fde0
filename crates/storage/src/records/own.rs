//! Records of the program's own, and of kinds that nothing here knows (`wal::own_records`, O5 and O6).

use crate::error::{Result, StorageError};
use crate::page::Lsn;
use crate::storage::Storage;
use crate::wal::own_records::OwnRecord;
use crate::wal::record::{Record, RecordKind};

/// Has the program make the change of the record between the two positions.
pub(super) fn redo(storage: &Storage, record: &Record<'_>, (start, end): (Lsn, Lsn)) -> Result<()> {
    let Some(own_records) = &storage.options.own_records else {
        return Err(unknown(record.kind, start));
    };
    let own = OwnRecord {
        kind: record.kind,
        xid: record.xid,
        start,
        end,
        payload: record.payload,
    };
    own_records.redo(&own).map_err(|problem| StorageError::OwnRedo {
        kind: record.kind.to_string(),
        position: start,
        problem: problem.to_string(),
    })
}

/// The error for a record at `start` that nothing here replays.
pub(crate) fn unknown(kind: RecordKind, start: Lsn) -> StorageError {
    StorageError::UnknownRecord {
        kind: kind.to_string(),
        position: start,
    }
}
