//! The operating system: run queues, time slices, wake-ups.
//!
//! The model is Linux's completely fair scheduler, reduced to the rules that decide which worker runs when:
//!
//! - each CPU has a queue and runs the thread with the least virtual runtime;
//! - a slice is the scheduling latency divided among the CPU's threads, but not below the minimum;
//! - a woken thread goes to the CPU it ran on if that is idle, else to an idle core of the same socket, else
//!   to an idle hardware thread there, else it queues where it ran; its virtual runtime is set to at most
//!   half the scheduling latency behind the queue's least, and it preempts the running thread if it lags by
//!   more than the wake-up granularity; where `os.wakeup_preemption` is off it never does, as under SCHED_BATCH;
//! - a thread that yields makes room for the one with the least virtual runtime besides its own, and may be the next
//!   but one; where `os.yield_goes_last` says so, it goes behind all in the queue, as since Linux 6.18;
//! - a CPU that runs out of threads takes one from the longest queue of its socket, else of any;
//! - every few milliseconds CPUs that are idle already do the same.
//!
//! Left out: priorities, control groups and login sessions (each thread has the same weight, whatever its program), the
//! kernel's own threads, interrupts but the timer's (`tick`), and the contention of the kernel's own locks. A preemption
//! cuts charged work and polling at the very instant; an access in flight ends first.

use super::{CUTTABLE, Kernel, NO_WORKER, State, Timer};
use crate::account::Activity;
use crate::tree::{self, NEVER};

impl Kernel {
    /// Puts a new worker on a CPU: cores before second hardware threads, sockets in turn.
    pub(crate) fn place_new(&mut self, worker: u32) {
        let sockets = self.costs.cpus_of_socket.len();
        let cpu = (0..self.costs.cpus)
            .map(|turn| {
                let socket = &self.costs.cpus_of_socket[turn % sockets];
                usize::from(socket[turn / sockets])
            })
            .min_by_key(|cpu| self.load(*cpu))
            .expect("a machine has a CPU");
        let least = self.least_virtual_runtime(cpu);
        let state = &mut self.workers[worker as usize];
        state.cpu = cpu as u16;
        state.other_cpu = cpu as u16;
        state.virtual_runtime = least;
        state.other_virtual_runtime = least;
        self.make_ready(worker, cpu, self.now);
    }

    fn load(&self, cpu: usize) -> usize {
        self.cpus[cpu].queue.len() + usize::from(self.cpus[cpu].running != NO_WORKER)
    }

    fn is_idle(&self, cpu: usize) -> bool {
        self.cpus[cpu].running == NO_WORKER
    }

    fn virtual_runtime_now(&self, worker: u32, at: u64) -> u64 {
        let state = &self.workers[worker as usize];
        match state.state {
            State::Running => state.virtual_runtime + at.saturating_sub(state.dispatched_at),
            _ => state.virtual_runtime,
        }
    }

    fn least_virtual_runtime(&self, cpu: usize) -> u64 {
        let state = &self.cpus[cpu];
        state
            .queue
            .iter()
            .chain((state.running != NO_WORKER).then_some(&state.running))
            .map(|worker| self.virtual_runtime_now(*worker, self.now))
            .min()
            .unwrap_or(0)
    }

    /// Ends a worker's sleep at the present instant.
    pub(crate) fn wake(&mut self, worker: u32) {
        let now = self.now;
        let previous = usize::from(self.workers[worker as usize].cpu);
        let cpu = self.choose_cpu(previous);
        let least = self.least_virtual_runtime(cpu);
        let half = self.costs.sched_latency / 2;
        let state = &mut self.workers[worker as usize];
        state.virtual_runtime = if self.cpus[cpu].running == NO_WORKER {
            // An idle CPU's queue has no time of its own; only the place in a later queue matters.
            state.virtual_runtime
        } else {
            // Not ahead of the others by more than half a period because of the sleep; and not behind them
            // because the queue it comes from is further on.
            state
                .virtual_runtime
                .clamp(least.saturating_sub(half), least + half)
        };
        self.make_ready(worker, cpu, now);
    }

    fn choose_cpu(&self, previous: usize) -> usize {
        if self.is_idle(previous) {
            return previous;
        }
        let core = usize::from(self.costs.core_of[previous]);
        let socket = &self.costs.cpus_of_socket[usize::from(self.costs.socket_of_core[core])];
        let start = socket
            .iter()
            .position(|cpu| usize::from(*cpu) == previous)
            .unwrap_or(0);
        let mut idle_thread = None;
        for turn in 0..socket.len() {
            let cpu = usize::from(socket[(start + turn) % socket.len()]);
            if self.is_idle(cpu) {
                if !self.sibling_is_busy(cpu) {
                    return cpu;
                }
                idle_thread.get_or_insert(cpu);
            }
        }
        idle_thread.unwrap_or(previous)
    }

    /// `worker` can run on `cpu` from `at` on.
    fn make_ready(&mut self, worker: u32, cpu: usize, at: u64) {
        if self.is_idle(cpu) {
            // The worker that left the CPU last may have been ahead of this instant; the new one starts after
            // it.
            let start = (at + self.costs.idle_exit).max(self.cpus[cpu].clock);
            self.dispatch(worker, cpu, start);
            return;
        }
        let state = &mut self.workers[worker as usize];
        state.state = State::Ready;
        state.cpu = cpu as u16;
        let mine = state.virtual_runtime;
        self.cpus[cpu].queue.push(worker);
        let running = self.cpus[cpu].running;
        if self.costs.wakeup_preemption
            && self.virtual_runtime_now(running, at) > mine + self.costs.wakeup_granularity
        {
            self.request_switch(cpu, at);
        } else {
            self.arm_slice(cpu);
        }
        if !self.balance_armed {
            self.balance_armed = true;
            self.set_timer(at + self.costs.balance, Timer::Balance);
        }
    }

    /// Makes the running worker give way when its slice ends.
    fn arm_slice(&mut self, cpu: usize) {
        let running = self.cpus[cpu].running;
        let slice = (self.costs.sched_latency / self.load(cpu) as u64).max(self.costs.slice_min);
        let end = self.workers[running as usize].dispatched_at + slice;
        let at = end.max(self.now);
        let state = &mut self.cpus[cpu];
        if state.slice_end > at || state.slice_end == 0 {
            state.slice_end = at;
            let switches = state.switches;
            self.set_timer(
                at,
                Timer::SliceEnd {
                    cpu: cpu as u16,
                    switches,
                },
            );
        }
    }

    /// Runs `worker` on `cpu`, which has no worker, from `at` on.
    pub(crate) fn dispatch(&mut self, worker: u32, cpu: usize, at: u64) {
        debug_assert_eq!(self.cpus[cpu].running, NO_WORKER, "two workers on a CPU");
        debug_assert!(
            at >= self.cpus[cpu].clock,
            "a worker starts before the CPU's clock"
        );
        let idle = at.saturating_sub(self.cpus[cpu].clock);
        self.advance(cpu, Activity::Idle, idle);
        let switch = self.costs.switch;
        self.advance(cpu, Activity::Switch, switch);
        let clock = self.cpus[cpu].clock;
        let state = &mut self.workers[worker as usize];
        state.state = State::Running;
        state.cpu = cpu as u16;
        state.dispatched_at = clock;
        state.switched += switch;
        let owed = std::mem::take(&mut state.owed);
        let running = &mut self.cpus[cpu];
        running.running = worker;
        running.resched = false;
        running.switches += 1;
        running.slice_end = 0;
        running.pending = owed;
        running.polls_free_until = 0;
        for (which, duration) in owed.into_iter().enumerate() {
            self.advance(cpu, CUTTABLE[which], duration);
        }
        self.tree.set(cpu, tree::key(self.cpus[cpu].clock, cpu));
        self.arm_tick(cpu);
        if !self.cpus[cpu].queue.is_empty() {
            self.arm_slice(cpu);
        }
    }

    /// The running worker leaves its CPU at the CPU's clock; the next worker gets it.
    pub(crate) fn leave_cpu(&mut self, cpu: usize, state: State) {
        let clock = self.cpus[cpu].clock;
        let worker = std::mem::replace(&mut self.cpus[cpu].running, NO_WORKER);
        let leaving = &mut self.workers[worker as usize];
        let ran = clock - leaving.dispatched_at;
        leaving.state = state;
        leaving.virtual_runtime += ran;
        leaving.on_cpu += ran;
        leaving.asleep_since = clock;
        if let Some(trace) = &mut self.trace {
            trace.ran(cpu, worker, leaving.is_client, leaving.dispatched_at, clock);
        }
        self.cpus[cpu].resched = false;
        self.cpus[cpu].polls_free_until = 0;
        self.tree.set(cpu, NEVER);
    }

    /// Gives a CPU without a worker the next one.
    pub(crate) fn pick_next(&mut self, cpu: usize) {
        let from = if self.cpus[cpu].queue.is_empty() {
            self.longest_queue(cpu)
        } else {
            Some(cpu)
        };
        let Some(from) = from else { return };
        let at = (0..self.cpus[from].queue.len())
            .min_by_key(|at| {
                let worker = self.cpus[from].queue[*at];
                (self.workers[worker as usize].virtual_runtime, worker)
            })
            .expect("a queue that was chosen has a worker");
        let worker = self.cpus[from].queue.remove(at);
        let start = self.cpus[cpu].clock.max(self.now);
        self.dispatch(worker, cpu, start);
    }

    /// The longest queue of the CPU's socket, else of any; the first of equals.
    fn longest_queue(&self, cpu: usize) -> Option<usize> {
        let socket = usize::from(self.costs.socket_of_core[usize::from(self.costs.core_of[cpu])]);
        let longest = |sockets: &mut dyn Iterator<Item = usize>| {
            let mut found: Option<(usize, usize)> = None;
            for socket in sockets {
                for other in &self.costs.cpus_of_socket[socket] {
                    let length = self.cpus[usize::from(*other)].queue.len();
                    if length > found.map_or(0, |(_, length)| length) {
                        found = Some((usize::from(*other), length));
                    }
                }
            }
            found.map(|(cpu, _)| cpu)
        };
        if !self.balance_armed {
            // No worker has queued since the last balancing found all queues empty.
            return None;
        }
        longest(&mut std::iter::once(socket)).or_else(|| longest(&mut (0..self.costs.cpus_of_socket.len())))
    }

    /// The CPU's worker shall make room at `at`, which is now.
    pub(crate) fn request_switch(&mut self, cpu: usize, at: u64) {
        if self.cpus[cpu].resched || self.cpus[cpu].running == NO_WORKER {
            return;
        }
        self.cpus[cpu].resched = true;
        if cpu == usize::from(self.current) {
            return;
        }
        if self.watches(cpu) {
            return self.stop_watching(cpu, at);
        }
        // Work after `at` that can be cut is owed for later.
        let mut excess = self.cpus[cpu].clock.saturating_sub(at);
        let worker = self.cpus[cpu].running as usize;
        for (which, activity) in CUTTABLE.into_iter().enumerate() {
            // Free polls that have been made cannot be unmade; they are never far ahead.
            let cut = excess.min(self.cpus[cpu].pending[which]);
            excess -= cut;
            let state = &mut self.cpus[cpu];
            state.pending[which] -= cut;
            state.clock -= cut;
            state.account.take_back(activity, cut);
            self.workers[worker].owed[which] += cut;
        }
        let clock = self.cpus[cpu].clock;
        // A worker that is still being switched in begins first.
        self.tree.set(cpu, tree::key(clock, cpu));
    }

    /// The CPU's worker, which is the current one, yields to those that are ready there.
    pub(crate) fn give_way(&mut self, cpu: usize) {
        self.cpus[cpu].resched = true;
        if self.costs.yield_goes_last {
            let running = self.cpus[cpu].running as usize;
            let furthest = self.cpus[cpu].queue.iter();
            let furthest = furthest
                .map(|worker| self.workers[*worker as usize].virtual_runtime)
                .max();
            let state = &mut self.workers[running];
            state.virtual_runtime = state.virtual_runtime.max(furthest.unwrap_or(0) + 1);
        }
    }

    /// The running worker makes room: it goes to the end of its CPU's queue.
    pub(crate) fn preempt(&mut self) {
        let cpu = usize::from(self.current);
        let worker = self.cpus[cpu].running;
        self.now = self.now.max(self.cpus[cpu].clock);
        self.leave_cpu(cpu, State::Ready);
        if self.cpus[cpu].queue.is_empty() {
            // Another CPU has taken the worker that was to run here.
            self.dispatch(worker, cpu, self.cpus[cpu].clock);
            return;
        }
        self.pick_next(cpu);
        self.cpus[cpu].queue.push(worker);
        self.arm_slice(cpu);
    }

    /// A timer is due.
    pub(crate) fn fire(&mut self, timer: Timer) {
        match timer {
            Timer::Wake { worker, sleep } => {
                let state = &mut self.workers[worker as usize];
                if state.sleeps != sleep {
                    return;
                }
                match state.state {
                    State::Futex(address) => {
                        state.timed_out = true;
                        self.futexes.remove(address, worker);
                        self.end_sleep(worker, None);
                    }
                    State::Timer => self.end_sleep(worker, None),
                    State::Running | State::Ready | State::Done => {}
                }
            }
            Timer::SliceEnd { cpu, switches } => {
                let cpu = usize::from(cpu);
                if self.cpus[cpu].switches == switches && !self.cpus[cpu].queue.is_empty() {
                    self.request_switch(cpu, self.now);
                }
            }
            Timer::Balance => self.balance(),
            Timer::Tick { cpu } => self.tick(cpu.into()),
        }
    }

    fn balance(&mut self) {
        for cpu in 0..self.costs.cpus {
            if self.is_idle(cpu) {
                self.pick_next(cpu);
            }
        }
        self.balance_armed = self.cpus.iter().any(|cpu| !cpu.queue.is_empty());
        if self.balance_armed {
            self.set_timer(self.now + self.costs.balance, Timer::Balance);
        }
    }

    /// A sleeper wakes up now, by a timer or by the `waker`.
    pub(crate) fn end_sleep(&mut self, worker: u32, waker: Option<u32>) {
        if self.trace.is_some() {
            self.trace_sleep(worker, waker);
        }
        let state = &mut self.workers[worker as usize];
        state.sleeps += 1;
        let asleep = self.now.saturating_sub(state.asleep_since);
        state.asleep += asleep;
        self.note_wait(worker, asleep);
        self.wake(worker);
    }
}
