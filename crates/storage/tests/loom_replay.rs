//! Parallel replay under loom: a reader hands stretches over to two workers, which meet at a change over two pages, and end;
//! every order of their steps, under weak memory. The pages are loom's cells, so a page that two workers may change at once,
//! or that one changes without seeing the other's change, fails the test. So does the job, which only H1 of
//! `standby/replay/workers.rs` protects.
//!
//! Caught mutations (`mutations/replay.toml`): the last to come to a meeting takes itself off Relaxed; the end of a meeting is
//! stored Relaxed; a worker says Relaxed that it is done.

#![cfg(feature = "loom")]

use clearway_machine::{DataCell, Loom, Machine};
use clearway_storage::standby::replay::{ReplayedPages, Stretch, Worker, Workers};
use clearway_storage::{Lsn, PageId, RelId, Result};
use std::sync::Arc;

type Cell = <Loom as Machine>::Data<u64>;

/// The position of the newest change of each page.
struct Pages(Vec<Cell>);

// SAFETY: loom's cells find workers that are inside together.
unsafe impl Sync for Pages {}
// SAFETY: nothing in it belongs to a thread.
unsafe impl Send for Pages {}

impl ReplayedPages for Pages {
    /// The payload is the numbers of the pages.
    fn change(&self, payload: &[u8], end: Lsn) -> Result<()> {
        for block in payload {
            self.0[usize::from(*block)].with_mut(|newest| {
                // SAFETY: the cell has found no other worker inside.
                let newest = unsafe { &mut *newest };
                assert!(*newest < end.0, "change {} after {newest}", end.0);
                *newest = end.0;
            });
        }
        Ok(())
    }
}

fn stretch_of(log: &[&[u8]], workers: usize, before: u64) -> Stretch<Loom> {
    let mut stretch = Stretch::new(workers);
    for (payload, position) in log.iter().zip(before + 1..) {
        let pages = payload.iter().map(|block| PageId {
            rel: RelId(16),
            // With two workers, blocks 0 and 2 have different ones, and 0 and 1 the same.
            block: 2 * u32::from(*block),
        });
        stretch.list(payload, pages, Lsn(position));
    }
    stretch
}

/// Replays the stretches of `logs` one after the other, under `workers` workers. The first `early` sleeps of each thread end
/// though none has woken it.
fn replay(logs: &'static [&'static [&'static [u8]]], workers: usize, early: u32, preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let pages = Arc::new(Pages((0..2).map(|_| Cell::new(0)).collect()));
        let (mut team, all) = Workers::<Loom, Pages>::new(workers);
        let start = |worker: Worker<Loom, Pages>| {
            loom::thread::spawn(move || {
                Loom::end_waits_early(early);
                worker.run();
            })
        };
        let threads: Vec<_> = all.into_iter().map(start).collect();
        Loom::end_waits_early(early);
        let mut position = 0;
        for log in logs {
            team.hand_over(&pages, stretch_of(log, workers, position))
                .unwrap();
            position += log.len() as u64;
        }
        team.wait().unwrap();
        let all: Vec<&[u8]> = logs.iter().flat_map(|log| log.iter().copied()).collect();
        for (block, cell) in (0_u8..).zip(&pages.0) {
            let last = all.iter().rposition(|payload| payload.contains(&block));
            // SAFETY: the cell has found no writer inside.
            let newest = cell.with(|newest| unsafe { *newest });
            assert_eq!(newest, last.map_or(0, |number| number as u64 + 1), "page {block}");
        }
        drop(team);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn loom_stretches_are_handed_over() {
    replay(&[&[&[0]], &[&[0], &[1]]], 1, 0, 3);
}

/// The mutations of a meeting are caught here, and would not be if both pages had the same worker.
#[test]
fn loom_a_change_over_two_pages_meets() {
    replay(&[&[&[0], &[1], &[0, 1], &[1]]], 2, 0, 2);
}

/// Of the reader, of workers that wait for a stretch, and of workers that wait at a meeting.
///
/// Caught mutations (`mutations/replay.toml`): a wait for a stretch or for its end, or a wait at a meeting, that is not in a
/// loop.
#[test]
fn loom_sleeps_end_early() {
    replay(&[&[&[0]], &[&[0], &[1]]], 1, 1, 3);
    replay(&[&[&[0], &[0, 1], &[1]]], 2, 1, 2);
}
