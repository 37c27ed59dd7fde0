//! The duration of a wait for a lock, seen from outside: its own limit, the time until a deadlock is looked for, and
//! how often a waiter looks up in between. No test measures time: limits are hours where they must not be reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::{Machine, Native, WaitEvent, Watchdog};
use clearway_txn::{
    LockError, LockKind, LockManager, LockMode, LockTag, LockWait, ProcArray, ProcId, RelationLocksVariant,
    WaitTarget, Xid,
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

/// Objects of the program's own are waited for, listed and told of in a deadlock by the name of their kind. Mutations seen
/// caught: `mutations/own_locks.toml`.
#[test]
fn a_deadlock_over_objects_of_the_programs_own() {
    let _watchdog = Watchdog::over_test();
    assert_eq!(LockKind::of(WaitEvent::LockRelation), None);
    let bucket = LockKind::named("bucket").unwrap();
    assert_eq!(LockKind::named("bucket"), Some(bucket));
    let document = LockKind::named("document").unwrap();
    // The same key under two kinds; a key of more than 32 bits.
    let [first, second] = [bucket, document].map(|kind| LockTag::own(kind, 1 << 40 | 7));
    for locks in managers(Duration::from_millis(50)) {
        assert!(locks.try_acquire(ALICE, first, LockMode::Exclusive));
        assert!(locks.try_acquire(BOB, second, LockMode::Exclusive));
        let worker = std::sync::OnceLock::new();
        thread::scope(|scope| {
            let run = |me, wanted| {
                // Long after the search, which is what ends the wait.
                let wait = at_most(Duration::from_secs(60));
                let result = locks.acquire(me, wanted, LockMode::Exclusive, wait);
                locks.release_all(me);
                result
            };
            // Alice looks for no deadlock, so Bob is its victim.
            locks.set_deadlock_timeout(ALICE, Duration::MAX);
            let worker = &worker;
            let alice = scope.spawn(move || {
                worker.set(Native::worker()).unwrap();
                run(ALICE, second)
            });
            let event = || {
                worker
                    .get()
                    .map(|worker| Native::workers().slot(*worker).wait_event())
            };
            while event() != Some(document.wait_event()) {
                assert!(!alice.is_finished(), "Alice waits for a document");
                thread::yield_now();
            }
            let listed = locks.listed().into_iter().filter(|lock| !lock.granted);
            let waits: Vec<String> = listed.map(|lock| lock.tag.to_string()).collect();
            assert_eq!(waits, ["document 1099511627783"]);
            let Err(LockError::Deadlock { cycle }) = run(BOB, first) else {
                panic!("Bob waits for Alice, and Alice for Bob");
            };
            let targets: Vec<WaitTarget> = cycle.iter().map(|wait| wait.target).collect();
            let [first, second] = [first, second].map(|tag| WaitTarget::Lock(tag, LockMode::Exclusive));
            assert_eq!(targets, [first, second]);
            assert_eq!(alice.join().unwrap(), Ok(()));
        });
    }
}
