//! Updates on a full page under `page_room = replace`: a new version goes where a dead one was, and only there.
//!
//! # Mutations seen to fail
//! `crates/storage/mutations/heap.toml` lists them.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;

use std::path::Path;
use std::sync::Arc;

use clearway_machine::Watchdog;
use clearway_storage::PageRoomVariant::{self, Compact, Replace};
use clearway_storage::heap::{Heap, Tid, TxnContext, UpdateOutcome};
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{Reader, RelId, Storage, StorageError, StorageOptions};
use clearway_txn::{ProcId, Snapshot, Xid};
use crash::crash;

/// As many rows of 100 bytes as leave room for one more version on a page, once all have been updated. Each row takes 136
/// bytes with its header, and two line pointers of 4 bytes then.
const ROWS: usize = 55;

/// A table of one page.
struct Table {
    storage: Arc<Storage>,
    rel: RelId,
    /// The place that an index would lead to, the newest version's place, and its bytes.
    rows: Vec<(Tid, Tid, Vec<u8>)>,
    dir: tempfile::TempDir,
}

/// Records of a transaction beside its end: bytes of its changes, and the transactions that were named for standbys.
#[derive(Debug, Default, PartialEq)]
struct Logged {
    changes: Vec<usize>,
    named: Vec<Xid>,
}

/// Opens a database; nothing but the test logs.
fn open(dir: &Path, page_room: PageRoomVariant) -> Arc<Storage> {
    let options = StorageOptions {
        page_room,
        ..chosen::small_database(4)
    };
    let (storage, _) = Storage::open(dir, options).unwrap();
    storage.stop_threads();
    storage
}

impl Table {
    fn new(page_room: PageRoomVariant) -> Self {
        Self::with(
            (0..ROWS).map(|number| vec![number as u8; 100]).collect(),
            page_room,
        )
    }

    fn with(rows: Vec<Vec<u8>>, page_room: PageRoomVariant) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path(), page_room);
        let rel = storage.create_rel().unwrap();
        let mut table = Self {
            storage,
            rel,
            rows: Vec::new(),
            dir,
        };
        let (_, tids) = table.transact(true, |ctx| {
            let heap = Heap::new(rel.0);
            let tids = rows.iter().map(|row| heap.insert(ctx, row).unwrap());
            tids.collect::<Vec<_>>()
        });
        table.rows = tids
            .into_iter()
            .zip(rows)
            .map(|(tid, row)| (tid, tid, row))
            .collect();
        table
    }

    /// A table whose rows have all been updated, so that the page is full and has one dead version.
    fn full(page_room: PageRoomVariant) -> Self {
        let mut table = Self::new(page_room);
        for round in 0..2 {
            for number in 0..ROWS {
                table.update(number, &[100 + round; 100]);
            }
        }
        table.check();
        table
    }

    /// The table after a crash, opened again under `replace`.
    fn crashed(self) -> Self {
        self.storage.wal.flush(self.storage.wal.reserved());
        crash(self.storage);
        Self {
            storage: open(self.dir.path(), Replace),
            ..self
        }
    }

    fn transact<R>(&self, commits: bool, act: impl FnOnce(&TxnContext<'_>) -> R) -> (Xid, R) {
        let (proc, snapshot) = self.snapshot();
        let xid = self.storage.assign_xid(proc).unwrap();
        let done = act(&TxnContext {
            xid: Some(xid),
            ..self.reads(proc, &snapshot)
        });
        if commits {
            self.storage.commit(proc, xid, true).unwrap();
        } else {
            self.storage.abort(proc, xid).unwrap();
        }
        self.storage.proc_array.detach(proc);
        (xid, done)
    }

    /// A session with a snapshot that it holds until it is detached.
    fn snapshot(&self) -> (ProcId, Snapshot) {
        let proc = self.storage.proc_array.attach().unwrap();
        let mut snapshot = Snapshot::default();
        self.storage.proc_array.snapshot(proc, &mut snapshot);
        (proc, snapshot)
    }

    fn reads<'a>(&'a self, proc: ProcId, snapshot: &'a Snapshot) -> TxnContext<'a> {
        TxnContext {
            storage: &self.storage,
            proc,
            xid: None,
            command: 0,
            reader: Reader::of_no_answer(snapshot),
            changes: None,
        }
    }

    /// An update of row `number` in its chain; what was logged for it.
    fn update(&mut self, number: usize, row: &[u8]) -> (Xid, Logged) {
        let (xid, tid, logged) = self.try_update(true, number, row);
        self.rows[number].1 = tid;
        self.rows[number].2 = row.to_vec();
        (xid, logged)
    }

    fn try_update(&self, commits: bool, number: usize, row: &[u8]) -> (Xid, Tid, Logged) {
        let from = self.storage.wal.reserved();
        let old = self.rows[number].1;
        let (xid, outcome) = self.transact(commits, |ctx| {
            Heap::new(self.rel.0).update(ctx, old, row, true).unwrap()
        });
        let UpdateOutcome::Updated { tid, hot: true } = outcome else {
            panic!("{outcome:?}");
        };
        let wal = &self.storage.wal;
        wal.flush(wal.reserved());
        let mut reader = LogReader::new(wal.device(), from);
        let mut logged = Logged::default();
        while let Some((record, _)) = reader.next_record().unwrap() {
            match record.kind {
                RecordKind::CHANGE => logged.changes.push(record.payload.len()),
                RecordKind::CLEANUP => {
                    assert_eq!(
                        logged.changes,
                        [],
                        "a record for standbys comes before the change"
                    );
                    logged
                        .named
                        .push(clearway_storage::cleanup::decode(record.payload).unwrap());
                }
                _ => {}
            }
        }
        (xid, tid, logged)
    }

    /// Each row as the session sees it, by its root.
    fn seen(&self, ctx: &TxnContext<'_>) -> Vec<Option<Vec<u8>>> {
        let heap = Heap::new(self.rel.0);
        let seen = self
            .rows
            .iter()
            .map(|(root, ..)| heap.fetch(ctx, *root, |_, row| row.to_vec()).unwrap());
        seen.collect()
    }

    /// Each row is what it was updated to, by an index and by a scan, and the page is sound.
    #[track_caller]
    fn check(&self) {
        let expected: Vec<_> = self.rows.iter().map(|(.., row)| Some(row.clone())).collect();
        let (_, (seen, scanned)) = self.transact(true, |ctx| {
            let mut scan = Heap::new(self.rel.0).scan(ctx).unwrap();
            let scanned = std::iter::from_fn(|| scan.next(ctx, |_, row| Some(row.to_vec())).unwrap());
            (self.seen(ctx), scanned.collect::<Vec<_>>())
        });
        assert!(seen == expected, "by their roots");
        let sorted = |mut rows: Vec<_>| {
            rows.sort();
            rows
        };
        assert!(sorted(scanned) == sorted(expected), "by a scan");
        assert_eq!(self.storage.block_count(self.rel).unwrap(), 1);
        let mut findings = self.storage.findings(self.rel);
        let mut progress = |_| Ok::<_, StorageError>(());
        self.storage
            .check_heap(self.rel, 1, &mut findings, &mut progress)
            .unwrap();
        assert_eq!(findings.list(), []);
    }
}

/// The log of an update on a full page is that of the update: nothing else on the page moves.
#[test]
fn a_new_version_takes_the_place_of_a_dead_one() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::full(Replace);
    let mut replaced = None;
    for round in 0..3_u8 {
        for number in (0..ROWS).rev() {
            let (xid, logged) = table.update(number, &[round; 100]);
            let [bytes] = logged.changes[..] else {
                panic!("row {number}, round {round}: {logged:?}")
            };
            assert!(
                bytes < 132 + 100,
                "row {number}, round {round}: {bytes} bytes of log"
            );
            if let Some(replaced) = replaced {
                assert_eq!(
                    logged.named,
                    [replaced],
                    "the one that has replaced what is overwritten"
                );
            }
            replaced = Some(xid);
        }
        table.check();
    }
}

/// A page that was written under `compact` has no note: the first update prunes it, and those after it do not.
#[test]
fn a_page_without_a_note_is_pruned_once() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::full(Compact).crashed();
    let changes: Vec<usize> = (0..2 * ROWS)
        .map(|update| table.update(update % ROWS, &[update as u8; 100]).1.changes.len())
        .collect();
    assert_eq!(changes[0], 2, "the pruning, and the update");
    assert!(changes[1..].iter().all(|changes| *changes == 1), "{changes:?}");
    table.check();
}

/// A snapshot that sees the version that the note names goes on to see it.
#[test]
fn a_version_that_is_seen_keeps_its_place() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::new(Replace);
    for number in 0..ROWS {
        table.update(number, &[1; 100]);
    }
    let (proc, snapshot) = table.snapshot();
    let before = table.seen(&table.reads(proc, &snapshot));
    // The page has room for one more, or for none; then updates go to other pages.
    for number in 0..3 {
        let old = table.rows[number].1;
        let update = |ctx: &TxnContext<'_>| Heap::new(table.rel.0).update(ctx, old, &[2; 100], true).unwrap();
        table.transact(true, update);
    }
    assert!(table.seen(&table.reads(proc, &snapshot)) == before);
    table.storage.proc_array.detach(proc);
}

/// The note of an update that was rolled back names a version that lives.
#[test]
fn a_version_whose_updater_rolled_back_keeps_its_place() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::full(Replace);
    for number in 0..ROWS {
        table.try_update(false, number, &[b'r'; 100]);
        table.update((number + 1) % ROWS, &[number as u8; 100]);
        table.check();
    }
}

/// A place is taken by a version that is not longer, and what it leaves over is found again by pruning.
#[test]
fn rows_of_changing_length_keep_to_their_places() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::full(Replace);
    for round in 0..4_usize {
        for number in 0..ROWS {
            let length = [60, 100, 101, 92][(number + round) % 4];
            table.update(number, &vec![round as u8; length]);
        }
        table.check();
    }
}

/// If tuples are side by side, one that is 8 bytes longer than the dead one would overwrite its neighbour.
#[test]
fn a_longer_version_does_not_fit() {
    let _watchdog = Watchdog::over_test();
    let length = |number: usize| 92 + 8 * (number % 2);
    let rows: Vec<Vec<u8>> = (0..ROWS + 2).map(|number| vec![0; length(number)]).collect();
    let mut table = Table::with(rows, Replace);
    for round in 0..3 {
        for number in 0..ROWS + 2 {
            table.update(number, &vec![round; length(number)]);
            table.check();
        }
    }
}

/// Recovery makes the same page.
#[test]
fn rows_survive_a_crash() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::full(Replace);
    for number in 0..ROWS {
        table.update(number, &[number as u8; 100]);
    }
    table.crashed().check();
}
