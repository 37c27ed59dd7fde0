//! A commit beside other sessions, beside a checkpoint, and on a full disk. Two of the tests hold the disk, so that a
//! commit stops between its record in the log and its end.

#[path = "support/chosen.rs"]
mod chosen;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use clearway_machine::{Switch, Watchdog};
use clearway_storage::disk::{Disk, Faults, FaultyDisk, HeldLog, NativeDisk, Operation};
use clearway_storage::heap::{Heap, Tid, TxnContext};
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{
    CommitVariants, CommitWait, LockReleaseVariant, Publish, Reader, Storage, StorageError, StorageOptions,
};
use clearway_txn::{ProcId, Snapshot, Status, Xid};

const NEVER: Duration = Duration::from_secs(100_000);

/// A storage whose background threads rest. `fsync`: it asks the disk to make durable what it writes.
fn open(disk: Arc<dyn Disk>, dir: &Path, fsync: bool, lock_release: LockReleaseVariant) -> Arc<Storage> {
    let chosen = chosen::options();
    let options = StorageOptions {
        buffer_bytes: 1 << 20,
        fsync,
        sessions_max: 4,
        checkpoint_timeout: NEVER,
        wal_writer_delay: NEVER,
        commits: CommitVariants {
            lock_release,
            ..chosen.commits
        },
        ..chosen
    };
    Storage::open_on(disk, dir, options).unwrap().0
}

fn begin(storage: &Storage) -> (ProcId, Xid) {
    let proc = storage.proc_array.attach().unwrap();
    (proc, storage.assign_xid(proc).unwrap())
}

fn insert(storage: &Storage, (proc, xid): (ProcId, Xid), heap: Heap) -> Tid {
    let snapshot = Snapshot::default();
    let context = TxnContext {
        storage,
        proc,
        xid: Some(xid),
        command: 0,
        reader: Reader::of_no_answer(&snapshot),
        changes: None,
    };
    heap.insert(&context, b"a row").unwrap()
}

/// True if a new snapshot sees a row there.
fn is_seen(storage: &Storage, heap: Heap, tid: Tid) -> bool {
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
    let found = heap.fetch(&context, tid, |_, _| ()).unwrap();
    storage.proc_array.detach(proc);
    found.is_some()
}

/// Otherwise the commit, which was acknowledged, is in neither place after a crash: its record lies before the redo
/// position, and the commit log was written before it had the status.
#[test]
fn a_checkpoint_waits_for_a_commit_under_way() {
    let _watchdog = Watchdog::over_test();
    let dir = tempfile::tempdir().unwrap();
    let (disk, log) = HeldLog::disk();
    let storage = open(disk, dir.path(), true, LockReleaseVariant::AfterFlush);
    let (proc, xid) = begin(&storage);
    thread::scope(|scope| {
        let let_go = log.hold();
        scope.spawn(|| storage.commit(proc, xid, true).unwrap());
        log.wait_for_a_sync();
        let end = storage.wal.reserved();
        scope.spawn(|| storage.checkpoint().unwrap());
        while storage.wal.redo() < end {
            sleep(Duration::from_millis(5));
        }
        // A checkpoint that does not wait writes the commit log now.
        sleep(Duration::from_millis(100));
        drop(let_go);
    });
    storage.stop_threads();
    drop(storage);
    let storage = open(
        Arc::new(NativeDisk),
        dir.path(),
        true,
        LockReleaseVariant::AfterFlush,
    );
    assert_eq!(storage.status(xid).unwrap(), Status::Committed);
    storage.stop_threads();
}

/// While the disk has not answered, other sessions see the changes of a commit under `early` and not before under
/// `after-flush`; those of one that makes definitions they do not see under either.
#[test]
fn a_commit_is_seen_when_its_lock_release_says() {
    let _watchdog = Watchdog::over_test();
    use CommitWait::{BeforeAcknowledged, BeforeSeen};
    use LockReleaseVariant::{AfterFlush, Early};
    for (lock_release, wait, seen) in [
        (AfterFlush, BeforeAcknowledged, false),
        (AfterFlush, BeforeSeen, false),
        (Early, BeforeAcknowledged, true),
        (Early, BeforeSeen, false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (disk, log) = HeldLog::disk();
        let storage = open(disk, dir.path(), true, lock_release);
        let heap = Heap::new(storage.create_rel().unwrap().0);
        let (proc, xid) = begin(&storage);
        let tid = insert(&storage, (proc, xid), heap);
        assert!(!is_seen(&storage, heap, tid));
        thread::scope(|scope| {
            let _let_go = log.hold();
            scope.spawn(|| {
                storage
                    .commit_and_publish(proc, xid, wait, Publish::new(|| ()))
                    .unwrap()
            });
            log.wait_for_a_sync();
            assert_eq!(is_seen(&storage, heap, tid), seen, "{lock_release:?}, {wait:?}");
        });
        assert!(is_seen(&storage, heap, tid));
        storage.stop_threads();
    }
}

/// Set for the process in which a commit fails.
const FAILING: &str = "CLEARWAY_TEST_FAILING_COMMIT";

/// The record is in the log. If the session went on, it would roll back what has committed, or keep all later commits
/// waiting.
#[test]
fn a_commit_that_fails_after_its_record_ends_the_process() {
    if std::env::var_os(FAILING).is_some() {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(
            Arc::new(NativeDisk),
            dir.path(),
            false,
            LockReleaseVariant::default(),
        );
        let (proc, xid) = begin(&storage);
        let fails = Publish::new(|| panic!("definitions that cannot be published"));
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            storage.commit_and_publish(proc, xid, CommitWait::BeforeSeen, fails)
        }));
        std::process::exit(0);
    }
    let failing = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_commit_that_fails_after_its_record_ends_the_process"])
        .env(FAILING, "1")
        .output()
        .unwrap();
    assert_eq!(failing.status.code(), None, "it is ended by a signal");
    let said = String::from_utf8_lossy(&failing.stderr);
    assert!(
        said.contains("failed between its record and its being seen"),
        "{said}"
    );
}

/// The log finds no space while the flag is set.
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

/// A commit that were not refused would use up the space that is kept for changes under way, whose records have to go
/// into the log: the next one behind it would end the server.
#[test]
fn a_full_disk_refuses_a_commit_and_not_a_rollback() {
    let _watchdog = Watchdog::over_test();
    for lock_release in LockReleaseVariant::ALL.iter().copied() {
        let dir = tempfile::tempdir().unwrap();
        let full = Arc::<FullDisk>::default();
        let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::<FullDisk>::clone(&full));
        let storage = open(Arc::new(disk), dir.path(), false, lock_release);
        let heap = Heap::new(storage.create_rel().unwrap().0);
        let (proc, xid) = begin(&storage);
        let tid = insert(&storage, (proc, xid), heap);
        full.0.store(true, Ordering::Relaxed);
        while storage.make_log_room().is_ok() {
            storage
                .wal
                .insert_any(RecordKind::NOTHING, Xid::INVALID, &[0; 1 << 19]);
        }
        let error = storage.commit(proc, xid, true).unwrap_err();
        assert!(matches!(error, StorageError::DiskFull { .. }), "{error}");
        assert!(
            storage.proc_array.is_running(xid),
            "a commit that was refused has ended"
        );
        storage.abort(proc, xid).unwrap();
        assert!(!storage.proc_array.is_running(xid) && !is_seen(&storage, heap, tid));
        // The log knows nothing of its end, so the commit log knows nothing either: after a crash the xid may be another
        // transaction's, which then commits.
        assert_eq!(storage.status(xid).unwrap(), Status::InProgress);
        // There is space again.
        full.0.store(false, Ordering::Relaxed);
        let xid = storage.assign_xid(proc).unwrap();
        let tid = insert(&storage, (proc, xid), heap);
        storage.commit(proc, xid, true).unwrap();
        assert!(is_seen(&storage, heap, tid));
        storage.stop_threads();
    }
}
