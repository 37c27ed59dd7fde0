//! A backup, an archive of the log, and a point to which the backup is recovered.
//!
//! # Mutations seen to fail
//! `crates/storage/mutations/timelines.toml` lists them.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/log_filler.rs"]
mod log_filler;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clearway_storage::backup::Backup;
use clearway_storage::standby::StandbyOptions;
use clearway_storage::wal::SEGMENT_SIZE;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::segment_name::segment_name;
use clearway_storage::{Lsn, RecoveryPoint, RecoveryTarget, Storage, StorageError, StorageOptions};
use clearway_txn::Xid;
use crash::crash;
use log_filler::{commit, fill_to, is_committed, middle_of, quiet_end};

/// Later than any test runs.
const NOON: i64 = 1 << 60;
const SECOND: i64 = 1_000_000;

fn options() -> StorageOptions {
    chosen::small_database(16)
}

/// Copies the database while it is open; with the log that the copy needs, or without.
fn back_up(storage: &Arc<Storage>, to: &Path, with_log: bool) -> Lsn {
    fs::create_dir_all(to.join("pg_wal")).unwrap();
    fs::create_dir_all(to.join("base")).unwrap();
    let backup = Backup::begin(storage, 7).unwrap();
    for rel in backup.relations().unwrap() {
        let copy = backup.open_relation(rel).unwrap().unwrap();
        let mut bytes = vec![0; copy.length as usize];
        copy.read_at(&mut bytes, 0).unwrap();
        fs::write(to.join("base").join(rel.0.to_string()), bytes).unwrap();
    }
    let end = backup.finish().unwrap();
    for (name, start) in backup.segments(end.position) {
        if with_log {
            let mut bytes = vec![0; SEGMENT_SIZE as usize];
            backup.read_log(start, end.position, &mut bytes).unwrap();
            fs::write(to.join("pg_wal").join(name), bytes).unwrap();
        }
    }
    for (name, text) in backup.history_files().unwrap() {
        fs::write(to.join("pg_wal").join(name), text).unwrap();
    }
    fs::write(to.join("control"), end.control).unwrap();
    end.position
}

/// The directory of a `pg_receivewal` for the log that ends at `end`, whose newest segment it has not received to its
/// end.
fn archive(storage: &Storage, to: &Path, end: Lsn) {
    fs::create_dir_all(to).unwrap();
    let newest = end.0 / SEGMENT_SIZE;
    for entry in fs::read_dir(storage.dir().join("pg_wal")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let number = u64::from_str_radix(&name[16..], 16).unwrap_or(0);
        if number <= newest {
            let mut bytes = fs::read(entry.path()).unwrap();
            let name = if number == newest {
                bytes[(end.0 % SEGMENT_SIZE) as usize..].fill(0);
                name + ".partial"
            } else {
                name
            };
            fs::write(to.join(name), bytes).unwrap();
        }
    }
}

/// A transaction that commits at the given time.
fn commit_at(storage: &Storage, time: i64) -> (Xid, Lsn) {
    let proc = storage.proc_array.attach().unwrap();
    let xid = storage.assign_xid(proc).unwrap();
    let end = storage
        .wal
        .insert_any(RecordKind::COMMIT, xid, &time.to_le_bytes());
    storage.wal.flush(end);
    (xid, end)
}

/// A database, a backup of it, and an archive that goes on three segments behind it.
struct Story {
    dir: tempfile::TempDir,
    backup_end: Lsn,
    log_end: Lsn,
    /// Before the backup.
    before: Xid,
    /// Each with the position after its commit: a second before noon, at noon, a second after noon.
    commits: [(Xid, Lsn); 3],
}

impl Story {
    fn tell(with_log: bool) -> Story {
        let dir = tempfile::tempdir().unwrap();
        let (storage, _) = Storage::open(&dir.path().join("primary"), options()).unwrap();
        let before = commit(&storage);
        fill_to(&storage, middle_of(2));
        let backup_end = back_up(&storage, &dir.path().join("copy"), with_log);
        let commits = [(3, NOON - SECOND), (4, NOON), (5, NOON + SECOND)].map(|(number, time)| {
            let committed = commit_at(&storage, time);
            fill_to(&storage, middle_of(number));
            committed
        });
        let log_end = quiet_end(&storage);
        archive(&storage, &dir.path().join("archive"), log_end);
        crash(storage);
        Story {
            dir,
            backup_end,
            log_end,
            before,
            commits,
        }
    }

    fn copy(&self) -> PathBuf {
        self.dir.path().join("copy")
    }

    fn archive(&self) -> PathBuf {
        self.dir.path().join("archive")
    }

    fn recover(&self, point: RecoveryPoint) -> Result<Arc<Storage>, StorageError> {
        let target = RecoveryTarget {
            archive: Some(self.archive()),
            point,
        };
        Storage::recover_to(&self.copy(), options(), &target).map(|(storage, _)| storage)
    }

    /// Recovers, and opens the directory once more as a server would: `count` of the three transactions are there.
    fn assert_has(&self, point: RecoveryPoint, count: usize) -> Arc<Storage> {
        let shown = point.to_string();
        let storage = self
            .recover(point)
            .unwrap_or_else(|error| panic!("{shown}: {error}"));
        let check = |storage: &Storage| {
            assert_eq!(storage.timeline(), 2, "{shown}");
            assert!(is_committed(storage, self.before));
            let found: Vec<bool> = self
                .commits
                .iter()
                .map(|(xid, _)| is_committed(storage, *xid))
                .collect();
            assert_eq!(found, [0, 1, 2].map(|index| index < count), "{shown}");
        };
        check(&storage);
        crash(storage);
        let (storage, _) = Storage::open(&self.copy(), options()).unwrap();
        check(&storage);
        // It may get the xid of a transaction of behind the point.
        let own = commit(&storage);
        crash(storage);
        let (storage, _) = Storage::open(&self.copy(), options()).unwrap();
        assert!(is_committed(&storage, own));
        storage
    }
}

fn time(microseconds: i64) -> RecoveryPoint {
    RecoveryPoint::Time {
        microseconds,
        shown: "2026-11-24 12:00:00+00".to_owned(),
    }
}

#[test]
fn to_the_last_byte() {
    let story = Story::tell(true);
    let storage = story.assert_has(RecoveryPoint::End, 3);
    assert_eq!(storage.history().end_of(1), Some(story.log_end));
    crash(storage);
}

/// The copy came without log: all of it is in the archive.
#[test]
fn to_a_time() {
    let story = Story::tell(false);
    let storage = story.assert_has(time(NOON), 2);
    let history = storage.history_file(2).unwrap().unwrap();
    assert!(
        history.contains("before the first commit after 2026-11-24 12:00:00+00"),
        "{history}"
    );
    crash(storage);
}

#[test]
fn to_a_transaction() {
    let story = Story::tell(true);
    let storage = story.assert_has(RecoveryPoint::Transaction(story.commits[0].0), 1);
    assert_eq!(storage.history().end_of(1), Some(story.commits[0].1));
    crash(storage);
}

/// A position inside a record counts as the record's end.
#[test]
fn to_a_position() {
    for offset in [0, 8] {
        let story = Story::tell(true);
        let end = story.commits[1].1;
        let storage = story.assert_has(RecoveryPoint::Position(Lsn(end.0 - offset)), 2);
        assert_eq!(storage.history().end_of(1), Some(end));
        crash(storage);
        // Not more than the point needs was taken from the archive.
        assert!(!story.copy().join("pg_wal").join(segment_name(1, 5)).exists());
    }
}

/// An error leaves the copy as good as it was: the next attempt succeeds.
#[test]
fn points_that_cannot_be_reached() {
    let story = Story::tell(true);
    for (point, part) in [
        (
            RecoveryPoint::Position(Lsn(story.backup_end.0 - 8 - SEGMENT_SIZE)),
            format!("hold changes up to {}", story.backup_end),
        ),
        (
            RecoveryPoint::Transaction(story.before),
            "ended before the log begins".to_owned(),
        ),
        (RecoveryPoint::Transaction(Xid(1 << 40)), "or never".to_owned()),
        (time(NOON + SECOND), "0.000 s before".to_owned()),
        (
            RecoveryPoint::Position(Lsn(story.log_end.0 + 1)),
            format!("the log ends at {}", story.log_end),
        ),
    ] {
        let error = story.recover(point.clone()).unwrap_err().to_string();
        assert!(
            error.contains(&part) && error.contains(&point.to_string()),
            "{error}"
        );
    }
    crash(story.assert_has(time(NOON), 2));
}

/// Log behind the missing segment is of no use. A point before it can be reached.
#[test]
fn an_archive_with_a_gap() {
    let story = Story::tell(true);
    fs::remove_file(story.archive().join(segment_name(1, 4))).unwrap();
    for point in [RecoveryPoint::End, time(NOON)] {
        let error = story.recover(point).unwrap_err();
        assert!(matches!(error, StorageError::ArchiveGap { .. }), "{error}");
        let error = error.to_string();
        assert!(
            error.contains(&format!("lacks log segment {}", segment_name(1, 4)))
                && error.contains(&segment_name(1, 5)),
            "{error}"
        );
    }
    crash(story.assert_has(RecoveryPoint::Transaction(story.commits[0].0), 1));
}

/// An archive that is behind the backup adds nothing, and takes nothing away.
#[test]
fn an_archive_that_ends_before_the_backup() {
    let story = Story::tell(true);
    for number in 3..=5 {
        let name = segment_name(1, number);
        let _ = fs::remove_file(story.archive().join(&name));
        let _ = fs::remove_file(story.archive().join(name + ".partial"));
    }
    let whole = story.archive().join(segment_name(1, 2));
    let partial = story.archive().join(segment_name(1, 2) + ".partial");
    fs::rename(whole, &partial).unwrap();
    let from = (story.backup_end.0 % SEGMENT_SIZE) as usize - 100;
    let mut bytes = fs::read(&partial).unwrap();
    bytes.truncate(from);
    fs::write(&partial, bytes).unwrap();
    let storage = story.assert_has(RecoveryPoint::End, 0);
    assert_eq!(storage.history().end_of(1), Some(story.backup_end));
    crash(storage);
}

#[test]
fn an_archive_of_another_log() {
    let story = Story::tell(true);
    let segment = story.archive().join(segment_name(1, 2));
    let offset = story.backup_end.0 % SEGMENT_SIZE - 16;
    let file = OpenOptions::new().write(true).open(&segment).unwrap();
    file.write_all_at(&[0xEE], offset).unwrap();
    let error = story.recover(RecoveryPoint::End).unwrap_err();
    assert!(matches!(error, StorageError::ForeignArchive { .. }), "{error}");
    assert!(error.to_string().contains(&format!("offset {offset}")), "{error}");
    fs::rename(&segment, story.archive().join(segment_name(1, 2) + ".gz")).unwrap();
    let error = story.recover(RecoveryPoint::End).unwrap_err();
    assert!(matches!(error, StorageError::CompressedSegment { .. }), "{error}");
}

/// The copy of a server that was killed may hold pages as new as the end of its log: no earlier point will do.
#[test]
fn a_copy_that_is_no_backup() {
    let story = Story::tell(true);
    fs::remove_dir_all(story.copy()).unwrap();
    fs::rename(story.dir.path().join("primary"), story.copy()).unwrap();
    let error = story.recover(time(NOON)).unwrap_err();
    assert!(matches!(error, StorageError::PointTooEarly { .. }), "{error}");
    assert!(error.to_string().contains(&story.log_end.to_string()), "{error}");
    crash(story.assert_has(RecoveryPoint::End, 3));
}

/// The archive has followed a promotion: a backup of before it is recovered onto the new timeline, and goes on on a third.
#[test]
fn through_a_promotion() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (storage, _) = Storage::open(&at("primary"), options()).unwrap();
    back_up(&storage, &at("copy"), true);
    let before = commit(&storage);
    fill_to(&storage, middle_of(3));
    let fork = quiet_end(&storage);
    assert_eq!(storage.begin_timeline(fork, "promoted").unwrap(), 2);
    let after = commit(&storage);
    fill_to(&storage, middle_of(4));
    let end = quiet_end(&storage);
    archive(&storage, &at("archive"), end);
    // A backup of the new timeline opens by itself.
    back_up(&storage, &at("later"), true);
    crash(storage);
    // A stray file of the former timeline, longer than that was.
    fs::write(at("archive").join(segment_name(1, 4)), vec![7; 16 << 20]).unwrap();
    let target = RecoveryTarget {
        archive: Some(at("archive")),
        point: RecoveryPoint::End,
    };
    let (storage, report) = Storage::recover_to(&at("copy"), options(), &target).unwrap();
    assert_eq!((report.end, storage.timeline()), (end, 3));
    assert_eq!(
        (storage.history().end_of(1), storage.history().end_of(2)),
        (Some(fork), Some(end))
    );
    assert!(is_committed(&storage, before) && is_committed(&storage, after));
    crash(storage);
    let (storage, _) = Storage::open(&at("later"), options()).unwrap();
    assert_eq!(storage.timeline(), 2);
    assert!(is_committed(&storage, before) && is_committed(&storage, after));
    crash(storage);
}

/// The directory of a standby whose power was cut while it wrote a page of the commit log: the page is torn, its image
/// is in the standby's journal alone, and the log says nothing any more of the older commit.
#[test]
fn a_status_page_that_a_standby_tore_is_healed() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = Storage::open(dir.path(), options()).unwrap();
    let old = commit(&storage);
    storage.checkpoint().unwrap();
    storage.checkpoint().unwrap();
    let new = commit(&storage);
    crash(storage);
    let (standby, _) = Storage::open_standby(dir.path(), options(), StandbyOptions::default()).unwrap();
    standby.checkpoint().unwrap();
    crash(standby);
    let pages = OpenOptions::new().write(true).open(dir.path().join("base/0"));
    pages.unwrap().write_all_at(&[0xEE; 512], 4_096).unwrap();
    let target = RecoveryTarget {
        archive: None,
        point: RecoveryPoint::End,
    };
    let (storage, _) = Storage::recover_to(dir.path(), options(), &target).unwrap();
    assert!(is_committed(&storage, old) && is_committed(&storage, new));
    crash(storage);
    let (storage, _) = Storage::open(dir.path(), options()).unwrap();
    assert!(is_committed(&storage, old) && is_committed(&storage, new));
    crash(storage);
}
