//! The baseline: a scan of the array of running transactions, under its latch.
//!
//! A snapshot is a list. Finished: everything below `xmin`. Not finished: everything from `xmax` on. Between the two:
//! not finished if it is listed.
//!
//! # Why it is consistent (S1, S2)
//! `xmax` is `latest_completed + 1`. Take any xid x below it that has not ended. Some y > x had ended, so y was handed
//! out. By rule R1 of the array x was stored before that, and y's end comes before our shared acquire (R2). So we find
//! x in the array. No transaction ends while we scan (R2), so for each one we see its whole end or nothing of it.
//!
//! The simpler version scans without the latch. Say Bob read what Alice wrote, and committed after her. The scan passes
//! Alice's entry while she still runs, and Bob's entry after his end. The snapshot then sees Bob's work without
//! Alice's.
//!
//! # Why the horizon does not pass it (S3)
//! The horizon is the least of `xids[]`, the xmins and `latest_completed + 1`, read under ProcArray shared. Nothing
//! ends meanwhile (R2). A snapshot taken before has its xmin in its slot (R3). One that is being taken at the same time
//! may not have it there yet, but the horizon finds the same xids running and the same xmax. A later one finds only
//! greater ones.
//!
//! Costs: a shared acquire and a scan of 8 bytes a session, without allocation once the list has grown. A session's own
//! xid may be listed (S4).
//!
//! Origin: PostgreSQL's procarray.c; the dense array is that of its version 14.

use std::io;
use std::marker::PhantomData;

use clearway_machine::Machine;

use super::{SnapshotSource, SnapshotView};
use crate::{CommitLog, ProcArray, ProcId, StatusDevice, TransactionState, Xid, final_state};

/// The list of running transactions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// The oldest transaction that was running, or `xmax`.
    xmin: Xid,
    /// One past the newest transaction that had ended.
    xmax: Xid,
    /// The running ones below `xmax`, ascending.
    running: Vec<Xid>,
}

/// Below this many entries a straight look beats a binary search.
const LINEAR_MAX: usize = 16;

impl View {
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

impl SnapshotView for View {
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

/// Nothing is kept from one scan to the next.
#[derive(Debug)]
pub(crate) struct Source<M>(PhantomData<M>);

impl<M: Machine> SnapshotSource<M> for Source<M> {
    type View = View;

    fn new(_capacity: u32) -> Self {
        Self(PhantomData)
    }

    #[inline]
    fn take(&self, array: &ProcArray<M>, proc: ProcId, view: &mut View) {
        let running = &mut view.running;
        running.clear();
        {
            let shared = array.shared();
            let xmax = shared.latest_completed() + 1;
            let mut xmin = xmax;
            for xid in shared.entries() {
                // 0, wrapped, is above every xmax.
                if xid.wrapping_sub(1) < xmax - 1 {
                    xmin = xmin.min(xid);
                    running.push(Xid(xid));
                }
            }
            view.xmin = Xid(xmin);
            view.xmax = Xid(xmax);
            // R3.
            shared.hold_back_horizon(proc, view.xmin);
        }
        if running.len() > 1 {
            running.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    /// What `proc` finds running.
    fn scan(array: &ProcArray<Native>, proc: ProcId) -> View {
        let mut view = View::default();
        Source(PhantomData).take(array, proc, &mut view);
        view
    }

    #[test]
    fn the_running_are_listed_in_their_order() {
        let array = ProcArray::new(4, clearway_latch::LwLockVariant::SingleCas, Xid(100));
        let all: Vec<_> = (0..4).map(|_| array.attach().unwrap()).collect();
        let xids = [2, 0, 1, 3].map(|slot: usize| array.assign_xid(all[slot]));
        assert!(
            scan(&array, all[3]).running.is_empty(),
            "what is not below xmax need not be listed"
        );
        array.end(all[3], Some(xids[3]));
        let view = scan(&array, all[3]);
        assert_eq!(view.running, xids[..3]);
        assert_eq!((view.xmin, view.xmax), (xids[0], xids[3].next()));
    }

    #[test]
    fn bounds_and_list_decide() {
        let few = View {
            xmin: Xid(10),
            xmax: Xid(20),
            running: vec![Xid(10), Xid(15)],
        };
        let many = View {
            xmin: Xid(10),
            xmax: Xid(60),
            running: (10..60).step_by(2).map(Xid).collect(),
        };
        assert!(!few.is_running(Xid(9)) && few.is_running(Xid(10)) && !few.is_running(Xid(11)));
        assert!(few.is_running(Xid(15)) && few.is_running(Xid(20)) && few.is_running(Xid(99)));
        assert!(many.is_running(Xid(58)) && !many.is_running(Xid(57)) && many.is_running(Xid(60)));
    }
}
