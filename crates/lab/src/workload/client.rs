//! A client of any workload.

use std::sync::Arc;

use clearway_engine::{Engine, EngineError};

use super::{Workload, pgbench, tpcc};

/// The sizes of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// pgbench's scale.
    pub scale: u32,
    /// The population that TPC-C's tables are loaded with.
    pub population: tpcc::Population,
}

/// Sums of the transactions that were acknowledged to clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// By pgbench's transactions.
    pub pgbench: pgbench::Acknowledged,
    /// By TPC-C's.
    pub tpcc: tpcc::Acknowledged,
}

impl std::ops::AddAssign for Acknowledged {
    fn add_assign(&mut self, other: Acknowledged) {
        self.pgbench += other.pgbench;
        self.tpcc += other.tpcc;
    }
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ended {
    /// Its kind's place in [`Workload::kinds`]; `None` where a workload has one kind.
    pub(crate) kind: Option<usize>,
    /// True if it has committed: not if it was rolled back as its input wants.
    pub(crate) committed: bool,
}

/// A client.
#[derive(Debug)]
pub(crate) enum Client {
    Pgbench(Box<pgbench::Client>),
    Tpcc(Box<tpcc::Client>),
}

impl Client {
    /// Opens a client of the workload; `place` is its place among those.
    pub(crate) fn open(
        engine: &Arc<Engine>,
        workload: Workload,
        sizes: Sizes,
        place: usize,
        seed: u64,
    ) -> Result<Client, EngineError> {
        Ok(match workload {
            Workload::Tpcc => Client::Tpcc(Box::new(tpcc::Client::new(
                engine,
                sizes.population,
                place,
                seed,
            )?)),
            _ => Client::Pgbench(Box::new(pgbench::Client::new(
                engine,
                workload,
                sizes.scale,
                seed,
            )?)),
        })
    }

    /// Runs one transaction to its end.
    #[inline]
    pub(crate) fn transaction(&mut self) -> Result<Ended, EngineError> {
        match self {
            Client::Pgbench(client) => client.transaction().map(|()| Ended {
                kind: None,
                committed: true,
            }),
            Client::Tpcc(client) => client.transaction().map(|(kind, committed)| Ended {
                kind: Some(kind as usize),
                committed,
            }),
        }
    }

    /// Sums of the transactions that were acknowledged to it.
    pub(crate) fn acknowledged(&self) -> Acknowledged {
        let mut acknowledged = Acknowledged::default();
        match self {
            Client::Pgbench(client) => acknowledged.pgbench = client.acknowledged,
            Client::Tpcc(client) => acknowledged.tpcc = client.acknowledged,
        }
        acknowledged
    }

    /// Transactions that were rolled back for another's sake and tried again.
    pub(crate) fn retries(&self) -> u64 {
        match self {
            Client::Pgbench(client) => client.retries,
            Client::Tpcc(client) => client.retries,
        }
    }
}
