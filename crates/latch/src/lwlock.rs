//! LwLock: a reader-writer latch whose waiters sleep on a list.
//!
//! # Protocol
//! An *attempt* looks at the word and, if the mode is grantable, adds its unit by CAS. A *release* subtracts the unit and,
//! from the word it made, decides whether to wake. A wake is a hint, never a hand-off: the woken worker attempts again, and
//! others may barge in. The two algorithms differ in how a worker whose attempt failed gets on the list.
//!
//! **Queued** (what PostgreSQL ships): queue self; attempt *again*; if that succeeded, dequeue self. Without the second
//! attempt the holder could release between the first attempt and the queueing, see no waiter, and leave us asleep.
//!
//! **Queued, scanning**, is the same as it was before 2022: a worker that dequeues itself does not know whether it is still on
//! the list, and looks for itself from the head, under the list's lock. With n workers that is n lines of memory each time, and the
//! longer the list is locked the more workers find the latch free again when they have queued, and have to dequeue.
//!
//! **Single CAS**: while the latch is held, set `LOCKED | HAS_WAITERS` with one CAS on the very word that said so. Its
//! success proves that the latch was held when the list was locked, so nothing is retested and nobody dequeues himself.
//! Before that the worker polls for a part of its adaptive budget (1/8 exclusive, 1/2 shared).
//!
//! # Invariants
//! - R1: if a worker sleeps on the list, HAS_WAITERS is set, or a worker that was picked with it is about to post.
//! - R2: HAS_WAITERS is set by an RMW on the same word that holders release by an RMW. One of the two comes first: either
//!   the sleeper's last look sees the release, or the releaser sees HAS_WAITERS.
//!   The looks may be plain loads: a load never shows a word older than the looker's own RMW, and a word that is out of
//!   date only because its holder has since released was released *after* that RMW.
//! - R3: WAKE_IN_PROGRESS is set only when a worker that wants the latch was picked, and that worker clears it on every path
//!   before it looks again. So a release that does not wake, because of the flag, comes before a look that will see it.
//!
//! - R6: a shared unit that was added to a word that turned out to hold EXCLUSIVE is taken off again, and that is a release:
//!   it runs the same wake check. An exclusive that let go in between saw a shared holder and woke nobody.
//! - R7: under the fairness policy a newcomer that wants the latch shared is also turned away when the count GRANTS is full. It
//!   may then queue although nobody holds the latch, so somebody must still be about to release it. That is so while the latch
//!   is held; while a release that left waiters is on its way to `wake`; and while a worker that was picked has not yet come
//!   in. So: who was woken heeds no count, because it may be the last of these; an exclusive clears GRANTS when it comes in;
//!   `wake` clears it unless it picked an exclusive; and whoever takes the last waiter off the list clears it.
//!
//! # Shared acquire by fetch_add
//! A CAS fails whenever another reader came first, and each failure costs the line another trip. An addition cannot fail:
//! a reader looks, adds its unit, and takes it back (R6) if an exclusive got in between. It tries twice and then goes the
//! way of the waiters. Between looking and adding there can be at most one unit for each worker, so 18 bits hold them.
//!
//! # Fairness
//! `Barging`: no promise. Readers that arrive without pause can keep an exclusive out for as long as they like.
//! `AfterShared(n)`: once somebody waits, n readers may still come in; then readers queue. When the last of those inside lets
//! go, the head of the list is woken. If that is an exclusive, no reader comes in before it. If it is a reader, all
//! readers of the list are woken and the count begins anew, with the exclusives that were passed over now at the head. So no
//! more than 2 n readers come in between an exclusive's queueing and its turn, beside those that were on the list, which are not
//! counted. Nothing is promised among exclusives.
//!
//! # Costs
//! 24 bytes; one CAS to acquire and one fetch_sub to release when uncontended.
//!
//! Origin: PostgreSQL's lwlock.c (Andres Freund, 2014) for the queued form; that it scanned, and what that cost, was found by its author
//! eight years later ("lwlock: Fix quadratic behavior with very long wait lists"); the single-CAS form was proposed on
//! pgsql-hackers by Yura Sokolov in 2017. A shared acquire by fetch_add was proposed there more than once; the undo that must
//! wake is what those versions had to learn.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Host, Machine, WaitMode, WorkerId};

use crate::class::{LatchClass, Wait};
use crate::delay::Delay;
use crate::guard::{LwLockExclusive, LwLockShared};
use crate::options::{LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant};
use crate::order;
use crate::spin::{Spin, SpinPolicy};
use crate::state::{
    EXCLUSIVE, GRANTS, HAS_WAITERS, LOCKED, SHARED_MASK, SHARED_UNIT, UNLIMITED, WAKE_IN_PROGRESS, grantable,
    granted, last_shared_must_wake, must_wake,
};
use crate::wait_list::{NOT_WAITING, WAITING, slot};

/// How a latch is held.
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
#[derive(Debug)]
pub struct LwLock<M: Machine = Host> {
    pub(crate) state: M::U32,
    pub(crate) head: M::U32,
    pub(crate) tail: M::U32,
    pub(crate) algorithm: LwLockVariant,
    shared_path: LwLockSharedVariant,
    fairness: LwLockFairnessVariant,
    /// Where the class's acquisitions are counted; it fits between its neighbours.
    #[cfg(feature = "count-acquisitions")]
    place: u8,
    pub(crate) class: &'static LatchClass,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<LwLock<Host>>() == 24);

/// How often a reader adds its unit in vain before it goes the way of the waiters.
const ADDITIONS: u32 = 2;

impl<M: Machine> LwLock<M> {
    /// An idle latch of `class`.
    pub fn new(class: &'static LatchClass, options: impl Into<LwLockOptions>) -> Self {
        let options = options.into();
        Self {
            state: M::U32::new(0),
            head: M::U32::new(WorkerId::NONE),
            tail: M::U32::new(WorkerId::NONE),
            algorithm: options.algorithm,
            shared_path: options.shared_path,
            fairness: options.fairness,
            #[cfg(feature = "count-acquisitions")]
            place: class.place(),
            class,
        }
    }

    /// The latch's class.
    pub fn class(&self) -> &'static LatchClass {
        self.class
    }

    /// Acquires the latch along with other readers, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> LwLockShared<'_, M> {
        self.acquire(LatchMode::Shared);
        LwLockShared::new(self)
    }

    /// Acquires the latch alone, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> LwLockExclusive<'_, M> {
        self.acquire(LatchMode::Exclusive);
        LwLockExclusive::new(self)
    }

    /// Acquires the latch in shared mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<LwLockShared<'_, M>> {
        self.try_acquire(LatchMode::Shared)
            .then(|| LwLockShared::new(self))
    }

    /// Acquires the latch in exclusive mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<LwLockExclusive<'_, M>> {
        self.try_acquire(LatchMode::Exclusive)
            .then(|| LwLockExclusive::new(self))
    }

    /// One attempt, with no side effect when it fails. Acquire on success: what the last holder wrote is visible.
    #[inline]
    #[track_caller]
    pub fn try_acquire(&self, mode: LatchMode) -> bool {
        let acquired = self.attempt(mode);
        if acquired {
            self.acquired(mode);
        }
        acquired
    }

    /// Notes an acquisition: in debug builds for the order of latches, and for the statistics if the build counts
    /// acquisitions.
    #[inline]
    #[track_caller]
    pub(crate) fn acquired(&self, mode: LatchMode) {
        order::acquired::<M>(self.class, core::ptr::from_ref(self).cast());
        self.count(mode);
    }

    /// The statistics' part of [`acquired`](Self::acquired). The place is read from the latch, whose line is at hand, and not from
    /// its class.
    #[inline]
    pub(crate) fn count(&self, mode: LatchMode) {
        #[cfg(feature = "count-acquisitions")]
        if !M::EXPLORED {
            crate::acquisitions::count(self.place, mode.wait());
        }
        let _ = mode;
    }

    /// How many shared grants a newcomer heeds.
    pub(crate) fn limit(&self) -> u32 {
        match self.fairness {
            LwLockFairnessVariant::Barging => UNLIMITED,
            LwLockFairnessVariant::AfterShared(grants) => u32::from(grants.get()),
        }
    }

    #[inline]
    pub(crate) fn attempt(&self, mode: LatchMode) -> bool {
        match mode {
            // Idle is the common case for an exclusive: try it without looking first.
            LatchMode::Exclusive => match self.state.compare_exchange(0, EXCLUSIVE, Acquire, Relaxed) {
                Ok(_) => true,
                Err(found) => self.attempt_from(found, mode).is_some(),
            },
            // A shared may well come as the second: look, so that no RMW is wasted on a line that readers pass around.
            LatchMode::Shared => {
                let mut found = self.state.load(Relaxed);
                if found & (EXCLUSIVE | GRANTS | HAS_WAITERS) == 0 {
                    if self.shared_path == LwLockSharedVariant::FetchAdd {
                        return self.add_shared();
                    }
                    match self
                        .state
                        .compare_exchange_weak(found, found + SHARED_UNIT, Acquire, Relaxed)
                    {
                        Ok(_) => return true,
                        // On with the word as it is: the line is here for a moment.
                        Err(changed) => found = changed,
                    }
                }
                self.attempt_from(found, mode).is_some()
            }
        }
    }

    /// A newcomer's attempt that did not find the word it had hoped for. The word that granted it: an exclusive has replaced
    /// just this one, so that it need not look again at a word that others ask for.
    #[cold]
    #[inline(never)]
    pub(crate) fn attempt_from(&self, state: u32, mode: LatchMode) -> Option<u32> {
        self.attempt_within(state, mode, self.limit())
    }

    /// An attempt that heeds a limit of `limit` shared grants. The word that granted it, as above.
    fn attempt_within(&self, mut state: u32, mode: LatchMode, limit: u32) -> Option<u32> {
        while grantable(state, mode, limit) {
            debug_assert!(state & SHARED_MASK < SHARED_MASK, "the shared count overflows");
            if mode == LatchMode::Shared && self.adds(state) {
                return self.add_shared().then_some(state);
            }
            match self
                .state
                .compare_exchange_weak(state, granted(state, mode, limit), Acquire, Relaxed)
            {
                Ok(_) => return Some(state),
                Err(found) => state = found,
            }
        }
        None
    }

    /// Whether a shared grant out of `state` is made by addition. Grants that must be counted are not, so that the count
    /// cannot run over its limit.
    fn adds(&self, state: u32) -> bool {
        self.shared_path == LwLockSharedVariant::FetchAdd
            && (self.fairness == LwLockFairnessVariant::Barging || state & (HAS_WAITERS | GRANTS) == 0)
    }

    /// Adds a shared unit to a word that was seen without EXCLUSIVE, and takes it off again if an exclusive came first.
    #[inline]
    fn add_shared(&self) -> bool {
        let before = self.state.fetch_add(SHARED_UNIT, Acquire);
        before & EXCLUSIVE == 0 || self.take_back_shared()
    }

    /// R6: to take the unit back is to release. While it was there the exclusive may have let go and seen a shared holder:
    /// then it woke nobody, and it is for us to do.
    #[cold]
    #[inline(never)]
    fn take_back_shared(&self) -> bool {
        for _ in 1..ADDITIONS {
            if last_shared_must_wake(self.state.fetch_sub(SHARED_UNIT, Release)) {
                self.wake();
            }
            // Look before adding again: an exclusive that waits for the count to be zero must not wait for us in turn.
            let found = self.state.load(Relaxed);
            if found & (EXCLUSIVE | HAS_WAITERS) != 0 {
                return false;
            }
            if self.state.fetch_add(SHARED_UNIT, Acquire) & EXCLUSIVE == 0 {
                return true;
            }
        }
        if last_shared_must_wake(self.state.fetch_sub(SHARED_UNIT, Release)) {
            self.wake();
        }
        false
    }

    /// Acquires without a guard; the caller pairs it with [`release`](Self::release) of the same mode.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this latch or one of a higher rank.
    #[inline]
    #[track_caller]
    pub fn acquire(&self, mode: LatchMode) {
        order::acquiring::<M>(self.class, core::ptr::from_ref(self).cast());
        if !self.attempt(mode) {
            self.acquire_slow(mode);
        }
        self.acquired(mode);
    }

    /// Acquires by waiting. The word that granted it, as for `attempt_from`.
    #[cold]
    pub(crate) fn acquire_slow(&self, mode: LatchMode) -> u32 {
        M::label(core::ptr::from_ref(self).cast(), self.class.name);
        let worker = M::worker();
        let started = M::now();
        let mut delay = Delay::new::<M>(worker);
        let (granted_from, sleeps) = match self.algorithm {
            LwLockVariant::Queued | LwLockVariant::QueuedScan => {
                self.acquire_queued(mode, worker, &mut delay)
            }
            LwLockVariant::SingleCas => self.acquire_single_cas(mode, worker, &mut delay),
        };
        self.class.record(
            mode.wait(),
            delay.total_spins,
            sleeps,
            M::now().saturating_sub(started),
        );
        delay.finish::<M>();
        granted_from
    }

    /// The word that granted it, and how often the worker slept.
    fn acquire_queued(&self, mode: LatchMode, worker: WorkerId, delay: &mut Delay) -> (u32, u64) {
        let mut limit = self.limit();
        let mut surplus = 0;
        let mut sleeps = 0;
        let granted_from = loop {
            if let Some(granted_from) = self.attempt_within(self.state.load(Relaxed), mode, limit) {
                break granted_from;
            }
            self.queue_self(worker, mode.wait_mode(), delay);
            // R2: this look follows our HAS_WAITERS on the same word.
            if let Some(granted_from) = self.attempt_within(self.state.load(Relaxed), mode, limit) {
                self.dequeue_self(worker, delay);
                break granted_from;
            }
            sleeps += 1;
            surplus += self.sleep(worker);
            // R3: from here on a release must wake again.
            self.state.fetch_and(!WAKE_IN_PROGRESS, Relaxed);
            // R7: releases were silent because we were to look, and we must not be turned away.
            limit = UNLIMITED;
        };
        Self::repost(worker, surplus);
        (granted_from, sleeps)
    }

    /// How often a worker polls before it queues.
    fn polls_before_queueing(&self, mode: LatchMode, delay: &Delay) -> u32 {
        match (self.class.spin_policy(), mode) {
            (SpinPolicy::None, _) => 0,
            (SpinPolicy::Fixed(polls), _) => polls,
            (SpinPolicy::Adaptive, LatchMode::Exclusive) => delay.budget() / 8,
            (SpinPolicy::Adaptive, LatchMode::Shared) => delay.budget() / 2,
        }
    }

    /// As `acquire_queued`.
    fn acquire_single_cas(&self, mode: LatchMode, worker: WorkerId, delay: &mut Delay) -> (u32, u64) {
        let mut spin = Spin::with_budget::<M>(self.polls_before_queueing(mode, delay));
        let mut limit = self.limit();
        let mut surplus = 0;
        let mut sleeps = 0;
        let mut state = self.state.load(Relaxed);
        let granted_from = loop {
            if grantable(state, mode, limit) {
                if mode == LatchMode::Shared && self.adds(state) {
                    if self.add_shared() {
                        break state;
                    }
                    state = self.state.load(Relaxed);
                    continue;
                }
                match self
                    .state
                    .compare_exchange_weak(state, granted(state, mode, limit), Acquire, Relaxed)
                {
                    Ok(_) => break state,
                    Err(found) => state = found,
                }
            } else if state & LOCKED != 0 {
                // Whoever locked the list is done in no time, unless it has lost its CPU.
                delay.step::<M>(self.class.name);
                state = self.state.load(Relaxed);
            } else if spin.poll::<M>() {
                state = self.state.load(Relaxed);
            } else {
                // Acquire: the list's links are visible, as in `lock_list`.
                match self
                    .state
                    .compare_exchange_weak(state, state | LOCKED | HAS_WAITERS, Acquire, Relaxed)
                {
                    Ok(_) => {
                        self.push(worker, mode.wait_mode());
                        self.unlock_list();
                        sleeps += 1;
                        surplus += self.sleep(worker);
                        // R3: and with the same access, look.
                        state = self.state.fetch_and(!WAKE_IN_PROGRESS, Relaxed) & !WAKE_IN_PROGRESS;
                        // R7: releases were silent because we were to look, and we must not be turned away.
                        limit = UNLIMITED;
                        delay.woken();
                        spin.afresh::<M>();
                    }
                    Err(found) => state = found,
                }
            }
        };
        delay.total_spins += spin.polls();
        Self::repost(worker, surplus);
        (granted_from, sleeps)
    }

    /// Puts the calling worker on the list (queued algorithm).
    pub(crate) fn queue_self(&self, worker: WorkerId, mode: WaitMode, delay: &mut Delay) {
        self.lock_list(delay);
        self.state.fetch_or(HAS_WAITERS, Relaxed);
        self.push(worker, mode);
        self.unlock_list();
    }

    /// Takes the calling worker off the list because it no longer needs to sleep (queued algorithm).
    pub(crate) fn dequeue_self(&self, worker: WorkerId, delay: &mut Delay) {
        let me = slot::<M>(worker.0);
        self.lock_list(delay);
        let listed = match self.algorithm {
            LwLockVariant::QueuedScan => self.find_on_list(worker.0),
            _ => me.waiting.load(Relaxed) == WAITING,
        };
        if listed {
            self.unlink(worker.0);
            me.waiting.store(NOT_WAITING, Relaxed);
            if self.list_is_empty() {
                // R7: nobody waits any more, so no release will come back to those whom a full count turns away.
                self.state.fetch_and(!(HAS_WAITERS | GRANTS), Relaxed);
            }
            self.unlock_list();
            return;
        }
        self.unlock_list();
        // Somebody picked us first. R3: we are the woken worker, so the flag is ours to clear; the post is ours to absorb.
        self.state.fetch_and(!WAKE_IN_PROGRESS, Relaxed);
        let surplus = self.sleep(worker);
        Self::repost(worker, surplus);
    }

    /// Releases what [`acquire`](Self::acquire) acquired in `mode`. Release: the next holder sees what was written.
    #[inline]
    pub fn release(&self, mode: LatchMode) {
        order::released::<M>(core::ptr::from_ref(self).cast());
        self.give_back(mode);
    }

    /// Releases what was attempted but not noted as acquired.
    #[inline]
    pub(crate) fn give_back(&self, mode: LatchMode) {
        match mode {
            LatchMode::Exclusive => {
                debug_assert!(
                    M::EXPLORED || self.is_held_exclusive(),
                    "latch {} is not held exclusively",
                    self.class.name
                );
                // "Was it EXCLUSIVE and nothing else?" is the zero flag of x86's `lock sub`: no old value is kept.
                if self.state.fetch_sub(EXCLUSIVE, Release) != EXCLUSIVE {
                    self.released_exclusive();
                }
            }
            LatchMode::Shared => {
                let before = self.state.fetch_sub(SHARED_UNIT, Release);
                debug_assert!(
                    before & SHARED_MASK != 0,
                    "latch {} is not held shared",
                    self.class.name
                );
                if last_shared_must_wake(before) {
                    self.wake();
                }
            }
        }
    }

    /// The rest of an exclusive release whose word had more in it. R2 allows to look again rather than at the old value:
    /// what is found is this release's outcome or a later one, and a later holder or waker answers for it in turn.
    #[cold]
    #[inline(never)]
    fn released_exclusive(&self) {
        if must_wake(self.state.load(Relaxed)) {
            self.wake();
        }
    }

    /// Whether anybody holds the latch at this instant, for assertions.
    pub fn is_held(&self) -> bool {
        self.state.load(Relaxed) & (EXCLUSIVE | SHARED_MASK) != 0
    }

    /// Whether somebody holds the latch exclusively at this instant, for assertions.
    pub fn is_held_exclusive(&self) -> bool {
        self.state.load(Relaxed) & EXCLUSIVE != 0
    }
}
