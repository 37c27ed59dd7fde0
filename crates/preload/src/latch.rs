//! The latches that may stand under a mutex, behind one contract.
//!
//! Only latches that are idle when their bytes are zero, fit into a mutex, and can be released so that the next holder may
//! free them (L3). An `SsuxLock` in two words cannot be released so; an `LwLock` has a list of waiters, so it needs a worker's number of each thread.

use core::time::Duration;

use clearway_latch::lock_api::{RawMutex, RawMutexTimed, RawRwLock, RawRwLockTimed};
use clearway_latch::{
    CasLoop, ClassOf, FetchAddBts, HolderProtocol, LatchClass, SingleWake, SrwCondvar, SrwMutex, SsuxLock,
};
use clearway_machine::{Bare, WaitEvent};

/// The class of all latches here.
#[derive(Debug)]
pub(crate) struct Preloaded;

impl ClassOf for Preloaded {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass = LatchClass::new("preloaded", WaitEvent::UserLatch, 0);
        &CLASS
    }
}

pub(crate) type FetchAdd = SrwMutex<Preloaded, Bare, FetchAddBts>;
pub(crate) type WakesOne = SrwMutex<Preloaded, Bare, SingleWake>;
pub(crate) type Cas = SrwMutex<Preloaded, Bare, CasLoop>;
pub(crate) type Ssux = SsuxLock<Preloaded, Bare>;
pub(crate) type Condvar = SrwCondvar<Preloaded, Bare, FetchAddBts>;

/// A latch that one thread holds at a time.
pub(crate) trait Exclusive {
    fn acquire(&self);
    fn try_acquire(&self) -> bool;
    fn try_acquire_for(&self, timeout: Duration) -> bool;
    fn is_held(&self) -> bool;
    /// Releases the latch; the last access to it (L3).
    ///
    /// # Safety
    /// The latch is held.
    unsafe fn release(&self);
}

impl<P: HolderProtocol> Exclusive for SrwMutex<Preloaded, Bare, P> {
    #[inline(always)]
    fn acquire(&self) {
        self.lock();
    }
    #[inline(always)]
    fn try_acquire(&self) -> bool {
        self.try_lock().is_some()
    }
    fn try_acquire_for(&self, timeout: Duration) -> bool {
        self.try_lock_for(timeout).is_some()
    }
    #[inline(always)]
    fn is_held(&self) -> bool {
        SrwMutex::is_held(self)
    }
    #[inline(always)]
    unsafe fn release(&self) {
        // SAFETY: the caller's.
        unsafe { self.release_to_be_freed() };
    }
}

impl Exclusive for Ssux {
    #[inline(always)]
    fn acquire(&self) {
        self.acquire_exclusive();
    }
    #[inline(always)]
    fn try_acquire(&self) -> bool {
        self.try_acquire_exclusive()
    }
    fn try_acquire_for(&self, timeout: Duration) -> bool {
        self.try_lock_exclusive_for(timeout).is_some()
    }
    #[inline(always)]
    fn is_held(&self) -> bool {
        self.is_locked()
    }
    #[inline(always)]
    unsafe fn release(&self) {
        // SAFETY: the caller's.
        unsafe { self.release_exclusive_to_be_freed() };
    }
}
