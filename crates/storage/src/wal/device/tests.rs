//! The segments on disk: descriptors, recycling, and the variants of `log_sync`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use clearway_machine::Switch;

use super::*;
use crate::disk::{Faults, FaultyDisk, NativeDisk, Operation};
use crate::wal::segment_descriptors::DESCRIPTORS_MAX;

/// Counts files that are opened and can refuse to open one.
#[derive(Debug, Default)]
struct Opened {
    count: AtomicU32,
    refused: AtomicBool,
}

impl Faults for Opened {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        if operation == Operation::Open && path.is_file() {
            if self.refused.load(Ordering::Relaxed) {
                return Err(io::Error::other("no descriptors are left"));
            }
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn with_two_segments(opened: &Arc<Opened>) -> (tempfile::TempDir, SegmentFiles) {
    let dir = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::clone(opened) as Arc<dyn Faults>);
    let files = SegmentFiles::open(Arc::new(disk), dir.path().join("pg_wal"), true).unwrap();
    files.make_room(0).unwrap();
    files.make_room(2 * SEGMENT_SIZE - 1).unwrap();
    (dir, files)
}

// Mutation: every lane syncs through the first file. No further one is opened.
#[test]
fn each_lane_syncs_a_segment_through_a_file_of_its_own() {
    let opened = Arc::new(Opened::default());
    let (_dir, files) = with_two_segments(&opened);
    let across = (SEGMENT_SIZE - 8, SEGMENT_SIZE + 8);
    let opened_by = |lane| {
        let before = opened.count.load(Ordering::Relaxed);
        files.sync_in_lane(lane, across.0, across.1).unwrap();
        opened.count.load(Ordering::Relaxed) - before
    };
    assert_eq!(
        [opened_by(0), opened_by(1), opened_by(1), opened_by(0)],
        [0, 2, 0, 0]
    );
    // A segment that is renamed keeps its files.
    files.forget_before(SEGMENT_SIZE).unwrap();
    files.write(2 * SEGMENT_SIZE, b"again").unwrap();
    let before = opened.count.load(Ordering::Relaxed);
    files
        .sync_in_lane(1, 2 * SEGMENT_SIZE, 2 * SEGMENT_SIZE + 5)
        .unwrap();
    assert_eq!(opened.count.load(Ordering::Relaxed), before);
}

/// Log that is kept costs no descriptors: segments are closed when they are idle, and what was written to them and not
/// synced keeps them open.
#[test]
fn segments_that_are_not_in_use_are_closed() {
    const COUNT: u64 = DESCRIPTORS_MAX as u64 + 6;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pg_wal");
    std::fs::create_dir(&path).unwrap();
    for number in 0..COUNT {
        std::fs::write(path.join(segment_name(1, number)), number.to_le_bytes()).unwrap();
    }
    let files = SegmentFiles::open(Arc::new(NativeDisk), path, true).unwrap();
    let open = || files.lock().values().map(Segment::descriptors).sum::<usize>();
    assert_eq!(open(), 0);
    files.write(8, b"unsynced").unwrap();
    for _ in 0..2 {
        for number in 0..COUNT {
            let mut bytes = [0; 8];
            files.read(number * SEGMENT_SIZE, &mut bytes).unwrap();
            assert_eq!(u64::from_le_bytes(bytes), number);
            assert!(open() <= DESCRIPTORS_MAX);
        }
    }
    let first_is_open = || files.lock()[&0].descriptors() > 0;
    assert!(first_is_open());
    files.sync_in_lane(1, 8, 16).unwrap();
    files.read((COUNT - 1) * SEGMENT_SIZE, &mut [0; 8]).unwrap();
    for number in 0..COUNT {
        files.read(number * SEGMENT_SIZE, &mut [0; 8]).unwrap();
    }
    assert!(!first_is_open());
}

#[test]
fn a_lane_that_can_open_no_file_takes_its_turn_at_the_first_one() {
    let opened = Arc::new(Opened::default());
    let (_dir, files) = with_two_segments(&opened);
    opened.refused.store(true, Ordering::Relaxed);
    files.sync_in_lane(1, 0, 8).unwrap();
    files.sync_in_lane(0, 8, 16).unwrap();
    assert_eq!(opened.count.load(Ordering::Relaxed), 0);
}

#[test]
fn bytes_cross_segments_and_old_segments_are_recycled() {
    let dir = tempfile::tempdir().unwrap();
    let files = SegmentFiles::open(Arc::new(NativeDisk), dir.path().join("pg_wal"), false).unwrap();
    files.make_room(0).unwrap();
    files.make_room(2 * SEGMENT_SIZE).unwrap();
    let position = SEGMENT_SIZE - 3;
    files.write(position, b"across").unwrap();
    let again = SegmentFiles::open(Arc::new(NativeDisk), dir.path().join("pg_wal"), false).unwrap();
    let mut bytes = [0; 6];
    assert_eq!(again.read(position, &mut bytes).unwrap(), 6);
    assert_eq!(&bytes, b"across");
    assert_eq!(
        again.read(3 * SEGMENT_SIZE - 2, &mut bytes).unwrap(),
        2,
        "the log ends with its last segment"
    );
    again.forget_before(2 * SEGMENT_SIZE + 5).unwrap();
    let kept: Vec<_> = again.lock().keys().copied().collect();
    assert_eq!(kept, [2, 3, 4]);
}

/// A segment that was being made when the process died is made anew. Files that are none of the log's stay.
#[test]
fn unfinished_segments_are_removed_and_other_files_are_not() {
    let dir = tempfile::tempdir().unwrap();
    for name in [
        "000000010000000000000003.new",
        "notes",
        "000000010000000000000001",
    ] {
        std::fs::write(dir.path().join(name), b"").unwrap();
    }
    let files = SegmentFiles::open(Arc::new(NativeDisk), dir.path().to_owned(), false).unwrap();
    let mut names = NativeDisk.list(dir.path()).unwrap();
    names.sort();
    assert_eq!(names, ["000000010000000000000001", "notes"]);
    assert!(files.lock().keys().eq(&[1]));
}

/// Counts the log's syncs, on a file system that may refuse direct writes.
#[derive(Debug, Default)]
struct Synced {
    count: AtomicU32,
    refuses: bool,
}

impl Synced {
    fn take(&self) -> u32 {
        self.count.swap(0, Ordering::Relaxed)
    }
}

impl Faults for Synced {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        match operation {
            Operation::Sync(SyncPurpose::LogFlush | SyncPurpose::LogFound) => {
                self.count.fetch_add(1, Ordering::Relaxed);
            }
            Operation::Write if self.refuses && path.ends_with("direct.new") => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            _ => {}
        }
        Ok(())
    }
}

fn synced_by(dir: &Path, synced: &Arc<Synced>, variant: LogSyncVariant) -> io::Result<SegmentFiles> {
    let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::clone(synced) as _);
    SegmentFiles::open(Arc::new(disk), dir.join("pg_wal"), true)?.synced_by(variant)
}

/// The same bytes are there under each variant, across segments and over what a recycled one held, and each write is
/// synced: by the sync behind it, or by itself. What another process has logged is synced under each.
#[test]
fn each_variant_writes_the_same_log_and_syncs_it() {
    for &variant in LogSyncVariant::ALL {
        let dir = tempfile::tempdir().unwrap();
        let synced = Arc::new(Synced::default());
        let files = match synced_by(dir.path(), &synced, variant) {
            // Where temporary files are in memory, perhaps.
            Err(error) if error.to_string().contains("cannot write past its cache") => continue,
            files => files.unwrap(),
        };
        files.make_room(0).unwrap();
        files.make_room(2 * SEGMENT_SIZE - 1).unwrap();
        let began = SEGMENT_SIZE - 9_000;
        let (mut position, mut expected) = (began, Vec::new());
        for length in [8, 4_000, 5_000, 72, 10_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251 + 1) as u8).collect();
            files.write(position, &bytes).unwrap();
            let by_write = synced.take();
            let end = position + length;
            files.sync_in_lane(0, position, end).unwrap();
            let by_sync = synced.take();
            let crossed = ((end - 1) / SEGMENT_SIZE - position / SEGMENT_SIZE + 1) as u32;
            match variant {
                LogSyncVariant::Fdatasync => assert_eq!((by_write, by_sync), (0, crossed)),
                _ => assert_eq!((by_write, by_sync), (crossed, 0), "{variant:?}"),
            }
            position = end;
            expected.extend(bytes);
        }
        files.sync_range(began, position, SyncPurpose::LogFound).unwrap();
        assert_eq!(synced.take(), 2, "{variant:?}");
        let again = SegmentFiles::open(Arc::new(NativeDisk), dir.path().join("pg_wal"), true).unwrap();
        let mut found = vec![0; expected.len() + 8];
        assert_eq!(again.read(began, &mut found).unwrap(), found.len());
        assert!(found.starts_with(&expected), "{variant:?}");
        assert_eq!(found[expected.len()..], [0; 8]);
    }
}

#[test]
fn direct_writes_are_tried_before_anything_is_logged() {
    let dir = tempfile::tempdir().unwrap();
    let refusing = Arc::new(Synced {
        refuses: true,
        ..Synced::default()
    });
    let error = synced_by(dir.path(), &refusing, LogSyncVariant::Direct)
        .unwrap_err()
        .to_string();
    assert!(error.contains("log_sync = direct: the file system of"), "{error}");
    assert!(error.ends_with("use dsync or fdatasync"), "{error}");
    assert_eq!(std::fs::read_dir(dir.path().join("pg_wal")).unwrap().count(), 0);
}
