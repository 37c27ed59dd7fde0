//! The checks of storage behind `clearway check`: each damaged page and each foreign file is named, and nothing else
//! is.

#[path = "support/chosen.rs"]
mod chosen;

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use clearway_storage::disk::{Disk, Faults, FaultyDisk, NativeDisk, Operation};
use clearway_storage::heap::{Heap, TxnContext};
use clearway_storage::{Findings, PAGE_SIZE, Reader, RelId, Storage, StorageError};
use clearway_txn::{Snapshot, Status, XIDS_PER_PAGE, Xid};

/// More than one page of them, and fewer than 256.
const ROWS: usize = 1_000;

/// A storage with a table of several pages, all on disk, and how many those are.
fn with_rows(dir: &Path) -> (Arc<Storage>, RelId, u32) {
    with_rows_on(Arc::new(NativeDisk), dir)
}

fn with_rows_on(disk: Arc<dyn Disk>, dir: &Path) -> (Arc<Storage>, RelId, u32) {
    let options = chosen::small_database(4);
    let (storage, _) = Storage::open_on(disk, dir, options).unwrap();
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
    for _ in 0..ROWS {
        Heap::new(rel.0).insert(&context, &[7; 100]).unwrap();
    }
    storage.commit(proc, xid, true).unwrap();
    let blocks = storage.lengths_on_disk().unwrap()[&rel];
    assert!((2..256).contains(&blocks), "{blocks} pages");
    (storage, rel, blocks)
}

/// The findings of the check of a relation's file; it counts all pages as read.
fn check_file(storage: &Storage, rel: RelId, blocks: u32) -> Findings {
    let (mut findings, mut read) = (storage.findings(rel), 0);
    let mut progress = |pages| {
        read += pages;
        Ok::<_, StorageError>(())
    };
    storage
        .check_file(rel, blocks, &mut findings, &mut progress)
        .unwrap();
    assert_eq!(read, blocks);
    findings
}

#[test]
fn a_damaged_page_is_found_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, rel, blocks) = with_rows(dir.path());
    let sound = check_file(&storage, rel, blocks);
    assert!(sound.is_empty() && sound.count() == 0, "{:?}", sound.list());
    let path = dir.path().join("base").join(rel.0.to_string());
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"Mallory", PAGE_SIZE as u64 + 5_000).unwrap();
    let damaged = check_file(&storage, rel, blocks);
    assert_eq!(
        (damaged.is_empty(), damaged.count(), damaged.list().len()),
        (false, 1, 1)
    );
    assert_eq!(damaged.list()[0].block, Some(1));
    let text = damaged.list()[0].to_string();
    assert!(
        text.starts_with("page 1 of ") && text.contains(&format!("(offset {PAGE_SIZE})")),
        "{text}"
    );
    storage.stop_threads();
}

#[test]
fn the_commit_log_of_a_sound_database_has_no_finding() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, ..) = with_rows(dir.path());
    let blocks = storage.lengths_on_disk().unwrap()[&RelId::COMMIT_LOG];
    let mut findings = storage.findings(RelId::COMMIT_LOG);
    storage.check_commit_log(blocks, &mut findings).unwrap();
    assert!(blocks > 0 && findings.is_empty(), "{:?}", findings.list());
    storage.stop_threads();
}

#[test]
fn files_of_no_relation_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, rel, _) = with_rows(dir.path());
    assert_eq!(storage.foreign_names().unwrap(), Vec::<String>::new());
    // A number with a zero in front, and one that no relation has.
    let names = [
        format!("0{}", rel.0),
        (rel.0 + 1).to_string(),
        "letter.txt".to_owned(),
    ];
    for name in &names {
        fs::write(dir.path().join("base").join(name), "").unwrap();
    }
    let mut expected = names.to_vec();
    expected.sort();
    assert_eq!(storage.foreign_names().unwrap(), expected);
    // A start removes files of relations that no definition names: those alone that the database has made.
    let handed_out = [0, 1].map(|more| storage.was_handed_out(RelId(rel.0 + more)));
    assert_eq!(handed_out, [true, false]);
    let later = storage.create_rel().unwrap();
    assert!(storage.was_handed_out(rel) && later.0 == rel.0 + 1);
    storage.stop_threads();
}

/// Makes no fault: when a file is read for the second time, it gets its old content back, as by a write that has ended.
#[derive(Debug, Default)]
struct Restored(Mutex<Option<(Vec<u8>, u32)>>);

impl Faults for Restored {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        let mut waiting = self.0.lock().unwrap();
        if operation == Operation::Read
            && let Some((content, reads)) = &mut *waiting
        {
            *reads += 1;
            if *reads == 2 {
                fs::write(path, content)?;
                *waiting = None;
            }
        }
        Ok(())
    }
}

/// A page of which the first half is new and the second one old is not damaged: the server is writing it.
#[test]
fn a_page_that_is_being_written_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let restored = Arc::new(Restored::default());
    let disk = FaultyDisk::new(Arc::new(NativeDisk), restored.clone());
    let (storage, rel, blocks) = with_rows_on(Arc::new(disk), dir.path());
    let path = dir.path().join("base").join(rel.0.to_string());
    let content = fs::read(&path).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"half of it", 5_000).unwrap();
    *restored.0.lock().unwrap() = Some((content, 0));
    let findings = check_file(&storage, rel, blocks);
    assert!(restored.0.lock().unwrap().is_none(), "the page was read once");
    assert_eq!(findings.list(), []);
    storage.stop_threads();
}

/// The commit log says of a transaction to come that it has ended: what it will do would be seen before it commits.
#[test]
fn the_end_of_a_transaction_to_come_is_found() {
    for distance in [0, 5, XIDS_PER_PAGE + 10] {
        let dir = tempfile::tempdir().unwrap();
        let (storage, ..) = with_rows(dir.path());
        let next = storage.proc_array.next_xid();
        let ended = Xid(next.0 + distance);
        storage.commit_log.set(ended, Status::Committed, 0).unwrap();
        storage.checkpoint().unwrap();
        let blocks = storage.lengths_on_disk().unwrap()[&RelId::COMMIT_LOG];
        let mut findings = storage.findings(RelId::COMMIT_LOG);
        storage.check_commit_log(blocks, &mut findings).unwrap();
        let found: Vec<_> = findings.list().iter().map(|finding| finding.block).collect();
        assert_eq!(
            found,
            [Some((ended.0 / XIDS_PER_PAGE) as u32)],
            "{ended}, next {next}"
        );
        let problem = &findings.list()[0].problem;
        assert!(
            problem.contains(&format!("transaction {ended} has ended")),
            "{problem}"
        );
        storage.stop_threads();
    }
}
