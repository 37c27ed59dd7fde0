//! Commits of several sessions at once on the machine's own threads, with every way to wait for the disk, beside readers:
//! each snapshot sees the first commits of the log, and none but those.

#![expect(
    clippy::disallowed_methods,
    reason = "a test asks what a snapshot sees, and tells no client"
)]

#[path = "support/database.rs"]
mod database;
mod support;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clearway_machine::{Native, Watchdog};
use clearway_storage::wal::LogOptions;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{CommitWait, Publish};
use clearway_txn::{ProcId, Xid};
use database::{Database, FIRST, START, Variants};

const WRITERS: u32 = 4;
const READERS: u32 = 2;
const COMMITS: u32 = 300;

/// The transactions whose commit records are in the log, in its order.
fn logged(database: &Database<Native>) -> Vec<Xid> {
    let end = database.log.reserved();
    database.log.flush(end);
    let mut reader = LogReader::new(database.log.device(), START);
    let mut commits = Vec::new();
    while reader.position() < end {
        let (record, _) = reader.next_record().unwrap().expect("whole records");
        if record.kind == RecordKind::COMMIT {
            commits.push(record.xid);
        }
    }
    commits
}

/// Each fifth transaction rolls back; the others wait in one of three ways, and some have definitions.
fn write(database: &Database<Native>, proc: ProcId) {
    for number in 0..COMMITS {
        let xid = database.array.assign_xid(proc);
        let wait = match (number + proc.0) % 5 {
            0 => {
                database.path().abort(proc, xid).unwrap();
                continue;
            }
            1 => CommitWait::Nothing,
            2 => CommitWait::BeforeSeen,
            _ => CommitWait::BeforeAcknowledged,
        };
        if number % 7 == 0 {
            let publish = Publish::new(thread::yield_now);
            database.path().commit(proc, xid, wait, publish).unwrap();
        } else {
            database.path().commit(proc, xid, wait, ()).unwrap();
        }
    }
}

/// The commits that each snapshot saw, until it is time to stop.
fn read(database: &Database<Native>, proc: ProcId, stop: &AtomicBool) -> Vec<Vec<Xid>> {
    let mut shown = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let snapshot = database.snapshot(proc);
        let begun = database.array.next_xid();
        let sees = |xid: &Xid| snapshot.sees(*xid, &database.commit_log).unwrap();
        shown.push((FIRST.0..begun.0).map(Xid).filter(sees).collect());
        database.array.clear_xmin(proc);
        thread::yield_now();
    }
    shown
}

#[test]
fn each_snapshot_is_that_of_a_position_in_the_log() {
    let _watchdog = Watchdog::over_test();
    for variants in Variants::each_order_of_commits() {
        // The ring holds a few commits: a record may have to wait for room behind its place in the order.
        let log = LogOptions {
            ring_size: 4096,
            ..variants.log
        };
        let database = Database::<Native>::new(Variants { log, ..variants }, WRITERS + READERS);
        // The others go on while a sync is in progress.
        database.log.device().0.lock().unwrap().before_sync = Some(thread::yield_now);
        let stop = AtomicBool::new(false);
        let shown: Vec<_> = thread::scope(|scope| {
            let (database, stop) = (&database, &stop);
            let writers: Vec<_> = (0..WRITERS)
                .map(|number| scope.spawn(move || write(database, ProcId(number))))
                .collect();
            let readers: Vec<_> = (0..READERS)
                .map(|number| scope.spawn(move || read(database, ProcId(WRITERS + number), stop)))
                .collect();
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            stop.store(true, Ordering::Relaxed);
            readers
                .into_iter()
                .flat_map(|reader| reader.join().unwrap())
                .collect()
        });
        let logged = logged(&database);
        for shown in shown {
            let first: BTreeSet<_> = logged[..shown.len()].iter().copied().collect();
            assert!(
                shown.iter().all(|xid| first.contains(xid)),
                "under {variants:?} a snapshot saw {} commits that are not the first of the log",
                shown.len()
            );
        }
    }
}
