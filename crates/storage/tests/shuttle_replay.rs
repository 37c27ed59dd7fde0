//! Parallel replay under shuttle: the shipped gathering, hand-over of stretches, lists and meetings, with pages in memory.
//! Random schedules of a reader of the log and one to three workers, through several stretches.
//!
//! | case | holds |
//! | --- | --- |
//! | `shuttle_each_page_gets_its_changes_in_order` | G1 to G3 of `standby/replay/gathered.rs`: each page's changes in the log's order, by one worker at a time; a change over several pages once, when all before it are made on each of them; a transaction ends when all changes of its stretch are made |
//! | `shuttle_an_error_ends_all` | H3 of `standby/replay/workers.rs`: an error in any worker ends the stretch for all, no transaction of it ends, and nothing is handed over afterwards; each page has a beginning of its changes |
//! | `shuttle_the_reader_gives_up` | the reader has an error while the workers are at a stretch |
//! | each | H2 and H4: the last reference to the pages is the test's, and dropping `Workers` ends the workers; shuttle reports one that sleeps for ever as a deadlock |
//!
//! Caught mutations (`mutations/replay.toml`): the first to come to a meeting makes the change; the end of a meeting wakes
//! no sleeper; a stretch that is given up ends no meeting; the last worker does not wake the reader; workers see a new
//! number before the job; a stretch is shown as made when it is handed over; the reader does not wait after an error of its
//! own.

#![cfg(feature = "shuttle")]

use clearway_machine::{DataCell, Machine, Shuttle};
use clearway_storage::standby::replay::{CompletedStretch, Gathered, ReplayedPages, Worker, Workers};
use clearway_storage::{Lsn, PageId, RelId, Result, StorageError};
use shuttle::thread;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

const PAGES: u32 = 5;

type Cell = <Shuttle as Machine>::Data<Vec<u64>>;

/// The positions of the changes that each page has had. Two workers at one page fail the test, as do two with one page of
/// a change over several.
struct Pages {
    changes: Vec<Cell>,
    /// A bit for each position whose change is made. No step of a schedule.
    made: AtomicU64,
    /// The change that cannot be made.
    fails_at: Option<u64>,
}

// SAFETY: shuttle runs one thread at a time, and its cells find workers that are inside together.
unsafe impl Sync for Pages {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Pages {}

impl Pages {
    fn on(&self, block: u8) -> Vec<u64> {
        // SAFETY: the cell has found no writer inside.
        self.changes[usize::from(block)].with(|changes| unsafe { (*changes).clone() })
    }
}

impl ReplayedPages for Pages {
    /// The payload is the numbers of the pages.
    fn change(&self, payload: &[u8], end: Lsn) -> Result<()> {
        if self.fails_at == Some(end.0) {
            return Err(StorageError::Standby {
                problem: "it cannot be made".to_owned(),
            });
        }
        for block in payload {
            // SAFETY: the cell has found no other worker inside.
            self.changes[usize::from(*block)].with_mut(|changes| unsafe { (*changes).push(end.0) });
        }
        let before = self.made.fetch_or(1 << end.0, Relaxed);
        assert_eq!(before & 1 << end.0, 0, "change {} is made twice", end.0);
        Ok(())
    }
}

/// A log: changes over pages, of which many are over several that have different workers.
const LOG: [&[u8]; 9] = [
    &[0, 1, 2],
    &[1],
    &[0],
    &[2, 3],
    &[3, 4],
    &[4, 0],
    &[1, 4],
    &[2],
    &[0, 1, 2, 3, 4],
];

/// The changes of a page in the log, of its first `changes` changes.
fn expected(block: u8, changes: usize) -> Vec<u64> {
    let of_page = (1..)
        .zip(&LOG[..changes])
        .filter(|(_, pages)| pages.contains(&block));
    of_page.map(|(position, _)| position).collect()
}

/// Gathers the log, in stretches that end at these positions, each with a transaction that ends there. Returns how far
/// transactions have ended, and whether there was an error.
fn gather(gathered: &mut Gathered<'_, Shuttle, Pages, u64>, pages: &Pages, stretches: &[u64]) -> (u64, bool) {
    let mut ended = 0;
    let mut end = |made: Option<CompletedStretch<u64>>| {
        let Some(made) = made else { return };
        let all = (2 << made.reached.0) - 2;
        assert_eq!(
            pages.made.load(Relaxed) & all,
            all,
            "a transaction ends before its changes are made"
        );
        assert_eq!(made.ends, [made.reached.0]);
        assert!(ended < made.reached.0, "in the order of the log");
        ended = made.reached.0;
    };
    let mut has_failed = false;
    for (position, payload) in (1..).zip(LOG) {
        let changed = payload.iter().map(|block| PageId {
            rel: RelId(16),
            block: u32::from(*block),
        });
        gathered.change(payload, changed, Lsn(position));
        gathered.reached(Lsn(position));
        if stretches.contains(&position) {
            gathered.end(position);
            let made = gathered.hand_over();
            assert!(made.is_err() || !has_failed, "handed over after an error");
            has_failed |= made.is_err();
            end(made.unwrap_or_default());
        }
    }
    let made = gathered.wait();
    has_failed |= made.is_err();
    end(made.unwrap_or_default());
    (ended, has_failed)
}

fn replay(count: usize, stretches: &[u64], fails_at: Option<u64>) {
    let pages = Arc::new(Pages {
        changes: (0..PAGES).map(|_| Cell::new(Vec::new())).collect(),
        made: AtomicU64::new(0),
        fails_at,
    });
    let (mut workers, all) = Workers::<Shuttle, Pages>::new(count);
    let start = |worker: Worker<Shuttle, Pages>| thread::spawn(move || worker.run());
    let threads: Vec<_> = all.into_iter().map(start).collect();
    let (ended, has_failed) = gather(&mut Gathered::new(&pages, &mut workers), &pages, stretches);
    // H2: no worker has a reference any more.
    assert_eq!(Arc::strong_count(&pages), 1, "a reference is left");
    assert_eq!(has_failed, fails_at.is_some());
    for block in 0..PAGES as u8 {
        let (all, made) = (expected(block, LOG.len()), pages.on(block));
        match fails_at {
            None => assert_eq!(made, all, "page {block}"),
            Some(_) => assert!(all.starts_with(&made), "page {block} has {made:?} of {all:?}"),
        }
    }
    match fails_at {
        None => assert_eq!(ended, LOG.len() as u64),
        Some(position) => assert!(ended < position),
    }
    drop(workers);
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn shuttle_each_page_gets_its_changes_in_order() {
    for count in [1, 2, 3] {
        shuttle::check_random(move || replay(count, &[4, 5, 9], None), 3_000);
    }
}

#[test]
fn shuttle_an_error_ends_all() {
    // Of one page; of two, so that others may wait for it; of all.
    for fails_at in [2, 4, 9] {
        shuttle::check_random(move || replay(3, &[4, 6, 9], Some(fails_at)), 2_000);
    }
}

/// The stretch that the reader gathers after an error of its own is dropped, when the workers are done.
#[test]
fn shuttle_the_reader_gives_up() {
    let case = || {
        let pages = Arc::new(Pages {
            changes: (0..PAGES).map(|_| Cell::new(Vec::new())).collect(),
            made: AtomicU64::new(0),
            fails_at: None,
        });
        let (mut workers, all) = Workers::<Shuttle, Pages>::new(2);
        let start = |worker: Worker<Shuttle, Pages>| thread::spawn(move || worker.run());
        let threads: Vec<_> = all.into_iter().map(start).collect();
        let mut gathered = Gathered::<_, _, u64>::new(&pages, &mut workers);
        let page = PageId {
            rel: RelId(16),
            block: 1,
        };
        gathered.change(&[1], std::iter::once(page), Lsn(1));
        gathered.reached(Lsn(1));
        assert!(gathered.hand_over().unwrap().is_none());
        drop(gathered);
        assert_eq!(pages.on(1), [1]);
        assert_eq!(Arc::strong_count(&pages), 1, "a reference is left");
        drop(workers);
        for thread in threads {
            thread.join().unwrap();
        }
    };
    shuttle::check_random(case, 2_000);
}
