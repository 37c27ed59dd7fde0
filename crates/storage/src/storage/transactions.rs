//! Transactions: their snapshots, their ends, and what is known of those of others.

use clearway_txn::{ProcId, Snapshot, Status, Xid};

use super::Storage;
use crate::commit::{
    BeforeVisible, CommitPath, CommitStates, CommitWait, NotCommitted, SessionSnapshot, wall_clock,
};
use crate::error::{Result, StorageError};
use crate::files::status_pages::storage_error;
use crate::page::Lsn;

impl Storage {
    /// Takes a snapshot for the session of `proc` into `snapshot`, whose memory it uses again: of the array of running
    /// transactions, or, on a standby, of those of the primary.
    #[inline]
    pub fn take_snapshot(&self, proc: ProcId, snapshot: &mut Snapshot) {
        match &self.standby {
            Some(standby) if standby.is_active() => {
                standby.take_snapshot(&self.proc_array, proc, snapshot);
            }
            _ => self.proc_array.snapshot(proc, snapshot),
        }
    }

    /// As [`take_snapshot`](Self::take_snapshot), for the answers of a session.
    #[inline]
    pub fn take_session_snapshot(&self, proc: ProcId, snapshot: &mut SessionSnapshot) {
        snapshot.take(&self.commits, &self.wal, |snapshot| {
            self.take_snapshot(proc, snapshot);
        });
    }

    /// Gives the session's transaction its xid.
    pub fn assign_xid(&self, proc: ProcId) -> Result<Xid> {
        self.make_log_room()?;
        Ok(self.proc_array.assign_xid(proc))
    }

    /// Commits the session's transaction, which has then ended. `synchronous`: the commit is durable when this
    /// returns. An error means that nothing was logged: the transaction still runs, and can be rolled back.
    pub fn commit(&self, proc: ProcId, xid: Xid, synchronous: bool) -> Result<Lsn> {
        self.commit_and_publish(proc, xid, CommitWait::synchronous(synchronous), ())
    }

    /// As [`commit`](Self::commit), for a transaction that may have made definitions: `before` makes them those of all
    /// sessions.
    #[inline]
    pub fn commit_and_publish(
        &self,
        proc: ProcId,
        xid: Xid,
        wait: CommitWait,
        before: impl BeforeVisible,
    ) -> Result<Lsn> {
        self.commit_path()
            .commit(proc, xid, wait, before)
            .map_err(|error| self.not_committed(error))
    }

    #[cold]
    fn not_committed(&self, error: NotCommitted) -> StorageError {
        match error {
            NotCommitted::NoLogRoom(error) => StorageError::io("extend", &self.log_dir(), error),
            NotCommitted::NoStatusPage(error) => storage_error(error),
        }
    }

    /// Rolls the session's transaction back, which has then ended, also after an error. Without a log record,
    /// recovery would count it as rolled back all the same.
    pub fn abort(&self, proc: ProcId, xid: Xid) -> Result<()> {
        self.commit_path().abort(proc, xid).map_err(storage_error)
    }

    fn commit_path(&self) -> CommitPath<'_> {
        CommitPath {
            log: &self.wal,
            commit_log: &self.commit_log,
            locks: &self.locks,
            commits: &self.commits,
            wall_clock: wall_clock::now_us,
        }
    }

    /// The structures that know how transactions stand.
    #[inline]
    pub fn commit_states(&self) -> CommitStates<'_> {
        CommitStates {
            log: &self.wal,
            commit_log: &self.commit_log,
            array: &self.proc_array,
            commits: &self.commits,
        }
    }

    /// The number that the next transaction gets.
    pub fn next_xid(&self) -> Xid {
        self.proc_array.next_xid()
    }

    /// True if commits are seen before they are durable: the switch `lock_release` is `early`.
    #[inline]
    pub fn releases_early(&self) -> bool {
        self.commits.are_early()
    }

    /// The position after the newest commit that was seen before it was secured.
    pub fn newest_seen_early(&self) -> Lsn {
        self.commits.newest_unsecured()
    }

    /// Up to where commits are as safe as sessions can ask for: durable, and replicated if standbys are named.
    #[inline]
    pub fn secured(&self) -> Lsn {
        self.commits.secured(&self.wal)
    }

    /// The commit of `xid` waits to be replicated before it is seen, and may be seen without (L3 and L7 of
    /// `lock_release`): it is entered among the recent commits, as those are that do not wait. Called in step 7 of the
    /// commit; `flushed`: it was made durable in step 4. Returns a position that covers it.
    pub fn enter_unreplicated(&self, xid: Xid, flushed: bool) -> Lsn {
        let position = if flushed {
            self.wal.flushed()
        } else {
            // Its position was noted in step 4.
            self.commits.newest_async()
        };
        self.commits.enter_early(xid, position, &self.wal);
        position
    }

    /// Up to where the log has to be secured for the commit of `xid` to be, which the caller counts as committed;
    /// `None` if it is.
    #[inline]
    pub(crate) fn position_if_early(&self, xid: Xid) -> Option<Lsn> {
        self.commits.position_if_early(xid, &self.wal)
    }

    /// True if a commit is secured as soon as it is durable.
    pub(crate) fn are_secured_by_the_disk(&self) -> bool {
        self.commits.are_secured_by_the_disk()
    }

    /// The status of `xid` in the commit log, for checks, which tell no client. The caller has made sure that it is not
    /// running.
    #[inline]
    #[expect(
        clippy::disallowed_methods,
        reason = "no client is told of it (S8 of commit::answers)"
    )]
    pub fn status(&self, xid: Xid) -> Result<Status> {
        self.commit_log.get(xid).map_err(storage_error)
    }

    /// True if `snapshot` shows what `xid` did. No answer tells of it: it decides whether two transactions overlap.
    pub fn shows(&self, snapshot: &SessionSnapshot, xid: Xid) -> Result<bool> {
        self.commit_states().shows(snapshot, xid).map_err(storage_error)
    }

    /// True if `snapshot` sees the definitions that `xid` has made. The caller knows that `xid` has committed by now.
    #[inline]
    pub fn sees_definition(&self, snapshot: &SessionSnapshot, xid: Xid) -> Result<bool> {
        self.commit_states()
            .sees_definition(snapshot, xid)
            .map_err(storage_error)
    }
}
