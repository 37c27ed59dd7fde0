//! `early`: a commit is seen, and its locks are free, when its record is in the log. It waits for the disk afterwards.

use clearway_machine::Machine;
use clearway_txn::{ProcId, StatusDevice, Xid};

use crate::commit::{BeforeVisible, CommitPath, LoggedCommit};
use crate::page::Lsn;
use crate::wal::LogDevice;

impl<M: Machine, D: LogDevice, S: StatusDevice> CommitPath<'_, M, D, S> {
    /// Steps 2, 3, 5 to 9, and 4.
    #[inline]
    pub(in crate::commit) fn commit_early(
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
        self.commits.enter_early(xid, end, self.log);
        self.enter_committed(xid, end);
        self.commits.counters.end(proc);
        if before.is_needed() {
            before.secure();
            self.locks.proc_array().wait_for_turn(proc, 0);
            before.publish();
        }
        let flush = || {
            if synchronous {
                self.log.flush(end);
            }
        };
        // Behind a commit that waits for the disk, this one may as well.
        self.locks.end_commit(proc, xid, 0, flush);
        logged.complete();
        flush();
        end
    }
}
