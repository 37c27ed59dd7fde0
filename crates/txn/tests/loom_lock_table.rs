//! Locks and transaction waits under loom: every schedule of two or three sessions within a bound of preemptions, under weak
//! memory. A session left asleep is reported by loom as a deadlock. Each test names a mutation it was seen to catch.
//!
//! `cargo test -p clearway-txn --features loom --test loom_lock_table --release`

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::{AtomicWord, DataCell, Loom, Machine, Switch};
use clearway_txn::{
    LockError, LockManager, LockMode, LockTag, LockWait, ProcArray, ProcArrayOptions, ProcClearVariant,
    ProcId, RelationLocksVariant, Xid,
};
use loom::thread;
use support::{ALICE, BOB, CAROL, array, explore};

/// Explores `case` with each variant of `relation_locks` and of `proc_clear`; a failure shows the variants printed last.
fn explore_each(
    preemptions: usize,
    deadlock_timeout: Duration,
    case: impl Fn(Arc<ProcArray<Loom>>, Arc<LockManager<Loom>>) + Clone + Send + Sync + 'static,
) {
    for &relation_locks in RelationLocksVariant::ALL {
        for &clear in ProcClearVariant::ALL {
            eprintln!("under {relation_locks:?} and {clear:?}");
            let options = ProcArrayOptions {
                clear,
                ..LwLockVariant::SingleCas.into()
            };
            let case = case.clone();
            explore(preemptions, move || {
                let array = Arc::new(array::<Loom>(options, 2));
                let locks = LockManager::new(
                    Arc::clone(&array),
                    LwLockVariant::SingleCas,
                    relation_locks,
                    deadlock_timeout,
                );
                case(array, Arc::new(locks));
            });
        }
    }
}

/// Bob waits for Alice's transaction while she ends it: he wakes.
///
/// Caught mutations: either of the two fences taken out.
#[test]
fn loom_a_transaction_wait_is_woken() {
    explore_each(3, Duration::MAX, |array, locks| {
        let a = array.assign_xid(ALICE);
        let waiting = {
            let (locks, array) = (Arc::clone(&locks), Arc::clone(&array));
            thread::spawn(move || {
                locks.wait_for_transaction(BOB, a, LockWait::FOREVER).unwrap();
                assert!(!array.is_running(a));
            })
        };
        locks.end_transaction(ALICE, a);
        waiting.join().unwrap();
    });
}

/// Alice frees a row and goes on; Bob has found it taken, and waits for her. He looks again, however the two meet, and she
/// ends only then.
///
/// Caught mutations: the fence of the take-back taken out, its post, and a waiter that knows each take-back before its wait.
#[test]
fn loom_a_take_back_wakes() {
    explore_each(3, Duration::MAX, |array, locks| {
        let a = array.assign_xid(ALICE);
        let row = Arc::new(loom::sync::atomic::AtomicU32::new(1));
        let waiting = {
            let (locks, row) = (Arc::clone(&locks), Arc::clone(&row));
            thread::spawn(move || {
                while row.load(Acquire) != 0 {
                    locks.wait_for_transaction(BOB, a, LockWait::FOREVER).unwrap();
                }
            })
        };
        row.store(0, Release);
        locks.wake_after_take_back(ALICE, a);
        waiting.join().unwrap();
        locks.end_transaction(ALICE, a);
    });
}

/// Three sessions, with one choice of the switches: more would take too long.
fn explore_three(
    preemptions: usize,
    case: impl Fn(Arc<ProcArray<Loom>>, Arc<LockManager<Loom>>) + Send + Sync + 'static,
) {
    explore(preemptions, move || {
        let array = Arc::new(array::<Loom>(LwLockVariant::SingleCas, 3));
        let locks = LockManager::new(
            Arc::clone(&array),
            LwLockVariant::SingleCas,
            RelationLocksVariant::Table,
            Duration::MAX,
        );
        case(array, Arc::new(locks));
    });
}

/// Carol waits for Bob's transaction, and he for Alice's. When she ends hers, both go on, one after the other; and Bob, who
/// looks for a deadlock at once since Carol waits for him, finds none.
///
/// Mutation that it is for: the end of a transaction wakes no waiter.
#[test]
fn loom_a_chain_of_three_is_woken() {
    explore_three(1, |array, locks| {
        let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
        locks.set_deadlock_timeout(BOB, Duration::ZERO);
        let waits_then_ends = |me: ProcId, other: Xid, mine: Option<Xid>| {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                assert_eq!(locks.wait_for_transaction(me, other, LockWait::FOREVER), Ok(()));
                assert!(!locks.proc_array().is_running(other));
                if let Some(mine) = mine {
                    locks.end_transaction(me, mine);
                }
            })
        };
        let bob = waits_then_ends(BOB, a, Some(b));
        let carol = waits_then_ends(CAROL, b, None);
        locks.end_transaction(ALICE, a);
        bob.join().unwrap();
        carol.join().unwrap();
    });
}

/// The example of R2. Alice waits for Bob's first transaction, which ends; his second waits for Carol's, and Carol, which
/// looks for a deadlock, waits for Alice's. These waits are never all under way at once, so Carol is no victim.
///
/// Caught mutations (`mutations/transaction_wait.toml`): no second read of a path; one that takes the runner's second
/// transaction for its first.
#[test]
fn loom_a_session_in_no_cycle_is_no_victim() {
    explore_three(1, |array, locks| {
        let [a, b, c] = [ALICE, BOB, CAROL].map(|proc| array.assign_xid(proc));
        locks.set_deadlock_timeout(CAROL, Duration::ZERO);
        let bob = {
            let (locks, array) = (Arc::clone(&locks), Arc::clone(&array));
            thread::spawn(move || {
                locks.end_transaction(BOB, b);
                let second = array.assign_xid(BOB);
                assert_eq!(locks.wait_for_transaction(BOB, c, LockWait::FOREVER), Ok(()));
                locks.end_transaction(BOB, second);
            })
        };
        let carol = {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                let waited = locks.wait_for_transaction(CAROL, a, LockWait::FOREVER);
                assert_eq!(waited, Ok(()), "a victim without a cycle");
                locks.end_transaction(CAROL, c);
            })
        };
        // The model's own thread runs first, and sleeps when Bob and then Carol come: that takes no preemption.
        assert_eq!(locks.wait_for_transaction(ALICE, b, LockWait::FOREVER), Ok(()));
        locks.end_transaction(ALICE, a);
        bob.join().unwrap();
        carol.join().unwrap();
    });
}

/// Alice and Bob wait for each other's transactions: one of them finds the cycle, and one only.
///
/// Caught mutation: the victim's wait not struck out under the latches (two victims).
#[test]
fn loom_a_cycle_has_one_victim() {
    explore_each(2, Duration::ZERO, |array, locks| {
        let (a, b) = (array.assign_xid(ALICE), array.assign_xid(BOB));
        let run = move |locks: &LockManager<Loom>, me: ProcId, mine: Xid, other: Xid| {
            let result = locks.wait_for_transaction(me, other, LockWait::FOREVER);
            locks.end_transaction(me, mine);
            result.is_err()
        };
        let bob = {
            let locks = Arc::clone(&locks);
            thread::spawn(move || run(&locks, BOB, b, a))
        };
        let alice = run(&locks, ALICE, a, b);
        assert!(alice != bob.join().unwrap(), "victims: Alice {alice}");
    });
}

/// Bob queues for a lock that Alice gives back: he gets it, and sees what she did under it.
///
/// Caught mutation: `grant_waiters` storing "not waiting" without posting.
#[test]
fn loom_a_queued_lock_is_granted() {
    explore_each(2, Duration::MAX, |_, locks| {
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

/// Alice holds a lock, and her transaction runs on. Bob waits for both in turn, and is cancelled: each wait ends when Bob
/// is woken, since no session looks again unasked here.
///
/// Caught mutation: `wake` posting nothing.
#[test]
fn loom_a_cancelled_waiter_is_woken() {
    explore_each(2, Duration::MAX, |array, locks| {
        let tag = LockTag::Relation(1);
        let a = array.assign_xid(ALICE);
        assert!(locks.try_acquire(ALICE, tag, LockMode::Exclusive));
        let cancelled = Arc::new(<Loom as Machine>::U32::new(0));
        let waiting = {
            let (locks, cancelled) = (Arc::clone(&locks), Arc::clone(&cancelled));
            thread::spawn(move || {
                let wait = LockWait {
                    timeout: None,
                    cancel: &|| cancelled.load(Relaxed) != 0,
                };
                let for_lock = locks.acquire(BOB, tag, LockMode::Exclusive, wait);
                assert_eq!(for_lock, Err(LockError::Cancelled));
                let for_transaction = locks.wait_for_transaction(BOB, a, wait);
                assert_eq!(for_transaction, Err(LockError::Cancelled));
            })
        };
        cancelled.store(1, Relaxed);
        locks.wake(BOB);
        waiting.join().unwrap();
    });
}

/// Bob waits for a lock, and then for a transaction. Each time he is woken in vain, as by a post for an earlier wait, and
/// his sleep on the semaphore ends early as well: he goes on when he has what he waits for.
///
/// Caught mutation: a sleep that counts as done when it ends.
#[test]
fn loom_a_wake_up_in_vain_ends_no_wait() {
    explore_each(2, Duration::MAX, |array, locks| {
        let tag = LockTag::Relation(1);
        let a = array.assign_xid(ALICE);
        let written = Arc::new(<Loom as Machine>::U32::new(0));
        assert!(locks.try_acquire(ALICE, tag, LockMode::Exclusive));
        let waiting = {
            let (locks, written) = (Arc::clone(&locks), Arc::clone(&written));
            let array = Arc::clone(&array);
            thread::spawn(move || {
                Loom::end_waits_early(2);
                locks
                    .acquire(BOB, tag, LockMode::Exclusive, LockWait::FOREVER)
                    .unwrap();
                assert_eq!(written.load(Relaxed), 1, "Bob has what Alice holds");
                locks.release_all(BOB);
                locks.wait_for_transaction(BOB, a, LockWait::FOREVER).unwrap();
                assert!(!array.is_running(a));
            })
        };
        locks.wake(BOB);
        written.store(1, Relaxed);
        locks.release_all(ALICE);
        locks.end_transaction(ALICE, a);
        waiting.join().unwrap();
    });
}

/// Alice holds a lock, and her transaction runs on. Bob waits for each, at most for some microseconds, and no session wakes
/// him.
///
/// Caught mutation: a sleep without the limit of its wait.
#[test]
fn loom_a_wait_runs_out_of_time() {
    explore_each(2, Duration::MAX, |array, locks| {
        let tag = LockTag::Relation(1);
        let a = array.assign_xid(ALICE);
        assert!(locks.try_acquire(ALICE, tag, LockMode::Exclusive));
        let at_most = LockWait {
            timeout: Some(Duration::from_micros(4)),
            cancel: &|| false,
        };
        let waiting = {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                let for_lock = locks.acquire(BOB, tag, LockMode::Exclusive, at_most);
                assert_eq!(for_lock, Err(LockError::Timeout));
                let for_transaction = locks.wait_for_transaction(BOB, a, at_most);
                assert_eq!(for_transaction, Err(LockError::Timeout));
            })
        };
        waiting.join().unwrap();
        locks.end_transaction(ALICE, a);
        assert!(
            locks.try_acquire(BOB, tag, LockMode::Exclusive),
            "Bob has left the queue"
        );
    });
}

/// The time of Bob's wait runs out while Alice gives the lock back: Bob has it or not, and never half.
///
/// Caught mutation: giving up without looking once more whether the lock was granted (it stays locked).
#[test]
fn loom_a_wait_runs_out_of_time_while_it_is_granted() {
    explore_each(2, Duration::MAX, |_, locks| {
        let tag = LockTag::Relation(1);
        assert!(locks.try_acquire(ALICE, tag, LockMode::Exclusive));
        let waiting = {
            let locks = Arc::clone(&locks);
            thread::spawn(move || {
                let wait = LockWait {
                    timeout: Some(Duration::from_micros(4)),
                    cancel: &|| false,
                };
                match locks.acquire(BOB, tag, LockMode::Exclusive, wait) {
                    Ok(()) => locks.release_all(BOB),
                    Err(error) => assert_eq!(error, LockError::Timeout),
                }
            })
        };
        locks.release_all(ALICE);
        waiting.join().unwrap();
        assert!(
            locks.try_acquire(ALICE, tag, LockMode::AccessExclusive),
            "it stays locked"
        );
    });
}

/// Alice takes a relation weakly on the fast path while Bob takes it strongly: never both at once, each sees what the
/// other did under the lock, and the one that must wait is woken.
///
/// Caught mutations: the strong locker counted after its look at the lists; moving nothing; the count read or given
/// back `Relaxed` (each a race on what the lock protects).
#[test]
fn loom_a_strong_locker_meets_the_fast_path() {
    explore_each(3, Duration::MAX, |_, locks| {
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

/// Alice locks the table and then goes by the definition that she finds. Bob publishes another definition and then looks for
/// those that hold the lock: he finds Alice, or she has found his definition.
///
/// Caught mutations: a look at the shared table alone; a look at the lists before the definition is published.
#[test]
fn loom_a_holder_is_found_or_has_seen_the_definition() {
    const TABLE: LockTag = LockTag::Relation(1);
    explore_each(3, Duration::MAX, |_, locks| {
        let definition = Arc::new(loom::sync::atomic::AtomicU32::new(1));
        let writer = {
            let (locks, definition) = (Arc::clone(&locks), Arc::clone(&definition));
            thread::spawn(move || {
                assert!(locks.try_acquire(ALICE, TABLE, LockMode::RowExclusive));
                // She holds it until both have looked.
                definition.load(Relaxed)
            })
        };
        definition.store(2, Relaxed);
        let found = locks.holders(BOB, TABLE, LockMode::Share);
        let seen = writer.join().unwrap();
        assert!(seen == 2 || found.iter().any(|holder| holder.proc() == ALICE));
    });
}
