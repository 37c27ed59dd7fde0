//! The lock table by itself, in one process.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::WaitTarget;
use clearway_latch::LwLockVariant;
use clearway_machine::Watchdog;

fn manager_with(relation_locks: RelationLocksVariant) -> Arc<LockManager<Native>> {
    manager_searching_after(Duration::from_millis(50), relation_locks)
}

fn manager_searching_after(
    deadlock_timeout: Duration,
    relation_locks: RelationLocksVariant,
) -> Arc<LockManager<Native>> {
    let array = Arc::new(ProcArray::new(8, LwLockVariant::SingleCas, Xid(100)));
    for _ in 0..8 {
        array.attach().unwrap();
    }
    Arc::new(LockManager::new(
        array,
        LwLockVariant::SingleCas,
        relation_locks,
        deadlock_timeout,
    ))
}

/// One manager of each variant.
fn managers() -> [Arc<LockManager<Native>>; 2] {
    [RelationLocksVariant::Table, RelationLocksVariant::FastPath].map(manager_with)
}

const ALICE: ProcId = ProcId(0);
const BOB: ProcId = ProcId(1);
const CAROL: ProcId = ProcId(2);
const DAVE: ProcId = ProcId(3);
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
                locks.end_transaction(ALICE, a);
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
fn an_upgrade_queues_before_sessions_that_wait_for_the_holder() {
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

/// The queue of sessions for a lock, first to last.
fn queue(locks: &LockManager<Native>, tag: LockTag) -> Vec<ProcId> {
    let partition = locks.partition(tag).shared();
    let entry = partition.entries.get(&tag);
    entry.map_or_else(Vec::new, |entry| {
        entry.queue.iter().map(|waiter| waiter.proc).collect()
    })
}

fn until_queued(locks: &LockManager<Native>, tag: LockTag, procs: &[ProcId]) {
    while queue(locks, tag) != procs {
        std::thread::yield_now();
    }
}

/// Every three modes: Alice's first, Bob's beside it, and what Alice wants then.
#[test]
fn a_lock_is_granted_when_no_other_session_holds_what_excludes_it() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        for first in LockMode::ALL {
            for beside in LockMode::ALL {
                for wanted in LockMode::ALL {
                    let case = format!("{first}, {beside}, {wanted}");
                    assert!(locks.try_acquire(ALICE, ACCOUNTS, first), "{case}");
                    let shared = locks.try_acquire(BOB, ACCOUNTS, beside);
                    assert_eq!(shared, !first.conflicts_with(beside), "{case}");
                    let granted = locks.try_acquire(ALICE, ACCOUNTS, wanted);
                    assert_eq!(
                        granted,
                        !shared || !beside.conflicts_with(wanted) || wanted == first,
                        "{case}"
                    );
                    assert!(locks.holds(ALICE, ACCOUNTS, first));
                    assert_eq!(locks.holds(BOB, ACCOUNTS, beside), shared, "{case}");
                    locks.release(ALICE, ACCOUNTS, first);
                    assert_eq!(
                        locks.holds(ALICE, ACCOUNTS, wanted),
                        granted && wanted != first,
                        "{case}"
                    );
                    locks.release_all(ALICE);
                    locks.release_all(BOB);
                    assert!(
                        locks.try_acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive),
                        "{case}"
                    );
                    locks.release(CAROL, ACCOUNTS, LockMode::AccessExclusive);
                }
            }
        }
    }
}

/// R2: what another session gives back does not let a later waiter pass an earlier one.
#[test]
fn a_release_does_not_let_a_waiter_pass_an_earlier_one() {
    let _watchdog = Watchdog::over_test();
    for locks in managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::RowExclusive));
        assert!(locks.try_acquire(DAVE, ACCOUNTS, LockMode::RowShare));
        std::thread::scope(|scope| {
            let wait = |proc, mode| locks.acquire(proc, ACCOUNTS, mode, LockWait::FOREVER).unwrap();
            scope.spawn(move || wait(BOB, LockMode::AccessExclusive));
            until_queued(&locks, ACCOUNTS, &[BOB]);
            scope.spawn(move || wait(CAROL, LockMode::AccessShare));
            until_queued(&locks, ACCOUNTS, &[BOB, CAROL]);
            locks.release_all(DAVE);
            assert_eq!(queue(&locks, ACCOUNTS), [BOB, CAROL]);
            locks.release_all(ALICE);
            until_queued(&locks, ACCOUNTS, &[CAROL]);
            while !locks.holds(BOB, ACCOUNTS, LockMode::AccessExclusive) {
                std::thread::yield_now();
            }
            locks.release_all(BOB);
        });
        assert!(locks.holds(CAROL, ACCOUNTS, LockMode::AccessShare));
    }
}

/// A manager that looks for a deadlock when the test does.
fn unhurried_managers() -> [Arc<LockManager<Native>>; 2] {
    [RelationLocksVariant::Table, RelationLocksVariant::FastPath]
        .map(|locks| manager_searching_after(Duration::MAX, locks))
}

#[test]
fn a_holder_that_excludes_no_session_is_no_part_of_a_deadlock() {
    let _watchdog = Watchdog::over_test();
    for locks in unhurried_managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
        assert!(locks.try_acquire(CAROL, ACCOUNTS, LockMode::Exclusive));
        assert!(locks.try_acquire(BOB, HISTORY, LockMode::Exclusive));
        std::thread::scope(|scope| {
            let locks = &locks;
            scope.spawn(move || {
                // Carol is in the way, and Alice is not.
                let wait = LockWait::FOREVER;
                locks
                    .acquire(BOB, ACCOUNTS, LockMode::RowExclusive, wait)
                    .unwrap();
                locks.release_all(BOB);
            });
            until_queued(locks, ACCOUNTS, &[BOB]);
            scope.spawn(move || {
                let wait = LockWait::FOREVER;
                locks.acquire(ALICE, HISTORY, LockMode::Exclusive, wait).unwrap();
                locks.release_all(ALICE);
            });
            until_queued(locks, HISTORY, &[ALICE]);
            for searcher in [ALICE, BOB, CAROL] {
                assert_eq!(locks.find_deadlock(searcher), None);
            }
            locks.release_all(CAROL);
        });
    }
}

#[test]
fn a_cycle_through_the_order_of_a_queue_is_dissolved() {
    let _watchdog = Watchdog::over_test();
    for locks in unhurried_managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
        assert!(locks.try_acquire(CAROL, HISTORY, LockMode::Exclusive));
        std::thread::scope(|scope| {
            let locks = &locks;
            let takes = |proc, tag, mode| {
                move || {
                    locks.acquire(proc, tag, mode, LockWait::FOREVER).unwrap();
                    locks.release_all(proc);
                }
            };
            scope.spawn(takes(BOB, ACCOUNTS, LockMode::AccessExclusive));
            until_queued(locks, ACCOUNTS, &[BOB]);
            // Bob is before Carol in the queue, and waits for Alice.
            let carol = scope.spawn(takes(CAROL, ACCOUNTS, LockMode::RowShare));
            until_queued(locks, ACCOUNTS, &[BOB, CAROL]);
            let alice = scope.spawn(takes(ALICE, HISTORY, LockMode::Exclusive));
            until_queued(locks, HISTORY, &[ALICE]);
            assert_eq!(locks.blockers(BOB), [ALICE]);
            assert_eq!(locks.blockers(CAROL), [BOB], "the one before it in the queue");
            let accounts = locks.queue_of(BOB);
            assert_eq!(
                (accounts.holders, accounts.waiters),
                (vec![ALICE], vec![BOB, CAROL])
            );
            assert_eq!(
                locks.queue_of(CAROL),
                locks.queue_of(BOB),
                "both are in one queue"
            );
            // Carol passes Bob, has the lock, and ends; then Alice, then Bob.
            assert_eq!(locks.find_deadlock(ALICE), None);
            carol.join().unwrap();
            alice.join().unwrap();
        });
        assert!(queue(&locks, ACCOUNTS).is_empty() && queue(&locks, HISTORY).is_empty());
    }
}

#[test]
fn a_cycle_of_two_holders_is_told() {
    let _watchdog = Watchdog::over_test();
    for locks in unhurried_managers() {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
        assert!(locks.try_acquire(CAROL, HISTORY, LockMode::Exclusive));
        let given_up = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (locks, given_up) = (&locks, &given_up);
            scope.spawn(move || {
                locks
                    .acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive, LockWait::FOREVER)
                    .unwrap();
                locks.release_all(CAROL);
            });
            until_queued(locks, ACCOUNTS, &[CAROL]);
            let alice = scope.spawn(move || {
                let wait = LockWait {
                    timeout: None,
                    cancel: &|| given_up.load(Relaxed),
                };
                let result = locks.acquire(ALICE, HISTORY, LockMode::Exclusive, wait);
                locks.release_all(ALICE);
                result
            });
            until_queued(locks, HISTORY, &[ALICE]);
            let wait = |waiter, tag, mode, blocker| DeadlockWait {
                waiter,
                target: WaitTarget::Lock(tag, mode),
                blocker,
            };
            assert_eq!(
                locks.find_deadlock(ALICE).unwrap(),
                [
                    wait(ALICE, HISTORY, LockMode::Exclusive, CAROL),
                    wait(CAROL, ACCOUNTS, LockMode::AccessExclusive, ALICE),
                ]
            );
            assert_eq!(locks.queue_of(ALICE), LockQueue::default(), "it waits no more");
            assert!(queue(locks, HISTORY).is_empty(), "R1: the victim waits no more");
            assert_eq!(locks.find_deadlock(CAROL), None);
            given_up.store(true, Relaxed);
            locks.wake(ALICE);
            assert_eq!(alice.join().unwrap(), Err(LockError::Cancelled));
        });
    }
}

#[test]
fn a_session_that_locked_much_is_small_again() {
    let locks = manager_with(RelationLocksVariant::Table);
    for relation in 0..5_000 {
        assert!(locks.try_acquire(ALICE, LockTag::Relation(relation), LockMode::AccessShare));
    }
    locks.release_all(ALICE);
    assert!(locks.wait_of(ALICE).held.shared().capacity() < 1_000);
}

/// A transaction may lock each row of a large table: what it leaves in the shared table is bounded.
///
/// Caught mutation: entries that stay when no session holds their lock.
#[test]
fn locks_given_back_leave_few_entries() {
    for locks in managers() {
        for number in 0..20_000 {
            let row = LockTag::Tuple {
                rel: 10,
                block: number,
                slot: 1,
            };
            assert!(locks.try_acquire(ALICE, row, LockMode::Exclusive));
            assert!(locks.try_acquire(ALICE, LockTag::Relation(number), LockMode::Share));
            locks.release_all(ALICE);
        }
        for partition in &locks.partitions {
            let entries = &partition.shared().entries;
            assert!(entries.len() <= entry::IDLE_ENTRIES_MAX);
            assert!(entries.keys().all(|tag| matches!(tag, LockTag::Relation(_))));
        }
    }
}

/// Caught mutation: an entry with holders that counts as idle, after which two sessions would change one row.
#[test]
fn a_rows_lock_stays_while_a_session_holds_it() {
    for locks in managers() {
        let row = LockTag::Tuple {
            rel: 10,
            block: 0,
            slot: 1,
        };
        assert!(locks.try_acquire(ALICE, row, LockMode::Share));
        assert!(locks.try_acquire(BOB, row, LockMode::Share));
        locks.release_all(ALICE);
        assert!(
            !locks.try_acquire(CAROL, row, LockMode::Exclusive),
            "Bob holds it"
        );
        locks.release_all(BOB);
        assert!(locks.try_acquire(CAROL, row, LockMode::Exclusive));
    }
}

/// Caught mutations: the second mode moved as that of another holder, which is never given back; the count of strong
/// lockers of a relation with a great number looked for beyond the last.
#[test]
fn all_weak_modes_that_were_moved_are_given_back() {
    for relation in [10, u32::MAX].map(LockTag::Relation) {
        let locks = manager_with(RelationLocksVariant::FastPath);
        assert!(locks.try_acquire(ALICE, relation, LockMode::AccessShare));
        assert!(locks.try_acquire(ALICE, relation, LockMode::RowExclusive));
        assert!(!locks.try_acquire(BOB, relation, LockMode::Share));
        locks.release_all(ALICE);
        assert!(locks.try_acquire(BOB, relation, LockMode::AccessExclusive));
    }
}

/// K1 and K2 of `session_locks`.
#[test]
fn what_a_session_holds_for_itself_outlives_its_transactions() {
    for locks in managers() {
        let key = |low| LockTag::Advisory {
            high: 0,
            low,
            is_pair: false,
        };
        let free = |tag, mode| {
            let taken = locks.try_acquire(BOB, tag, mode);
            locks.release_all(BOB);
            taken
        };
        for low in 1..=2 {
            assert!(locks.try_acquire(ALICE, key(low), LockMode::Share));
        }
        assert!(locks.try_acquire(ALICE, key(1), LockMode::Exclusive));
        locks.hold_for_session(ALICE, key(1), LockMode::Share, true);
        assert_eq!(locks.listed().len(), 3);
        locks.release_others(ALICE, &[(key(2), LockMode::Share)]);
        assert!(free(key(1), LockMode::Share) && !free(key(1), LockMode::Exclusive));
        assert!(!free(key(2), LockMode::Exclusive));
        locks.release_all(ALICE);
        assert!(
            free(key(2), LockMode::Exclusive) && !free(key(1), LockMode::Exclusive),
            "K2"
        );
        let [listed] = *locks.listed() else {
            panic!("one lock is left")
        };
        assert_eq!(
            (listed.tag, listed.mode, listed.granted),
            (key(1), LockMode::Share, true)
        );
        // The transaction asks for it too, and the session gives it back first.
        locks.hold_for_session(ALICE, key(1), LockMode::Share, false);
        assert!(!free(key(1), LockMode::Exclusive));
        locks.release_all(ALICE);
        assert!(locks.listed().is_empty());
    }
}
