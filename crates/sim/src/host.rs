//! `this`: the machine the simulator itself runs on, read from `/sys`.
//!
//! The topology is read; the costs are those of the nearest preset until `--calibrate` has measured them.

use std::collections::BTreeSet;
use std::fs;
use std::io;

use crate::model::{MachineModel, ModelError, PRESETS};

fn number(path: &str) -> io::Result<usize> {
    fs::read_to_string(path)?
        .trim()
        .parse()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{path}: {error}")))
}

/// The numbers in a list such as `0-3,8,10-11`.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        all.extend(from.parse::<usize>().ok()?..=to.parse::<usize>().ok()?);
    }
    Some(all)
}

pub(crate) fn this_machine() -> Result<MachineModel, ModelError> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").map_err(ModelError::Host)?;
    let cpus = list(&online)
        .ok_or_else(|| ModelError::Host(io::Error::new(io::ErrorKind::InvalidData, online.clone())))?;
    let mut sockets = BTreeSet::new();
    let mut cores = BTreeSet::new();
    for cpu in &cpus {
        let topology = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
        let socket = number(&format!("{topology}/physical_package_id")).map_err(ModelError::Host)?;
        let core = number(&format!("{topology}/core_id")).map_err(ModelError::Host)?;
        sockets.insert(socket);
        cores.insert((socket, core));
    }
    let (_, text) = PRESETS
        .iter()
        .find(|(name, _)| *name == "cloud-16")
        .expect("cloud-16 is a preset");
    let mut model = MachineModel::parse("cloud-16", text)?;
    model.name = "this".into();
    model.description = format!(
        "This host: {} CPUs, {} cores, {} sockets (costs of cloud-16 until calibrated)",
        cpus.len(),
        cores.len(),
        sockets.len()
    );
    model.topology.sockets = sockets.len();
    model.topology.cores_per_socket = (cores.len() / sockets.len()).max(1);
    model.topology.threads_per_core = (cpus.len() / cores.len().max(1)).clamp(1, 2);
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
    fn lists_of_cpus() {
        assert_eq!(list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(list("0\n"), Some(vec![0]));
        assert_eq!(list("a"), None);
    }

    #[test]
    fn this_host_has_cpus() {
        assert!(this_machine().unwrap().cpus() >= 1);
    }
}
