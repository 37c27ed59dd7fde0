//! AdaptiveLatch: a reader-writer latch that is plain until its readers slow each other down, and then
//! read-biased.
//!
//! It is an [`LwLock`] with two more bits in its word and K reader slots on cache lines of their own. `BIASED` admits
//! readers to the slots; `TRIAL` makes writers count themselves while `policy` compares both states, and grants or
//! refuses nothing. While it is plain the slots are not used, and each path is LwLock's. While it is biased a reader
//! counts itself in its own slot and only *reads* the word, so readers on different CPUs share lines that are
//! not written. A writer takes the word as before and then waits until the slots are empty.
//!
//! # Protocol
//! - **Shared, plain** (`BIASED` clear): CAS the count in the word.
//! - **Shared, biased**: (a) the word has `BIASED` and not `EXCLUSIVE`; (b) add one to the reader's slot; (c)
//!   full barrier; (d) the word *still* has `BIASED` and not `EXCLUSIVE`: granted. Otherwise subtract again,
//!   poll until the writer has left, and begin with (a) again. Once the polls are used up, wait on the word as
//!   plain readers do.
//! - **Exclusive**: (e) take `EXCLUSIVE` in the word as in an LwLock; (f) if `BIASED` is set: full barrier,
//!   (g) wait until each slot has been seen empty: granted. This is the whole revocation. Nothing has to be
//!   set again afterwards, because clearing `EXCLUSIVE` admits biased readers again.
//! - **Release** what was taken: the slot, the count, or `EXCLUSIVE`.
//! - **Conditional exclusive** looks at the slots before (e), so that it does not refuse readers in vain, and
//!   once at (g). If a slot has a reader then, it releases `EXCLUSIVE`, with the wake-ups of a release.
//! - **Turning biased**: any worker sets `BIASED`, at any time. **Turning plain**: an exclusive holder that
//!   has seen the slots empty clears it.
//! - **Beginning a trial**: any worker sets `TRIAL`, together with `BIASED` or in a word that has it and not `TRIAL`. An
//!   exclusive holder that ends the trial clears it.
//!
//! # Why each step
//! - Why (d): between (a) and (b) a writer may take the word and find all slots empty.
//! - Why the barrier (c): without it the load (d) may complete before other cores see the addition (b). Then
//!   reader and writer each miss the other, as in Dekker's algorithm.
//! - Why a reader polls, although plain readers queue: a reader that queues takes the count in the word in the
//!   end, so that the next writer waits for it and for its line; and a biased writer is gone after its section
//!   and a look at the slots, sooner than a reader falls asleep. Why without yields: with more workers than
//!   CPUs, workers that stay awake and take turns did 0.8 of those of which some sleep (64 on 16 CPUs).
//! - Why a writer does not clear `BIASED` and set it again at its end: that would be two more writes of a
//!   line that all readers read.
//!
//! # Rules
//! - R1: a reader holds the latch by its slot only if, after it was counted there, the word was seen with
//!   `BIASED` and without `EXCLUSIVE`. A count that has not passed that look yet (a *visit*) is subtracted at
//!   once if the look fails.
//! - R2: `BIASED` is cleared only by a worker that holds `EXCLUSIVE` and has since seen every slot empty. So
//!   while `BIASED` is clear no reader holds the latch by a slot, and a writer that finds it clear has
//!   nothing to wait for. (Setting it while a writer holds the latch is harmless: by R1 no reader is granted
//!   before that writer releases.)
//! - R3: of the reader's addition to its slot and the writer's `EXCLUSIVE`, one comes first. *Reader: RMW of
//!   the slot, barrier, load of the word. Writer: RMW of the word, barrier, load of the slot.* Either the
//!   reader sees `EXCLUSIVE` or the writer sees the reader.
//! - R4: what is protected is ordered. *Reader, then writer: a reader leaves a slot by a Release, and the
//!   writer finds it empty by an Acquire. Writer, then reader: the look (d) is an Acquire of the word that
//!   the writer released; all changes of the word are RMWs, so later ones continue its release sequence.*
//! - R5: no wake-up is lost. Waiting on the word is LwLock's, and `BIASED` takes no part in it. For a slot
//!   see `reader_slots`.
//!
//! # Progress
//! A writer that has `EXCLUSIVE` waits for the readers that hold the latch by a slot, and for at most one
//! visit of each other worker: a later reader reads `EXCLUSIVE` first and does not enter a slot. Nor can
//! readers keep a writer from taking `EXCLUSIVE` while the latch is biased. A reader takes the count in the
//! word only after it saw a writer there, at most once for each such writer, so between two writers there are at most
//! as many plain shared grants as workers, however many readers arrive. While the latch is plain a writer has
//! the promise of the LwLock's fairness policy. A reader that polls has no place in a queue, and one writer after
//! the other may come before it, but only for as long as it polls, some 40 µs.
//!
//! # Costs
//! 128 bytes, and 128 a slot. Plain: LwLock's instructions, and a branch when a shared guard is dropped.
//! Biased: shared, one load more than plain, but no line that other cores write; exclusive, K loads, which do
//! not wait for each other.
//!
//! # What it does not do
//! Slots are per latch. BRAVO has one table for all latches, which is smaller when latches are many, and lets
//! readers of different latches meet on a line. The decision ([`BiasPolicy`]) is made per latch, not per
//! class.
//!
//! # Origin
//! BRAVO, "Biased Locking for Reader-Writer Locks", Dice and Kogan, USENIX ATC 2019: the flag, the slots, the
//! recheck, and inhibition. New here: the flag is in the latch's own word, so the plain path does not pay for
//! it and a writer does not end the bias; both states are measured by turns, and the faster one stays (see
//! `policy`).

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

use clearway_machine::{AtomicWord, Host, Machine, Padded};

use super::policy::{Bias, BiasPolicy, BiasStatistics, Turn};
use super::reader_slots::ReaderSlots;
use super::slot_choice::{SlotChoice, SlotMap};
use crate::class::{LatchClass, Wait};
use crate::lwlock::options::LwLockOptions;
use crate::lwlock::state::{
    EXCLUSIVE, GRANTS, HAS_WAITERS, LOCKED, SHARED_MASK, SHARED_UNIT, WAKE_IN_PROGRESS,
};
use crate::lwlock::{LatchMode, LwLock};
use crate::order;
use crate::spin::Spin;

/// In the LwLock's word: readers may use the slots while `EXCLUSIVE` is clear.
const BIASED: u32 = 1 << 31;

/// In the LwLock's word: writers count themselves, biased or not (`policy`).
const TRIAL: u32 = 1 << 27;

const _: () = assert!(
    (BIASED | TRIAL) & (SHARED_MASK | EXCLUSIVE | GRANTS | LOCKED | WAKE_IN_PROGRESS | HAS_WAITERS) == 0
);

/// In place of a slot's number: the latch is held by the count in the word.
const BY_COUNT: u32 = u32::MAX;

/// Of readers that met more than one other, each counts only if their number and its worker's are equal modulo this.
const MEETINGS_OF: u32 = 8;

/// A writer's task for the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriterTask {
    None,
    /// Counts itself behind the word, in a trial, and whether the word was idle.
    Count {
        idle: bool,
    },
}

/// The options of an [`AdaptiveLatch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdaptiveOptions {
    /// The LwLock inside. Its `shared_path` applies to workers that wait. The first attempt is always a CAS,
    /// whose failures tell the latch that bias may pay.
    pub lwlock: LwLockOptions,
    /// The policy by which it is biased.
    pub bias: BiasPolicy,
    /// The choice of a reader's slot.
    pub slot: SlotChoice,
}

/// State that all workers read, and that writers of a biased latch change, on the first 64 bytes.
#[derive(Debug)]
#[repr(C)]
struct Main<M: Machine> {
    latch: LwLock<M>,
    slot: SlotMap,
    bias: Bias<M>,
}

/// A reader-writer latch that turns read-biased by itself. See the module's documentation for the protocol.
#[derive(Debug)]
pub struct AdaptiveLatch<const K: usize = 16, M: Machine = Host> {
    main: Padded<Main<M>>,
    slots: ReaderSlots<K, M>,
}

const _: () = assert!(size_of::<AdaptiveLatch<16, Host>>() == 17 * 128);

impl<const K: usize> AdaptiveLatch<K> {
    /// An idle latch of `class` in a static, whose slots are chosen by worker or by CPU:
    ///
    /// ```
    /// use clearway_latch::{
    ///     AdaptiveLatch, AdaptiveOptions, BiasPolicy, LatchClass, LatchedBy, LwLockOptions, SlotChoice,
    /// };
    /// use clearway_machine::WaitEvent;
    ///
    /// static CLASS: LatchClass = LatchClass::new("Routes", WaitEvent::UserLatch, 0);
    /// const OPTIONS: AdaptiveOptions = AdaptiveOptions {
    ///     lwlock: LwLockOptions::BEST,
    ///     bias: BiasPolicy::Adaptive,
    ///     slot: SlotChoice::Worker,
    /// };
    /// static ROUTES: LatchedBy<AdaptiveLatch, Vec<u64>> =
    ///     LatchedBy::in_static_with(AdaptiveLatch::in_static(&CLASS, OPTIONS), Vec::new());
    ///
    /// ROUTES.exclusive().push(7);
    /// assert_eq!(*ROUTES.shared(), [7]);
    /// ```
    pub const fn in_static(class: &'static LatchClass, options: AdaptiveOptions) -> Self {
        let () = Self::HAS_SLOTS;
        let word = match options.bias {
            BiasPolicy::Always => BIASED,
            BiasPolicy::Adaptive | BiasPolicy::Never => 0,
        };
        Self {
            main: Padded(Main {
                latch: LwLock::in_static_with_word(class, options.lwlock, word),
                slot: SlotMap::in_static(options.slot, K),
                bias: Bias::in_static(options.bias),
            }),
            slots: ReaderSlots::in_static(),
        }
    }
}

impl<const K: usize, M: Machine> AdaptiveLatch<K, M> {
    const HAS_SLOTS: () = assert!(K > 0, "an adaptive latch needs a slot");

    /// Under a checker each meeting counts, so that the latch turns whenever it may.
    const MEETINGS_OF: u32 = if M::EXPLORED { 1 } else { MEETINGS_OF };

    /// An idle, plain latch of `class`, with default options.
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
                slot: SlotMap::new::<M>(options.slot, K),
                bias: Bias::new(options.bias),
            }),
            slots: ReaderSlots::new(),
        }
    }

    /// The latch's class.
    pub fn class(&self) -> &'static LatchClass {
        self.main.latch.class()
    }

    /// True if the latch is biased at this instant.
    pub fn is_biased(&self) -> bool {
        self.state() & BIASED != 0
    }

    /// The latch's policy of bias.
    pub fn bias_policy(&self) -> BiasPolicy {
        self.main.bias.policy()
    }

    /// The number of times that the latch has turned biased and plain.
    pub fn bias_statistics(&self) -> BiasStatistics {
        self.main.bias.statistics()
    }

    #[inline]
    fn state(&self) -> u32 {
        self.main.latch.state.load(Relaxed)
    }

    /// The address by which the order checker knows the latch.
    fn address(&self) -> *const () {
        core::ptr::from_ref(&self.main.latch).cast()
    }

    /// Acquires the latch in shared mode, waiting as long as it takes.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this latch or one of a higher rank.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> AdaptiveShared<'_, K, M> {
        order::acquiring::<M>(self.class(), self.address());
        // Each path records its own acquisition, so that the plain path has no registers to keep for the
        // other.
        let slot = match self.try_count() {
            Ok(()) => {
                self.main.latch.note_acquired(LatchMode::Shared);
                BY_COUNT
            }
            Err(found) => self.shared_from(found),
        };
        AdaptiveShared::new(self, slot)
    }

    /// Acquires the latch in shared mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<AdaptiveShared<'_, K, M>> {
        let slot = match self.try_count() {
            Ok(()) => BY_COUNT,
            Err(found) => self.try_shared_from(found)?,
        };
        self.main.latch.note_acquired(LatchMode::Shared);
        Some(AdaptiveShared::new(self, slot))
    }

    /// One attempt by the plain path, or the word that did not allow it. Nothing else is inlined: if more
    /// were, callers would inline nothing, and readers of a plain latch must pay no more than LwLock's.
    #[inline(always)]
    fn try_count(&self) -> Result<(), u32> {
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
    fn shared_from(&self, found: u32) -> u32 {
        let slot = match self.try_slot(found) {
            Ok(slot) => slot,
            Err(found) => self.shared_slow(found),
        };
        self.main.latch.note_acquired(LatchMode::Shared);
        slot
    }

    #[inline(never)]
    fn try_shared_from(&self, found: u32) -> Option<u32> {
        match self.try_slot(found) {
            Ok(slot) => Some(slot),
            Err(found) => self.try_shared_slow(found),
        }
    }

    /// R1: if the word was `found` biased and without a writer, counts the caller in its slot, then looks
    /// again. Returns the slot by which the caller holds the latch, or the word.
    #[inline]
    fn try_slot(&self, found: u32) -> Result<u32, u32> {
        if found & (BIASED | EXCLUSIVE) != BIASED {
            return Err(found);
        }
        let slot = self.main.slot.slot::<M>(K);
        self.slots.enter(slot);
        // R3. Both accesses are SeqCst, which orders them as a full barrier between them would: in the order S of C++20
        // the addition comes before this load; if the load misses `EXCLUSIVE` it comes before the writer's fence, and if
        // the writer's look misses the addition the fence comes before that: a circle. After the RMW that is free on
        // x86-64 and aarch64, where a fence is not.
        let found = self.main.latch.state.load(SeqCst);
        if found & (BIASED | EXCLUSIVE) == BIASED {
            return Ok(slot as u32);
        }
        self.slots.leave(slot);
        Err(found)
    }

    #[cold]
    #[inline(never)]
    fn try_shared_slow(&self, found: u32) -> Option<u32> {
        self.main.latch.try_grant_from(found, LatchMode::Shared)?;
        self.note_met_reader(found);
        Some(BY_COUNT)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn shared_slow(&self, found: u32) -> u32 {
        let latch = &self.main.latch;
        if latch.try_grant_from(found, LatchMode::Shared).is_some() {
            self.note_met_reader(found);
            return BY_COUNT;
        }
        let started = M::now();
        if found & BIASED == 0 && self.main.bias.nominated_by_wait(found & TRIAL != 0, started) {
            self.turn_biased(BIASED | TRIAL);
        }
        if found & BIASED != 0
            && let Some(slot) = self.slot_after_writer(started)
        {
            return slot;
        }
        latch.acquire_slow_from(LatchMode::Shared, started);
        BY_COUNT
    }

    /// A wait for the writer of a biased word, from `started` on: polls until it has left, and takes a slot then. `None` if
    /// the worker should queue, because its polls are used up or the word has turned plain.
    fn slot_after_writer(&self, started: u64) -> Option<u32> {
        let class = self.class();
        class.begin_wait();
        // A worker without a slot queues, and waits for a slot there.
        let taught = &M::workers().slot(M::known_worker()?).adaptive.spins_for_writer;
        let mut spin = Spin::begin_in::<M>(class, taught).without_yields();
        let slot = loop {
            if !spin.poll::<M>() {
                break None;
            }
            match self.try_slot(self.state()) {
                Ok(slot) => break Some(slot),
                Err(found) if found & BIASED == 0 => break None,
                Err(_) => {}
            }
        };
        if slot.is_some() {
            let waited = M::now().saturating_sub(started);
            class.record(Wait::Shared, spin.polls(), 0, waited);
        }
        spin.finish_in::<M>(class, taught, slot.is_none());
        slot
    }

    /// The caller, a reader, got the latch by its second attempt. Counts a conflict if the first one `found` neither a
    /// writer nor waiters: then another reader had changed the word. Where there are writers, only readers that have to
    /// wait count. And of those that met readers one counts that found one alone, or as many as its own number says: some
    /// worker of few does, and one in `MEETINGS_OF` of many. If each did, an empty section would lose 3 to 5 % with 72
    /// clients, whether they count while they hold the latch or later.
    fn note_met_reader(&self, found: u32) {
        let readers = (found & SHARED_MASK) / SHARED_UNIT;
        if found & (EXCLUSIVE | GRANTS | HAS_WAITERS | BIASED) == 0
            && let Some(worker) = M::known_worker()
            && (readers == 1 || readers % Self::MEETINGS_OF == worker.0 % Self::MEETINGS_OF)
            && self.main.bias.nominated_by_meeting(found & TRIAL != 0, M::now)
        {
            self.turn_biased(BIASED | TRIAL);
        }
    }

    /// R2: any worker may.
    fn turn_biased(&self, bits: u32) {
        if self.main.latch.state.fetch_or(bits, Relaxed) & BIASED == 0 {
            self.main.bias.turned_biased();
        }
    }

    /// Turns the latch biased now, before readers have met: for a caller that expects many readers. It is a
    /// hint. Writers turn the latch plain again if bias does not pay, and under [`BiasPolicy::Never`] nothing
    /// happens.
    pub fn expect_readers(&self) {
        if self.main.bias.policy() != BiasPolicy::Never {
            self.turn_biased(BIASED);
        }
    }

    /// Not inlined, so that a plain latch's readers do not pay for its registers.
    #[cold]
    #[inline(never)]
    fn release_slot(&self, slot: u32) {
        order::released::<M>(self.address());
        self.slots.leave(slot as usize);
    }

    /// Acquires the latch in exclusive mode, waiting as long as it takes. A wait for the word and a wait for
    /// the slots count as two conflicts.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this latch or one of a higher rank.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> AdaptiveExclusive<'_, K, M> {
        order::acquiring::<M>(self.class(), self.address());
        let latch = &self.main.latch;
        // Idle and plain is zero. Each path records its own acquisition, as in `shared`.
        let came_biased = match latch.state.compare_exchange(0, EXCLUSIVE, Acquire, Relaxed) {
            Ok(_) => {
                latch.note_acquired(LatchMode::Exclusive);
                false
            }
            Err(found) => self.exclusive_from(found),
        };
        AdaptiveExclusive::new(self, came_biased)
    }

    /// Acquires in exclusive mode after the word was `found`. Returns whether it was granted at once, by a word that rests
    /// biased.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn exclusive_from(&self, found: u32) -> bool {
        let latch = &self.main.latch;
        let duty = self.duty(found);
        let mut waited = None;
        let granted_from = match latch.try_grant_from(found, LatchMode::Exclusive) {
            Some(word) => word,
            None => {
                let started = M::now();
                waited = Some(started);
                latch.acquire_slow_from(LatchMode::Exclusive, started)
            }
        };
        // R2 and R1: if `BIASED` was clear then, no reader holds the latch by a slot now. Loading the word
        // again would wait for its line, which all waiting workers have requested.
        if granted_from & BIASED != 0 {
            waited = self.wait_for_slots().or(waited);
        }
        self.judge_bias(granted_from, duty, waited);
        latch.note_acquired(LatchMode::Exclusive);
        granted_from & (BIASED | TRIAL) == BIASED && waited.is_none()
    }

    /// Acquires the latch in exclusive mode if that needs no waiting. A refused attempt changes nothing, but
    /// while it lasts it may make other attempts fail and other workers wait.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<AdaptiveExclusive<'_, K, M>> {
        let latch = &self.main.latch;
        let came_biased = match latch.state.compare_exchange(0, EXCLUSIVE, Acquire, Relaxed) {
            Ok(_) => false,
            Err(found) => self.try_exclusive_slow(found)?,
        };
        self.main.latch.note_acquired(LatchMode::Exclusive);
        Some(AdaptiveExclusive::new(self, came_biased))
    }

    /// As `exclusive_from`, or `None` if it needs waiting.
    #[cold]
    #[inline(never)]
    fn try_exclusive_slow(&self, found: u32) -> Option<bool> {
        let latch = &self.main.latch;
        // Look first: a refused attempt should not send readers to sleep.
        if found & BIASED != 0 && !self.slots.is_empty(self.main.slot.in_use()) {
            return None;
        }
        let duty = self.duty(found);
        let granted_from = latch.try_grant_from(found, LatchMode::Exclusive)?;
        if granted_from & BIASED != 0 {
            M::fence(SeqCst);
            if !self.slots.is_empty(self.main.slot.in_use()) {
                // A release, with its wake-ups: a worker may have begun to wait because of this attempt.
                latch.release_word(LatchMode::Exclusive);
                return None;
            }
        }
        self.judge_bias(granted_from, duty, None);
        Some(granted_from & (BIASED | TRIAL) == BIASED)
    }

    /// The caller has taken `EXCLUSIVE` in a word with `BIASED`: waits for the readers that hold the latch by
    /// a slot. Returns when the wait was over, if there was one.
    #[cold]
    #[inline(never)]
    fn wait_for_slots(&self) -> Option<u64> {
        // R3: pairs with the SeqCst accesses in `try_slot`.
        M::fence(SeqCst);
        let in_use = self.main.slot.in_use();
        (!self.slots.is_empty(in_use)).then(|| self.slots.drain(in_use, self.class()))
    }

    /// The task for the policy of the caller, a writer that `found` this word, once it holds the latch. Asked before,
    /// so that no worker waits for a count. In a biased window some writers get their compare-and-swap in vain here
    /// (`policy`).
    #[inline]
    fn duty(&self, found: u32) -> WriterTask {
        if found & TRIAL == 0 {
            return WriterTask::None;
        }
        let share = self.main.bias.share_of_this_writer();
        if found & BIASED != 0 && share.handicapped {
            let _ = self.main.latch.state.compare_exchange(0, 0, Relaxed, Relaxed);
            // A pause of some 25 ns: a plain one counts here, and may lose the line meanwhile.
            let _ = M::now();
        }
        if share.counted {
            WriterTask::Count { idle: found == TRIAL }
        } else {
            WriterTask::None
        }
    }

    /// Turns the latch if it is to be turned, and begins a trial of one that rests biased. The caller holds the latch
    /// exclusively, was granted it from this word, has seen every slot empty if the word had `BIASED`, and has `waited` at
    /// that time if at all.
    #[inline]
    fn judge_bias(&self, granted_from: u32, duty: WriterTask, waited: Option<u64>) {
        match (granted_from & (BIASED | TRIAL), duty) {
            // The next writer is the trial's first.
            (BIASED, _) if waited.is_some_and(|time| self.main.bias.trial_is_due_after_wait(time)) => {
                self.main.latch.state.fetch_or(TRIAL, Relaxed);
            }
            (bits, WriterTask::Count { idle }) if bits & TRIAL != 0 => self.judge_turn(granted_from, idle),
            _ => {}
        }
    }

    #[cold]
    #[inline(never)]
    fn judge_turn(&self, granted_from: u32, idle: bool) {
        let main = &*self.main;
        let turn = Turn {
            biased: granted_from & BIASED != 0,
            trial: true,
        };
        let next = main.bias.next_turn(turn, idle, M::now);
        if next == turn {
            return;
        }
        let word = &main.latch.state;
        match (turn.biased, next.biased) {
            (false, true) => {
                word.fetch_or(BIASED, Relaxed);
                main.bias.turned_biased();
            }
            // R2: only what the caller was granted from had the slots seen empty.
            (true, false) => {
                word.fetch_and(!BIASED, Relaxed);
                main.bias.turned_plain();
            }
            _ => {}
        }
        if !next.trial {
            word.fetch_and(!TRIAL, Relaxed);
        }
    }

    /// Releases what a writer was granted at once by a word that rests biased, and begins a trial if one is due.
    #[cold]
    #[inline(never)]
    fn release_of_biased(&self) {
        let latch = &self.main.latch;
        // SAFETY: the caller is the guard of an exclusive holder, and ends.
        unsafe { latch.release(LatchMode::Exclusive) };
        if !self.main.bias.trial_is_due(M::now) {
            return;
        }
        let mut word = self.state();
        // Only of a latch that still rests biased. The next writer is the trial's first.
        while word & (BIASED | TRIAL) == BIASED {
            match latch
                .state
                .compare_exchange_weak(word, word | TRIAL, Relaxed, Relaxed)
            {
                Ok(_) => break,
                Err(found) => word = found,
            }
        }
    }

    /// True if the latch is held at this instant, for assertions.
    pub fn is_held(&self) -> bool {
        self.main.latch.is_held() || !self.slots.is_empty(self.main.slot.in_use())
    }

    /// True if a worker holds the latch exclusively, or is about to, at this instant, for assertions.
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
            // SAFETY: the guard holds the word shared, and ends here.
            unsafe { self.latch.main.latch.release(LatchMode::Shared) };
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
    /// Granted at once by a word that rests biased.
    came_biased: bool,
    not_send: PhantomData<*const ()>,
}

impl<'a, const K: usize, M: Machine> AdaptiveExclusive<'a, K, M> {
    #[inline]
    fn new(latch: &'a AdaptiveLatch<K, M>, came_biased: bool) -> Self {
        Self {
            latch,
            came_biased,
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
        if self.came_biased {
            self.latch.release_of_biased();
        } else {
            // SAFETY: the guard holds the word exclusively, and ends here.
            unsafe { self.latch.main.latch.release(LatchMode::Exclusive) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use clearway_machine::{Native, WaitEvent};

    use super::*;

    /// Mutation: a reader polls as long as its worker has learned as a writer, and teaches that → what it waits for slots
    /// changes.
    #[test]
    fn a_wait_for_a_writer_teaches_for_such_waits_alone() {
        static CLASS: LatchClass = LatchClass::new("adaptive", WaitEvent::UserLatch, 0);
        let options = AdaptiveOptions {
            bias: BiasPolicy::Always,
            ..AdaptiveOptions::default()
        };
        let latch = AdaptiveLatch::<2, Native>::with_options(&CLASS, options);
        let (reader_is, reader) = mpsc::channel();
        std::thread::scope(|scope| {
            let writer = latch.exclusive();
            let latch = &latch;
            scope.spawn(move || {
                reader_is.send(Native::worker()).expect("the writer listens");
                drop(latch.shared());
            });
            let counts = &Native::workers().slot(reader.recv().expect("a reader")).adaptive;
            while counts.spins_for_writer.load(Relaxed) == 0 && counts.spins_for_slots.load(Relaxed) == 0 {
                std::thread::yield_now();
            }
            assert_eq!(counts.spins_for_slots.load(Relaxed), 0);
            drop(writer);
        });
    }
}
