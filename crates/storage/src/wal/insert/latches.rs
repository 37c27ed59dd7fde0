//! Eight insertion latches, the baseline: an insertion holds one of them.
//!
//! # Steps of an insertion
//! 1. Take a latch: the one used last; if the worker had to sleep for it, the next one next time.
//! 2. Check that the redo position is still the one the record was built for (else the record may lack page images).
//! 3. Reserve space.
//! 4. If the ring is full up to there: advertise the start in the latch's `inserting_at`, then flush.
//! 5. Copy the record; release the latch.
//!
//! # How the rules are kept
//! - R1: the latch is held from before the reservation until the bytes are in the ring. So when each latch
//!   has been seen free, or advertising a position ≥ p, all bytes before min(p, what was reserved when the
//!   look began) are in the ring.
//! - R2: a holder of an insertion latch waits for a flush only after advertising; `complete` waits for no
//!   latch. So the two never wait for each other.
//! - R4: `move_redo` holds *all* latches, so nothing is being inserted at that instant, and each insertion
//!   compares the redo position under its latch. `move_redo` inserts nothing, and advertises the end of all time in
//!   each latch as soon as it holds it. The reason: the inserter that holds the next latch may be waiting, in a
//!   flush, for the latches that `move_redo` holds already.
//!
//! Cost: two locked instructions for each insertion without contention (the latch, the reservation), and a
//! walk over the latches for each flush.
//!
//! Origin: PostgreSQL's xlog.c (Heikki Linnakangas, 2013).

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{LatchClass, LwLock, LwLockExclusive};
use clearway_machine::{AtomicWord, GrowingTable, Machine, Padded, WaitEvent, WorkerId};

use super::{Insert, InsertedRecord, InsertionOptions, RedoMoved};
use crate::page::Lsn;
use crate::wal::reserve::Reservation;

static WAL_INSERT: LatchClass = LatchClass::new("WALInsert", WaitEvent::WalInsert, 500);

struct InsertLatch<M: Machine> {
    latch: LwLock<M>,
    /// 0 = unknown; else everything that the latch's holder inserts lies at or after it.
    inserting_at: M::U64,
}

pub(in crate::wal) struct Insertion<M: Machine> {
    latches: Box<[Padded<InsertLatch<M>>]>,
    redo: Padded<M::U64>,
    /// The latch to try, by worker slot; a hint.
    preferred: GrowingTable<M, M::U32>,
}

impl<M: Machine> Insert<M> for Insertion<M> {
    fn new(options: &InsertionOptions, _end: u64, redo: u64) -> Self {
        let latches = options.latches;
        let insert_latch = |_| {
            Padded(InsertLatch {
                latch: LwLock::new(&WAL_INSERT, options.lwlock),
                inserting_at: M::U64::new(0),
            })
        };
        let first_choice = move |worker: WorkerId| M::U32::new(worker.0 % latches as u32);
        Self {
            latches: (0..latches).map(insert_latch).collect(),
            redo: Padded(M::U64::new(redo)),
            preferred: GrowingTable::by_worker(first_choice),
        }
    }

    fn insert(
        &self,
        reservation: &Reservation<M>,
        built_for: u64,
        record: &impl InsertedRecord,
    ) -> Result<u64, RedoMoved> {
        let (chosen, guard) = self.acquire();
        let redo = self.redo();
        if redo != built_for {
            drop(guard);
            return Err(RedoMoved(Lsn(redo)));
        }
        // R1.
        let start = record.reserve_in_order(|| (reservation.reserve(record.size()).start, true));
        let end = start + record.size();
        if record.lacks_room(end) {
            // R2.
            guard.update_var(&chosen.inserting_at, start);
            record.wait_for_room(end);
        }
        record.copy_to(start);
        guard.release_clear_var(&chosen.inserting_at, 0);
        Ok(end)
    }

    fn wait_complete(&self, reservation: &Reservation<M>, target: u64) -> u64 {
        let mut complete = reservation.end();
        assert!(
            target <= complete,
            "position {target} is flushed before it is reserved ({complete})"
        );
        for insert in &self.latches {
            let mut at = 0;
            // Err: still inserting, but at `at` or later.
            while let Err(now) = insert.latch.wait_for_var(&insert.inserting_at, at) {
                at = now;
                if at >= target {
                    complete = complete.min(at);
                    break;
                }
            }
        }
        complete
    }

    fn complete(&self, reservation: &Reservation<M>) -> Option<u64> {
        let mut complete = reservation.end();
        for insert in &self.latches {
            if insert.latch.is_held_exclusive() {
                match insert.inserting_at.load(Acquire) {
                    0 => return None,
                    at => complete = complete.min(at),
                }
            }
        }
        // Pairs with the Release with which each latch seen free was released: its holder's bytes are
        // visible.
        M::fence(Acquire);
        Some(complete)
    }

    #[inline]
    fn redo(&self) -> u64 {
        self.redo.load(Acquire)
    }

    fn move_redo(&self, reservation: &Reservation<M>) -> u64 {
        let all = self.latches.iter().map(|insert| {
            let guard = insert.latch.exclusive();
            // R4.
            guard.update_var(&insert.inserting_at, u64::MAX);
            (guard, &insert.inserting_at)
        });
        let all: Vec<_> = all.collect();
        let redo = reservation.end();
        self.redo.store(redo, Release);
        for (guard, inserting_at) in all {
            guard.release_clear_var(inserting_at, 0);
        }
        redo
    }
}

impl<M: Machine> Insertion<M> {
    fn acquire(&self) -> (&InsertLatch<M>, LwLockExclusive<'_, M>) {
        let preferred = self.preferred.get(M::worker().0 as usize);
        let number = preferred.load(Relaxed) as usize;
        let chosen = &self.latches[number];
        if let Some(guard) = chosen.latch.try_exclusive() {
            return (chosen, guard);
        }
        preferred.store(((number + 1) % self.latches.len()) as u32, Relaxed);
        (chosen, chosen.latch.exclusive())
    }
}
