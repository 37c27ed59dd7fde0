//! A copy of the database's files, made while it is in use.
//!
//! 1. Keep the log from the redo position on, then make a checkpoint. Its redo position is where the recovery of the
//!    copy begins, and nothing before it is needed.
//! 2. Copy the relations' files, in any order, while pages are written to them.
//! 3. Log one record and make it durable: everything that a copied page holds was logged before its end, since a page
//!    is written after its log.
//! 4. Give out the control file: the checkpoint of step 1, and the end of step 3 as the position up to which the log
//!    must be there (`Control::backup_end`). Recovery refuses a copy with less.
//!
//! # Why torn pages do no harm
//! A page that is copied while it is being written was dirty after the checkpoint of step 1 had written everything, so
//! it was changed behind the redo position, and the first such change is in the log as a whole page, made before the
//! page was written. Recovery of the copy replaces the torn page with it. This is the argument for a crash
//! (`checkpoint`, `recovery`): each write that can be torn in the copy is one that a power cut could have
//! torn at that moment. It holds as well if there are more checkpoints during the copy: the log is replayed from the
//! first one's redo position. Pages of the commit log are logged as a whole before each write (`status_pages`).
//!
//! A file that is dropped during the copy is missing in it or there, and one that is made then too. Both are what a
//! crash can leave (`lengths`).

use std::sync::Arc;

use clearway_txn::Xid;

use crate::control_file::{self, Control};
use crate::data_directory;
use crate::disk::DiskFile;
use crate::error::{Result, StorageError};
use crate::page::{Lsn, RelId};
use crate::retention::Follower;
use crate::storage::Storage;
use crate::timeline;
use crate::wal::record::RecordKind;
use crate::wal::segment_name::segment_name_in;
use crate::wal::{LogDevice, SEGMENT_SIZE};

/// The directory of the relations in a copy.
pub const RELATIONS_DIRECTORY: &str = data_directory::RELATIONS;
/// The directory of the log in a copy.
pub const LOG_DIRECTORY: &str = data_directory::LOG;
/// The name of the control file in a copy.
pub const CONTROL_NAME: &str = data_directory::CONTROL;

/// A backup under way. While it lives, the log from its start on is kept.
#[derive(Debug)]
pub struct Backup {
    storage: Arc<Storage>,
    follower: Follower,
    control: Control,
}

/// Where a backup ends.
#[derive(Debug)]
pub struct BackupEnd {
    /// The content of the control file.
    pub control: Vec<u8>,
    /// The log is needed up to here.
    pub position: Lsn,
    /// The timeline of that position.
    pub timeline: u32,
}

/// A relation's file, as long as it was when it was opened.
#[derive(Debug)]
pub struct RelationCopy {
    file: Arc<dyn DiskFile>,
    storage: Arc<Storage>,
    rel: RelId,
    /// Its length in bytes.
    pub length: u64,
}

impl Backup {
    /// Step 1, by the session `process_id`.
    pub fn begin(storage: &Arc<Storage>, process_id: u32) -> Result<Backup> {
        if storage.is_standby() {
            // It needs a checkpoint and a record at its end, and a standby logs neither.
            return Err(StorageError::Standby {
                problem: "the files of a standby cannot be copied; take the base backup from its primary"
                    .to_owned(),
            });
        }
        // Checkpoints release log up to the redo position of one that is complete, which is never past this one.
        let follower = storage
            .retention
            .hold_for_backup(process_id, storage.wal.redo())?;
        let control = storage.run_checkpoint(false)?;
        follower.advance(control.redo, false);
        Ok(Backup {
            storage: Arc::clone(storage),
            follower,
            control,
        })
    }

    /// Where the recovery of the copy begins.
    pub fn start(&self) -> Lsn {
        self.control.redo
    }

    /// The timeline of the log there.
    pub fn timeline(&self) -> u32 {
        self.control.timeline
    }

    /// The relations to copy.
    pub fn relations(&self) -> Result<Vec<RelId>> {
        self.storage.files.list()
    }

    /// A relation's file; `None` if it was dropped meanwhile.
    pub fn open_relation(&self, rel: RelId) -> Result<Option<RelationCopy>> {
        let Some(file) = self.storage.files.open_for_copy(rel)? else {
            return Ok(None);
        };
        let path = self.storage.files.path(rel);
        let length = file
            .length()
            .map_err(|error| StorageError::io("stat", &path, error))?;
        Ok(Some(RelationCopy {
            file,
            storage: Arc::clone(&self.storage),
            rel,
            length,
        }))
    }

    /// Steps 3 and 4.
    pub fn finish(&self) -> Result<BackupEnd> {
        self.storage.make_log_room()?;
        let end = self
            .storage
            .wal
            .insert_any(RecordKind::Nothing, Xid::INVALID, &[]);
        self.storage.wal.flush(end);
        // The copy is on the timeline of its end, also if another one began during the backup.
        let timeline = self.storage.timeline();
        let control = Control {
            backup_end: end,
            timeline,
            ..self.control
        };
        Ok(BackupEnd {
            control: control_file::image(control),
            position: end,
            timeline,
        })
    }

    /// The log that the copy needs up to `end`, cut where a timeline begins: timeline, start and end of each piece.
    pub fn log_ranges(&self, end: Lsn) -> Vec<(u32, Lsn, Lsn)> {
        self.storage.history().ranges(self.start(), end)
    }

    /// The history files of the timeline and of those that it comes from, each with its name and content.
    pub fn history_files(&self) -> Result<Vec<(String, String)>> {
        let history = self.storage.history();
        let earlier = history.ended().iter().map(|ended| ended.timeline);
        let mut files = Vec::new();
        for timeline in earlier.chain([history.current()]) {
            // Those of earlier timelines may be missing: what they say stands in the last one too.
            if let Some(text) = self.storage.history_file(timeline)? {
                files.push((timeline::history_file_name(timeline), text));
            }
        }
        Ok(files)
    }

    /// The names of the segments from the start to `end`, and for each the position at which it begins.
    pub fn segments(&self, end: Lsn) -> Vec<(String, Lsn)> {
        let history = self.storage.history();
        (self.start().0 / SEGMENT_SIZE..=(end.0 - 1) / SEGMENT_SIZE)
            .map(|number| (segment_name_in(&history, number), Lsn(number * SEGMENT_SIZE)))
            .collect()
    }

    /// Reads log at `position` for a segment's file. What lies behind `end` reads as zeros: there may be the middle of a
    /// write, and a later record in it would say that log is missing.
    pub fn read_log(&self, position: Lsn, end: Lsn, bytes: &mut [u8]) -> Result<()> {
        bytes.fill(0);
        let wanted = (end.0.saturating_sub(position.0) as usize).min(bytes.len());
        let fail = |error| StorageError::io("read", &self.storage.dir().join(data_directory::LOG), error);
        let read = self
            .storage
            .wal
            .device()
            .read(position.0, &mut bytes[..wanted])
            .map_err(fail)?;
        self.follower.is_lost()?;
        if read < wanted {
            return Err(fail(std::io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }
}

impl RelationCopy {
    /// Reads at `offset`. Where the file has become shorter there are zeros.
    pub fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        let read = self
            .file
            .read_at(bytes, offset)
            .map_err(|error| StorageError::io("read", &self.storage.files.path(self.rel), error))?;
        bytes[read..].fill(0);
        Ok(())
    }
}
