//! Deaths of workers that sleep on a latch of the futex family, under shuttle: more workers and modes than loom can exhaust, in
//! random schedules. Each worker may die in its first sleep; another stands in for it as soon as its death is known, while the
//! rest go on.
//!
//! `cargo test -p clearway-latch --features shuttle --test shuttle_recovery_futex --release`

use std::cell::Cell;
use std::sync::Arc;

use clearway_latch::{LastSleep, SrwMutex, SsuxLock, Unclassed};
use clearway_machine::{DataCell, DeathInWait, Half, Machine, Shuttle};
use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;

const WORKERS: usize = 5;
const STEPS: usize = 3;
const SCHEDULES: usize = 1_000;

struct Shared<L> {
    latch: L,
    data: <Shuttle as Machine>::Data<u64>,
}

// SAFETY: the data is reached under the latch only, which is what the test checks.
unsafe impl<L: Sync> Sync for Shared<L> {}

impl<L> Shared<L> {
    fn write(&self) {
        // SAFETY: the caller holds the latch exclusively; the cell fails the test on overlap.
        self.data.with_mut(|data| unsafe { *data += 1 });
    }

    fn read(&self) {
        self.data.with(|_| ());
    }
}

/// A latch whose workers may die.
trait Latch: Sync + Send + Sized + 'static {
    fn idle() -> Self;
    /// Uses the latch once, and says before whether it wants it shared.
    fn use_once(shared: &Shared<Self>, wants_shared: &Cell<bool>);
    /// Stands in for a worker that has died on this half of the word.
    fn stand_in(&self, wanted_shared: bool, half: Half);
    fn is_idle(&self) -> bool;
}

impl Latch for SrwMutex<Unclassed, Shuttle> {
    fn idle() -> Self {
        Self::idle()
    }
    fn use_once(shared: &Shared<Self>, _: &Cell<bool>) {
        let _held = shared.latch.exclusive();
        shared.write();
    }
    fn stand_in(&self, _: bool, _: Half) {
        // SAFETY: the thread has died in the sleep of its wait for this mutex, and was joined.
        unsafe { self.recover_waiter() };
    }
    fn is_idle(&self) -> bool {
        format!("{self:?}").contains("0x00000000")
    }
}

impl Latch for SsuxLock<Unclassed, Shuttle> {
    fn idle() -> Self {
        Self::idle()
    }
    fn use_once(shared: &Shared<Self>, wants_shared: &Cell<bool>) {
        let step = thread_rng().gen_range(0..5);
        wants_shared.set(step < 2);
        match step {
            0 | 1 => {
                let _held = shared.latch.shared();
                shared.read();
            }
            2 => {
                let _held = shared.latch.update();
                shared.read();
            }
            3 => {
                let held = shared.latch.exclusive();
                shared.write();
                let _held = held.shared();
                shared.read();
            }
            _ => {
                let _held = shared.latch.exclusive();
                shared.write();
            }
        }
    }
    fn stand_in(&self, wanted_shared: bool, half: Half) {
        // SAFETY: the thread has died in that sleep of its wait for this latch, and was joined.
        unsafe { self.recover_waiter(LastSleep::of(wanted_shared, half)) };
    }
    fn is_idle(&self) -> bool {
        format!("{self:?}").contains("0x00000000") && !self.is_held()
    }
}

/// A worker's life. The mode and the half of its last sleep if it has died.
fn live<L: Latch>(shared: &Shared<L>) -> Option<(bool, Half)> {
    let wants_shared = Cell::new(false);
    let steps = || (0..STEPS).for_each(|_| L::use_once(shared, &wants_shared));
    let end = match thread_rng().gen_range(0..4) {
        0 => DeathInWait::BeforeSleep,
        1 => DeathInWait::AfterSleep,
        _ => {
            steps();
            return None;
        }
    };
    let half = Shuttle::run_until_death(end, steps).err()?;
    Some((wants_shared.get(), half))
}

fn random_deaths<L: Latch>() {
    // The machine's globals come to life before there is a worker that dies: what others unlock meanwhile is poisoned.
    Shuttle::workers();
    let shared = Arc::new(Shared {
        latch: L::idle(),
        data: DataCell::new(0),
    });
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || live(&shared))
        })
        .collect();
    // One stands in for each worker that may die, as it ends: workers that wait for a dead one must not be joined first.
    let watchers: Vec<_> = workers
        .into_iter()
        .map(|worker| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if let Some((wanted_shared, half)) = worker.join().unwrap() {
                    shared.latch.stand_in(wanted_shared, half);
                }
            })
        })
        .collect();
    for watcher in watchers {
        watcher.join().unwrap();
    }
    assert!(shared.latch.is_idle(), "a dead worker is counted");
}

#[test]
fn shuttle_deaths_asleep_on_a_mutex_lose_no_wake_up() {
    shuttle::check_random(random_deaths::<SrwMutex<Unclassed, Shuttle>>, SCHEDULES);
    shuttle::check_pct(random_deaths::<SrwMutex<Unclassed, Shuttle>>, SCHEDULES, 3);
}

#[test]
fn shuttle_deaths_asleep_on_a_latch_with_three_modes_lose_no_wake_up() {
    shuttle::check_random(random_deaths::<SsuxLock<Unclassed, Shuttle>>, SCHEDULES);
    shuttle::check_pct(random_deaths::<SsuxLock<Unclassed, Shuttle>>, SCHEDULES, 3);
}
