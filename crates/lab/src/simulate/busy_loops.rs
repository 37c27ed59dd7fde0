//! Other programs of the simulated host: loops that want a CPU all the time and never sleep or latch anything.
//!
//! Each is a worker of its own with a thread's weight, wherever the scheduler puts it. Linux may share CPUs out by login
//! session instead (autogroup): then one loop gets as much as a whole server, and the model gives the loops too little.

use std::rc::Rc;

use clearway_sim::{Simulation, other_program_work};

use crate::simulate::meter::Meter;

/// Work between two looks at the clock; a preemption may come at any instant of it.
const TURN_NS: u64 = 1_000_000;

/// Adds this many loops, which end with the clients.
pub(crate) fn spawn(simulation: &mut Simulation, loops: usize, meter: &Rc<Meter>) {
    for _ in 0..loops {
        let meter = Rc::clone(meter);
        simulation.spawn(move || {
            while meter.goes_on() {
                other_program_work(TURN_NS);
            }
        });
    }
}
