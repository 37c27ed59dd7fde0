//! The state of an SsuxLock in one word of 64 bits.
//!
//! | bits | holds |
//! | --- | --- |
//! | 0–31 | the word of a mutex (see `holder`), owned in U and X mode and marked `EXCLUSIVE` for X |
//! | 32–62 | how many readers are inside |
//! | 63 | `OWNER_SLEEPS`: the owner sleeps until they have left |
//!
//! A futex compares 32 bits, so two kinds of sleepers stay apart: workers that wait for an owner sleep on the
//! lower half, the owner that waits for readers sleeps on the upper half. Only the kernel reads a half alone.
//!
//! # Protocol
//! - **U**: own the word. **X**: own it with `EXCLUSIVE`, in one step if the lock is idle; then wait until no
//!   reader is inside.
//! - **S**: CAS the count one up, unless `EXCLUSIVE` is set. A waiting reader is registered in the lower
//!   half, and sleeps there while `EXCLUSIVE` is set.
//! - S release: subtract one. The last reader to leave wakes the owner if `OWNER_SLEEPS` is set. The owner
//!   sets it before it sleeps, in one step with a look at the count, and clears it when it is back. So an
//!   owner that polls costs no system call.
//! - Each other transition is one RMW of everything it changes, so none passes through a state that no lock
//!   has. X to S gives up ownership, admits readers and counts itself in one addition. An attempt at X that
//!   would have to wait changes nothing.
//!
//! # Rules
//! The lock's S2 to S5. S1 of the state in two words, which is about the order in which two words say the
//! same, is not needed here: `EXCLUSIVE` excludes readers and is what they sleep on.
//!
//! # Costs
//! Locked instructions of an uncontended pair on x86-64: two in each mode. A reader's CAS fails also if a
//! worker registers as a waiter meanwhile.
//!
//! Origin: `holder` and `in_two_words`. A futex on half of what changes in one step is from glibc's semaphore
//! (`sem_t` of 64 bits).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{CoreU64, Machine};

use super::holder::{EXCLUSIVE, HOLDER, HolderProtocol, HolderWord, SingleWake, UNIT, WORD};
use super::ssux_state::{ConstState, Readers, SsuxProtocol, SsuxState};
use super::storage::{WordBesideReaders, WordStorage};
use crate::waiting::Waiting;

/// Readers, owner and all waiters in 64 bits that change in one step.
#[derive(Debug, Clone, Copy)]
pub struct OneWord;

impl SsuxProtocol for OneWord {
    type State<M: Machine> = InOneWord<SingleWake, M>;
}

/// One reader inside.
const INSIDE: u64 = 1 << 32;
/// The owner sleeps until the readers inside have left.
pub(super) const OWNER_SLEEPS: u64 = 1 << 63;
/// All readers inside.
const ALL_INSIDE: u64 = !WORD & !OWNER_SLEEPS;

/// The readers inside, of `word`.
fn inside(word: u64) -> u32 {
    ((word & ALL_INSIDE) >> 32) as u32
}

/// See the module's documentation.
#[derive(Debug)]
pub struct InOneWord<P: HolderProtocol, M: Machine>(pub(super) HolderWord<P, M, WordBesideReaders<M>>);

impl<P: HolderProtocol, M: Machine<U64 = CoreU64>> ConstState for InOneWord<P, M> {
    const IDLE: Self = Self(HolderWord::IDLE);
}

impl<P: HolderProtocol, M: Machine> InOneWord<P, M> {
    /// Replaces the word by what `change` makes of it. Returns the old word, or as an error the word for
    /// which `change` returned `None`.
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

    /// As `release_exclusive`, and the last access to the word.
    #[inline(always)]
    pub(super) fn release_exclusive_to_be_freed(&self) {
        self.0.release_to_be_freed(EXCLUSIVE);
    }

    /// S5: wakes the owner if, by the word `before`, the last reader has left and the owner sleeps until
    /// then.
    #[cold]
    #[inline(never)]
    fn wake_owner_if_last(&self, before: u64) {
        if before & (OWNER_SLEEPS | ALL_INSIDE) == OWNER_SLEEPS | INSIDE {
            self.0.word.wake_owner();
        }
    }

    /// The owner that slept until readers have left does not sleep any more.
    pub(super) fn wake_up_as_owner(&self) {
        self.0.word.fetch_clear(OWNER_SLEEPS, Relaxed);
    }

    fn owned(before: u64) -> Readers {
        match before & ALL_INSIDE {
            0 => Readers::None,
            _ => Readers::Inside,
        }
    }

    /// The caller has become a reader and given up `held`: wakes one waiter.
    fn wake_after_downgrade(&self, before: u64, held: u64) {
        debug_assert_eq!(
            before & (HOLDER | EXCLUSIVE),
            held & (HOLDER | EXCLUSIVE),
            "given up, not held"
        );
        if before & WORD != held {
            self.0.wake_after_release();
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
        // Acquire: pairs with the Release of the last writer, whose release sequence every later change of
        // the word continues.
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
    fn enter_beside_readers(&self) -> bool {
        // S2: with a reader inside an exclusive is not granted yet, and it sees this one in the same word.
        self.change(self.0.look(), Acquire, |seen| {
            (seen & EXCLUSIVE == 0 || seen & ALL_INSIDE != 0).then_some(seen + INSIDE)
        })
        .is_ok()
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.0.look() & EXCLUSIVE == 0
    }

    #[inline(always)]
    fn exit(&self) {
        // Release: pairs with the Acquire by which an exclusive sees that its readers have left.
        let before = self.0.word.fetch_sub(INSIDE, Release);
        debug_assert_ne!(before & ALL_INSIDE, 0, "released, not held");
        if before & EXCLUSIVE != 0 {
            self.wake_owner_if_last(before);
        }
    }

    fn register_reader(&self) {
        self.0.register_reader();
    }

    fn sleep_while_exclusive(&self, waiting: &mut Waiting, slept: bool) -> bool {
        self.0.sleep_while_exclusive(waiting, slept)
    }

    fn sleep_while_empty(&self, waiting: &mut Waiting, slept: bool) -> bool {
        self.0
            .sleep_while_empty(waiting, slept, |seen| seen & ALL_INSIDE == 0)
    }

    fn wake_recursive_readers(&self) {
        self.0.wake_recursive_readers();
    }

    fn unregister_reader(&self, slept: bool) {
        self.0.unregister_reader(slept);
    }

    #[inline(always)]
    fn take_update_idle(&self) -> bool {
        self.0.take_idle(0)
    }

    #[inline]
    fn try_take_update(&self) -> bool {
        self.0.try_take(0)
    }

    fn take_update(&self, waiting: &mut Waiting) -> bool {
        self.0.take_slow(waiting, 0)
    }

    #[inline(always)]
    fn release_update(&self) {
        self.0.release(0);
    }

    #[inline(always)]
    fn take_exclusive_idle(&self) -> Option<Readers> {
        self.0.take_idle(EXCLUSIVE).then_some(Readers::None)
    }

    #[inline]
    fn try_take_exclusive(&self) -> bool {
        self.change(self.0.look(), Acquire, |seen| {
            (seen & (HOLDER | ALL_INSIDE) == 0).then_some(seen + (HOLDER | EXCLUSIVE | UNIT))
        })
        .is_ok()
    }

    fn take_exclusive(&self, waiting: &mut Waiting) -> Option<Readers> {
        self.0
            .take_slow(waiting, EXCLUSIVE)
            .then(|| match self.readers_left() {
                0 => Readers::None,
                _ => Readers::Inside,
            })
    }

    fn readers_left(&self) -> u32 {
        let seen = self.0.word.load(Acquire);
        debug_assert_eq!(
            seen & (EXCLUSIVE | OWNER_SLEEPS),
            EXCLUSIVE,
            "only the owner unmarks, and it is awake"
        );
        inside(seen)
    }

    fn sleep_until_readers_leave(&self, waiting: &mut Waiting) {
        // A reader leaves before this RMW, and is not counted in its result, or after it, and sees the mark.
        let seen = self.0.word.fetch_or(OWNER_SLEEPS, Relaxed) | OWNER_SLEEPS;
        if inside(seen) != 0 {
            self.0.word.sleep_on_readers(waiting, seen);
        }
        self.wake_up_as_owner();
    }

    #[inline(always)]
    fn release_exclusive(&self) {
        self.0.release(EXCLUSIVE);
    }

    fn update_to_exclusive(&self) -> Readers {
        // Acquire: what readers read comes before what the caller writes.
        Self::owned(self.0.word.fetch_add(EXCLUSIVE, Acquire))
    }

    fn try_update_to_exclusive(&self) -> bool {
        self.change(self.0.look(), Acquire, |seen| {
            (seen & ALL_INSIDE == 0).then_some(seen + EXCLUSIVE)
        })
        .is_ok()
    }

    fn withdraw_exclusive(&self) {
        // The mark is all that excludes readers.
        self.0.unmark_exclusive();
    }

    fn update_to_shared(&self) {
        const HELD: u64 = HOLDER | UNIT;
        // Release: pairs with the Acquire of the next owner.
        let before = self.0.word.fetch_add(INSIDE - HELD, Release);
        self.wake_after_downgrade(before, HELD);
    }

    fn exclusive_to_update(&self) {
        self.0.unmark_exclusive();
    }

    fn exclusive_to_shared(&self) {
        const HELD: u64 = HOLDER | EXCLUSIVE | UNIT;
        let before = self.0.word.fetch_add(INSIDE - HELD, Release);
        self.wake_after_downgrade(before, HELD);
    }

    fn try_shared_to_update(&self) -> bool {
        let became = self.change(self.0.look(), Acquire, |seen| {
            (seen & HOLDER == 0).then_some(seen + (HOLDER + UNIT) - INSIDE)
        });
        if let Ok(before) = became {
            self.0.wake_sleeping_readers(before, 0);
        }
        became.is_ok()
    }
}
