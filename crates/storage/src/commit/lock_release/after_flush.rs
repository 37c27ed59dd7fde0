//! `after-flush`: a commit is durable before it is seen. The order of `commit`, as it stands there.

use clearway_machine::Machine;
use clearway_txn::{ProcId, StatusDevice, Xid};

use crate::commit::CommitPath;
use crate::page::Lsn;
use crate::wal::LogDevice;
use crate::wal::record::RecordKind;

impl<M: Machine, D: LogDevice, S: StatusDevice> CommitPath<'_, M, D, S> {
    /// Steps 2 to 9.
    #[inline]
    pub(in crate::commit) fn commit_after_flush(
        &self,
        proc: ProcId,
        xid: Xid,
        synchronous: bool,
        publish: impl FnOnce(),
    ) -> Lsn {
        self.commits.counters.begin(proc);
        let end = self.log_end(RecordKind::Commit, xid);
        if synchronous {
            self.log.flush(end);
        } else {
            self.commits.newest_async.note(end);
        }
        self.enter_committed(xid, end);
        self.commits.counters.end(proc);
        publish();
        self.locks.end_transaction(proc, xid);
        end
    }
}
