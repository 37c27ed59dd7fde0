//! Step 4 of a standby: the files that it has beside its copy of the primary's.

use std::path::Path;
use std::sync::Arc;

use clearway_txn::Xid;

use super::recovery::ScannedLog;
use crate::disk::Disk;
use crate::error::Result;
use crate::files::control_file::{Control, State};
use crate::files::status_journal::{StatusImage, StatusJournal};
use crate::files::status_pages::StatusPages;
use crate::replication::standby_state::{Acknowledged, Standby, StandbyFiles, StandbyOptions};
use crate::storage::StorageOptions;

/// The state of a standby, and what its files tell.
pub(super) struct OpenedState {
    pub(super) standby: Arc<Standby>,
    /// The commit log's pages, which are journalled from now on.
    pub(super) status: StatusPages,
    /// The page of the commit log that was being written last.
    pub(super) journalled: Option<StatusImage>,
}

/// Opens the files that a standby has beside its copy of the primary's.
pub(super) fn open(
    disk: &dyn Disk,
    dir: &Path,
    options: &StorageOptions,
    standby_options: StandbyOptions,
    status: StatusPages,
    control: Control,
    scanned: &ScannedLog,
) -> Result<OpenedState> {
    // The journal's opening syncs the names of both.
    let begins = control.state != State::Standby;
    let acknowledged = Acknowledged::open(disk, dir, options.fsync, begins)?;
    if scanned.end < acknowledged.position() {
        tracing::error!(
            end = %scanned.end, acknowledged = %acknowledged.position(),
            "log that was received and acknowledged is damaged; it has to be sent again from there on, and a \
             promotion is refused until then"
        );
    }
    let (journal, journalled) = StatusJournal::open(disk, dir, options.fsync)?;
    let journal = Arc::new(journal);
    let status = status.with_journal(Arc::clone(&journal));
    let files = StandbyFiles {
        status: status.clone(),
        journal,
        acknowledged,
    };
    let newest = Xid(control.next_xid.0 - 1);
    let (sessions_max, lwlock) = (options.sessions_max, options.proc_array.lwlock);
    let (end, link) = (scanned.end, scanned.link);
    let standby = Standby::new(standby_options, sessions_max, lwlock, files, end, link, newest);
    Ok(OpenedState {
        standby: Arc::new(standby),
        status,
        journalled,
    })
}
