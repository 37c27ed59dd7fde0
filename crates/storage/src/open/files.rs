//! Step 3: the relations' files, and the names in the directory.

use std::path::Path;
use std::sync::Arc;

use super::Opening;
use super::directory::EnteredDirectory;
use super::log::FoundLog;
use crate::disk::{self, Disk, SyncPurpose};
use crate::error::{Result, StorageError};
use crate::files::control_file::State;
use crate::files::data_directory;
use crate::files::data_file::DataFiles;
use crate::page::RelId;

/// Opens the relations' files; a new database gets its first ones. After this the control file may say that the database
/// is made.
pub(super) fn open(
    opening: &Opening<'_>,
    directory: &EnteredDirectory,
    log: &FoundLog,
) -> Result<Arc<DataFiles>> {
    let options = &opening.options;
    let files = DataFiles::new(
        Arc::clone(&opening.disk),
        opening.dir.join(data_directory::RELATIONS),
        options.fsync,
        options.open_files_max,
        &log.scanned.lengths,
    )?;
    if directory.control.state == State::Initialising {
        for rel in [RelId::COMMIT_LOG, RelId::CATALOG] {
            files.create(rel)?;
        }
    }
    if options.fsync {
        sync_names(&*opening.disk, opening.dir)?;
    }
    Ok(Arc::new(files))
}

/// Makes the names in the data directory durable, and the directory's own name. Each start does this, because
/// the process that made the names may have been killed before it could.
fn sync_names(disk: &dyn Disk, dir: &Path) -> Result<()> {
    let names = disk
        .open_directory(dir)
        .and_then(|names| names.sync(SyncPurpose::DataDirectory));
    names.map_err(|error| StorageError::io("sync directory", dir, error))?;
    disk::sync_name_found(disk, dir)
        .map_err(|error| StorageError::io("sync the parent directory of", dir, error))
}
