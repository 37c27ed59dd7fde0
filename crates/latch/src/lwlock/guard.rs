//! Guards of an LwLock. A latch is released when its guard is dropped, also when a panic unwinds through it.
//! The latch works on after that; there is no poisoning.

use core::marker::PhantomData;

use clearway_machine::{Host, Machine};

use super::{LatchMode, LwLock};

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $mode:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the latch is released at once if its guard is dropped"]
        pub struct $name<'a, M: Machine = Host> {
            latch: &'a LwLock<M>,
            // A latch is released by the worker that acquired it.
            not_send: PhantomData<*const ()>,
        }

        impl<'a, M: Machine> $name<'a, M> {
            pub(crate) fn new(latch: &'a LwLock<M>) -> Self {
                Self { latch, not_send: PhantomData }
            }

            /// The latch this guard holds.
            pub fn latch(&self) -> &'a LwLock<M> {
                self.latch
            }
        }

        impl<M: Machine> Drop for $name<'_, M> {
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
