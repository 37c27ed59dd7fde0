//! CPU time by name: what workers spend between [`Machine::begin_cpu_time`] and its end.
//!
//! It is what a profiler shows of a function and all that it calls: work, hits, atomic instructions, waiting for lines,
//! polls, system calls, and the context switches that bring the worker back. Time asleep, and ready without a CPU, is
//! none. Taking it costs no simulated time, so a run is the same with it and without.
//!
//! [`Machine::begin_cpu_time`]: clearway_machine::Machine::begin_cpu_time

use super::{Kernel, State};

/// A stretch that a worker has begun and not ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Open {
    name: &'static str,
    /// The worker's CPU time then, ps.
    began: u64,
}

/// The ended stretches of one name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CpuTime {
    pub(crate) name: &'static str,
    pub(crate) count: u64,
    pub(crate) picoseconds: u64,
}

/// By name, in the order of their first ends.
#[derive(Debug, Default)]
pub(crate) struct CpuTimes(pub(crate) Vec<CpuTime>);

impl Kernel {
    /// The worker's CPU time so far, context switches to it included.
    fn cpu_time_of(&self, worker: usize) -> u64 {
        let state = &self.workers[worker];
        let since_dispatch = if state.state == State::Running {
            self.cpus[usize::from(state.cpu)].clock - state.dispatched_at
        } else {
            0
        };
        state.on_cpu + state.switched + since_dispatch
    }

    pub(crate) fn begin_cpu_time(&mut self, name: &'static str) {
        let worker = self.cpu().running as usize;
        let began = self.cpu_time_of(worker);
        self.workers[worker].open.push(Open { name, began });
    }

    pub(crate) fn end_cpu_time(&mut self, name: &'static str) {
        let worker = self.cpu().running as usize;
        let now = self.cpu_time_of(worker);
        let open = self.workers[worker].open.pop();
        let Some(open) = open.filter(|open| open.name == name) else {
            unreachable!("the CPU time of {name:?} ends where that of {open:?} should");
        };
        let times = &mut self.cpu_times.0;
        let at = times
            .iter()
            .position(|time| time.name == name)
            .unwrap_or_else(|| {
                let (count, picoseconds) = (0, 0);
                times.push(CpuTime {
                    name,
                    count,
                    picoseconds,
                });
                times.len() - 1
            });
        times[at].count += 1;
        times[at].picoseconds += now - open.began;
    }

    /// CPU time under `name` so far, with what has not ended, ps.
    pub(crate) fn cpu_time_so_far(&self, name: &str) -> u64 {
        let ended = self.cpu_times.0.iter().filter(|time| time.name == name);
        let ended: u64 = ended.map(|time| time.picoseconds).sum();
        let open = self.workers.iter().enumerate().flat_map(|(worker, state)| {
            let open = state.open.iter().filter(|open| open.name == name);
            // Charged work before the beginning may have been cut off since then, and is still to be spent.
            open.map(move |open| self.cpu_time_of(worker).saturating_sub(open.began))
        });
        ended + open.sum::<u64>()
    }
}
