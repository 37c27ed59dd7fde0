//! One latch, with a number of readers and writers.

use std::rc::Rc;

use clearway_machine::{Machine, Work};
use clearway_sim::{Simulated, Simulation, clock_ns, random_below};

use crate::simulate::experiment::{Experiment, Variant};
use crate::simulate::meter::Meter;

/// The time of a client's loop by itself, as `clearway simulate here` measures and charges it. Without it clients that
/// do nothing else have no time of their own at all, and march in step.
const LOOP_NS: u64 = 3;

pub(crate) fn spawn(
    simulation: &mut Simulation,
    experiment: &Experiment,
    variant: &Variant,
    clients: usize,
    meter: &Rc<Meter>,
) {
    let options = variant.mechanisms.lwlock_options();
    let latch = simulation.enter(|| variant.latch.simulated(options, variant.spin));
    simulation.name(&*latch, "latch");
    let parameters = &experiment.parameters;
    let reads_per_million = (parameters.read_percent * 1e4) as u64;
    let (critical, outside) = (
        parameters.critical_ns as u64,
        (parameters.outside_ns as u64).max(LOOP_NS),
    );
    for _ in 0..clients {
        let (latch, meter) = (Rc::clone(&latch), Rc::clone(meter));
        simulation.spawn(move || {
            let section = || Simulated::charge(Work::Nanos(critical));
            while meter.goes_on() {
                // Between half and one and a half times as long, so that clients do not march in step.
                Simulated::charge(Work::Nanos(outside / 2 + random_below(outside + 1)));
                let reads = random_below(1_000_000) < reads_per_million;
                let began = clock_ns();
                if reads {
                    latch.read(&section);
                } else {
                    latch.write(&section);
                }
                meter.done(began);
            }
        });
    }
}
