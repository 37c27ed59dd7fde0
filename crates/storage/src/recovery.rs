//! Recovery: replaying the log from the last checkpoint's redo position.
//!
//! The log is read twice: once to find its end, which is the end of the last whole record, and what was handed out (xids,
//! relation numbers); once to apply it. A change is applied to a page whose LSN is older; a page image, or a page made anew,
//! replaces whatever is there, torn or not (and the first record of a page after the redo position is one of those). A
//! transaction without a commit record counts as aborted: it is not running, and the commit log says nothing.
//!
//! Behind the end the log is overwritten with zeros for as far as bytes may have been written but not made durable:
//! otherwise a whole record from before the crash could follow a new one of the right length. (After a shutdown in order
//! everything written is durable, and what a recycled segment holds names other positions.)

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clearway_txn::{Status, Xid};

use crate::change;
use crate::control_file::Control;
use crate::error::{Result, StorageError};
use crate::page::{self, Lsn, PageId, RelId, get_u32};
use crate::status_pages::{StatusPages, storage_error};
use crate::storage::Storage;
use crate::wal::reader::LogReader;
use crate::wal::record::{Record, RecordKind};
use crate::wal::{LogDevice, SEGMENT_SIZE, SegmentFiles};

/// What recovery found and did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Whether the last run ended with a shutdown (or there was none).
    pub clean: bool,
    /// Records replayed.
    pub records: u64,
    /// Commits among them.
    pub commits: u64,
    /// Where replay began.
    pub redo: Lsn,
    /// Where the log ended.
    pub end: Lsn,
    /// How long it took.
    pub elapsed: Duration,
}

/// What a first look at the log has shown.
#[derive(Debug)]
pub(crate) struct ScannedLog {
    pub(crate) redo: Lsn,
    pub(crate) end: Lsn,
    pub(crate) next_xid: Xid,
    pub(crate) next_rel: u32,
    clean: bool,
}

/// The first record's place; 0 is the LSN of pages that were never changed.
const LOG_START: Lsn = Lsn(64);

/// Finds the log's end, and what was handed out before it.
pub(crate) fn scan_log(
    device: &SegmentFiles,
    control: Option<Control>,
    control_path: &Path,
    wal_dir: &Path,
) -> Result<ScannedLog> {
    let Some(control) = control else {
        return Ok(ScannedLog {
            redo: LOG_START,
            end: LOG_START,
            next_xid: Xid::FIRST_NORMAL,
            next_rel: RelId::FIRST_NORMAL.0,
            clean: true,
        });
    };
    let mut scanned = ScannedLog {
        redo: control.redo,
        end: control.redo,
        next_xid: control.next_xid,
        next_rel: control.next_rel,
        clean: control.clean,
    };
    let mut reader = LogReader::new(device, control.redo);
    let fail = |error| StorageError::io("read the log in", wal_dir, error);
    while let Some((record, _)) = reader.next_record().map_err(fail)? {
        scanned.next_xid = scanned.next_xid.max(record.xid.next());
        if record.kind == RecordKind::CreateRel && record.payload.len() == 4 {
            scanned.next_rel = scanned.next_rel.max(get_u32(record.payload, 0) + 1);
        }
    }
    scanned.end = reader.position();
    // Whoever wrote after the last checkpoint of a shutdown made it one like any other.
    scanned.clean &= scanned.end == control.log_end;
    if scanned.end < control.log_end {
        return Err(StorageError::CorruptFile {
            file: segment_path(wal_dir, scanned.end),
            offset: scanned.end.0 % SEGMENT_SIZE,
            problem: format!(
                "no whole log record at position {}, but {} says that the log goes on to {}",
                scanned.end,
                control_path.display(),
                control.log_end
            ),
        });
    }
    Ok(scanned)
}

fn segment_path(wal_dir: &Path, position: Lsn) -> PathBuf {
    wal_dir.join(format!("{:016x}", position.0 / SEGMENT_SIZE))
}

/// Applies the log from `scanned.redo` on.
pub(crate) fn replay(
    storage: &Storage,
    status: &StatusPages,
    scanned: &ScannedLog,
) -> Result<RecoveryReport> {
    let started = Instant::now();
    let mut report = RecoveryReport {
        clean: scanned.clean,
        redo: scanned.redo,
        end: scanned.end,
        ..RecoveryReport::default()
    };
    let wal_dir = storage.dir().join("wal");
    let fail = |error| StorageError::io("read the log in", &wal_dir, error);
    let mut reader = LogReader::new(storage.wal.device(), scanned.redo);
    loop {
        let start = reader.position();
        let Some((record, end)) = reader.next_record().map_err(fail)? else {
            break;
        };
        report.records += 1;
        report.commits += u64::from(record.kind == RecordKind::Commit);
        apply(storage, status, &record, start, end, &wal_dir)?;
    }
    status.end_recovery()?;
    if !scanned.clean {
        let cleared = clear_tail(storage, scanned.end);
        cleared.map_err(|error| StorageError::io("clear the end of the log in", &wal_dir, error))?;
    }
    report.elapsed = started.elapsed();
    Ok(report)
}

fn apply(
    storage: &Storage,
    status: &StatusPages,
    record: &Record<'_>,
    start: Lsn,
    end: Lsn,
    wal_dir: &Path,
) -> Result<()> {
    let malformed = || StorageError::CorruptFile {
        file: segment_path(wal_dir, start),
        offset: start.0 % SEGMENT_SIZE,
        problem: format!(
            "the {:?} record at {start} has a valid checksum but makes no sense",
            record.kind
        ),
    };
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
            storage.files.file_or_new(RelId(u32::from_le_bytes(*rel)))?;
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
        RecordKind::Checkpoint => {}
    }
    Ok(())
}

fn apply_part(storage: &Storage, page: PageId, part: &change::PagePart<'_>, end: Lsn) -> Result<()> {
    let file = storage.files.file_or_new(page.rel)?;
    file.extend_to(page.block + 1)?;
    let pinned = match storage.pool.pin(page) {
        // Torn: what is on disk does not matter.
        Err(StorageError::CorruptPage { .. }) if part.replaces() => storage.pool.pin_new(page)?,
        pinned => pinned?,
    };
    let mut exclusive = pinned.exclusive();
    if part.replaces() || page::lsn(exclusive.bytes()) < end {
        let bytes = exclusive.bytes_mut();
        part.apply(bytes);
        page::set_lsn(bytes, end);
        exclusive.mark_dirty();
    }
    Ok(())
}

/// Overwrites what may stand behind the end of the log.
fn clear_tail(storage: &Storage, end: Lsn) -> std::io::Result<()> {
    let device = storage.wal.device();
    device.allocate(end.0 + SEGMENT_SIZE)?;
    let zeros = vec![0; 1 << 20];
    let last = (end.0 / SEGMENT_SIZE + 2) * SEGMENT_SIZE;
    let mut at = end.0;
    while at < last {
        let take = (last - at).min(zeros.len() as u64) as usize;
        device.write(at, &zeros[..take])?;
        at += take as u64;
    }
    device.sync(end.0, last)?;
    Ok(())
}
