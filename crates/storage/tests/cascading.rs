//! A standby that feeds another one: what it sends during its promotion, what the other one makes of it, and copies of its
//! files.
//!
//! Mutations that these tests have caught are listed in `crates/storage/mutations/cascading.toml`.

#![expect(
    clippy::disallowed_methods,
    reason = "a test asks what a snapshot sees, and tells no client"
)]

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/set_on_drop.rs"]
mod set_on_drop;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use clearway_storage::backup::Backup;
use clearway_storage::disk::{Faults, FaultyDisk, NativeDisk, Operation};
use clearway_storage::retention::RetentionLimits;
use clearway_storage::wal::LogDevice;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{
    Lsn, PAGE_SIZE, PageId, RelId, StandbyOptions, Storage, StorageError, StorageOptions,
};
use clearway_txn::{ProcId, Snapshot, TransactionState, Xid};
use set_on_drop::SetOnDrop;
use standby_copy::{NUMBER, Observer, Sender, assert_same_contents, copy_database, numbered_pages};

/// The session that copies and follows.
const PROCESS_ID: u32 = 77;

fn options() -> StorageOptions {
    StorageOptions {
        buffer_bytes: 1 << 20,
        fsync: false,
        sessions_max: 16,
        // Nothing holds the log between a copy and what follows it here.
        log_retention: RetentionLimits {
            keep_bytes: 1 << 30,
            ..RetentionLimits::default()
        },
        ..chosen::options()
    }
}

/// A database with one relation, and its session.
struct Primary {
    _dir: tempfile::TempDir,
    storage: Arc<Storage>,
    rel: RelId,
    proc: ProcId,
}

impl Primary {
    fn new(pages: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (storage, _) = Storage::open(dir.path(), options()).unwrap();
        let rel = numbered_pages(&storage, pages);
        let proc = storage.proc_array.attach().unwrap();
        Self {
            _dir: dir,
            storage,
            rel,
            proc,
        }
    }

    fn commit(&self, blocks: &[u32], number: u64) -> Xid {
        commit(&self.storage, self.proc, self.rel, blocks, number)
    }

    /// All that was logged, made durable.
    fn end(&self) -> Lsn {
        let end = self.storage.wal.reserved();
        self.storage.wal.flush(end);
        end
    }

    fn close(self) {
        close(self.storage);
    }
}

/// A transaction that writes `number` to each of these pages, in one change.
fn commit(storage: &Storage, proc: ProcId, rel: RelId, blocks: &[u32], number: u64) -> Xid {
    let xid = storage.assign_xid(proc).unwrap();
    let mut change = storage.begin_change(xid).unwrap();
    let pinned: Vec<_> = blocks
        .iter()
        .map(|&block| storage.pin(PageId { rel, block }).unwrap())
        .collect();
    let mut pages: Vec<_> = pinned.into_iter().map(|page| page.into_exclusive()).collect();
    for page in &mut pages {
        change.write(page, NUMBER, &number.to_le_bytes());
    }
    change.finish().unwrap();
    drop(pages);
    storage.commit(proc, xid, false).unwrap();
    xid
}

fn read(storage: &Storage, rel: RelId, block: u32) -> u64 {
    let page = storage.pin(PageId { rel, block }).unwrap();
    let shared = page.shared();
    let bytes: &[u8; PAGE_SIZE] = shared.bytes();
    u64::from_le_bytes(bytes[NUMBER..NUMBER + 8].try_into().unwrap())
}

fn sees(storage: &Storage, xid: Xid) -> bool {
    let proc = storage.proc_array.attach().unwrap();
    let mut snapshot = Snapshot::default();
    storage.take_snapshot(proc, &mut snapshot);
    let sees = snapshot.sees(xid, &storage.commit_log).unwrap();
    storage.proc_array.clear_xmin(proc);
    storage.proc_array.detach(proc);
    sees
}

/// A standby in `dir`, which is a copy of `source` made now.
fn standby_of(source: &Arc<Storage>, dir: &Path) -> Arc<Storage> {
    copy_database(source, dir);
    open_standby(dir)
}

fn open_standby(dir: &Path) -> Arc<Storage> {
    let (storage, _) = Storage::open_standby(dir, options(), StandbyOptions::default()).unwrap();
    storage.start_replay(Arc::<Observer>::default()).unwrap();
    storage
}

fn close(storage: Arc<Storage>) {
    storage.stop_threads();
    drop(storage);
}

fn follow(standby: &Storage, source: &Storage) -> Result<(), StorageError> {
    let timeline = source.timeline();
    let history = source.history_file(timeline).unwrap().unwrap();
    standby.follow_timeline(&history, timeline)
}

/// Bob follows the primary, and Carol Bob. The primary dies while it sends a record, of which both have the beginning. Bob
/// is promoted; Carol gives the beginning up, and has what he commits, also after a restart.
#[test]
fn a_part_of_a_record_is_given_up_for_the_new_timeline() {
    for missing in [8, 120, 300_000] {
        let primary = Primary::new(4);
        let dirs = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bob = standby_of(&primary.storage, dirs.0.path());
        let mut to_bob = Sender::new(&primary.storage, &bob);
        let before = primary.commit(&[0, 1], 1);
        to_bob.catch_up();
        let carol = standby_of(&bob, dirs.1.path());
        let mut to_carol = Sender::new(&bob, &carol);
        let fork = primary.end();
        to_bob.catch_up();
        primary
            .storage
            .wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &[7; 400_000]);
        to_bob.send_up_to(Lsn(primary.end().0 - missing));
        let end = to_bob.receiver.position();
        to_carol.send(64 << 10);
        assert_eq!(to_carol.receiver.position(), end);
        assert!(end > fork);
        drop(to_bob);
        assert_eq!(bob.promote("a test").unwrap(), (2, fork));

        follow(&carol, &bob).unwrap();
        assert_eq!((carol.timeline(), carol.standby().unwrap().received()), (2, fork));
        to_carol.resume();
        assert_eq!(to_carol.receiver.position(), fork);
        let proc = bob.proc_array.attach().unwrap();
        let after = commit(&bob, proc, primary.rel, &[2, 3], 5);
        let committed = bob.wal.reserved();
        bob.make_log_room().unwrap();
        bob.wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &[9; 450_000]);
        bob.wal.flush(bob.wal.reserved());
        // As far as she was before: replay must not take it for what it has looked at already.
        assert!(committed < end);
        to_carol.send_up_to(end);
        let patience = Duration::from_secs(30);
        assert!(carol.standby().unwrap().wait_replayed(committed, patience));
        to_carol.catch_up();
        assert!(sees(&carol, before) && sees(&carol, after));
        assert_same_contents(&carol, &bob);
        drop(to_carol);
        close(carol);
        let carol = open_standby(dirs.1.path());
        assert!(sees(&carol, after));
        assert_same_contents(&carol, &bob);
        close(carol);
        close(bob);
        primary.close();
    }
}

/// Carol has a whole record that Bob has not: what it did is in her pages, or may be, and she is refused.
#[test]
fn a_whole_record_behind_the_fork_is_not_given_up() {
    let primary = Primary::new(4);
    let dirs = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bob = standby_of(&primary.storage, dirs.0.path());
    let mut to_bob = Sender::new(&primary.storage, &bob);
    to_bob.catch_up();
    let carol = standby_of(&bob, dirs.1.path());
    let mut to_carol = Sender::new(&primary.storage, &carol);
    let ahead = primary.commit(&[0], 1);
    to_carol.catch_up();
    drop(to_bob);
    bob.promote("a test").unwrap();
    let error = follow(&carol, &bob).unwrap_err();
    assert!(matches!(error, StorageError::Diverged { .. }), "{error}");
    assert_eq!(carol.timeline(), 1);
    assert_eq!(to_carol.receiver.position(), primary.end(), "as it was");
    assert!(sees(&carol, ahead));
    drop(to_carol);
    close(carol);
    close(bob);
    primary.close();
}

/// Followers read all the time while a standby is promoted that has the beginning of a record: what they get is the
/// primary's log, and none of the zeros that overwrite it, nor of the new timeline.
#[test]
fn a_promotion_sends_nothing_that_the_primary_has_not_logged() {
    for _ in 0..4 {
        let primary = Primary::new(4);
        let dir = tempfile::tempdir().unwrap();
        let bob = standby_of(&primary.storage, dir.path());
        let mut to_bob = Sender::new(&primary.storage, &bob);
        primary.commit(&[0, 1, 2, 3], 1);
        to_bob.catch_up();
        let fork = primary.end();
        primary
            .storage
            .wal
            .insert_any(RecordKind::NOTHING, Xid::INVALID, &[7; 400_000]);
        let end = primary.end();
        to_bob.send_up_to(Lsn(end.0 - 8));
        drop(to_bob);
        let mut logged = vec![0; (end.0 - fork.0) as usize];
        assert_eq!(
            primary.storage.wal.device().read(fork.0, &mut logged).unwrap(),
            logged.len()
        );
        let readings = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut bytes = vec![0; logged.len()];
                    loop {
                        let follower = bob.retention.follow(PROCESS_ID, fork, None).unwrap();
                        let (count, is_last) = bob.read_timeline(&follower, 1, &mut bytes).unwrap();
                        assert!(
                            bytes[..count] == logged[..count],
                            "{count} bytes that were never logged"
                        );
                        readings.fetch_add(1, Ordering::Relaxed);
                        if is_last {
                            return;
                        }
                    }
                });
            }
            while readings.load(Ordering::Relaxed) < 20 {
                thread::yield_now();
            }
            assert_eq!(bob.promote("a test").unwrap(), (2, fork));
        });
        close(bob);
        primary.close();
    }
}

/// Stops the follower before it reads log, until the promotion has overwritten what it reads; and the promotion there, just
/// before it begins its timeline, until the follower has its bytes.
#[derive(Debug, Default)]
struct Overtaken {
    reads: AtomicBool,
    is_overwritten: AtomicBool,
    has_read: AtomicBool,
}

/// The follower's thread.
const FOLLOWER: &str = "a follower";

impl Faults for Overtaken {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        if operation == Operation::Read && thread::current().name() == Some(FOLLOWER) {
            self.reads.store(true, Ordering::Release);
            wait_for(&self.is_overwritten);
        }
        if path.to_string_lossy().contains("00000002.history") && operation == Operation::Write {
            self.is_overwritten.store(true, Ordering::Release);
            wait_for(&self.has_read);
        }
        Ok(())
    }
}

#[track_caller]
fn wait_for(happened: &AtomicBool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !happened.load(Ordering::Acquire) {
        assert!(Instant::now() < deadline, "it never happened");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The moment that the test above meets by chance at most: a follower has found that the beginning of a record may be sent,
/// the promotion overwrites it with zeros, and the follower reads them.
#[test]
fn a_follower_that_a_promotion_overtakes_is_sent_nothing() {
    let primary = Primary::new(4);
    let dir = tempfile::tempdir().unwrap();
    copy_database(&primary.storage, dir.path());
    let overtaken = Arc::<Overtaken>::default();
    let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::<Overtaken>::clone(&overtaken));
    let (bob, _) =
        Storage::open_standby_on(Arc::new(disk), dir.path(), options(), StandbyOptions::default()).unwrap();
    bob.start_replay(Arc::<Observer>::default()).unwrap();
    let mut to_bob = Sender::new(&primary.storage, &bob);
    primary.commit(&[0, 1], 1);
    to_bob.catch_up();
    let fork = primary.end();
    primary
        .storage
        .wal
        .insert_any(RecordKind::NOTHING, Xid::INVALID, &[7; 100_000]);
    to_bob.send_up_to(Lsn(primary.end().0 - 8));
    let length = to_bob.receiver.position().0 - fork.0;
    drop(to_bob);
    thread::scope(|scope| {
        let reading = thread::Builder::new().name(FOLLOWER.to_owned());
        let reading = reading.spawn_scoped(scope, || {
            let _has_read = SetOnDrop(&overtaken.has_read);
            let mut bytes = vec![1; length as usize];
            let follower = bob.retention.follow(PROCESS_ID, fork, None).unwrap();
            let read = bob.read_timeline(&follower, 1, &mut bytes).unwrap();
            (read, bytes)
        });
        wait_for(&overtaken.reads);
        assert_eq!(bob.promote("a test").unwrap(), (2, fork));
        let (read, bytes) = reading.unwrap().join().unwrap();
        assert!(
            bytes.iter().all(|byte| *byte == 0),
            "it was overwritten before it was read"
        );
        assert_eq!(read, (0, false));
    });
    close(bob);
    primary.close();
}

/// Copies of a standby that replays, writes pages and makes restartpoints meanwhile. Each copy is consistent when it is
/// opened: of each two pages that are always changed together, both have the same number. Then it follows the standby.
#[test]
fn a_copy_of_a_standby_in_use_is_a_standby() {
    const PAIRS: u32 = 150;
    let primary = Primary::new(2 * PAIRS);
    let dir = tempfile::tempdir().unwrap();
    let bob = standby_of(&primary.storage, dir.path());
    let stop = AtomicBool::new(false);
    let committed = Mutex::new(Vec::new());
    let mut to_bob = Sender::new(&primary.storage, &bob);
    let mut copies = Vec::new();
    thread::scope(|scope| {
        let _stop = SetOnDrop(&stop);
        let (primary, committed, stop, to_bob) = (&primary, &committed, &stop, &mut to_bob);
        scope.spawn(move || {
            let mut number = 0;
            while !stop.load(Ordering::Relaxed) {
                number += 1;
                let pair = (number * 31 % u64::from(PAIRS)) as u32;
                let xid = primary.commit(&[2 * pair, 2 * pair + 1], number);
                committed.lock().unwrap().push(xid);
                if number % 400 == 0 {
                    primary.storage.checkpoint().unwrap();
                }
                if number % 16 == 0 {
                    primary.end();
                    to_bob.send(3_000);
                }
            }
        });
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                bob.checkpoint().unwrap();
                thread::sleep(Duration::from_millis(3));
            }
        });
        for _ in 0..5 {
            let dir = tempfile::tempdir().unwrap();
            copy_database(&bob, dir.path());
            let error = Storage::open(dir.path(), options()).unwrap_err();
            assert!(matches!(error, StorageError::IsStandby { .. }), "{error}");
            let carol = open_standby(dir.path());
            for pair in 0..PAIRS {
                let numbers = [0, 1].map(|side| read(&carol, primary.rel, 2 * pair + side));
                assert_eq!(numbers[0], numbers[1], "pages of pair {pair}");
            }
            // Its end may be in the middle of a record: it is not waited for.
            Sender::new(&bob, &carol).send(64 << 10);
            copies.push((dir, carol));
        }
    });
    to_bob.catch_up();
    let committed = committed.into_inner().unwrap();
    assert!(committed.len() > 1_000, "{}", committed.len());
    for (_dir, carol) in copies {
        let mut to_carol = Sender::new(&bob, &carol);
        to_carol.catch_up();
        assert_same_contents(&carol, &primary.storage);
        assert!(committed.iter().all(|xid| sees(&carol, *xid)));
        drop(to_carol);
        close(carol);
    }
    drop(to_bob);
    close(bob);
    primary.close();
}

/// A page of the commit log that is being written while it is copied is read again, in whatever pieces it is asked for. One
/// that stays damaged is an error.
#[test]
fn pages_of_a_standbys_commit_log_are_copied_whole() {
    let primary = Primary::new(2);
    let dir = tempfile::tempdir().unwrap();
    let bob = standby_of(&primary.storage, dir.path());
    let mut to_bob = Sender::new(&primary.storage, &bob);
    primary.commit(&[0], 1);
    primary.storage.checkpoint().unwrap();
    to_bob.catch_up();
    let backup = Backup::begin(&bob, PROCESS_ID).unwrap();
    let path = dir.path().join("base").join(RelId::COMMIT_LOG.0.to_string());
    let whole = std::fs::read(&path).unwrap();
    assert!(whole[..PAGE_SIZE].iter().any(|byte| *byte != 0));
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let copy = backup.open_relation(RelId::COMMIT_LOG).unwrap().unwrap();
    assert_eq!(copy.length, whole.len() as u64);
    for delay in [0, 20, 60] {
        file.write_all_at(&[0xEE; 512], 4_096).unwrap();
        let copy = backup.open_relation(RelId::COMMIT_LOG).unwrap().unwrap();
        let copied = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut bytes = vec![0; whole.len()];
                for (number, piece) in bytes.chunks_mut(1_000).enumerate() {
                    copy.read_at(piece, number as u64 * 1_000).unwrap();
                }
                bytes
            });
            thread::sleep(Duration::from_millis(delay));
            file.write_all_at(&whole[4_096..4_608], 4_096).unwrap();
            reader.join().unwrap()
        });
        assert!(copied == whole, "after {delay} ms");
    }
    file.write_all_at(&[0xEE; 512], 4_096).unwrap();
    let copy = backup.open_relation(RelId::COMMIT_LOG).unwrap().unwrap();
    let error = copy.read_at(&mut [0; 100], 0).unwrap_err();
    assert!(matches!(error, StorageError::CorruptPage { .. }), "{error}");
    drop(backup);
    drop(to_bob);
    close(bob);
    primary.close();
}

#[test]
fn a_promotion_ends_a_backup_with_an_error() {
    let primary = Primary::new(2);
    let dir = tempfile::tempdir().unwrap();
    let bob = standby_of(&primary.storage, dir.path());
    let backup = Backup::begin(&bob, PROCESS_ID).unwrap();
    assert!(backup.open_relation(primary.rel).unwrap().is_some());
    let whole = Backup::begin(&bob, PROCESS_ID).unwrap();
    let end = whole.finish().unwrap();
    bob.promote("a test").unwrap();
    for error in [
        backup.open_relation(primary.rel).map(drop).unwrap_err(),
        backup.finish().map(drop).unwrap_err(),
    ] {
        assert!(
            error.to_string().contains("promoted during the base backup"),
            "{error}"
        );
        assert_eq!(error.sqlstate(), "55000");
    }
    // One that had its end before goes on with its log.
    assert_eq!(whole.segments(end.position).len(), 1);
    assert!(whole.segments(end.position)[0].0.starts_with("00000001"));
    assert!(Backup::begin(&bob, PROCESS_ID).is_ok(), "of a primary");
    close(bob);
    primary.close();
}

/// Pages cannot be written any more once there is a second timeline: the checkpoint of the promotion fails.
#[derive(Debug)]
struct FullDisk(std::path::PathBuf);

impl Faults for FullDisk {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        let is_page = operation == Operation::Write && path.starts_with(self.0.join("base"));
        if is_page && self.0.join("pg_wal/00000002.history").exists() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

/// The directory is a primary's, but the server that has promoted it is not one: it does not receive into it, and does not
/// promote it again, which would overwrite its log. A start as a primary has everything.
#[test]
fn a_promotion_without_its_checkpoint_is_not_repeated() {
    let primary = Primary::new(8);
    let dir = tempfile::tempdir().unwrap();
    copy_database(&primary.storage, dir.path());
    let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::new(FullDisk(dir.path().to_owned())));
    let (bob, _) =
        Storage::open_standby_on(Arc::new(disk), dir.path(), options(), StandbyOptions::default()).unwrap();
    bob.start_replay(Arc::<Observer>::default()).unwrap();
    let mut to_bob = Sender::new(&primary.storage, &bob);
    let committed = primary.commit(&[0, 1, 2], 9);
    to_bob.catch_up();
    let fork = to_bob.receiver.position();
    drop(to_bob);
    let way_out = |error: StorageError| {
        assert!(error.to_string().contains("clearway serve --data"), "{error}");
        assert_eq!(error.sqlstate(), "55000");
        error.to_string()
    };
    let failed = way_out(bob.promote("a test").unwrap_err());
    assert!(failed.contains("nothing is lost"), "{failed}");
    assert_eq!(bob.standby().unwrap().unfinished_promotion(), Some((2, fork)));
    assert!(bob.is_standby());
    let log = |storage: &Storage| {
        let mut bytes = vec![0; 4_096];
        storage.wal.device().read(fork.0, &mut bytes).unwrap();
        bytes
    };
    let before = log(&bob);
    way_out(bob.promote("a test").unwrap_err());
    way_out(bob.receive_log().map(drop).unwrap_err());
    assert!(Backup::begin(&bob, PROCESS_ID).is_err());
    assert_eq!(bob.durable_log_end(), fork);
    assert!(log(&bob) == before, "its log is as it was");
    assert_eq!(bob.timeline(), 2);
    assert!(sees(&bob, committed), "it answers reads");
    bob.shutdown().unwrap();
    drop(bob);
    let (bob, _) = Storage::open(dir.path(), options()).unwrap();
    assert_eq!(bob.timeline(), 2);
    assert!(sees(&bob, committed));
    assert_eq!(read(&bob, primary.rel, 2), 9);
    close(bob);
    primary.close();
}

/// A second timeline cannot be begun.
#[derive(Debug)]
struct NoSecondTimeline;

impl Faults for NoSecondTimeline {
    fn before(&self, _operation: Operation, path: &Path) -> io::Result<()> {
        if path.to_string_lossy().contains("00000002.history") {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

/// Its promotion has failed, so bob can be opened again as a standby. What runs on the primary runs for its readers: one
/// that took it for rolled back would mark its rows so, and then its commit comes.
#[test]
fn what_runs_on_the_primary_runs_on_after_a_promotion_that_failed() {
    let primary = Primary::new(8);
    let dir = tempfile::tempdir().unwrap();
    copy_database(&primary.storage, dir.path());
    let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::new(NoSecondTimeline));
    let (bob, _) =
        Storage::open_standby_on(Arc::new(disk), dir.path(), options(), StandbyOptions::default()).unwrap();
    bob.start_replay(Arc::<Observer>::default()).unwrap();
    let mut to_bob = Sender::new(&primary.storage, &bob);
    let other = primary.storage.proc_array.attach().unwrap();
    let running = primary.storage.assign_xid(other).unwrap();
    // All xids before that of a record have begun.
    primary.commit(&[0], 9);
    primary.end();
    to_bob.catch_up();
    drop(to_bob);
    bob.promote("a test").unwrap_err();
    assert_eq!(bob.standby().unwrap().unfinished_promotion(), None);
    let proc = bob.proc_array.attach().unwrap();
    let mut snapshot = Snapshot::default();
    bob.take_snapshot(proc, &mut snapshot);
    assert_eq!(
        snapshot.state(running, &bob.commit_log).unwrap(),
        TransactionState::Running
    );
    bob.proc_array.clear_xmin(proc);
    close(bob);
    primary.close();
}
