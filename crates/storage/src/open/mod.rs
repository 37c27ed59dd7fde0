//! Opening a data directory.
//!
//! # Steps
//! 1. Lock the directory, and read its control file; a new database gets one. A directory of the wrong role is refused
//!    (`directory`).
//! 2. Find the end of the log, and what was handed out before it (`log`, `recovery`). A log that nothing replays is refused:
//!    up to here, what the directory had before is as it was.
//! 3. Give the directory its role: from here on the control file says that a standby's directory is one (`directory`).
//!    Open the relations' files with the lengths that the log tells, and make the directory's names durable (`files`).
//! 4. Make the [`Storage`] of its parts (`assemble`, and `standby_files` for a standby).
//! 5. Replay the log: as a database, which has a checkpoint and its threads then (`database`), or as a standby (`standby`).
//!
//! | file | holds |
//! | --- | --- |
//! | `directory`, `log`, `files`, `assemble`, `standby_files`, `database`, `standby` | the steps above |
//! | `recovery` | the log from the last checkpoint on: its end, and replaying it |
//! | `checkpoint` | bounding what recovery must replay |
//! | `background` | the checkpointer and the log writer |
//! | `closing` | the last checkpoint |
//! | `promotion` | a standby becomes a primary |
//! | `new_timeline` | how the log goes on under a new number |
//! | [`directory_log`] | the log of a directory that is looked at without being opened |

mod assemble;
mod background;
mod checkpoint;
mod closing;
mod database;
mod directory;
pub mod directory_log;
mod files;
mod log;
mod new_timeline;
mod promotion;
pub(crate) mod recovery;
mod standby;
mod standby_files;

use std::path::Path;
use std::sync::Arc;

use self::recovery::{RecoveryReport, RecoveryTarget};
use crate::disk::{Disk, NativeDiskWithModes, ReadOnlyDisk};
use crate::error::Result;
use crate::files::data_directory::IfMissing;
use crate::replication::standby_state::StandbyOptions;
use crate::storage::{Storage, StorageOptions};

/// The role in which a directory is opened.
#[derive(Debug, Clone, Copy)]
enum OpenAs<'a> {
    /// A database that goes on at the end of its log.
    Database,
    /// A database that is looked at: nothing in the directory changes.
    ReadOnly,
    /// A copy that follows another server.
    Standby(StandbyOptions),
    /// A copy that goes on at a point of its log.
    Recovered(&'a RecoveryTarget),
}

/// A directory that is being opened, and the role.
struct Opening<'a> {
    disk: Arc<dyn Disk>,
    dir: &'a Path,
    options: StorageOptions,
    open_as: OpenAs<'a>,
}

impl OpenAs<'_> {
    /// The treatment of a directory that holds no database.
    fn if_missing(self) -> IfMissing {
        match self {
            OpenAs::Database => IfMissing::Initialise,
            OpenAs::ReadOnly | OpenAs::Standby(_) | OpenAs::Recovered(_) => IfMissing::Refuse,
        }
    }

    /// True if files in the directory change.
    fn changes_it(self) -> bool {
        !matches!(self, OpenAs::ReadOnly)
    }

    fn standby(self) -> Option<StandbyOptions> {
        match self {
            OpenAs::Standby(options) => Some(options),
            _ => None,
        }
    }
}

/// The operating system's disk for the database in `dir`.
fn native_disk(dir: &Path, options: &StorageOptions) -> Arc<dyn Disk> {
    Arc::new(NativeDiskWithModes::of(dir, options.group_access))
}

impl<'a> Opening<'a> {
    fn of(disk: Arc<dyn Disk>, dir: &'a Path, options: StorageOptions, open_as: OpenAs<'a>) -> Self {
        Self {
            disk,
            dir,
            options,
            open_as,
        }
    }

    fn open(self) -> Result<(Arc<Storage>, RecoveryReport)> {
        let mut directory = directory::enter(&self)?;
        let log = log::find(&self, &directory)?;
        directory.take_role(&self)?;
        let files = files::open(&self, &directory, &log)?;
        let opened = assemble::assemble(self, directory, log, files)?;
        if opened.storage.standby().is_some() {
            standby::start(opened)
        } else {
            database::start(opened)
        }
    }
}

impl Storage {
    /// Opens `dir` and recovers what the log holds. A new database is made if the directory is missing or empty.
    pub fn open(dir: &Path, options: StorageOptions) -> Result<(Arc<Storage>, RecoveryReport)> {
        Self::open_on(native_disk(dir, &options), dir, options)
    }

    /// As [`open`](Self::open), on another disk than the operating system's.
    pub fn open_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: StorageOptions,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        Opening::of(disk, dir, options, OpenAs::Database).open()
    }

    /// Opens the database in `dir` as it is on disk, and changes nothing there: recovery, and all writes
    /// after it, happen in memory. A directory without a database is an error.
    pub fn open_read_only(dir: &Path, options: StorageOptions) -> Result<(Arc<Storage>, RecoveryReport)> {
        let disk = Arc::new(ReadOnlyDisk::default());
        Opening::of(disk, dir, options, OpenAs::ReadOnly).open()
    }

    /// Recovers the database in `dir`, a copy, to a point of its log, with what it needs from an archive; from there on
    /// its log is on a timeline of its own.
    pub fn recover_to(
        dir: &Path,
        options: StorageOptions,
        target: &RecoveryTarget,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        let disk = native_disk(dir, &options);
        Opening::of(disk, dir, options, OpenAs::Recovered(target)).open()
    }

    /// Opens `dir`, which holds a database, as a standby: replays what its log holds, and is going to follow the server
    /// that it is a copy of. From then on it is opened as a standby only, until it is promoted.
    pub fn open_standby(
        dir: &Path,
        options: StorageOptions,
        standby: StandbyOptions,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        Self::open_standby_on(native_disk(dir, &options), dir, options, standby)
    }

    /// As [`open_standby`](Self::open_standby), on another disk than the operating system's.
    pub fn open_standby_on(
        disk: Arc<dyn Disk>,
        dir: &Path,
        options: StorageOptions,
        standby: StandbyOptions,
    ) -> Result<(Arc<Storage>, RecoveryReport)> {
        Opening::of(disk, dir, options, OpenAs::Standby(standby)).open()
    }
}
