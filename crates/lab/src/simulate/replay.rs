//! Replay of tpcb-like on a standby, by one worker and by several.
//!
//! | real, instantiated with `Simulated` | on a standby |
//! | --- | --- |
//! | `Gathered`, `Workers`, `Stretch` | `replay = parallel`: lists, hand-over, meetings (`storage/src/standby/replay`) |
//! | `replay_change` with `BufferPool` | decoding a change, and making it with all its pages latched |
//! | `ReplayedXids`, `CommitLog::set` | a transaction's begin and end, as in [`standby`](super::standby) |
//! | the readers | point SELECTs, as in [`standby`](super::standby) |
//!
//! The log is endless and at hand. It has the records that the engine logs for a transaction of pgbench's default script:
//! how many, over which pages, and of how many bytes was counted in a log of 57,418 transactions at scale 10
//! ([standby-predictions.md](../../../../docs/standby-predictions.md#replay-by-several-workers)).
//!
//! | a transaction has | bytes |
//! | --- | --- |
//! | an update of an account, on one page, or in [`ELSEWHERE_PERCENT`] from one page to another, and then an entry of the index | 264 a page, 56 |
//! | in [`PRUNED_PERCENT`] a page of accounts pruned | 264 |
//! | a teller, a branch, a row of the history | 114, 109, 91 |
//! | its end | |
//!
//! A number of the experiment stands for code that is not generic over the machine: `read_us` for reading and decoding the
//! records of a transaction, `list_us` for copying and listing them, `change_us` for the work on its pages, and `apart_us` for
//! what that costs more on another CPU than the reader's: decoding again, and bytes that are in no cache there. Each is
//! spread over the records or pages. Branches and tellers take [`BRANCHES_A_PAGE`] a page, as was counted at scale 10. The
//! rows of the history go to one page until it is full.
//!
//! With `overlap=0` the reader waits for each stretch before it gathers the next one.
//!
//! Left out: receiving, reading pages from their files, new pages, records of running transactions, clean-ups, checkpoints.

use std::rc::Rc;
use std::sync::Arc;

use clearway_machine::WaitEvent;
use clearway_sim::{Report, Simulated, Simulation, clock_ns, random_below};
use clearway_storage::standby::replay::{
    CompletedStretch, Gathered, ReplayVariant, ReplayedPages, Workers, replay_change,
};
use clearway_storage::{BufferPool, Lsn, PageId, RelId, Result};
use clearway_txn::{ReplayedXids, Xid};
use serde::{Deserialize, Serialize};

use crate::simulate::client;
use crate::simulate::experiment::{Experiment, Parameters, Variant};
use crate::simulate::meter::Meter;
use crate::simulate::pages::TablePages;
use crate::simulate::standby::{Primary, Standby, Tally, set_up, spawn_readers};

const ACCOUNTS: RelId = RelId(20);
const BRANCHES: RelId = RelId(21);
const HISTORY: RelId = RelId(22);
const TELLERS: RelId = RelId(23);
const ACCOUNTS_INDEX: RelId = RelId(26);

/// Enough pages that two transactions of a stretch seldom meet on one.
const ACCOUNT_PAGES: u32 = 2_048;
const INDEX_PAGES: u32 = 512;
const HISTORY_PAGES: u32 = 64;
/// Rows on a page of the history.
const HISTORY_ROWS: u64 = 118;
/// At scale 10, 10 branches had 8 pages, and 100 tellers 9.
const BRANCHES_A_PAGE: f64 = 1.25;

/// Updates of an account that put the new version on another page, %.
const ELSEWHERE_PERCENT: u64 = 30;
/// Transactions that prune a page of accounts, %.
const PRUNED_PERCENT: u64 = 70;

/// Records of a transaction, and pages that they change.
const RECORDS: f64 = 6.0;
const PAGES: f64 = 5.3;

/// Shares of the time of replay's workers, over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplayFigures {
    /// Part of its time in which the worker that reads the log slept until a stretch was done.
    pub reader_waits_share: f64,
    /// Part of their time in which those that change pages slept because no stretch was there.
    pub no_stretch_share: f64,
    /// Part in which they slept at meetings.
    pub meetings_share: f64,
}

impl ReplayFigures {
    pub(crate) fn of(report: &Report, workers: usize, run_ns: u64) -> Self {
        let share = |event: WaitEvent, workers: usize| {
            let named = format!("{}:{}", event.class().name(), event.name());
            let waits = report.waits.iter().filter(|wait| wait.event == named);
            waits.map(|wait| wait.total_ns).sum::<u64>() as f64 / (run_ns * workers as u64) as f64
        };
        Self {
            reader_waits_share: share(WaitEvent::ReplayStretch, 1),
            no_stretch_share: share(WaitEvent::ReplayWorkerMain, workers),
            meetings_share: share(WaitEvent::ReplayMeeting, workers),
        }
    }
}

/// The tables, as replay changes them.
struct Tables {
    pool: Arc<BufferPool<Simulated, TablePages>>,
    /// Work for each page of a change.
    page_ns: u64,
}

impl Tables {
    fn change(&self, payload: &[u8], pages: usize, end: Lsn) -> Result<()> {
        client::work(self.page_ns * pages as u64);
        replay_change(&self.pool, payload, end, |_| Ok(true))
    }
}

impl ReplayedPages for Tables {
    fn change(&self, payload: &[u8], end: Lsn) -> Result<()> {
        self.change(payload, pages_of(payload), end)
    }
}

/// Number of pages in a change of [`Log`]: they are as long as each other.
fn pages_of(payload: &[u8]) -> usize {
    let first = PART_HEAD + usize::from(u16::from_le_bytes([payload[14], payload[15]]));
    payload.len() / first
}

/// Bytes of a page's part of a change before what is written: page, form, number of deltas, and of the one delta its kind,
/// offset and length (`storage/src/change/mod.rs`).
const PART_HEAD: usize = 16;
/// The place of the write on a page.
const OFFSET: u16 = 1_024;

/// The primary's log, as it is read.
struct Log {
    position: u64,
    payload: Vec<u8>,
    hot_pages: u64,
    history_rows: u64,
}

impl Log {
    fn new(parameters: &Parameters) -> Self {
        Self {
            position: 1 << 20,
            payload: Vec::new(),
            hot_pages: hot_pages(parameters),
            history_rows: 0,
        }
    }

    /// The records of the next transaction before its end: `replay` gets each one's payload, its pages, and where it ends.
    fn transaction(&mut self, mut replay: impl FnMut(&[u8], &[PageId], Lsn)) {
        let mut record = |bytes: usize, pages: &[PageId]| {
            self.payload.clear();
            for page in pages {
                self.payload.extend_from_slice(&page.rel.0.to_le_bytes());
                self.payload.extend_from_slice(&page.block.to_le_bytes());
                // A delta, the only one, that writes.
                self.payload.extend_from_slice(&[0, 1, 0, 0]);
                self.payload.extend_from_slice(&OFFSET.to_le_bytes());
                let written = bytes - PART_HEAD;
                self.payload.extend_from_slice(&(written as u16).to_le_bytes());
                self.payload.resize(self.payload.len() + written, 0);
            }
            self.position += self.payload.len() as u64;
            replay(&self.payload, pages, Lsn(self.position));
        };
        let page = |rel, pages: u64| PageId {
            rel,
            block: random_below(pages) as u32,
        };
        let account = page(ACCOUNTS, u64::from(ACCOUNT_PAGES));
        if random_below(100) < ELSEWHERE_PERCENT {
            let other = PageId {
                block: (account.block + 1 + random_below(9) as u32) % ACCOUNT_PAGES,
                ..account
            };
            record(264, &[account, other]);
            record(56, &[page(ACCOUNTS_INDEX, u64::from(INDEX_PAGES))]);
        } else {
            record(264, &[account]);
        }
        if random_below(100) < PRUNED_PERCENT {
            record(264, &[account]);
        }
        record(114, &[page(TELLERS, self.hot_pages)]);
        record(109, &[page(BRANCHES, self.hot_pages)]);
        let history = self.history_rows / HISTORY_ROWS % u64::from(HISTORY_PAGES);
        self.history_rows += 1;
        let history = PageId {
            rel: HISTORY,
            block: history as u32,
        };
        record(91, &[history]);
    }

    /// The end of the record of a transaction's end.
    fn end(&mut self) -> Lsn {
        self.position += 40;
        Lsn(self.position)
    }
}

/// Pages of the branches, and of the tellers.
fn hot_pages(parameters: &Parameters) -> u64 {
    (parameters.scale / BRANCHES_A_PAGE).ceil().max(1.0) as u64
}

/// The worker that reads the log.
struct LogReader<'a> {
    standby: &'a Standby,
    known: ReplayedXids<'a, Simulated>,
    primary: Primary,
    meter: &'a Meter,
    log: Log,
    /// Work for each record.
    record_ns: u64,
}

/// A transaction's end, and when its record was read.
type End = (Xid, u64);

impl LogReader<'_> {
    /// Reads the next transaction, up to its end.
    fn read(&mut self, mut replay: impl FnMut(&[u8], &[PageId], Lsn)) -> Option<End> {
        let xid = self.primary.begin(&mut self.known);
        self.primary.running.push(xid);
        let record_ns = self.record_ns;
        self.log.transaction(|payload, pages, end| {
            client::work(record_ns);
            replay(payload, pages, end);
        });
        client::work(record_ns);
        self.primary.next_end().map(|xid| (xid, clock_ns()))
    }

    /// Lets sessions see that a transaction has ended.
    fn show(&mut self, (xid, read_ns): End) {
        Primary::end(self.standby, &mut self.known, xid);
        self.meter.done(read_ns);
    }

    fn show_all(&mut self, made: Result<Option<CompletedStretch<End>>>) {
        let made = made.expect("pages in memory do not fail");
        for end in made.into_iter().flat_map(|made| made.ends) {
            self.show(end);
        }
    }

    fn replay_alone(&mut self, tables: &Tables) {
        while self.meter.goes_on() {
            let end = self.read(|payload, pages, end| {
                let changed = tables.change(payload, pages.len(), end);
                changed.expect("pages in memory do not fail");
            });
            if let Some(end) = end {
                self.show(end);
            }
            self.log.end();
        }
    }

    fn replay_with(
        &mut self,
        tables: &Arc<Tables>,
        workers: &mut Workers<Simulated, Tables>,
        overlaps: bool,
    ) {
        let mut gathered = Gathered::new(tables, workers);
        while self.meter.goes_on() {
            let end = self.read(|payload, pages, end| gathered.change(payload, pages.iter().copied(), end));
            if let Some(end) = end {
                gathered.end(end);
            }
            gathered.reached(self.log.end());
            if gathered.is_full() {
                self.show_all(gathered.hand_over());
                if !overlaps {
                    self.show_all(gathered.wait());
                }
            }
        }
        self.show_all(gathered.hand_over());
        self.show_all(gathered.wait());
    }
}

pub(crate) fn spawn(
    simulation: &mut Simulation,
    experiment: &Experiment,
    variant: &Variant,
    workers: usize,
    meter: &Rc<Meter>,
) {
    let parameters = experiment.parameters.clone();
    let readers = parameters.readers as usize;
    let is_parallel = variant.mechanisms.replay == ReplayVariant::Parallel;
    let hot_pages = hot_pages(&parameters) as u32;
    let tables = [
        (ACCOUNTS, ACCOUNT_PAGES),
        (BRANCHES, hot_pages),
        (HISTORY, HISTORY_PAGES),
        (TELLERS, hot_pages),
        (ACCOUNTS_INDEX, INDEX_PAGES),
    ];
    let (standby, mut procs, primary) = simulation.enter(|| {
        let standby = Rc::new(Standby::new(&parameters, variant, readers + 1, &tables));
        let procs = (0..=readers).map(|_| standby.procs.attach());
        let procs: Vec<_> = procs.map(|proc| proc.expect("a slot for each reader")).collect();
        let primary = set_up(&standby, procs[0], &parameters);
        (standby, procs, primary)
    });
    simulation.name(&*standby.procs, "ProcArray");
    simulation.name(&standby.known, "known xids");
    simulation.name(&standby.commit_log, "commit log");
    simulation.name(standby.pool.frames(), "frames");
    procs.truncate(readers);
    let writers = primary.writers();
    let apart_us = if is_parallel { parameters.apart_us } else { 0.0 };
    let tables = Arc::new(Tables {
        pool: Arc::clone(&standby.pool),
        page_ns: ((parameters.change_us + apart_us) * 1e3 / PAGES) as u64,
    });
    let mut team = None;
    if is_parallel {
        let (workers, all) = simulation.enter(|| Workers::new(workers));
        team = Some(workers);
        for worker in all {
            simulation.spawn(move || worker.run());
        }
    }
    {
        let (standby, meter) = (Rc::clone(&standby), Rc::clone(meter));
        let list_us = if is_parallel { parameters.list_us } else { 0.0 };
        simulation.spawn(move || {
            let mut reader = LogReader {
                standby: &standby,
                known: standby.replay(),
                primary,
                meter: &meter,
                log: Log::new(&parameters),
                record_ns: ((parameters.read_us + list_us) * 1e3 / RECORDS) as u64,
            };
            match &mut team {
                None => reader.replay_alone(&tables),
                Some(workers) => reader.replay_with(&tables, workers, parameters.overlap != 0.0),
            }
            // Ends the workers, within the simulation.
            drop(team);
        });
    }
    // What the readers reach is not the experiment's throughput.
    let tally = Tally::within(meter.like());
    spawn_readers(
        simulation,
        &experiment.parameters,
        &standby,
        procs,
        writers,
        &tally,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_change_are_counted() {
        let machine = clearway_sim::MachineModel::load("cloud-16").unwrap();
        let mut simulation = Simulation::new(&machine, 1, 1);
        simulation.spawn(|| {
            let mut log = Log::new(&Parameters::default());
            let (mut records, mut pages_in_all) = (0, 0);
            for _ in 0..2_000 {
                log.transaction(|payload, pages, _| {
                    assert_eq!(pages_of(payload), pages.len());
                    records += 1;
                    pages_in_all += pages.len();
                });
                records += 1;
            }
            // What is charged for a transaction is what was given.
            assert!((f64::from(records) / 2_000.0 - RECORDS).abs() < 0.1);
            assert!((pages_in_all as f64 / 2_000.0 - PAGES).abs() < 0.1);
        });
        simulation.run().unwrap();
    }
}
