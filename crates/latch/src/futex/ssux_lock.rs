//! SsuxLock: shared, update and exclusive in eight bytes.
//!
//! Shared admits shared and update; update excludes update and exclusive; exclusive excludes all.
//!
//! # Where the state is
//! In one word of 64 bits (`in_one_word`, the default), or in two of 32 as InnoDB has it (`in_two_words`). To both belong an owner, in U or X
//! mode, who is marked `EXCLUSIVE` for X; how many hold S; and who waits.
//!
//! # Protocol
//! - **U**: own the lock. **X**: own it and shut readers out, then wait until those inside have left.
//! - **S**: come in unless readers are shut out. A reader that finds itself shut out polls, then puts itself on record and sleeps while the
//!   owner is marked `EXCLUSIVE`; leaving, it takes itself off the record and passes a wake on.
//! - The last reader to leave wakes the owner that waits for it.
//! - U to X, X to U, X to S, U to S at any time. S to U exists as an attempt only: two readers that waited to become U would
//!   wait for each other if one of them went on to X.
//!
//! # Why it holds
//! S1 and how each step is made are told with the state. Of both it is true that:
//! - S2. X is granted iff readers are shut out and none is inside.
//! - S3. A reader sleeps only while `EXCLUSIVE` is set in the very word that it sleeps on. Every step that clears the mark changes
//!   that word; a release wakes one sleeper, and a downgrade to U all of them.
//! - S4. One word with two kinds of sleepers, each woken one at a time: a wake may hit a reader although a writer could go, or the
//!   reverse. A reader that leaves the record wakes the next if nobody owns the lock. One that takes U past sleeping readers wakes
//!   all of them: they can go beside it, and no release would come before its own.
//! - S5. Only the owner sleeps until readers have left. Whoever is the last to leave while it is marked sees that, and wakes it.
//!
//! # What it promises
//! Writers have priority: once a writer owns the lock, it waits for the readers inside at that moment and no others. Among those
//! that want U or X there is no order, and readers have no bound on their wait while writers keep coming.
//!
//! 8 bytes.
//!
//! Limits: 16,383 readers and 32,767 writers can wait for one lock at a time.
//!
//! Origin: InnoDB's `ssux_lock_impl` (Marko Mäkelä, MariaDB 10.6); the mark and what follows from it, and the state in one word, are ours.

use core::marker::PhantomData;

use clearway_machine::{Host, Machine};

use super::ssux_guards::{SsuxExclusive, SsuxShared, SsuxUpdate};
use super::ssux_state::{ConstState, OneWord, Owned, SsuxProtocol, SsuxState};
use crate::class::{ClassOf, Unclassed, Wait};
use crate::order;
use crate::waiting::Waiting;

/// A latch with shared, update and exclusive modes, in eight bytes. `C` names its class, `P` how its state is kept.
pub struct SsuxLock<C: ClassOf = Unclassed, M: Machine = Host, P: SsuxProtocol = OneWord> {
    state: P::State<M>,
    class: PhantomData<fn() -> C>,
}

const _: () = assert!(size_of::<SsuxLock>() == 8);

impl<C: ClassOf, P: SsuxProtocol<State<Host>: ConstState>> SsuxLock<C, Host, P> {
    /// An idle latch.
    pub const fn new() -> Self {
        Self::const_idle()
    }
}

impl<C: ClassOf, M: Machine, P: SsuxProtocol<State<M>: ConstState>> SsuxLock<C, M, P> {
    /// An idle latch for a static of any machine that uses core's words.
    pub(crate) const fn const_idle() -> Self {
        Self {
            state: P::State::<M>::IDLE,
            class: PhantomData,
        }
    }
}

impl<C: ClassOf, M: Machine, P: SsuxProtocol> Default for SsuxLock<C, M, P> {
    fn default() -> Self {
        Self::idle()
    }
}

impl<C: ClassOf, M: Machine, P: SsuxProtocol> SsuxLock<C, M, P> {
    /// An idle latch of any machine.
    pub fn idle() -> Self {
        Self {
            state: P::State::<M>::new(),
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
        self.state.shared_holders()
    }

    /// Whether anybody holds the latch in update or exclusive mode, or is waiting for readers to leave: a look.
    pub fn is_owned(&self) -> bool {
        self.state.is_owned()
    }

    /// Whether anybody holds the latch in exclusive mode: a look.
    pub fn is_held_exclusively(&self) -> bool {
        self.state.is_held_exclusively()
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
        if !self.state.try_enter() {
            self.acquire_shared_slow();
        }
        self.acquired(Wait::Shared);
    }

    /// Acquires in shared mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_shared(&self) -> bool {
        let acquired = self.state.try_enter() || self.state.enter();
        if acquired {
            self.acquired(Wait::Shared);
        }
        acquired
    }

    #[cold]
    #[inline(never)]
    fn acquire_shared_slow(&self) {
        // Others only came in between: not a conflict.
        if self.state.enter() {
            return;
        }
        let mut waiting = self.begin(Wait::Shared);
        // Not on record while polling: a release meanwhile has nobody to wake.
        loop {
            if self.state.is_open() && self.state.enter() {
                waiting.finish::<M>();
                return;
            }
            if !waiting.poll::<M>() {
                break;
            }
        }
        self.state.record_reader();
        let mut slept = false;
        while !self.state.enter() {
            // Who was woken polls afresh.
            if !waiting.poll::<M>() {
                slept = self.state.sleep_while_exclusive(&mut waiting, slept);
            }
        }
        self.state.forget_reader(slept);
        waiting.finish::<M>();
    }

    /// Releases what was acquired in shared mode.
    #[inline]
    pub fn release_shared(&self) {
        order::released::<M>(self.address());
        self.state.exit();
    }

    // Update.

    /// Acquires in update mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_update(&self) {
        self.acquiring();
        if !self.state.take_update_idle() {
            self.acquire_update_slow();
        }
        self.acquired(Wait::Update);
    }

    #[cold]
    #[inline(never)]
    fn acquire_update_slow(&self) {
        // Others only wait, or read: not a conflict.
        if self.state.try_take_update() {
            return;
        }
        let mut waiting = self.begin(Wait::Update);
        self.state.take_update(&mut waiting);
        waiting.finish::<M>();
    }

    /// Acquires in update mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_update(&self) -> bool {
        let acquired = self.state.try_take_update();
        if acquired {
            self.acquired(Wait::Update);
        }
        acquired
    }

    /// Releases what was acquired in update mode.
    #[inline]
    pub fn release_update(&self) {
        order::released::<M>(self.address());
        self.state.release_update();
    }

    // Exclusive.

    /// Acquires in exclusive mode without a guard.
    #[inline]
    #[track_caller]
    pub fn acquire_exclusive(&self) {
        self.acquiring();
        match self.state.take_exclusive_idle() {
            Some(Owned::Alone) => (),
            Some(Owned::BesideReaders) => self.drain_slow(),
            None => self.acquire_exclusive_slow(),
        }
        self.acquired(Wait::Exclusive);
    }

    #[cold]
    #[inline(never)]
    fn acquire_exclusive_slow(&self) {
        // Others only wait: not a conflict. One that was woken may wait for a CPU for long, and is on record all the time.
        if self.state.try_take_exclusive() {
            return;
        }
        let mut waiting = self.begin(Wait::Exclusive);
        if self.state.take_exclusive(&mut waiting) == Owned::BesideReaders {
            self.drain(&mut waiting);
        }
        waiting.finish::<M>();
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
        waiting.poll_as_owner::<M>();
        loop {
            if self.state.readers_left() == 0 {
                return;
            }
            if !waiting.poll::<M>() {
                self.state.sleep_beside(waiting);
            }
        }
    }

    /// Acquires in exclusive mode without a guard, if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_acquire_exclusive(&self) -> bool {
        let acquired = self.state.try_take_exclusive();
        if acquired {
            self.acquired(Wait::Exclusive);
        }
        acquired
    }

    /// Releases what was acquired in exclusive mode.
    #[inline]
    pub fn release_exclusive(&self) {
        order::released::<M>(self.address());
        self.state.release_exclusive();
    }

    // Transitions.

    /// From update mode, which the caller holds, to exclusive mode: no more readers, and wait for those that are in.
    pub fn update_to_exclusive(&self) {
        if self.state.update_to_exclusive() == Owned::BesideReaders {
            self.drain_slow();
        }
    }

    /// Whether the holder of an update has become exclusive, if that needed no waiting.
    pub(crate) fn try_update_to_exclusive(&self) -> bool {
        self.state.try_update_to_exclusive()
    }

    pub(crate) fn update_to_shared(&self) {
        self.state.update_to_shared();
    }

    pub(crate) fn exclusive_to_update(&self) {
        self.state.exclusive_to_update();
    }

    pub(crate) fn exclusive_to_shared(&self) {
        self.state.exclusive_to_shared();
    }

    /// Whether the holder of a shared has become the updater, if nobody owned the latch.
    pub(crate) fn try_shared_to_update(&self) -> bool {
        self.state.try_shared_to_update()
    }
}

impl<C: ClassOf, M: Machine, P: SsuxProtocol> core::fmt::Debug for SsuxLock<C, M, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SsuxLock")
            .field("class", &C::class().name)
            .field("state", &self.state)
            .finish()
    }
}
