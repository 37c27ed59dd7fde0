//! B+trees under shuttle: the shipped tree on the shipped pool, with keys so long that three or four fill a
//! page. Random schedules of inserters that split pages of all levels, of readers, and of inserters of one
//! unique key; on a disk that may be full for one page, so that a split is left half done for the next
//! inserter. Inserters put in entries one by one, or runs of them (`insert_run.rs`).
//!
//! Found when it was first run: a root that two inserters wanted to grow was grown by the second to a level
//! on which the first had put it already (`split.rs`, S3).
//!
//! Caught mutations (`mutations/btree.toml`):
//! - `split.rs`: `grow_root` that does not look whether the page is the root still; a root's level that is
//!   not asked together with its number; a root taken for the parent of a page of its level; the left half of
//!   a split released before the right one is written.
//! - `insert.rs`: splits that are not completed; a unique check that reads the next leaf under a shared latch
//!   (ssux and hybrid; an LwLock's update mode keeps readers out); the key's first leaf released after the
//!   check; inserters of a key that begin where their own entry goes.
//! - `insert_run.rs`: a run that goes on behind its leaf's high key; entries behind the first of a run that are
//!   not checked.
//! - `descend.rs`, `optimistic.rs`, `cursor.rs`: descents, inserters and backward cursors that do not move
//!   right; the left leaf released before the right one is latched.
//!
//! A descent for reading that does not move right finds everything all the same, because lookups and cursors
//! go along the leaves. What the suite sees of it is a split of an inner page that is never completed.

#![cfg(feature = "shuttle")]

#[path = "support/long_turns.rs"]
mod long_turns;
#[path = "support/tree_in_memory.rs"]
mod tree_in_memory;

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use clearway_storage::btree::{BTree, Direction, InsertOutcome, NewEntry};
use clearway_storage::heap::{Liveness, Tid};
use clearway_storage::{BufferPoolOptions, PageLatchVariant, Result, StorageError};
use clearway_txn::Xid;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Arc;
use shuttle::thread;
use tree_in_memory::{InMemory, REL};

/// Lengths of keys: three, four or six entries fill a page.
const KEY_LENGTHS: [usize; 3] = [2_600, 1_900, 1_200];
const INSERTERS: usize = 3;
const INSERTIONS: usize = 3;

/// No unique check.
const NOT_UNIQUE: Option<fn(Tid) -> Result<Liveness>> = None;

fn tid(block: u32) -> Tid {
    Tid { block, slot: 1 }
}

fn number(from: usize, to: usize) -> usize {
    thread_rng().gen_range(from..to)
}

/// A tree, and which keys are in it.
struct Tree {
    storage: InMemory,
    tree: BTree,
    key_length: usize,
    /// The numbers of all keys whose insertion has ended well, and of all whose insertion has begun.
    inserted: Mutex<BTreeSet<u32>>,
    begun: Mutex<BTreeSet<u32>>,
}

impl Tree {
    fn new(options: BufferPoolOptions) -> Self {
        let storage = InMemory::new(options);
        BTree::create(&storage, REL).unwrap();
        Self {
            storage,
            tree: BTree::new(REL.0),
            key_length: KEY_LENGTHS[number(0, KEY_LENGTHS.len())],
            inserted: Mutex::default(),
            begun: Mutex::default(),
        }
    }

    fn key(&self, number: u32) -> Vec<u8> {
        let mut key = number.to_be_bytes().to_vec();
        key.resize(self.key_length, 7);
        key
    }

    /// Inserts a key, unless the disk is full.
    fn insert(&self, number: u32) {
        self.begun.lock().unwrap().insert(number);
        let key = self.key(number);
        match self
            .tree
            .insert_entry(&self.storage, &key, tid(number), NOT_UNIQUE)
        {
            Ok(outcome) => assert_eq!(outcome, InsertOutcome::Inserted),
            Err(StorageError::DiskFull { .. }) => return,
            Err(error) => panic!("{number}: {error}"),
        }
        self.inserted.lock().unwrap().insert(number);
    }

    /// Inserts keys, as many together as go on a leaf, until the disk is full.
    fn insert_runs(&self, mut numbers: Vec<u32>) {
        numbers.sort_unstable();
        self.begun.lock().unwrap().extend(&numbers);
        let keys: Vec<Vec<u8>> = numbers.iter().map(|number| self.key(*number)).collect();
        let entries: Vec<NewEntry<'_>> = keys
            .iter()
            .zip(&numbers)
            .map(|(key, number)| NewEntry {
                key,
                tid: tid(*number),
                unique: false,
            })
            .collect();
        let mut done = 0;
        while done < entries.len() {
            match self
                .tree
                .insert_run_of(&self.storage, &entries[done..], |_| unreachable!())
            {
                Ok(run) => {
                    assert_eq!(run.conflict, None);
                    assert!(run.count > 0, "a run without entries");
                    let inserted = &numbers[done..done + run.count];
                    self.inserted.lock().unwrap().extend(inserted);
                    done += run.count;
                }
                // As a statement ends there: the run may be in, and the split that it came by not completed.
                Err(StorageError::DiskFull { .. }) => return,
                Err(error) => panic!("{numbers:?}: {error}"),
            }
        }
    }

    /// Reads everything: what was inserted before is there, once and in order, and nothing that no inserter
    /// has begun to insert.
    fn scan(&self, direction: Direction) {
        let before = self.inserted.lock().unwrap().clone();
        let mut cursor = self.tree.range(&[], None, direction);
        let mut entries = Vec::new();
        while cursor.next_entries(&self.storage, 4, &mut entries).unwrap() {}
        if direction == Direction::Backward {
            entries.reverse();
        }
        let numbers: Vec<u32> = entries.iter().map(|(_, tid)| tid.block).collect();
        assert!(
            numbers.is_sorted_by(|a, b| a < b),
            "{direction:?}: not in order: {numbers:?}"
        );
        let found: BTreeSet<u32> = numbers.into_iter().collect();
        assert!(
            found.is_superset(&before),
            "{direction:?}: {before:?} was there, and {found:?} is found"
        );
        let begun = self.begun.lock().unwrap();
        assert!(found.is_subset(&begun), "{direction:?}: {found:?} of {begun:?}");
    }

    fn look_up(&self, number: u32) {
        let mut tids = Vec::new();
        self.tree
            .lookup(&self.storage, &self.key(number), &mut tids)
            .unwrap();
        assert_eq!(tids, [tid(number)], "lookup of {number}");
    }

    fn look_up_newest(&self) {
        let newest = self.inserted.lock().unwrap().last().copied();
        if let Some(number) = newest {
            self.look_up(number);
        }
    }

    /// The checks after all workers have ended.
    fn check(&self) {
        let shape = self.storage.check(self.tree);
        assert_eq!(shape.new, 0, "a page that was added for nothing");
        let was_full = self.storage.was_full();
        assert!(
            was_full || shape.unnamed == 0,
            "each inserter told the level above"
        );
        self.scan(Direction::Forward);
        self.scan(Direction::Backward);
        let inserted = self.inserted.lock().unwrap().clone();
        for &number in &inserted {
            self.look_up(number);
        }
        if !was_full {
            return;
        }
        // An inserter that visits each page completes the splits that were not completed.
        let begun = self.begun.lock().unwrap().clone();
        for number in begun {
            let mut behind = number.to_be_bytes().to_vec();
            behind.push(u8::MAX);
            self.tree
                .insert_entry(&self.storage, &behind, tid(number), NOT_UNIQUE)
                .unwrap();
        }
        assert_eq!(
            self.storage.check(self.tree).unnamed,
            0,
            "all splits are completed"
        );
    }
}

/// Random schedules under every variant of the pool's map and of `page_read`, with this page latch.
fn check(page_latch: PageLatchVariant, schedules: usize, case: fn(BufferPoolOptions)) {
    for options in BufferPoolOptions::each_map_and_page_read() {
        let options = BufferPoolOptions {
            page_latch,
            ..options
        };
        long_turns::check(move || case(options), schedules);
    }
}

/// Inserters of different keys, and a reader. The tree has from one page to three levels before; in every
/// other execution the disk is full for one of the first pages that are wanted.
fn inserters_and_a_reader(options: BufferPoolOptions) {
    let tree = Tree::new(options);
    let there = number(1, 9) as u32;
    let mut numbers: Vec<u32> = (0..there + (INSERTERS * INSERTIONS) as u32).collect();
    let mut draw = || numbers.swap_remove(number(0, numbers.len()));
    for _ in 0..there {
        tree.insert(draw());
    }
    if number(0, 2) == 0 {
        tree.storage.fill_disk_after(number(0, 6) as u32);
    }
    let tree = Arc::new(tree);
    let mut threads: Vec<_> = (0..INSERTERS)
        .map(|_| {
            let tree = Arc::clone(&tree);
            let numbers = [(); INSERTIONS].map(|()| draw());
            let runs = number(0, 2) == 0;
            thread::spawn(move || match runs {
                true => tree.insert_runs(numbers.to_vec()),
                false => numbers.into_iter().for_each(|number| tree.insert(number)),
            })
        })
        .collect();
    let reader = Arc::clone(&tree);
    threads.push(thread::spawn(move || {
        reader.scan(Direction::Forward);
        reader.look_up_newest();
        reader.scan(Direction::Backward);
    }));
    for thread in threads {
        thread.join().unwrap();
    }
    tree.check();
}

#[test]
fn shuttle_inserters_split_under_lwlocks() {
    check(PageLatchVariant::LwLock, 3_000, inserters_and_a_reader);
}

#[test]
fn shuttle_inserters_split_under_futex_latches() {
    check(PageLatchVariant::Ssux, 3_000, inserters_and_a_reader);
}

#[test]
fn shuttle_inserters_split_under_hybrid_latches() {
    check(PageLatchVariant::Hybrid, 3_000, inserters_and_a_reader);
}

/// The state of the transaction that made a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Row {
    Running(Xid),
    Committed,
    RolledBack,
}

/// Rows with one key in a unique index.
struct UniqueKey {
    tree: Tree,
    rows: Mutex<HashMap<Tid, Row>>,
    /// Rows that have an entry and were not rolled back.
    holders: AtomicU32,
}

impl UniqueKey {
    fn set(&self, tid: Tid, row: Row) {
        self.rows.lock().unwrap().insert(tid, row);
    }

    fn liveness(&self, tid: Tid) -> Result<Liveness> {
        Ok(match self.rows.lock().unwrap()[&tid] {
            Row::Running(xid) => Liveness::DependsOn(xid),
            Row::Committed => Liveness::Alive,
            Row::RolledBack => Liveness::Dead,
        })
    }

    /// Inserts a row; whether it committed.
    fn insert(&self, tid: Tid, commits: bool) -> bool {
        let xid = Xid(u64::from(tid.block));
        self.set(tid, Row::Running(xid));
        let key = self.tree.key(0);
        loop {
            let liveness = |tid| self.liveness(tid);
            let outcome = self
                .tree
                .tree
                .insert_entry(&self.tree.storage, &key, tid, Some(liveness));
            match outcome.unwrap() {
                InsertOutcome::Inserted => break,
                InsertOutcome::Duplicate { tid: other } => {
                    assert_ne!(tid, other);
                    return false;
                }
                InsertOutcome::WaitFor(other) => {
                    assert_ne!(xid, other);
                    thread::yield_now();
                }
            }
        }
        let others = self.holders.fetch_add(1, Relaxed);
        assert_eq!(others, 0, "a second row with the key");
        thread::yield_now();
        if commits {
            self.set(tid, Row::Committed);
        } else {
            self.holders.fetch_sub(1, Relaxed);
            self.set(tid, Row::RolledBack);
        }
        commits
    }
}

/// Inserters of one key, of which dead rows fill more than one leaf: one at a time inserts its row, and once
/// one has committed, no other does.
fn one_key(options: BufferPoolOptions) {
    const DEAD: u32 = 8;
    let key = UniqueKey {
        tree: Tree::new(options),
        rows: Mutex::default(),
        holders: AtomicU32::new(0),
    };
    let bytes = key.tree.key(0);
    for dead in 1..=DEAD {
        let tid = tid(dead * 10);
        key.set(tid, Row::RolledBack);
        key.tree
            .tree
            .insert_entry(&key.tree.storage, &bytes, tid, NOT_UNIQUE)
            .unwrap();
    }
    assert!(key.tree.storage.check(key.tree.tree).pages > 1, "two leaves");
    let key = Arc::new(key);
    // At most one inserter rolls back, so one of the others inserts the key.
    let rolled_back = number(0, 2 * INSERTERS);
    let inserters: Vec<_> = (0..INSERTERS)
        .map(|inserter| {
            let key = Arc::clone(&key);
            let tid = tid((number(0, DEAD as usize + 1) * 10 + inserter + 1) as u32);
            thread::spawn(move || key.insert(tid, inserter != rolled_back))
        })
        .collect();
    let committed = inserters
        .into_iter()
        .filter(|_| true)
        .map(|inserter| u32::from(inserter.join().unwrap()))
        .sum::<u32>();
    assert_eq!(committed, 1);
    assert_eq!(key.tree.storage.check(key.tree.tree).unnamed, 0);
    let mut tids = Vec::new();
    key.tree
        .tree
        .lookup(&key.tree.storage, &bytes, &mut tids)
        .unwrap();
    let alive = |tid: &&Tid| key.liveness(**tid).unwrap() == Liveness::Alive;
    assert_eq!(tids.iter().filter(alive).count(), 1);
}

#[test]
fn shuttle_one_key_gets_in_under_lwlocks() {
    check(PageLatchVariant::LwLock, 1_500, one_key);
}

#[test]
fn shuttle_one_key_gets_in_under_futex_latches() {
    check(PageLatchVariant::Ssux, 1_500, one_key);
}

#[test]
fn shuttle_one_key_gets_in_under_hybrid_latches() {
    check(PageLatchVariant::Hybrid, 1_500, one_key);
}

/// A row with two unique keys, or one of them.
struct UniqueRun {
    key: UniqueKey,
    /// Rows in the table now, for each key.
    holders: [AtomicU32; 2],
}

impl UniqueRun {
    /// Inserts a row with the keys of these numbers, which ascend; whether it committed.
    fn insert(&self, tid: Tid, numbers: &[u32], commits: bool) -> bool {
        let xid = Xid(u64::from(tid.block));
        self.key.set(tid, Row::Running(xid));
        let tree = &self.key.tree;
        let keys: Vec<Vec<u8>> = numbers.iter().map(|number| tree.key(*number)).collect();
        let entries: Vec<NewEntry<'_>> = keys
            .iter()
            .map(|key| NewEntry {
                key,
                tid,
                unique: true,
            })
            .collect();
        let mut done = 0;
        let mut duplicate = false;
        while done < entries.len() && !duplicate {
            let run = tree
                .tree
                .insert_run_of(&tree.storage, &entries[done..], |tid| self.key.liveness(tid));
            let run = run.unwrap();
            for number in &numbers[done..done + run.count] {
                let others = self.holders[*number as usize].fetch_add(1, Relaxed);
                assert_eq!(others, 0, "a second row with key {number}");
            }
            done += run.count;
            match run.conflict {
                None | Some(InsertOutcome::Inserted) => {}
                Some(InsertOutcome::Duplicate { tid: other }) => {
                    assert_ne!(tid, other);
                    duplicate = true;
                }
                Some(InsertOutcome::WaitFor(other)) => {
                    assert_ne!(xid, other);
                    thread::yield_now();
                }
            }
        }
        thread::yield_now();
        let commits = commits && !duplicate;
        if commits {
            self.key.set(tid, Row::Committed);
        } else {
            for number in &numbers[..done] {
                self.holders[*number as usize].fetch_sub(1, Relaxed);
            }
            self.key.set(tid, Row::RolledBack);
        }
        commits
    }
}

/// Inserters of rows with two keys, or one of them, of each of which dead rows fill most of a leaf: one row at a
/// time has a key, and once one has committed, no other does.
fn runs_of_unique_keys(options: BufferPoolOptions) {
    const DEAD: u32 = 6;
    const ROWS: [&[u32]; 3] = [&[0, 1], &[1], &[0]];
    let run = UniqueRun {
        key: UniqueKey {
            tree: Tree {
                key_length: 900,
                ..Tree::new(options)
            },
            rows: Mutex::default(),
            holders: AtomicU32::new(0),
        },
        holders: [AtomicU32::new(0), AtomicU32::new(0)],
    };
    let tree = &run.key.tree;
    for dead in 1..=DEAD {
        for number in 0..2 {
            let tid = tid(dead * 10);
            run.key.set(tid, Row::RolledBack);
            tree.tree
                .insert_entry(&tree.storage, &tree.key(number), tid, NOT_UNIQUE)
                .unwrap();
        }
    }
    let run = Arc::new(run);
    let rolled_back = number(0, 2 * INSERTERS);
    let inserters: Vec<_> = (0..INSERTERS)
        .map(|inserter| {
            let run = Arc::clone(&run);
            let keys = ROWS[if inserter == 0 { 0 } else { number(0, ROWS.len()) }];
            let tid = tid((number(0, DEAD as usize + 1) * 10 + inserter + 1) as u32);
            thread::spawn(move || (keys, run.insert(tid, keys, inserter != rolled_back)))
        })
        .collect();
    let ended: Vec<_> = inserters
        .into_iter()
        .map(|inserter| inserter.join().unwrap())
        .collect();
    let tree = &run.key.tree;
    assert_eq!(tree.storage.check(tree.tree).unnamed, 0);
    for number in 0..2 {
        let mut tids = Vec::new();
        tree.tree
            .lookup(&tree.storage, &tree.key(number), &mut tids)
            .unwrap();
        let alive = |tid: &&Tid| run.key.liveness(**tid).unwrap() == Liveness::Alive;
        let committed = |(keys, committed): &&(&[u32], bool)| *committed && keys.contains(&number);
        assert_eq!(
            tids.iter().filter(alive).count(),
            ended.iter().filter(committed).count(),
            "key {number}"
        );
    }
}

#[test]
fn shuttle_runs_of_unique_keys_get_in_under_lwlocks() {
    check(PageLatchVariant::LwLock, 1_000, runs_of_unique_keys);
}

#[test]
fn shuttle_runs_of_unique_keys_get_in_under_futex_latches() {
    check(PageLatchVariant::Ssux, 1_000, runs_of_unique_keys);
}

#[test]
fn shuttle_runs_of_unique_keys_get_in_under_hybrid_latches() {
    check(PageLatchVariant::Hybrid, 1_000, runs_of_unique_keys);
}
