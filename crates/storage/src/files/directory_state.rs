//! The state of a data directory, for programs that do not open it: the commands about standbys.
//!
//! The directory may be in use meanwhile. The control file has two copies that are written in turn, so that one that is
//! read while it is written is invalid and the other one counts: the answer is at most one write old.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::disk::{Disk, GROUP_DIRECTORY_MODE, NativeDisk, ReadOnlyDisk};
use crate::error::{Result, StorageError};
use crate::files::control_file::{ControlFile, State};
use crate::files::data_directory::{self, Content};
use crate::page::Lsn;

/// The file in a standby's directory that asks the standby to end recovery and take writes.
pub const PROMOTE_SIGNAL: &str = "promote.signal";

/// The file that a standby writes beside, with the reason, if it could not.
pub const PROMOTE_FAILED: &str = "promote.failed";

/// The file by which `pg_basebackup -R` says that a copy is to be a standby. It is removed once the control file says so:
/// from then on only that counts.
pub const STANDBY_SIGNAL: &str = "standby.signal";

/// The file in which a standby notes which server it followed when it was promoted, as a connection string. It is written
/// before the control file makes a primary of the directory, and says nothing while the directory is a standby's.
pub const PROMOTED_FROM: &str = "promoted.from";

/// The file in a standby's directory that says why it has diverged from its server.
pub const STANDBY_DIVERGED: &str = "standby.diverged";

/// The role of a data directory, as it says itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryState {
    /// It is a standby's, and was not promoted.
    pub standby: bool,
    /// It is a copy of another server's files, and no server has opened it yet: nothing was logged in it.
    pub is_new_copy: bool,
    /// It has the file [`STANDBY_SIGNAL`].
    pub wants_standby: bool,
    /// The timeline that its log is on.
    pub timeline: u32,
    /// The identifier of the database: a standby has the number of its primary.
    pub system_identifier: u64,
}

/// Refuses a directory that another user owns, or that more users may enter than its owner and the readers of its group,
/// unless it holds no part of a database, which is refused for what it is. For programs that serve it: a database that is
/// embedded is its program's affair.
pub fn check_access(dir: &Path) -> Result<()> {
    let parts = [data_directory::CONTROL, data_directory::LOG];
    let holds_a_part = parts.iter().any(|part| dir.join(part).exists());
    let found = match fs::metadata(dir) {
        Ok(found) if holds_a_part => found,
        _ => return Ok(()),
    };
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(StorageError::ForeignDirectory { dir: dir.to_owned() });
    }
    let mode = found.mode() & 0o777;
    if mode & !GROUP_DIRECTORY_MODE != 0 {
        return Err(StorageError::OpenDirectory {
            dir: dir.to_owned(),
            mode,
        });
    }
    Ok(())
}

/// The state of the database in `dir`; an error if there is none.
pub fn directory_state(dir: &Path) -> Result<DirectoryState> {
    let disk = ReadOnlyDisk::default();
    let refuse = |problem: &str| StorageError::NoDatabase {
        dir: dir.to_owned(),
        problem: problem.to_owned(),
    };
    let wants_standby = dir.join(STANDBY_SIGNAL).exists();
    let names = disk.list(dir).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => data_directory::no_directory(dir),
        _ => StorageError::io("list", dir, error),
    })?;
    match data_directory::examine(dir, names)? {
        Content::Nothing => return Err(refuse("the directory is empty")),
        Content::UnfinishedCopy => return Err(refuse("the copy of another server in it was not finished")),
        Content::UnfinishedRewind => return Err(data_directory::unfinished_rewind(dir)),
        Content::Database => {}
    }
    let (_, control) = ControlFile::open(&disk, dir.join(data_directory::CONTROL), false)?;
    Ok(DirectoryState {
        standby: control.state == State::Standby,
        is_new_copy: control.backup_end > Lsn(0),
        wants_standby,
        timeline: control.timeline,
        system_identifier: control.system_identifier,
    })
}

/// True if a server has the directory open. It takes the directory's lock for an instant to find out.
pub fn directory_is_in_use(dir: &Path) -> Result<bool> {
    match NativeDisk.lock(dir) {
        Ok(held) => Ok(held.is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(data_directory::no_directory(dir)),
        Err(error) => Err(StorageError::io("lock", dir, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Storage, StorageOptions};

    #[test]
    fn a_database_is_told_from_what_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let error = directory_state(&data).unwrap_err();
        assert!(error.to_string().contains("no such directory"), "{error}");
        let error = directory_is_in_use(&data).unwrap_err();
        assert!(error.to_string().contains("no such directory"), "{error}");
        assert!(
            directory_state(directory.path())
                .unwrap_err()
                .to_string()
                .contains("empty")
        );
        let (storage, _) = Storage::open(&data, StorageOptions::default()).unwrap();
        let state = directory_state(&data).unwrap();
        assert_eq!((state.standby, state.timeline), (false, 1));
        assert_eq!(state.system_identifier, storage.system_identifier());
        assert!(directory_is_in_use(&data).unwrap());
        storage.shutdown().unwrap();
        drop(storage);
        assert!(!directory_is_in_use(&data).unwrap());
    }
}
