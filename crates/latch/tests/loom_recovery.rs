//! The death of a worker that sleeps on an LwLock, under loom: every schedule of the worker that wakes it, of another that waits,
//! and of the one that stands in for the dead (R12 of `lwlock`). The latch is the shipped one; the machine ends the thread at
//! a chosen moment of its futex wait.
//!
//! A lost wake-up is reported as a deadlock. What each test was seen to catch is in `mutations/recovery.toml`.
//!
//! `cargo test -p clearway-latch --features loom --test loom_recovery --release`

#[path = "support/explore.rs"]
mod explore;

use std::sync::Arc;

use clearway_latch::{LatchClass, LatchMode, LwLock, LwLockFairnessVariant, LwLockOptions, RecoveredWaiter};
use clearway_machine::{
    AtomicWord, DataCell, DeathInWait, Loom, Machine, Switch, WaitEvent, WaitQueue, WorkerId,
};
use explore::explore;
use loom::thread;

static CLASS: LatchClass = LatchClass::new("loom", WaitEvent::UserLatch, 0);

struct Shared {
    latch: LwLock<Loom>,
    variable: <Loom as Machine>::U64,
    data: <Loom as Machine>::Data<u64>,
}

impl Shared {
    fn new(fairness: LwLockFairnessVariant) -> Arc<Self> {
        Arc::new(Self {
            latch: LwLock::new(
                &CLASS,
                LwLockOptions {
                    fairness,
                    ..LwLockOptions::default()
                },
            ),
            variable: AtomicWord::new(0),
            data: DataCell::new(0),
        })
    }

    fn use_in(&self, mode: LatchMode) {
        self.latch.acquire(mode);
        match mode {
            // SAFETY: the caller holds the latch exclusively; loom fails the test if that does not order the accesses.
            LatchMode::Exclusive => self.data.with_mut(|data| unsafe { *data += 1 }),
            LatchMode::Shared => self.data.with(|_| ()),
        }
        // SAFETY: acquired above.
        unsafe { self.latch.release(mode) };
    }

    fn stand_in_for(&self, dead: WorkerId) {
        // SAFETY: the thread has died in the sleep of its wait for this latch, and was joined.
        while unsafe { self.latch.recover_waiter(dead) } == RecoveredWaiter::NotYet {
            Loom::yield_now();
        }
        assert!(!WaitQueue::<Loom>::is_queued(dead) && !WaitQueue::<Loom>::is_picked(dead));
    }
}

/// The times of Alice's release and of the standing in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Release,
    Recovery,
}

/// Alice holds the latch. Dora, who wants it in mode `dora`, dies at `end` of her wait; Emil wants it in mode `emil`.
fn dead_waiter(
    fairness: LwLockFairnessVariant,
    [dora, emil]: [LatchMode; 2],
    end: DeathInWait,
    first: First,
    preemptions: usize,
) {
    explore(preemptions, move || {
        Loom::workers();
        let shared = Shared::new(fairness);
        shared.latch.acquire(LatchMode::Exclusive);
        let dying = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let me = Loom::worker();
                Loom::run_until_death(end, || shared.use_in(dora))
                    .is_err()
                    .then_some(me)
            })
        };
        let waiting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.use_in(emil))
        };
        if first == First::Recovery {
            shared.stand_in_for(dying.join().unwrap().expect("the latch is held until later"));
            // SAFETY: acquired above.
            unsafe { shared.latch.release(LatchMode::Exclusive) };
        } else {
            // SAFETY: acquired above.
            unsafe { shared.latch.release(LatchMode::Exclusive) };
            if let Some(dead) = dying.join().unwrap() {
                shared.stand_in_for(dead);
            }
        }
        waiting.join().unwrap();
        shared.use_in(LatchMode::Exclusive);
        assert!(!shared.latch.is_held(), "a dead worker holds the latch");
    });
}

const EXCLUSIVES: [LatchMode; 2] = [LatchMode::Exclusive; 2];
const READER_DIES: [LatchMode; 2] = [LatchMode::Shared, LatchMode::Exclusive];
const WRITER_DIES: [LatchMode; 2] = [LatchMode::Exclusive, LatchMode::Shared];

#[test]
fn loom_a_worker_that_dies_before_it_is_woken_is_taken_off() {
    for fairness in LwLockFairnessVariant::ALL {
        dead_waiter(
            *fairness,
            EXCLUSIVES,
            DeathInWait::BeforeSleep,
            First::Recovery,
            1,
        );
        dead_waiter(
            *fairness,
            READER_DIES,
            DeathInWait::BeforeSleep,
            First::Recovery,
            1,
        );
    }
}

#[test]
fn loom_the_wake_up_of_a_worker_that_dies_beside_it_goes_on() {
    for fairness in LwLockFairnessVariant::ALL {
        dead_waiter(*fairness, EXCLUSIVES, DeathInWait::BeforeSleep, First::Release, 2);
        dead_waiter(
            *fairness,
            WRITER_DIES,
            DeathInWait::BeforeSleep,
            First::Release,
            1,
        );
    }
}

#[test]
fn loom_the_wake_up_of_a_worker_that_dies_woken_goes_on() {
    for fairness in LwLockFairnessVariant::ALL {
        dead_waiter(*fairness, EXCLUSIVES, DeathInWait::AfterSleep, First::Release, 2);
        dead_waiter(*fairness, READER_DIES, DeathInWait::AfterSleep, First::Release, 1);
        dead_waiter(*fairness, WRITER_DIES, DeathInWait::AfterSleep, First::Release, 1);
    }
}

/// The wait of a worker that does not want the latch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// `acquire_or_wait`, which takes it only if it is free at once.
    Free,
    /// `wait_for_var`.
    Changed,
}

/// As `dead_waiter`, but that Dora waits so, and Alice changes the variable before she releases. Emil wants the latch.
fn dead_onlooker(until: Until, end: DeathInWait, first: First, preemptions: usize) {
    explore(preemptions, move || {
        Loom::workers();
        let shared = Shared::new(LwLockFairnessVariant::Barging);
        shared.latch.acquire(LatchMode::Exclusive);
        let dying = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let me = Loom::worker();
                let lived = Loom::run_until_death(end, || match until {
                    Until::Free => drop(shared.latch.acquire_or_wait()),
                    Until::Changed => {
                        let _ = shared.latch.wait_for_var(&shared.variable, 0);
                    }
                });
                lived.is_err().then_some(me)
            })
        };
        let waiting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.use_in(LatchMode::Exclusive))
        };
        let change_and_release = || {
            shared.latch.update_var(&shared.variable, 1);
            // SAFETY: acquired above.
            unsafe { shared.latch.release(LatchMode::Exclusive) };
        };
        if first == First::Recovery {
            shared.stand_in_for(dying.join().unwrap().expect("the latch is held until later"));
            change_and_release();
        } else {
            change_and_release();
            if let Some(dead) = dying.join().unwrap() {
                shared.stand_in_for(dead);
            }
        }
        waiting.join().unwrap();
        shared.use_in(LatchMode::Exclusive);
        assert!(!shared.latch.is_held(), "a dead worker holds the latch");
    });
}

#[test]
fn loom_a_worker_that_dies_waiting_for_a_free_latch_or_a_variable_is_taken_off() {
    for until in [Until::Free, Until::Changed] {
        dead_onlooker(until, DeathInWait::BeforeSleep, First::Recovery, 1);
    }
}

#[test]
fn loom_a_worker_that_dies_waiting_for_a_free_latch_or_a_variable_holds_up_none() {
    for until in [Until::Free, Until::Changed] {
        for end in [DeathInWait::BeforeSleep, DeathInWait::AfterSleep] {
            dead_onlooker(until, end, First::Release, 1);
        }
    }
}
