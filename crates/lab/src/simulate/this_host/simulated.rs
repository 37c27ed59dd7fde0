//! The bench's loop on the simulated machine.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};
use clearway_sim::{MachineModel, Simulated, Simulation, charge_picoseconds, clock_ns, random_below};

use super::{HereOptions, Kind};
use crate::error::{LabError, Result};
use crate::latches::catalogue::BenchLatch;
use crate::latches::simulated::{LatchWithWords, words_without_latch};
use crate::latches::timing::TIMED_EVERY;
use crate::simulate::calibrate::Calibration;

/// The cost of the loop beside its accesses and the latch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LoopCost {
    pub(super) outside_ns: f64,
    pub(super) inside_ns: f64,
    pub(super) sibling_speed: Option<f64>,
}

/// The loop without a latch and without other work: what its accesses and its clock take in the simulation.
pub(super) fn bare_loop(machine: &MachineModel, read_share: f64, options: &HereOptions) -> Result<f64> {
    run(
        machine,
        &words_without_latch,
        1,
        read_share,
        LoopCost::default(),
        options,
    )
}

/// Nanoseconds of all threads together for one acquisition.
pub(super) fn acquisition(
    calibration: &Calibration,
    kind: &Kind,
    latch: &BenchLatch,
    read_share: f64,
    cost: LoopCost,
    options: &HereOptions,
) -> Result<f64> {
    let mut machine = match kind.placement {
        Some(placement) => calibration.machine_of_pair(&calibration.placements[placement]),
        None => calibration.machine.clone(),
    };
    if let Some(speed) = cost.sibling_speed {
        machine.os.smt_speed = speed;
    }
    run(
        &machine,
        &|| latch.simulated(),
        kind.threads,
        read_share,
        cost,
        options,
    )
}

fn run(
    machine: &MachineModel,
    make: &dyn Fn() -> Rc<dyn LatchWithWords>,
    threads: usize,
    read_share: f64,
    cost: LoopCost,
    options: &HereOptions,
) -> Result<f64> {
    let mut simulation = Simulation::new(machine, threads, options.seed);
    let latch = simulation.enter(make);
    let reads_per_million = (read_share * 1e4) as u64;
    let picoseconds = |nanoseconds: f64| (nanoseconds * 1e3).round() as u64;
    let (outside, inside) = (picoseconds(cost.outside_ns), picoseconds(cost.inside_ns));
    let end_ns = options.duration.as_nanos() as u64;
    let (done, began) = (Rc::new(Cell::new(0_u64)), Rc::new(Cell::new(u64::MAX)));
    for _ in 0..threads {
        let (latch, done, began) = (Rc::clone(&latch), Rc::clone(&done), Rc::clone(&began));
        simulation.spawn(move || {
            // From where the first has been switched in, as the bench counts.
            let start = clock_ns();
            began.set(start.min(began.get()));
            let mut operations = 0_u64;
            while clock_ns() < start + end_ns {
                charge_picoseconds(outside);
                let reads = random_below(1_000_000) < reads_per_million;
                let timed = operations.is_multiple_of(TIMED_EVERY);
                let now = || {
                    if timed {
                        Simulated::now();
                    }
                };
                now();
                let [first, second] = latch.words();
                if reads {
                    latch.read(&|| {
                        now();
                        first.load(Relaxed);
                        charge_picoseconds(inside);
                        second.load(Relaxed);
                    });
                } else {
                    latch.write(&|| {
                        now();
                        first.store(first.load(Relaxed) + 1, Relaxed);
                        charge_picoseconds(inside);
                        second.store(second.load(Relaxed) + 1, Relaxed);
                    });
                }
                operations += 1;
            }
            done.set(done.get() + operations);
        });
    }
    let report = simulation.run().map_err(|source| LabError::Simulation {
        what: "the bench's loop".to_owned(),
        source,
    })?;
    Ok((report.elapsed_ns - began.get().min(report.elapsed_ns)) as f64 / done.get().max(1) as f64)
}
