//! A sync that fails ends the process, loudly and at once: what the disk has kept is not known, and a second
//! sync that succeeds would prove nothing. That holds for directories as for files: a checkpoint whose
//! directory could not be synced must not be followed by one that relies on the names.
//!
//! The process that is to end is this test binary, started again with a variable that names the sync.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use clearway_storage::disk::{Faults, FaultyDisk, NativeDisk, Operation, SyncPurpose};
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogDevice, SEGMENT_SIZE, SegmentFiles};
use clearway_storage::{Storage, StorageOptions};
use clearway_txn::Xid;

const FAILURE: &str = "CLEARWAY_TEST_SYNC_FAILURE";
const SIGABRT: i32 = 6;

/// The next sync for the purpose fails, once.
#[derive(Debug)]
struct FailsOnce {
    purpose: String,
    armed: AtomicBool,
}

impl Faults for FailsOnce {
    fn before(&self, operation: Operation, _path: &Path) -> io::Result<()> {
        match operation {
            Operation::Sync(purpose)
                if format!("{purpose:?}") == self.purpose && self.armed.swap(false, Ordering::Relaxed) =>
            {
                Err(io::Error::other("the disk is gone"))
            }
            _ => Ok(()),
        }
    }
}

#[test]
#[ignore = "the process that is to end; started by the other tests"]
fn work() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(FailsOnce {
        purpose: std::env::var(FAILURE).unwrap(),
        armed: AtomicBool::new(false),
    });
    let disk = Arc::new(FaultyDisk::new(Arc::new(NativeDisk), faults.clone()));
    let (storage, _) = Storage::open_on(disk, dir.path(), StorageOptions::default()).unwrap();
    faults.armed.store(true, Ordering::Relaxed);
    let rel = storage.create_rel().unwrap();
    drop(storage.extend(rel).unwrap());
    while storage.wal.reserved().0 < 2 * SEGMENT_SIZE {
        storage.wal.make_room().unwrap();
        storage
            .wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &[0; 1 << 19]);
    }
    // The first one meets the failure; a success of the second would prove nothing.
    let _ = storage.checkpoint();
    let _ = storage.checkpoint();
    println!("went on");
}

#[test]
fn a_failed_sync_ends_the_process() {
    for purpose in [
        SyncPurpose::LogFlush,
        SyncPurpose::LogSegmentName,
        SyncPurpose::RecycledNames,
        SyncPurpose::DataFile,
        SyncPurpose::DataFileNames,
        SyncPurpose::ControlFile,
    ] {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "work", "--ignored", "--nocapture"])
            .env(FAILURE, format!("{purpose:?}"))
            .output()
            .unwrap();
        let (out, err) = (
            String::from_utf8_lossy(&child.stdout),
            String::from_utf8_lossy(&child.stderr),
        );
        assert_eq!(child.status.signal(), Some(SIGABRT), "{purpose:?}: {out}{err}");
        assert!(!out.contains("went on"), "{purpose:?}: {out}");
        assert!(
            err.contains("could not sync") && err.contains("the disk is gone"),
            "{purpose:?}: {err}"
        );
    }
}

/// There are no descriptors left.
#[derive(Debug, Default)]
struct NoDescriptors(AtomicBool);

impl Faults for NoDescriptors {
    fn before(&self, operation: Operation, _path: &Path) -> io::Result<()> {
        if operation == Operation::Open && self.0.load(Ordering::Relaxed) {
            return Err(io::Error::from_raw_os_error(24));
        }
        Ok(())
    }
}

/// Without descriptors nothing new can be opened, which is an error. What is open can be made durable all the same.
#[test]
fn a_checkpoint_needs_no_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(NoDescriptors::default());
    let disk = Arc::new(FaultyDisk::new(Arc::new(NativeDisk), faults.clone()));
    let (storage, _) = Storage::open_on(disk, dir.path(), StorageOptions::default()).unwrap();
    let rel = storage.create_rel().unwrap();
    storage.extend(rel).unwrap();
    faults.0.store(true, Ordering::Relaxed);
    assert_eq!(storage.create_rel().unwrap_err().sqlstate(), "58030");
    storage.checkpoint().unwrap();
    faults.0.store(false, Ordering::Relaxed);
    storage.create_rel().unwrap();
}

/// Reads from the log while the names of recycled segments are being synced.
#[derive(Debug, Default)]
struct ReadsDuringSync {
    log: OnceLock<Arc<SegmentFiles>>,
    found: AtomicBool,
    synced: AtomicBool,
}

impl Faults for ReadsDuringSync {
    fn before(&self, operation: Operation, _path: &Path) -> io::Result<()> {
        if operation == Operation::Sync(SyncPurpose::RecycledNames) {
            let read = self.log.get().unwrap().read(3 * SEGMENT_SIZE, &mut [0; 8])?;
            self.found.store(read > 0, Ordering::Relaxed);
            self.synced.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// A writer that found the segment there would write to it, and a power cut would take the name away.
#[test]
fn a_recycled_segment_is_not_there_before_its_name_is_durable() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(ReadsDuringSync::default());
    let disk = Arc::new(FaultyDisk::new(Arc::new(NativeDisk), faults.clone()));
    let log = Arc::new(SegmentFiles::open(disk, dir.path().join("pg_wal"), true).unwrap());
    faults.log.set(Arc::clone(&log)).unwrap();
    log.make_room(0).unwrap();
    log.make_room(3 * SEGMENT_SIZE - 1).unwrap();
    log.forget_before(SEGMENT_SIZE).unwrap();
    assert!(faults.synced.load(Ordering::Relaxed) && !faults.found.load(Ordering::Relaxed));
    assert_eq!(
        log.read(3 * SEGMENT_SIZE, &mut [0; 8]).unwrap(),
        8,
        "it is there now"
    );
}
