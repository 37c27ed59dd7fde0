//! The order in which workers see each other's accesses: sequential consistency.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use clearway_machine::{AtomicWord, Machine, Work};
use clearway_sim::{Simulated, Simulation};

use crate::{machine, seed, word};

/// Two workers that store to one word and load the other's, with timings that differ from round to round.
fn store_buffering(fenced: bool) -> (u32, u32) {
    let mut both_old = 0;
    let mut rounds = 0;
    for skew in 0..60_u64 {
        let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 2, seed());
        let (x, y) = simulation.enter(|| (word(0), word(0)));
        let seen = Rc::new(Cell::new([9, 9]));
        for me in 0..2 {
            let (mine, theirs, seen) = match me {
                0 => (Rc::clone(&x), Rc::clone(&y), Rc::clone(&seen)),
                _ => (Rc::clone(&y), Rc::clone(&x), Rc::clone(&seen)),
            };
            simulation.spawn(move || {
                Simulated::charge(Work::Nanos(if me == 0 { skew * 10 } else { 300 }));
                mine.store(1, Relaxed);
                if fenced {
                    Simulated::fence(SeqCst);
                }
                let found = theirs.load(Relaxed);
                let mut both = seen.get();
                both[me] = found;
                seen.set(both);
            });
        }
        simulation.run().unwrap();
        both_old += u32::from(seen.get() == [0, 0]);
        rounds += 1;
    }
    (both_old, rounds)
}

#[test]
fn litmus_memory_is_sequentially_consistent() {
    // Store buffering: weaker machines let both workers read the old value. Here none may, fence or not: the
    // page on the simulator says so, and leaves weak memory to loom.
    assert_eq!(store_buffering(true), (0, 60));
    assert_eq!(store_buffering(false), (0, 60));
}

#[test]
fn litmus_independent_reads_of_independent_writes_agree() {
    for skew in 0..40_u64 {
        let mut simulation = Simulation::new(&machine("haswell-ex-4s"), 4, seed());
        let (x, y) = simulation.enter(|| (word(0), word(0)));
        let seen = Rc::new(Cell::new([[9_u32; 2]; 2]));
        for writer in [Rc::clone(&x), Rc::clone(&y)] {
            simulation.spawn(move || {
                Simulated::charge(Work::Nanos(200 + skew));
                writer.store(1, Relaxed);
            });
        }
        for reader in 0..2 {
            let (first, second, seen) = match reader {
                0 => (Rc::clone(&x), Rc::clone(&y), Rc::clone(&seen)),
                _ => (Rc::clone(&y), Rc::clone(&x), Rc::clone(&seen)),
            };
            simulation.spawn(move || {
                Simulated::charge(Work::Nanos(skew * 10));
                let found = [first.load(Relaxed), second.load(Relaxed)];
                let mut all = seen.get();
                all[reader] = found;
                seen.set(all);
            });
        }
        simulation.run().unwrap();
        assert_ne!(
            seen.get(),
            [[1, 0], [1, 0]],
            "the readers disagree on which write came first"
        );
    }
}

#[test]
fn litmus_message_passing() {
    let mut simulation = Simulation::new(&machine("arm-2s"), 2, seed());
    let (data, flag) = simulation.enter(|| (word(0), word(0)));
    let (data2, flag2) = (Rc::clone(&data), Rc::clone(&flag));
    simulation.spawn(move || {
        data.store(42, Relaxed);
        flag.store(1, Relaxed);
    });
    simulation.spawn(move || {
        while flag2.load(Relaxed) == 0 {
            Simulated::spin_hint();
        }
        assert_eq!(data2.load(Relaxed), 42);
    });
    simulation.run().unwrap();
}
