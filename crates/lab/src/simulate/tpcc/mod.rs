//! TPC-C's five transactions as skeletons, in the standard's mix: what they do with latches that all sessions share.
//!
//! | real, instantiated with `Simulated` | stands for itself |
//! | --- | --- |
//! | `ProcArray` | a snapshot at each statement (READ COMMITTED), xids, the end of transactions |
//! | `LockManager` | a relation lock on each table, on the session's list where `relation_locks = fast-path` |
//! | `BufferPool` | every index and heap page that a statement reads or changes |
//! | `Wal`, `CommitPath`, `CommitLog`, `Commits`, `SeenCommits` | as in [`pgbench`](super::pgbench), whose sessions these are |
//!
//! `transactions.rs` has the statements, `tables.rs` the pages. The deck that deals the mix is the native workload's.
//!
//! # Work
//! `work_us` is the mean of the mix, beside what the pages take by themselves. A transaction's part is [`WORK_PERCENT`],
//! from the native run: `clearway bench --workload tpcc --warehouses 2 --clients 1 --set snapshot=scan --sync-commit off
//! --duration 3s --rounds 3` on a VM with 2 CPUs (AMD EPYC), 2026-11-26, medians: new-order 131 µs, payment 43,
//! order-status 23, delivery 815, stock-level 494. Within a transaction it follows the rows of its statements.
//!
//! # Client
//! With `calls = 1` a transaction is a call of a stored procedure, so the client sends one request; with 0 it sends one
//! for each statement.
//!
//! # What it leaves out
//! - Row locks. Each client is at home in a warehouse of its own, so the rows of its warehouse and districts are its own
//!   but for 15 % of payments' customers and 1 % of lines, which rarely meet in the real number of rows.
//! - The snapshots that PL/pgSQL takes for expressions outside of statements.
//! - What [`pgbench`](super::pgbench) leaves out: extending relations, checkpoints, vacuum, the visibility map.

mod figures;
mod tables;
mod transactions;

use std::convert::Infallible;
use std::rc::Rc;

use clearway_sim::{Simulation, random_below, span};
use clearway_storage::RelId;
use clearway_txn::{LockMode, LockTag, LockWait, Xid};
use rand::TryRng;

use self::figures::Done;
pub(crate) use self::figures::Tally;
pub use self::figures::TpccFigures;
use self::tables::{Index, OWN_PAGES, Table, WAREHOUSES};
use self::transactions::{Access, RowAction, Statement};
use crate::simulate::client;
use crate::simulate::experiment::{Experiment, Variant};
use crate::simulate::meter::Meter;
use crate::simulate::pgbench::{self, HEAP_CHANGE_NS, HEAP_READ_NS, INDEX_PAGE_NS, LOADER, Session};
use crate::workload::tpcc::{Deck, Kind};

/// The name of the ProcArray latch's cache lines.
const LATCH: &str = "ProcArray latch";
/// Work of each kind, in hundredths of the mean of the mix, in the order of [`Kind::ALL`].
const WORK_PERCENT: [u64; 5] = [100, 33, 18, 620, 380];
/// Weight of the call, of `begin` and `commit`, beside those of the statements.
const CALL_WEIGHT: u64 = 4;
/// Zeros to be logged.
static ROW: [u8; 600] = [0; 600];

/// The simulation's random numbers, for the deck.
struct Drawn;

impl TryRng for Drawn {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(random_below(1 << 32) as u32)
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(random_below(u64::MAX))
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for byte in bytes {
            *byte = random_below(256) as u8;
        }
        Ok(())
    }
}

/// One client, with its session.
struct Client {
    session: Session,
    deck: Deck,
    /// The client's warehouse.
    home: u32,
    /// The mean work of a transaction, ns.
    work_ns: u64,
    arrays: bool,
    /// True if a transaction is one request.
    calls: bool,
    /// Rows inserted so far.
    rows: u32,
    /// The running transaction's.
    xid: Option<Xid>,
    held: Vec<(RelId, LockMode)>,
}

impl Client {
    /// Runs one transaction to its end.
    fn transaction(&mut self) -> Done {
        let kind = self.deck.deal(&mut Drawn);
        let statements = transactions::statements(kind, self.arrays);
        let weight = CALL_WEIGHT + statements.iter().map(Statement::weight).sum::<u64>();
        let work_ns = self.work_ns * WORK_PERCENT[kind as usize] / 100;
        let part_ns = |part: u64| work_ns * part / weight;
        client::work(part_ns(CALL_WEIGHT) / 2);
        for statement in &statements {
            if !self.calls {
                client::answer(self.session.client_ns);
            }
            self.run(statement, part_ns(statement.weight()));
        }
        if !self.calls {
            client::answer(self.session.client_ns);
        }
        client::work(part_ns(CALL_WEIGHT) / 2);
        let xid = self.xid.take();
        match xid {
            Some(xid) => self.session.commit(xid),
            None => self.session.end_without_xid(),
        }
        self.held.clear();
        Done {
            kind,
            snapshots: statements.len() as u64,
            has_xid: xid.is_some(),
        }
    }

    fn run(&mut self, statement: &Statement, work_ns: u64) {
        client::work(work_ns / 2);
        for access in &statement.accesses {
            let mode = match access.what {
                RowAction::Read => LockMode::AccessShare,
                RowAction::Change | RowAction::Insert => LockMode::RowExclusive,
            };
            self.lock(access.table.rel(), mode);
        }
        let inserts = statement
            .accesses
            .iter()
            .all(|access| access.what == RowAction::Insert);
        self.session.begin_statement(!inserts);
        for access in &statement.accesses {
            for _ in 0..access.finds {
                match access.what {
                    RowAction::Read => drop(self.find(*access)),
                    RowAction::Change => self.change(*access),
                    RowAction::Insert => self.insert(access.table),
                }
            }
        }
        self.session.end_statement();
        client::work(work_ns - work_ns / 2);
    }

    /// A relation lock for the rest of the transaction, unless it has that already, as the engine takes it.
    fn lock(&mut self, rel: RelId, mode: LockMode) {
        if self.held.contains(&(rel, mode)) {
            return;
        }
        let wait = LockWait {
            timeout: None,
            cancel: &|| false,
        };
        let locks = &self.session.database.locks;
        let locked = locks.acquire(self.session.proc, LockTag::Relation(rel.0), mode, wait);
        locked.expect("no session takes a strong lock");
        self.held.push((rel, mode));
    }

    fn xid(&mut self) -> Xid {
        let session = &self.session;
        *self
            .xid
            .get_or_insert_with(|| session.database.procs.assign_xid(session.proc))
    }

    /// Down an index; the leaf's block.
    fn descend(&self, index: Index, leaf: u32) -> u32 {
        let _span = span("descend");
        for block in index.way_to(leaf) {
            self.session.database.read_inner(index.rel, block, INDEX_PAGE_NS);
        }
        index.block_of(leaf)
    }

    /// Finds rows by an index and reads their heap page; its block.
    fn find(&mut self, access: Access) -> u32 {
        let table = access.table;
        let at_home = matches!(table, Table::Warehouse | Table::District);
        let page = if at_home {
            self.home
        } else {
            random_below(table.heap_pages().into()) as u32
        };
        if let Some(index) = table.indexes().nth(access.by_second.into()) {
            // As many pages a leaf, wherever they are.
            let leaf = (u64::from(page) * u64::from(index.leaves) / u64::from(table.heap_pages())) as u32;
            let leaf = self.descend(index, leaf);
            self.session.database.read(index.rel, leaf, INDEX_PAGE_NS);
        }
        self.session
            .database
            .read(table.rel(), page, HEAP_READ_NS * u64::from(access.rows));
        for _ in 0..access.rows {
            let writer = if at_home && access.what == RowAction::Change {
                let xid = self.xid();
                let last = self.session.database.writer(table.rel(), page, xid);
                if last == xid { LOADER } else { last }
            } else {
                LOADER
            };
            self.session.meet(writer);
        }
        page
    }

    fn change(&mut self, access: Access) {
        let page = self.find(access);
        let _span = span("update");
        let xid = self.xid();
        for _ in 0..access.rows {
            let row = &ROW[..access.table.row_bytes()];
            self.session
                .database
                .change(xid, access.table.rel(), page, HEAP_CHANGE_NS, row);
        }
    }

    /// Inserts a row into the session's heap pages and into the leaves of its warehouse.
    fn insert(&mut self, table: Table) {
        let _span = span("insert");
        let xid = self.xid();
        self.rows += 1;
        // A page holds some hundred of these rows.
        let own = self.session.number * OWN_PAGES + self.rows / 100 % OWN_PAGES;
        let database = &self.session.database;
        let row = &ROW[..table.row_bytes()];
        database.change(xid, table.rel(), table.heap_pages() + own, HEAP_CHANGE_NS, row);
        for index in table.indexes() {
            let leaf = self.descend(index, self.home);
            let entry = &ROW[..16];
            database.change(xid, index.rel, leaf, INDEX_PAGE_NS, entry);
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
    let tables = tables::all(clients);
    let (database, sessions) = pgbench::open(simulation, experiment, variant, clients, &tables);
    // Pages are in the frames in the order of the tables.
    let mut first = 0;
    for (rel, pages) in tables {
        if tables::is_index(rel) {
            simulation.name(&database.pool.frames()[first], "index roots");
        }
        first += pages as usize;
    }
    simulation.name(database.procs.latch_memory(), LATCH);
    pgbench::spawn_log_writer(simulation, experiment, &database, meter);
    let tally = Tally::within(Rc::clone(meter));
    let parameters = &experiment.parameters;
    for session in sessions {
        let mut client = Client {
            deck: Deck::default(),
            home: session.number % WAREHOUSES,
            work_ns: (parameters.work_us * 1e3) as u64,
            arrays: parameters.arrays != 0.0,
            calls: parameters.calls != 0.0,
            rows: 0,
            xid: None,
            held: Vec::new(),
            session,
        };
        let (tally, client_ns) = (Rc::clone(&tally), client.session.client_ns);
        client::spawn(simulation, meter, client_ns, move |began| {
            let done = client.transaction();
            tally.done(began, done);
        });
    }
    tally
}

const _: () = assert!(Kind::ALL.len() == WORK_PERCENT.len());
