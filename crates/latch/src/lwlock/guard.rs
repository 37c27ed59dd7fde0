//! Guards of an LwLock. A latch is released when its guard is dropped, also when a panic unwinds through it.
//! The latch works on after that; there is no poisoning.

use core::marker::PhantomData;

use clearway_machine::{Host, Machine};

use super::{LatchMode, LwLock};
use crate::class::{ClassHandle, LatchClass};

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $mode:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the latch is released at once if its guard is dropped"]
        pub struct $name<'a, M: Machine = Host, K: ClassHandle = &'static LatchClass> {
            latch: &'a LwLock<M, K>,
            // A latch is released by the worker that acquired it.
            not_send: PhantomData<*const ()>,
        }

        impl<'a, M: Machine, K: ClassHandle> $name<'a, M, K> {
            pub(crate) fn new(latch: &'a LwLock<M, K>) -> Self {
                Self { latch, not_send: PhantomData }
            }

            /// The latch this guard holds.
            pub fn latch(&self) -> &'a LwLock<M, K> {
                self.latch
            }
        }

        impl<M: Machine, K: ClassHandle> Drop for $name<'_, M, K> {
            #[inline]
            fn drop(&mut self) {
                // SAFETY: the guard holds the latch in that mode, and ends here.
                unsafe { self.latch.release($mode) };
            }
        }
    };
}

guard! {
    /// Holds an [`LwLock`] in shared mode.
    LwLockShared, LatchMode::Shared
}
guard! {
    /// Holds an [`LwLock`] in exclusive mode.
    LwLockExclusive, LatchMode::Exclusive
}
