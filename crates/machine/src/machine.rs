//! The trait [`Machine`].

use core::sync::atomic::Ordering;
use core::time::Duration;

use crate::{AtomicPointer, AtomicWord, DataCell, Half, WorkerId, Workers};

/// The operations that a latch or a contended structure needs of the machine it runs on.
///
/// Implementors are zero-sized markers. All functions are associated, so a generic structure stores nothing
/// for its machine, and `Native` compiles to the code that one would write by hand against `std`.
///
/// # Safety
/// Latches are generic over it, and what they protect is reached by unsafe code. Of a machine that is relied on:
/// - its words, pointers and cells are as their traits demand, and `fence` orders at least as strongly as it is asked to;
/// - workers that live at the same time have different numbers, a worker has the same number at each call of `worker` and
///   `known_worker`, and the number is below the capacity of `workers`. A latch hands itself over to a number;
/// - `workers` is the same table at each call, and nothing writes to it but through its methods.
///
/// The rest of the contract of its methods is needed for progress: a machine that breaks it makes workers wait too long
/// or too short, and never lets two into a latch.
pub unsafe trait Machine: Copy + Default + core::fmt::Debug + Send + Sync + 'static {
    /// True if a checker explores this machine's schedules. Limits that only trade time, such as how long to
    /// poll before sleeping, are then minimal, so that rare paths become common.
    const EXPLORED: bool = false;

    /// True if each worker is a thread of the host, so that thread-local data belongs to one worker. Not so
    /// where workers are coroutines.
    const THREADS_ARE_WORKERS: bool = false;

    /// A 32-bit atomic; what a futex sleeps on.
    type U32: AtomicWord<u32>;
    /// A 64-bit atomic; a futex may sleep on either half of it.
    type U64: AtomicWord<u64>;
    /// An atomic pointer.
    type Ptr<T: 'static>: AtomicPointer<T>;
    /// Plain memory protected by a latch.
    type Data<T>: DataCell<T>;

    /// A memory fence. A protocol that needs a total order uses a `SeqCst` fence between relaxed accesses:
    /// loom models fences exactly, but `SeqCst` accesses only as acquire/release.
    fn fence(order: Ordering);

    /// One step of polling: a CPU pause natively, a scheduling point under the checkers.
    fn spin_hint();

    /// As [`spin_hint`](Self::spin_hint), with a promise for machines that can use one: unless the word that
    /// the caller loaded last changes, the caller will load that same word `polls` times more, with one such
    /// hint after each load and nothing else in between. A simulation then need not step through the polls
    /// one by one.
    #[inline(always)]
    fn spin_hint_of(polls: u32) {
        let _ = polls;
        Self::spin_hint();
    }

    /// Yields the CPU once.
    fn yield_now();

    /// Sleeps while `word` holds `expected`, until woken or until `timeout` has passed. May return early; the
    /// caller looks again.
    fn futex_wait(word: &Self::U32, expected: u32, timeout: Option<Duration>) -> FutexOutcome;

    /// Wakes up to `count` sleepers of `word`, all of them if it is `u32::MAX`; returns how many were woken.
    fn futex_wake(word: &Self::U32, count: u32) -> u32;

    /// As [`futex_wait`](Self::futex_wait), while one half of `word` holds `expected`. For state that changes
    /// in one step and has two kinds of sleepers. The program never reads or writes the half alone; the
    /// kernel compares it.
    fn futex_wait_half(
        word: &Self::U64,
        half: Half,
        expected: u32,
        timeout: Option<Duration>,
    ) -> FutexOutcome;

    /// As [`futex_wake`](Self::futex_wake), for sleepers of one half of `word`.
    fn futex_wake_half(word: &Self::U64, half: Half, count: u32) -> u32;

    /// Sleeps for about `duration`.
    fn sleep(duration: Duration);

    /// Monotonic nanoseconds since some fixed instant.
    fn now() -> u64;

    /// The calling worker's CPU, as a hint that may be out of date on return.
    fn cpu() -> CpuHint;

    /// Numbers of CPUs, cores and nodes that [`cpu`](Self::cpu) may report, for sizing what is split by them. They stay
    /// the same while the program runs.
    fn cpu_counts() -> CpuCounts {
        CpuCounts::default()
    }

    /// A number that stands for `address` where workers agree on something by it: the address itself, but of a simulation,
    /// in which nothing may depend on where the host puts things, the number of its cache line. The caller has accessed
    /// that line before.
    fn number_of(address: usize) -> usize {
        address
    }

    /// Accounts for code between the accesses. Costs nothing natively; in a simulation it takes simulated
    /// time.
    fn charge(work: Work);

    /// Names the memory at `address` for reports of contended cache lines, and for a checker what its caller is about to wait for.
    /// Costs nothing natively.
    #[inline(always)]
    #[track_caller]
    fn label(address: *const (), name: &'static str) {
        let _ = (address, name);
    }

    /// From here to [`end_cpu_time`](Self::end_cpu_time) the calling worker's CPU time is accounted for under `name`, in
    /// simulations. Such times may lie within each other, as calls do; the outer one includes the inner one. Costs
    /// nothing natively.
    #[inline(always)]
    fn begin_cpu_time(name: &'static str) {
        let _ = name;
    }

    /// Ends what the calling worker's last [`begin_cpu_time`](Self::begin_cpu_time) without an end began, which was of the
    /// same name. Costs nothing natively.
    #[inline(always)]
    fn end_cpu_time(name: &'static str) {
        let _ = name;
    }

    /// The table of worker slots.
    fn workers() -> &'static Workers<Self>;

    /// The calling worker's slot; the first call on a thread claims one, and the thread's end returns it.
    ///
    /// While all slots are taken, and there are [`Workers::capacity`] or no memory for others, the call waits until a
    /// thread that has one ends. If none can end before the caller has gone on, that is a deadlock. So a program that
    /// starts threads on demand keeps below that (the server refuses connections with 53300 before that), or asks
    /// [`known_worker`](Self::known_worker) first.
    fn worker() -> WorkerId;

    /// The calling worker's slot; `None` where the machine does not know the caller, or has no slot left for it. For uses
    /// of the slot that are not needed for correctness, such as the learned budget of polls and the published wait event;
    /// and for a program that refuses work instead of waiting for a slot: what a thread has got once it keeps until it
    /// ends.
    #[inline(always)]
    fn known_worker() -> Option<WorkerId> {
        Some(Self::worker())
    }
}

/// The reason why a [`Machine::futex_wait`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FutexOutcome {
    /// Woken, interrupted, or a spurious return.
    Woken,
    /// The word did not hold the expected value at the call: the caller did not sleep, and consumed no wake.
    /// Latches rely on that.
    Changed,
    /// The timeout passed.
    TimedOut,
}

/// The place that a worker runs at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuHint {
    /// Hardware thread number.
    pub cpu: u32,
    /// Number of the core, from 0 up: CPUs with the same number share a level 2 cache, so a line does not move
    /// between them. The cores of a node have numbers next to each other.
    pub core: u32,
    /// NUMA node number.
    pub node: u32,
}

/// Numbers of CPUs, cores and NUMA nodes that the program may run on, each 0 if the machine does not know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuCounts {
    /// Hardware threads.
    pub cpus: u32,
    /// Cores; see [`CpuHint::core`].
    pub cores: u32,
    /// NUMA nodes.
    pub nodes: u32,
}

/// An amount of work that is not modelled access by access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Nanoseconds of CPU time.
    Nanos(u64),
}
