//! Each session uses its last snapshot again while no transaction with an xid has ended since.
//!
//! # An example
//! The count of ends is 7. Bob's snapshot was taken at 7: transaction 100 runs.
//!
//! | time | Alice, transaction 100 | Bob | vacuum |
//! | --- | --- | --- | --- |
//! | 1 | | wants a snapshot; the count is 7, as in his last one | |
//! | 2 | deletes a row; ends: the count is 8 | | |
//! | 3 | | | nothing runs and no slot has an xmin: removes the row |
//! | 4 | | uses the snapshot of 7, installs its xmin 100, and misses the row | |
//!
//! So Bob installs the xmin first, and *then* looks at the count: at time 4 it is 8, and he scans.
//!
//! # Steps
//! 1. The count is not that of the last snapshot → scan, as the baseline does, and note the count under the latch.
//! 2. The slot holds the xmin of an older snapshot of the session → done.
//! 3. Install the xmin, pass a SeqCst fence, look at the count again. It is the same → done. Otherwise scan.
//!
//! # Linearization
//! A snapshot that is used again is taken at the last look at the count.
//!
//! # Why it is that of a scan (S1, S2)
//! What a scan finds depends on `latest_completed` and on the running xids below it. Both change at ends only, and each
//! end raises the count under ProcArray exclusive (C1): an xid that is handed out meanwhile is above
//! `latest_completed`. So with the count unchanged, a scan would find the list that the session has.
//!
//! # Why the horizon does not pass it (S3)
//! Installing and validating are one step for the horizon. Say the session's second look finds the count c. Take a
//! horizon that is computed under ProcArray shared:
//! - No end came between the snapshot's scan and the horizon: both find the same xids running and the same
//!   `latest_completed`, and what began since is above both. The horizon is the snapshot's xmin, or less.
//! - An end came in between. It raised the count before it released the latch, hence before the horizon's fence. If
//!   that fence came before the session's, the session's second look would find the count raised. So the session's
//!   fence came first, and the horizon finds the xmin, which was stored before it (R3 of the array).
//!
//! In step 2 the slot's xmin is not above that of the snapshot: it is of a snapshot that was taken before.
//!
//! An xmin that was installed in vain stays: it is older than that of the scan, and a slot keeps the oldest. So a
//! horizon may be lower than one that was computed before. It is never too high.
//!
//! # Ends that others have learnt of (S5)
//! C2: the count is raised before the ending transaction's xid is cleared in its slot, which is a Release. A session
//! that finds it cleared finds the count raised.
//!
//! # Costs
//! Used again: two loads of the count, a store to the session's own line, a fence. Its line is written once by each
//! end, so without writers no session waits for another. Otherwise: two loads more than the scan, and perhaps the
//! fence in vain.
//!
//! # What it does not do
//! A session that ends transactions of its own scans once after each, whatever others do.
//!
//! Origin: PostgreSQL 14 (Andres Freund, 2020), where the count is validated, and the xmin installed, under the shared
//! latch. Doing both without the latch is ours.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Padded};

use super::running_list::RunningList;
use super::{ArrayParameters, SnapshotSource, SnapshotView};
use crate::session_array::SessionArray;
use crate::{CommitLog, ProcId, StatusDevice, TransactionState, Xid};

/// A list, and the count of ends at which it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// 0: never taken.
    count: u64,
    list: RunningList,
}

impl SnapshotView for View {
    #[inline]
    fn state<M: Machine, D: StatusDevice>(
        &self,
        xid: Xid,
        log: &CommitLog<M, D>,
    ) -> std::io::Result<TransactionState> {
        self.list.state(xid, log)
    }

    #[inline]
    fn sees_committed<M: Machine, D: StatusDevice>(
        &self,
        xid: Xid,
        log: &CommitLog<M, D>,
    ) -> std::io::Result<bool> {
        self.list.sees_committed(xid, log)
    }
}

/// Bits of the count that ends of one array raise. Those above differ from array to array, so that a snapshot of one is
/// not taken for that of another.
const COUNT_BITS: u32 = 40;

/// Arrays made in this process.
static ARRAYS: AtomicU64 = AtomicU64::new(0);

/// The count of ends.
#[derive(Debug)]
pub(crate) struct Source<M: Machine> {
    count: Padded<M::U64>,
}

impl<M: Machine> Source<M> {
    /// True if the session's last snapshot is that of this moment. If so, the slot holds its xmin or an older one.
    #[inline]
    fn is_current(&self, array: &SessionArray<M>, proc: ProcId, view: &View) -> bool {
        if self.count.load(Relaxed) != view.count {
            return false;
        }
        if array.holds_back_horizon(proc) {
            return true;
        }
        array.hold_back_horizon_and_fence(proc, view.list.xmin);
        self.count.load(Relaxed) == view.count
    }
}

impl<M: Machine> SnapshotSource<M> for Source<M> {
    type View = View;

    fn new(_: ArrayParameters) -> Self {
        let number = ARRAYS.fetch_add(1, Relaxed) + 1;
        Self {
            count: Padded(M::U64::new(number << COUNT_BITS)),
        }
    }

    #[inline]
    fn take(&self, array: &SessionArray<M>, proc: ProcId, view: &mut View) {
        if self.is_current(array, proc, view) {
            return;
        }
        {
            let shared = array.shared();
            view.count = self.count.load(Relaxed);
            view.list.scan(&shared);
            // R3.
            shared.hold_back_horizon(proc, view.list.xmin);
        }
        view.list.sort();
    }

    #[inline]
    fn transaction_ends(&self, _: Xid) {
        // C1, C2. Relaxed: the latch orders it for scans, the Release of the slot's xid for those that look there, and
        // the fences for those that use a snapshot again.
        self.count.store(self.count.load(Relaxed) + 1, Relaxed);
    }
}
