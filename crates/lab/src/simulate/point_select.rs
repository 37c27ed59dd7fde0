//! Prepared SELECTs of one row by its key: what a session does with memory that other sessions use.
//!
//! | real, instantiated with `Simulated` | in the engine |
//! | --- | --- |
//! | the table's relation lock | `Transaction::lock_relation`, and `release_all` at the end |
//! | snapshot, what it says of the row's inserter, what is durable | `take_snapshot`, `visibility` |
//! | map and frames of root, inner page, leaf and heap page | `BTree::lookup`, `Heap::fetch`: as `page_read` has it |
//!
//! The tables, and the work within a page, are those of [`pgbench`](super::pgbench). `work_us` stands for everything
//! beside: protocol, plan, executor. Left out are the counts of the Arcs of catalog and plan, and what the session
//! publishes of itself. A session's plan is its own, and the catalog is read by its version; both are argued, and not
//! counted here.
//!
//! A variant with `work_alone` does the same work without any of the structures, so it shows what is left to win.

use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Padded, Work};
use clearway_sim::{Simulated, SimulatedU64, Simulation, clock_ns, random_below};
use clearway_txn::{LockMode, LockTag, LockWait};

use crate::simulate::client;
use crate::simulate::experiment::{Experiment, WorkloadKind};
use crate::simulate::meter::Meter;
use crate::simulate::pgbench::{ACCOUNTS, Session};

/// Rows that are read, each with a leaf and a heap page of its own. So few that after the warm-up each core has had all
/// their lines: what is left is what sessions do to each other.
const ROWS: u64 = 256;
/// Work within the four pages of a lookup, ns: three of the index, and the heap page.
const PAGES_NS: [u64; 4] = [200, 200, 200, 300];

/// One SELECT.
pub(super) fn transaction(session: &mut Session, _kind: WorkloadKind) {
    session.work(50);
    let database = Rc::clone(&session.database);
    let wait = LockWait {
        timeout: None,
        cancel: &|| false,
    };
    let lock = LockTag::Relation(ACCOUNTS.0);
    let locked = database
        .locks
        .acquire(session.proc, lock, LockMode::AccessShare, wait);
    locked.expect("no session takes a strong lock");
    session.select_row(random_below(ROWS));
    database.locks.release_all(session.proc);
    session.work(50);
}

/// Clients whose transactions only work. Between two parts each looks at a word of its own, because a simulated worker
/// makes way for others at its accesses only, and so meets the other hardware thread of its core there.
pub(super) fn spawn_work_alone(
    simulation: &mut Simulation,
    experiment: &Experiment,
    clients: usize,
    meter: &Rc<Meter>,
) {
    let half_ns = (experiment.parameters.work_us * 500.0) as u64;
    let client_ns = (experiment.parameters.client_us * 1e3) as u64;
    for _ in 0..clients {
        let meter = Rc::clone(meter);
        let own = simulation.enter(|| Box::new(Padded(SimulatedU64::new(0))));
        simulation.spawn(move || {
            // Clients arrive over some time.
            Simulated::charge(Work::Nanos(random_below(2_000_000)));
            while meter.goes_on() {
                let began = clock_ns();
                client::work(half_ns);
                for page_ns in PAGES_NS {
                    own.load(Relaxed);
                    Simulated::charge(Work::Nanos(page_ns));
                }
                own.load(Relaxed);
                client::work(half_ns);
                own.load(Relaxed);
                meter.done(began);
                client::answer(client_ns);
            }
        });
    }
}
