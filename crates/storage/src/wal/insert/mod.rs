//! `log_insert`: how a record gets into the ring, and how the flusher learns that it is whole.
//!
//! # Example
//! Alice and Bob insert at the same time, Alice at 1000, Bob behind her at 1100. Bob is done first and
//! flushes up to 1200. The ring holds Bob's record and, before it, the bytes that were there one ring size
//! earlier. If the flusher wrote that out, Bob's commit would be acknowledged behind a hole: recovery stops
//! at the hole, and Bob's commit is lost. So the flusher waits until everything before 1200 is whole, and has
//! a way to see it.
//!
//! # Contract
//! - R1: space is reserved only inside an insertion, which ends when the bytes are in the ring. The flusher learns from
//!   `Insertion::wait_complete` and `Insertion::complete` up to where all bytes are in the ring, and sees those bytes.
//!   A record is in the ring as a whole: one that begins before that position is there up to its end.
//! - R2: an insertion that finds the ring full waits for a flush, and a flush waits for insertions. A flush that waits
//!   for insertions therefore does not wait for one that lies behind its target, and `complete`, which is called
//!   while the log is being written, waits for no insertion.
//! - R4: the redo position moves at one instant in the order of the reservations. A record that is reserved before lies
//!   before the new redo position; one that is reserved after was built for the new one, or is withdrawn.
//!
//! | variant | an insertion | the flusher looks at | moving the redo position |
//! | --- | --- | --- | --- |
//! | `latches` | one of 8 latches | all 8 of them | stops all insertions |
//! | `ring` | two atomic operations, no latch | a slot for each record | stops none; some records are built twice |

mod latches;
mod ring;

use clearway_latch::LwLockOptions;
use clearway_machine::{Machine, variants};

use super::reserve::Reservation;
use crate::page::Lsn;

/// The redo position has moved since the record was built; build it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoMoved(pub Lsn);

/// The options of an insertion; a variant uses what it needs.
pub(super) struct InsertionOptions {
    /// Algorithm of the insertion latches.
    pub(super) lwlock: LwLockOptions,
    /// Number of insertion latches.
    pub(super) latches: usize,
    /// Bytes of the ring: a power of two.
    pub(super) ring_size: usize,
}

/// The part of an insertion that uses the ring, once the insertion has its place.
pub(super) trait InsertedRecord {
    /// Bytes to reserve.
    fn size(&self) -> u64;

    /// Calls `reserve`, which makes the reservation and says whether it is the record's or is going to be withdrawn, at the
    /// moment at which the record may take its place among others of its kind.
    fn reserve_in_order<R>(&self, reserve: impl FnOnce() -> (R, bool)) -> R;

    /// True if the ring has no room yet for a record that ends at `end`.
    fn lacks_room(&self, end: u64) -> bool;

    /// Flushes until a record that ends at `end` has room. May wait for insertions before it.
    fn wait_for_room(&self, end: u64);

    /// Copies the record to `start` in the ring. The caller has reserved the place, and it has room.
    fn copy_to(&self, start: u64);

    /// As [`copy_to`](Self::copy_to), but marks the record as one that holds nothing.
    fn withdraw_to(&self, start: u64);
}

/// The state of one variant, and its way to insert.
trait Insert<M: Machine> {
    /// Nothing is being inserted. The log goes on at `end`; pages last changed before `redo` need a full image.
    fn new(options: &InsertionOptions, end: u64, redo: u64) -> Self;

    /// Inserts a record that was built for the redo position `built_for`; returns its end.
    fn insert(
        &self,
        reservation: &Reservation<M>,
        built_for: u64,
        record: &impl InsertedRecord,
    ) -> Result<u64, RedoMoved>;

    /// Waits until everything before `target`, which is reserved, is in the ring; returns up to where that is known.
    fn wait_complete(&self, reservation: &Reservation<M>, target: u64) -> u64;

    /// The position up to which everything is in the ring, if that is known without waiting (R2).
    fn complete(&self, reservation: &Reservation<M>) -> Option<u64>;

    /// The redo position. Acquire: pairs with the Release in `move_redo`.
    fn redo(&self) -> u64;

    /// Moves the redo position to the end of what is reserved (R4); returns it.
    fn move_redo(&self, reservation: &Reservation<M>) -> u64;

    /// The log goes on at `end`, and nothing before is going to be inserted. Nothing is being inserted.
    fn continue_at(&self, _end: u64) {}
}

variants! {
    /// The way in which a log record gets into memory, and the flusher learns that it is whole.
    pub enum LogInsertVariant = "log_insert", best Latches, planned [] {
        /// One of 8 insertion latches is held from the reservation to the end of the copy.
        Latches = "latches": latches::Insertion<M>,
        /// The end of each record is published in a ring of slots; no latch, and a checkpoint stops no insertion.
        Ring = "ring": ring::Insertion<M>,
    }
    why {
        Latches: "What databases ship. One client takes 0.2 % fewer instructions under ring; simulated with up \
            to 434 clients on four sockets the two are level, and natively only one client has been measured."
            in "docs/mechanisms/log.md#variants";
    }

    /// Insertions in progress and the redo position, under the variant chosen.
    pub(super) enum Insertion[M: Machine], called by dispatch;
}

impl<M: Machine> Insertion<M> {
    /// Nothing is being inserted. The log goes on at `end`; pages last changed before `redo` need a full image.
    pub(super) fn new(variant: LogInsertVariant, options: &InsertionOptions, end: u64, redo: u64) -> Self {
        dispatch!(new variant => Insert::new(options, end, redo))
    }

    /// Inserts a record that was built for the redo position `built_for`; returns its end.
    #[inline]
    pub(super) fn insert(
        &self,
        reservation: &Reservation<M>,
        built_for: u64,
        record: &impl InsertedRecord,
    ) -> Result<u64, RedoMoved> {
        dispatch!(self, insertion => insertion.insert(reservation, built_for, record))
    }

    /// Waits until everything before `target`, which is reserved, is in the ring; returns up to where that is
    /// known.
    pub(super) fn wait_complete(&self, reservation: &Reservation<M>, target: u64) -> u64 {
        dispatch!(self, insertion => insertion.wait_complete(reservation, target))
    }

    /// The position up to which everything is in the ring, if that is known without waiting (R2).
    pub(super) fn complete(&self, reservation: &Reservation<M>) -> Option<u64> {
        dispatch!(self, insertion => insertion.complete(reservation))
    }

    /// The redo position. Acquire: pairs with the Release in `move_redo`.
    #[inline]
    pub(super) fn redo(&self) -> u64 {
        dispatch!(self, insertion => insertion.redo())
    }

    /// Moves the redo position to the end of what is reserved (R4); returns it.
    pub(super) fn move_redo(&self, reservation: &Reservation<M>) -> u64 {
        dispatch!(self, insertion => insertion.move_redo(reservation))
    }

    /// The log goes on at `end`, and nothing before is going to be inserted. Nothing is being inserted.
    pub(super) fn continue_at(&self, end: u64) {
        dispatch!(self, insertion => insertion.continue_at(end))
    }
}
