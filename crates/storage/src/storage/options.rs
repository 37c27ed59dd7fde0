//! The options of an open database.
//!
//! Each mechanism has its own, with its switches. So a new switch of one of them is unknown here, and to opening.

use std::sync::Arc;
use std::time::Duration;

use clearway_latch::LwLockOptions;
use clearway_txn::{CommitLogOptions, LockOptions, ProcArrayOptions};

use super::page_room::PageRoomVariant;
use crate::buffer::BufferPoolOptions;
use crate::commit::CommitVariants;
use crate::replication::retention::RetentionLimits;
use crate::wal::LogOptions;
use crate::wal::own_records::OwnRecords;

/// The options with which a data directory is opened.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// Sessions that can be attached at once.
    pub sessions_max: u32,
    /// Bytes of the buffer pool.
    pub buffer_bytes: usize,
    /// The buffer pool.
    pub pool: BufferPoolOptions,
    /// The place where an update on a full page finds room.
    pub page_room: PageRoomVariant,
    /// The log.
    pub log: LogOptions,
    /// The array of running transactions. A standby's known xids have the same LwLocks.
    pub proc_array: ProcArrayOptions,
    /// The protection of the commit log's pages.
    pub commit_log: CommitLogOptions,
    /// Relation locks, tuple locks, waits for transactions.
    pub locks: LockOptions,
    /// The end of a transaction.
    pub commits: CommitVariants,
    /// True if writes are made durable. Without it a power failure loses data; a kill -9 does not.
    pub fsync: bool,
    /// A checkpoint starts this long after the last one.
    pub checkpoint_timeout: Duration,
    /// A checkpoint starts when the log has grown by this many bytes since the last one.
    pub wal_bytes_max: u64,
    /// Commits that do not wait for the disk are made durable this often.
    pub wal_writer_delay: Duration,
    /// A record of the running transactions is logged this often, if anything was logged meanwhile; checkpoints log one in
    /// any case.
    pub running_interval: Duration,
    /// The limits of the log that is kept for those who copy it.
    pub log_retention: RetentionLimits,
    /// Data files that are open at a time, at most; others are opened again when they are used.
    pub open_files_max: usize,
    /// True if the owner's group may read a data directory that is made.
    pub group_access: bool,
    /// The structures of the program's own that are kept by the log, if there are any.
    pub own_records: Option<Arc<dyn OwnRecords>>,
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            sessions_max: 600,
            buffer_bytes: 128 << 20,
            pool: BufferPoolOptions::default(),
            page_room: PageRoomVariant::default(),
            log: LogOptions::default(),
            proc_array: ProcArrayOptions::default(),
            commit_log: CommitLogOptions::default(),
            locks: LockOptions::default(),
            commits: CommitVariants::default(),
            fsync: true,
            checkpoint_timeout: Duration::from_secs(300),
            wal_bytes_max: 1 << 30,
            wal_writer_delay: Duration::from_millis(10),
            running_interval: Duration::from_secs(15),
            log_retention: RetentionLimits::default(),
            open_files_max: 800,
            group_access: false,
            own_records: None,
        }
    }
}

impl StorageOptions {
    /// Gives every LwLock these options.
    pub fn set_lwlock(&mut self, lwlock: LwLockOptions) {
        self.pool.lwlock = lwlock;
        self.log.lwlock = lwlock;
        self.proc_array.lwlock = lwlock;
        self.commit_log.lwlock = lwlock;
        self.locks.lwlock = lwlock;
    }
}
