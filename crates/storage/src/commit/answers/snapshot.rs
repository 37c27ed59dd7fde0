//! A session's snapshot (S9).

use clearway_machine::Machine;
use clearway_txn::Snapshot;

use crate::commit::Commits;
use crate::wal::{LogDevice, Wal};

/// A snapshot, and whether it may see a commit that is not secured. The default one was never taken, and sees none.
#[derive(Debug, Clone, Default)]
pub struct SessionSnapshot {
    snapshot: Snapshot,
    may_see_unsecured: bool,
}

impl SessionSnapshot {
    /// Takes the snapshot anew, by `take`, which may use its memory again.
    #[inline]
    pub fn take<M: Machine, D: LogDevice>(
        &mut self,
        commits: &Commits<M>,
        log: &Wal<M, D>,
        take: impl FnOnce(&mut Snapshot),
    ) {
        take(&mut self.snapshot);
        // Afterwards: the position of a commit that it sees was noted before that commit left the array (L4).
        self.may_see_unsecured = commits.may_be_seen_early(log);
    }

    /// True if both regard the same transactions as finished.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.snapshot == other.snapshot
    }

    #[inline]
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    #[inline]
    pub(super) fn may_see_unsecured(&self) -> bool {
        self.may_see_unsecured
    }
}
