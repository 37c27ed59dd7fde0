//! The word of a mutex whose waiters sleep on it. [`SrwMutex`](crate::SrwMutex) is this word and no more;
//! [`SsuxLock`](crate::SsuxLock) has one for those who want more than to read.
//!
//! # The word
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 31 | `WAKING` | a waiter was woken and is not back asleep (single-wake only) |
//! | 30 | `HOLDER` | somebody owns the word |
//! | 29 | `EXCLUSIVE` | the owner excludes readers too (SsuxLock only) |
//! | 15–28 | `READERS` | readers that wait for `EXCLUSIVE` to go away (SsuxLock only) |
//! | 0–14 | `UNITS` | the owner, and those that wait to own; a mutex without readers lets them reach bit 28 |
//!
//! It is alone in 32 bits, or has the count of the readers inside above it in the same 64 (`place`); nothing here depends on which.
//!
//! Zero is idle. So the uncontended path is one CAS from 0, and one subtraction whose result says by itself that nobody waits.
//!
//! # Protocol
//! 1. *Take*: CAS 0 → `HOLDER` + 1. Failing that, poll with plain loads for as long as the class's policy says, and take by CAS
//!    when `HOLDER` is seen clear; the poller is not on record yet, so that a release costs no system call because of it.
//! 2. Register: add one unit.
//! 3. `HOLDER` clear: set it, by `fetch_or`; the unit is now the owner's. `HOLDER` set: sleep while the word is what was seen;
//!    woken, poll afresh, on record; then look again.
//! 4. *Release*: subtract `HOLDER` + 1. If anything is left, somebody is on record: wake one.
//!
//! A wake is a hint, never a hand-off; newcomers may pass the woken.
//!
//! # Why no wake-up is lost
//! - H1. Who may sleep is on record in the word before the look that sends it to sleep, and stays so until it owns the word or
//!   leaves.
//! - H2. Registration, taking and release are read-modify-writes of one word, so they are in one order. A release that does not
//!   see the record comes before it, and then the look that follows registration sees `HOLDER` clear (or a later owner,
//!   whose release comes after the record).
//! - H3. The kernel compares the word and puts the sleeper on its list in one step. A release between the look and the sleep has
//!   changed the word, and the sleep does not begin; or another owner has restored it, whose release is still to come.
//! - H4. Whoever consumes a wake looks, and either becomes an owner, whose release wakes the next, or sees an owner, whose
//!   release does; a reader that leaves wakes one of those left (see `forget_reader`).
//! - H5. (single-wake) While `WAKING` is set, somebody is awake that will look once more after clearing it: it was woken by
//!   whoever set the flag, polls, and clears it when it has come in (its own release is still to come) or before the look that
//!   sends it back to sleep. If the kernel found no sleeper to wake, the flag is cleared by who set it, and *then* one more is
//!   woken without it: a sleeper may have come, and a release may have been silent, in between. A worker that comes back from a
//!   sleep for no reason clears a flag that is another's; then one more is woken than need be.
//!   A call that returned because the word had changed is no sleep: it consumed no wake, and clears nothing.
//!
//! The simpler version, in which waiters are not counted but a flag says that there are some, has to wake one and set the flag
//! again on its behalf on every pass; the count spares both and makes the release a single subtraction.
//!
//! # The three ways
//! - [`CasLoop`] changes the word by compare-and-swap from the value last seen, as one has to without knowing the instruction
//!   set. It fails whenever anybody else has changed anything.
//! - [`FetchAddBts`] registers by `fetch_add` and sets the bit by `fetch_or`, of whose result it looks only at this bit: one
//!   `lock xadd` and one `lock bts` on x86-64, which cannot fail.
//! - [`SingleWake`] is that, and wakes only one at a time: a release that finds `WAKING` set makes no system call. The flag stays for
//!   as long as the woken worker polls, or each release meanwhile would call the kernel for one that is awake.
//!
//! Origin: InnoDB's `srw_mutex` (Marko Mäkelä, MariaDB 10.6). The unregistered poll and `WAKING` are ours, the latter after the
//! LwLock's WAKE_IN_PROGRESS.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::Machine;

use super::place::{Alone, ConstPlace, Place};
use crate::waiting::Waiting;

/// A waiter was woken, and has neither come in nor gone back to sleep.
pub(super) const WAKING: u64 = 1 << 31;
/// Somebody owns the word.
pub(super) const HOLDER: u64 = 1 << 30;
/// The owner excludes readers too.
pub(super) const EXCLUSIVE: u64 = 1 << 29;
/// One that wants to own, or owns.
pub(super) const UNIT: u64 = 1;
/// One reader that waits.
pub(super) const READER: u64 = 1 << 15;
/// All readers that wait.
pub(super) const READERS: u64 = (1 << 29) - READER;
/// The whole word.
pub(super) const WORD: u64 = (1 << 32) - 1;

const _: () = assert!(HOLDER ^ EXCLUSIVE ^ WAKING ^ READERS ^ (READER - UNIT) == WORD);

/// How the word of an [`SrwMutex`](crate::SrwMutex) is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SrwMutexAlgorithm {
    /// By compare-and-swap from the value last seen: the baseline.
    CasLoop,
    /// By instructions that cannot fail; every release wakes a waiter.
    FetchAddBts,
    /// By instructions that cannot fail; no release wakes while one that was woken has not looked yet.
    SingleWake,
}

/// A way to change the word, chosen by type so that it takes no byte of the latch and no branch.
pub trait HolderProtocol: core::fmt::Debug + Copy + Send + Sync + 'static {
    /// Which one.
    const ALGORITHM: SrwMutexAlgorithm;
}

/// See [`SrwMutexAlgorithm::CasLoop`].
#[derive(Debug, Clone, Copy)]
pub struct CasLoop;
/// See [`SrwMutexAlgorithm::FetchAddBts`].
#[derive(Debug, Clone, Copy)]
pub struct FetchAddBts;
/// See [`SrwMutexAlgorithm::SingleWake`].
#[derive(Debug, Clone, Copy)]
pub struct SingleWake;

impl HolderProtocol for CasLoop {
    const ALGORITHM: SrwMutexAlgorithm = SrwMutexAlgorithm::CasLoop;
}
impl HolderProtocol for FetchAddBts {
    const ALGORITHM: SrwMutexAlgorithm = SrwMutexAlgorithm::FetchAddBts;
}
impl HolderProtocol for SingleWake {
    const ALGORITHM: SrwMutexAlgorithm = SrwMutexAlgorithm::SingleWake;
}

/// The word, in a place `W`. `marks` in its methods is 0 or [`EXCLUSIVE`], the same at release as at acquisition.
pub struct HolderWord<P: HolderProtocol, M: Machine, W: Place<M> = Alone<M>> {
    pub(super) word: W,
    protocol: PhantomData<(P, fn() -> M)>,
}

impl<P: HolderProtocol, M: Machine, W: Place<M> + ConstPlace> HolderWord<P, M, W> {
    pub(super) const IDLE: Self = Self {
        word: W::IDLE,
        protocol: PhantomData,
    };
}

impl<P: HolderProtocol, M: Machine, W: Place<M>> HolderWord<P, M, W> {
    pub(super) fn new() -> Self {
        Self {
            word: W::new(),
            protocol: PhantomData,
        }
    }

    /// The word now, for a look that decides nothing.
    pub(super) fn look(&self) -> u64 {
        self.word.load(Relaxed)
    }

    pub(super) fn is_held(&self) -> bool {
        self.look() & HOLDER != 0
    }

    /// Takes the word if it is idle. Acquire: pairs with the Release in `release`; what earlier owners wrote is visible.
    #[inline(always)]
    pub(super) fn take_idle(&self, marks: u64) -> bool {
        self.word
            .compare_exchange(0, HOLDER | marks | UNIT, Acquire)
            .is_ok()
    }

    /// Takes the word if nobody owns it, whoever waits.
    #[inline]
    pub(super) fn try_take(&self, marks: u64) -> bool {
        self.take_idle(marks) || self.try_take_from(self.look(), marks)
    }

    pub(super) fn try_take_from(&self, mut seen: u64, marks: u64) -> bool {
        while seen & HOLDER == 0 {
            match self
                .word
                .compare_exchange_weak(seen, seen + (HOLDER | marks | UNIT), Acquire)
            {
                Ok(_) => {
                    self.let_readers_in(seen, marks);
                    return true;
                }
                Err(found) => seen = found,
            }
        }
        false
    }

    /// Takes the word, polling and sleeping as long as it takes.
    pub(super) fn take_slow(&self, waiting: &mut Waiting, marks: u64) {
        // Not on record while polling: a release then has nobody to wake.
        loop {
            let seen = self.look();
            if seen & HOLDER == 0 && self.try_take_from(seen, marks) {
                return;
            }
            if !waiting.poll::<M>() {
                break;
            }
        }
        let Some(mut seen) = self.register(marks) else {
            return;
        };
        let mut slept = false;
        loop {
            // H2: this look follows the record.
            if seen & HOLDER == 0 {
                if let Some(before) = self.set_holder(seen) {
                    if marks != 0 {
                        // Only the owner changes this bit, so it need not come with the other.
                        self.word.fetch_or(marks, Relaxed);
                    }
                    if slept {
                        self.look_for_the_last_time();
                    }
                    // Our unit was there before; what else there is may be readers.
                    self.let_readers_in(before, marks);
                    return;
                }
                seen = self.look();
            } else if waiting.poll::<M>() {
                // Woken, with WAKING set: a release meanwhile wakes nobody in vain.
                seen = self.look();
            } else {
                if slept {
                    seen = self.look_for_the_last_time();
                    if seen & HOLDER == 0 {
                        continue;
                    }
                }
                slept = self.word.sleep(waiting, seen);
                seen = self.word.load(Acquire);
            }
        }
    }

    /// Adds a unit and says what the word is then; `None` if that made the caller the owner.
    #[inline]
    fn register(&self, marks: u64) -> Option<u64> {
        match P::ALGORITHM {
            SrwMutexAlgorithm::CasLoop => {
                let mut seen = self.look();
                loop {
                    let (new, owner) = match seen & HOLDER {
                        0 => (seen + (HOLDER | marks | UNIT), true),
                        _ => (seen + UNIT, false),
                    };
                    match self.word.compare_exchange_weak(seen, new, Acquire) {
                        Ok(_) if owner => {
                            self.let_readers_in(seen, marks);
                            return None;
                        }
                        Ok(_) => return Some(new),
                        Err(found) => seen = found,
                    }
                }
            }
            SrwMutexAlgorithm::FetchAddBts | SrwMutexAlgorithm::SingleWake => {
                Some(self.word.fetch_add(UNIT, Relaxed) + UNIT)
            }
        }
    }

    /// Sets `HOLDER` for a registered waiter that saw the word as `seen`; `None` if another was first, or the word as it was, as
    /// far as is known.
    #[inline(always)]
    fn set_holder(&self, seen: u64) -> Option<u64> {
        match P::ALGORITHM {
            SrwMutexAlgorithm::CasLoop => self.word.compare_exchange_weak(seen, seen | HOLDER, Acquire).ok(),
            SrwMutexAlgorithm::FetchAddBts | SrwMutexAlgorithm::SingleWake => {
                // The old value is tested for the one bit that is set, and used for nothing else: then, and only then, is this
                // one `lock bts` on x86-64. Nor may the bit be the highest, whose test the compiler turns into a comparison
                // with zero before it looks for the pattern. benches/holder-bit shows what came out.
                if self.word.fetch_or(HOLDER, Acquire) & HOLDER != 0 {
                    return None;
                }
                Some(self.look())
            }
        }
    }

    /// The caller was woken, and from now on releases must wake again: because it has come in, or because it goes back to sleep
    /// if what it finds here tells it to. The word.
    #[inline]
    fn look_for_the_last_time(&self) -> u64 {
        match P::ALGORITHM {
            // H5. Acquire: releases that were silent because of the flag come before what the caller looks at next.
            SrwMutexAlgorithm::SingleWake => self.word.fetch_clear(WAKING, Acquire) & !WAKING,
            SrwMutexAlgorithm::CasLoop | SrwMutexAlgorithm::FetchAddBts => self.word.load(Acquire),
        }
    }

    /// Gives the word back and wakes one that waits.
    #[inline(always)]
    pub(super) fn release(&self, marks: u64) {
        let held = HOLDER | marks | UNIT;
        // Release: pairs with the Acquire of the next owner.
        let before = self.word.fetch_sub(held, Release);
        debug_assert_eq!(
            before & (HOLDER | EXCLUSIVE),
            HOLDER | marks,
            "released, not held"
        );
        // In a release build the old value serves nothing else, so this is the zero flag of x86's `lock sub`.
        if before != held {
            self.released();
        }
    }

    /// The rest of a release that left something. To look again is as good as the value that was left: what is found is that or a
    /// later one, and who made a later one an owner, or cleared the record, has answered for it.
    #[cold]
    #[inline(never)]
    pub(super) fn released(&self) {
        self.wake_one(self.look());
    }

    /// Wakes one of those on record in `seen`, if nobody owns the word.
    #[cold]
    pub(super) fn wake_one(&self, mut seen: u64) {
        if P::ALGORITHM != SrwMutexAlgorithm::SingleWake {
            if seen & WORD != 0 {
                self.word.wake(1);
            }
            return;
        }
        loop {
            // An owner's release will wake; one that was woken will look, and its release, or its leaving, will wake.
            if seen & (HOLDER | WAKING) != 0 || seen & WORD == 0 {
                return;
            }
            match self.word.compare_exchange_weak(seen, seen | WAKING, Relaxed) {
                Ok(_) => break,
                Err(found) => seen = found,
            }
        }
        if self.word.wake(1) != 0 {
            return;
        }
        // H5: all on record were awake just now. But one may have gone to sleep since, and an owner may have left without a
        // word because of the flag.
        let before = self.word.fetch_clear(WAKING, Relaxed);
        if before & HOLDER == 0 && before & WORD & !WAKING != 0 {
            self.word.wake(1);
        }
    }

    // What follows is for the SsuxLock.

    /// The owner's upgrade: readers that see the lock taken by a writer may sleep from now on.
    pub(super) fn mark_exclusive(&self) {
        self.word.fetch_or(EXCLUSIVE, Relaxed);
    }

    /// The owner's downgrade: readers need not sleep any more.
    pub(super) fn unmark_exclusive(&self) {
        // Release: pairs with the Acquire in `sleep_while_exclusive`; who no longer sees the mark sees that the readers' word is free.
        let before = self.word.fetch_clear(EXCLUSIVE, Release);
        self.let_readers_in(before, 0);
    }

    /// The caller owns the word without excluding readers. Those that went to sleep because of an earlier owner who did, and were
    /// not woken when it left, would sleep on until this one leaves: only one is woken each time.
    #[inline]
    pub(super) fn let_readers_in(&self, seen: u64, marks: u64) {
        if marks == 0 && seen & READERS != 0 {
            // All, because one word holds two kinds of sleepers and nobody can say who would be first.
            self.word.wake(u32::MAX);
        }
    }

    /// Puts a reader on record that may sleep while `EXCLUSIVE` is set.
    pub(super) fn record_reader(&self) {
        let before = self.word.fetch_add(READER, Acquire);
        debug_assert!(
            before & READERS != READERS,
            "more readers wait than the word can count"
        );
    }

    /// A reader that has `slept` before, or not, sleeps if the word says that readers are excluded; whether it did.
    pub(super) fn sleep_while_exclusive(&self, waiting: &mut Waiting, slept: bool) -> bool {
        // Acquire: pairs with the Release in `release` and `unmark_exclusive`.
        let seen = if slept {
            self.look_for_the_last_time()
        } else {
            self.word.load(Acquire)
        };
        let excluded = seen & EXCLUSIVE != 0;
        if excluded {
            self.word.sleep(waiting, seen)
        } else {
            M::spin_hint();
            false
        }
    }

    /// Takes a reader off the record. If it has `slept` it may have consumed a wake that others wait for.
    pub(super) fn forget_reader(&self, slept: bool) {
        if slept {
            self.look_for_the_last_time();
        }
        let left = self.word.fetch_sub(READER, Relaxed) - READER;
        if left & HOLDER == 0 && left & WORD != 0 {
            self.wake_one(left);
        }
    }
}

impl<P: HolderProtocol, M: Machine, W: Place<M>> core::fmt::Debug for HolderWord<P, M, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#010x} ({:?})", self.look() & WORD, P::ALGORITHM)
    }
}
