//! A log segment is 16 MiB to write and to sync. A session never makes one while it holds a page latch, for
//! which others may be waiting.

#[path = "support/chosen.rs"]
mod chosen;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clearway_storage::btree::BTree;
use clearway_storage::disk::{Faults, FaultyDisk, NativeDisk, Operation};
use clearway_storage::heap::{Tid, TxnContext};
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::{Reader, Storage, StorageOptions};
use clearway_txn::{Snapshot, Xid};

/// Notes the latches that the maker of each segment held.
#[derive(Debug, Default)]
struct Makers(Mutex<Vec<Vec<&'static str>>>);

impl Faults for Makers {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        if operation == Operation::Allocate(SEGMENT_SIZE) && path.extension().is_some_and(|end| end == "new")
        {
            self.0.lock().unwrap().push(clearway_latch::held_classes());
        }
        Ok(())
    }
}

/// Alice inserts into a tree until the log needs new segments; the background writer is at rest. Bob may be
/// waiting for any of her pages.
#[test]
fn segments_are_made_before_pages_are_latched() {
    let dir = tempfile::tempdir().unwrap();
    let makers = Arc::new(Makers::default());
    let disk = FaultyDisk::new(Arc::new(NativeDisk), makers.clone());
    let options = StorageOptions {
        buffer_bytes: 64 << 20,
        fsync: false,
        sessions_max: 4,
        wal_writer_delay: Duration::from_secs(3600),
        ..chosen::options()
    };
    let (storage, _) = Storage::open_on(Arc::new(disk), dir.path(), options).unwrap();
    let rel = storage.create_rel().unwrap();
    BTree::create(&storage, rel).unwrap();
    let tree = BTree::new(rel.0);
    let proc = storage.proc_array.attach().unwrap();
    let snapshot = Snapshot::default();
    let context = TxnContext {
        storage: &storage,
        proc,
        xid: Some(Xid::FIRST_NORMAL),
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    let made_before = makers.0.lock().unwrap().len();
    let mut number = 0_u32;
    while makers.0.lock().unwrap().len() < made_before + 2 {
        // Scattered keys of 1 KiB: each is logged, and every few of them split a page.
        let mut key = number.wrapping_mul(2_654_435_769).to_be_bytes().to_vec();
        key.resize(1024, b'k');
        let tid = Tid {
            block: number,
            slot: 1,
        };
        tree.insert(&context, &key, tid, None).unwrap();
        number += 1;
        assert!(number < 200_000, "the log needs no segment");
    }
    for held in &makers.0.lock().unwrap()[made_before..] {
        assert!(
            !held.contains(&"BufferContent"),
            "a segment was made under {held:?}"
        );
    }
    storage.stop_threads();
}
