//! Work that does not fit into memory: sorts, groups and held results that go on in temporary files.
//!
//! A statement may keep `work_mem` bytes at each of its stages that collect rows. What is more goes to a temporary
//! file in the data directory's `tmp`. The file has no name from the moment it is made, so it goes with its last
//! descriptor: at the end of the statement, on an error, and when the process is killed.
//!
//! | module | job |
//! | --- | --- |
//! | `sorter` | sorts records by their keys' bytes, in memory or by an external merge |
//! | `log` | records that are read in their order while more come |
//! | `kept` | rows that are read again and again |
//! | `stack` | bytes that are taken back from their end |
//! | `record` | rows as bytes and back |
//! | `temporary` | a file of records, written and read in blocks |
//! | `block_counts` | the blocks that a thread has read and written |

mod block_counts;
mod kept;
pub(crate) mod log;
pub(crate) mod record;
pub(crate) mod sorter;
mod stack;
pub(crate) mod temporary;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use block_counts::BlockCounts;
pub(crate) use kept::{KeptReader, KeptRows};
pub(crate) use sorter::{Sorted, Sorter};
pub(crate) use stack::SpilledStack;

use clearway_sql::error::{EngineError, Result, SqlState};

/// The directory for temporary files, inside the data directory.
const DIRECTORY: &str = "tmp";

/// The memory that a stage may keep, and the place of the rest.
#[derive(Debug, Clone)]
pub(crate) struct SpillOptions {
    /// The bytes that one stage keeps in memory.
    pub(crate) bytes_max: usize,
    pub(crate) directory: Arc<Path>,
    /// The server's log tells of a file of this many bytes, or more.
    pub(crate) log_from: Option<u64>,
}

impl SpillOptions {
    /// For an open data directory.
    pub(crate) fn new(directory: Arc<Path>, bytes_max: usize) -> SpillOptions {
        SpillOptions {
            bytes_max,
            directory,
            log_from: None,
        }
    }

    /// The same directory with another bound.
    pub(crate) fn with_bytes(&self, bytes_max: usize) -> SpillOptions {
        SpillOptions {
            bytes_max,
            directory: Arc::clone(&self.directory),
            log_from: self.log_from,
        }
    }
}

/// The directory for temporary files of a data directory, emptied: on a file system that cannot make a file without
/// a name, a kill may have left one.
pub(crate) fn prepare_directory(data: &Path) -> Result<Arc<Path>> {
    let directory: PathBuf = data.join(DIRECTORY);
    match std::fs::remove_dir_all(&directory) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(file_error("emptying", &directory, &error)),
    }
    Ok(directory.into())
}

/// An I/O error on a temporary file: 53100 when the disk is full, 53400 at the limit of a file's size, 58030 otherwise.
#[cold]
fn file_error(what: &str, path: &Path, error: &std::io::Error) -> EngineError {
    let sqlstate = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => "53100",
        std::io::ErrorKind::FileTooLarge => "53400",
        _ => "58030",
    };
    EngineError::new(
        SqlState::from_code(sqlstate),
        format!("{what} temporary files in {}: {error}", path.display()),
    )
    .with_hint("A larger work_mem needs fewer temporary files.")
}
