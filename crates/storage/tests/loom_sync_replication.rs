//! Commits that wait for standbys, under loom: the shipped `SyncReplication`, a wait against a report, a cancel, and a
//! change of the setting. A wake-up that is lost shows as a deadlock.
//!
//! `cargo test -p clearway-storage --features loom --test loom_sync_replication --release`
//!
//! Caught mutations: `mutations/sync_replication.toml`.

#![cfg(feature = "loom")]

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_storage::Lsn;
use clearway_storage::sync_replication::{
    LogSender, ReplicationLevel, ReplicationWait, StandbyId, StandbyNames, StandbyProgress, SyncReplication,
};
use loom::thread;

struct Shared {
    replication: SyncReplication<Loom>,
    berlin: StandbyId,
    /// The position that was reported last, stored before the report.
    reported: <Loom as Machine>::U64,
    stop: <Loom as Machine>::U32,
    /// The waiter's slot and one, once it is known.
    waiter: <Loom as Machine>::U32,
}

impl Shared {
    fn report(&self, at: u64) {
        self.reported.store(at, Release);
        let progress = StandbyProgress {
            streams: true,
            written: Lsn(at),
            flushed: Lsn(at),
            applied: Lsn(at),
        };
        self.replication.report(self.berlin, progress);
    }

    /// A wait that no cancel ends is over when the position was reported, and not before.
    fn wait(&self, position: u64) {
        let wait = self
            .replication
            .wait(Lsn(position), ReplicationLevel::Flushed, || false);
        assert_eq!(wait, ReplicationWait::Replicated);
        assert!(
            self.reported.load(Acquire) >= position,
            "acknowledged and not replicated"
        );
    }
}

fn explore(preemptions: usize, case: impl Fn(Arc<Shared>) + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        // The machine's globals exist before any thread can race for them.
        Loom::workers();
        let replication = SyncReplication::<Loom>::new();
        replication.set_names(StandbyNames::parse("berlin").unwrap());
        let berlin = replication.join("berlin", Arc::new(LogSender::new(|| ())));
        case(Arc::new(Shared {
            replication,
            berlin,
            reported: <Loom as Machine>::U64::new(0),
            stop: <Loom as Machine>::U32::new(0),
            waiter: <Loom as Machine>::U32::new(0),
        }));
    });
}

/// The report comes before, while or after the waiter enters the queue.
#[test]
fn loom_a_wait_against_its_report() {
    explore(3, |shared| {
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.wait(100))
        };
        shared.report(100);
        waiter.join().unwrap();
    });
}

/// Each waiter is woken by the report that covers it, and none before.
#[test]
fn loom_two_waiters_and_two_reports() {
    explore(2, |shared| {
        let waiters = [100, 200].map(|position| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.wait(position))
        });
        shared.report(100);
        shared.report(200);
        for waiter in waiters {
            waiter.join().unwrap();
        }
    });
}

/// A wait is asked to stop while its report arrives: it ends either way, and the same worker's next wait is a wait
/// again, whatever signals are still on their way.
#[test]
fn loom_a_stopped_wait_leaves_nothing_behind() {
    explore(2, |shared| {
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.waiter.store(Loom::worker().0 + 1, Release);
                let stop = || shared.stop.load(Relaxed) != 0;
                let wait = shared.replication.wait(Lsn(100), ReplicationLevel::Flushed, stop);
                if wait == ReplicationWait::Replicated {
                    assert!(shared.reported.load(Acquire) >= 100);
                }
                shared.wait(200);
            })
        };
        let canceler = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.stop.store(1, Relaxed);
                // A cancel for a session whose thread is not known yet finds the flag set.
                let worker = shared.waiter.load(Acquire);
                if worker != 0 {
                    shared
                        .replication
                        .interrupt(clearway_machine::WorkerId(worker - 1));
                }
            })
        };
        shared.report(100);
        canceler.join().unwrap();
        shared.report(200);
        waiter.join().unwrap();
    });
}

/// The waiter's sleeps end though no signal has come: it goes on when the report has, and not before.
#[test]
fn loom_a_sleep_that_ends_early_ends_no_wait() {
    explore(3, |shared| {
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                Loom::end_waits_early(2);
                shared.wait(100);
            })
        };
        shared.report(100);
        waiter.join().unwrap();
    });
}

/// No report and no signal comes: the wait ends when its time is over.
#[test]
fn loom_a_wait_runs_out_of_time() {
    explore(3, |shared| {
        let ends = Loom::now() + 5_000;
        let stop = || Loom::now() >= ends;
        let time_left = || Some(Duration::from_nanos(ends.saturating_sub(Loom::now())));
        let wait = shared
            .replication
            .wait_within(Lsn(100), ReplicationLevel::Flushed, stop, time_left);
        assert_eq!(wait, ReplicationWait::Stopped);
    });
}

/// The only signal is the cancel: it is not lost.
#[test]
fn loom_a_cancel_ends_a_wait() {
    explore(3, |shared| {
        let me = Loom::worker();
        let canceler = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.stop.store(1, Relaxed);
                shared.replication.interrupt(me);
            })
        };
        let stop = || shared.stop.load(Relaxed) != 0;
        let wait = shared.replication.wait(Lsn(100), ReplicationLevel::Flushed, stop);
        assert_eq!(wait, ReplicationWait::Stopped);
        canceler.join().unwrap();
    });
}

/// No standby is named any more: all go, also one that is on its way into the queue.
#[test]
fn loom_waits_end_when_no_standby_is_named() {
    explore(3, |shared| {
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let level = ReplicationLevel::Applied;
                shared.replication.wait(Lsn(100), level, || false)
            })
        };
        shared.replication.set_names(None);
        assert_eq!(waiter.join().unwrap(), ReplicationWait::Replicated);
    });
}

/// A standby goes, and another one counts in its place.
#[test]
fn loom_the_next_standby_counts_when_the_first_goes() {
    explore(2, |shared| {
        let names = StandbyNames::parse("berlin, paris").unwrap();
        shared.replication.set_names(names);
        let paris = shared.replication.join("paris", Arc::new(LogSender::new(|| ())));
        shared.report(50);
        shared.reported.store(100, Release);
        let progress = StandbyProgress {
            streams: true,
            written: Lsn(100),
            flushed: Lsn(100),
            applied: Lsn(0),
        };
        shared.replication.report(paris, progress);
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.wait(100))
        };
        shared.replication.leave(shared.berlin);
        waiter.join().unwrap();
    });
}

/// S7: a standby is named while a commit puts its record into the log. The commit is acknowledged without the standby only if
/// its record lies before the position that is read after the naming.
#[test]
fn loom_naming_a_standby_against_a_commit() {
    explore(3, |shared| {
        shared.replication.set_names(None);
        let log_end = Arc::new(<Loom as Machine>::U64::new(100));
        let commit = {
            let (shared, log_end) = (Arc::clone(&shared), Arc::clone(&log_end));
            thread::spawn(move || {
                let end = log_end.fetch_add(100, Relaxed) + 100;
                let wait = shared
                    .replication
                    .wait(Lsn(end), ReplicationLevel::Flushed, || true);
                (end, wait)
            })
        };
        shared
            .replication
            .set_names(StandbyNames::parse("berlin").unwrap());
        let named_at = log_end.load(Relaxed);
        let (end, wait) = commit.join().unwrap();
        assert!(
            wait == ReplicationWait::Stopped || end <= named_at,
            "acknowledged at {end} without the standby that was named at {named_at}"
        );
    });
}
