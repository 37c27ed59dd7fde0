//! Pages of the commit log that are written at once: by a checkpoint, and by sessions that need a slot for another
//! page. The file's length and a standby's journal belong to all of them (R1 of `status_pages`).
//!
//! The disk is slow where two writers meet, so that they do meet.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/recording_disk/mod.rs"]
mod recording_disk;

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use clearway_machine::Switch;
use clearway_storage::disk::{Faults, FaultyDisk, Operation, SyncPurpose};
use clearway_storage::{PAGE_SIZE, StandbyOptions, Storage, StorageOptions};
use clearway_txn::{CommitLogOptions, CommitLogVariant, Status, XIDS_PER_PAGE, Xid};
use crash::crash;
use recording_disk::RecordingDisk;

const DIRECTORY: &str = "/disk/data";

/// Pages that fit into memory.
const CACHED: u64 = 128;

/// An access to the commit log's file or to the journal of its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Page,
    PageSync,
    Journal,
}

/// Remembers the accesses in their order, and makes those take a while that another writer may come between.
#[derive(Debug, Default)]
struct SlowAccesses {
    armed: AtomicBool,
    accesses: Mutex<Vec<Access>>,
}

impl Faults for SlowAccesses {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        if !self.armed.load(Ordering::Relaxed) {
            return Ok(());
        }
        let is_journal = path.ends_with("status_journal");
        let access = match operation {
            Operation::Write if path.ends_with("base/0") => Access::Page,
            Operation::Sync(SyncPurpose::DataFile) if path.ends_with("base/0") => Access::PageSync,
            Operation::Write if is_journal => Access::Journal,
            _ => return Ok(()),
        };
        self.accesses.lock().unwrap().push(access);
        if access != Access::PageSync {
            thread::sleep(Duration::from_micros(300));
        }
        Ok(())
    }
}

fn options(commit_log: CommitLogVariant) -> StorageOptions {
    let chosen = chosen::options();
    StorageOptions {
        buffer_bytes: 64 * PAGE_SIZE,
        checkpoint_timeout: Duration::from_secs(3600),
        commit_log: CommitLogOptions {
            variant: commit_log,
            ..chosen.commit_log
        },
        ..chosen
    }
}

/// A transaction whose status lies on this page.
fn transaction_of(page: u64) -> Xid {
    Xid(page * XIDS_PER_PAGE + 100)
}

fn commit(storage: &Storage, page: u64) {
    let set = storage.commit_log.set(transaction_of(page), Status::Committed, 0);
    set.unwrap();
}

/// Fills the memory with changed pages, and writes them beside sessions that need the slots for `more` pages.
fn flush_beside_evictions(storage: &Storage, more: u64) {
    (0..CACHED).for_each(|page| commit(storage, page));
    thread::scope(|scope| {
        scope.spawn(|| storage.commit_log.flush_all().unwrap());
        for half in 0..2 {
            scope.spawn(move || {
                (CACHED..CACHED + more)
                    .filter(|page| page % 2 == half)
                    .for_each(|page| commit(storage, page))
            });
        }
    });
    storage.commit_log.flush_all().unwrap();
}

/// The pages of the first `count` whose transaction has not committed, once all of them have left the memory.
fn lost_pages(storage: &Storage, count: u64) -> Vec<u64> {
    for page in 1_024..1_024 + 2 * CACHED {
        let _ = storage.status(transaction_of(page));
    }
    let is_lost = |&page: &u64| storage.status(transaction_of(page)).unwrap() != Status::Committed;
    (0..count).filter(is_lost).collect()
}

/// Each writer fills the file up to its own page, and the page of another may lie in that room.
#[test]
fn no_page_is_lost_beside_an_eviction() {
    for &variant in CommitLogVariant::ALL {
        let accesses = Arc::new(SlowAccesses::default());
        let disk = RecordingDisk::with_directory(Path::new("/disk"));
        let disk = Arc::new(FaultyDisk::new(Arc::new(disk), accesses.clone()));
        let storage = Storage::open_on(disk, Path::new(DIRECTORY), options(variant))
            .unwrap()
            .0;
        accesses.armed.store(true, Ordering::Relaxed);
        flush_beside_evictions(&storage, 32);
        let lost = lost_pages(&storage, CACHED + 32);
        crash(storage);
        assert_eq!(lost, [], "commit_log={}", variant.name());
    }
}

/// The journal has the image of a page until the page is in its file as a whole, that is until the file was synced.
/// A second image in between would leave a torn page without any.
#[test]
fn a_standbys_journal_has_the_page_that_is_being_written() {
    for &variant in CommitLogVariant::ALL {
        let accesses = Arc::new(SlowAccesses::default());
        let disk = RecordingDisk::with_directory(Path::new("/disk"));
        let primary = Storage::open_on(Arc::new(disk.clone()), Path::new(DIRECTORY), options(variant));
        let primary = primary.unwrap().0;
        primary.checkpoint().unwrap();
        crash(primary);
        let disk = Arc::new(FaultyDisk::new(Arc::new(disk), accesses.clone()));
        let standby = StandbyOptions::default();
        let standby = Storage::open_standby_on(disk, Path::new(DIRECTORY), options(variant), standby);
        let standby = standby.unwrap().0;
        accesses.armed.store(true, Ordering::Relaxed);
        flush_beside_evictions(&standby, 32);
        let lost = lost_pages(&standby, CACHED + 32);
        crash(standby);
        assert_eq!(lost, [], "commit_log={}", variant.name());
        let accesses = accesses.accesses.lock().unwrap().clone();
        let images = accesses.split(|&access| access == Access::Journal);
        let mut images = images.skip(1).peekable();
        let mut count = 0;
        while let Some(written) = images.next() {
            // Written, and synced for the next image.
            let page = written.iter().position(|&access| access == Access::Page);
            let sync = written.iter().rposition(|&access| access == Access::PageSync);
            let is_last = images.peek().is_none();
            assert!(
                page.is_some() && (is_last || page < sync),
                "commit_log={}, image {count}: {written:?}",
                variant.name()
            );
            count += 1;
        }
        assert!(count >= CACHED, "{count} images");
    }
}
