//! The position under a spin latch, the baseline.
//!
//! Invariant: `word` changes only under the latch. So two reservations are disjoint, and the later one begins where the
//! earlier one ends. Bit 0 of the word is the era; sizes are multiples of 8, so a reservation leaves it as it is.
//!
//! # Steps of a reservation
//! 1. Take the latch.
//! 2. Read the end, add the size, store it.
//! 3. Release the latch.
//!
//! # Why the contract holds
//! A reservation acquires, by the latch, everything that the worker with the reservation before it did up to the
//! release of the latch. `end` reads without the latch: a store of 64 bits is whole, and its Release is paired with
//! the reader's Acquire.
//!
//! Cost: one locked instruction and two stores on one cache line, while other workers poll it. A holder that loses its
//! CPU stops every insertion.
//!
//! Origin: PostgreSQL's `ReserveXLogInsertLocation` (Heikki Linnakangas, 2013). It keeps the start of the record before
//! as well, which is why one atomic add was not enough there.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, SpinLatch};
use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent};

use super::{Reserve, Reserved};

static WAL_POSITION: LatchClass = LatchClass::new("WALPosition", WaitEvent::SpinDelay, 0);

/// The latch and what it protects, on one line: a worker that has got the latch has got the position.
struct Position<M: Machine> {
    latch: SpinLatch<M>,
    word: M::U64,
}

pub(in crate::wal) struct Reservation<M: Machine>(Padded<Position<M>>);

impl<M: Machine> Reserve for Reservation<M> {
    fn new(end: u64) -> Self {
        Self(Padded(Position {
            latch: SpinLatch::new(&WAL_POSITION),
            word: M::U64::new(end),
        }))
    }

    #[inline]
    fn reserve(&self, size: u64) -> Reserved {
        let _held = self.0.latch.lock();
        let word = self.0.word.load(Relaxed);
        // Release: pairs with the Acquire in `end`.
        self.0.word.store(word + size, Release);
        Reserved::from_word(word)
    }

    fn begin_era(&self) -> Reserved {
        let _held = self.0.latch.lock();
        let word = self.0.word.load(Relaxed) ^ Reserved::ERA;
        // Release: as above.
        self.0.word.store(word, Release);
        Reserved::from_word(word)
    }

    #[inline]
    fn end(&self) -> u64 {
        Reserved::from_word(self.0.word.load(Acquire)).start
    }
}
