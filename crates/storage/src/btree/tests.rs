//! Tests of states that exist only between two steps of the algorithm.

mod check;
mod incomplete_splits;
mod unique;

use std::collections::HashSet;
use std::sync::Arc;

use clearway_txn::{ProcId, Snapshot, Xid};

use super::descend::{Descent, META_ROOT};
use super::node::{Bound, Entry, Node};
use super::{BTree, Direction};
use crate::buffer::{BufferPoolOptions, PageLatchVariant};
use crate::commit::Reader;
use crate::error::StorageError;
use crate::heap::{Tid, TxnContext};
use crate::page::{PageId, RelId};
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
        pool: BufferPoolOptions {
            page_latch,
            ..BufferPoolOptions::default()
        },
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
        reader: Reader::of_no_answer(snapshot),
        changes: None,
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
    // Even numbers, enough for three levels.
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

/// Rows that a scan has passed may be dead to every snapshot, its own included, and vacuum may remove their entries
/// before the scan goes on.
#[test]
fn a_scan_goes_on_where_vacuum_has_removed_entries() {
    const COUNT: u32 = 600;
    // Not in the first batch of a few leaves only, nor to the end of the tree.
    const UPPER: u32 = 550;
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), PageLatchVariant::default());
    for direction in [Direction::Forward, Direction::Backward] {
        let (tree, _) = tree(&storage);
        let snapshot = Snapshot::default();
        let ctx = context(&storage, &snapshot);
        let mut there: Vec<u32> = (0..COUNT).collect();
        for &number in &there {
            tree.insert(&ctx, &key(number), tid(number), None).unwrap();
        }
        for stop in 1..200 {
            let mut wanted: Vec<Tid> = there
                .iter()
                .filter(|&&number| number < UPPER)
                .map(|&number| tid(number))
                .collect();
            if direction == Direction::Backward {
                wanted.reverse();
            }
            let mut cursor = tree.range(&[], Some(&key(UPPER)), direction);
            let mut tids = Vec::new();
            assert!(cursor.next_batch(&storage, stop, &mut tids).unwrap());
            let last = tids[tids.len() - 1];
            assert_eq!(tree.vacuum_delete(&storage, &HashSet::from([last])).unwrap(), 1);
            there.retain(|&number| tid(number) != last);
            while cursor.next_batch(&storage, 50, &mut tids).unwrap() {}
            assert!(
                tids == wanted,
                "{direction:?}, after {stop} entries: {} of {}",
                tids.len(),
                wanted.len()
            );
        }
    }
    storage.stop_threads();
}

/// A link to a page that is no node is an error, and nothing is read there.
#[test]
fn a_link_to_another_kind_of_page_is_an_error() {
    for page_latch in PAGE_LATCHES {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path(), page_latch);
        let (tree, rel) = tree(&storage);
        let other = storage.extend(rel).unwrap().page_id().block;
        let meta = storage.pin(PageId { rel, block: 0 }).unwrap();
        let mut change = storage.begin_change(Xid::INVALID).unwrap();
        let mut meta = meta.exclusive();
        change.write(&mut meta, META_ROOT, &other.to_le_bytes());
        change.finish().unwrap();
        drop(meta);
        let found = tree.lookup(&storage, &key(1), &mut Vec::new());
        assert!(
            matches!(found, Err(StorageError::Inconsistent { .. })),
            "{found:?}"
        );
        let snapshot = Snapshot::default();
        let outcome = tree.insert(&context(&storage, &snapshot), &key(1), tid(1), None);
        assert!(
            matches!(outcome, Err(StorageError::Inconsistent { .. })),
            "{outcome:?}"
        );
        storage.stop_threads();
    }
}

/// A key whose first bytes are those of many others; what follows the number sorts before any of its bytes.
fn common_key(number: u32) -> Vec<u8> {
    let mut key = format!("a common beginning {number:06}").into_bytes();
    key.resize(200, 1);
    key
}

/// Keys that differ behind their first eight bytes only, and many rows with one key, near and far: a descent compares
/// all of a key, and then the rows. From memory and, with checksums on the pages, from disk.
#[test]
fn a_descent_compares_whole_keys_and_places() {
    const COUNT: u32 = 1_500;
    const OFTEN: u32 = 700;
    for page_latch in PAGE_LATCHES {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path(), page_latch);
        let (tree, rel) = tree(&storage);
        let mut wanted: Vec<(Vec<u8>, Tid)> = (0..COUNT)
            .map(|number| (common_key(number), tid(number)))
            .collect();
        for number in 1..=600 {
            wanted.push((
                common_key(OFTEN),
                Tid {
                    block: 50_000_000,
                    slot: number,
                },
            ));
            wanted.push((common_key(OFTEN), tid(60_000_000 + u32::from(number))));
        }
        // Scattered: the number of them is no multiple of 7.
        let scattered: Vec<_> = (0..wanted.len())
            .map(|index| wanted[index * 7 % wanted.len()].clone())
            .collect();
        wanted.sort_unstable();
        let (first, second) = scattered.split_at(scattered.len() * 2 / 3);
        let insert = |storage: &Storage, entries: &[(Vec<u8>, Tid)]| {
            let snapshot = Snapshot::default();
            for (key, tid) in entries {
                tree.insert(&context(storage, &snapshot), key, *tid, None)
                    .unwrap();
            }
        };
        insert(&storage, first);
        storage.shutdown().unwrap();
        drop(storage);
        let storage = open(dir.path(), page_latch);
        insert(&storage, second);
        for number in 0..COUNT {
            let mut tids = Vec::new();
            tree.lookup(&storage, &common_key(number), &mut tids).unwrap();
            assert_eq!(tids.len(), if number == OFTEN { 1_201 } else { 1 }, "{number}");
        }
        let mut cursor = tree.range(&[], None, Direction::Forward);
        let mut found = Vec::new();
        while cursor.next_entries(&storage, 1_000, &mut found).unwrap() {}
        assert!(
            found == wanted,
            "{page_latch:?}: {} of {} entries",
            found.len(),
            wanted.len()
        );
        let mut findings = storage.findings(rel);
        let blocks = storage.block_count(rel).unwrap();
        let shape = tree.check_structure::<StorageError>(&storage, blocks, &mut findings, &mut |_| Ok(()));
        assert_eq!(
            (shape.unwrap().levels, findings.list()),
            (3, &[][..]),
            "{page_latch:?}"
        );
        storage.stop_threads();
    }
}
