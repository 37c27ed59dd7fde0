//! Commits that are seen in whatever order they come to it, as databases ship it: the baseline of the order of commits, for
//! the simulated programs of their time. A long fork is possible (O1 does not hold); nothing else differs from
//! `after-flush`.

use clearway_machine::Machine;
use clearway_txn::{ProcId, StatusDevice, Xid};

use super::{BeforeVisible, CommitPath, LoggedCommit, end_record};
use crate::page::Lsn;
use crate::wal::LogDevice;
use crate::wal::record::RecordKind;

impl<M: Machine, D: LogDevice, S: StatusDevice> CommitPath<'_, M, D, S> {
    /// Steps 2 to 9, each commit by itself.
    #[inline]
    pub(super) fn commit_unordered(
        &self,
        proc: ProcId,
        xid: Xid,
        synchronous: bool,
        mut before: impl BeforeVisible,
    ) -> Lsn {
        let logged = LoggedCommit { xid };
        self.commits.counters.begin(proc);
        let payload = end_record::encode((self.wall_clock)());
        let end = self.log.insert_any(RecordKind::Commit, xid, &payload);
        if synchronous {
            self.log.flush(end);
        } else {
            self.commits.newest_async.note(end);
        }
        self.enter_committed(xid, end);
        self.commits.counters.end(proc);
        if before.is_needed() {
            before.secure();
            before.publish();
        }
        self.locks.end_transaction(proc, xid);
        logged.complete();
        end
    }
}
