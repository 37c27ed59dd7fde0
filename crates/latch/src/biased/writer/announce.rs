//! Variant `announce`: say so in all slots, then wait once.
//!
//! `one-by-one` waits at each slot that has a reader inside, and each of those waits begins only when the one before it
//! is over. Meanwhile readers go on coming into the slots behind. Here all readers are refused from the announcement
//! on, and their sections end side by side: one wait, for the longest of them.
//!
//! # Example
//! A writer of four slots. Reader A is inside of slot 0 until time 200, reader B inside of slot 3 until time 250, and a
//! reader comes to slot 3 again and again.
//!
//! | time | `one-by-one` | `announce` |
//! | --- | --- | --- |
//! | 0 | waits at slot 0 | sets `EXCLUSIVE` in all four; two readers are inside |
//! | 200 | has slots 0 to 2, waits at slot 3 | A leaves: one is inside |
//! | 250 | B leaves, but another reader is inside of slot 3 | B leaves: granted |
//! | 450 | granted, if no reader came between | |
//!
//! # Protocol
//! 1. Take the writers' own latch, an LwLock, exclusively.
//! 2. In each slot add `EXCLUSIVE` to the word, *whatever readers it counts*. The sum of those counts is the number of
//!    readers inside.
//! 3. Add that number to `INSIDE`. If that makes it zero, all have left: granted. Otherwise wait for it to be zero.
//! 4. A reader that leaves a slot with `EXCLUSIVE` subtracts one from `INSIDE`. The one that makes it zero wakes the
//!    writer if it sleeps.
//! 5. Release: give back the slots, then the writers' latch, and then make the wake-ups owed.
//!
//! `INSIDE` is below zero, as wrapping arithmetic has it, while readers leave between steps 2 and 3.
//!
//! # The word `INSIDE`
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0 | `SLEEPS` | the writer sleeps until the count is zero |
//! | 1–31 | count | readers inside that the writer has counted, less those that have left since its announcement |
//!
//! # Why the simpler version is wrong
//! Without the writers' latch two writers that announce at the same time add `EXCLUSIVE` twice to a word. If each went
//! by the slots where it was first, each would wait for the other.
//!
//! # Rules
//! - A1 (C2): a worker adds `EXCLUSIVE` to a slot only while it holds the writers' latch, and gives that back only when
//!   it has given back all slots.
//! - A2: each reader that is counted at step 2 subtracts exactly one at step 4, and no other worker does. *The
//!   announcement and a reader's leaving are RMWs of one word. If leaving comes first, the reader is not counted and
//!   finds no `EXCLUSIVE`; otherwise it is counted and finds it.* So a slot's word must count only readers that were
//!   granted, never one that adds itself and may have to take that back: the slots do without `fetch-add`. A reader
//!   that was granted a slot twice (R10 of the LwLock) is counted twice, and leaves twice by step 4.
//! - A3 (C1): what a counted reader did is visible to the writer: it subtracts from `INSIDE` by a Release, and the
//!   writer finds zero by an Acquire; later subtractions continue the release sequence. A reader that was not counted
//!   left its slot by a Release before the announcement, which is an Acquire.
//! - A4: the subtractions of one writer's readers are over before those of the next writer's. *A reader that subtracts
//!   has seen the announcement (a Release, which the reader's fence acquires), and that comes after the former writer
//!   has found zero.* So `SLEEPS` may be taken away by a plain store.
//! - A5: no wake-up is lost. The writer sets `SLEEPS` by an RMW of the word from which readers subtract. Either that
//!   RMW shows that no reader is inside, or the last reader finds `SLEEPS`. The writer alone sleeps on the word.
//! - A6 (C3): a writer that waits at step 1 holds nothing. One that waits at step 3 waits for readers only, which wait
//!   for nothing.
//! - A7: the announcement leaves `GRANTS` of a slot as they are, though an exclusive grant clears them in an LwLock
//!   (R7 there). Workers that a full count refuses are woken all the same: `EXCLUSIVE` will be given back, with the wake
//!   check, and a wake-up that finds no exclusive clears the count. No exclusive is ever on the list of a slot.
//!
//! # Fairness
//! A writer that has the writers' latch waits for at most one section of each reader that was inside. Writers among
//! each other have the promise of the LwLock's policy. Readers have none against writers that come without pause.
//!
//! # Costs
//! A cache line for the writers. Exclusive: K + 1 additions and as many subtractions. A reader that leaves while a
//! writer waits: one RMW more, on the writers' line.
//!
//! # Order
//! The writers' latch orders the writers, so the slots need no order among each other (A6).
//!
//! # What it does not do
//! The K lines are not fetched side by side: a locked instruction waits for the one before it.
//!
//! Origin: counting the readers inside by one atomic addition, and letting the last one that leaves wake the writer, is
//! the reader-writer mutex of Go; there it is one word for all readers.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, CoreU32, Host, Machine};

use super::Slots;
use super::give_back::give_back;
use super::one_by_one::try_each;
use crate::class::{LatchClass, Wait};
use crate::lwlock::options::LwLockOptions;
use crate::lwlock::state::{EXCLUSIVE, SHARED_MASK};
use crate::lwlock::{LatchMode, LwLock};
use crate::waiting::Waiting;

/// In `INSIDE`: the writer sleeps.
const SLEEPS: u32 = 1;
/// In `INSIDE`: one reader.
const READER: u32 = 2;

// All slots' counts together fit: 64 slots of as many readers as there can be workers.
const _: () = assert!(READER as u64 * (1 << 16) < u32::MAX as u64);

/// The writers' latch, and what they wait for.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Announcement<M: Machine> {
    writers: LwLock<M>,
    inside: M::U32,
}

impl Announcement<Host> {
    /// As `new`, in a constant.
    pub(super) const fn in_static(class: &'static LatchClass, options: LwLockOptions) -> Self {
        Self {
            writers: LwLock::in_static(class, options),
            inside: CoreU32::new_const(0),
        }
    }
}

impl<M: Machine> Announcement<M> {
    pub(super) fn new(class: &'static LatchClass, options: LwLockOptions) -> Self {
        Self {
            writers: LwLock::new(class, options),
            inside: M::U32::new(0),
        }
    }

    pub(super) fn acquire(&self, slots: &Slots<M>) {
        if !self.try_writers_latch() {
            self.wait_for_writers_latch();
        }
        self.announce(slots);
    }

    /// Step 1, if that needs no waiting.
    pub(super) fn try_writers_latch(&self) -> bool {
        self.writers.try_grant(LatchMode::Exclusive)
    }

    /// Step 1.
    pub(super) fn wait_for_writers_latch(&self) {
        self.writers.acquire_slow(LatchMode::Exclusive);
    }

    /// Gives back the writers' latch alone.
    pub(super) fn release_writers_latch(&self) {
        self.writers.release_word(LatchMode::Exclusive);
    }

    /// Steps 2 and 3; the caller holds the writers' latch.
    pub(super) fn announce(&self, slots: &Slots<M>) {
        let mut readers = 0;
        for slot in slots {
            // Acquire: A3. Release: A4, pairs with the fence in `reader_left`.
            let before = slot.state.fetch_add(EXCLUSIVE, AcqRel);
            debug_assert!(before & EXCLUSIVE == 0, "A1: a slot has a writer");
            readers += before & SHARED_MASK;
        }
        if readers != 0 {
            self.wait_for(readers);
        }
    }

    /// Step 3: waits until `readers`, counted in the slots, have left.
    #[cold]
    #[inline(never)]
    fn wait_for(&self, readers: u32) {
        let counted = readers * READER;
        // Acquire, here and below: A3.
        let mut found = self.inside.fetch_add(counted, Acquire).wrapping_add(counted);
        if found == 0 {
            return;
        }
        let class = self.writers.class();
        let mut waiting =
            Waiting::begin::<M>(class, Wait::Exclusive, core::ptr::from_ref(&self.inside).cast());
        waiting.poll_as_owner::<M>();
        while found & !SLEEPS != 0 {
            if waiting.poll::<M>() {
                found = self.inside.load(Acquire);
                continue;
            }
            // A5: an RMW.
            found = self.inside.fetch_or(SLEEPS, Acquire) | SLEEPS;
            if found & !SLEEPS == 0 {
                break;
            }
            waiting.sleep_on_futex::<M>(|limit| M::futex_wait(&self.inside, found, limit));
            found = self.inside.load(Acquire);
        }
        if found & SLEEPS != 0 {
            // A4: no reader changes the word until the next announcement.
            self.inside.store(0, Relaxed);
        }
        waiting.finish::<M>();
    }

    pub(super) fn reader_left(&self) {
        // A4: pairs with the announcement, which the caller found when it left its slot.
        M::fence(Acquire);
        // Release: A3.
        if self.inside.fetch_sub(READER, Release) == READER | SLEEPS {
            M::futex_wake(&self.inside, 1);
        }
    }

    pub(super) fn try_acquire(&self, slots: &Slots<M>) -> bool {
        self.try_writers_latch() && self.try_slots(slots)
    }

    /// The rest of `try_acquire` for the holder of the writers' latch, which is given back if it fails.
    pub(super) fn try_slots(&self, slots: &Slots<M>) -> bool {
        // Not announced, so that a refused attempt has no reader to wait for.
        let granted = try_each(slots);
        if !granted {
            self.release_writers_latch();
        }
        granted
    }

    pub(super) fn release(&self, slots: &Slots<M>) {
        let owed = give_back(slots);
        // A1: after the slots, and before the wake-ups, so that the next writer need not wait for those.
        let owes_writers = self.writers.give_exclusive_back();
        owed.make(slots);
        if owes_writers {
            self.writers.wake_after_exclusive();
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.writers.is_held()
    }
}
