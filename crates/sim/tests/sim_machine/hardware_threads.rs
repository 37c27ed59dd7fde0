//! Hardware threads of one core.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Work};
use clearway_sim::{MachineModel, Simulated, Simulation, clock_ns};

use crate::{machine, seed, word};

/// A core with two hardware threads.
fn one_core() -> MachineModel {
    let mut model = machine("haswell-ex-4s");
    model.topology.sockets = 1;
    model.topology.hops = None;
    model.topology.cores_per_socket = 1;
    model
}

#[test]
fn hardware_threads_of_a_core_queue_for_a_line() {
    const ADDITIONS: u64 = 20_000;
    let model = one_core();
    let mut simulation = Simulation::new(&model, 2, seed());
    let shared = simulation.enter(|| word(0));
    for _ in 0..2 {
        let shared = Rc::clone(&shared);
        simulation.spawn(move || {
            for _ in 0..ADDITIONS {
                shared.fetch_add(1, Relaxed);
            }
        });
    }
    let each = simulation.run().unwrap().elapsed_ns as f64 / (2 * ADDITIONS) as f64;
    let smt = model.coherence.smt;
    assert!((0.9 * smt..1.2 * smt).contains(&each), "{each} ns an addition");
}

/// One hardware thread of a core writes, the other looks, the first adds, the second adds: each of the last
/// three waits for the line once, and not a second time. Mutation: let a core hit whichever of its threads
/// wrote (drop `is_with` in `issue_load`) → fails: the first look costs as much as the second. The same for a
/// writer (drop `is_only_with` in `issue_write`) → fails: so do the additions.
#[test]
fn hardware_threads_of_a_core_hand_a_line_over() {
    const TIMES: u64 = 100;
    let model = one_core();
    let mut simulation = Simulation::new(&model, 2, seed());
    let shared = simulation.enter(|| word(0));
    let extra = Rc::new(RefCell::new(Vec::new()));
    for me in 0..2 {
        let (shared, extra) = (Rc::clone(&shared), Rc::clone(&extra));
        simulation.spawn(move || {
            let until = |at: u64| Simulated::charge(Work::Nanos(at.saturating_sub(clock_ns())));
            // How much longer it takes for the first time.
            let note = |act: &dyn Fn()| {
                let [first, second] = [(); 2].map(|()| {
                    let before = clock_ns();
                    (0..TIMES).for_each(|_| act());
                    clock_ns() - before
                });
                extra.borrow_mut().push(first - second);
            };
            if me == 0 {
                shared.store(1, Relaxed);
                until(20_000);
                note(&|| _ = shared.fetch_add(1, Relaxed));
            } else {
                until(10_000);
                note(&|| _ = shared.load(Relaxed));
                until(30_000);
                note(&|| _ = shared.fetch_add(1, Relaxed));
            }
            until(40_000);
        });
    }
    simulation.run().unwrap();
    let costs = &model.coherence;
    let beyond = |hit: f64| (costs.smt - hit).floor() as u64;
    let wanted = [costs.load_hit, costs.rmw_hit, costs.rmw_hit].map(beyond);
    let found = extra.borrow();
    for (found, wanted) in found.iter().zip(wanted) {
        // The clock shows whole nanoseconds.
        assert!((wanted..=wanted + 1).contains(found), "{found} ns for {wanted}");
    }
    assert_eq!(found.len(), wanted.len());
}

#[test]
fn a_sibling_slows_work_down() {
    let elapsed = |workers: usize| {
        let mut model = machine("e5-2630v4-2s");
        model.topology.sockets = 1;
        model.topology.cores_per_socket = 1;
        let mut simulation = Simulation::new(&model, 2, seed());
        for _ in 0..workers {
            simulation.spawn(|| {
                for _ in 0..100 {
                    Simulated::charge(Work::Nanos(10_000));
                    Simulated::now();
                }
            });
        }
        simulation.run().unwrap().elapsed_ns as f64
    };
    let ratio = elapsed(2) / elapsed(1);
    assert!((1.55..1.65).contains(&ratio), "{ratio}");
}
