//! The state of an SsuxLock in one word of 64 bits: below, the word of a mutex (see `holder`), owned in U and X mode and marked `EXCLUSIVE`
//! for X; above it, how many are inside in shared mode (bits 32 to 62), and `AWAITED` (bit 63): the owner sleeps until they have left.
//!
//! Two kinds of sleepers stay apart because a futex compares 32 bits: who waits for an owner sleeps on the lower half, the owner that
//! waits for readers on the upper one. Nobody but the kernel reads a half alone.
//!
//! # Protocol
//! - **U**: own the word. **X**: own it with `EXCLUSIVE`, in one step if the lock is idle; then wait until no reader is inside.
//! - **S**: CAS the count one up, unless `EXCLUSIVE` is set. A reader that waits is on record below, and sleeps there while `EXCLUSIVE` is
//!   set.
//! - S release: subtract one; the last to leave wakes the owner if `AWAITED` is set. The owner sets it before it sleeps, in one step with a
//!   look at the count, and clears it when it is back; so an owner that polls costs no system call.
//! - Each other transition is one read-modify-write of everything it changes, so none passes through a state that is not one of a lock: X to
//!   S gives up ownership, opens the lock and is counted in one addition; an attempt at X that would have to wait has changed nothing.
//!
//! # Why it holds, beside the lock's S2 to S5
//! - S1 of the state in two words, which is about the order in which two words say the same, has nothing left to say: `EXCLUSIVE` shuts
//!   readers out and is what they sleep on.
//!
//! # Costs
//! Locked instructions of an uncontended pair on x86-64: two in each mode. A reader's CAS fails also if somebody registers as a waiter
//! meanwhile.
//!
//! Origin: `holder` and `in_two_words`; that a futex may be half of what changes in one step is glibc's semaphore's (`sem_t` of 64 bits).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{CoreU64, Machine};

use super::holder::{EXCLUSIVE, HOLDER, HolderProtocol, HolderWord, UNIT, WORD};
use super::place::{BesideReaders, Place};
use super::ssux_state::{ConstState, Owned, SsuxState};
use crate::waiting::Waiting;

/// One reader inside.
const INSIDE: u64 = 1 << 32;
/// The owner sleeps until the readers inside have left.
const AWAITED: u64 = 1 << 63;
/// All readers inside.
const ALL_INSIDE: u64 = !WORD & !AWAITED;

/// How many are inside.
fn inside(word: u64) -> u32 {
    ((word & ALL_INSIDE) >> 32) as u32
}

/// See the module's documentation.
#[derive(Debug)]
pub struct InOneWord<P: HolderProtocol, M: Machine>(HolderWord<P, M, BesideReaders<M>>);

impl<P: HolderProtocol, M: Machine<U64 = CoreU64>> ConstState for InOneWord<P, M> {
    const IDLE: Self = Self(HolderWord::IDLE);
}

impl<P: HolderProtocol, M: Machine> InOneWord<P, M> {
    /// Changes the word by `change` while it says `Some`, whoever else changes it meanwhile; what it was, or what it is if it said `None`.
    #[inline]
    fn change(
        &self,
        mut seen: u64,
        success: core::sync::atomic::Ordering,
        change: impl Fn(u64) -> Option<u64>,
    ) -> Result<u64, u64> {
        while let Some(new) = change(seen) {
            match self.0.word.compare_exchange_weak(seen, new, success) {
                Ok(_) => return Ok(seen),
                Err(found) => seen = found,
            }
        }
        Err(seen)
    }

    /// S5: the last reader has gone and the owner sleeps until then, if `before` says so.
    #[cold]
    #[inline(never)]
    fn left_beside_exclusive(&self, before: u64) {
        if before & (AWAITED | ALL_INSIDE) == AWAITED | INSIDE {
            self.0.word.wake_owner();
        }
    }

    fn owned(before: u64) -> Owned {
        match before & ALL_INSIDE {
            0 => Owned::Alone,
            _ => Owned::BesideReaders,
        }
    }

    /// The caller has become a reader and given the rest up; wakes one that waits.
    fn gave_up(&self, before: u64, held: u64) {
        debug_assert_eq!(
            before & (HOLDER | EXCLUSIVE),
            held & (HOLDER | EXCLUSIVE),
            "given up, not held"
        );
        if before & WORD != held {
            self.0.released();
        }
    }
}

impl<P: HolderProtocol, M: Machine> SsuxState<M> for InOneWord<P, M> {
    fn new() -> Self {
        Self(HolderWord::new())
    }

    fn shared_holders(&self) -> u32 {
        inside(self.0.look())
    }

    fn is_owned(&self) -> bool {
        self.0.is_held()
    }

    fn is_held_exclusively(&self) -> bool {
        // S2.
        self.0.look() & (EXCLUSIVE | ALL_INSIDE) == EXCLUSIVE
    }

    #[inline(always)]
    fn try_enter(&self) -> bool {
        let seen = self.0.look();
        // Acquire: pairs with the Release of the last writer, whose release every later change of the word continues.
        seen & EXCLUSIVE == 0
            && self
                .0
                .word
                .compare_exchange_weak(seen, seen + INSIDE, Acquire)
                .is_ok()
    }

    #[inline]
    fn enter(&self) -> bool {
        self.change(self.0.look(), Acquire, |seen| {
            (seen & EXCLUSIVE == 0).then_some(seen + INSIDE)
        })
        .is_ok()
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.0.look() & EXCLUSIVE == 0
    }

    #[inline(always)]
    fn exit(&self) {
        // Release: pairs with the Acquire with which an exclusive sees its readers gone.
        let before = self.0.word.fetch_sub(INSIDE, Release);
        debug_assert_ne!(before & ALL_INSIDE, 0, "released, not held");
        if before & EXCLUSIVE != 0 {
            self.left_beside_exclusive(before);
        }
    }

    fn record_reader(&self) {
        self.0.record_reader();
    }

    fn sleep_while_exclusive(&self, waiting: &mut Waiting, slept: bool) -> bool {
        self.0.sleep_while_exclusive(waiting, slept)
    }

    fn forget_reader(&self, slept: bool) {
        self.0.forget_reader(slept);
    }

    #[inline(always)]
    fn take_update_idle(&self) -> bool {
        self.0.take_idle(0)
    }

    #[inline]
    fn try_take_update(&self) -> bool {
        self.0.try_take(0)
    }

    fn take_update(&self, waiting: &mut Waiting) {
        self.0.take_slow(waiting, 0);
    }

    #[inline(always)]
    fn release_update(&self) {
        self.0.release(0);
    }

    #[inline(always)]
    fn take_exclusive_idle(&self) -> Option<Owned> {
        self.0.take_idle(EXCLUSIVE).then_some(Owned::Alone)
    }

    #[inline]
    fn try_take_exclusive(&self) -> bool {
        self.change(self.0.look(), Acquire, |seen| {
            (seen & (HOLDER | ALL_INSIDE) == 0).then_some(seen + (HOLDER | EXCLUSIVE | UNIT))
        })
        .is_ok()
    }

    fn take_exclusive(&self, waiting: &mut Waiting) -> Owned {
        self.0.take_slow(waiting, EXCLUSIVE);
        match self.readers_left() {
            0 => Owned::Alone,
            _ => Owned::BesideReaders,
        }
    }

    fn readers_left(&self) -> u32 {
        let seen = self.0.word.load(Acquire);
        debug_assert_eq!(
            seen & (EXCLUSIVE | AWAITED),
            EXCLUSIVE,
            "only the owner unmarks, and it is awake"
        );
        inside(seen)
    }

    fn sleep_beside(&self, waiting: &mut Waiting) {
        // A reader that leaves does so before this, and is not counted in what it returns, or after it, and sees the mark.
        let seen = self.0.word.fetch_or(AWAITED, Relaxed) | AWAITED;
        if inside(seen) != 0 {
            self.0.word.sleep_on_readers(waiting, seen);
        }
        self.0.word.fetch_clear(AWAITED, Relaxed);
    }

    #[inline(always)]
    fn release_exclusive(&self) {
        self.0.release(EXCLUSIVE);
    }

    fn update_to_exclusive(&self) -> Owned {
        // Acquire: what readers read comes before what we write.
        Self::owned(self.0.word.fetch_add(EXCLUSIVE, Acquire))
    }

    fn try_update_to_exclusive(&self) -> bool {
        self.change(self.0.look(), Acquire, |seen| {
            (seen & ALL_INSIDE == 0).then_some(seen + EXCLUSIVE)
        })
        .is_ok()
    }

    fn update_to_shared(&self) {
        const HELD: u64 = HOLDER | UNIT;
        // Release: pairs with the Acquire of the next owner.
        let before = self.0.word.fetch_add(INSIDE - HELD, Release);
        self.gave_up(before, HELD);
    }

    fn exclusive_to_update(&self) {
        self.0.unmark_exclusive();
    }

    fn exclusive_to_shared(&self) {
        const HELD: u64 = HOLDER | EXCLUSIVE | UNIT;
        let before = self.0.word.fetch_add(INSIDE - HELD, Release);
        self.gave_up(before, HELD);
    }

    fn try_shared_to_update(&self) -> bool {
        let became = self.change(self.0.look(), Acquire, |seen| {
            (seen & HOLDER == 0).then_some(seen + (HOLDER + UNIT) - INSIDE)
        });
        if let Ok(before) = became {
            self.0.let_readers_in(before, 0);
        }
        became.is_ok()
    }
}
