//! Deaths of workers that sleep on an LwLock, under shuttle: more workers and modes than loom can exhaust, in random schedules.
//! Each worker may die in its first sleep; another stands in for it as soon as its death is known, while the rest go on.
//!
//! `cargo test -p clearway-latch --features shuttle --test shuttle_recovery --release`

use std::sync::Arc;

use clearway_latch::{LatchClass, LatchMode, LwLock, LwLockFairnessVariant, LwLockOptions, RecoveredWaiter};
use clearway_machine::{DataCell, DeathInWait, Machine, Shuttle, Switch, WaitEvent, WorkerId};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

static CLASS: LatchClass = LatchClass::new("shuttle", WaitEvent::UserLatch, 0);

const WORKERS: usize = 5;
const STEPS: usize = 3;
const SCHEDULES: usize = 1_000;

struct Shared {
    latch: LwLock<Shuttle>,
    data: <Shuttle as Machine>::Data<u64>,
}

// SAFETY: the data is reached under the latch only, which is what the test checks.
unsafe impl Sync for Shared {}

impl Shared {
    fn use_in(&self, mode: LatchMode) {
        self.latch.acquire(mode);
        match mode {
            // SAFETY: the caller holds the latch exclusively; the cell fails the test on overlap.
            LatchMode::Exclusive => self.data.with_mut(|data| unsafe { *data += 1 }),
            LatchMode::Shared => self.data.with(|_| ()),
        }
        // SAFETY: acquired above.
        unsafe { self.latch.release(mode) };
    }

    fn stand_in_for(&self, dead: WorkerId) {
        // SAFETY: the thread has died in the sleep of its wait for this latch, and was joined.
        while unsafe { self.latch.recover_waiter(dead) } == RecoveredWaiter::NotYet {
            Shuttle::yield_now();
        }
    }
}

fn random_mode() -> LatchMode {
    if thread_rng().gen_range(0..2) == 0 {
        LatchMode::Exclusive
    } else {
        LatchMode::Shared
    }
}

fn live(shared: &Shared) {
    for _ in 0..STEPS {
        shared.use_in(random_mode());
    }
}

fn random_deaths(fairness: LwLockFairnessVariant) -> impl Fn() + Send + Sync + 'static {
    move || {
        // The machine's globals come to life before there is a worker that dies: what others unlock meanwhile is poisoned.
        Shuttle::workers();
        let options = LwLockOptions {
            fairness,
            ..LwLockOptions::default()
        };
        let shared = Arc::new(Shared {
            latch: LwLock::new(&CLASS, options),
            data: DataCell::new(0),
        });
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let me = Shuttle::worker();
                    let end = match thread_rng().gen_range(0..4) {
                        0 => DeathInWait::BeforeSleep,
                        1 => DeathInWait::AfterSleep,
                        _ => {
                            live(&shared);
                            return None;
                        }
                    };
                    Shuttle::run_until_death(end, || live(&shared))
                        .is_err()
                        .then_some(me)
                })
            })
            .collect();
        // One stands in for each worker that may die, as it ends: workers that wait for a dead one must not be joined first.
        let watchers: Vec<_> = workers
            .into_iter()
            .map(|worker| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    if let Some(dead) = worker.join().unwrap() {
                        shared.stand_in_for(dead);
                    }
                })
            })
            .collect();
        for watcher in watchers {
            watcher.join().unwrap();
        }
        shared.use_in(LatchMode::Exclusive);
        assert!(!shared.latch.is_held(), "a dead worker holds the latch");
    }
}

#[test]
fn shuttle_deaths_asleep_lose_no_wake_up() {
    for fairness in LwLockFairnessVariant::ALL {
        shuttle::check_random(random_deaths(*fairness), SCHEDULES);
        shuttle::check_pct(random_deaths(*fairness), SCHEDULES, 3);
    }
}
