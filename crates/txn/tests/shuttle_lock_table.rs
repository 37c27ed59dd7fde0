//! The lock table and transaction waits under shuttle: four sessions, random schedules.
//!
//! Overlap of holders is seen by the data cell; a session left asleep, or a deadlock that stays, as shuttle's deadlock.
//! A failing schedule is printed and can be replayed with `shuttle::replay`. Sessions look for deadlocks after a few
//! looks at the clock, once per wait, and none polls: that one look is enough is part of what is checked.
//!
//! `cargo test -p clearway-txn --features shuttle --test shuttle_lock_table --release`

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::{AtomicWord, DataCell, Machine, Shuttle, Switch};
use clearway_txn::{
    LockError, LockManager, LockMode, LockTag, LockWait, ProcArray, ProcArrayOptions, ProcId,
    RelationLocksVariant, Snapshot, Xid,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const SESSIONS: u32 = 4;
const SCHEDULES: usize = 1_500;
const RELATIONS: u32 = 2;

struct Shared {
    array: Arc<ProcArray<Shuttle>>,
    locks: LockManager<Shuttle>,
    tables: Vec<<Shuttle as Machine>::Data<u64>>,
    victims: <Shuttle as Machine>::U32,
}

// SAFETY: the tables' cells are reached under the locks only, which is what the tests check.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

fn run(
    options: ProcArrayOptions,
    relation_locks: RelationLocksVariant,
    session: impl Fn(ProcId, &Shared) + Send + Sync + Copy + 'static,
) {
    eprintln!("under {options:?}, {relation_locks:?}");
    shuttle::check_random(
        move || {
            let array = Arc::new(ProcArray::new(SESSIONS, options, Xid(100)));
            let locks = LockManager::new(
                Arc::clone(&array),
                options.lwlock,
                relation_locks,
                Duration::from_micros(3),
            );
            let shared = Arc::new(Shared {
                array,
                locks,
                tables: (0..RELATIONS)
                    .map(|_| <Shuttle as Machine>::Data::new(0))
                    .collect(),
                victims: <Shuttle as Machine>::U32::new(0),
            });
            let sessions: Vec<_> = (0..SESSIONS)
                .map(|_| {
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || session(shared.array.attach().unwrap(), &shared))
                })
                .collect();
            for session in sessions {
                session.join().unwrap();
            }
            for relation in 0..RELATIONS {
                let all = LockTag::Relation(relation);
                assert!(
                    shared
                        .locks
                        .try_acquire(ProcId(0), all, LockMode::AccessExclusive),
                    "something is left locked"
                );
            }
        },
        SCHEDULES,
    );
}

/// Locks two relations in random order and modes, and touches them as the modes allow; a victim gives all back.
fn lock_two(proc: ProcId, shared: &Shared) {
    let first = thread_rng().gen_range(0..RELATIONS);
    for relation in [first, (first + 1) % RELATIONS] {
        let mode =
            [LockMode::AccessShare, LockMode::Share, LockMode::AccessExclusive][thread_rng().gen_range(0..3)];
        match shared
            .locks
            .acquire(proc, LockTag::Relation(relation), mode, LockWait::FOREVER)
        {
            Ok(()) => {}
            Err(LockError::Deadlock { cycle }) => {
                // Each waits for the next, and the last for the first.
                let nexts = cycle.iter().cycle().skip(1);
                assert!(cycle.len() > 1, "{cycle:?}");
                assert!(
                    cycle
                        .iter()
                        .zip(nexts)
                        .all(|(wait, next)| wait.blocker == next.waiter),
                    "{cycle:?}"
                );
                shared.victims.fetch_add(1, Relaxed);
                break;
            }
            Err(error) => panic!("{error}"),
        }
        let table = &shared.tables[relation as usize];
        match mode {
            // SAFETY: AccessExclusive keeps all other sessions out; the cell fails the test otherwise.
            LockMode::AccessExclusive => table.with_mut(|count| unsafe { *count += 1 }),
            // SAFETY: a weaker mode keeps AccessExclusive out.
            _ => table.with(|count| assert!(unsafe { *count } <= u64::from(SESSIONS))),
        }
    }
    shared.locks.release_all(proc);
}

/// Under every LwLock and with relation locks in each place.
///
/// Caught mutations: `find_deadlock` never called (shuttle's deadlock); `leave_queue` not granting to those behind a
/// session that gave up; `LockEntry::admits` always true, and on the fast path the strong locker counting itself after
/// it has looked at the lists (a writer meets another session inside).
#[test]
fn shuttle_locks_exclude_and_deadlocks_end() {
    for &relation_locks in RelationLocksVariant::ALL {
        run(ProcArrayOptions::default(), relation_locks, lock_two);
    }
    for &lwlock in LwLockVariant::ALL
        .iter()
        .filter(|lwlock| **lwlock != LwLockVariant::default())
    {
        run(lwlock.into(), RelationLocksVariant::default(), lock_two);
    }
}

/// Two transactions a session, each waiting for some other that it finds running, all in cycles as they come, with
/// every variant of the array. No session sleeps for ever, and a wait that succeeds means that the transaction has
/// ended.
///
/// Caught mutations: `post_waiters` posting no waiter; no deadlock check in `wait_for_transaction`.
#[test]
fn shuttle_transaction_waits_end() {
    for options in ProcArrayOptions::each_variant() {
        run(options, RelationLocksVariant::Table, wait_for_transactions);
    }
}

fn wait_for_transactions(proc: ProcId, shared: &Shared) {
    for _ in 0..2 {
        let xid = shared.array.assign_xid(proc);
        let mut snapshot = Snapshot::default();
        shared.array.snapshot(proc, &mut snapshot);
        let other = Xid(thread_rng().gen_range(100..shared.array.next_xid().0));
        if other != xid {
            match shared.locks.wait_for_transaction(proc, other, LockWait::FOREVER) {
                Ok(()) => assert!(!shared.array.is_running(other)),
                Err(LockError::Deadlock { .. }) => assert_ne!(shared.array.xid_of(proc), None),
                Err(error) => panic!("{error}"),
            }
        }
        shared.locks.end_transaction(proc, xid);
    }
}

/// Each session waits for transactions that are older than its own, so nothing can go around: no session is a victim,
/// although each looks for a deadlock at once.
///
/// Mutations that it is for: a path whose transaction waits are not read a second time; a wait that counts although its
/// transaction has ended.
#[test]
fn shuttle_waits_for_older_transactions_have_no_victim() {
    for &relation_locks in RelationLocksVariant::ALL {
        run(ProcArrayOptions::default(), relation_locks, wait_for_older);
    }
}

fn wait_for_older(proc: ProcId, shared: &Shared) {
    shared.locks.set_deadlock_timeout(proc, Duration::ZERO);
    for _ in 0..3 {
        let xid = shared.array.assign_xid(proc);
        for _ in 0..2 {
            let older = Xid(thread_rng().gen_range(100..=xid.0));
            if older != xid {
                let waited = shared.locks.wait_for_transaction(proc, older, LockWait::FOREVER);
                assert_eq!(waited, Ok(()), "a victim without a cycle");
            }
        }
        shared.locks.end_transaction(proc, xid);
    }
}

/// Three or four sessions in a ring, each with a lock and a transaction, and each wanting the next one's: the lock or the
/// end of the transaction, as it falls. Exactly one is a victim, and the others end.
///
/// Mutations that it is for: no fence behind a session's place in a queue and its wait (none finds the ring); a session that does
/// not look although others wait for its transaction; the victim's wait not struck out (two victims).
#[test]
fn shuttle_a_ring_has_one_victim() {
    for sessions in [3, SESSIONS] {
        for &relation_locks in RelationLocksVariant::ALL {
            shuttle::check_random(move || ring(sessions, relation_locks), SCHEDULES);
        }
    }
}

fn ring(sessions: u32, relation_locks: RelationLocksVariant) {
    let array = Arc::new(ProcArray::<Shuttle>::new(
        sessions,
        ProcArrayOptions::default(),
        Xid(100),
    ));
    let options = ProcArrayOptions::default().lwlock;
    let locks = LockManager::new(Arc::clone(&array), options, relation_locks, Duration::ZERO);
    let locks = Arc::new(locks);
    let xids: Vec<Xid> = (0..sessions)
        .map(|_| array.assign_xid(array.attach().unwrap()))
        .collect();
    for proc in 0..sessions {
        assert!(locks.try_acquire(ProcId(proc), LockTag::Relation(proc), LockMode::Exclusive));
    }
    let xids = Arc::new(xids);
    let threads: Vec<_> = (0..sessions)
        .map(|number| {
            let (locks, xids) = (Arc::clone(&locks), Arc::clone(&xids));
            thread::spawn(move || {
                let (proc, next) = (ProcId(number), (number + 1) % sessions);
                let waited = if thread_rng().gen_range(0..2) == 0 {
                    locks.wait_for_transaction(proc, xids[next as usize], LockWait::FOREVER)
                } else {
                    let tag = LockTag::Relation(next);
                    locks.acquire(proc, tag, LockMode::Exclusive, LockWait::FOREVER)
                };
                locks.end_transaction(proc, xids[number as usize]);
                waited.is_err()
            })
        })
        .collect();
    let victims = threads.into_iter().map(|thread| thread.join().unwrap());
    assert_eq!(victims.filter(|victim| *victim).count(), 1, "victims of one ring");
}

/// Sessions that give up (cancelled at once) among sessions that wait: those behind them go on, and with the fast path
/// a session that gave up is not counted among the strong any more.
///
/// Caught mutation: giving up without looking once more whether the lock was granted (it stays locked).
#[test]
fn shuttle_a_cancelled_waiter_lets_others_go_on() {
    for &relation_locks in RelationLocksVariant::ALL {
        run(ProcArrayOptions::default(), relation_locks, lock_or_give_up);
    }
}

fn lock_or_give_up(proc: ProcId, shared: &Shared) {
    let tag = LockTag::Relation(0);
    let (mode, wait) = match proc.0 {
        0 => (
            LockMode::AccessExclusive,
            LockWait {
                timeout: None,
                cancel: &|| true,
            },
        ),
        _ => (LockMode::AccessShare, LockWait::FOREVER),
    };
    match shared.locks.acquire(proc, tag, mode, wait) {
        Ok(()) if proc.0 == 0 => {
            // SAFETY: held exclusively.
            shared.tables[0].with_mut(|count| unsafe { *count += 1 });
        }
        Ok(()) => {
            // SAFETY: held in a mode that keeps the writer out.
            shared.tables[0].with(|count| assert!(unsafe { *count } <= 1));
        }
        Err(error) => assert_eq!((proc.0, error), (0, LockError::Cancelled)),
    }
    shared.locks.release_all(proc);
}
