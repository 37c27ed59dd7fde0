//! Snapshots, the horizon and the commit log under real threads, with every variant of their switches.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_latch::{LwLockOptions, LwLockVariant};
use clearway_machine::{Native, Switch};
use clearway_txn::{
    CommitLog, CommitLogOptions, NoPages, ProcArray, ProcArrayLatchVariant, ProcArrayOptions,
    ProcClearVariant, Snapshot, SnapshotVariant, Status, TransactionState, Xid,
};
use support::Random;

const SESSIONS: u32 = 8;
const RUN: Duration = Duration::from_secs(1);
/// A busy machine takes longer for [`TAKEN_MIN`]; one that has not taken them by then never will.
const RUN_MAX: Duration = Duration::from_secs(60);
/// Fewer snapshots than that have shown nothing.
const TAKEN_MIN: u64 = 100;

/// Agreement of a snapshot with the status of transactions; the horizon has not passed one that runs.
fn agree(
    snapshot: &Snapshot,
    log: &CommitLog<Native, NoPages>,
    answers: &[(Xid, TransactionState)],
    horizon: Xid,
) {
    for (xid, state) in answers {
        let running = *state == TransactionState::Running;
        assert!(
            !running || horizon <= *xid,
            "the horizon {horizon} passed {snapshot:?}"
        );
        let status = log.get(*xid).unwrap();
        assert!(
            running || status != Status::InProgress,
            "{xid} is finished in {snapshot:?}"
        );
        let committed = status == Status::Committed;
        assert!(running || committed == (*state == TransactionState::Committed));
        assert_eq!(snapshot.sees(*xid, log).unwrap(), !running && committed);
        if committed {
            assert_eq!(snapshot.sees_committed(*xid, log).unwrap(), !running);
        }
    }
}

/// Sessions begin, end, attach and detach while others take snapshots. What a snapshot regards as finished has its
/// status in the commit log and stays finished in later ones, the sum of what it sees does not change while it is in
/// use, and the horizon does not pass it.
fn snapshots(options: ProcArrayOptions, log_options: CommitLogOptions) {
    eprintln!("under {options:?}, {log_options:?}");
    let array = ProcArray::<Native>::new(SESSIONS + 1, options, Xid::FIRST_NORMAL);
    let array = Arc::new(array);
    let log = Arc::new(CommitLog::<Native, _>::new(NoPages, log_options));
    let stop = AtomicBool::new(false);
    let taken = AtomicU64::new(0);
    thread::scope(|scope| {
        for number in 0..SESSIONS {
            let (array, log, stop, taken) = (&array, &log, &stop, &taken);
            scope.spawn(move || {
                let mut random = Random(u64::from(number) + 1);
                let mut proc = array.attach().unwrap();
                let mut snapshot = Snapshot::default();
                let mut seen_before = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let own = (random.below(2) == 0).then(|| array.assign_xid(proc));
                    array.snapshot(proc, &mut snapshot);
                    taken.fetch_add(1, Ordering::Relaxed);
                    let horizon = array.horizon();
                    let newest = array.next_xid();
                    let recent = || (1..=40).filter_map(|below| newest.0.checked_sub(below).map(Xid));
                    let others = || recent().filter(|xid| *xid >= Xid::FIRST_NORMAL && Some(*xid) != own);
                    let answers = || {
                        others()
                            .map(|xid| (xid, snapshot.state(xid, log).unwrap()))
                            .collect::<Vec<_>>()
                    };
                    let first = answers();
                    agree(&snapshot, log, &first, horizon);
                    for xid in seen_before.drain(..) {
                        assert!(
                            snapshot.sees(xid, log).unwrap(),
                            "an older snapshot saw {xid}: {snapshot:?}"
                        );
                    }
                    thread::yield_now();
                    assert_eq!(first, answers(), "answers changed: {snapshot:?}");
                    let seen = first
                        .iter()
                        .filter(|(_, state)| *state == TransactionState::Committed);
                    seen_before.extend(seen.map(|(xid, _)| *xid));
                    if let Some(xid) = own {
                        let status = if random.below(8) == 0 {
                            Status::Aborted
                        } else {
                            Status::Committed
                        };
                        log.set(xid, status, xid.0).unwrap();
                    }
                    array.end(proc, own);
                    if random.below(64) == 0 {
                        array.detach(proc);
                        proc = array.attach().unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            let mut before = Xid::INVALID;
            let started = Instant::now();
            let goes_on = || {
                let least = if taken.load(Ordering::Relaxed) < TAKEN_MIN {
                    RUN_MAX
                } else {
                    RUN
                };
                started.elapsed() < least
            };
            while goes_on() {
                let horizon = array.horizon();
                // An xmin that is installed without the latch may be out of date by then, and lower the horizon.
                let by_latch = matches!(
                    options.snapshot,
                    SnapshotVariant::Scan | SnapshotVariant::SharedCache
                );
                assert!(horizon >= before || !by_latch, "the horizon went back");
                before = horizon;
                log.flush_all().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    assert!(taken.load(Ordering::Relaxed) >= TAKEN_MIN);
}

#[test]
fn snapshots_are_consistent_with_every_variant() {
    for options in ProcArrayOptions::each_variant() {
        snapshots(options, CommitLogOptions::default());
    }
    for &latch in ProcArrayLatchVariant::ALL {
        let options = ProcArrayOptions {
            latch,
            clear: ProcClearVariant::Group,
            ..ProcArrayOptions::default()
        };
        if latch != ProcArrayLatchVariant::default() {
            snapshots(options, CommitLogOptions::default());
        }
    }
    for &snapshot in SnapshotVariant::ALL {
        let options = ProcArrayOptions {
            snapshot,
            clear: ProcClearVariant::Group,
            ..ProcArrayOptions::default()
        };
        if snapshot != SnapshotVariant::default() {
            snapshots(options, CommitLogOptions::default());
        }
    }
    let default = CommitLogOptions::default();
    for log_options in CommitLogOptions::each_variant().filter(|options| *options != default) {
        snapshots(ProcArrayOptions::default(), log_options);
    }
}

#[test]
fn snapshots_are_consistent_under_every_lwlock() {
    for lwlock in LwLockVariant::ALL
        .iter()
        .filter(|lwlock| **lwlock != LwLockVariant::default())
    {
        let lwlock = LwLockOptions::from(*lwlock);
        snapshots(lwlock.into(), lwlock.into());
    }
}
