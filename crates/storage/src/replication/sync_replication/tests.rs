//! Waits and wake-ups with threads of the host. `tests/loom_sync_replication.rs` has every interleaving of small cases.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::*;
use crate::{Storage, StorageOptions};
use ReplicationLevel::{Applied, Flushed, Written};

fn names(text: &str) -> Option<StandbyNames> {
    StandbyNames::parse(text).unwrap()
}

fn streaming(written: u64, flushed: u64, applied: u64) -> StandbyProgress {
    StandbyProgress {
        streams: true,
        written: Lsn(written),
        flushed: Lsn(flushed),
        applied: Lsn(applied),
    }
}

fn joined(replication: &SyncReplication, name: &str) -> StandbyId {
    replication.join(name, Arc::new(LogSender::new(|| ())))
}

/// Returns when `count` workers are in the queues.
fn until_waiting(replication: &SyncReplication, count: usize) {
    loop {
        let state = replication.state.shared();
        if state.queues.iter().map(Queue::len).sum::<usize>() == count {
            return;
        }
        drop(state);
        std::thread::yield_now();
    }
}

#[test]
fn no_standby_named_no_wait() {
    let replication = SyncReplication::<Native>::new();
    let wait = replication.wait(Lsn(900), Flushed, || false);
    assert_eq!(wait, ReplicationWait::Replicated);
    assert_eq!(replication.secured(), None);
}

/// Else the recent commits of a log that is longer than 4 TiB are read wrong until a standby has reported.
#[test]
fn positions_begin_at_the_end_of_the_log() {
    let end = Lsn(5 << 40);
    let replication = SyncReplication::<Native>::starting_at(end);
    replication.set_names(names("berlin"));
    assert_eq!(replication.secured(), Some(end));
    let dir = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        buffer_bytes: 1 << 20,
        ..StorageOptions::default()
    };
    let (storage, _) = Storage::open(dir.path(), options).unwrap();
    let begun = storage.sync_replication.replicated(Flushed);
    assert!(begun > Lsn(0) && begun <= storage.wal.flushed(), "{begun}");
}

#[test]
fn each_level_waits_for_its_own_position() {
    let replication = SyncReplication::<Native>::new();
    replication.set_names(names("berlin"));
    let berlin = joined(&replication, "berlin");
    let (done, ended) = channel();
    std::thread::scope(|scope| {
        for level in ReplicationLevel::ALL {
            let (replication, done) = (&replication, done.clone());
            scope.spawn(move || {
                assert_eq!(
                    replication.wait(Lsn(900), level, || false),
                    ReplicationWait::Replicated
                );
                done.send(level).unwrap();
            });
        }
        until_waiting(&replication, 3);
        for (progress, level) in [
            (streaming(900, 800, 800), Written),
            (streaming(900, 900, 800), Flushed),
            (streaming(900, 900, 950), Applied),
        ] {
            replication.report(berlin, progress);
            assert_eq!(ended.recv().unwrap(), level);
            assert!(ended.try_recv().is_err());
        }
    });
}

#[test]
fn waits_go_on_until_another_standby_counts() {
    let replication = SyncReplication::<Native>::new();
    replication.set_names(names("berlin, paris"));
    let (berlin, paris) = (joined(&replication, "berlin"), joined(&replication, "paris"));
    replication.report(berlin, streaming(100, 100, 100));
    replication.report(paris, streaming(900, 900, 900));
    assert_eq!(replication.replicated(Flushed), Lsn(100));
    assert_eq!(replication.standing(paris), (SyncState::Potential, 2));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| replication.wait(Lsn(500), Flushed, || false));
        until_waiting(&replication, 1);
        replication.leave(berlin);
        assert_eq!(waiter.join().unwrap(), ReplicationWait::Replicated);
    });
    assert_eq!(replication.standing(paris), (SyncState::Sync, 2));
    replication.leave(paris);
    assert_eq!(
        replication.replicated(Flushed),
        Lsn(900),
        "it never moves backwards"
    );
    let berlin = joined(&replication, "berlin");
    replication.report(berlin, streaming(200, 200, 200));
    assert_eq!(replication.replicated(Flushed), Lsn(900));
}

#[test]
fn a_wait_ends_when_it_is_told_to_or_no_standby_is_named() {
    let replication = SyncReplication::<Native>::new();
    replication.set_names(names("berlin"));
    let stop = AtomicBool::new(false);
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            tell.send(Native::worker()).unwrap();
            replication.wait(Lsn(500), Flushed, || stop.load(Relaxed))
        });
        let worker = told.recv().unwrap();
        until_waiting(&replication, 1);
        // A signal alone ends nothing.
        replication.interrupt(worker);
        std::thread::sleep(Duration::from_millis(10));
        assert!(!waiter.is_finished());
        stop.store(true, Relaxed);
        replication.interrupt(worker);
        assert_eq!(waiter.join().unwrap(), ReplicationWait::Stopped);
        until_waiting(&replication, 0);
        let waiter = scope.spawn(|| replication.wait(Lsn(500), Applied, || false));
        until_waiting(&replication, 1);
        replication.set_names(None);
        assert_eq!(waiter.join().unwrap(), ReplicationWait::Replicated);
    });
}

#[test]
fn a_waiter_wakes_a_sender_that_sleeps_once() {
    let replication = SyncReplication::<Native>::new();
    replication.set_names(names("berlin"));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let sender = Arc::new(LogSender::new(move || {
        counted.fetch_add(1, Relaxed);
    }));
    let berlin = replication.join("berlin", Arc::clone(&sender));
    for (number, sleeps, expected) in [(1, false, 0), (2, true, 1), (3, false, 1)] {
        if sleeps {
            sender.going_to_sleep();
        }
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| replication.wait(Lsn(number * 100), Flushed, || false));
            }
            until_waiting(&replication, 2);
            // The wake-up is after the queue: give the waiters the time for it.
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(calls.load(Relaxed), expected, "round {number}");
            let at = number * 100;
            replication.report(berlin, streaming(at, at, at));
        });
    }
}

/// The secured position, and the additional wait of a session of the level `Applied`.
#[test]
fn applied_counts_once_it_is_asked_for() {
    let replication = SyncReplication::<Native>::new();
    replication.set_names(names("berlin"));
    let berlin = joined(&replication, "berlin");
    replication.report(berlin, streaming(900, 800, 700));
    assert_eq!(replication.secured(), Some(Lsn(800)));
    replication.want_applied(|| Lsn(850));
    replication.want_applied(|| Lsn(990));
    assert_eq!(replication.secured(), Some(Lsn(700)));
    assert_eq!(replication.applied_floor(), Lsn(850));
}
