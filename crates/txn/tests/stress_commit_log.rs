//! The commit log under real threads, with every variant of `commit_log`: statuses set and read while their pages take
//! each other's slots and are flushed.

mod support;

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clearway_machine::{Native, Watchdog};
use clearway_txn::{
    COMMIT_LOG_PAGE_HEADER, COMMIT_LOG_PAGE_SIZE, CommitLog, CommitLogOptions, Status, StatusDevice,
    XIDS_PER_PAGE, Xid,
};
use support::Random;

const WORKERS: u64 = 6;
/// Pages of which the first three have one slot, and the others slots of their own.
const PAGES: [u64; 5] = [0, 128, 256, 1, 17];
const RUN: Duration = Duration::from_millis(500);

/// Pages in memory. A page is written only after the log is "durable" up to its commits: a status is that of an xid
/// whose position is at most the one given.
#[derive(Default)]
struct Memory(Mutex<HashMap<u32, Box<[u8; COMMIT_LOG_PAGE_SIZE]>>>);

fn status_in(page: &[u8; COMMIT_LOG_PAGE_SIZE], within: u64) -> u8 {
    page[COMMIT_LOG_PAGE_HEADER + within as usize / 4] >> (within % 4 * 2) & 3
}

impl StatusDevice for Memory {
    fn read_page(&self, number: u32, page: &mut [u8; COMMIT_LOG_PAGE_SIZE]) -> io::Result<bool> {
        let pages = self.0.lock().unwrap();
        let found = pages.get(&number).map(|bytes| page.copy_from_slice(&bytes[..]));
        Ok(found.is_some())
    }
    fn write_page(&self, number: u32, page: &[u8; COMMIT_LOG_PAGE_SIZE], lsn: u64) -> io::Result<()> {
        let mut pages = self.0.lock().unwrap();
        let before = pages
            .entry(number)
            .or_insert_with(|| Box::new([0; COMMIT_LOG_PAGE_SIZE]));
        let statuses = COMMIT_LOG_PAGE_HEADER..COMMIT_LOG_PAGE_SIZE;
        for byte in statuses.filter(|byte| page[*byte] != before[*byte]) {
            let first = 4 * (byte - COMMIT_LOG_PAGE_HEADER) as u64;
            for within in first..first + 4 {
                let (old, now) = (status_in(before, within), status_in(page, within));
                assert!(old == 0 || old == now, "a page was written by an older copy");
                let new = now != old;
                assert!(
                    !new || position(within) <= lsn,
                    "R1: {within} of page {number} is written before its record"
                );
            }
        }
        before.copy_from_slice(page);
        Ok(())
    }
}

/// The log position of the record of the xid with this place on its page.
fn position(within: u64) -> u64 {
    within + 1
}

/// The end of the n-th transaction of a worker.
fn status(within: u64) -> Status {
    if within.is_multiple_of(3) {
        Status::Aborted
    } else {
        Status::Committed
    }
}

/// Workers set statuses, the n-th of each page by worker `n % 6`, and look at all that they know to be set. Nothing is
/// lost, nothing is on the device before its record, and no page is written by an older copy.
fn set_and_evict(options: CommitLogOptions) {
    eprintln!("under {options:?}");
    let log = CommitLog::<Native, _>::new(Memory::default(), options);
    let stop = AtomicBool::new(false);
    // How many statuses of each worker are set, on each page.
    let set: Vec<[AtomicU64; PAGES.len()]> = (0..WORKERS)
        .map(|_| std::array::from_fn(|_| AtomicU64::new(0)))
        .collect();
    let xid = |page: usize, within: u64| Xid(PAGES[page] * XIDS_PER_PAGE + within);
    let within = |worker: u64, round: u64| 8 + round * WORKERS + worker;
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (log, stop, set) = (&log, &stop, &set);
            scope.spawn(move || {
                let mut random = Random(worker + 1);
                while !stop.load(Ordering::Relaxed) {
                    // Mostly the first page, so that workers meet there.
                    let page = random
                        .below(3 * PAGES.len() as u64)
                        .saturating_sub(2 * PAGES.len() as u64) as usize;
                    let mine = &set[worker as usize][page];
                    let place = within(worker, mine.load(Ordering::Relaxed));
                    if place < XIDS_PER_PAGE {
                        log.set(xid(page, place), status(place), position(place)).unwrap();
                        // Release: others look for the status from now on.
                        mine.fetch_add(1, Ordering::Release);
                    }
                    let other = random.below(WORKERS);
                    let known = set[other as usize][page].load(Ordering::Acquire);
                    if known > 0 {
                        let place = within(other, random.below(known));
                        assert_eq!(
                            log.get(xid(page, place)).unwrap(),
                            status(place),
                            "{place} of page {page}"
                        );
                    }
                }
            });
        }
        scope.spawn(|| {
            let started = Instant::now();
            while started.elapsed() < RUN {
                log.flush_all().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    log.flush_all().unwrap();
    let written = log.device().0.lock().unwrap();
    for (page, number) in PAGES.iter().enumerate() {
        for worker in 0..WORKERS {
            let count = set[worker as usize][page].load(Ordering::Relaxed);
            for round in 0..count {
                let place = within(worker, round);
                assert_eq!(
                    status_in(&written[&(*number as u32)], place),
                    status(place) as u8,
                    "lost"
                );
            }
        }
    }
}

#[test]
fn statuses_survive_eviction_with_every_variant() {
    let _watchdog = Watchdog::over_test();
    CommitLogOptions::each_variant().for_each(set_and_evict);
}
