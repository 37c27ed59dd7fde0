//! The log's insert and flush protocol under loom: every schedule of small cases, with weak memory.
//!
//! Checked: positions are disjoint and without gaps; a flush that returns has made its records
//! durable *and complete* (the bytes written decode as whole records), so waiting for insertions never ends
//! before a copy does; no worker sleeps for ever. The ring's cells are loom's, so reading a cell before its
//! copy is ordered before us fails the test too.
//!
//! Mutations tried, each caught:
//! - the insertion latch released *before* the copy: `flushed_records_are_whole` sees a ring cell read and
//!   written at once.
//! - `wait_insertions` returning `reserved` without waiting: the same.
//! - `move_redo` without advertising the end of time: `a_checkpoint_and_a_full_ring_do_not_block_each_other`
//!   deadlocks (it did: that was a fault of the first version).
//! - an inserter that finds the ring full not advertising where it inserts: the same test deadlocks, on its own latch.
//! - the redo position not checked again under the insertion latch: `no_record_built_for_an_old_redo_follows_it` fails.
//! - `insertions_finished` without its fence, or taking a held latch that advertises nothing for a free one, and space
//!   reserved with Relaxed: `flushed_records_are_whole` fails. (Shuttle sees the second only: it has no weak memory.)

#![cfg(feature = "loom")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::LwLockVariant;
use clearway_machine::{AtomicWord, Loom, Machine};
use clearway_storage::Lsn;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogFlushVariant, LogInsertVariant, LogOptions, LogReserveVariant, Wal};
use clearway_txn::Xid;
use support::MemoryDevice;

const START: u64 = 64;

type Log = Wal<Loom, MemoryDevice>;

/// A log with a ring and latches so few that they are in each other's way.
fn log(options: LogOptions, ring_size: usize, insert_latches: usize) -> (Arc<Log>, MemoryDevice) {
    let device = MemoryDevice::default();
    device.0.lock().unwrap().synced = START;
    let options = LogOptions {
        ring_size,
        insert_latches,
        ..options
    };
    let log = Wal::new(device.clone(), options, Lsn(START), Lsn(START));
    (Arc::new(log), device)
}

/// The xids of the whole records before the durable end, which must be a record's end, without those withdrawn.
fn durable_xids(device: &MemoryDevice) -> Vec<u64> {
    let end = device.0.lock().unwrap().synced;
    let mut reader = LogReader::new(device, Lsn(START));
    let mut xids = Vec::new();
    while reader.position() < Lsn(end) {
        let (record, _) = reader
            .next_record()
            .unwrap()
            .expect("everything durable is whole records");
        if record.kind != RecordKind::NOTHING {
            xids.push(record.xid.0);
        }
    }
    assert_eq!(reader.position(), Lsn(end));
    xids
}

/// Checks a case under every variant of the log's switches.
fn check(algorithm: LwLockVariant, preemptions: usize, body: fn(LogOptions)) {
    let options = LogOptions {
        lwlock: algorithm.into(),
        ..LogOptions::default()
    };
    for options in options.under_all_variants() {
        explore(options, preemptions, body);
    }
}

/// As [`check`], for a case that flushes nothing: under every way to reserve and to insert.
fn check_without_flush(algorithm: LwLockVariant, preemptions: usize, body: fn(LogOptions)) {
    let options = LogOptions {
        lwlock: algorithm.into(),
        ..LogOptions::default()
    };
    for options in options.under_all_insertions() {
        explore(options, preemptions, body);
    }
}

/// Checks a case under one choice of the switches.
fn explore(options: LogOptions, preemptions: usize, body: fn(LogOptions)) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || body(options));
}

fn flushed_records_are_whole(options: LogOptions) {
    let (log, device) = log(options, 64, 2);
    let commit = |log: &Log, device: &MemoryDevice, xid: u64| {
        let end = log.insert_any(RecordKind::COMMIT, Xid(xid), &[]);
        log.flush(end);
        assert!(log.flushed() >= end);
        assert!(durable_xids(device).contains(&xid));
    };
    let other = {
        let (log, device) = (Arc::clone(&log), device.clone());
        loom::thread::spawn(move || commit(&log, &device, 10))
    };
    commit(&log, &device, 11);
    other.join().unwrap();
    let mut xids = durable_xids(&device);
    xids.sort();
    assert_eq!(xids, [10, 11]);
}

/// As `flushed_records_are_whole`. The first futex wait of each worker ends though it was not woken, and its semaphore has a
/// post that is for none of its waits.
fn waits_end_early(options: LogOptions) {
    let (log, device) = log(options, 64, 2);
    let commit = |log: &Log, device: &MemoryDevice, xid: u64| {
        Loom::workers().slot(Loom::worker()).semaphore.post();
        Loom::end_waits_early(1);
        let end = log.insert_any(RecordKind::COMMIT, Xid(xid), &[]);
        log.flush(end);
        assert!(log.flushed() >= end);
        assert!(durable_xids(device).contains(&xid));
    };
    let other = {
        let (log, device) = (Arc::clone(&log), device.clone());
        loom::thread::spawn(move || commit(&log, &device, 10))
    };
    commit(&log, &device, 11);
    other.join().unwrap();
}

#[test]
fn loom_waits_end_early() {
    check(LwLockVariant::SingleCas, 1, waits_end_early);
}

fn a_checkpoint_and_a_full_ring_do_not_block_each_other(options: LogOptions) {
    // The ring holds one record: the second insertion must write the first one out.
    let (log, device) = log(options, 32, 2);
    log.insert_any(RecordKind::COMMIT, Xid(10), &[]);
    // The other worker's insertion latch is the second, so the checkpointer may hold the first and wait for
    // the second.
    let other = {
        let log = Arc::clone(&log);
        loom::thread::spawn(move || log.insert_any(RecordKind::COMMIT, Xid(11), &[]))
    };
    let redo = log.move_redo();
    let end = other.join().unwrap();
    // Behind the second record, or before it, or before the one withdrawn that lies before it.
    assert!([0, 32, 64].contains(&(end.0 - redo.0)));
    log.flush(end);
    assert_eq!(durable_xids(&device), [10, 11]);
}

/// The redo position moves: under `ring` twice, so that the era is the one before again. Whatever a worker did before it
/// reserved a place is seen by the worker that moved the redo position behind that place: so a checkpoint finds the page
/// that the record changes dirty.
fn no_record_built_for_an_old_redo_follows_it(options: LogOptions) {
    let (log, _) = log(options, 128, 2);
    // So that the redo position does move.
    log.insert_any(RecordKind::COMMIT, Xid(9), &[]);
    let dirty = Arc::new(<Loom as Machine>::U32::new(0));
    let other = {
        let (log, dirty) = (Arc::clone(&log), Arc::clone(&dirty));
        loom::thread::spawn(move || {
            let built_for = log.redo();
            dirty.store(1, Relaxed);
            let inserted = log.insert(RecordKind::CHANGE, Xid(10), &[], built_for);
            inserted.map(|end| (built_for, Lsn(end.0 - 32)))
        })
    };
    let moves = match options.insert {
        LogInsertVariant::Latches => 1,
        LogInsertVariant::Ring => 2,
    };
    let moved: Vec<_> = (0..moves)
        .map(|_| (log.move_redo(), dirty.load(Relaxed) == 1))
        .collect();
    let Ok((built_for, start)) = other.join().unwrap() else {
        return;
    };
    for (redo, is_dirty) in moved {
        assert!(
            redo <= built_for || start < redo,
            "the record at {start} was built for {built_for}, and the redo position moved to {redo}"
        );
        assert!(
            redo <= start || is_dirty,
            "the record at {start} lies before {redo}, and its page is not seen to be dirty"
        );
    }
}

/// The ring is full. One worker makes room for a third record and inserts it over the first; the other flushes the second,
/// and must not take the first for one that has yet to be written.
fn no_flusher_reads_what_was_overwritten(options: LogOptions) {
    let (log, device) = log(options, 64, 2);
    log.insert_any(RecordKind::COMMIT, Xid(10), &[]);
    let second = log.insert_any(RecordKind::COMMIT, Xid(11), &[]);
    let other = {
        let log = Arc::clone(&log);
        loom::thread::spawn(move || log.insert_any(RecordKind::COMMIT, Xid(12), &[]))
    };
    log.flush(second);
    log.flush(other.join().unwrap());
    assert_eq!(durable_xids(&device), [10, 11, 12]);
}

#[test]
fn loom_no_flusher_reads_what_was_overwritten() {
    let all = LogOptions::default().under_all_variants();
    for options in all.filter(|options| options.reserve == LogReserveVariant::default()) {
        explore(options, 2, no_flusher_reads_what_was_overwritten);
    }
}

/// Three workers flush three records that are in the ring, so that one may flush for two others, of which one may wake the
/// other, and one of these may have to flush again.
fn each_flusher_finds_its_record_durable(options: LogOptions) {
    let (log, device) = log(options, 128, 1);
    let ends = [10, 11, 12].map(|xid| log.insert_any(RecordKind::COMMIT, Xid(xid), &[]));
    let flush = |log: &Log, device: &MemoryDevice, end: Lsn| {
        log.flush(end);
        assert!(log.flushed() >= end);
        assert!(device.0.lock().unwrap().synced >= end.0);
    };
    let others = [ends[1], ends[2]].map(|end| {
        let (log, device) = (Arc::clone(&log), device.clone());
        loom::thread::spawn(move || flush(&log, &device, end))
    });
    flush(&log, &device, ends[0]);
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(durable_xids(&device), [10, 11, 12]);
}

#[test]
fn loom_each_flusher_finds_its_record_durable() {
    let default = LogOptions::default();
    let all = default.under_all_variants();
    for options in
        all.filter(|options| (options.reserve, options.insert) == (default.reserve, default.insert))
    {
        // A group of three, in which one follower may have the duty to wake the other, takes two preemptions.
        let preemptions = if options.flush == LogFlushVariant::Group {
            2
        } else {
            1
        };
        explore(options, preemptions, each_flusher_finds_its_record_durable);
    }
}

#[test]
fn loom_single_cas_flushed_records_are_whole() {
    check(LwLockVariant::SingleCas, 2, flushed_records_are_whole);
}

#[test]
fn loom_queued_flushed_records_are_whole() {
    check(LwLockVariant::Queued, 1, flushed_records_are_whole);
}

#[test]
fn loom_a_checkpoint_and_a_full_ring_do_not_block_each_other() {
    check(
        LwLockVariant::SingleCas,
        2,
        a_checkpoint_and_a_full_ring_do_not_block_each_other,
    );
    check(
        LwLockVariant::Queued,
        2,
        a_checkpoint_and_a_full_ring_do_not_block_each_other,
    );
}

#[test]
fn loom_no_record_built_for_an_old_redo_follows_it() {
    check_without_flush(
        LwLockVariant::SingleCas,
        2,
        no_record_built_for_an_old_redo_follows_it,
    );
    check_without_flush(
        LwLockVariant::Queued,
        2,
        no_record_built_for_an_old_redo_follows_it,
    );
}
