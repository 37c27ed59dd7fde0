//! Commits that wait for standbys, with threads of the host: many waiters at all levels, standbys that report out of step
//! and come and go, and cancels at any time. Every wait ends, and none says *replicated* before two standbys have said so.

use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::thread;

use clearway_machine::{Machine, Native, Watchdog, WorkerId};
use clearway_storage::Lsn;
use clearway_storage::sync_replication::{
    LogSender, ReplicationLevel, ReplicationWait, StandbyNames, StandbyProgress, SyncReplication,
};

const WAITERS: usize = 6;
const WAITS: u64 = 3_000;
const STANDBYS: usize = 3;

#[derive(Default)]
struct Waiter {
    worker: AtomicU32,
    cancel: AtomicBool,
}

#[test]
fn every_wait_ends_and_none_too_early() {
    let _watchdog = Watchdog::over_test();
    let replication = SyncReplication::<Native>::new();
    replication.set_names(StandbyNames::parse("ANY 2 (*)").unwrap());
    let (log, working) = (AtomicU64::new(0), AtomicBool::new(true));
    // What each standby has reported at most, noted before it reports.
    let reported: [AtomicU64; STANDBYS] = Default::default();
    let waiters: [Waiter; WAITERS] = Default::default();
    let stopped = AtomicU64::new(0);
    thread::scope(|scope| {
        for standby in 0..STANDBYS {
            let (replication, log, working, reported) = (&replication, &log, &working, &reported);
            scope.spawn(move || {
                let mut rounds = 0;
                while working.load(Acquire) {
                    let sender = Arc::new(LogSender::new(|| ()));
                    let id = replication.join(&format!("standby_{standby}"), sender);
                    for _ in 0..200 + 37 * standby {
                        let at = log.load(Acquire);
                        reported[standby].fetch_max(at, AcqRel);
                        replication.report(
                            id,
                            StandbyProgress {
                                streams: true,
                                written: Lsn(at),
                                flushed: Lsn(at),
                                applied: Lsn(at),
                            },
                        );
                        rounds += 1;
                        if rounds % 3 == 0 {
                            thread::yield_now();
                        }
                    }
                    replication.leave(id);
                }
            });
        }
        scope.spawn(|| {
            while working.load(Acquire) {
                for waiter in &waiters {
                    waiter.cancel.store(true, Relaxed);
                    let worker = waiter.worker.load(Relaxed);
                    if worker != 0 {
                        replication.interrupt(WorkerId(worker - 1));
                    }
                    thread::yield_now();
                }
            }
        });
        let threads: Vec<_> = waiters
            .iter()
            .enumerate()
            .map(|(number, waiter)| {
                let (replication, log, reported, stopped) = (&replication, &log, &reported, &stopped);
                scope.spawn(move || {
                    waiter.worker.store(Native::worker().0 + 1, Relaxed);
                    for wait in 0..WAITS {
                        let position = log.fetch_add(8, AcqRel) + 8;
                        let level = ReplicationLevel::ALL[(number + wait as usize) % 3];
                        // Every other wait may be canceled.
                        let may_stop = wait % 2 == 0;
                        waiter.cancel.store(false, Relaxed);
                        let stop = || may_stop && waiter.cancel.load(Relaxed);
                        match replication.wait(Lsn(position), level, stop) {
                            ReplicationWait::Stopped => {
                                assert!(may_stop);
                                stopped.fetch_add(1, Relaxed);
                            }
                            ReplicationWait::Replicated => {
                                let have = |standby: &AtomicU64| standby.load(Acquire) >= position;
                                let standbys = reported.iter().filter(|standby| have(standby)).count();
                                assert!(standbys >= 2, "{standbys} standbys have {position}");
                            }
                        }
                    }
                })
            })
            .collect();
        let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        working.store(false, Release);
        for result in ended {
            result.unwrap();
        }
    });
    assert!(
        stopped.load(Relaxed) > 0,
        "no wait was canceled: the test shows too little"
    );
}
