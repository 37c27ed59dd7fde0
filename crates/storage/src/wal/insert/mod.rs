//! `log_insert`: how a record gets into the ring, and how the flusher learns that it is whole.
//!
//! # Example
//! Alice and Bob insert at the same time, Alice at 1000, Bob behind her at 1100. Bob is done first and
//! flushes up to 1200. The ring holds Bob's record and, before it, the bytes that stood there one ring size
//! earlier. If the flusher wrote that out, Bob's commit would be acknowledged behind a hole: recovery stops
//! at the hole, and Bob's commit is lost. So the flusher waits until everything before 1200 is whole, and has
//! a way to see it.
//!
//! # Contract
//! - R1: space is reserved only inside an insertion, which ends when the bytes are in the ring. The flusher learns from
//!   `Insertion::wait_complete` and `Insertion::complete` up to where all bytes are in the ring, and sees those bytes.
//! - R2: an insertion that finds the ring full waits for a flush, and a flush waits for insertions. An
//!   insertion therefore first advertises that it inserts nothing before its own start, and `complete`, which
//!   is called while the log is being written, waits for no insertion.
//! - R4: the redo position moves only at an instant at which nothing is being inserted. So a record is inserted either
//!   before the redo position moves, and lies before it, or after, and is built for the new one.
//!
//! | variant | an insertion | the flusher looks at |
//! | --- | --- | --- |
//! | `latches` | one of 8 latches | all 8 of them |

pub(super) mod latches;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, switch};

use self::latches::Latches;
use super::reserve::Reservation;
use crate::page::Lsn;

switch! {
    /// How a log record gets into memory, and how the flusher learns that it is whole.
    pub enum LogInsertVariant = "log_insert", best Latches, planned ["ring"] {
        /// One of 8 insertion latches is held from the reservation to the end of the copy.
        Latches = "latches",
    }
}

/// The redo position has moved since the record was built; build it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoMoved(pub Lsn);

/// The part of an insertion that uses the ring, once the insertion has its place.
pub(super) trait InsertedRecord {
    /// Bytes to reserve.
    fn size(&self) -> u64;

    /// True if the ring has no room yet for a record that ends at `end`.
    fn lacks_room(&self, end: u64) -> bool;

    /// Flushes until a record that ends at `end` has room. May wait for insertions before it.
    fn wait_for_room(&self, end: u64);

    /// Copies the record to `start` in the ring. The caller has reserved the place, and it has room.
    fn copy_to(&self, start: u64);
}

/// Insertions in progress and the redo position, under the variant chosen.
pub(super) enum Insertion<M: Machine> {
    Latches(Latches<M>),
}

impl<M: Machine> Insertion<M> {
    /// Nothing is being inserted; pages last changed before `redo` need a full image.
    pub(super) fn new(variant: LogInsertVariant, latches: usize, lwlock: LwLockOptions, redo: u64) -> Self {
        match variant {
            LogInsertVariant::Latches => Self::Latches(Latches::new(latches, lwlock, redo)),
        }
    }

    /// Inserts a record that was built for the redo position `built_for`; returns its end.
    #[inline]
    pub(super) fn insert(
        &self,
        reservation: &Reservation<M>,
        built_for: u64,
        record: &impl InsertedRecord,
    ) -> Result<u64, RedoMoved> {
        match self {
            Self::Latches(latches) => latches.insert(reservation, built_for, record),
        }
    }

    /// Waits until everything before `target`, which is reserved, is in the ring; returns up to where that is known.
    pub(super) fn wait_complete(&self, reservation: &Reservation<M>, target: u64) -> u64 {
        match self {
            Self::Latches(latches) => latches.wait_complete(reservation, target),
        }
    }

    /// Up to where everything is in the ring, if that can be told without waiting (R2).
    pub(super) fn complete(&self, reservation: &Reservation<M>) -> Option<u64> {
        match self {
            Self::Latches(latches) => latches.complete(reservation),
        }
    }

    /// The redo position. Acquire: pairs with the Release in `move_redo`.
    #[inline]
    pub(super) fn redo(&self) -> u64 {
        match self {
            Self::Latches(latches) => latches.redo(),
        }
    }

    /// Moves the redo position to the end of what is reserved (R4); returns it.
    pub(super) fn move_redo(&self, reservation: &Reservation<M>) -> u64 {
        match self {
            Self::Latches(latches) => latches.move_redo(reservation),
        }
    }
}
