//! The cost of an access: lines, their owners, their sharers, and how long an owner goes on.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use clearway_machine::{AtomicWord, Machine, Work};
use clearway_sim::{Simulated, SimulatedU64, Simulation, begin_line_account, clock_ns};

use crate::{machine, seed, word};

#[test]
fn false_sharing_follows_from_the_layout() {
    let elapsed = |apart: usize| {
        let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 2, seed());
        let words = simulation.enter(|| Rc::new((0..32).map(|_| SimulatedU64::new(0)).collect::<Vec<_>>()));
        for me in 0..2 {
            let words = Rc::clone(&words);
            simulation.spawn(move || {
                for _ in 0..1_000 {
                    words[me * apart].fetch_add(1, Relaxed);
                    // Longer than a transfer: else each would take its turns in long runs, as real ones do.
                    Simulated::charge(Work::Nanos(200));
                }
            });
        }
        simulation.run().unwrap().elapsed_ns
    };
    let (same_line, own_lines) = (elapsed(1), elapsed(8));
    // A transfer each time: 150 ns more on about 205.
    assert!(
        same_line * 10 > 16 * own_lines,
        "{same_line} against {own_lines} ns"
    );
}

/// Two workers change words of their own and read a common one, which the first has changed before the account began.
///
/// Mutations that it should catch (`crates/sim/mutations`; not run): the account does not begin anew; loads count.
#[test]
fn only_changes_of_shared_lines_since_the_account_began_are_counted() {
    let shared_changes = |apart: usize| {
        let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 2, seed());
        let words = simulation.enter(|| Rc::new((0..48).map(|_| SimulatedU64::new(0)).collect::<Vec<_>>()));
        for me in 0..2 {
            let words = Rc::clone(&words);
            simulation.spawn(move || {
                if me == 0 {
                    words[40].store(1, Relaxed);
                }
                words[me * apart].fetch_add(1, Relaxed);
                Simulated::charge(Work::Nanos(10_000));
                if me == 0 {
                    begin_line_account();
                }
                Simulated::charge(Work::Nanos(10_000));
                for _ in 0..100 {
                    words[me * apart].fetch_add(1, Relaxed);
                    words[40].load(Relaxed);
                    Simulated::charge(Work::Nanos(200));
                }
            });
        }
        let report = simulation.run().unwrap();
        report.lines.iter().map(|lines| lines.shared_changes).sum::<u64>()
    };
    assert_eq!(shared_changes(8), 0, "on lines of their own");
    assert_eq!(shared_changes(1), 200, "on one line");
}

#[test]
fn a_failed_compare_exchange_takes_the_line() {
    let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 2, seed());
    let shared = simulation.enter(|| word(7));
    for _ in 0..2 {
        let shared = Rc::clone(&shared);
        simulation.spawn(move || {
            for _ in 0..1_000 {
                assert_eq!(shared.compare_exchange(0, 1, Relaxed, Relaxed), Err(7));
                Simulated::charge(Work::Nanos(200));
            }
        });
    }
    let report = simulation.run().unwrap();
    assert!(report.lines[0].misses > 1_500, "{:?}", report.lines[0]);
}

#[test]
fn an_owner_goes_on_until_the_line_leaves() {
    // Without work in between each worker makes a run of operations before the other's request has taken the
    // line.
    let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 2, seed());
    let shared = simulation.enter(|| word(0));
    for _ in 0..2 {
        let shared = Rc::clone(&shared);
        simulation.spawn(move || {
            for _ in 0..1_000 {
                shared.fetch_add(1, Relaxed);
            }
        });
    }
    let report = simulation.run().unwrap();
    assert_eq!(simulation.enter(|| shared.load(Relaxed)), 2_000);
    assert!(
        (40..500).contains(&report.lines[0].misses),
        "{:?}",
        report.lines[0]
    );
}

#[test]
fn reads_of_a_shared_line_go_in_parallel() {
    let elapsed = |readers: usize| {
        let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 64, seed());
        let shared = simulation.enter(|| word(7));
        for _ in 0..readers {
            let shared = Rc::clone(&shared);
            simulation.spawn(move || {
                for _ in 0..1_000 {
                    shared.load(Relaxed);
                }
            });
        }
        simulation.run().unwrap().elapsed_ns
    };
    assert!(elapsed(60) < 2 * elapsed(2));
}

#[test]
fn taking_a_line_costs_more_the_more_share_it() {
    let cost = |sharers: usize| {
        let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 64, seed());
        let shared = simulation.enter(|| word(7));
        for _ in 0..sharers {
            let shared = Rc::clone(&shared);
            simulation.spawn(move || {
                shared.load(Relaxed);
            });
        }
        let cost = Rc::new(Cell::new(0));
        let out = Rc::clone(&cost);
        simulation.spawn(move || {
            Simulated::charge(Work::Nanos(100_000));
            let before = clock_ns();
            shared.store(1, SeqCst);
            out.set(clock_ns() - before);
        });
        simulation.run().unwrap();
        cost.get()
    };
    let (few, many) = (cost(8), cost(60));
    assert!(many > few, "{many} against {few} ns");
}
