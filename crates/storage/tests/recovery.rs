//! Crashes, damaged files and full disks.
//!
//! A crash is a `Storage` that is dropped without a shutdown: dirty pages are lost, what was written to the
//! kernel is not.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/copied_log.rs"]
mod copied_log;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/set_on_drop.rs"]
mod set_on_drop;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clearway_storage::disk::{Faults, FaultyDisk, NativeDisk, Operation};
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::segment_name::{FIRST_TIMELINE, segment_name};
use clearway_storage::{
    Lsn, PAGE_SIZE, PageId, PageKind, RecoveryReport, RelId, Storage, StorageError, StorageOptions,
};
use clearway_txn::{ProcId, Status, Xid};
use copied_log::copy_log;
use crash::crash;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use set_on_drop::SetOnDrop;

/// The offset of the number that the tests keep on each page; behind it is its complement.
const NUMBER: usize = 4096;

fn options() -> StorageOptions {
    chosen::small_database(16)
}

fn open(dir: &Path) -> (Arc<Storage>, RecoveryReport) {
    Storage::open(dir, options()).unwrap()
}

/// A relation of `count` pages that hold 0.
fn numbers(storage: &Storage, count: u32) -> RelId {
    let rel = storage.create_rel().unwrap();
    for block in 0..count {
        let page = storage.extend(rel).unwrap();
        assert_eq!(page.page_id(), PageId { rel, block });
        let mut change = storage.begin_change(Xid::INVALID).unwrap();
        let mut page = page.into_exclusive();
        change.init_page(&mut page, PageKind(77), 8);
        change.write(&mut page, NUMBER, &encode(0));
        change.finish().unwrap();
    }
    rel
}

fn encode(number: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&(!number).to_le_bytes());
    bytes
}

fn decode(page: &[u8; PAGE_SIZE]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
    assert_eq!(word(NUMBER), !word(NUMBER + 8), "half a change");
    word(NUMBER)
}

fn read(storage: &Storage, rel: RelId, block: u32) -> Result<u64, StorageError> {
    Ok(decode(storage.pin(PageId { rel, block })?.shared().bytes()))
}

/// Adds to a page's number.
fn add(storage: &Storage, xid: Xid, rel: RelId, block: u32, amount: u64) -> Result<Lsn, StorageError> {
    let mut page = storage.pin(PageId { rel, block })?.into_exclusive();
    let number = decode(&page.copy()) + amount;
    let mut change = storage.begin_change(xid)?;
    change.write(&mut page, NUMBER, &encode(number));
    change.finish()
}

/// One transaction that adds 1 to each of `blocks`.
fn add_and_commit(storage: &Storage, proc: ProcId, rel: RelId, blocks: &[u32]) -> (Xid, Lsn) {
    let xid = storage.assign_xid(proc).unwrap();
    for &block in blocks {
        add(storage, xid, rel, block, 1).unwrap();
    }
    let lsn = storage.commit(proc, xid, true).unwrap();
    (xid, lsn)
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn patch(file: &Path, offset: u64, bytes: &[u8]) {
    OpenOptions::new()
        .write(true)
        .open(file)
        .unwrap()
        .write_all_at(bytes, offset)
        .unwrap();
}

#[test]
fn commits_survive_a_crash_and_unfinished_transactions_do_not() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, report) = open(dir.path());
    assert!(report.clean);
    let rel = numbers(&storage, 3);
    let proc = storage.proc_array.attach().unwrap();
    let (committed, _) = add_and_commit(&storage, proc, rel, &[0, 2]);
    let aborted = storage.assign_xid(proc).unwrap();
    storage.abort(proc, aborted).unwrap();
    let lost = storage.assign_xid(proc).unwrap();
    storage.wal.flush(add(&storage, lost, rel, 1, 7).unwrap());
    crash(storage);

    let (storage, report) = open(dir.path());
    assert!(
        !report.clean && report.records > 0 && report.commits == 1,
        "{report:?}"
    );
    assert_eq!(storage.status(committed).unwrap(), Status::Committed);
    assert_ne!(storage.status(aborted).unwrap(), Status::Committed);
    assert_eq!(storage.status(lost).unwrap(), Status::InProgress);
    assert!(!storage.proc_array.is_running(lost) && storage.proc_array.next_xid() > lost);
    assert_eq!(
        (0..3)
            .map(|block| read(&storage, rel, block).unwrap())
            .collect::<Vec<_>>(),
        [1, 7, 1]
    );
    storage.shutdown().unwrap();
    drop(storage);

    let (storage, report) = open(dir.path());
    assert!(report.clean, "{report:?}");
    assert_eq!(read(&storage, rel, 2).unwrap(), 1);
    assert_eq!(storage.status(committed).unwrap(), Status::Committed);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        failure_persistence: Some(Box::new(FileFailurePersistence::Off)),
        ..ProptestConfig::default()
    })]

    /// Alice commits thirty transactions, each adding 1 to two pages. The machine dies, and from some byte on
    /// the log is zeros: recovery keeps what she had committed before that byte. Or one bit is flipped: a
    /// commit after it proves that the log did not end there, and the start fails, unless the bit belongs to
    /// the last commit.
    #[test]
    fn a_damaged_tail_leaves_what_was_committed_before_it(
        position in any::<prop::sample::Index>(),
        flip in any::<bool>(),
        checkpoint in prop::option::of(0..30usize),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let (storage, _) = open(dir.path());
        let rel = numbers(&storage, 4);
        let proc = storage.proc_array.attach().unwrap();
        let mut whole_until = storage.wal.reserved();
        storage.wal.flush(whole_until);
        let mut commits = Vec::new();
        for number in 0..30 {
            commits.push(add_and_commit(&storage, proc, rel, &[number % 4, (number + 1) % 4]));
            if checkpoint == Some(number as usize) {
                storage.checkpoint().unwrap();
                whole_until = storage.wal.reserved();
            }
        }
        let end = storage.wal.flushed();
        crash(storage);
        let at = whole_until.0 + position.index((end.0 - whole_until.0).max(1) as usize) as u64;
        let segment = dir.path().join("pg_wal").join(segment_name(FIRST_TIMELINE, at / SEGMENT_SIZE));
        // With a checkpoint at the end there is nothing behind it but the byte where the next record would begin.
        let mut tail = vec![0; ((end.0 - at) as usize).max(1)];
        fs::File::open(&segment).unwrap().read_exact_at(&mut tail, at % SEGMENT_SIZE).unwrap();
        let damaged_from = if flip {
            patch(&segment, at % SEGMENT_SIZE, &[tail[0] ^ 16]);
            at
        } else {
            patch(&segment, at % SEGMENT_SIZE, &vec![0; tail.len()]);
            // Records end in zeros that fill them up, so the first bytes may have been zeros before.
            at + tail.iter().position(|&byte| byte != 0).unwrap_or(tail.len()) as u64
        };
        let storage = match Storage::open(dir.path(), options()) {
            Ok((storage, _)) => storage,
            Err(StorageError::CorruptFile { file, offset, .. }) => {
                prop_assert!(flip && file == segment && offset <= at % SEGMENT_SIZE);
                // Nothing was touched: with the bit as it was, everything is there.
                patch(&segment, at % SEGMENT_SIZE, &[tail[0]]);
                let (storage, _) = open(dir.path());
                let all = commits.iter().all(|(xid, _)| storage.status(*xid).unwrap() == Status::Committed);
                prop_assert!(all);
                return Ok(());
            }
            Err(error) => panic!("{error}"),
        };
        let survivors = commits.iter().filter(|(xid, _)| storage.status(*xid).unwrap() == Status::Committed).count();
        let before = commits.iter().filter(|(_, lsn)| lsn.0 <= damaged_from).count();
        // A byte of the zeros that fill up a record may be flipped with no harm.
        prop_assert!(survivors == before || flip && survivors == commits.len(), "{survivors} of {before}");
        prop_assert!(!flip || survivors + 1 >= commits.len(), "commits vanish without an error: {survivors}");
        for (number, (xid, _)) in commits.iter().enumerate() {
            prop_assert_eq!(storage.status(*xid).unwrap() == Status::Committed, number < survivors);
        }
        let total: u64 = (0..4).map(|block| read(&storage, rel, block).unwrap()).sum();
        // The transaction that was hit may have left one of its changes, or both; it counts as aborted.
        prop_assert!((survivors as u64 * 2..=survivors as u64 * 2 + 2).contains(&total), "{total}");
        // The database goes on, and writes over the damaged place.
        let proc = storage.proc_array.attach().unwrap();
        let (xid, _) = add_and_commit(&storage, proc, rel, &[0]);
        crash(storage);
        let (storage, _) = open(dir.path());
        prop_assert_eq!(storage.status(xid).unwrap(), Status::Committed);
        prop_assert_eq!((0..4).map(|block| read(&storage, rel, block).unwrap()).sum::<u64>(), total + 1);
    }
}

#[test]
fn damage_before_the_last_checkpoint_is_an_error_that_names_the_place() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    storage.checkpoint().unwrap();
    let redo = storage.wal.redo();
    crash(storage);
    let segment = dir.path().join("pg_wal").join(segment_name(FIRST_TIMELINE, 1));
    patch(&segment, redo.0 % SEGMENT_SIZE, &[0; 8]);
    let error = Storage::open(dir.path(), options()).unwrap_err();
    assert!(
        matches!(&error, StorageError::CorruptFile { file, offset, .. } if *file == segment && *offset == redo.0 % SEGMENT_SIZE),
        "{error}"
    );
    assert_eq!(error.sqlstate(), "XX001");
}

#[test]
fn a_corrupt_page_is_an_error_that_names_file_and_offset() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let rel = numbers(&storage, 3);
    storage.shutdown().unwrap();
    drop(storage);
    let file = dir.path().join("base").join(rel.0.to_string());
    patch(&file, PAGE_SIZE as u64 + 100, b"?");
    let (storage, _) = open(dir.path());
    assert_eq!(read(&storage, rel, 0).unwrap(), 0);
    let error = read(&storage, rel, 1).unwrap_err();
    let StorageError::CorruptPage {
        file: named,
        block: 1,
        offset: 8192,
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert_eq!(*named, file);
    // Each caller that asks for the page gets the error, and the neighbouring pages can be read.
    assert!(read(&storage, rel, 1).is_err());
    assert_eq!(read(&storage, rel, 2).unwrap(), 0);
    assert!(matches!(
        read(&storage, rel, 1000),
        Err(StorageError::NoSuchPage { .. })
    ));
}

#[test]
fn a_torn_page_is_healed_by_its_image() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let rel = numbers(&storage, 2);
    storage.checkpoint().unwrap();
    storage.wal.flush(add(&storage, Xid::INVALID, rel, 0, 5).unwrap());
    crash(storage);
    // The write of page 0 that was under way reached the disk in part.
    let file = dir.path().join("base").join(rel.0.to_string());
    patch(&file, 4000, &[0xEE; 3000]);
    let (storage, _) = open(dir.path());
    assert_eq!(read(&storage, rel, 0).unwrap(), 5);
    assert_eq!(read(&storage, rel, 1).unwrap(), 0);
}

/// Replay may evict a page between two of its records, and reads it again for the second, which changes a part of it.
#[test]
fn replay_may_need_more_pages_than_the_pool_has() {
    const PAGES: u32 = 400;
    const OTHER: usize = 6_000;
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let rel = numbers(&storage, PAGES);
    for block in 0..PAGES {
        let mut page = storage.pin(PageId { rel, block }).unwrap().into_exclusive();
        let mut change = storage.begin_change(Xid::INVALID).unwrap();
        change.write(&mut page, OTHER, &block.to_le_bytes());
        change.finish().unwrap();
    }
    storage.wal.flush(storage.wal.reserved());
    crash(storage);
    let (storage, report) = open(dir.path());
    assert!(report.records >= 2 * u64::from(PAGES), "{report:?}");
    for block in 0..PAGES {
        assert_eq!(read(&storage, rel, block).unwrap(), 0);
        let page = storage.pin(PageId { rel, block }).unwrap().into_shared();
        assert_eq!(page.bytes()[OTHER..OTHER + 4], block.to_le_bytes());
    }
    storage.stop_threads();
}

#[test]
fn a_torn_commit_log_page_is_healed_by_its_image() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let rel = numbers(&storage, 1);
    let proc = storage.proc_array.attach().unwrap();
    let (before, _) = add_and_commit(&storage, proc, rel, &[0]);
    storage.checkpoint().unwrap();
    let control = fs::read(dir.path().join("control")).unwrap();
    let (after, _) = add_and_commit(&storage, proc, rel, &[0]);
    // A checkpoint that dies before its control file is written, in the middle of writing the commit log.
    storage.checkpoint().unwrap();
    crash(storage);
    fs::write(dir.path().join("control"), control).unwrap();
    patch(&dir.path().join("base").join("0"), 20, &[0xEE; 500]);
    let (storage, _) = open(dir.path());
    assert_eq!(storage.status(before).unwrap(), Status::Committed);
    assert_eq!(storage.status(after).unwrap(), Status::Committed);
    assert_eq!(read(&storage, rel, 0).unwrap(), 2);
}

#[test]
fn a_directory_is_opened_once() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let error = Storage::open(dir.path(), options()).unwrap_err();
    assert!(
        matches!(&error, StorageError::DirectoryInUse { dir: named } if named == dir.path()),
        "{error}"
    );
    crash(storage);
    open(dir.path());
}

/// One kind of operation on one file fails.
#[derive(Debug)]
struct FailingFile(Operation, PathBuf);

impl Faults for FailingFile {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        if operation == self.0 && path == self.1 {
            Err(io::Error::other("the disk is gone"))
        } else {
            Ok(())
        }
    }
}

/// A file that cannot be read is neither the log's end nor one that was dropped: the start fails, and a later one finds
/// everything.
#[test]
fn a_start_that_cannot_read_a_file_fails() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let rel = numbers(&storage, 2);
    // Replay opens the file of a relation that it does not make.
    storage.checkpoint().unwrap();
    let proc = storage.proc_array.attach().unwrap();
    let (committed, _) = add_and_commit(&storage, proc, rel, &[0, 1]);
    crash(storage);
    let log = dir.path().join("pg_wal").join(segment_name(FIRST_TIMELINE, 1));
    let data = dir.path().join("base").join(rel.0.to_string());
    for (operation, file) in [
        (Operation::Open, log.clone()),
        (Operation::Read, log),
        (Operation::Open, data),
    ] {
        let failing = FaultyDisk::new(Arc::new(NativeDisk), Arc::new(FailingFile(operation, file)));
        let error = Storage::open_on(Arc::new(failing), dir.path(), options()).unwrap_err();
        assert!(error.to_string().contains("the disk is gone"), "{error}");
    }
    let (storage, _) = open(dir.path());
    assert_eq!(storage.status(committed).unwrap(), Status::Committed);
    for block in [0, 1] {
        assert_eq!(read(&storage, rel, block).unwrap(), 1);
    }
}

/// After a shutdown, and only then, nothing is behind the log's end that was not made durable.
#[test]
fn a_crash_right_after_a_checkpoint_is_not_a_shutdown() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    storage.checkpoint().unwrap();
    crash(storage);
    let (_, report) = open(dir.path());
    assert!(!report.clean, "{report:?}");
}

/// A write behind the log's end may have reached the disk in part. All of it is gone before the log goes on, also where
/// it is in the next segment: a whole record there could follow a new one.
#[test]
fn what_stands_behind_the_end_of_the_log_is_cleared() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let rel = numbers(&storage, 1);
    let proc = storage.proc_array.attach().unwrap();
    add_and_commit(&storage, proc, rel, &[0]);
    crash(storage);
    let log = |number: u64| {
        dir.path()
            .join("pg_wal")
            .join(segment_name(FIRST_TIMELINE, number))
    };
    let (storage, _) = open(dir.path());
    let end = storage.wal.reserved();
    storage.wal.flush(end);
    crash(storage);
    let within = end.0 % SEGMENT_SIZE;
    patch(&log(1), within, &vec![0xEE; (SEGMENT_SIZE - within) as usize]);
    fs::write(log(2), vec![0xEE; SEGMENT_SIZE as usize]).unwrap();
    let (storage, report) = open(dir.path());
    assert_eq!(report.end, end);
    let end = storage.wal.reserved();
    storage.wal.flush(end);
    crash(storage);
    for (number, from) in [(1, end.0 % SEGMENT_SIZE), (2, 0)] {
        let bytes = fs::read(log(number)).unwrap();
        let zeros = vec![0; (SEGMENT_SIZE - from) as usize];
        assert!(bytes[from as usize..] == zeros, "segment {number} is not cleared");
    }
}

/// A session that did not end in time logs behind the checkpoint of a shutdown, and of that only the end reaches the
/// disk: a hole, and a commit behind it. The next run's log fills the hole, up to the place where that commit begins. It
/// was taken back, and stays so.
#[test]
fn what_was_logged_behind_a_shutdown_never_joins_the_log() {
    const HOLE: u64 = 4_000;
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    storage.shutdown().unwrap();
    let end = storage.wal.reserved();
    let fill = |storage: &Storage, upto: u64| {
        let bytes = upto - storage.wal.reserved().0;
        let payload = vec![0; bytes as usize - clearway_storage::wal::record::HEADER];
        let end = storage
            .wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &payload);
        assert_eq!(end, Lsn(upto));
    };
    fill(&storage, end.0 + HOLE);
    let behind = storage.wal.insert_any(RecordKind::COMMIT, xid, &[0; 8]);
    storage.wal.flush(behind);
    crash(storage);
    let segment = segment_name(FIRST_TIMELINE, end.0 / SEGMENT_SIZE);
    let segment = dir.path().join("pg_wal").join(segment);
    patch(&segment, end.0 % SEGMENT_SIZE, &[0; HOLE as usize]);
    let (storage, report) = open(dir.path());
    assert!(report.clean && report.end == end, "{report:?}");
    fill(&storage, end.0 + HOLE);
    storage.wal.flush(storage.wal.reserved());
    crash(storage);
    let (storage, report) = open(dir.path());
    assert_eq!(report.end, Lsn(end.0 + HOLE));
    assert_ne!(storage.status(xid).unwrap(), Status::Committed);
    crash(storage);
}

/// A lost segment of the log, or two in a row, are damage and not the log's end: the log behind them proves it.
#[test]
fn a_start_without_a_part_of_the_log_fails() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let rel = numbers(&storage, 1);
    let proc = storage.proc_array.attach().unwrap();
    while storage.wal.reserved().0 < 4 * SEGMENT_SIZE + (1 << 20) {
        storage.make_log_room().unwrap();
        let nothing = storage
            .wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &[0; 1 << 19]);
        storage.wal.flush(nothing);
    }
    add_and_commit(&storage, proc, rel, &[0]);
    crash(storage);
    let elsewhere = tempfile::tempdir().unwrap();
    let name = |number| segment_name(FIRST_TIMELINE, number);
    let (log, lost) = (dir.path().join("pg_wal"), elsewhere.path());
    for numbers in [2..3, 2..4] {
        for number in numbers.clone() {
            fs::copy(log.join(name(number)), lost.join(name(number))).unwrap();
            fs::remove_file(log.join(name(number))).unwrap();
        }
        let error = Storage::open(dir.path(), options()).unwrap_err();
        assert!(
            error.to_string().contains("committed changes are damaged here"),
            "{error}"
        );
        for number in numbers {
            fs::copy(lost.join(name(number)), log.join(name(number))).unwrap();
        }
    }
    let (storage, _) = open(dir.path());
    assert_eq!(read(&storage, rel, 0).unwrap(), 1);
}

#[derive(Debug, Default)]
struct FullDisk(AtomicBool);

impl Faults for FullDisk {
    fn before(&self, operation: Operation, _path: &Path) -> io::Result<()> {
        if matches!(operation, Operation::Allocate(_)) && self.0.load(Ordering::Relaxed) {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }
}

#[test]
fn a_full_disk_is_an_error_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(FullDisk::default());
    let faulty = Arc::new(FaultyDisk::new(Arc::new(NativeDisk), disk.clone()));
    let (storage, _) = Storage::open_on(faulty, dir.path(), options()).unwrap();
    let rel = numbers(&storage, 1);
    let proc = storage.proc_array.attach().unwrap();
    add_and_commit(&storage, proc, rel, &[0]);
    disk.0.store(true, Ordering::Relaxed);
    // Data files: no new pages.
    let error = (0..1000)
        .find_map(|_| storage.extend(rel).err())
        .expect("the disk is full");
    assert_eq!(error.sqlstate(), "53100");
    // The log: what there is of it is used up, then changes are refused before they are made.
    let mut added = 1;
    let error = loop {
        match add(&storage, Xid::INVALID, rel, 0, 1) {
            Ok(_) => added += 1,
            Err(error) => break error,
        }
        // A checkpoint makes the next change a whole page, so that this ends; and it gives no log back.
        if added % 256 == 0 && storage.checkpoint().is_err() {
            continue;
        }
    };
    assert!(matches!(error, StorageError::DiskFull { .. }), "{error}");
    assert_eq!(read(&storage, rel, 0).unwrap(), added);
    // Space again: everything goes on.
    disk.0.store(false, Ordering::Relaxed);
    add_and_commit(&storage, proc, rel, &[0]);
    crash(storage);
    let (storage, _) = open(dir.path());
    assert_eq!(read(&storage, rel, 0).unwrap(), added + 1);
}

/// Sessions add to pages while checkpoints run and a pool of 64 frames evicts 200 pages; then the machine dies.
#[test]
fn checkpoints_and_evictions_run_beside_changes() {
    const PAGES: u32 = 200;
    let dir = tempfile::tempdir().unwrap();
    let small = StorageOptions {
        buffer_bytes: 64 * PAGE_SIZE,
        ..options()
    };
    let (storage, _) = Storage::open(dir.path(), small.clone()).unwrap();
    let rel = numbers(&storage, PAGES);
    let mut expected = vec![0; PAGES as usize];
    let mut storage = Some(storage);
    for round in 0..3 {
        let running = storage.take().unwrap();
        let added: Vec<_> = (0..PAGES).map(|_| AtomicU64::new(0)).collect();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let sessions: Vec<_> = (0..4u64)
                .map(|session| {
                    let (running, added) = (&running, &added);
                    scope.spawn(move || {
                        let proc = running.proc_array.attach().unwrap();
                        let mut random = session * 7919 + round;
                        for _ in 0..600 {
                            random = random
                                .wrapping_mul(6364136223846793005)
                                .wrapping_add(1442695040888963407);
                            let block = (random >> 33) as u32 % PAGES;
                            add_and_commit(running, proc, rel, &[block]);
                            added[block as usize].fetch_add(1, Ordering::Relaxed);
                        }
                        running.proc_array.detach(proc);
                    })
                })
                .collect();
            let checkpointer = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    running.checkpoint().unwrap();
                    std::thread::yield_now();
                }
            });
            for session in sessions {
                session.join().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            checkpointer.join().unwrap();
        });
        for (expected, added) in expected.iter_mut().zip(&added) {
            *expected += added.load(Ordering::Relaxed);
        }
        crash(running);
        let (recovered, _) = Storage::open(dir.path(), small.clone()).unwrap();
        let found: Vec<_> = (0..PAGES)
            .map(|block| read(&recovered, rel, block).unwrap())
            .collect();
        assert_eq!(found, expected);
        storage = Some(recovered);
    }
}

/// The disk after a checkpoint, if the machine dies right after it: the files copied while sessions go on, the
/// control file first, as it is the last to be written.
#[test]
fn a_copy_taken_at_a_checkpoint_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let rel = numbers(&storage, 8);
    let stop = AtomicBool::new(false);
    let acknowledged = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let proc = storage.proc_array.attach().unwrap();
            while !stop.load(Ordering::Relaxed) {
                add_and_commit(&storage, proc, rel, &[0, 1, 2, 3, 4, 5, 6, 7]);
                acknowledged.fetch_add(1, Ordering::Release);
            }
        });
        let _stop = SetOnDrop(&stop);
        for _ in 0..4 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            storage.checkpoint().unwrap();
            let copy = tempfile::tempdir().unwrap();
            let promised = acknowledged.load(Ordering::Acquire);
            fs::copy(dir.path().join("control"), copy.path().join("control")).unwrap();
            copy_dir(&dir.path().join("base"), &copy.path().join("base"));
            copy_log(&dir.path().join("pg_wal"), &copy.path().join("pg_wal"));
            let (copied, _) = open(copy.path());
            for block in 0..8 {
                assert!(read(&copied, rel, block).unwrap() >= promised);
            }
        }
    });
}

#[test]
fn relations_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let (kept, dropped) = (numbers(&storage, 3), numbers(&storage, 3));
    storage.drop_rel(dropped).unwrap();
    storage.drop_rel(dropped).unwrap();
    assert!(read(&storage, dropped, 0).is_err());
    assert!(
        !storage.list_rels().unwrap().contains(&dropped),
        "asking for a page does not make the file again"
    );
    assert_eq!(storage.block_count(kept).unwrap(), 3);
    storage.wal.flush(storage.wal.reserved());
    crash(storage);
    let (storage, _) = open(dir.path());
    // Replay may have made the dropped one again: it is for the catalog's owner to drop it once more.
    storage.drop_rel(dropped).unwrap();
    let next = storage.create_rel().unwrap();
    assert!(next > dropped, "relation numbers are never used again");
    assert_eq!(storage.block_count(next).unwrap(), 0);
    let rels: Vec<_> = storage
        .list_rels()
        .unwrap()
        .into_iter()
        .filter(|rel| *rel >= RelId::FIRST_NORMAL)
        .collect();
    assert_eq!(rels, [kept, next]);
}
