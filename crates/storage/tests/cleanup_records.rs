//! Before row versions go, the log names the newest transaction that deleted one of them (`cleanup`): for whatever
//! removes versions, and only if no record before it has named as new a one.
//!
//! # Mutations seen to fail
//! `crates/storage/mutations/cleanup.toml` lists them.

#[path = "support/chosen.rs"]
mod chosen;

use std::sync::Arc;

use clearway_storage::btree::{BTree, InsertOutcome};
use clearway_storage::heap::{DeleteOutcome, Heap, Tid, TxnContext, UpdateOutcome};
use clearway_storage::vacuum::vacuum;
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{Lsn, Reader, RelId, Storage, cleanup};
use clearway_txn::{ProcId, Snapshot, Xid};

struct Database {
    storage: Arc<Storage>,
    proc: ProcId,
    _dir: tempfile::TempDir,
}

impl Database {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = chosen::small_database(4);
        let (storage, _) = Storage::open(dir.path(), options).unwrap();
        // Nothing but the test logs.
        storage.stop_threads();
        Self {
            proc: storage.proc_array.attach().unwrap(),
            storage,
            _dir: dir,
        }
    }

    /// One transaction, which commits or rolls back; its xid and what `act` has returned.
    fn transact<R>(&self, commits: bool, act: impl FnOnce(&TxnContext<'_>) -> R) -> (Xid, R) {
        let (storage, proc) = (&self.storage, self.proc);
        let xid = storage.assign_xid(proc).unwrap();
        let mut snapshot = Snapshot::default();
        storage.proc_array.snapshot(proc, &mut snapshot);
        let done = act(&TxnContext {
            storage,
            proc,
            xid: Some(xid),
            command: 0,
            reader: Reader::of_no_answer(&snapshot),
            changes: None,
        });
        if commits {
            storage.commit(proc, xid, true).unwrap();
        } else {
            storage.abort(proc, xid).unwrap();
        }
        (xid, done)
    }

    fn insert(&self, rel: RelId, row: &[u8]) -> Tid {
        self.transact(true, |ctx| Heap::new(rel.0).insert(ctx, row).unwrap())
            .1
    }

    fn delete(&self, rel: RelId, tid: Tid) -> Xid {
        let (xid, outcome) = self.transact(true, |ctx| Heap::new(rel.0).delete(ctx, tid).unwrap());
        assert_eq!(outcome, DeleteOutcome::Deleted);
        xid
    }

    /// A table of one row, which the transaction deleted.
    fn table_with_a_deleted_row(&self) -> (RelId, Xid) {
        let rel = self.storage.create_rel().unwrap();
        let tid = self.insert(rel, b"row");
        (rel, self.delete(rel, tid))
    }

    /// Vacuums `rel`, and returns what was logged for it: kinds, with the transactions that were named.
    fn vacuum(&self, rel: RelId, indexes: &[RelId]) -> (u64, Vec<(RecordKind, Option<Xid>)>) {
        let from = self.storage.wal.reserved();
        let horizon = self.storage.proc_array.horizon();
        let stats = vacuum(&self.storage, rel, indexes, horizon, &|| false).unwrap();
        (stats.removed_versions, self.logged(from))
    }

    fn logged(&self, from: Lsn) -> Vec<(RecordKind, Option<Xid>)> {
        let wal = &self.storage.wal;
        wal.flush(wal.reserved());
        let mut reader = LogReader::new(wal.device(), from);
        let mut records = Vec::new();
        while let Some((record, _)) = reader.next_record().unwrap() {
            let named =
                (record.kind == RecordKind::CLEANUP).then(|| cleanup::decode(record.payload).unwrap());
            records.push((record.kind, named));
        }
        records
    }
}

const CHANGE: (RecordKind, Option<Xid>) = (RecordKind::CHANGE, None);

fn named(deleter: Xid) -> (RecordKind, Option<Xid>) {
    (RecordKind::CLEANUP, Some(deleter))
}

/// Vacuum prunes, cleans the index, and frees the line pointer: the first of these is what standbys wait for.
#[test]
fn vacuum_names_the_newest_deleter_before_it_removes_anything() {
    let database = Database::new();
    let rel = database.storage.create_rel().unwrap();
    let rows: Vec<Tid> = (0..3).map(|row| database.insert(rel, &[row; 10])).collect();
    let index = database.storage.create_rel().unwrap();
    BTree::create(&*database.storage, index).unwrap();
    for tid in &rows {
        let (_, outcome) = database.transact(true, |ctx| {
            let key = tid.slot.to_be_bytes();
            BTree::new(index.0).insert(ctx, &key, *tid, None).unwrap()
        });
        assert_eq!(outcome, InsertOutcome::Inserted);
    }
    database.delete(rel, rows[2]);
    let newest = database.delete(rel, rows[0]);
    let (removed, logged) = database.vacuum(rel, &[index]);
    assert_eq!(removed, 2);
    assert_eq!(logged, [named(newest), CHANGE, CHANGE, CHANGE]);
}

#[test]
fn a_record_that_names_a_newer_one_is_enough() {
    let database = Database::new();
    let (older, _) = database.table_with_a_deleted_row();
    let (newer, deleter) = database.table_with_a_deleted_row();
    let (_, logged) = database.vacuum(newer, &[]);
    assert_eq!(logged, [named(deleter), CHANGE, CHANGE]);
    let (removed, logged) = database.vacuum(older, &[]);
    assert_eq!((removed, logged), (1, vec![CHANGE, CHANGE]));
    let (newest, deleter) = database.table_with_a_deleted_row();
    assert_eq!(database.vacuum(newest, &[]).1[0], named(deleter));
}

/// A version that no transaction but its inserter has ever seen needs no record.
#[test]
fn versions_that_no_snapshot_can_see_are_removed_without_one() {
    let database = Database::new();
    let rel = database.storage.create_rel().unwrap();
    let heap = Heap::new(rel.0);
    database.transact(false, |ctx| heap.insert(ctx, b"rolled back").unwrap());
    database.transact(true, |ctx| {
        let tid = heap.insert(ctx, b"deleted by its inserter").unwrap();
        let later = TxnContext { command: 1, ..*ctx };
        assert_eq!(heap.delete(&later, tid).unwrap(), DeleteOutcome::Deleted);
    });
    // The update rolls back: its version goes, the one before stays.
    let tid = database.insert(rel, b"stays");
    database.transact(false, |ctx| heap.update(ctx, tid, b"rolled back", true).unwrap());
    let (removed, logged) = database.vacuum(rel, &[]);
    assert_eq!(removed, 3);
    assert!(
        !logged.is_empty() && logged.iter().all(|record| *record == CHANGE),
        "{logged:?}"
    );
}

/// An update that finds its page full prunes it.
#[test]
fn an_update_that_prunes_names_the_deleter_first() {
    let database = Database::new();
    let rel = database.storage.create_rel().unwrap();
    let mut tid = database.insert(rel, &[0; 960]);
    let mut updaters = Vec::new();
    let from = database.storage.wal.reserved();
    // Eight versions fill a page.
    for version in 1..12 {
        let update = |ctx: &TxnContext<'_>| Heap::new(rel.0).update(ctx, tid, &[version; 960], true).unwrap();
        let (xid, outcome) = database.transact(true, update);
        let UpdateOutcome::Updated { tid: new, hot: true } = outcome else {
            panic!("{outcome:?}");
        };
        updaters.push(xid);
        tid = new;
    }
    let logged = database.logged(from);
    let place = logged.iter().position(|(kind, _)| *kind == RecordKind::CLEANUP);
    let place = place.expect("a full page was pruned");
    let commits = logged[..place]
        .iter()
        .filter(|(kind, _)| *kind == RecordKind::COMMIT)
        .count();
    assert_eq!(
        logged[place],
        named(updaters[commits - 1]),
        "the last committed update deleted the last of them"
    );
    assert_eq!(
        logged[place + 1..place + 3],
        [CHANGE, CHANGE],
        "the pruning, and the update"
    );
}
