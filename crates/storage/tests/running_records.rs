//! The record of running transactions: what a standby makes of it at any place of any history, and who logs it when.
//!
//! The histories are of shipped code: the array of running transactions, the record's form, `begin_set`, the known xids.
//! Only the log is a list.
//!
//! # Mutations seen to fail
//! `crates/storage/mutations/cleanup.toml` lists them. And a standby that begins with the newest xid it has met, without the
//! control file's `next_xid` (`highest_seen` below), makes `the_set_is_right_at_any_place_of_any_history` fail.

#[path = "support/chosen.rs"]
mod chosen;

use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use clearway_machine::{Native, Watchdog};
use clearway_storage::running_transactions::{self, RunningRecord};
use clearway_storage::wal::reader::LogReader;
use clearway_storage::wal::record::RecordKind;
use clearway_storage::{Lsn, Storage, StorageOptions};
use clearway_txn::{KnownXids, KnownXidsOptions, ProcArray, ProcArrayOptions, ProcId, RunningXids, Xid};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SESSIONS: u32 = 5;

/// A record of the list that stands for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logged {
    Change(Xid),
    Commit(Xid),
    Abort(Xid),
}

/// A session's transaction, by the steps of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Runs(Xid),
    /// The record of its end is in the log.
    Logged(Xid, Logged),
    /// And the commit log says so; it is still in the array.
    Entered(Xid),
}

/// A primary whose log is a list.
struct Primary {
    array: ProcArray<Native>,
    phases: Vec<Phase>,
    log: Vec<Logged>,
    /// The transactions in the commit log's pages.
    entered: Vec<Xid>,
}

impl Primary {
    fn new() -> Self {
        let array = ProcArray::new(SESSIONS, ProcArrayOptions::default(), Xid(100));
        for number in 0..SESSIONS {
            assert_eq!(array.attach(), Ok(ProcId(number)));
        }
        Self {
            array,
            phases: vec![Phase::Idle; SESSIONS as usize],
            log: Vec::new(),
            entered: Vec::new(),
        }
    }

    /// One session takes its next step.
    fn step(&mut self, random: &mut StdRng) {
        let session = random.random_range(0..SESSIONS);
        let proc = ProcId(session);
        let phase = &mut self.phases[session as usize];
        *phase = match *phase {
            Phase::Idle => Phase::Runs(self.array.assign_xid(proc)),
            Phase::Runs(xid) => match random.random_range(0..8) {
                0..4 => {
                    self.log.push(Logged::Change(xid));
                    Phase::Runs(xid)
                }
                outcome => {
                    let end = if outcome == 4 {
                        Logged::Abort(xid)
                    } else {
                        Logged::Commit(xid)
                    };
                    self.log.push(end);
                    Phase::Logged(xid, end)
                }
            },
            Phase::Logged(xid, _) => {
                self.entered.push(xid);
                Phase::Entered(xid)
            }
            Phase::Entered(xid) => {
                self.array.end(proc, Some(xid));
                Phase::Idle
            }
        };
    }

    fn steps(&mut self, random: &mut StdRng, most: u32) {
        for _ in 0..random.random_range(0..most) {
            self.step(random);
        }
    }

    /// The state that a checkpoint waits for: commits that are logged are entered.
    fn settle(&mut self) {
        for phase in &mut self.phases {
            if let Phase::Logged(xid, Logged::Commit(_)) = *phase {
                self.entered.push(xid);
                *phase = Phase::Entered(xid);
            }
        }
    }
}

/// The ends in a part of the log.
fn ends(log: &[Logged]) -> Vec<Xid> {
    let end = |logged: &Logged| match *logged {
        Logged::Change(_) => None,
        Logged::Commit(xid) | Logged::Abort(xid) => Some(xid),
    };
    log.iter().filter_map(end).collect()
}

fn newest(log: &[Logged]) -> Xid {
    let xid = |logged: &Logged| match *logged {
        Logged::Change(xid) | Logged::Commit(xid) | Logged::Abort(xid) => xid,
    };
    log.iter().map(xid).max().unwrap_or(Xid::INVALID)
}

/// A checkpoint at a random moment of a random history: what a standby begins with that starts at its redo position.
fn history(seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut primary = Primary::new();
    primary.steps(&mut random, 60);
    // The checkpoint's first steps, with sessions in between.
    let redo = primary.log.len();
    primary.steps(&mut random, 6);
    let next_xid = primary.array.next_xid();
    primary.steps(&mut random, 6);
    primary.settle();
    let on_disk: Vec<Xid> = primary.entered.clone();
    primary.steps(&mut random, 12);
    let mut list = Vec::new();
    let payload = running_transactions::encode(&primary.array.running_transactions(&mut list));
    primary.steps(&mut random, 12);
    let place = primary.log.len();
    primary.steps(&mut random, 30);

    // The standby replays from the redo position to the record.
    let record = running_transactions::decode(&payload).unwrap();
    let replayed = ends(&primary.log[redo..place]);
    let in_commit_log = |xid: Xid| on_disk.contains(&xid) || replayed.contains(&xid);
    let highest_seen = newest(&primary.log[redo..place]).max(Xid(next_xid.0 - 1));
    let begun = running_transactions::begin_set(&record, highest_seen, |xid| Ok::<_, ()>(in_commit_log(xid)))
        .unwrap();
    assert_eq!(begun.as_running().check(), Ok(()), "seed {seed}: {begun:?}");
    check_place(seed, &primary, redo, place, &begun);
    check_what_follows(seed, &primary, place, begun);
}

/// At the record's place: what has ended there has ended for the standby, and all else has not.
fn check_place(seed: u64, primary: &Primary, redo: usize, place: usize, begun: &RunningRecord) {
    let ended = ends(&primary.log[..place]);
    for &xid in &ended {
        let may_stay = !begun.running.contains(&xid) || primary.log[..redo].contains(&Logged::Abort(xid));
        assert!(may_stay, "seed {seed}: {xid} has ended: {begun:?}");
        assert!(
            xid <= begun.newest_ended || !primary.log[..place].contains(&Logged::Commit(xid)),
            "seed {seed}: {xid} has committed, and no snapshot's xmax is above: {begun:?}"
        );
    }
    for xid in (100..begun.next.0).map(Xid) {
        let counts_as_running = begun.running.contains(&xid);
        // A rollback that is replayed later may be on disk already.
        let on_disk = primary.log[place..].contains(&Logged::Abort(xid));
        assert!(
            ended.contains(&xid) || counts_as_running || on_disk,
            "seed {seed}: {xid} runs: {begun:?}"
        );
    }
    assert!(
        newest(&primary.log[..place]) < begun.next,
        "seed {seed}: {begun:?}"
    );
}

/// Replay goes on from there, and each snapshot sees the commits so far and no others.
fn check_what_follows(seed: u64, primary: &Primary, place: usize, begun: RunningRecord) {
    let known = KnownXids::<Native>::new(KnownXidsOptions::for_sessions(SESSIONS));
    let mut replay = known.replay().unwrap();
    replay.apply(&begun.as_running()).unwrap();
    let mut snapshot = RunningXids::default();
    for upto in place..=primary.log.len() {
        if upto > place {
            let logged = primary.log[upto - 1];
            let xid = newest(&[logged]);
            if xid >= replay.next() {
                replay.add(replay.next(), xid).unwrap();
            }
            if !matches!(logged, Logged::Change(_)) {
                replay.remove(xid);
            }
        }
        known.snapshot(&mut snapshot).unwrap();
        for xid in (100..primary.array.next_xid().0).map(Xid) {
            let committed = primary.log[..upto].contains(&Logged::Commit(xid));
            let aborts = primary.log.contains(&Logged::Abort(xid));
            assert!(
                aborts || committed != snapshot.is_running(xid),
                "seed {seed}, {upto}: {xid} in {snapshot:?}"
            );
        }
    }
}

#[test]
fn the_set_is_right_at_any_place_of_any_history() {
    let _watchdog = Watchdog::over_test();
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..20_000).collect(),
    };
    seeds.into_iter().for_each(history);
}

/// The records of a checkpoint.
const CHECKPOINT: [RecordKind; 3] = [RecordKind::RUNNING, RecordKind::LENGTHS, RecordKind::CHECKPOINT];

const NEVER: Duration = Duration::from_secs(100_000);

fn open(dir: &Path, running_interval: Duration) -> Arc<Storage> {
    let options = StorageOptions {
        checkpoint_timeout: NEVER,
        wal_writer_delay: Duration::from_millis(1),
        running_interval,
        ..chosen::small_database(8)
    };
    Storage::open(dir, options).unwrap().0
}

/// The records behind `from`, by their kinds, and what those of running transactions say. All of them are durable.
fn logged(storage: &Storage, from: Lsn) -> (Vec<RecordKind>, Vec<RunningRecord>) {
    storage.wal.flush(storage.wal.reserved());
    let mut reader = LogReader::new(storage.wal.device(), from);
    let (mut kinds, mut running) = (Vec::new(), Vec::new());
    while let Some((record, _)) = reader.next_record().unwrap() {
        // The commit log's pages, which a checkpoint logs as it writes them, come where they like.
        if record.kind != RecordKind::STATUS_PAGE {
            kinds.push(record.kind);
        }
        if record.kind == RecordKind::RUNNING {
            running.push(running_transactions::decode(record.payload).unwrap());
        }
    }
    (kinds, running)
}

/// A transaction of a session of its own, which runs.
fn begin(storage: &Storage) -> (ProcId, Xid) {
    let proc = storage.proc_array.attach().unwrap();
    (proc, storage.assign_xid(proc).unwrap())
}

#[test]
fn a_checkpoint_logs_what_runs_between_its_redo_position_and_its_end() {
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), NEVER);
    // That of the start.
    let (kinds, records) = logged(&storage, storage.wal.redo());
    assert_eq!(kinds, CHECKPOINT);
    let next = storage.proc_array.next_xid();
    assert_eq!((records[0].next, &records[0].running[..]), (next, &[][..]));
    let all: Vec<_> = (0..4).map(|_| begin(&storage)).collect();
    storage.commit(all[1].0, all[1].1, true).unwrap();
    storage.abort(all[2].0, all[2].1).unwrap();
    storage.checkpoint().unwrap();
    let (kinds, records) = logged(&storage, storage.wal.redo());
    assert_eq!(kinds, CHECKPOINT);
    let expected = RunningRecord {
        next: all[3].1,
        oldest_running: all[0].1,
        newest_ended: all[2].1,
        overflowed: false,
        running: vec![all[0].1],
    };
    assert_eq!(records, [expected]);
    for (proc, xid) in [all[0], all[3]] {
        storage.commit(proc, xid, true).unwrap();
    }
    let end = storage.wal.reserved();
    storage.shutdown().unwrap();
    let (kinds, records) = logged(&storage, storage.wal.redo());
    assert!(kinds.contains(&RecordKind::RUNNING) && storage.wal.redo() >= end);
    assert_eq!(
        (records[0].next, &records[0].running[..]),
        (all[3].1.next(), &[][..])
    );
}

/// One record after the last change, and one that proves it durable; then silence.
#[test]
fn an_idle_log_gets_one_record_of_what_runs() {
    let _watchdog = Watchdog::over_test();
    let dir = tempfile::tempdir().unwrap();
    let storage = open(dir.path(), Duration::from_millis(200));
    let end = storage.wal.reserved();
    sleep(Duration::from_millis(600));
    assert_eq!(
        logged(&storage, end).1,
        [],
        "the start's checkpoint has logged one"
    );
    let (alice, a) = begin(&storage);
    let (bob, b) = begin(&storage);
    let from = storage.wal.reserved();
    storage.commit(bob, b, true).unwrap();
    while storage.wal.flushed().0 < from.0 + 40 + 72 {
        sleep(Duration::from_millis(5));
    }
    let (_, records) = logged(&storage, from);
    assert_eq!(records[0].oldest_running, a);
    // Bob's commit is in the log before he leaves the array: a list that was made between the two still has him, and a standby
    // learns of his end from that commit (R2). So the log writer logs no further list.
    let ended = records[0].newest_ended == b;
    assert!(ended || records[0].running.contains(&b), "{:?}", records[0]);
    sleep(Duration::from_millis(2_500));
    let (kinds, records) = logged(&storage, from);
    assert_eq!(records.len(), 1, "an idle log grows: {kinds:?}");
    storage.commit(alice, a, true).unwrap();
    while logged(&storage, from).1.len() < 2 {
        sleep(Duration::from_millis(5));
    }
    storage.stop_threads();
}
