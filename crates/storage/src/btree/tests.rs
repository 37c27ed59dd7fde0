//! Tests of states that exist only between two steps of the algorithm.

mod check;
mod incomplete_splits;
mod unique;

use std::sync::Arc;

use clearway_txn::{ProcId, Snapshot};

use super::descend::Descent;
use super::node::{Bound, Entry, Node};
use super::{BTree, Direction};
use crate::buffer::PageLatchVariant;
use crate::heap::{Tid, TxnContext};
use crate::page::RelId;
use crate::storage::{Storage, StorageOptions};

fn tid(number: u32) -> Tid {
    Tid {
        block: number,
        slot: 1,
    }
}

/// A long key, so that few keys make a deep tree.
fn key(number: u32) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.resize(100, 0);
    key
}

const PAGE_LATCHES: [PageLatchVariant; 3] = [
    PageLatchVariant::LwLock,
    PageLatchVariant::Ssux,
    PageLatchVariant::Hybrid,
];

fn open(dir: &std::path::Path, page_latch: PageLatchVariant) -> Arc<Storage> {
    let options = StorageOptions {
        page_latch,
        fsync: false,
        buffer_bytes: 4 << 20,
        ..StorageOptions::default()
    };
    Storage::open(dir, options).unwrap().0
}

fn tree(storage: &Storage) -> (BTree, RelId) {
    let rel = storage.create_rel().unwrap();
    BTree::create(storage, rel).unwrap();
    (BTree::new(rel.0), rel)
}

fn context<'a>(storage: &'a Storage, snapshot: &'a Snapshot) -> TxnContext<'a> {
    TxnContext {
        storage,
        proc: ProcId(0),
        xid: None,
        command: 0,
        snapshot,
        seen: None,
    }
}

fn found(tree: BTree, storage: &Storage, number: u32, direction: Direction) -> Vec<Tid> {
    let (lower, upper) = (key(number), key(number + 1));
    let mut tids = Vec::new();
    let mut cursor = tree.range(&lower, Some(&upper), direction);
    while cursor.next_batch(storage, 10, &mut tids).unwrap() {}
    tids
}

/// R2: a page has split and its parent does not know of it yet (another inserter is about to tell it, or a
/// crash came between): the right half is reached by the link, by readers both ways, by lookups and by
/// inserters. This holds for a leaf and for the page above it.
///
/// Caught mutations: a `move_right` that does not move; a `move_right_update` that does not; a backward
/// cursor that does not go right on its way down. Each of the first two makes up for the other in most of
/// what follows here.
#[test]
fn a_split_the_parent_does_not_know_of_hides_nothing() {
    PAGE_LATCHES.into_iter().for_each(a_split_alone);
}

fn a_split_alone(page_latch: PageLatchVariant) {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), page_latch);
    let (tree, _) = tree(&storage);
    let snapshot = Snapshot::default();
    let ctx = context(&storage, &snapshot);
    // Even numbers, so many that there are three levels.
    let numbers: Vec<u32> = (0..20_000).map(|number| number * 2).collect();
    let entries = numbers.iter().map(|number| (key(*number), tid(*number)));
    for (key, tid) in entries {
        tree.insert(&ctx, &key, tid, None).unwrap();
    }
    let root = tree.read(&storage, tree.root(&storage).unwrap()).unwrap();
    assert_eq!(Node(root.bytes()).level(), 2, "the test wants three levels");
    drop(root);

    for level in [0, 1] {
        let middle = 2 * numbers[numbers.len() / 4 * (1 + level as usize)] / 2 + 1;
        let middle_key = key(middle);
        let bound = Bound {
            key: &middle_key,
            tid: tid(middle),
        };
        let block = tree
            .descend(&storage, bound, level, &mut Descent::default())
            .unwrap()
            .unwrap();
        let page = tree.update(&storage, block).unwrap();
        let held = Node(page.bytes()).entries();
        // An entry that is in the page already would be there twice: take one that is new, and for an inner
        // page one that leads where the middle's own child leads.
        let child = match level {
            0 => 0,
            _ => Node(page.bytes()).child(Node(page.bytes()).covering(bound)),
        };
        let entry = Entry {
            key: middle_key.as_slice().into(),
            tid: tid(middle),
            child,
        };
        let separator = tree.split(&storage, page, entry).unwrap();
        assert_ne!(separator.child, block);

        // A descent that began before the split arrives at the left half.
        let last_bound = held[held.len() - 1].bound();
        let page = tree.read(&storage, block).unwrap();
        let page = tree.move_right(&storage, page, last_bound, |_| {}).unwrap();
        assert_eq!(page.page_id().block, separator.child, "a reader moves right");
        drop(page);
        let page = tree.update(&storage, block).unwrap();
        let page = tree
            .move_right_update(&storage, page, last_bound, |_| {})
            .unwrap();
        assert_eq!(page.page_id().block, separator.child, "an inserter moves right");
        drop(page);

        let (first, last) = (held[1].key.clone(), held[held.len() - 1].key.clone());
        let number = |key: &[u8]| u32::from_be_bytes(key[..4].try_into().unwrap()) / 2 * 2;
        for there in (number(&first)..number(&last)).step_by(if level == 0 { 2 } else { 62 }) {
            assert_eq!(
                found(tree, &storage, there, Direction::Forward),
                [tid(there)],
                "forward"
            );
            assert_eq!(
                found(tree, &storage, there, Direction::Backward),
                [tid(there)],
                "backward"
            );
            let mut tids = Vec::new();
            tree.lookup(&storage, &key(there), &mut tids).unwrap();
            assert_eq!(tids, [tid(there)], "lookup");
        }
        let new = number(&last) - 1;
        tree.insert(&ctx, &key(new), tid(new), None).unwrap();
        assert_eq!(
            found(tree, &storage, new, Direction::Backward),
            [tid(new)],
            "inserted into the right half"
        );
    }
}

/// The root that a descent remembers has split since, many times: everything is still found, and the new root
/// is remembered.
///
/// Caught mutation: `start` not looking for a right neighbour.
#[test]
fn an_outdated_root_is_a_place_to_begin() {
    PAGE_LATCHES.into_iter().for_each(an_outdated_root);
}

fn an_outdated_root(page_latch: PageLatchVariant) {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), page_latch);
    let (tree, rel) = tree(&storage);
    let snapshot = Snapshot::default();
    let ctx = context(&storage, &snapshot);
    let first_root = tree.root(&storage).unwrap();
    for number in 0..20_000 {
        tree.insert(&ctx, &key(number), tid(number), None).unwrap();
    }
    let root = tree.root(&storage).unwrap();
    assert_ne!(root, first_root);
    for number in [0, 5_000, 19_999] {
        storage.root_hints.set(rel, first_root);
        assert_eq!(found(tree, &storage, number, Direction::Forward), [tid(number)]);
        assert_eq!(
            storage.root_hints.get(rel),
            Some(root),
            "the old one has a right neighbour"
        );
    }
    storage.root_hints.set(rel, first_root);
    let between = [key(10_000), vec![1]].concat();
    tree.insert(&ctx, &between, tid(1), None).unwrap();
    let mut tids = Vec::new();
    tree.lookup(&storage, &between, &mut tids).unwrap();
    assert_eq!(tids, [tid(1)]);
}
