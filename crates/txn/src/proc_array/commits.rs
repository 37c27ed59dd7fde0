//! Commits in the array: they leave in the order of their records in the log (`commit_order`, which has the steps).

use clearway_machine::Machine;

use super::{ExclusiveArray, ProcArray, ProcId};
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
            let exclusive = self.exclusive();
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
            self.clearing.clear(self, proc, durable);
            if self.order.is_waiting(proc) {
                meanwhile();
                self.order.wait(proc);
            }
        }
        debug_assert!(self.xid_of(proc).is_none(), "a commit ends and has not left");
        self.order.has_left(proc);
    }
}

impl<M: Machine> ExclusiveArray<'_, M> {
    /// Takes the transaction of `proc` out of the array; if it is a commit, only in its order: it may still be there, and
    /// then its session counts as waiting. Nothing, if another session has taken it out.
    #[inline]
    pub(crate) fn end(&self, proc: ProcId, durable: u64) {
        let order = &self.array.order;
        let xid = self.running(proc);
        if !xid.is_valid() {
            return;
        }
        if !order.has_entered(proc) {
            return self.remove(proc, xid);
        }
        self.let_leave(durable);
        if self.running(proc).is_valid() {
            order.begin_to_wait(proc);
        }
    }

    /// Takes out the commits that are ready, beginning with the first (Q1). `durable`: up to where the log is.
    #[inline]
    fn let_leave(&self, durable: u64) {
        let order = &self.array.order;
        while let Some(first) = order.first() {
            if order.is_ready(first, durable) {
                self.remove(first, self.running(first));
                order.one_has_left();
                self.woken.add_if_waiting(first);
            } else {
                // It is its turn.
                self.woken.add_if_waiting(first);
                return;
            }
        }
    }
}
