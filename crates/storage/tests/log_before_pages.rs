//! A hint bit on a page may say that a transaction has committed whose commit record is still in memory only. Such a
//! page is not written before that record: a power cut in between would keep half of the transaction.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/recording_disk/mod.rs"]
mod recording_disk;

use std::path::Path;
use std::time::Duration;

use clearway_machine::Watchdog;
use clearway_storage::disk::{Disk, OpenMode, SyncPurpose};
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::segment_name::segment_name;
use clearway_storage::{PAGE_SIZE, PageId, PageKind, RelId, Storage, StorageOptions};
use clearway_txn::Xid;
use recording_disk::RecordingDisk;

const NEVER: Duration = Duration::from_secs(100_000);

/// Adds a page of `rel` and changes it.
fn add_page(storage: &Storage, rel: RelId) {
    let page = storage.extend(rel).unwrap();
    let mut change = storage.begin_change(Xid::INVALID).unwrap();
    let mut page = page.into_exclusive();
    change.init_page(&mut page, PageKind(77), 8);
    change.write(&mut page, 4096, &[7; 16]);
    change.finish().unwrap();
}

#[test]
fn a_page_waits_for_commits_that_do_not_wait_for_the_disk() {
    let _watchdog = Watchdog::over_test();
    let dir = tempfile::tempdir().unwrap();
    let options = StorageOptions {
        checkpoint_timeout: NEVER,
        wal_writer_delay: NEVER,
        ..chosen::small_database(4)
    };
    let (storage, _) = Storage::open(dir.path(), options).unwrap();
    let (others, changed) = (storage.create_rel().unwrap(), storage.create_rel().unwrap());
    const OTHERS: u32 = 400;
    for _ in 0..OTHERS {
        add_page(&storage, others);
    }
    storage.checkpoint().unwrap();

    // A dirty page whose own record is durable, and then a commit whose record is not.
    add_page(&storage, changed);
    storage.wal.flush(storage.wal.reserved());
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    let commit = storage.commit(proc, xid, false).unwrap();
    assert!(storage.wal.flushed() < commit);

    // The pool has room for a third of these pages: reading them all evicts the dirty one.
    for _ in 0..10 {
        for block in 0..OTHERS {
            drop(storage.pin(PageId { rel: others, block }).unwrap());
        }
    }
    assert!(
        storage.wal.flushed() >= commit,
        "a page was written before a commit that its hint bits may show"
    );
    storage.stop_threads();
}

/// The disk of the power cuts tells a page that is written too early, and only that: log that is written again with the
/// same bytes, in whole blocks, is still durable.
#[test]
fn the_recording_disk_checks_the_log_rule() {
    const END: u64 = 100;
    let disk = RecordingDisk::with_directory(Path::new("/d"));
    for directory in ["/d/base", "/d/pg_wal"] {
        disk.create_directory(Path::new(directory)).unwrap();
    }
    let segment = Path::new("/d/pg_wal").join(segment_name(1, 1));
    let log = disk.open(&segment, OpenMode::Create).unwrap();
    let pages = disk.open(Path::new("/d/base/16"), OpenMode::Create).unwrap();
    let mut page = vec![0; PAGE_SIZE];
    page[..8].copy_from_slice(&(SEGMENT_SIZE + END).to_le_bytes());
    let wrong = |what: &str, expected: usize| {
        pages.write_at(&page, 0).unwrap();
        assert_eq!(disk.violations().len(), expected, "{what}");
    };
    log.write_at(&[7; END as usize], 0).unwrap();
    wrong("log that no sync has covered", 1);
    log.sync_data(SyncPurpose::LogFlush).unwrap();
    wrong("durable log", 1);
    log.write_at(&[[7; END as usize], [8; END as usize]].concat(), 0)
        .unwrap();
    wrong("the same bytes, and others behind them", 1);
    log.write_at(&[9; 1], END - 1).unwrap();
    wrong("the last byte before the page's LSN is another", 2);
}
