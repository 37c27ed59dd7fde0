//! The file system under the log, the data files and the control file.
//!
//! Everything that a data directory holds is read and written through [`Disk`], so that a test can put
//! another disk under the shipped code: one that is full or fails ([`FaultyDisk`]), or one that records what
//! was written and what was made durable, and shows what a power cut leaves of it.
//!
//! | file | holds |
//! | --- | --- |
//! | `native` | the operating system's files |
//! | `read_only` | the same, with every change kept in memory |
//! | `faulty` | errors on demand, for tests |
//! | `held` | syncs of the log that can be held, for tests |
//! | `open_files` | a limit on the data files that are open, on any of them |
//!
//! # What a disk promises
//! - D1: what was written to a file survives a power cut once a sync of that file that began after the write
//!   has returned. Of what was written and not synced any part may survive: earlier writes without later
//!   ones, later ones without earlier ones, some sectors of a write without the others.
//! - D2: a name that was made, changed or removed in a directory stays so once a sync of that directory has
//!   returned. Of the changes that were not synced, the first few survive.
//! - D3: after a sync has failed, what it was to make durable may be lost, even if a later sync succeeds. A
//!   sync that fails therefore ends the process (`sync_failed`).

mod faulty;
mod held;
mod native;
pub(crate) mod open_files;
mod read_only;

use std::any::Any;
use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub use faulty::{Faults, FaultyDisk, Operation};
pub use held::{HeldLog, LetGo};
pub use native::{GROUP_DIRECTORY_MODE, NativeDisk, NativeDiskWithModes, OWNER_DIRECTORY_MODE};
pub use read_only::ReadOnlyDisk;

/// The purpose of a sync. Each place that syncs has its own, so that a test can leave out one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SyncPurpose {
    /// The log, up to a position: a commit is acknowledged after it, a page written after it.
    LogFlush,
    /// The log that recovery has found, before recovery changes a page.
    LogFound,
    /// The zeros behind the end of the log, before anything is logged after recovery.
    LogCleared,
    /// A new log segment, filled with zeros (or, up to a fork, with log), before it gets its name.
    LogSegment,
    /// The name of a new log segment, before anything is written to it.
    LogSegmentName,
    /// The new names of recycled log segments, before anything is written to them.
    RecycledNames,
    /// The names of log segments that are there at the start, before anything is written to them.
    LogNamesFound,
    /// A data file, at a checkpoint.
    DataFile,
    /// A data file, before its descriptor is given to another one.
    DataFileClosed,
    /// The names of data files, at a checkpoint.
    DataFileNames,
    /// The control file, at the end of a checkpoint.
    ControlFile,
    /// The control file as it was found at the start, before it is acted on.
    ControlFileFound,
    /// The names in the data directory, at the start.
    DataDirectory,
    /// A page of a standby's commit log in the journal, before it is written in its place.
    StatusJournal,
    /// The replication slots, before one is reported as made or dropped, and before log is removed.
    Slots,
    /// The history of a new timeline, before its segments are made.
    TimelineHistory,
    /// A file of a copy of another server, before the copy gets its control file.
    CopiedFile,
    /// The names in such a copy, before it gets its control file, and that of the control file.
    CopiedNames,
    /// The data directory's own name and those of the directories made for it.
    ParentDirectory,
}

impl SyncPurpose {
    /// All of them.
    pub const ALL: [SyncPurpose; 19] = [
        SyncPurpose::LogFlush,
        SyncPurpose::LogFound,
        SyncPurpose::LogCleared,
        SyncPurpose::LogSegment,
        SyncPurpose::LogSegmentName,
        SyncPurpose::RecycledNames,
        SyncPurpose::LogNamesFound,
        SyncPurpose::DataFile,
        SyncPurpose::DataFileClosed,
        SyncPurpose::DataFileNames,
        SyncPurpose::ControlFile,
        SyncPurpose::ControlFileFound,
        SyncPurpose::DataDirectory,
        SyncPurpose::StatusJournal,
        SyncPurpose::Slots,
        SyncPurpose::TimelineHistory,
        SyncPurpose::CopiedFile,
        SyncPurpose::CopiedNames,
        SyncPurpose::ParentDirectory,
    ];
}

/// The mode of opening a file; always for reading and writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// It must be there.
    Existing,
    /// It is made, empty, if it is not there.
    Create,
    /// As `Create`, and its old content is discarded.
    Truncate,
    /// As `Existing`, past the system's cache: what is read and written is whole pages, in memory and in the file.
    Direct,
}

/// Held for as long as a directory is locked.
pub type LockHeld = Box<dyn Any + Send + Sync>;

/// A file system.
pub trait Disk: Send + Sync + Debug {
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a directory, to sync it later: having it open, a sync needs no descriptor.
    fn open_directory(&self, path: &Path) -> io::Result<Arc<dyn DiskDirectory>>;
    /// Makes a directory whose parent is there.
    fn create_directory(&self, path: &Path) -> io::Result<()>;
    /// The names in a directory, in no order.
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>>;
    /// Gives a file another name in the same directory; a file that had that name is gone.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Locks the directory at `path` until what is returned is dropped; `None` if it is locked. The lock is the
    /// directory's own: a file in it could be removed, and a second lock be taken on a new one. Nothing is written.
    fn lock(&self, path: &Path) -> io::Result<Option<LockHeld>>;
    /// Gives a directory that is going to hold a database the mode that this disk's directories have.
    fn restrict(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// An open file.
pub trait DiskFile: Send + Sync + Debug {
    /// Reads from `offset`; fewer bytes than asked for mean that the file ends there.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Takes disk space for `length` bytes from `offset` on, and makes the file at least as long as that.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Sets the file's length.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Its length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Makes its content durable, and as much of its length as reading that needs.
    fn sync_data(&self, purpose: SyncPurpose) -> io::Result<()>;
    /// Makes content and length durable.
    fn sync_all(&self, purpose: SyncPurpose) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`, and makes them durable.
    fn write_durably_at(&self, bytes: &[u8], offset: u64, purpose: SyncPurpose) -> io::Result<()> {
        self.write_at(bytes, offset)?;
        self.sync_data(purpose)
    }

    /// Reads all of `bytes` from `offset`; a file that ends before is an error.
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let wanted = bytes.len();
        let read = self.read_at(bytes, offset)?;
        if read < wanted {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{wanted} bytes are wanted at offset {offset}, but only {read} are there"),
            ));
        }
        Ok(())
    }
}

/// An open directory.
pub trait DiskDirectory: Send + Sync + Debug {
    /// Makes the names in it durable.
    fn sync(&self, purpose: SyncPurpose) -> io::Result<()>;
}

/// Makes `path` a directory if it is not one. With `fsync`, a directory that is made is durable before the
/// next is made in it, so a kill leaves at most the last one not durable. For the next process, that one is
/// the parent of the first directory that it makes, or the data directory itself, whose name each start
/// syncs. So the parent's name is synced here as well.
pub(crate) fn ensure_directory(disk: &dyn Disk, path: &Path, fsync: bool) -> io::Result<()> {
    let made = match disk.create_directory(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
                return Err(error);
            };
            ensure_directory(disk, parent, fsync)?;
            disk.create_directory(path)
        }
        made => made,
    };
    made?;
    if fsync {
        if let Some(parent) = path.parent() {
            sync_name_found(disk, parent)?;
        }
        sync_name(disk, path)?;
    }
    Ok(())
}

/// Makes the name of `path` durable.
fn sync_name(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        None => return Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    };
    disk.open_directory(parent)?.sync(SyncPurpose::ParentDirectory)
}

/// Makes the name of a directory durable that was there. If the parent directory may not be read, this
/// program has not made the name.
pub(crate) fn sync_name_found(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match sync_name(disk, path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        synced => synced,
    }
}

/// Ends the process after a failed sync (D3): going on, or trying again, could acknowledge what is lost.
pub(crate) fn sync_failed(path: &Path, error: &io::Error) -> ! {
    clearway_machine::fatal(format_args!(
        "could not sync {}: {error}; stopping, since what the disk has kept is not known",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;

    use super::*;

    /// Notes whose names are synced. One directory cannot be opened.
    #[derive(Debug, Default)]
    struct Watched {
        synced: Mutex<Vec<PathBuf>>,
        closed: Option<(PathBuf, io::ErrorKind)>,
    }

    impl Faults for Watched {
        fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
            match (operation, &self.closed) {
                (Operation::Open, Some((closed, kind))) if closed == path => return Err((*kind).into()),
                (Operation::Sync(SyncPurpose::ParentDirectory), _) => {
                    self.synced.lock().unwrap().push(path.to_owned());
                }
                _ => {}
            }
            Ok(())
        }
    }

    fn on(watched: &Arc<Watched>) -> FaultyDisk {
        FaultyDisk::new(Arc::new(NativeDisk), watched.clone())
    }

    /// The data directory and all above it, and each of their names survives a power cut.
    #[test]
    fn directories_that_are_missing_are_made() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a").join("b").join("c");
        let watched = Arc::new(Watched::default());
        ensure_directory(&on(&watched), &path, true).unwrap();
        assert!(path.is_dir());
        let mut synced = std::mem::take(&mut *watched.synced.lock().unwrap());
        synced.sort();
        synced.dedup();
        let names: Vec<_> = path.ancestors().skip(1).take(4).collect();
        assert!(synced.iter().rev().eq(&names), "{synced:?}");
        ensure_directory(&on(&watched), &path, true).unwrap();
        assert!(watched.synced.lock().unwrap().is_empty(), "nothing was made");
    }

    #[test]
    fn a_name_without_a_directory_is_in_the_current_one() {
        let watched = Arc::new(Watched::default());
        sync_name(&on(&watched), Path::new("data")).unwrap();
        assert_eq!(*watched.synced.lock().unwrap(), [Path::new(".")]);
    }

    /// A directory whose parent may not be read can hold a database; a disk that fails cannot.
    #[test]
    fn only_a_lack_of_permission_is_no_error() {
        let dir = tempfile::tempdir().unwrap();
        for (kind, is_error) in [
            (io::ErrorKind::PermissionDenied, false),
            (io::ErrorKind::Other, true),
        ] {
            let watched = Arc::new(Watched {
                closed: Some((dir.path().to_owned(), kind)),
                ..Watched::default()
            });
            let found = sync_name_found(&on(&watched), &dir.path().join("data"));
            assert_eq!(found.is_err(), is_error, "{kind}");
        }
    }
}
