use super::held::{KEYS_MAX, PAGES_MAX, ROWS_MAX};
use super::*;

const TABLE: u32 = 1;
const INDEX: u32 = 2;

type Own = SerialTransaction<Native>;

fn serializable() -> Serializable {
    with(|_| {})
}

fn with(change: impl FnOnce(&mut SerializableOptions)) -> Serializable {
    let mut options = SerializableOptions::new(4, LwLockOptions::default());
    change(&mut options);
    Serializable::new(options)
}

fn begin(shared: &Serializable, proc: u32) -> Own {
    begin_as(shared, proc, false)
}

fn begin_as(shared: &Serializable, proc: u32, is_read_only: bool) -> Own {
    let own = shared.begin(ProcId(proc), is_read_only);
    shared.snapshot_taken(&own);
    own
}

fn row(block: u32, slot: u16) -> MarkedRow {
    MarkedRow {
        relation: TABLE,
        block,
        slot,
    }
}

/// Snapshots that show nothing of the others.
fn blind(_: Xid) -> bool {
    false
}

fn commit(shared: &Serializable, own: Own, xid: u64) -> Result<(), SerializationFailure> {
    match shared.prepare(&own, Xid(xid)) {
        Ok(()) => {
            shared.finish(own);
            Ok(())
        }
        Err(failure) => {
            shared.remove(own);
            Err(failure)
        }
    }
}

fn nothing_is_left(shared: &Serializable) {
    assert_eq!(shared.sizes(), (0, 0));
}

#[test]
fn of_two_that_read_what_the_other_writes_the_second_gives_up() {
    let shared = serializable();
    let (mut alice, mut bob) = (begin(&shared, 0), begin(&shared, 1));
    for own in [&mut alice, &mut bob] {
        shared.read_row(own, row(0, 1), &blind).unwrap();
        shared.read_row(own, row(0, 2), &blind).unwrap();
    }
    shared.write_row(&mut alice, Xid(10), row(0, 1), &blind).unwrap();
    shared.write_row(&mut bob, Xid(11), row(0, 2), &blind).unwrap();
    assert_eq!(commit(&shared, alice, 10), Ok(()));
    assert_eq!(
        commit(&shared, bob, 11),
        Err(SerializationFailure::PivotDuringCommit)
    );
    nothing_is_left(&shared);
}

#[test]
fn readers_of_rows_that_others_leave_alone_go_on() {
    let shared = serializable();
    let (mut alice, mut bob) = (begin(&shared, 0), begin(&shared, 1));
    shared.read_row(&mut alice, row(0, 1), &blind).unwrap();
    shared.write_row(&mut alice, Xid(10), row(0, 1), &blind).unwrap();
    shared.read_row(&mut bob, row(0, 2), &blind).unwrap();
    shared.write_row(&mut bob, Xid(11), row(0, 2), &blind).unwrap();
    assert_eq!(commit(&shared, alice, 10), Ok(()));
    assert_eq!(commit(&shared, bob, 11), Ok(()));
    nothing_is_left(&shared);
}

#[test]
fn marks_outlive_the_commit_of_a_reader() {
    let shared = serializable();
    let (mut alice, mut bob) = (begin(&shared, 0), begin(&shared, 1));
    // Bob → Alice, and Alice commits first.
    shared.read_row(&mut bob, row(0, 1), &blind).unwrap();
    shared.write_row(&mut alice, Xid(10), row(0, 1), &blind).unwrap();
    shared.read_row(&mut alice, row(0, 2), &blind).unwrap();
    assert_eq!(commit(&shared, alice, 10), Ok(()));
    assert_eq!(shared.sizes().0, 2, "Alice is kept for Bob");
    // Alice → Bob, found by the mark of one that has committed.
    assert_eq!(
        shared.write_row(&mut bob, Xid(11), row(0, 2), &blind),
        Err(SerializationFailure::PivotDuringWrite)
    );
    // It cannot go back to a savepoint and commit.
    assert!(commit(&shared, bob, 11).is_err());
    nothing_is_left(&shared);
}

/// A reader of a key that is not there, and one of a range.
#[test]
fn what_was_not_found_counts() {
    for is_range in [false, true] {
        let shared = serializable();
        let (mut alice, mut bob) = (begin(&shared, 0), begin(&shared, 1));
        for own in [&mut alice, &mut bob] {
            match is_range {
                true => shared.read_keys(own, INDEX, (b"a", Some(b"z")), &blind).unwrap(),
                false => {
                    shared.read_key(own, INDEX, b"b", &blind).unwrap();
                    shared.read_key(own, INDEX, b"c", &blind).unwrap();
                }
            }
        }
        shared
            .write_key(&mut alice, Xid(10), INDEX, b"b", &blind)
            .unwrap();
        shared.write_key(&mut bob, Xid(11), INDEX, b"c", &blind).unwrap();
        assert_eq!(commit(&shared, alice, 10), Ok(()));
        assert!(commit(&shared, bob, 11).is_err());
    }
}

/// The upper end of a range is not part of it, and the lower one is.
#[test]
fn ends_of_ranges() {
    for (key, conflicts) in [(b"a", true), (b"c", false)] {
        let shared = serializable();
        let (mut alice, mut bob) = (begin(&shared, 0), begin(&shared, 1));
        shared
            .read_keys(&mut alice, INDEX, (b"a", Some(b"c")), &blind)
            .unwrap();
        shared.write_key(&mut bob, Xid(11), INDEX, key, &blind).unwrap();
        shared.read_row(&mut bob, row(0, 1), &blind).unwrap();
        shared.write_row(&mut alice, Xid(10), row(0, 1), &blind).unwrap();
        assert_eq!(commit(&shared, bob, 11), Ok(()));
        assert_eq!(commit(&shared, alice, 10).is_err(), conflicts, "{key:?}");
    }
}

#[test]
fn a_reader_of_a_table_finds_writers_of_rows_and_they_find_it() {
    for reader_is_first in [true, false] {
        let shared = serializable();
        let (mut alice, mut bob) = (begin(&shared, 0), begin(&shared, 1));
        shared.read_row(&mut bob, row(9, 9), &blind).unwrap();
        shared.write_row(&mut alice, Xid(10), row(9, 9), &blind).unwrap();
        if reader_is_first {
            shared.read_relation(&mut alice, TABLE, &blind).unwrap();
        }
        let written = shared.write_row(&mut bob, Xid(11), row(3, 4), &blind);
        let read = shared.read_relation(&mut alice, TABLE, &blind);
        let first = commit(&shared, alice, 10);
        let second = commit(&shared, bob, 11);
        let failed = [written, read, first, second]
            .iter()
            .filter(|o| o.is_err())
            .count();
        assert!(failed > 0, "reader first: {reader_is_first}");
    }
}

/// A read-only transaction is T1 only if T3 committed before its snapshot.
#[test]
fn a_reader_with_an_older_snapshot_does_no_harm() {
    for reader_is_late in [false, true] {
        let shared = serializable();
        let mut pivot = begin(&shared, 0);
        let mut early = (!reader_is_late).then(|| begin_as(&shared, 2, true));
        shared.read_row(&mut pivot, row(0, 1), &blind).unwrap();
        let mut first = begin(&shared, 1);
        shared.write_row(&mut first, Xid(11), row(0, 1), &blind).unwrap();
        assert_eq!(commit(&shared, first, 11), Ok(()));
        shared.write_row(&mut pivot, Xid(10), row(0, 2), &blind).unwrap();
        let mut reader = early.take().unwrap_or_else(|| begin_as(&shared, 2, true));
        shared.read_row(&mut reader, row(0, 2), &blind).unwrap();
        assert_eq!(commit(&shared, reader, 0), Ok(()));
        assert_eq!(commit(&shared, pivot, 10).is_err(), reader_is_late);
        nothing_is_left(&shared);
    }
}

#[test]
fn a_snapshot_is_safe_when_those_that_write_have_ended_well() {
    let shared = serializable();
    let alone = begin_as(&shared, 0, true);
    assert!(alone.is_safe(), "none runs that writes");
    shared.remove(alone);

    let writer = begin(&shared, 1);
    let reader = begin_as(&shared, 0, true);
    assert!(!reader.is_safe() && !reader.is_unsafe());
    assert_eq!(shared.blockers_of_safe_snapshot(ProcId(0)), [ProcId(1)]);
    assert_eq!(commit(&shared, writer, 11), Ok(()));
    assert!(reader.is_safe());
    shared.remove(reader);

    // The pivot has not seen what one wrote that committed before the reader's snapshot.
    let mut pivot = begin(&shared, 1);
    shared.read_row(&mut pivot, row(0, 1), &blind).unwrap();
    let mut first = begin(&shared, 2);
    shared.write_row(&mut first, Xid(12), row(0, 1), &blind).unwrap();
    assert_eq!(commit(&shared, first, 12), Ok(()));
    let reader = begin_as(&shared, 0, true);
    assert_eq!(commit(&shared, pivot, 11), Ok(()));
    assert!(reader.is_unsafe() && !reader.is_safe());
    shared.remove(reader);
    nothing_is_left(&shared);
}

/// A transaction that was seen before another registered is none that overlaps it.
#[test]
fn what_the_snapshot_shows_is_no_conflict() {
    let shared = serializable();
    let (mut alice, keeper) = (begin(&shared, 0), begin(&shared, 3));
    shared.write_row(&mut alice, Xid(10), row(0, 1), &blind).unwrap();
    shared.prepare(&alice, Xid(10)).unwrap();
    // It has been seen, and not finished: the snapshot says so.
    let mut bob = begin(&shared, 1);
    let sees_alice = |xid: Xid| xid == Xid(10);
    shared.read_row(&mut bob, row(0, 1), &sees_alice).unwrap();
    shared.finish(alice);
    let mut carol = begin(&shared, 2);
    shared.read_row(&mut carol, row(0, 1), &blind).unwrap();
    for id in [bob.id(), carol.id()] {
        assert!(!shared.graph.shared().has_conflicts(id));
    }
    shared.remove(bob);
    shared.remove(carol);
    shared.remove(keeper);
    nothing_is_left(&shared);
}

/// Beyond the bound of each level the marks are coarser, and find what the finer ones found.
#[test]
fn many_marks_become_coarse() {
    let shared = serializable();
    let mut reader = begin(&shared, 0);
    for slot in 1..=ROWS_MAX as u16 + 2 {
        shared.read_row(&mut reader, row(0, slot), &blind).unwrap();
    }
    assert_eq!(shared.sizes().1, 1, "a page in the place of its rows");
    for block in 1..PAGES_MAX as u32 + 2 {
        shared.read_row(&mut reader, row(block, 1), &blind).unwrap();
    }
    assert_eq!(shared.sizes().1, 1, "the table in the place of its pages");
    for number in 0..KEYS_MAX as u32 + 2 {
        shared
            .read_key(&mut reader, INDEX, &number.to_be_bytes(), &blind)
            .unwrap();
    }
    assert_eq!(shared.sizes().1, 2, "a range in the place of the keys");
    let mut writer = begin(&shared, 1);
    shared.write_row(&mut writer, Xid(11), row(0, 1), &blind).unwrap();
    assert!(shared.graph.shared().has_conflicts(writer.id()));
    shared.remove(writer);
    let mut writer = begin(&shared, 1);
    shared
        .write_key(&mut writer, Xid(12), INDEX, &5_u32.to_be_bytes(), &blind)
        .unwrap();
    assert!(shared.graph.shared().has_conflicts(writer.id()));
    shared.remove(writer);
    shared.remove(reader);
    nothing_is_left(&shared);
}

#[test]
fn many_written_rows_and_keys_become_coarse() {
    let shared = serializable();
    let mut writer = begin(&shared, 0);
    for slot in 1..=ROWS_MAX as u16 + 2 {
        shared
            .write_row(&mut writer, Xid(10), row(0, slot), &blind)
            .unwrap();
    }
    for number in 0..KEYS_MAX as u32 + 2 {
        shared
            .write_key(&mut writer, Xid(10), INDEX, &number.to_be_bytes(), &blind)
            .unwrap();
    }
    assert_eq!(shared.sizes().1, 3, "table, page, range");
    for target in [false, true] {
        let mut reader = begin(&shared, 1);
        match target {
            false => shared.read_row(&mut reader, row(0, 1), &blind).unwrap(),
            true => shared
                .read_key(&mut reader, INDEX, &5_u32.to_be_bytes(), &blind)
                .unwrap(),
        }
        assert!(shared.graph.shared().has_conflicts(reader.id()));
        shared.remove(reader);
    }
    shared.remove(writer);
    nothing_is_left(&shared);
}

/// Reads and writes of a summarised transaction are still found, and go when nothing overlaps it.
#[test]
fn summarised_transactions_are_found() {
    for reads in [true, false] {
        let shared = with(|options| options.retained_max = 0);
        let mut pivot = begin(&shared, 0);
        let mut first = begin(&shared, 1);
        // Pivot → first: it commits first, and is summarised at once.
        shared.read_row(&mut pivot, row(0, 1), &blind).unwrap();
        shared.write_row(&mut first, Xid(11), row(0, 1), &blind).unwrap();
        shared.read_row(&mut first, row(0, 2), &blind).unwrap();
        shared.write_row(&mut first, Xid(11), row(0, 3), &blind).unwrap();
        assert_eq!(commit(&shared, first, 11), Ok(()));
        assert_eq!(shared.sizes().0, 1, "it is not kept by itself");
        let outcome = match reads {
            // First → pivot, found by the mark of the old ones.
            true => shared.write_row(&mut pivot, Xid(10), row(0, 2), &blind),
            // Another → pivot; pivot → first is remembered.
            false => {
                let mut other = begin(&shared, 2);
                shared.read_row(&mut other, row(0, 5), &blind).unwrap();
                let written = shared.write_row(&mut pivot, Xid(10), row(0, 5), &blind);
                shared.remove(other);
                written
            }
        };
        assert!(outcome.is_err(), "{reads}");
        shared.remove(pivot);
        let last = begin(&shared, 3);
        assert_eq!(commit(&shared, last, 0), Ok(()));
        nothing_is_left(&shared);
    }
}

#[test]
fn the_marks_of_old_ones_are_bounded() {
    let shared = with(|options| (options.retained_max, options.old_marks_max) = (0, 8));
    let mut long = begin(&shared, 0);
    for number in 0..200_u32 {
        let mut other = begin(&shared, 1);
        shared.read_row(&mut other, row(number, 1), &blind).unwrap();
        shared
            .read_key(&mut other, INDEX, &number.to_be_bytes(), &blind)
            .unwrap();
        let xid = u64::from(number) + 100;
        shared
            .write_row(&mut other, Xid(xid), row(number, 2), &blind)
            .unwrap();
        assert_eq!(commit(&shared, other, xid), Ok(()));
        assert!(shared.sizes().1 <= 20, "{:?} at {number}", shared.sizes());
    }
    // The first one's mark is still found, in a coarser one.
    shared.write_row(&mut long, Xid(10), row(0, 1), &blind).unwrap();
    assert!(shared.graph.shared().has_conflicts(long.id()));
    shared.remove(long);
    let last = begin(&shared, 3);
    assert_eq!(commit(&shared, last, 0), Ok(()));
    nothing_is_left(&shared);
}

/// M7: a mark that others have made coarser is found by one that has written to the table before.
#[test]
fn marks_that_others_make_coarser_are_found_by_a_second_write() {
    for is_old in [false, true] {
        let shared = match is_old {
            false => serializable(),
            true => with(|options| (options.retained_max, options.old_marks_max) = (0, 1)),
        };
        let (mut writer, mut reader) = (begin(&shared, 0), begin(&shared, 1));
        shared.write_row(&mut writer, Xid(10), row(0, 1), &blind).unwrap();
        shared.read_row(&mut reader, row(7, 7), &blind).unwrap();
        shared.read_row(&mut reader, row(8, 8), &blind).unwrap();
        assert_eq!(commit(&shared, reader, 0), Ok(()));
        if !is_old {
            shared.coarsen(TABLE, &[INDEX]);
        }
        assert!(!shared.graph.shared().has_conflicts(writer.id()));
        // The row may be one that was read, at its new place.
        shared.write_row(&mut writer, Xid(10), row(9, 9), &blind).unwrap();
        assert!(shared.graph.shared().has_conflicts(writer.id()), "old: {is_old}");
        shared.remove(writer);
        let last = begin(&shared, 3);
        assert_eq!(commit(&shared, last, 0), Ok(()));
        nothing_is_left(&shared);
    }
}

/// Marks on more tables than there may be marks of old ones: they cannot be made fewer, and the end comes all the same.
#[test]
fn old_marks_on_many_tables_are_no_endless_work() {
    let shared = with(|options| (options.retained_max, options.old_marks_max) = (0, 8));
    let long = begin(&shared, 0);
    let mut other = begin(&shared, 1);
    for relation in 0..40 {
        shared.read_relation(&mut other, relation, &blind).unwrap();
    }
    assert_eq!(commit(&shared, other, 0), Ok(()));
    assert_eq!(shared.sizes(), (1, 40));
    shared.remove(long);
    nothing_is_left(&shared);
}

/// G5 and G7: a pivot that finishes, and is summarised, between a reader's registration and the news of its snapshot.
#[test]
fn a_snapshot_is_not_safe_beside_a_pivot_that_was_summarised() {
    let shared = with(|options| options.retained_max = 0);
    let mut pivot = begin(&shared, 0);
    shared.read_row(&mut pivot, row(0, 1), &blind).unwrap();
    let mut first = begin(&shared, 1);
    shared.write_row(&mut first, Xid(11), row(0, 1), &blind).unwrap();
    assert_eq!(commit(&shared, first, 11), Ok(()));
    let reader = shared.begin(ProcId(2), true);
    shared.write_row(&mut pivot, Xid(10), row(0, 2), &blind).unwrap();
    assert_eq!(commit(&shared, pivot, 10), Ok(()));
    shared.snapshot_taken(&reader);
    assert!(reader.is_unsafe() && !reader.is_safe());
    shared.remove(reader);
    nothing_is_left(&shared);
}

/// M6: rows get other places, and an index goes.
#[test]
fn marks_on_parts_become_marks_on_the_table() {
    let shared = serializable();
    let keeper = begin(&shared, 3);
    for by_key in [false, true] {
        let mut reader = begin(&shared, 0);
        match by_key {
            false => shared.read_row(&mut reader, row(0, 1), &blind).unwrap(),
            true => shared.read_key(&mut reader, INDEX, b"k", &blind).unwrap(),
        }
        let mut writer = begin(&shared, 1);
        assert_eq!(commit(&shared, reader, 0), Ok(()));
        shared.coarsen(TABLE, &[INDEX]);
        shared.add_rows(&mut writer, Xid(11), TABLE, &blind).unwrap();
        assert!(shared.graph.shared().has_conflicts(writer.id()), "{by_key}");
        shared.remove(writer);
    }
    shared.remove(keeper);
    nothing_is_left(&shared);
}

#[test]
fn marks_are_listed() {
    let shared = serializable();
    let mut own = begin(&shared, 2);
    shared.read_row(&mut own, row(4, 5), &blind).unwrap();
    shared.read_key(&mut own, INDEX, b"k", &blind).unwrap();
    shared.write_row(&mut own, Xid(10), row(4, 6), &blind).unwrap();
    let mut listed = shared.listed();
    listed.sort_by_key(|mark| matches!(mark.object, MarkedObject::Keys(_)));
    let objects: Vec<_> = listed.iter().map(|mark| mark.object).collect();
    assert_eq!(
        objects,
        [MarkedObject::Row(TABLE, 4, 5), MarkedObject::Keys(INDEX)]
    );
    assert!(
        listed
            .iter()
            .all(|mark| mark.proc == Some(ProcId(2)) && mark.runs)
    );
    shared.remove(own);
    assert!(shared.listed().is_empty());
}
