//! Point SELECTs on a standby beside its replay, while a transaction of the primary stays open.
//!
//! | real, instantiated with `Simulated` | on a standby |
//! | --- | --- |
//! | `CleanedUp::take_snapshot` with `KnownXids` and `ProcArray` | each snapshot (`storage/src/replication/standby_state/snapshot.rs`) |
//! | `ReplayedXids`, `CommitLog::set` | what replay does of a transaction's begin and end, in its order (`standby/replay`) |
//! | the table's relation lock, `BufferPool` | a SELECT by key, as in [`point_select`](super::point_select) |
//!
//! One worker replays without pause: a transaction is `replay_us` of work, the beginning of the next xid, and the end of
//! one of those that run, drawn among them. Replay that reads and changes pages is not generic over the machine, so that
//! part is charged; readers and replay do not meet on pages here. A reader's row was written by a transaction that ended
//! before the first snapshot, and is hinted: with an old transaction open the reader looks for it in its snapshot's list.
//!
//! # Set-up
//! Outside of simulated time, by the same calls:
//! 1. A record of running transactions makes the known xids complete.
//! 2. A long range's xids but for the last begin, and end in large groups, without the first.
//! 3. The last [`ONE_BY_ONE`] go through the replayer's own step, so that compactions, hints and journal are as they are in
//!    the long run. Snapshots are taken in between.
//!
//! If `range_xids` is not 0, one transaction begins that many before the end, and stays open.
//!
//! Left out beside what `point_select` leaves out: reading the log, records of running transactions (every 15 s),
//! cleanups, definitions, pauses of replay, subtransactions.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clearway_machine::{Machine, Work};
use clearway_sim::{Simulated, Simulation, WorkerTimes, clock_ns, random_below, span, worker_times};
use clearway_storage::{BufferPool, PageId, RelId};
use clearway_txn::{
    CleanedUp, CommitLog, KnownXids, KnownXidsOptions, LockManager, LockMode, LockOptions, LockTag, LockWait,
    NoPages, ProcArray, ProcId, ReplayedXids, RunningTransactions, Snapshot, Status, Xid,
};
use serde::{Deserialize, Serialize};

use crate::simulate::client;
use crate::simulate::experiment::{Experiment, Parameters, Variant};
use crate::simulate::meter::Meter;
use crate::simulate::pages::TablePages;

/// The first transaction.
const FIRST: Xid = Xid(1 << 20);
/// Transactions that end one by one before the simulation begins: 390 compactions of the rule of 2022.
const ONE_BY_ONE: u64 = 50_000;
/// Of these, how many between two snapshots.
const ENDS_A_SNAPSHOT: u64 = 500;
/// Transactions that end at once before.
const GROUP: u64 = 1 << 20;
/// Room beyond the range that the standby has at most: no more is used in the window, and this host has to hold it.
const ROOM: u64 = 1 << 20;
/// The most of the set-up's newest transactions that have written the rows.
const WRITERS: u64 = 40_000;

const TABLE: RelId = RelId(16);
const INDEX: RelId = RelId(17);
/// Rows, each with a leaf and a heap page of its own.
const ROWS: u64 = 256;
/// Work within root, inner page, leaf and heap page, ns.
const PAGES_NS: [u64; 4] = [200, 200, 200, 300];

/// The throughput of a standby's replay in the measured window, and the cost of snapshots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StandbyFigures {
    /// Transactions that replay ended, a simulated second.
    pub ended_per_second: f64,
    /// CPU time in snapshots, of the CPU time of the readers' transactions.
    pub snapshot_share: f64,
    /// Time that readers slept at the latch of the known xids, of their transactions' time.
    pub readers_wait_share: f64,
    /// Time that replay slept at that latch, of its time.
    pub replay_waits_share: f64,
    /// CPU time of replay's adds and removes, of its CPU time.
    pub replay_known_share: f64,
}

/// Time in the measured window, ns.
#[derive(Debug, Default)]
struct MeasuredTime {
    clock: f64,
    on_cpu: f64,
    asleep: f64,
}

#[derive(Debug, Default)]
struct Sums {
    transactions: MeasuredTime,
    snapshots: MeasuredTime,
    replay: MeasuredTime,
    known: MeasuredTime,
    ended: u64,
}

/// The counts that readers and replay report to.
#[derive(Debug)]
pub(crate) struct Tally {
    meter: Rc<Meter>,
    sums: RefCell<Sums>,
}

impl Tally {
    pub(super) fn within(meter: Rc<Meter>) -> Rc<Self> {
        Rc::new(Self {
            meter,
            sums: RefCell::default(),
        })
    }

    /// Adds what the calling worker has spent since `began`, as far as it lies in the window.
    fn add(&self, began: WorkerTimes, to: impl FnOnce(&mut Sums) -> &mut MeasuredTime) {
        let now = worker_times();
        let part = self.meter.part_in_window(began.clock_ns, now.clock_ns);
        let mut sums = self.sums.borrow_mut();
        let spent = to(&mut sums);
        spent.clock += part * (now.clock_ns - began.clock_ns) as f64;
        spent.on_cpu += part * (now.on_cpu_ns - began.on_cpu_ns) as f64;
        spent.asleep += part * (now.asleep_ns - began.asleep_ns) as f64;
    }

    /// Replay has ended a transaction now.
    fn ended(&self) {
        let now = clock_ns();
        if self.meter.part_in_window(now.saturating_sub(1), now) > 0.0 {
            self.sums.borrow_mut().ended += 1;
        }
    }

    pub(crate) fn figures(&self, measure_ms: u64) -> StandbyFigures {
        let sums = self.sums.borrow();
        let share = |part: f64, whole: f64| part / whole.max(1.0);
        StandbyFigures {
            ended_per_second: sums.ended as f64 * 1e3 / measure_ms as f64,
            snapshot_share: share(sums.snapshots.on_cpu, sums.transactions.on_cpu),
            readers_wait_share: share(sums.snapshots.asleep, sums.transactions.clock),
            replay_waits_share: share(sums.known.asleep, sums.replay.clock),
            replay_known_share: share(sums.known.on_cpu, sums.replay.on_cpu),
        }
    }
}

/// The parts that readers and replay share.
pub(super) struct Standby {
    pub(super) known: KnownXids<Simulated>,
    /// The most transactions that may run.
    room: u32,
    cleaned: CleanedUp<Simulated>,
    pub(super) procs: Arc<ProcArray<Simulated>>,
    locks: LockManager<Simulated>,
    pub(super) commit_log: CommitLog<Simulated, NoPages>,
    pub(super) pool: Arc<BufferPool<Simulated, TablePages>>,
}

impl Standby {
    /// A standby with the tables that readers use, and `replayed`, each with its number of pages.
    pub(super) fn new(
        parameters: &Parameters,
        variant: &Variant,
        readers: usize,
        replayed: &[(RelId, u32)],
    ) -> Self {
        let mechanisms = &variant.mechanisms;
        // As many as run there, at least.
        let sessions = parameters.primary_sessions.max(parameters.running_xids + 2.0) as u32;
        let known = KnownXidsOptions {
            variant: mechanisms.known_xids,
            compaction: mechanisms.known_xids_compaction,
            lwlock: mechanisms.lwlock_options(),
            ..KnownXidsOptions::for_sessions(sessions)
        };
        let room = parameters.range_xids as u64 + parameters.running_xids as u64 + ROOM;
        let room = u64::from(known.capacity).min(room) as u32;
        let known = KnownXidsOptions {
            capacity: room,
            ..known
        };
        let procs = Arc::new(ProcArray::new(
            readers as u32,
            mechanisms.proc_array_options(),
            FIRST,
        ));
        let read = [(TABLE, ROWS as u32), (INDEX, 2 + ROWS as u32)];
        let tables = || read.iter().chain(replayed).copied();
        let frames: u32 = tables().map(|(_, pages)| pages).sum();
        let device = TablePages { read: None };
        let pool = BufferPool::with_frames(frames as usize, mechanisms.buffer_pool_options(), device);
        for (rel, pages) in tables() {
            for block in 0..pages {
                pool.pin(PageId { rel, block }).expect("a frame for each page");
            }
        }
        Self {
            known: KnownXids::new(known),
            room,
            cleaned: CleanedUp::default(),
            locks: LockManager::with_options(
                Arc::clone(&procs),
                LockOptions {
                    deadlock_timeout: Duration::MAX,
                    ..mechanisms.lock_options()
                },
            ),
            procs,
            commit_log: CommitLog::new(NoPages, mechanisms.commit_log_options()),
            pool: Arc::new(pool),
        }
    }

    pub(super) fn replay(&self) -> ReplayedXids<'_, Simulated> {
        self.known.replay().expect("one worker replays at a time")
    }

    fn take_snapshot(&self, proc: ProcId, snapshot: &mut Snapshot) {
        let taken = self
            .cleaned
            .take_snapshot(&self.known, &self.procs, proc, snapshot);
        taken.expect("the known xids are complete");
    }

    /// Reads a page as the engine reads leaves and heap pages.
    fn read(&self, rel: RelId, block: u32, work_ns: u64) {
        if self.pool.reads_unpinned() {
            return self.read_inner(rel, block, work_ns);
        }
        let pinned = self.pool.pin(PageId { rel, block });
        let _page = pinned.expect("every page is resident").into_shared();
        Simulated::charge(Work::Nanos(work_ns));
    }

    fn read_inner(&self, rel: RelId, block: u32, work_ns: u64) {
        let read = self.pool.read(PageId { rel, block }, |_| {
            Simulated::charge(Work::Nanos(work_ns));
            Some(())
        });
        read.expect("every page is resident");
    }
}

/// Replay's view of the primary's transactions.
pub(super) struct Primary {
    /// Without the one that stays open.
    pub(super) running: Vec<Xid>,
    running_max: usize,
    open: Option<Xid>,
    next: Xid,
}

impl Primary {
    /// The next transaction begins, as replay meets its first record.
    pub(super) fn begin(&mut self, replay: &mut ReplayedXids<'_, Simulated>) -> Xid {
        let xid = self.next;
        replay.add(xid, xid).expect("there is room");
        self.next = xid.next();
        xid
    }

    /// Of the transactions that run, more than the primary has at a time, the one that ends next.
    pub(super) fn next_end(&mut self) -> Option<Xid> {
        let ends = self.running.len() > self.running_max;
        ends.then(|| {
            let drawn = random_below(self.running.len() as u64) as usize;
            self.running.swap_remove(drawn)
        })
    }

    /// A transaction's end, in the order of `has_ended` of `standby/replay`.
    pub(super) fn end(standby: &Standby, replay: &mut ReplayedXids<'_, Simulated>, xid: Xid) {
        let set = standby.commit_log.set(xid, Status::Committed, xid.0);
        set.expect("pages in memory do not fail");
        replay.remove(xid);
    }

    /// The newest transaction that ended before all that run, and how many before it have ended too: those who wrote the
    /// rows.
    pub(super) fn writers(&self) -> (Xid, u64) {
        let oldest = self.running.iter().min().unwrap_or(&self.next);
        let newest = oldest.0 - 1;
        match self.open {
            None => (Xid(newest), WRITERS),
            Some(open) if open.0 < newest => (Xid(newest), WRITERS.min(newest - open.0)),
            Some(open) => (Xid(newest.min(open.0 - 1)), 1),
        }
    }
}

/// The past of the standby; the primary at its end.
pub(super) fn set_up(standby: &Standby, proc: ProcId, parameters: &Parameters) -> Primary {
    let range = parameters.range_xids as u64;
    let mut replay = standby.replay();
    let nothing_ran = RunningTransactions {
        next: FIRST,
        oldest_running: FIRST,
        newest_ended: Xid(FIRST.0 - 1),
        running: &[],
        overflowed: false,
        prepared: &[],
    };
    replay.apply(&nothing_ran).expect("the record is sound");
    let mut primary = Primary {
        running: Vec::new(),
        running_max: parameters.running_xids.max(1.0) as usize,
        open: None,
        next: FIRST,
    };
    if range >= ONE_BY_ONE {
        let open = primary.begin(&mut replay);
        primary.open = Some(open);
        let one_by_one = primary.next.0 + range - ONE_BY_ONE;
        let group = GROUP.min(u64::from(standby.room / 2));
        while primary.next.0 < one_by_one {
            let last = Xid((primary.next.0 + group).min(one_by_one) - 1);
            replay.add(primary.next, last).expect("half of the room");
            primary.next = last.next();
            replay.remove_preceding(primary.next, &[open]);
        }
    }
    let mut snapshot = Snapshot::default();
    for left in (0..ONE_BY_ONE).rev() {
        if left < range && primary.open.is_none() {
            primary.open = Some(primary.begin(&mut replay));
        }
        let xid = primary.begin(&mut replay);
        primary.running.push(xid);
        if let Some(xid) = primary.next_end() {
            Primary::end(standby, &mut replay, xid);
        }
        if left % ENDS_A_SNAPSHOT == 0 {
            standby.take_snapshot(proc, &mut snapshot);
            standby.procs.clear_xmin(proc);
        }
    }
    primary
}

/// One client's session.
struct Reader {
    standby: Rc<Standby>,
    tally: Rc<Tally>,
    proc: ProcId,
    snapshot: Snapshot,
    /// The newest of them, and how many there are.
    writers: (Xid, u64),
    /// Half of the work beside the pages, ns.
    half_ns: u64,
    client_ns: u64,
}

impl Reader {
    /// One SELECT by key.
    fn select(&mut self) {
        let standby = Rc::clone(&self.standby);
        client::work(self.half_ns);
        let wait = LockWait {
            timeout: None,
            cancel: &|| false,
        };
        let locked =
            standby
                .locks
                .acquire(self.proc, LockTag::Relation(TABLE.0), LockMode::AccessShare, wait);
        locked.expect("no session takes a strong lock");
        {
            let _span = span("snapshot");
            let began = worker_times();
            standby.take_snapshot(self.proc, &mut self.snapshot);
            self.tally.add(began, |sums| &mut sums.snapshots);
        }
        let row = random_below(ROWS) as u32;
        let [root, inner, leaf, heap] = PAGES_NS;
        standby.read_inner(INDEX, 0, root);
        standby.read_inner(INDEX, 1, inner);
        standby.read(INDEX, 2 + row, leaf);
        let (newest, count) = self.writers;
        let writer = Xid(newest.0 - random_below(count));
        let met = self.snapshot.sees_committed(writer, &standby.commit_log);
        assert!(
            met.expect("pages in memory do not fail"),
            "{writer} had ended before the first snapshot"
        );
        standby.read(TABLE, row, heap);
        standby.procs.clear_xmin(self.proc);
        standby.locks.release_all(self.proc);
        client::work(self.half_ns);
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
    let tally = Tally::within(Rc::clone(meter));
    let (standby, procs, mut primary) = simulation.enter(|| {
        let standby = Rc::new(Standby::new(parameters, variant, clients, &[]));
        let procs = (0..clients).map(|_| standby.procs.attach());
        let procs: Vec<_> = procs.map(|proc| proc.expect("a slot for each client")).collect();
        let primary = set_up(&standby, procs[0], parameters);
        (standby, procs, primary)
    });
    simulation.name(&*standby.procs, "ProcArray");
    simulation.name(&standby.known, "known xids");
    simulation.name(&standby.commit_log, "commit log");
    simulation.name(standby.pool.frames(), "frames");
    let writers = primary.writers();
    let replay_ns = (parameters.replay_us * 1e3) as u64;
    {
        let (standby, tally) = (Rc::clone(&standby), Rc::clone(&tally));
        simulation.spawn(move || {
            let mut replay = standby.replay();
            while tally.meter.goes_on() {
                let began = worker_times();
                client::work(replay_ns);
                let begins = worker_times();
                let xid = primary.begin(&mut replay);
                tally.add(begins, |sums| &mut sums.known);
                primary.running.push(xid);
                if let Some(xid) = primary.next_end() {
                    let ends = worker_times();
                    Primary::end(&standby, &mut replay, xid);
                    tally.add(ends, |sums| &mut sums.known);
                    tally.ended();
                }
                tally.add(began, |sums| &mut sums.replay);
            }
        });
    }
    spawn_readers(simulation, parameters, &standby, procs, writers, &tally);
    tally
}

/// A client for each of `procs`, which looks for rows that `writers` wrote.
pub(super) fn spawn_readers(
    simulation: &mut Simulation,
    parameters: &Parameters,
    standby: &Rc<Standby>,
    procs: Vec<ProcId>,
    writers: (Xid, u64),
    tally: &Rc<Tally>,
) {
    for proc in procs {
        let mut reader = Reader {
            standby: Rc::clone(standby),
            tally: Rc::clone(tally),
            proc,
            snapshot: Snapshot::default(),
            writers,
            half_ns: (parameters.work_us * 500.0) as u64,
            client_ns: (parameters.client_us * 1e3) as u64,
        };
        let meter = Rc::clone(&tally.meter);
        simulation.spawn(move || {
            // Clients arrive over some time.
            Simulated::charge(Work::Nanos(random_below(500_000)));
            while meter.goes_on() {
                let began = (clock_ns(), worker_times());
                reader.select();
                meter.done(began.0);
                reader.tally.add(began.1, |sums| &mut sums.transactions);
                client::answer(reader.client_ns);
            }
        });
    }
}
