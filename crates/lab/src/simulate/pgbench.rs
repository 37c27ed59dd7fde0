//! pgbench's transactions as skeletons: the real latches, transaction bookkeeping, buffer pool and log, and between
//! them charged work.
//!
//! | real, instantiated with `Simulated` | stands for itself |
//! | --- | --- |
//! | `ProcArray` | snapshots (one a statement), xids, the end of transactions |
//! | `BufferPool` | finding and pinning a page, its content latch, marking it changed; all pages are resident |
//! | `Wal` | insertion latches, reservation, flush |
//! | `CommitPath` with `CommitLog`, `LockManager` and `Commits` | the end of a transaction, each step that the engine's has |
//! | `CommitStates`, `SeenCommits` | what the snapshots say of the rows' writers, what answers depend on, and the wait before each |
//! | `Commits::flush_in_background` | the log writer, where commits do not wait for the disk |
//!
//! Charged: everything else, `work_us` a transaction, in parts that follow the statements: protocol,
//! planning, executor, B+tree binary searches, tuple work, memory. The parts' proportions are fixed here;
//! only their sum is calibrated. An update asks the commit log about `status_questions` transactions, drawn from the
//! newest `status_xids`: rows that another one changed carry its xid, and no hint of its end yet. Left out: relation locks (the fast path touches the session's own lines
//! alone; `point_select` has them), row locks, so that no session waits for another's transaction, extending
//! relations, checkpoints, vacuum, the visibility map. Of the end of a transaction: publishing definitions and unlinking files, since none are changed.
//!
//! The tables are folded: instead of a page for each of the real ones there are [`HEAP_PAGES`] and
//! [`LEAF_PAGES`], enough that two of a few hundred clients rarely meet on one, as at the real scale. Each has its
//! 8 KiB in the pool, 400 MiB in all, but of the bytes only the log position of changed pages is ever touched, and the
//! operating system provides no more than those pieces.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clearway_machine::{Machine, WaitEvent, WaitScope, Work};
use clearway_sim::{Latency, Simulated, Simulation, charge_drawn, device, random_below, span};
use clearway_storage::wal::record::RecordKind;
use clearway_storage::wal::{LogDevice, LogOptions, Wal};
use clearway_storage::{
    AnswerLevel, BufferPool, CommitOptions, CommitPath, CommitStates, CommitWait, Commits, Lsn, PageId,
    PinnedPage, Reader, RelId, SeenCommits, SessionSnapshot,
};
use clearway_txn::{
    COMMIT_LOG_PAGE_SIZE, CommitLog, LockManager, LockOptions, ProcArray, ProcId, StatusDevice, Xid,
};

use crate::simulate::client;
use crate::simulate::experiment::{Experiment, Variant, WorkloadKind};
use crate::simulate::meter::Meter;
use crate::simulate::pages::TablePages;

const HEAP_PAGES: u32 = 32_768;
const LEAF_PAGES: u32 = 8_192;
/// Inner pages between the root and the leaves.
const INNER_PAGES: u32 = 256;
/// Rows of history a page; each session fills pages of its own.
const HISTORY_ROWS: u32 = 150;
/// Branches at scale 900; tellers are ten times as many.
const BRANCHES: u64 = 900;
/// Denominator of the share of writing transactions.
const PARTS: u64 = 1_000_000;
/// Uses of a page before the simulation begins.
const USES: u32 = 8;
/// The log writer's sleep between two flushes: the engine's default.
const LOG_WRITER_DELAY: Duration = Duration::from_millis(10);
/// The xid of the transaction that loaded the tables.
pub(super) const LOADER: Xid = Xid(1 << 19);
/// Payload bytes of log records, as PostgreSQL's pg_waldump shows them for these statements (headers apart).
const UPDATE_BYTES: usize = 120;
const INSERT_BYTES: usize = 80;
/// Work within an index page, and within a heap page that is read or changed, ns.
pub(super) const INDEX_PAGE_NS: u64 = 200;
pub(super) const HEAP_READ_NS: u64 = 300;
pub(super) const HEAP_CHANGE_NS: u64 = 500;

pub(super) const ACCOUNTS: RelId = RelId(16);
const ACCOUNTS_INDEX: RelId = RelId(17);
const HISTORY: RelId = RelId(18);
const TELLERS: RelId = RelId(19);
const BRANCHES_TABLE: RelId = RelId(20);

/// The log's device: writing takes the CPU, syncing does not.
#[derive(Debug)]
pub(super) struct Disk {
    write: Latency,
    sync: Latency,
}

impl LogDevice for Disk {
    fn make_room(&self, _position: u64) -> io::Result<()> {
        Ok(())
    }
    fn write(&self, _position: u64, _bytes: &[u8]) -> io::Result<()> {
        let _wait = WaitScope::<Simulated>::enter(WaitEvent::WalWrite);
        charge_drawn(&self.write);
        Ok(())
    }
    fn sync(&self, _from: u64, _to: u64) -> io::Result<()> {
        let _wait = WaitScope::<Simulated>::enter(WaitEvent::WalSync);
        device(&self.sync);
        Ok(())
    }
    fn read(&self, _position: u64, _bytes: &mut [u8]) -> io::Result<usize> {
        Ok(0)
    }
    fn forget_before(&self, _position: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Commit-log pages that are never written out: a checkpoint is far away.
struct NoPages;

impl StatusDevice for NoPages {
    fn read_page(&self, _number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        page.fill(0);
        Ok(false)
    }
    fn write_page(&self, _number: u32, _page: &[u8; COMMIT_LOG_PAGE_SIZE], _lsn: u64) -> io::Result<()> {
        Ok(())
    }
}

/// The parts that all sessions share.
pub(super) struct Database {
    pub(super) procs: Arc<ProcArray<Simulated>>,
    pub(super) pool: BufferPool<Simulated, TablePages>,
    pub(super) log: Wal<Simulated, Disk>,
    commit_log: CommitLog<Simulated, NoPages>,
    pub(super) locks: LockManager<Simulated>,
    commits: Commits<Simulated>,
    /// The transaction that last changed each teller and each branch, or each warehouse and its districts.
    writers: RefCell<BTreeMap<(RelId, u32), Xid>>,
    synchronous: bool,
}

impl Database {
    /// A database whose tables have these numbers of pages, all of them resident.
    fn new(experiment: &Experiment, variant: &Variant, clients: usize, tables: &[(RelId, u32)]) -> Self {
        let parameters = &experiment.parameters;
        let disk = Disk {
            write: experiment.devices.log_write_us.times(parameters.device_factor),
            sync: experiment.devices.log_sync_us.times(parameters.device_factor),
        };
        let log = LogOptions {
            commit_delay: Duration::from_nanos((parameters.commit_delay_us * 1e3) as u64),
            ..variant.mechanisms.log_options()
        };
        let pages: u32 = tables.iter().map(|(_, pages)| pages).sum();
        let options = variant.of_its_time.buffer_pool_options(&variant.mechanisms);
        let pool = BufferPool::with_frames(pages as usize, options, TablePages { read: None });
        for &(rel, pages) in tables {
            for block in 0..pages {
                // As often as lets the clock pass a page the longest: the pages of a pool that is in use.
                for _ in 0..USES {
                    pool.pin(PageId { rel, block }).expect("a frame for each page");
                }
            }
        }
        let idle_sessions = parameters.idle_sessions as u32;
        let procs = Arc::new(ProcArray::new(
            clients as u32 + idle_sessions,
            variant.mechanisms.proc_array_options(),
            Xid(1 << 20),
        ));
        for _ in 0..idle_sessions {
            procs.attach().expect("a slot for each session");
        }
        Self {
            locks: LockManager::with_options(
                Arc::clone(&procs),
                LockOptions {
                    deadlock_timeout: Duration::MAX,
                    ..variant.mechanisms.lock_options()
                },
            ),
            commits: Commits::new(CommitOptions::new(
                clients as u32,
                variant.mechanisms.commit_variants(),
            )),
            writers: RefCell::default(),
            synchronous: experiment.synchronous_commit,
            procs,
            pool,
            log: Wal::new(disk, log, Lsn(1 << 24), Lsn(1 << 24)),
            commit_log: CommitLog::new(
                NoPages,
                variant.of_its_time.commit_log_options(&variant.mechanisms),
            ),
        }
    }

    fn commit_path(&self) -> CommitPath<'_, Simulated, Disk, NoPages> {
        CommitPath {
            log: &self.log,
            commit_log: &self.commit_log,
            locks: &self.locks,
            commits: &self.commits,
            wall_clock: || (Simulated::now() / 1_000) as i64,
        }
    }

    fn states(&self) -> CommitStates<'_, Simulated, Disk, NoPages> {
        CommitStates {
            log: &self.log,
            commit_log: &self.commit_log,
            array: &self.procs,
            commits: &self.commits,
        }
    }

    /// The transaction that changed the row on this page last, which `xid` changes now.
    pub(super) fn writer(&self, rel: RelId, block: u32, xid: Xid) -> Xid {
        let writer = self.writers.borrow_mut().insert((rel, block), xid);
        writer.unwrap_or(LOADER)
    }

    fn pin(&self, rel: RelId, block: u32) -> PinnedPage<'_, Simulated> {
        let pinned = self.pool.pin(PageId { rel, block });
        pinned.expect("every page is resident")
    }

    /// Reads a page as the engine reads leaves and heap pages: under its shared latch, or without a pin.
    pub(super) fn read(&self, rel: RelId, block: u32, work_ns: u64) {
        if self.pool.reads_unpinned() {
            return self.read_inner(rel, block, work_ns);
        }
        let _page = self.pin(rel, block).into_shared();
        Simulated::charge(Work::Nanos(work_ns));
    }

    /// Reads a page as the engine reads the inner pages of an index.
    pub(super) fn read_inner(&self, rel: RelId, block: u32, work_ns: u64) {
        let read = self.pool.read(PageId { rel, block }, |_| {
            Simulated::charge(Work::Nanos(work_ns));
            Some(())
        });
        read.expect("every page is resident");
    }

    /// Works on a page under its exclusive latch, and logs the change.
    pub(super) fn change(&self, xid: Xid, rel: RelId, block: u32, work_ns: u64, bytes: &[u8]) {
        let mut page = self.pin(rel, block).into_exclusive();
        page.change_and_log(
            |_| Simulated::charge(Work::Nanos(work_ns)),
            || self.log.insert_any(RecordKind::CHANGE, xid, bytes),
        );
    }
}

/// One client's session.
pub(super) struct Session {
    pub(super) database: Rc<Database>,
    pub(super) proc: ProcId,
    pub(super) number: u32,
    snapshot: SessionSnapshot,
    seen: SeenCommits,
    rows: u32,
    /// A hundredth of the transaction's work, ns.
    percent: u64,
    pub(super) client_ns: u64,
    /// Transactions of a mixed workload that write, of [`PARTS`].
    writing_parts: u64,
    /// Questions to the commit log in an update, and the newest xids that they are about.
    status_questions: u64,
    status_xids: u64,
}

impl Session {
    pub(super) fn work(&self, percent: u64) {
        client::work(self.percent * percent);
    }

    /// A statement begins. `with_rows`: it answers with more than a number of rows.
    pub(super) fn begin_statement(&mut self, with_rows: bool) {
        let _span = span("snapshot");
        let database = &self.database;
        self.snapshot.take(&database.commits, &database.log, |snapshot| {
            database.procs.snapshot(self.proc, snapshot);
        });
        self.seen.begin_statement(with_rows);
    }

    /// A statement ends: its answer waits for what it depends on.
    pub(super) fn end_statement(&self) {
        self.database.procs.clear_xmin(self.proc);
        self.seen.end_statement();
        self.seen.wait_before_answer(&self.database.log);
    }

    /// A row is met that `writer`, which has committed, has changed, and found by its key: its new version counts as
    /// the old one would.
    pub(super) fn meet(&self, writer: Xid) {
        let row = self.seen.begin_row();
        let reader = Reader::of_session(&self.snapshot, &self.seen);
        let answer = self.database.states().committed_at_snapshot(&reader, writer);
        answer.expect("the devices of a simulation do not fail");
        self.seen.prove_row(row);
    }

    /// Down the index to an account's leaf.
    fn descend(&self, account: u64) {
        let _span = span("descend");
        let leaf = (account % u64::from(LEAF_PAGES)) as u32;
        let inner = 1 + leaf % INNER_PAGES;
        for block in [0, inner] {
            self.database.read_inner(ACCOUNTS_INDEX, block, INDEX_PAGE_NS);
        }
        self.database
            .read(ACCOUNTS_INDEX, 1 + INNER_PAGES + leaf, INDEX_PAGE_NS);
    }

    /// Asks about transactions before `xid` whose end no row says yet.
    fn ask_for_statuses(&self, xid: Xid) {
        for _ in 0..self.status_questions {
            let asked = xid.0 - 1 - random_below(self.status_xids.max(1));
            let status = self.database.commit_log.get(Xid(asked));
            status.expect("the devices of a simulation do not fail");
        }
    }

    fn update_row(&self, xid: Xid, rel: RelId, block: u32) {
        let _span = span("update");
        // Reading the old version, then changing the page and logging it under the exclusive latch.
        self.database.read(rel, block, HEAP_READ_NS);
        self.database
            .change(xid, rel, block, HEAP_CHANGE_NS, &[0; UPDATE_BYTES]);
    }

    /// A transaction of pgbench's, or of the mix.
    pub(super) fn transaction(&mut self, kind: WorkloadKind) {
        let writes = kind != WorkloadKind::Mixed || random_below(PARTS) < self.writing_parts;
        if writes {
            self.update(kind);
        } else {
            self.select();
        }
    }

    /// A SELECT by key that is a transaction by itself.
    fn select(&mut self) {
        self.work(10);
        self.select_row(random_below(u64::from(u32::MAX)));
        self.work(14);
    }

    /// Reads an account under a snapshot of its own.
    pub(super) fn select_row(&mut self, account: u64) {
        self.begin_statement(true);
        self.descend(account);
        self.meet(LOADER);
        let heap_page = (account % u64::from(HEAP_PAGES)) as u32;
        self.database.read(ACCOUNTS, heap_page, HEAP_READ_NS);
        self.end_statement();
    }

    /// A transaction of several statements that changes rows.
    fn update(&mut self, kind: WorkloadKind) {
        let database = Rc::clone(&self.database);
        let account = random_below(u64::from(u32::MAX));
        let heap_page = (account % u64::from(HEAP_PAGES)) as u32;
        // BEGIN
        self.work(4);
        client::answer(self.client_ns);
        // UPDATE accounts
        self.work(16);
        self.begin_statement(false);
        self.descend(account);
        self.meet(LOADER);
        let xid = database.procs.assign_xid(self.proc);
        self.ask_for_statuses(xid);
        self.update_row(xid, ACCOUNTS, heap_page);
        self.end_statement();
        self.work(16);
        client::answer(self.client_ns);
        // SELECT accounts
        self.work(10);
        self.begin_statement(true);
        self.descend(account);
        // The session's own version of the row: nothing to look up.
        database.read(ACCOUNTS, heap_page, HEAP_READ_NS);
        self.end_statement();
        self.work(14);
        client::answer(self.client_ns);
        if kind == WorkloadKind::TpcbLike {
            let branch = random_below(BRANCHES);
            for (rel, block) in [
                (TELLERS, branch * 10 + random_below(10)),
                (BRANCHES_TABLE, branch),
            ] {
                self.work(7);
                self.begin_statement(false);
                self.meet(database.writer(rel, block as u32, xid));
                self.update_row(xid, rel, block as u32);
                self.end_statement();
                self.work(7);
                client::answer(self.client_ns);
            }
        }
        // INSERT history
        let last = if kind == WorkloadKind::TpcbLike { 12 } else { 40 };
        self.work(last / 4);
        self.begin_statement(false);
        self.insert(xid, HISTORY, HISTORY_ROWS);
        self.end_statement();
        self.work(last / 2);
        client::answer(self.client_ns);
        // END
        self.work(last - last / 4 - last / 2);
        self.commit(xid);
    }

    /// Inserts a row into one of the two pages that the session fills in turn.
    pub(super) fn insert(&mut self, xid: Xid, rel: RelId, rows_per_page: u32) {
        self.rows += 1;
        let block = self.number * 2 + self.rows / rows_per_page % 2;
        let _span = span("insert");
        self.database.change(xid, rel, block, 400, &[0; INSERT_BYTES]);
    }

    /// Commits, and gives back what the transaction held.
    pub(super) fn commit(&self, xid: Xid) {
        let _span = span("commit");
        let database = &self.database;
        database
            .commit_path()
            .commit(self.proc, xid, CommitWait::synchronous(database.synchronous), ())
            .expect("the devices of a simulation do not fail");
        self.seen.end_transaction();
    }

    /// The end of a transaction that has changed nothing.
    pub(super) fn end_without_xid(&self) {
        self.database.procs.clear_xmin(self.proc);
        self.database.locks.release_all(self.proc);
        self.seen.end_transaction();
    }
}

pub(crate) fn spawn(
    simulation: &mut Simulation,
    experiment: &Experiment,
    variant: &Variant,
    clients: usize,
    meter: &Rc<Meter>,
    transaction: fn(&mut Session, WorkloadKind),
) {
    let tables = [
        (ACCOUNTS, HEAP_PAGES),
        (ACCOUNTS_INDEX, 1 + INNER_PAGES + LEAF_PAGES),
        (HISTORY, clients as u32 * 2),
        (TELLERS, BRANCHES as u32 * 10),
        (BRANCHES_TABLE, BRANCHES as u32),
    ];
    let (database, sessions) = open(simulation, experiment, variant, clients, &tables);
    simulation.name(&database.pool.frames()[HEAP_PAGES as usize], "index root");
    spawn_log_writer(simulation, experiment, &database, meter);
    let kind = experiment.workload;
    for mut session in sessions {
        let (own_meter, client_ns) = (Rc::clone(meter), session.client_ns);
        client::spawn(simulation, meter, client_ns, move |began| {
            transaction(&mut session, kind);
            own_meter.done(began);
        });
    }
}

/// A database with tables of these numbers of pages, and a session for each client.
pub(super) fn open(
    simulation: &mut Simulation,
    experiment: &Experiment,
    variant: &Variant,
    clients: usize,
    tables: &[(RelId, u32)],
) -> (Rc<Database>, Vec<Session>) {
    let database = simulation.enter(|| {
        let database = Rc::new(Database::new(experiment, variant, clients, tables));
        let procs = (0..clients).map(|_| database.procs.attach());
        let procs: Vec<_> = procs.map(|proc| proc.expect("a slot for each client")).collect();
        (database, procs)
    });
    let (database, procs) = database;
    simulation.name(&*database.procs, "ProcArray");
    simulation.name(&database.log, "log");
    simulation.name(&database.commit_log, "commit log");
    simulation.name(&database.commits, "commits");
    let frames = database.pool.frames();
    simulation.name(frames, "frames");
    let percent = (experiment.parameters.work_us * 10.0) as u64;
    let client_ns = (experiment.parameters.client_us * 1e3) as u64;
    let writing_parts = (experiment.parameters.write_percent / 100.0 * PARTS as f64) as u64;
    let sessions = procs.into_iter().zip(0..).map(|(proc, number)| Session {
        database: Rc::clone(&database),
        proc,
        number,
        snapshot: SessionSnapshot::default(),
        seen: {
            let seen = SeenCommits::default();
            seen.set_level(AnswerLevel::local(database.synchronous));
            seen
        },
        rows: 0,
        percent,
        client_ns,
        writing_parts,
        status_questions: experiment.parameters.status_questions as u64,
        status_xids: experiment.parameters.status_xids as u64,
    });
    let sessions = sessions.collect();
    (database, sessions)
}

/// The worker that flushes the log behind the commits, if the experiment has one.
pub(super) fn spawn_log_writer(
    simulation: &mut Simulation,
    experiment: &Experiment,
    database: &Rc<Database>,
    meter: &Rc<Meter>,
) {
    if !experiment.has_log_writer() {
        return;
    }
    let (database, meter) = (Rc::clone(database), Rc::clone(meter));
    simulation.spawn(move || {
        while meter.goes_on() {
            {
                let _wait = WaitScope::<Simulated>::enter(WaitEvent::WalWriterMain);
                Simulated::sleep(LOG_WRITER_DELAY);
            }
            database.commits.flush_in_background(&database.log);
        }
    });
}
