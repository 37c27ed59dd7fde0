//! A standby's storage: it follows, restarts, and is promoted; readers see whole changes; replay waits for snapshots.
//!
//! Mutations that these tests have caught are listed in `crates/storage/mutations/standby.toml`.

#![expect(
    clippy::disallowed_methods,
    reason = "a test asks what a snapshot sees, and tells no client"
)]

#[path = "support/chosen.rs"]
mod chosen;
#[path = "support/crash.rs"]
mod crash;
#[path = "support/set_on_drop.rs"]
mod set_on_drop;
#[path = "support/standby_copy.rs"]
mod standby_copy;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_machine::Switch;
use clearway_storage::standby::{Conflict, ReplayVariant};
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{
    PAGE_SIZE, PageId, PageKind, RelId, Standby, StandbyOptions, Storage, StorageOptions,
};
use clearway_txn::{KnownXidsVariant, ProcId, Snapshot, Status, Xid};
use crash::crash;
use set_on_drop::SetOnDrop;
use standby_copy::{NUMBER, Observer, Sender, assert_same_contents, copy_database, numbered_pages};

fn options() -> StorageOptions {
    chosen::small_database(16)
}

fn each_replay() -> impl Iterator<Item = StandbyOptions> + Clone {
    ReplayVariant::ALL.iter().map(|&replay| StandbyOptions {
        replay,
        ..StandbyOptions::default()
    })
}

fn read(storage: &Storage, rel: RelId, block: u32) -> u64 {
    let page = storage.pin(PageId { rel, block }).unwrap();
    let shared = page.shared();
    let bytes: &[u8; PAGE_SIZE] = shared.bytes();
    u64::from_le_bytes(bytes[NUMBER..NUMBER + 8].try_into().unwrap())
}

/// A primary with a relation of `pages` pages that hold 0, and its session Alice.
struct Primary {
    _dir: tempfile::TempDir,
    storage: Arc<Storage>,
    rel: RelId,
    alice: ProcId,
}

impl Primary {
    fn new(pages: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (storage, _) = Storage::open(dir.path(), options()).unwrap();
        let rel = numbered_pages(&storage, pages);
        let alice = storage.proc_array.attach().unwrap();
        Self {
            _dir: dir,
            storage,
            rel,
            alice,
        }
    }

    /// One change that writes `number` to each of these pages, by `xid`.
    fn write(&self, xid: Xid, blocks: &[u32], number: u64) {
        self.write_at(xid, blocks, NUMBER, number);
    }

    /// The same at another place on the pages.
    fn write_at(&self, xid: Xid, blocks: &[u32], offset: usize, number: u64) {
        let mut change = self.storage.begin_change(xid).unwrap();
        let pinned: Vec<_> = blocks
            .iter()
            .map(|&block| self.storage.pin(PageId { rel: self.rel, block }).unwrap())
            .collect();
        let mut pages: Vec<_> = pinned.into_iter().map(|page| page.into_exclusive()).collect();
        for page in &mut pages {
            change.write(page, offset, &number.to_le_bytes());
        }
        change.finish().unwrap();
    }

    /// A transaction that writes `number` to each of these pages.
    fn commit(&self, blocks: &[u32], number: u64) -> Xid {
        let xid = self.storage.assign_xid(self.alice).unwrap();
        self.write(xid, blocks, number);
        self.storage.commit(self.alice, xid, false).unwrap();
        xid
    }

    /// A standby in `dir`, which is a copy made now; its replay has begun.
    fn standby(&self, dir: &Path, options: StandbyOptions) -> (Arc<Storage>, Arc<Observer>) {
        copy_database(&self.storage, dir);
        open_standby(dir, options)
    }
}

fn open_standby(dir: &Path, standby: StandbyOptions) -> (Arc<Storage>, Arc<Observer>) {
    let (storage, _) = Storage::open_standby(dir, options(), standby).unwrap();
    let observer = Arc::new(Observer::default());
    storage.start_replay(observer.clone()).unwrap();
    (storage, observer)
}

/// A primary as [`Primary::new`]'s, its standby and where that is, and what sends the log of the one to the other.
fn pair(pages: u32, standby: StandbyOptions) -> (Primary, tempfile::TempDir, Arc<Storage>, Sender) {
    let primary = Primary::new(pages);
    let dir = tempfile::tempdir().unwrap();
    let (copy, _) = primary.standby(dir.path(), standby);
    let sender = Sender::new(&primary.storage, &copy);
    (primary, dir, copy, sender)
}

fn standby_of(storage: &Storage) -> &Standby {
    storage.standby().unwrap()
}

fn sees(storage: &Storage, proc: ProcId, xid: Xid) -> bool {
    let mut snapshot = Snapshot::default();
    storage.take_snapshot(proc, &mut snapshot);
    let sees = snapshot.sees(xid, &storage.commit_log).unwrap();
    storage.proc_array.clear_xmin(proc);
    sees
}

/// Pages and commits arrive; new relations and pages too; what runs or was rolled back is not seen.
#[test]
fn a_standby_has_what_its_primary_has_sent() {
    for (&known_xids, standby) in KnownXidsVariant::ALL
        .iter()
        .cycle()
        .zip(each_replay().cycle())
        .take(10)
    {
        let primary = Primary::new(20);
        primary.commit(&[0], 1);
        let dir = tempfile::tempdir().unwrap();
        let (copy, _) = primary.standby(
            dir.path(),
            StandbyOptions {
                known_xids,
                ..standby
            },
        );
        assert_eq!(read(&copy, primary.rel, 0), 1);
        let bob = copy.proc_array.attach().unwrap();
        let mut sender = Sender::new(&primary.storage, &copy);
        let committed = primary.commit(&[1, 2, 3], 7);
        let running = primary.storage.assign_xid(primary.alice).unwrap();
        primary.write(running, &[4], 9);
        let carol = primary.storage.proc_array.attach().unwrap();
        let undone = primary.storage.assign_xid(carol).unwrap();
        primary.write(undone, &[5], 9);
        primary.storage.abort(carol, undone).unwrap();
        let made = primary.storage.create_rel().unwrap();
        for _ in 0..3 {
            let page = primary.storage.extend(made).unwrap();
            let mut change = primary.storage.begin_change(running).unwrap();
            let mut page = page.into_exclusive();
            change.init_page(&mut page, PageKind(77), 8);
            change.finish().unwrap();
        }
        sender.catch_up();
        assert_same_contents(&copy, &primary.storage);
        assert!(sees(&copy, bob, committed));
        assert!(!sees(&copy, bob, running) && !sees(&copy, bob, undone));
        assert_eq!(copy.status(undone).unwrap(), Status::Aborted);
        primary.storage.commit(primary.alice, running, false).unwrap();
        assert!(!sees(&copy, bob, running), "nothing was sent");
        sender.catch_up();
        assert!(sees(&copy, bob, running));
        assert!(standby_of(&copy).replayed_commit_time_us().is_some());
        crash(copy);
        crash(primary.storage);
    }
}

/// The primary changes two pages at once, again and again. A reader that looks at one page and then at the other never
/// finds an older number on the second.
#[test]
fn readers_see_no_half_of_a_change() {
    for standby in each_replay() {
        let (primary, _dir, copy, mut sender) = pair(8, standby);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stop = SetOnDrop(&stop);
            for (first, second) in [(0, 1), (1, 0), (2, 5), (5, 2)] {
                let (copy, stop, rel) = (&copy, &stop, primary.rel);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let before = read(copy, rel, first);
                        let after = read(copy, rel, second);
                        assert!(
                            before <= after,
                            "page {first} had {before}, page {second} then {after}"
                        );
                    }
                });
            }
            for number in 1..=3_000 {
                primary.commit(&[0, 1], number);
                primary.commit(&[2, 5], number);
                primary.commit(&[7], number);
                if number % 20 == 0 {
                    primary.storage.wal.flush(primary.storage.wal.reserved());
                    sender.send(4 << 10);
                }
            }
            sender.catch_up();
        });
        assert_eq!(read(&copy, primary.rel, 5), 3_000);
        crash(copy);
        crash(primary.storage);
    }
}

/// Changes of one page and of several, each at a place of its own on them, in long stretches of log: each change is there
/// afterwards, whichever workers have made it and in whichever order.
#[test]
fn no_change_is_lost() {
    for workers in [1, 2, 3, 5] {
        let standby = StandbyOptions {
            replay: ReplayVariant::Parallel,
            replay_workers: workers,
            ..StandbyOptions::default()
        };
        let (primary, _dir, copy, mut sender) = pair(40, standby);
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..4 {
            for number in 0..1_500_u64 {
                let mut blocks: Vec<u32> = (0..1 + random(3)).map(|_| random(40) as u32).collect();
                blocks.sort_unstable();
                blocks.dedup();
                primary.write_at(Xid::INVALID, &blocks, 64 + 5 * number as usize, number + 1);
            }
            primary.storage.wal.flush(primary.storage.wal.reserved());
            sender.send(1 << 20);
        }
        sender.catch_up();
        assert_same_contents(&copy, &primary.storage);
        crash(copy);
        crash(primary.storage);
    }
}

/// A commit is seen after its changes, also if other workers make these: a session that sees transaction n finds its
/// number, or a later one, on each of its pages.
#[test]
fn a_commit_is_seen_after_its_changes() {
    for standby in each_replay() {
        let (primary, _dir, copy, mut sender) = pair(64, standby);
        let bob = copy.proc_array.attach().unwrap();
        let mut xids = Vec::new();
        for round in 0..40_u64 {
            for number in 1..=25 {
                let at = (round * 25 + number) as u32;
                // Its changes are records of their own, on pages of several workers.
                let xid = primary.storage.assign_xid(primary.alice).unwrap();
                for block in [at % 64, (at * 7 + 3) % 64, (at * 31 + 11) % 64] {
                    primary.write(xid, &[block], u64::from(at));
                }
                primary.storage.commit(primary.alice, xid, false).unwrap();
                xids.push((xid, at));
            }
            primary.storage.wal.flush(primary.storage.wal.reserved());
            sender.send(3 << 10);
            for &(xid, at) in xids.iter().rev().take(60) {
                if sees(&copy, bob, xid) {
                    for block in [at % 64, (at * 7 + 3) % 64, (at * 31 + 11) % 64] {
                        let found = read(&copy, primary.rel, block);
                        assert!(
                            found >= u64::from(at),
                            "{xid} is seen, but page {block} has {found}, not {at}"
                        );
                    }
                }
            }
        }
        sender.catch_up();
        assert_same_contents(&copy, &primary.storage);
        crash(copy);
        crash(primary.storage);
    }
}

/// Log arrives in pieces that end anywhere within a record; the standby is dropped without a shutdown, and goes on where
/// its log ends. Restartpoints come in between.
#[test]
fn a_standby_goes_on_where_its_log_ends() {
    for standby in each_replay() {
        let primary = Primary::new(30);
        let dir = tempfile::tempdir().unwrap();
        copy_database(&primary.storage, dir.path());
        let mut last = Xid::INVALID;
        for round in 0..8_u64 {
            let (copy, _) = open_standby(dir.path(), standby);
            let mut sender = Sender::new(&primary.storage, &copy);
            for number in 0..40 {
                last = primary.commit(
                    &[(number * 7 + round as u32) % 29, 29],
                    round * 100 + u64::from(number),
                );
            }
            if round % 2 == 0 {
                // A page that nothing is written to yet: the checkpoint counts it, and no record makes it.
                drop(primary.storage.extend(primary.rel).unwrap());
                primary.storage.checkpoint().unwrap();
            }
            primary.storage.wal.flush(primary.storage.wal.reserved());
            sender.send(1_000 + 8 * round as usize);
            if round % 3 == 2 {
                sender.catch_up();
                // A restartpoint: a start would replay from where the primary's would.
                let before = copy.recovery_start();
                copy.checkpoint().unwrap();
                if round % 2 == 0 {
                    assert!(copy.recovery_start() > before);
                    assert_eq!(copy.recovery_start(), primary.storage.recovery_start());
                    assert!(copy.checkpoint_counts().pages.load(Ordering::Relaxed) > 0);
                }
            }
            drop(sender);
            crash(copy);
        }
        let (copy, _) = open_standby(dir.path(), standby);
        let bob = copy.proc_array.attach().unwrap();
        let mut sender = Sender::new(&primary.storage, &copy);
        sender.catch_up();
        assert_same_contents(&copy, &primary.storage);
        assert!(sees(&copy, bob, last));
        crash(copy);
        crash(primary.storage);
    }
}

/// Replay waits for a session whose snapshot may see what is going to be removed, then asks for its end, and goes on when
/// it is gone. A session with a newer snapshot is left alone.
#[test]
fn replay_waits_for_old_snapshots() {
    for standby in each_replay() {
        let standby = StandbyOptions {
            streaming_delay_max: Some(Duration::from_millis(300)),
            ..standby
        };
        let primary = Primary::new(4);
        let dir = tempfile::tempdir().unwrap();
        let (copy, observer) = primary.standby(dir.path(), standby);
        let mut sender = Sender::new(&primary.storage, &copy);
        let (bob, carol) = (
            copy.proc_array.attach().unwrap(),
            copy.proc_array.attach().unwrap(),
        );
        let mut old = Snapshot::default();
        copy.take_snapshot(bob, &mut old);
        let deleter = primary.commit(&[0], 1);
        sender.catch_up();
        let mut new = Snapshot::default();
        copy.take_snapshot(carol, &mut new);
        assert!(new.sees(deleter, &copy.commit_log).unwrap());
        primary
            .storage
            .wal
            .insert_any(RecordKind::CLEANUP, Xid::INVALID, &deleter.0.to_le_bytes());
        primary.commit(&[1], 5);
        primary.storage.wal.flush(primary.storage.wal.reserved());
        let began = Instant::now();
        let end = sender.send(64 << 10);
        assert!(!standby_of(&copy).wait_replayed(end, Duration::from_millis(100)));
        assert_eq!(read(&copy, primary.rel, 1), 0, "nothing behind is replayed");
        while observer.cancelled.lock().unwrap().is_empty() {
            assert!(began.elapsed() < Duration::from_secs(30), "it is never cancelled");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(!old.sees(deleter, &copy.commit_log).unwrap());
        copy.proc_array.clear_xmin(bob);
        assert!(standby_of(&copy).wait_replayed(end, Duration::from_secs(30)));
        let cancelled = observer.cancelled.lock().unwrap();
        assert!(
            cancelled
                .iter()
                .all(|cancel| *cancel == (bob, Conflict::Snapshot)),
            "{cancelled:?}"
        );
        drop(cancelled);
        // A new snapshot regards the deleter as ended.
        copy.take_snapshot(bob, &mut old);
        assert!(old.sees(deleter, &copy.commit_log).unwrap());
        crash(copy);
        crash(primary.storage);
    }
}

/// The primary removes what transaction after transaction has deleted; each removal leaves the deleter's xid on a page. A
/// session never finds one there that its snapshot may regard as running.
#[test]
fn nothing_is_removed_under_a_snapshot() {
    for standby in each_replay() {
        let standby = StandbyOptions {
            streaming_delay_max: None,
            ..standby
        };
        let (primary, _dir, copy, mut sender) = pair(2, standby);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let _stop = SetOnDrop(&stop);
            for _ in 0..3 {
                let (copy, stop, rel) = (&copy, &stop, primary.rel);
                scope.spawn(move || {
                    let proc = copy.proc_array.attach().unwrap();
                    let mut snapshot = Snapshot::default();
                    while !stop.load(Ordering::Relaxed) {
                        copy.take_snapshot(proc, &mut snapshot);
                        let xmin = copy.proc_array.xmin_of(proc).unwrap();
                        for _ in 0..3 {
                            let removed = read(copy, rel, 1);
                            assert!(removed < xmin.0, "{removed} is cleaned up under xmin {xmin}");
                            thread::yield_now();
                        }
                        copy.proc_array.clear_xmin(proc);
                    }
                });
            }
            for number in 1..=1_000_u64 {
                let deleter = primary.commit(&[0], number);
                let payload = deleter.0.to_le_bytes();
                primary
                    .storage
                    .wal
                    .insert_any(RecordKind::CLEANUP, Xid::INVALID, &payload);
                primary.write(Xid::INVALID, &[1], deleter.0);
                if number % 8 == 0 {
                    primary.storage.wal.flush(primary.storage.wal.reserved());
                    sender.send(4 << 10);
                }
            }
            sender.catch_up();
        });
        crash(copy);
        crash(primary.storage);
    }
}

/// After the promotion the standby hands out xids behind the primary's, what ran there has ended, and the directory opens
/// as a database of its own.
#[test]
fn a_promoted_standby_is_a_primary() {
    for standby in each_replay() {
        let (primary, dir, copy, mut sender) = pair(4, standby);
        let committed = primary.commit(&[0], 1);
        let running = primary.storage.assign_xid(primary.alice).unwrap();
        primary.write(running, &[1], 2);
        sender.catch_up();
        assert!(copy.promote("a test").is_err(), "it still receives");
        let end = sender.receiver.position();
        drop(sender);
        let (timeline, fork) = copy.promote("a test").unwrap();
        assert_eq!((timeline, fork), (2, end));
        assert!(!copy.is_standby());
        assert!(copy.receive_log().is_err());
        let bob = copy.proc_array.attach().unwrap();
        let xid = copy.assign_xid(bob).unwrap();
        assert!(xid > running);
        let mut change = copy.begin_change(xid).unwrap();
        let page = copy
            .pin(PageId {
                rel: primary.rel,
                block: 2,
            })
            .unwrap();
        let mut page = page.into_exclusive();
        change.write(&mut page, NUMBER, &8_u64.to_le_bytes());
        change.finish().unwrap();
        drop(page);
        copy.commit(bob, xid, true).unwrap();
        assert!(sees(&copy, bob, committed) && sees(&copy, bob, xid) && !sees(&copy, bob, running));
        crash(copy);
        let (again, _) = Storage::open(dir.path(), options()).unwrap();
        assert_eq!(again.timeline(), 2);
        let bob = again.proc_array.attach().unwrap();
        assert!(sees(&again, bob, committed) && sees(&again, bob, xid) && !sees(&again, bob, running));
        assert_eq!(read(&again, primary.rel, 2), 8);
        crash(again);
        crash(primary.storage);
    }
}

/// One who asks, while log is received, if the standby may be promoted is not told that log was lost.
///
/// Seen to fail with the two positions read one after the other (`AcknowledgedLogLost`, within some hundred looks).
#[test]
fn a_promotion_may_be_asked_for_while_log_is_received() {
    let standby = each_replay().next().unwrap();
    let (primary, _dir, copy, mut sender) = pair(4, standby);
    let ended = AtomicBool::new(false);
    let looks = thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut looks = 0;
            while !ended.load(Ordering::Acquire) {
                copy.check_promotion().unwrap();
                looks += 1;
            }
            looks
        });
        let end = SetOnDrop(&ended);
        for number in 0..300 {
            primary.commit(&[0, 1, 2, 3], number);
            sender.catch_up();
        }
        drop(end);
        looking.join().unwrap()
    });
    assert!(looks > 0);
    drop(sender);
    crash(copy);
    crash(primary.storage);
}

/// A record of an end whose time cannot be read ends replay with an error, as any other that makes no sense.
#[test]
fn an_end_without_a_time_is_malformed() {
    for (standby, kind) in each_replay().zip([RecordKind::COMMIT, RecordKind::ABORT].into_iter().cycle()) {
        let primary = Primary::new(2);
        let dir = tempfile::tempdir().unwrap();
        let (copy, _) = primary.standby(dir.path(), standby);
        let mut sender = Sender::new(&primary.storage, &copy);
        let xid = primary.storage.assign_xid(primary.alice).unwrap();
        primary.write(xid, &[0], 1);
        primary.storage.wal.insert_any(kind, xid, &[0; 7]);
        primary.storage.wal.flush(primary.storage.wal.reserved());
        let end = sender.send(64 << 10);
        let began = Instant::now();
        while standby_of(&copy).failure().is_none() {
            assert!(began.elapsed() < Duration::from_secs(30), "it is replayed");
            thread::sleep(Duration::from_millis(5));
        }
        let failure = standby_of(&copy).failure().unwrap();
        assert!(failure.contains(&format!("the {kind:?} record at")), "{failure}");
        assert!(standby_of(&copy).replayed() < end);
        crash(copy);
        crash(primary.storage);
    }
}
