//! Faults that end a simulation with an error.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{LatchMode, LwLock, LwLockVariant};
use clearway_machine::{AtomicWord, Machine, Work};
use clearway_sim::{Simulated, Simulation, SimulationError};

use crate::{CLASS, machine, seed, word};

#[test]
fn a_lost_wake_up_is_an_error_that_says_which_worker_waits() {
    let mut simulation = Simulation::new(&machine("laptop"), 2, seed());
    let latch = simulation.enter(|| Rc::new(LwLock::<Simulated>::new(&CLASS, LwLockVariant::Queued)));
    let other = Rc::clone(&latch);
    simulation.spawn(move || latch.acquire(LatchMode::Exclusive));
    simulation.spawn(move || {
        Simulated::charge(Work::Nanos(10_000));
        other.acquire(LatchMode::Exclusive);
    });
    let error = simulation.run().unwrap_err();
    assert!(matches!(error, SimulationError::Deadlock { .. }), "{error}");
    assert!(
        error.to_string().contains("worker 1: asleep") && error.to_string().contains("LWLock:User"),
        "{error}"
    );
}

#[test]
fn a_livelock_is_an_error() {
    let mut simulation = Simulation::new(&machine("laptop"), 1, seed());
    simulation.set_step_budget(10_000);
    let flag = simulation.enter(|| word(0));
    simulation.spawn(move || {
        while flag.load(Relaxed) == 0 {
            Simulated::spin_hint();
        }
    });
    // An undisturbed worker is never suspended, so another keeps the calendar busy.
    let mut other = Simulation::new(&machine("laptop"), 2, seed());
    other.set_step_budget(10_000);
    let flag = other.enter(|| word(0));
    for _ in 0..2 {
        let flag = Rc::clone(&flag);
        other.spawn(move || {
            while flag.load(Relaxed) == 0 {
                Simulated::spin_hint();
            }
        });
    }
    assert!(matches!(other.run(), Err(SimulationError::StepBudget { .. })));
    assert!(matches!(
        simulation.run(),
        Err(SimulationError::StepBudget { .. })
    ));
}

#[test]
fn a_broken_promise_is_an_error() {
    let mut simulation = Simulation::new(&machine("laptop"), 2, seed());
    let (flag, other) = simulation.enter(|| (word(0), word(0)));
    let flag2 = Rc::clone(&flag);
    simulation.spawn(move || {
        flag.load(Relaxed);
        Simulated::spin_hint_of(100);
        other.store(1, Relaxed);
    });
    simulation.spawn(move || {
        Simulated::charge(Work::Nanos(2_000));
        flag2.store(1, Relaxed);
    });
    assert_eq!(
        simulation.run().unwrap_err(),
        SimulationError::BrokenPromise { worker: 0 }
    );
}

#[test]
fn a_panic_in_a_worker_reaches_the_caller() {
    let mut simulation = Simulation::new(&machine("laptop"), 2, seed());
    simulation.spawn(|| {
        Simulated::charge(Work::Nanos(10));
        Simulated::now();
        panic!("on purpose");
    });
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulation.run()));
    assert!(result.is_err());
}
