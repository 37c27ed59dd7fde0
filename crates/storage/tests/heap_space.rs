//! The number of pages of a table: a page takes as many rows as it has room for, to its last byte and no further, and
//! room that vacuum has found is used again.

#[path = "support/chosen.rs"]
mod chosen;

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use clearway_machine::{Machine, Native, WaitEvent, Watchdog, WorkerId};
use clearway_storage::heap::{DeleteOutcome, Heap, ROW_MAX, Tid, TxnContext, UpdateOutcome};
use clearway_storage::vacuum::{VacuumPhase, VacuumProgress, VacuumWatch, vacuum};
use clearway_storage::{PAGE_HEADER, PAGE_SIZE, PageId, Reader, RelId, Storage, StorageError};
use clearway_txn::{ProcId, RowLockMode, Snapshot, Xid};

/// A table, and its rows by their places.
struct Table {
    storage: Arc<Storage>,
    rel: RelId,
    rows: Vec<(Tid, Vec<u8>)>,
    inserted: usize,
    dir: tempfile::TempDir,
}

impl Table {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let options = chosen::small_database(4);
        let (storage, _) = Storage::open(dir.path(), options).unwrap();
        Self {
            rel: storage.create_rel().unwrap(),
            storage,
            rows: Vec::new(),
            inserted: 0,
            dir,
        }
    }

    fn heap(&self) -> Heap {
        Heap::new(self.rel.0)
    }

    fn blocks(&self) -> u32 {
        self.storage.block_count(self.rel).unwrap()
    }

    /// A committed transaction.
    fn transact<R>(&self, act: impl FnOnce(&TxnContext<'_>) -> R) -> R {
        let commits = |proc, xid| {
            self.storage.commit(proc, xid, true).unwrap();
        };
        self.transact_until(commits, act)
    }

    /// A transaction that ends as `end` ends it.
    fn transact_until<R>(&self, end: impl FnOnce(ProcId, Xid), act: impl FnOnce(&TxnContext<'_>) -> R) -> R {
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
        end(proc, xid);
        self.storage.proc_array.detach(proc);
        done
    }

    /// Inserts rows of this length, one by one.
    fn insert(&mut self, count: usize, length: usize) {
        let rows: Vec<Vec<u8>> = (0..count)
            .map(|number| vec![(self.inserted + number) as u8; length])
            .collect();
        self.inserted += count;
        let tids = self.transact(|ctx| {
            let tids = rows.iter().map(|row| self.heap().insert(ctx, row).unwrap());
            tids.collect::<Vec<_>>()
        });
        self.rows.extend(tids.into_iter().zip(rows));
    }

    /// Inserts rows of these lengths together.
    fn insert_together(&mut self, lengths: &[usize]) {
        let rows: Vec<Vec<u8>> = (self.inserted..)
            .zip(lengths)
            .map(|(number, length)| vec![number as u8; *length])
            .collect();
        self.inserted += rows.len();
        let tids = self.transact(|ctx| {
            let rows: Vec<&[u8]> = rows.iter().map(|row| &row[..]).collect();
            let mut ring = ctx.storage.write_ring();
            self.heap().insert_many(ctx, &rows, &mut ring).unwrap()
        });
        self.rows.extend(tids.into_iter().zip(rows));
    }

    fn insert_equal_rows_together(&mut self, count: usize, length: usize) {
        self.insert_together(&vec![length; count]);
    }

    /// The table as recovery makes it, from the log alone.
    fn after_a_crash(self) -> Self {
        self.storage.wal.flush(self.storage.wal.reserved());
        self.storage.stop_threads();
        let options = chosen::small_database(4);
        let Self { storage, dir, .. } = self;
        drop(storage);
        Self {
            storage: Storage::open(dir.path(), options).unwrap().0,
            rel: self.rel,
            rows: self.rows,
            inserted: self.inserted,
            dir,
        }
    }

    /// Deletes every second row, and vacuums; returns how many are gone.
    fn delete_every_second(&mut self) -> usize {
        let before = self.rows.len();
        let (deleted, kept): (Vec<_>, Vec<_>) = self
            .rows
            .drain(..)
            .enumerate()
            .partition(|(number, _)| number.is_multiple_of(2));
        self.rows = kept.into_iter().map(|(_, row)| row).collect();
        self.transact(|ctx| {
            for (_, (tid, _)) in &deleted {
                assert_eq!(self.heap().delete(ctx, *tid).unwrap(), DeleteOutcome::Deleted);
            }
        });
        let horizon = self.storage.proc_array.horizon();
        let stats = vacuum(&self.storage, self.rel, &[], horizon, &|| false).unwrap();
        assert_eq!(stats.removed_rows, deleted.len() as u64);
        before - self.rows.len()
    }

    /// Each row is where it was put, nothing else is there, and each page is sound, also for an index.
    #[track_caller]
    fn check(&self) {
        let mut expected = self.rows.clone();
        expected.sort();
        let found = self.transact(|ctx| {
            let mut scan = self.heap().scan(ctx).unwrap();
            std::iter::from_fn(|| scan.next(ctx, |tid, row| (tid, row.to_vec())).unwrap()).collect::<Vec<_>>()
        });
        assert!(found == expected, "{} of {} rows", found.len(), expected.len());
        let mut findings = self.storage.findings(self.rel);
        let mut progress = |_| Ok::<_, StorageError>(());
        self.storage
            .check_heap(self.rel, self.blocks(), &mut findings, &mut progress)
            .unwrap();
        assert_eq!(findings.list(), []);
        for (tid, _) in &self.rows {
            assert_eq!(
                self.heap().entry_problem(&self.storage, *tid).unwrap(),
                None,
                "{tid:?}"
            );
        }
    }
}

/// Bytes of a page that a row takes: its line pointer, and the tuple with its header.
fn bytes_of(length: usize) -> usize {
    4 + (32 + length).next_multiple_of(8)
}

/// A row too much on a page overwrites another; one too few, on each, is a table of twice the size where two would fit.
#[test]
fn a_page_takes_as_many_rows_as_it_has_room_for() {
    let _watchdog = Watchdog::over_test();
    // Two rows of 4,048 bytes fill a page; rows without a byte leave as much as one of them takes without its line pointer.
    for length in [0, 1, 100, 1_000, 2_680, 4_048, 4_049, ROW_MAX] {
        for insert in [Table::insert, Table::insert_equal_rows_together] {
            let mut table = Table::new();
            let fit = (PAGE_SIZE - PAGE_HEADER) / bytes_of(length);
            insert(&mut table, 3 * fit, length);
            table.check();
            assert_eq!(table.blocks(), 3, "{length}: pages with room for {fit} rows");
            table.storage.stop_threads();
        }
    }
}

/// A table whose rows are deleted and inserted, and which is vacuumed in between, stays as large as it is: the room and
/// the line pointers of rows that are gone are used again, and those of others are not touched.
#[test]
fn what_vacuum_has_found_is_used_again() {
    let _watchdog = Watchdog::over_test();
    for length in [0, 100, 3_000] {
        for insert in [Table::insert, Table::insert_equal_rows_together] {
            let mut table = Table::new();
            let fit = (PAGE_SIZE - PAGE_HEADER) / bytes_of(length);
            insert(&mut table, 4 * fit, length);
            assert_eq!(table.blocks(), 4);
            for _ in 0..3 {
                let gone = table.delete_every_second();
                table.check();
                insert(&mut table, gone, length);
                table.check();
                assert_eq!(table.blocks(), 4, "{length}");
            }
            table.storage.stop_threads();
        }
    }
}

/// A vacuum tells of each page and each step, with what it has come to.
#[test]
fn a_vacuum_tells_how_far_it_is() {
    struct Told(RefCell<Vec<VacuumProgress>>);
    impl VacuumWatch for Told {
        fn is_cancelled(&self) -> bool {
            false
        }
        fn reached(&self, at: VacuumProgress) {
            self.0.borrow_mut().push(at);
        }
    }
    let _watchdog = Watchdog::over_test();
    let mut table = Table::new();
    let fit = (PAGE_SIZE - PAGE_HEADER) / bytes_of(1_000);
    table.insert(3 * fit, 1_000);
    // One row of the first page, and two of the last one.
    let gone = [table.rows[0].0, table.rows[2 * fit].0, table.rows[2 * fit + 1].0];
    table.transact(|ctx| {
        for tid in gone {
            assert_eq!(table.heap().delete(ctx, tid).unwrap(), DeleteOutcome::Deleted);
        }
    });
    let told = Told(RefCell::default());
    let horizon = table.storage.proc_array.horizon();
    vacuum(&table.storage, table.rel, &[], horizon, &told).unwrap();
    let shown: Vec<_> = told
        .0
        .borrow()
        .iter()
        .map(|at| {
            assert!(at.dead_max > 1_000 && at.pages == 3);
            (at.phase, at.scanned, at.dead, at.vacuumed, at.index_rounds)
        })
        .collect();
    use VacuumPhase::{Indexes, Lines, Pages};
    assert_eq!(
        shown,
        [
            (Pages, 0, 0, 0, 0),
            (Pages, 1, 1, 0, 0),
            (Pages, 2, 1, 0, 0),
            (Indexes, 3, 3, 0, 0),
            (Lines, 3, 3, 0, 1),
            (Lines, 3, 3, 2, 1),
        ]
    );
    table.storage.stop_threads();
}

/// Rows of all lengths go in together, on pages with and without line pointers to use again, and are the same after a
/// crash.
#[test]
fn rows_inserted_together_are_where_they_were_put() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::new();
    for round in 1..6 {
        let lengths: Vec<usize> = (0..300 * round)
            .map(|number| number * 37 % (round * 230))
            .collect();
        table.insert_together(&lengths);
        table.check();
        table.delete_every_second();
        table.insert_together(&lengths[..round * 20]);
        table.check();
    }
    let table = table.after_a_crash();
    table.check();
    table.storage.stop_threads();
}

/// Rows that no statement has looked at since: vacuum finds out by itself how their transactions ended.
#[test]
fn rows_that_were_never_read_are_removed() {
    let _watchdog = Watchdog::over_test();
    let table = Table::new();
    let heap = table.heap();
    table.transact(|ctx| {
        let tids: Vec<Tid> = (0..20).map(|_| heap.insert(ctx, b"a row").unwrap()).collect();
        let later = TxnContext { command: 1, ..*ctx };
        for tid in tids {
            assert_eq!(heap.delete(&later, tid).unwrap(), DeleteOutcome::Deleted);
        }
    });
    let horizon = table.storage.proc_array.horizon();
    let stats = vacuum(&table.storage, table.rel, &[], horizon, &|| false).unwrap();
    assert_eq!((stats.removed_versions, stats.removed_rows), (20, 20));
    table.storage.stop_threads();
}

/// The version of an update that was rolled back goes, also after the row's next update, which leads past it.
#[test]
fn versions_of_updates_that_were_rolled_back_are_removed() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::new();
    let heap = table.heap();
    table.insert(3, 100);
    let update = |ctx: &TxnContext<'_>, tid: Tid, row: &[u8]| match heap.update(ctx, tid, row, true).unwrap()
    {
        UpdateOutcome::Updated { tid, hot: true } => tid,
        outcome => panic!("{outcome:?}"),
    };
    let (old, row) = table.rows[1].clone();
    let rolls_back = |proc, xid| table.storage.abort(proc, xid).unwrap();
    table.transact_until(rolls_back, |ctx| update(ctx, old, &[b'r'; 100]));
    let new = table.transact(|ctx| update(ctx, old, &[b'u'; 100]));
    table.rows[1] = (new, vec![b'u'; row.len()]);
    let horizon = table.storage.proc_array.horizon();
    let stats = vacuum(&table.storage, table.rel, &[], horizon, &|| false).unwrap();
    assert_eq!((stats.removed_versions, stats.live_rows), (2, 3));
    let expected = table.rows.clone();
    let found = table.transact(|ctx| {
        let mut scan = heap.scan(ctx).unwrap();
        std::iter::from_fn(|| scan.next(ctx, |tid, row| (tid, row.to_vec())).unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(found.len(), expected.len());
    assert!(expected.iter().all(|row| found.contains(row)));
    table.storage.stop_threads();
}

/// An update whose page is full puts the new version on a page that has room for it, if there is one.
#[test]
fn an_updated_row_goes_where_there_is_room() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::new();
    let heap = table.heap();
    // Page 0 is full; the session's own page is 1, with 1,000 bytes left.
    table.insert(2, 4_048);
    table.insert(2, 3_500);
    assert_eq!(table.blocks(), 2);
    let update = |table: &mut Table, at: usize, length: usize| {
        let old = table.rows[at].0;
        let row = vec![b'u'; length];
        let outcome = table.transact(|ctx| heap.update(ctx, old, &row, false).unwrap());
        let UpdateOutcome::Updated { tid, .. } = outcome else {
            panic!("{outcome:?}")
        };
        table.rows[at] = (tid, row);
        tid.block
    };
    // Too long for what is left on page 1.
    assert_eq!(update(&mut table, 0, 4_049), 2);
    table.check();
    // Page 2 has as much room again.
    assert_eq!(update(&mut table, 2, 4_020), 2);
    table.check();
    table.storage.stop_threads();
}

/// Two pages are latched in the order of their numbers, whichever of them the row is on: of two updates with the same
/// two pages each would else wait for the other for ever.
#[test]
fn an_update_latches_the_lower_page_first() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::new();
    table.insert(4, 4_048);
    // Both pages are full; page 0 gets room.
    let gone = table.rows.remove(0).0;
    table.transact(|ctx| assert_eq!(table.heap().delete(ctx, gone).unwrap(), DeleteOutcome::Deleted));
    let horizon = table.storage.proc_array.horizon();
    vacuum(&table.storage, table.rel, &[], horizon, &|| false).unwrap();
    let (old, _) = table.rows[1];
    assert_eq!((gone.block, old.block, table.blocks()), (0, 1, 2));

    let page = |block| {
        table
            .storage
            .pin(PageId {
                rel: table.rel,
                block,
            })
            .unwrap()
    };
    let worker = AtomicU32::new(u32::MAX);
    let (lower, higher) = (page(0), page(1));
    let held = lower.exclusive();
    let outcome = thread::scope(|scope| {
        let updating = scope.spawn(|| {
            worker.store(Native::worker().0, Ordering::Release);
            table.transact(|ctx| table.heap().update(ctx, old, &[b'u'; 3_000], false).unwrap())
        });
        let waits = || match worker.load(Ordering::Acquire) {
            u32::MAX => false,
            slot => Native::workers().slot(WorkerId(slot)).wait_event() == WaitEvent::BufferContent,
        };
        while !updating.is_finished() && !waits() {
            thread::yield_now();
        }
        let higher_is_free = higher.try_exclusive().is_some();
        drop(held);
        let outcome = updating.join().unwrap();
        assert!(higher_is_free, "the page of the row was latched first");
        outcome
    });
    assert!(
        matches!(
            outcome,
            UpdateOutcome::Updated {
                tid: Tid { block: 0, .. },
                ..
            }
        ),
        "{outcome:?}"
    );
    drop((lower, higher));
    table.storage.stop_threads();
}

/// Vacuum passes over pages that have not changed since it left them with nothing to do, and visits each that has, by
/// whatever change; what it tells of the table is the same. After a start it visits all.
///
/// Caught mutations (`mutations/heap.toml`): a note that is trusted whatever the page's LSN, a page with a deleted
/// version that counts as settled, a page with Dead line pointers that counts as settled.
#[test]
fn vacuum_passes_over_pages_that_have_not_changed() {
    let _watchdog = Watchdog::over_test();
    const PAGES: u32 = 8;
    let mut table = Table::new();
    let fit = (PAGE_SIZE - PAGE_HEADER) / bytes_of(100);
    table.insert(PAGES as usize * fit, 100);
    let vacuum_all = |table: &Table| {
        let horizon = table.storage.proc_array.horizon();
        let stats = vacuum(&table.storage, table.rel, &[], horizon, &|| false).unwrap();
        assert_eq!(
            (stats.pages, stats.live_rows),
            (PAGES, table.rows.len() as u64),
            "{stats:?}"
        );
        stats
    };
    assert_eq!(vacuum_all(&table).settled_pages, 0);
    assert_eq!(vacuum_all(&table).settled_pages, PAGES);

    // A row locked, whose page is settled again once that is over and looked at.
    let (tid, _) = table.rows[3 * fit + 1];
    table.transact(|ctx| {
        table
            .heap()
            .lock_row(ctx, tid, RowLockMode::Update, false)
            .map(|_| ())
            .unwrap()
    });
    assert_eq!(vacuum_all(&table).settled_pages, PAGES - 1);
    assert_eq!(vacuum_all(&table).settled_pages, PAGES);

    // A row deleted, at first by a transaction that runs. When it commits, its page does not change.
    let (tid, _) = table.rows.swap_remove(5 * fit);
    let deleter = table.storage.proc_array.attach().unwrap();
    let xid = table.storage.assign_xid(deleter).unwrap();
    let mut snapshot = Snapshot::default();
    table.storage.proc_array.snapshot(deleter, &mut snapshot);
    let context = TxnContext {
        storage: &table.storage,
        proc: deleter,
        xid: Some(xid),
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    assert_eq!(
        table.heap().delete(&context, tid).unwrap(),
        DeleteOutcome::Deleted
    );
    let horizon = table.storage.proc_array.horizon();
    let stats = vacuum(&table.storage, table.rel, &[], horizon, &|| false).unwrap();
    assert_eq!((stats.settled_pages, stats.removed_versions), (PAGES - 1, 0));
    table.storage.commit(deleter, xid, true).unwrap();
    table.storage.proc_array.detach(deleter);
    let stats = vacuum_all(&table);
    assert_eq!((stats.settled_pages, stats.removed_rows), (PAGES - 1, 1));
    assert_eq!(
        vacuum_all(&table).settled_pages,
        PAGES,
        "vacuum's own changes are noted"
    );

    // A row put in the room of that one by a transaction that rolls back.
    let roll_back = |proc, xid| table.storage.abort(proc, xid).unwrap();
    table.transact_until(roll_back, |ctx| {
        table.heap().insert(ctx, &[7; 100]).map(|_| ()).unwrap()
    });
    let stats = vacuum_all(&table);
    assert_eq!((stats.settled_pages, stats.removed_rows), (PAGES - 1, 1));
    assert_eq!(vacuum_all(&table).settled_pages, PAGES);
    table.check();

    let table = table.after_a_crash();
    assert_eq!(vacuum_all(&table).settled_pages, 0, "no note outlives its log");
    assert_eq!(vacuum_all(&table).settled_pages, PAGES);
    table.storage.stop_threads();
}

/// A vacuum that is ended before it has freed Dead line pointers leaves them to the next one.
#[test]
fn vacuum_comes_back_for_what_it_has_not_freed() {
    let _watchdog = Watchdog::over_test();
    let mut table = Table::new();
    table.insert(10, 100);
    let deleted: Vec<Tid> = table.rows.drain(..4).map(|(tid, _)| tid).collect();
    table.transact(|ctx| {
        for tid in deleted {
            assert_eq!(table.heap().delete(ctx, tid).unwrap(), DeleteOutcome::Deleted);
        }
    });
    // An index that is no index: removing its entries fails.
    let no_index = table.storage.create_rel().unwrap();
    let horizon = table.storage.proc_array.horizon();
    vacuum(&table.storage, table.rel, &[no_index], horizon, &|| false).unwrap_err();
    let stats = vacuum(&table.storage, table.rel, &[], horizon, &|| false).unwrap();
    assert_eq!(
        (stats.settled_pages, stats.removed_versions, stats.removed_rows),
        (0, 0, 4)
    );
    table.check();
    table.storage.stop_threads();
}

/// While a transaction keeps all of its versions, a row leaves its page. A look-up of it later prunes what it finds there.
#[test]
fn a_look_up_prunes_what_a_row_has_left_behind() {
    let mut table = Table::new();
    table.insert(1, 20);
    let root = table.rows[0].0;
    let holder = table.storage.proc_array.attach().unwrap();
    let held = table.storage.assign_xid(holder).unwrap();
    let mut newest = root;
    while newest.block == root.block {
        newest = table.transact(
            |ctx| match table.heap().update(ctx, newest, &[7; 20], true).unwrap() {
                UpdateOutcome::Updated { tid, .. } => tid,
                outcome => panic!("{outcome:?}"),
            },
        );
    }
    let is_seen = || table.transact(|ctx| table.heap().fetch(ctx, root, |_, _| ()).unwrap().is_some());
    let removed_by_vacuum = || {
        let horizon = table.storage.proc_array.horizon();
        let stats = vacuum(&table.storage, table.rel, &[], horizon, &|| false).unwrap();
        stats.removed_versions
    };
    assert!(!is_seen());
    table.storage.abort(holder, held).unwrap();
    table.storage.proc_array.detach(holder);
    // Under `snapshot = csn` the horizon is some transactions behind: a look-up prunes a part, and the next one more.
    for _ in 0..3 {
        assert!(!is_seen());
    }
    let left = removed_by_vacuum();
    assert!(left < 16, "look-ups left {left} versions to vacuum");
    let seen = table.transact(|ctx| table.heap().fetch(ctx, newest, |_, row| row.to_vec()).unwrap());
    assert_eq!(seen, Some(vec![7; 20]));
}
