//! The topology of this host, the one place that reads it.
//!
//! [`Places`]: which CPUs share a private cache, and on which NUMA node each is, for latches whose readers use lines of
//! their own. [`HostCpus`]: how many CPUs, cores and sockets there are, for a simulation of this host.
//!
//! Read from `/sys/devices/system`:
//!
//! | file | says | for |
//! | --- | --- | --- |
//! | `cpu/online` | which CPUs there are | both |
//! | `cpu/cpuN/cache/index*/level`, `type`, `shared_cpu_list` | with which CPUs N shares its level 2 cache | `Places` |
//! | `cpu/cpuN/topology/thread_siblings_list` | with which it shares its core; read where the cache is not described | `Places` |
//! | `node/nodeN/cpulist` | the CPUs of NUMA node N | `Places` |
//! | `cpu/cpuN/topology/physical_package_id`, `core_id` | the socket of N, and its core among those of the socket | `HostCpus` |
//!
//! # Places
//! CPUs with one level 2 cache are one *core* here, whether hardware threads of one core or a cluster of small cores:
//! what matters to a latch is that a line moves between them without a transfer. Only CPUs that the process may run on
//! count, so that in a container cores are not counted that none of its threads will use.
//!
//! A missing or implausible entry is replaced: a CPU without a usable list is a core by itself, and one that no node
//! lists is on node 0. In the worst case each CPU is a core, on one node. Nothing fails.
//!
//! # Counts
//! A core is a core of the hardware here, and every CPU that is online counts, since it is the host that is described. A
//! file that is missing is an error: a simulation of a guessed host would be of another one.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use crate::machine::CpuCounts;

/// CPU numbers from here on are not believed. Linux itself has at most 8,192.
const CPUS_MAX: usize = 8_192;

/// The directory of the description.
const ROOT: &str = "/sys/devices/system";

/// Numbers of CPUs, cores and sockets of a host, whether or not this process may run on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostCpus {
    /// Hardware threads.
    pub cpus: usize,
    /// Cores of the hardware.
    pub cores: usize,
    /// Sockets.
    pub sockets: usize,
}

impl HostCpus {
    /// Those of this host.
    ///
    /// # Errors
    /// The description cannot be read, or makes no sense.
    pub fn of_this_host() -> io::Result<Self> {
        Self::read(Path::new(ROOT))
    }

    fn read(root: &Path) -> io::Result<Self> {
        let online = fs::read_to_string(root.join("cpu/online"))?;
        let cpus = list(&online).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, online.clone()))?;
        let (mut sockets, mut cores) = (BTreeSet::new(), BTreeSet::new());
        for cpu in &cpus {
            let topology = root.join(format!("cpu/cpu{cpu}/topology"));
            let socket = number_in(&topology.join("physical_package_id"))?;
            sockets.insert(socket);
            cores.insert((socket, number_in(&topology.join("core_id"))?));
        }
        Ok(Self {
            cpus: cpus.len(),
            cores: cores.len(),
            sockets: sockets.len(),
        })
    }
}

fn number_in(path: &Path) -> io::Result<usize> {
    fs::read_to_string(path)?.trim().parse().map_err(|error| {
        let message = format!("{}: {error}", path.display());
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// The place of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// From 0 up; the cores of a node have numbers next to each other.
    pub(crate) core: u32,
    pub(crate) node: u32,
}

/// The place of each CPU.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Places {
    of_cpu: Box<[Place]>,
    counts: CpuCounts,
}

impl Places {
    /// Those of this host. `allowed`: the CPUs that the process may run on; none means all.
    pub(crate) fn of_this_host(allowed: &[usize]) -> Self {
        Self::read(Path::new(ROOT), allowed)
    }

    /// Reads the description below `root`.
    fn read(root: &Path, allowed: &[usize]) -> Self {
        let online = list_in(&root.join("cpu/online")).unwrap_or_default();
        let mut cpus: Vec<usize> = online
            .iter()
            .copied()
            .filter(|cpu| allowed.is_empty() || allowed.contains(cpu))
            .collect();
        if cpus.is_empty() {
            cpus = allowed.iter().copied().filter(|cpu| *cpu < CPUS_MAX).collect();
        }
        let nodes = nodes_of_cpus(root);
        let node = |cpu: usize| nodes.get(cpu).copied().unwrap_or(0);
        // A core by its node and its first CPU, in this order.
        let mut cores: Vec<(u32, usize)> = Vec::with_capacity(cpus.len());
        let mut core_of = Vec::with_capacity(cpus.len());
        for &cpu in &cpus {
            let first = first_of_core(root, cpu);
            let core = (node(cpu), first);
            core_of.push((cpu, core));
            cores.push(core);
        }
        cores.sort_unstable();
        cores.dedup();
        let mut seen: Vec<u32> = cores.iter().map(|(node, _)| *node).collect();
        seen.dedup();
        let mut of_cpu = vec![Place::default(); cpus.iter().max().map_or(0, |last| last + 1)];
        for (cpu, core) in core_of {
            // Numbers in the list, without holes, whatever /sys calls the nodes.
            let number = cores.partition_point(|other| *other < core);
            of_cpu[cpu] = Place {
                core: number as u32,
                node: seen.partition_point(|other| *other < core.0) as u32,
            };
        }
        Self {
            of_cpu: of_cpu.into(),
            counts: CpuCounts {
                cpus: cpus.len() as u32,
                cores: cores.len() as u32,
                nodes: seen.len() as u32,
            },
        }
    }

    /// The place of `cpu`. A CPU that was missing, or not allowed, when the description was read is given some place.
    #[inline]
    pub(crate) fn of(&self, cpu: u32) -> Place {
        self.of_cpu.get(cpu as usize).copied().unwrap_or_default()
    }

    pub(crate) fn counts(&self) -> CpuCounts {
        self.counts
    }
}

/// The first of the CPUs that share a level 2 cache, or else a core, with `cpu`.
fn first_of_core(root: &Path, cpu: usize) -> usize {
    let directory = root.join(format!("cpu/cpu{cpu}"));
    let with_itself = |list: Vec<usize>| list.contains(&cpu).then(|| list.iter().copied().min()).flatten();
    level_2_list(&directory)
        .and_then(with_itself)
        .or_else(|| list_in(&directory.join("topology/thread_siblings_list")).and_then(with_itself))
        .unwrap_or(cpu)
}

fn level_2_list(directory: &Path) -> Option<Vec<usize>> {
    let caches = fs::read_dir(directory.join("cache")).ok()?;
    caches.flatten().map(|cache| cache.path()).find_map(|cache| {
        let level = fs::read_to_string(cache.join("level")).ok()?;
        let kind = fs::read_to_string(cache.join("type")).ok()?;
        (level.trim() == "2" && kind.trim() != "Instruction")
            .then(|| list_in(&cache.join("shared_cpu_list")))?
    })
}

/// The node of each CPU that a node lists.
fn nodes_of_cpus(root: &Path) -> Vec<u32> {
    let mut of_cpu = Vec::new();
    let Ok(entries) = fs::read_dir(root.join("node")) else {
        return of_cpu;
    };
    for entry in entries.flatten() {
        let number = entry
            .file_name()
            .to_str()
            .and_then(|name| name.strip_prefix("node")?.parse().ok());
        let cpus = list_in(&entry.path().join("cpulist"));
        let (Some(number), Some(cpus)) = (number, cpus) else {
            continue;
        };
        for cpu in cpus {
            if of_cpu.len() <= cpu {
                of_cpu.resize(cpu + 1, 0);
            }
            of_cpu[cpu] = number;
        }
    }
    of_cpu
}

fn list_in(path: &Path) -> Option<Vec<usize>> {
    list(&fs::read_to_string(path).ok()?)
}

/// The numbers of a list such as `0-3,8,10-11`; `None` if it is not one, or has numbers that no CPU has.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.parse::<usize>().ok()?, to.parse::<usize>().ok()?);
        if from > to || to >= CPUS_MAX {
            return None;
        }
        all.extend(from..=to);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A description of a host, in a directory that goes with it.
    struct Host(std::path::PathBuf);

    impl Host {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let root = std::env::temp_dir().join(format!("clearway-places-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = root.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self(root)
        }

        fn read(&self) -> Places {
            Places::read(&self.0, &[])
        }
    }

    impl Drop for Host {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn cores(places: &Places, cpus: u32) -> Vec<u32> {
        (0..cpus).map(|cpu| places.of(cpu).core).collect()
    }

    fn counts(cpus: u32, cores: u32, nodes: u32) -> CpuCounts {
        CpuCounts { cpus, cores, nodes }
    }

    // Mutations seen to fail here: cores are not sorted by node; CPUs that are not allowed count.
    #[test]
    fn hardware_threads_are_one_core_and_a_node_has_its_cores_together() {
        // As Linux numbers two sockets of two cores whose firmware lists the sockets by turns.
        let mut files = vec![
            ("cpu/online", "0-7\n"),
            ("node/node0/cpulist", "0,2,4,6\n"),
            ("node/node1/cpulist", "1,3,5,7\n"),
        ];
        for (cpu, siblings) in ["0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"]
            .iter()
            .enumerate()
        {
            for (file, text) in [("level", "2"), ("type", "Unified"), ("shared_cpu_list", siblings)] {
                let path: &'static str =
                    Box::leak(format!("cpu/cpu{cpu}/cache/index2/{file}").into_boxed_str());
                files.push((path, text));
            }
        }
        let host = Host::new("threads", &files);
        let places = host.read();
        assert_eq!(places.counts(), counts(8, 4, 2));
        assert_eq!(cores(&places, 8), [0, 2, 1, 3, 0, 2, 1, 3]);
        assert_eq!(
            (0..8).map(|cpu| places.of(cpu).node).collect::<Vec<_>>(),
            [0, 1, 0, 1, 0, 1, 0, 1]
        );
        // A container that may use one core's threads and one of another's.
        let some = Places::read(&host.0, &[1, 5, 6]);
        assert_eq!(some.counts(), counts(3, 2, 2));
        assert_eq!((some.of(1).core, some.of(5).core, some.of(6).core), (1, 1, 0));
    }

    #[test]
    fn the_core_is_read_where_the_cache_is_not_described() {
        let host = Host::new(
            "siblings",
            &[
                ("cpu/online", "0-2"),
                ("cpu/cpu0/topology/thread_siblings_list", "0-1"),
                ("cpu/cpu1/topology/thread_siblings_list", "0-1"),
            ],
        );
        assert_eq!(cores(&host.read(), 3), [0, 0, 1]);
    }

    // Mutations seen to fail here: a list without the CPU is believed, or numbers of any size.
    #[test]
    fn what_makes_no_sense_is_a_core_a_cpu() {
        let host = Host::new(
            "nonsense",
            &[
                ("cpu/online", "0-4"),
                ("cpu/cpu0/topology/thread_siblings_list", "zero"),
                ("cpu/cpu1/topology/thread_siblings_list", "0"),
                ("cpu/cpu2/topology/thread_siblings_list", "2-18446744073709551615"),
                ("cpu/cpu3/topology/thread_siblings_list", "4-3"),
                ("cpu/cpu4/cache/index2/level", "2"),
                ("cpu/cpu4/cache/index2/type", "Unified"),
                ("node/nodeX/cpulist", "0-4"),
                ("node/node1/cpulist", "99999999"),
            ],
        );
        let places = host.read();
        assert_eq!(places.counts(), counts(5, 5, 1));
        assert_eq!(cores(&places, 5), [0, 1, 2, 3, 4]);
        assert_eq!(places.of(1_000_000), Place::default());
    }

    #[test]
    fn nothing_to_read_leaves_the_cpus_that_are_allowed() {
        let nowhere = Path::new("/there/is/no/such/directory");
        assert_eq!(Places::read(nowhere, &[]).counts(), counts(0, 0, 0));
        let places = Places::read(nowhere, &[3, 5]);
        assert_eq!(places.counts(), counts(2, 2, 1));
        assert_eq!((places.of(3).core, places.of(5).core), (0, 1));
    }

    // Mutation seen to fail here: cores are told apart by their number alone.
    #[test]
    fn cores_of_two_sockets_may_have_one_number() {
        let mut files = vec![("cpu/online", "0-3,8,10-11\n")];
        for (cpu, socket, core) in [
            (0, "0", "0"),
            (1, "0", "1"),
            (2, "1", "0"),
            (3, "1", "1"),
            (8, "0", "0"),
            (10, "1", "0"),
            (11, "1", "1"),
        ] {
            for (file, text) in [("physical_package_id", socket), ("core_id", core)] {
                let path = format!("cpu/cpu{cpu}/topology/{file}");
                let path: &'static str = Box::leak(path.into_boxed_str());
                files.push((path, text));
            }
        }
        let counted = |cpus, cores, sockets| HostCpus { cpus, cores, sockets };
        let host = Host::new("sockets", &files);
        assert_eq!(HostCpus::read(&host.0).unwrap(), counted(7, 4, 2));
        files.push(("cpu/online", "a"));
        let host = Host::new("nonsense-online", &files);
        assert_eq!(
            HostCpus::read(&host.0).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        files.push(("cpu/online", "0-4"));
        let host = Host::new("missing", &files);
        assert_eq!(
            HostCpus::read(&host.0).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn this_host_has_cpus() {
        let found = HostCpus::of_this_host().unwrap();
        assert!(
            1 <= found.sockets && found.sockets <= found.cores && found.cores <= found.cpus,
            "{found:?}"
        );
    }
}
