//! A standby checks what it receives before it acknowledges it: log that was changed on its way or on its own disk, and a disk
//! that is full while it replays.

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_machine::{Switch, WaitEvent};
use clearway_storage::background::BackgroundKind;
use clearway_storage::disk::{Disk, Faults, FaultyDisk, NativeDisk, Operation};
use clearway_storage::standby::{LogReceiver, ReplayVariant};
use clearway_storage::wal::link::LogLink;
use clearway_storage::wal::record::{self, RecordKind};
use clearway_storage::wal::{LogDevice, SEGMENT_SIZE};
use clearway_storage::{Lsn, RelId, StandbyOptions, Storage, StorageError, StorageOptions};
use clearway_txn::{ProcId, Xid};
use crash::crash;
use proptest::prelude::*;
use standby_copy::{NUMBER, Observer, assert_same_contents, copy_database, numbered_pages};

const PATIENCE: Duration = Duration::from_secs(60);

fn options() -> StorageOptions {
    chosen::small_database(16)
}

/// A primary with a relation, and the session that writes.
struct Primary {
    _dir: tempfile::TempDir,
    storage: Arc<Storage>,
    rel: RelId,
    alice: ProcId,
}

impl Primary {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (storage, _) = Storage::open(dir.path(), options()).unwrap();
        let rel = numbered_pages(&storage, 4);
        let alice = storage.proc_array.attach().unwrap();
        Self {
            _dir: dir,
            storage,
            rel,
            alice,
        }
    }

    /// Transactions that write, beside records of some lengths; the log's end.
    fn log(&self, numbers: std::ops::Range<u64>) -> Lsn {
        for number in numbers {
            let xid = self.storage.assign_xid(self.alice).unwrap();
            let mut change = self.storage.begin_change(xid).unwrap();
            let block = (number % 4) as u32;
            let page = self
                .storage
                .pin(clearway_storage::PageId { rel: self.rel, block });
            let mut page = page.unwrap().into_exclusive();
            change.write(&mut page, NUMBER, &number.to_le_bytes());
            change.finish().unwrap();
            drop(page);
            let filler = vec![number as u8; (number * 37 % 500) as usize];
            let (nothing, no_xid) = (RecordKind::NOTHING, Xid::INVALID);
            self.storage.wal.insert_any(nothing, no_xid, &filler);
            self.storage.commit(self.alice, xid, false).unwrap();
        }
        let end = self.storage.wal.reserved();
        self.storage.wal.flush(end);
        end
    }

    fn read(&self, from: Lsn, to: Lsn) -> Vec<u8> {
        let mut bytes = vec![0; (to.0 - from.0) as usize];
        let read = self.storage.wal.device().read(from.0, &mut bytes).unwrap();
        assert_eq!(read, bytes.len());
        bytes
    }

    /// Sends what the receiver lacks.
    fn send(&self, receiver: &mut LogReceiver, to: Lsn) {
        let bytes = self.read(receiver.position(), to);
        for piece in bytes.chunks(10_000) {
            receiver.write(receiver.position(), piece).unwrap();
            receiver.sync().unwrap();
        }
    }
}

fn open(disk: Arc<dyn Disk>, dir: &Path, standby: StandbyOptions) -> Result<Arc<Storage>, StorageError> {
    Ok(Storage::open_standby_on(disk, dir, options(), standby)?.0)
}

fn open_natively(dir: &Path) -> Arc<Storage> {
    open(Arc::new(NativeDisk), dir, chosen::standby()).unwrap()
}

fn start_replay(storage: &Arc<Storage>) {
    storage.start_replay(Arc::<Observer>::default()).unwrap();
}

#[track_caller]
fn await_replay(storage: &Storage, end: Lsn) {
    let standby = storage.standby().unwrap();
    assert!(
        standby.wait_replayed(end, PATIENCE),
        "replay is at {}, not at {end}: {:?}",
        standby.replayed(),
        standby.failure()
    );
}

/// A connection's fault in a stretch of log.
#[derive(Debug, Clone)]
enum Fault {
    Flip { at: usize, bit: u8 },
    Drop { at: usize, count: usize },
    Repeat { at: usize, count: usize },
    Swap { at: usize, count: usize },
}

impl Fault {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let length = bytes.len();
        let part = |at: usize, count: usize| (at % length)..(at % length + count).min(length);
        match *self {
            Fault::Flip { at, bit } => bytes[at % length] ^= 1 << bit,
            Fault::Drop { at, count } => drop(bytes.drain(part(at, count))),
            Fault::Repeat { at, count } => {
                let part = part(at, count);
                let repeated = bytes[part.clone()].to_vec();
                bytes.splice(part.end..part.end, repeated);
            }
            Fault::Swap { at, count } => {
                let part = part(at, 2 * count);
                let middle = part.len() / 2;
                bytes[part].rotate_left(middle);
            }
        }
    }
}

fn fault() -> impl Strategy<Value = Fault> {
    let (at, count) = (any::<usize>(), 1_usize..300);
    prop_oneof![
        (any::<usize>(), 0..8_u8).prop_map(|(at, bit)| Fault::Flip { at, bit }),
        (at, count.clone()).prop_map(|(at, count)| Fault::Drop { at, count }),
        (at, count.clone()).prop_map(|(at, count)| Fault::Repeat { at, count }),
        (at, count).prop_map(|(at, count)| Fault::Swap { at, count }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3, ..ProptestConfig::default() })]

    /// The link changes bytes, loses, repeats and reorders some, and sends pieces of any length. What is acknowledged is the
    /// primary's log, byte for byte, and with each fault it is asked for again the standby ends with all of it.
    #[test]
    fn changed_log_is_never_acknowledged_and_is_asked_for_again(
        faults in prop::collection::vec((fault(), 1_usize..4_000), 40)
    ) {
        let primary = Primary::new();
        let dir = tempfile::tempdir().unwrap();
        copy_database(&primary.storage, dir.path());
        let storage = open_natively(dir.path());
        start_replay(&storage);
        let mut receiver = storage.receive_log().unwrap();
        let began = receiver.checked();
        let mut number = 0;
        for (fault, piece) in &faults {
            let end = primary.log(number..number + 5);
            number += 5;
            let mut bytes = primary.read(receiver.position(), end);
            fault.apply(&mut bytes);
            for piece in bytes.chunks(*piece) {
                let written = receiver.write(receiver.position(), piece);
                receiver.sync().unwrap();
                if let Err(error) = written {
                    let is_at = match error {
                        StorageError::DamagedRecord { position } | StorageError::UnlinkedRecord { position } => {
                            position == receiver.position()
                        }
                        _ => false,
                    };
                    prop_assert!(is_at, "{error}");
                    break;
                }
            }
            let checked = receiver.checked();
            let mut kept = vec![0; (checked.0 - began.0) as usize];
            storage.wal.device().read(began.0, &mut kept).unwrap();
            prop_assert!(kept == primary.read(began, checked), "{fault:?}");
            // Nothing more comes.
            receiver.give_up_part();
            prop_assert_eq!(receiver.position(), checked);
            prop_assert_eq!(storage.standby().unwrap().received(), checked);
        }
        let end = primary.log(number..number + 5);
        primary.send(&mut receiver, end);
        prop_assert_eq!(receiver.checked(), end);
        await_replay(&storage, end);
        assert_same_contents(&storage, &primary.storage);
        drop(receiver);
        prop_assert_eq!(storage.promote("a test").unwrap().1, end);
        crash(storage);
        crash(primary.storage);
    }
}

/// The standby follows its primary and is connected to another copy of it then, which was written to: the records are whole
/// and in their places, and do not continue what the standby has. None of them is written or acknowledged, also after a restart.
#[test]
fn log_of_another_copy_is_refused_at_its_first_record() {
    let primary = Primary::new();
    let dir = tempfile::tempdir().unwrap();
    copy_database(&primary.storage, dir.path());
    let mut storage = open_natively(dir.path());
    let before = primary.log(0..3);
    let end = primary.log(3..6);
    for is_restarted in [false, true] {
        start_replay(&storage);
        let mut receiver = storage.receive_log().unwrap();
        primary.send(&mut receiver, before);
        let mut others = primary.read(before, end);
        record::enter_links(&mut others, LogLink(1));
        for piece in [others.len(), 100] {
            let refused = others.chunks(piece).find_map(|piece| {
                let written = receiver.write(receiver.position(), piece);
                receiver.sync().unwrap();
                written.err()
            });
            assert!(
                matches!(refused, Some(StorageError::UnlinkedRecord { position }) if position == before),
                "restarted: {is_restarted}, pieces of {piece}: {refused:?}"
            );
            assert_eq!((receiver.position(), receiver.checked()), (before, before));
        }
        drop(receiver);
        await_replay(&storage, before);
        if !is_restarted {
            crash(storage);
            storage = open_natively(dir.path());
        }
    }
    let mut receiver = storage.receive_log().unwrap();
    primary.send(&mut receiver, end);
    await_replay(&storage, end);
    assert_same_contents(&storage, &primary.storage);
    drop(receiver);
    crash(storage);
    crash(primary.storage);
}

/// A part of a record counts as received, and not as acknowledged; another receiver goes on with it.
#[test]
fn a_part_of_a_record_is_not_acknowledged() {
    let primary = Primary::new();
    let dir = tempfile::tempdir().unwrap();
    copy_database(&primary.storage, dir.path());
    let storage = open_natively(dir.path());
    start_replay(&storage);
    let mut receiver = storage.receive_log().unwrap();
    let before = primary.log(0..3);
    primary.send(&mut receiver, before);
    let long = &[7; 50_000];
    primary
        .storage
        .wal
        .insert_any(RecordKind::NOTHING, Xid::INVALID, long);
    let end = primary.log(3..4);
    primary.send(&mut receiver, Lsn(before.0 + 20_000));
    assert_eq!(
        (receiver.position(), receiver.checked()),
        (Lsn(before.0 + 20_000), before)
    );
    drop(receiver);
    let mut receiver = storage.receive_log().unwrap();
    assert_eq!(
        (receiver.position(), receiver.checked()),
        (Lsn(before.0 + 20_000), before)
    );
    primary.send(&mut receiver, end);
    assert_eq!(receiver.checked(), end);
    await_replay(&storage, end);
    drop(receiver);
    crash(storage);
    crash(primary.storage);
}

/// Changes a byte of the log in `dir`, as a disk does.
fn damage(dir: &Path, position: Lsn) {
    let mut names: Vec<_> = dir
        .join("pg_wal")
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    let number = format!("{:08X}", position.0 / SEGMENT_SIZE % 256);
    let path = names
        .iter()
        .find(|path| path.to_string_lossy().ends_with(&number))
        .unwrap();
    let file = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let (mut byte, offset) = ([0], position.0 % SEGMENT_SIZE);
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
}

/// The disk of a standby changes a byte of log that was acknowledged and not replayed. Replay fails there, and the standby
/// is not promoted. Nor is it after a restart, when its log seems to end there: only once it has that log again.
#[test]
fn a_standby_whose_own_log_is_damaged_is_not_promoted() {
    // The second byte makes the record longer than the log.
    for (byte, is_sent_again) in [(40, true), (2, false)] {
        let primary = Primary::new();
        let dir = tempfile::tempdir().unwrap();
        copy_database(&primary.storage, dir.path());
        let storage = open_natively(dir.path());
        let mut receiver = storage.receive_log().unwrap();
        let bad = primary.log(0..5);
        let end = primary.log(5..50);
        primary.send(&mut receiver, end);
        assert_eq!(receiver.checked(), end);
        drop(receiver);
        damage(dir.path(), Lsn(bad.0 + byte));
        start_replay(&storage);
        let deadline = Instant::now() + PATIENCE;
        while storage.standby().unwrap().failure().is_none() {
            assert!(Instant::now() < deadline, "it is replayed");
            thread::sleep(Duration::from_millis(2));
        }
        assert_eq!(storage.standby().unwrap().replayed(), bad);
        let error = storage.promote("a test").unwrap_err();
        assert!(error.to_string().contains("replay has failed"), "{error}");
        crash(storage);

        let storage = open_natively(dir.path());
        start_replay(&storage);
        assert_eq!(storage.standby().unwrap().replayed(), bad);
        let error = storage.promote("a test").unwrap_err();
        let is_lost = matches!(error, StorageError::AcknowledgedLogLost { whole, acknowledged, .. }
            if whole == bad && acknowledged == end);
        assert!(is_lost, "{error}");
        if is_sent_again {
            let mut receiver = storage.receive_log().unwrap();
            assert_eq!(receiver.position(), bad);
            // Some of it is not enough.
            primary.send(&mut receiver, Lsn(bad.0 + 2_000));
            drop(receiver);
            storage.promote("a test").unwrap_err();
            let mut receiver = storage.receive_log().unwrap();
            primary.send(&mut receiver, end);
            drop(receiver);
            assert_eq!(storage.promote("a test").unwrap().1, end);
            assert_same_contents(&storage, &primary.storage);
        } else {
            // Its owner accepts the loss.
            crash(storage);
            std::fs::remove_file(dir.path().join("acknowledged")).unwrap();
            let storage = open_natively(dir.path());
            start_replay(&storage);
            assert_eq!(storage.promote("a test").unwrap().1, bad);
            crash(storage);
            crash(primary.storage);
            continue;
        }
        crash(storage);
        crash(primary.storage);
    }
}

/// A disk that has no more room for relations while its flag is set.
#[derive(Debug, Default)]
struct Full(AtomicBool);

impl Faults for Full {
    fn before(&self, operation: Operation, path: &Path) -> io::Result<()> {
        let takes_room = matches!(operation, Operation::Allocate(_) | Operation::Write);
        let is_relation = path.parent().is_some_and(|directory| directory.ends_with("base"));
        if takes_room && is_relation && self.0.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

/// Event that is shown for the thread that replays.
fn replay_waits_for(storage: &Storage) -> WaitEvent {
    let threads = storage.background.all();
    let replay = threads
        .iter()
        .find(|thread| thread.kind == BackgroundKind::Replay);
    storage.background_wait(replay.expect("the thread that replays is shown"))
}

/// The disk is full while tables grow. Replay waits, sessions read, log is received; no promotion leaves log out. With room
/// it goes on.
#[test]
fn replay_waits_for_room_on_the_disk() {
    for &replay in ReplayVariant::ALL {
        let primary = Primary::new();
        let dir = tempfile::tempdir().unwrap();
        copy_database(&primary.storage, dir.path());
        let full = Arc::<Full>::default();
        let disk = FaultyDisk::new(Arc::new(NativeDisk), Arc::<Full>::clone(&full));
        let standby = StandbyOptions {
            replay,
            ..chosen::standby()
        };
        let storage = open(Arc::new(disk), dir.path(), standby).unwrap();
        start_replay(&storage);
        let mut receiver = storage.receive_log().unwrap();
        let before = primary.log(0..20);
        primary.send(&mut receiver, before);
        await_replay(&storage, before);

        full.0.store(true, Ordering::Relaxed);
        // More than the pool holds: pages have to be written, too.
        let grown = numbered_pages(&primary.storage, 400);
        let end = primary.log(20..40);
        primary.send(&mut receiver, end);
        let following = storage.standby().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while following.waits_for_room().is_none() {
            assert_eq!(following.failure(), None);
            assert!(Instant::now() < deadline, "it finds room");
            thread::sleep(Duration::from_millis(2));
        }
        let later = primary.log(40..60);
        primary.send(&mut receiver, later);
        assert_eq!((following.received(), following.failure()), (later, None));
        assert!(following.replayed() < end);
        assert_eq!(replay_waits_for(&storage), WaitEvent::RecoveryRoom);
        let page = storage
            .pin(clearway_storage::PageId {
                rel: primary.rel,
                block: 0,
            })
            .unwrap();
        assert_eq!(
            page.shared().bytes()[NUMBER],
            16,
            "what was replayed before is read"
        );
        drop(page);
        drop(receiver);
        let error = storage.promote("a test").unwrap_err();
        assert!(error.to_string().contains("waits for room"), "{error}");

        full.0.store(false, Ordering::Relaxed);
        await_replay(&storage, later);
        assert_eq!(following.waits_for_room(), None);
        assert_eq!(storage.block_count(grown).unwrap(), 400);
        assert_same_contents(&storage, &primary.storage);
        assert_eq!(storage.promote("a test").unwrap().1, later);
        crash(storage);
        crash(primary.storage);
    }
}

/// A start that finds no room for what it has to replay says so; a stop of a standby that waits for room is not held up.
#[test]
fn a_standby_that_waits_for_room_stops() {
    let primary = Primary::new();
    let dir = tempfile::tempdir().unwrap();
    copy_database(&primary.storage, dir.path());
    let full = Arc::<Full>::default();
    let disk: Arc<dyn Disk> = Arc::new(FaultyDisk::new(Arc::new(NativeDisk), Arc::<Full>::clone(&full)));
    let storage = open(Arc::clone(&disk), dir.path(), chosen::standby()).unwrap();
    start_replay(&storage);
    full.0.store(true, Ordering::Relaxed);
    numbered_pages(&primary.storage, 400);
    let end = primary.log(0..5);
    let mut receiver = storage.receive_log().unwrap();
    primary.send(&mut receiver, end);
    let deadline = Instant::now() + PATIENCE;
    while storage.standby().unwrap().waits_for_room().is_none() {
        assert!(Instant::now() < deadline, "it finds room");
        thread::sleep(Duration::from_millis(2));
    }
    drop(receiver);
    crash(storage);
    let error = open(Arc::clone(&disk), dir.path(), chosen::standby()).unwrap_err();
    assert_eq!(error.sqlstate(), "53100", "{error}");
    full.0.store(false, Ordering::Relaxed);
    let storage = open(disk, dir.path(), chosen::standby()).unwrap();
    assert_eq!(storage.standby().unwrap().replayed(), end);
    assert_same_contents(&storage, &primary.storage);
    crash(storage);
    crash(primary.storage);
}
