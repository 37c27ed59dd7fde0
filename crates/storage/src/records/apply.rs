//! Doing what a record says.

use clearway_txn::{Status, Xid};

use super::meaning::{CheckpointRecord, ForStandbys, Malformed, Meaning, PageParts};
use super::{own, pages};
use crate::error::{Result, StorageError};
use crate::files::created::Lifetime;
use crate::files::lengths::Lengths;
use crate::files::status_pages::{StatusPages, storage_error};
use crate::page::{Lsn, RelId};
use crate::storage::Storage;
use crate::wal::SEGMENT_SIZE;
use crate::wal::record::Record;

/// The end of a transaction, as its record tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TransactionEnd {
    pub(crate) xid: Xid,
    pub(crate) status: Status,
    /// The end of the record.
    pub(crate) end: Lsn,
    pub(crate) time_us: i64,
}

/// The differences between recovery and a standby. What has a default here, recovery does not need.
pub(crate) trait ReplayPolicy {
    /// The commit log's pages.
    fn status_pages(&self) -> &StatusPages;

    /// Does `step`, which may want room on the disk.
    fn with_room<T>(&self, step: impl FnMut() -> Result<T>) -> Result<T>;

    /// A change of `xid` is replayed next.
    fn meets_change(&mut self, _xid: Xid, _parts: &PageParts<'_>) {}

    /// Makes a change of pages that are there. `payload` has these parts, and may have others.
    fn change(&mut self, payload: &[u8], parts: &PageParts<'_>, end: Lsn) -> Result<()>;

    /// Enters the end of a transaction.
    fn end_transaction(&mut self, transaction: TransactionEnd) -> Result<()>;

    /// The number of a relation was handed out.
    fn handed_out(&mut self, _rel: RelId) {}

    /// True if relations of this kind are made. What follows about one that is not is passed over.
    fn makes(&self, _lifetime: Lifetime) -> bool {
        true
    }

    /// The file of a relation was made.
    fn made(&mut self, _rel: RelId) {}

    /// A checkpoint was complete when its record was logged, which ends at `end`.
    fn checkpoint(&mut self, _checkpoint: CheckpointRecord, _end: Lsn) -> Result<()> {
        Ok(())
    }

    /// Relations had these lengths.
    fn lengths(&mut self, _lengths: Lengths) -> Result<()> {
        Ok(())
    }

    /// A record of the program's own is replayed next.
    fn meets_own(&mut self) -> Result<()> {
        Ok(())
    }

    /// A record that only standbys read.
    fn for_standbys(&mut self, _decode: impl FnOnce() -> Result<ForStandbys>) -> Result<()> {
        Ok(())
    }
}

/// The meaning of the record at `start`.
pub(crate) fn interpret<'a>(storage: &Storage, record: &Record<'a>, start: Lsn) -> Result<Meaning<'a>> {
    Meaning::of(record).map_err(|malformed| error(malformed, storage, record, start))
}

/// The error for a record that is whole and cannot be applied.
fn error(_: Malformed, storage: &Storage, record: &Record<'_>, start: Lsn) -> StorageError {
    StorageError::CorruptFile {
        file: storage.segment_path(start),
        offset: start.0 % SEGMENT_SIZE,
        problem: format!(
            "the {:?} record at {start} has a valid checksum but makes no sense",
            record.kind
        ),
    }
}

/// Does what the record between the two positions means.
pub(crate) fn apply(
    storage: &Storage,
    policy: &mut impl ReplayPolicy,
    record: &Record<'_>,
    meaning: Meaning<'_>,
    (start, end): (Lsn, Lsn),
) -> Result<()> {
    let malformed = |malformed| error(malformed, storage, record, start);
    match meaning {
        Meaning::Change(change) => {
            let mut parts = change.parts().map_err(malformed)?;
            policy.meets_change(record.xid, &parts);
            keep_pages_that_are_there(storage, policy, &mut parts)?;
            policy.change(change.payload(), &parts, end)
        }
        Meaning::End { status, time_us } => policy.end_transaction(TransactionEnd {
            xid: record.xid,
            status,
            end,
            time_us,
        }),
        Meaning::CreateRel(created) => {
            policy.handed_out(created.rel);
            if policy.makes(created.lifetime) {
                policy.with_room(|| storage.files.create_again(created.rel))?;
                policy.made(created.rel);
            }
            Ok(())
        }
        Meaning::StatusPage { number, content } => policy.with_room(|| {
            let merged = storage.commit_log.merge_page(number, content);
            merged.map_err(storage_error)?;
            policy.status_pages().healed(number);
            Ok(())
        }),
        Meaning::Checkpoint(checkpoint) => policy.checkpoint(checkpoint, end),
        Meaning::Lengths(lengths) => policy.lengths(lengths),
        Meaning::ForStandbys(record) => policy.for_standbys(|| record.decode().map_err(malformed)),
        Meaning::Own => {
            policy.meets_own()?;
            own::redo(storage, record, (start, end))
        }
        Meaning::Unknown => Err(own::unknown(record.kind, start)),
        Meaning::Nothing => Ok(()),
    }
}

/// Leaves out the pages of relations that were dropped later, and makes sure that the others are there.
fn keep_pages_that_are_there(
    storage: &Storage,
    policy: &impl ReplayPolicy,
    parts: &mut PageParts<'_>,
) -> Result<()> {
    let mut failed = None;
    parts.retain(|(page, _)| {
        let made = policy.with_room(|| pages::make_page(storage, *page));
        made.unwrap_or_else(|error| {
            failed.get_or_insert(error);
            false
        })
    });
    failed.map_or(Ok(()), Err)
}

/// Enters the status of a transaction into the commit log.
pub(crate) fn enter_status(storage: &Storage, transaction: TransactionEnd) -> Result<()> {
    let TransactionEnd { xid, status, end, .. } = transaction;
    storage.commit_log.set(xid, status, end.0).map_err(storage_error)
}
