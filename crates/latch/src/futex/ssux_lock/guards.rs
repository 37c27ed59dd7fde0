//! The guards of an [`SsuxLock`]. A transition consumes the guard and returns the next one; an attempt that
//! fails gives the guard back.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use clearway_machine::{Host, Machine};

use super::SsuxLock;
use crate::class::{ClassOf, Unclassed};
use crate::futex::in_one_word::OneWord;
use crate::futex::ssux_state::SsuxProtocol;

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $release:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the latch is released at once if its guard is dropped"]
        pub struct $name<'a, C: ClassOf = Unclassed, M: Machine = Host, P: SsuxProtocol = OneWord> {
            latch: &'a SsuxLock<C, M, P>,
            // A latch is released by the worker that acquired it.
            not_send: PhantomData<*const ()>,
        }

        impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> $name<'a, C, M, P> {
            pub(super) fn new(latch: &'a SsuxLock<C, M, P>) -> Self {
                Self { latch, not_send: PhantomData }
            }

            /// The latch this guard holds.
            pub fn latch(&self) -> &'a SsuxLock<C, M, P> {
                self.latch
            }

            /// The latch, still held, without its guard.
            pub(super) fn into_latch(self) -> &'a SsuxLock<C, M, P> {
                ManuallyDrop::new(self).latch
            }
        }

        impl<C: ClassOf, M: Machine, P: SsuxProtocol> Drop for $name<'_, C, M, P> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the guard holds the latch in that mode, and ends here.
                unsafe { self.latch.$release() };
            }
        }
    };
}

guard! {
    /// Holds an [`SsuxLock`] in shared mode.
    SsuxShared, release_shared
}
guard! {
    /// Holds an [`SsuxLock`] in update mode.
    SsuxUpdate, release_update
}
guard! {
    /// Holds an [`SsuxLock`] in exclusive mode.
    SsuxExclusive, release_exclusive
}

impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> SsuxShared<'a, C, M, P> {
    /// Becomes the updater if the latch has no owner; returns the shared guard otherwise. There is no waiting
    /// form: two waiting readers would wait for each other.
    pub fn try_update(self) -> Result<SsuxUpdate<'a, C, M, P>, Self> {
        if self.latch.try_shared_to_update() {
            Ok(SsuxUpdate::new(self.into_latch()))
        } else {
            Err(self)
        }
    }
}

impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> SsuxUpdate<'a, C, M, P> {
    /// Becomes exclusive: excludes new readers and waits for those inside. No worker can have written since
    /// the update began.
    #[track_caller]
    pub fn exclusive(self) -> SsuxExclusive<'a, C, M, P> {
        let latch = self.into_latch();
        // SAFETY: the guard held the latch in update mode, and was consumed.
        unsafe { latch.update_to_exclusive() };
        SsuxExclusive::new(latch)
    }

    /// Becomes exclusive if no reader is inside; the update guard back otherwise.
    pub fn try_exclusive(self) -> Result<SsuxExclusive<'a, C, M, P>, Self> {
        if self.latch.try_update_to_exclusive() {
            Ok(SsuxExclusive::new(self.into_latch()))
        } else {
            Err(self)
        }
    }

    /// Becomes one reader among others.
    pub fn shared(self) -> SsuxShared<'a, C, M, P> {
        let latch = self.into_latch();
        latch.update_to_shared();
        SsuxShared::new(latch)
    }
}

impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> SsuxExclusive<'a, C, M, P> {
    /// Admits readers.
    pub fn update(self) -> SsuxUpdate<'a, C, M, P> {
        let latch = self.into_latch();
        latch.exclusive_to_update();
        SsuxUpdate::new(latch)
    }

    /// Becomes one reader among others.
    pub fn shared(self) -> SsuxShared<'a, C, M, P> {
        let latch = self.into_latch();
        latch.exclusive_to_shared();
        SsuxShared::new(latch)
    }
}
