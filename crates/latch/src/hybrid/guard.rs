//! The guards of a hybrid latch, and their transitions. A transition consumes the guard and returns the next
//! one.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Host, Machine};

use super::{HAS_WAITERS, HybridLatch, UPDATE};
use crate::class::{ClassOf, Unclassed};

/// A latch is released by the worker that acquired it.
type NotSend = PhantomData<*const ()>;

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the latch is released at once if its guard is dropped"]
        pub struct $name<'a, C: ClassOf = Unclassed, M: Machine = Host>(&'a HybridLatch<C, M>, NotSend);

        impl<'a, C: ClassOf, M: Machine> $name<'a, C, M> {
            #[inline]
            pub(super) fn new(latch: &'a HybridLatch<C, M>) -> Self {
                Self(latch, PhantomData)
            }
        }

        impl<C: ClassOf, M: Machine> Drop for $name<'_, C, M> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the guard holds the latch in that mode, and ends here.
                unsafe { self.0.$release() };
            }
        }
    };
}

guard! {
    /// Holds a [`HybridLatch`] in shared mode.
    HybridShared, release_shared
}
guard! {
    /// Holds a [`HybridLatch`] in update mode.
    HybridUpdate, release_update
}
guard! {
    /// Holds a [`HybridLatch`] in exclusive mode.
    HybridExclusive, release_exclusive
}

/// The latch of a guard that is replaced by another guard.
macro_rules! latch_of {
    ($guard:expr) => {
        core::mem::ManuallyDrop::new($guard).0
    };
}

impl<'a, C: ClassOf, M: Machine> HybridShared<'a, C, M> {
    /// To update mode, if no worker owns it. There is no waiting form: two readers would wait for each other
    /// forever.
    pub fn try_upgrade(self) -> Result<HybridUpdate<'a, C, M>, Self> {
        let latch = self.0;
        let mut word = latch.word.load(Relaxed);
        while word & UPDATE == 0 {
            match latch
                .word
                .compare_exchange_weak(word, word - 1 + UPDATE, Acquire, Relaxed)
            {
                Ok(_) => return Ok(HybridUpdate::new(latch_of!(self))),
                Err(found) => word = found,
            }
        }
        Err(self)
    }
}

impl<'a, C: ClassOf, M: Machine> HybridUpdate<'a, C, M> {
    /// To exclusive mode, after the readers inside have left.
    pub fn upgrade(self) -> HybridExclusive<'a, C, M> {
        // SAFETY: the guard holds the latch in update mode, and is consumed.
        unsafe { self.0.upgrade_update() };
        HybridExclusive::new(latch_of!(self))
    }

    /// To shared mode.
    pub fn downgrade(self) -> HybridShared<'a, C, M> {
        let latch = latch_of!(self);
        if latch.word.fetch_sub(UPDATE - 1, Release) & HAS_WAITERS != 0 {
            latch.wake_after_update();
        }
        HybridShared::new(latch)
    }
}

impl<'a, C: ClassOf, M: Machine> HybridExclusive<'a, C, M> {
    /// To update mode: readers are admitted, writers are not.
    pub fn downgrade_to_update(self) -> HybridUpdate<'a, C, M> {
        self.0.end_exclusive(UPDATE);
        HybridUpdate::new(latch_of!(self))
    }

    /// To shared mode.
    pub fn downgrade_to_shared(self) -> HybridShared<'a, C, M> {
        self.0.end_exclusive(1);
        HybridShared::new(latch_of!(self))
    }
}
