//! The content of a directory before it is opened, and the first steps of a new database.
//!
//! A directory is taken for a new database only if it is missing or empty, and for an existing one only if
//! its control file is valid. Everything else is refused before anything is written: another program's
//! directory, a directory without its control file, a directory that lacks a part.
//!
//! A new database is made in steps, so that the next start recognises what a crash between any two of them
//! has left:
//!
//! 1. The control file, in the state "initialising", written beside its name and then renamed.
//! 2. `pg_wal` and `base`, with the files of the system relations.
//! 3. The first checkpoint, which is durable before the control file says "running".
//!
//! A directory found in the state "initialising" was never used: the next start removes what step 2 has made,
//! and begins step 2 again.
//!
//! A directory that is made as a copy of another server's files has a marker from the first file on until after it has
//! got its control file (`received_copy`).

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::disk::{self, Disk, LockHeld};
use crate::error::{Result, StorageError};
use crate::page::RelId;

/// The file that says where recovery begins.
pub(crate) const CONTROL: &str = "control";
/// The directory of the log's segments, called as PostgreSQL's programs call it (`wal/segment_name.rs`).
pub(crate) const LOG: &str = "pg_wal";
/// The directory of the relations' files.
pub(crate) const RELATIONS: &str = "base";
/// The relations whose files a database has from its first moment on.
const SYSTEM_RELATIONS: &[RelId] = &[RelId::COMMIT_LOG, RelId::CATALOG];
/// A control file that has not got its name yet.
pub(crate) const UNFINISHED_CONTROL: &str = "control.new";
/// In a directory that is being made as a copy of another server's files.
pub(crate) const UNFINISHED_COPY: &str = "backup.unfinished";
/// In a directory that is being rewound to another server.
pub(crate) const UNFINISHED_REWIND: &str = "rewind.unfinished";
/// A name that file systems put into the root directory of a disk.
const OF_THE_FILE_SYSTEM: &str = "lost+found";

/// Trials of a lock that is taken. Nothing but a database in use has it for as long as all of them last.
const LOCK_TRIALS: usize = 40;
/// Time between two trials.
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// The treatment of a directory that holds no database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    /// Make one there, if the directory is missing or empty.
    Initialise,
    /// Return an error.
    Refuse,
}

/// The content of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Nothing,
    /// A copy of another server's files that was not finished.
    UnfinishedCopy,
    /// A database that was being made a standby again, and is partly that of the other server.
    UnfinishedRewind,
    Database,
}

/// Takes the lock of `dir`, making the directory if that is wanted, and looks at what it holds.
pub(crate) fn enter(
    disk: &dyn Disk,
    dir: &Path,
    if_missing: IfMissing,
    fsync: bool,
) -> Result<(LockHeld, Content)> {
    let no_database = |problem: &str| StorageError::NoDatabase {
        dir: dir.to_owned(),
        problem: problem.to_owned(),
    };
    let (held, content) = lock_and_examine(disk, dir, if_missing, fsync)?;
    match content {
        Content::Nothing if if_missing == IfMissing::Refuse => Err(no_database("the directory is empty")),
        Content::UnfinishedCopy => Err(no_database(
            "it holds a copy of another server's files that was not finished; \"clearway standby\" on this directory \
             makes the copy anew, or remove the directory",
        )),
        Content::UnfinishedRewind => Err(unfinished_rewind(dir)),
        Content::Nothing | Content::Database => Ok((held, content)),
    }
}

/// The error of a directory whose rewind was not finished.
pub(crate) fn unfinished_rewind(dir: &Path) -> StorageError {
    StorageError::NoDatabase {
        dir: dir.to_owned(),
        problem: "its files are partly those of another server, because a rewind of it was not finished; run \"clearway \
                  rewind\" on this directory again, with the same server, or remove the directory and take a new base backup"
            .to_owned(),
    }
}

/// As [`enter`], for a rewind: one that was not finished is no error, and there has to be a database.
pub(crate) fn enter_for_rewind(disk: &dyn Disk, dir: &Path) -> Result<(LockHeld, Content)> {
    match lock_and_examine(disk, dir, IfMissing::Refuse, false)? {
        (held, content @ (Content::Database | Content::UnfinishedRewind)) => Ok((held, content)),
        (_, Content::Nothing | Content::UnfinishedCopy) => Err(StorageError::NoDatabase {
            dir: dir.to_owned(),
            problem: "there is no database in it to rewind; \"clearway standby\" on this directory makes a copy of the server"
                .to_owned(),
        }),
    }
}

/// As [`enter`], for a copy of another server's files: what an unfinished one has left is no error, and a database is.
pub(crate) fn enter_for_copy(disk: &dyn Disk, dir: &Path, fsync: bool) -> Result<(LockHeld, Content)> {
    match lock_and_examine(disk, dir, IfMissing::Initialise, fsync)? {
        (_, Content::UnfinishedRewind) => Err(unfinished_rewind(dir)),
        (_, Content::Database) => Err(StorageError::InvalidCopy {
            dir: dir.to_owned(),
            problem: "there is a database in it; name an empty directory, or one that does not exist"
                .to_owned(),
        }),
        entered => Ok(entered),
    }
}

fn lock_and_examine(
    disk: &dyn Disk,
    dir: &Path,
    if_missing: IfMissing,
    fsync: bool,
) -> Result<(LockHeld, Content)> {
    match disk.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => match if_missing {
            IfMissing::Initialise => disk::ensure_directory(disk, dir, fsync)
                .map_err(|error| StorageError::io("create directory", dir, error))?,
            IfMissing::Refuse => return Err(no_directory(dir)),
        },
        Err(error) => return Err(StorageError::io("list", dir, error)),
        Ok(_) => {}
    }
    let held = locked(dir, || disk.lock(dir))?;
    // Look only now: the process that held the lock before may have made a database.
    let names = disk
        .list(dir)
        .map_err(|error| StorageError::io("list", dir, error))?;
    let content = examine(dir, names)?;
    if content == Content::Nothing {
        disk.restrict(dir)
            .map_err(|error| StorageError::io("set the permissions of", dir, error))?;
    }
    Ok((held, content))
}

/// The lock that `take` gets within some trials. A database in use has the lock of its directory for as long as it is open; a
/// program that looks whether it is in use, or a background thread of a storage that has just been dropped, has it for a
/// moment, which is no reason to refuse.
fn locked(dir: &Path, mut take: impl FnMut() -> io::Result<Option<LockHeld>>) -> Result<LockHeld> {
    for trial in 1..=LOCK_TRIALS {
        match take() {
            Ok(Some(held)) => return Ok(held),
            Ok(None) if trial < LOCK_TRIALS => thread::sleep(LOCK_PAUSE),
            Ok(None) => break,
            Err(error) => return Err(StorageError::io("lock", dir, error)),
        }
    }
    Err(StorageError::DirectoryInUse { dir: dir.to_owned() })
}

/// True if there is a file of this name in `dir`.
pub(crate) fn has(disk: &dyn Disk, dir: &Path, name: &str) -> Result<bool> {
    let names = disk
        .list(dir)
        .map_err(|error| StorageError::io("list", dir, error))?;
    Ok(names.iter().any(|found| found == name))
}

/// The error of a directory that is not there.
pub(crate) fn no_directory(dir: &Path) -> StorageError {
    StorageError::NoDatabase {
        dir: dir.to_owned(),
        problem: "there is no such directory".to_owned(),
    }
}

/// The content of a directory with these names; an error if it is neither a database nor a place for one.
pub(crate) fn examine(dir: &Path, names: Vec<OsString>) -> Result<Content> {
    let mut names: Vec<String> = names
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name != OF_THE_FILE_SYSTEM && name != UNFINISHED_CONTROL)
        .collect();
    names.sort();
    let has = |wanted: &str| names.iter().any(|name| name == wanted);
    let foreign = |problem: String| {
        Err(StorageError::NoDatabase {
            dir: dir.to_owned(),
            problem,
        })
    };
    if names.is_empty() {
        return Ok(Content::Nothing);
    }
    if has("PG_VERSION") {
        return foreign(
            "it is a PostgreSQL data directory, whose files have another format; name another directory"
                .to_owned(),
        );
    }
    if has(UNFINISHED_REWIND) {
        return Ok(Content::UnfinishedRewind);
    }
    if has(CONTROL) {
        return Ok(Content::Database);
    }
    if has(UNFINISHED_COPY) {
        return Ok(Content::UnfinishedCopy);
    }
    if has(LOG) || has(RELATIONS) {
        return Err(StorageError::CorruptFile {
            file: dir.join(CONTROL),
            offset: 0,
            problem: "it is missing, but there are the log or the tables of a database; restore the directory from a \
                backup (nothing in it was changed)"
                .to_owned(),
        });
    }
    foreign(format!(
        "it is not empty and holds no database (it has \"{}\"); name an empty directory, or one that does not exist",
        names[0]
    ))
}

fn missing(file: PathBuf) -> StorageError {
    StorageError::CorruptFile {
        file,
        offset: 0,
        problem: "it is missing; restore the directory from a backup (nothing in it was changed)".to_owned(),
    }
}

/// Checks that the parts that every database has are there.
pub(crate) fn check_parts(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for part in [LOG, RELATIONS] {
        let path = dir.join(part);
        let names = disk.list(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(path.clone()),
            _ => StorageError::io("list", &path, error),
        })?;
        let wanted = if part == RELATIONS { SYSTEM_RELATIONS } else { &[] };
        for rel in wanted {
            let name = rel.0.to_string();
            if !names.iter().any(|found| *found == *name) {
                return Err(missing(path.join(name)));
            }
        }
    }
    Ok(())
}

/// Removes what an interrupted initialisation has made.
pub(crate) fn remove_unfinished(disk: &dyn Disk, dir: &Path) -> Result<()> {
    for part in [LOG, RELATIONS] {
        let path = dir.join(part);
        let names = match disk.list(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            names => names.map_err(|error| StorageError::io("list", &path, error))?,
        };
        for name in names {
            let file = path.join(name);
            disk.remove_file(&file)
                .map_err(|error| StorageError::io("remove", &file, error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mutation that it should catch (`crates/storage/mutations/data_files.toml`): one trial.
    #[test]
    fn a_lock_of_a_moment_refuses_nothing_and_one_that_stays_does() {
        let mut trials = 0;
        let held = locked(Path::new("data"), || {
            trials += 1;
            Ok((trials == 3).then(|| Box::new(()) as LockHeld))
        });
        assert!(held.is_ok() && trials == 3);
        trials = 0;
        let refused = locked(Path::new("data"), || {
            trials += 1;
            Ok(None)
        });
        assert!(matches!(refused, Err(StorageError::DirectoryInUse { .. })) && trials == LOCK_TRIALS);
        let failed = locked(Path::new("data"), || Err(io::ErrorKind::Unsupported.into()));
        assert!(matches!(failed, Err(StorageError::Io { .. })));
    }
}
