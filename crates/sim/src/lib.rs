//! A deterministic many-core machine: caches, sockets, hardware threads, an operating system's scheduler,
//! futexes, devices.
//!
//! Code that is generic over [`clearway_machine::Machine`] runs on it unchanged, as [`Simulated`]. Time is
//! simulated. Three things take time: accesses to atomics, by where their cache lines are; system calls; and
//! the work that the program charges. The same program, machine and seed give the same run, on any host.
//!
//! ```text
//!   worker bodies (coroutines)      LwLock<Simulated>, Wal<Simulated, …>, …
//!        │ loads, stores, read-modify-writes, futexes, sleeps, charges
//!   simulated   the trait's functions; when a worker must wait for its turn
//!   kernel      clocks, the order of events, polls
//!   coherence   the cost of an access, and the line's next core  ── lines   the state of each line
//!   sched       run queues, slices, wake-ups                     ── futex   the sleepers of each futex
//!   tree        the calendar                                     ── costs   the machine's figures in picoseconds
//!   simulation  spawning, the loop, errors                       ── report, trace   the results
//! ```
//!
//! | file | its rules |
//! | --- | --- |
//! | `kernel` | K1 to K3, how polls are skipped exactly |
//! | `kernel/coherence` | the cost of an access, sequential consistency |
//! | `kernel/sched` | which worker runs when |
//! | `lines` | the states of a line |
//! | `model` | the contents of a machine's description |
//! | `alloc` | why layouts do not depend on the host |
//!
//! # What it does not do
//! Memory is sequentially consistent per access; loom finds what weak memory allows. The costs are those of
//! the machine descriptions in `machines/`, each with its source or marked as estimated.
//! `tests/sim_published.rs` prints in one table which published measurements the model reproduces and which
//! it does not. Take orderings and ratios from the model, with their sensitivity to the costs, and no
//! absolute numbers.

mod account;
mod alloc;
mod costs;
mod device;
mod futex;
mod host;
mod kernel;
mod lines;
mod model;
mod named;
mod random;
mod report;
mod services;
mod simulated;
mod simulation;
mod trace;
mod tree;

pub use account::{Account, Activity};
pub use alloc::LineAllocator;
pub use device::{Latency, LatencyError};
pub use model::{Coherence, MachineModel, ModelError, OperatingSystem, PRESETS, Topology};
pub use random::Random;
pub use report::{NamedCpuTime, NamedLines, NamedWait, Report};
pub use services::{
    Span, WorkerTimes, account_so_far, begin_line_account, charge_drawn, charge_picoseconds,
    client_round_trip, clock_ns, cpu_time_so_far, device, line_waits_so_far, other_program_work,
    random_below, span, worker_times,
};
pub use simulated::{Simulated, SimulatedData, SimulatedPtr, SimulatedU32, SimulatedU64};
pub use simulation::{Simulation, SimulationError};
pub use trace::Trace;

/// The README's example, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
