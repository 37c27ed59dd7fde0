//! Costs of two threads on one line: the same few instructions natively and simulated. They tell a deviation
//! of a latch from a deviation of the line under it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use clearway_machine::{AtomicWord, Machine, Native, Padded};
use clearway_sim::{MachineModel, Simulated, Simulation};

use super::native::{cpus, probe_pair};
use super::{HereLine, HereOptions, SAMPLES_MIN};
use crate::error::{LabError, Result};
use crate::simulate::calibrate::Calibration;
use crate::stats::median;

#[derive(Debug, Clone, Copy)]
enum LineOperation {
    RoundTrip,
    FetchAdd,
    CasLoop,
    HandOver,
    Poll,
}

const LINE_OPERATIONS: [(LineOperation, &str); 5] = [
    (
        LineOperation::RoundTrip,
        "compare-and-swap in turns (half a round trip; an input)",
    ),
    (
        LineOperation::HandOver,
        "load until it is there, then store, in turns",
    ),
    (LineOperation::FetchAdd, "fetch_add by both"),
    (
        LineOperation::CasLoop,
        "load and compare-and-swap until it succeeds, by both",
    ),
    (LineOperation::Poll, "fetch_add by one, the other polls"),
];

/// The `turn`th time that thread `me`, of two, does it.
fn act<M: Machine>(operation: LineOperation, word: &M::U64, me: u64, turn: u64) {
    let (from, to) = (2 * turn + me, 2 * turn + me + 1);
    match operation {
        LineOperation::RoundTrip => {
            while word
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {}
        }
        LineOperation::HandOver => {
            while word.load(Ordering::Acquire) != from {}
            word.store(to, Ordering::Release);
        }
        LineOperation::CasLoop => {
            let mut seen = word.load(Ordering::Relaxed);
            while let Err(found) =
                word.compare_exchange_weak(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed)
            {
                seen = found;
            }
        }
        LineOperation::FetchAdd => drop(word.fetch_add(1, Ordering::AcqRel)),
        LineOperation::Poll if me == 0 => drop(word.fetch_add(1, Ordering::AcqRel)),
        LineOperation::Poll => drop(word.load(Ordering::Relaxed)),
    }
}

/// Repetitions by each thread: enough to be more than the start, few enough for the CPUs to stay where they are.
fn turns(operation: LineOperation) -> u64 {
    match operation {
        LineOperation::RoundTrip | LineOperation::HandOver => 1_000,
        LineOperation::FetchAdd | LineOperation::CasLoop | LineOperation::Poll => 10_000,
    }
}

/// The divisor of the time: operations of both threads together, or of the one that counts.
fn operations(operation: LineOperation) -> f64 {
    turns(operation) as f64
        * if matches!(operation, LineOperation::Poll) {
            1.0
        } else {
            2.0
        }
}

fn native(operation: LineOperation, cpus: [usize; 2]) -> f64 {
    let word = Padded(<Native as Machine>::U64::new(0));
    let phase = Padded(AtomicU32::new(0));
    let spent: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let threads = [0_u64, 1].map(|me| {
            let (word, phase) = (&word, &phase);
            scope.spawn(move || {
                let _ = Native::stay_on(cpus[me as usize]);
                phase.fetch_add(1, Ordering::AcqRel);
                while phase.load(Ordering::Acquire) < 2 {
                    std::hint::spin_loop();
                }
                let began = Instant::now();
                let mut turn = 0;
                // The polling thread goes on until the other one is done.
                while if me == 1 && matches!(operation, LineOperation::Poll) {
                    phase.load(Ordering::Relaxed) < 3
                } else {
                    turn < turns(operation)
                } {
                    act::<Native>(operation, word, me, turn);
                    turn += 1;
                }
                if me == 0 {
                    phase.fetch_add(1, Ordering::AcqRel);
                }
                (began, Instant::now())
            })
        });
        threads
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .to_vec()
    });
    let of_both: f64 = spent
        .iter()
        .map(|(began, ended)| (*ended - *began).as_secs_f64())
        .sum();
    of_both / 2.0 * 1e9 / operations(operation)
}

fn simulated(operation: LineOperation, machine: &MachineModel, seed: u64) -> Result<f64> {
    let mut simulation = Simulation::new(machine, 2, seed);
    let word = simulation.enter(|| Rc::new(Padded(<Simulated as Machine>::U64::new(0))));
    let (over, spent) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(0)));
    for me in 0..2 {
        let (word, over, spent) = (Rc::clone(&word), Rc::clone(&over), Rc::clone(&spent));
        simulation.spawn(move || {
            let began = clearway_sim::clock_ns();
            let polls = me == 1 && matches!(operation, LineOperation::Poll);
            let mut turn = 0;
            while if polls {
                !over.get()
            } else {
                turn < turns(operation)
            } {
                act::<Simulated>(operation, &word, me, turn);
                turn += 1;
            }
            over.set(true);
            spent.set(spent.get() + clearway_sim::clock_ns() - began);
        });
    }
    simulation.run().map_err(|source| LabError::Simulation {
        what: "two threads on a line".to_owned(),
        source,
    })?;
    Ok(spent.get() as f64 / 2.0 / operations(operation))
}

pub(super) fn compare(calibration: &Calibration, options: &HereOptions) -> Result<Vec<HereLine>> {
    let placements = calibration.placements.len();
    let mut samples = vec![vec![Vec::new(); LINE_OPERATIONS.len()]; placements];
    let began = Instant::now();
    let mut turn = 0;
    while began.elapsed() < Duration::from_secs(10).min(options.time_max)
        && samples
            .iter()
            .flatten()
            .any(|taken| taken.len() < 2 * options.samples)
    {
        turn += 1;
        let pair = cpus(calibration, turn);
        let before = probe_pair(calibration, pair);
        let Some(placement) = before.placement else {
            continue;
        };
        for (place, (operation, _)) in LINE_OPERATIONS.iter().enumerate() {
            let nanoseconds = native(*operation, pair);
            let after = probe_pair(calibration, pair);
            if after.placement != Some(placement) {
                break;
            }
            samples[placement][place].push(nanoseconds);
        }
    }
    let mut lines = Vec::new();
    for (place, (operation, what)) in LINE_OPERATIONS.iter().enumerate() {
        for (placement, taken) in samples.iter().map(|operations| &operations[place]).enumerate() {
            if taken.len() >= SAMPLES_MIN {
                let machine = calibration.machine_of_pair(&calibration.placements[placement]);
                lines.push(HereLine {
                    what,
                    placement,
                    native_ns: median(taken),
                    simulated_ns: simulated(*operation, &machine, options.seed)?,
                    samples: taken.len(),
                });
            }
        }
    }
    Ok(lines)
}
