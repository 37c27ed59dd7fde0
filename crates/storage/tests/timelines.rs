//! The log goes on under a new timeline's names, and reads back as one log.
//!
//! # Mutations seen to fail
//! `crates/storage/mutations/timelines.toml` lists them.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/log_filler.rs"]
mod log_filler;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use clearway_storage::wal::segment_name::segment_name;
use clearway_storage::wal::{LogDevice, SEGMENT_SIZE};
use clearway_storage::{Lsn, RecoveryReport, Storage, StorageError, StorageOptions};
use crash::crash;
use log_filler::{commit, fill_to, is_committed, middle_of, quiet_end};

fn options() -> StorageOptions {
    chosen::small_database(16)
}

fn open(dir: &Path) -> (Arc<Storage>, RecoveryReport) {
    Storage::open(dir, options()).unwrap()
}

/// The names in the log's directory.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir.join("pg_wal"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn segment(dir: &Path, timeline: u32, number: u64) -> std::path::PathBuf {
    dir.join("pg_wal").join(segment_name(timeline, number))
}

/// Alice's standby is promoted in the middle of segment 2. Bob commits on the new timeline, and the power goes before any
/// checkpoint: recovery reads segment 1 under its old name and segment 2 under its new one.
#[test]
fn log_before_the_fork_is_read_from_old_names_and_log_behind_it_from_new_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let first = commit(&storage);
    fill_to(&storage, middle_of(2));
    let second = commit(&storage);
    let fork = quiet_end(&storage);
    let before = fs::read(segment(dir.path(), 1, 2)).unwrap();
    assert_eq!(storage.begin_timeline(fork, "promoted\nby Alice").unwrap(), 2);
    assert_eq!(storage.timeline(), 2);
    let third = commit(&storage);
    let mut log = vec![0; 64];
    assert_eq!(
        storage.wal.device().read(fork.0 - 32, &mut log).unwrap(),
        64,
        "across the fork"
    );
    crash(storage);

    let history = fs::read_to_string(dir.path().join("pg_wal/00000002.history")).unwrap();
    let (identity, ended) = history.split_once('\n').unwrap();
    assert!(identity.starts_with("# identity of timeline 2: "), "{identity}");
    assert_eq!(ended, format!("1\t{fork}\tpromoted by Alice\n"));
    let found = names(dir.path());
    assert!(found.contains(&segment_name(1, 1)) && !found.contains(&segment_name(2, 1)));
    let within = (fork.0 % SEGMENT_SIZE) as usize;
    let (old, new) = (
        fs::read(segment(dir.path(), 1, 2)).unwrap(),
        fs::read(segment(dir.path(), 2, 2)).unwrap(),
    );
    assert!(
        old == before,
        "the former timeline's segment is as the fork left it"
    );
    assert!(new[..within] == old[..within] && new[within..] != old[within..]);

    // Arbitrary content of the former segment, which nothing reads.
    fs::write(segment(dir.path(), 1, 2), vec![0xAB; 16 << 20]).unwrap();
    let (storage, report) = open(dir.path());
    assert_eq!(report.redo.0 / SEGMENT_SIZE, 1);
    assert!(report.end > fork);
    assert_eq!(storage.timeline(), 2);
    for xid in [first, second, third] {
        assert!(is_committed(&storage, xid), "{xid:?}");
    }
    crash(storage);
}

/// The segment with the fork is missing. The former timeline's file of the same number holds the log before the fork, and
/// behind it what the former primary has logged: to read it as log would bring back commits that are not ours.
#[test]
fn a_missing_segment_is_not_replaced_by_the_former_timelines() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    commit(&storage);
    let fork = quiet_end(&storage);
    storage.begin_timeline(fork, "promoted").unwrap();
    storage.checkpoint().unwrap();
    crash(storage);
    fs::rename(segment(dir.path(), 2, 1), dir.path().join("elsewhere")).unwrap();
    let error = Storage::open(dir.path(), options()).unwrap_err();
    assert!(error.to_string().contains(&segment_name(2, 1)), "{error}");
    fs::rename(dir.path().join("elsewhere"), segment(dir.path(), 2, 1)).unwrap();
    crash(open(dir.path()).0);

    fs::remove_file(dir.path().join("pg_wal/00000002.history")).unwrap();
    let error = Storage::open(dir.path(), options()).unwrap_err();
    assert!(matches!(error, StorageError::NoHistoryFile { .. }), "{error}");
    assert!(error.to_string().contains("00000002.history"), "{error}");
}

/// Segments of the former timeline are removed when the log has passed their numbers, and recycled ones get the names of
/// the new one.
#[test]
fn the_former_timelines_segments_go_with_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    fill_to(&storage, middle_of(6));
    storage.checkpoint().unwrap();
    let of_timeline = |timeline: &str| {
        let found = names(dir.path());
        found.iter().filter(|name| name.starts_with(timeline)).count()
    };
    assert!(of_timeline("00000001") > 4, "spare segments of the future");
    let fork = quiet_end(&storage);
    storage.begin_timeline(fork, "promoted").unwrap();
    fill_to(&storage, middle_of(30));
    let last = commit(&storage);
    storage.checkpoint().unwrap();
    assert_eq!(of_timeline("000000010000"), 0, "{:?}", names(dir.path()));
    assert!(of_timeline("000000020000") > 4);
    assert_eq!(of_timeline("00000002.history"), 1);
    fill_to(&storage, middle_of(34));
    crash(storage);
    let (storage, _) = open(dir.path());
    assert!(is_committed(&storage, last));
    crash(storage);
}

/// A directory on timeline 1 with files of a timeline 2, which an attempt that did not reach the control file has left:
/// they are not read, and the next attempt gets another number.
#[test]
fn files_of_a_timeline_that_the_control_file_does_not_name_are_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let xid = commit(&storage);
    crash(storage);
    fs::write(segment(dir.path(), 2, 1), vec![0xCD; 16 << 20]).unwrap();
    fs::write(
        dir.path().join("pg_wal/00000003.history"),
        "1\t0/1000100\tnot finished\n",
    )
    .unwrap();
    let (storage, _) = open(dir.path());
    assert!(is_committed(&storage, xid) && storage.timeline() == 1);
    let fork = quiet_end(&storage);
    assert_eq!(storage.begin_timeline(fork, "promoted").unwrap(), 4);
    crash(storage);
    let (storage, _) = open(dir.path());
    assert!(is_committed(&storage, xid) && storage.timeline() == 4);
    assert!(storage.history().is_ancestor(1) && !storage.history().is_ancestor(3));
    crash(storage);
}

/// A standby whose primary is another server by now.
#[test]
fn a_server_on_a_newer_timeline_is_followed_if_it_has_all_that_is_here() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    let xid = commit(&storage);
    fill_to(&storage, middle_of(2));
    let end = quiet_end(&storage);
    let text = |fork: u64| format!("1\t{}\tpromoted\n2\t{}\tpromoted\n", Lsn(fork), Lsn(fork + 800));

    let error = storage.follow_timeline(&text(end.0 - 8), 3).unwrap_err();
    assert!(matches!(error, StorageError::Diverged { .. }), "{error}");
    for part in [
        end.to_string(),
        Lsn(end.0 - 8).to_string(),
        "new base backup into an empty directory".to_owned(),
    ] {
        assert!(error.to_string().contains(&part), "{error}");
    }
    let error = storage.follow_timeline("nothing", 3).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("00000003.history is no timeline history: line 1"),
        "{error}"
    );
    assert_eq!(storage.timeline(), 1);
    assert!(!names(dir.path()).iter().any(|name| name.contains("history")));

    // The fork is further on, in another segment: the log up to it is still to come.
    let fork = end.0 + 2 * SEGMENT_SIZE;
    storage.follow_timeline(&text(fork), 3).unwrap();
    assert_eq!(storage.timeline(), 3);
    assert!(names(dir.path()).contains(&segment_name(1, 2)));
    storage.wal.device().make_room(fork).unwrap();
    assert!(
        names(dir.path()).contains(&segment_name(3, 4)),
        "{:?}",
        names(dir.path())
    );
    crash(storage);
    let (storage, report) = open(dir.path());
    assert_eq!((report.end, storage.timeline()), (end, 3));
    assert!(is_committed(&storage, xid));
    // Another server, whose timeline 4 comes from 1 at the same place.
    let other = format!("1\t{}\tpromoted\n", Lsn(fork));
    let error = storage.follow_timeline(&other, 4).unwrap_err();
    assert!(matches!(error, StorageError::OtherHistory { .. }), "{error}");
    let error = storage.follow_timeline(&other, 3).unwrap_err();
    assert!(
        matches!(error, StorageError::OtherHistory { .. }),
        "the same number, and another fork: {error}"
    );
    storage.follow_timeline(&text(fork), 3).unwrap();
    crash(storage);
}

/// A fork at the first byte of a segment: nothing of it is in the former timeline's log.
#[test]
fn a_fork_between_two_segments() {
    let dir = tempfile::tempdir().unwrap();
    let (storage, _) = open(dir.path());
    fill_to(&storage, 2 * SEGMENT_SIZE);
    let payload = 2 * SEGMENT_SIZE - quiet_end(&storage).0 - 32;
    let end = storage.wal.insert_any(
        clearway_storage::wal::record::RecordKind::NOTHING,
        clearway_txn::Xid::INVALID,
        &vec![0; payload as usize],
    );
    storage.wal.flush(end);
    assert_eq!(end, Lsn(2 * SEGMENT_SIZE));
    storage.begin_timeline(end, "promoted").unwrap();
    let xid = commit(&storage);
    crash(storage);
    assert!(segment(dir.path(), 1, 1).exists() && !segment(dir.path(), 2, 1).exists());
    let (storage, _) = open(dir.path());
    assert!(is_committed(&storage, xid));
    // Two promotions without a record between them.
    let fork = quiet_end(&storage);
    storage.begin_timeline(fork, "promoted").unwrap();
    storage.begin_timeline(fork, "promoted").unwrap();
    let again = commit(&storage);
    crash(storage);
    let (storage, _) = open(dir.path());
    assert_eq!(storage.timeline(), 4);
    assert!(is_committed(&storage, xid) && is_committed(&storage, again));
    crash(storage);
}
