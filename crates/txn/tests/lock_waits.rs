//! The duration of a wait for a lock, seen from outside: its own limit, the time until a deadlock is looked for, and
//! how often a waiter looks up in between. No test measures time: limits are hours where they must not be reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::{Native, Watchdog};
use clearway_txn::{
    LockError, LockManager, LockMode, LockTag, LockWait, ProcArray, ProcId, RelationLocksVariant, Xid,
};

const ALICE: ProcId = ProcId(0);
const BOB: ProcId = ProcId(1);
const CAROL: ProcId = ProcId(2);
const ACCOUNTS: LockTag = LockTag::Relation(10);
const HISTORY: LockTag = LockTag::Relation(11);
const HOURS: Duration = Duration::from_secs(10_000);

/// One manager of each variant, for three sessions.
fn managers(deadlock_timeout: Duration) -> [LockManager<Native>; 2] {
    [RelationLocksVariant::Table, RelationLocksVariant::FastPath].map(|relation_locks| {
        let array = Arc::new(ProcArray::new(3, LwLockVariant::SingleCas, Xid(100)));
        for _ in 0..3 {
            array.attach().unwrap();
        }
        LockManager::new(array, LwLockVariant::SingleCas, relation_locks, deadlock_timeout)
    })
}

fn at_most(timeout: Duration) -> LockWait<'static> {
    LockWait {
        timeout: Some(timeout),
        cancel: &|| false,
    }
}

#[test]
fn a_waiter_with_time_left_gets_the_lock() {
    let _watchdog = Watchdog::over_test();
    for locks in managers(HOURS) {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
        thread::scope(|scope| {
            let bob = scope.spawn(|| locks.acquire(BOB, ACCOUNTS, LockMode::AccessExclusive, at_most(HOURS)));
            // Once Bob is in the queue, Carol does not overtake Bob.
            while !bob.is_finished() && locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessShare) {
                locks.release_all(CAROL);
                thread::yield_now();
            }
            locks.release_all(ALICE);
            assert_eq!(bob.join().unwrap(), Ok(()));
        });
    }
}

#[test]
fn a_deadlock_is_not_looked_for_before_its_time() {
    let _watchdog = Watchdog::over_test();
    for locks in managers(HOURS) {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Exclusive));
        assert!(locks.try_acquire(BOB, HISTORY, LockMode::Exclusive));
        thread::scope(|scope| {
            let alice = scope.spawn(|| {
                let result = locks.acquire(ALICE, HISTORY, LockMode::Exclusive, LockWait::FOREVER);
                locks.release_all(ALICE);
                result
            });
            let limit = Duration::from_millis(200);
            let bob = locks.acquire(BOB, ACCOUNTS, LockMode::Exclusive, at_most(limit));
            locks.release_all(BOB);
            assert_eq!(alice.join().unwrap(), Ok(()));
            assert_eq!(bob, Err(LockError::Timeout));
        });
    }
}

#[test]
fn a_waiter_sleeps_after_it_has_looked_for_a_deadlock() {
    let _watchdog = Watchdog::over_test();
    for locks in managers(Duration::ZERO) {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Exclusive));
        let looks = AtomicU32::new(0);
        let cancel = || {
            looks.fetch_add(1, Ordering::Relaxed);
            false
        };
        let wait = LockWait {
            timeout: Some(Duration::from_millis(300)),
            cancel: &cancel,
        };
        assert_eq!(
            locks.acquire(BOB, ACCOUNTS, LockMode::Exclusive, wait),
            Err(LockError::Timeout)
        );
        // Every 100 ms, and once or twice more; without sleep it would be hundreds of thousands.
        let looks = looks.load(Ordering::Relaxed);
        assert!(looks < 50, "a waiter looked up {looks} times");
    }
}
