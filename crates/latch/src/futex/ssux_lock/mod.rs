//! SsuxLock: shared, update and exclusive in eight bytes.
//!
//! Shared admits shared and update; update excludes update and exclusive; exclusive excludes all.
//!
//! The state is in one word of 64 bits (`in_one_word`, the default), or in two of 32 as InnoDB has it
//! (`in_two_words`). Both have an owner, in U or X mode and marked `EXCLUSIVE` for X; the number of workers
//! that hold S; and the registered waiters.
//!
//! # Protocol
//! - **U**: own the lock. **X**: own it and exclude readers, then wait until the readers inside have left.
//! - **S**: enter unless readers are excluded. A reader that finds itself excluded polls, then registers and
//!   sleeps while the owner is marked `EXCLUSIVE`. When it enters, it unregisters and passes a wake on.
//! - The last reader to leave wakes the owner that waits for it.
//! - U to X, X to U, X to S, U to S at any time. S to U exists as an attempt only: two readers that both
//!   waited for U would wait for each other if one of them went on to X.
//!
//! # Rules
//! S1 and the argument for each step are with the state. For both variants of the state:
//! - S2. X is granted iff readers are excluded and none is inside.
//! - S3. A reader sleeps only while `EXCLUSIVE` is set in the very word that it sleeps on. Every step that
//!   clears the mark changes that word. A release then wakes one sleeper, and a downgrade to U wakes all.
//! - S4. Two kinds of workers sleep on one word, and each wake reaches one of them: it may reach a reader
//!   although a writer could go, or the reverse. A reader that unregisters wakes the next worker if the lock
//!   has no owner. A worker that takes U past sleeping readers wakes all of them: they can enter beside it,
//!   and no release comes before its own.
//! - S5. Only the owner sleeps until readers have left. The last reader to leave while the owner is marked
//!   sees the mark, and wakes it.
//! - S6. Readers that may hold the lock already (`acquire_shared_recursive`) enter beside each other though an exclusive waits,
//!   so one of them sleeps only while an exclusive is owned and no reader is inside. Before it looks at both it sets a mark
//!   in the word that it sleeps on. An owner that has to wait for readers, and such a reader when it leaves its wait, clear
//!   the mark, and then wake all: a reader that is not asleep yet finds the word changed. *So none of them is asleep while an
//!   exclusive waits for another one of them, which may wait for it.*
//!
//! # What it promises
//! Writers have priority: once a writer owns the lock, it waits for the readers inside at that moment and no
//! others. Workers that want U or X have no order among each other. A reader's wait has no bound while
//! writers keep coming.
//!
//! Limits: 16,383 readers and 16,383 writers can wait for one lock at a time.
//!
//! Origin: InnoDB's `ssux_lock_impl` (Marko Mäkelä, MariaDB 10.6). The mark and what follows from it, and the
//! state in one word, are ours.

mod guards;
mod timed;
mod waits;

use core::marker::PhantomData;

use clearway_machine::{Host, Machine};

pub use self::guards::{SsuxExclusive, SsuxShared, SsuxUpdate};
pub(crate) use self::waits::SsuxWaits;
use super::in_one_word::OneWord;
use super::ssux_state::{ConstState, Readers, SsuxProtocol, SsuxState};
use crate::class::{ClassOf, Unclassed, Wait};
use crate::order;
use crate::waiting::Waiting;

/// A latch with shared, update and exclusive modes, in eight bytes. `C` names its class, `P` how its state is
/// kept.
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

    /// Acquires the latch in shared mode: with other readers and one updater, waiting as long as it takes.
    ///
    /// # Panics
    /// In debug builds, like the other unconditional acquisitions, if the calling thread holds this latch or
    /// one of a higher rank.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> SsuxShared<'_, C, M, P> {
        self.acquire_shared();
        SsuxShared::new(self)
    }

    /// Acquires the latch in update mode: with readers, and as the only worker that may upgrade to exclusive
    /// mode. Waits as long as it takes.
    #[inline]
    #[track_caller]
    pub fn update(&self) -> SsuxUpdate<'_, C, M, P> {
        self.acquire_update();
        SsuxUpdate::new(self)
    }

    /// Acquires the latch in exclusive mode, waiting as long as it takes.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> SsuxExclusive<'_, C, M, P> {
        self.acquire_exclusive();
        SsuxExclusive::new(self)
    }

    /// Acquires the latch in shared mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<SsuxShared<'_, C, M, P>> {
        self.try_acquire_shared().then(|| SsuxShared::new(self))
    }

    /// Acquires the latch in update mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_update(&self) -> Option<SsuxUpdate<'_, C, M, P>> {
        self.try_acquire_update().then(|| SsuxUpdate::new(self))
    }

    /// Acquires the latch in exclusive mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<SsuxExclusive<'_, C, M, P>> {
        self.try_acquire_exclusive().then(|| SsuxExclusive::new(self))
    }

    /// Number of workers that hold the latch in shared mode. Out of date on return, like the next three.
    pub fn shared_holders(&self) -> u32 {
        self.state.shared_holders()
    }

    /// True if a worker holds the latch in update or exclusive mode, or waits for readers to leave.
    pub fn is_owned(&self) -> bool {
        self.state.is_owned()
    }

    /// True if the latch is held in exclusive mode.
    pub fn is_held_exclusively(&self) -> bool {
        self.state.is_held_exclusively()
    }

    /// True if the latch is held in any mode.
    pub fn is_held(&self) -> bool {
        self.is_owned() || self.shared_holders() != 0
    }

    /// For the worker that stands in for a dead one.
    pub(super) fn state(&self) -> &P::State<M> {
        &self.state
    }

    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// From now on the latch belongs to no thread, for the check of the order of latches.
    pub(super) fn forget_holder(&self) {
        order::released::<M>(self.address());
    }

    /// From now on the latch belongs to the calling thread, for the check of the order of latches.
    #[track_caller]
    pub(super) fn remember_holder(&self) {
        order::acquired::<M>(C::class(), self.address());
    }

    #[track_caller]
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
    fn note_acquired(&self, mode: Wait) {
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
        self.note_acquired(Wait::Shared);
    }

    /// Acquires in shared mode without a guard, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_acquire_shared(&self) -> bool {
        let acquired = self.state.try_enter() || self.state.enter();
        if acquired {
            self.note_acquired(Wait::Shared);
        }
        acquired
    }

    /// Acquires in shared mode without a guard, by a worker that may hold the latch in shared mode already. It enters beside
    /// an exclusive that waits for readers to leave, so it cannot wait for one that waits for itself, nor for one that waits for
    /// another worker that entered so and waits for the caller. For that it gives up the priority of writers: one waits as
    /// long as such readers follow each other.
    #[inline]
    #[track_caller]
    pub fn acquire_shared_recursive(&self) {
        if !self.state.enter_beside_readers() {
            self.acquire_shared_recursive_slow();
        }
        self.note_acquired(Wait::Shared);
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn acquire_shared_recursive_slow(&self) {
        let mut waiting = self.begin(Wait::Shared);
        let entered = self.state.enter_recursive_slow(&mut waiting);
        debug_assert!(entered, "a wait without a limit was given up");
        waiting.finish::<M>();
    }

    /// As [`acquire_shared_recursive`](Self::acquire_shared_recursive), if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_acquire_shared_recursive(&self) -> bool {
        let acquired = self.state.enter_beside_readers();
        if acquired {
            self.note_acquired(Wait::Shared);
        }
        acquired
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn acquire_shared_slow(&self) {
        // Not a conflict if the word only changed in between.
        if self.state.enter() {
            return;
        }
        let mut waiting = self.begin(Wait::Shared);
        let entered = self.state.enter_slow(&mut waiting);
        debug_assert!(entered, "a wait without a limit was given up");
        waiting.finish::<M>();
    }

    /// Releases what was acquired in shared mode.
    ///
    /// # Safety
    /// The caller holds the latch in shared mode, without a guard or by one that it has forgotten.
    #[inline]
    pub unsafe fn release_shared(&self) {
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
        self.note_acquired(Wait::Update);
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn acquire_update_slow(&self) {
        // Not a conflict if there are only waiters and readers.
        if self.state.try_take_update() {
            return;
        }
        let mut waiting = self.begin(Wait::Update);
        let taken = self.state.take_update(&mut waiting);
        debug_assert!(taken, "a wait without a limit was given up");
        waiting.finish::<M>();
    }

    /// Acquires in update mode without a guard, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_acquire_update(&self) -> bool {
        let acquired = self.state.try_take_update();
        if acquired {
            self.note_acquired(Wait::Update);
        }
        acquired
    }

    /// Releases what was acquired in update mode.
    ///
    /// # Safety
    /// The caller holds the latch in update mode, without a guard or by one that it has forgotten.
    #[inline]
    pub unsafe fn release_update(&self) {
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
            Some(Readers::None) => (),
            Some(Readers::Inside) => self.drain_slow(),
            None => self.acquire_exclusive_slow(),
        }
        self.note_acquired(Wait::Exclusive);
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn acquire_exclusive_slow(&self) {
        // Not a conflict if there are only waiters. A woken waiter is registered all the time, and may wait
        // for a CPU for long.
        if self.state.try_take_exclusive() {
            return;
        }
        let mut waiting = self.begin(Wait::Exclusive);
        let taken = self.state.take_exclusive_slow(&mut waiting);
        debug_assert!(taken, "a wait without a limit was given up");
        waiting.finish::<M>();
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn drain_slow(&self) {
        let mut waiting = self.begin(Wait::Exclusive);
        let drained = self.state.drain(&mut waiting);
        debug_assert!(drained, "a wait without a limit was given up");
        waiting.finish::<M>();
    }

    /// Acquires in exclusive mode without a guard, if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_acquire_exclusive(&self) -> bool {
        let acquired = self.state.try_take_exclusive();
        if acquired {
            self.note_acquired(Wait::Exclusive);
        }
        acquired
    }

    /// Releases what was acquired in exclusive mode.
    ///
    /// # Safety
    /// The caller holds the latch in exclusive mode, without a guard or by one that it has forgotten.
    #[inline]
    pub unsafe fn release_exclusive(&self) {
        order::released::<M>(self.address());
        self.state.release_exclusive();
    }

    // Transitions.

    /// From update mode, which the caller holds, to exclusive mode: excludes new readers and waits for the
    /// others to leave.
    ///
    /// # Safety
    /// The caller holds the latch in update mode, without a guard or by one that it goes by no longer.
    #[track_caller]
    pub unsafe fn update_to_exclusive(&self) {
        if self.state.update_to_exclusive() == Readers::Inside {
            self.drain_slow();
        }
    }

    /// As [`update_to_exclusive`](Self::update_to_exclusive), if that needs no waiting. Returns whether it
    /// did so.
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

    /// Makes a holder of the shared mode the updater, if the latch has no owner. Returns whether it did so.
    pub(crate) fn try_shared_to_update(&self) -> bool {
        self.state.try_shared_to_update()
    }
}

impl<C: ClassOf, M: Machine> SsuxLock<C, M, OneWord> {
    /// Releases what was acquired in exclusive mode, as
    /// [`SrwMutex::release_to_be_freed`](crate::SrwMutex::release_to_be_freed): the next holder may free the latch. A release
    /// of the shared mode allows that always.
    ///
    /// # Safety
    /// The caller holds the latch in exclusive mode, without a guard or by one that it has forgotten.
    #[inline]
    pub unsafe fn release_exclusive_to_be_freed(&self) {
        order::released::<M>(self.address());
        self.state.release_exclusive_to_be_freed();
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
