//! Completion in a ring of slots: an insertion takes no latch, and the flusher looks at no latch.
//!
//! Invariant: the slot of a record that begins at `s` holds a position ≤ `s` until the record's bytes are in the ring,
//! and the record's end from then on, until `written` has passed that end. So a walker that begins where a record
//! begins sees at each slot whether that record is whole, and where the next one begins.
//!
//! | slot | means, to a walker at the record that begins at `s` |
//! | --- | --- |
//! | ≤ `s` | the record is not whole; the value is the end of an earlier record |
//! | in (`s`, `s` + ring size] | the record is whole and ends there |
//! | beyond | the walker is late: the record was whole, written out, and its slot used again |
//! | bit 0 | a worker sleeps until the slot changes (positions are multiples of 8) |
//!
//! A record has at least [`HEADER`] bytes, so there is a slot for that many bytes of the ring, and no two records that
//! are in the ring share one. `complete` is a position where a record begins and before which all are whole. It lags
//! behind; walkers begin there and move it on.
//!
//! # Steps of an insertion
//! 1. Look at the redo position: the one that the record was built for, or it is to be built again.
//! 2. Reserve space. The reservation says in which *era* it was made; an era begins when the redo position moves.
//! 3. Decide: if the era is still that of step 1, and so is the redo position, the record is inserted. Else it is
//!    *withdrawn*.
//! 4. If the ring is full up to the record's end: flush.
//! 5. Copy the record. One that is withdrawn is copied as [`Nothing`](crate::wal::record::RecordKind::NOTHING), which
//!    recovery skips: its place cannot be given back.
//! 6. Publish: swap the end into the slot, and wake the sleepers if its bit 0 was set.
//! 7. If the record was withdrawn: wait until the new redo position can be read, and have the record built again.
//!
//! # Steps of a flusher
//! 1. Walk from `complete` over the slots of whole records; move `complete` to where the walk ends.
//! 2. If that is before the target: look at the slot there a few times more, then set its bit 0 and sleep on it. Begin
//!    again.
//!
//! # Moving the redo position
//! One RMW of the reservation's word begins the next era: its position `r` is the new redo position. Reservations
//! before it in the order of that word lie before `r`; those behind it lie behind `r` and know that they are of the
//! next era. Then `r` is published, with the era. Nothing stops: records before `r` may still be copied.
//!
//! The era alone is not enough: it is one bit, and the redo position may move twice between steps 1 and 2. The second
//! look at the redo position alone is not enough: the era may have begun while its redo position is not published yet.
//! Together they are: if it moved once, the era differs; if it moved twice, the first move was published before the
//! second era began, and the reservation acquires that. Positions with their eras do not come back: if both are as in
//! step 1, at most nothing was reserved between the moves, and the record was built for the right position.
//!
//! # How the rules are kept
//! - R1: a slot gets the record's end (Release) after the bytes are in the ring. A walker reads it (Acquire), so it
//!   sees the bytes; it moves `complete` by a Release after it has seen all bytes before, and the next walker begins
//!   there by an Acquire.
//! - R2: an insertion that finds the ring full waits for a flush up to its own end less the ring's size, which is at
//!   most its own start. So that flush waits for records before this one only, and the first of all records that are
//!   not whole waits for none. `complete` waits for nothing.
//! - R3 holds for slots as for bytes. Two records with one slot begin less than a slot's bytes short of a ring's size
//!   apart, so the later one ends further than a ring's size behind the start of the earlier one. It has room:
//!   `written`, which is the end of a record here, has passed that start and so that record.
//! - R4: a record behind the redo position was reserved in its era or a later one and was not withdrawn, so it was
//!   built for the redo position of its era. Each RMW of the reservation's word acquires those before it: a worker that
//!   has moved the redo position sees what was done before each reservation that lies before it.
//! - A late walker restarts at `complete`. It sees a later value there than before: the slot's new user acquired
//!   `written`, which was released after `complete` had moved.
//! - A sleeper is woken. It sets bit 0 by a CAS from a value that says "not whole", so the record's swap is still to
//!   come, and finds the bit. The futex compares the slot, so a swap that comes first is not missed.
//!
//! # Cost
//! Two locked instructions for each insertion, on the word that all reserve from and on the record's own slot; a
//! quarter of the ring's size in memory. The flusher reads one slot for each record, one behind the other, most of
//! them last written by another core. Neighbouring records share a line of slots: with 100 bytes each, two
//! or three of them.
//!
//! There is no bit that makes inserters back off when the positions wrap. Positions count bytes of the log in
//! 64 bits and do not wrap; the ring is indexed by them, and each insertion finds by its own end whether there is room.
//!
//! Origin: the ring of completions is that of MySQL 8's `recent_written` (2018, a link buffer); the era instead of a
//! stop of all insertions is ours.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, SpinLatch};
use clearway_machine::{AtomicWord, Half, Machine, Padded, WaitEvent, WaitScope};

use super::{Insert, InsertedRecord, InsertionOptions, RedoMoved};
use crate::page::Lsn;
use crate::wal::record::HEADER;
use crate::wal::reserve::Reservation;

/// Held while the redo position moves. Checkpoints run one at a time, so it is free.
static WAL_REDO: LatchClass = LatchClass::new("WALRedo", WaitEvent::SpinDelay, 0);

/// Bit 0 of a slot: a worker sleeps until the slot changes.
const AWAITED: u64 = 1;
/// Bit 0 of the published redo position: its era.
const ERA: u64 = 1;
/// Looks at a slot before its flusher sleeps: about as long as it takes to copy a large record.
const LOOKS: u32 = 200;

pub(in crate::wal) struct Insertion<M: Machine> {
    slots: Box<[M::U64]>,
    ring_size: u64,
    complete: Padded<M::U64>,
    /// The redo position, and its era in bit 0.
    redo: Padded<M::U64>,
    moving: SpinLatch<M>,
}

impl<M: Machine> Insert<M> for Insertion<M> {
    fn new(options: &InsertionOptions, end: u64, redo: u64) -> Self {
        let slots = (options.ring_size / HEADER).max(1);
        debug_assert!(slots.is_power_of_two(), "slots are found by a mask");
        Self {
            slots: (0..slots).map(|_| M::U64::new(0)).collect(),
            ring_size: options.ring_size as u64,
            complete: Padded(M::U64::new(end)),
            redo: Padded(M::U64::new(redo)),
            moving: SpinLatch::new(&WAL_REDO),
        }
    }

    #[inline]
    fn insert(
        &self,
        reservation: &Reservation<M>,
        built_for: u64,
        record: &impl InsertedRecord,
    ) -> Result<u64, RedoMoved> {
        let redo = self.redo.load(Acquire);
        if redo & !ERA != built_for {
            return Err(RedoMoved(Lsn(redo & !ERA)));
        }
        let (reserved, inserted) = record.reserve_in_order(|| {
            let reserved = reservation.reserve(record.size());
            // R4. Relaxed: the reservation acquired every move but the last one before it, and the era tells of that one.
            let inserted = reserved.era == redo & ERA && self.redo.load(Relaxed) == redo;
            ((reserved, inserted), inserted)
        });
        let end = reserved.start + record.size();
        if record.lacks_room(end) {
            // R2.
            record.wait_for_room(end);
        }
        if inserted {
            record.copy_to(reserved.start);
        } else {
            record.withdraw_to(reserved.start);
        }
        self.publish(reserved.start, end);
        if inserted {
            Ok(end)
        } else {
            Err(RedoMoved(Lsn(self.redo_after(redo))))
        }
    }

    fn wait_complete(&self, reservation: &Reservation<M>, target: u64) -> u64 {
        loop {
            let complete = self.walk();
            if complete >= target {
                return complete;
            }
            let reserved = reservation.end();
            assert!(
                target <= reserved,
                "position {target} is flushed before it is reserved ({reserved})"
            );
            self.wait_for_record(complete);
        }
    }

    fn complete(&self, _reservation: &Reservation<M>) -> Option<u64> {
        Some(self.walk())
    }

    fn continue_at(&self, end: u64) {
        // A walker begins here; the slots hold older positions.
        self.complete.store(end, Release);
    }

    #[inline]
    fn redo(&self) -> u64 {
        self.redo.load(Acquire) & !ERA
    }

    fn move_redo(&self, reservation: &Reservation<M>) -> u64 {
        let _one = self.moving.lock();
        let begun = reservation.begin_era();
        // Release: pairs with the Acquire loads of the redo position.
        self.redo.store(begun.start | begun.era, Release);
        begun.start
    }
}

impl<M: Machine> Insertion<M> {
    /// The slot of the record that begins at `start`.
    #[inline]
    fn slot(&self, start: u64) -> &M::U64 {
        &self.slots[(start / HEADER as u64) as usize & (self.slots.len() - 1)]
    }

    /// The record from `start` to `end` is in the ring.
    #[inline]
    fn publish(&self, start: u64, end: u64) {
        let slot = self.slot(start);
        // Release: pairs with the Acquire in `walk_from`; publishes the record's bytes (R1).
        let before = slot.swap(end, Release);
        debug_assert!(
            before & !AWAITED <= start,
            "the slot of {start} is in use: {before}"
        );
        if before & AWAITED != 0 {
            Self::wake(slot);
        }
    }

    #[cold]
    fn wake(slot: &M::U64) {
        M::futex_wake_half(slot, Half::Low, u32::MAX);
    }

    /// Up to where all records are whole; moves `complete` there.
    fn walk(&self) -> u64 {
        // Acquire: pairs with the Release in `walk_from`; the bytes before are visible.
        self.walk_from(self.complete.load(Acquire))
    }

    /// As [`walk`](Self::walk), from what `complete` was at some time.
    fn walk_from(&self, mut known: u64) -> u64 {
        let mut at = known;
        loop {
            // Acquire: pairs with the Release in `publish`.
            let end = self.slot(at).load(Acquire) & !AWAITED;
            if end <= at {
                break;
            }
            at = if end > at + self.ring_size {
                // Late: this record has been written out.
                self.complete.load(Acquire)
            } else {
                end
            };
        }
        while known < at {
            // Release: pairs with the Acquire in `walk`. This worker has seen all bytes before `at`.
            match self.complete.compare_exchange_weak(known, at, Release, Relaxed) {
                Ok(_) => break,
                Err(now) => known = now,
            }
        }
        at
    }

    /// Waits until the record that begins at `start`, and is reserved, is in the ring.
    #[cold]
    fn wait_for_record(&self, start: u64) {
        let slot = self.slot(start);
        let _wait = WaitScope::<M>::enter(WaitEvent::WalInsertFinish);
        let looks = if M::EXPLORED { 0 } else { LOOKS };
        let mut looked = 0;
        loop {
            let found = slot.load(Relaxed);
            if found & !AWAITED > start {
                return;
            }
            if looked < looks {
                looked += 1;
                M::spin_hint_of(looks - looked);
                continue;
            }
            let awaited = found | AWAITED;
            if found == awaited || slot.compare_exchange(found, awaited, Relaxed, Relaxed).is_ok() {
                M::futex_wait_half(slot, Half::Low, Half::Low.of(awaited), None);
            }
        }
    }

    /// The redo position once it is no longer the one `known`. The worker that moves it is between two instructions.
    #[cold]
    fn redo_after(&self, known: u64) -> u64 {
        let mut looked = 0_u32;
        loop {
            let redo = self.redo.load(Acquire);
            if redo != known {
                return redo & !ERA;
            }
            looked = looked.wrapping_add(1);
            if looked.is_multiple_of(LOOKS) {
                M::yield_now();
            } else {
                M::spin_hint();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clearway_latch::LwLockOptions;
    use clearway_machine::Native;

    use super::*;

    /// A walker reads `complete`; while it sleeps, the record there is written out and the next but one uses its slot.
    /// Between the two is a hole.
    #[test]
    fn a_late_walker_stops_at_a_hole() {
        // The ring holds two records.
        let options = InsertionOptions {
            lwlock: LwLockOptions::default(),
            latches: 0,
            ring_size: 64,
        };
        let insertion = Insertion::<Native>::new(&options, 64, 64);
        let late = insertion.complete.load(Relaxed);
        insertion.publish(64, 96);
        assert_eq!(insertion.walk(), 96);
        insertion.publish(128, 160);
        assert_eq!(insertion.walk_from(late), 96);
        insertion.publish(96, 128);
        assert_eq!(insertion.walk_from(late), 160);
        assert_eq!(insertion.complete.load(Relaxed), 160);
    }
}
