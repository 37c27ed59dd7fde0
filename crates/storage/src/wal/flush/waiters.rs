//! Workers that sleep until another worker has flushed for them, shared by the variants `group` and `self-clocking`.
//!
//! Each worker has a place of its own, found by its slot number. It fills the place in, links it into a list, and
//! sleeps. From then on the place belongs to the worker that takes the list, until that worker, or one that it has
//! handed this to, *tells* the sleeper: stores the outcome and posts the sleeper's semaphore. After that the place is
//! its owner's again, so the worker that tells it has read the link to the next one before.
//!
//! The semaphore serves the worker's other waits too: a post that comes before the outcome is counted, and given
//! back when the wait is over (R8 of the LwLock).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, GrowingTable, Machine, Padded, WaitEvent, WaitScope, WorkerId};

/// The end of a list.
pub(super) const NONE: u32 = WorkerId::NONE;

/// Outcomes of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everything that the worker waited for is durable.
    Durable,
    /// The device is the worker's: it flushes for itself and for others.
    Leader,
}

/// Values of `Place::outcome`.
const WAITING: u32 = 0;
const DURABLE: u32 = 1;
const LEADER: u32 = 2;

struct Place<M: Machine> {
    /// The target of the worker: everything before is to be durable.
    upto: M::U64,
    next: M::U32,
    /// The first of a list that the worker gets with its outcome.
    inherited: M::U32,
    outcome: M::U32,
}

/// The places of all workers.
pub(super) struct Waiters<M: Machine> {
    places: GrowingTable<M, Padded<Place<M>>>,
}

impl<M: Machine> Waiters<M> {
    pub(super) fn new() -> Self {
        let place = |_| {
            Padded(Place {
                upto: M::U64::new(0),
                next: M::U32::new(NONE),
                inherited: M::U32::new(NONE),
                outcome: M::U32::new(WAITING),
            })
        };
        Self {
            places: GrowingTable::by_worker(place),
        }
    }

    fn place(&self, worker: u32) -> &Place<M> {
        self.places.get(worker as usize)
    }

    /// Fills in the place of `worker`, which is on no list. The caller publishes it by a Release.
    pub(super) fn fill_in(&self, worker: u32, upto: u64, next: u32) {
        let place = self.place(worker);
        place.upto.store(upto, Relaxed);
        place.next.store(next, Relaxed);
        place.inherited.store(NONE, Relaxed);
        place.outcome.store(WAITING, Relaxed);
    }

    /// The target of `worker`.
    pub(super) fn upto(&self, worker: u32) -> u64 {
        self.place(worker).upto.load(Relaxed)
    }

    /// The worker behind `worker` on its list, or [`NONE`].
    pub(super) fn next(&self, worker: u32) -> u32 {
        self.place(worker).next.load(Relaxed)
    }

    pub(super) fn set_next(&self, worker: u32, next: u32) {
        self.place(worker).next.store(next, Relaxed);
    }

    /// The list that `worker` gets with its outcome, or [`NONE`].
    pub(super) fn inherited(&self, worker: u32) -> u32 {
        self.place(worker).inherited.load(Relaxed)
    }

    pub(super) fn set_inherited(&self, worker: u32, first: u32) {
        self.place(worker).inherited.store(first, Relaxed);
    }

    /// Ends the wait of `worker`. The caller has read all that it needs of the place.
    pub(super) fn tell(&self, worker: u32, outcome: Outcome) {
        let word = match outcome {
            Outcome::Durable => DURABLE,
            Outcome::Leader => LEADER,
        };
        // Release: pairs with the Acquire in `sleep`; what the teller did for the worker is visible.
        self.place(worker).outcome.store(word, Release);
        M::workers().slot(WorkerId(worker)).semaphore.post();
    }

    /// Sleeps until the caller, `worker`, gets its outcome.
    pub(super) fn sleep(&self, worker: u32) -> Outcome {
        let semaphore = &M::workers().slot(WorkerId(worker)).semaphore;
        let place = self.place(worker);
        let _wait = WaitScope::<M>::enter(WaitEvent::WalFlushGroup);
        let mut surplus = 0;
        let outcome = loop {
            semaphore.wait();
            // Acquire: pairs with the Release in `tell`.
            match place.outcome.load(Acquire) {
                WAITING => surplus += 1,
                LEADER => break Outcome::Leader,
                _ => break Outcome::Durable,
            }
        };
        for _ in 0..surplus {
            semaphore.post();
        }
        outcome
    }
}
