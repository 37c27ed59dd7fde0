//! The work of the checkpointer and the log writer on their own. Each test waits until something happens, however long
//! that takes; where nothing may happen, a test gives it half a second or more to happen in.

#[path = "support/chosen.rs"]
mod chosen;

use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use clearway_machine::Watchdog;
use clearway_storage::{PageKind, RelId, Storage, StorageOptions};
use clearway_txn::Xid;

const NEVER: Duration = Duration::from_secs(100_000);
const AT_ONCE: Duration = Duration::from_millis(1);

/// Neither thread does anything unless a test asks for it.
fn at_rest() -> StorageOptions {
    StorageOptions {
        buffer_bytes: 4 << 20,
        fsync: false,
        sessions_max: 4,
        checkpoint_timeout: NEVER,
        wal_bytes_max: 1 << 40,
        wal_writer_delay: NEVER,
        ..chosen::options()
    }
}

fn open(dir: &Path, options: StorageOptions) -> Arc<Storage> {
    Storage::open(dir, options).unwrap().0
}

/// Writes at least `bytes` bytes of log.
fn grow(storage: &Storage, rel: RelId, bytes: u64) {
    let end = storage.wal.reserved().0 + bytes;
    while storage.wal.reserved().0 < end {
        let page = storage.extend(rel).unwrap();
        let mut change = storage.begin_change(Xid::INVALID).unwrap();
        let mut page = page.into_exclusive();
        change.init_page(&mut page, PageKind(77), 8);
        change.write(&mut page, 4096, &[7; 4000]);
        change.finish().unwrap();
    }
}

/// Bytes of log beyond the place where recovery would begin.
fn to_replay(storage: &Storage) -> u64 {
    let redo = storage.wal.redo();
    storage.wal.reserved().0 - redo.0
}

fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        sleep(Duration::from_millis(5));
    }
}

/// A log that is never cut would fill the disk.
#[test]
fn a_checkpoint_comes_when_the_log_has_grown_and_not_before() {
    let _watchdog = Watchdog::over_test();
    const LIMIT: u64 = 200 << 10;
    let dir = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        wal_bytes_max: LIMIT,
        ..at_rest()
    };
    let storage = open(dir.path(), options);
    let rel = storage.create_rel().unwrap();
    for _ in 0..4 {
        grow(&storage, rel, LIMIT);
        until(|| to_replay(&storage) < LIMIT);
    }
    // Far into the log, a little growth is still a little.
    let redo = storage.wal.redo();
    grow(&storage, rel, LIMIT / 20);
    if to_replay(&storage) < LIMIT {
        sleep(Duration::from_millis(500));
        assert_eq!(storage.wal.redo(), redo, "a checkpoint for nothing");
    }
    storage.stop_threads();
}

/// Each checkpoint logs the lengths of all relations. That alone is no reason for the next one.
#[test]
fn a_checkpoint_comes_when_it_is_time_unless_nothing_has_changed() {
    let _watchdog = Watchdog::over_test();
    let dir = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        checkpoint_timeout: AT_ONCE,
        ..at_rest()
    };
    let storage = open(dir.path(), options);
    // 8 bytes of log each.
    let rels: Vec<RelId> = (0..300).map(|_| storage.create_rel().unwrap()).collect();
    for _ in 0..2 {
        grow(&storage, rels[0], 64 << 10);
        let end = storage.wal.reserved();
        until(|| storage.wal.redo() >= end);
        let redo = storage.wal.redo();
        sleep(Duration::from_millis(500));
        assert_eq!(storage.wal.redo(), redo, "an idle engine made a checkpoint");
    }
    storage.stop_threads();
}

#[test]
fn no_checkpoint_comes_before_its_time() {
    let _watchdog = Watchdog::over_test();
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), at_rest());
    let redo = storage.wal.redo();
    let rel = storage.create_rel().unwrap();
    grow(&storage, rel, 64 << 10);
    sleep(Duration::from_millis(500));
    assert_eq!(storage.wal.redo(), redo);
    storage.stop_threads();
}

#[test]
fn a_commit_that_does_not_wait_is_durable_soon() {
    let _watchdog = Watchdog::over_test();
    let dir = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        wal_writer_delay: AT_ONCE,
        ..at_rest()
    };
    let storage = open(dir.path(), options);
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    let lsn = storage.commit(proc, xid, false).unwrap();
    until(|| storage.wal.flushed() >= lsn);
    storage.stop_threads();
}

/// The record behind the last flush proves that it was durable; one is enough.
#[test]
fn an_idle_log_gets_one_record_and_no_more() {
    let _watchdog = Watchdog::over_test();
    let dir = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        wal_writer_delay: AT_ONCE,
        ..at_rest()
    };
    let storage = open(dir.path(), options);
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    let lsn = storage.commit(proc, xid, true).unwrap();
    until(|| storage.wal.reserved() > lsn);
    let end = storage.wal.reserved();
    until(|| storage.wal.flushed() >= end);
    sleep(Duration::from_millis(2_500));
    assert_eq!(storage.wal.reserved(), end, "an idle log grows");
    storage.stop_threads();
}
