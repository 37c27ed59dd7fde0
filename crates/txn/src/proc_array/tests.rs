use clearway_machine::Watchdog;

use super::*;
use crate::{CommitLog, NoPages, ProcArrayFull, Status, TransactionState};

type Log = CommitLog<Native, NoPages>;

/// Runs `case` under each variant of the array's switches.
fn under_each_variant(case: impl Fn(&ProcArray<Native>, &Log)) {
    let _watchdog = Watchdog::over_test();
    for options in ProcArrayOptions::each_variant() {
        eprintln!("under {options:?}");
        let log = CommitLog::new(NoPages, options.lwlock);
        case(&ProcArray::new(4, options, Xid(100)), &log);
    }
}

fn snapshot(array: &ProcArray<Native>, proc: ProcId) -> Snapshot {
    let mut snapshot = Snapshot::default();
    array.snapshot(proc, &mut snapshot);
    snapshot
}

fn commit(array: &ProcArray<Native>, log: &Log, proc: ProcId, xid: Xid) {
    log.set(xid, Status::Committed, 0).unwrap();
    array.end(proc, Some(xid));
}

#[test]
fn the_suites_run_under_every_variant() {
    let all: Vec<_> = ProcArrayOptions::each_variant().collect();
    for latch in ProcArrayLatchVariant::ALL {
        assert!(all.iter().any(|options| options.latch == *latch));
    }
    for variant in SnapshotVariant::ALL {
        assert!(all.iter().any(|options| options.snapshot == *variant));
    }
    for clear in ProcClearVariant::ALL {
        assert!(all.iter().any(|options| options.clear == *clear));
    }
}

#[test]
fn a_snapshot_sees_what_had_committed() {
    under_each_variant(|array, log| {
        let (alice, bob) = (array.attach().unwrap(), array.attach().unwrap());
        let (a, b) = (array.assign_xid(alice), array.assign_xid(bob));
        commit(array, log, bob, b);
        let taken = snapshot(array, bob);
        assert!(array.is_running(a) && !array.is_running(b) && !array.is_running(Xid(1000)));
        let c = array.assign_xid(bob);
        // S1: it does not matter what happens later.
        for _ in 0..2 {
            assert!(
                !taken.sees(a, log).unwrap() && taken.sees(b, log).unwrap() && !taken.sees(c, log).unwrap()
            );
            assert_eq!(taken.state(a, log).unwrap(), TransactionState::Running);
            assert_eq!(taken.state(c, log).unwrap(), TransactionState::Running);
            assert!(taken.sees_committed(b, log).unwrap() && !taken.sees_committed(a, log).unwrap());
            if array.is_running(a) {
                commit(array, log, alice, a);
                commit(array, log, bob, c);
            }
        }
        assert!(snapshot(array, bob).sees(a, log).unwrap());
    });
}

#[test]
fn a_snapshot_tells_aborted_from_running() {
    under_each_variant(|array, log| {
        let alice = array.attach().unwrap();
        let a = array.assign_xid(alice);
        log.set(a, Status::Aborted, 0).unwrap();
        array.end(alice, Some(a));
        let taken = snapshot(array, alice);
        assert_eq!(taken.state(a, log).unwrap(), TransactionState::Aborted);
        assert!(!taken.sees(a, log).unwrap());
        assert_eq!(
            Snapshot::default().state(a, log).unwrap(),
            TransactionState::Running,
            "a snapshot that was never taken"
        );
    });
}

#[test]
fn a_snapshot_holds_back_the_horizon() {
    under_each_variant(|array, log| {
        let (alice, bob) = (array.attach().unwrap(), array.attach().unwrap());
        let a = array.assign_xid(alice);
        snapshot(array, bob);
        commit(array, log, alice, a);
        assert_eq!(array.horizon(), a);
        array.clear_xmin(bob);
        assert_eq!(array.horizon(), a.next());
    });
}

/// A session that holds an older snapshot, as a cursor does, takes a newer one: what the older one sees is kept.
///
/// Caught mutation: a snapshot that installs its xmin over an older one.
#[test]
fn a_second_snapshot_does_not_let_go_of_the_first() {
    under_each_variant(|array, log| {
        let (alice, bob) = (array.attach().unwrap(), array.attach().unwrap());
        let a = array.assign_xid(alice);
        let first = snapshot(array, bob);
        commit(array, log, alice, a);
        let second = snapshot(array, bob);
        let mut third = first.clone();
        array.snapshot(bob, &mut third);
        assert!(!first.sees(a, log).unwrap() && second.sees(a, log).unwrap() && third.sees(a, log).unwrap());
        assert_eq!(
            array.horizon(),
            a,
            "vacuum would take what the first snapshot sees"
        );
        assert_eq!(array.xmin_of(bob), Some(a));
    });
}

#[test]
fn slots_run_out_and_come_back() {
    under_each_variant(|array, _| {
        let all: Vec<_> = (0..4).map(|_| array.attach().unwrap()).collect();
        assert_eq!(array.attach(), Err(ProcArrayFull { capacity: 4 }));
        array.detach(all[1]);
        assert_eq!(array.attach(), Ok(all[1]));
    });
}

#[test]
fn a_hole_is_filled_and_the_moved_session_goes_on() {
    under_each_variant(|array, log| {
        let all: Vec<_> = (0..3).map(|_| array.attach().unwrap()).collect();
        let before = array.assign_xid(all[2]);
        array.detach(all[0]);
        assert_eq!(array.shared().entries().count(), 2);
        assert_eq!(
            (array.find_running(before), array.xid_of(all[2])),
            (Some(all[2]), Some(before))
        );
        commit(array, log, all[2], before);
        let after = array.assign_xid(all[2]);
        let newest = array.assign_xid(all[1]);
        commit(array, log, all[1], newest);
        let taken = snapshot(array, all[1]);
        assert!(
            !taken.sees_committed(after, log).unwrap(),
            "the moved session's transaction runs"
        );
        assert!(taken.sees(before, log).unwrap() && taken.sees(newest, log).unwrap());
        assert_eq!(array.attach(), Ok(all[0]), "the lowest free slot");
    });
}

#[test]
fn slots_in_use_are_listed() {
    under_each_variant(|array, _| {
        let all: Vec<_> = (0..3).map(|_| array.attach().unwrap()).collect();
        assert!(array.slots().eq(all.iter().copied()));
        array.detach(all[2]);
        assert!(array.slots().eq(all[..2].iter().copied()));
        array.detach(all[0]);
        assert!(array.slots().any(|slot| slot == all[1]));
    });
}

/// A snapshot that is older than many thousand transactions, and one that is older still and runs all the time.
#[test]
fn a_long_snapshot_keeps_its_answers() {
    const TRANSACTIONS: u64 = 150_000;
    let _watchdog = Watchdog::over_test();
    for &snapshot_variant in SnapshotVariant::ALL {
        let options = ProcArrayOptions {
            snapshot: snapshot_variant,
            ..ProcArrayOptions::default()
        };
        let log = Log::new(NoPages, options.lwlock);
        let array = ProcArray::<Native>::new(3, options, Xid(100));
        let [alice, bob, carol] = std::array::from_fn(|_| array.attach().unwrap());
        let a = array.assign_xid(alice);
        let before = array.assign_xid(bob);
        commit(&array, &log, bob, before);
        let taken = snapshot(&array, carol);
        let run = |count: u64| {
            for _ in 0..count {
                let xid = array.assign_xid(bob);
                array.end(bob, Some(xid));
            }
        };
        run(TRANSACTIONS);
        let finished = |snapshot: &Snapshot, xid| snapshot.sees_committed(xid, &log).unwrap();
        let last = array.assign_xid(bob);
        for (below, step) in [(100, 1), (TRANSACTIONS, 997)] {
            let later = (before.0 + 1..before.0 + below).step_by(step).map(Xid);
            for xid in later {
                assert!(!finished(&taken, xid), "{xid} began later than {taken:?}");
            }
        }
        assert!(finished(&taken, before) && !finished(&taken, a) && !finished(&taken, last));
        assert!(finished(&taken, Xid(99)));
        let now = snapshot(&array, bob);
        for xid in (before.0..last.0).step_by(991).map(Xid) {
            assert!(finished(&now, xid), "{xid} has ended before {now:?}");
        }
        assert!(!finished(&now, a) && !finished(&now, last));
        // Its place in a window of 65,536 is that of one that has ended.
        assert!(!finished(&now, Xid(last.0 - 1 + 65_536)), "it has not begun");
        array.clear_xmin(bob);
        commit(&array, &log, alice, a);
        assert!(!finished(&taken, a) && finished(&snapshot(&array, alice), a));
        array.clear_xmin(alice);
        assert_eq!(array.horizon(), a, "the long snapshot is in use");
        array.clear_xmin(carol);
        assert_eq!(array.horizon(), last);
        array.end(bob, Some(last));
        // What no snapshot can ask for is not kept.
        run(TRANSACTIONS);
        assert!(
            array.snapshots.kept_for_old_snapshots() <= 1,
            "{snapshot_variant:?}"
        );
        assert!(finished(&snapshot(&array, carol), last));
    }
}

/// The running transactions that a standby gets: those below the xid after the newest ended one, in ascending order
/// whatever their slots.
#[test]
fn the_running_are_listed_without_a_snapshot() {
    under_each_variant(|array, log| {
        let all: Vec<_> = (0..4).map(|_| array.attach().unwrap()).collect();
        let mut running = vec![Xid(7)];
        let idle = array.running_transactions(&mut running);
        assert_eq!(
            (idle.next, idle.oldest_running, idle.newest_ended),
            (Xid(100), Xid(100), Xid(99))
        );
        assert!(idle.running.is_empty());
        let xids = [2, 0, 3, 1].map(|slot: usize| array.assign_xid(all[slot]));
        assert!(
            array.running_transactions(&mut running).running.is_empty(),
            "nothing is said of xids after the newest ended one"
        );
        commit(array, log, all[3], xids[2]);
        let record = array.running_transactions(&mut running);
        assert_eq!(record.running, &xids[..2]);
        assert_eq!(
            (record.oldest_running, record.newest_ended, record.next),
            (xids[0], xids[2], xids[2].next())
        );
        assert_eq!(record.check(), Ok(()));
        commit(array, log, all[2], xids[0]);
        assert_eq!(array.running_transactions(&mut running).oldest_running, xids[1]);
        commit(array, log, all[0], xids[1]);
        assert_eq!(array.horizon(), xids[3], "the list holds nothing back");
        commit(array, log, all[1], xids[3]);
    });
}

/// The standby's xmin and the session's own do not get into each other's way.
///
/// Caught mutation: `hold_for_standby` that writes the session's `xmin`.
#[test]
fn a_standby_holds_back_the_horizon() {
    under_each_variant(|array, log| {
        let (alice, sender) = (array.attach().unwrap(), array.attach().unwrap());
        let run = || {
            let xid = array.assign_xid(alice);
            commit(array, log, alice, xid);
            xid
        };
        let (a, b) = (run(), run());
        assert!(array.hold_for_standby(sender, Some(b)));
        assert_eq!((array.horizon(), array.xmin_of(sender)), (b, None));
        snapshot(array, sender);
        array.clear_xmin(sender);
        assert_eq!(array.horizon(), b, "the end of a snapshot of the session itself");
        assert!(
            !array.hold_for_standby(sender, Some(array.next_xid().next())),
            "never handed out"
        );
        assert!(
            !array.hold_for_standby(sender, Some(Xid(1))),
            "none that a snapshot can need"
        );
        assert_eq!(array.horizon(), b, "nonsense changes nothing");
        assert!(array.hold_for_standby(sender, Some(a)));
        assert_eq!(array.horizon(), a);
        assert!(array.hold_for_standby(sender, Some(array.next_xid())));
        assert_eq!(array.horizon(), b.next());
        let c = run();
        assert_eq!(array.horizon(), c, "the next xid, when it was said");
        assert!(array.hold_for_standby(sender, None));
        assert_eq!(array.horizon(), c.next());
        assert!(array.hold_for_standby(sender, Some(a)));
        array.detach(sender);
        assert_eq!(array.attach(), Ok(sender));
        assert_eq!(array.horizon(), c.next(), "the connection has ended");
    });
}
