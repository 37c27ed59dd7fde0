//! The ticket latch in the laboratory of Clearway: measured on this host by `bench latches`, and simulated on a machine
//! with many cores by a latch-mix.

use std::time::Duration;

use clearway_lab::latches::{LatchBenchResult, OwnLatch, OwnLatchKind, add_latch};
use clearway_lab::simulate::{Experiment, Seeds, SimulateOptions, SimulationResult, run_experiment};
use clearway_lab::{LatchBenchOptions, Result, run_latch_bench};
use clearway_latch::SpinPolicy;
use clearway_machine::{Machine, Native};
use clearway_sim::{MachineModel, Simulated};
use own_latch::TicketLatch;

/// What the laboratory needs of a latch. The orphan rule wants a type of this crate around one of another; in the crate
/// of the latch itself the trait can be implemented for the latch.
struct Ticket<M: Machine>(TicketLatch<M>);

impl<M: Machine> OwnLatch for Ticket<M> {
    fn idle() -> Self {
        Self(TicketLatch::new())
    }
    fn read<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.with(section)
    }
    fn write<R>(&self, section: impl FnOnce() -> R) -> R {
        self.0.with(section)
    }
}

/// Makes the latch known under the name `ticket`. Once in a process, before all else.
///
/// # Errors
/// It is known already.
pub fn add_ticket_latch() -> Result<()> {
    add_latch::<Ticket<Native>, Ticket<Simulated>>(
        "ticket",
        "A ticket latch: first come, first served.",
        OwnLatchKind::Mutex,
    )
}

/// Measures it beside two mutexes of Clearway's and parking_lot's.
///
/// # Errors
/// As [`run_latch_bench`].
pub fn measured(threads: Vec<usize>, duration: Duration, rounds: usize) -> Result<LatchBenchResult> {
    let latches = [
        "ticket",
        "srw-single-wake",
        "lwlock-single-cas",
        "parking_lot-mutex",
        "parking_lot",
    ];
    run_latch_bench(&LatchBenchOptions {
        threads,
        sections: vec![Duration::ZERO, Duration::from_micros(1)],
        read_shares: vec![0.0],
        latches: latches.map(str::to_owned).to_vec(),
        spin: SpinPolicy::Adaptive,
        duration,
        rounds,
        seed: 1,
        command: "own-latch-laboratory".to_owned(),
        progress: true,
    })
}

/// Simulates the experiment of this folder's file `ticket.toml`.
///
/// # Errors
/// As [`Experiment::parse`] and [`run_experiment`].
pub fn simulated(clients: Option<Vec<usize>>) -> Result<SimulationResult> {
    let mut experiment = Experiment::parse("ticket.toml", include_str!("../ticket.toml"))?;
    experiment.clients = clients.unwrap_or(experiment.clients);
    run_experiment(&SimulateOptions {
        machine: MachineModel::load(&experiment.machine)?,
        experiment,
        seeds: Seeds::one(1),
        trace: None,
        sweep: false,
        shard: None,
        progress: true,
        threads: 0,
    })
}
