//! A machine description made ready for the event loop: picoseconds and tables instead of nanoseconds and
//! rules.

use crate::model::MachineModel;

/// In the place of a core: the cache of the line's home.
pub(crate) const HOME: u16 = u16::MAX - 1;

/// A set of cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cores([u64; 4]);

impl Cores {
    #[inline(always)]
    pub(crate) fn has(&self, core: usize) -> bool {
        self.0[core / 64] >> (core % 64) & 1 != 0
    }
    #[inline(always)]
    pub(crate) fn add(&mut self, core: usize) {
        self.0[core / 64] |= 1 << (core % 64);
    }
    #[inline(always)]
    pub(crate) fn remove(&mut self, core: usize) {
        self.0[core / 64] &= !(1 << (core % 64));
    }
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }
    #[inline(always)]
    pub(crate) fn is_only(&self, core: usize) -> bool {
        let mut only = Cores::default();
        only.add(core);
        *self == only
    }
    pub(crate) fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
    /// In ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        (0..256).filter(|core| self.has(*core))
    }
    fn meets(&self, other: &Cores) -> bool {
        self.0
            .iter()
            .zip(other.0)
            .any(|(mine, theirs)| mine & theirs != 0)
    }
}

/// The distance of two cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Distance {
    Cluster,
    Socket,
    Cross,
    CrossTwo,
}

/// Costs in picoseconds and the topology as tables.
#[derive(Debug)]
pub(crate) struct Costs {
    pub(crate) load_hit: u64,
    pub(crate) store_hit: u64,
    pub(crate) rmw_hit: u64,
    pub(crate) fence: u64,
    pub(crate) pause: u64,
    pub(crate) smt: u64,
    transfer: [u64; 4],
    load_transfer: [u64; 4],
    departure_1024: u64,
    /// The most read-modify-writes that an owner does of a line that was asked for, by 1024; 0 for no limit.
    pub(crate) owner_rmws_1024: u64,
    stream_1024: u64,
    memory: u64,
    memory_remote: u64,
    invalidate_sharer: u64,
    /// 0: this machine has none.
    pub(crate) far_atomic: u64,
    through_home: bool,
    pub(crate) syscall: u64,
    pub(crate) futex: u64,
    pub(crate) wake: u64,
    pub(crate) idle_exit: u64,
    pub(crate) switch: u64,
    pub(crate) timer_slack: u64,
    pub(crate) clock: u64,
    pub(crate) sched_latency: u64,
    pub(crate) slice_min: u64,
    pub(crate) wakeup_granularity: u64,
    pub(crate) wakeup_preemption: bool,
    pub(crate) balance: u64,
    /// From one timer interrupt of a CPU to the next; 0: none.
    pub(crate) tick_period: u64,
    pub(crate) tick: u64,
    pub(crate) yield_goes_last: bool,
    /// 1024ths of full speed for a hardware thread whose sibling is busy.
    smt_slowdown_1024: u64,
    /// The same while the sibling polls with pauses.
    smt_slowdown_pausing_1024: u64,
    pub(crate) cpus: usize,
    pub(crate) core_of: Vec<u16>,
    pub(crate) sibling_of: Vec<Option<u16>>,
    pub(crate) socket_of_core: Vec<u16>,
    cluster_of_core: Vec<u16>,
    /// By socket and socket.
    hops: Vec<Vec<u8>>,
    /// The distance of two cores; by core and core.
    apart: Vec<Distance>,
    /// The distance of a core from a home, [`Distance::Cluster`] if the home is on its socket; by core and socket.
    home_apart: Vec<Distance>,
    /// The cores of each cluster of each socket; of each socket; at each distance from a socket.
    cores_of_cluster: Vec<Cores>,
    cores_of_socket: Vec<Cores>,
    cores_two_hops_from: Vec<Cores>,
    /// The CPUs of each socket, first hardware threads first.
    pub(crate) cpus_of_socket: Vec<Vec<u16>>,
}

fn picoseconds(nanoseconds: f64) -> u64 {
    (nanoseconds * 1e3).round() as u64
}

/// The topology of a machine as tables, each as in [`Costs`].
struct Layout {
    core_of: Vec<u16>,
    sibling_of: Vec<Option<u16>>,
    socket_of_core: Vec<u16>,
    cluster_of_core: Vec<u16>,
    hops: Vec<Vec<u8>>,
}

impl Layout {
    fn of(model: &MachineModel) -> Self {
        let topology = &model.topology;
        let (cores, cpus) = (model.cores(), model.cpus());
        let cluster = topology.cores_per_cluster.unwrap_or(topology.cores_per_socket);
        let sockets = 0..topology.sockets;
        let hops = topology.hops.clone().unwrap_or_else(|| {
            let row = |row| sockets.clone().map(|column| u8::from(row != column)).collect();
            sockets.clone().map(row).collect()
        });
        let second_threads = topology.threads_per_core == 2;
        Self {
            core_of: (0..cpus).map(|cpu| (cpu % cores) as u16).collect(),
            sibling_of: (0..cpus)
                .map(|cpu| second_threads.then(|| ((cpu + cores) % cpus) as u16))
                .collect(),
            socket_of_core: (0..cores)
                .map(|core| (core / topology.cores_per_socket) as u16)
                .collect(),
            cluster_of_core: (0..cores).map(|core| (core / cluster) as u16).collect(),
            hops,
        }
    }

    fn cores(&self) -> usize {
        self.socket_of_core.len()
    }

    fn sockets(&self) -> usize {
        self.hops.len()
    }

    fn socket(&self, core: usize) -> usize {
        self.socket_of_core[core].into()
    }

    fn between_sockets(&self, a: usize, b: usize) -> Distance {
        match self.hops[a][b] {
            0 => Distance::Cluster,
            1 => Distance::Cross,
            _ => Distance::CrossTwo,
        }
    }

    fn between_cores(&self, a: usize, b: usize) -> Distance {
        let sockets = self.between_sockets(self.socket(a), self.socket(b));
        if sockets == Distance::Cluster && self.cluster_of_core[a] != self.cluster_of_core[b] {
            Distance::Socket
        } else {
            sockets
        }
    }

    /// By core and core.
    fn apart(&self) -> Vec<Distance> {
        let cores = self.cores();
        (0..cores * cores)
            .map(|pair| self.between_cores(pair / cores, pair % cores))
            .collect()
    }

    /// By core and socket.
    fn home_apart(&self) -> Vec<Distance> {
        let sockets = self.sockets();
        (0..self.cores() * sockets)
            .map(|pair| self.between_sockets(self.socket(pair / sockets), pair % sockets))
            .collect()
    }

    /// The cores that are `wanted`.
    fn set(&self, wanted: impl Fn(usize) -> bool) -> Cores {
        let mut set = Cores::default();
        (0..self.cores())
            .filter(|core| wanted(*core))
            .for_each(|core| set.add(core));
        set
    }

    fn cores_of_cluster(&self) -> Vec<Cores> {
        let clusters = self.cluster_of_core.iter().max().map_or(0, |last| last + 1);
        (0..clusters)
            .map(|wanted| self.set(|core| self.cluster_of_core[core] == wanted))
            .collect()
    }

    fn cores_of_socket(&self) -> Vec<Cores> {
        (0..self.sockets())
            .map(|wanted| self.set(|core| self.socket(core) == wanted))
            .collect()
    }

    fn cores_two_hops_from(&self) -> Vec<Cores> {
        (0..self.sockets())
            .map(|from| self.set(|core| self.hops[from][self.socket(core)] == 2))
            .collect()
    }

    fn cpus_of_socket(&self) -> Vec<Vec<u16>> {
        let of_socket = |socket| {
            let cpus = self.core_of.iter().zip(0_u16..);
            cpus.filter(|(core, _)| self.socket(usize::from(**core)) == socket)
                .map(|(_, cpu)| cpu)
                .collect()
        };
        (0..self.sockets()).map(of_socket).collect()
    }
}

impl Costs {
    pub(crate) fn new(model: &MachineModel) -> Self {
        let (c, o) = (&model.coherence, &model.os);
        let layout = Layout::of(model);
        let transfer = [c.cluster, c.socket, c.cross, c.cross_two];
        Self {
            load_hit: picoseconds(c.load_hit),
            store_hit: picoseconds(c.store_hit),
            rmw_hit: picoseconds(c.rmw_hit),
            fence: picoseconds(c.fence),
            pause: picoseconds(c.pause),
            smt: picoseconds(c.smt),
            transfer: transfer.map(picoseconds),
            load_transfer: transfer.map(|cost| picoseconds(cost * c.load_factor)),
            departure_1024: (c.departure * 1024.0).round() as u64,
            owner_rmws_1024: (c.owner_rmws * 1024.0).round() as u64,
            stream_1024: (c.stream * 1024.0).round() as u64,
            memory: picoseconds(c.memory),
            memory_remote: picoseconds(c.memory_remote),
            invalidate_sharer: picoseconds(c.invalidate_sharer),
            far_atomic: picoseconds(c.far_atomic),
            through_home: c.through_home,
            syscall: picoseconds(o.syscall),
            futex: picoseconds(o.futex),
            wake: picoseconds(o.wake),
            idle_exit: picoseconds(o.idle_exit),
            switch: picoseconds(o.switch),
            timer_slack: picoseconds(o.timer_slack),
            clock: picoseconds(o.clock),
            sched_latency: picoseconds(o.sched_latency_us * 1e3),
            slice_min: picoseconds(o.slice_min_us * 1e3),
            wakeup_granularity: picoseconds(o.wakeup_granularity_us * 1e3),
            wakeup_preemption: o.wakeup_preemption,
            balance: picoseconds(o.balance_us * 1e3),
            tick_period: picoseconds(o.tick_us * 1e3),
            tick: picoseconds(o.tick),
            yield_goes_last: o.yield_goes_last,
            smt_slowdown_1024: (1024.0 / o.smt_speed).round() as u64,
            smt_slowdown_pausing_1024: (1024.0 / o.smt_speed_pausing.unwrap_or(o.smt_speed)).round() as u64,
            cpus: model.cpus(),
            apart: layout.apart(),
            home_apart: layout.home_apart(),
            cores_of_cluster: layout.cores_of_cluster(),
            cores_of_socket: layout.cores_of_socket(),
            cores_two_hops_from: layout.cores_two_hops_from(),
            cpus_of_socket: layout.cpus_of_socket(),
            core_of: layout.core_of,
            sibling_of: layout.sibling_of,
            socket_of_core: layout.socket_of_core,
            cluster_of_core: layout.cluster_of_core,
            hops: layout.hops,
        }
    }

    #[inline(always)]
    fn between(&self, a: usize, b: usize) -> Distance {
        self.apart[a * self.socket_of_core.len() + b]
    }

    #[inline(always)]
    fn with_home(&self, core: usize, home: u16, distance: Distance) -> Distance {
        if self.through_home {
            distance.max(self.home_apart[core * self.hops.len() + usize::from(home)])
        } else {
            distance
        }
    }

    /// The distance of a core from the home, whose cache is somewhere on the socket.
    fn to_home(&self, core: usize, home: u16) -> Distance {
        self.home_apart[core * self.hops.len() + usize::from(home)].max(Distance::Socket)
    }

    /// One message between a core and the home. A transfer is three: to the home, to the owner, and the line
    /// to the core.
    pub(crate) fn message(&self, core: usize, home: u16) -> u64 {
        self.transfer[self.to_home(core, home) as usize] / 3
    }

    /// The home's own cache gets the line from the cores that have it, one message there and one back; or
    /// from memory if they are none.
    pub(crate) fn recall(&self, holders: &Cores, home: u16) -> u64 {
        match holders.iter().map(|core| self.message(core, home)).max() {
            Some(farthest) => 2 * farthest + self.invalidate_sharer * (holders.count() - 1),
            None => self.memory,
        }
    }

    /// A read by `core` of a line that `owner` has modified.
    pub(crate) fn load_from(&self, core: usize, owner: usize, home: u16) -> u64 {
        if owner == usize::from(HOME) {
            let cost = self.load_transfer[self.to_home(core, home) as usize];
            return cost - cost / 3;
        }
        self.load_transfer[self.with_home(core, home, self.between(core, owner)) as usize]
    }

    /// A read by `core` of a line from the nearest of `sharers`.
    pub(crate) fn load_from_nearest(&self, core: usize, sharers: &Cores, home: u16) -> u64 {
        let socket = usize::from(self.socket_of_core[core]);
        let nearest = if sharers.meets(&self.cores_of_cluster[usize::from(self.cluster_of_core[core])]) {
            Distance::Cluster
        } else if sharers.meets(&self.cores_of_socket[socket]) {
            Distance::Socket
        } else if (0..self.cores_of_socket.len())
            .any(|other| self.hops[socket][other] == 1 && sharers.meets(&self.cores_of_socket[other]))
        {
            Distance::Cross
        } else {
            Distance::CrossTwo
        };
        self.load_transfer[self.with_home(core, home, nearest) as usize]
    }

    /// Taking a line from `owner`, which has modified it.
    pub(crate) fn take_from(&self, core: usize, owner: usize, home: u16) -> u64 {
        if owner == usize::from(HOME) {
            // No owner has to be asked.
            let cost = self.transfer[self.to_home(core, home) as usize];
            return cost - cost / 3;
        }
        self.transfer[self.with_home(core, home, self.between(core, owner)) as usize]
    }

    /// Taking a line from all of `sharers` but `core` itself; they are not none.
    pub(crate) fn take_from_all(&self, core: usize, sharers: &Cores, home: u16) -> u64 {
        let mut others = *sharers;
        others.remove(core);
        let socket = usize::from(self.socket_of_core[core]);
        let own_socket = self.cores_of_socket[socket];
        let own_cluster = self.cores_of_cluster[usize::from(self.cluster_of_core[core])];
        let outside = |set: &Cores| {
            others
                .0
                .iter()
                .zip(set.0)
                .any(|(sharer, inside)| sharer & !inside != 0)
        };
        let farthest = if others.meets(&self.cores_two_hops_from[socket]) {
            Distance::CrossTwo
        } else if outside(&own_socket) {
            Distance::Cross
        } else if outside(&own_cluster) {
            Distance::Socket
        } else {
            Distance::Cluster
        };
        self.transfer[self.with_home(core, home, farthest) as usize]
            + self.invalidate_sharer * others.count().saturating_sub(1)
    }

    /// The time from the start of a transfer of this cost for which its former owner still has the line.
    pub(crate) fn departure(&self, cost: u64) -> u64 {
        cost * self.departure_1024 / 1024
    }

    /// The cost of a miss that overlaps with the one before.
    pub(crate) fn streamed(&self, cost: u64) -> u64 {
        cost * self.stream_1024 / 1024
    }

    /// A line that no cache has.
    pub(crate) fn fetch_from_memory(&self, core: usize, home: u16) -> u64 {
        if self.socket_of_core[core] == home {
            self.memory
        } else {
            self.memory_remote
        }
    }

    /// The duration of `work` on a CPU whose sibling is busy, or polls with pauses.
    #[inline]
    pub(crate) fn slowed(&self, work: u64, sibling_pauses: bool) -> u64 {
        let slowdown = if sibling_pauses {
            self.smt_slowdown_pausing_1024
        } else {
            self.smt_slowdown_1024
        };
        (u128::from(work) * u128::from(slowdown) / 1024) as u64
    }
}
