//! SsuxLock: shared, update and exclusive in eight bytes.
//!
//! Shared admits shared and update; update excludes update and exclusive; exclusive excludes all.
//!
//! # The two words
//! `writer` is the word of a mutex (see `holder`): whoever holds the lock in U or X mode owns it, with the mark
//! `EXCLUSIVE` for X. `readers` says what readers need to know:
//!
//! | `readers` | meaning |
//! | --- | --- |
//! | 0 | nobody reads; there may be a U holder |
//! | n | n hold S; there may be a U holder besides |
//! | `WRITER` + n | an X was requested, n readers are still inside: no more come in |
//! | `WRITER` | held in X mode, and only then |
//!
//! # Protocol
//! - **U**: own `writer`. **X**: own `writer` with `EXCLUSIVE`, add `WRITER` to `readers`, wait until `readers` is `WRITER`.
//! - **S**: CAS n to n + 1, unless `WRITER` is there. A reader that meets it polls, then puts itself on record in `writer` as a
//!   waiting reader, and sleeps there while `EXCLUSIVE` is set; leaving, it takes itself off the record and passes a wake on.
//! - S release: subtract 1; whoever leaves `WRITER` alone behind wakes the owner, the only one that ever sleeps on `readers`.
//! - X release: `readers` = 0, then release `writer`.
//! - U to X: mark `EXCLUSIVE`, then as X. X to U: `readers` = 0, unmark, and wake the readers that sleep. X to S and U to S:
//!   count itself as a reader, then release `writer`. S to U exists as an attempt only: two readers that waited to become U would
//!   wait for each other if one of them went on to X.
//!
//! # Why it holds
//! - S1. `WRITER` is set and removed by the owner of `writer` only; `EXCLUSIVE` is marked before `WRITER` is set and unmarked
//!   after it is removed. *So whoever sees `WRITER` either finds the mark, and may sleep on it, or is told by its absence to look
//!   again.*
//! - S2. X is granted iff `readers` is exactly `WRITER`: no reader is inside, and while it is set none comes in.
//! - S3. A reader sleeps only while `EXCLUSIVE` is set in the very word that it sleeps on. Every step that clears the mark changes
//!   that word; a release wakes one sleeper, and a downgrade to U all of them.
//! - S4. One word with two kinds of sleepers, each woken one at a time: a wake may hit a reader although a writer could go, or the
//!   reverse. A reader that leaves the record wakes the next if nobody owns the word. One that takes U past sleeping readers wakes
//!   all of them: they can go beside it, and no release would come before its own.
//! - S5. Only one can sleep on `readers`: the owner of `writer`. Whoever takes the last reader away after `WRITER` was set sees
//!   `WRITER + 1`, and wakes it.
//!
//! The simpler version has no mark, and readers sleep while `writer` has an owner at all. Then a reader that slept because of an X
//! holder stays asleep after the holder went down to U, although it could go; it is what InnoDB accepts.
//!
//! # What it promises
//! Writers have priority: once a writer owns `writer`, it waits for the readers inside at that moment and no others. Among those
//! that want U or X there is no order, and readers have no bound on their wait while writers keep coming.
//!
//! # Costs
//! 8 bytes. Locked instructions of an uncontended pair on x86-64: S two, U two, X three (its release stores `readers` plainly).
//!
//! Limits: 16,383 readers and 32,767 writers can wait for one lock at a time.
//!
//! Origin: InnoDB's `ssux_lock_impl` (Marko Mäkelä, MariaDB 10.6); the mark and what follows from it are ours.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, CoreU32, Host, Machine};

use super::holder::{EXCLUSIVE, HolderProtocol, HolderWord, SingleWake};
use super::ssux_guards::{SsuxExclusive, SsuxShared, SsuxUpdate};
use super::waiting::Waiting;
use crate::class::{ClassOf, Unclassed, Wait};
use crate::order;

/// In `readers`: an exclusive was requested, or granted.
const WRITER: u32 = 1 << 31;

/// A latch with shared, update and exclusive modes, in eight bytes. `C` names its class, `P` the way in which the writers' word is
/// changed.
pub struct SsuxLock<C: ClassOf = Unclassed, M: Machine = Host, P: HolderProtocol = SingleWake> {
    writer: HolderWord<P, M>,
    readers: M::U32,
    class: PhantomData<fn() -> C>,
}

const _: () = assert!(size_of::<SsuxLock>() == 8);

impl<C: ClassOf, P: HolderProtocol> SsuxLock<C, Host, P> {
    /// An idle latch.
    pub const fn new() -> Self {
        Self::const_idle()
    }
}

impl<C: ClassOf, M: Machine<U32 = CoreU32>, P: HolderProtocol> SsuxLock<C, M, P> {
    /// An idle latch for a static of any machine that uses core's words.
    pub(crate) const fn const_idle() -> Self {
        Self {
            writer: HolderWord::new_const(),
            readers: CoreU32::new_const(0),
            class: PhantomData,
        }
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> Default for SsuxLock<C, M, P> {
    fn default() -> Self {
        Self::idle()
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> SsuxLock<C, M, P> {
    /// An idle latch of any machine.
    pub fn idle() -> Self {
        Self {
            writer: HolderWord::new(),
            readers: M::U32::new(0),
            class: PhantomData,
        }
    }

    /// Acquires the latch along with other readers and an updater, waiting as long as it takes.
    ///
    /// # Panics
    /// In debug builds, like the other unconditional acquisitions, if the calling thread holds this latch or one of a higher rank.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> SsuxShared<'_, C, M, P> {
        self.acquire_shared();
        SsuxShared::new(self)
    }

    /// Acquires the latch as the only one that may go on to exclusive, beside readers; waits as long as it takes.
    #[inline]
    #[track_caller]
    pub fn update(&self) -> SsuxUpdate<'_, C, M, P> {
        self.acquire_update();
        SsuxUpdate::new(self)
    }

    /// Acquires the latch alone, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> SsuxExclusive<'_, C, M, P> {
        self.acquire_exclusive();
        SsuxExclusive::new(self)
    }

    /// Acquires the latch in shared mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<SsuxShared<'_, C, M, P>> {
        self.try_acquire_shared().then(|| SsuxShared::new(self))
    }

    /// Acquires the latch in update mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_update(&self) -> Option<SsuxUpdate<'_, C, M, P>> {
        self.try_acquire_update().then(|| SsuxUpdate::new(self))
    }

    /// Acquires the latch in exclusive mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<SsuxExclusive<'_, C, M, P>> {
        self.try_acquire_exclusive().then(|| SsuxExclusive::new(self))
    }

    /// How many hold the latch in shared mode: a look, out of date when it arrives.
    pub fn shared_holders(&self) -> u32 {
        self.readers.load(Relaxed) & !WRITER
    }

    /// Whether anybody holds the latch in update or exclusive mode, or is waiting for readers to leave: a look.
    pub fn is_owned(&self) -> bool {
        self.writer.is_held()
    }

    /// Whether anybody holds the latch in exclusive mode: a look.
    pub fn is_held_exclusively(&self) -> bool {
        // S2.
        self.readers.load(Relaxed) == WRITER
    }

    /// Whether anybody holds the latch in any mode: a look.
    pub fn is_held(&self) -> bool {
        self.is_owned() || self.shared_holders() != 0
    }

    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// From now on no thread in particular holds the latch, as far as the order of latches is concerned.
    pub(super) fn forget_holder(&self) {
        order::released::<M>(self.address());
    }

    /// From now on the calling thread holds the latch that nobody in particular held.
    #[track_caller]
    pub(super) fn remember_holder(&self) {
        order::acquired::<M>(C::class(), self.address());
    }

    fn begin(&self, mode: Wait) -> Waiting {
        Waiting::begin::<M>(C::class(), mode, self.address())
    }

    #[inline]
    #[track_caller]
    fn acquiring(&self) {
        order::acquiring::<M>(C::class(), self.address());
    }

    #[inline]
    #[track_caller]
    fn acquired(&self, mode: Wait) {
        order::acquired::<M>(C::class(), self.address());
        C::class().count::<M>(mode);
    }

    // Shared.

    /// Acquires in shared mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_shared(&self) {
        self.acquiring();
        if !self.try_enter() {
            self.acquire_shared_slow();
        }
        self.acquired(Wait::Shared);
    }

    /// Acquires in shared mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_shared(&self) -> bool {
        let acquired = self.try_enter() || self.enter_from(self.readers.load(Relaxed));
        if acquired {
            self.acquired(Wait::Shared);
        }
        acquired
    }

    /// One attempt at becoming a reader. Acquire: pairs with the Release with which the last writer set `readers` to what we add to;
    /// what it wrote is visible.
    #[inline(always)]
    fn try_enter(&self) -> bool {
        let seen = self.readers.load(Relaxed);
        seen & WRITER == 0
            && self
                .readers
                .compare_exchange_weak(seen, seen + 1, Acquire, Relaxed)
                .is_ok()
    }

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
        // S1: who saw `WRITER` sees the mark, or that it has gone again.
        M::fence(Acquire);
        false
    }

    #[cold]
    #[inline(never)]
    fn acquire_shared_slow(&self) {
        // Others only came in between: not a conflict.
        if self.enter_from(self.readers.load(Relaxed)) {
            return;
        }
        let mut waiting = self.begin(Wait::Shared);
        // Not on record while polling: a release meanwhile has nobody to wake.
        loop {
            let seen = self.readers.load(Relaxed);
            if seen & WRITER == 0 && self.enter_from(seen) {
                waiting.finish::<M>();
                return;
            }
            if !waiting.poll::<M>() {
                break;
            }
        }
        self.writer.enter();
        let mut slept = false;
        while !self.enter_from(self.readers.load(Relaxed)) {
            // Who was woken polls afresh.
            if !waiting.poll::<M>() {
                slept |= self.writer.sleep_while_exclusive(&mut waiting, slept);
            }
        }
        self.writer.leave(slept);
        waiting.finish::<M>();
    }

    /// Releases what was acquired in shared mode.
    #[inline]
    pub fn release_shared(&self) {
        order::released::<M>(self.address());
        self.exit();
    }

    /// A reader goes.
    #[inline(always)]
    fn exit(&self) {
        // Release: pairs with the Acquire with which an exclusive sees its readers gone.
        let before = self.readers.fetch_sub(1, Release);
        debug_assert_ne!(before & !WRITER, 0, "released, not held");
        if before == WRITER + 1 {
            self.wake_owner();
        }
    }

    /// S5: the last reader has gone, and the owner waits for that.
    #[cold]
    #[inline(never)]
    fn wake_owner(&self) {
        M::futex_wake(&self.readers, 1);
    }

    // Update.

    /// Acquires in update mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_update(&self) {
        self.acquiring();
        if !self.writer.take_idle(0) {
            self.acquire_update_slow();
        }
        self.acquired(Wait::Update);
    }

    #[cold]
    #[inline(never)]
    fn acquire_update_slow(&self) {
        let mut waiting = self.begin(Wait::Update);
        self.writer.take_slow(&mut waiting, 0);
        waiting.finish::<M>();
    }

    /// Acquires in update mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_update(&self) -> bool {
        let acquired = self.writer.try_take(0);
        if acquired {
            self.acquired(Wait::Update);
        }
        acquired
    }

    /// Releases what was acquired in update mode.
    #[inline]
    pub fn release_update(&self) {
        order::released::<M>(self.address());
        self.writer.release(0);
    }

    // Exclusive.

    /// Acquires in exclusive mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_exclusive(&self) {
        self.acquiring();
        if !self.writer.take_idle(EXCLUSIVE) {
            self.acquire_exclusive_slow();
        } else if !self.close() {
            self.drain_slow();
        }
        self.acquired(Wait::Exclusive);
    }

    #[cold]
    #[inline(never)]
    fn acquire_exclusive_slow(&self) {
        let mut waiting = self.begin(Wait::Exclusive);
        self.writer.take_slow(&mut waiting, EXCLUSIVE);
        if !self.close() {
            waiting.afresh::<M>();
            self.drain(&mut waiting);
        }
        waiting.finish::<M>();
    }

    /// Lets no more readers in; whether there are none inside. Acquire: what readers read comes before what we write. Release: S1,
    /// pairs with the fence in `enter_from`; the mark is visible to who sees `WRITER`.
    #[inline(always)]
    fn close(&self) -> bool {
        self.readers.fetch_add(WRITER, AcqRel) == 0
    }

    #[cold]
    #[inline(never)]
    fn drain_slow(&self) {
        let mut waiting = self.begin(Wait::Exclusive);
        self.drain(&mut waiting);
        waiting.finish::<M>();
    }

    /// Waits until the readers inside have gone.
    fn drain(&self, waiting: &mut Waiting) {
        loop {
            // Acquire: pairs with the Release in `exit` of each of them.
            let seen = self.readers.load(Acquire);
            debug_assert_ne!(seen & WRITER, 0, "S1: only the owner removes WRITER");
            if seen == WRITER {
                return;
            }
            if !waiting.poll::<M>() {
                waiting.sleep::<M>(&self.readers, seen);
            }
        }
    }

    /// Acquires in exclusive mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_exclusive(&self) -> bool {
        // Look first, so that a try that must fail shuts nobody out meanwhile.
        if self.readers.load(Relaxed) != 0 || !self.writer.try_take(EXCLUSIVE) {
            return false;
        }
        let acquired = self.try_close();
        if acquired {
            self.acquired(Wait::Exclusive);
        } else {
            // Readers may have gone to sleep because of the mark: this release wakes.
            self.writer.release(EXCLUSIVE);
        }
        acquired
    }

    /// As `close`, if there are no readers inside.
    #[inline]
    fn try_close(&self) -> bool {
        self.readers.compare_exchange(0, WRITER, AcqRel, Relaxed).is_ok()
    }

    /// Lets readers in again, `inside` of whom are there already; the caller has the latch alone, so nobody else changes the word.
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

    /// Releases what was acquired in exclusive mode.
    #[inline]
    pub fn release_exclusive(&self) {
        order::released::<M>(self.address());
        self.open(0);
        self.writer.release(EXCLUSIVE);
    }

    // Transitions.

    /// From update mode, which the caller holds, to exclusive mode: no more readers, and wait for those that are in.
    pub fn update_to_exclusive(&self) {
        self.writer.mark_exclusive();
        if !self.close() {
            self.drain_slow();
        }
    }

    /// Whether the holder of an update has become exclusive, if that needed no waiting.
    pub(crate) fn try_update_to_exclusive(&self) -> bool {
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

    pub(crate) fn update_to_shared(&self) {
        // No exclusive can have closed the lock: we own `writer`.
        self.readers.fetch_add(1, Relaxed);
        self.writer.release(0);
    }

    pub(crate) fn exclusive_to_update(&self) {
        self.open(0);
        self.writer.unmark_exclusive();
    }

    pub(crate) fn exclusive_to_shared(&self) {
        self.open(1);
        self.writer.release(EXCLUSIVE);
    }

    /// Whether the holder of a shared has become the updater, if nobody owned the latch.
    pub(crate) fn try_shared_to_update(&self) -> bool {
        // Success means that no exclusive waits for us to leave: it would own `writer`.
        let taken = self.writer.try_take(0);
        if taken {
            self.exit();
        }
        taken
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> core::fmt::Debug for SsuxLock<C, M, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SsuxLock")
            .field("class", &C::class().name)
            .field("writer", &self.writer)
            .field("readers", &self.readers.load(Relaxed))
            .finish()
    }
}
