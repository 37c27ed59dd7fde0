//! HybridLatch: shared, update and exclusive modes, and optimistic reads that write nothing.
//!
//! It protects a structure that is read far more often than written, such as the upper pages of an index. An
//! optimistic reader remembers the latch's version, reads, and checks that the version is unchanged. It
//! writes nothing, so readers on many CPUs share the line. What it read counts only if the version held; a
//! reader that fails a few times acquires the latch shared.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the word, the protocol, the rules, the uncontended paths |
//! | `optimistic` | optimistic reads |
//! | `wait` | polling, parking, waking |
//! | `guard` | the guards and their transitions |
//! | `cell` | a latch that holds its data |
//!
//! # State: one word of 64 bits
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–15 | shared count | holders in shared mode |
//! | 16 | `UPDATE` | a worker holds the latch in update mode, or holds or has requested exclusive mode |
//! | 17 | `EXCLUSIVE` | the owner of `UPDATE` writes, or waits for the shared holders to leave |
//! | 18 | `HAS_WAITERS` | workers are parked (see `parking`) |
//! | 19 | `WAKING` | a parked writer was woken, and has neither got the latch nor parked again |
//! | 20–63 | version | exclusive sections so far |
//!
//! # Protocol
//! 1. Shared: add 1 by CAS while `EXCLUSIVE` is clear. Update: set `UPDATE` by CAS while it is clear; shared
//!    holders do not matter.
//! 2. Exclusive: set `UPDATE` and `EXCLUSIVE` together while `UPDATE` is clear, or `EXCLUSIVE` alone as the
//!    owner of `UPDATE`. From then on no reader is admitted. Wait until the count is zero. So readers cannot
//!    starve a writer.
//! 3. An exclusive section ends with one addition that raises the version and clears `EXCLUSIVE`, and
//!    `UPDATE` too unless the worker keeps it.
//! 4. A change of a word with `HAS_WAITERS` wakes the workers that it may admit. The last shared release
//!    wakes the writer that waits for it. Clearing `EXCLUSIVE` wakes the readers. Clearing `UPDATE` wakes one
//!    writer, and sets `WAKING`.
//! 5. While `WAKING` is set, clearing `UPDATE` (and `EXCLUSIVE` with it) wakes no worker. The woken writer
//!    polls. It clears `WAKING` when it has got the latch, or before the last look that makes it park again.
//!    If readers may hold the latch beside the writer that it became or found, it wakes them.
//! 6. Optimistic: load the word; give up if `EXCLUSIVE` is set; read; load the word again. The read is valid
//!    if the version is the same and `EXCLUSIVE` is clear.
//!
//! # Rules
//! - R1: at most one worker owns `UPDATE`; only that worker sets `EXCLUSIVE`; data changes only while
//!   `EXCLUSIVE` is set and the count is zero.
//! - R2: a worker parks only on a word with `HAS_WAITERS` that refuses it, so the change that admits it finds
//!   `HAS_WAITERS` (P1 of `parking`). A writer is parked only while `UPDATE` is set, a reader only while
//!   `EXCLUSIVE` is set, the owner that waits for readers only while the count is not zero. The three changes
//!   of step 4 cover these cases.
//! - R2a: a worker left asleep because of `WAKING` is woken later. `WAKING` is cleared after the release that
//!   woke no worker, by a worker that then owns `UPDATE` or has seen it set, so a release that does wake is
//!   still to come; or by a worker that will look again. That covers the writers. It covers the readers if
//!   `EXCLUSIVE` was set too; otherwise they are woken when `WAKING` is cleared.
//! - R3: *a read that validates saw no exclusive section.* The writer has a release fence between setting
//!   `EXCLUSIVE` and its writes. The reader has an acquire fence between its reads and its second look. If a
//!   read saw one of the writes, the second look sees `EXCLUSIVE` or a later version.
//!
//! Optimistic readers must read atomics, or read as if the data might change underneath, since it does. For values of a
//! few words [`HybridCell`] does that.
//!
//! # Costs
//! 8 bytes. Shared and exclusive: a load and a CAS, then one RMW. Optimistic: two loads. The version has 44
//! bits, so a reader would have to sleep through exactly 2^44 exclusive sections to be deceived: ten days of
//! 20 million a second.
//!
//! Origin: hybrid latches and optimistic lock coupling are LeanStore's (Böttcher et al., "Scalable and robust
//! latches for database systems", DaMoN 2020; Leis, Haubenschild, Neumann, "Optimistic lock coupling", 2019);
//! U mode is InnoDB's SX.

mod cell;
mod guard;
mod optimistic;
mod wait;

pub use self::cell::{HybridCell, Words};
pub use self::guard::{HybridExclusive, HybridShared, HybridUpdate};
pub use self::optimistic::Version;

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, CoreU64, Host, Machine};

use self::wait::WAITS_FOR_READERS;
use crate::class::{ClassOf, Unclassed, Wait};
use crate::order;

const COUNT: u64 = (1 << 16) - 1;
const UPDATE: u64 = 1 << 16;
const EXCLUSIVE: u64 = 1 << 17;
const HAS_WAITERS: u64 = 1 << 18;
const WAKING: u64 = 1 << 19;
const VERSION_SHIFT: u32 = 20;
const VERSION_UNIT: u64 = 1 << VERSION_SHIFT;

/// Binary logarithm of the most pauses of a reader between two attempts.
const PAUSES_MAX_LOG2: u32 = 5;

/// A latch of 8 bytes with shared, update and exclusive modes and optimistic reads. See the module's
/// documentation.
#[derive(Debug)]
pub struct HybridLatch<C: ClassOf = Unclassed, M: Machine = Host> {
    word: M::U64,
    class: PhantomData<fn() -> C>,
}

const _: () = assert!(size_of::<HybridLatch>() == 8);

impl<C: ClassOf> HybridLatch<C, Host> {
    /// An idle latch.
    pub const fn new() -> Self {
        Self {
            word: CoreU64::new_const(0),
            class: PhantomData,
        }
    }
}

impl<C: ClassOf> Default for HybridLatch<C, Host> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: ClassOf, M: Machine> HybridLatch<C, M> {
    /// An idle latch, on any machine.
    pub fn idle() -> Self {
        Self {
            word: M::U64::new(0),
            class: PhantomData,
        }
    }

    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// Acquires the latch in shared mode: with other readers and at most one updater.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> HybridShared<'_, C, M> {
        self.acquire_shared();
        HybridShared::new(self)
    }

    /// Acquires the latch in shared mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<HybridShared<'_, C, M>> {
        self.try_acquire_shared().then(|| HybridShared::new(self))
    }

    /// Acquires the latch in update mode: with readers, without another updater or exclusive.
    #[inline]
    #[track_caller]
    pub fn update(&self) -> HybridUpdate<'_, C, M> {
        self.acquire_update();
        HybridUpdate::new(self)
    }

    /// Acquires the latch in update mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_update(&self) -> Option<HybridUpdate<'_, C, M>> {
        self.try_acquire_update().then(|| HybridUpdate::new(self))
    }

    /// Acquires the latch in exclusive mode. Readers that come after the request are refused, so it waits
    /// only for those that hold the latch already.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> HybridExclusive<'_, C, M> {
        self.acquire_exclusive();
        HybridExclusive::new(self)
    }

    /// Acquires the latch in exclusive mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<HybridExclusive<'_, C, M>> {
        self.try_acquire_exclusive().then(|| HybridExclusive::new(self))
    }

    /// Acquires in shared mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_shared(&self) {
        order::acquiring::<M>(C::class(), self.address());
        let word = self.word.load(Relaxed);
        if word & EXCLUSIVE != 0
            || self
                .word
                .compare_exchange_weak(word, word + 1, Acquire, Relaxed)
                .is_err()
        {
            self.shared_slow();
        }
        self.note_acquired(Wait::Shared);
    }

    /// Acquires in shared mode without a guard, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_acquire_shared(&self) -> bool {
        let acquired = self.try_grant_shared();
        if acquired {
            self.note_acquired(Wait::Shared);
        }
        acquired
    }

    #[inline]
    fn try_grant_shared(&self) -> bool {
        let mut word = self.word.load(Relaxed);
        let mut conflicts = 0_u32;
        while word & EXCLUSIVE == 0 {
            debug_assert!(word & COUNT < COUNT, "the shared count overflows");
            match self.word.compare_exchange_weak(word, word + 1, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(found) => {
                    conflicts += 1;
                    word = self.pause_and_load(found, conflicts);
                }
            }
        }
        false
    }

    /// Pauses after a reader's `conflicts`th failed CAS, then loads the word. Pauses grow, so that other
    /// readers can use the line in between. A single reader of the line acquires several times in the time
    /// that a conflict takes.
    #[cold]
    fn pause_and_load(&self, found: u64, conflicts: u32) -> u64 {
        if M::EXPLORED {
            return found;
        }
        for _ in 0..1 << conflicts.min(PAUSES_MAX_LOG2) {
            M::spin_hint();
        }
        self.word.load(Relaxed)
    }

    /// Releases what was acquired in shared mode.
    ///
    /// # Safety
    /// The caller holds the latch in shared mode, without a guard or by one that it has forgotten.
    #[inline]
    pub unsafe fn release_shared(&self) {
        order::released::<M>(self.address());
        // Release: pairs with the Acquire of the writer that sees the count at zero.
        let before = self.word.fetch_sub(1, Release);
        debug_assert!(
            before & COUNT != 0,
            "latch {} is not held shared",
            C::class().name
        );
        if before & (COUNT | EXCLUSIVE | HAS_WAITERS) == 1 | EXCLUSIVE | HAS_WAITERS {
            self.wake(|mode| mode == WAITS_FOR_READERS);
        }
    }

    /// Acquires in update mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_update(&self) {
        order::acquiring::<M>(C::class(), self.address());
        if !self.try_set(UPDATE, 0, None) {
            self.update_slow();
        }
        self.note_acquired(Wait::Update);
    }

    /// Acquires in update mode without a guard, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_acquire_update(&self) -> bool {
        self.try_acquire_bits(UPDATE, 0, None, Wait::Update)
    }

    /// Releases what was acquired in update mode.
    ///
    /// # Safety
    /// The caller holds the latch in update mode, without a guard or by one that it has forgotten.
    #[inline]
    pub unsafe fn release_update(&self) {
        order::released::<M>(self.address());
        if self.word.fetch_sub(UPDATE, Release) & HAS_WAITERS != 0 {
            self.wake_after_update();
        }
    }

    /// Acquires in exclusive mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_exclusive(&self) {
        order::acquiring::<M>(C::class(), self.address());
        if !self.try_set(UPDATE | EXCLUSIVE, COUNT, None) {
            self.exclusive_slow();
        }
        // R3: EXCLUSIVE comes before the writes.
        M::fence(Release);
        self.note_acquired(Wait::Exclusive);
    }

    /// Acquires in exclusive mode without a guard, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_acquire_exclusive(&self) -> bool {
        let acquired = self.try_acquire_bits(UPDATE | EXCLUSIVE, COUNT, None, Wait::Exclusive);
        // R3: EXCLUSIVE comes before the writes.
        M::fence(Release);
        acquired
    }

    /// Releases what was acquired in exclusive mode.
    ///
    /// # Safety
    /// The caller holds the latch in exclusive mode, without a guard or by one that it has forgotten.
    #[inline]
    pub unsafe fn release_exclusive(&self) {
        order::released::<M>(self.address());
        self.end_exclusive(0);
    }

    /// Ends an exclusive section, keeping `kept` of the word (protocol, step 3).
    #[inline]
    fn end_exclusive(&self, kept: u64) {
        let before = self
            .word
            .fetch_add(VERSION_UNIT + kept - EXCLUSIVE - UPDATE, Release);
        debug_assert!(
            before & (EXCLUSIVE | UPDATE | COUNT) == EXCLUSIVE | UPDATE,
            "latch {} is not held exclusively: {before:#x}",
            C::class().name
        );
        if before & HAS_WAITERS == 0 {
            return;
        }
        if kept & UPDATE != 0 {
            self.wake_readers();
        } else {
            self.wake_after_update();
        }
    }

    /// From update mode, which the caller holds, to exclusive mode: refuses new readers and waits for the
    /// others to leave.
    ///
    /// # Safety
    /// The caller holds the latch in update mode, without a guard or by one that it goes by no longer.
    #[inline]
    #[track_caller]
    pub unsafe fn upgrade_update(&self) {
        if self.word.fetch_add(EXCLUSIVE, Acquire) & COUNT != 0 {
            self.drain();
        }
        // R3: EXCLUSIVE comes before the writes.
        M::fence(Release);
    }

    /// Sets `bits` if UPDATE (and so EXCLUSIVE) and `excluded` are clear, and the version is still `version`
    /// if there is one.
    #[inline]
    fn try_set(&self, bits: u64, excluded: u64, version: Option<Version>) -> bool {
        let mut word = self.word.load(Relaxed);
        while word & (UPDATE | excluded) == 0 && version.is_none_or(|version| version.is_of(word)) {
            match self
                .word
                .compare_exchange_weak(word, word + bits, Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(found) => word = found,
            }
        }
        false
    }

    #[inline]
    #[track_caller]
    fn try_acquire_bits(&self, bits: u64, excluded: u64, version: Option<Version>, mode: Wait) -> bool {
        let acquired = self.try_set(bits, excluded, version);
        if acquired {
            self.note_acquired(mode);
        }
        acquired
    }

    #[inline]
    #[track_caller]
    fn note_acquired(&self, mode: Wait) {
        order::acquired::<M>(C::class(), self.address());
        C::class().count::<M>(mode);
    }

    /// True if the latch is held at this instant, for assertions.
    pub fn is_held(&self) -> bool {
        self.word.load(Relaxed) & (COUNT | UPDATE | EXCLUSIVE) != 0
    }

    /// True if a worker holds the latch exclusively, or has requested that, at this instant; for assertions.
    pub fn is_held_exclusive(&self) -> bool {
        self.word.load(Relaxed) & EXCLUSIVE != 0
    }
}
