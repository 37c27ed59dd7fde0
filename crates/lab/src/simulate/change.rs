//! Each cost of a machine, and each parameter of an experiment, changed by itself.

use clearway_sim::MachineModel;

use crate::simulate::experiment::Experiment;

/// The factors by which each number is multiplied.
const FACTORS: [f64; 2] = [0.5, 1.5];

/// A machine and an experiment of which one number differs.
pub(crate) struct Change {
    /// The number's name.
    pub(crate) number: &'static str,
    /// The factor of the change.
    pub(crate) factor: f64,
    pub(crate) machine: MachineModel,
    pub(crate) experiment: Experiment,
}

/// Every number halved, and then raised by half. A cost that the machine does not have is left out, and so is a
/// parameter that the workload does not obey.
pub(crate) fn changes(machine: &MachineModel, experiment: &Experiment) -> Vec<Change> {
    let mut all = Vec::new();
    for factor in FACTORS {
        for index in 0..machine.clone().costs_mut().len() {
            let mut changed = machine.clone();
            let mut costs = changed.costs_mut();
            let (number, cost) = &mut costs[index];
            let number = *number;
            if **cost == 0.0 {
                // What the machine does not have.
                continue;
            }
            // A speed above 1 is none; a hardware thread is at best not slowed at all.
            **cost = if number == "os.smt_speed" {
                (**cost * factor).min(1.0)
            } else {
                **cost * factor
            };
            all.push(Change {
                number,
                factor,
                machine: changed,
                experiment: experiment.clone(),
            });
        }
        for index in 0..experiment.parameters.clone().numbers_mut().len() {
            let mut changed = experiment.clone();
            let (name, number) = &mut changed.parameters.numbers_mut()[index];
            let name = *name;
            if **number == 0.0 || !experiment.workload.uses(name) {
                continue;
            }
            **number *= factor;
            all.push(Change {
                number: name,
                factor,
                machine: machine.clone(),
                experiment: changed,
            });
        }
    }
    all
}
