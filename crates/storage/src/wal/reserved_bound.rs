//! A bound of how far the log is reserved, on a line that is seldom written.
//!
//! Each change asks up to three times whether the disk has room for what it may log: when its transaction gets an xid,
//! when the operation begins, and under page latches. The exact end is the reservation's word, which every insertion
//! writes, so each of the three would fetch the line that is wanted most.
//!
//! # Steps
//! 1. An insertion whose record reaches over a multiple of [`STEP`] notes the record's end, before it copies the record
//!    into the ring. All others note nothing.
//! 2. A session that asks for room takes the position noted, a step, and the size of the ring: [`upper_bound`]. If the
//!    disk has room for that, it has room. Otherwise the session asks the reservation.
//!
//! # Invariants
//! - B1: the position noted never goes back.
//! - B2: the log is reserved up to the bound at most, apart from records that wait for room in the ring. Say the record
//!   that reaches over the multiple p is the first one not noted. The records before noted at least p - [`STEP`]. Its
//!   own bytes are not in the ring, so nothing behind it is written, and no record is copied that ends more than the
//!   ring's size behind its start, which is below p.
//!
//! A session has one record at most that waits, of the change that it is in the middle of, and for those the segment
//! is meant that [`make_room`] adds.
//!
//! Costs: a comparison for each insertion; a write of one line for each MiB of log.
//!
//! [`upper_bound`]: ReservedBound::upper_bound
//! [`make_room`]: super::Wal::make_room

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

/// Bytes of log between two notes.
const STEP: u64 = 1 << 20;

/// The position noted.
pub(super) struct ReservedBound<M: Machine> {
    noted: M::U64,
}

impl<M: Machine> ReservedBound<M> {
    /// The log is reserved up to `end`.
    pub(super) fn new(end: u64) -> Self {
        Self {
            noted: M::U64::new(end),
        }
    }

    /// Step 1: the caller has reserved from `start` to `end`, and has not copied the record yet.
    #[inline]
    pub(super) fn note(&self, start: u64, end: u64) {
        if start / STEP != end / STEP {
            self.advance(end);
        }
    }

    #[cold]
    fn advance(&self, end: u64) {
        // Relaxed, here and in `upper_bound`: a worker that copies a record into a place of the ring which this one's
        // writing has freed has seen it written, and so it sees this note.
        let mut noted = self.noted.load(Relaxed);
        while noted < end {
            // B1.
            match self.noted.compare_exchange_weak(noted, end, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(found) => noted = found,
            }
        }
    }

    /// Step 2.
    #[inline]
    pub(super) fn upper_bound(&self, ring_size: u64) -> u64 {
        self.noted.load(Relaxed) + STEP + ring_size
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    /// Records one after the other: the bound is never below their end, even without a ring. Mutations that it catches:
    /// nothing is noted; the start is noted; a record that ends on a multiple is not noted.
    #[test]
    fn no_record_ends_behind_the_bound() {
        for size in [64, 96, 4_096, STEP - 8, STEP, STEP + 8, 3 * STEP + 64] {
            for first in [0, 8, STEP - 64, STEP] {
                let bound = ReservedBound::<Native>::new(first);
                let mut start = first;
                while start < first + 20 * STEP {
                    let end = start + size;
                    bound.note(start, end);
                    assert!(end <= bound.upper_bound(0), "{size} bytes at {start}");
                    start = end;
                }
                assert!(bound.upper_bound(0) <= start + STEP, "the bound is too far away");
            }
        }
    }

    /// B1. Mutation that it catches: a plain store.
    #[test]
    fn a_late_note_does_not_take_the_bound_back() {
        let bound = ReservedBound::<Native>::new(0);
        bound.note(2 * STEP - 8, 2 * STEP + 8);
        bound.note(STEP - 8, STEP + 8);
        assert_eq!(bound.upper_bound(100), 3 * STEP + 108);
    }
}
