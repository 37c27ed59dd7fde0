//! Inserters of equal unique keys, when the key's entries lie on more than one leaf.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use clearway_machine::{Machine, Native, WaitEvent, WorkerId};
use clearway_txn::{Snapshot, Xid};

use super::{PAGE_LATCHES, open, tree};
use crate::btree::descend::Descent;
use crate::btree::node::{Bound, Entry};
use crate::btree::{BTree, InsertOutcome};
use crate::buffer::{PageLatchVariant, PageUpdate};
use crate::commit::Reader;
use crate::heap::{Heap, Liveness, Tid, TxnContext};
use crate::page::RelId;
use crate::storage::Storage;

/// A key so long that three or four of its entries fill a leaf.
const KEY: [u8; 1_900] = [7; 1_900];
/// Rows that were rolled back, with the key.
const DEAD: usize = 12;

struct Table {
    tree: BTree,
    heap: Heap,
    rel: RelId,
}

fn writer<'a>(storage: &'a Storage, snapshot: &'a Snapshot) -> TxnContext<'a> {
    let proc = storage.proc_array.attach().unwrap();
    TxnContext {
        storage,
        proc,
        xid: Some(storage.assign_xid(proc).unwrap()),
        command: 0,
        reader: Reader::of_no_answer(snapshot),
        changes: None,
    }
}

/// A table with a unique index in which entries of rolled-back rows with one key fill several leaves.
fn table(storage: &Storage) -> Table {
    let (tree, _) = tree(storage);
    let rel = storage.create_rel().unwrap();
    let heap = Heap::new(rel.0);
    let snapshot = Snapshot::default();
    let ctx = writer(storage, &snapshot);
    for _ in 0..DEAD {
        let tid = heap.insert(&ctx, b"row").unwrap();
        tree.insert(&ctx, &KEY, tid, None).unwrap();
    }
    let xid = ctx.xid.unwrap();
    storage.abort(ctx.proc, xid).unwrap();
    Table { tree, heap, rel }
}

/// The leaf for `tid`, as an inserter holds it that has done its unique check and is about to put its entry
/// in. (It came through the key's first leaf, and has released that.)
fn about_to_insert<'s>(table: &Table, storage: &'s Storage, tid: Tid) -> PageUpdate<'s> {
    let bound = Bound { key: &KEY, tid };
    let leaf = table
        .tree
        .descend_to_leaf(storage, bound, &mut Descent::default())
        .unwrap();
    let leaf = table.tree.update(storage, leaf).unwrap();
    table
        .tree
        .move_right_update(storage, leaf, bound, |_| {})
        .unwrap()
}

/// The result of a second inserter of the key that comes when the first one has passed the key's first leaf
/// and holds a later one: the second has to wait there for the first one's entry, and sees it.
///
/// The second one's own place may be before the first one's leaf, in it, or behind it.
///
/// Caught mutations: `find_duplicate` with `read` for `update` (under `ssux` and `hybrid`, not under
/// `lwlock`, whose update mode keeps readers out); `equal_entries` that does not go on to the right
/// neighbour.
#[test]
fn an_inserter_waits_for_one_that_is_ahead_of_it() {
    for page_latch in PAGE_LATCHES {
        for place in [Tid { block: 0, slot: 1 }, Tid { block: 8, slot: 1 }] {
            inserter_waits(page_latch, place);
        }
    }
}

fn inserter_waits(page_latch: PageLatchVariant, second: Tid) {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), page_latch);
    let table = table(&storage);
    let snapshot = Snapshot::default();
    let first_ctx = writer(&storage, &snapshot);
    let first = table.heap.insert(&first_ctx, b"row").unwrap();
    let page = about_to_insert(&table, &storage, first);
    let key_first = Bound {
        key: &KEY,
        tid: Tid::default(),
    };
    let first_leaf = table
        .tree
        .descend_to_leaf(&storage, key_first, &mut Descent::default())
        .unwrap();
    assert_ne!(page.page_id().block, first_leaf, "the test wants two leaves");

    let worker = AtomicU32::new(u32::MAX);
    let outcome = thread::scope(|scope| {
        let inserter = scope.spawn(|| {
            worker.store(Native::worker().0, Ordering::Release);
            let snapshot = Snapshot::default();
            let ctx = writer(&storage, &snapshot);
            table.tree.insert(&ctx, &KEY, second, Some(table.rel.0)).unwrap()
        });
        // Until it waits for a page, as it must, or ends without having waited.
        let waits = || match worker.load(Ordering::Acquire) {
            u32::MAX => false,
            slot => Native::workers().slot(WorkerId(slot)).wait_event() == WaitEvent::BufferContent,
        };
        while !inserter.is_finished() && !waits() {
            thread::yield_now();
        }
        let entry = Entry {
            key: KEY.as_slice().into(),
            tid: first,
            child: 0,
        };
        table
            .tree
            .insert_into(&storage, page, entry, &mut Descent::default())
            .unwrap();
        inserter.join().unwrap()
    });
    assert_eq!(
        outcome,
        InsertOutcome::WaitFor(first_ctx.xid.unwrap()),
        "{page_latch:?}: a second row with the key"
    );
    storage.stop_threads();
}

/// The second look at a key whose entries fill several leaves: other rows count, and the one that asks does not.
#[test]
fn others_are_found_behind_dead_entries() {
    for page_latch in PAGE_LATCHES {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path(), page_latch);
        let table = table(&storage);
        let (one, other) = (Snapshot::default(), Snapshot::default());
        let (one, other) = (writer(&storage, &one), writer(&storage, &other));
        let enter = |ctx: &TxnContext<'_>| {
            let tid = table.heap.insert(ctx, b"row").unwrap();
            table.tree.insert(ctx, &KEY, tid, None).unwrap();
            tid
        };
        let others = |ctx: &TxnContext<'_>, own: Tid| {
            table
                .tree
                .liveness_of_others(ctx, &KEY, own, table.rel.0)
                .unwrap()
        };
        let first = enter(&one);
        assert_eq!(others(&one, first), Liveness::Dead, "{page_latch:?}");
        let second = enter(&other);
        let (of_one, of_other) = (one.xid.unwrap(), other.xid.unwrap());
        assert_eq!(
            others(&one, first),
            Liveness::DependsOn(of_other),
            "{page_latch:?}"
        );
        assert_eq!(
            others(&other, second),
            Liveness::DependsOn(of_one),
            "{page_latch:?}"
        );
        let third = enter(&one);
        assert_eq!(
            others(&one, third),
            Liveness::Alive,
            "{page_latch:?}: its own row"
        );
        storage.abort(one.proc, of_one).unwrap();
        assert_eq!(others(&other, second), Liveness::Dead, "{page_latch:?}");
        storage.stop_threads();
    }
}

/// Many inserters of the same few keys at once, with dead entries over several leaves: exactly one row of
/// each key is inserted.
#[test]
fn one_of_many_gets_in() {
    for page_latch in PAGE_LATCHES {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path(), page_latch);
        for _ in 0..6 {
            let table = table(&storage);
            let inserted = AtomicU32::new(0);
            thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let snapshot = Snapshot::default();
                        let ctx = writer(&storage, &snapshot);
                        let tid = table.heap.insert(&ctx, b"row").unwrap();
                        let outcome = table.tree.insert(&ctx, &KEY, tid, Some(table.rel.0)).unwrap();
                        match outcome {
                            InsertOutcome::Inserted => {
                                inserted.fetch_add(1, Ordering::Relaxed);
                            }
                            InsertOutcome::WaitFor(xid) => assert!(xid > Xid::INVALID),
                            InsertOutcome::Duplicate { tid } => panic!("{tid:?} has not committed"),
                        }
                    });
                }
            });
            assert_eq!(inserted.into_inner(), 1, "{page_latch:?}");
            let mut alive = 0;
            let snapshot = Snapshot::default();
            let ctx = writer(&storage, &snapshot);
            let mut tids = Vec::new();
            table.tree.lookup(&storage, &KEY, &mut tids).unwrap();
            for tid in tids {
                alive += u32::from(table.heap.liveness(&ctx, tid).unwrap() != Liveness::Dead);
            }
            assert_eq!(alive, 1, "{page_latch:?}");
        }
        storage.stop_threads();
    }
}
