//! Acquisitions of an [`SsuxLock`] that are given up after a time.
//!
//! An attempt that fails has lasted the time that it was given, or longer, and leaves nothing behind: a registered worker
//! takes its registration back and passes on a wake-up that it may have consumed (H4 of the word); an exclusive for which
//! readers have not left admits new ones again. Until then it has excluded them, as any exclusive that waits does.
//!
//! No attempt waits for ever, so the order of latches is not checked. A time that the clock cannot say is no limit, and a
//! machine without a clock does not keep the time, as in `SrwMutex::try_exclusive_for`.

use core::time::Duration;

use clearway_machine::Machine;

use super::{SsuxExclusive, SsuxLock, SsuxShared, SsuxUpdate, SsuxWaits};
use crate::class::{ClassOf, Wait};
use crate::futex::ssux_state::{Readers, SsuxProtocol, SsuxState};
use crate::waiting::Waiting;

impl<C: ClassOf, M: Machine, P: SsuxProtocol> SsuxLock<C, M, P> {
    /// Acquires the latch in shared mode if that takes no longer than `timeout`.
    #[track_caller]
    pub fn try_shared_for(&self, timeout: Duration) -> Option<SsuxShared<'_, C, M, P>> {
        self.try_acquire_shared_for(timeout)
            .then(|| SsuxShared::new(self))
    }

    /// Acquires the latch in update mode if that takes no longer than `timeout`.
    #[track_caller]
    pub fn try_update_for(&self, timeout: Duration) -> Option<SsuxUpdate<'_, C, M, P>> {
        self.try_acquire_update_for(timeout)
            .then(|| SsuxUpdate::new(self))
    }

    /// Acquires the latch in exclusive mode if that takes no longer than `timeout`.
    #[track_caller]
    pub fn try_exclusive_for(&self, timeout: Duration) -> Option<SsuxExclusive<'_, C, M, P>> {
        self.try_acquire_exclusive_for(timeout)
            .then(|| SsuxExclusive::new(self))
    }

    #[track_caller]
    pub(crate) fn try_acquire_shared_for(&self, timeout: Duration) -> bool {
        self.try_acquire_shared()
            || self.wait_within(Wait::Shared, timeout, |waiting| self.state.enter_slow(waiting))
    }

    /// As [`acquire_shared_recursive`](Self::acquire_shared_recursive), if that takes no longer than `timeout`. Returns whether
    /// it did so.
    #[track_caller]
    pub fn try_acquire_shared_recursive_for(&self, timeout: Duration) -> bool {
        self.try_acquire_shared_recursive()
            || self.wait_within(Wait::Shared, timeout, |waiting| {
                self.state.enter_recursive_slow(waiting)
            })
    }

    #[track_caller]
    pub(crate) fn try_acquire_update_for(&self, timeout: Duration) -> bool {
        self.try_acquire_update()
            || self.wait_within(Wait::Update, timeout, |waiting| self.state.take_update(waiting))
    }

    #[track_caller]
    pub(crate) fn try_acquire_exclusive_for(&self, timeout: Duration) -> bool {
        self.try_acquire_exclusive()
            || self.wait_within(Wait::Exclusive, timeout, |waiting| {
                self.state.take_exclusive_slow(waiting)
            })
    }

    /// From update mode, which the caller holds, to exclusive mode, if the readers inside leave within `timeout`. Returns
    /// whether they did; otherwise the latch is held in update mode as before.
    ///
    /// # Safety
    /// The caller holds the latch in update mode, without a guard or by one that it goes by no longer.
    #[track_caller]
    pub(crate) unsafe fn try_update_to_exclusive_for(&self, timeout: Duration) -> bool {
        if self.state.update_to_exclusive() == Readers::None {
            return true;
        }
        let mut waiting = self.begin_within(Wait::Exclusive, timeout);
        let drained = self.state.drain(&mut waiting);
        waiting.finish::<M>();
        drained
    }

    #[track_caller]
    fn begin_within(&self, mode: Wait, timeout: Duration) -> Waiting {
        Waiting::begin_within::<M>(C::class(), mode, self.address(), timeout)
    }

    #[cold]
    #[track_caller]
    fn wait_within(&self, mode: Wait, timeout: Duration, wait: impl FnOnce(&mut Waiting) -> bool) -> bool {
        let mut waiting = self.begin_within(mode, timeout);
        let acquired = wait(&mut waiting);
        waiting.finish::<M>();
        if acquired {
            self.note_acquired(mode);
        }
        acquired
    }
}

impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> SsuxUpdate<'a, C, M, P> {
    /// Becomes exclusive if the readers inside leave within `timeout`; the update guard back otherwise.
    #[track_caller]
    pub fn try_exclusive_for(self, timeout: Duration) -> Result<SsuxExclusive<'a, C, M, P>, Self> {
        let latch = self.into_latch();
        // SAFETY: the guard held the latch in update mode, and was consumed.
        if unsafe { latch.try_update_to_exclusive_for(timeout) } {
            Ok(SsuxExclusive::new(latch))
        } else {
            Err(Self::new(latch))
        }
    }
}
