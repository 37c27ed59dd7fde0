//! Waits for the log that can be stopped (`wal/flush_requests.rs`) under loom: the shipped log, its flush and its log
//! writer, in every schedule of small cases. A wake-up that is lost shows as a deadlock: no sleep ends by the clock.
//!
//! `cargo test -p clearway-storage --features loom --test loom_flush_requests --release`
//!
//! Caught mutations: those of `mutations/flush_requests.toml`.

#![cfg(feature = "loom")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::{AtomicWord, Loom, Machine, Switch};
use clearway_storage::Lsn;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogFlushVariant, LogOptions, LogWait, Wal};
use clearway_txn::Xid;
use loom::thread;
use support::MemoryDevice;

const START: Lsn = Lsn(64);

struct Shared {
    log: Wal<Loom, MemoryDevice>,
    /// 1: the session, or the log writer, is to stop.
    stop: <Loom as Machine>::U32,
}

impl Shared {
    /// A log with one record, which ends at the position that is returned and is not durable.
    fn new(flush: LogFlushVariant) -> (Arc<Shared>, Lsn) {
        Loom::workers();
        let device = MemoryDevice::default();
        device.0.lock().unwrap().synced = START.0;
        let options = LogOptions {
            lwlock: LwLockVariant::SingleCas.into(),
            flush,
            ring_size: 256,
            insert_latches: 2,
            ..LogOptions::default()
        };
        let shared = Shared {
            log: Wal::new(device, options, START, START),
            stop: <Loom as Machine>::U32::new(0),
        };
        let end = shared.log.insert_any(RecordKind::COMMIT, Xid(100), &[]);
        (Arc::new(shared), end)
    }

    fn is_to_stop(&self) -> bool {
        self.stop.load(Relaxed) == 1
    }

    /// A session that is never told to stop.
    fn wait(&self, upto: Lsn) {
        let wait = self.log.wait_flushed(upto, || false, || None);
        assert_eq!(wait, LogWait::Durable);
        assert!(
            self.log.flushed() >= upto,
            "it goes on, and the log is not durable"
        );
        let synced = self.log.device().0.lock().unwrap().synced;
        assert!(synced >= upto.0);
    }
}

/// Explores `case` under each flush.
fn explore(preemptions: usize, case: fn(Arc<Shared>, Lsn)) {
    for &flush in LogFlushVariant::ALL {
        eprintln!("under {flush:?}");
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(preemptions);
        builder.max_branches = 20_000;
        builder.check(move || {
            let (shared, end) = Shared::new(flush);
            case(shared, end);
        });
    }
}

/// F1 and F2: a session leaves its flush to a log writer, which is about to sleep, and then is to end.
#[test]
fn loom_the_log_writer_flushes_for_a_session() {
    explore(2, |shared, end| {
        shared.log.expect_log_writer();
        let log_writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let log_writer = shared.log.begin_log_writer();
                while !shared.is_to_stop() {
                    log_writer.sleep(None, || shared.is_to_stop());
                    shared.log.flush(shared.log.wanted());
                }
            })
        };
        shared.wait(end);
        shared.stop.store(1, Relaxed);
        shared.log.wake_log_writer();
        log_writer.join().unwrap();
    });
}

/// F3: the log writer is at another part of the log, and a commit flushes.
#[test]
fn loom_a_flush_of_another_ends_the_wait() {
    explore(2, |shared, end| {
        let busy = shared.log.begin_log_writer();
        let committer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.log.flush(end))
        };
        shared.wait(end);
        committer.join().unwrap();
        drop(busy);
    });
}

/// Two sessions wait for the same flush: both are called.
#[test]
fn loom_a_flush_ends_all_waits() {
    explore(1, |shared, end| {
        let busy = shared.log.begin_log_writer();
        let waiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.wait(end))
        };
        let committer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.log.flush(end))
        };
        shared.wait(end);
        waiter.join().unwrap();
        committer.join().unwrap();
        drop(busy);
    });
}

/// The disk does not answer. The only call is the one that tells the session to stop.
#[test]
fn loom_a_wait_that_is_told_to_stop_ends() {
    explore(3, |shared, end| {
        let busy = shared.log.begin_log_writer();
        let canceler = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.stop.store(1, Relaxed);
                shared.log.interrupt_waits();
            })
        };
        let stop = || shared.is_to_stop();
        let wait = shared.log.wait_flushed(end, stop, || None);
        assert_eq!(wait, LogWait::Stopped);
        canceler.join().unwrap();
        // What was asked for is asked for still (F5).
        shared.log.flush(shared.log.wanted().max(end));
        drop(busy);
    });
}

/// A session whose sleeps end though nothing has called it waits on; so does the log writer that flushes for it.
#[test]
fn loom_a_sleep_that_ends_early_ends_no_wait() {
    explore(2, |shared, end| {
        shared.log.expect_log_writer();
        let log_writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                Loom::end_waits_early(1);
                let log_writer = shared.log.begin_log_writer();
                while !shared.is_to_stop() {
                    log_writer.sleep(None, || shared.is_to_stop());
                    shared.log.flush(shared.log.wanted());
                }
            })
        };
        Loom::end_waits_early(1);
        shared.wait(end);
        shared.stop.store(1, Relaxed);
        shared.log.wake_log_writer();
        log_writer.join().unwrap();
    });
}

/// The disk does not answer, and nothing calls the session: it leaves when its time is over.
#[test]
fn loom_a_wait_that_runs_out_of_time_ends() {
    explore(3, |shared, end| {
        let busy = shared.log.begin_log_writer();
        let ends = Loom::now() + 5_000;
        let stop = || Loom::now() >= ends;
        let time_left = || Some(Duration::from_nanos(ends.saturating_sub(Loom::now())));
        let wait = shared.log.wait_flushed(end, stop, time_left);
        assert_eq!(wait, LogWait::Stopped);
        assert!(shared.log.flushed() < end);
        shared.log.flush(end);
        drop(busy);
    });
}

/// The log writer has nothing to do, and looks again when its time is over.
#[test]
fn loom_the_log_writer_sleeps_for_a_time() {
    explore(3, |shared, end| {
        let log_writer = shared.log.begin_log_writer();
        log_writer.sleep(Some(Duration::from_millis(1)), || false);
        shared.log.flush(end);
        drop(log_writer);
    });
}

/// F4: the log writer ends, and the session flushes by itself.
#[test]
fn loom_a_log_writer_that_ends_leaves_the_flush_to_the_session() {
    explore(3, |shared, end| {
        let log_writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || drop(shared.log.begin_log_writer()))
        };
        shared.wait(end);
        log_writer.join().unwrap();
    });
}
