//! A worker's place in a segment: who owns its slot, and what it was doing if it dies.
//!
//! # Rules
//! - P1: `owner` changes from 0 by the CAS of a thread that claims the slot, and back to 0 by that thread, or after the death
//!   of its process by the one recoverer that a segment has at a time.
//! - P2: `inside` and `held` are written by the owner alone. It notes the latch in `inside` before its first access to the
//!   latch's words, and clears the note after its last one; a latch that it holds is in `held` from a moment at which
//!   `inside` names it to another such moment.
//! - P3: `inside` has `ASLEEP` from before a futex wait until after it, and nothing is changed in between.
//!
//! So of a dead worker that neither holds nor is inside, nothing is left in any latch. One that is inside and asleep, and holds
//! nothing, has changed nothing since it fell asleep; what others have done to its slot since is settled by the latch. In all
//! other cases a latch is held, or may be, or is half changed.
//!
//! # Why compiler fences are enough
//! A kill falls between two instructions. What comes before it in the order of the program has been executed and reaches memory;
//! what comes after it has not begun. The reader of the notes of a dead worker has heard of its death from the kernel. So the
//! order of the instructions is what counts, and only the compiler can change it.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use core::sync::atomic::compiler_fence;

use super::process::ProcessId;
use crate::AtomicWord;
use crate::core_words::{CoreU32, CoreU64};

/// The most latches that a worker can hold at a time.
pub const HELD_MAX: usize = 200;

/// In `inside`: the worker sleeps.
const ASLEEP: u64 = 1;
/// In an entry of `held`: exclusively.
const EXCLUSIVE: u64 = 1;
/// The place of the offset in both.
const OFFSET_SHIFT: u32 = 2;

/// A latch that a worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLatch {
    /// Bytes from the beginning of the segment.
    pub offset: u64,
    /// True if no other worker can hold it.
    pub is_exclusive: bool,
}

impl HeldLatch {
    fn word(self) -> u64 {
        self.offset << OFFSET_SHIFT | if self.is_exclusive { EXCLUSIVE } else { 0 }
    }

    fn of_word(word: u64) -> Self {
        Self {
            offset: word >> OFFSET_SHIFT,
            is_exclusive: word & EXCLUSIVE != 0,
        }
    }
}

/// The activity of a worker at the instant of its death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It used no latch.
    Outside,
    /// It slept on the latch at this offset, or was about to fall asleep or had been woken by then, and held no other.
    Asleep(u64),
    /// It held a latch, or was about to take, release or change one: the one at this offset, of which it is not known whether
    /// the worker held it; 0 if only of those that it held.
    Changing(u64),
}

/// The notes of one worker. All zero is a slot without one.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Claim {
    /// 0, or a [`ProcessId`].
    owner: CoreU64,
    /// 0, or the latch whose code the worker executes, with `ASLEEP`.
    inside: CoreU64,
    held_count: CoreU32,
    held: [CoreU64; HELD_MAX],
}

const _: () = assert!(size_of::<Claim>() == 1664);

impl Claim {
    pub(super) fn new() -> Self {
        Self {
            owner: CoreU64::new_const(0),
            inside: CoreU64::new_const(0),
            held_count: CoreU32::new_const(0),
            held: [const { CoreU64::new_const(0) }; HELD_MAX],
        }
    }

    /// The process whose thread has the slot.
    pub(super) fn owner(&self) -> Option<ProcessId> {
        // Acquire: pairs with the CAS in `take`.
        match self.owner.load(Acquire) {
            0 => None,
            owner => Some(ProcessId(owner)),
        }
    }

    /// Takes the slot if it has no owner (P1). Acquire: the slot is as the one before has left it.
    pub(super) fn take(&self, process: ProcessId) -> bool {
        self.owner.load(Relaxed) == 0 && self.owner.compare_exchange(0, process.0, AcqRel, Relaxed).is_ok()
    }

    /// Gives the slot back, with notes as of a new one.
    pub(super) fn give_back(&self) {
        self.inside.store(0, Relaxed);
        self.held_count.store(0, Relaxed);
        // Release: pairs with the CAS in `take`.
        self.owner.store(0, Release);
    }

    /// The owner is about to use the latch at `offset` (P2).
    #[inline(always)]
    pub(super) fn enter(&self, offset: u64) {
        self.inside.store(offset << OFFSET_SHIFT, Relaxed);
        compiler_fence(SeqCst);
    }

    /// The owner has used the latch.
    #[inline(always)]
    pub(super) fn leave(&self) {
        compiler_fence(SeqCst);
        self.inside.store(0, Relaxed);
    }

    /// The owner, which is inside, is about to sleep, or has slept (P3). `false` outside of a latch, where nothing is noted.
    pub(super) fn note_asleep(&self, asleep: bool) {
        let inside = self.inside.load(Relaxed);
        if inside == 0 {
            return;
        }
        compiler_fence(SeqCst);
        self.inside
            .store(if asleep { inside | ASLEEP } else { inside & !ASLEEP }, Relaxed);
        compiler_fence(SeqCst);
    }

    /// True if one more latch can be noted.
    #[inline(always)]
    pub(super) fn has_room(&self) -> bool {
        (self.held_count.load(Relaxed) as usize) < HELD_MAX
    }

    /// The owner, which is inside, holds the latch.
    ///
    /// # Panics
    /// Without room.
    #[inline]
    pub(super) fn add_held(&self, latch: HeldLatch) {
        let count = self.held_count.load(Relaxed);
        self.held[count as usize].store(latch.word(), Relaxed);
        compiler_fence(SeqCst);
        self.held_count.store(count + 1, Relaxed);
    }

    /// The owner, which is inside, is about to release the latch. `false` if it does not hold it so.
    #[inline]
    pub(super) fn remove_held(&self, latch: HeldLatch) -> bool {
        let Some(count) = self.held_count.load(Relaxed).checked_sub(1) else {
            return false;
        };
        let held = &self.held[..=count as usize];
        // The latest first: latches are mostly released in the opposite order.
        let Some(place) = held.iter().rposition(|word| word.load(Relaxed) == latch.word()) else {
            return false;
        };
        held[place].store(held[count as usize].load(Relaxed), Relaxed);
        compiler_fence(SeqCst);
        self.held_count.store(count, Relaxed);
        true
    }

    /// True if the owner holds the latch so.
    pub(super) fn holds(&self, latch: HeldLatch) -> bool {
        self.held().any(|held| held == latch)
    }

    /// The latches held by the owner.
    pub(super) fn held(&self) -> impl Iterator<Item = HeldLatch> {
        let count = (self.held_count.load(Relaxed) as usize).min(HELD_MAX);
        self.held[..count]
            .iter()
            .map(|word| HeldLatch::of_word(word.load(Relaxed)))
    }

    /// The activity of the owner, which is dead.
    pub(super) fn activity(&self) -> Activity {
        let inside = self.inside.load(Relaxed);
        let offset = inside >> OFFSET_SHIFT;
        match (inside, self.held_count.load(Relaxed)) {
            (0, 0) => Activity::Outside,
            (inside, 0) if inside & ASLEEP != 0 => Activity::Asleep(offset),
            _ => Activity::Changing(offset),
        }
    }
}
