//! A worker's place in a segment: who owns its slot, and what it was doing if it dies.
//!
//! # Rules
//! - P1: `owner` changes from 0 by the CAS of a thread that claims the slot, and back to 0 by that thread, or after the death
//!   of its process by the one recoverer that a segment has at a time.
//! - P2: `inside` and `held` are written by the owner alone. It notes the latch in `inside` before its first access to the
//!   latch's words, and clears the note after its last one; a latch that it holds is in `held` from a moment at which
//!   `inside` names it to another such moment.
//! - P3: `inside` has `ASLEEP` from before a futex wait until after it, and nothing is changed in between.
//! - P4: `inside` says in which mode the worker wants the latch before the word of the latch counts it as a waiter, and with
//!   `ASLEEP` on which half of a word of 64 bits it sleeps. A latch whose word counts its waiters knows by that what to
//!   subtract for a dead one.
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
use crate::core_words::{CoreU32, CoreU64};
use crate::{AtomicWord, Half};

/// The most latches that a worker can hold at a time.
pub const HELD_MAX: usize = 200;

/// A [`SegmentMode`], in `inside` and in an entry of `held`.
const MODE: u64 = 0b11;
/// In `inside`: the worker sleeps.
const ASLEEP: u64 = 1 << 2;
/// In `inside`, with `ASLEEP`: on the upper half of a word of 64 bits.
const ON_UPPER_HALF: u64 = 1 << 3;
/// The place of the offset in both.
const OFFSET_SHIFT: u32 = 4;

/// The mode in which a worker holds a latch of a segment, or wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentMode {
    /// With others that hold it shared, and one in update mode.
    Shared = 0,
    /// With others that hold it shared.
    Update = 1,
    /// Alone.
    Exclusive = 2,
}

impl SegmentMode {
    fn of_word(word: u64) -> Self {
        match word & MODE {
            0 => Self::Shared,
            1 => Self::Update,
            _ => Self::Exclusive,
        }
    }
}

/// A latch that a worker holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLatch {
    /// Bytes from the beginning of the segment.
    pub offset: u64,
    /// The mode.
    pub mode: SegmentMode,
}

impl HeldLatch {
    fn word(self) -> u64 {
        self.offset << OFFSET_SHIFT | self.mode as u64
    }

    fn of_word(word: u64) -> Self {
        Self {
            offset: word >> OFFSET_SHIFT,
            mode: SegmentMode::of_word(word),
        }
    }
}

/// The sleep of a worker on a latch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatchSleep {
    /// The latch: bytes from the beginning of the segment.
    pub offset: u64,
    /// The mode in which the worker wants it. Of a latch with other waits than for a mode: any.
    pub mode: SegmentMode,
    /// The half of a word of 64 bits on which it sleeps; the lower one if the word has 32.
    pub half: Half,
}

/// The activity of a worker at the instant of its death.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// It used no latch.
    Outside,
    /// It slept so, or was about to fall asleep or had been woken by then, and held no other latch.
    Asleep(LatchSleep),
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
    /// 0, or the latch whose code the worker executes, the mode, `ASLEEP` and `ON_UPPER_HALF`.
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

    /// The owner is about to use the latch in its mode (P2, P4).
    #[inline(always)]
    pub(super) fn enter(&self, latch: HeldLatch) {
        self.inside.store(latch.word(), Relaxed);
        compiler_fence(SeqCst);
    }

    /// The owner has used the latch.
    #[inline(always)]
    pub(super) fn leave(&self) {
        compiler_fence(SeqCst);
        self.inside.store(0, Relaxed);
    }

    /// The owner, which is inside, is about to sleep on this half of a word (P3, P4). Nothing is noted outside of a latch.
    pub(super) fn note_asleep(&self, half: Half) {
        let sleep = match half {
            Half::Low => ASLEEP,
            Half::High => ASLEEP | ON_UPPER_HALF,
        };
        self.note_inside(|inside| inside | sleep);
    }

    /// The owner has slept.
    pub(super) fn note_awake(&self) {
        self.note_inside(|inside| inside & !(ASLEEP | ON_UPPER_HALF));
    }

    fn note_inside(&self, note: impl FnOnce(u64) -> u64) {
        let inside = self.inside.load(Relaxed);
        if inside == 0 {
            return;
        }
        compiler_fence(SeqCst);
        self.inside.store(note(inside), Relaxed);
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

    /// The owner, which is inside, holds the latch in another mode than before. `false` if it did not hold it as `before`.
    #[inline]
    pub(super) fn change_held(&self, before: HeldLatch, mode: SegmentMode) -> bool {
        let count = (self.held_count.load(Relaxed) as usize).min(HELD_MAX);
        let mut held = self.held[..count].iter().rev();
        let Some(place) = held.find(|word| word.load(Relaxed) == before.word()) else {
            return false;
        };
        place.store(HeldLatch { mode, ..before }.word(), Relaxed);
        compiler_fence(SeqCst);
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
            (inside, 0) if inside & ASLEEP != 0 => Activity::Asleep(LatchSleep {
                offset,
                mode: SegmentMode::of_word(inside),
                half: match inside & ON_UPPER_HALF {
                    0 => Half::Low,
                    _ => Half::High,
                },
            }),
            _ => Activity::Changing(offset),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODES: [SegmentMode; 3] = [SegmentMode::Shared, SegmentMode::Update, SegmentMode::Exclusive];

    #[test]
    fn a_worker_that_dies_asleep_has_noted_mode_and_half() {
        for mode in MODES {
            for half in [Half::Low, Half::High] {
                let claim = Claim::new();
                claim.enter(HeldLatch { offset: 4096, mode });
                assert_eq!(claim.activity(), Activity::Changing(4096));
                claim.note_asleep(half);
                let sleep = LatchSleep {
                    offset: 4096,
                    mode,
                    half,
                };
                assert_eq!(claim.activity(), Activity::Asleep(sleep));
                claim.note_awake();
                assert_eq!(claim.activity(), Activity::Changing(4096));
                claim.leave();
                assert_eq!(claim.activity(), Activity::Outside);
                claim.note_asleep(half);
                assert_eq!(
                    claim.activity(),
                    Activity::Outside,
                    "a sleep that is none of a latch's"
                );
            }
        }
    }

    #[test]
    fn a_worker_that_dies_asleep_and_holds_a_latch_in_any_mode_is_a_holder() {
        for mode in MODES {
            let claim = Claim::new();
            let [first, second] = [64, 128].map(|offset| HeldLatch { offset, mode });
            claim.enter(first);
            claim.add_held(first);
            claim.leave();
            assert_eq!(claim.activity(), Activity::Changing(0));
            for other in MODES {
                assert!(claim.change_held(first, other));
                let changed = HeldLatch { mode: other, ..first };
                assert!(claim.holds(changed) && claim.held().count() == 1);
                assert!(claim.change_held(changed, mode));
            }
            assert!(!claim.change_held(second, mode));
            claim.enter(second);
            claim.note_asleep(Half::Low);
            assert_eq!(claim.activity(), Activity::Changing(128));
        }
    }
}
