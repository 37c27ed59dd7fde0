//! A machine's description from what public tools say of it: a core-to-core matrix, `lscpu`, `numactl -H`.
//!
//! # Rules
//! I1. Topology is that of `lscpu`. Clusters are the caches of the last level, if a socket has several of equal size, else
//!     the NUMA nodes of a socket (NPS, sub-NUMA clusters), else none.
//! I2. A transfer cost is the median of the matrix over all pairs of CPUs at that distance: two hardware threads of a core,
//!     two cores of a cluster, of a socket, of two sockets one hop or two apart. Hops are those of `numactl -H`: the nearest
//!     sockets are one apart, all others two.
//! I3. All other costs are those of a built-in machine. Each says so, as an estimate, with the machine's name and source.
//!     Unless it is named, it is of the same architecture and has the transfer costs nearest to the matrix.
//! I4. What the model cannot hold is refused (three hardware threads a core, cores of two kinds), or named beside the
//!     description (several nodes within clusters).

mod matrix;
mod places;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clearway_sim::{MachineModel, PRESETS, Topology};

use crate::error::{LabError, Result};
use crate::stats::median;
use matrix::Matrix;
use places::{Nodes, Place, Places, different};

/// A line that cannot be read, from 1, and why.
#[derive(Debug)]
struct Fault {
    line: usize,
    message: String,
}

impl Fault {
    fn new(line: usize, message: String) -> Self {
        Self { line, message }
    }

    fn in_file(self, path: &Path) -> LabError {
        LabError::Import {
            path: path.to_owned(),
            line: self.line,
            message: self.message,
        }
    }
}

/// A finite number.
fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The texts of tools, each with the path that errors name.
#[derive(Debug, Clone, Copy)]
pub struct MachineTexts<'a> {
    /// The new machine's name.
    pub name: &'a str,
    /// `lscpu -p` or `lscpu -J`.
    pub lscpu: (&'a Path, &'a str),
    /// A core-to-core matrix: `core-to-core-latency --csv`, or `c2clat`.
    pub latency: Option<(&'a Path, &'a str)>,
    /// `numactl -H`.
    pub numactl: Option<(&'a Path, &'a str)>,
    /// The built-in machine of all other costs.
    pub like: Option<&'a str>,
}

/// A description, and what it leaves out.
#[derive(Debug, Clone)]
pub struct ImportedMachine {
    /// The description.
    pub machine: MachineModel,
    /// Sentences about what the description leaves out.
    pub notes: Vec<String>,
}

/// Names of the transfer costs, by distance.
const TRANSFERS: [&str; 5] = [
    "coherence.smt",
    "coherence.cluster",
    "coherence.socket",
    "coherence.cross",
    "coherence.cross_two",
];

/// Makes a description.
///
/// # Errors
/// [`LabError::Import`] with file and line; [`LabError::Machine`] if it cannot be simulated.
pub fn import_machine(texts: &MachineTexts<'_>) -> Result<ImportedMachine> {
    let in_file = |path: &Path| {
        let path = path.to_owned();
        move |fault: Fault| fault.in_file(&path)
    };
    let (path, text) = texts.lscpu;
    let mut places = Places::parse(text).map_err(in_file(path))?;
    let nodes = match texts.numactl {
        Some((path, text)) => Some(Nodes::parse(text).map_err(in_file(path))?),
        None => None,
    };
    if let Some(nodes) = &nodes {
        for place in &mut places.all {
            place.node = nodes.of_cpu.get(&place.cpu).copied().or(place.node);
        }
    }
    let mut notes = Vec::new();
    let layout = Layout::of(&places, nodes.as_ref(), &mut notes).map_err(in_file(path))?;
    let mut pairs = None;
    if let Some((path, text)) = texts.latency {
        let matrix = Matrix::parse(text).map_err(in_file(path))?;
        pairs = Some(layout.pairs(&places, &matrix).map_err(in_file(path))?);
    }
    let like = match texts.like {
        Some(like) => MachineModel::load(like)?,
        None => nearest(&layout.topology, places.is_arm, pairs.as_ref())?,
    };
    let mut machine = like.clone();
    machine.name = texts.name.to_owned();
    machine.description = layout.description(&places);
    machine.topology = layout.topology.clone();
    machine.sources = BTreeMap::from([("topology".to_owned(), layout.source.clone())]);
    enter_costs(
        &mut machine,
        &like,
        pairs.as_ref(),
        texts.latency.map(|(path, _)| path),
    );
    machine.check()?;
    Ok(ImportedMachine { machine, notes })
}

/// The topology, and the place of each CPU in it.
struct Layout {
    topology: Topology,
    source: String,
    /// By core: its cluster, if there are any.
    clusters: Option<BTreeMap<usize, usize>>,
    /// By socket and socket.
    hops: BTreeMap<(usize, usize), u8>,
}

impl Layout {
    fn of(places: &Places, nodes: Option<&Nodes>, notes: &mut Vec<String>) -> Result<Self, Fault> {
        let uneven = |what: &str| Fault::new(1, format!("{what}: such machines are not modelled"));
        let sockets = different(places.all.iter().map(|place| place.socket));
        let threads = sizes(&places.all, |place| place.core, |place| place.cpu);
        let cores = sizes(&places.all, |place| place.socket, |place| place.core);
        let threads_per_core =
            only(&threads).ok_or_else(|| uneven("cores have different numbers of hardware threads"))?;
        let cores_per_socket =
            only(&cores).ok_or_else(|| uneven("sockets have different numbers of cores"))?;
        let (clusters, cluster_source) = clusters(&places.all, cores_per_socket, notes);
        let cores_per_cluster = clusters.as_ref().map(|clusters: &BTreeMap<usize, usize>| {
            let count = different(clusters.values().copied()).len();
            sockets.len() * cores_per_socket / count
        });
        let hops = hops(&places.all, &sockets, nodes, notes);
        let rows = hops
            .as_ref()
            .filter(|hops| hops.values().any(|hop| *hop == 2))
            .map(|hops| {
                let row = |from: &usize| sockets.iter().map(|to| hops[&(*from, *to)]).collect();
                sockets.iter().map(row).collect()
            });
        let numactl = if nodes.is_some() { ", numactl -H" } else { "" };
        Ok(Self {
            topology: Topology {
                sockets: sockets.len(),
                cores_per_socket,
                threads_per_core,
                cores_per_cluster,
                hops: rows,
            },
            source: format!("lscpu{numactl}{cluster_source}"),
            clusters,
            hops: hops.unwrap_or_default(),
        })
    }

    fn description(&self, places: &Places) -> String {
        let topology = &self.topology;
        let sockets = if topology.sockets == 1 {
            "socket"
        } else {
            "sockets"
        };
        let clusters = topology
            .cores_per_cluster
            .map_or_else(String::new, |cores| format!(" in clusters of {cores}"));
        format!(
            "{}: {} {sockets}, {} cores{clusters}, {} threads",
            places.model.as_deref().unwrap_or("imported"),
            topology.sockets,
            topology.sockets * topology.cores_per_socket,
            places.all.len()
        )
    }

    /// The index of the distance of two CPUs in [`TRANSFERS`].
    fn distance(&self, one: &Place, other: &Place) -> usize {
        if one.core == other.core {
            return 0;
        }
        if one.socket != other.socket {
            let hops = self.hops.get(&(one.socket, other.socket));
            return if hops == Some(&2) { 4 } else { 3 };
        }
        match &self.clusters {
            Some(clusters) if clusters.get(&one.core) == clusters.get(&other.core) => 1,
            _ => 2,
        }
    }

    /// The matrix's nanoseconds by distance.
    fn pairs(&self, places: &Places, matrix: &Matrix) -> Result<[Vec<f64>; 5], Fault> {
        let of_number = |number: usize| places.all.iter().find(|place| place.cpu == number);
        let measured: Vec<&Place> = match &matrix.numbers {
            Some(numbers) => {
                let found: Option<Vec<&Place>> = numbers.iter().map(|number| of_number(*number)).collect();
                found.ok_or_else(|| Fault::new(1, "it has a CPU that lscpu does not list".to_owned()))?
            }
            None if matrix.cpus() == places.all.len() => places.all.iter().collect(),
            None => first_threads(&places.all),
        };
        if measured.len() != matrix.cpus() {
            return Err(Fault::new(
                1,
                format!(
                    "it is of {} CPUs, and lscpu lists {}",
                    matrix.cpus(),
                    places.all.len()
                ),
            ));
        }
        let mut pairs = [const { Vec::new() }; 5];
        for (row, one) in measured.iter().enumerate() {
            for (column, other) in measured.iter().enumerate().take(row) {
                pairs[self.distance(one, other)].extend(matrix.between(row, column));
            }
        }
        Ok(pairs)
    }
}

/// The first hardware thread of each core.
fn first_threads(all: &[Place]) -> Vec<&Place> {
    let mut seen = BTreeSet::new();
    all.iter().filter(|place| seen.insert(place.core)).collect()
}

/// The number of different members of each group.
fn sizes(
    all: &[Place],
    group: impl Fn(&Place) -> usize,
    member: impl Fn(&Place) -> usize,
) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut groups: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for place in all {
        groups.entry(group(place)).or_default().insert(member(place));
    }
    groups
}

/// The size of all groups, if they have one.
fn only(groups: &BTreeMap<usize, BTreeSet<usize>>) -> Option<usize> {
    let sizes = different(groups.values().map(BTreeSet::len));
    sizes.first().copied().filter(|_| sizes.len() == 1)
}

/// The cluster of each core, if a socket has several of equal size, and the source of that (rule I1).
fn clusters(
    all: &[Place],
    cores_per_socket: usize,
    notes: &mut Vec<String>,
) -> (Option<BTreeMap<usize, usize>>, &'static str) {
    let by = |of: fn(&Place) -> Option<usize>| {
        let cores: Option<BTreeMap<usize, usize>> =
            all.iter().map(|place| Some((place.core, of(place)?))).collect();
        let cores = cores?;
        let cluster_of = |place: &Place| cores[&place.core];
        let size = only(&sizes(all, cluster_of, |place| place.core))?;
        // One cluster lies in one socket.
        let within = only(&sizes(all, cluster_of, |place| place.socket)) == Some(1);
        (within && size > 1 && size < cores_per_socket).then_some(cores)
    };
    let (caches, nodes) = (by(|place| place.last_cache), by(|place| place.node));
    match (caches, nodes) {
        (Some(caches), nodes) => {
            if nodes.is_some() {
                notes.push(
                    "a socket has several NUMA nodes; the model has one home of memory a socket, and clusters by last-level cache"
                        .to_owned(),
                );
            }
            (Some(caches), "; clusters: last-level caches")
        }
        (None, Some(nodes)) => (Some(nodes), "; clusters: the NUMA nodes of a socket"),
        (None, None) => (None, ""),
    }
}

/// Hops by socket and socket, from the distances of their nodes: the least, of another socket, is one hop.
fn hops(
    all: &[Place],
    sockets: &BTreeSet<usize>,
    nodes: Option<&Nodes>,
    notes: &mut Vec<String>,
) -> Option<BTreeMap<(usize, usize), u8>> {
    let nodes = nodes.filter(|_| sockets.len() > 1)?;
    let of_socket = |socket: usize| {
        let here = all.iter().filter(move |place| place.socket == socket);
        different(here.filter_map(|place| place.node))
    };
    let mut between = BTreeMap::new();
    for (one, other) in sockets
        .iter()
        .flat_map(|one| sockets.iter().map(move |other| (*one, *other)))
    {
        let pairs = of_socket(one).into_iter().flat_map(|from| {
            let to = of_socket(other).into_iter();
            to.filter_map(move |to| nodes.distances.get(&(from, to)).copied())
        });
        between.insert((one, other), pairs.min()?);
    }
    let outside: BTreeSet<u32> = between
        .iter()
        .filter(|((one, other), _)| one != other)
        .map(|(_, distance)| *distance)
        .collect();
    let nearest = *outside.first()?;
    if outside.len() > 2 {
        notes.push(format!(
            "sockets are at {} different distances; the model has one hop for the nearest and two for all others",
            outside.len()
        ));
    }
    let mut hops = BTreeMap::new();
    for (one, other) in between.keys() {
        // The farther of both ways: the model's hops are symmetric.
        let distance = between[&(*one, *other)].max(between[&(*other, *one)]);
        let count = match (one == other, distance <= nearest) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => 2,
        };
        hops.insert((*one, *other), count);
    }
    Some(hops)
}

/// The built-in machines that are of ARM's architecture.
const ARM: [&str; 3] = ["arm-1s", "arm-2s", "graviton-2"];

/// The built-in machine of an architecture with the transfer costs nearest to those measured (by the mean of the logarithms
/// of their ratios), or, if nothing was measured, with the nearest number of sockets and then of cores. One socket is not
/// like several: what a machine of one has for farther sockets is an estimate itself.
fn nearest(topology: &Topology, is_arm: bool, pairs: Option<&[Vec<f64>; 5]>) -> Result<MachineModel> {
    let mut found: Option<(f64, MachineModel)> = None;
    let cores = (topology.sockets * topology.cores_per_socket) as f64;
    for (name, _) in PRESETS.iter().filter(|(name, _)| ARM.contains(name) == is_arm) {
        let mut machine = MachineModel::load(name)?;
        let off_cores = (machine.cores() as f64 / cores).ln().abs();
        let off_sockets = (machine.topology.sockets as f64 - topology.sockets as f64).abs();
        let mut offs = Vec::new();
        let costs: BTreeMap<&str, f64> = machine
            .costs_mut()
            .into_iter()
            .map(|(name, cost)| (name, *cost))
            .collect();
        for (transfer, nanoseconds) in TRANSFERS.iter().zip(pairs.into_iter().flatten()) {
            if !nanoseconds.is_empty() && costs[transfer] > 0.0 {
                offs.push((costs[transfer] / median(nanoseconds)).ln().abs());
            }
        }
        let off = if offs.is_empty() {
            100.0 * off_sockets + off_cores
        } else {
            // Of two that are as near, the one of the same size.
            offs.iter().sum::<f64>() / offs.len() as f64 + 1e-3 * (off_sockets + off_cores)
        };
        let is_other_kind = (machine.topology.sockets > 1) != (topology.sockets > 1);
        let off = off + if is_other_kind { 1_000.0 } else { 0.0 };
        if found.as_ref().is_none_or(|(least, _)| off < *least) {
            found = Some((off, machine));
        }
    }
    match found {
        Some((_, machine)) => Ok(machine),
        None => Ok(MachineModel::load("cloud-16")?),
    }
}

/// Puts the medians of the matrix into the description, and a source beside each cost (rules I2 and I3).
fn enter_costs(
    machine: &mut MachineModel,
    like: &MachineModel,
    pairs: Option<&[Vec<f64>; 5]>,
    path: Option<&Path>,
) {
    let topology = machine.topology.clone();
    let mut sources = std::mem::take(&mut machine.sources);
    for (name, cost) in machine.costs_mut() {
        let place = TRANSFERS.iter().position(|known| *known == name);
        let measured = place.and_then(|place| pairs.map(|pairs| &pairs[place]));
        if let (Some(nanoseconds), Some(path)) = (measured.filter(|pairs| !pairs.is_empty()), path) {
            *cost = (median(nanoseconds) * 10.0).round() / 10.0;
            let low = nanoseconds.iter().copied().fold(f64::INFINITY, f64::min);
            let high = nanoseconds.iter().copied().fold(0.0, f64::max);
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            sources.insert(
                name.to_owned(),
                format!(
                    "{file}: median of {} pairs, {low:.0} to {high:.0}",
                    nanoseconds.len()
                ),
            );
            continue;
        }
        let unused = match name {
            "coherence.smt" => topology.threads_per_core == 1,
            "coherence.cross" | "coherence.memory_remote" => topology.sockets == 1,
            "coherence.cross_two" => topology.hops.is_none(),
            _ => false,
        };
        let source = like
            .sources
            .get(name)
            .map_or("the model's default", |source| source);
        let estimated = if unused {
            format!("unused here; that of {}", like.name)
        } else {
            format!("ESTIMATED: that of {} ({source})", like.name)
        };
        sources.insert(name.to_owned(), estimated);
    }
    if topology.cores_per_cluster.is_none() {
        // The model has all cores of a socket in one cluster then.
        machine.coherence.cluster = machine.coherence.socket;
        let source = sources.get("coherence.socket").cloned().unwrap_or_default();
        sources.insert(
            "coherence.cluster".to_owned(),
            format!("no clusters: coherence.socket ({source})"),
        );
    }
    machine.sources = sources;
}
