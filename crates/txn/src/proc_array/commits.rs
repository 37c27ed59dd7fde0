//! Commits in the array: they leave in the order of their records in the log (`commit_order`, which has the steps).

use clearway_machine::Machine;

use super::{ProcArray, ProcId};
use crate::Xid;

impl<M: Machine> ProcArray<M> {
    /// Reserves the place of the commit record of `proc` by `reserve`, which says whether the record is going to be there.
    /// From then on the transaction can only leave by [`end_commit`](Self::end_commit), and those whose records come later
    /// leave after it. `reserve` runs under a latch that all commits take; it waits for nothing.
    #[inline]
    pub fn enter_commit<R>(&self, proc: ProcId, reserve: impl FnOnce() -> (R, bool)) -> R {
        self.order.enter(proc, reserve)
    }

    /// The commit of `proc` has nothing more to do before it is seen, and the commit log has its status. It may leave when
    /// the log is durable up to `position`, at the hands of any session that ends.
    #[inline]
    pub fn commit_is_ready_at(&self, proc: ProcId, position: u64) {
        self.order.is_ready_at(proc, position);
    }

    /// Returns when all commits have left whose records lie before that of `proc`. The log is durable up to `durable`.
    pub fn wait_for_turn(&self, proc: ProcId, durable: u64) {
        if self.order.is_turn_of(proc) {
            return;
        }
        {
            let exclusive = self.leaving().exclusive();
            exclusive.let_leave(durable);
            if self.order.is_turn_of(proc) {
                return;
            }
            self.order.begin_to_wait(proc);
        }
        self.order.wait(proc);
    }

    /// `xid` of `proc`, whose commit has entered, may be seen: returns when it has left, and each commit before it. If
    /// that takes a wait, `meanwhile` is called first. The log is durable up to `durable`; a position of some time ago
    /// will do.
    #[inline]
    pub fn end_commit(&self, proc: ProcId, xid: Xid, durable: u64, meanwhile: impl FnOnce()) {
        self.order.is_ready_at(proc, 0);
        // Another session may have taken it out.
        if let Some(running) = self.xid_of(proc) {
            assert_eq!(running, xid, "slot {} ends a transaction it does not run", proc.0);
            self.clearing.clear(self.leaving(), proc, durable);
            if self.order.is_waiting(proc) {
                meanwhile();
                self.order.wait(proc);
            }
        }
        debug_assert!(self.xid_of(proc).is_none(), "a commit ends and has not left");
        self.order.has_left(proc);
    }
}
