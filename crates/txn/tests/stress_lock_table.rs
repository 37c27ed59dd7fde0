//! Locks and transaction waits under real threads.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_latch::LwLockVariant;
use clearway_machine::{Switch, Watchdog};
use clearway_txn::{
    LockError, LockManager, LockMode, LockTag, LockWait, ProcArray, ProcId, RelationLocksVariant, Xid,
};
use support::Random;

const SESSIONS: u32 = 8;
const RUN: Duration = Duration::from_secs(2);
/// A busy machine takes longer for a victim and a timeout; one that has not seen them by then never will.
const RUN_MAX: Duration = Duration::from_secs(60);

/// Sessions lock relations in random modes and orders, wait for each other's transactions, give up, and are cancelled.
/// A counter per relation and mode shows that holders never conflict; at the end nothing is left.
#[test]
fn locks_never_conflict_and_every_wait_ends() {
    for &relation_locks in RelationLocksVariant::ALL {
        eprintln!("under {relation_locks:?}");
        lock_at_random(relation_locks);
    }
}

fn lock_at_random(relation_locks: RelationLocksVariant) {
    let array = Arc::new(ProcArray::<clearway_machine::Native>::new(
        SESSIONS,
        LwLockVariant::SingleCas,
        Xid(100),
    ));
    let locks = LockManager::new(
        Arc::clone(&array),
        LwLockVariant::SingleCas,
        relation_locks,
        Duration::from_millis(2),
    );
    let holders: Vec<[AtomicU64; 8]> = (0..3).map(|_| Default::default()).collect();
    let (victims, timeouts) = (AtomicU64::new(0), AtomicU64::new(0));
    let started = Instant::now();
    let goes_on = || {
        let both = victims.load(Ordering::Relaxed) > 0 && timeouts.load(Ordering::Relaxed) > 0;
        started.elapsed() < if both { RUN } else { RUN_MAX }
    };
    thread::scope(|scope| {
        for number in 0..SESSIONS {
            let (array, locks, holders, victims, timeouts, goes_on) =
                (&array, &locks, &holders, &victims, &timeouts, &goes_on);
            scope.spawn(move || {
                let mut random = Random(u64::from(number) + 77);
                let proc = array.attach().unwrap();
                while goes_on() {
                    let xid = array.assign_xid(proc);
                    let mut mine = Vec::new();
                    for _ in 0..=random.below(3) {
                        let relation = random.below(3) as usize;
                        let mode = LockMode::ALL[random.below(8) as usize];
                        let timeout = (random.below(4) == 0).then_some(Duration::from_micros(500));
                        let cancel = random.below(50) == 0;
                        let wait = LockWait {
                            timeout,
                            cancel: &|| cancel,
                        };
                        let outcome = if random.below(5) == 0 {
                            let other = Xid(100 + random.below(array.next_xid().0 - 100));
                            if other == xid {
                                Ok(())
                            } else {
                                locks.wait_for_transaction(proc, other, wait)
                            }
                        } else {
                            let tag = LockTag::Relation(relation as u32);
                            let held = locks.holds(proc, tag, mode);
                            let outcome = locks.acquire(proc, tag, mode, wait);
                            if outcome.is_ok() && !held {
                                holders[relation][mode as usize].fetch_add(1, Ordering::SeqCst);
                                mine.push((relation, mode));
                                for other in LockMode::ALL {
                                    let own = mine.iter().filter(|held| **held == (relation, other)).count();
                                    let count = holders[relation][other as usize].load(Ordering::SeqCst);
                                    assert!(
                                        !other.conflicts_with(mode) || count <= own as u64,
                                        "{other} is held beside {mode}"
                                    );
                                }
                            }
                            outcome
                        };
                        match outcome {
                            Ok(()) => continue,
                            Err(LockError::Deadlock { .. }) => victims.fetch_add(1, Ordering::Relaxed),
                            Err(LockError::Timeout) => timeouts.fetch_add(1, Ordering::Relaxed),
                            Err(_) => 0,
                        };
                        break;
                    }
                    for (relation, mode) in mine {
                        holders[relation][mode as usize].fetch_sub(1, Ordering::SeqCst);
                    }
                    locks.end_transaction(proc, xid);
                }
            });
        }
    });
    assert!(victims.load(Ordering::Relaxed) > 0 && timeouts.load(Ordering::Relaxed) > 0);
    for relation in 0..3 {
        assert!(locks.try_acquire(ProcId(0), LockTag::Relation(relation), LockMode::AccessExclusive));
    }
}

/// The duration of a chain of waits through 32 sessions. Each session ends its transaction once the one before has
/// ended, and says so (`wakes`) or leaves it to the waiter, which looks every 100 ms.
fn time_of_chain(wakes: bool) -> Duration {
    let array = Arc::new(ProcArray::<clearway_machine::Native>::new(
        32,
        LwLockVariant::SingleCas,
        Xid(100),
    ));
    let locks = LockManager::new(
        Arc::clone(&array),
        LwLockVariant::SingleCas,
        RelationLocksVariant::Table,
        Duration::from_secs(60),
    );
    let procs: Vec<_> = (0..32).map(|_| array.attach().unwrap()).collect();
    let xids: Vec<_> = procs.iter().map(|proc| array.assign_xid(*proc)).collect();
    let end = |number: usize| {
        if wakes {
            locks.end_transaction(procs[number], xids[number]);
        } else {
            array.end(procs[number], Some(xids[number]));
        }
    };
    let (locks, end, procs, xids) = (&locks, &end, &procs, &xids);
    let wait = |number: usize, xid| {
        locks
            .wait_for_transaction(procs[number], xid, LockWait::FOREVER)
            .unwrap();
    };
    thread::scope(|scope| {
        for number in 1..32 {
            scope.spawn(move || {
                wait(number, xids[number - 1]);
                end(number);
            });
        }
        while locks.transaction_waited_for(procs[31]).is_none() {
            thread::yield_now();
        }
        let started = Instant::now();
        end(0);
        wait(0, xids[31]);
        started.elapsed()
    })
}

/// A chain of waits through every session ends, each link woken by the one before: it takes less than half the time of
/// a chain whose links look by themselves. One try of three is enough, since other load may delay either.
#[test]
fn a_chain_of_transaction_waits_is_woken_link_by_link() {
    let _watchdog = Watchdog::over_test();
    let mut tries = Vec::new();
    for _ in 0..3 {
        let (woken, polled) = (time_of_chain(true), time_of_chain(false));
        if woken * 2 < polled {
            return;
        }
        tries.push((woken, polled));
    }
    panic!("woken and polled: {tries:?}");
}
