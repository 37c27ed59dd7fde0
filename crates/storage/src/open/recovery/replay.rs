//! The second pass over the log: applying it.

use std::time::Instant;

use super::report::RecoveryReport;
use super::scan::ScannedLog;
use crate::disk::SyncPurpose;
use crate::error::{Result, StorageError};
use crate::files::status_pages::StatusPages;
use crate::page::Lsn;
use crate::records::pages::{PagesInFiles, change_pages};
use crate::records::{self, PageParts, ReplayPolicy, TransactionEnd};
use crate::storage::Storage;
use crate::wal::reader::LogReader;
use crate::wal::{LogDevice, SEGMENT_SIZE};

/// Recovery's way with records: nothing looks at the pages meanwhile, and a full disk is an error.
struct Recovery<'a> {
    storage: &'a Storage,
    status: &'a StatusPages,
}

impl ReplayPolicy for Recovery<'_> {
    fn status_pages(&self) -> &StatusPages {
        self.status
    }

    fn with_room<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        step()
    }

    fn change(&mut self, _payload: &[u8], parts: &PageParts<'_>, end: Lsn) -> Result<()> {
        change_pages(&self.storage.pool, parts, end, PagesInFiles::MayBeTorn)
    }

    fn end_transaction(&mut self, transaction: TransactionEnd) -> Result<()> {
        records::enter_status(self.storage, transaction)
    }
}

/// Applies the log from `scanned.redo` on.
pub(crate) fn replay(
    storage: &Storage,
    status: &StatusPages,
    scanned: &ScannedLog,
) -> Result<RecoveryReport> {
    let started = Instant::now();
    let mut report = scanned.report();
    let wal_dir = storage.log_dir();
    let fail = |error| StorageError::io("read the log in", &wal_dir, error);
    let mut recovery = Recovery { storage, status };
    let mut reader = LogReader::new(storage.wal.device(), scanned.redo);
    while reader.position() < scanned.end {
        let start = reader.position();
        let Some((record, end)) = reader.next_record().map_err(fail)? else {
            break;
        };
        report.count(record.kind);
        let meaning = records::interpret(storage, &record, start)?;
        records::apply(storage, &mut recovery, &record, meaning, (start, end))?;
    }
    status.end_recovery()?;
    // At a fork, the segments of the new timeline are zeros behind it.
    if (!scanned.clean || scanned.has_tail) && !scanned.forks {
        let cleared = clear_tail(storage, scanned.end);
        cleared.map_err(|error| StorageError::io("clear the end of the log in", &wal_dir, error))?;
    }
    report.elapsed = started.elapsed();
    Ok(report)
}

/// Overwrites with zeros whatever is behind the end of the log.
pub(crate) fn clear_tail(storage: &Storage, end: Lsn) -> std::io::Result<()> {
    let device = storage.wal.device();
    device.make_room(end.0 + SEGMENT_SIZE)?;
    let zeros = vec![0; 1 << 20];
    let last = (end.0 / SEGMENT_SIZE + 2) * SEGMENT_SIZE;
    let mut at = end.0;
    while at < last {
        let take = (last - at).min(zeros.len() as u64) as usize;
        device.write(at, &zeros[..take])?;
        at += take as u64;
    }
    device.sync_range(end.0, last, SyncPurpose::LogCleared)
}
