//! The B+tree against a model: random insertions, range reads both ways, removals, and the same after a crash.

#[path = "support/chosen.rs"]
mod chosen;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use clearway_storage::btree::{BTree, Direction, InsertOutcome, NewEntry};
use clearway_storage::heap::{Tid, TxnContext};
use clearway_storage::{Reader, RelId, Storage, StorageOptions};
use clearway_txn::{ProcId, Snapshot};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

type Model = BTreeSet<(Vec<u8>, Tid)>;

fn open(dir: &std::path::Path) -> Arc<Storage> {
    let options = StorageOptions {
        fsync: false,
        buffer_bytes: 2 << 20,
        ..chosen::options()
    };
    Storage::open(dir, options).unwrap().0
}

/// Keys of 1 to 200 bytes that often share a prefix, and often repeat.
fn random_key(rng: &mut StdRng) -> Vec<u8> {
    let mut key = vec![b'k'; rng.random_range(0..4)];
    let tail = if rng.random_bool(0.1) {
        rng.random_range(1..200)
    } else {
        rng.random_range(1..4)
    };
    key.extend((0..tail).map(|_| rng.random_range(0..6u8)));
    key
}

fn read(
    tree: BTree,
    storage: &Storage,
    lower: &[u8],
    upper: Option<&[u8]>,
    way: Direction,
) -> Vec<(Vec<u8>, Tid)> {
    let mut cursor = tree.range(lower, upper, way);
    let mut all = Vec::new();
    let mut batch = Vec::new();
    loop {
        batch.clear();
        let more = cursor.next_entries(storage, 7, &mut batch).unwrap();
        all.append(&mut batch);
        if !more {
            return all;
        }
    }
}

fn compare(tree: BTree, storage: &Storage, model: &Model, rng: &mut StdRng) {
    let all: Vec<_> = model.iter().cloned().collect();
    assert_eq!(read(tree, storage, &[], None, Direction::Forward), all);
    for _ in 0..20 {
        let (lower, upper) = (random_key(rng), random_key(rng));
        let upper = rng.random_bool(0.8).then_some(upper);
        let inside = |key: &Vec<u8>| *key >= lower && upper.as_ref().is_none_or(|upper| key < upper);
        let mut wanted: Vec<_> = model.iter().filter(|(key, _)| inside(key)).cloned().collect();
        assert_eq!(
            read(tree, storage, &lower, upper.as_deref(), Direction::Forward),
            wanted
        );
        wanted.reverse();
        assert_eq!(
            read(tree, storage, &lower, upper.as_deref(), Direction::Backward),
            wanted
        );
    }
}

/// Inserts entries in runs, which end for no other reason than that the next one goes elsewhere.
fn insert_in_runs(tree: BTree, ctx: &TxnContext<'_>, entries: &Model) {
    let entries: Vec<NewEntry<'_>> = entries
        .iter()
        .map(|(key, tid)| NewEntry {
            key,
            tid: *tid,
            unique: false,
        })
        .collect();
    let mut rest = &entries[..];
    let mut runs = 0;
    while !rest.is_empty() {
        let run = tree.insert_run(ctx, rest, 0).unwrap();
        assert_eq!(run.conflict, None);
        assert!(run.count > 0, "a run without entries");
        rest = &rest[run.count..];
        runs += 1;
    }
    assert!(runs < entries.len(), "each entry went in by itself");
}

#[test]
fn agrees_with_a_model_also_after_a_crash() {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok())
        .unwrap_or(20_261_120);
    println!("SEED={seed}");
    let mut rng = StdRng::seed_from_u64(seed);
    let dir = tempfile::tempdir().unwrap();
    let mut storage = open(dir.path());
    let rel = storage.create_rel().unwrap();
    BTree::create(&storage, rel).unwrap();
    let tree = BTree::new(rel.0);
    let mut model = Model::new();
    for round in 0..12u32 {
        {
            let snapshot = Snapshot::default();
            let ctx = TxnContext {
                storage: &storage,
                proc: ProcId(0),
                xid: None,
                command: 0,
                reader: Reader::of_no_answer(&snapshot),
                changes: None,
            };
            if round % 2 == 1 {
                // From a few entries, which leaves take one or two of, to many.
                for batch in [30u16, 400, 1_500] {
                    let entry = |number| {
                        let tid = Tid {
                            block: round,
                            slot: batch + number,
                        };
                        (random_key(&mut rng), tid)
                    };
                    let mut entries: Model = (0..batch).map(entry).collect();
                    insert_in_runs(tree, &ctx, &entries);
                    model.append(&mut entries);
                }
            }
            let one_by_one = if round % 2 == 0 { 1_500 } else { 0 };
            for number in 0..one_by_one {
                let (key, tid) = (
                    random_key(&mut rng),
                    Tid {
                        block: round,
                        slot: number + 1,
                    },
                );
                assert_eq!(
                    tree.insert(&ctx, &key, tid, None).unwrap(),
                    InsertOutcome::Inserted
                );
                model.insert((key, tid));
            }
        }
        if round % 3 == 2 {
            let dead: HashSet<Tid> = model
                .iter()
                .filter(|_| rng.random_bool(0.4))
                .map(|(_, tid)| *tid)
                .collect();
            assert_eq!(tree.vacuum_delete(&storage, &dead).unwrap(), dead.len() as u64);
            model.retain(|(_, tid)| !dead.contains(tid));
        }
        compare(tree, &storage, &model, &mut rng);
        if round % 4 == 1 {
            // A crash in small: the log's tail is made durable, the pages are not written.
            storage.wal.flush(storage.wal.reserved());
            storage.stop_threads();
            drop(storage);
            storage = open(dir.path());
            compare(tree, &storage, &model, &mut rng);
        }
    }
}

#[test]
fn a_bulk_load_reads_back_and_takes_insertions() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path());
    for count in [0u32, 1, 2, 500, 40_000] {
        let rel: RelId = storage.create_rel().unwrap();
        BTree::create(&storage, rel).unwrap();
        let keys: Vec<[u8; 4]> = (0..count).map(|number| (number * 2).to_be_bytes()).collect();
        let tid = |number: u32| Tid {
            block: number,
            slot: 1,
        };
        let entries = keys.iter().zip(0..).map(|(key, number)| (&key[..], tid(number)));
        BTree::bulk_load(&storage, rel, entries).unwrap();
        let tree = BTree::new(rel.0);
        let mut model: Model = keys
            .iter()
            .zip(0..)
            .map(|(key, number)| (key.to_vec(), tid(number)))
            .collect();
        let snapshot = Snapshot::default();
        let ctx = TxnContext {
            storage: &storage,
            proc: ProcId(0),
            xid: None,
            command: 0,
            reader: Reader::of_no_answer(&snapshot),
            changes: None,
        };
        for number in (0..count).step_by(7) {
            let key = (number * 2 + 1).to_be_bytes().to_vec();
            tree.insert(&ctx, &key, tid(number), None).unwrap();
            model.insert((key, tid(number)));
        }
        let all: Vec<_> = model.iter().cloned().collect();
        assert_eq!(read(tree, &storage, &[], None, Direction::Forward), all);
        let reversed: Vec<_> = model.iter().rev().cloned().collect();
        assert_eq!(read(tree, &storage, &[], None, Direction::Backward), reversed);
    }
}

/// Threads insert disjoint keys while others read: nothing inserted before a read began is missing from it.
///
/// Caught mutations: a backward cursor that does not go right on its way down; neither readers nor inserters
/// moving right. One of the two alone survives here, because the other makes up for it; `btree/tests.rs`
/// catches each.
#[test]
fn readers_never_miss_what_was_there() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path());
    let rel = storage.create_rel().unwrap();
    BTree::create(&storage, rel).unwrap();
    let tree = BTree::new(rel.0);
    const WRITERS: u32 = 4;
    const EACH: u32 = 15_000;
    let done: Vec<_> = (0..WRITERS)
        .map(|_| std::sync::atomic::AtomicU32::new(0))
        .collect();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (storage, done) = (&storage, &done);
            scope.spawn(move || {
                let snapshot = Snapshot::default();
                let ctx = TxnContext {
                    storage,
                    proc: ProcId(0),
                    xid: None,
                    command: 0,
                    reader: Reader::of_no_answer(&snapshot),
                    changes: None,
                };
                for number in 0..EACH {
                    // Scattered, so that splits happen everywhere.
                    let key = (number.wrapping_mul(2_654_435_761)).to_be_bytes();
                    tree.insert(
                        &ctx,
                        &key,
                        Tid {
                            block: number,
                            slot: writer as u16 + 1,
                        },
                        None,
                    )
                    .unwrap();
                    done[writer as usize].store(number + 1, std::sync::atomic::Ordering::Release);
                }
            });
        }
        for reader in 0..2u64 {
            let (storage, done) = (&storage, &done);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(reader);
                loop {
                    let writer = rng.random_range(0..WRITERS);
                    let there = done[writer as usize].load(std::sync::atomic::Ordering::Acquire);
                    if there > 0 {
                        let number = rng.random_range(0..there);
                        let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
                        let mut upper = key.to_vec();
                        upper.push(0);
                        let direction = if rng.random() {
                            Direction::Forward
                        } else {
                            Direction::Backward
                        };
                        let found = read(tree, storage, &key, Some(&upper), direction);
                        let wanted = Tid {
                            block: number,
                            slot: writer as u16 + 1,
                        };
                        assert!(
                            found.iter().any(|(_, tid)| *tid == wanted),
                            "{wanted:?} is missing: {found:?}"
                        );
                    }
                    if done
                        .iter()
                        .all(|done| done.load(std::sync::atomic::Ordering::Acquire) == EACH)
                    {
                        return;
                    }
                }
            });
        }
    });
    assert_eq!(
        read(tree, &storage, &[], None, Direction::Forward).len(),
        (WRITERS * EACH) as usize
    );
}
