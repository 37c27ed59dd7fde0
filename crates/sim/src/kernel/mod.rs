//! The state of a simulation, and the passing of time.
//!
//! # Order
//! Each CPU has a clock of its own. A worker's code runs on the host without taking simulated time; an access, a
//! charge, a system call advances the clock of its CPU. Before anything that another CPU could notice,
//! [`settle`](crate::simulated::settle) compares the clock with the calendar: if any CPU or timer is due earlier, the
//! worker is suspended until it is the earliest of all. So the effects of CPUs on each other happen in the order of
//! simulated time.
//!
//! - K1: code that reads or writes state shared by several CPUs runs at the earliest instant of all.
//! - K2: a CPU's account grows by exactly what its clock advances by.
//! - K3: a CPU with a worker has its leaf in the calendar; while that worker runs on the host the leaf is
//!   ignored.
//!
//! | file | what it adds to the kernel |
//! | --- | --- |
//! | `coherence` | the cost of an access, and which core has the line afterwards |
//! | `carry` | the steps of one access |
//! | `sched` | which worker runs when |
//! | `tick` | timer interrupts |
//! | `waits` | how long workers slept, by wait event |
//! | `cpu_times` | the CPU time of what the program names, such as a latch's functions |
//!
//! # Polls
//! A worker that polls a line in its own cache changes nothing until another core takes the line away, so it
//! need not be stepped through. If its code *promises* how many polls it will make (`Machine::spin_hint_of`),
//! the CPU is set aside as a watcher of the line until the promise ends or the line is taken. Then its polls
//! before that instant get the old value one after the other, each at its own time, without the calendar. The
//! result is that of stepping. A worker that breaks its promise is an error, not an approximation. One
//! difference remains: a preemption cuts a pause short when polls are stepped through, and waits for the
//! pause's end when they are skipped.

mod carry;
mod coherence;
mod cpu_times;
mod sched;
mod tick;
mod waits;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use corosensei::Yielder;

pub(crate) use carry::Pending;
pub(crate) use coherence::Access;
pub(crate) use cpu_times::{CpuTimes, Open};
pub(crate) use waits::PublishedEvents;
use waits::Waits;

use crate::account::{Account, Activity};
use crate::costs::Costs;
use crate::futex::Futexes;
use crate::lines::{Lines, NO_CORE, NO_CPU};
use crate::random::Random;
use crate::trace::Trace;
use crate::tree::{self, NEVER, Tree};

/// No worker.
pub(crate) const NO_WORKER: u32 = u32::MAX;

/// One CPU, that is, one hardware thread.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub(crate) clock: u64,
    pub(crate) account: Account,
    pub(crate) running: u32,
    /// Ready to run here.
    pub(crate) queue: Vec<u32>,
    /// The running worker shall make room at its next event.
    pub(crate) resched: bool,
    /// Timer interrupts since the last event, to be taken at the next one, ps.
    pub(crate) interrupted: u64,
    /// True if a timer interrupt is to come.
    ticks: bool,
    pub(crate) slice_end: u64,
    /// The instant at which the last of its stores is visible.
    pub(crate) drained_at: u64,
    /// Since the last event: time that can be cut off when the worker is preempted, by [`CUTTABLE`].
    pub(crate) pending: [u64; CUTTABLE.len()],
    /// The address of the last load, for [`Kernel::spin_of`].
    pub(crate) polled: usize,
    /// The line that was loaded last, by address: for telling a stream of loads.
    pub(crate) loaded_line: usize,
    /// Its line's version then.
    pub(crate) polled_version: u32,
    /// Nothing but a pause has happened since.
    pub(crate) paused: bool,
    /// The value at `polled` then. Free polls return it, even if another value has been stored there since.
    pub(crate) polled_value: u64,
    /// Polls of `polled` before this instant see nothing new.
    pub(crate) polls_free_until: u64,
    /// The line that is watched while set aside.
    pub(crate) watching: Option<usize>,
    next_watcher: u16,
    /// The instant of the first poll after setting aside, and the time between two polls.
    first_poll: u64,
    /// Grows with each switch, so that an old timer is known to be old.
    pub(crate) switches: u64,
}

/// Time that can be cut off.
pub(crate) const CUTTABLE: [Activity; 4] = [
    Activity::Work,
    Activity::Client,
    Activity::Spin,
    Activity::OtherPrograms,
];

/// No time of any that can be cut off.
pub(crate) const NOTHING_CUTTABLE: [u64; CUTTABLE.len()] = [0; CUTTABLE.len()];

/// The state of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// On a CPU.
    Running,
    /// On a CPU's queue.
    Ready,
    /// Asleep on a futex; the address.
    Futex(usize),
    /// Asleep until a timer.
    Timer,
    /// Its body has returned.
    Done,
}

/// One worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) state: State,
    pub(crate) slot: u32,
    pub(crate) yielder: *const Yielder<(), ()>,
    pub(crate) cpu: u16,
    /// The CPU on which its other role (see [`crate::client_round_trip`]) ran last.
    pub(crate) other_cpu: u16,
    pub(crate) is_client: bool,
    pub(crate) virtual_runtime: u64,
    pub(crate) other_virtual_runtime: u64,
    pub(crate) dispatched_at: u64,
    pub(crate) on_cpu: u64,
    /// All context switches to it, ps.
    pub(crate) switched: u64,
    /// The stretches of CPU time that it has begun to account for and not ended, the innermost last.
    pub(crate) open: Vec<Open>,
    /// Cut off by a preemption and still to be spent, by [`CUTTABLE`].
    pub(crate) owed: [u64; CUTTABLE.len()],
    /// Grows with each sleep, so that an old timer is known to be old.
    pub(crate) sleeps: u64,
    pub(crate) asleep_since: u64,
    /// All sleeps that have ended, ps.
    pub(crate) asleep: u64,
    pub(crate) timed_out: bool,
    /// The contended memory that it named last.
    pub(crate) label: Option<&'static str>,
    /// The access that it is suspended in, if any.
    pub(crate) pending: Pending,
}

/// The action of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// Ends a worker's sleep, if it is still the same.
    Wake { worker: u32, sleep: u64 },
    /// The running worker's time is up, if it is still the same.
    SliceEnd { cpu: u16, switches: u64 },
    /// Idle CPUs look for work.
    Balance,
    /// The timer interrupts a CPU.
    Tick { cpu: u16 },
}

/// The reason why a simulation cannot go on.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    BrokenPromise { worker: u32 },
}

/// See the module's documentation.
pub(crate) struct Kernel {
    pub(crate) costs: Costs,
    pub(crate) tree: Tree,
    pub(crate) timers: BinaryHeap<Reverse<(u64, u64, Timer)>>,
    timer_number: u64,
    pub(crate) cpus: Vec<Cpu>,
    /// By CPU: when each posted atomic will have been answered, in the order of issue.
    pub(crate) posted: Vec<VecDeque<u64>>,
    pub(crate) workers: Vec<Worker>,
    pub(crate) lines: Lines,
    pub(crate) futexes: Futexes,
    /// The CPU whose worker runs on the host now.
    pub(crate) current: u16,
    pub(crate) now: u64,
    pub(crate) random: Random,
    pub(crate) events: u64,
    pub(crate) step_budget: u64,
    pub(crate) free_polls: u64,
    /// The number of the account of changed and shared lines; 0 is none's.
    pub(crate) line_account: u32,
    pub(crate) failure: Option<Failure>,
    pub(crate) trace: Option<Trace>,
    pub(crate) balance_armed: bool,
    pub(crate) waits: Waits,
    pub(crate) cpu_times: CpuTimes,
    published: &'static dyn PublishedEvents,
}

impl Kernel {
    pub(crate) fn new(costs: Costs, seed: u64, published: &'static dyn PublishedEvents) -> Self {
        let cpu = || Cpu {
            clock: 0,
            account: Account::default(),
            running: NO_WORKER,
            queue: Vec::new(),
            resched: false,
            interrupted: 0,
            ticks: false,
            slice_end: 0,
            drained_at: 0,
            pending: NOTHING_CUTTABLE,
            polled: 0,
            loaded_line: 0,
            polled_version: 0,
            paused: false,
            polled_value: 0,
            polls_free_until: 0,
            watching: None,
            next_watcher: NO_CPU,
            first_poll: 0,
            switches: 0,
        };
        Self {
            tree: Tree::new(costs.cpus + 1),
            timers: BinaryHeap::new(),
            timer_number: 0,
            cpus: (0..costs.cpus).map(|_| cpu()).collect(),
            posted: vec![VecDeque::new(); costs.cpus],
            workers: Vec::new(),
            lines: Lines::new(),
            futexes: Futexes::default(),
            current: NO_CPU,
            now: 0,
            random: Random::new(seed),
            events: 0,
            step_budget: u64::MAX,
            free_polls: 0,
            line_account: 1,
            failure: None,
            trace: None,
            balance_armed: false,
            waits: Waits::default(),
            cpu_times: CpuTimes::default(),
            published,
            costs,
        }
    }

    /// The CPU whose worker runs on the host.
    #[inline(always)]
    pub(crate) fn cpu(&mut self) -> &mut Cpu {
        &mut self.cpus[usize::from(self.current)]
    }

    /// Advances a CPU's clock (K2).
    #[inline(always)]
    pub(crate) fn advance(&mut self, cpu: usize, activity: Activity, duration: u64) {
        let state = &mut self.cpus[cpu];
        if let Some(trace) = &mut self.trace {
            trace.activity(cpu, activity, state.clock, duration);
        }
        state.clock += duration;
        state.account.add(activity, duration);
    }

    /// Advances the running worker's clock by something that a preemption can cut off.
    #[inline(always)]
    pub(crate) fn advance_cuttable(&mut self, which: usize, duration: u64) {
        let cpu = usize::from(self.current);
        self.advance(cpu, CUTTABLE[which], duration);
        self.cpus[cpu].pending[which] += duration;
    }

    /// True if the running worker may go on: nothing is due earlier, it was not interrupted, and it need not make room.
    #[inline(always)]
    pub(crate) fn is_settled(&self) -> bool {
        let cpu = &self.cpus[usize::from(self.current)];
        tree::key(cpu.clock, usize::from(self.current)) <= self.tree.horizon()
            && !cpu.resched
            && cpu.interrupted == 0
            && self.events <= self.step_budget
    }

    /// Called when settled: the pending time has passed for good.
    #[inline(always)]
    pub(crate) fn begin_event(&mut self) {
        self.events += 1;
        let cpu = &mut self.cpus[usize::from(self.current)];
        cpu.pending = NOTHING_CUTTABLE;
        self.now = cpu.clock;
    }

    /// Puts the running worker's CPU back into the calendar (K3); it is about to be suspended.
    pub(crate) fn enter_calendar(&mut self) {
        let cpu = usize::from(self.current);
        self.tree.set(cpu, tree::key(self.cpus[cpu].clock, cpu));
    }

    /// Starts a timer.
    pub(crate) fn set_timer(&mut self, at: u64, timer: Timer) {
        self.timer_number += 1;
        self.timers.push(Reverse((at, self.timer_number, timer)));
        self.timers_changed();
    }

    /// Shows the calendar the earliest timer.
    pub(crate) fn timers_changed(&mut self) {
        let leaf = self.costs.cpus;
        let first = self
            .timers
            .peek()
            .map_or(NEVER, |Reverse((at, _, _))| tree::key(*at, leaf));
        self.tree.set(leaf, first);
    }

    /// A full fence: waits for the store buffer.
    pub(crate) fn fence(&mut self) {
        let cpu = usize::from(self.current);
        let (clock, drained_at) = (self.cpus[cpu].clock, self.cpus[cpu].drained_at);
        let fence = self.costs.fence;
        self.advance(cpu, Activity::Latch, fence);
        self.advance(cpu, Activity::Stall, drained_at.saturating_sub(clock));
        self.cpus[cpu].drained_at = 0;
    }

    /// The value of a poll that sees nothing new (see "Polls"); `None` if this must be a real access.
    #[inline(always)]
    pub(crate) fn free_poll(&mut self, address: usize) -> Option<u64> {
        let hit = self.costs.load_hit;
        let cpu = self.cpu();
        if cpu.clock >= cpu.polls_free_until || cpu.polled != address {
            return None;
        }
        let value = cpu.polled_value;
        self.free_polls += 1;
        self.advance_cuttable(2, hit);
        Some(value)
    }

    /// The last load was none that [`Self::spin_of`] can go by.
    pub(crate) fn forget_polled(&mut self) {
        self.cpu().polled = 0;
    }

    /// True if the running worker has promised to poll and does something else.
    #[inline(always)]
    pub(crate) fn breaks_promise(&mut self) -> bool {
        let cpu = self.cpu();
        cpu.clock < cpu.polls_free_until
    }

    pub(crate) fn note_broken_promise(&mut self) {
        let worker = self.cpu().running;
        self.cpu().polls_free_until = 0;
        self.failure.get_or_insert(Failure::BrokenPromise { worker });
    }

    /// The number of the line at `address`, which has been accessed.
    pub(crate) fn line_number(&mut self, address: usize) -> usize {
        self.lines.find(address, 0)
    }

    /// One pause, and the promise that, unless the word loaded last has changed, `polls` loads of it follow
    /// with a pause after each. Returns whether the worker is to be suspended until the promise ends or the
    /// line is taken away.
    pub(crate) fn spin_of(&mut self, polls: u32) -> bool {
        let pause = self.costs.pause;
        self.advance_cuttable(2, pause);
        let cpu_number = usize::from(self.current);
        self.cpus[cpu_number].paused = true;
        let state = &self.cpus[cpu_number];
        let due = state.resched || state.interrupted > 0;
        if polls < 2 || state.polled == 0 || state.clock < state.polls_free_until || due {
            return false;
        }
        let version = state.polled_version;
        let number = self.lines.find(state.polled, 0);
        let line = &mut self.lines.lines[number];
        // Written since it was polled: the next poll is a real one, though the line may be back in this
        // core's cache.
        if line.version != version {
            return false;
        }
        // A store of another core that is under way takes the line without a further word when it ends; so
        // the line may also be gone already.
        let mut polls = u64::from(polls);
        let core = self.costs.core_of[cpu_number];
        if line.owner != core && !line.sharers.has(usize::from(core)) {
            return false;
        }
        if line.heir != NO_CORE && line.heir != core && line.heir != line.owner {
            let period = self.costs.load_hit + pause;
            polls = polls.min(line.busy_until.saturating_sub(state.clock).div_ceil(period));
            if polls < 2 {
                return false;
            }
        }
        let state = &mut self.cpus[cpu_number];
        state.watching = Some(number);
        state.next_watcher = line.watchers;
        line.watchers = cpu_number as u16;
        state.first_poll = state.clock;
        let ends = state.clock + polls * (self.costs.load_hit + pause);
        state.polls_free_until = ends;
        self.tree.set(cpu_number, tree::key(ends, cpu_number));
        true
    }

    /// The worker that was set aside by [`Self::spin_of`] continues: counts its polls for its line.
    pub(crate) fn resume_polls(&mut self) {
        let cpu_number = usize::from(self.current);
        if let Some(number) = self.cpus[cpu_number].watching.take() {
            self.unlink_watcher(number, cpu_number as u16);
        }
        let state = &self.cpus[cpu_number];
        let (polled, spent) = (state.polled, state.polls_free_until - state.first_poll);
        let line = self.lines.find(polled, 0);
        self.lines.lines[line].counters.spin_ps += spent;
    }

    fn unlink_watcher(&mut self, line: usize, cpu: u16) {
        let next = std::mem::replace(&mut self.cpus[usize::from(cpu)].next_watcher, NO_CPU);
        let mut at = self.lines.lines[line].watchers;
        if at == cpu {
            self.lines.lines[line].watchers = next;
            return;
        }
        while at != NO_CPU {
            let after = self.cpus[usize::from(at)].next_watcher;
            if after == cpu {
                self.cpus[usize::from(at)].next_watcher = next;
                return;
            }
            at = after;
        }
    }

    /// The line that these CPUs poll was taken at `at`: from then on their polls are real.
    pub(crate) fn release_watchers(&mut self, first: u16, taker: usize, at: u64) {
        let mut watcher = first;
        while watcher != NO_CPU {
            let cpu = usize::from(watcher);
            watcher = std::mem::replace(&mut self.cpus[cpu].next_watcher, NO_CPU);
            self.cpus[cpu].watching = None;
            debug_assert_ne!(cpu, taker, "a CPU that watches a line takes it");
            self.end_polls(cpu, at, taker);
        }
    }

    /// Polls of a CPU that was set aside are real from `at` on: those that come after the event of `leaf` at
    /// `at`.
    fn end_polls(&mut self, cpu: usize, at: u64, leaf: usize) {
        let period = self.costs.load_hit + self.costs.pause;
        let state = &mut self.cpus[cpu];
        let behind = at.saturating_sub(state.first_poll);
        // A poll at the very instant comes first if the calendar would have put it first.
        let tie = at >= state.first_poll && behind.is_multiple_of(period) && cpu < leaf;
        let polls = behind.div_ceil(period) + u64::from(tie);
        let next = (state.first_poll + polls * period).min(state.polls_free_until);
        state.polls_free_until = next;
        self.tree.set(cpu, tree::key(next, cpu));
    }

    /// True if the CPU has been set aside to poll.
    pub(crate) fn watches(&self, cpu: usize) -> bool {
        self.cpus[cpu].watching.is_some()
    }

    /// Ends the set-aside of a CPU that is to make room at `at`.
    pub(crate) fn stop_watching(&mut self, cpu: usize, at: u64) {
        if let Some(line) = self.cpus[cpu].watching.take() {
            self.unlink_watcher(line, cpu as u16);
            self.end_polls(cpu, at, self.costs.cpus);
        }
    }

    /// The time that `work` takes on `cpu`, in the present state of its sibling.
    #[inline]
    pub(crate) fn slowed(&self, cpu: usize, work: u64) -> u64 {
        match self.costs.sibling_of[cpu].map(|sibling| &self.cpus[usize::from(sibling)]) {
            Some(sibling) if sibling.running != NO_WORKER => {
                let pauses = sibling.paused || sibling.watching.is_some();
                self.costs.slowed(work, pauses)
            }
            _ => work,
        }
    }

    /// The other hardware thread of the core runs something.
    #[inline]
    pub(crate) fn sibling_is_busy(&self, cpu: usize) -> bool {
        self.costs.sibling_of[cpu].is_some_and(|sibling| self.cpus[usize::from(sibling)].running != NO_WORKER)
    }
}
