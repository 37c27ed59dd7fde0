//! The state of an SsuxLock in two words, as InnoDB has it. `writer` is the word of a mutex (see `holder`),
//! owned in U and X mode and marked `EXCLUSIVE` for X. `readers` holds what readers must know:
//!
//! | `readers` | meaning |
//! | --- | --- |
//! | 0 | no reader; there may be a U holder |
//! | n | n workers hold S; there may be a U holder besides |
//! | `WRITER` + n | an X was requested, n readers are still inside: no more are admitted |
//! | `WRITER` | held in X mode, and only then |
//!
//! # Protocol
//! - **U**: own `writer`. **X**: own `writer` with `EXCLUSIVE`, add `WRITER` to `readers`, wait until
//!   `readers` is `WRITER`.
//! - **S**: CAS n to n + 1, unless `WRITER` is set. A waiting reader is registered in `writer`, and sleeps
//!   there while `EXCLUSIVE` is set.
//! - S release: subtract 1. The reader that leaves `WRITER` alone behind wakes the owner, the only worker
//!   that ever sleeps on `readers`.
//! - X release: `readers` = 0, then release `writer`.
//! - U to X: mark `EXCLUSIVE`, then as X. X to U: `readers` = 0, unmark, and wake the readers that sleep. X
//!   to S and U to S: count the caller as a reader, then release `writer`.
//!
//! # Rules, besides the lock's S2 to S5
//! - S1. `WRITER` is set and cleared by the owner of `writer` only. `EXCLUSIVE` is marked before `WRITER` is
//!   set and unmarked after it is cleared. *So a reader that sees `WRITER` either finds the mark, and may
//!   sleep on it, or finds it gone, and looks again.*
//!
//! A simpler version has no mark, and readers sleep while `writer` has any owner. Then a reader that slept
//! because of an X holder stays asleep after the holder's downgrade to U, although it could enter. InnoDB
//! accepts that.
//!
//! # Costs
//! Locked instructions of an uncontended pair on x86-64: S two, U two, X three (its release stores `readers`
//! plainly).
//!
//! Origin: InnoDB's `ssux_lock_impl` (Marko Mäkelä, MariaDB 10.6); the mark and what follows from it are
//! ours.

use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, CoreU32, Machine};

use super::holder::{CasLoop, EXCLUSIVE, FetchAddBts, HolderProtocol, HolderWord, SingleWake};
use super::ssux_state::{ConstState, Readers, SsuxProtocol, SsuxState};
use crate::waiting::Waiting;

impl SsuxProtocol for CasLoop {
    type State<M: Machine> = InTwoWords<Self, M>;
}
impl SsuxProtocol for FetchAddBts {
    type State<M: Machine> = InTwoWords<Self, M>;
}
impl SsuxProtocol for SingleWake {
    type State<M: Machine> = InTwoWords<Self, M>;
}

/// In `readers`: an exclusive was requested, or granted.
const WRITER: u32 = 1 << 31;

/// See the module's documentation.
#[derive(Debug)]
pub struct InTwoWords<P: HolderProtocol, M: Machine> {
    writer: HolderWord<P, M>,
    readers: M::U32,
}

impl<P: HolderProtocol, M: Machine<U32 = CoreU32>> ConstState for InTwoWords<P, M> {
    const IDLE: Self = Self {
        writer: HolderWord::IDLE,
        readers: CoreU32::new_const(0),
    };
}

impl<P: HolderProtocol, M: Machine> InTwoWords<P, M> {
    #[cold]
    fn enter_from(&self, mut seen: u32) -> bool {
        while seen & WRITER == 0 {
            match self
                .readers
                .compare_exchange_weak(seen, seen + 1, Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
        // S1: after `WRITER` this worker sees the mark, or that it is gone again.
        M::fence(Acquire);
        false
    }

    /// S5: the last reader has left, and the owner waits for that.
    #[cold]
    #[inline(never)]
    fn wake_owner(&self) {
        M::futex_wake(&self.readers, 1);
    }

    /// Excludes new readers. Acquire: what readers read comes before what the caller writes. Release: S1,
    /// pairs with the fence in `enter_from`; the mark is visible to a reader that sees `WRITER`.
    #[inline(always)]
    fn close(&self) -> Readers {
        match self.readers.fetch_add(WRITER, AcqRel) {
            0 => Readers::None,
            _ => Readers::Inside,
        }
    }

    /// As `close`, if there are no readers.
    #[inline]
    fn try_close(&self) -> bool {
        self.readers.compare_exchange(0, WRITER, AcqRel, Relaxed).is_ok()
    }

    /// Admits readers again, `inside` of which are counted already. The caller holds the lock exclusively, so
    /// no other worker changes the word.
    #[inline(always)]
    fn open(&self, inside: u32) {
        debug_assert_eq!(
            self.readers.load(Relaxed),
            WRITER,
            "S2: a reader came in beside an exclusive"
        );
        // Release: pairs with the Acquire in `try_enter`; what was written is visible to readers.
        self.readers.store(inside, Release);
    }
}

impl<P: HolderProtocol, M: Machine> SsuxState<M> for InTwoWords<P, M> {
    fn new() -> Self {
        Self {
            writer: HolderWord::new(),
            readers: M::U32::new(0),
        }
    }

    fn shared_holders(&self) -> u32 {
        self.readers.load(Relaxed) & !WRITER
    }

    fn is_owned(&self) -> bool {
        self.writer.is_held()
    }

    fn is_held_exclusively(&self) -> bool {
        // S2.
        self.readers.load(Relaxed) == WRITER
    }

    #[inline(always)]
    fn try_enter(&self) -> bool {
        let seen = self.readers.load(Relaxed);
        // Acquire: pairs with the Release by which the last writer opened `readers`.
        seen & WRITER == 0
            && self
                .readers
                .compare_exchange_weak(seen, seen + 1, Acquire, Relaxed)
                .is_ok()
    }

    #[inline]
    fn enter(&self) -> bool {
        self.enter_from(self.readers.load(Relaxed))
    }

    #[inline]
    fn enter_beside_readers(&self) -> bool {
        // S2: with a reader inside an exclusive is not granted yet, and it sees this one in the same word.
        let mut seen = self.readers.load(Relaxed);
        while seen != WRITER {
            match self
                .readers
                .compare_exchange_weak(seen, seen + 1, Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(found) => seen = found,
            }
        }
        false
    }

    #[inline]
    fn is_open(&self) -> bool {
        self.readers.load(Relaxed) & WRITER == 0
    }

    #[inline(always)]
    fn exit(&self) {
        // Release: pairs with the Acquire by which an exclusive sees that its readers have left.
        let before = self.readers.fetch_sub(1, Release);
        debug_assert_ne!(before & !WRITER, 0, "released, not held");
        if before == WRITER + 1 {
            self.wake_owner();
        }
    }

    fn register_reader(&self) {
        self.writer.register_reader();
    }

    fn sleep_while_exclusive(&self, waiting: &mut Waiting, slept: bool) -> bool {
        self.writer.sleep_while_exclusive(waiting, slept)
    }

    fn sleep_while_empty(&self, waiting: &mut Waiting, slept: bool) -> bool {
        // Before the owner has set `WRITER` the reader can enter.
        self.writer
            .sleep_while_empty(waiting, slept, |_| self.readers.load(Relaxed) == WRITER)
    }

    fn wake_recursive_readers(&self) {
        self.writer.wake_recursive_readers();
    }

    fn unregister_reader(&self, slept: bool) {
        self.writer.unregister_reader(slept);
    }

    #[inline(always)]
    fn take_update_idle(&self) -> bool {
        self.writer.take_idle(0)
    }

    #[inline]
    fn try_take_update(&self) -> bool {
        self.writer.try_take(0)
    }

    fn take_update(&self, waiting: &mut Waiting) -> bool {
        self.writer.take_slow(waiting, 0)
    }

    #[inline(always)]
    fn release_update(&self) {
        self.writer.release(0);
    }

    #[inline(always)]
    fn take_exclusive_idle(&self) -> Option<Readers> {
        self.writer.take_idle(EXCLUSIVE).then(|| self.close())
    }

    #[inline]
    fn try_take_exclusive(&self) -> bool {
        // Look first, so that an attempt that must fail excludes no reader meanwhile.
        if self.readers.load(Relaxed) != 0 || !self.writer.try_take(EXCLUSIVE) {
            return false;
        }
        let acquired = self.try_close();
        if !acquired {
            // Readers may have gone to sleep because of the mark: this release wakes.
            self.writer.release(EXCLUSIVE);
        }
        acquired
    }

    fn take_exclusive(&self, waiting: &mut Waiting) -> Option<Readers> {
        self.writer.take_slow(waiting, EXCLUSIVE).then(|| self.close())
    }

    fn readers_left(&self) -> u32 {
        let seen = self.readers.load(Acquire);
        debug_assert_ne!(seen & WRITER, 0, "S1: only the owner removes WRITER");
        seen & !WRITER
    }

    fn sleep_until_readers_leave(&self, waiting: &mut Waiting) {
        let seen = self.readers.load(Relaxed);
        if seen != WRITER {
            waiting.sleep_on_futex::<M>(|limit| M::futex_wait(&self.readers, seen, limit));
        }
    }

    #[inline(always)]
    fn release_exclusive(&self) {
        self.open(0);
        self.writer.release(EXCLUSIVE);
    }

    fn update_to_exclusive(&self) -> Readers {
        self.writer.mark_exclusive();
        self.close()
    }

    fn try_update_to_exclusive(&self) -> bool {
        if self.readers.load(Relaxed) != 0 {
            return false;
        }
        self.writer.mark_exclusive();
        let closed = self.try_close();
        if !closed {
            self.writer.unmark_exclusive();
        }
        closed
    }

    fn withdraw_exclusive(&self) {
        // Readers leave meanwhile, so their count stays. Nothing was written: what they read is not ordered by this.
        self.readers.fetch_sub(WRITER, Relaxed);
        // S1: after `WRITER`.
        self.writer.unmark_exclusive();
    }

    fn update_to_shared(&self) {
        // No exclusive can have closed the lock: the caller owns `writer`.
        self.readers.fetch_add(1, Relaxed);
        self.writer.release(0);
    }

    fn exclusive_to_update(&self) {
        self.open(0);
        self.writer.unmark_exclusive();
    }

    fn exclusive_to_shared(&self) {
        self.open(1);
        self.writer.release(EXCLUSIVE);
    }

    fn try_shared_to_update(&self) -> bool {
        // Success means that no exclusive waits for the caller to leave: it would own `writer`.
        let taken = self.writer.try_take(0);
        if taken {
            self.exit();
        }
        taken
    }
}
