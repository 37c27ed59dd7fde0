//! Splits of which only the first half has happened, for each possible reason: another inserter is faster,
//! the machine stopped between the two log records, the disk was full.
//!
//! Caught mutations: `descend` that arrives at a root below the level asked for, and `parent_of` that takes
//! it (all but the last case); `insert` that does not complete what it crossed (the last three); `parent_of`
//! that inserts what is there already (the first two).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use clearway_txn::Snapshot;

use super::{PAGE_LATCHES, context, tid};
use crate::btree::node::{Bound, Entry, Node};
use crate::btree::{BTree, Direction};
use crate::buffer::{BufferPoolOptions, PageLatchVariant};
use crate::disk::{Disk, Faults, FaultyDisk, NativeDisk, Operation};
use crate::error::StorageError;
use crate::heap::Tid;
use crate::page::{Lsn, RelId};
use crate::storage::{Storage, StorageOptions};
use crate::wal::SEGMENT_SIZE;
use crate::wal::reader::LogReader;
use crate::wal::segment_name::parse_segment_name;

/// A key so long that three or four entries fill a page, and a few dozen make a deep tree.
fn key(number: u32) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.resize(1_900, 7);
    key
}

fn open(dir: &Path, page_latch: PageLatchVariant, faults: Option<Arc<dyn Faults>>) -> Arc<Storage> {
    let options = StorageOptions {
        pool: BufferPoolOptions {
            page_latch,
            ..BufferPoolOptions::default()
        },
        fsync: false,
        buffer_bytes: 2 << 20,
        ..StorageOptions::default()
    };
    let disk: Arc<dyn Disk> = match faults {
        Some(faults) => Arc::new(FaultyDisk::new(Arc::new(NativeDisk), faults)),
        None => Arc::new(NativeDisk),
    };
    Storage::open_on(disk, dir, options).unwrap().0
}

fn new_tree(storage: &Storage) -> (BTree, RelId) {
    let rel = storage.create_rel().unwrap();
    BTree::create(storage, rel).unwrap();
    (BTree::new(rel.0), rel)
}

fn insert(tree: BTree, storage: &Storage, number: u32) -> Result<(), StorageError> {
    let snapshot = Snapshot::default();
    tree.insert(&context(storage, &snapshot), &key(number), tid(number), None)
        .map(drop)
}

fn root_level(tree: BTree, storage: &Storage) -> u16 {
    let root = tree.read(storage, tree.root(storage).unwrap()).unwrap();
    Node(root.bytes()).level()
}

/// Inserts even numbers until the root is a page of `level` that has no room for one more entry.
fn fill_root(tree: BTree, storage: &Storage, level: u16) -> Vec<u32> {
    let mut there = Vec::new();
    let entry = key(0).len() + 64;
    loop {
        {
            let root = tree.read(storage, tree.root(storage).unwrap()).unwrap();
            let node = Node(root.bytes());
            if node.level() == level && node.free() < entry {
                return there;
            }
        }
        // Scattered: one half of the numbers upwards, the other downwards.
        let count = there.len() as u32;
        let number = if count.is_multiple_of(2) {
            10_000 + count * 20
        } else {
            10_000 - count * 20
        };
        insert(tree, storage, number).unwrap();
        there.push(number);
    }
}

/// Every number is found once, each way; and each page of a level is named once by the level above.
fn check(tree: BTree, storage: &Storage, there: &[u32], complete: bool) {
    let mut wanted: Vec<Tid> = there.iter().map(|number| tid(*number)).collect();
    wanted.sort_unstable();
    for direction in [Direction::Forward, Direction::Backward] {
        let mut tids = Vec::new();
        let mut cursor = tree.range(&[], None, direction);
        while cursor.next_batch(storage, 10, &mut tids).unwrap() {}
        if direction == Direction::Backward {
            tids.reverse();
        }
        assert_eq!(tids, wanted, "{direction:?}");
    }
    for &number in there {
        let mut tids = Vec::new();
        tree.lookup(storage, &key(number), &mut tids).unwrap();
        assert_eq!(tids, [tid(number)]);
    }
    if complete {
        check_levels(tree, storage);
    }
}

fn check_levels(tree: BTree, storage: &Storage) {
    let mut named = vec![tree.root(storage).unwrap()];
    let mut level = root_level(tree, storage);
    loop {
        let (mut chain, mut children) = (Vec::new(), Vec::new());
        let mut next = Some(named[0]);
        while let Some(block) = next {
            let page = tree.read(storage, block).unwrap();
            let node = Node(page.bytes());
            assert_eq!(node.level(), level, "page {block}");
            chain.push(block);
            if level > 0 {
                children.extend((0..node.len()).map(|index| node.child(index)));
            }
            next = node.right();
        }
        assert_eq!(
            chain, named,
            "the pages of level {level}, and what the level above names"
        );
        if level == 0 {
            return;
        }
        (named, level) = (children, level - 1);
    }
}

/// The first half of a split of the page at `level` that covers `number`, an odd one: what an inserter of
/// that number has done when it stops before the second half. The separator is returned.
fn split_at(tree: BTree, storage: &Storage, number: u32, level: u16) -> Entry {
    let key = key(number);
    let bound = Bound {
        key: &key,
        tid: tid(number),
    };
    let mut block = tree.root(storage).unwrap();
    loop {
        let page = tree.read(storage, block).unwrap();
        let node = Node(page.bytes());
        if node.level() == level {
            break;
        }
        block = node.child(node.covering(bound));
    }
    let page = tree.update(storage, block).unwrap();
    let entry = Entry {
        key: key.into(),
        tid: tid(number),
        child: 0,
    };
    tree.split(storage, page, entry).unwrap()
}

/// Two inserters split one after the other the pages of the root's level; the second is so fast that it looks
/// for the level above before the first, which split the root, has made that level. It must not take the root
/// for its parent.
#[test]
fn the_second_splitter_overtakes_the_one_that_split_the_root() {
    for page_latch in PAGE_LATCHES {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path(), page_latch, None);
        let (tree, _) = new_tree(&storage);
        let mut there = fill_root(tree, &storage, 0);
        let separator = split_at(tree, &storage, 10_001, 0);
        there.push(10_001);
        // The right half first.
        for number in (9_000..11_000).step_by(40).rev() {
            insert(tree, &storage, number + 3).unwrap();
            there.push(number + 3);
        }
        check(tree, &storage, &there, false);
        // The first one goes on, several levels later.
        tree.complete_split(&storage, separator, 0, &mut Vec::new())
            .unwrap();
        check(tree, &storage, &there, true);
        storage.stop_threads();
    }
}

/// As above, with an inner page for the root: a separator must not get among the separators below it.
#[test]
fn the_second_splitter_overtakes_one_that_split_an_inner_root() {
    for page_latch in PAGE_LATCHES {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path(), page_latch, None);
        let (tree, _) = new_tree(&storage);
        let mut there = fill_root(tree, &storage, 1);
        // A leaf that is full and whose separator is what splits the root.
        let leaf = split_at(tree, &storage, 10_001, 0);
        there.push(10_001);
        let page = tree.update(&storage, tree.root(&storage).unwrap()).unwrap();
        let separator = tree.split(&storage, page, leaf).unwrap();
        for number in (9_000..11_000).step_by(40).rev() {
            insert(tree, &storage, number + 3).unwrap();
            there.push(number + 3);
        }
        check(tree, &storage, &there, false);
        tree.complete_split(&storage, separator, 1, &mut Vec::new())
            .unwrap();
        check(tree, &storage, &there, true);
        storage.stop_threads();
    }
}

/// Allows this many allocations for data files, then the disk is full.
#[derive(Debug)]
struct FullDisk(AtomicI64);

impl Faults for FullDisk {
    fn before(&self, operation: Operation, path: &Path) -> std::io::Result<()> {
        let in_log = path.components().any(|part| part.as_os_str() == "pg_wal");
        if in_log || !matches!(operation, Operation::Allocate(_)) {
            return Ok(());
        }
        match self.0.fetch_sub(1, Ordering::Relaxed) {
            1.. => Ok(()),
            _ => Err(std::io::Error::from(std::io::ErrorKind::StorageFull)),
        }
    }
}

/// The disk is full when an insertion needs the page for the new root, and has room again later. The
/// insertion that failed has split the root already.
#[test]
fn the_disk_is_full_when_the_root_is_to_grow() {
    for page_latch in PAGE_LATCHES {
        for level in [0, 1] {
            let dir = tempfile::tempdir().unwrap();
            let disk = Arc::new(FullDisk(AtomicI64::new(i64::MAX)));
            let storage = open(dir.path(), page_latch, Some(disk.clone()));
            let (tree, _) = new_tree(&storage);
            let mut there = fill_root(tree, &storage, level);
            let mut failed = None;
            for number in (1..4_000).step_by(2) {
                let before = tree.root(&storage).unwrap();
                let right_of_root = |storage: &Storage| {
                    let page = tree.read(storage, before).unwrap();
                    Node(page.bytes()).right().is_some()
                };
                // Of the pages that an insertion adds, the new root is the last.
                disk.0.store(i64::from(level) + 1, Ordering::Relaxed);
                let outcome = insert(tree, &storage, 10_000 + number);
                disk.0.store(i64::MAX, Ordering::Relaxed);
                there.push(10_000 + number);
                if let Err(error) = outcome {
                    assert!(matches!(error, StorageError::DiskFull { .. }), "{error}");
                    failed = Some(right_of_root(&storage));
                    break;
                }
            }
            assert_eq!(failed, Some(true), "the root is split and no page is above it");
            for number in (9_000..11_000).step_by(20) {
                insert(tree, &storage, number + 4).unwrap();
                there.push(number + 4);
            }
            check(tree, &storage, &there, true);
            storage.stop_threads();
        }
    }
}

/// The positions at which log records end.
fn record_ends(storage: &Storage, from: Lsn) -> Vec<Lsn> {
    storage.wal.flush(storage.wal.reserved());
    let mut reader = LogReader::new(storage.wal.device(), from);
    let mut ends = Vec::new();
    while reader.next_record().unwrap().is_some() {
        ends.push(reader.position());
    }
    ends
}

/// Makes everything in the log's segment files behind `end` zeros.
fn cut_log(dir: &Path, end: Lsn) {
    for entry in fs::read_dir(dir.join("pg_wal")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let (_, number) = parse_segment_name(name.to_str().unwrap()).unwrap();
        let keep = end.0.saturating_sub(number * SEGMENT_SIZE).min(SEGMENT_SIZE);
        let file = fs::OpenOptions::new().write(true).open(entry.path()).unwrap();
        // The tests write far less than this.
        let zeros = vec![0; ((SEGMENT_SIZE - keep) as usize).min(2 << 20)];
        file.write_all_at(&zeros, keep).unwrap();
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The machine stops between the log records of one insertion, for the insertions that grow the root: after
/// recovery everything is found, and insertions go on; after them the levels above name every page.
#[test]
fn the_machine_stops_between_the_records_of_a_root_split() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), PageLatchVariant::default(), None);
    let (tree, _) = new_tree(&storage);
    // By the end of each record but the last of an insertion that changed the root: what had been inserted by then.
    let mut cuts: BTreeMap<Lsn, Vec<u32>> = BTreeMap::new();
    let mut there = Vec::new();
    for number in 0..80 {
        let number = if number % 2 == 0 {
            10_000 + number
        } else {
            10_000 - number
        };
        let (from, root) = (storage.wal.reserved(), tree.root(&storage).unwrap());
        insert(tree, &storage, number).unwrap();
        there.push(number);
        if tree.root(&storage).unwrap() != root {
            let ends = record_ends(&storage, from);
            assert!(ends.len() > 1, "a root split is at least two records");
            cuts.extend(ends[..ends.len() - 1].iter().map(|end| (*end, there.clone())));
        }
    }
    assert!(cuts.len() >= 6, "three root splits: {cuts:?}");
    storage.stop_threads();
    drop(storage);

    for (number, (end, mut there)) in cuts.into_iter().enumerate() {
        let copy = tempfile::tempdir().unwrap();
        copy_dir(dir.path(), copy.path());
        cut_log(copy.path(), end);
        let storage = open(copy.path(), PAGE_LATCHES[number % 3], None);
        check(tree, &storage, &there, false);
        for number in (9_900..10_100).step_by(3).map(|number| number + 1_000_000) {
            insert(tree, &storage, number).unwrap();
            there.push(number);
        }
        for number in (9_900..10_100)
            .filter(|number| !there.contains(number))
            .collect::<Vec<_>>()
        {
            insert(tree, &storage, number).unwrap();
            there.push(number);
        }
        check(tree, &storage, &there, true);
        storage.stop_threads();
    }
}

/// A leaf in the middle was split, and its parent does not name the right half. The next insertion that
/// follows the link enters it.
#[test]
fn the_next_inserter_completes_a_split() {
    for page_latch in PAGE_LATCHES {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path(), page_latch, None);
        let (tree, rel) = new_tree(&storage);
        let mut there = fill_root(tree, &storage, 2);
        let separator = split_at(tree, &storage, 10_001, 0);
        there.push(10_001);
        storage.wal.flush(storage.wal.reserved());
        storage.stop_threads();
        drop(storage);

        let storage = open(dir.path(), page_latch, None);
        let tree = BTree::new(rel.0);
        let mut after = separator.key.to_vec();
        after.push(0);
        let snapshot = Snapshot::default();
        let outcome = tree.insert(&context(&storage, &snapshot), &after, tid(77), None);
        outcome.unwrap();
        check_levels(tree, &storage);
        storage.stop_threads();
    }
}
