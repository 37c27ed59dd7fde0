//! Timer interrupts.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_machine::{AtomicWord, Machine, Work};
use clearway_sim::{Activity, MachineModel, Report, Simulated, Simulation, SimulationError, clock_ns};

use crate::{machine, seed, word};

const PERIOD_NS: u64 = 1_000_000;
const TICK_NS: u64 = 2_000;

/// Two CPUs that the timer interrupts each millisecond.
fn interrupted() -> MachineModel {
    let mut model = machine("e5-2630v4-2s");
    model.topology.sockets = 1;
    model.topology.cores_per_socket = 2;
    model.topology.threads_per_core = 1;
    model.os.tick_us = PERIOD_NS as f64 / 1e3;
    model.os.tick = TICK_NS as f64;
    model
}

fn in_the_kernel_ns(report: &Report) -> u64 {
    report.account.picoseconds(Activity::Syscall) / 1_000
}

/// Mutations seen to fail here: an interrupt takes no time; the next one is not armed.
#[test]
fn a_worker_is_interrupted_once_a_period() {
    for step_ns in [1_000, 10_000_000] {
        let mut simulation = Simulation::new(&interrupted(), 2, seed());
        for _ in 0..2 {
            simulation.spawn(move || {
                for _ in 0..10_000_000 / step_ns {
                    Simulated::charge(Work::Nanos(step_ns));
                    Simulated::now();
                }
            });
        }
        let report = simulation.run().unwrap();
        let interrupts = in_the_kernel_ns(&report) / TICK_NS;
        assert!(
            (19..=21).contains(&interrupts),
            "steps of {step_ns}: {interrupts}"
        );
        let longer = report.elapsed_ns - 10_000_000;
        assert!(longer >= 9 * TICK_NS, "{longer} ns");
    }
}

/// A worker that polls is interrupted, too, when it is: what is stored later than that it sees at once.
///
/// Mutation seen to fail here: the interrupts of a worker that polls wait until it has polled.
#[test]
fn a_worker_that_polls_is_interrupted() {
    let mut simulation = Simulation::new(&interrupted(), 2, seed());
    let flag = simulation.enter(|| word(0));
    let set = Rc::clone(&flag);
    let (stored, seen) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (stores, sees) = (Rc::clone(&stored), Rc::clone(&seen));
    simulation.spawn(move || {
        let mut left = 10_000_000_u32;
        while flag.load(Relaxed) == 0 {
            left -= 1;
            Simulated::spin_hint_of(left);
        }
        sees.set(clock_ns());
    });
    simulation.spawn(move || {
        Simulated::sleep(Duration::from_millis(10));
        set.store(1, Relaxed);
        stores.set(clock_ns());
    });
    let report = simulation.run().unwrap();
    let interrupts = in_the_kernel_ns(&report) / TICK_NS;
    assert!((9..=12).contains(&interrupts), "{interrupts}");
    let late = seen.get() - stored.get();
    assert!(late < 2 * TICK_NS, "{late} ns");
}

/// Mutation seen to fail here: a CPU is interrupted whether it runs a worker or not. Then the calendar is never empty.
#[test]
fn a_cpu_without_a_worker_is_left_alone() {
    let mut simulation = Simulation::new(&interrupted(), 1, seed());
    simulation.spawn(|| {
        Simulated::sleep(Duration::from_millis(100));
        assert!(clock_ns() > 100_000_000);
    });
    let report = simulation.run().unwrap();
    assert!(in_the_kernel_ns(&report) < 2 * TICK_NS, "{report:?}");

    let mut simulation = Simulation::new(&interrupted(), 1, seed());
    simulation.set_step_budget(100_000);
    let never = simulation.enter(|| word(0));
    simulation.spawn(move || {
        Simulated::futex_wait(&never, 0, None);
    });
    assert!(matches!(simulation.run(), Err(SimulationError::Deadlock { .. })));
}

/// A worker that was interrupted makes room as soon as one that was not, when its slice ends.
#[test]
fn interrupted_workers_share_a_cpu() {
    let mut model = interrupted();
    model.topology.cores_per_socket = 1;
    model.os.tick_us = 10.0;
    let mut simulation = Simulation::new(&model, 2, seed());
    let ends = Rc::new(Cell::new(Vec::new()));
    for _ in 0..2 {
        let ends = Rc::clone(&ends);
        simulation.spawn(move || {
            for _ in 0..10_000 {
                Simulated::charge(Work::Nanos(10_000));
                Simulated::now();
            }
            let mut all = ends.take();
            all.push(clock_ns());
            ends.set(all);
        });
    }
    simulation.run().unwrap();
    let ends = ends.take();
    assert!(ends[1] - ends[0] < 30_000_000, "{ends:?}");
    // Two in ten microseconds are the interrupts'.
    assert!((240_000_000..265_000_000).contains(&ends[1]), "{ends:?}");
}
