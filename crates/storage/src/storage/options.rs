//! The options of an open database.

use std::time::Duration;

use clearway_latch::LwLockOptions;
use clearway_txn::{
    CommitLogVariant, ProcArrayLatchVariant, ProcClearVariant, RelationLocksVariant, SnapshotVariant,
};

use super::page_room::PageRoomVariant;
use crate::buffer::{BufferClockVariant, BufferMapVariant, PageLatchVariant, PageReadVariant};
use crate::commit::{CommitOrderVariant, LockReleaseVariant};
use crate::replication::retention::RetentionLimits;
use crate::wal::{LogFlushVariant, LogInsertVariant, LogReserveVariant, LogWakeVariant};

/// The options with which a data directory is opened.
#[derive(Debug, Clone)]
pub struct StorageOptions {
    /// Bytes of the buffer pool.
    pub buffer_bytes: usize,
    /// Sessions that can be attached at once.
    pub sessions_max: u32,
    /// The options of every LwLock.
    pub lwlock: LwLockOptions,
    /// The latch that guards a page's content.
    pub page_latch: PageLatchVariant,
    /// The way in which a descent, and the lookup of a row, read a page.
    pub page_read: PageReadVariant,
    /// The way in which the frame of a page is found.
    pub buffer_map: BufferMapVariant,
    /// The way in which a page that is not in memory gets a frame.
    pub buffer_clock: BufferClockVariant,
    /// The place where an update on a full page finds room.
    pub page_room: PageRoomVariant,
    /// The latch that guards the array of running transactions.
    pub proc_array_latch: ProcArrayLatchVariant,
    /// The way in which a log record gets its position.
    pub log_reserve: LogReserveVariant,
    /// The way in which a log record gets into memory.
    pub log_insert: LogInsertVariant,
    /// The way in which the log reaches the disk.
    pub log_flush: LogFlushVariant,
    /// The worker that wakes a group of commits that is durable.
    pub log_wake: LogWakeVariant,
    /// The way in which a snapshot is taken.
    pub snapshot: SnapshotVariant,
    /// The way in which a transaction leaves the array of running ones.
    pub proc_clear: ProcClearVariant,
    /// The protection of the commit log's pages.
    pub commit_log: CommitLogVariant,
    /// The time at which a commit is seen by others and its locks are free.
    pub lock_release: LockReleaseVariant,
    /// The order in which commits are seen.
    pub commit_order: CommitOrderVariant,
    /// The place of relation locks.
    pub relation_locks: RelationLocksVariant,
    /// True if writes are made durable. Without it a power failure loses data; a kill -9 does not.
    pub fsync: bool,
    /// A worker that has waited longer than this looks for a deadlock.
    pub deadlock_timeout: Duration,
    /// A log flush sleeps this long first, so that more commits join it.
    pub commit_delay: Duration,
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
}

impl Default for StorageOptions {
    fn default() -> Self {
        Self {
            buffer_bytes: 128 << 20,
            sessions_max: 600,
            lwlock: LwLockOptions::default(),
            page_latch: PageLatchVariant::default(),
            page_read: PageReadVariant::default(),
            buffer_map: BufferMapVariant::default(),
            buffer_clock: BufferClockVariant::default(),
            page_room: PageRoomVariant::default(),
            proc_array_latch: ProcArrayLatchVariant::default(),
            log_reserve: LogReserveVariant::default(),
            log_insert: LogInsertVariant::default(),
            log_flush: LogFlushVariant::default(),
            log_wake: LogWakeVariant::default(),
            snapshot: SnapshotVariant::default(),
            proc_clear: ProcClearVariant::default(),
            commit_log: CommitLogVariant::default(),
            lock_release: LockReleaseVariant::default(),
            commit_order: CommitOrderVariant::default(),
            relation_locks: RelationLocksVariant::default(),
            fsync: true,
            deadlock_timeout: Duration::from_secs(1),
            commit_delay: Duration::ZERO,
            checkpoint_timeout: Duration::from_secs(300),
            wal_bytes_max: 1 << 30,
            wal_writer_delay: Duration::from_millis(10),
            running_interval: Duration::from_secs(15),
            log_retention: RetentionLimits::default(),
            open_files_max: 800,
            group_access: false,
        }
    }
}
