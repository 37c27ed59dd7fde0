//! The table of transactions that share rows, under loom. Each test names a mutation that it is for.
//!
//! `cargo test -p clearway-txn --features loom --test loom_row_holders --release`

mod support;

use std::sync::Arc;
use std::time::Duration;

use clearway_latch::{LatchClass, Latched, LwLockOptions, LwLockVariant};
use clearway_machine::{DataCell, Loom, Machine, WaitEvent};
use clearway_txn::{LockManager, LockOptions, LockWait, ProcArray, RowLockMode, RowPlace, Xid};
use loom::thread;
use support::{ALICE, BOB, array, explore};

static PAGE: LatchClass = LatchClass::new("page", WaitEvent::UserLatch, 250);

fn place(block: u32, slot: u16) -> RowPlace {
    RowPlace { rel: 1, block, slot }
}

/// A row that Alice reads under FOR SHARE and Bob changes.
struct Row {
    array: Arc<ProcArray<Loom>>,
    locks: LockManager<Loom>,
    /// The transaction that has the row alone.
    page: Latched<Xid, Loom>,
    content: <Loom as Machine>::Data<u64>,
}

// SAFETY: the content is reached under the row's locks only, which is what the tests check.
unsafe impl Sync for Row {}
// SAFETY: as above.
unsafe impl Send for Row {}

fn row(rows_max: usize) -> Row {
    let array = Arc::new(array::<Loom>(LwLockVariant::SingleCas, 2));
    let lwlock = LwLockOptions::from(LwLockVariant::SingleCas);
    let options = LockOptions {
        rows_max,
        lwlock,
        deadlock_timeout: Duration::MAX,
        ..LockOptions::default()
    };
    Row {
        locks: LockManager::with_options(Arc::clone(&array), options),
        array,
        page: Latched::new(&PAGE, lwlock, Xid::INVALID),
        content: <Loom as Machine>::Data::new(0),
    }
}

/// Alice shares a row while Bob changes it: each finds the other, and is woken by the other's end.
///
/// Mutations that it is for: the holder taken out with Relaxed; a holder that does not count although it runs.
#[test]
fn loom_a_sharer_and_a_writer_exclude_each_other() {
    explore(2, || {
        let row = Arc::new(row(16));
        let (a, b) = (row.array.assign_xid(ALICE), row.array.assign_xid(BOB));
        let sharer = {
            let row = Arc::clone(&row);
            thread::spawn(move || {
                loop {
                    let page = row.page.shared();
                    let other = *page;
                    if !other.is_valid() || !row.array.is_running(other) {
                        let mode = RowLockMode::Share;
                        assert!(row.locks.rows().hold(ALICE, a, place(1, 1), mode, false));
                        break;
                    }
                    drop(page);
                    row.locks
                        .wait_for_transaction(ALICE, other, LockWait::FOREVER)
                        .unwrap();
                }
                // SAFETY: Bob is kept out until Alice ends; loom fails the test otherwise.
                row.content.with(|content| assert!(unsafe { *content } <= 1));
                row.locks.end_transaction(ALICE, a);
            })
        };
        loop {
            let mut page = row.page.exclusive();
            let found = row
                .locks
                .rows()
                .in_the_way(b, place(1, 1), RowLockMode::NoKeyUpdate);
            let Some(found) = found else {
                *page = b;
                break;
            };
            drop(page);
            row.locks
                .wait_for_transaction(BOB, found.xid, LockWait::FOREVER)
                .unwrap();
        }
        // SAFETY: Alice is kept out.
        row.content.with_mut(|content| unsafe { *content += 1 });
        row.locks.end_transaction(BOB, b);
        sharer.join().unwrap();
        assert_eq!(row.locks.rows().held_rows(), 0);
    });
}

/// Bob gives a row that Alice holds a new version, while she ends: nothing of her is left behind.
///
/// Mutation that it is for: a holder follows although it has ended.
#[test]
fn loom_one_that_ends_does_not_follow() {
    explore(2, || {
        let row = Arc::new(row(16));
        let (a, b) = (row.array.assign_xid(ALICE), row.array.assign_xid(BOB));
        assert!(
            row.locks
                .rows()
                .hold(ALICE, a, place(1, 1), RowLockMode::KeyShare, false)
        );
        let updater = {
            let row = Arc::clone(&row);
            thread::spawn(move || {
                let mut page = row.page.exclusive();
                let rows = row.locks.rows();
                assert_eq!(rows.in_the_way(b, place(1, 1), RowLockMode::NoKeyUpdate), None);
                *page = b;
                rows.follow(place(1, 1), place(1, 2));
            })
        };
        row.locks.end_transaction(ALICE, a);
        updater.join().unwrap();
        assert_eq!(row.locks.rows().held_rows(), 0);
    });
}

/// Alice gets the relation in the place of her rows while Bob asks for one of them.
///
/// Mutation that it is for: the rows taken out before the relation is entered.
#[test]
fn loom_a_row_is_held_while_the_relation_takes_its_place() {
    explore(2, || {
        let row = Arc::new(row(2));
        let (a, b) = (row.array.assign_xid(ALICE), row.array.assign_xid(BOB));
        let hold = |block| {
            let mode = RowLockMode::KeyShare;
            assert!(row.locks.rows().hold(ALICE, a, place(block, 1), mode, false));
        };
        hold(1);
        let asking = {
            let row = Arc::clone(&row);
            thread::spawn(move || {
                let _page = row.page.exclusive();
                let found = row.locks.rows().in_the_way(b, place(1, 1), RowLockMode::Update);
                assert_eq!(found.map(|found| found.xid), Some(a));
            })
        };
        hold(2);
        asking.join().unwrap();
        assert_eq!(row.locks.rows().escalations(), 1);
        row.locks.end_transaction(ALICE, a);
    });
}

/// Bob gives a row a new version that Alice has shared behind a savepoint, while she goes back to it: she holds neither.
///
/// Mutation that it is for: a version follows as its predecessor was held before the look under the list's latch.
#[test]
fn loom_what_is_taken_back_does_not_follow() {
    explore(2, || {
        let row = Arc::new(row(16));
        let (a, b) = (row.array.assign_xid(ALICE), row.array.assign_xid(BOB));
        let rows = row.locks.rows();
        let mark = rows.savepoint(ALICE);
        assert!(rows.hold(ALICE, a, place(1, 1), RowLockMode::KeyShare, false));
        let updater = {
            let row = Arc::clone(&row);
            thread::spawn(move || {
                let mut page = row.page.exclusive();
                *page = b;
                row.locks.rows().follow(place(1, 1), place(1, 2));
            })
        };
        rows.go_back(ALICE, mark);
        updater.join().unwrap();
        assert_eq!(rows.held_rows(), 0);
    });
}
