//! Slots of workers that end, under loom: the next owner of a slot finds it as new, and a slot that is free is found.
//!
//! `cargo test -p clearway-machine --features loom --test loom_workers --release`

use clearway_machine::{DataCell, Loom, Machine, WorkerId, Workers};
use loom::sync::Arc;
use loom::thread;

type Cell = <Loom as Machine>::Data<u64>;

/// A table of `SLOTS` workers, and what belongs to the owner of each.
struct Table<const SLOTS: usize> {
    workers: Workers<Loom>,
    owned: [Cell; SLOTS],
}

impl<const SLOTS: usize> Table<SLOTS> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            workers: Workers::new(SLOTS),
            owned: std::array::from_fn(|_| Cell::new(0)),
        })
    }

    /// What an owner does: it finds no post of the one before it, gets one of its own, and leaves one behind.
    fn own(&self, worker: WorkerId) {
        // SAFETY: the slot has one owner; loom fails the test if the one before is not ordered before this one.
        self.owned[worker.0 as usize].with_mut(|owners| unsafe { *owners += 1 });
        let semaphore = &self.workers.slot(worker).semaphore;
        assert!(!semaphore.try_wait(), "a post of the former owner");
        semaphore.post();
        assert!(semaphore.try_wait(), "the owner's own post is gone");
        semaphore.post();
        // SAFETY: the owner, which goes by the slot no longer.
        unsafe { self.workers.release(worker) };
    }
}

fn explore(preemptions: usize, case: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(case);
}

/// Mutations seen to fail here: the slot given back before its posts are drained (the owner's own post is gone, or a post
/// of the former owner); given back, or claimed, `Relaxed` (a race on what belongs to the owner).
#[test]
fn loom_a_slot_goes_from_a_worker_that_ends_to_the_next() {
    explore(3, || {
        let table = Table::<1>::new();
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let claimed = table.workers.claim();
                claimed.inspect(|&worker| table.own(worker)).is_some()
            })
        };
        let claimed = table.workers.claim();
        let first = claimed.inspect(|&worker| table.own(worker)).is_some();
        let second = other.join().unwrap();
        assert!(first || second, "no worker found the free slot");
        let last = table.workers.claim().expect("all have ended");
        table.own(last);
    });
}

/// Of two slots one is taken, and its owner ends and another worker begins again and again. So one is free at every
/// instant, but never the same one for long.
///
/// Mutation seen to fail here: a claim that scans once, and takes what it has not found for taken.
#[test]
fn loom_a_slot_that_is_freed_behind_the_scan_is_found() {
    explore(2, || {
        let table = Table::<2>::new();
        let first = table.workers.claim().expect("two are free");
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || {
                let second = table.workers.claim();
                // SAFETY: the owner of the first slot has given it to this thread, which goes by it no longer.
                unsafe { table.workers.release(first) };
                second
            })
        };
        let mine = table.workers.claim();
        let theirs = other.join().unwrap();
        assert!(mine.is_some() || theirs.is_some(), "one was free all the time");
        assert_ne!(mine, theirs);
    });
}
