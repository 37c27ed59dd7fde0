//! The first pass over the log: its end, and what was handed out before it.

use std::io;
use std::path::Path;

use clearway_txn::Xid;

use super::report::RecoveryReport;
use super::target::{PreparedTarget, TargetSearch};
use crate::disk::SyncPurpose;
use crate::error::{Result, StorageError};
use crate::files::control_file::{Control, State};
use crate::files::lengths::Lengths;
use crate::page::Lsn;
use crate::records::Meaning;
use crate::wal::link::LogLink;
use crate::wal::reader::{self, LogEnd, LogReader};
use crate::wal::record::RecordKind;
use crate::wal::{SEGMENT_SIZE, SegmentFiles};

/// Result of the first pass over the log.
#[derive(Debug)]
pub(crate) struct ScannedLog {
    pub(crate) redo: Lsn,
    pub(crate) end: Lsn,
    /// The link of the record that is to begin at `end`; `None` if no record was read.
    pub(crate) link: Option<LogLink>,
    pub(crate) next_xid: Xid,
    pub(crate) next_rel: u32,
    /// The first record of the program's own, and the first of a kind that nothing here knows: where they begin.
    pub(crate) first_own: Option<(RecordKind, Lsn)>,
    pub(crate) first_unknown: Option<(RecordKind, Lsn)>,
    /// The number of pages of each relation at the last checkpoint.
    pub(crate) lengths: Lengths,
    pub(super) clean: bool,
    /// A whole record is behind `end`, with a hole between, or one of another log is at `end`.
    pub(super) has_tail: bool,
    /// The log goes on behind `end`, or may, and a new timeline begins there.
    pub(super) forks: bool,
}

/// The purpose for which a directory is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A database of its own.
    Primary,
    /// A copy that follows another one (`standby`).
    Standby,
}

impl Purpose {
    /// The purpose that a directory's control file tells.
    pub(crate) fn of(control: &Control) -> Purpose {
        match control.state {
            State::Standby => Purpose::Standby,
            State::Initialising | State::Running | State::Clean => Purpose::Primary,
        }
    }
}

/// Distance behind a hole within which recovery looks for a record that proves the hole to be damage. All
/// that was in memory when the hole's log became durable fits in two rings of 8 MiB, so for one damaged
/// record the next two segments have the proof. The rest of the distance is for lost segments.
const DAMAGE_SEARCH: u64 = 4 * SEGMENT_SIZE;

/// A log whose end is to be found.
#[derive(Debug)]
pub(crate) struct LogToScan<'a> {
    pub(crate) device: &'a SegmentFiles,
    pub(crate) wal_dir: &'a Path,
    pub(crate) control: Control,
    pub(crate) control_path: &'a Path,
    pub(crate) purpose: Purpose,
    pub(crate) target: Option<&'a PreparedTarget>,
}

impl LogToScan<'_> {
    /// Finds the log's end, and what was handed out before it. The log that was found is durable then.
    pub(crate) fn scan(&self) -> Result<ScannedLog> {
        let mut search = TargetSearch::new(self.target);
        let (mut scanned, relations) = self.read(&mut search)?;
        search.check(scanned.end)?;
        self.check_end(scanned.end)?;
        self.check_lengths(&scanned.lengths, relations)?;
        // Behind a point there is log, as there should be. A standby has the bytes behind a hole sent again: what proves
        // that the log was durable proves it of the primary's.
        if self.purpose == Purpose::Primary && !search.is_reached() {
            scanned.has_tail |= self.look_behind(scanned.end)?;
        }
        self.device
            .sync_range(scanned.redo.0, scanned.end.0, SyncPurpose::LogFound)
            .map_err(|error| StorageError::io("sync the log in", self.wal_dir, error))?;
        Ok(scanned)
    }

    /// Reads the records to the last whole one, or to the point that is looked for. Returns what they tell, and of how many
    /// relations the last checkpoint has logged the lengths.
    fn read(&self, search: &mut TargetSearch<'_>) -> Result<(ScannedLog, Option<u64>)> {
        let control = self.control;
        let mut scanned = ScannedLog {
            redo: control.redo,
            end: control.redo,
            link: None,
            next_xid: control.next_xid,
            next_rel: control.next_rel,
            first_own: None,
            first_unknown: None,
            lengths: Lengths::new(),
            clean: control.state != State::Running,
            has_tail: false,
            forks: self.target.is_some(),
        };
        let mut relations = None;
        let mut reader = LogReader::new(self.device, control.redo);
        loop {
            let start = reader.position();
            let next = reader.next_record();
            let Some((record, end)) = next.map_err(|error| self.cannot_read(error))? else {
                break;
            };
            // A record that makes no sense is an error when it is replayed.
            let meaning = Meaning::of(&record).unwrap_or(Meaning::Nothing);
            if search.ends_before(&meaning) {
                break;
            }
            scanned.end = end;
            scanned.link = Some(record.next_link);
            scanned.next_xid = scanned.next_xid.max(record.xid.next());
            let ends_after = search.ends_after(record.xid, &meaning, end);
            match meaning {
                // Lengths behind the control file's log end belong to a checkpoint that did not finish.
                Meaning::Lengths(lengths) if end <= control.log_end => scanned.lengths.extend(lengths),
                Meaning::Checkpoint(checkpoint) if end <= control.log_end => relations = checkpoint.relations,
                Meaning::Own => scanned.first_own = scanned.first_own.or(Some((record.kind, start))),
                Meaning::Unknown => {
                    scanned.first_unknown = scanned.first_unknown.or(Some((record.kind, start)))
                }
                Meaning::CreateRel(created) => scanned.next_rel = scanned.next_rel.max(created.rel.0 + 1),
                _ => {}
            }
            if ends_after {
                break;
            }
        }
        // If the log goes on behind the checkpoint of a shutdown, a later run wrote there and was not shut down
        // in order.
        scanned.clean &= scanned.end == control.log_end;
        scanned.has_tail = reader.end() == LogEnd::Unlinked;
        Ok((scanned, relations))
    }

    /// An error if the log ends before what the control file says.
    fn check_end(&self, end: Lsn) -> Result<()> {
        let Control {
            log_end, backup_end, ..
        } = self.control;
        if end < log_end {
            return Err(self.damage(
                end,
                format!(
                    "no whole log record at position {end}, but {} says that the log goes on to {log_end}",
                    self.control_path.display(),
                ),
            ));
        }
        if end < backup_end {
            return Err(self.damage(
                end,
                format!(
                    "the log ends at position {end}, but the files of this backup need it up to {backup_end}; put the \
                     segments that are missing into {}",
                    self.wal_dir.display()
                ),
            ));
        }
        Ok(())
    }

    /// An error if the last checkpoint has not logged the lengths of all relations.
    fn check_lengths(&self, lengths: &Lengths, relations: Option<u64>) -> Result<()> {
        // A database that is being made has no checkpoint yet.
        if self.control.state == State::Initialising || relations == Some(lengths.len() as u64) {
            return Ok(());
        }
        let log_end = self.control.log_end;
        Err(self.damage(
            log_end,
            format!(
                "the checkpoint that ends at position {log_end} does not say how many pages the relations have"
            ),
        ))
    }

    /// True if a whole record is behind the log's end. An error if one proves that the log has gone on there.
    fn look_behind(&self, end: Lsn) -> Result<bool> {
        let behind = reader::search_behind(self.device, end, DAMAGE_SEARCH);
        let behind = behind.map_err(|error| self.cannot_read(error))?;
        if let Some(proof) = behind.damage {
            return Err(self.damage(
                end,
                format!(
                    "no whole log record at position {end}, but the record at {} was logged when the log was durable up \
                     to {}; committed changes are damaged here, restore the directory from a backup",
                    proof.record, proof.durable
                ),
            ));
        }
        Ok(behind.record.is_some())
    }

    fn damage(&self, position: Lsn, problem: String) -> StorageError {
        StorageError::CorruptFile {
            file: self.device.path_of(position.0),
            offset: position.0 % SEGMENT_SIZE,
            problem,
        }
    }

    fn cannot_read(&self, error: io::Error) -> StorageError {
        StorageError::io("read the log in", self.wal_dir, error)
    }
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
