//! Recovery: replaying the log from the last checkpoint's redo position.
//!
//! The log is read twice. The first pass finds its end, which is the end of the last whole record, and what
//! was handed out (xids, relation numbers). The second pass applies it. A change is applied to a page whose
//! LSN is older; a page image, or a page made anew, replaces whatever is there, torn or not (and the first
//! record of a page after the redo position is one of those). A transaction without a commit record counts as
//! aborted: it is not running, and the commit log has no status for it.
//!
//! Recovery makes the log that it has found durable before it changes a page: the process that wrote the log
//! may have been killed between write and sync. Otherwise a power cut during replay could leave pages that
//! are newer than the log.
//!
//! # Where the log ends, and where it is damaged
//! Both look the same: no whole record at the place where one should begin. After a power cut this is so
//! where the last write was under way. Any part of what was written and not yet made durable may survive, so
//! there may even be whole records behind the hole. But each record says up to where the log was durable when
//! the record was inserted. A record behind the hole which says that the log was durable beyond the hole's
//! beginning proves that a whole record was there: the log is damaged, and to go on would take back what
//! was acknowledged. Then the start fails with file and offset, and changes nothing. Recovery searches a few
//! segments behind the hole ([`DAMAGE_SEARCH`]), also past missing ones.
//!
//! | what is damaged | what proves it |
//! | --- | --- |
//! | log before the last complete checkpoint's end | the control file says that the log goes on to there |
//! | log before some later flush | a record inserted after that flush |
//! | log of the last flush of a session's burst of work | the record that the log writer adds when the log has been idle |
//! | the last flush before a power cut, or all that proves it as well | nothing: it is taken for the log's end |
//! | log on which a page in its file depends | the page's LSN, if replay or another reader reads it before the log has grown past it |
//!
//! The first two lines hold for one damaged place of any length below the search's. One kind of damage cannot
//! be proven and is therefore read as the log's end: everything from some position on has been replaced by
//! zeros.
//!
//! # Recovery to a point
//! The first pass can be told to end the log at a point ([`target`]), and to take log from an archive before
//! ([`archive`]). A new timeline begins there, so that the log behind the point is never replayed. That log stays under
//! the former timeline's names.
//!
//! Recovery overwrites the log behind its end with zeros, for as far as bytes may have been written but not
//! made durable. Otherwise a whole record from before the crash could follow a new one of the right length.
//! After a shutdown in order everything written is durable, as a rule, and what a recycled segment holds names other
//! positions, so nothing is overwritten. But a session that did not end in time may still have logged behind the
//! shutdown's checkpoint, and been cut off by the end of the process: the beginning of that is missing then, and the log
//! ends where the control file says, with whole records behind the hole. So the log behind the end is searched for a
//! whole record after each kind of end, and overwritten if there is one.

mod archive;
mod target;

use std::path::Path;
use std::time::{Duration, Instant};

use clearway_txn::{Status, Xid};

use crate::change;
use crate::disk::SyncPurpose;
use crate::error::{Result, StorageError};
use crate::files::control_file::{Control, State};
use crate::files::lengths::{self, Lengths};
use crate::files::status_pages::{StatusPages, storage_error};
use crate::page::{self, Lsn, PageId, RelId, get_u32, get_u64};
use crate::storage::Storage;
use crate::wal::link::LogLink;
use crate::wal::reader::{self, LogEnd, LogReader};
use crate::wal::record::{Record, RecordKind};
use crate::wal::segment_name::FIRST_SEGMENT;
use crate::wal::{LogDevice, SEGMENT_SIZE, SegmentFiles};

pub(crate) use target::PreparedTarget;
use target::TargetSearch;
pub use target::{RecoveryPoint, RecoveryTarget};

/// Result of a recovery.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// True if the last run ended with a shutdown (or there was none).
    pub clean: bool,
    /// Records replayed.
    pub records: u64,
    /// Commits among them.
    pub commits: u64,
    /// The start of replay.
    pub redo: Lsn,
    /// The end of the log.
    pub end: Lsn,
    /// The duration of recovery.
    pub elapsed: Duration,
}

/// Result of the first pass over the log.
#[derive(Debug)]
pub(crate) struct ScannedLog {
    pub(crate) redo: Lsn,
    pub(crate) end: Lsn,
    /// The link of the record that is to begin at `end`; `None` if no record was read.
    pub(crate) link: Option<LogLink>,
    pub(crate) next_xid: Xid,
    pub(crate) next_rel: u32,
    /// The number of pages of each relation at the last checkpoint.
    pub(crate) lengths: Lengths,
    clean: bool,
    /// A whole record is behind `end`, with a hole between.
    has_tail: bool,
    /// The log goes on behind `end`, or may, and a new timeline begins there.
    forks: bool,
}

/// The purpose for which a directory is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A database of its own.
    Primary,
    /// A copy that follows another one (`standby`).
    Standby,
}

/// Distance behind a hole within which recovery looks for a record that proves the hole to be damage. All
/// that was in memory when the hole's log became durable fits in two rings of 8 MiB, so for one damaged
/// record the next two segments have the proof. The rest of the distance is for lost segments.
const DAMAGE_SEARCH: u64 = 4 * SEGMENT_SIZE;

/// The first record's place, in the first segment; 0 is the LSN of pages that were never changed.
pub(crate) const LOG_START: Lsn = Lsn(FIRST_SEGMENT * SEGMENT_SIZE + 64);

/// Finds the log's end, and what was handed out before it.
pub(crate) fn scan_log(
    device: &SegmentFiles,
    control: Control,
    control_path: &Path,
    wal_dir: &Path,
    purpose: Purpose,
    target: Option<&PreparedTarget>,
) -> Result<ScannedLog> {
    let mut scanned = ScannedLog {
        redo: control.redo,
        end: control.redo,
        link: None,
        next_xid: control.next_xid,
        next_rel: control.next_rel,
        lengths: Lengths::new(),
        clean: control.state != State::Running,
        has_tail: false,
        forks: target.is_some(),
    };
    let mut search = TargetSearch::new(target);
    // The number of relations that the checkpoint's own record names.
    let mut relations = None;
    let mut reader = LogReader::new(device, control.redo);
    let fail = |error| StorageError::io("read the log in", wal_dir, error);
    while let Some((record, end)) = reader.next_record().map_err(fail)? {
        if search.ends_before(&record) {
            break;
        }
        scanned.end = end;
        scanned.link = Some(record.next_link);
        // Lengths behind the control file's log end belong to a checkpoint that did not finish.
        if end <= control.log_end {
            match record.kind {
                RecordKind::Lengths => {
                    lengths::decode(record.payload, &mut scanned.lengths);
                }
                RecordKind::Checkpoint => {
                    relations = record.payload.get(8..16).map(|count| get_u64(count, 0))
                }
                _ => {}
            }
        }
        scanned.next_xid = scanned.next_xid.max(record.xid.next());
        if record.kind == RecordKind::CreateRel && record.payload.len() == 4 {
            scanned.next_rel = scanned.next_rel.max(get_u32(record.payload, 0) + 1);
        }
        if search.ends_after(&record, end) {
            break;
        }
    }
    search.check(scanned.end)?;
    let damage = |problem| StorageError::CorruptFile {
        file: device.path_of(scanned.end.0),
        offset: scanned.end.0 % SEGMENT_SIZE,
        problem,
    };
    // If the log goes on behind the checkpoint of a shutdown, a later run wrote there and was not shut down
    // in order.
    scanned.clean &= scanned.end == control.log_end;
    if scanned.end < control.log_end {
        return Err(damage(format!(
            "no whole log record at position {}, but {} says that the log goes on to {}",
            scanned.end,
            control_path.display(),
            control.log_end
        )));
    }
    if scanned.end < control.backup_end {
        return Err(StorageError::CorruptFile {
            file: device.path_of(scanned.end.0),
            offset: scanned.end.0 % SEGMENT_SIZE,
            problem: format!(
                "the log ends at position {}, but the files of this backup need it up to {}; put the segments that are \
                 missing into {}",
                scanned.end,
                control.backup_end,
                wal_dir.display()
            ),
        });
    }
    // A database that is being made has no checkpoint yet.
    let checkpointed = control.state != State::Initialising;
    if checkpointed && relations != Some(scanned.lengths.len() as u64) {
        return Err(StorageError::CorruptFile {
            file: device.path_of(control.log_end.0),
            offset: control.log_end.0 % SEGMENT_SIZE,
            problem: format!(
                "the checkpoint that ends at position {} does not say how many pages the relations have",
                control.log_end
            ),
        });
    }
    // Behind a point there is log, as there should be. A standby has the bytes behind a hole sent again: what proves that
    // the log was durable proves it of the primary's.
    if purpose == Purpose::Primary && !search.is_reached() {
        let behind = reader::search_behind(device, scanned.end, DAMAGE_SEARCH).map_err(fail)?;
        if let Some(proof) = behind.damage {
            return Err(damage(format!(
                "no whole log record at position {}, but the record at {} was logged when the log was durable up to {}; \
                 committed changes are damaged here, restore the directory from a backup",
                scanned.end, proof.record, proof.durable
            )));
        }
        scanned.has_tail = behind.record.is_some() || reader.end() == LogEnd::Unlinked;
    }
    device
        .sync_range(scanned.redo.0, scanned.end.0, SyncPurpose::LogFound)
        .map_err(|error| StorageError::io("sync the log in", wal_dir, error))?;
    Ok(scanned)
}

impl ScannedLog {
    /// A report in which nothing has been replayed.
    pub(crate) fn report(&self) -> RecoveryReport {
        RecoveryReport {
            clean: self.clean,
            redo: self.redo,
            end: self.end,
            ..RecoveryReport::default()
        }
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
    let mut reader = LogReader::new(storage.wal.device(), scanned.redo);
    while reader.position() < scanned.end {
        let start = reader.position();
        let Some((record, end)) = reader.next_record().map_err(fail)? else {
            break;
        };
        report.records += 1;
        report.commits += u64::from(record.kind == RecordKind::Commit);
        apply(storage, status, &record, start, end)?;
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

/// The error for a record that is whole and cannot be applied.
pub(crate) fn malformed(storage: &Storage, record: &Record<'_>, start: Lsn) -> StorageError {
    StorageError::CorruptFile {
        file: storage.segment_path(start),
        offset: start.0 % SEGMENT_SIZE,
        problem: format!(
            "the {:?} record at {start} has a valid checksum but makes no sense",
            record.kind
        ),
    }
}

/// Applies one record, as recovery does.
pub(crate) fn apply(
    storage: &Storage,
    status: &StatusPages,
    record: &Record<'_>,
    start: Lsn,
    end: Lsn,
) -> Result<()> {
    let malformed = || malformed(storage, record, start);
    match record.kind {
        RecordKind::Change => {
            let mut rest = record.payload;
            while !rest.is_empty() {
                let (page, part) = change::next_part(&mut rest).ok_or_else(malformed)?;
                apply_part(storage, page, &part, end)?;
            }
        }
        RecordKind::Commit => {
            storage
                .commit_log
                .set(record.xid, Status::Committed, end.0)
                .map_err(storage_error)?;
        }
        RecordKind::Abort => {
            storage
                .commit_log
                .set(record.xid, Status::Aborted, end.0)
                .map_err(storage_error)?;
        }
        RecordKind::CreateRel => {
            let rel = record.payload.first_chunk().ok_or_else(malformed)?;
            storage.files.create_again(RelId(u32::from_le_bytes(*rel)))?;
        }
        RecordKind::StatusPage => {
            let (number, content) = record.payload.split_first_chunk().ok_or_else(malformed)?;
            let number = u32::from_le_bytes(*number);
            storage
                .commit_log
                .merge_page(number, content)
                .map_err(storage_error)?;
            status.healed(number);
        }
        RecordKind::Checkpoint
        | RecordKind::Lengths
        | RecordKind::Nothing
        | RecordKind::Running
        | RecordKind::Cleanup => {}
    }
    Ok(())
}

pub(crate) fn apply_part(
    storage: &Storage,
    page: PageId,
    part: &change::PagePart<'_>,
    end: Lsn,
) -> Result<()> {
    let Some(file) = storage.files.file_for_replay(page.rel)? else {
        return Ok(());
    };
    // Pages that were added after the checkpoint (`lengths`, step 4).
    while file.blocks() <= page.block {
        storage.pool.extend(page.rel)?;
    }
    let pinned = if part.replaces() {
        // The page on disk may be torn or lost: it is not read.
        storage.pool.pin_replaced(page)?
    } else {
        storage.pool.pin(page)?
    };
    let mut exclusive = pinned.exclusive();
    if part.replaces() || page::lsn(exclusive.header()) < end {
        let bytes = exclusive.bytes_mut();
        part.apply(bytes);
        page::set_lsn(bytes, end);
        exclusive.mark_dirty();
    }
    Ok(())
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
