//! The guards of a [`SuxLock`]. Each is one hold of its worker. A transition consumes the guard and returns
//! the next one.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;

use clearway_machine::{Host, Machine};

use super::{ONE_EXCLUSIVE, ONE_UPDATE, SuxLock};
use crate::class::{ClassOf, Unclassed};
use crate::futex::in_one_word::OneWord;
use crate::futex::ssux_state::SsuxProtocol;

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $release:ident, $tied_to:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the latch is released at once if its guard is dropped"]
        pub struct $name<'a, C: ClassOf = Unclassed, M: Machine = Host, P: SsuxProtocol = OneWord> {
            latch: &'a SuxLock<C, M, P>,
            tied_to: PhantomData<$tied_to>,
        }

        impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> $name<'a, C, M, P> {
            pub(super) fn new(latch: &'a SuxLock<C, M, P>) -> Self {
                Self { latch, tied_to: PhantomData }
            }

            /// The latch this guard holds.
            pub fn latch(&self) -> &'a SuxLock<C, M, P> {
                self.latch
            }
        }

        impl<C: ClassOf, M: Machine, P: SsuxProtocol> Drop for $name<'_, C, M, P> {
            fn drop(&mut self) {
                // SAFETY: the guard is of that mode, and ends here.
                unsafe { self.latch.$release() };
            }
        }
    };
}

/// A guard of this kind is dropped by the worker that acquired it.
type OwningWorker = *const ();
/// A guard of this kind may be dropped by any thread.
type AnyThread = ();

guard! {
    /// Holds a [`SuxLock`] in shared mode.
    SuxShared, release_shared, OwningWorker
}
guard! {
    /// Holds a [`SuxLock`] in update mode; the worker may have other holds.
    SuxUpdate, release_update, OwningWorker
}
guard! {
    /// Holds a [`SuxLock`] in exclusive mode; the worker may have other holds.
    SuxExclusive, release_exclusive, OwningWorker
}
guard! {
    /// Holds a [`SuxLock`] in update mode until an I/O ends. The thread that completes the I/O drops it.
    SuxUpdateForIo, release_update, AnyThread
}
guard! {
    /// Holds a [`SuxLock`] in exclusive mode until an I/O ends. The thread that completes the I/O drops it.
    SuxExclusiveForIo, release_exclusive, AnyThread
}

impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> SuxUpdate<'a, C, M, P> {
    /// Becomes exclusive, waiting for the readers inside. The caller must not be one of them.
    pub fn exclusive(self) -> SuxExclusive<'a, C, M, P> {
        let latch = ManuallyDrop::new(self).latch;
        // SAFETY: the guard was of the update mode, and was consumed.
        unsafe { latch.upgrade() };
        SuxExclusive::new(latch)
    }

    /// Becomes exclusive if no reader is inside; the update guard back otherwise.
    pub fn try_exclusive(self) -> Result<SuxExclusive<'a, C, M, P>, Self> {
        if self.latch.try_upgrade() {
            Ok(SuxExclusive::new(ManuallyDrop::new(self).latch))
        } else {
            Err(self)
        }
    }

    /// Gives the hold to an I/O, if it is the worker's only one; the guard back otherwise.
    pub fn try_for_io(self) -> Result<SuxUpdateForIo<'a, C, M, P>, Self> {
        if self.latch.try_give_to_io(ONE_UPDATE) {
            Ok(SuxUpdateForIo::new(ManuallyDrop::new(self).latch))
        } else {
            Err(self)
        }
    }
}

impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> SuxExclusive<'a, C, M, P> {
    /// Becomes an update. Admits readers, unless the worker has other exclusive holds.
    pub fn update(self) -> SuxUpdate<'a, C, M, P> {
        let latch = ManuallyDrop::new(self).latch;
        latch.downgrade();
        SuxUpdate::new(latch)
    }

    /// Gives the hold to an I/O, if it is the worker's only one; the guard back otherwise.
    pub fn try_for_io(self) -> Result<SuxExclusiveForIo<'a, C, M, P>, Self> {
        if self.latch.try_give_to_io(ONE_EXCLUSIVE) {
            Ok(SuxExclusiveForIo::new(ManuallyDrop::new(self).latch))
        } else {
            Err(self)
        }
    }
}

impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> SuxUpdateForIo<'a, C, M, P> {
    /// The I/O has ended: the calling worker becomes the latch's owner.
    #[track_caller]
    pub fn claim(self) -> SuxUpdate<'a, C, M, P> {
        let latch = ManuallyDrop::new(self).latch;
        latch.claim();
        SuxUpdate::new(latch)
    }
}

impl<'a, C: ClassOf, M: Machine, P: SsuxProtocol> SuxExclusiveForIo<'a, C, M, P> {
    /// The I/O has ended: the calling worker becomes the latch's owner.
    #[track_caller]
    pub fn claim(self) -> SuxExclusive<'a, C, M, P> {
        let latch = ManuallyDrop::new(self).latch;
        latch.claim();
        SuxExclusive::new(latch)
    }
}
