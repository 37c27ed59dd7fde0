//! `after-flush`: a commit is durable before it is seen. The order of `commit`, but for 4, which comes after 6: while this
//! session is at the disk, the commit is complete but for being durable, and any session that ends takes it out of the
//! array when it is.

use clearway_machine::Machine;
use clearway_txn::{ProcId, StatusDevice, Xid};

use crate::commit::{BeforeVisible, CommitPath, LoggedCommit};
use crate::page::Lsn;
use crate::wal::LogDevice;

impl<M: Machine, D: LogDevice, S: StatusDevice> CommitPath<'_, M, D, S> {
    /// Steps 2 to 9.
    #[inline]
    pub(in crate::commit) fn commit_after_flush(
        &self,
        proc: ProcId,
        xid: Xid,
        synchronous: bool,
        mut before: impl BeforeVisible,
    ) -> Lsn {
        let logged = LoggedCommit { xid };
        self.commits.counters.begin(proc);
        let end = self.log_commit(proc, xid);
        if !synchronous {
            self.commits.newest_async.note(end);
        }
        self.enter_committed(xid, end);
        self.commits.counters.end(proc);
        if synchronous {
            if !before.is_needed() {
                self.locks.proc_array().commit_is_ready_at(proc, end.0);
            }
            self.log.flush(end);
        }
        if before.is_needed() {
            before.secure();
            self.locks.proc_array().wait_for_turn(proc, self.log.flushed().0);
            before.publish();
        }
        self.locks.end_commit(proc, xid, self.log.flushed().0, || ());
        logged.complete();
        end
    }
}
