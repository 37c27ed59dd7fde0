//! The word of a mutex whose waiters sleep on it. An [`SrwMutex`](crate::SrwMutex) is this word and no more.
//! An [`SsuxLock`](crate::SsuxLock) has one for its update and exclusive modes.
//!
//! # The word
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 31 | `WAKING` | a waiter was woken and is not asleep again (single-wake only) |
//! | 30 | `HOLDER` | a worker owns the word |
//! | 29 | `EXCLUSIVE` | the owner excludes readers too (SsuxLock only) |
//! | 15–28 | `READERS` | readers that wait until `EXCLUSIVE` is clear (SsuxLock only) |
//! | 14 | `RECURSIVE` | a registered reader that may enter beside readers is about to sleep (SsuxLock only) |
//! | 0–13 | `UNITS` | the owner, and the workers that wait to own; in a mutex without readers they may reach bit 28 |
//!
//! The word is alone in 32 bits, or is the lower half of 64 bits whose upper half counts the readers inside
//! (`storage`). Nothing here depends on which.
//!
//! Zero is idle. So the uncontended path is one CAS from 0, and one subtraction whose result alone says that
//! no worker waits.
//!
//! # Protocol
//! 1. *Take*: CAS 0 → `HOLDER` + 1. If that fails, poll with plain loads as the class's policy says, and take
//!    by CAS when `HOLDER` is seen clear. The polling worker is not registered yet, so a release makes no
//!    system call for it.
//! 2. *Register*: add one unit.
//! 3. If `HOLDER` is clear, set it by `fetch_or`; the unit is now the owner's. If `HOLDER` is set, sleep
//!    while the word is what was seen. When woken, poll again, registered; then repeat this step.
//!    Before step 2 and, registered, before each poll and sleep a worker with a time limit looks at the clock; when its time
//!    is over it subtracts its unit.
//! 4. *Release*: subtract `HOLDER` + 1. If anything is left, some worker is registered: wake one.
//!
//! A wake is a hint, never a hand-off; newcomers may pass the woken worker.
//!
//! # Why no wake-up is lost
//! - H1. A worker that may sleep is registered in the word before the look that makes it sleep, and stays
//!   registered until it owns the word or leaves.
//! - H2. Registration, taking and release are RMWs of one word, so they have one order. A release that does
//!   not see the registration comes before it, and then the look that follows registration sees `HOLDER`
//!   clear (or a later owner, whose release comes after the registration).
//! - H3. The kernel compares the word and queues the sleeper in one step. If a release came between the look
//!   and the sleep, the word has changed and the sleep does not begin; or another owner has restored the
//!   word, and its release is still to come.
//! - H4. A worker that consumes a wake looks. Either it becomes an owner, whose release wakes the next, or it
//!   sees an owner, whose release does. A reader that leaves, and a worker that gives up because its time is over,
//!   wakes one of the workers left if the word has no owner (see `unregister`).
//! - H5. (single-wake) A release that leaves registered workers sets `WAKING`, and then calls the kernel. While the flag is set
//!   no release calls: that call is still to come, or some registered worker is awake. A registered worker that sees the flag
//!   clears it before the look that makes it sleep, and when it has become the owner, whether it was woken or not. So if the
//!   call finds no sleeper, all registered workers are awake, and none of them goes to sleep while the flag is set. A worker
//!   that unregisters as the last one clears it. Cleared too early, the flag lets a release wake one worker more than necessary.
//!   A call that returned because the word had changed is no sleep: it consumed no wake, and clears nothing.
//! - H6. A worker that has died asleep, in memory that processes share, is registered, or owns the word and waits for readers.
//!   Another worker leaves or releases in its place, as one that has slept (H4), so it passes on the wake that the dead one may
//!   have consumed (`recovery`).
//! - H7. A release may be the last access to the word ("to be freed"): the setter of the flag need not look whether its call
//!   found a sleeper. Under single-wake such a release sets the flag in the step that gives the word back.
//!
//! A simpler version has a flag "there are waiters" in place of the count. It must wake one waiter and set
//! the flag again on its behalf on every pass. The count spares both and makes the release a single
//! subtraction.
//!
//! # Variants
//! - [`CasLoop`] changes the word by compare-and-swap from the value last seen. It fails whenever another
//!   worker has changed anything.
//! - [`FetchAddBts`] registers by `fetch_add` and sets the bit by `fetch_or`, of whose result it tests only
//!   this bit: one `lock xadd` and one `lock bts` on x86-64, which cannot fail.
//! - [`SingleWake`] does the same, and wakes only one worker at a time: a release that finds `WAKING` set
//!   makes no system call. The flag stays set while the woken worker polls. Otherwise each release meanwhile
//!   would call the kernel for a worker that is awake.
//!
//! Origin: InnoDB's `srw_mutex` (Marko Mäkelä, MariaDB 10.6). The unregistered poll and `WAKING` are ours;
//! the latter is modelled on the LwLock's WAKE_IN_PROGRESS.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::Machine;

use super::storage::{ConstStorage, OwnWord, WordStorage};
use crate::waiting::Waiting;

/// A waiter was woken, and neither owns the word nor sleeps again.
pub(super) const WAKING: u64 = 1 << 31;
/// A worker owns the word.
pub(super) const HOLDER: u64 = 1 << 30;
/// The owner excludes readers too.
pub(super) const EXCLUSIVE: u64 = 1 << 29;
/// One worker that owns or wants to own.
pub(super) const UNIT: u64 = 1;
/// A waiting reader may enter beside readers, and is about to sleep.
pub(super) const RECURSIVE: u64 = 1 << 14;
/// One waiting reader.
pub(super) const READER: u64 = 1 << 15;
/// All waiting readers.
pub(super) const READERS: u64 = (1 << 29) - READER;
/// The whole word.
pub(super) const WORD: u64 = (1 << 32) - 1;

const _: () = assert!(HOLDER ^ EXCLUSIVE ^ WAKING ^ READERS ^ RECURSIVE ^ (RECURSIVE - UNIT) == WORD);

/// The instructions by which the word of an [`SrwMutex`](crate::SrwMutex) is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SrwMutexAlgorithm {
    /// By compare-and-swap from the value last seen: the baseline.
    CasLoop,
    /// By instructions that cannot fail; every release wakes a waiter.
    FetchAddBts,
    /// By instructions that cannot fail; no release wakes while a woken worker has not looked yet.
    SingleWake,
}

/// A variant of changing the word. Chosen by type, so that it costs no byte of the latch and no branch.
pub trait HolderProtocol: core::fmt::Debug + Copy + Send + Sync + 'static {
    /// The variant.
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

/// The word, stored in `W`. `marks` in its methods is 0 or [`EXCLUSIVE`], the same at release as at
/// acquisition.
pub struct HolderWord<P: HolderProtocol, M: Machine, W: WordStorage<M> = OwnWord<M>> {
    pub(super) word: W,
    protocol: PhantomData<(P, fn() -> M)>,
}

impl<P: HolderProtocol, M: Machine, W: WordStorage<M> + ConstStorage> HolderWord<P, M, W> {
    pub(crate) const IDLE: Self = Self {
        word: W::IDLE,
        protocol: PhantomData,
    };
}

impl<P: HolderProtocol, M: Machine, W: WordStorage<M>> HolderWord<P, M, W> {
    pub(crate) fn new() -> Self {
        Self {
            word: W::new(),
            protocol: PhantomData,
        }
    }

    /// The word now. Relaxed.
    #[inline]
    pub(crate) fn look(&self) -> u64 {
        self.word.load(Relaxed)
    }

    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.look() & HOLDER != 0
    }

    /// Takes the word if it is idle. Acquire: pairs with the Release in `release`; what earlier owners wrote
    /// is visible.
    #[inline(always)]
    pub(crate) fn take_idle(&self, marks: u64) -> bool {
        self.word
            .compare_exchange(0, HOLDER | marks | UNIT, Acquire)
            .is_ok()
    }

    /// Takes the word if it has no owner, ahead of any waiters.
    #[inline]
    pub(crate) fn try_take(&self, marks: u64) -> bool {
        self.take_idle(marks) || self.try_take_from(self.look(), marks)
    }

    pub(super) fn try_take_from(&self, mut seen: u64, marks: u64) -> bool {
        while seen & HOLDER == 0 {
            match self
                .word
                .compare_exchange_weak(seen, seen + (HOLDER | marks | UNIT), Acquire)
            {
                Ok(_) => {
                    self.wake_sleeping_readers(seen, marks);
                    return true;
                }
                Err(found) => seen = found,
            }
        }
        false
    }

    /// Takes the word, polling and sleeping as long as it takes, or until the wait is over. Returns whether it was taken.
    #[must_use]
    pub(crate) fn take_slow(&self, waiting: &mut Waiting, marks: u64) -> bool {
        // Not registered while polling, so that a release makes no call for this worker.
        loop {
            let seen = self.look();
            if seen & HOLDER == 0 && self.try_take_from(seen, marks) {
                return true;
            }
            if !waiting.poll::<M>() {
                break;
            }
        }
        if waiting.is_over::<M>() {
            return false;
        }
        let Some(mut seen) = self.register(marks) else {
            return true;
        };
        let mut slept = false;
        loop {
            // H2: this look follows the registration.
            if seen & HOLDER == 0 {
                if let Some(before) = self.set_holder(seen) {
                    if marks != 0 {
                        // Only the owner changes this bit, so it need not be set together with the other.
                        self.word.fetch_or(marks, Relaxed);
                    }
                    if slept || before & WAKING != 0 {
                        self.clear_waking();
                    }
                    // `before` has this worker's unit; it may have readers.
                    self.wake_sleeping_readers(before, marks);
                    return true;
                }
                seen = self.look();
            } else if waiting.is_over::<M>() {
                self.unregister(UNIT, slept);
                return false;
            } else if waiting.poll::<M>() {
                // Woken, with WAKING set: a release meanwhile makes no call.
                seen = self.look();
            } else {
                if slept || seen & WAKING != 0 {
                    seen = self.clear_waking();
                    if seen & HOLDER == 0 {
                        continue;
                    }
                }
                slept = self.word.sleep(waiting, seen);
                seen = self.word.load(Acquire);
            }
        }
    }

    /// Adds a unit. Returns the word after that, or `None` if the caller has become the owner.
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
                            self.wake_sleeping_readers(seen, marks);
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

    /// Sets `HOLDER` for a registered waiter that saw the word as `seen`. Returns `None` if another worker
    /// was first, and otherwise the word at that time or a later one.
    #[inline(always)]
    fn set_holder(&self, seen: u64) -> Option<u64> {
        match P::ALGORITHM {
            SrwMutexAlgorithm::CasLoop => self.word.compare_exchange_weak(seen, seen | HOLDER, Acquire).ok(),
            SrwMutexAlgorithm::FetchAddBts | SrwMutexAlgorithm::SingleWake => {
                // The old value is tested for the one bit that is set, and used for nothing else. Only then
                // is this one `lock bts` on x86-64. Nor may the bit be the highest: the compiler turns the
                // test of the highest bit into a comparison with zero before it looks for the pattern.
                // benches/holder-bit shows the machine code.
                if self.word.fetch_or(HOLDER, Acquire) & HOLDER != 0 {
                    return None;
                }
                Some(self.look())
            }
        }
    }

    /// The caller was woken; from now on releases must wake again. Called when the caller has become the
    /// owner, or before the look that may make it sleep again. Returns the word.
    #[inline]
    fn clear_waking(&self) -> u64 {
        match P::ALGORITHM {
            // H5. Acquire: releases that woke no worker because of the flag come before the caller's next
            // look.
            SrwMutexAlgorithm::SingleWake => self.word.fetch_clear(WAKING, Acquire) & !WAKING,
            SrwMutexAlgorithm::CasLoop | SrwMutexAlgorithm::FetchAddBts => self.word.load(Acquire),
        }
    }

    /// Gives the word back and wakes one waiter.
    #[inline(always)]
    pub(crate) fn release(&self, marks: u64) {
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
            self.wake_after_release();
        }
    }

    /// As `release`, by a caller after which the next owner may free the word: the change is the last access to it. Under
    /// `SingleWake` the same step sets `WAKING` (H7).
    #[inline(always)]
    pub(super) fn release_to_be_freed(&self, marks: u64) {
        let own = HOLDER | marks | UNIT;
        if P::ALGORITHM == SrwMutexAlgorithm::SingleWake {
            // Release: pairs with the Acquire of the next owner.
            if let Err(found) = self.word.compare_exchange(own, 0, Release) {
                self.release_marking(own, found);
            }
            return;
        }
        // Release: pairs with the Acquire of the next owner.
        let before = self.word.fetch_sub(own, Release);
        debug_assert_eq!(
            before & (HOLDER | EXCLUSIVE),
            HOLDER | marks,
            "released, not held"
        );
        if before != own {
            self.wake_at_the_address();
        }
    }

    /// Releases the word, seen as `seen`, and sets `WAKING` in the same step if a worker is registered.
    #[cold]
    #[inline(never)]
    fn release_marking(&self, own: u64, mut seen: u64) {
        loop {
            debug_assert_eq!(
                seen & (HOLDER | EXCLUSIVE),
                own & (HOLDER | EXCLUSIVE),
                "released, not held"
            );
            let left = seen - own;
            let is_alone = left & WORD & !WAKING == 0;
            let new = if is_alone { left & !WAKING } else { left | WAKING };
            // Release: pairs with the Acquire of the next owner.
            match self.word.compare_exchange_weak(seen, new, Release) {
                Ok(_) if new & !left & WAKING != 0 => return self.wake_at_the_address(),
                Ok(_) => return,
                Err(found) => seen = found,
            }
        }
    }

    /// Wakes one sleeper, if there is one, by the address alone: no worker that sleeps there is as well as one that is woken
    /// for no reason.
    #[cold]
    #[inline(never)]
    fn wake_at_the_address(&self) {
        self.word.wake(1);
    }

    /// The rest of a release that left other bits set. A second look serves as well as the value that was
    /// left: it shows that value or a later one, and the worker that made a later one (a new owner, or a
    /// worker that unregistered) does the wake-up itself.
    #[cold]
    #[inline(never)]
    pub(super) fn wake_after_release(&self) {
        self.wake_one(self.look());
    }

    /// Wakes one of the workers registered in `seen`, if the word has no owner.
    #[cold]
    pub(super) fn wake_one(&self, mut seen: u64) {
        if P::ALGORITHM != SrwMutexAlgorithm::SingleWake {
            if seen & WORD != 0 {
                self.word.wake(1);
            }
            return;
        }
        loop {
            if seen & WORD == WAKING {
                // H5: the last one that was registered has left.
                self.word.fetch_clear(WAKING, Relaxed);
                return;
            }
            // An owner's release will wake. A woken worker will look, and its release, or its leaving, will
            // wake.
            if seen & (HOLDER | WAKING) != 0 || seen & WORD == 0 {
                return;
            }
            match self.word.compare_exchange_weak(seen, seen | WAKING, Relaxed) {
                Ok(_) => break,
                Err(found) => seen = found,
            }
        }
        self.word.wake(1);
    }

    // The rest is for the SsuxLock.

    /// The owner's upgrade: from now on readers may sleep.
    pub(super) fn mark_exclusive(&self) {
        self.word.fetch_or(EXCLUSIVE, Relaxed);
    }

    /// The owner's downgrade: readers need not sleep any more.
    pub(super) fn unmark_exclusive(&self) {
        // Release: pairs with the Acquire in `sleep_while_exclusive`; a reader that does not see the mark
        // sees that the readers' word is free.
        let before = self.word.fetch_clear(EXCLUSIVE, Release);
        self.wake_sleeping_readers(before, 0);
    }

    /// The caller owns the word without excluding readers: wakes the readers asleep in `seen`. They went to
    /// sleep because of an earlier owner that excluded them, and its release woke only one worker. Without
    /// this they would sleep until the caller releases.
    #[inline]
    pub(super) fn wake_sleeping_readers(&self, seen: u64, marks: u64) {
        if marks == 0 && seen & READERS != 0 {
            // All, because two kinds of workers sleep on the word, and which one the kernel wakes first is
            // unknown.
            self.word.wake(u32::MAX);
        }
    }

    /// Registers a reader, which may then sleep while `EXCLUSIVE` is set.
    pub(super) fn register_reader(&self) {
        let before = self.word.fetch_add(READER, Acquire);
        debug_assert!(
            before & READERS != READERS,
            "more readers wait than the word can count"
        );
    }

    /// Puts a registered reader to sleep if the word excludes readers. `slept`: it has slept before. Returns
    /// whether it slept now.
    pub(super) fn sleep_while_exclusive(&self, waiting: &mut Waiting, slept: bool) -> bool {
        // Acquire: pairs with the Release in `release` and `unmark_exclusive`.
        let mut seen = if slept {
            self.clear_waking()
        } else {
            self.word.load(Acquire)
        };
        if seen & WAKING != 0 {
            // H5.
            seen = self.clear_waking();
        }
        let excluded = seen & EXCLUSIVE != 0;
        if excluded {
            self.word.sleep(waiting, seen)
        } else {
            M::spin_hint();
            false
        }
    }

    /// Puts a registered reader that may enter beside readers to sleep, if the word excludes readers and none is inside, which
    /// `is_empty` says of the word. `slept`: it has slept before. Returns whether it slept now.
    pub(super) fn sleep_while_empty(
        &self,
        waiting: &mut Waiting,
        slept: bool,
        is_empty: impl FnOnce(u64) -> bool,
    ) -> bool {
        if slept || self.look() & WAKING != 0 {
            self.clear_waking();
        }
        // S6. Acquire: pairs with the Release in `release`; a reader that comes after an exclusive's release sees that it has
        // admitted readers.
        let seen = self.word.fetch_or(RECURSIVE, Acquire) | RECURSIVE;
        // H5: a worker that sees `WAKING` clears it first.
        if seen & (EXCLUSIVE | WAKING) == EXCLUSIVE && is_empty(seen) {
            self.word.sleep(waiting, seen)
        } else {
            M::spin_hint();
            false
        }
    }

    /// The caller is inside, or waits for readers that are: wakes those that may enter beside them (S6).
    pub(super) fn wake_recursive_readers(&self) {
        // A reader that this look misses sets the mark after it, and looks for readers inside after that.
        if self.look() & RECURSIVE != 0 && self.word.fetch_clear(RECURSIVE, Relaxed) & RECURSIVE != 0 {
            // All, as in `wake_sleeping_readers`.
            self.word.wake(u32::MAX);
        }
    }

    /// Unregisters a reader.
    pub(super) fn unregister_reader(&self, slept: bool) {
        self.unregister(READER, slept);
    }

    /// Unregisters a worker that leaves with its wait over, or as a reader inside. If it has `slept`, it may have consumed
    /// a wake meant for another worker, and passes it on (H4).
    #[cold]
    pub(super) fn unregister(&self, unit: u64, slept: bool) {
        if slept {
            self.clear_waking();
        }
        let left = self.word.fetch_sub(unit, Relaxed) - unit;
        if left & HOLDER == 0 && left & WORD != 0 {
            self.wake_one(left);
        }
    }
}

impl<P: HolderProtocol, M: Machine, W: WordStorage<M>> core::fmt::Debug for HolderWord<P, M, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#010x} ({:?})", self.look() & WORD, P::ALGORITHM)
    }
}
