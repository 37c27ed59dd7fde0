//! Step 4: the parts of a [`Storage`].

use std::sync::Arc;

use clearway_txn::{CommitLog, CommitLogOptions, LockManager, ProcArray, ProcArrayOptions};

use super::directory::EnteredDirectory;
use super::log::FoundLog;
use super::recovery::{PreparedTarget, ScannedLog};
use super::{Opening, standby_files};
use crate::buffer::{BufferPool, BufferPoolOptions, PagesOnDisk};
use crate::commit::{CommitOptions, Commits};
use crate::error::Result;
use crate::files::control_file::State;
use crate::files::data_file::DataFiles;
use crate::files::status_journal::StatusJournal;
use crate::files::status_pages::{StatusPages, storage_error};
use crate::page::Lsn;
use crate::replication::retention::LogRetention;
use crate::replication::sync_replication::SyncReplication;
use crate::storage::{Storage, StorageOptions, StorageParts};
use crate::wal::link::LogLink;
use crate::wal::{LogOptions, SegmentFiles, Wal};

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
    let wal = open_log(&options, device, &scanned);
    let commits = Arc::new(Commits::with_replication(
        CommitOptions::new(options.sessions_max, options.lock_release, options.commit_order),
        Arc::clone(&sync_replication),
    ));
    let on_disk = PagesOnDisk {
        files: Arc::clone(&files),
        wal: Arc::clone(&wal),
        commits: Arc::clone(&commits),
    };
    let pool = open_pool(&options, on_disk);
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
    let commit_log_options = CommitLogOptions {
        variant: options.commit_log,
        lwlock: options.lwlock,
    };
    let commit_log = CommitLog::new(status.clone(), commit_log_options);
    let (proc_array, locks) = open_transactions(&options, &scanned);
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

fn open_log(options: &StorageOptions, device: SegmentFiles, scanned: &ScannedLog) -> Arc<Wal> {
    let log = LogOptions {
        lwlock: options.lwlock,
        reserve: options.log_reserve,
        insert: options.log_insert,
        flush: options.log_flush,
        wake: options.log_wake,
        commit_delay: options.commit_delay,
        ..LogOptions::default()
    };
    let link = scanned.link.unwrap_or(LogLink::FIRST);
    Arc::new(Wal::continuing(device, log, scanned.end, link, scanned.redo))
}

fn open_pool(options: &StorageOptions, on_disk: PagesOnDisk) -> BufferPool {
    let pool = BufferPoolOptions {
        map: options.buffer_map,
        clock: options.buffer_clock,
        page_latch: options.page_latch,
        page_read: options.page_read,
        lwlock: options.lwlock,
    };
    BufferPool::new(options.buffer_bytes, pool, on_disk)
}

fn open_transactions(options: &StorageOptions, scanned: &ScannedLog) -> (Arc<ProcArray>, LockManager) {
    let array = ProcArrayOptions {
        latch: options.proc_array_latch,
        snapshot: options.snapshot,
        clear: options.proc_clear,
        lwlock: options.lwlock,
    };
    let proc_array = Arc::new(ProcArray::new(options.sessions_max, array, scanned.next_xid));
    let locks = LockManager::new(
        Arc::clone(&proc_array),
        options.lwlock,
        options.relation_locks,
        options.deadlock_timeout,
    );
    (proc_array, locks)
}
