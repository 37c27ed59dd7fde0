//! The lock table by itself, in one process.

use super::*;
use clearway_latch::LwLockVariant;
use clearway_machine::Watchdog;

fn manager_with(relation_locks: RelationLocksVariant) -> Arc<LockManager<Native>> {
    let array = Arc::new(ProcArray::new(8, LwLockVariant::SingleCas, Xid(100)));
    for _ in 0..8 {
        array.attach().unwrap();
    }
    Arc::new(LockManager::new(
        array,
        LwLockVariant::SingleCas,
        relation_locks,
        Duration::from_millis(50),
    ))
}

/// One manager of each variant.
fn managers() -> [Arc<LockManager<Native>>; 2] {
    [RelationLocksVariant::Table, RelationLocksVariant::FastPath].map(manager_with)
}

const ALICE: ProcId = ProcId(0);
const BOB: ProcId = ProcId(1);
const CAROL: ProcId = ProcId(2);
const ACCOUNTS: LockTag = LockTag::Relation(10);
const HISTORY: LockTag = LockTag::Relation(11);

#[test]
fn weak_modes_share_and_strong_ones_wait() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::RowExclusive));
        assert!(locks.try_acquire(BOB, ACCOUNTS, LockMode::RowExclusive));
        assert!(!locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive));
        let carol = LockWait {
            timeout: Some(Duration::from_millis(20)),
            cancel: &|| false,
        };
        assert_eq!(
            locks.acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive, carol),
            Err(LockError::Timeout)
        );
        locks.release_all(ALICE);
        locks.release_all(BOB);
        assert!(locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive));
    }
}

#[test]
fn newcomers_do_not_pass_a_queued_strong_locker() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
        std::thread::scope(|scope| {
            let strong = scope.spawn(|| {
                locks
                    .acquire(BOB, ACCOUNTS, LockMode::AccessExclusive, LockWait::FOREVER)
                    .unwrap();
                locks.release_all(BOB);
            });
            while locks.wait_of(BOB).queued.load(Acquire) == NOT_WAITING {
                std::thread::yield_now();
            }
            assert!(!locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessShare), "R1");
            locks.release_all(ALICE);
            strong.join().unwrap();
        });
        assert!(locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessShare));
    }
}

#[test]
fn a_deadlock_has_exactly_one_victim() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Exclusive));
        assert!(locks.try_acquire(BOB, HISTORY, LockMode::Exclusive));
        let run = |me: ProcId, wanted: LockTag| {
            let result = locks.acquire(me, wanted, LockMode::Exclusive, LockWait::FOREVER);
            locks.release_all(me);
            result
        };
        let (alice, bob) = std::thread::scope(|scope| {
            let alice = scope.spawn(|| run(ALICE, HISTORY));
            let bob = scope.spawn(|| run(BOB, ACCOUNTS));
            (alice.join().unwrap(), bob.join().unwrap())
        });
        assert!(alice.is_ok() != bob.is_ok(), "{alice:?} {bob:?}");
        assert!(matches!(alice.and(bob), Err(LockError::Deadlock { .. })));
    }
}

#[test]
fn a_lock_and_a_transaction_can_deadlock() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        let a = locks.proc_array.assign_xid(ALICE);
        assert!(locks.try_acquire(BOB, HISTORY, LockMode::Exclusive));
        let (alice, bob) = std::thread::scope(|scope| {
            let alice = scope.spawn(|| {
                let result = locks.acquire(ALICE, HISTORY, LockMode::Exclusive, LockWait::FOREVER);
                locks.proc_array.end(ALICE, Some(a));
                locks.transaction_ended(ALICE, a);
                locks.release_all(ALICE);
                result
            });
            let bob = scope.spawn(|| {
                let result = locks.wait_for_transaction(BOB, a, LockWait::FOREVER);
                locks.release_all(BOB);
                result
            });
            (alice.join().unwrap(), bob.join().unwrap())
        });
        assert!(alice.is_ok() != bob.is_ok(), "{alice:?} {bob:?}");
    }
}

#[test]
fn a_cancelled_waiter_leaves_no_trace() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Exclusive));
        let now = LockWait {
            timeout: None,
            cancel: &|| true,
        };
        assert_eq!(
            locks.acquire(BOB, ACCOUNTS, LockMode::Exclusive, now),
            Err(LockError::Cancelled)
        );
        locks.release_all(ALICE);
        assert!(
            locks.partitions.iter().all(|partition| partition
                .shared()
                .entries
                .values()
                .all(LockEntry::is_idle))
        );
    }
}

#[test]
fn many_sessions_count_under_one_lock() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        let counter = std::cell::UnsafeCell::new(0u64);
        struct Shared<'a>(&'a std::cell::UnsafeCell<u64>);
        // SAFETY: the counter is touched under the exclusive lock only; that is what this test checks.
        unsafe impl Sync for Shared<'_> {}
        let shared = Shared(&counter);
        std::thread::scope(|scope| {
            for proc in 0..8 {
                let (locks, shared) = (&locks, &shared);
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        locks
                            .acquire(ProcId(proc), ACCOUNTS, LockMode::Exclusive, LockWait::FOREVER)
                            .unwrap();
                        // SAFETY: we hold the lock exclusively.
                        unsafe { *shared.0.get() += 1 };
                        locks.release_all(ProcId(proc));
                    }
                });
            }
        });
        assert_eq!(counter.into_inner(), 16_000);
    }
}

#[test]
fn an_upgrade_queues_before_those_who_wait_for_the_holder() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::Share));
        assert!(locks.try_acquire(BOB, ACCOUNTS, LockMode::Share));
        std::thread::scope(|scope| {
            let wait_until_queued = |proc| {
                while locks.wait_of(proc).queued.load(Acquire) == NOT_WAITING {
                    std::thread::yield_now();
                }
            };
            let carol = scope.spawn(|| {
                locks
                    .acquire(CAROL, ACCOUNTS, LockMode::Exclusive, LockWait::FOREVER)
                    .unwrap();
                assert!(!locks.holds(ALICE, ACCOUNTS, LockMode::Share), "Alice came first");
                locks.release_all(CAROL);
            });
            wait_until_queued(CAROL);
            let alice = scope.spawn(|| {
                locks
                    .acquire(ALICE, ACCOUNTS, LockMode::Exclusive, LockWait::FOREVER)
                    .unwrap();
                assert!(locks.holds(ALICE, ACCOUNTS, LockMode::Share));
                locks.release_all(ALICE);
            });
            wait_until_queued(ALICE);
            locks.release_all(BOB);
            alice.join().unwrap();
            carol.join().unwrap();
        });
        assert!(
            locks.partitions.iter().all(|partition| partition
                .shared()
                .entries
                .values()
                .all(LockEntry::is_idle))
        );
    }
}

#[test]
fn modes_are_given_back_one_by_one() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        for mode in [
            LockMode::AccessShare,
            LockMode::RowExclusive,
            LockMode::RowExclusive,
        ] {
            assert!(locks.try_acquire(ALICE, ACCOUNTS, mode));
        }
        assert!(!locks.try_acquire(BOB, ACCOUNTS, LockMode::Share));
        locks.release(ALICE, ACCOUNTS, LockMode::RowExclusive);
        assert!(
            locks.try_acquire(BOB, ACCOUNTS, LockMode::Share),
            "AccessShare alone does not stop Share"
        );
        assert!(!locks.try_acquire(ALICE, ACCOUNTS, LockMode::RowExclusive));
        locks.release_all(ALICE);
        locks.release_all(BOB);
        assert!(
            locks.partitions.iter().all(|partition| partition
                .shared()
                .entries
                .values()
                .all(LockEntry::is_idle))
        );
    }
}

/// Every weak lock of the session, as the session's list and as the table have it.
fn on_list_and_in_table(locks: &LockManager<Native>, proc: ProcId) -> (usize, usize) {
    let fast = locks
        .wait_of(proc)
        .held
        .shared()
        .iter()
        .filter(|lock| lock.fast)
        .count();
    let entries = locks.partitions.iter().map(|partition| {
        let partition = partition.shared();
        let held = partition
            .entries
            .values()
            .filter(|entry| entry.holders.iter().any(|holder| holder.proc == proc));
        held.count()
    });
    (fast, entries.sum())
}

#[test]
fn a_strong_locker_moves_weak_locks_into_the_table() {
    let _watchdog = Watchdog::over_test();
    let locks = manager_with(RelationLocksVariant::FastPath);
    assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
    assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::RowExclusive));
    assert!(locks.try_acquire(ALICE, HISTORY, LockMode::RowExclusive));
    assert_eq!(on_list_and_in_table(&locks, ALICE), (2, 0));

    assert!(
        !locks.try_acquire(BOB, ACCOUNTS, LockMode::Share),
        "Alice writes the table"
    );
    assert_eq!(
        on_list_and_in_table(&locks, ALICE),
        (1, 1),
        "only what Bob asked for has moved"
    );
    assert!(locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessShare));
    assert_eq!(
        on_list_and_in_table(&locks, CAROL),
        (1, 0),
        "Bob went away and is not counted any more"
    );

    locks.release(ALICE, ACCOUNTS, LockMode::RowExclusive);
    assert!(locks.try_acquire(BOB, ACCOUNTS, LockMode::Share));
    assert!(
        locks.try_acquire(CAROL, ACCOUNTS, LockMode::RowShare),
        "Share and RowShare go together"
    );
    assert_eq!(
        on_list_and_in_table(&locks, CAROL),
        (0, 1),
        "while Bob has it, by way of the table"
    );
    locks.release_all(BOB);
    locks.release_all(CAROL);
    assert!(locks.try_acquire(CAROL, ACCOUNTS, LockMode::RowShare));
    assert_eq!(on_list_and_in_table(&locks, CAROL), (1, 0));
}

#[test]
fn an_own_weak_lock_does_not_stand_in_the_way_of_a_strong_one() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessExclusive));
        assert!(
            locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessExclusive),
            "held already"
        );
        assert!(!locks.try_acquire(BOB, ACCOUNTS, LockMode::AccessShare));
        locks.release_all(ALICE);
        assert!(locks.try_acquire(BOB, ACCOUNTS, LockMode::AccessShare));
    }
}

/// F2: a vacuum that waits with a weak lock on its list, while a strong locker moves that lock.
#[test]
fn a_waiter_takes_its_weak_locks_into_the_table() {
    let _watchdog = Watchdog::over_test();
    let locks = manager_with(RelationLocksVariant::FastPath);
    assert!(locks.try_acquire(BOB, ACCOUNTS, LockMode::ShareUpdateExclusive));
    assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
    std::thread::scope(|scope| {
        let alice = scope.spawn(|| {
            locks
                .acquire(ALICE, ACCOUNTS, LockMode::ShareUpdateExclusive, LockWait::FOREVER)
                .unwrap();
        });
        while locks.wait_of(ALICE).queued.load(Acquire) == NOT_WAITING {
            std::thread::yield_now();
        }
        assert_eq!(on_list_and_in_table(&locks, ALICE), (0, 1));
        assert!(!locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive));
        locks.release_all(BOB);
        alice.join().unwrap();
    });
    locks.release_all(ALICE);
    assert!(locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive));
}
