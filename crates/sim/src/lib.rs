//! A deterministic many-core machine: caches, sockets, hardware threads, an operating system's scheduler, futexes, devices.
//!
//! Code that is generic over [`clearway_machine::Machine`] runs on it unchanged, as [`Simulated`]. Time is simulated: what
//! takes time is the accesses to atomics, by where their cache lines are; the system calls; and the work that the program
//! charges. The same program, machine and seed give the same run, on any host.
//!
//! ```text
//!   worker bodies (coroutines)      LwLock<Simulated>, Wal<Simulated, …>, …
//!        │ loads, stores, read-modify-writes, futexes, sleeps, charges
//!   simulated   what the trait's functions do; when a worker must wait for its turn
//!   kernel      clocks, the order of events, polls
//!   coherence   what an access costs, and who has the line then  ── lines   who has which line
//!   sched       run queues, slices, wake-ups                     ── futex   who sleeps on what
//!   tree        the calendar                                     ── costs   the machine's figures in picoseconds
//!   simulation  spawning, the loop, errors      report, trace    what came out
//! ```
//!
//! | file | its rules |
//! | --- | --- |
//! | `kernel` | K1 to K3, how polls are skipped exactly |
//! | `coherence` | what an access costs, sequential consistency |
//! | `sched` | who runs when |
//! | `lines` | the states of a line |
//! | `model` | what a machine's description says |
//! | `alloc` | why layouts do not depend on the host |
//!
//! # What it does not do
//! Memory is sequentially consistent per access: what weak memory allows is for loom to find. The costs are those of the
//! machine descriptions in `machines/`, each with its source or marked as estimated. What of published measurements comes out
//! of the model, and what does not, `tests/sim_published.rs` prints in one table: take orderings and ratios from the model, with
//! their sensitivity to the costs, and no absolute numbers.

mod account;
mod alloc;
mod carry;
mod coherence;
mod costs;
mod device;
mod futex;
mod host;
mod kernel;
mod lines;
mod model;
mod random;
mod report;
mod sched;
mod services;
mod simulated;
mod simulation;
mod trace;
mod tree;
mod waits;

pub use account::{Account, Activity};
pub use alloc::LineAllocator;
pub use device::{Latency, LatencyError};
pub use model::{Coherence, MachineModel, ModelError, OperatingSystem, PRESETS, Topology};
pub use random::Random;
pub use report::{NamedLines, NamedWait, Report};
pub use services::{
    Span, account_so_far, charge_drawn, charge_picoseconds, client_round_trip, clock_ns, device,
    random_below, span,
};
pub use simulated::{Simulated, SimulatedData, SimulatedPtr, SimulatedU32, SimulatedU64};
pub use simulation::{Simulation, SimulationError};
pub use trace::Trace;
