//! `Cleanup` records under loom: two workers prune at once, and whatever one of them leaves to the other's record, no
//! removal is in the log before a record that names its deleter or a newer one (R1 of `cleanup`).
//!
//! Mutation tried, and caught: the newest logged one raised before the record is inserted.

#![cfg(feature = "loom")]

mod support;

use std::sync::Arc;

use clearway_machine::Loom;
use clearway_storage::Lsn;
use clearway_storage::cleanup::{self, NewestCleanup};
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogOptions, Wal};
use clearway_txn::Xid;
use support::MemoryDevice;

const START: u64 = 64;

struct Shared {
    log: Wal<Loom, MemoryDevice>,
    newest: NewestCleanup<Loom>,
}

impl Shared {
    /// Removes versions that `deleter` deleted: the change bears its xid, for the check.
    fn prune(&self, deleter: Xid) {
        self.newest.log_before_removal(&self.log, deleter);
        self.log.insert_any(RecordKind::CHANGE, deleter, &[]);
    }
}

fn two_workers_prune(options: LogOptions, deleters: [Xid; 2]) {
    let device = MemoryDevice::default();
    device.0.lock().unwrap().synced = START;
    let shared = Arc::new(Shared {
        log: Wal::new(device.clone(), options, Lsn(START), Lsn(START)),
        newest: NewestCleanup::default(),
    });
    let other = {
        let shared = Arc::clone(&shared);
        loom::thread::spawn(move || shared.prune(deleters[1]))
    };
    shared.prune(deleters[0]);
    other.join().unwrap();
    shared.log.flush(shared.log.reserved());
    let mut reader = LogReader::new(&device, Lsn(START));
    let (mut named, mut removals) = (Xid::INVALID, 0);
    while let Some((record, _)) = reader.next_record().unwrap() {
        match record.kind {
            RecordKind::CLEANUP => named = named.max(cleanup::decode(record.payload).unwrap()),
            RecordKind::CHANGE => {
                assert!(named >= record.xid, "a removal before the record that it needs");
                removals += 1;
            }
            _ => {}
        }
    }
    assert_eq!(removals, 2);
}

#[test]
fn loom_no_removal_comes_before_its_record() {
    let options = LogOptions {
        ring_size: 256,
        insert_latches: 2,
        ..LogOptions::default()
    };
    for options in options.under_all_insertions() {
        for deleters in [[10, 10], [11, 10]] {
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = Some(2);
            builder.max_branches = 20_000;
            builder.check(move || two_workers_prune(options, deleters.map(Xid)));
        }
    }
}
