//! The queue of one lock under loom, with three sessions in it beside the one that holds the lock: who is granted what,
//! in which order, and who is woken. Two sessions, and waits for transactions: `loom_lock_table`. More of everything at
//! random: `shuttle_lock_table`. A session left asleep is reported by loom as a deadlock.
//!
//! `cargo test -p clearway-txn --features loom --test loom_lock_queue --release`
//!
//! Caught mutations: those of `mutations/lock_queue.toml`, and one of `rearranged_queues.toml`.

#![cfg(feature = "loom")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_latch::LwLockVariant;
use clearway_machine::{AtomicWord, DataCell, Loom, Machine, Semaphore, Switch, WaitEvent, WorkerId};
use clearway_txn::{LockError, LockManager, LockMode, LockTag, LockWait, ProcId, RelationLocksVariant};
use loom::thread;
use support::{ALICE, BOB, CAROL, DAVE, array, explore};

type Flag = <Loom as Machine>::U32;

const ACCOUNTS: LockTag = LockTag::Relation(1);

struct Shared {
    locks: LockManager<Loom>,
    /// Sessions in the order in which they had the lock. Reached under the lock alone.
    had_it: <Loom as Machine>::Data<Vec<ProcId>>,
    /// 1: Carol is to give up.
    cancelled: Flag,
    bob_has_it: Flag,
}

// SAFETY: the cell is reached under the lock, which is what the tests check.
unsafe impl Sync for Shared {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Shared {}

impl Shared {
    /// Takes the lock in a mode that excludes itself, notes that, and gives it back.
    fn take_in_turn(&self, me: ProcId, mode: LockMode) {
        self.locks.acquire(me, ACCOUNTS, mode, LockWait::FOREVER).unwrap();
        // SAFETY: loom checks that the lock keeps the others out.
        self.had_it.with_mut(|order| unsafe { (*order).push(me) });
        self.locks.release_all(me);
    }

    /// The sessions that had the lock, when all threads have ended.
    fn order(&self) -> Vec<ProcId> {
        // SAFETY: no other thread runs.
        self.had_it.with(|order| unsafe { (*order).clone() })
    }

    /// All have given the lock back.
    fn is_free(&self) -> bool {
        self.locks.try_acquire(BOB, ACCOUNTS, LockMode::AccessExclusive)
    }
}

/// Explores `case`, in which Alice has the lock in `mode`, with relation locks in each place.
fn explore_each(preemptions: usize, mode: LockMode, case: fn(Arc<Shared>)) {
    for &relation_locks in RelationLocksVariant::ALL {
        eprintln!("under {relation_locks:?}");
        explore(preemptions, move || {
            // The model's own thread is worker 0.
            assert_eq!(Loom::worker(), WorkerId(0));
            let array = Arc::new(array::<Loom>(LwLockVariant::SingleCas, 4));
            let lwlock = LwLockVariant::SingleCas;
            let shared = Shared {
                locks: LockManager::new(array, lwlock, relation_locks, Duration::MAX),
                had_it: DataCell::new(Vec::new()),
                cancelled: Flag::new(0),
                bob_has_it: Flag::new(0),
            };
            assert!(shared.locks.try_acquire(ALICE, ACCOUNTS, mode));
            case(Arc::new(shared));
        });
    }
}

/// Starts `session`, which is worker `number`, and returns when it is in the queue.
fn queued(
    shared: &Arc<Shared>,
    number: u32,
    session: impl FnOnce(&Shared) + 'static,
) -> thread::JoinHandle<()> {
    let thread = {
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            assert_eq!(Loom::worker(), WorkerId(number));
            session(&shared);
        })
    };
    // A session shows that it waits when it is in the queue.
    while Loom::workers().slot(WorkerId(number)).wait_event() != WaitEvent::LockRelation {
        thread::yield_now();
    }
    thread
}

fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Bob, Carol and Dave queue one after the other, and each keeps the others out. Alice gives the lock back: each has it
/// once, in the order in which they came.
#[test]
fn loom_a_queue_of_three_is_granted_in_order() {
    explore_each(3, LockMode::AccessShare, |shared| {
        let threads = [(1, BOB), (2, CAROL), (3, DAVE)].map(|(number, me)| {
            queued(&shared, number, move |shared| {
                shared.take_in_turn(me, LockMode::AccessExclusive);
            })
        });
        shared.locks.release_all(ALICE);
        join(threads);
        assert_eq!(shared.order(), [BOB, CAROL, DAVE]);
        assert!(shared.is_free());
    });
}

/// The same sessions, which come while Alice gives the lock back: each has it once.
#[test]
fn loom_three_come_while_the_lock_is_given_back() {
    explore_each(2, LockMode::AccessShare, |shared| {
        let threads = [BOB, CAROL, DAVE].map(|me| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.take_in_turn(me, LockMode::AccessExclusive))
        });
        shared.locks.release_all(ALICE);
        join(threads);
        let mut order = shared.order();
        order.sort();
        assert_eq!(order, [BOB, CAROL, DAVE]);
        assert!(shared.is_free());
    });
}

/// Takes the lock in `mode`, and keeps it until the other of two sessions has it too.
fn meet(shared: &Shared, me: ProcId, mode: LockMode, mine: &Semaphore<Loom>, other: &Semaphore<Loom>) {
    let locks = &shared.locks;
    locks.acquire(me, ACCOUNTS, mode, LockWait::FOREVER).unwrap();
    // SAFETY: loom checks that Dave is kept out.
    shared
        .had_it
        .with(|order| assert!(unsafe { (*order).is_empty() }));
    other.post();
    mine.wait();
    locks.release_all(me);
}

/// Bob and Carol, whose modes do not exclude each other, queue before Dave, whose mode excludes both. Alice's release lets
/// both in, which stay until they have met, and Dave follows when both have left.
#[test]
fn loom_waiters_that_do_not_exclude_each_other_are_granted_together() {
    explore_each(2, LockMode::Exclusive, |shared| {
        let semaphores = Arc::new([Semaphore::<Loom>::new(), Semaphore::<Loom>::new()]);
        let meeting =
            [(1, BOB, LockMode::RowExclusive), (2, CAROL, LockMode::RowShare)].map(|(number, me, mode)| {
                let semaphores = Arc::clone(&semaphores);
                queued(&shared, number, move |shared| {
                    let [bob, carol] = &*semaphores;
                    let (mine, other) = if me == BOB { (bob, carol) } else { (carol, bob) };
                    meet(shared, me, mode, mine, other);
                })
            });
        let dave = queued(&shared, 3, |shared| {
            shared.take_in_turn(DAVE, LockMode::AccessExclusive);
        });
        shared.locks.release_all(ALICE);
        join(meeting.into_iter().chain([dave]));
        assert_eq!(shared.order(), [DAVE]);
        assert!(shared.is_free());
    });
}

/// Bob waits for Alice. Carol, behind Bob, is all that keeps Dave out, whose mode neither Alice's nor Bob's excludes.
fn bob_carol_dave(shared: &Arc<Shared>) -> [thread::JoinHandle<()>; 3] {
    let bob = queued(shared, 1, |shared| {
        let locks = &shared.locks;
        locks
            .acquire(BOB, ACCOUNTS, LockMode::RowExclusive, LockWait::FOREVER)
            .unwrap();
        // Relaxed: Alice's thread knows it by the lock.
        shared.bob_has_it.store(1, Relaxed);
        locks.release_all(BOB);
    });
    let carol = queued(shared, 2, |shared| {
        let wait = LockWait {
            timeout: None,
            cancel: &|| shared.cancelled.load(Acquire) != 0,
        };
        match shared
            .locks
            .acquire(CAROL, ACCOUNTS, LockMode::AccessExclusive, wait)
        {
            Ok(()) => shared.locks.release_all(CAROL),
            Err(error) => assert_eq!(error, LockError::Cancelled),
        }
    });
    let dave = queued(shared, 3, |shared| {
        let locks = &shared.locks;
        locks
            .acquire(DAVE, ACCOUNTS, LockMode::AccessShare, LockWait::FOREVER)
            .unwrap();
        locks.release_all(DAVE);
    });
    [bob, carol, dave]
}

/// Carol is cancelled: Dave goes on at once, and Bob when Alice has given the lock back, and not before.
#[test]
fn loom_the_middle_of_three_gives_up() {
    explore_each(2, LockMode::Share, |shared| {
        let [bob, carol, dave] = bob_carol_dave(&shared);
        shared.cancelled.store(1, Release);
        shared.locks.wake(CAROL);
        join([carol, dave]);
        assert_eq!(shared.bob_has_it.load(Relaxed), 0, "Alice's mode excludes Bob's");
        shared.locks.release_all(ALICE);
        join([bob]);
        assert!(shared.is_free());
    });
}

/// Carol is cancelled while Alice gives the lock back: Carol gives up or has it, and the others go on either way.
#[test]
fn loom_the_middle_of_three_gives_up_during_a_release() {
    explore_each(2, LockMode::Share, |shared| {
        let threads = bob_carol_dave(&shared);
        shared.cancelled.store(1, Release);
        shared.locks.wake(CAROL);
        shared.locks.release_all(ALICE);
        join(threads);
        assert!(shared.is_free());
    });
}

/// The example of `deadlock::rearrange`: Carol queues for history, which Bob reads, before Alice does; Bob waits for Alice.
/// Alice and Bob ask in any order, and each looks once, at once. Whichever completes the cycle, Alice passes Carol, and no
/// session gives up.
#[test]
fn loom_a_session_passes_one_that_waits_for_it() {
    const HISTORY: LockTag = LockTag::Relation(2);
    explore_each(2, LockMode::ShareUpdateExclusive, |shared| {
        let takes_and_ends = |me: ProcId, tag: LockTag, mode: LockMode| {
            move |shared: &Shared| {
                let taken = shared.locks.acquire(me, tag, mode, LockWait::FOREVER);
                assert_eq!(taken, Ok(()));
                shared.locks.release_all(me);
            }
        };
        assert!(shared.locks.try_acquire(BOB, HISTORY, LockMode::AccessShare));
        let carol = queued(
            &shared,
            1,
            takes_and_ends(CAROL, HISTORY, LockMode::AccessExclusive),
        );
        for searcher in [ALICE, BOB] {
            shared.locks.set_deadlock_timeout(searcher, Duration::ZERO);
        }
        let bob = {
            let shared = Arc::clone(&shared);
            let take = takes_and_ends(BOB, ACCOUNTS, LockMode::ShareUpdateExclusive);
            thread::spawn(move || take(&shared))
        };
        takes_and_ends(ALICE, HISTORY, LockMode::ShareUpdateExclusive)(&shared);
        join([bob, carol]);
        assert!(shared.is_free());
    });
}
