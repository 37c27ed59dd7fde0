//! The structures that the end of a transaction works on, in memory: for tests of the commit path over the shipped
//! parts.

#![allow(dead_code, reason = "each suite uses its part")]

use std::sync::Arc;
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::{Machine, Switch};
use clearway_storage::wal::{LogFlushVariant, LogInsertVariant, LogOptions, Wal};
use clearway_storage::{
    AnswerLevel, CommitOptions, CommitOrderVariant, CommitPath, CommitStates, CommitVariants, Commits,
    LockReleaseVariant, Lsn, SeenCommits, SessionSnapshot,
};
use clearway_txn::{
    CommitLog, CommitLogOptions, LockManager, NoPages, ProcArray, ProcArrayOptions, ProcClearVariant, ProcId,
    RelationLocksVariant, Snapshot, SnapshotVariant, Xid,
};

use crate::support::MemoryDevice;

pub const ALICE: ProcId = ProcId(0);
pub const BOB: ProcId = ProcId(1);
pub const CAROL: ProcId = ProcId(2);

/// The first xid handed out.
pub const FIRST: Xid = Xid(100);
/// The start of the log.
pub const START: Lsn = Lsn(64);

/// The variants that a database is built with.
#[derive(Debug, Clone, Copy)]
pub struct Variants {
    pub array: ProcArrayOptions,
    pub commit_log: CommitLogOptions,
    pub log: LogOptions,
    pub relation_locks: RelationLocksVariant,
    pub lock_release: LockReleaseVariant,
    pub commit_order: CommitOrderVariant,
}

impl Variants {
    /// The default, and those that differ from it in a switch of the commit path.
    pub fn each() -> Vec<Self> {
        let log = LogOptions {
            lwlock: LwLockVariant::SingleCas.into(),
            ring_size: 256,
            insert_latches: 2,
            ..LogOptions::default()
        };
        let default = Self {
            array: ProcArrayOptions::default(),
            commit_log: CommitLogOptions::default(),
            log,
            relation_locks: RelationLocksVariant::default(),
            lock_release: LockReleaseVariant::default(),
            commit_order: CommitOrderVariant::default(),
        };
        let mut each: Vec<_> = ProcArrayOptions::each_variant()
            .map(|array| Self { array, ..default })
            .collect();
        let commit_logs = CommitLogOptions::each_variant().map(|commit_log| Self {
            commit_log,
            ..default
        });
        each.extend(commit_logs.filter(|variants| variants.commit_log != default.commit_log));
        // How a record gets into the log matters to a commit less than when it is durable: one switch at a time there.
        let logs = log.under_all_variants().filter(|other| {
            let inserts_alike = other.insert == log.insert;
            let rest_alike = (other.reserve, other.flush) == (log.reserve, log.flush);
            // Which worker wakes a group is the log's own business.
            inserts_alike != rest_alike && other.wake == log.wake
        });
        each.extend(logs.map(|log| Self { log, ..default }));
        let locks = RelationLocksVariant::ALL.iter().map(|&relation_locks| Self {
            relation_locks,
            ..default
        });
        each.extend(locks.filter(|variants| variants.relation_locks != default.relation_locks));
        let releases = LockReleaseVariant::ALL.iter().map(|&lock_release| Self {
            lock_release,
            ..default
        });
        each.extend(releases.filter(|variants| variants.lock_release != default.lock_release));
        // Commits that leave by themselves take other steps under each release.
        let unordered = LockReleaseVariant::ALL.iter().map(|&lock_release| Self {
            lock_release,
            commit_order: CommitOrderVariant::Unordered,
            ..default
        });
        each.extend(unordered);
        each
    }

    /// Each way to take a snapshot, to leave the array and to insert a record, under each way to release locks: all that
    /// has to do with the order in which commits are seen.
    pub fn each_order_of_commits() -> Vec<Self> {
        let default = Self::each()[0];
        let arrays = SnapshotVariant::ALL.iter().flat_map(|&snapshot| {
            let clears = ProcClearVariant::ALL.iter();
            clears.map(move |&clear| ProcArrayOptions {
                snapshot,
                clear,
                ..default.array
            })
        });
        let inserted = arrays.flat_map(|array| {
            let inserts = LogInsertVariant::ALL.iter();
            inserts.map(move |&insert| {
                (
                    array,
                    LogOptions {
                        insert,
                        ..default.log
                    },
                )
            })
        });
        let pairs = inserted.flat_map(|(array, log)| {
            let releases = LockReleaseVariant::ALL.iter();
            releases.map(move |&lock_release| Self {
                array,
                log,
                lock_release,
                ..default
            })
        });
        pairs.collect()
    }

    /// Each way to flush the log under each way to release locks: both decide when a session learns that a commit is
    /// durable.
    pub fn each_flush_and_release() -> Vec<Self> {
        let default = Self::each()[0];
        let pairs = LogFlushVariant::ALL.iter().flat_map(|&flush| {
            let releases = LockReleaseVariant::ALL.iter();
            releases.map(move |&lock_release| Self {
                log: LogOptions { flush, ..default.log },
                lock_release,
                ..default
            })
        });
        pairs.collect()
    }
}

/// A database of transactions alone.
pub struct Database<M: Machine> {
    pub log: Wal<M, MemoryDevice>,
    pub commit_log: CommitLog<M, NoPages>,
    pub array: Arc<ProcArray<M>>,
    pub locks: LockManager<M>,
    pub commits: Commits<M>,
}

impl<M: Machine> Database<M> {
    /// With `sessions` attached, numbered from 0.
    pub fn new(variants: Variants, sessions: u32) -> Self {
        let device = MemoryDevice::default();
        device.0.lock().unwrap().synced = START.0;
        let array = Arc::new(ProcArray::new(sessions, variants.array, FIRST));
        for number in 0..sessions {
            assert_eq!(array.attach(), Ok(ProcId(number)));
        }
        Self {
            log: Wal::new(device, variants.log, START, START),
            commit_log: CommitLog::new(NoPages, variants.commit_log),
            locks: LockManager::new(
                Arc::clone(&array),
                LwLockVariant::SingleCas,
                variants.relation_locks,
                Duration::MAX,
            ),
            array,
            // All xids share one slot.
            commits: Commits::new(CommitOptions {
                recent_slots: 1,
                ..CommitOptions::new(
                    sessions,
                    CommitVariants {
                        lock_release: variants.lock_release,
                        order: variants.commit_order,
                    },
                )
            }),
        }
    }

    /// The shipped end of a transaction over these parts.
    pub fn path(&self) -> CommitPath<'_, M, MemoryDevice, NoPages> {
        CommitPath {
            log: &self.log,
            commit_log: &self.commit_log,
            locks: &self.locks,
            commits: &self.commits,
            wall_clock: || 0,
        }
    }

    /// The notes of a session of `synchronous_commit` that answers with rows of the snapshot just taken.
    pub fn seen(&self, waits: bool) -> SeenCommits {
        let seen = SeenCommits::default();
        seen.set_level(AnswerLevel::local(waits));
        seen.begin_statement(true);
        seen
    }

    /// The shipped boundary between readers and the states of transactions, over these parts.
    pub fn states(&self) -> CommitStates<'_, M, MemoryDevice, NoPages> {
        CommitStates {
            log: &self.log,
            commit_log: &self.commit_log,
            array: &self.array,
            commits: &self.commits,
        }
    }

    /// A snapshot for the answers of `proc`.
    pub fn session_snapshot(&self, proc: ProcId) -> SessionSnapshot {
        let mut snapshot = SessionSnapshot::default();
        snapshot.take(&self.commits, &self.log, |snapshot| {
            self.array.snapshot(proc, snapshot)
        });
        snapshot
    }

    /// A snapshot for `proc`.
    pub fn snapshot(&self, proc: ProcId) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.array.snapshot(proc, &mut snapshot);
        snapshot
    }
}
