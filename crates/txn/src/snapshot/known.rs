//! A standby's snapshots: taken of the known xids, not of the array.
//!
//! Such a snapshot is the list that `scan` makes, of another source: by K1 and K2 of `known_xids` it is of one moment, and
//! what it regards as finished saw nothing of what it regards as running (S2). Its answers stay the same (S1), since it
//! is a copy. What the horizon was to S3 is replay's clean-up here (`cleanup_horizon`).

use clearway_machine::Machine;

use super::running_list::RunningList;
use super::{LastCommitted, Snapshot, Views};
use crate::Xid;
use crate::known_xids::{KnownXids, KnownXidsError, RunningXids};

impl Snapshot {
    /// Makes this a snapshot of the known xids, using its memory again; its xmin. An error: not all that run are known.
    pub fn take_known<M: Machine>(&mut self, known: &KnownXids<M>) -> Result<Xid, KnownXidsError> {
        let list = self.scan_view();
        let mut running = RunningXids::in_memory(std::mem::take(&mut list.running));
        let taken = known.snapshot(&mut running);
        (list.xmin, list.xmax) = (running.xmin(), running.xmax());
        list.running = running.into_memory();
        let xmin = list.xmin;
        self.last_committed = LastCommitted::default();
        taken.map(|()| xmin)
    }

    /// As it is, but `xid` has ended: what replay reads the definitions with that `xid` has made, before others see them.
    pub fn count_as_ended(&mut self, xid: Xid) {
        let Views::Scan(list) = &mut self.view else {
            return;
        };
        if xid >= list.xmax {
            // What lies between has begun, and has not ended.
            list.running.extend((list.xmax.0..xid.0).map(Xid));
            list.xmax = xid.next();
        }
        list.running.retain(|running| *running != xid);
        list.xmin = list.running.first().copied().unwrap_or(list.xmax);
        self.last_committed = LastCommitted::default();
    }

    fn scan_view(&mut self) -> &mut RunningList {
        if !matches!(self.view, Views::Scan(_)) {
            self.view = Views::Scan(RunningList::default());
        }
        match &mut self.view {
            Views::Scan(list) => list,
            _ => unreachable!("it was made one of this kind"),
        }
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;
    use crate::{CommitLog, CommitLogOptions, KnownXidsOptions, NoPages, RunningTransactions, Status};

    /// 5 runs, 6 has ended, 7 runs; then 7 counts as ended too.
    #[test]
    fn a_snapshot_of_the_known_xids_answers_as_one_of_the_array() {
        for options in KnownXidsOptions::each_variant(4, 100) {
            let known = KnownXids::<Native>::new(options);
            let log = CommitLog::<Native, _>::new(NoPages, CommitLogOptions::default());
            let mut snapshot = Snapshot::default();
            assert!(snapshot.take_known(&known).is_err(), "nothing is known yet");
            let mut replay = known.replay().unwrap();
            let record = RunningTransactions {
                next: Xid(5),
                oldest_running: Xid(5),
                newest_ended: Xid(4),
                running: &[],
                overflowed: false,
                prepared: &[],
            };
            replay.apply(&record).unwrap();
            replay.add(Xid(5), Xid(8)).unwrap();
            for xid in [6, 7] {
                log.set(Xid(xid), Status::Committed, 0).unwrap();
            }
            replay.remove(Xid(6));
            assert_eq!(snapshot.take_known(&known).unwrap(), Xid(5));
            assert!(snapshot.sees(Xid(6), &log).unwrap());
            assert!(!snapshot.sees(Xid(7), &log).unwrap());
            snapshot.count_as_ended(Xid(7));
            assert!(snapshot.sees(Xid(7), &log).unwrap() && snapshot.sees(Xid(6), &log).unwrap());
            assert!(!snapshot.sees(Xid(5), &log).unwrap() && !snapshot.sees(Xid(8), &log).unwrap());
        }
    }
}
