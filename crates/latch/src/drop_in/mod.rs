//! [`Mutex`], [`Condvar`] and [`RwLock`]: the futex latches as containers, for Rust programs without an engine.
//!
//! The containers are `lock_api`'s, so code written for `parking_lot`'s works with these: guards that map to
//! a part of the data, upgradable reads, downgrades, attempts for a time (`try_lock_for`, with std), `const`
//! constructors. A panic while a guard is held releases the latch and poisons nothing.
//!
//! | type | bytes beside the data | inside | unlike parking_lot's |
//! | --- | --- | --- | --- |
//! | `Mutex` | 4 | [`SrwMutex`] | no fair unlock |
//! | `Condvar` | 8 | [`SrwCondvar`] | a wait may end without a notification, as one of std's; the functions that notify return no count: always false and 0 |
//! | `RwLock` | 8 | [`SsuxLock`] | no fair unlock; for recursive reads the next one, as in parking_lot 0.13 |
//! | `RecursiveRwLock` | 8 | [`SsuxLock`] | no fair unlock |
//!
//! In debug builds a thread that acquires such a latch again, other than by a second read of a `RecursiveRwLock`, panics, naming
//! both places, where a release build would hang. A latch with a class of its own, for statistics and a rank, is
//! `lock_api::RwLock<SsuxLock<Accounts>, T>`.
//!
//! # Without an operating system
//! With `default-features = false` both are latches of the bare machine and need only atomics. A static works
//! as it does with std. A waiter polls until the holder releases, or sleeps once the program has called
//! [`Bare::install`](clearway_machine::Bare::install). There is then no check that a thread waits for itself.
//!
//! Guards are not `Send`: the list of held latches belongs to the thread.

mod recursive;
#[cfg(feature = "std")]
mod timed;

use clearway_machine::{CoreU32, Machine};
use lock_api::{
    GuardNoSend, RawCondvar, RawMutex, RawRwLock, RawRwLockDowngrade, RawRwLockUpgrade,
    RawRwLockUpgradeDowngrade,
};

pub use self::recursive::{RawRecursiveRwLock, RecursiveRwLock};
use crate::class::ClassOf;
use crate::futex::{ConstState, HolderProtocol, SrwCondvar, SrwMutex, SsuxLock, SsuxProtocol};

/// Data behind an [`SrwMutex`].
pub type Mutex<T> = lock_api::Mutex<SrwMutex, T>;
/// Holds a [`Mutex`].
pub type MutexGuard<'a, T> = lock_api::MutexGuard<'a, SrwMutex, T>;
/// Waits for what other holders of a [`Mutex`] change.
pub type Condvar = lock_api::Condvar<SrwCondvar>;
/// Data behind an [`SsuxLock`].
pub type RwLock<T> = lock_api::RwLock<SsuxLock, T>;
/// Holds an [`RwLock`] in shared mode.
pub type RwLockReadGuard<'a, T> = lock_api::RwLockReadGuard<'a, SsuxLock, T>;
/// Holds an [`RwLock`] in update mode.
pub type RwLockUpgradableReadGuard<'a, T> = lock_api::RwLockUpgradableReadGuard<'a, SsuxLock, T>;
/// Holds an [`RwLock`] in exclusive mode.
pub type RwLockWriteGuard<'a, T> = lock_api::RwLockWriteGuard<'a, SsuxLock, T>;

// SAFETY: the mutex admits one holder at a time (H1 to H3 of its word), and only a release lets the next one
// in.
unsafe impl<C: ClassOf, M: Machine<U32 = CoreU32>, P: HolderProtocol> RawMutex for SrwMutex<C, M, P> {
    // A new latch wherever it is named, as lock_api requires.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::const_idle();
    type Guard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock(&self) -> GuardNoSend {
        self.acquire();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock(&self) -> Option<GuardNoSend> {
        self.try_acquire().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock(&self, _guard: GuardNoSend) {
        self.release();
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }
}

// A wait may end without a notification, so the trait wants `false` and 0 of the notifications.
//
// SAFETY: a wait is atomic towards notifiers by C1 and C2 of the variable, and has the mutex again when it returns: between
// the release and that, no step of a machine panics.
unsafe impl<C: ClassOf, M: Machine<U32 = CoreU32>, P: HolderProtocol> RawCondvar for SrwCondvar<C, M, P> {
    // A new one wherever it is named, as lock_api requires.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::const_idle();
    type RawMutex = SrwMutex<C, M, P>;

    #[track_caller]
    unsafe fn wait(&self, mutex: &Self::RawMutex, _guard: &mut GuardNoSend) {
        self.wait_with(mutex, None);
    }

    fn notify_one(&self) -> bool {
        SrwCondvar::notify_one(self);
        false
    }

    fn notify_all(&self) -> usize {
        SrwCondvar::notify_all(self);
        0
    }
}

// SAFETY: an exclusive excludes every other holder (S2 of the lock), a shared every exclusive.
unsafe impl<C: ClassOf, M: Machine, P: SsuxProtocol<State<M>: ConstState>> RawRwLock for SsuxLock<C, M, P> {
    // A new latch wherever it is named, as lock_api requires.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self::const_idle();
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> GuardNoSend {
        self.acquire_shared();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.try_acquire_shared().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        // SAFETY: the caller holds the latch shared, as the trait demands.
        unsafe { self.release_shared() };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> GuardNoSend {
        self.acquire_exclusive();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.try_acquire_exclusive().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _guard: GuardNoSend) {
        // SAFETY: the caller holds the latch exclusively, as the trait demands.
        unsafe { self.release_exclusive() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.is_held()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.is_held_exclusively()
    }
}

// SAFETY: an exclusive that has become shared admits readers and no exclusive.
unsafe impl<C: ClassOf, M: Machine, P: SsuxProtocol<State<M>: ConstState>> RawRwLockDowngrade
    for SsuxLock<C, M, P>
{
    #[inline]
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        self.exclusive_to_shared();
        guard
    }
}

// SAFETY: an update admits readers, and neither another update nor an exclusive; upgraded, it is an
// exclusive.
unsafe impl<C: ClassOf, M: Machine, P: SsuxProtocol<State<M>: ConstState>> RawRwLockUpgrade
    for SsuxLock<C, M, P>
{
    type UpgradableGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_upgradable(&self) -> GuardNoSend {
        self.acquire_update();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_upgradable(&self) -> Option<GuardNoSend> {
        self.try_acquire_update().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_upgradable(&self, _guard: GuardNoSend) {
        // SAFETY: the caller holds the latch in update mode, as the trait demands.
        unsafe { self.release_update() };
    }

    #[inline]
    unsafe fn upgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        // SAFETY: the caller holds the latch in update mode, as the trait demands.
        unsafe { self.update_to_exclusive() };
        guard
    }

    #[inline]
    unsafe fn try_upgrade(&self, guard: GuardNoSend) -> Result<GuardNoSend, GuardNoSend> {
        if self.try_update_to_exclusive() {
            Ok(guard)
        } else {
            Err(guard)
        }
    }
}

// SAFETY: as above; neither step lets an exclusive in between.
unsafe impl<C: ClassOf, M: Machine, P: SsuxProtocol<State<M>: ConstState>> RawRwLockUpgradeDowngrade
    for SsuxLock<C, M, P>
{
    #[inline]
    unsafe fn downgrade_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        self.update_to_shared();
        guard
    }

    #[inline]
    unsafe fn downgrade_to_upgradable(&self, guard: GuardNoSend) -> GuardNoSend {
        self.exclusive_to_update();
        guard
    }
}
