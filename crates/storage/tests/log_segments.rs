//! The segments of the log that a flush syncs; and the log grows where it is written and loses nothing when old
//! segments are used again.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use clearway_storage::disk::{Faults, FaultyDisk, NativeDisk, Operation, SyncPurpose};
use clearway_storage::wal::segment_name::{FIRST_TIMELINE, parse_segment_name, segment_name};
use clearway_storage::wal::{LogDevice, SEGMENT_SIZE, SegmentFiles};

/// Makes no fault: it notes the segments that are synced as part of a flush.
#[derive(Debug, Default)]
struct Flushed(Mutex<BTreeSet<u64>>);

impl Faults for Flushed {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        if matches!(operation, Operation::Sync(SyncPurpose::LogFlush)) {
            self.0.lock().unwrap().insert(number(path));
        }
        Ok(())
    }
}

/// The number of the segment in this file. A segment that was made since has the name under which it was made.
fn number(path: &Path) -> u64 {
    parse_segment_name(path.file_stem().unwrap().to_str().unwrap())
        .unwrap()
        .1
}

fn open(dir: &Path, fsync: bool) -> (SegmentFiles, Arc<Flushed>) {
    let flushed = Arc::new(Flushed::default());
    let disk = FaultyDisk::new(Arc::new(NativeDisk), flushed.clone());
    (
        SegmentFiles::open(Arc::new(disk), dir.join("pg_wal"), fsync).unwrap(),
        flushed,
    )
}

/// A commit at the very beginning of a segment is as durable as any other.
#[test]
fn a_flush_syncs_the_segments_of_its_range() {
    let dir = tempfile::tempdir().unwrap();
    let (log, flushed) = open(dir.path(), true);
    // An empty directory begins with segment 1, unless an earlier one is needed.
    log.make_room(1).unwrap();
    log.make_room(3 * SEGMENT_SIZE + 1).unwrap();
    for (from, to, expected) in [
        (2 * SEGMENT_SIZE, 2 * SEGMENT_SIZE + 1, vec![2]),
        (SEGMENT_SIZE - 1, SEGMENT_SIZE + 1, vec![0, 1]),
        (SEGMENT_SIZE, 2 * SEGMENT_SIZE, vec![1]),
        (10, SEGMENT_SIZE - 10, vec![0]),
        (SEGMENT_SIZE, SEGMENT_SIZE, vec![]),
    ] {
        for through_range in [false, true] {
            flushed.0.lock().unwrap().clear();
            if through_range {
                log.sync_range(from, to, SyncPurpose::LogFlush).unwrap();
            } else {
                log.sync(from, to).unwrap();
            }
            let found: Vec<u64> = flushed.0.lock().unwrap().iter().copied().collect();
            assert_eq!(found, expected, "{from} to {to}");
        }
    }
}

#[test]
fn nothing_is_synced_without_fsync() {
    let dir = tempfile::tempdir().unwrap();
    let (log, flushed) = open(dir.path(), false);
    log.make_room(1).unwrap();
    log.sync(0, 100).unwrap();
    assert!(flushed.0.lock().unwrap().is_empty());
}

#[test]
fn a_write_makes_the_segments_that_it_needs() {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = open(dir.path(), false);
    log.make_room(1).unwrap();
    let position = 2 * SEGMENT_SIZE - 2;
    log.write(position, b"Bob!").unwrap();
    let mut bytes = [0; 4];
    assert_eq!(log.read(position, &mut bytes).unwrap(), 4);
    assert_eq!(&bytes, b"Bob!");
    let last = fs::read_dir(dir.path().join("pg_wal"))
        .unwrap()
        .map(|entry| number(&entry.unwrap().path()))
        .max();
    assert_eq!(last, Some(2));
}

/// An old segment gets a number that no other has: a name that is taken would replace the segment in use.
#[test]
fn the_segment_in_use_outlives_the_old_ones() {
    let dir = tempfile::tempdir().unwrap();
    let position = 2 * SEGMENT_SIZE;
    let is_there = |log: &SegmentFiles| {
        let mut bytes = [0; 5];
        log.read(position, &mut bytes).unwrap();
        assert_eq!(&bytes, b"Alice");
    };
    let (log, _) = open(dir.path(), false);
    for number in 0..=2 {
        log.make_room(number * SEGMENT_SIZE + 1).unwrap();
    }
    assert!(
        !dir.path()
            .join("pg_wal")
            .join(segment_name(FIRST_TIMELINE, 3))
            .exists()
    );
    log.write(position, b"Alice").unwrap();
    log.forget_before(position).unwrap();
    is_there(&log);
    is_there(&open(dir.path(), false).0);
}
