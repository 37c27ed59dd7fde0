//! The list of running transactions that `scan`, `shared-cache` and `reuse` make their snapshots of.
//!
//! Finished: everything below `xmin`. Not finished: everything from `xmax` on. Between the two: not finished if it is
//! listed. A session's own xid may be listed (S4).

use std::io;

use clearway_machine::Machine;

use super::SnapshotView;
use crate::session_array::SharedArray;
use crate::{CommitLog, StatusDevice, TransactionState, Xid, final_state};

/// The list of running transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunningList {
    /// The oldest transaction that was running, or `xmax`.
    pub(super) xmin: Xid,
    /// One past the newest transaction that had ended.
    pub(super) xmax: Xid,
    /// The running ones below `xmax`, ascending once [`sort`](Self::sort) was called.
    pub(super) running: Vec<Xid>,
}

/// Below this many entries a straight look beats a binary search.
const LINEAR_MAX: usize = 16;

impl RunningList {
    /// Makes the list that of this moment. The caller holds ProcArray shared, installs the xmin under it, and sorts.
    #[inline]
    pub(super) fn scan<M: Machine>(&mut self, array: &SharedArray<'_, M>) {
        let running = &mut self.running;
        running.clear();
        let xmax = array.latest_completed() + 1;
        let mut xmin = xmax;
        for xid in array.entries() {
            // 0, wrapped, is above every xmax.
            if xid.wrapping_sub(1) < xmax - 1 {
                xmin = xmin.min(xid);
                running.push(Xid(xid));
            }
        }
        self.xmin = Xid(xmin);
        self.xmax = Xid(xmax);
    }

    /// Brings the running transactions into their order; that needs no latch.
    #[inline]
    pub(super) fn sort(&mut self) {
        if self.running.len() > 1 {
            self.running.sort_unstable();
        }
    }

    #[inline]
    fn is_running(&self, xid: Xid) -> bool {
        if xid < self.xmin {
            return false;
        }
        if xid >= self.xmax {
            return true;
        }
        if self.running.len() <= LINEAR_MAX {
            self.running.contains(&xid)
        } else {
            self.running.binary_search(&xid).is_ok()
        }
    }
}

impl SnapshotView for RunningList {
    #[inline]
    fn state<M: Machine, D: StatusDevice>(
        &self,
        xid: Xid,
        log: &CommitLog<M, D>,
    ) -> io::Result<TransactionState> {
        if self.is_running(xid) {
            return Ok(TransactionState::Running);
        }
        final_state(log, xid)
    }

    #[inline]
    fn sees_committed<M: Machine, D: StatusDevice>(&self, xid: Xid, _: &CommitLog<M, D>) -> io::Result<bool> {
        Ok(!self.is_running(xid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_and_list_decide() {
        let few = RunningList {
            xmin: Xid(10),
            xmax: Xid(20),
            running: vec![Xid(10), Xid(15)],
        };
        let many = RunningList {
            xmin: Xid(10),
            xmax: Xid(60),
            running: (10..60).step_by(2).map(Xid).collect(),
        };
        assert!(!few.is_running(Xid(9)) && few.is_running(Xid(10)) && !few.is_running(Xid(11)));
        assert!(few.is_running(Xid(15)) && few.is_running(Xid(20)) && few.is_running(Xid(99)));
        assert!(many.is_running(Xid(58)) && !many.is_running(Xid(57)) && many.is_running(Xid(60)));
    }
}
