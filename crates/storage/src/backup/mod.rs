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
//!
//! # On a standby
//! A standby can neither make a checkpoint where it likes nor log a record.
//!
//! | step | on a primary | on a standby |
//! | --- | --- | --- |
//! | 1 | makes a checkpoint | makes a restartpoint, if a checkpoint of the primary was replayed since the last one; then takes the redo position of the control file |
//! | 3 | logs a record and makes it durable: its end | takes the end of the last record that was replayed |
//! | 4 | gives out the state "running" | gives out the state "standby": only `clearway standby`, or `clearway recover`, opens the copy |
//!
//! - B1: the end of step 3 covers each page that was copied. Replay moves the log's position to the end of a record before
//!   it changes the first page of it, and pages are written no further than that position. It is read after the last file
//!   was. It is the end of a record, and durable here, since nothing else is replayed (S2 of `standby`); so the copy's log
//!   can be sent to there, and the copy is consistent when it has replayed that.
//! - B2: torn pages are mended as above, for the redo position R of the control file is one of the primary's, who has
//!   logged each page as a whole with its first change behind R. What was changed before R was written and synced before
//!   the control file named R, and is not written again unless it is changed again: no page gets dirty here but by a
//!   record. Or the directory is itself a copy that has made no restartpoint yet: then its opening has mended it from R.
//! - B3: pages of the commit log are an exception, as the standby writes them at other times than its primary, whose images
//!   are in the log. It has its own protection against a power cut (`status_journal`), one page at a time, which a copy
//!   that takes seconds cannot use. So such a page is read again if its checksum is wrong, until the write under way is over
//!   (`relation_copy`): the copy has none that is torn, and needs no journal.
//! - B4: a promotion ends the backup with an error, as in PostgreSQL. Its end would be on a timeline that the copy does not
//!   know, and pages of the commit log are written otherwise from then on. One that begins after step 3 does no harm.
//! - B5: the standby may follow its primary onto another timeline meanwhile. The end is read before the history, so it is
//!   in it; and all names are given by that one history.

pub mod received_copy;
mod relation_copy;

use std::sync::{Arc, OnceLock};

use clearway_txn::Xid;

use crate::error::{Result, StorageError};
use crate::files::control_file::{self, Control, State};
use crate::files::data_directory;
use crate::page::{Lsn, RelId};
use crate::replication::retention::Follower;
use crate::standby::Standby;
use crate::storage::Storage;
use crate::wal::record::RecordKind;
use crate::wal::segment_name::segment_name_in;
use crate::wal::timeline::{self, History};
use crate::wal::{LogDevice, SEGMENT_SIZE};

pub use relation_copy::RelationCopy;

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
    /// The timeline of the redo position.
    timeline: u32,
    /// On a standby.
    standby: Option<Arc<Standby>>,
    /// That of its end (B5).
    history: OnceLock<Arc<History>>,
}

/// The end of a backup.
#[derive(Debug)]
pub struct BackupEnd {
    /// The content of the control file.
    pub control: Vec<u8>,
    /// The log is needed up to here.
    pub position: Lsn,
    /// The timeline of that position.
    pub timeline: u32,
}

impl Backup {
    /// Step 1, by the session `process_id`.
    pub fn begin(storage: &Arc<Storage>, process_id: u32) -> Result<Backup> {
        let standby = storage.standby().filter(|_| storage.is_standby()).map(Arc::clone);
        let (follower, control) = match &standby {
            None => Self::begin_on_primary(storage, process_id, None)?,
            Some(standby) => Self::begin_on_standby(storage, standby, process_id)?,
        };
        Ok(Self::begun(storage, standby, follower, control))
    }

    /// As step 1, for a directory that is rewound: it needs the log from `log_from` on, to learn from it what was changed,
    /// and pages of files that it has. A standby is refused: its last checkpoint may lie before the fork (`rewind`).
    pub fn begin_for_rewind(storage: &Arc<Storage>, process_id: u32, log_from: Lsn) -> Result<Backup> {
        if storage.is_standby() {
            return Err(StorageError::Standby {
                problem:
                    "this server is a standby, and a directory is rewound to a primary; name the primary"
                        .to_owned(),
            });
        }
        let (follower, control) = Self::begin_on_primary(storage, process_id, Some(log_from))?;
        Ok(Self::begun(storage, None, follower, control))
    }

    fn begun(
        storage: &Arc<Storage>,
        standby: Option<Arc<Standby>>,
        follower: Follower,
        control: Control,
    ) -> Backup {
        Backup {
            timeline: storage.history().timeline_of(control.redo),
            storage: Arc::clone(storage),
            follower,
            control,
            standby,
            history: OnceLock::new(),
        }
    }

    /// Keeps the log from `log_from` on until the end; `None`: from the redo position.
    fn begin_on_primary(
        storage: &Arc<Storage>,
        process_id: u32,
        log_from: Option<Lsn>,
    ) -> Result<(Follower, Control)> {
        // Checkpoints release log up to the redo position of one that is complete, which is never past this one.
        let redo = storage.wal.redo();
        let from = log_from.map_or(redo, |log_from| log_from.min(redo));
        let follower = storage.retention.hold_for_backup(process_id, from)?;
        let control = storage.run_checkpoint(false)?;
        if log_from.is_none() {
            follower.advance(control.redo, false);
        }
        Ok((follower, control))
    }

    fn begin_on_standby(
        storage: &Arc<Storage>,
        standby: &Standby,
        process_id: u32,
    ) -> Result<(Follower, Control)> {
        // Not needed, but it spares the copy the replay of what was changed before.
        storage.run_restartpoint(standby)?;
        // The next one would release the log of this one before it is held.
        let _no_restartpoint = storage.background_state.pause_checkpoints();
        refuse_promoted(standby)?;
        let control_file = storage
            .control
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        let control = control_file.content();
        let follower = storage.retention.hold_for_backup(process_id, control.redo)?;
        Ok((follower, control))
    }

    /// The history that names are given by.
    fn history(&self) -> Arc<History> {
        match self.history.get() {
            Some(history) => Arc::clone(history),
            None => self.storage.history(),
        }
    }

    /// The position at which the recovery of the copy begins.
    pub fn start(&self) -> Lsn {
        self.control.redo
    }

    /// The end of the record of the checkpoint that recovery begins at.
    pub fn checkpoint_end(&self) -> Lsn {
        self.control.log_end
    }

    /// All xids below were handed out before [`start`](Self::start).
    pub fn next_xid(&self) -> Xid {
        self.control.next_xid
    }

    /// The timeline of the log there.
    pub fn timeline(&self) -> u32 {
        self.timeline
    }

    /// The relations to copy.
    pub fn relations(&self) -> Result<Vec<RelId>> {
        self.storage.files.list()
    }

    /// A relation's file; `None` if it was dropped meanwhile.
    pub fn open_relation(&self, rel: RelId) -> Result<Option<RelationCopy>> {
        if let Some(standby) = &self.standby {
            // Early: the copy may take long.
            refuse_promoted(standby)?;
        }
        // B3.
        let reads_whole_pages = self.standby.is_some() && rel == RelId::COMMIT_LOG;
        RelationCopy::open(&self.storage, rel, reads_whole_pages)
    }

    /// Steps 3 and 4.
    pub fn finish(&self) -> Result<BackupEnd> {
        let (end, state) = match &self.standby {
            None => {
                self.storage.make_log_room()?;
                let end = self
                    .storage
                    .wal
                    .insert_any(RecordKind::NOTHING, Xid::INVALID, &[]);
                self.storage.wal.flush(end);
                (end, self.control.state)
            }
            Some(standby) => {
                // B1. Then B4: it was read before a promotion began.
                let end = self.storage.wal.flushed();
                refuse_promoted(standby)?;
                (end, State::Standby)
            }
        };
        // The copy is on the timeline of its end, also if another one began during the backup.
        let history = Arc::clone(self.history.get_or_init(|| self.storage.history()));
        let timeline = history.current();
        let control = Control {
            backup_end: end,
            timeline,
            state,
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
        self.history().ranges(self.start(), end)
    }

    /// The history files of the timeline and of those that it comes from, each with its name and content.
    pub fn history_files(&self) -> Result<Vec<(String, String)>> {
        let history = self.history();
        let earlier = history.ended().iter().map(|ended| ended.timeline);
        let mut files = Vec::new();
        for timeline in earlier.chain([history.current()]) {
            // Those of earlier timelines may be missing: their content is in the last one too.
            if let Some(text) = self.storage.history_file(timeline)? {
                files.push((timeline::history_file_name(timeline), text));
            }
        }
        Ok(files)
    }

    /// The names of the segments from the start to `end`, and for each the position at which it begins.
    pub fn segments(&self, end: Lsn) -> Vec<(String, Lsn)> {
        let history = self.history();
        (self.start().0 / SEGMENT_SIZE..=(end.0 - 1) / SEGMENT_SIZE)
            .map(|number| (segment_name_in(&history, number), Lsn(number * SEGMENT_SIZE)))
            .collect()
    }

    /// Reads log at `position` for a segment's file. What lies behind `end` reads as zeros: there may be the middle of a
    /// write, and a later record in it would say that log is missing.
    pub fn read_log(&self, position: Lsn, end: Lsn, bytes: &mut [u8]) -> Result<()> {
        bytes.fill(0);
        let wanted = (end.0.saturating_sub(position.0) as usize).min(bytes.len());
        let fail = |error| StorageError::io("read", &self.storage.log_dir(), error);
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

/// B4.
fn refuse_promoted(standby: &Standby) -> Result<()> {
    if standby.is_ending() {
        return Err(StorageError::Standby {
            problem: "the standby was promoted during the base backup, so the files that were copied do not fit together; \
                      remove them, and take another base backup"
                .to_owned(),
        });
    }
    Ok(())
}
