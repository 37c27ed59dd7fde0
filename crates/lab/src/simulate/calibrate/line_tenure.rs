//! The turn of an owner that goes on using a line which another CPU asks for: measured with increments, and fitted.

use std::cell::Cell;
use std::hint::spin_loop;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use clearway_machine::{AtomicWord, Machine, Native, Padded};
use clearway_sim::{MachineModel, Simulated, Simulation, charge_picoseconds, clock_ns};

use super::Calibration;
use super::placement::Placement;
use super::probe::increments;
use crate::latches::section::Section;

/// Times between two increments of a thread, to see how long a line stays with its owner. With the first, two
/// increments fit into one turn where the CPUs share a cache; with the second, where they do not.
pub(super) const SPACINGS: [Duration; 2] = [Duration::from_nanos(14), Duration::from_nanos(45)];

/// Cost of an increment by each of two threads with `between` after it. It shows how long an owner goes on
/// using a line that was asked for: if the line left at once, each increment would wait for it.
pub(super) fn spaced_increments(cpus: [usize; 2], between: Section) -> f64 {
    const INCREMENTS: u32 = 6_000;
    let word = Padded(AtomicU64::new(0));
    let ready = Padded(AtomicU32::new(0));
    let (word, ready) = (&word, &ready);
    std::thread::scope(|scope| {
        let threads = cpus.map(|cpu| {
            scope.spawn(move || {
                let _ = Native::stay_on(cpu);
                ready.fetch_add(1, Ordering::AcqRel);
                while ready.load(Ordering::Acquire) < 2 {
                    spin_loop();
                }
                increments(word, INCREMENTS, between)
            })
        });
        let [first, second] = threads.map(|thread| {
            thread
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        f64::midpoint(first, second)
    })
}

impl Calibration {
    /// The time that a line stays with its owner, as a part of a transfer. It cannot be measured by itself; the cost of
    /// increments with some arithmetic between them can. Of the parts from a fiftieth to the whole, this is the first
    /// with which the simulated increments are nearest to the measured ones.
    pub(super) fn departure(&self, placement: &Placement, spacings_ns: [f64; 2]) -> f64 {
        let parts = (1..=50).map(|part| f64::from(part) / 50.0);
        nearest(parts, |departure| {
            let machine = self.machine_of_pair(&Placement {
                departure,
                ..*placement
            });
            let spaced = spacings_ns.iter().zip(placement.spaced_ns);
            spaced
                .map(|(spacing, measured)| off(contended_increment(&machine, *spacing), measured))
                .sum()
        })
    }

    /// The most increments that an owner makes after its line was asked for. Without arithmetic between them,
    /// some CPUs make fewer than would end before the line leaves: nearby, two instead of five. Of all
    /// limits, this is the first with which the simulated cost is nearest to the measured one.
    pub(super) fn owner_rmws(&self, placement: &Placement) -> f64 {
        let fifths = (5..30).map(|fifths| f64::from(fifths) / 5.0);
        let limits = std::iter::once(0.0).chain(fifths).chain((6..=40).map(f64::from));
        nearest(limits, |owner_rmws| {
            let machine = self.machine_of_pair(&Placement {
                owner_rmws,
                ..*placement
            });
            off(contended_increment(&machine, 0.0), placement.contended_ns)
        })
    }
}

/// The distance between two costs: the logarithm of their ratio, without its sign.
fn off(simulated: f64, measured: f64) -> f64 {
    (simulated / measured).ln().abs()
}

/// The candidate with the least error; of equals the first.
fn nearest(candidates: impl Iterator<Item = f64>, error: impl Fn(f64) -> f64) -> f64 {
    candidates
        .map(|candidate| (error(candidate), candidate))
        .min_by(|one, other| one.0.total_cmp(&other.0))
        .map_or(0.0, |(_, candidate)| candidate)
}

/// Nanoseconds of two simulated CPUs together for an increment of one line.
fn contended_increment(machine: &MachineModel, spacing_ns: f64) -> f64 {
    const INCREMENTS: u64 = 4_000;
    let mut simulation = Simulation::new(machine, 2, 1);
    let word = simulation.enter(|| Rc::new(Padded(<Simulated as Machine>::U64::new(0))));
    // From where the workers have been switched in.
    let spent = Rc::new(Cell::new(0));
    for _ in 0..2 {
        let (word, spent) = (Rc::clone(&word), Rc::clone(&spent));
        simulation.spawn(move || {
            let began = clock_ns();
            for _ in 0..INCREMENTS {
                word.fetch_add(1, Ordering::AcqRel);
                charge_picoseconds((spacing_ns * 1e3) as u64);
            }
            spent.set(spent.get() + clock_ns() - began);
        });
    }
    match simulation.run() {
        Ok(_) => spent.get() as f64 / (4 * INCREMENTS) as f64,
        // Two loops that end cannot hang.
        Err(error) => unreachable!("{error}"),
    }
}
