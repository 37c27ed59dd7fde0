//! Stores under way: what they take from other cores, and what waits for them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use clearway_machine::{AtomicWord, Machine, Padded, Work};
use clearway_sim::{Simulated, SimulatedU32, SimulatedU64, Simulation, clock_ns};

use crate::{machine, seed, word};

/// A value that goes from core to core by plain loads and stores: each way the load fetches the line, and the
/// store takes it from the other, which has just read it. Mutation: leave others their copies while a store
/// is under way (drop `line.sharers = Default::default()` there) → fails: 15 ns.
#[test]
fn a_store_reaches_no_copy() {
    const TRIPS: u64 = 200;
    let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 2, seed());
    let shared = simulation.enter(|| Rc::new(Padded(SimulatedU64::new(0))));
    for me in 0..2 {
        let shared = Rc::clone(&shared);
        simulation.spawn(move || {
            for trip in 0..TRIPS {
                while shared.load(Relaxed) != 2 * trip + me {}
                shared.store(2 * trip + me + 1, Relaxed);
            }
        });
    }
    let report = simulation.run().unwrap();
    let one_way = report.elapsed_ns as f64 / (2 * TRIPS) as f64;
    // Both are on sockets of their own, 150 ns apart.
    assert!((250.0..350.0).contains(&one_way), "{one_way} ns");
}

/// A store to a line that another core has costs its own core only the place in the store buffer. A fence
/// waits until the line has arrived, and so does the next read-modify-write, though its own line is at hand.
/// Mutation: keep no record of the store under way (drop `cpu.drained_at = ends` in `issue_write`) → fails:
/// the fence waits 0 ns.
#[test]
fn a_fence_and_an_addition_wait_for_the_store_buffer() {
    let model = machine("haswell-ex-4s");
    let mut simulation = Simulation::new(&model, 2, seed());
    let (theirs, own) = simulation.enter(|| ([word(0), word(0)], word(0)));
    let seen = Rc::new(RefCell::new(Vec::new()));
    for me in 0..2 {
        let (theirs, own, seen) = (theirs.clone(), Rc::clone(&own), Rc::clone(&seen));
        simulation.spawn(move || {
            if me == 1 {
                theirs.iter().for_each(|word| word.store(1, Relaxed));
                return;
            }
            own.fetch_add(1, Relaxed);
            Simulated::charge(Work::Nanos(10_000));
            let timed = |act: &dyn Fn()| {
                let before = clock_ns();
                act();
                seen.borrow_mut().push(clock_ns() - before);
            };
            timed(&|| theirs[0].store(2, Relaxed));
            timed(&|| Simulated::fence(SeqCst));
            timed(&|| theirs[1].store(2, Relaxed));
            timed(&|| _ = own.fetch_add(1, Relaxed));
        });
    }
    simulation.run().unwrap();
    let seen = seen.borrow();
    let [store, fence, second_store, addition] = seen[..] else {
        panic!("{seen:?}")
    };
    // The other core is on a socket of its own, 150 ns away.
    assert!(store <= 2 && second_store <= 2, "{seen:?}");
    assert!(
        (100..250).contains(&fence) && (100..250).contains(&addition),
        "{seen:?}"
    );
}

/// A store begins while another core's load of the line is under way; the load arrives first and leaves
/// copies behind. Once the line gets to the store it is the storing core's alone: `next` is the core that
/// goes on, the result what that costs it in ns.
fn after_a_store_behind_a_load(next: usize, act: fn(&SimulatedU32)) -> u64 {
    let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 3, seed());
    let shared = simulation.enter(|| word(0));
    let cost = Rc::new(Cell::new(0));
    for me in 0..3 {
        let (shared, cost) = (Rc::clone(&shared), Rc::clone(&cost));
        simulation.spawn(move || {
            let until = |at: u64| Simulated::charge(Work::Nanos(at.saturating_sub(clock_ns())));
            match me {
                0 => shared.store(1, Relaxed),
                1 => {
                    until(10_000);
                    shared.load(Relaxed);
                }
                _ => {
                    until(10_010);
                    shared.store(2, Relaxed);
                }
            }
            if me == next {
                until(20_000);
                let before = clock_ns();
                act(&shared);
                cost.set(clock_ns() - before);
            }
        });
    }
    simulation.run().unwrap();
    cost.get()
}

/// Mutation: leave the line as the load left it (drop the hand-over to `heir` in `access`) → fails: the look
/// costs 1 ns. Mutation: hand over, but leave the copies (drop `line.sharers = Default::default()` there) →
/// fails: so it does. Mutation: take the copies, but make the storing core no owner (drop `line.owner =
/// line.heir` there) → fails: the addition waits.
#[test]
fn a_store_behind_a_load_takes_the_copies_that_the_load_leaves() {
    // Each is on a socket of its own, 150 ns apart.
    let look = after_a_store_behind_a_load(1, |shared| _ = shared.load(Relaxed));
    assert!(look >= 100, "the look took {look} ns");
    let addition = after_a_store_behind_a_load(2, |shared| _ = shared.fetch_add(1, Relaxed));
    let hit = machine("haswell-ex-4s").coherence.rmw_hit.ceil() as u64;
    assert!(
        addition <= hit,
        "the addition took {addition} ns, a hit takes {hit}"
    );
}
