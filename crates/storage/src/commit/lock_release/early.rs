//! `early`: a commit is seen, and its locks are free, when its record is in the log. It waits for the disk afterwards.

use clearway_machine::Machine;
use clearway_txn::{ProcId, StatusDevice, Xid};

use crate::commit::CommitPath;
use crate::page::Lsn;
use crate::wal::LogDevice;
use crate::wal::record::RecordKind;

impl<M: Machine, D: LogDevice, S: StatusDevice> CommitPath<'_, M, D, S> {
    /// Steps 2, 3, 5 to 9, and 4.
    #[inline]
    pub(in crate::commit) fn commit_early(
        &self,
        proc: ProcId,
        xid: Xid,
        synchronous: bool,
        publish: impl FnOnce(),
    ) -> Lsn {
        self.commits.counters.begin(proc);
        let end = self.log_end(RecordKind::Commit, xid);
        if !synchronous {
            self.commits.newest_async.note(end);
        }
        self.commits.enter_early(xid, end, self.log);
        self.enter_committed(xid, end);
        self.commits.counters.end(proc);
        publish();
        self.locks.end_transaction(proc, xid);
        if synchronous {
            self.log.flush(end);
        }
        end
    }
}
