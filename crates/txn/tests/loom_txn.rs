//! The transaction layer under loom: every schedule of two or three sessions within a bound of preemptions, under weak
//! memory. A session left asleep is reported by loom as a deadlock. Each test names a mutation it was seen to catch.
//!
//! `cargo test -p clearway-txn --features loom --test loom_txn --release`

use std::io;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::{AtomicWord, DataCell, Loom, Machine};
use clearway_txn::{
    COMMIT_LOG_PAGE_SIZE, CommitLog, Fate, LockManager, LockMode, LockTag, LockWait, ProcArray,
    ProcArrayLatchVariant, ProcId, RelationLocksVariant, Snapshot, Status, StatusDevice, Xid, fate,
};
use loom::sync::Arc;
use loom::thread;

const FIRST: Xid = Xid(100);

fn explore(preemptions: usize, case: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        // The machine's globals come to life before there is anybody to race with.
        Loom::workers();
        case();
    });
}

/// An array with `sessions` attached, numbered from 0.
fn array(sessions: u32) -> ProcArray<Loom> {
    array_under(ProcArrayLatchVariant::Plain, sessions)
}

fn array_under(latch: ProcArrayLatchVariant, sessions: u32) -> ProcArray<Loom> {
    let array = ProcArray::with_latch(latch, sessions, LwLockVariant::SingleCas, FIRST);
    for number in 0..sessions {
        assert_eq!(array.attach(), Ok(ProcId(number)));
    }
    array
}

fn snapshot(array: &ProcArray<Loom>, proc: ProcId) -> Snapshot {
    let mut snapshot = Snapshot::default();
    array.snapshot(proc, &mut snapshot);
    snapshot
}

const ALICE: ProcId = ProcId(0);
const BOB: ProcId = ProcId(1);
const CAROL: ProcId = ProcId(2);

/// Alice's and Bob's statuses, standing in for the commit log: written before they leave the array (R2 of `proc_array`).
struct Ending {
    array: ProcArray<Loom>,
    committed: [<Loom as Machine>::U32; 2],
}

impl Ending {
    fn new(latch: ProcArrayLatchVariant) -> Self {
        Self {
            array: array_under(latch, 3),
            committed: std::array::from_fn(|_| <Loom as Machine>::U32::new(0)),
        }
    }

    fn run_transaction(&self, proc: ProcId) {
        let xid = self.array.assign_xid(proc);
        // Relaxed: the array's latches must order it.
        self.committed[(xid.0 - FIRST.0) as usize].store(1, Relaxed);
        self.array.end(proc, Some(xid));
    }
}

// In the tests below whoever only looks runs in the spawned thread, hence last by default: loom then tries each of its looks
// against each earlier write. The other way round it forgets a look when the writer looks too before it writes.

/// Alice and Bob each begin, commit and end; Carol takes a snapshot meanwhile. Whatever Carol's snapshot regards as
/// finished must have its status set.
///
/// Caught mutations: `end` without the latch; `snapshot` without the latch.
fn a_snapshot_never_sees_half_an_end(latch: ProcArrayLatchVariant) {
    explore(2, move || {
        let shared = Arc::new(Ending::new(latch));
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.run_transaction(BOB))
        };
        let carol = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let seen = snapshot(&shared.array, CAROL);
                for number in 0..2 {
                    let xid = Xid(FIRST.0 + number);
                    let committed = shared.committed[number as usize].load(Relaxed) == 1;
                    assert!(committed || seen.is_running(xid), "{xid} is finished in {seen:?}");
                }
                assert!(
                    seen.running
                        .iter()
                        .all(|xid| *xid < seen.xmax && *xid >= seen.xmin)
                );
            })
        };
        shared.run_transaction(ALICE);
        bob.join().unwrap();
        carol.join().unwrap();
    });
}

/// Alice's transaction ends and then Bob's, who may have seen hers: a snapshot that has Bob's finished has Alice's finished.
///
/// Caught mutation: `snapshot` without the latch (Alice still in the array, Bob gone from it, and `latest_completed` past
/// both).
fn a_snapshot_keeps_the_order_of_ends(latch: ProcArrayLatchVariant) {
    explore(3, move || {
        let array = Arc::new(array_under(latch, 3));
        let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
        let carol = {
            let array = Arc::clone(&array);
            thread::spawn(move || {
                let seen = snapshot(&array, CAROL);
                assert!(
                    seen.is_running(b) || !seen.is_running(a),
                    "b finished, a not, in {seen:?}"
                );
            })
        };
        array.end(ALICE, Some(a));
        array.end(BOB, Some(b));
        carol.join().unwrap();
    });
}

/// Alice ends, Bob takes a snapshot, and vacuum asks for the horizon, all at once: the horizon does not pass the snapshot.
///
/// Caught mutations: the xmin installed after the latch is let go; `horizon` without the latch.
fn the_horizon_never_passes_a_snapshot(latch: ProcArrayLatchVariant) {
    explore(2, move || {
        let array = Arc::new(array_under(latch, 2));
        let a = array.assign_xid(ALICE);
        let bob = {
            let array = Arc::clone(&array);
            thread::spawn(move || snapshot(&array, BOB))
        };
        let vacuum = {
            let array = Arc::clone(&array);
            thread::spawn(move || array.horizon())
        };
        array.end(ALICE, Some(a));
        let (seen, horizon) = (bob.join().unwrap(), vacuum.join().unwrap());
        assert!(horizon <= seen.xmin, "horizon {horizon} passed {seen:?}");
        assert!(array.horizon() <= seen.xmin);
        array.clear_xmin(BOB);
        assert_eq!(array.horizon(), a.next());
    });
}

/// Bob begins while Carol, whose entry comes before his, detaches: his entry moves, and his xid is neither lost nor left
/// behind.
///
/// Caught mutation: `detach` without XidGen (Bob's xid is stored where his entry was).
fn an_entry_that_moves_keeps_its_xid(latch: ProcArrayLatchVariant) {
    explore(3, move || {
        let array = Arc::new(array_under(latch, 3));
        let detaching = {
            let array = Arc::clone(&array);
            thread::spawn(move || array.detach(ALICE))
        };
        let xid = array.assign_xid(CAROL);
        assert_eq!(array.find_running(xid), Some(CAROL));
        detaching.join().unwrap();
        assert_eq!(array.find_running(xid), Some(CAROL));
        array.end(CAROL, Some(xid));
        assert_eq!(array.find_running(xid), None);
    });
}

macro_rules! under_each_latch {
    ($($name:ident => $case:ident;)*) => {
        mod plain {
            use super::*;
            $(#[test] fn $name() { $case(ProcArrayLatchVariant::Plain) })*
        }
        mod read_biased {
            use super::*;
            $(#[test] fn $name() { $case(ProcArrayLatchVariant::ReadBiased) })*
        }
        mod adaptive {
            use super::*;
            $(#[test] fn $name() { $case(ProcArrayLatchVariant::Adaptive) })*
        }
    };
}

under_each_latch! {
    loom_a_snapshot_never_sees_half_an_end => a_snapshot_never_sees_half_an_end;
    loom_a_snapshot_keeps_the_order_of_ends => a_snapshot_keeps_the_order_of_ends;
    loom_the_horizon_never_passes_a_snapshot => the_horizon_never_passes_a_snapshot;
    loom_an_entry_that_moves_keeps_its_xid => an_entry_that_moves_keeps_its_xid;
}

/// Bob waits for Alice's transaction while she ends it: he wakes.
///
/// Caught mutations: either of the two fences taken out.
#[test]
fn loom_a_transaction_wait_is_woken() {
    explore(3, || {
        let array = std::sync::Arc::new(array(2));
        let locks = LockManager::new(
            std::sync::Arc::clone(&array),
            LwLockVariant::SingleCas,
            RelationLocksVariant::Table,
            Duration::MAX,
        );
        let locks = Arc::new(locks);
        let a = array.assign_xid(ALICE);
        let waiting = {
            let (locks, array) = (Arc::clone(&locks), std::sync::Arc::clone(&array));
            thread::spawn(move || {
                locks.wait_for_transaction(BOB, a, LockWait::FOREVER).unwrap();
                assert!(!array.is_running(a));
            })
        };
        array.end(ALICE, Some(a));
        locks.transaction_ended(ALICE, a);
        waiting.join().unwrap();
    });
}

/// Alice and Bob wait for each other's transactions: one of them finds the cycle, and one only.
///
/// Caught mutation: the victim's wait not struck out under the latches (two victims).
#[test]
fn loom_a_cycle_has_one_victim() {
    explore(2, || {
        let array = std::sync::Arc::new(array(2));
        let locks = LockManager::new(
            std::sync::Arc::clone(&array),
            LwLockVariant::SingleCas,
            RelationLocksVariant::Table,
            Duration::ZERO,
        );
        let locks = Arc::new(locks);
        let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
        let run =
            move |locks: &LockManager<Loom>, array: &ProcArray<Loom>, me: ProcId, mine: Xid, other: Xid| {
                let result = locks.wait_for_transaction(me, other, LockWait::FOREVER);
                array.end(me, Some(mine));
                locks.transaction_ended(me, mine);
                result.is_err()
            };
        let bob = {
            let (locks, array) = (Arc::clone(&locks), std::sync::Arc::clone(&array));
            thread::spawn(move || run(&locks, &array, BOB, b, a))
        };
        let alice = run(&locks, &array, ALICE, a, b);
        assert!(alice != bob.join().unwrap(), "victims: Alice {alice}");
    });
}

/// Bob queues for a lock that Alice gives back: he gets it, and sees what she did under it.
///
/// Caught mutation: `grant_waiters` storing "not waiting" without posting.
#[test]
fn loom_a_queued_lock_is_granted() {
    explore(2, || {
        let array = std::sync::Arc::new(array(2));
        let locks = Arc::new(LockManager::new(
            array,
            LwLockVariant::SingleCas,
            RelationLocksVariant::Table,
            Duration::MAX,
        ));
        let written = Arc::new(<Loom as Machine>::U32::new(0));
        let tag = LockTag::Relation(1);
        assert!(locks.try_acquire(ALICE, tag, LockMode::Exclusive));
        let waiting = {
            let (locks, written) = (Arc::clone(&locks), Arc::clone(&written));
            thread::spawn(move || {
                locks
                    .acquire(BOB, tag, LockMode::RowExclusive, LockWait::FOREVER)
                    .unwrap();
                assert_eq!(written.load(Relaxed), 1);
                locks.release_all(BOB);
            })
        };
        written.store(1, Relaxed);
        locks.release_all(ALICE);
        waiting.join().unwrap();
    });
}

/// Alice commits, as a session does: the status, then out of the array. Bob, who meets a row of hers meanwhile, takes her for
/// running or for committed, never for rolled back.
///
/// Caught mutation: `fate` that asks the commit log first (`fate.rs`).
#[test]
fn loom_a_commit_is_not_taken_for_an_abort() {
    explore(3, || {
        let log = CommitLog::<Loom, _>::new(
            OnePage {
                byte: <Loom as Machine>::U32::new(0),
            },
            LwLockVariant::SingleCas,
        );
        let shared = Arc::new((array(2), log));
        let a = shared.0.assign_xid(ALICE);
        let bob = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let found = fate(&shared.0, &shared.1, a).unwrap();
                assert_ne!(found, Fate::Aborted, "a committed transaction");
            })
        };
        shared.1.set(a, Status::Committed, 1).unwrap();
        shared.0.end(ALICE, Some(a));
        bob.join().unwrap();
        assert_eq!(fate(&shared.0, &shared.1, a).unwrap(), Fate::Committed);
    });
}

/// A device that has no pages and remembers, per page, the newest write.
struct OnePage {
    byte: <Loom as Machine>::U32,
}

impl StatusDevice for OnePage {
    fn read_page(&self, _: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        page[49] = self.byte.load(Acquire) as u8;
        Ok(true)
    }
    fn write_page(&self, _: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], _: u64) -> io::Result<()> {
        self.byte.store(u32::from(page[49]), Release);
        Ok(())
    }
}

/// Alice commits while the checkpointer writes the page; then a second flush. Her commit is on the device at the end, and
/// readable at any time.
///
/// Caught mutation: a write that marks the page clean without regard to changes made meanwhile (R3 of `commit_log`).
#[test]
fn loom_a_commit_during_a_flush_is_not_lost() {
    explore(2, || {
        let log = CommitLog::<Loom, _>::new(
            OnePage {
                byte: <Loom as Machine>::U32::new(0),
            },
            LwLockVariant::SingleCas,
        );
        let log = Arc::new(log);
        // Xid 100 is byte 24 + 25, its first two bits; 101 the next two.
        log.set(Xid(101), Status::Aborted, 1).unwrap();
        let committing = {
            let log = Arc::clone(&log);
            thread::spawn(move || log.set(FIRST, Status::Committed, 2).unwrap())
        };
        log.flush_all().unwrap();
        committing.join().unwrap();
        assert_eq!(log.get(FIRST).unwrap(), Status::Committed);
        log.flush_all().unwrap();
        assert_eq!(log.device().byte.load(Relaxed), 0b1001);
    });
}

/// Alice takes a relation weakly on the fast path while Bob takes it strongly: never both at once, each sees what the other did
/// under the lock, and whoever must wait is woken.
///
/// Caught mutations: the strong locker counting himself after he has looked at the lists; moving nothing; the count read or given
/// back `Relaxed` (each a race on what the lock protects).
#[test]
fn loom_a_strong_locker_meets_the_fast_path() {
    explore(3, || {
        let array = std::sync::Arc::new(array(2));
        let locks = Arc::new(LockManager::new(
            array,
            LwLockVariant::SingleCas,
            RelationLocksVariant::FastPath,
            Duration::MAX,
        ));
        let tag = LockTag::Relation(1);
        let inside = Arc::new(<Loom as Machine>::Data::new(0_u32));
        let bob = {
            let (locks, inside) = (Arc::clone(&locks), Arc::clone(&inside));
            thread::spawn(move || {
                locks
                    .acquire(BOB, tag, LockMode::AccessExclusive, LockWait::FOREVER)
                    .unwrap();
                // SAFETY: loom checks that the lock keeps Alice out.
                inside.with_mut(|inside| unsafe { *inside += 1 });
                locks.release_all(BOB);
            })
        };
        locks
            .acquire(ALICE, tag, LockMode::RowExclusive, LockWait::FOREVER)
            .unwrap();
        // SAFETY: as above; Alice is the only one to hold it weakly.
        inside.with_mut(|inside| unsafe { *inside += 1 });
        locks.release_all(ALICE);
        bob.join().unwrap();
        // SAFETY: both are done.
        inside.with(|inside| assert_eq!(unsafe { *inside }, 2));
    });
}
