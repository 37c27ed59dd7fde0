//! `commit_order = unordered`, the baseline: commits are seen in whatever order they come to it. A long fork is possible (O1
//! does not hold); the steps are those of `commit`.
//!
//! Each commit leaves by itself. Under `after-flush` 4 comes before 5, as the databases have it that ship this order: with
//! no queue of commits nothing is won by entering the status while this session is at the disk.

use clearway_machine::Machine;
use clearway_txn::{ProcId, StatusDevice, Xid};

use super::{BeforeVisible, CommitPath, CommitWait, LoggedCommit, end_record};
use crate::page::Lsn;
use crate::wal::LogDevice;
use crate::wal::record::RecordKind;

impl<M: Machine, D: LogDevice, S: StatusDevice> CommitPath<'_, M, D, S> {
    /// Steps 2 to 9, under either `lock_release`.
    #[inline]
    pub(super) fn commit_unordered(
        &self,
        proc: ProcId,
        xid: Xid,
        wait: CommitWait,
        mut before: impl BeforeVisible,
    ) -> Lsn {
        let is_early = self.commits.are_early() && wait != CommitWait::BeforeSeen;
        let logged = LoggedCommit { xid };
        self.commits.counters.begin(proc);
        let payload = end_record::encode((self.wall_clock)());
        let end = self.log.insert_any(RecordKind::COMMIT, xid, &payload);
        if wait == CommitWait::Nothing {
            self.commits.newest_async.note(end);
        } else if !is_early {
            self.log.flush(end);
        }
        if is_early {
            self.commits.enter_early(xid, end, self.log);
        }
        self.enter_committed(xid, end);
        self.commits.counters.end(proc);
        if before.is_needed() {
            before.secure();
            before.publish();
        }
        self.locks.end_transaction(proc, xid);
        logged.complete();
        if is_early && wait != CommitWait::Nothing {
            self.log.flush(end);
        }
        end
    }
}
