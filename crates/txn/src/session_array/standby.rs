//! The array on a standby: its sessions hold no xids, but snapshots.
//!
//! On a standby the running transactions are those of the primary, which `known_xids` knows. The array has the xmins of
//! the sessions' snapshots, by which replay finds the ones in its way, and which feedback tells the primary.
//!
//! # Rules
//! - P1: a session that installs an xmin passes a fence afterwards; one that looks for xmins passes a fence before. What
//!   that is good for: C1 of `cleanup_horizon`.
//! - P2: xids go on at the end of recovery, when no session has taken a snapshot of this array.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use clearway_machine::{AtomicWord, Machine};

use super::{ProcId, SessionArray};
use crate::Xid;

impl<M: Machine> SessionArray<M> {
    /// Installs the xmin of a snapshot that the caller, the session of `proc`, has taken elsewhere; the slot keeps an older
    /// one that it holds. Passes the session's fence (P1).
    pub fn install_xmin_and_fence(&self, proc: ProcId, xmin: Xid) {
        if self.holds_back_horizon(proc) {
            M::fence(SeqCst);
        } else {
            self.hold_back_horizon_and_fence(proc, xmin);
        }
    }

    /// The sessions whose snapshots may regard `xid` as running. Passes the fence of replay first (P1).
    pub fn holders_of_xmin_up_to(&self, xid: Xid) -> Vec<ProcId> {
        M::fence(SeqCst);
        self.slots()
            .filter(|&proc| self.xmin_of(proc).is_some_and(|xmin| xmin <= xid))
            .collect()
    }

    /// The oldest xmin of any session.
    pub fn oldest_xmin(&self) -> Option<Xid> {
        M::fence(SeqCst);
        self.slots().filter_map(|proc| self.xmin_of(proc)).min()
    }

    /// As [`hold_for_standby`](Self::hold_for_standby), for a standby that follows this one. Only the primary knows which xids
    /// were handed out, and the follower's replay may be ahead of this one's: all that an xid can be is passed on.
    pub fn hold_for_cascaded(&self, proc: ProcId, xmin: Option<Xid>) -> bool {
        let xmin = xmin.unwrap_or(Xid::INVALID);
        if xmin.is_valid() && xmin < Xid::FIRST_NORMAL {
            return false;
        }
        // Release: as in `clear_xmin`.
        self.slot(proc).standby_xmin.store(xmin.0, Release);
        true
    }

    /// The oldest xmin that a follower asks the horizon to be held back for.
    pub fn oldest_standby_xmin(&self) -> Option<Xid> {
        let asked_for = self
            .slots()
            .map(|proc| Xid(self.slot(proc).standby_xmin.load(Acquire)));
        asked_for.filter(|xmin| xmin.is_valid()).min()
    }

    /// The end of recovery: `next` is handed out next, and all before have ended (P2). `prepare` is called under both
    /// latches.
    pub(crate) fn continue_from(&self, next: Xid, prepare: impl FnOnce()) {
        let _xid_gen = self.xid_gen.exclusive();
        let _exclusive = self.latch.exclusive();
        assert!(
            next.0 >= self.next_xid.load(Relaxed),
            "xids would be handed out again: {next} after {}",
            self.next_xid.load(Acquire)
        );
        prepare();
        self.latest_completed.store(next.0 - 1, Relaxed);
        self.next_xid.store(next.0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CommitLog, CommitLogOptions, NoPages, ProcArray, ProcArrayOptions, Snapshot, Status};
    use clearway_machine::Native;

    /// After recovery has gone on by 100,000 xids, each variant's snapshots regard those as ended, and new ones as running.
    #[test]
    fn xids_go_on_behind_those_of_recovery() {
        for options in ProcArrayOptions::each_variant() {
            let array = ProcArray::<Native>::new(4, options, Xid::FIRST_NORMAL);
            let log = CommitLog::<Native, _>::new(NoPages, CommitLogOptions::default());
            let (one, other) = (array.attach().unwrap(), array.attach().unwrap());
            let (old, next) = (Xid(90_000), Xid(100_000));
            log.set(old, Status::Committed, 0).unwrap();
            array.continue_from(next);
            let mut snapshot = Snapshot::default();
            array.snapshot(one, &mut snapshot);
            assert!(snapshot.sees(old, &log).unwrap(), "{options:?}");
            array.clear_xmin(one);
            let xid = array.assign_xid(other);
            assert_eq!(xid, next);
            array.snapshot(one, &mut snapshot);
            assert!(!snapshot.sees(xid, &log).unwrap(), "{options:?}");
            assert_eq!(array.horizon(), next);
            array.clear_xmin(one);
            log.set(xid, Status::Committed, 0).unwrap();
            array.end(other, Some(xid));
            array.snapshot(one, &mut snapshot);
            assert!(snapshot.sees(xid, &log).unwrap(), "{options:?}");
        }
    }

    #[test]
    fn sessions_are_found_by_their_xmin() {
        let array = ProcArray::<Native>::new(4, ProcArrayOptions::default(), Xid(10));
        let (one, other) = (array.attach().unwrap(), array.attach().unwrap());
        array.install_xmin_and_fence(one, Xid(5));
        array.install_xmin_and_fence(one, Xid(7));
        array.install_xmin_and_fence(other, Xid(6));
        assert_eq!(array.xmin_of(one), Some(Xid(5)), "the oldest stays");
        assert_eq!(array.holders_of_xmin_up_to(Xid(5)), [one]);
        assert_eq!(array.holders_of_xmin_up_to(Xid(4)), []);
        assert_eq!(array.oldest_xmin(), Some(Xid(5)));
        array.clear_xmin(one);
        assert_eq!(array.oldest_xmin(), Some(Xid(6)));
    }
}
