//! The end of a transaction that has an xid: commit and abort, in the one order in which their steps are sound,
//! and in the one order in which commits are seen: that of the log.
//!
//! A commit changes five shared structures: the log, the commit log, the definitions, the array of running
//! transactions, and the lock table. No latch covers them all, so other sessions see each step by itself, and a crash
//! may come between any two.
//!
//! # An example
//! Alice's transaction 100 has inserted a row. She commits, and leaves the array before the commit log
//! says how she ended.
//!
//! | time | Alice | Bob |
//! | --- | --- | --- |
//! | 1 | her commit record is durable | |
//! | 2 | leaves the array | |
//! | 3 | | takes a snapshot: 100 does not run |
//! | 4 | | meets her row; the commit log says *in progress* of a transaction that does not run: cut off by a crash, so the row does not count |
//! | 5 | sets 100 to *committed* | |
//! | 6 | | meets the row again under the same snapshot, and now it counts |
//!
//! docs/mechanisms/commit.md has more such stories.
//!
//! # An example of two commits
//! Alice's commit record lies at 1000 in the log, Bob's at 1100. Alice waits for the disk before her commit is seen, and Bob
//! does not (`after-flush`, and Bob's session has `synchronous_commit = off`).
//!
//! | time | Alice | Bob | Carol, on the primary | Dave, on the standby |
//! | --- | --- | --- | --- | --- |
//! | 1 | record at 1000 | | | |
//! | 2 | waits for the disk | record at 1100 | | |
//! | 3 | | leaves the array | sees Bob's changes, and not Alice's | |
//! | 4 | | | | replay has come to 1050: sees Alice's changes, and not Bob's |
//!
//! Carol and Dave have seen two histories, and no order of the two commits explains both: a *long fork*. So at time
//! 3 Bob waits until Alice has left.
//!
//! # One order of commits
//! The promises of `commit_order = log` ([`order`]):
//! - O1: *commits become visible in the order of their records in the log*. A snapshot that regards a commit as finished
//!   regards each commit as finished whose record lies before. So each snapshot, on the primary and on each standby, is
//!   that of a position in the log, and any two of them are of one history.
//! - O2: a commit record gets its place in the log and its number in the order of commits in one step: under a latch that is
//!   held for the reservation alone (`commit_order` of the transactions' crate).
//! - O3: on a primary, commits leave the array in the order of their numbers (Q1 there). Snapshots, of each variant, agree
//!   with the order in which transactions leave (S2 of the snapshots), and so does a look as of now, which goes by the
//!   array.
//! - O4: on a standby, replay takes transactions out of the known xids in the order of the log, whichever workers change the
//!   pages, and a snapshot is of one moment (K1 of the known xids).
//! - O5: no commit is kept waiting by a row lock, by a table's lock, or by a client: what a commit waits for, between its
//!   record and its leaving, are commits in front of it, the disk, latches, and standbys.
//!
//! By O2 and O3 the order of leaving is that of the records, which is O1 on the primary; O4 is O1 on a standby. A rollback has
//! no place in the order, since no snapshot shows it.
//!
//! The cost of the order, beside the latch:
//!
//! | `lock_release` | commit | waits for commits in front of it that |
//! | --- | --- | --- |
//! | `early` | each | are between their record and their leaving, where they wait for latches alone; or make definitions or remove files, and are on their way to the disk |
//! | `after-flush` | one that waits for the disk | the same sync makes durable: no further wait, since any session takes them all out |
//! | | one that does not | are on their way to the disk: **it waits for one sync** as long as others wait for it |
//! | both, with synchronous standbys | each | wait for standbys before they are seen (`lock_release`, *Replication*), whatever its own session asks for |
//!
//! # The order of a commit
//! 1. The log has room on the disk, and the commit log's page of the xid is in memory. Everything that can be refused
//!    has been refused by now.
//! 2. The session's commit counter becomes odd ([`CommitCounters`]).
//! 3. The commit record enters the log, with the time ([`end_record`]), and the commit the order of commits (O2).
//! 4. The log is flushed up to there. A commit that does not wait for the disk notes the position instead, for the log
//!    writer and for rule B3 of `buffer`. From here on, or once the log writer has come by, the commit survives a
//!    crash.
//! 5. The commit log says *committed*. No session asks it yet: the xid still counts as running in every snapshot.
//! 6. The counter becomes even.
//! 7. If the transaction made definitions: the commits in front of it leave, and then the caller publishes them
//!    ([`BeforeVisible`]): all sessions see them.
//! 8. The xid leaves the array of running transactions, behind all commits in front of it (O3): the moment at which new
//!    snapshots see the changes. Another session may do that for this one, as soon as there is nothing left to do but to
//!    wait for the disk.
//! 9. Its locks are released, and the sessions that wait for the transaction are woken.
//!
//! An abort is 1 without a refusal, 3, 5 with *aborted*, 8 and 9. It needs neither counter nor flush: an xid of which
//! a crash leaves no trace counts as aborted. The caller forgets its definitions before.
//!
//! # Why no two steps can be swapped
//! | exchanged | what goes wrong |
//! | --- | --- |
//! | 1 and 3 | a full disk is met when the record may be durable already: the transaction is neither committed nor aborted |
//! | 2 and 3 | a checkpoint moves the redo position behind the record and finds the counter even: it ends without the status on disk, and recovery, which begins behind the record, takes the transaction for aborted |
//! | 3 and 8 | a transaction that was shown the changes commits, and its record lies in front: a crash, or a standby, has it without what it was built on |
//! | 4 and 8 | another session is shown a row and tells its client, and a power cut takes the row back. Without the note, that session sets a hint bit, and the page with it reaches the disk before the record does |
//! | 5 and 6 | as 2 and 3 |
//! | 5 and 8 | the example |
//! | 7 and 3 | a session goes by definitions of a transaction that is not in the log |
//! | 7 and 8 | a table is missing while rows of its transaction are seen |
//! | 7 and 9 | a session that waited for a table's lock plans with the old definition |
//! | 8 and 9 | a woken session finds the transaction running, sleeps again and is never woken; one that got the lock takes a snapshot in which the transaction still runs |
//!
//! 4 may come between 5 and 8 as well, and does, behind 6, in both variants of `lock_release`: a page of the commit log is
//! not written before the records of its commits are durable (R1 of the commit log), and no session asks for the status
//! before 8. 6 may come at any time after 5, and keeps a checkpoint waiting until then.
//!
//! # No way back
//! From 3 to 8 nothing may fail. A session that unwound would roll back what recovery finds committed, and would keep all
//! later commits waiting for its own; so a panic there ends the process, as a crash would. Everything that can be refused
//! is refused in 1.
//!
//! Between 7 and 8 a statement of another session may plan with a new index, whose table lock does not keep readers
//! away, and take a snapshot that does not see what the transaction has changed. The index lacks the versions which
//! that snapshot sees. So a statement compares its snapshot with its definitions, and takes a snapshot that lacks one
//! again after step 9 (`take_snapshot_for` of the engine's transaction).
//!
//! # Files
//! The files of dropped tables go after step 9. The file system does not wait for the log, so a commit that
//! removes files is synchronous whatever the session's setting: a crash that loses its record would bring back a
//! table whose rows are gone. An abort that removes the files it created needs no flush.
//!
//! # Where variants belong
//! - Leaving in groups (`proc_clear`) and entering statuses in groups (`commit_log`) are inside steps 8 and 5.
//! - [`order`]: `log` is the order of commits above. `unordered` has no O1: a commit draws no number in 3 and waits for no
//!   other in 7 and 8.
//! - [`lock_release`]: `after-flush` is the order above, with 4 behind 6; `early` does 4 last, with its note in the old place. The
//!   commit is then visible as one that does not wait for the disk is, and a session that was shown it waits before it
//!   answers. 3 stays before 8, so that a commit that builds on this one has its record behind. The table's row on 4
//!   and 8 holds all the same: what the other session is shown does not leave before the flush.
//! - A flush that returns later is 4 in two halves; [`CommitPath::commit`] returns the position to wait for.

pub mod answers;
mod before_visible;
mod counters;
pub mod end_record;
pub mod lock_release;
mod newest_commit;
pub mod order;
mod recent_commits;
mod unordered;
pub mod wall_clock;

use std::io;
use std::sync::Arc;

use clearway_machine::{Machine, Native};
use clearway_txn::{CommitLog, LockManager, ProcArray, ProcId, Status, StatusDevice, Xid};

pub use self::answers::{
    AnswerLevel, CommitStates, Gate, Reader, RowInHand, SeenCommits, SessionSnapshot, Unsecured,
};
pub use self::before_visible::{BeforeVisible, Publish};
pub use self::counters::CommitCounters;
pub use self::lock_release::{CommitWait, LockReleaseVariant};
use self::newest_commit::NewestCommit;
pub use self::order::CommitOrderVariant;
pub use self::recent_commits::RecentCommits;
use crate::files::status_pages::StatusPages;
use crate::page::Lsn;
use crate::replication::sync_replication::SyncReplication;
use crate::wal::record::RecordKind;
use crate::wal::{LogDevice, RecordOrder, SegmentFiles, Wal};

/// Slots of the recent commits for each session: asynchronous commits in flight per session before two share a slot.
const RECENT_SLOTS_A_SESSION: usize = 64;

/// The log writer writes the log out when more than this many bytes are not yet durable.
const UNWRITTEN_MAX: u64 = 1 << 20;

/// The variants of a transaction's end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitVariants {
    /// The time at which a commit is seen by others and its locks are free: the switch `lock_release`.
    pub lock_release: LockReleaseVariant,
    /// The order in which commits are seen: the switch `commit_order`.
    pub order: CommitOrderVariant,
}

/// The options of commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitOptions {
    /// Sessions that can be attached at once.
    pub sessions: u32,
    /// The variants.
    pub variants: CommitVariants,
    /// Slots of the recent commits, a power of two; `early` has them, and `after-flush` for a log that is replicated.
    pub recent_slots: usize,
}

impl CommitOptions {
    /// For this many sessions.
    pub fn new(sessions: u32, variants: CommitVariants) -> Self {
        Self {
            sessions,
            variants,
            recent_slots: (sessions as usize * RECENT_SLOTS_A_SESSION).next_power_of_two(),
        }
    }
}

/// State that the commits of a database share, beside the structures that they change.
#[derive(Debug)]
pub struct Commits<M: Machine = Native> {
    counters: CommitCounters<M>,
    newest_async: NewestCommit<M>,
    newest_early: NewestCommit<M>,
    are_early: bool,
    in_order: bool,
    /// There under `early`, and if standbys may be named that commits wait for.
    recent: Option<RecentCommits<M>>,
    /// There if standbys may be named that commits wait for.
    replication: Option<Arc<SyncReplication<M>>>,
}

impl<M: Machine> Commits<M> {
    /// With no commit under way.
    pub fn new(options: CommitOptions) -> Self {
        let is_early = options.variants.lock_release == LockReleaseVariant::Early;
        Self {
            counters: CommitCounters::new(options.sessions),
            newest_async: NewestCommit::new(),
            newest_early: NewestCommit::new(),
            are_early: is_early,
            in_order: options.variants.order == CommitOrderVariant::Log,
            recent: is_early.then(|| RecentCommits::new(options.recent_slots)),
            replication: None,
        }
    }

    /// As [`new`](Self::new), for a log that is replicated.
    pub fn with_replication(options: CommitOptions, replication: Arc<SyncReplication<M>>) -> Self {
        Self {
            replication: Some(replication),
            recent: Some(RecentCommits::new(options.recent_slots)),
            ..Self::new(options)
        }
    }

    /// Up to where commits are as safe as sessions can ask for: durable, and replicated if standbys are named.
    #[inline]
    pub fn secured<D: LogDevice>(&self, log: &Wal<M, D>) -> Lsn {
        let durable = log.flushed();
        match self
            .replication
            .as_ref()
            .and_then(|replication| replication.secured())
        {
            None => durable,
            Some(replicated) => durable.min(replicated),
        }
    }

    /// The counters that a checkpoint waits for.
    pub fn counters(&self) -> &CommitCounters<M> {
        &self.counters
    }

    /// The position after the newest commit that did not wait for the disk: what the log writer flushes.
    pub fn newest_async(&self) -> Lsn {
        self.newest_async.get()
    }

    /// One turn of the log writer: makes the commits durable that do not wait for the disk, and what sessions have asked
    /// for that are not to wait in the kernel.
    pub fn flush_in_background<D: LogDevice>(&self, log: &Wal<M, D>) {
        let reserved = log.reserved();
        let upto = if reserved.0 - log.flushed().0 > UNWRITTEN_MAX {
            // A large transaction: its records are written out early, so that it does not find the log's buffer full.
            reserved
        } else {
            self.newest_async().max(log.wanted())
        };
        log.flush(upto);
    }

    /// The position after the newest commit that was seen before it was durable.
    pub fn newest_early(&self) -> Lsn {
        if self.are_early {
            self.newest_early.get()
        } else {
            self.newest_async()
        }
    }

    /// The position after the newest commit that was seen before it was secured, and can be looked up.
    pub fn newest_unsecured(&self) -> Lsn {
        self.newest_early.get()
    }

    /// True if commits are seen, and their locks free, before they are durable: the switch `lock_release` is `early`.
    #[inline]
    pub fn are_early(&self) -> bool {
        self.are_early
    }

    /// True if a commit is secured as soon as it is durable: no standby is named that has to have it.
    pub fn are_secured_by_the_disk(&self) -> bool {
        self.replication
            .as_ref()
            .is_none_or(|replication| !replication.is_configured())
    }

    /// True if readers look commits up: under `early`, and under `after-flush` while standbys are named (L7 of
    /// `lock_release`).
    #[inline]
    pub fn are_looked_up(&self) -> bool {
        self.are_early || !self.are_secured_by_the_disk()
    }

    /// True if a snapshot taken before the call may see a commit that is not secured.
    #[inline]
    pub fn may_be_seen_early<D: LogDevice>(&self, log: &Wal<M, D>) -> bool {
        self.are_looked_up() && self.newest_unsecured() > self.secured(log)
    }

    /// The commit of `xid`, whose record ends at `end`, is going to be seen before it is durable (L4).
    #[inline]
    pub fn enter_early<D: LogDevice>(&self, xid: Xid, end: Lsn, log: &Wal<M, D>) {
        // C2 of the recent commits: the newest position first.
        self.newest_early.note(end);
        if let Some(recent) = &self.recent {
            recent.enter(xid, end, self.secured(log), || self.newest_unsecured());
        }
    }

    /// Up to where the log has to be secured for the commit of `xid` to be, which the caller counts as committed;
    /// `None` if it is. `after-flush` knows nothing of commits that do not wait for the disk while no standby is named.
    #[inline]
    pub fn position_if_early<D: LogDevice>(&self, xid: Xid, log: &Wal<M, D>) -> Option<Lsn> {
        let recent = self.recent.as_ref().filter(|_| self.are_looked_up())?;
        recent.position(xid, || self.secured(log), || self.newest_unsecured())
    }
}

/// The reason why a transaction was not committed. Nothing was logged, and it still runs.
#[derive(Debug, thiserror::Error)]
pub enum NotCommitted {
    /// The log has no room.
    #[error("the log could not be extended: {0}")]
    NoLogRoom(#[source] io::Error),
    /// The page for the transaction's status cannot be read.
    #[error("the commit log could not be read: {0}")]
    NoStatusPage(#[source] io::Error),
}

/// A commit whose record may be in the log: there is no way back. If its session unwinds, the process ends, and recovery
/// finds out. Otherwise the session would go on to roll back what has committed, or leave all later commits waiting.
#[derive(Debug)]
struct LoggedCommit {
    xid: Xid,
}

impl LoggedCommit {
    /// The commit is seen.
    #[inline]
    fn complete(self) {
        std::mem::forget(self);
    }
}

impl Drop for LoggedCommit {
    #[cold]
    fn drop(&mut self) {
        clearway_machine::fatal(format_args!(
            "the commit of xid {} failed between its record and its being seen; stopping, since it can be neither \
             finished nor taken back",
            self.xid
        ));
    }
}

/// O2: commit records have their places in the order in which their transactions leave the array.
struct OrderOfCommits<'a, M: Machine> {
    array: &'a ProcArray<M>,
    proc: ProcId,
}

impl<M: Machine> RecordOrder for OrderOfCommits<'_, M> {
    #[inline]
    fn enter<R>(&self, reserve: impl FnOnce() -> (R, bool)) -> R {
        self.array.enter_commit(self.proc, reserve)
    }
}

/// The structures that the end of a transaction changes, borrowed from their owners. The array of running transactions
/// is the lock table's.
#[derive(Debug)]
pub struct CommitPath<'a, M: Machine = Native, D: LogDevice = SegmentFiles, S: StatusDevice = StatusPages> {
    /// The log.
    pub log: &'a Wal<M, D>,
    /// The ends of transactions.
    pub commit_log: &'a CommitLog<M, S>,
    /// Locks, and waits for the end of transactions.
    pub locks: &'a LockManager<M>,
    /// State that commits share.
    pub commits: &'a Commits<M>,
    /// Now, in microseconds since 2000-01-01 UTC. A machine has no time of day, so its user says where that is from.
    pub wall_clock: fn() -> i64,
}

impl<M: Machine, D: LogDevice, S: StatusDevice> CommitPath<'_, M, D, S> {
    /// Commits `xid` of `proc`, and waits for the disk as `wait` says; `before` is step 7. Returns the position that has to
    /// be durable for the commit to survive a crash.
    #[inline]
    pub fn commit(
        &self,
        proc: ProcId,
        xid: Xid,
        wait: CommitWait,
        before: impl BeforeVisible,
    ) -> Result<Lsn, NotCommitted> {
        self.refuse_early(xid)?;
        let synchronous = wait != CommitWait::Nothing;
        Ok(if !self.commits.in_order {
            self.commit_unordered(proc, xid, wait, before)
        } else if self.commits.are_early() && wait != CommitWait::BeforeSeen {
            self.commit_early(proc, xid, synchronous, before)
        } else {
            self.commit_after_flush(proc, xid, synchronous, before)
        })
    }

    /// Rolls `xid` of `proc` back. It has left in any case; an error says that the commit log does not show its
    /// end, which reads as aborted all the same.
    pub fn abort(&self, proc: ProcId, xid: Xid) -> io::Result<()> {
        // A full disk must not prevent a rollback. Without a record there is no status either: after a crash the log may
        // know nothing of the xid, which is then handed out again, and must not find the end of an earlier transaction.
        // A transaction that does not run and has no status counts as aborted.
        let entered = match self.log.make_room() {
            Ok(()) => {
                let end = self.log_abort(xid);
                self.commit_log.set(xid, Status::Aborted, end.0)
            }
            Err(_) => Ok(()),
        };
        self.locks.end_transaction(proc, xid);
        entered
    }

    /// Step 1.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "it asks for the page of its own status")]
    fn refuse_early(&self, xid: Xid) -> Result<(), NotCommitted> {
        self.log.make_room().map_err(NotCommitted::NoLogRoom)?;
        self.commit_log.get(xid).map_err(NotCommitted::NoStatusPage)?;
        Ok(())
    }

    /// Step 3, and O2; the position after the record.
    #[inline]
    fn log_commit(&self, proc: ProcId, xid: Xid) -> Lsn {
        let payload = end_record::encode((self.wall_clock)());
        let array = self.locks.proc_array();
        self.log
            .insert_in_order(RecordKind::COMMIT, xid, &payload, &OrderOfCommits { array, proc })
    }

    /// As [`log_commit`](Self::log_commit), for a rollback, which has no order.
    fn log_abort(&self, xid: Xid) -> Lsn {
        let payload = end_record::encode((self.wall_clock)());
        self.log.insert_any(RecordKind::ABORT, xid, &payload)
    }

    /// Step 5. There is no way back from the record in the log.
    #[inline]
    fn enter_committed(&self, xid: Xid, end: Lsn) {
        if let Err(error) = self.commit_log.set(xid, Status::Committed, end.0) {
            clearway_machine::fatal(format_args!(
                "the commit of xid {xid} is logged but could not be entered in the commit log: {error}; stopping"
            ));
        }
    }
}
