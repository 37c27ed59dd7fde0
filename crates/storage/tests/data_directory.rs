//! Directories that are opened, and those that are refused and left as they were.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/directory_content.rs"]
mod directory_content;

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use clearway_storage::disk::{Faults, FaultyDisk, NativeDisk, Operation};
use clearway_storage::heap::{Heap, TxnContext};
use clearway_storage::wal::segment_name::{FIRST_TIMELINE, segment_name};
use clearway_storage::{Reader, RelId, Storage, StorageError, StorageOptions};
use clearway_txn::Snapshot;
use directory_content::content;

fn options() -> StorageOptions {
    chosen::small_database(4)
}

/// Opening `dir` fails in every way and at every attempt, and changes nothing.
#[track_caller]
fn assert_refused(dir: &Path, reason: &str) {
    let before = content(dir);
    for _ in 0..2 {
        for outcome in [
            Storage::open(dir, options()),
            Storage::open_read_only(dir, options()),
        ] {
            let error = outcome.expect_err("the directory is refused");
            assert!(error.to_string().contains(reason), "{error}");
            assert!(content(dir) == before, "{}: something was written", dir.display());
        }
    }
}

/// A directory with one row, and the number of its relation.
fn with_a_row(dir: &Path) -> RelId {
    let (storage, _) = Storage::open(dir, options()).unwrap();
    let rel = storage.create_rel().unwrap();
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    let mut snapshot = Snapshot::default();
    storage.proc_array.snapshot(proc, &mut snapshot);
    let context = TxnContext {
        storage: &storage,
        proc,
        xid: Some(xid),
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    Heap::new(rel.0).insert(&context, b"Alice's row").unwrap();
    storage.commit(proc, xid, true).unwrap();
    // Nothing is written after this: the caller looks at the files.
    storage.stop_threads();
    rel
}

/// Number of rows that a new snapshot sees.
fn rows(storage: &Storage, rel: RelId) -> usize {
    let proc = storage.proc_array.attach().unwrap();
    let mut snapshot = Snapshot::default();
    storage.proc_array.snapshot(proc, &mut snapshot);
    let context = TxnContext {
        storage,
        proc,
        xid: None,
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    let mut scan = Heap::new(rel.0).scan(&context).unwrap();
    let mut count = 0;
    while scan
        .next(&context, |_, row| assert_eq!(row, b"Alice's row"))
        .unwrap()
        .is_some()
    {
        count += 1;
    }
    storage.proc_array.clear_xmin(proc);
    storage.proc_array.detach(proc);
    count
}

fn close(dir: &Path) {
    let (storage, _) = Storage::open(dir, options()).unwrap();
    storage.shutdown().unwrap();
}

#[test]
fn a_directory_with_other_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("letter.txt"), "Dear Bob").unwrap();
    assert_refused(dir.path(), "letter.txt");
    let postgres = tempfile::tempdir().unwrap();
    fs::write(postgres.path().join("PG_VERSION"), "15\n").unwrap();
    fs::create_dir(postgres.path().join("base")).unwrap();
    assert_refused(postgres.path(), "PostgreSQL");
}

/// A user deletes the control file, or a crash of the file system empties it. Each start refuses the
/// directory: no start takes it for an empty database and its tables for leftovers.
#[test]
fn a_database_without_its_control_file_is_refused_for_good() {
    let dir = tempfile::tempdir().unwrap();
    with_a_row(dir.path());
    close(dir.path());
    let control = dir.path().join("control");
    let kept = fs::read(&control).unwrap();
    fs::remove_file(&control).unwrap();
    assert_refused(dir.path(), "backup");
    fs::write(&control, b"").unwrap();
    assert_refused(dir.path(), "neither of its two copies");
    fs::remove_file(&control).unwrap();
    fs::rename(dir.path().join("base"), dir.path().join("elsewhere")).unwrap();
    assert_refused(dir.path(), "backup");
    fs::rename(dir.path().join("elsewhere"), dir.path().join("base")).unwrap();
    fs::write(&control, kept).unwrap();
    close(dir.path());
}

/// The log is shorter than a segment, and shorter than the control file says.
#[test]
fn a_cut_log_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    with_a_row(dir.path());
    close(dir.path());
    let segment = dir.path().join("pg_wal").join(segment_name(FIRST_TIMELINE, 1));
    fs::File::options()
        .write(true)
        .open(&segment)
        .unwrap()
        .set_len(100)
        .unwrap();
    assert_refused(dir.path(), "no whole log record");
    fs::remove_file(dir.path().join("control")).unwrap();
    assert_refused(dir.path(), "backup");
}

#[test]
fn a_database_that_lacks_a_part_is_refused() {
    for part in ["base", "pg_wal", "base/0", "base/1"] {
        let dir = tempfile::tempdir().unwrap();
        with_a_row(dir.path());
        close(dir.path());
        let path = dir.path().join(part);
        match path.is_dir() {
            true => fs::remove_dir_all(&path).unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        assert_refused(dir.path(), "missing");
    }
}

#[test]
fn only_opening_for_good_makes_a_database() {
    let dir = tempfile::tempdir().unwrap();
    let missing = dir.path().join("missing");
    for path in [&missing, dir.path()] {
        let error = Storage::open_read_only(path, options()).unwrap_err();
        assert!(matches!(error, StorageError::NoDatabase { .. }), "{error}");
    }
    assert_eq!(content(dir.path()).len(), 0);
    // What a file system puts there does not count.
    fs::create_dir_all(missing.join("lost+found")).unwrap();
    close(&missing);
}

/// After a crash the database is looked at twice without changing a byte, and then recovered.
#[test]
fn reading_only_recovers_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let rel = with_a_row(dir.path());
    let before = content(dir.path());
    for _ in 0..2 {
        let (storage, report) = Storage::open_read_only(dir.path(), options()).unwrap();
        assert!(!report.clean && report.commits == 1, "{report:?}");
        assert_eq!(rows(&storage, rel), 1);
        storage.drop_rel(rel).unwrap();
        storage.shutdown().unwrap();
        assert!(content(dir.path()) == before, "something was written");
    }
    let (storage, report) = Storage::open(dir.path(), options()).unwrap();
    assert_eq!(report.commits, 1);
    assert_eq!(rows(&storage, rel), 1);
}

/// No file of the directory can be removed to let a second server in.
#[test]
fn the_lock_cannot_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = Storage::open(dir.path(), options()).unwrap();
    for name in ["clearway.lock", "control"] {
        let _ = fs::remove_file(dir.path().join(name));
    }
    for outcome in [
        Storage::open(dir.path(), options()),
        Storage::open_read_only(dir.path(), options()),
    ] {
        let error = outcome.unwrap_err();
        assert!(matches!(error, StorageError::DirectoryInUse { .. }), "{error}");
    }
    drop(storage);
}

/// Lets this many operations through.
#[derive(Debug)]
struct StopsAfter(AtomicU32);

impl Faults for StopsAfter {
    fn before(&self, operation: Operation, _: &Path) -> io::Result<()> {
        // A sync that fails ends the process by rule.
        let left = self.0.load(Ordering::Relaxed);
        if left == 0 && !matches!(operation, Operation::Sync(_)) {
            return Err(io::Error::other("the server was killed"));
        }
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        Ok(())
    }
}

/// A first start that is cut off at any step leaves a directory in which the next start makes the database.
#[test]
fn a_first_start_may_be_cut_off_anywhere() {
    let mut steps = 0;
    let mut planted = 0;
    loop {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::new(StopsAfter(AtomicU32::new(steps))));
        let first = Storage::open_on(Arc::new(disk), &data, options());
        let made = first.is_ok();
        drop(first);
        // Before the log is made nothing in the directory counts, whatever a power cut has left of it.
        if steps < 25 && data.join("base").is_dir() {
            fs::write(data.join("base").join("17"), b"half a page").unwrap();
            planted += 1;
        }
        let (storage, report) = Storage::open(&data, options()).unwrap();
        assert_eq!(storage.list_rels().unwrap().len(), 2, "after {steps} steps");
        assert_eq!(report.commits, 0);
        if made {
            break;
        }
        // The log's segments are written in many equal steps.
        steps += if steps < 25 { 1 } else { 12 };
    }
    assert!(steps > 20 && planted > 0, "{steps} steps");
}
