//! Step 2: the log and its end.

use std::sync::Arc;

use super::directory::EnteredDirectory;
use super::recovery::{LogToScan, PreparedTarget, Purpose, ScannedLog};
use super::{OpenAs, Opening};
use crate::error::{Result, StorageError};
use crate::files::data_directory;
use crate::records;
use crate::wal::SegmentFiles;
use crate::wal::timeline::{self, SharedHistory};

/// The log of a directory, of which the end is known.
pub(super) struct FoundLog {
    pub(super) device: SegmentFiles,
    pub(super) history: Arc<SharedHistory>,
    pub(super) scanned: ScannedLog,
    /// The point that it ends at, if it is one.
    pub(super) target: Option<PreparedTarget>,
}

/// Finds the log's end, or the point of it that is wanted.
pub(super) fn find(opening: &Opening<'_>, directory: &EnteredDirectory) -> Result<FoundLog> {
    let (disk, fsync, control) = (&opening.disk, opening.options.fsync, directory.control);
    let wal_dir = opening.dir.join(data_directory::LOG);
    let target = match opening.open_as {
        OpenAs::Recovered(target) => Some(target.prepare(disk, &wal_dir, fsync, &control)?),
        _ => None,
    };
    let history = SharedHistory::new(match &target {
        Some(target) => target.history().clone(),
        None => timeline::read(&**disk, &wal_dir, control.timeline)?,
    });
    let device =
        SegmentFiles::open_on_timeline(Arc::clone(disk), wal_dir.clone(), fsync, Arc::clone(&history))
            .and_then(|files| files.synced_by(opening.options.log.sync))
            .map_err(|error| StorageError::io("open", &wal_dir, error))?;
    // A standby's directory is also opened to be looked at, without being one.
    let purpose = match opening.open_as.standby() {
        Some(_) => Purpose::Standby,
        None => Purpose::of(&control),
    };
    let control_path = directory.control_file.path();
    let log = LogToScan {
        device: &device,
        wal_dir: &wal_dir,
        control,
        control_path,
        purpose,
        target: target.as_ref(),
    };
    let scanned = log.scan()?;
    // O6 of `wal::own_records`.
    let own_is_refused = opening.options.own_records.is_none();
    let first_own = scanned.first_own.filter(|_| own_is_refused);
    if let Some((kind, start)) = scanned.first_unknown.or(first_own) {
        return Err(records::unknown(kind, start));
    }
    Ok(FoundLog {
        device,
        history,
        scanned,
        target,
    })
}
