//! Data that the disk lost is an error for the statement that wants it, and for the check; never a smaller answer.

mod common;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_engine::{CheckReport, Engine, SqlState};
use clearway_storage::btree::{BTree, InsertOutcome};
use clearway_storage::heap::{Heap, Tid, TxnContext};
use clearway_storage::{Reader, Storage, StorageOptions};
use clearway_txn::Snapshot;
use common::{Fixture, config, query};

const PAGE: u64 = 8_192;
const ROWS: u32 = 2_000;

/// The relations of the two tables below, in the order in which they are made: 18 is for long values of `t`.
const T: u32 = 16;
const T_KEY: u32 = 17;
const U: u32 = 19;

/// Two tables of some twenty pages each, closed in order.
fn two_tables() -> tempfile::TempDir {
    let fixture = Fixture::new(
        "create table t (id int primary key, note text);
         create table u (id int primary key, note text);
         insert into t select i, 'a note of some length in the row ' || i from generate_series(1, 2000) i;
         insert into u select i, 'a note of some length in the row ' || i from generate_series(1, 2000) i",
    );
    let Fixture { engine, directory } = fixture;
    engine.shutdown().unwrap();
    drop(engine);
    let kind = |rel| read_page(&path(directory.path(), rel), 0)[12];
    assert_eq!([T, T_KEY, U].map(kind), [2, 3, 2], "a heap, a tree, a heap");
    directory
}

fn path(dir: &Path, rel: u32) -> PathBuf {
    dir.join("base").join(rel.to_string())
}

fn read_page(file: &Path, block: u64) -> Vec<u8> {
    let mut page = vec![0; PAGE as usize];
    File::open(file)
        .unwrap()
        .read_exact_at(&mut page, block * PAGE)
        .unwrap();
    page
}

fn write_page(file: &Path, block: u64, page: &[u8]) {
    let file = OpenOptions::new().write(true).open(file).unwrap();
    file.write_all_at(page, block * PAGE).unwrap();
}

fn open(directory: tempfile::TempDir) -> Fixture {
    let engine = Engine::open(directory.path(), config()).unwrap();
    Fixture { engine, directory }
}

fn check(fixture: &Fixture) -> CheckReport {
    let mut seen = 0;
    let report = fixture.engine.check_with(&mut |progress| {
        assert!(progress.pages_done > seen && progress.pages_done <= progress.pages_total);
        seen = progress.pages_done;
    });
    report.unwrap()
}

type Damage = fn(&Path);

#[test]
fn a_lost_page_of_a_table_is_an_error_and_a_finding() {
    let damages: [(&str, Damage, &str); 5] = [
        (
            "zeroed",
            |dir| write_page(&path(dir, T), 3, &[0; PAGE as usize]),
            "page 3 of",
        ),
        (
            "truncated",
            |dir| {
                let file = OpenOptions::new().write(true).open(path(dir, T)).unwrap();
                file.set_len(5 * PAGE).unwrap();
            },
            "page 5 of",
        ),
        (
            "copied over another",
            |dir| write_page(&path(dir, T), 7, &read_page(&path(dir, T), 6)),
            "the page is that of block 6 of relation 16",
        ),
        (
            "of another table",
            |dir| write_page(&path(dir, T), 7, &read_page(&path(dir, U), 7)),
            "the page is that of block 7 of relation 19",
        ),
        (
            "swapped",
            |dir| {
                let (one, other) = (read_page(&path(dir, T), 1), read_page(&path(dir, T), 2));
                write_page(&path(dir, T), 1, &other);
                write_page(&path(dir, T), 2, &one);
            },
            "the page is that of block 2 of relation 16",
        ),
    ];
    for (what, damage, problem) in damages {
        let directory = two_tables();
        damage(directory.path());
        let fixture = open(directory);
        let mut session = fixture.session();
        let error = common::error(&mut session, "select count(*) from t");
        assert_eq!(error.sqlstate(), SqlState::DATA_CORRUPTED, "{what}: {error}");
        assert!(error.to_string().contains("base/16"), "{what}: {error}");
        assert_eq!(query(&mut session, "select count(*) from u"), "2000", "{what}");
        let report = check(&fixture);
        let named = |text: &str| report.problems.iter().any(|found| found.contains(text));
        assert!(
            named("table \"t\": ") && named("base/16") && named(problem),
            "{what}: {report:?}"
        );
        assert!(
            !report.problems.iter().any(|found| found.contains("\"u\"")),
            "{what}: {report:?}"
        );
    }
}

#[test]
fn a_lost_page_of_an_index_is_an_error_and_a_finding() {
    for truncated in [false, true] {
        let directory = two_tables();
        let file = path(directory.path(), T_KEY);
        if truncated {
            OpenOptions::new()
                .write(true)
                .open(&file)
                .unwrap()
                .set_len(PAGE)
                .unwrap();
        } else {
            let blocks = file.metadata().unwrap().len() / PAGE;
            (1..blocks).for_each(|block| write_page(&file, block, &[0; PAGE as usize]));
        }
        let fixture = open(directory);
        let mut session = fixture.session();
        for sql in ["select * from t where id = 77", "insert into t values (0, 'x')"] {
            let error = common::error(&mut session, sql);
            assert_eq!(error.sqlstate(), SqlState::DATA_CORRUPTED, "{error}");
            assert!(error.to_string().contains("base/17"), "{error}");
        }
        let report = check(&fixture);
        assert!(
            report
                .problems
                .iter()
                .any(|found| found.contains("index \"t_pkey\"")),
            "{report:?}"
        );
    }
}

#[test]
fn a_missing_file_is_an_error() {
    let directory = two_tables();
    std::fs::remove_file(path(directory.path(), T)).unwrap();
    let error = match Engine::open(directory.path(), config()) {
        Err(error) => error,
        Ok(engine) => {
            let fixture = Fixture { engine, directory };
            common::error(&mut fixture.session(), "select count(*) from t")
        }
    };
    assert_eq!(error.sqlstate(), SqlState::DATA_CORRUPTED, "{error}");
    assert!(error.to_string().contains("base/16"), "{error}");
}

/// Changes the two tables behind the engine's back, in a transaction that commits.
fn tamper(dir: &Path, work: impl Fn(&TxnContext<'_>)) {
    let options = StorageOptions {
        fsync: false,
        buffer_bytes: 4 << 20,
        ..StorageOptions::default()
    };
    let storage: Arc<Storage> = Storage::open(dir, options).unwrap().0;
    let proc = storage.proc_array.attach().unwrap();
    let mut snapshot = Snapshot::default();
    storage.proc_array.snapshot(proc, &mut snapshot);
    let xid = storage.assign_xid(proc).unwrap();
    work(&TxnContext {
        storage: &storage,
        proc,
        xid: Some(xid),
        command: 1,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    });
    storage.commit(proc, xid, true).unwrap();
    storage.proc_array.detach(proc);
    storage.shutdown().unwrap();
}

/// The first entry of the index, and the row that it leads to.
fn first_row(context: &TxnContext<'_>) -> (Vec<u8>, Tid, Vec<u8>) {
    let mut cursor = BTree::new(T_KEY).range(&[], None, clearway_storage::btree::Direction::Forward);
    let mut entries = Vec::new();
    cursor.next_entries(context.storage, 1, &mut entries).unwrap();
    let (key, tid) = entries.remove(0);
    let row = Heap::new(T)
        .fetch(context, tid, |_, row| row.to_vec())
        .unwrap()
        .unwrap();
    (key, tid, row)
}

#[test]
fn an_index_that_does_not_fit_its_table_is_a_finding() {
    type Tampering = fn(&TxnContext<'_>);
    let tamperings: [(Tampering, &str, &str); 4] = [
        (
            |context| {
                let (key, tid, _) = first_row(context);
                let nowhere = Tid { slot: 290, ..tid };
                let outcome = BTree::new(T_KEY).insert(context, &key, nowhere, None).unwrap();
                assert_eq!(outcome, InsertOutcome::Inserted);
            },
            "an entry that leads to",
            "the page has no such line pointer",
        ),
        (
            |context| {
                let (key, tid, _) = first_row(context);
                let nowhere = Tid { block: 10_000, ..tid };
                BTree::new(T_KEY).insert(context, &key, nowhere, None).unwrap();
            },
            "an entry that leads to",
            "the table has no such page",
        ),
        (
            |context| {
                let (_, tid, _) = first_row(context);
                let gone = std::iter::once(tid).collect();
                BTree::new(T_KEY).vacuum_delete(context.storage, &gone).unwrap();
            },
            "has no entry for the row at",
            "index \"t_pkey\"",
        ),
        (
            |context| {
                let (key, _, row) = first_row(context);
                let again = Heap::new(T).insert(context, &row).unwrap();
                BTree::new(T_KEY).insert(context, &key, again, None).unwrap();
            },
            "unique index \"t_pkey\" has the key (id)=(1) twice",
            "for the rows at",
        ),
    ];
    for (tampering, problem, detail) in tamperings {
        let directory = two_tables();
        tamper(directory.path(), tampering);
        let fixture = open(directory);
        let report = check(&fixture);
        assert_eq!(report.problems.len(), 1, "{report:?}");
        let found = &report.problems[0];
        assert!(found.contains(problem) && found.contains(detail), "{found}");
    }
}

/// A statement looks at the head of a document and at what it asks for; the check looks at every part.
#[test]
fn a_damaged_part_of_a_jsonb_is_a_finding() {
    let fixture = Fixture::new(r#"create table d (j jsonb); insert into d values ('{"a": "inner text"}')"#);
    let Fixture { engine, directory } = fixture;
    engine.shutdown().unwrap();
    drop(engine);
    tamper(directory.path(), |context| {
        let first = Tid { block: 0, slot: 1 };
        let row = Heap::new(T).fetch(context, first, |_, row| row.to_vec());
        let mut row = row.unwrap().unwrap();
        let text = row.windows(5).position(|part| part == b"inner").unwrap();
        row[text] = 0xFF;
        Heap::new(T).insert(context, &row).unwrap();
    });
    let fixture = open(directory);
    let report = check(&fixture);
    assert_eq!(report.problems.len(), 1, "{report:?}");
    let found = &report.problems[0];
    assert!(found.contains("a value of column \"j\" is damaged"), "{found}");
    assert_eq!(query(&mut fixture.session(), "select count(j) from d"), "2");
}

/// Starts and ends, in order and not, leave sound tables, and files that do not grow by what was allocated ahead.
#[test]
fn files_do_not_grow_by_starts() {
    let mut directory = two_tables();
    let size = |dir: &Path| path(dir, T).metadata().unwrap().len();
    let before = size(directory.path());
    for round in 0..8 {
        let fixture = open(directory);
        let mut session = fixture.session();
        query(
            &mut session,
            &format!("insert into t values ({}, 'more')", 10_000 + round),
        );
        drop(session);
        if round % 2 == 0 {
            fixture.engine.shutdown().unwrap();
        }
        Fixture { directory, .. } = fixture;
    }
    // A new page for the first row of each start, for which the free space is not known, and an eighth of all ahead.
    let after = size(directory.path());
    assert!(
        after <= (before + 8 * PAGE) * 9 / 8,
        "grew from {before} to {after} bytes"
    );
    let fixture = open(directory);
    let report = check(&fixture);
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.notes, Vec::<String>::new());
    assert_eq!(report.rows, u64::from(2 * ROWS + 8));
}
