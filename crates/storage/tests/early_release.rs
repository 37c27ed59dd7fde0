//! `lock_release = early`, rule L1: before an answer leaves, each commit that the session has seen is durable. Alice
//! commits without waiting for the disk, and nothing flushes the log for her; Bob looks at what she has changed, and
//! waits before he answers.

#[path = "support/chosen.rs"]
mod chosen;

use std::sync::Arc;
use std::time::Duration;

use clearway_machine::Watchdog;
use clearway_storage::btree::{BTree, InsertOutcome};
use clearway_storage::heap::{DeleteOutcome, Heap, Tid, TxnContext, UpdateOutcome, VersionOutcome};
use clearway_storage::vacuum::vacuum;
use clearway_storage::{
    AnswerLevel, CommitVariants, LockReleaseVariant, Lsn, Reader, RelId, SeenCommits, SessionSnapshot,
    Storage, StorageOptions,
};
use clearway_txn::{ProcId, RowLockMode};

const NEVER: Duration = Duration::from_secs(100_000);
const OLD: &[u8] = b"the old row";
const NEW: &[u8] = b"the new row";

/// A table with a unique index and one row, which is durable.
struct Table {
    storage: Arc<Storage>,
    rel: RelId,
    tree_rel: RelId,
    tree: BTree,
    row: Tid,
    _dir: tempfile::TempDir,
}

/// A transaction's session.
struct Session<'a> {
    table: &'a Table,
    proc: ProcId,
    seen: SeenCommits,
}

impl Table {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let chosen = chosen::small_database(4);
        let options = StorageOptions {
            checkpoint_timeout: NEVER,
            wal_writer_delay: NEVER,
            commits: CommitVariants {
                lock_release: LockReleaseVariant::Early,
                ..chosen.commits
            },
            ..chosen
        };
        let (storage, _) = Storage::open(dir.path(), options).unwrap();
        let (rel, tree_rel) = (storage.create_rel().unwrap(), storage.create_rel().unwrap());
        BTree::create(&storage, tree_rel).unwrap();
        let mut table = Self {
            storage,
            rel,
            tree_rel,
            tree: BTree::new(tree_rel.0),
            row: Tid::default(),
            _dir: dir,
        };
        let (row, end) = table.commit_without_a_wait(|table, ctx| table.insert(ctx, OLD, b"old"));
        table.row = row;
        table.storage.wal.flush(end);
        table
    }

    fn heap(&self) -> Heap {
        Heap::new(self.rel.0)
    }

    fn session(&self) -> Session<'_> {
        let seen = SeenCommits::default();
        seen.set_level(AnswerLevel::Durable);
        Session {
            table: self,
            proc: self.storage.proc_array.attach().unwrap(),
            seen,
        }
    }

    /// A transaction of Alice's, and the position up to which the log has to be durable for it to be.
    fn commit_without_a_wait<R>(&self, act: impl FnOnce(&Self, &TxnContext<'_>) -> R) -> (R, Lsn) {
        let alice = self.session();
        let done = alice.transact(act);
        let xid = self.storage.proc_array.xid_of(alice.proc).unwrap();
        (done, self.storage.commit(alice.proc, xid, false).unwrap())
    }

    fn insert(&self, ctx: &TxnContext<'_>, row: &[u8], key: &[u8]) -> Tid {
        let tid = self.heap().insert(ctx, row).unwrap();
        let outcome = self.tree.insert(ctx, key, tid, Some(self.rel.0)).unwrap();
        assert_eq!(outcome, InsertOutcome::Inserted);
        tid
    }

    fn delete(&self, ctx: &TxnContext<'_>) {
        self.delete_at(ctx, self.row);
    }

    fn delete_at(&self, ctx: &TxnContext<'_>, tid: Tid) {
        assert_eq!(self.heap().delete(ctx, tid).unwrap(), DeleteOutcome::Deleted);
    }

    fn update(&self, ctx: &TxnContext<'_>) {
        self.replace(ctx, self.row, NEW);
    }

    /// Replaces a version by a HOT update; returns the new version's place.
    #[track_caller]
    fn replace(&self, ctx: &TxnContext<'_>, tid: Tid, row: &[u8]) -> Tid {
        match self.heap().update(ctx, tid, row, true).unwrap() {
            UpdateOutcome::Updated { tid, hot: true } => tid,
            outcome => panic!("{outcome:?}"),
        }
    }

    /// The versions before `target` that a crash may leave as the newest of the row; `None`: there may be other
    /// outcomes.
    fn survivors(&self, ctx: &TxnContext<'_>, root: Tid, target: Tid) -> Option<Vec<Vec<u8>>> {
        let mut rows = Vec::new();
        let are_all = self.heap().survivors(ctx, root, target, &mut rows).unwrap();
        are_all.then_some(rows)
    }

    /// All rows that the snapshot sees.
    fn rows(&self, ctx: &TxnContext<'_>) -> Vec<Vec<u8>> {
        let mut scan = self.heap().scan(ctx).unwrap();
        std::iter::from_fn(|| scan.next(ctx, |_, row| row.to_vec()).unwrap()).collect()
    }

    fn row(&self, ctx: &TxnContext<'_>) -> Option<Vec<u8>> {
        self.heap().fetch(ctx, self.row, |_, row| row.to_vec()).unwrap()
    }

    /// Bob sees what Alice has done, `look` says how, and before he answers it is durable.
    #[track_caller]
    fn is_durable_before_it_is_told(&self, end: Lsn, look: impl FnOnce(&Self, &TxnContext<'_>)) {
        let bob = self.session();
        bob.transact(look);
        let log = &self.storage.wal;
        assert!(log.flushed() < end, "it was durable before Bob came to wait");
        bob.seen.wait_before_answer(log);
        assert!(
            log.flushed() >= end,
            "Bob tells of a commit that a crash takes back"
        );
    }
}

impl Session<'_> {
    /// Begins a transaction with a snapshot of now, for a statement that answers with rows.
    fn transact<R>(&self, act: impl FnOnce(&Table, &TxnContext<'_>) -> R) -> R {
        let storage = &self.table.storage;
        let xid = storage.assign_xid(self.proc).unwrap();
        let mut snapshot = SessionSnapshot::default();
        storage.take_session_snapshot(self.proc, &mut snapshot);
        self.seen.begin_statement(true);
        act(
            self.table,
            &TxnContext {
                storage,
                proc: self.proc,
                xid: Some(xid),
                command: 0,
                reader: Reader::of_session(&snapshot, &self.seen),
                changes: None,
            },
        )
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let storage = &self.table.storage;
        if let Some(xid) = storage.proc_array.xid_of(self.proc) {
            storage.abort(self.proc, xid).unwrap();
        }
        storage.proc_array.detach(self.proc);
    }
}

#[test]
fn a_row_that_a_reader_is_shown_is_durable() {
    let table = Table::new();
    let (tid, end) = table.commit_without_a_wait(|table, ctx| table.insert(ctx, NEW, b"new"));
    table.is_durable_before_it_is_told(end, |table, ctx| {
        let found = table.heap().fetch(ctx, tid, |_, row| row.to_vec()).unwrap();
        assert_eq!(found.as_deref(), Some(NEW));
    });
    let ((), end) = table.commit_without_a_wait(Table::update);
    table.is_durable_before_it_is_told(end, |table, ctx| {
        assert_eq!(table.rows(ctx), [NEW, NEW]);
    });
}

/// Not for later commits, nor for rows of the same page that were not looked at, nor for what is durable.
#[test]
fn a_reader_waits_for_what_it_saw_and_for_nothing_behind_it() {
    let table = Table::new();
    let (old, end) = table.commit_without_a_wait(|table, ctx| table.insert(ctx, NEW, b"durable"));
    table.storage.wal.flush(end);
    let (_, first) = table.commit_without_a_wait(|table, ctx| table.replace(ctx, table.row, OLD));
    let (_, second) = table.commit_without_a_wait(|table, ctx| table.insert(ctx, NEW, b"new"));
    let waits_for = |look: fn(&Table, &TxnContext<'_>, Tid)| {
        let bob = table.session();
        bob.transact(|table, ctx| look(table, ctx, old));
        bob.seen.owed_at(AnswerLevel::Durable)
    };
    let durable = waits_for(|table, ctx, old| {
        assert!(table.heap().fetch(ctx, old, |_, _| ()).unwrap().is_some());
    });
    assert_eq!(durable, Lsn(0));
    let replaced = waits_for(|table, ctx, _| assert!(table.row(ctx).is_some()));
    assert_eq!(replaced, first);
    let all = waits_for(|table, ctx, _| assert_eq!(table.rows(ctx).len(), 3));
    assert_eq!(all, second);
    // What still runs when Bob takes his snapshot is not seen, and not waited for.
    let carol = table.session();
    carol.transact(|table, ctx| table.delete_at(ctx, old));
    let durable = waits_for(|table, ctx, old| {
        assert!(table.heap().fetch(ctx, old, |_, _| ()).unwrap().is_some());
    });
    assert_eq!(durable, Lsn(0));
}

/// A reader before Bob has left hint bits, which say that Alice has committed.
#[test]
fn a_hint_bit_does_not_hide_a_commit() {
    let table = Table::new();
    let ((), end) = table.commit_without_a_wait(Table::update);
    for _ in 0..2 {
        assert_eq!(table.session().transact(Table::row).as_deref(), Some(NEW));
    }
    table.is_durable_before_it_is_told(end, |table, ctx| {
        assert_eq!(table.row(ctx).as_deref(), Some(NEW));
    });
}

#[test]
fn the_absence_of_a_row_is_durable() {
    let table = Table::new();
    let ((), end) = table.commit_without_a_wait(Table::delete);
    table.is_durable_before_it_is_told(end, |table, ctx| {
        assert_eq!(table.row(ctx), None);
    });
}

/// A reader before Bob has left a hint bit on a new version, and Bob locks that.
#[test]
fn a_writer_notes_an_inserter_that_a_hint_tells_of() {
    let table = Table::new();
    let (tid, end) = table.commit_without_a_wait(|table, ctx| table.insert(ctx, NEW, b"new"));
    let reads = |table: &Table, ctx: &TxnContext<'_>| table.heap().fetch(ctx, tid, |_, _| ()).unwrap();
    assert!(table.session().transact(reads).is_some());
    table.is_durable_before_it_is_told(end, |table, ctx| {
        let outcome = table
            .heap()
            .version(ctx, tid, RowLockMode::Update, |_| ())
            .unwrap();
        assert!(matches!(outcome, VersionOutcome::NoConflict(())), "{outcome:?}");
    });
}

#[test]
fn what_a_writer_meets_is_durable() {
    // Bob's own snapshot may be older, or the same; a writer sees the state of now.
    let table = Table::new();
    let ((), end) = table.commit_without_a_wait(Table::update);
    table.is_durable_before_it_is_told(end, |table, ctx| {
        let outcome = table
            .heap()
            .version(ctx, table.row, RowLockMode::Update, |_| ())
            .unwrap();
        let VersionOutcome::Changed { latest } = outcome else {
            panic!("{outcome:?}");
        };
        table.replace(ctx, latest, OLD);
    });
    let table = Table::new();
    let ((), end) = table.commit_without_a_wait(Table::delete);
    table.is_durable_before_it_is_told(end, |table, ctx| {
        let outcome = table.heap().update(ctx, table.row, NEW, true).unwrap();
        assert_eq!(outcome, UpdateOutcome::Deleted);
    });
}

#[test]
fn what_a_unique_check_finds_is_durable() {
    let table = Table::new();
    let (tid, end) = table.commit_without_a_wait(|table, ctx| table.insert(ctx, NEW, b"new"));
    table.is_durable_before_it_is_told(end, |table, ctx| {
        let other = table.heap().insert(ctx, b"another row").unwrap();
        let outcome = table.tree.insert(ctx, b"new", other, Some(table.rel.0)).unwrap();
        assert_eq!(outcome, InsertOutcome::Duplicate { tid });
    });
    let ((), end) = table.commit_without_a_wait(Table::delete);
    table.is_durable_before_it_is_told(end, |table, ctx| {
        // The key is free again.
        table.insert(ctx, b"another row", b"old");
    });
}

/// Rule L5: a version goes only when its deletion is durable. Bob would not meet it, and tell at once that it is gone.
#[test]
fn a_deleted_version_stays_until_its_deletion_is_durable() {
    let table = Table::new();
    let ((), end) = table.commit_without_a_wait(Table::delete);
    let removed = || {
        let horizon = table.storage.proc_array.horizon();
        let stats = vacuum(&table.storage, table.rel, &[table.tree_rel], horizon, &|| false).unwrap();
        stats.removed_versions
    };
    assert_eq!(removed(), 0);
    assert!(table.storage.wal.flushed() < end);
    table.storage.wal.flush(end);
    assert_eq!(removed(), 1);
}

/// The tag of an UPDATE leaves at once if the statement would have counted each of these versions as well.
#[test]
fn a_crash_leaves_the_newest_durable_version_or_a_later_one() {
    let table = Table::new();
    let replaces = |target: Tid| {
        table.session().transact(|table, ctx| {
            table.replace(ctx, target, b"Bob's row");
            table.survivors(ctx, table.row, target)
        })
    };
    assert_eq!(replaces(table.row), Some(vec![]));
    let (second, _) = table.commit_without_a_wait(|table, ctx| table.replace(ctx, table.row, NEW));
    assert_eq!(replaces(second), Some(vec![OLD.to_vec()]));
    let (third, end) = table.commit_without_a_wait(|table, ctx| table.replace(ctx, second, b"the newest"));
    assert_eq!(replaces(third), Some(vec![OLD.to_vec(), NEW.to_vec()]));
    // What the transaction has made itself, what is not on the chain, and a row that may be gone as a whole.
    table.session().transact(|table, ctx| {
        let own = table.replace(ctx, third, b"Bob's row");
        let later = TxnContext { command: 1, ..*ctx };
        table.replace(&later, own, b"Bob's other row");
        assert_eq!(table.survivors(&later, table.row, own), None);
        assert_eq!(table.survivors(&later, table.row, Tid { slot: 99, ..own }), None);
        assert_eq!(table.survivors(&later, table.row, Tid { block: 1, ..own }), None);
    });
    let (row, _) = table.commit_without_a_wait(|table, ctx| table.insert(ctx, NEW, b"new"));
    table.session().transact(|table, ctx| {
        table.replace(ctx, row, b"Bob's row");
        assert_eq!(table.survivors(ctx, row, row), None);
    });
    table.storage.wal.flush(end);
    assert_eq!(replaces(third), Some(vec![]));
}

/// A row that is updated again and again, by commits that do not wait for the disk. The log writer sleeps until it is asked.
#[test]
fn a_page_that_only_the_disk_keeps_full_asks_for_a_flush() {
    let _watchdog = Watchdog::over_test();
    let table = Table::new();
    let log = &table.storage.wal;
    let (mut newest, mut asked) = (table.row, Lsn(0));
    for number in 0..1_000 {
        (newest, _) = table.commit_without_a_wait(|table, ctx| table.replace(ctx, newest, NEW));
        if log.wanted() > asked {
            asked = log.wanted();
            while log.flushed() < asked {
                std::thread::yield_now();
            }
        }
        assert_eq!(newest.block, table.row.block, "update {number} found no room");
    }
    assert!(asked > Lsn(0));
}

/// Without a log writer: an update that finds its page full of versions that only the disk keeps flushes by itself.
#[test]
fn an_update_waits_for_the_room_of_many_versions() {
    let _watchdog = Watchdog::over_test();
    let table = Table::new();
    table.storage.stop_threads();
    let log = &table.storage.wal;
    let (mut newest, before) = (table.row, log.flushed());
    for number in 0..1_000 {
        (newest, _) = table.commit_without_a_wait(|table, ctx| table.replace(ctx, newest, NEW));
        assert_eq!(newest.block, table.row.block, "update {number} found no room");
    }
    assert!(log.flushed() > before);
}

/// Five long versions fill the page.
#[test]
fn an_update_does_not_wait_for_the_room_of_a_few_versions() {
    let table = Table::new();
    table.storage.stop_threads();
    let log = &table.storage.wal;
    let (mut newest, before) = (table.row, log.flushed());
    for number in 1..=6 {
        assert_eq!(newest.block, table.row.block, "update {number} found no room");
        let update = |table: &Table, ctx: &TxnContext<'_>| {
            table.heap().update(ctx, newest, &[7; 1_500], true).unwrap()
        };
        match table.commit_without_a_wait(update).0 {
            UpdateOutcome::Updated { tid, .. } => newest = tid,
            outcome => panic!("{outcome:?}"),
        }
    }
    assert_ne!(newest.block, table.row.block);
    assert_eq!(log.flushed(), before, "an update has waited for the disk");
    assert!(log.wanted() > Lsn(0));
}

/// Nothing is asked for where each commit waits for the disk.
#[test]
fn a_row_of_durable_versions_asks_for_nothing() {
    let table = Table::new();
    let mut newest = table.row;
    for _ in 0..1_000 {
        let end;
        (newest, end) = table.commit_without_a_wait(|table, ctx| table.replace(ctx, newest, NEW));
        table.storage.wal.flush(end);
    }
    assert_eq!(newest.block, table.row.block);
    assert_eq!(table.storage.wal.wanted(), Lsn(0));
}
