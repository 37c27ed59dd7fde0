//! The step by which transactions leave the array, under ProcArray exclusive: commits in the order of their records in
//! the log (`commit_order`, which has the steps), others at once.

use clearway_machine::Machine;

use crate::commit_order::{CommitOrder, Woken};
use crate::session_array::{ExclusiveArray, SessionArray};
use crate::snapshot::Snapshots;
use crate::{ProcId, Xid};

/// The parts of the array that change when a transaction leaves.
#[derive(Clone, Copy)]
pub(crate) struct Leaving<'a, M: Machine> {
    /// The words.
    pub(crate) sessions: &'a SessionArray<M>,
    /// They learn of each end.
    pub(crate) snapshots: &'a Snapshots<M>,
    /// The order of commits.
    pub(crate) order: &'a CommitOrder<M>,
}

impl<'a, M: Machine> Leaving<'a, M> {
    /// Acquires ProcArray exclusively, for transactions to leave.
    #[inline]
    pub(crate) fn exclusive(self) -> ExclusiveLeaving<'a, M> {
        self.under(self.sessions.exclusive())
    }

    /// As [`exclusive`](Self::exclusive), if that needs no waiting.
    #[inline]
    pub(crate) fn try_exclusive(self) -> Option<ExclusiveLeaving<'a, M>> {
        Some(self.under(self.sessions.try_exclusive()?))
    }

    #[inline]
    fn under(self, sessions: ExclusiveArray<'a, M>) -> ExclusiveLeaving<'a, M> {
        ExclusiveLeaving {
            parts: self,
            sessions,
            woken: Woken::none(self.order),
        }
    }
}

/// The same under the exclusive latch. Fields are dropped in this order: no session is woken under the latch.
pub(crate) struct ExclusiveLeaving<'a, M: Machine> {
    parts: Leaving<'a, M>,
    sessions: ExclusiveArray<'a, M>,
    woken: Woken<'a, M>,
}

impl<M: Machine> ExclusiveLeaving<'_, M> {
    /// Takes the transaction of `proc` out of the array; if it is a commit, only in its order: it may still be there, and
    /// then its session counts as waiting. Nothing, if another session has taken it out.
    #[inline]
    pub(crate) fn end(&self, proc: ProcId, durable: u64) {
        let order = self.parts.order;
        let xid = self.sessions.running(proc);
        if !xid.is_valid() {
            return;
        }
        if !order.has_entered(proc) {
            return self.remove(proc, xid);
        }
        self.let_leave(durable);
        if self.sessions.running(proc).is_valid() {
            order.begin_to_wait(proc);
        }
    }

    /// Takes out the commits that are ready, beginning with the first (Q1). `durable`: up to where the log is.
    #[inline]
    pub(crate) fn let_leave(&self, durable: u64) {
        let order = self.parts.order;
        while let Some(first) = order.first() {
            if order.is_ready(first, durable) {
                self.remove(first, self.sessions.running(first));
                order.one_has_left();
                self.woken.add_if_waiting(first);
            } else {
                // It is its turn.
                self.woken.add_if_waiting(first);
                return;
            }
        }
    }

    /// Takes `xid` of `proc` out of the array (R2 there).
    #[inline]
    fn remove(&self, proc: ProcId, xid: Xid) {
        // S5: before others can learn of the end by `xid_of`, which takes no latch.
        self.parts.snapshots.transaction_ends(xid);
        self.sessions.remove(proc, xid);
    }
}
