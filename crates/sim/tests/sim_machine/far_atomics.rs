//! Atomics that are done at a line's home.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use clearway_machine::{AtomicWord, Machine, Padded, Work};
use clearway_sim::{Simulated, SimulatedU32, SimulatedU64, Simulation, clock_ns, random_below};

use crate::{machine, seed, word};

/// Far atomics, one instruction after the other, far enough apart that none waits for another. On graviton-2
/// a transfer is 47, a message a third of it, and the home is busy for 9.4. Mutation: let acquire order be
/// far as well (`modify_kind`) → fails: the third is 72 ns. Mutation: leave the line with the core (`heir` in
/// `issue_far`) → fails: the sixth is 5 ns.
#[test]
fn a_far_atomic_leaves_the_line_at_home() {
    let mut simulation = Simulation::new(&machine("graviton-2"), 2, seed());
    let shared = simulation.enter(|| word(0));
    let spent = Rc::new(RefCell::new([0_u64; 10]));
    type Step = (usize, fn(&SimulatedU32), u64);
    let steps: [Step; 10] = [
        // Alone with the line from memory: near.
        (0, |word| _ = word.load(Relaxed), 100),
        (0, |word| _ = word.fetch_add(1, Relaxed), 5),
        // With acquire order: near. The line comes with three messages.
        (1, |word| _ = word.fetch_add(1, SeqCst), 47),
        (1, |word| _ = word.fetch_add(1, Relaxed), 5),
        // Far, and another core has it: two messages for the line, one there and one back for the operation.
        (0, |word| _ = word.swap(3, Relaxed), 72),
        // Far, and it is at home.
        (0, |word| _ = word.fetch_sub(1, Relaxed), 41),
        (1, |word| _ = word.fetch_or(4, Relaxed), 41),
        // From the home it comes with two messages; then this core is alone with it.
        (1, |word| _ = word.load(Relaxed), 31),
        (1, |word| _ = word.compare_exchange(6, 7, Relaxed, Relaxed), 5),
        // Posted, with its answer awaited.
        (
            0,
            |word| {
                word.add(1);
                Simulated::fence(SeqCst);
            },
            78,
        ),
    ];
    for me in 0..2 {
        let (shared, spent) = (Rc::clone(&shared), Rc::clone(&spent));
        simulation.spawn(move || {
            let start = clock_ns();
            for (number, (worker, step, _)) in steps.into_iter().enumerate() {
                let due = start + 10_000 * (number as u64 + 1);
                Simulated::charge(Work::Nanos(due - clock_ns()));
                if worker == me {
                    let before = clock_ns();
                    step(&shared);
                    spent.borrow_mut()[number] = clock_ns() - before;
                }
            }
        });
    }
    simulation.run().unwrap();
    assert_eq!(simulation.enter(|| shared.load(Relaxed)), 8);
    for (number, (_, _, wanted)) in steps.into_iter().enumerate() {
        let took = spent.borrow()[number];
        assert!(
            took.abs_diff(wanted) <= 1,
            "step {number}: {took} ns, not {wanted}"
        );
    }
}

/// Far and near operations, loads and stores of many workers on few words, at random: nothing is lost.
#[test]
fn far_and_near_atomics_meet() {
    for seed in 0..20 {
        let mut simulation = Simulation::new(&machine("graviton-2"), 12, seed);
        let words = simulation.enter(|| Rc::new([(); 2].map(|()| Padded(SimulatedU64::new(0)))));
        let expected = Rc::new(Cell::new([0_u64; 2]));
        for _ in 0..12 {
            let (words, expected) = (Rc::clone(&words), Rc::clone(&expected));
            simulation.spawn(move || {
                for _ in 0..300 {
                    let number = random_below(2) as usize;
                    let word = &words[number];
                    let value = 1 + random_below(9);
                    match random_below(6) {
                        0 => _ = word.fetch_add(value, Relaxed),
                        1 => _ = word.fetch_add(value, SeqCst),
                        2 => word.add(value),
                        3 => {
                            let mut seen = word.load(Relaxed);
                            while let Err(found) = word.compare_exchange(seen, seen + value, SeqCst, Relaxed)
                            {
                                seen = found;
                            }
                        }
                        4 => {
                            let mut seen = word.load(Relaxed);
                            while let Err(found) = word.compare_exchange(seen, seen + value, Relaxed, Relaxed)
                            {
                                seen = found;
                            }
                        }
                        _ => {
                            word.load(Relaxed);
                            continue;
                        }
                    }
                    let mut sums = expected.get();
                    sums[number] += value;
                    expected.set(sums);
                    if random_below(4) == 0 {
                        Simulated::charge(Work::Nanos(random_below(100)));
                    }
                }
            });
        }
        simulation.run().unwrap();
        for number in 0..2 {
            let found = simulation.enter(|| words[number].load(Relaxed));
            assert_eq!(found, expected.get()[number], "seed {seed}");
        }
    }
}
