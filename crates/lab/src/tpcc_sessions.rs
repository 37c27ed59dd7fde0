//! A run of TPC-C clients whose sessions are open already, on any database.

use std::time::{Duration, Instant};

use crate::error::{LabError, Result};
use crate::latencies::Latencies;
use crate::result::KindCell;
use crate::run::Course;
use crate::workload::tpcc::{Acknowledged, Client, Kind};
use crate::workload::{Workload, client};

/// The result of a run.
#[derive(Debug)]
pub struct SessionsRun {
    /// Transactions a second in the measured time.
    pub tps: f64,
    /// Measurements of each kind, in the order of [`Kind::ALL`].
    pub kinds: Vec<KindCell>,
    /// Transactions that were rolled back and tried again (40001, 40P01), from the first to the last.
    pub retries: u64,
    /// Commits that the clients were told of, from the first transaction to the last.
    pub acknowledged: Acknowledged,
}

impl SessionsRun {
    /// Committed new-orders a minute.
    pub fn new_orders_per_minute(&self) -> f64 {
        self.kinds[Kind::NewOrder as usize].per_minute
    }
}

/// Runs the clients, each on a thread of its own: for `warm_up` unmeasured, then for `duration`.
///
/// # Errors
/// That of the first client that has failed; the others stop then.
pub fn run_sessions(clients: Vec<Client>, warm_up: Duration, duration: Duration) -> Result<SessionsRun> {
    let course = Course::default();
    let (ended, seconds) = std::thread::scope(|scope| {
        let course = &course;
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| {
                scope.spawn(move || {
                    let mut client = client::Client::Tpcc(Box::new(client));
                    let mut latencies = Latencies::of(Workload::Tpcc);
                    let driven = course.drive(&mut client, &mut latencies);
                    driven
                        .map(|()| (client, latencies))
                        .inspect_err(|_| course.fail())
                })
            })
            .collect();
        course.sleep(warm_up);
        course.measure();
        let started = Instant::now();
        course.sleep(duration);
        course.stop();
        let seconds = started.elapsed().as_secs_f64();
        let joined: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
        (joined, seconds)
    });
    let mut latencies = Latencies::of(Workload::Tpcc);
    let (mut retries, mut acknowledged) = (0, Acknowledged::default());
    for client in ended {
        let (client, of_client) = client
            .map_err(|_| LabError::ClientPanicked {
                variant: "the server".to_owned(),
            })?
            .map_err(LabError::engine("a tpcc client"))?;
        latencies.add(&of_client);
        retries += client.retries();
        acknowledged += client.acknowledged().tpcc;
    }
    latencies.end_round(seconds);
    Ok(SessionsRun {
        tps: latencies.all.len() as f64 / seconds,
        kinds: latencies.kind_cells(Workload::Tpcc),
        retries,
        acknowledged,
    })
}
