//! `this`: the machine the simulator itself runs on, as `clearway-machine` reads it from `/sys`.
//!
//! The topology is read; the costs are those of the nearest preset until `--calibrate` has measured them.

use clearway_machine::HostCpus;

use crate::model::{MachineModel, ModelError, PRESETS};

pub(crate) fn this_machine() -> Result<MachineModel, ModelError> {
    let HostCpus { cpus, cores, sockets } = HostCpus::of_this_host().map_err(ModelError::Host)?;
    let (_, text) = PRESETS
        .iter()
        .find(|(name, _)| *name == "cloud-16")
        .expect("cloud-16 is a preset");
    let mut model = MachineModel::parse("cloud-16", text)?;
    model.name = "this".into();
    model.description = format!(
        "This host: {cpus} CPUs, {cores} cores, {sockets} sockets (costs of cloud-16 until calibrated)"
    );
    model.topology.sockets = sockets;
    model.topology.cores_per_socket = (cores / sockets).max(1);
    model.topology.threads_per_core = (cpus / cores.max(1)).clamp(1, 2);
    model.topology.cores_per_cluster = None;
    model.topology.hops = None;
    model
        .sources
        .insert("topology".into(), "/sys/devices/system/cpu".into());
    model.check()?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_has_cpus() {
        assert!(this_machine().unwrap().cpus() >= 1);
    }
}
