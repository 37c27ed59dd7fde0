//! Step 4: the parts of a [`Storage`].

use std::sync::Arc;

use clearway_txn::{CommitLog, LockManager, ProcArray};

use super::directory::EnteredDirectory;
use super::log::FoundLog;
use super::recovery::{PreparedTarget, ScannedLog};
use super::{Opening, standby_files};
use crate::buffer::{BufferPool, PagesOnDisk};
use crate::commit::{CommitOptions, Commits};
use crate::error::Result;
use crate::files::control_file::State;
use crate::files::data_file::DataFiles;
use crate::files::status_journal::StatusJournal;
use crate::files::status_pages::{StatusPages, storage_error};
use crate::page::Lsn;
use crate::replication::retention::LogRetention;
use crate::replication::sync_replication::SyncReplication;
use crate::storage::{Storage, StorageParts};
use crate::wal::Wal;
use crate::wal::link::LogLink;

/// A storage whose log is not replayed yet.
pub(super) struct Assembled {
    pub(super) storage: Storage,
    pub(super) status: StatusPages,
    pub(super) scanned: ScannedLog,
    pub(super) target: Option<PreparedTarget>,
}

/// Makes a storage of its parts.
pub(super) fn assemble(
    opening: Opening<'_>,
    directory: EnteredDirectory,
    log: FoundLog,
    files: Arc<DataFiles>,
) -> Result<Assembled> {
    let Opening {
        disk,
        dir,
        options,
        open_as,
    } = opening;
    let control = directory.control;
    let FoundLog {
        device,
        history,
        scanned,
        target,
    } = log;
    let sync_replication = Arc::new(SyncReplication::starting_at(scanned.end));
    let retention = Arc::new(LogRetention::open(
        Arc::clone(&disk),
        dir,
        options.fsync,
        options.log_retention,
        Lsn(device.whole_from(scanned.redo.0)),
        history,
        Arc::clone(&sync_replication),
    )?);
    let link = scanned.link.unwrap_or(LogLink::FIRST);
    let wal = Wal::continuing(device, options.log, scanned.end, link, scanned.redo);
    let wal = Arc::new(wal);
    let commits = Arc::new(Commits::with_replication(
        CommitOptions::new(options.sessions_max, options.commits),
        Arc::clone(&sync_replication),
    ));
    let on_disk = PagesOnDisk {
        files: Arc::clone(&files),
        wal: Arc::clone(&wal),
        commits: Arc::clone(&commits),
    };
    let pool = BufferPool::new(options.buffer_bytes, options.pool, on_disk);
    let mut status = StatusPages::new(Arc::clone(&files), Arc::clone(&wal));
    let (standby, journalled) = match open_as.standby() {
        Some(standby_options) => {
            let opened =
                standby_files::open(&*disk, dir, &options, standby_options, status, control, &scanned)?;
            status = opened.status;
            (Some(opened.standby), opened.journalled)
        }
        // As the standby left it, perhaps in the middle of a write.
        None if control.state == State::Standby => (None, StatusJournal::read(&*disk, dir)?),
        None => (None, None),
    };
    let commit_log = CommitLog::new(status.clone(), options.commit_log);
    let proc_array = ProcArray::new(options.sessions_max, options.proc_array, scanned.next_xid);
    let proc_array = Arc::new(proc_array);
    let locks = LockManager::with_options(Arc::clone(&proc_array), options.locks);
    let storage = Storage::from(StorageParts {
        lock: directory.lock,
        dir: dir.to_owned(),
        system_identifier: control.system_identifier,
        control_file: directory.control_file,
        next_rel: scanned.next_rel,
        options,
        files,
        wal,
        retention,
        sync_replication,
        commits,
        pool,
        commit_log,
        proc_array,
        locks,
        standby,
    });
    if let Some((number, content)) = journalled {
        let merged = storage.commit_log.merge_page(number, &content);
        merged.map_err(storage_error)?;
        status.healed(number);
    }
    Ok(Assembled {
        storage,
        status,
        scanned,
        target,
    })
}
