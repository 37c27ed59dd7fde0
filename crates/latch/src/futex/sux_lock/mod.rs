//! SuxLock: an [`SsuxLock`] that knows its owner, so that the owner may acquire again and another thread may
//! release for it.
//!
//! | word | holds |
//! | --- | --- |
//! | `lock` | the [`SsuxLock`], 8 bytes |
//! | `owner` | 0: no owner in U or X mode; n + 1: worker n owns it; `FOR_IO`: it is held until an I/O ends |
//! | `holds` | the owner's X holds (bits 0–15) and U holds (bits 16–31), one a guard |
//!
//! # Rules
//! - O1. `owner` names a worker only between that worker's own two stores. So a worker that reads its own
//!   number there, even by a relaxed load, is the owner; if it reads anything else, it is not.
//! - O2. `holds` is read and written by the owner only. When `FOR_IO` hands it over, it is ordered by
//!   whatever hands the guard over.
//! - O3. The inner lock is in X mode iff there are X holds, and otherwise in U mode iff there are U holds. A
//!   worker's own holds may be dropped in any order.
//!
//! # Protocol
//! - U or X, by a worker that is not the owner: acquire the inner lock, then become the owner with one hold.
//! - U or X, by the owner: one hold more. The first X beside a U waits for the readers to leave, as an
//!   upgrade does. The last X beside a U admits them again.
//! - S under the worker's own U: the inner lock's S, which never has to wait, since only the owner of U could
//!   exclude readers. S under its own X would wait for itself: a panic, in every build.
//! - *For I/O*: the only hold is given to a guard that any thread may drop, or claim as its own. Meanwhile
//!   the latch has no owner that could acquire again, so even the worker that began the I/O waits for its
//!   end.
//!
//! # Costs
//! 16 bytes. Over the SsuxLock: one read of the worker's number and two stores, no atomic RMW. A thread that
//! uses U or X claims one of the machine's worker slots.
//!
//! Origin: InnoDB's `sux_lock` (Marko Mäkelä, MariaDB 10.6).

mod guards;

use core::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, CoreU32, Host, Machine};

pub use self::guards::{SuxExclusive, SuxExclusiveForIo, SuxShared, SuxUpdate, SuxUpdateForIo};
use super::in_one_word::OneWord;
use super::ssux_lock::SsuxLock;
use super::ssux_state::{ConstState, SsuxProtocol};
use crate::class::{ClassOf, Unclassed};

const NO_OWNER: u32 = 0;
const FOR_IO: u32 = u32::MAX;
/// One X hold, and one U hold, in `holds`.
const X: u32 = 1;
const U: u32 = 1 << 16;
const X_HOLDS: u32 = U - X;

/// A latch with shared, update and exclusive modes whose owner may acquire it again. `C` names its class, `P`
/// how the state of the lock inside is kept.
pub struct SuxLock<C: ClassOf = Unclassed, M: Machine = Host, P: SsuxProtocol = OneWord> {
    lock: SsuxLock<C, M, P>,
    owner: M::U32,
    holds: M::U32,
}

const _: () = assert!(size_of::<SuxLock>() == 16);

impl<C: ClassOf, P: SsuxProtocol<State<Host>: ConstState>> SuxLock<C, Host, P> {
    /// An idle latch.
    pub const fn new() -> Self {
        Self {
            lock: SsuxLock::new(),
            owner: CoreU32::new_const(NO_OWNER),
            holds: CoreU32::new_const(0),
        }
    }
}

impl<C: ClassOf, M: Machine, P: SsuxProtocol> Default for SuxLock<C, M, P> {
    fn default() -> Self {
        Self::idle()
    }
}

impl<C: ClassOf, M: Machine, P: SsuxProtocol> SuxLock<C, M, P> {
    /// An idle latch of any machine.
    pub fn idle() -> Self {
        Self {
            lock: SsuxLock::idle(),
            owner: M::U32::new(NO_OWNER),
            holds: M::U32::new(0),
        }
    }

    /// Acquires the latch in shared mode, waiting as long as it takes. The caller may be the updater.
    ///
    /// # Panics
    /// If the calling worker holds the latch in exclusive mode; and in debug builds, like the other
    /// unconditional acquisitions, if the thread holds a latch of a higher rank.
    #[track_caller]
    pub fn shared(&self) -> SuxShared<'_, C, M, P> {
        // Debug builds go the long way round, so that the order of latches is checked before anything is
        // acquired.
        if cfg!(debug_assertions) || !self.lock.try_acquire_shared() {
            self.acquire_shared_slow();
        }
        SuxShared::new(self)
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn acquire_shared_slow(&self) {
        if !self.is_owned_by_caller() {
            self.lock.acquire_shared();
            return;
        }
        assert_eq!(
            self.holds.load(Relaxed) & X_HOLDS,
            0,
            "latch {} is wanted in shared mode by the worker that holds it exclusively: it would wait for itself",
            C::class().name
        );
        let acquired = self.lock.try_acquire_shared();
        assert!(
            acquired,
            "an updater shuts itself out of latch {}",
            C::class().name
        );
    }

    /// Acquires the latch in shared mode if that needs no waiting. Under the worker's own exclusive it is
    /// refused.
    #[track_caller]
    pub fn try_shared(&self) -> Option<SuxShared<'_, C, M, P>> {
        self.lock.try_acquire_shared().then(|| SuxShared::new(self))
    }

    /// Acquires the latch in update mode, waiting as long as it takes. Returns at once to the owner.
    #[track_caller]
    pub fn update(&self) -> SuxUpdate<'_, C, M, P> {
        if self.is_owned_by_caller() {
            self.add_hold(U);
        } else {
            self.lock.acquire_update();
            self.become_owner(Self::caller(), U);
        }
        SuxUpdate::new(self)
    }

    /// Acquires the latch in update mode if that needs no waiting.
    #[track_caller]
    pub fn try_update(&self) -> Option<SuxUpdate<'_, C, M, P>> {
        if self.is_owned_by_caller() {
            self.add_hold(U);
        } else if self.lock.try_acquire_update() {
            self.become_owner(Self::caller(), U);
        } else {
            return None;
        }
        Some(SuxUpdate::new(self))
    }

    /// Acquires the latch in exclusive mode, waiting as long as it takes. The owner of an update waits for
    /// the readers to leave; it must not be one of them itself.
    #[track_caller]
    pub fn exclusive(&self) -> SuxExclusive<'_, C, M, P> {
        if self.is_owned_by_caller() {
            if self.holds.load(Relaxed) & X_HOLDS == 0 {
                // SAFETY: the worker has holds of the update mode alone.
                unsafe { self.lock.update_to_exclusive() };
            }
            self.add_hold(X);
        } else {
            self.lock.acquire_exclusive();
            self.become_owner(Self::caller(), X);
        }
        SuxExclusive::new(self)
    }

    /// Acquires the latch in exclusive mode if that needs no waiting.
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<SuxExclusive<'_, C, M, P>> {
        if self.is_owned_by_caller() {
            if self.holds.load(Relaxed) & X_HOLDS == 0 && !self.lock.try_update_to_exclusive() {
                return None;
            }
            self.add_hold(X);
        } else if self.lock.try_acquire_exclusive() {
            self.become_owner(Self::caller(), X);
        } else {
            return None;
        }
        Some(SuxExclusive::new(self))
    }

    /// Acquires the latch in update mode on behalf of an I/O: any thread may drop the guard. Readers are
    /// admitted.
    #[track_caller]
    pub fn update_for_io(&self) -> SuxUpdateForIo<'_, C, M, P> {
        self.refuse_recursion();
        self.lock.acquire_update();
        self.lock.forget_holder();
        self.become_owner(FOR_IO, U);
        SuxUpdateForIo::new(self)
    }

    /// Acquires the latch in exclusive mode on behalf of an I/O: any thread may drop the guard.
    #[track_caller]
    pub fn exclusive_for_io(&self) -> SuxExclusiveForIo<'_, C, M, P> {
        self.refuse_recursion();
        self.lock.acquire_exclusive();
        self.lock.forget_holder();
        self.become_owner(FOR_IO, X);
        SuxExclusiveForIo::new(self)
    }

    /// True if the calling worker holds the latch in update or exclusive mode.
    pub fn is_owned_by_caller(&self) -> bool {
        // O1.
        self.owner.load(Relaxed) == Self::caller()
    }

    /// True if the latch is held for an I/O. Out of date on return.
    pub fn is_held_for_io(&self) -> bool {
        self.owner.load(Relaxed) == FOR_IO
    }

    /// True if the latch is held in any mode. Out of date on return.
    pub fn is_held(&self) -> bool {
        self.lock.is_held()
    }

    fn caller() -> u32 {
        M::worker().0 + 1
    }

    fn become_owner(&self, owner: u32, hold: u32) {
        self.holds.store(hold, Relaxed);
        self.owner.store(owner, Relaxed);
    }

    fn add_hold(&self, hold: u32) {
        let holds = self.holds.load(Relaxed);
        let of_this_mode = if hold == X { holds & X_HOLDS } else { holds / U };
        assert!(
            of_this_mode < X_HOLDS,
            "latch {} is acquired {of_this_mode} times by one worker",
            C::class().name
        );
        self.holds.store(holds + hold, Relaxed);
    }

    /// Panics if the caller holds the latch: a hold for an I/O would wait for the caller's own hold without
    /// end.
    #[track_caller]
    fn refuse_recursion(&self) {
        assert!(
            !self.is_owned_by_caller(),
            "latch {} is wanted for an I/O by the worker that holds it: it would wait for itself",
            C::class().name
        );
    }

    // For the guards.

    /// # Safety
    /// The caller is a guard of the shared mode that ends.
    pub(super) unsafe fn release_shared(&self) {
        // SAFETY: the caller's.
        unsafe { self.lock.release_shared() };
    }

    /// # Safety
    /// The caller is a guard of the update mode that ends.
    pub(super) unsafe fn release_update(&self) {
        let holds = self.holds.load(Relaxed) - U;
        self.holds.store(holds, Relaxed);
        if holds == 0 {
            self.owner.store(NO_OWNER, Relaxed);
            // SAFETY: the owner's last hold, which is one of the update mode.
            unsafe { self.lock.release_update() };
        }
    }

    /// # Safety
    /// The caller is a guard of the exclusive mode that ends.
    pub(super) unsafe fn release_exclusive(&self) {
        let holds = self.holds.load(Relaxed) - X;
        self.holds.store(holds, Relaxed);
        if holds == 0 {
            self.owner.store(NO_OWNER, Relaxed);
            // SAFETY: the owner's last hold, which is one of the exclusive mode.
            unsafe { self.lock.release_exclusive() };
        } else if holds & X_HOLDS == 0 {
            self.lock.exclusive_to_update();
        }
    }

    /// One U hold becomes one X hold.
    ///
    /// # Safety
    /// The caller is a guard of the update mode that becomes one of the exclusive mode.
    pub(super) unsafe fn upgrade(&self) {
        let holds = self.holds.load(Relaxed);
        if holds & X_HOLDS == 0 {
            // SAFETY: the worker has holds of the update mode alone.
            unsafe { self.lock.update_to_exclusive() };
        }
        self.holds.store(holds - U + X, Relaxed);
    }

    /// As `upgrade`, if that needs no waiting.
    pub(super) fn try_upgrade(&self) -> bool {
        let holds = self.holds.load(Relaxed);
        let exclusive = holds & X_HOLDS != 0 || self.lock.try_update_to_exclusive();
        if exclusive {
            self.holds.store(holds - U + X, Relaxed);
        }
        exclusive
    }

    /// One X hold becomes one U hold.
    pub(super) fn downgrade(&self) {
        let holds = self.holds.load(Relaxed) - X + U;
        self.holds.store(holds, Relaxed);
        if holds & X_HOLDS == 0 {
            self.lock.exclusive_to_update();
        }
    }

    /// Gives the worker's only hold, `hold`, to an I/O; `false` if it has other holds.
    pub(super) fn try_give_to_io(&self, hold: u32) -> bool {
        let only = self.holds.load(Relaxed) == hold;
        if only {
            self.lock.forget_holder();
            self.owner.store(FOR_IO, Relaxed);
        }
        only
    }

    /// Gives the I/O's hold to the calling worker.
    #[track_caller]
    pub(super) fn claim(&self) {
        self.lock.remember_holder();
        self.owner.store(Self::caller(), Relaxed);
    }
}

/// The only hold of a guard that gives it to an I/O.
pub(super) const ONE_UPDATE: u32 = U;
pub(super) const ONE_EXCLUSIVE: u32 = X;

impl<C: ClassOf, M: Machine, P: SsuxProtocol> core::fmt::Debug for SuxLock<C, M, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let owner: &dyn core::fmt::Debug = match self.owner.load(Relaxed) {
            NO_OWNER => &"none",
            FOR_IO => &"an I/O",
            worker => &(worker - 1),
        };
        f.debug_struct("SuxLock")
            .field("lock", &self.lock)
            .field("owner", owner)
            .finish()
    }
}
