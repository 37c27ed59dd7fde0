//! One atomic add for each reservation.
//!
//! Origin: PostgreSQL's `ReserveXLogInsertLocation` keeps this position under a spin lock, because it keeps
//! the start of the record before it as well. Our records do not name the one before them, so one word is
//! enough.

use std::sync::atomic::Ordering::{AcqRel, Acquire};

use clearway_machine::{AtomicWord, Machine, Padded};

pub(in crate::wal) struct FetchAdd<M: Machine> {
    end: Padded<M::U64>,
}

impl<M: Machine> FetchAdd<M> {
    pub(super) fn new(end: u64) -> Self {
        Self {
            end: Padded(M::U64::new(end)),
        }
    }

    #[inline]
    pub(super) fn reserve(&self, size: u64) -> u64 {
        self.end.fetch_add(size, AcqRel)
    }

    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.end.load(Acquire)
    }
}
