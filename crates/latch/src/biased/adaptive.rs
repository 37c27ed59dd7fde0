//! AdaptiveLatch: a reader-writer latch that is plain until its readers get into each other's way, and then read-biased.
//!
//! It is an [`LwLock`] with one more bit in its word, `BIASED`, and K reader slots on cache lines of their own. Plain, the
//! slots are not used, and each path is LwLock's. Biased, a reader makes itself known in its own slot and only *reads* the word,
//! so that readers on different CPUs share lines that nobody writes; a writer takes the word as ever and then waits until
//! the slots are empty.
//!
//! # Protocol
//! - **Shared, plain** (`BIASED` clear): CAS the count in the word.
//! - **Shared, biased**: (a) the word says `BIASED` and not `EXCLUSIVE`; (b) add one to the own slot; (c) full barrier;
//!   (d) the word *still* says so: in. Else subtract again and wait on the word as plain readers do.
//! - **Exclusive**: (e) take `EXCLUSIVE` in the word as ever; (f) if `BIASED` is set: full barrier, (g) wait until each slot has
//!   been seen empty: in. This is the whole revocation: nothing has to be set again afterwards, since taking the word off
//!   `EXCLUSIVE` lets biased readers in again.
//! - **Release** what was taken: the slot, the count, or `EXCLUSIVE`.
//! - **Conditional exclusive** looks at the slots before (e), so as not to turn readers away for nothing, and once at (g); if
//!   one is taken then, it releases `EXCLUSIVE`, with the wake-ups of a release.
//! - **Turning biased**: anybody sets `BIASED`, any time. **Turning plain**: an exclusive holder that found the slots empty
//!   clears it.
//!
//! Why (d): a writer may take the word and find all slots empty between (a) and (b). Why the barrier: without it the look (d)
//! may be answered before the addition (b) is seen by others, so that reader and writer each miss the other, as in Dekker's
//! algorithm. Why not simply clear `BIASED` and set it again at the end: it would be two more writes of a line that all
//! readers read.
//!
//! # Invariants
//! - R1: a reader is in by its slot only if, after it was counted there, the word was seen with `BIASED` and without
//!   `EXCLUSIVE`. A count that has not yet passed that look (a *visit*) is taken back at once if the look fails.
//! - R2: `BIASED` is cleared only while `EXCLUSIVE` is held by a worker that saw every slot empty since it took it. So while
//!   `BIASED` is clear nobody is in by a slot, and a writer that finds it clear has nothing to wait for.
//!   (Setting it while a writer is in is harmless: R1 lets nobody in before that writer has gone.)
//! - R3: of the reader's addition to its slot and the writer's `EXCLUSIVE`, one comes first. *Reader: RMW of the slot, barrier,
//!   load of the word. Writer: RMW of the word, barrier, load of the slot.* Either the reader sees `EXCLUSIVE` or the
//!   writer sees the reader.
//! - R4: what is protected is ordered. *Reader, then writer: a slot is left by a Release and found empty by an Acquire. Writer,
//!   then reader: the look (d) is an Acquire of the word that the writer released; all changes of the word are
//!   read-modify-writes, so later ones continue its release sequence.*
//! - R5: no wake-up is lost on the word, because waiting there is LwLock's and `BIASED` takes no part in it; nor on a slot, see
//!   `reader_slots`.
//!
//! # Progress
//! A writer that has `EXCLUSIVE` waits for those readers that were in by a slot, and at most one visit of each other worker:
//! whoever comes later reads `EXCLUSIVE` first and stays off the slots. Nor can readers keep a writer from taking
//! `EXCLUSIVE` while the latch is biased: a reader takes the count in the word only after it saw a writer there, once for each
//! such writer, so between two writers there are at most as many plain shared grants as workers, however many readers come.
//! Plain, a writer is promised what the LwLock's fairness policy promises.
//!
//! # Costs
//! 256 bytes, and 128 a slot. Plain: LwLock's instructions, and a branch when a shared guard is dropped. Biased: shared, one
//! load more than plain, but no line that others write; exclusive, K loads, which do not wait for each other.
//!
//! # What it does not do
//! Slots are per latch; BRAVO's are one table for all, which is smaller when latches are many, and lets readers of different
//! latches meet. The decision ([`BiasPolicy`]) is the latch's, not the class's.
//!
//! Origin: BRAVO, "Biased Locking for Reader-Writer Locks", Dice and Kogan, USENIX ATC 2019: the flag, the slots, the recheck,
//! and inhibition. New here: the flag lives in the latch's own word, so that the plain path does not pay for it and
//! a writer does not end the bias; readers count themselves, and bias is judged by what was counted (see `bias`).

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use clearway_machine::{AtomicWord, Host, Machine, Padded};

use super::policy::{Bias, BiasPolicy, BiasStatistics};
use super::reader_slots::ReaderSlots;
use super::slot_choice::SlotChoice;
use crate::class::LatchClass;
use crate::lwlock::options::LwLockOptions;
use crate::lwlock::state::{
    EXCLUSIVE, GRANTS, HAS_WAITERS, LOCKED, SHARED_MASK, SHARED_UNIT, WAKE_IN_PROGRESS,
};
use crate::lwlock::{LatchMode, LwLock};
use crate::order;

/// In the LwLock's word: readers may come in by the slots while nobody holds `EXCLUSIVE`.
const BIASED: u32 = 1 << 31;

const _: () =
    assert!(BIASED & (SHARED_MASK | EXCLUSIVE | GRANTS | LOCKED | WAKE_IN_PROGRESS | HAS_WAITERS) == 0);

/// Instead of a slot's number: held by the count in the word.
const BY_COUNT: u32 = u32::MAX;

/// How an [`AdaptiveLatch`] is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdaptiveOptions {
    /// The LwLock inside. Its `shared_path` is heeded by those who wait; the first attempt is a CAS, from whose failures the
    /// latch guesses that bias would pay.
    pub lwlock: LwLockOptions,
    /// When it is biased.
    pub bias: BiasPolicy,
    /// By what a reader picks its slot.
    pub slot: SlotChoice,
}

/// What everybody looks at, on one line.
#[derive(Debug)]
struct Main<M: Machine> {
    latch: LwLock<M>,
    slot: SlotChoice,
    bias: Bias<M>,
}

/// A reader-writer latch that turns read-biased by itself. See the module's documentation for the protocol.
#[derive(Debug)]
pub struct AdaptiveLatch<const K: usize = 16, M: Machine = Host> {
    main: Padded<Main<M>>,
    slots: ReaderSlots<K, M>,
}

const _: () = assert!(size_of::<AdaptiveLatch<16, Host>>() == 18 * 128);

impl<const K: usize, M: Machine> AdaptiveLatch<K, M> {
    const HAS_SLOTS: () = assert!(K > 0, "an adaptive latch needs a slot");

    /// An idle, plain latch of `class`, with everything else as by default.
    pub fn new(class: &'static LatchClass) -> Self {
        Self::with_options(class, AdaptiveOptions::default())
    }

    /// An idle latch of `class`.
    pub fn with_options(class: &'static LatchClass, options: AdaptiveOptions) -> Self {
        let () = Self::HAS_SLOTS;
        let latch = LwLock::<M>::new(class, options.lwlock);
        if options.bias == BiasPolicy::Always {
            latch.state.fetch_or(BIASED, Relaxed);
        }
        Self {
            main: Padded(Main {
                latch,
                slot: options.slot,
                bias: Bias::new(options.bias),
            }),
            slots: ReaderSlots::new(),
        }
    }

    /// The latch's class.
    pub fn class(&self) -> &'static LatchClass {
        self.main.latch.class()
    }

    /// Whether the latch is biased at this instant.
    pub fn is_biased(&self) -> bool {
        self.state() & BIASED != 0
    }

    /// The latch's policy of bias.
    pub fn bias_policy(&self) -> BiasPolicy {
        self.main.bias.policy()
    }

    /// How often it has turned.
    pub fn bias_statistics(&self) -> BiasStatistics {
        self.main.bias.statistics()
    }

    #[inline]
    fn state(&self) -> u32 {
        self.main.latch.state.load(Relaxed)
    }

    /// What the order checker knows the latch by.
    fn address(&self) -> *const () {
        core::ptr::from_ref(&self.main.latch).cast()
    }

    /// Acquires the latch along with other readers, waiting as long as it takes.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this latch or one of a higher rank.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> AdaptiveShared<'_, K, M> {
        order::acquiring::<M>(self.class(), self.address());
        // Counted on either way by itself, so that the plain one does not wait for what the other leaves behind.
        let slot = match self.attempt_count() {
            Ok(()) => {
                self.main.latch.note_acquired(LatchMode::Shared);
                BY_COUNT
            }
            Err(found) => self.shared_otherwise(found),
        };
        AdaptiveShared::new(self, slot)
    }

    /// Acquires the latch in shared mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<AdaptiveShared<'_, K, M>> {
        let slot = match self.attempt_count() {
            Ok(()) => BY_COUNT,
            Err(found) => self.try_shared_otherwise(found)?,
        };
        self.main.latch.note_acquired(LatchMode::Shared);
        Some(AdaptiveShared::new(self, slot))
    }

    /// One attempt by the plain way, if the word shows it open; else the word. Nothing else is inlined, lest callers
    /// inline nothing: what readers of a plain latch pay must be what LwLock's do.
    #[inline(always)]
    fn attempt_count(&self) -> Result<(), u32> {
        let word = &self.main.latch.state;
        let found = word.load(Relaxed);
        if found & (BIASED | EXCLUSIVE | GRANTS | HAS_WAITERS) != 0 {
            return Err(found);
        }
        word.compare_exchange(found, found + SHARED_UNIT, Acquire, Relaxed)
            .map(|_| ())
    }

    /// Acquires in shared mode after the word was `found`.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn shared_otherwise(&self, found: u32) -> u32 {
        let slot = match self.attempt_slot(found) {
            Ok(slot) => slot,
            Err(found) => self.shared_slow(found),
        };
        self.main.latch.note_acquired(LatchMode::Shared);
        slot
    }

    #[inline(never)]
    fn try_shared_otherwise(&self, found: u32) -> Option<u32> {
        match self.attempt_slot(found) {
            Ok(slot) => Some(slot),
            Err(found) => self.attempt_shared_slow(found),
        }
    }

    /// R1: if the word was `found` biased and without a writer, be counted, then look again. The slot by which the latch is
    /// held now, or the word.
    #[inline]
    fn attempt_slot(&self, found: u32) -> Result<u32, u32> {
        if found & (BIASED | EXCLUSIVE) != BIASED {
            return Err(found);
        }
        let slot = self.main.slot.slot::<M>(K);
        self.slots.enter(slot);
        // R3. Both accesses are SeqCst, which orders them as a full barrier between them would, and is free after the RMW on
        // x86-64 and aarch64, where the fence is not. A checker to whom SeqCst accesses are AcqRel gets the fence.
        if M::EXPLORED {
            M::fence(SeqCst);
        }
        let found = self.main.latch.state.load(SeqCst);
        if found & (BIASED | EXCLUSIVE) == BIASED {
            return Ok(slot as u32);
        }
        self.slots.leave(slot);
        Err(found)
    }

    #[cold]
    #[inline(never)]
    fn attempt_shared_slow(&self, found: u32) -> Option<u32> {
        self.main.latch.try_grant_from(found, LatchMode::Shared)?;
        self.came_in_late(found);
        Some(BY_COUNT)
    }

    #[cold]
    #[inline(never)]
    fn shared_slow(&self, found: u32) -> u32 {
        let latch = &self.main.latch;
        if latch.try_grant_from(found, LatchMode::Shared).is_none() {
            latch.acquire_slow(LatchMode::Shared);
        }
        self.came_in_late(found);
        BY_COUNT
    }

    /// The caller has come in by the count, but not at the first attempt, which `found` another word than it needed. Noted
    /// afterwards, so that the retry does not wait for it.
    fn came_in_late(&self, found: u32) {
        if found & BIASED == 0 && self.main.bias.conflict() {
            self.turn_biased();
        }
    }

    /// R2 allows it to anybody.
    fn turn_biased(&self) {
        if self.main.latch.state.fetch_or(BIASED, Relaxed) & BIASED == 0 {
            self.main.bias.turned_biased();
        }
    }

    /// Turns the latch biased now, and not only when readers have met: for who knows that many are about to come. It is a
    /// hint: writers turn the latch plain again if bias does not pay, and under [`BiasPolicy::Never`] nothing happens.
    pub fn expect_readers(&self) {
        if self.main.bias.policy() != BiasPolicy::Never {
            self.turn_biased();
        }
    }

    /// Not inlined, so that a plain latch's readers do not pay for its registers.
    #[cold]
    #[inline(never)]
    fn release_slot(&self, slot: u32) {
        order::released::<M>(self.address());
        self.slots.leave(slot as usize);
    }

    /// Acquires the latch alone, waiting as long as it takes. A wait for the word and one for the slots are two conflicts.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this latch or one of a higher rank.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> AdaptiveExclusive<'_, K, M> {
        order::acquiring::<M>(self.class(), self.address());
        let latch = &self.main.latch;
        // Idle and plain is zero. Counted on either way by itself, as in `shared`.
        match latch.state.compare_exchange(0, EXCLUSIVE, Acquire, Relaxed) {
            Ok(_) => latch.note_acquired(LatchMode::Exclusive),
            Err(found) => self.exclusive_otherwise(found),
        }
        AdaptiveExclusive::new(self)
    }

    /// Acquires in exclusive mode after the word was `found`.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn exclusive_otherwise(&self, found: u32) {
        let latch = &self.main.latch;
        let granted_from = latch
            .try_grant_from(found, LatchMode::Exclusive)
            .unwrap_or_else(|| latch.acquire_slow(LatchMode::Exclusive));
        // R2 and R1: without `BIASED` then, nobody is in by a slot now. To look at the word again would wait for its line,
        // for which everybody that waits has asked.
        if granted_from & BIASED != 0 {
            self.wait_for_slots();
        }
        latch.note_acquired(LatchMode::Exclusive);
    }

    /// Acquires the latch in exclusive mode if it can be had now. A refused attempt leaves no trace, but while it lasts it may
    /// make other attempts fail and workers wait.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<AdaptiveExclusive<'_, K, M>> {
        let latch = &self.main.latch;
        if let Err(found) = latch.state.compare_exchange(0, EXCLUSIVE, Acquire, Relaxed)
            && !self.attempt_exclusive_slow(found)
        {
            return None;
        }
        self.main.latch.note_acquired(LatchMode::Exclusive);
        Some(AdaptiveExclusive::new(self))
    }

    #[cold]
    #[inline(never)]
    fn attempt_exclusive_slow(&self, found: u32) -> bool {
        let latch = &self.main.latch;
        // Look first: an attempt that is refused should not have sent readers to sleep.
        if found & BIASED != 0 && !self.slots.is_empty() {
            return false;
        }
        let Some(granted_from) = latch.try_grant_from(found, LatchMode::Exclusive) else {
            return false;
        };
        if granted_from & BIASED != 0 {
            M::fence(SeqCst);
            if !self.slots.is_empty() {
                // A release, with its wake-ups: somebody may have come to wait for us.
                latch.release_word(LatchMode::Exclusive);
                return false;
            }
            self.writer_came_in();
        }
        true
    }

    /// The caller has taken `EXCLUSIVE` in a word with `BIASED`: waits for those who are in by the slots.
    #[cold]
    #[inline(never)]
    fn wait_for_slots(&self) {
        // R3: pairs with the SeqCst accesses in `attempt_slot`.
        M::fence(SeqCst);
        if !self.slots.is_empty() {
            self.slots.drain(self.class());
        }
        self.writer_came_in();
    }

    /// Judges the bias. The caller holds the latch exclusively and has seen every slot empty.
    fn writer_came_in(&self) {
        let main = &*self.main;
        let count = || self.slots.count(main.slot.slot::<M>(K));
        if main.bias.writer_must_turn_plain(count) {
            // R2.
            main.latch.state.fetch_and(!BIASED, Relaxed);
        }
    }

    /// Whether anybody holds the latch at this instant, for assertions.
    pub fn is_held(&self) -> bool {
        self.main.latch.is_held() || !self.slots.is_empty()
    }

    /// Whether somebody holds the latch exclusively, or is about to, at this instant, for assertions.
    pub fn is_held_exclusive(&self) -> bool {
        self.main.latch.is_held_exclusive()
    }
}

/// Holds an [`AdaptiveLatch`] in shared mode: by a slot or by the count.
#[derive(Debug)]
#[must_use = "the latch is released at once if its guard is dropped"]
pub struct AdaptiveShared<'a, const K: usize = 16, M: Machine = Host> {
    latch: &'a AdaptiveLatch<K, M>,
    slot: u32,
    // A latch is released by the worker that acquired it.
    not_send: PhantomData<*const ()>,
}

impl<'a, const K: usize, M: Machine> AdaptiveShared<'a, K, M> {
    #[inline]
    fn new(latch: &'a AdaptiveLatch<K, M>, slot: u32) -> Self {
        Self {
            latch,
            slot,
            not_send: PhantomData,
        }
    }

    /// The latch this guard holds.
    pub fn latch(&self) -> &'a AdaptiveLatch<K, M> {
        self.latch
    }
}

impl<const K: usize, M: Machine> Drop for AdaptiveShared<'_, K, M> {
    #[inline]
    fn drop(&mut self) {
        if self.slot == BY_COUNT {
            self.latch.main.latch.release(LatchMode::Shared);
        } else {
            self.latch.release_slot(self.slot);
        }
    }
}

/// Holds an [`AdaptiveLatch`] in exclusive mode.
#[derive(Debug)]
#[must_use = "the latch is released at once if its guard is dropped"]
pub struct AdaptiveExclusive<'a, const K: usize = 16, M: Machine = Host> {
    latch: &'a AdaptiveLatch<K, M>,
    not_send: PhantomData<*const ()>,
}

impl<'a, const K: usize, M: Machine> AdaptiveExclusive<'a, K, M> {
    #[inline]
    fn new(latch: &'a AdaptiveLatch<K, M>) -> Self {
        Self {
            latch,
            not_send: PhantomData,
        }
    }

    /// The latch this guard holds.
    pub fn latch(&self) -> &'a AdaptiveLatch<K, M> {
        self.latch
    }
}

impl<const K: usize, M: Machine> Drop for AdaptiveExclusive<'_, K, M> {
    #[inline]
    fn drop(&mut self) {
        self.latch.main.latch.release(LatchMode::Exclusive);
    }
}
