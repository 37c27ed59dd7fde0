//! The log's insert and flush protocol under shuttle: random schedules of more workers and records than loom
//! can take, in a ring so small that inserters keep writing each other's records out, with checkpoints in
//! between.
//!
//! Caught mutations: `LogOutput::sync` that publishes `durable` before the device is synced (`wal/output.rs`); and those of
//! groups and of polling in `crates/storage/mutations/wal.toml`.

#![cfg(feature = "shuttle")]

mod support;

use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::Shuttle;
use clearway_storage::Lsn;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogOptions, RedoMoved, Wal, record};
use clearway_txn::Xid;
use shuttle::sync::Arc;
use support::MemoryDevice;

const START: u64 = 64;
const WORKERS: u64 = 4;
const RECORDS: u64 = 3;

/// A device with nothing on it, whose syncs let other workers run.
fn device() -> MemoryDevice {
    let device = MemoryDevice::default();
    {
        let mut contents = device.0.lock().unwrap();
        contents.synced = START;
        contents.before_sync = Some(shuttle::thread::yield_now);
    }
    device
}

fn insert_flush_checkpoint(options: LogOptions) {
    let device = device();
    let log: Wal<Shuttle, _> = Wal::new(device.clone(), options, Lsn(START), Lsn(START));
    let log = Arc::new(log);
    let workers: Vec<_> = (0..WORKERS)
        .map(|worker| {
            let (log, device) = (Arc::clone(&log), device.clone());
            shuttle::thread::spawn(move || {
                let mut inserted = Vec::new();
                for number in 0..RECORDS {
                    let payload = vec![worker as u8; (worker + number * 9) as usize];
                    let mut built_for = log.redo();
                    let xid = Xid(worker * 100 + number);
                    let end = loop {
                        match log.insert(RecordKind::CHANGE, xid, &payload, built_for) {
                            Ok(end) => break end,
                            Err(RedoMoved(now)) => built_for = now,
                        }
                    };
                    inserted.push((built_for, end.0 - record::size(payload.len()) as u64));
                    if (worker + number) % 2 == 0 {
                        log.flush(end);
                        assert!(device.0.lock().unwrap().synced >= end.0);
                    }
                }
                inserted
            })
        })
        .collect();
    let checkpointer = {
        let log = Arc::clone(&log);
        shuttle::thread::spawn(move || {
            // Two moves with a flush in between and two without.
            let mut redos = Vec::new();
            for number in 0..3 {
                let redo = log.move_redo();
                redos.push(redo);
                if number == 0 {
                    log.flush(redo);
                }
            }
            redos
        })
    };
    let inserted: Vec<_> = workers
        .into_iter()
        .flat_map(|worker| worker.join().unwrap())
        .collect();
    let redos = checkpointer.join().unwrap();
    for (built_for, start) in inserted {
        let moved = redos.iter().find(|redo| **redo > built_for && redo.0 <= start);
        assert_eq!(moved, None, "the record at {start} was built for {built_for}");
    }
    log.flush(log.reserved());
    let mut reader = LogReader::new(&device, Lsn(START));
    let mut seen = Vec::new();
    while let Some((record, _)) = reader.next_record().unwrap() {
        if record.kind == RecordKind::NOTHING {
            continue;
        }
        let (worker, number) = (record.xid.0 / 100, record.xid.0 % 100);
        assert_eq!(record.payload, vec![worker as u8; (worker + number * 9) as usize]);
        seen.push(record.xid.0);
    }
    assert_eq!(reader.position(), log.reserved(), "no gaps");
    // Each worker's own records are in its order.
    for worker in 0..WORKERS {
        let own: Vec<_> = seen
            .iter()
            .filter(|xid| **xid / 100 == worker)
            .map(|xid| xid % 100)
            .collect();
        assert_eq!(own, (0..RECORDS).collect::<Vec<_>>());
    }
}

/// A log with a ring and latches so few that they are in each other's way, under every variant of its switches.
fn small_logs(algorithm: LwLockVariant, commit_delay: Duration) -> impl Iterator<Item = LogOptions> {
    let options = LogOptions {
        lwlock: algorithm.into(),
        commit_delay,
        ring_size: 128,
        insert_latches: 2,
        ..LogOptions::default()
    };
    options.under_all_variants()
}

/// Six workers insert a record each and flush it, once. No later flush wakes a worker that was forgotten. Six have all
/// the parts of a hand-over under `polling`: one flushes while two form a group; that group hands its follower over to
/// the leader of the next, and another worker replaces this one before it runs.
fn each_flushes_once(options: LogOptions) {
    flush_once(options, 0);
}

/// As `each_flushes_once`, and the first `early` futex waits of each worker's flush end though no thread has woken it.
fn flush_once(options: LogOptions, early: u32) {
    let device = device();
    if early > 0 {
        // Syncs that take long, so that several are in flight.
        device.0.lock().unwrap().before_sync = Some(|| (0..20).for_each(|_| shuttle::thread::yield_now()));
    }
    let log: Wal<Shuttle, _> = Wal::new(device.clone(), options, Lsn(START), Lsn(START));
    let log = Arc::new(log);
    let workers: Vec<_> = (0..6)
        .map(|xid| {
            let (log, device) = (Arc::clone(&log), device.clone());
            shuttle::thread::spawn(move || {
                let end = log.insert_any(RecordKind::COMMIT, Xid(xid), &[]);
                Shuttle::end_waits_early(early);
                log.flush(end);
                assert!(device.0.lock().unwrap().synced >= end.0);
            })
        })
        .collect();
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

#[test]
fn shuttle_no_follower_is_forgotten() {
    let options = LogOptions {
        ring_size: 1 << 10,
        insert_latches: 1,
        ..LogOptions::default()
    };
    for options in options.under_all_wakes() {
        shuttle::check_random(move || each_flushes_once(options), 2_000);
    }
}

/// Under `overlapped` a leader sleeps for a lane of the device as well.
#[test]
fn shuttle_waits_end_early() {
    let options = LogOptions {
        ring_size: 1 << 10,
        insert_latches: 1,
        ..LogOptions::default()
    };
    let default = LogOptions::default();
    let all = options.under_all_variants();
    for options in
        all.filter(|options| (options.reserve, options.insert) == (default.reserve, default.insert))
    {
        shuttle::check_random(move || flush_once(options, 2), 1_000);
    }
}

#[test]
fn shuttle_single_cas() {
    for options in small_logs(LwLockVariant::SingleCas, Duration::ZERO) {
        shuttle::check_random(move || insert_flush_checkpoint(options), 400);
    }
}

#[test]
fn shuttle_queued() {
    for options in small_logs(LwLockVariant::Queued, Duration::ZERO) {
        shuttle::check_random(move || insert_flush_checkpoint(options), 400);
    }
}

#[test]
fn shuttle_commit_delay() {
    for options in small_logs(LwLockVariant::SingleCas, Duration::from_micros(10)) {
        shuttle::check_pct(move || insert_flush_checkpoint(options), 300, 3);
    }
}
