//! The room that a tree takes.

#[path = "support/chosen.rs"]
mod chosen;

use clearway_storage::btree::BTree;
use clearway_storage::heap::{Tid, TxnContext};
use clearway_storage::{Reader, Storage, StorageOptions};
use clearway_txn::{Snapshot, Xid};

/// The number of pages of a tree with these keys, inserted one after the other.
fn pages(keys: impl Iterator<Item = u32>) -> u32 {
    let dir = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        buffer_bytes: 8 << 20,
        fsync: false,
        sessions_max: 4,
        ..chosen::options()
    };
    let (storage, _) = Storage::open(dir.path(), options).unwrap();
    let rel = storage.create_rel().unwrap();
    BTree::create(&storage, rel).unwrap();
    let tree = BTree::new(rel.0);
    let snapshot = Snapshot::default();
    let context = TxnContext {
        storage: &storage,
        proc: storage.proc_array.attach().unwrap(),
        xid: Some(Xid::FIRST_NORMAL),
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    for key in keys {
        let tid = Tid { block: key, slot: 1 };
        tree.insert(&context, &key.to_be_bytes(), tid, None).unwrap();
    }
    let pages = storage.block_count(rel).unwrap();
    storage.stop_threads();
    pages
}

/// A split of the last page leaves it nine tenths full, any other split halves its page.
#[test]
fn keys_in_ascending_order_fill_their_pages() {
    const KEYS: u32 = 20_000;
    let (ascending, descending) = (pages(0..KEYS), pages((0..KEYS).rev()));
    assert!(
        ascending * 3 < descending * 2,
        "{ascending} pages for ascending keys, {descending} for descending ones"
    );
}
