//! Descriptions from made-up texts of tools.

use super::*;

/// Two sockets of eight cores in clusters of `cluster`, two hardware threads each, numbered as Linux does.
fn lscpu(cluster: usize) -> String {
    let mut text = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n".to_owned();
    for cpu in 0..32 {
        let core = cpu % 16;
        let (socket, cache) = (core / 8, core / cluster);
        text += &format!("{cpu},{core},{socket},{socket},,{core},{core},{core},{cache}\n");
    }
    text
}

/// The lower triangle of 7 ns to a sibling, 20 within four cores, 50 within a socket, 130 beyond, and a ripple.
fn matrix(cpus: usize) -> String {
    let mut text = String::new();
    for row in 0..cpus {
        let cell = |column: usize| {
            let (one, other) = (row % 16, column % 16);
            let nanoseconds = match (one == other, one / 4 == other / 4, one / 8 == other / 8) {
                _ if column >= row => return String::new(),
                (true, ..) => 7.0,
                (_, true, _) => 20.0,
                (_, _, true) => 50.0,
                _ => 130.0,
            };
            format!("{}", nanoseconds + (row * 7 + column * 3) as f64 % 5.0 / 10.0)
        };
        text += &(0..cpus).map(cell).collect::<Vec<_>>().join(",");
        text += "\n";
    }
    text
}

const NUMACTL: &str = "available: 2 nodes (0-1)\nnode 0 cpus: 0 1\nnode 1 cpus: 8 9\nnode distances:\n\
    node 0 1\n 0: 10 32\n 1: 32 10\n";

fn import(
    lscpu: &str,
    latency: Option<&str>,
    numactl: Option<&str>,
    like: Option<&str>,
) -> Result<ImportedMachine> {
    import_machine(&MachineTexts {
        name: "mine",
        lscpu: (Path::new("lscpu.txt"), lscpu),
        latency: latency.map(|text| (Path::new("dir/matrix.csv"), text)),
        numactl: numactl.map(|text| (Path::new("numactl.txt"), text)),
        like,
    })
}

#[test]
fn each_distance_has_the_median_of_its_pairs() {
    let imported = import(&lscpu(4), Some(&matrix(32)), Some(NUMACTL), None).unwrap();
    let machine = imported.machine;
    let topology = &machine.topology;
    assert_eq!(
        (
            topology.sockets,
            topology.cores_per_socket,
            topology.threads_per_core
        ),
        (2, 8, 2)
    );
    assert_eq!((topology.cores_per_cluster, &topology.hops), (Some(4), &None));
    let costs = &machine.coherence;
    for (cost, about) in [
        (costs.smt, 7.0),
        (costs.cluster, 20.0),
        (costs.socket, 50.0),
        (costs.cross, 130.0),
    ] {
        assert!((about..about + 0.5).contains(&cost), "{cost}, about {about}");
    }
    let source = |name: &str| machine.sources[name].as_str();
    assert!(
        source("coherence.smt").starts_with("matrix.csv: median of 16 pairs"),
        "{}",
        source("coherence.smt")
    );
    assert!(
        source("coherence.cluster").contains("median of 96 pairs, 20 to 20"),
        "{}",
        source("coherence.cluster")
    );
    assert!(
        source("coherence.cross").contains("median of 256 pairs, 130 to 130"),
        "{}",
        source("coherence.cross")
    );
    let rmw = source("coherence.rmw_hit");
    assert!(rmw.starts_with("ESTIMATED: that of e5-2630v4-2s ("), "{rmw}");
    assert!(
        source("coherence.cross_two").starts_with("unused"),
        "{:?}",
        machine.sources
    );
    assert!(source("topology").contains("last-level caches") && imported.notes.is_empty());
    // What is printed is a description.
    let text = toml::to_string(&machine).unwrap();
    assert_eq!(MachineModel::parse("mine.toml", &text).unwrap(), machine);
}

#[test]
fn a_matrix_of_cores_alone_and_no_matrix_leave_estimates() {
    let of_cores = import(&lscpu(4), Some(&matrix(16)), None, Some("haswell-ex-4s"))
        .unwrap()
        .machine;
    let source = &of_cores.sources["coherence.smt"];
    assert!(source.starts_with("ESTIMATED: that of haswell-ex-4s"), "{source}");
    assert!((50.0..50.5).contains(&of_cores.coherence.socket));
    let without = import(&lscpu(8), None, None, None).unwrap().machine;
    assert_eq!(without.topology.cores_per_cluster, None);
    assert_eq!(without.coherence.cluster, without.coherence.socket);
    let (sources, used) = (
        &without.sources,
        ["coherence.smt", "coherence.socket", "coherence.cross"],
    );
    assert!(
        used.iter()
            .all(|name| sources[*name].starts_with("ESTIMATED: that of ")),
        "{sources:?}"
    );
}

/// Four sockets in a ring: two are one hop from each, and one is two.
#[test]
fn distances_of_nodes_are_hops_of_sockets() {
    let mut lscpu = "# CPU,Core,Socket,Node\n".to_owned();
    for cpu in 0..8 {
        lscpu += &format!("{cpu},{cpu},{},{}\n", cpu / 2, cpu / 2);
    }
    let numactl = "node 0 cpus: 0 1\nnode 1 cpus: 2 3\nnode 2 cpus: 4 5\nnode 3 cpus: 6 7\nnode 0 1 2 3\n\
        0: 10 16 22 16\n1: 16 10 16 22\n2: 22 16 10 16\n3: 16 22 16 10\n";
    let machine = import(&lscpu, None, Some(numactl), None).unwrap().machine;
    let ring = vec![
        vec![0, 1, 2, 1],
        vec![1, 0, 1, 2],
        vec![2, 1, 0, 1],
        vec![1, 2, 1, 0],
    ];
    assert_eq!(machine.topology.hops, Some(ring));
    assert!(machine.sources["coherence.cross_two"].starts_with("ESTIMATED"));
}

/// NPS 4 of a socket with eight caches: the caches are the clusters, and the nodes are named.
#[test]
fn nodes_within_a_socket_are_clusters_or_named() {
    let text = |caches: bool| {
        let mut text = "# CPU,Core,Socket,Node,,L3\n".to_owned();
        for cpu in 0..16 {
            let cache = if caches { cpu / 2 } else { 0 };
            text += &format!("{cpu},{cpu},0,{},,{cache}\n", cpu / 4);
        }
        text
    };
    let with_caches = import(&text(true), None, None, None).unwrap();
    assert_eq!(with_caches.machine.topology.cores_per_cluster, Some(2));
    assert!(
        with_caches.notes[0].contains("several NUMA nodes"),
        "{:?}",
        with_caches.notes
    );
    let without = import(&text(false), None, None, None).unwrap();
    assert_eq!(without.machine.topology.cores_per_cluster, Some(4));
    assert!(without.machine.sources["topology"].contains("NUMA nodes") && without.notes.is_empty());
}

#[test]
fn what_cannot_be_simulated_is_refused_with_its_file() {
    let refused =
        |lscpu: &str, latency: Option<&str>| import(lscpu, latency, None, None).unwrap_err().to_string();
    let of_others = refused(&lscpu(4), Some(&matrix(20)));
    assert_eq!(
        of_others,
        "dir/matrix.csv:1: it is of 20 CPUs, and lscpu lists 32"
    );
    let unlisted = refused(&lscpu(4), Some("CPU 0 99\n0 0 30\n99 30 0\n"));
    assert!(unlisted.contains("does not list"), "{unlisted}");
    let hybrid = "# CPU,Core,Socket\n0,0,0\n1,0,0\n2,1,0\n";
    assert!(refused(hybrid, None).starts_with("lscpu.txt:1: cores have different numbers"));
    let four_threads = "# CPU,Core,Socket\n0,0,0\n1,0,0\n2,0,0\n3,0,0\n";
    assert!(refused(four_threads, None).contains("4 threads per core"));
    assert!(
        import(&lscpu(4), None, None, Some("none"))
            .unwrap_err()
            .to_string()
            .contains("haswell-ex-4s")
    );
}
