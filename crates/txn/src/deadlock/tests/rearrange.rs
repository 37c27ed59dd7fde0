//! Cycles that the order of a queue makes, and those that no order dissolves.

use clearway_machine::Switch;

use super::*;

const DAVE: ProcId = ProcId(3);

/// The sessions of a queue, in their order.
fn queue(locks: &LockManager<Native>, tag: LockTag) -> Vec<ProcId> {
    let partition = locks.partitions[locks.partition_number(tag)].shared();
    let queue = partition.entries.get(&tag).map(|entry| &entry.queue);
    queue.into_iter().flatten().map(|waiter| waiter.proc).collect()
}

fn each(sessions: u32, case: impl Fn(&LockManager<Native>)) {
    for &relation_locks in RelationLocksVariant::ALL {
        case(&manager(sessions, relation_locks));
    }
}

/// The example at the top of the module, with Dave beside Carol: Alice passes both, has the lock, and leaves them behind in
/// their order.
///
/// Mutations that it is for: those of `mutations/rearranged_queues.toml`.
#[test]
fn a_session_passes_all_that_wait_for_another() {
    each(4, |locks| {
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::ShareUpdateExclusive));
        assert!(locks.try_acquire(BOB, HISTORY, LockMode::AccessShare));
        let mut bob = locks.request(BOB, ACCOUNTS, LockMode::ShareUpdateExclusive);
        let mut carol = locks.request(CAROL, HISTORY, LockMode::AccessExclusive);
        let mut dave = locks.request(DAVE, HISTORY, LockMode::AccessExclusive);
        let mut alice = locks.request(ALICE, HISTORY, LockMode::ShareUpdateExclusive);
        assert_eq!(queue(locks, HISTORY), [CAROL, DAVE, ALICE]);
        assert_eq!(locks.look_for_deadlock(ALICE), None);
        assert!(alice.is_granted());
        assert_eq!(queue(locks, HISTORY), [CAROL, DAVE]);
        assert_eq!(queue(locks, ACCOUNTS), [BOB]);
        locks.release_all(ALICE);
        assert!(bob.is_granted() && !carol.is_granted());
        locks.release_all(BOB);
        assert!(carol.is_granted() && !dave.is_granted());
        locks.release_all(CAROL);
        assert!(dave.is_granted());
        locks.release_all(DAVE);
    });
}

/// Two readers of two tables, and before the second lock of each a session that wants the table for itself. One of the two
/// turns is enough: that of the session that does not search.
#[test]
fn one_of_two_queues_gets_another_order() {
    each(4, |locks| {
        assert!(locks.try_acquire(BOB, ACCOUNTS, LockMode::AccessShare));
        assert!(locks.try_acquire(ALICE, HISTORY, LockMode::AccessShare));
        let mut carol = locks.request(CAROL, ACCOUNTS, LockMode::AccessExclusive);
        let mut dave = locks.request(DAVE, HISTORY, LockMode::AccessExclusive);
        let mut bob = locks.request(BOB, HISTORY, LockMode::AccessShare);
        let mut alice = locks.request(ALICE, ACCOUNTS, LockMode::AccessShare);
        assert_eq!(locks.look_for_deadlock(ALICE), None);
        assert!(bob.is_granted() && !alice.is_granted());
        assert_eq!(queue(locks, ACCOUNTS), [CAROL, ALICE]);
        locks.release_all(BOB);
        assert!(carol.is_granted());
        locks.release_all(CAROL);
        assert!(alice.is_granted());
        locks.release_all(ALICE);
        assert!(dave.is_granted());
        locks.release_all(DAVE);
    });
}

/// Carol waits for Bob by the order of a queue, and for Dave, which holds the lock; both wait for Alice, and Alice for Carol.
#[test]
fn a_cycle_that_no_order_dissolves_leaves_the_queues_as_they_are() {
    each(5, |locks| {
        let eve = ProcId(4);
        let a = locks.proc_array.assign_xid(ALICE);
        assert!(locks.try_acquire(DAVE, ACCOUNTS, LockMode::RowExclusive));
        assert!(locks.try_acquire(CAROL, HISTORY, LockMode::Exclusive));
        locks.begin_wait(DAVE, ALICE, a);
        assert!(locks.try_acquire(ALICE, ACCOUNTS, LockMode::AccessShare));
        let waiting = [
            locks.request(eve, ACCOUNTS, LockMode::AccessExclusive),
            locks.request(BOB, ACCOUNTS, LockMode::AccessExclusive),
            locks.request(CAROL, ACCOUNTS, LockMode::Share),
            locks.request(ALICE, HISTORY, LockMode::Exclusive),
        ];
        let cycle = Search::of(locks).cycle_through(ALICE).unwrap();
        assert_eq!(
            describe(&cycle)[1],
            DeadlockWait {
                waiter: CAROL,
                target: WaitTarget::Lock(ACCOUNTS, LockMode::Share),
                blocker: BOB,
            },
            "the cycle found first goes through the queue"
        );
        assert!(locks.look_for_deadlock(ALICE).is_some());
        assert_eq!(queue(locks, ACCOUNTS), [eve, BOB, CAROL]);
        assert_eq!(queue(locks, HISTORY), []);
        drop(waiting);
    });
}
