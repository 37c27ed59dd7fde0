//! Descriptions of machines.
//!
//! A description is a TOML file: the topology, the cost of moving a cache line by distance, the costs of the
//! operating system's services, and a source for each figure. The built-in ones are in `machines/`. Costs are
//! nanoseconds unless a name says otherwise.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A machine as its TOML file describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineModel {
    /// The name on the command line.
    pub name: String,
    /// One line for a list.
    pub description: String,
    /// Sockets, cores, hardware threads.
    pub topology: Topology,
    /// Costs of cache lines.
    pub coherence: Coherence,
    /// Costs of the operating system.
    #[serde(default)]
    pub os: OperatingSystem,
    /// The source of each figure: `coherence.socket = "…"`.
    pub sources: BTreeMap<String, String>,
}

/// Sockets, cores and hardware threads. CPUs are numbered as Linux numbers them: first the first hardware
/// thread of every core, socket by socket, then the second ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Sockets, each a NUMA node.
    pub sockets: usize,
    /// Cores a socket.
    pub cores_per_socket: usize,
    /// Hardware threads a core, 1 or 2.
    #[serde(default = "one")]
    pub threads_per_core: usize,
    /// Cores that share a last-level cache or a mesh quadrant; default: all of a socket.
    #[serde(default)]
    pub cores_per_cluster: Option<usize>,
    /// Hops between sockets, 1 or 2, a row a socket; default: 1 between any two.
    #[serde(default)]
    pub hops: Option<Vec<Vec<u8>>>,
}

const fn one() -> usize {
    1
}

/// Costs of cache lines, in nanoseconds. A transfer cost is that of one whole operation on a line that
/// another core has modified: half of a ping-pong round trip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coherence {
    /// A load that hits the first-level cache.
    pub load_hit: f64,
    /// A store to a line that is ours.
    pub store_hit: f64,
    /// A locked read-modify-write of a line that is ours.
    pub rmw_hit: f64,
    /// A full fence with an empty store buffer.
    pub fence: f64,
    /// A pause between two polls.
    pub pause: f64,
    /// From the other hardware thread of the same core.
    pub smt: f64,
    /// From a core of the same cluster.
    pub cluster: f64,
    /// From a core of another cluster of the same socket.
    pub socket: f64,
    /// From a core one hop away.
    pub cross: f64,
    /// From a core two hops away.
    pub cross_two: f64,
    /// A load's part of the cost of a read-modify-write over the same distance.
    #[serde(default = "whole")]
    pub load_factor: f64,
    /// The part of a transfer after which the line leaves its former owner, which uses it until then.
    pub departure: f64,
    /// Mean number of read-modify-writes that an owner does before it gives up a line that another core has asked for,
    /// though the line need not leave yet; 0: as many as end before. A number, not a time. See `coherence`.
    #[serde(default)]
    pub owner_rmws: f64,
    /// A miss's part of its cost when the loads of a core run over neighbouring lines in ascending order: the
    /// prefetcher and out-of-order execution overlap such misses. All other loads wait for each other.
    pub stream: f64,
    /// From memory of the own node.
    pub memory: f64,
    /// From memory of another node.
    pub memory_remote: f64,
    /// The extra cost of each sharer beyond the first when a line is taken from them.
    pub invalidate_sharer: f64,
    /// The time for which a far atomic occupies the line's home, which performs it in its own cache and leaves the line
    /// there (the AtomicLoad, AtomicStore and AtomicSwap of Arm's CHI); 0: the machine has none. Far are
    /// read-modify-writes without acquire order of a line that the core does not hold alone. See `coherence`.
    #[serde(default)]
    pub far_atomic: f64,
    /// True if a transfer costs at least the way to the line's home node (a directory there, as on AMD's
    /// EPYC).
    #[serde(default)]
    pub through_home: bool,
}

const fn whole() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_true(flag: &bool) -> bool {
    *flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(cost: &f64) -> bool {
    *cost == 0.0
}

/// Costs of the operating system. The defaults are those of Linux with the completely fair scheduler.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OperatingSystem {
    /// Entering and leaving a system call that does nearly nothing, ns.
    pub syscall: f64,
    /// Looking up and locking a futex's bucket, beyond the system call, ns.
    pub futex: f64,
    /// The cost to the waker of waking one sleeper, ns.
    pub wake: f64,
    /// From the wake-up until an idle CPU has left its idle state and begins to switch, ns.
    pub idle_exit: f64,
    /// A context switch, ns.
    pub switch: f64,
    /// Lateness of a timer, ns.
    pub timer_slack: f64,
    /// Reading the clock, ns.
    pub clock: f64,
    /// Scheduling period, µs: each runnable thread of a CPU runs once in it.
    pub sched_latency_us: f64,
    /// The shortest time slice, µs.
    pub slice_min_us: f64,
    /// Lag at which a woken thread preempts the running one, µs.
    pub wakeup_granularity_us: f64,
    /// True if a woken thread may preempt the running one; false as for threads under SCHED_BATCH, which wait until that
    /// one sleeps or its slice ends.
    #[serde(skip_serializing_if = "is_true")]
    pub wakeup_preemption: bool,
    /// Interval at which idle CPUs look for work elsewhere, µs.
    pub balance_us: f64,
    /// Interval of the timer interrupts of a CPU that runs a worker, µs; 0: none. See `kernel::tick`.
    #[serde(skip_serializing_if = "is_zero")]
    pub tick_us: f64,
    /// Duration of such an interrupt, ns.
    #[serde(skip_serializing_if = "is_zero")]
    pub tick: f64,
    /// True if a thread that yields goes behind all that are ready on its CPU; else the scheduler's order holds, and a
    /// thread that has run less than others may be back at once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub yield_goes_last: bool,
    /// The speed of each of two busy hardware threads of a core, against one alone.
    pub smt_speed: f64,
    /// The speed of a hardware thread while the other one polls with pauses; none: as if it were busy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smt_speed_pausing: Option<f64>,
}

impl Default for OperatingSystem {
    fn default() -> Self {
        Self {
            // A vDSO-free no-op call on kernels with and without page-table isolation: 100 to 400 ns.
            syscall: 200.0,
            futex: 100.0,
            // try_to_wake_up with an inter-processor interrupt: 1 to 2 µs seen by the waker on large
            // machines.
            wake: 1_200.0,
            // With the switch and the return from the call: a wake-up takes 5 µs, the lower end of the
            // published figures.
            idle_exit: 3_000.0,
            // lat_ctx and perf bench sched pipe: 1 to 2 µs between threads.
            switch: 1_500.0,
            // prctl(2): the default timer slack.
            timer_slack: 50_000.0,
            clock: 25.0,
            // sched_latency_ns = 6 ms × (1 + log2(8)), sched_min_granularity_ns = 0.75 ms × 4,
            // sched_wakeup_granularity_ns = 1 ms × 4 on 8 CPUs and more (kernel/sched/fair.c before EEVDF).
            sched_latency_us: 24_000.0,
            slice_min_us: 3_000.0,
            wakeup_granularity_us: 4_000.0,
            wakeup_preemption: true,
            balance_us: 4_000.0,
            // None, as in all tables from before there was one. Linux's own are every 4,000 µs (CONFIG_HZ=250) or 1,000,
            // of 1,845 and 2,848 ns (the example in its documentation of the osnoise tracer).
            tick_us: 0.0,
            tick: 0.0,
            // yield_task_fair moves the thread's virtual runtime since Linux 6.18 and 6.12.63 (79104becf42b).
            yield_goes_last: false,
            // Intel's own figure for hyper-threading is 20 to 30 % more from two threads than from one.
            smt_speed: 0.625,
            smt_speed_pausing: None,
        }
    }
}

/// An error in a description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// No built-in machine and no file of that name.
    #[error("there is no machine \"{name}\"; there are: {}, this, or the path of a TOML file", .known.join(", "))]
    Unknown {
        /// The name asked for.
        name: String,
        /// The known names.
        known: Vec<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read the machine description {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not a description.
    #[error("{path}: {message}")]
    Syntax {
        /// The file or preset.
        path: String,
        /// The error, with line and column.
        message: String,
    },
    /// A value cannot be.
    #[error("machine \"{machine}\": {message}")]
    Value {
        /// The machine.
        machine: String,
        /// The fault.
        message: String,
    },
    /// This host's topology cannot be read.
    #[error("cannot read this host's topology from /sys: {0}")]
    Host(std::io::Error),
}

/// Name and text of each built-in machine.
pub const PRESETS: [(&str, &str); 10] = [
    ("haswell-ex-4s", include_str!("../machines/haswell-ex-4s.toml")),
    ("e5-2630v4-1s", include_str!("../machines/e5-2630v4-1s.toml")),
    ("e5-2630v4-2s", include_str!("../machines/e5-2630v4-2s.toml")),
    ("westmere-ex-8s", include_str!("../machines/westmere-ex-8s.toml")),
    (
        "granite-rapids-2s",
        include_str!("../machines/granite-rapids-2s.toml"),
    ),
    ("arm-1s", include_str!("../machines/arm-1s.toml")),
    ("arm-2s", include_str!("../machines/arm-2s.toml")),
    ("graviton-2", include_str!("../machines/graviton-2.toml")),
    ("cloud-16", include_str!("../machines/cloud-16.toml")),
    ("laptop", include_str!("../machines/laptop.toml")),
];

/// The most cores of a machine: the size of a line's set of sharers.
pub(crate) const CORES_MAX: usize = 256;

impl MachineModel {
    /// The description in `text`; `path` names it in errors.
    pub fn parse(path: &str, text: &str) -> Result<Self, ModelError> {
        let model: Self = toml::from_str(text).map_err(|error| ModelError::Syntax {
            path: path.to_owned(),
            message: missing_table(text).unwrap_or_else(|| error.to_string()),
        })?;
        model.check()?;
        Ok(model)
    }

    /// Hardware threads in all.
    pub fn cpus(&self) -> usize {
        self.cores() * self.topology.threads_per_core
    }

    /// Cores in all.
    pub fn cores(&self) -> usize {
        self.topology.sockets * self.topology.cores_per_socket
    }

    /// Every cost by its name, for sweeps and for the check that each has a source.
    pub fn costs_mut(&mut self) -> Vec<(&'static str, &mut f64)> {
        let c = &mut self.coherence;
        let o = &mut self.os;
        vec![
            ("coherence.load_hit", &mut c.load_hit),
            ("coherence.store_hit", &mut c.store_hit),
            ("coherence.rmw_hit", &mut c.rmw_hit),
            ("coherence.fence", &mut c.fence),
            ("coherence.pause", &mut c.pause),
            ("coherence.smt", &mut c.smt),
            ("coherence.cluster", &mut c.cluster),
            ("coherence.socket", &mut c.socket),
            ("coherence.cross", &mut c.cross),
            ("coherence.cross_two", &mut c.cross_two),
            ("coherence.load_factor", &mut c.load_factor),
            ("coherence.departure", &mut c.departure),
            ("coherence.owner_rmws", &mut c.owner_rmws),
            ("coherence.stream", &mut c.stream),
            ("coherence.memory", &mut c.memory),
            ("coherence.memory_remote", &mut c.memory_remote),
            ("coherence.invalidate_sharer", &mut c.invalidate_sharer),
            ("coherence.far_atomic", &mut c.far_atomic),
            ("os.syscall", &mut o.syscall),
            ("os.futex", &mut o.futex),
            ("os.wake", &mut o.wake),
            ("os.idle_exit", &mut o.idle_exit),
            ("os.switch", &mut o.switch),
            ("os.timer_slack", &mut o.timer_slack),
            ("os.clock", &mut o.clock),
            ("os.sched_latency_us", &mut o.sched_latency_us),
            ("os.slice_min_us", &mut o.slice_min_us),
            ("os.wakeup_granularity_us", &mut o.wakeup_granularity_us),
            ("os.balance_us", &mut o.balance_us),
            ("os.tick_us", &mut o.tick_us),
            ("os.tick", &mut o.tick),
            ("os.smt_speed", &mut o.smt_speed),
        ]
    }

    /// Every property that is true or false, by its name.
    pub fn flags_mut(&mut self) -> [(&'static str, &mut bool); 3] {
        [
            ("coherence.through_home", &mut self.coherence.through_home),
            ("os.wakeup_preemption", &mut self.os.wakeup_preemption),
            ("os.yield_goes_last", &mut self.os.yield_goes_last),
        ]
    }

    /// True if the description can be simulated.
    pub fn check(&self) -> Result<(), ModelError> {
        let wrong = |message: String| {
            Err(ModelError::Value {
                machine: self.name.clone(),
                message,
            })
        };
        let t = &self.topology;
        if t.sockets == 0 || t.cores_per_socket == 0 || self.cores() > CORES_MAX {
            return wrong(format!(
                "{} sockets of {} cores; there must be 1 to {CORES_MAX} cores in all",
                t.sockets, t.cores_per_socket
            ));
        }
        if !(1..=2).contains(&t.threads_per_core) {
            return wrong(format!(
                "{} threads per core; 1 or 2 are modelled",
                t.threads_per_core
            ));
        }
        if let Some(cluster) = t.cores_per_cluster
            && (cluster == 0 || !t.cores_per_socket.is_multiple_of(cluster))
        {
            return wrong(format!(
                "clusters of {cluster} cores do not divide a socket of {}",
                t.cores_per_socket
            ));
        }
        if let Some(hops) = &t.hops {
            let square = hops.len() == t.sockets && hops.iter().all(|row| row.len() == t.sockets);
            let fits = |(row, from): (usize, &Vec<u8>)| {
                from.iter().enumerate().all(|(column, hop)| {
                    if row == column {
                        *hop == 0
                    } else {
                        (1..=2).contains(hop) && *hop == hops[column][row]
                    }
                })
            };
            if !square || !hops.iter().enumerate().all(fits) {
                return wrong(format!(
                    "topology.hops must have {0} rows of {0} numbers, symmetric, 0 on the diagonal, else 1 or 2",
                    t.sockets
                ));
            }
        }
        for (name, value) in self.clone().costs_mut() {
            let positive = matches!(
                name,
                "coherence.pause"
                    | "coherence.load_hit"
                    | "os.smt_speed"
                    | "os.balance_us"
                    | "os.slice_min_us"
                    | "coherence.rmw_hit"
            );
            if !value.is_finite() || *value < 0.0 || *value > 1e9 || (positive && *value <= 0.0) {
                return wrong(format!("{name} = {value} is not a cost"));
            }
        }
        if self.coherence.departure > 1.0 || self.coherence.stream > 1.0 {
            return wrong("coherence.departure and coherence.stream are parts of a whole".to_owned());
        }
        let (every, tick) = (self.os.tick_us * 1e3, self.os.tick);
        if (every > 0.0 || tick > 0.0) && tick >= every {
            return wrong(format!(
                "os.tick = {tick} ns is not below os.tick_us = {} µs",
                self.os.tick_us
            ));
        }
        if (every > 0.0) != (tick > 0.0) {
            return wrong(
                "os.tick_us and os.tick go together: how often, in µs, and how long, in ns".to_owned(),
            );
        }
        if self.os.smt_speed > 1.0 {
            return wrong(format!("os.smt_speed = {} is above 1", self.os.smt_speed));
        }
        if let Some(speed) = self.os.smt_speed_pausing
            && !(speed > 0.0 && speed <= 1.0)
        {
            return wrong(format!("os.smt_speed_pausing = {speed} is not a part of 1"));
        }
        Ok(())
    }
}

/// The first table that a description, which is TOML otherwise, does not have. It is missed at the end: serde's error
/// points at the first line, as if the name there were wrong.
fn missing_table(text: &str) -> Option<String> {
    let tables: toml::Table = text.parse().ok()?;
    let lines = text.lines().count();
    let missing = |table: &str, holds: &str| {
        let message = format!("line {lines}: the description ends without [{table}], which holds {holds}");
        (!tables.contains_key(table)).then_some(message)
    };
    missing("topology", "sockets and cores_per_socket")
        .or_else(|| missing("coherence", "the costs of cache lines"))
        .or_else(|| {
            missing(
                "sources",
                "where each figure is from, as in \"coherence.socket\" = \"measured with …\"",
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_sound_and_every_coherence_cost_has_a_source() {
        for (name, text) in PRESETS {
            let mut model = MachineModel::parse(name, text).unwrap();
            assert_eq!(model.name, name);
            let sources = model.sources.clone();
            assert!(
                sources.contains_key("topology"),
                "{name}: where is the topology from?"
            );
            for (cost, value) in model.costs_mut() {
                let has = sources.contains_key(cost)
                    || (cost.starts_with("os.") && !text.contains("[os]"))
                    // No limit: nothing that a source could say.
                    || (cost == "coherence.owner_rmws" && *value == 0.0);
                assert!(has || cost.starts_with("os."), "{name}: {cost} has no source");
            }
        }
    }

    #[test]
    fn the_sizes_are_those_of_the_names() {
        let cpus = |name| {
            let model = MachineModel::load(name).unwrap();
            (model.topology.sockets, model.cores(), model.cpus())
        };
        assert_eq!(cpus("haswell-ex-4s"), (4, 72, 144));
        assert_eq!(cpus("e5-2630v4-2s"), (2, 20, 40));
        assert_eq!(cpus("westmere-ex-8s"), (8, 64, 128));
        assert_eq!(cpus("granite-rapids-2s"), (2, 192, 384));
        assert_eq!(cpus("arm-2s"), (2, 128, 128));
        assert_eq!(cpus("graviton-2"), (1, 64, 64));
        assert_eq!(cpus("cloud-16").2, 16);
    }

    #[test]
    fn mistakes_are_named() {
        let error = MachineModel::load("haswel").unwrap_err().to_string();
        assert!(
            error.contains("haswell-ex-4s") && error.contains("this"),
            "{error}"
        );
        let text = PRESETS[0].1.replace("sockets = 4", "sockets = 400");
        assert!(
            MachineModel::parse("x", &text)
                .unwrap_err()
                .to_string()
                .contains("256")
        );
        let text = PRESETS[0].1.replace("rmw_hit", "rmw_hitt");
        assert!(
            MachineModel::parse("x", &text)
                .unwrap_err()
                .to_string()
                .contains("rmw_hitt")
        );
        let (without, _) = PRESETS[0].1.split_once("\n[sources]").unwrap();
        let error = MachineModel::parse("mine.toml", without).unwrap_err().to_string();
        let lines = without.lines().count();
        assert!(
            error.starts_with(&format!(
                "mine.toml: line {lines}: the description ends without [sources]"
            )),
            "{error}"
        );
        let text = PRESETS[0].1.replace("pause = ", "pause = -");
        assert!(
            MachineModel::parse("x", &text)
                .unwrap_err()
                .to_string()
                .contains("pause")
        );
    }
}
