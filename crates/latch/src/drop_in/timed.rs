//! Attempts for a time, and until an instant, by std's clock.

use core::time::Duration;
use std::time::Instant;

use clearway_machine::{CoreU32, Machine};
use lock_api::{GuardNoSend, RawCondvarTimed, RawMutexTimed, RawRwLockTimed, RawRwLockUpgradeTimed};

use crate::class::ClassOf;
use crate::futex::{ConstState, HolderProtocol, SrwCondvar, SrwMutex, SsuxLock, SsuxProtocol};

/// The time until `instant`, none if it is past.
pub(super) fn time_until(instant: Instant) -> Duration {
    instant.saturating_duration_since(Instant::now())
}

// SAFETY: an attempt that succeeds is an acquisition like any other.
unsafe impl<C: ClassOf, M: Machine<U32 = CoreU32>, P: HolderProtocol> RawMutexTimed for SrwMutex<C, M, P> {
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.try_acquire_for(timeout).then(GuardNoSend::new)
    }

    #[track_caller]
    fn try_lock_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.try_lock_for(time_until(timeout))
    }
}

// SAFETY: a wait has the mutex again when it returns, whether its time was over or not.
unsafe impl<C: ClassOf, M: Machine<U32 = CoreU32>, P: HolderProtocol> RawCondvarTimed
    for SrwCondvar<C, M, P>
{
    fn checked_duration_to_instant(timeout: &Duration) -> Option<Instant> {
        Instant::now().checked_add(*timeout)
    }

    #[track_caller]
    unsafe fn wait_until(&self, mutex: &Self::RawMutex, _guard: &mut GuardNoSend, timeout: &Instant) -> bool {
        self.wait_with(mutex, Some(time_until(*timeout)))
    }
}

// SAFETY: as of `RawMutexTimed`.
unsafe impl<C: ClassOf, M: Machine, P: SsuxProtocol<State<M>: ConstState>> RawRwLockTimed
    for SsuxLock<C, M, P>
{
    type Duration = Duration;
    type Instant = Instant;

    #[track_caller]
    fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.try_acquire_shared_for(timeout).then(GuardNoSend::new)
    }

    #[track_caller]
    fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.try_lock_shared_for(time_until(timeout))
    }

    #[track_caller]
    fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.try_acquire_exclusive_for(timeout).then(GuardNoSend::new)
    }

    #[track_caller]
    fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.try_lock_exclusive_for(time_until(timeout))
    }
}

// SAFETY: as of `RawMutexTimed`; an upgrade that fails leaves the latch in update mode.
unsafe impl<C: ClassOf, M: Machine, P: SsuxProtocol<State<M>: ConstState>> RawRwLockUpgradeTimed
    for SsuxLock<C, M, P>
{
    #[track_caller]
    fn try_lock_upgradable_for(&self, timeout: Duration) -> Option<GuardNoSend> {
        self.try_acquire_update_for(timeout).then(GuardNoSend::new)
    }

    #[track_caller]
    fn try_lock_upgradable_until(&self, timeout: Instant) -> Option<GuardNoSend> {
        self.try_lock_upgradable_for(time_until(timeout))
    }

    unsafe fn try_upgrade_for(
        &self,
        guard: GuardNoSend,
        timeout: Duration,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: the caller holds the latch in update mode, as the trait demands.
        if unsafe { self.try_update_to_exclusive_for(timeout) } {
            Ok(guard)
        } else {
            Err(guard)
        }
    }

    unsafe fn try_upgrade_until(
        &self,
        guard: GuardNoSend,
        timeout: Instant,
    ) -> Result<GuardNoSend, GuardNoSend> {
        // SAFETY: as above.
        unsafe { self.try_upgrade_for(guard, time_until(timeout)) }
    }
}
