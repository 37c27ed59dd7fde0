//! Workers that sleep until a position is replicated: the queues, and each worker's place.
//!
//! A queue holds the waiting workers of one level by position, so those that are done are its head. It is under the
//! latch of [`SyncReplication`](super::SyncReplication). A worker's place is on a cache line of its own:
//!
//! | word | meaning | written by |
//! | --- | --- | --- |
//! | `waiting` | 1: the worker is in a queue | the worker itself, and the one that takes it out; under the latch |
//! | `signals` | counts the calls to look again; the worker sleeps on it | any other worker, without the latch |
//!
//! # Why two words With one word that says *done*, a signal that is still on its way when its worker has left (it was
//! asked to stop, and found itself taken out already) would end the worker's next wait. Here a late signal makes the
//! worker look once more, and what it looks at is changed under the latch only.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use clearway_machine::{AtomicWord, GrowingTable, Machine, Padded, WorkerId};

use crate::page::Lsn;

/// The workers that wait at one level, by what they wait for.
#[derive(Debug, Default)]
pub(super) struct Queue(BTreeSet<(Lsn, u32)>);

#[cfg(test)]
impl Queue {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[derive(Debug)]
struct Place<M: Machine> {
    waiting: M::U32,
    signals: M::U32,
}

/// The places of all workers.
#[derive(Debug)]
pub(super) struct Places<M: Machine>(GrowingTable<M, Padded<Place<M>>>);

impl<M: Machine> Places<M> {
    pub(super) fn new() -> Self {
        let place = |_| {
            Padded(Place {
                waiting: M::U32::new(0),
                signals: M::U32::new(0),
            })
        };
        Self(GrowingTable::by_worker(place))
    }

    fn of(&self, worker: WorkerId) -> &Place<M> {
        self.0.get(worker.0 as usize)
    }

    /// Enters `worker` in `queue`. Under the latch.
    pub(super) fn enter(&self, queue: &mut Queue, position: Lsn, worker: WorkerId) {
        // Relaxed: read by the worker itself, and by those that take it out under the latch.
        self.of(worker).waiting.store(1, Relaxed);
        queue.0.insert((position, worker.0));
    }

    /// Takes those out of `queue` that wait for no more than `upto`. Under the latch; they are to be signalled without it.
    pub(super) fn take_done(&self, queue: &mut Queue, upto: Lsn, done: &mut Vec<WorkerId>) {
        while let Some((position, worker)) = queue.0.first().copied()
            && position <= upto
        {
            queue.0.pop_first();
            let worker = WorkerId(worker);
            // Release: pairs with the Acquire in `is_done`.
            self.of(worker).waiting.store(0, Release);
            done.push(worker);
        }
    }

    /// Takes `worker` out of `queue`; `false` if another worker has. Under the latch.
    pub(super) fn leave(&self, queue: &mut Queue, position: Lsn, worker: WorkerId) -> bool {
        let was_there = queue.0.remove(&(position, worker.0));
        if was_there {
            self.of(worker).waiting.store(0, Relaxed);
        }
        was_there
    }

    /// The number of signals so far, to be read before the worker looks whether to go on.
    pub(super) fn signals(&self, worker: WorkerId) -> u32 {
        // Acquire: pairs with the Release in `signal`; what the signal is about is visible.
        self.of(worker).signals.load(Acquire)
    }

    /// True if `worker`, which is the caller, was taken out of its queue.
    pub(super) fn is_done(&self, worker: WorkerId) -> bool {
        // Acquire: pairs with the Release in `take_done`; the positions are visible.
        self.of(worker).waiting.load(Acquire) == 0
    }

    /// Sleeps until there have been more than `seen` signals, or for `limit`.
    pub(super) fn sleep(&self, worker: WorkerId, seen: u32, limit: Option<Duration>) {
        M::futex_wait(&self.of(worker).signals, seen, limit);
    }

    /// Makes `worker` look again, if it sleeps here.
    pub(super) fn signal(&self, worker: WorkerId) {
        let signals = &self.of(worker).signals;
        // Release: pairs with the Acquire in `signals`.
        signals.fetch_add(1, Release);
        M::futex_wake(signals, 1);
    }
}
