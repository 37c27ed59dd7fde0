//! Children inserted under few parents: each insert shares its parent's row, FOR KEY SHARE, until its transaction has ended.
//!
//! A transaction is one request of its client: it inserts a child and logs that, finds the parent by its key, locks the
//! parent's row, and commits. So sessions meet at the rows of the parents, and how they do depends on the way in which a row
//! is shared:
//!
//! | way | real, instantiated with `Simulated` | written for this exhibit |
//! | --- | --- | --- |
//! | `row_locks = exclusive` | tuple locks, waits for transactions | the row's word ([`parents`]) |
//! | `row_locks = shared` | the same, and `RowHolders` | the row's word |
//! | `multixact` | the same without `RowHolders`; LwLock, buffers of the parents' pages, the log | sets and their files ([`multixact`](super::multixact)) |
//!
//! Everything beside is that of [`pgbench`](super::pgbench): snapshots, xids, buffer pool, log, the end of a transaction. So
//! `multixact` is PostgreSQL's way to share a row among this engine's other mechanisms, and no simulation of PostgreSQL.
//!
//! `work_us` stands for protocol, plan and executor. `parents` is the number of parents, of which each transaction takes one at
//! random; `alone_percent` of the transactions lock it FOR UPDATE instead. Plain memory is charged by the entry in each way,
//! 1 ns for a holder or a member that is looked at or copied; the transfer of its cache line from another CPU is charged in none.
//!
//! Left out: UPDATEs of a parent, and so readers that look up the members of a set because one has updated; children's
//! indexes; triggers; the parse and plan of the check.

mod figures;
mod file;
mod parents;

use std::rc::Rc;

use clearway_sim::{Simulated, Simulation, clock_ns, random_below};
use clearway_storage::RelId;
use clearway_txn::RowLockMode;

use crate::simulate::client;
use crate::simulate::experiment::{Experiment, Variant};
use crate::simulate::meter::Meter;
use crate::simulate::multixact::{Sets, TransactionSets};
use crate::simulate::pgbench::{self, INDEX_PAGE_NS, Session};
use file::File;
use parents::{PARENTS, PARENTS_PER_PAGE, Parents};

pub use figures::HotParentFigures;
pub(crate) use figures::Tally;

const PARENTS_INDEX: RelId = RelId(25);
const CHILDREN: RelId = RelId(26);
/// Entries of a leaf of the parents' index.
const PARENTS_PER_LEAF: u32 = 300;
/// Children of a page; each session fills two pages of its own in turn.
const CHILDREN_PER_PAGE: u32 = 120;

/// A client's session.
struct Child {
    session: Session,
    parents: Rc<Parents>,
    sets: TransactionSets,
    /// Transactions of a million that lock the parent FOR UPDATE.
    alone_per_million: u64,
}

/// The outcome of one transaction.
struct Done {
    /// Transactions that had the row and had not ended when this one got it, itself among them.
    sharers: u32,
    lock_ns: u64,
    is_alone: bool,
}

impl Child {
    fn transaction(&mut self) -> Done {
        let database = Rc::clone(&self.session.database);
        let row = random_below(u64::from(self.parents.rows())) as u32;
        let is_alone = random_below(1_000_000) < self.alone_per_million;
        let mode = match is_alone {
            true => RowLockMode::Update,
            false => RowLockMode::KeyShare,
        };
        self.session.work(40);
        self.session.begin_statement(false);
        let xid = database.procs.assign_xid(self.session.proc);
        self.session.insert(xid, CHILDREN, CHILDREN_PER_PAGE);
        self.session.work(20);
        database.read_inner(PARENTS_INDEX, 0, INDEX_PAGE_NS);
        database.read(PARENTS_INDEX, 1 + row / PARENTS_PER_LEAF, INDEX_PAGE_NS);
        let asked = clock_ns();
        self.parents.lock(&self.session, &mut self.sets, xid, row, mode);
        let lock_ns = clock_ns() - asked;
        let sharers = self.parents.sharers(row);
        self.session.work(20);
        self.session.end_statement();
        self.session.work(20);
        self.parents.before_end(row, mode);
        self.session.commit(xid);
        self.parents.ended(row);
        if let Some(sets) = self.parents.sets() {
            sets.end(self.session.proc, &mut self.sets);
        }
        Done {
            sharers,
            lock_ns,
            is_alone,
        }
    }
}

pub(crate) fn spawn(
    simulation: &mut Simulation,
    experiment: &Experiment,
    variant: &Variant,
    clients: usize,
    meter: &Rc<Meter>,
) -> Rc<Tally> {
    let parameters = &experiment.parameters;
    let rows = (parameters.parents as u32).max(1);
    let tables = [
        (PARENTS, rows.div_ceil(PARENTS_PER_PAGE)),
        (PARENTS_INDEX, 1 + rows.div_ceil(PARENTS_PER_LEAF)),
        (CHILDREN, clients as u32 * 2),
    ];
    let (database, sessions) = pgbench::open(simulation, experiment, variant, clients, &tables);
    let parents = simulation.enter(|| {
        let sets = variant.multixact.map(|form| {
            let devices = &experiment.devices;
            let read = devices.page_read_us.times(parameters.device_factor);
            let write = devices.log_write_us.times(parameters.device_factor);
            let file = || File::new(read.clone(), write.clone());
            Sets::new(form, clients, variant.mechanisms.lwlock_options(), file)
        });
        Rc::new(Parents::new(Rc::clone(&database), sets, rows))
    });
    simulation.name(&database.pool.frames()[0], "a parent's page");
    if let Some(sets) = parents.sets() {
        simulation.name(sets.latch_memory(), "MultiXactGen");
        Sets::<Simulated, File>::name_waits();
    }
    pgbench::spawn_log_writer(simulation, experiment, &database, meter);
    let tally = Tally::within(Rc::clone(meter), Rc::clone(&parents));
    let alone_per_million = (parameters.alone_percent * 1e4) as u64;
    for session in sessions {
        let mut child = Child {
            session,
            parents: Rc::clone(&parents),
            sets: TransactionSets::default(),
            alone_per_million,
        };
        let (tally, client_ns) = (Rc::clone(&tally), child.session.client_ns);
        client::spawn(simulation, meter, client_ns, move |began| {
            let done = child.transaction();
            tally.done(began, &done);
        });
    }
    tally
}
