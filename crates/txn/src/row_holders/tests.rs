use super::*;

const ALICE: ProcId = ProcId(0);
const BOB: ProcId = ProcId(1);
const REL: u32 = 5;

fn table(sessions: u32, rows_max: usize) -> (Arc<ProcArray<Native>>, RowHolders) {
    let array = Arc::new(ProcArray::new(
        sessions,
        clearway_latch::LwLockVariant::SingleCas,
        Xid(100),
    ));
    for _ in 0..sessions {
        array.attach().unwrap();
    }
    let lwlock = LwLockOptions::default();
    let rows = RowHolders::new(Arc::clone(&array), RowLocksVariant::Shared, lwlock, rows_max);
    (array, rows)
}

fn place(slot: u16) -> RowPlace {
    RowPlace {
        rel: REL,
        block: 7,
        slot,
    }
}

fn end(array: &ProcArray, rows: &RowHolders, proc: ProcId, xid: Xid) {
    array.end(proc, Some(xid));
    rows.release(proc);
}

fn assert_empty(rows: &RowHolders) {
    assert!(rows.parts.iter().all(|part| part.shared().is_empty()));
    assert!(rows.counts.iter().all(|count| count.load(Relaxed) == 0));
    assert!(rows.relations.shared().is_empty() && rows.relation_count.load(Relaxed) == 0);
}

#[test]
fn holders_are_in_the_way_of_what_conflicts_until_they_end() {
    for held in [RowLockMode::KeyShare, RowLockMode::Share] {
        for asked in RowLockMode::ALL {
            let (array, rows) = table(2, ROWS_MAX);
            let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
            assert!(rows.hold(ALICE, a, place(1), held, false));
            let found = rows.in_the_way(b, place(1), asked);
            let expected = held.conflicts_with(asked).then_some(InTheWay {
                xid: a,
                is_holder: false,
            });
            assert_eq!(found, expected, "{held:?} {asked:?}");
            assert_eq!(rows.in_the_way(a, place(1), asked), None, "its own");
            assert_eq!(rows.in_the_way(b, place(2), asked), None, "another row");
            array.end(ALICE, Some(a));
            assert_eq!(rows.in_the_way(b, place(1), asked), None, "H2");
            rows.release(ALICE);
            assert_empty(&rows);
        }
    }
}

#[test]
fn a_hold_becomes_stronger_and_never_weaker() {
    let (array, rows) = table(2, ROWS_MAX);
    let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
    for mode in [RowLockMode::Share, RowLockMode::KeyShare] {
        assert!(rows.hold(ALICE, a, place(1), mode, false));
        assert!(rows.in_the_way(b, place(1), RowLockMode::NoKeyUpdate).is_some());
    }
    end(&array, &rows, ALICE, a);
    assert_empty(&rows);
}

#[test]
fn holders_follow_a_new_version() {
    let (array, rows) = table(2, ROWS_MAX);
    let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
    assert!(rows.hold(ALICE, a, place(1), RowLockMode::KeyShare, false));
    rows.follow(place(1), place(2));
    for version in [place(1), place(2)] {
        assert!(rows.in_the_way(b, version, RowLockMode::Update).is_some(), "H3");
        assert!(rows.in_the_way(b, version, RowLockMode::NoKeyUpdate).is_none());
    }
    // The first version is pruned, and another row stands in its place.
    rows.forget(REL, 7, [1]);
    assert!(rows.in_the_way(b, place(1), RowLockMode::Update).is_none(), "H4");
    assert!(rows.in_the_way(b, place(2), RowLockMode::Update).is_some());
    end(&array, &rows, ALICE, a);
    // One that has ended does not follow.
    rows.follow(place(2), place(3));
    assert_empty(&rows);
}

/// Mutation that it is for: a waiter that is passed for ever.
#[test]
fn a_waiter_is_passed_by_a_bounded_number_of_new_holders() {
    let sessions = u32::from(entry::PASSES_MAX) + 4;
    let (array, rows) = table(sessions, ROWS_MAX);
    let xids: Vec<Xid> = (0..sessions).map(|proc| array.assign_xid(ProcId(proc))).collect();
    let hold = |number: usize, at_front| {
        let proc = ProcId(number as u32);
        rows.hold(proc, xids[number], place(1), RowLockMode::KeyShare, at_front)
    };
    assert!(hold(0, false) && hold(1, false));
    // A waiter that key-sharers are not in the way of is not passed by them.
    let last = xids.len() - 1;
    assert!(
        rows.in_the_way(xids[last], place(1), RowLockMode::NoKeyUpdate)
            .is_none()
    );
    assert!(
        rows.in_the_way(xids[last], place(1), RowLockMode::Update)
            .is_some()
    );
    let passing = 2..2 + usize::from(entry::PASSES_MAX);
    assert!(passing.clone().all(|number| hold(number, false)));
    let next = passing.end;
    assert!(!hold(next, false), "H5");
    assert!(hold(1, false), "a holder does not queue");
    assert!(hold(next, true), "it has queued");
    assert!(rows.holds(xids[next], place(1)));
}

/// Mutation that it is for: the relation in the place of the rows, in the mode asked for last.
#[test]
fn a_transaction_with_many_rows_gets_the_relation_in_their_strongest_mode() {
    let (array, rows) = table(2, 8);
    let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
    assert!(rows.hold(ALICE, a, place(1), RowLockMode::Share, false));
    for slot in 2..100 {
        assert!(rows.hold(ALICE, a, place(slot), RowLockMode::KeyShare, false));
        assert!(rows.sessions[0].held.shared().places.len() < 8);
    }
    assert_eq!(rows.escalations(), 1);
    assert!(rows.parts.iter().all(|part| part.shared().is_empty()));
    for slot in 1..200 {
        let found = rows.in_the_way(b, place(slot), RowLockMode::NoKeyUpdate);
        assert_eq!(found.map(|found| found.xid), Some(a));
    }
    let elsewhere = RowPlace {
        rel: REL + 1,
        ..place(1)
    };
    assert_eq!(rows.in_the_way(b, elsewhere, RowLockMode::Update), None);
    // Bob holds some row, which is no row of the list of Alice, and waits as a holder.
    assert!(rows.hold(BOB, b, place(3), RowLockMode::KeyShare, false));
    let found = rows.in_the_way(b, place(3), RowLockMode::Update).unwrap();
    assert!(found.xid == a && found.is_holder);
    end(&array, &rows, ALICE, a);
    assert_eq!(rows.in_the_way(b, place(3), RowLockMode::Update), None);
    end(&array, &rows, BOB, b);
    assert_empty(&rows);
}

/// The example of `savepoint`.
#[test]
fn what_was_shared_since_a_savepoint_is_free() {
    let (array, rows) = table(2, ROWS_MAX);
    let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
    let hold = |slot| assert!(rows.hold(ALICE, a, place(slot), RowLockMode::KeyShare, false));
    hold(1);
    let mark = rows.savepoint(ALICE);
    hold(2);
    // The new versions are at 11 and 12.
    for slot in [1, 2] {
        rows.follow(place(slot), place(slot + 10));
    }
    rows.go_back(ALICE, mark);
    let is_held = |slot| rows.in_the_way(b, place(slot), RowLockMode::Update).is_some();
    assert_eq!([1, 11, 2, 12].map(is_held), [true, true, false, false]);
    end(&array, &rows, ALICE, a);
    assert_empty(&rows);
}

#[test]
fn a_mode_that_was_made_stronger_since_a_savepoint_is_what_it_was() {
    let (array, rows) = table(2, ROWS_MAX);
    let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
    let hold = |mode| assert!(rows.hold(ALICE, a, place(1), mode, false));
    let is_in_the_way = |mode| rows.in_the_way(b, place(1), mode).is_some();
    hold(RowLockMode::KeyShare);
    let first = rows.savepoint(ALICE);
    hold(RowLockMode::KeyShare);
    for _ in 0..2 {
        rows.savepoint(ALICE);
        hold(RowLockMode::Share);
        assert!(is_in_the_way(RowLockMode::NoKeyUpdate));
        rows.go_back(ALICE, first);
        assert!(!is_in_the_way(RowLockMode::NoKeyUpdate));
        assert!(is_in_the_way(RowLockMode::Update));
    }
    end(&array, &rows, ALICE, a);
    assert_empty(&rows);
}

/// Later savepoints, each of which is gone back to, leave what earlier ones have, once.
#[test]
fn savepoints_in_each_other_are_gone_back_to_one_by_one() {
    let (array, rows) = table(2, ROWS_MAX);
    let a = array.assign_xid(ALICE);
    let mut marks = Vec::new();
    for slot in 1..=20 {
        marks.push(rows.savepoint(ALICE));
        assert!(rows.hold(ALICE, a, place(slot), RowLockMode::Share, false));
        // It follows within each savepoint.
        rows.follow(place(1), place(100 + slot));
    }
    for (left, mark) in marks.into_iter().enumerate().rev() {
        rows.go_back(ALICE, mark);
        // The versions that follow the first row are there as long as it is.
        let expected = if left == 0 { 0 } else { left as u64 + 20 };
        assert_eq!(rows.held_rows(), expected);
        let listed = rows.list(ALICE).held.exclusive().places.len();
        assert_eq!(listed as u64, expected, "each is listed once");
    }
    end(&array, &rows, ALICE, a);
    assert_empty(&rows);
}

/// H6 before H7: a relation that is held whole stays so.
#[test]
fn a_relation_that_is_held_whole_outlives_a_savepoint() {
    let (array, rows) = table(2, 3);
    let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
    let mark = rows.savepoint(ALICE);
    for slot in 1..=3 {
        assert!(rows.hold(ALICE, a, place(slot), RowLockMode::Share, false));
    }
    assert_eq!(rows.escalations(), 1);
    rows.go_back(ALICE, mark);
    assert!(rows.in_the_way(b, place(1), RowLockMode::Update).is_some());
    end(&array, &rows, ALICE, a);
    assert_empty(&rows);
}

/// Savepoints behind the last moment share it: going back to one of them gives nothing back, and what is held stays held.
#[test]
fn savepoints_behind_the_last_moment_give_nothing_back() {
    let (array, rows) = table(2, ROWS_MAX);
    let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
    rows.savepoint(ALICE);
    rows.list(ALICE).held.exclusive().now = u32::MAX - 2;
    let mut last = None;
    for row in 1..4 {
        last = Some(rows.savepoint(ALICE));
        assert!(rows.hold(ALICE, a, place(row), RowLockMode::Share, false));
    }
    let held = || (1..4).all(|row| rows.in_the_way(b, place(row), RowLockMode::NoKeyUpdate).is_some());
    assert!(held());
    rows.go_back(ALICE, last.unwrap());
    assert!(held());
    end(&array, &rows, ALICE, a);
    assert_empty(&rows);
}
