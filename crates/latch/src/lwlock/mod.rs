//! LwLock: a reader-writer latch whose waiters sleep on a list.
//!
//! It protects a structure in memory for nanoseconds to microseconds. Any number of workers hold it shared,
//! or one worker holds it exclusively. The state is one word (see `state`) and a list of sleeping workers.
//!
//! | file | holds |
//! | --- | --- |
//! | `mod` | the rules, the latch, the uncontended paths, the dispatch to the variant, release |
//! | `options` | the switches `lwlock` and `lwlock_shared` with their variants |
//! | `fairness` | the switch `lwlock_fairness` with its variants, and the hand-over |
//! | `state` | the bits of the word, and the predicates over it |
//! | `slow_path` | the contract of a variant of `lwlock` |
//! | `queued` | variants `queued` (the baseline) and `queued-scan` |
//! | `single_cas` | variants `single-cas`, `brief-polls` and `cohort` |
//! | `cohort` | whose turn it is under `cohort` |
//! | `fetch_add` | variant `fetch-add` of `lwlock_shared` |
//! | `wait_list` | the list of sleeping workers, and the wake-up |
//! | `waiter` | what a sleeping worker's slot says to the worker that wakes it |
//! | `variable` | waiting for the latch without wanting it, or for a variable to change |
//! | `guard` | the RAII guards |
//! | `recovery` | standing in for a worker that has died asleep (R12) |
//!
//! # Example: a lost wake-up
//! Worker A holds the latch exclusively; worker B wants it.
//!
//! | time | A | B |
//! | --- | --- | --- |
//! | 1 | | reads the word: `EXCLUSIVE`, so B must sleep |
//! | 2 | subtracts `EXCLUSIVE`, sees no `HAS_WAITERS`, wakes no worker | |
//! | 3 | | joins the list, sets `HAS_WAITERS`, sleeps |
//!
//! B sleeps on a free latch, and no release will wake it. Each variant of `lwlock` closes the gap between
//! times 1 and 3 in its own way:
//! - `queued`: B joins the list, looks at the word again, and leaves the list if it got the latch at that
//!   look.
//! - `single-cas`: B sets `LOCKED | HAS_WAITERS` by a CAS from the word that said "held". Success proves that
//!   the latch was held when the list was locked.
//!
//! # Protocol
//! 1. *Grant*: read the word; if it allows the mode, add the mode's unit by CAS. Waiting workers do not
//!    matter: a newcomer may pass them.
//! 2. *Wait*: if the word does not allow the mode, join the list and sleep, by the variant's slow path.
//! 3. *Release*: subtract the unit. The word that this made says whether to wake.
//! 4. *Wake*: lock the list and take off it every worker that waits for "free", and then either the first
//!    worker that wants the latch, if it wants it exclusively, or all that want it shared. Post them. A wake
//!    is a hint: the woken worker goes back to step 1. Under `hand-over` the latch of an overdue worker is given to it
//!    instead (`fairness`).
//!
//! # Rules
//! - R1: while a worker sleeps on the list, `HAS_WAITERS` is set, or a worker that was taken off the list is
//!   about to be posted. List and flag change under `LOCKED`, and the worker that takes others off posts them
//!   without anything fallible in between.
//! - R2: `HAS_WAITERS` is set by an RMW of the word that holders release by an RMW. One of the two comes
//!   first: either the sleeper's last look sees the release, or the releaser sees `HAS_WAITERS`. The looks
//!   may be plain loads. A load never shows a word older than the loading worker's own RMW. If it shows a
//!   holder that has since released, that release came after the RMW.
//! - R3: `WAKE_IN_PROGRESS` is set only when a worker that wants the latch was taken off the list. That
//!   worker clears the flag, on every path, before it looks at the word again. So a release that wakes no
//!   worker because of the flag comes before a look that sees the release.
//! - R4: no change of a variable is missed. The holder changes the variable first and locks the list second.
//!   A waiter locks the list first, in order to join it, and compares the variable second (`queued`) or while
//!   the list is locked (`single-cas`). One of the two locks the list first. If the waiter is first, the
//!   holder finds it on the list. If the holder is first, the waiter's lock acquires what the holder's unlock
//!   released, so the waiter sees the new value.
//! - R5: a worker that waits for "free" does not take the latch, so no other wake-up may be withheld because
//!   of it: taking it off the list does not set `WAKE_IN_PROGRESS`.
//! - R6: undoing a shared unit is a release and runs the same wake check. A reader that adds its unit to a
//!   word with `EXCLUSIVE` subtracts it again. An exclusive holder that released in between saw a shared
//!   holder and woke no worker.
//! - R7: under a limit (`fairness`), a newcomer that wants the latch shared (R11: or exclusively) is also refused while the count
//!   `GRANTS` is full. It may then queue although the latch is free, so some release or wake-up must still be to come.
//!   That holds while the latch is held, while a release that left waiters is on its way to `wake`, and while
//!   a woken worker has not yet got the latch. Hence: a woken worker ignores the count, because it may be the
//!   last of these; an exclusive grant clears `GRANTS`, unless R11 says otherwise; `wake` clears it unless it wakes an exclusive; and
//!   the worker that takes the last waiter off the list clears it.
//! - R8: a worker consumes exactly one post for each time that it was taken off a list. Earlier posts belong
//!   to its other waits; it counts them and posts them again (`clearway_machine::WaitQueue`).
//! - R9: a worker taken off is unlinked, and the waker has read its link, before it is told "not waiting":
//!   from then on it may be on another list (`clearway_machine::WaitQueue`).
//! - R10: `OVERDUE` refuses newcomers of both modes, as a full count refuses readers, and R7's four rules hold for it: it is a
//!   bit of `GRANTS` and cleared with the count. It is set only in a word that is held, by a waker whose list has an
//!   overdue worker, or in one whose count is full; and an `update_var` that takes the last worker off the list clears it. The worker that a waker hands the latch to is marked under `LOCKED`,
//!   after the word says "held", and looks at the mark before anything else. A worker that dequeues itself because it got the
//!   latch may find that it was handed over too, if it wants it shared; it gives the second grant back as it gives back any: in
//!   a latch that is made of this one, by that latch's own release.
//! - R11: under `writer-claims` newcomers are refused, as R7 says, in one more state of `GRANTS`. `CLAIMED` is set only in a held
//!   word, by an exclusive that is awake or on the list. It is the same bit as `OVERDUE`, is cleared with it or by the grant to a
//!   claimant, and refuses all but claimants and workers that were woken. The count is of both modes. A grant to a newcomer or a
//!   claimant leaves it while `HAS_WAITERS` is set, which a wake-up of workers that want the latch leaves even if it takes off the
//!   last: the release of one of these finds an empty list and clears both, so no newcomer is refused for good. R7's woken worker, which ignores it, is the one that clears it; one that
//!   got the latch before it slept clears it when it has dequeued itself.
//! - R12: a worker that has died asleep, in memory that processes share, is on the list, or picked and about to be posted, or
//!   posted. Another worker stands in for it: it takes it off the list, or does what R3 and R7 ask of a woken worker and then
//!   looks, and if the word is free it wakes the next instead of taking the latch. What was handed over to the dead worker
//!   it releases. All of that is under `LOCKED`, so no waker picks a worker of which it is not yet settled that it is dead
//!   and off the list.
//!
//! # Fairness
//! `Barging` promises nothing. Readers that arrive without pause can keep an exclusive waiting for ever.
//!
//! `AfterShared`: while workers wait, n more readers may pass them; further readers queue. When the last
//! holder releases, the head of the list is woken. If the head is an exclusive, no reader gets the latch
//! before it. If the head is a reader, all readers on the list are woken, the count starts again at 0, and
//! the exclusives that were passed over are now at the head. So at most 2 n readers get the latch between an
//! exclusive's queueing and its turn, besides the readers that were on the list, which are not counted.
//! Exclusives have no order among each other.
//!
//! `WriterClaims`: while an exclusive's claim stands, the readers that get the latch are those that were inside and those that
//! were on the list before it, and each once: at most n - 1 grants among n workers. A worker that has slept is passed, until it has
//! its CPU again, by others in their turns: each of them for at most 131 µs and 64 grants after its own last sleep, then newcomers
//! are stopped. A worker that is woken in vain keeps its place at the head of the list, and once it has slept for 1 ms its wait
//! has the bound of `HandOver`. In practice a wait ends with the time that the holders inside need in order to leave.
//!
//! `HandOver`: a worker that has slept for 1 ms is *overdue*. Let n be the number of workers, s the longest section, and w
//! the longest time from a post until the posted worker runs. A sleeper that is overdue has at most n - 1 others that want the
//! latch before it on the list. Of those that come later, only one that was woken in vain before joins before it. While
//! hand-overs are made, which is half of the time at least while any are due, each release takes the first of them off
//! the list and costs w + s, and one newcomer's s if that one came in first. So the sleeper has the latch after 1 ms + 2 n (w +
//! 2 s), and a stretch of a quarter of a millisecond. Readers inside add the time of 64 sections, after which the next that
//! comes looks at the clock. Not in this bound: the time in which a worker polls for the list's lock, which is short but has no
//! order; and w, which the operating system decides.
//!
//! # Costs
//! 24 bytes. Uncontended: one CAS to acquire, one `fetch_sub` to release.
//!
//! # Origin
//! The queued form is PostgreSQL's lwlock.c (Andres Freund, 2014). Its author found eight years later that
//! dequeueing scanned the list, and what that cost ("lwlock: Fix quadratic behavior with very long wait
//! lists"). Yura Sokolov proposed the single-CAS form on pgsql-hackers in 2017. A shared acquire by fetch_add
//! was proposed there more than once; R6 is what those versions lacked.

mod cohort;
mod fairness;
mod fetch_add;
pub(crate) mod guard;
pub(crate) mod options;
mod queued;
mod recovery;
mod single_cas;
mod slow_path;
pub(crate) mod state;
mod variable;
mod wait_list;
mod waiter;

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, CoreU32, Host, Machine, WaitMode, WaitQueue, WorkerId};

use self::guard::{LwLockExclusive, LwLockShared};
use self::options::{LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant};
use self::queued::{Queued, QueuedScan};
pub use self::recovery::RecoveredWaiter;
use self::single_cas::SingleCas;
pub(crate) use self::slow_path::Granted;
use self::slow_path::SlowPath;
use self::state::{
    EXCLUSIVE, GRANTS, HAS_WAITERS, Limit, SHARED_MASK, SHARED_UNIT, grantable, last_shared_must_wake,
    must_wake, word_after_grant,
};
use crate::class::{ClassHandle, LatchClass, Wait};
use crate::delay::Delay;
use crate::order;

/// The mode in which a latch is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatchMode {
    /// With other shared holders.
    Shared,
    /// Alone.
    Exclusive,
}

impl LatchMode {
    pub(crate) const fn wait_mode(self) -> WaitMode {
        match self {
            LatchMode::Shared => WaitMode::Shared,
            LatchMode::Exclusive => WaitMode::Exclusive,
        }
    }

    pub(crate) const fn wait(self) -> Wait {
        match self {
            LatchMode::Shared => Wait::Shared,
            LatchMode::Exclusive => Wait::Exclusive,
        }
    }
}

/// A reader-writer latch. See the module's documentation for the protocol.
//
// repr(C) because results of the simulated machine depend on which fields share a cache line with the latch's
// neighbours.
#[derive(Debug)]
#[repr(C)]
pub struct LwLock<M: Machine = Host, K: ClassHandle = &'static LatchClass> {
    pub(crate) class: K,
    pub(crate) state: M::U32,
    /// Changed only under `LOCKED`.
    queue: WaitQueue<M>,
    algorithm: LwLockVariant,
    shared_path: LwLockSharedVariant,
    fairness: LwLockFairnessVariant,
    /// The place of the counts of the class's acquisitions. Fits into the padding.
    #[cfg(feature = "count-acquisitions")]
    place: u8,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<LwLock<Host>>() == 24);

/// In a latch's `place`: that of its class is to be asked for. No class has a place as high.
#[cfg(feature = "count-acquisitions")]
const PLACE_OF_CLASS: u8 = u8::MAX;

impl LwLock<Host> {
    /// An idle latch of `class` in a static, which [`new`](Self::new) cannot make:
    ///
    /// ```
    /// use clearway_latch::{LatchClass, LwLock, LwLockOptions};
    /// use clearway_machine::WaitEvent;
    ///
    /// static CLASS: LatchClass = LatchClass::new("Sorting", WaitEvent::UserLatch, 0);
    /// static SORTING: LwLock = LwLock::in_static(&CLASS, LwLockOptions::BEST);
    ///
    /// let _alone = SORTING.exclusive();
    /// assert!(SORTING.try_shared().is_none());
    /// ```
    pub const fn in_static(class: &'static LatchClass, options: LwLockOptions) -> Self {
        Self::in_static_with_word(class, options, 0)
    }

    /// As [`in_static`](Self::in_static), with a word to which a latch made of this one gives a meaning of its own.
    pub(crate) const fn in_static_with_word(
        class: &'static LatchClass,
        options: LwLockOptions,
        word: u32,
    ) -> Self {
        Self {
            state: CoreU32::new_const(word),
            queue: WaitQueue::new_const(),
            algorithm: options.algorithm,
            shared_path: options.shared_path,
            fairness: options.fairness,
            #[cfg(feature = "count-acquisitions")]
            place: PLACE_OF_CLASS,
            class,
        }
    }
}

impl<M: Machine> LwLock<M> {
    /// An idle latch of `class`.
    pub fn new(class: &'static LatchClass, options: impl Into<LwLockOptions>) -> Self {
        let latch = Self::of_class(class, options.into());
        #[cfg(feature = "count-acquisitions")]
        let latch = Self {
            place: class.place(),
            ..latch
        };
        latch
    }
}

impl<M: Machine, K: ClassHandle> LwLock<M, K> {
    /// An idle latch of the class that `class` leads to.
    pub(crate) fn of_class(class: K, options: LwLockOptions) -> Self {
        Self {
            state: M::U32::new(0),
            queue: WaitQueue::new(),
            algorithm: options.algorithm,
            shared_path: options.shared_path,
            fairness: options.fairness,
            #[cfg(feature = "count-acquisitions")]
            place: PLACE_OF_CLASS,
            class,
        }
    }

    /// The latch's class.
    #[inline(always)]
    pub fn class(&self) -> &'static LatchClass {
        self.class.class()
    }

    /// Acquires the latch in shared mode, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> LwLockShared<'_, M, K> {
        self.acquire(LatchMode::Shared);
        LwLockShared::new(self)
    }

    /// Acquires the latch in exclusive mode, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> LwLockExclusive<'_, M, K> {
        self.acquire(LatchMode::Exclusive);
        LwLockExclusive::new(self)
    }

    /// Acquires the latch in shared mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<LwLockShared<'_, M, K>> {
        self.try_acquire(LatchMode::Shared)
            .then(|| LwLockShared::new(self))
    }

    /// Acquires the latch in exclusive mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<LwLockExclusive<'_, M, K>> {
        self.try_acquire(LatchMode::Exclusive)
            .then(|| LwLockExclusive::new(self))
    }

    /// One attempt, with no side effect when it fails. Acquire on success: what earlier holders wrote is
    /// visible.
    #[inline]
    #[track_caller]
    pub fn try_acquire(&self, mode: LatchMode) -> bool {
        let acquired = self.try_grant(mode);
        if acquired {
            self.note_acquired(mode);
        }
        acquired
    }

    /// Records an acquisition: in debug builds for the check of the order of latches, and for the statistics
    /// in a build that counts acquisitions.
    #[inline]
    #[track_caller]
    pub(crate) fn note_acquired(&self, mode: LatchMode) {
        order::acquired::<M>(self.class(), core::ptr::from_ref(self).cast());
        self.count_acquisition(mode);
    }

    /// The statistics' part of [`note_acquired`](Self::note_acquired). The place is read from the latch,
    /// whose line is in the cache, and not from its class.
    #[inline]
    pub(crate) fn count_acquisition(&self, mode: LatchMode) {
        #[cfg(feature = "count-acquisitions")]
        if !M::EXPLORED {
            let place = match self.place {
                PLACE_OF_CLASS => self.class().place(),
                place => place,
            };
            crate::class::acquisitions::count(place, mode.wait());
        }
        let _ = mode;
    }

    /// A newcomer's attempt to get the latch, recorded nowhere.
    #[inline]
    pub(crate) fn try_grant(&self, mode: LatchMode) -> bool {
        match mode {
            // Idle is the common case for an exclusive: try it without looking first.
            LatchMode::Exclusive => match self.state.compare_exchange(0, EXCLUSIVE, Acquire, Relaxed) {
                Ok(_) => true,
                Err(found) => self.try_grant_from(found, mode).is_some(),
            },
            // A reader often finds another reader inside: it looks first, so that no RMW fails on a line that
            // readers pass around.
            LatchMode::Shared => {
                let mut found = self.state.load(Relaxed);
                if found & (EXCLUSIVE | GRANTS | HAS_WAITERS) == 0 {
                    if self.shared_path == LwLockSharedVariant::FetchAdd {
                        return self.try_shared_by_addition();
                    }
                    match self
                        .state
                        .compare_exchange_weak(found, found + SHARED_UNIT, Acquire, Relaxed)
                    {
                        Ok(_) => return true,
                        // Go on with this word: the line is in this core's cache for a moment.
                        Err(changed) => found = changed,
                    }
                }
                self.try_grant_from(found, mode).is_some()
            }
        }
    }

    /// The rest of a newcomer's attempt after the word was `found`. Returns the word that granted the latch.
    /// A grant has replaced exactly this word, so the caller need not read the word again while others ask
    /// for its line.
    #[cold]
    #[inline(never)]
    pub(crate) fn try_grant_from(&self, found: u32, mode: LatchMode) -> Option<u32> {
        let limit = self.newcomer_limit();
        self.try_grant_limited(found, mode, limit).or_else(|| {
            let looks_at_clock = match limit {
                Limit::None => false,
                Limit::OfReaders(_) => mode == LatchMode::Shared,
                Limit::OfAll(_) | Limit::OfClaimant(_) => true,
            };
            (looks_at_clock && self.clears_full_count(limit))
                .then(|| self.try_grant_limited(self.state.load(Relaxed), mode, limit))?
        })
    }

    /// As [`try_grant_from`](Self::try_grant_from), under `limit`.
    fn try_grant_limited(&self, mut found: u32, mode: LatchMode, limit: Limit) -> Option<u32> {
        while grantable(found, mode, limit) {
            debug_assert!(found & SHARED_MASK < SHARED_MASK, "the shared count overflows");
            if mode == LatchMode::Shared && self.grants_by_addition(found) {
                return self.try_shared_by_addition().then_some(found);
            }
            match self.state.compare_exchange_weak(
                found,
                word_after_grant(found, mode, limit),
                Acquire,
                Relaxed,
            ) {
                Ok(_) => return Some(found),
                Err(changed) => found = changed,
            }
        }
        None
    }

    /// Acquires without a guard; the caller pairs it with [`release`](Self::release) of the same mode. To forget the release
    /// is safe: the latch stays held.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this latch or one of a higher rank.
    #[inline]
    #[track_caller]
    pub fn acquire(&self, mode: LatchMode) {
        order::acquiring::<M>(self.class(), core::ptr::from_ref(self).cast());
        if !self.try_grant(mode) {
            self.acquire_slow(mode);
        }
        self.note_acquired(mode);
    }

    /// Acquires by waiting. Returns the word that granted the latch, as
    /// [`try_grant_from`](Self::try_grant_from) does.
    #[cold]
    #[track_caller]
    pub(crate) fn acquire_slow(&self, mode: LatchMode) -> u32 {
        self.acquire_slow_from(mode, M::now())
    }

    /// As [`acquire_slow`](Self::acquire_slow), of a wait that began at `started`.
    #[cold]
    #[track_caller]
    pub(crate) fn acquire_slow_from(&self, mode: LatchMode, started: u64) -> u32 {
        let granted = self.wait_for_grant(mode, started);
        if granted.twice {
            self.release_word(mode);
        }
        granted.from
    }

    /// As [`acquire_slow_from`](Self::acquire_slow_from), and the caller gives back what came twice: for a latch whose
    /// holders do more than release this word when they leave.
    #[cold]
    #[track_caller]
    pub(crate) fn wait_for_grant(&self, mode: LatchMode, started: u64) -> Granted {
        M::label(core::ptr::from_ref(self).cast(), self.class().name);
        self.class().begin_wait();
        let worker = M::worker();
        let mut delay = self.delay(Some(worker));
        let granted = self.slow_path().acquire(self, mode, worker, started, &mut delay);
        self.class().record(
            mode.wait(),
            delay.total_spins,
            granted.sleeps,
            M::now().saturating_sub(started),
        );
        delay.finish::<M>();
        granted
    }

    /// The polling of one of `worker`'s waits.
    fn delay(&self, worker: Option<WorkerId>) -> Delay {
        match (self.algorithm, self.fairness) {
            (LwLockVariant::BriefPolls, _) => Delay::brief::<M>(worker),
            (LwLockVariant::Cohort, _) if self.keeps_to_terms() => Delay::brief_without_promise::<M>(worker),
            // What a worker waits for the list's lock, no hand-over can end: it should not be long.
            (_, LwLockFairnessVariant::HandOver | LwLockFairnessVariant::WriterClaims) => {
                Delay::fair::<M>(worker)
            }
            (
                LwLockVariant::Queued
                | LwLockVariant::QueuedScan
                | LwLockVariant::SingleCas
                | LwLockVariant::Cohort,
                _,
            ) => Delay::new::<M>(worker),
        }
    }

    /// The latch's variant.
    fn slow_path(&self) -> &'static dyn SlowPath<M, K> {
        match self.algorithm {
            LwLockVariant::Queued => &Queued,
            LwLockVariant::QueuedScan => &QueuedScan,
            LwLockVariant::SingleCas => &SingleCas::Learned,
            LwLockVariant::BriefPolls => &SingleCas::Brief,
            LwLockVariant::Cohort if self.keeps_to_terms() => &SingleCas::Brief,
            LwLockVariant::Cohort => &SingleCas::Learned,
        }
    }

    /// Releases what [`acquire`](Self::acquire) acquired in `mode`. Release: the next holder sees what was
    /// written.
    ///
    /// # Safety
    /// The caller holds the latch in `mode`, without a guard or by one that it has forgotten. Otherwise this would take the
    /// latch from a guard that lives, and let a second exclusive holder in beside it.
    #[inline]
    pub unsafe fn release(&self, mode: LatchMode) {
        order::released::<M>(core::ptr::from_ref(self).cast());
        self.release_word(mode);
    }

    /// Releases a grant that was not recorded by [`note_acquired`](Self::note_acquired).
    #[inline]
    pub(crate) fn release_word(&self, mode: LatchMode) {
        match mode {
            LatchMode::Exclusive => {
                if self.give_exclusive_back() {
                    self.wake_after_exclusive();
                }
            }
            LatchMode::Shared => {
                let before = self.state.fetch_sub(SHARED_UNIT, Release);
                debug_assert!(
                    before & SHARED_MASK != 0,
                    "latch {} is not held shared",
                    self.class().name
                );
                if last_shared_must_wake(before) {
                    self.wake();
                }
            }
        }
    }

    /// Gives an exclusive grant back and wakes no worker. `true`: the caller owes a call of
    /// [`wake_after_exclusive`](Self::wake_after_exclusive), without which workers may sleep for ever.
    #[inline]
    #[must_use = "the caller owes a wake-up"]
    pub(crate) fn give_exclusive_back(&self) -> bool {
        debug_assert!(
            M::EXPLORED || self.is_held_exclusive(),
            "latch {} is not held exclusively",
            self.class().name
        );
        // "Was it EXCLUSIVE and nothing else?" is the zero flag of x86's `lock sub`: no old value is kept.
        self.state.fetch_sub(EXCLUSIVE, Release) != EXCLUSIVE
    }

    /// The rest of an exclusive release that left other bits set. R2 allows a second look instead of the old
    /// value, and at any later time: the look shows the outcome of this release or a later one, and the worker
    /// that made a later one does the wake check itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn wake_after_exclusive(&self) {
        if must_wake(self.state.load(Relaxed)) {
            self.wake();
        }
    }

    /// True if the latch is held at this instant: for assertions, and as a hint before an attempt that many repeat.
    /// Relaxed: it says nothing of what a holder has written.
    pub fn is_held(&self) -> bool {
        self.state.load(Relaxed) & (EXCLUSIVE | SHARED_MASK) != 0
    }

    /// True if the latch is held exclusively at this instant, for assertions.
    pub fn is_held_exclusive(&self) -> bool {
        self.state.load(Relaxed) & EXCLUSIVE != 0
    }
}
