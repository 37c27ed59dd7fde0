//! One atomic add for each reservation.
//!
//! Invariant: `end` changes only by atomic adds. So each reservation begins where the one before it in the order of
//! the adds ends.
//!
//! Orderings: each add is an Acquire and a Release, and only adds change the word. So an add sees what every earlier
//! one's worker did before it.
//!
//! Cost: one locked instruction. All inserters share its cache line; they wait for the line, never for a worker.
//!
//! Origin: proposed for PostgreSQL several times as the replacement of its spin latch. Its record names the one before
//! it, so there the word alone is not enough; our records do not.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use clearway_machine::{AtomicWord, Machine, Padded};

use super::Reserve;

pub(in crate::wal) struct Reservation<M: Machine> {
    end: Padded<M::U64>,
}

impl<M: Machine> Reserve for Reservation<M> {
    fn new(end: u64) -> Self {
        Self {
            end: Padded(M::U64::new(end)),
        }
    }

    #[inline]
    fn reserve(&self, size: u64) -> u64 {
        self.end.fetch_add(size, AcqRel)
    }

    #[inline]
    fn end(&self) -> u64 {
        self.end.load(Acquire)
    }
}
