//! LwLock on the simulated machine: hundreds of workers on machines with more and with fewer CPUs.

use std::alloc::System;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_latch::{LatchClass, LwLock, LwLockFairnessVariant, LwLockOptions, LwLockVariant};
use clearway_machine::{AtomicWord, Machine, Switch, WaitEvent, Work};
use clearway_sim::{LineAllocator, MachineModel, Simulated, SimulatedU64, Simulation, random_below};

#[global_allocator]
static ALLOCATOR: LineAllocator<System> = LineAllocator(System);

static CLASS: LatchClass = LatchClass::new("Test", WaitEvent::UserLatch, 0);

fn seeds() -> Vec<u64> {
    match std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (1..4).collect(),
    }
}

/// Readers and writers that check that they exclude each other; a step budget stands for the patience of a
/// human.
fn exclusion(machine: &str, algorithm: LwLockVariant, workers: usize, write_percent: u64, seed: u64) {
    println!("SEED={seed} {machine} {algorithm:?} {workers} workers, {write_percent} % writes");
    let model = MachineModel::load(machine).unwrap();
    let mut simulation = Simulation::new(&model, workers, seed);
    simulation.set_step_budget(50_000_000);
    let latch = simulation.enter(|| Rc::new(LwLock::<Simulated>::new(&CLASS, algorithm)));
    // Readers inside, or -1 for a writer.
    let inside = Rc::new(Cell::new(0_i64));
    let writes = Rc::new(Cell::new(0_u64));
    let expected = Rc::new(Cell::new(0_u64));
    for _ in 0..workers {
        let (latch, inside) = (Rc::clone(&latch), Rc::clone(&inside));
        let (writes, expected) = (Rc::clone(&writes), Rc::clone(&expected));
        simulation.spawn(move || {
            for _ in 0..20 {
                if random_below(100) < write_percent {
                    expected.set(expected.get() + 1);
                    let _guard = latch.exclusive();
                    assert_eq!(inside.replace(-1), 0, "a writer meets another worker");
                    let before = writes.get();
                    Simulated::charge(Work::Nanos(random_below(500)));
                    Simulated::now();
                    writes.set(before + 1);
                    assert_eq!(inside.replace(0), -1);
                } else {
                    let _guard = latch.shared();
                    assert!(inside.get() >= 0, "a reader meets a writer");
                    inside.set(inside.get() + 1);
                    Simulated::charge(Work::Nanos(random_below(500)));
                    Simulated::now();
                    inside.set(inside.get() - 1);
                }
                Simulated::charge(Work::Nanos(random_below(3_000)));
            }
        });
    }
    let report = simulation.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(writes.get(), expected.get(), "writes were lost");
    assert!(simulation.enter(|| !latch.is_held()));
    assert!(report.elapsed_ns > 0);
}

#[test]
fn sim_lwlock_excludes_and_loses_no_wake_up() {
    for seed in seeds() {
        for &algorithm in LwLockVariant::ALL {
            for write_percent in [0, 5, 50, 100] {
                exclusion("haswell-ex-4s", algorithm, 300, write_percent, seed);
            }
            // More workers than CPUs: holders are preempted.
            exclusion("laptop", algorithm, 200, 30, seed);
        }
    }
}

#[test]
fn sim_wait_for_var_misses_no_change() {
    for seed in seeds() {
        for &algorithm in LwLockVariant::ALL {
            println!("SEED={seed} {algorithm:?}");
            let model = MachineModel::load("haswell-ex-4s").unwrap();
            let mut simulation = Simulation::new(&model, 201, seed);
            simulation.set_step_budget(50_000_000);
            let (latch, variable) = simulation.enter(|| {
                let latch = LwLock::<Simulated>::new(&CLASS, algorithm);
                (Rc::new(latch), Rc::new(SimulatedU64::new(1)))
            });
            for _ in 0..200 {
                let (latch, variable) = (Rc::clone(&latch), Rc::clone(&variable));
                simulation.spawn(move || {
                    let mut known = 1;
                    Simulated::charge(Work::Nanos(random_below(5_000)));
                    while let Err(now) = latch.wait_for_var(&variable, known) {
                        assert!(now > known);
                        known = now;
                    }
                });
            }
            let (holder, changed) = (Rc::clone(&latch), Rc::clone(&variable));
            simulation.spawn(move || {
                for _ in 0..5 {
                    let guard = holder.exclusive();
                    for _ in 0..10 {
                        Simulated::charge(Work::Nanos(random_below(20_000)));
                        let next = changed.load(std::sync::atomic::Ordering::Relaxed) + 1;
                        guard.update_var(&changed, next);
                    }
                }
            });
            simulation.run().unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

#[test]
fn sim_acquire_or_wait_lets_one_work_for_all() {
    for &algorithm in LwLockVariant::ALL {
        let model = MachineModel::load("haswell-ex-4s").unwrap();
        let mut simulation = Simulation::new(&model, 200, 1);
        simulation.set_step_budget(50_000_000);
        let latch = simulation.enter(|| Rc::new(LwLock::<Simulated>::new(&CLASS, algorithm)));
        let (done, leaders) = (Rc::new(Cell::new(0_u64)), Rc::new(Cell::new(0_u64)));
        for _ in 0..200 {
            let (latch, done, leaders) = (Rc::clone(&latch), Rc::clone(&done), Rc::clone(&leaders));
            simulation.spawn(move || {
                for target in 1..=10 {
                    while done.get() < target {
                        if let Some(_guard) = latch.acquire_or_wait()
                            && done.get() < target
                        {
                            leaders.set(leaders.get() + 1);
                            Simulated::charge(Work::Nanos(20_000));
                            Simulated::now();
                            done.set(target);
                        }
                    }
                }
            });
        }
        simulation.run().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((done.get(), leaders.get()), (10, 10));
    }
}

/// Uses of the cache line of a sleeper's slot while it queues, sleeps and is woken as the only waiter.
fn uses_of_a_sleepers_slot(algorithm: LwLockVariant, fairness: LwLockFairnessVariant) -> u64 {
    let model = MachineModel::load("haswell-ex-4s").unwrap();
    let mut simulation = Simulation::new(&model, 2, 1);
    let options = LwLockOptions {
        algorithm,
        fairness,
        ..LwLockOptions::default()
    };
    let latch = simulation.enter(|| Rc::new(LwLock::<Simulated>::new(&CLASS, options)));
    let holder = Rc::clone(&latch);
    simulation.spawn(move || {
        let _guard = holder.exclusive();
        // The other worker sleeps by then.
        Simulated::charge(Work::Nanos(500_000));
        Simulated::now();
    });
    simulation.spawn(move || {
        let slot = Simulated::workers().slot(Simulated::worker());
        // Only a line that was used can be named.
        slot.spins_per_delay.load(Relaxed);
        Simulated::now();
        Simulated::label((&raw const slot.spins_per_delay).cast(), "slot of the sleeper");
        Simulated::charge(Work::Nanos(5_000));
        drop(latch.exclusive());
    });
    let report = simulation.run().unwrap_or_else(|error| panic!("{error}"));
    assert!(report.waits.iter().any(|wait| wait.count == 1), "{report:?}");
    let lines = report
        .lines
        .iter()
        .find(|lines| lines.name == "slot of the sleeper");
    lines.unwrap().accesses
}

/// The list is locked while a waker looks at the waiters, so under the policies that hand nothing over it looks at each
/// once, and the woken worker does not look for a hand-over: one look more at each of the two places halved the
/// transactions of 256 clients (`docs/mechanisms/lwlock.md#variants`).
///
/// Mutations that it should catch (`crates/sim/mutations/lwlock.toml`): the first waiter is looked at by itself first; a
/// woken worker looks for a hand-over under every policy.
#[test]
fn sim_a_wake_looks_at_a_waiter_once() {
    // The sleeper's own uses among them. Under `hand-over` the waker looks at the first waiter's word and its successor
    // before, to see whether it is overdue, and the woken worker whether it has the latch. `cohort` is left out: here its
    // worker of the other node sleeps by the clock, on no list.
    for (algorithm, uses) in [
        (LwLockVariant::Queued, 24),
        (LwLockVariant::QueuedScan, 24),
        (LwLockVariant::SingleCas, 25),
        (LwLockVariant::BriefPolls, 24),
    ] {
        let uses_under = |fairness| uses_of_a_sleepers_slot(algorithm, fairness);
        assert_eq!(uses_under(LwLockFairnessVariant::Barging), uses, "{algorithm:?}");
        assert_eq!(
            uses_under(LwLockFairnessVariant::AfterShared),
            uses,
            "{algorithm:?}"
        );
        assert_eq!(
            uses_under(LwLockFairnessVariant::HandOver),
            uses + 3,
            "{algorithm:?}"
        );
    }
}
