//! The simulated machine's services beyond the `Machine` trait.

use crate::account::{Account, Activity};
use crate::device::Latency;
use crate::kernel::CUTTABLE;
use crate::random::Random;
use crate::simulated::{at, charge, client, inside, inside_worker, settle, wait_for_device};

/// The place of [`Activity::OtherPrograms`] among what can be cut off.
const OTHER_PROGRAMS: usize = 3;
const _: () = assert!(matches!(CUTTABLE[OTHER_PROGRAMS], Activity::OtherPrograms));

/// The calling worker's clock in nanoseconds, at no cost: for measuring the program, not for the program
/// itself.
pub fn clock_ns() -> u64 {
    inside_worker().map_or(0, |kernel| {
        // SAFETY: the kernel lives while it is entered, and only this thread uses it.
        unsafe { at(kernel).cpu().clock / 1_000 }
    })
}

/// The calling worker's time, from its beginning to now. The rest of the clock's time it was ready, without a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerTimes {
    /// By the clock, nanoseconds.
    pub clock_ns: u64,
    /// On a CPU, nanoseconds.
    pub on_cpu_ns: u64,
    /// Asleep: in a futex, a device, a timer, nanoseconds.
    pub asleep_ns: u64,
}

/// The calling worker's time, at no cost: for measuring the program, as [`clock_ns`].
pub fn worker_times() -> WorkerTimes {
    inside_worker().map_or(WorkerTimes::default(), |kernel| {
        // SAFETY: as in `clock_ns`.
        let kernel = unsafe { at(kernel) };
        let (clock, running) = (kernel.cpu().clock, kernel.cpu().running);
        let worker = &kernel.workers[running as usize];
        WorkerTimes {
            clock_ns: clock / 1_000,
            on_cpu_ns: (worker.on_cpu + clock - worker.dispatched_at) / 1_000,
            asleep_ns: worker.asleep / 1_000,
        }
    })
}

/// Waits for a device for as long as `latency` says, without using a CPU.
pub fn device(latency: &Latency) {
    if let Some(kernel) = inside_worker() {
        // SAFETY: as in `clock_ns`.
        let nanoseconds = unsafe { latency.draw(&mut at(kernel).random) };
        wait_for_device(kernel, nanoseconds * 1_000);
    }
}

/// A round trip to the client of the calling worker's connection: send, `nanoseconds` of work on a CPU of the
/// same machine, answer.
///
/// A client and its worker never run at the same time, so both are one coroutine with two roles. Each role
/// has a CPU on which it ran last, and each change of role is a send, a sleep and a wake-up.
pub fn client_round_trip(nanoseconds: u64) {
    if let Some(kernel) = inside_worker() {
        client(kernel, nanoseconds * 1_000);
    }
}

/// Charges work that differs from call to call, drawn from a distribution.
pub fn charge_drawn(work: &Latency) {
    if let Some(kernel) = inside_worker() {
        // SAFETY: as in `clock_ns`.
        let nanoseconds = unsafe { work.draw(&mut at(kernel).random) };
        charge(kernel, 0, nanoseconds * 1_000);
    }
}

/// Charges work of a program that has no part in what is measured, and returns when its CPU has done it.
pub fn other_program_work(nanoseconds: u64) {
    if let Some(kernel) = inside_worker() {
        charge(kernel, OTHER_PROGRAMS, nanoseconds * 1_000);
        settle(kernel);
    }
}

/// Charges work in picoseconds, which [`Work`](clearway_machine::Work) cannot express.
pub fn charge_picoseconds(picoseconds: u64) {
    if let Some(kernel) = inside_worker() {
        charge(kernel, 0, picoseconds);
    }
}

/// A random number below `bound` from the simulation's sequence.
pub fn random_below(bound: u64) -> u64 {
    match inside() {
        // SAFETY: as in `clock_ns`.
        Some(kernel) => unsafe { at(kernel).random.below(bound) },
        None => Random::new(0).below(bound),
    }
}

/// The time of all CPUs so far, by activity: for measuring between two instants of a run.
pub fn account_so_far() -> Account {
    let mut all = Account::default();
    if let Some(kernel) = inside() {
        // SAFETY: as in `clock_ns`.
        let kernel = unsafe { at(kernel) };
        for cpu in &kernel.cpus {
            all.merge(&cpu.account);
            if cpu.running == crate::kernel::NO_WORKER {
                // Its account is brought up to date only when a worker arrives.
                all.add(Activity::Idle, kernel.now.saturating_sub(cpu.clock));
            }
        }
    }
    all
}

/// Time that CPUs have waited for the lines of this name so far, and polled them, ns: for measuring between two
/// instants of a run. Of [`NamedLines`] the sum of transfers, queueing and spinning.
///
/// [`NamedLines`]: crate::NamedLines
pub fn line_waits_so_far(name: &str) -> u64 {
    // SAFETY: as in `clock_ns`.
    inside().map_or(0, |kernel| unsafe { at(kernel).lines.waits_of(name) / 1_000 })
}

/// CPU time that workers have spent so far between [`Machine::begin_cpu_time`] of this name and its end, ns: for
/// measuring between two instants of a run.
///
/// [`Machine::begin_cpu_time`]: clearway_machine::Machine::begin_cpu_time
pub fn cpu_time_so_far(name: &str) -> u64 {
    // SAFETY: as in `clock_ns`.
    inside().map_or(0, |kernel| unsafe { at(kernel).cpu_time_so_far(name) / 1_000 })
}

/// Begins the account of lines that are changed and shared anew: see [`NamedLines::shared_changes`].
///
/// [`NamedLines::shared_changes`]: crate::NamedLines::shared_changes
pub fn begin_line_account() {
    if let Some(kernel) = inside() {
        // SAFETY: as in `clock_ns`.
        unsafe { at(kernel).line_account += 1 };
    }
}

/// A named span of the calling worker in traces, from here to where it is dropped.
#[derive(Debug)]
#[must_use = "a span ends where it is dropped"]
pub struct Span {
    name: &'static str,
    start: u64,
}

/// Begins a span.
pub fn span(name: &'static str) -> Span {
    Span {
        name,
        start: now_ps(),
    }
}

fn now_ps() -> u64 {
    // SAFETY: as in `clock_ns`.
    inside_worker().map_or(0, |kernel| unsafe { at(kernel).cpu().clock })
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(kernel) = inside_worker() {
            // SAFETY: as in `clock_ns`.
            unsafe {
                let (worker, end) = (at(kernel).cpu().running, at(kernel).cpu().clock);
                if let Some(trace) = &mut at(kernel).trace {
                    trace.span(worker, self.name, self.start, end);
                }
            }
        }
    }
}
