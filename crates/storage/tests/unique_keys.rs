//! The rows that keep their key from others: a unique check sees the state of now, not that of a snapshot.

#[path = "support/chosen.rs"]
mod chosen;

use std::sync::Arc;

use clearway_storage::Reader;
use clearway_storage::Storage;
use clearway_storage::btree::{BTree, InsertOutcome, InsertedRun, NewEntry};
use clearway_storage::heap::{Heap, LockOutcome, Tid, TxnContext, UpdateOutcome};
use clearway_txn::{ProcId, RowLockMode, Snapshot, Xid};

const KEY: &[u8] = b"Alice";

/// A database with one table and a unique index of it.
struct Table {
    storage: Arc<Storage>,
    heap: Heap,
    heap_rel: u32,
    tree: BTree,
    _dir: tempfile::TempDir,
}

impl Table {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = chosen::small_database(4);
        let (storage, _) = Storage::open(dir.path(), options).unwrap();
        let (heap, tree) = (storage.create_rel().unwrap(), storage.create_rel().unwrap());
        BTree::create(&storage, tree).unwrap();
        Self {
            storage,
            heap: Heap::new(heap.0),
            heap_rel: heap.0,
            tree: BTree::new(tree.0),
            _dir: dir,
        }
    }

    /// Runs a transaction up to its end, which the caller makes with the session and the xid.
    fn begin<T>(&self, act: impl FnOnce(&TxnContext<'_>) -> T) -> (ProcId, Xid, T) {
        let proc = self.storage.proc_array.attach().unwrap();
        let xid = self.storage.assign_xid(proc).unwrap();
        let mut snapshot = Snapshot::default();
        self.storage.proc_array.snapshot(proc, &mut snapshot);
        let done = act(&TxnContext {
            storage: &self.storage,
            proc,
            xid: Some(xid),
            command: 0,
            reader: Reader::of_no_answer(&snapshot),
            changes: None,
        });
        (proc, xid, done)
    }

    fn commit<T>(&self, (proc, xid, done): (ProcId, Xid, T)) -> T {
        self.storage.commit(proc, xid, true).unwrap();
        self.storage.proc_array.detach(proc);
        done
    }

    fn roll_back<T>(&self, (proc, xid, done): (ProcId, Xid, T)) -> T {
        self.storage.abort(proc, xid).unwrap();
        self.storage.proc_array.detach(proc);
        done
    }

    /// A row with the key, committed.
    fn with_a_row() -> (Self, Tid) {
        let table = Self::new();
        let tid = table.commit(table.begin(|ctx| {
            let tid = table.heap.insert(ctx, b"Alice's row").unwrap();
            assert_eq!(table.insert_key(ctx, tid), InsertOutcome::Inserted);
            tid
        }));
        (table, tid)
    }

    fn insert_key(&self, ctx: &TxnContext<'_>, tid: Tid) -> InsertOutcome {
        self.tree.insert(ctx, KEY, tid, Some(self.heap_rel)).unwrap()
    }

    /// Result of Bob's attempt to store another row with the key.
    fn insert_another(&self) -> InsertOutcome {
        self.roll_back(self.begin(|ctx| {
            let tid = self.heap.insert(ctx, b"Bob's row").unwrap();
            self.insert_key(ctx, tid)
        }))
    }
}

#[test]
fn a_row_that_was_locked_keeps_its_key() {
    let (table, tid) = Table::with_a_row();
    let locking = table.begin(|ctx| table.heap.lock_row(ctx, tid, RowLockMode::Update, false).unwrap());
    assert_eq!(locking.2, LockOutcome::Locked);
    assert_eq!(table.insert_another(), InsertOutcome::Duplicate { tid });
    table.commit(locking);
    assert_eq!(table.insert_another(), InsertOutcome::Duplicate { tid });
    table.storage.stop_threads();
}

#[test]
fn the_end_of_an_insertion_decides() {
    let table = Table::new();
    let insert = || {
        table.begin(|ctx| {
            let tid = table.heap.insert(ctx, b"Alice's row").unwrap();
            assert_eq!(table.insert_key(ctx, tid), InsertOutcome::Inserted);
            tid
        })
    };
    let inserting = insert();
    assert_eq!(table.insert_another(), InsertOutcome::WaitFor(inserting.1));
    table.roll_back(inserting);
    assert_eq!(table.insert_another(), InsertOutcome::Inserted);
    let tid = table.commit(insert());
    assert_eq!(table.insert_another(), InsertOutcome::Duplicate { tid });
    table.storage.stop_threads();
}

#[test]
fn the_end_of_a_deletion_decides() {
    let (table, tid) = Table::with_a_row();
    let deleting = table.begin(|ctx| table.heap.delete(ctx, tid).map(|_| ()).unwrap());
    assert_eq!(table.insert_another(), InsertOutcome::WaitFor(deleting.1));
    table.roll_back(deleting);
    assert_eq!(table.insert_another(), InsertOutcome::Duplicate { tid });
    table.commit(table.begin(|ctx| table.heap.delete(ctx, tid).map(|_| ()).unwrap()));
    assert_eq!(table.insert_another(), InsertOutcome::Inserted);
    table.storage.stop_threads();
}

#[test]
fn a_transaction_may_delete_a_row_and_use_its_key_again() {
    let (table, tid) = Table::with_a_row();
    let outcome = table.commit(table.begin(|ctx| {
        table.heap.delete(ctx, tid).map(|_| ()).unwrap();
        let tid = table.heap.insert(ctx, b"Alice's other row").unwrap();
        table.insert_key(ctx, tid)
    }));
    assert_eq!(outcome, InsertOutcome::Inserted);
    assert!(matches!(table.insert_another(), InsertOutcome::Duplicate { .. }));
    table.storage.stop_threads();
}

/// A row that is withdrawn has no key: no transaction waits for its inserter, whose end does not matter.
#[test]
fn a_withdrawn_row_has_no_key() {
    for commits in [true, false] {
        let table = Table::new();
        let withdrawing = table.begin(|ctx| {
            let tid = table.heap.insert(ctx, b"Alice's row").unwrap();
            assert_eq!(table.insert_key(ctx, tid), InsertOutcome::Inserted);
            table.heap.withdraw(ctx, tid).unwrap();
            tid
        });
        let tid = withdrawing.2;
        assert_eq!(table.insert_another(), InsertOutcome::Inserted);
        match commits {
            true => table.commit(withdrawing),
            false => table.roll_back(withdrawing),
        };
        assert_eq!(table.insert_another(), InsertOutcome::Inserted);
        let seen = table.commit(table.begin(|ctx| {
            let again = table.heap.insert(ctx, b"Alice's other row").unwrap();
            assert_eq!(table.insert_key(ctx, again), InsertOutcome::Inserted);
            table.heap.fetch(ctx, tid, &mut |found, _: &[u8]| found).unwrap()
        }));
        assert_eq!(seen, None);
        assert!(matches!(table.insert_another(), InsertOutcome::Duplicate { .. }));
        table.storage.stop_threads();
    }
}

/// Between a row's replacement and its successor's entry, the key is the inserter's still.
#[test]
fn a_row_that_its_inserter_replaces_keeps_its_key() {
    let table = Table::new();
    let replacing = table.begin(|ctx| {
        let tid = table.heap.insert(ctx, b"Alice's row").unwrap();
        assert_eq!(table.insert_key(ctx, tid), InsertOutcome::Inserted);
        let next = TxnContext { command: 1, ..*ctx };
        let replaced = table.heap.update(&next, tid, b"Alice's new row", false).unwrap();
        let UpdateOutcome::Updated { tid: new, hot: false } = replaced else {
            panic!("{replaced:?}");
        };
        assert!(matches!(table.insert_another(), InsertOutcome::WaitFor(xid) if Some(xid) == ctx.xid));
        assert_eq!(table.insert_key(&next, new), InsertOutcome::Inserted);
        new
    });
    assert_eq!(table.insert_another(), InsertOutcome::WaitFor(replacing.1));
    let tid = table.commit(replacing);
    assert_eq!(table.insert_another(), InsertOutcome::Duplicate { tid });
    table.storage.stop_threads();
}

/// A run of entries goes up to the one whose key is taken: by a row that is there, by a row of the run itself, or by one
/// whose transaction runs.
#[test]
fn a_run_ends_at_a_key_that_is_taken() {
    let (table, there) = Table::with_a_row();
    let run = |keys: &[&[u8]]| {
        table.begin(|ctx| {
            let rows: Vec<&[u8]> = keys.to_vec();
            let mut ring = ctx.storage.write_ring();
            let tids = table.heap.insert_many(ctx, &rows, &mut ring).unwrap();
            let entries: Vec<NewEntry<'_>> = keys
                .iter()
                .zip(&tids)
                .map(|(key, tid)| NewEntry {
                    key,
                    tid: *tid,
                    unique: true,
                })
                .collect();
            let mut runs = Vec::new();
            let mut done = 0;
            while done < entries.len() && runs.last().is_none_or(|run: &InsertedRun| run.conflict.is_none()) {
                let run = table
                    .tree
                    .insert_run(ctx, &entries[done..], table.heap_rel)
                    .unwrap();
                done += run.count;
                runs.push(run);
            }
            (runs, tids)
        })
    };
    let ended = |count, conflict| InsertedRun { count, conflict };
    let duplicate = |tid| Some(InsertOutcome::Duplicate { tid });

    let (runs, _) = table.roll_back(run(&[b"Aaron", KEY, b"Bob"]));
    assert_eq!(runs, [ended(1, duplicate(there))]);
    let (runs, tids) = table.roll_back(run(&[b"Bob", b"Carol", b"Carol", b"Dave"]));
    assert_eq!(runs, [ended(2, None), ended(0, duplicate(tids[1]))]);

    let running = run(&[b"Bob", b"Carol"]);
    assert_eq!(running.2.0, [ended(2, None)]);
    let (runs, _) = table.roll_back(run(&[b"Aaron", b"Carol"]));
    assert_eq!(runs, [ended(1, Some(InsertOutcome::WaitFor(running.1)))]);
    table.roll_back(running);
    let (runs, _) = table.commit(run(&[b"Bob", b"Carol"]));
    assert_eq!(runs, [ended(2, None)]);
    table.storage.stop_threads();
}
