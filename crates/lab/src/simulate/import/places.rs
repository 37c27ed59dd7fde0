//! The place of each CPU, from `lscpu -p` or `lscpu -J`, and the distances of the nodes, from `numactl -H`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Fault;

/// The place of a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) cpu: usize,
    /// Unlike that of every other core of the machine.
    pub(super) core: usize,
    pub(super) socket: usize,
    /// The NUMA node.
    pub(super) node: Option<usize>,
    /// The cache of the last level.
    pub(super) last_cache: Option<usize>,
}

/// The CPUs of a machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Places {
    /// By number.
    pub(super) all: Vec<Place>,
    pub(super) model: Option<String>,
    pub(super) is_arm: bool,
}

/// The most CPUs: twice the cores that a description may have.
const CPUS_MAX: usize = 512;

impl Places {
    /// The output of `lscpu -p` or of `lscpu -J`.
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let places = if text.trim_start().starts_with('{') {
            of_json(text)?
        } else {
            of_lines(text)?
        };
        if places.all.is_empty() || places.all.len() > CPUS_MAX {
            let cpus = places.all.len();
            return Err(Fault::new(
                1,
                format!("{cpus} CPUs are listed; 1 to {CPUS_MAX} can be simulated"),
            ));
        }
        Ok(places)
    }
}

/// `lscpu -p`: a comment that ends with the names of the columns, then a line a CPU.
fn of_lines(text: &str) -> Result<Places, Fault> {
    let mut columns: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for (line, row) in (1..).zip(text.lines()) {
        if let Some(comment) = row.strip_prefix('#') {
            let names: Vec<String> = comment
                .trim()
                .split(',')
                .map(|name| name.trim().to_ascii_lowercase())
                .collect();
            if names.iter().any(|name| name == "cpu") {
                columns = names;
            }
            continue;
        }
        if row.trim().is_empty() {
            continue;
        }
        let fields: Vec<&str> = row.split(',').map(str::trim).collect();
        let column = |name: &str| {
            let place = columns.iter().position(|known| known == name)?;
            fields.get(place)?.parse::<usize>().ok()
        };
        let (Some(cpu), Some(core), Some(socket)) = (column("cpu"), column("core"), column("socket")) else {
            return Err(Fault::new(
                line,
                "no CPU, Core and Socket here; the output of `lscpu -p` with its comments is needed"
                    .to_owned(),
            ));
        };
        all.push(Place {
            cpu,
            core,
            socket,
            node: column("node"),
            last_cache: column("l3"),
        });
    }
    all.sort_by_key(|place| place.cpu);
    Ok(Places {
        all,
        model: None,
        is_arm: false,
    })
}

/// `lscpu -J`: a summary. CPUs are numbered as Linux does: first the first hardware thread of every core.
fn of_json(text: &str) -> Result<Places, Fault> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| Fault::new(error.line(), error.to_string()))?;
    let mut fields = BTreeMap::new();
    if let Some(list) = value.get("lscpu").and_then(Value::as_array) {
        flatten(list, &mut fields);
    }
    let counted = |name: &str| fields.get(name).and_then(|data| data.parse::<usize>().ok());
    let needed = |name: &str| {
        let count = counted(name).filter(|count| (1..=CPUS_MAX).contains(count));
        count.ok_or_else(|| {
            Fault::new(
                1,
                format!("there is no \"{name}\" in the output of lscpu, or it is no count"),
            )
        })
    };
    let sockets = needed("Socket(s):")?;
    let cores_per_socket = match counted("Core(s) per socket:") {
        Some(_) => needed("Core(s) per socket:")?,
        // As lscpu names it on some ARM machines.
        None => needed("Core(s) per cluster:")?,
    };
    let (threads, cores) = (needed("Thread(s) per core:")?, sockets * cores_per_socket);
    if cores * threads > CPUS_MAX {
        let cpus = cores * threads;
        return Err(Fault::new(1, format!("{cpus} CPUs; {CPUS_MAX} can be simulated")));
    }
    let caches = fields.get("L3 cache:").and_then(|data| instances(data));
    let nodes = counted("NUMA node(s):").filter(|nodes| *nodes > 0 && cores.is_multiple_of(*nodes));
    let caches = caches.filter(|caches| cores.is_multiple_of(*caches));
    let place = |cpu: usize| {
        let core = cpu % cores;
        Place {
            cpu,
            core,
            socket: core / cores_per_socket,
            node: nodes.map(|nodes| core / (cores / nodes)),
            last_cache: caches.map(|caches| core / (cores / caches)),
        }
    };
    let architecture = fields.get("Architecture:").map_or("", String::as_str);
    Ok(Places {
        all: (0..cores * threads).map(place).collect(),
        model: fields.get("Model name:").cloned(),
        is_arm: architecture.starts_with("aarch64") || architecture.starts_with("arm"),
    })
}

/// Fields by name, those below others among them.
fn flatten(list: &[Value], fields: &mut BTreeMap<String, String>) {
    // A list in a list, and so on, is no deeper than serde_json reads: 128.
    for entry in list {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        if let (Some(field), Some(data)) = (text("field"), text("data")) {
            fields.entry(field.to_owned()).or_insert_with(|| data.to_owned());
        }
        if let Some(children) = entry.get("children").and_then(Value::as_array) {
            flatten(children, fields);
        }
    }
}

/// The 8 of `256 MiB (8 instances)`.
fn instances(data: &str) -> Option<usize> {
    let (_, counted) = data.split_once('(')?;
    let count = counted.split_whitespace().next()?.parse().ok()?;
    (count > 0).then_some(count)
}

/// The nodes of `numactl -H`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Nodes {
    /// The node of each CPU.
    pub(super) of_cpu: BTreeMap<usize, usize>,
    /// By node and node.
    pub(super) distances: BTreeMap<(usize, usize), u32>,
}

impl Nodes {
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let mut nodes = Self::default();
        let mut columns: Vec<usize> = Vec::new();
        for (line, row) in (1..).zip(text.lines()) {
            let words: Vec<&str> = row.split_whitespace().collect();
            let wrong =
                |what: &str| Fault::new(line, format!("{what}; the output of `numactl -H` is needed"));
            match words.as_slice() {
                ["node", node, "cpus:", cpus @ ..] => {
                    let node = node.parse().map_err(|_| wrong("no number of a node"))?;
                    for cpu in cpus {
                        let cpu = cpu.parse().map_err(|_| wrong("no number of a CPU"))?;
                        nodes.of_cpu.insert(cpu, node);
                    }
                }
                ["node", names @ ..]
                    if !names.is_empty() && names.iter().all(|name| name.parse::<usize>().is_ok()) =>
                {
                    columns = names.iter().filter_map(|name| name.parse().ok()).collect();
                }
                [row, distances @ ..] if row.ends_with(':') && !columns.is_empty() => {
                    let row: usize = row
                        .trim_end_matches(':')
                        .parse()
                        .map_err(|_| wrong("no number of a node"))?;
                    if distances.len() != columns.len() {
                        return Err(wrong("there is not a distance for each node"));
                    }
                    for (column, distance) in columns.iter().zip(distances) {
                        let distance = distance.parse().map_err(|_| wrong("no distance"))?;
                        nodes.distances.insert((row, *column), distance);
                    }
                }
                _ => {}
            }
        }
        if nodes.of_cpu.is_empty() {
            return Err(Fault::new(
                1,
                "no node has CPUs; the output of `numactl -H` is needed".to_owned(),
            ));
        }
        Ok(nodes)
    }
}

/// The different values of a property.
pub(super) fn different(values: impl Iterator<Item = usize>) -> BTreeSet<usize> {
    values.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "# The following is the parsable format\n# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n\
        0,0,0,0,,0,0,0,0\n1,1,1,1,,1,1,1,1\n2,0,0,0,,0,0,0,0\n3,1,1,1,,1,1,1,1\n";

    #[test]
    fn the_lines_of_lscpu_place_each_cpu() {
        let places = Places::parse(LINES).unwrap();
        let third = Place {
            cpu: 2,
            core: 0,
            socket: 0,
            node: Some(0),
            last_cache: Some(0),
        };
        assert_eq!((places.all.len(), places.all[2]), (4, third));
        // A virtual machine may show no last cache.
        let without = "# CPU,Core,Socket,Node,,L1d,L1i,L2\n0,0,0,,,0,0,0\n";
        let place = Places::parse(without).unwrap().all[0];
        assert_eq!((place.node, place.last_cache), (None, None));
    }

    #[test]
    fn the_summary_of_lscpu_places_each_cpu_as_linux_numbers_them() {
        let text = r#"{"lscpu": [{"field": "Architecture:", "data": "aarch64"}, {"field": "Model name:", "data": "N2",
            "children": [{"field": "Thread(s) per core:", "data": "2"}, {"field": "Core(s) per socket:", "data": "4"},
            {"field": "Socket(s):", "data": "2"}]}, {"field": "L3 cache:", "data": "64 MiB (4 instances)"},
            {"field": "NUMA node(s):", "data": "2"}]}"#;
        let places = Places::parse(text).unwrap();
        assert!(places.is_arm && places.model.as_deref() == Some("N2"));
        let last = Place {
            cpu: 15,
            core: 7,
            socket: 1,
            node: Some(1),
            last_cache: Some(3),
        };
        assert_eq!((places.all.len(), places.all[15]), (16, last));
    }

    #[test]
    fn the_nodes_of_numactl_have_cpus_and_distances() {
        let text = "available: 2 nodes (0-1)\nnode 0 cpus: 0 2\nnode 0 size: 100 MB\nnode 0 free: 9 MB\nnode 1 cpus: 1 3\n\
            node 1 size: 100 MB\nnode distances:\nnode   0   1 \n  0:  10  21 \n  1:  21  10 \n";
        let nodes = Nodes::parse(text).unwrap();
        assert_eq!(nodes.of_cpu, BTreeMap::from([(0, 0), (1, 1), (2, 0), (3, 1)]));
        assert_eq!(nodes.distances[&(0, 1)], 21);
    }

    #[test]
    fn a_fault_has_its_line() {
        let places = |text: &str| Places::parse(text).unwrap_err();
        assert_eq!(places("0,0,0,0\n").line, 1);
        assert!(places("# CPU,Core,Socket\n0,0,0\n1,x,0\n").line == 3);
        assert!(places("").message.contains("0 CPUs"));
        assert_eq!(places("{\n\"lscpu\": [}").line, 2);
        assert!(places("{}").message.contains("Socket(s)"));
        let huge = r#"{"lscpu": [{"field": "Socket(s):", "data": "99999999999"}]}"#;
        assert!(places(huge).message.contains("Socket(s)"));
        let nodes = |text: &str| Nodes::parse(text).unwrap_err();
        assert!(
            nodes("bash: numactl: command not found")
                .message
                .contains("no node has CPUs")
        );
        assert_eq!(nodes("node 0 cpus: 0\nnode 0 1\n 0: 10\n").line, 3);
    }
}
