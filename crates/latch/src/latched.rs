//! A latch together with the data it protects. The latch is a type parameter, so that the data's owner can
//! choose it; [`Latched`] fixes it to the LwLock.

use core::ops::{Deref, DerefMut};

use clearway_machine::{CoreData, DataCell, Host, Machine};

use crate::biased::{AdaptiveExclusive, AdaptiveLatch, AdaptiveShared};
use crate::biased::{ReadBiasedExclusive, ReadBiasedLatch, ReadBiasedShared};
use crate::class::LatchClass;
use crate::lwlock::LwLock;
use crate::lwlock::guard::{LwLockExclusive, LwLockShared};
use crate::lwlock::options::LwLockOptions;

/// A latch with a shared and an exclusive mode.
///
/// # Safety
/// While an exclusive guard lives, no other guard of the latch lives. What was done under one guard is
/// visible under the next guard that excludes it.
pub unsafe trait ReaderWriterLatch: Send + Sync {
    /// The machine it runs on.
    type Machine: Machine;
    /// A guard of the shared mode.
    type Shared<'a>
    where
        Self: 'a;
    /// A guard of the exclusive mode.
    type Exclusive<'a>
    where
        Self: 'a;

    /// Acquires the latch in shared mode, waiting as long as it takes.
    fn shared(&self) -> Self::Shared<'_>;
    /// Acquires the latch in exclusive mode, waiting as long as it takes.
    fn exclusive(&self) -> Self::Exclusive<'_>;
    /// Acquires the latch in shared mode if that needs no waiting.
    fn try_shared(&self) -> Option<Self::Shared<'_>>;
    /// Acquires the latch in exclusive mode if that needs no waiting.
    fn try_exclusive(&self) -> Option<Self::Exclusive<'_>>;
    /// True if the latch is held at this instant, for assertions.
    fn is_held(&self) -> bool;
}

macro_rules! reader_writer_latch {
    ({$($parameters:tt)*} $latch:ty, $shared:ty, $exclusive:ty) => {
        // SAFETY: the latch's own rules say this; the loom tests check them.
        unsafe impl<$($parameters)* M: Machine> ReaderWriterLatch for $latch {
            type Machine = M;
            type Shared<'a> = $shared;
            type Exclusive<'a> = $exclusive;

            #[inline]
            #[track_caller]
            fn shared(&self) -> Self::Shared<'_> {
                self.shared()
            }
            #[inline]
            #[track_caller]
            fn exclusive(&self) -> Self::Exclusive<'_> {
                self.exclusive()
            }
            #[inline]
            #[track_caller]
            fn try_shared(&self) -> Option<Self::Shared<'_>> {
                self.try_shared()
            }
            #[inline]
            #[track_caller]
            fn try_exclusive(&self) -> Option<Self::Exclusive<'_>> {
                self.try_exclusive()
            }
            #[inline]
            fn is_held(&self) -> bool {
                self.is_held()
            }
        }
    };
}

reader_writer_latch!({} LwLock<M>, LwLockShared<'a, M>, LwLockExclusive<'a, M>);
reader_writer_latch!(
    {const K: usize,} ReadBiasedLatch<K, M>,
    ReadBiasedShared<'a, K, M>,
    ReadBiasedExclusive<'a, K, M>
);
reader_writer_latch!(
    {const K: usize,} AdaptiveLatch<K, M>,
    AdaptiveShared<'a, K, M>,
    AdaptiveExclusive<'a, K, M>
);

/// Data of type `T` behind an [`LwLock`].
pub type Latched<T, M = Host> = LatchedBy<LwLock<M>, T>;
/// Shared access to [`Latched`] data.
pub type LatchedShared<'a, T, M = Host> = LatchedByShared<'a, LwLock<M>, T>;
/// Exclusive access to [`Latched`] data.
pub type LatchedExclusive<'a, T, M = Host> = LatchedByExclusive<'a, LwLock<M>, T>;

/// Data of type `T` behind a latch of type `L`.
pub struct LatchedBy<L: ReaderWriterLatch, T: 'static> {
    latch: L,
    data: <L::Machine as Machine>::Data<T>,
}

// SAFETY: the data is reached only through guards, which the latch grants either to one exclusive holder or
// to shared holders. So sharing a `LatchedBy` requires of T what sharing an RwLock requires.
unsafe impl<L: ReaderWriterLatch, T: Send + Sync> Sync for LatchedBy<L, T> {}
// SAFETY: sending a `LatchedBy` sends its T.
unsafe impl<L: ReaderWriterLatch, T: Send> Send for LatchedBy<L, T> {}

impl<T, M: Machine> Latched<T, M> {
    /// `value` behind an idle LwLock of `class`.
    pub fn new(class: &'static LatchClass, options: impl Into<LwLockOptions>, value: T) -> Self {
        Self::with_latch(LwLock::new(class, options), value)
    }
}

impl<T> Latched<T> {
    /// `value` behind an idle LwLock of `class` in a static.
    pub const fn in_static(class: &'static LatchClass, options: LwLockOptions, value: T) -> Self {
        Self {
            latch: LwLock::in_static(class, options),
            data: CoreData::new_const(value),
        }
    }
}

impl<L: ReaderWriterLatch<Machine = Host>, T> LatchedBy<L, T> {
    /// As [`with_latch`](Self::with_latch), in a static.
    pub const fn in_static_with(latch: L, value: T) -> Self {
        Self {
            latch,
            data: CoreData::new_const(value),
        }
    }
}

impl<L: ReaderWriterLatch, T> LatchedBy<L, T> {
    /// `value` behind `latch`, which is idle.
    pub fn with_latch(latch: L, value: T) -> Self {
        Self {
            latch,
            data: DataCell::new(value),
        }
    }

    /// Acquires the latch in shared mode.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> LatchedByShared<'_, L, T> {
        self.shared_behind(self.latch.shared())
    }

    /// Acquires the latch in shared mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_shared(&self) -> Option<LatchedByShared<'_, L, T>> {
        Some(self.shared_behind(self.latch.try_shared()?))
    }

    /// Acquires the latch in exclusive mode.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> LatchedByExclusive<'_, L, T> {
        self.exclusive_behind(self.latch.exclusive())
    }

    /// Acquires the latch in exclusive mode if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<LatchedByExclusive<'_, L, T>> {
        Some(self.exclusive_behind(self.latch.try_exclusive()?))
    }

    #[inline]
    #[track_caller]
    fn shared_behind<'a>(&'a self, guard: L::Shared<'a>) -> LatchedByShared<'a, L, T> {
        LatchedByShared {
            pointer: self.data.with(|pointer| pointer),
            _guard: guard,
        }
    }

    #[inline]
    #[track_caller]
    fn exclusive_behind<'a>(&'a self, guard: L::Exclusive<'a>) -> LatchedByExclusive<'a, L, T> {
        LatchedByExclusive {
            pointer: self.data.with_mut(|pointer| pointer),
            _guard: guard,
        }
    }

    /// The data, while no guard exists.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `&mut self` excludes every guard.
        unsafe { &mut *self.data.with_mut(|pointer| pointer) }
    }

    /// The latch without the data.
    ///
    /// Safe code can acquire it, and then the data is out of reach; it cannot release what a guard holds:
    ///
    /// ```compile_fail,E0133
    /// use clearway_latch::{LatchMode, Latched, LwLockVariant, LatchClass};
    /// use clearway_machine::WaitEvent;
    ///
    /// static CLASS: LatchClass = LatchClass::new("accounts", WaitEvent::UserLatch, 0);
    /// let accounts: Latched<u64> = Latched::new(&CLASS, LwLockVariant::SingleCas, 7);
    /// let first = accounts.exclusive();
    /// accounts.latch().release(LatchMode::Exclusive); // would let a second exclusive guard in beside `first`
    /// let second = accounts.exclusive();
    /// ```
    pub fn latch(&self) -> &L {
        &self.latch
    }
}

impl<L: ReaderWriterLatch + core::fmt::Debug, T> core::fmt::Debug for LatchedBy<L, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LatchedBy")
            .field("latch", &self.latch)
            .finish_non_exhaustive()
    }
}

/// Shared access to [`LatchedBy`] data.
pub struct LatchedByShared<'a, L: ReaderWriterLatch + 'a, T> {
    pointer: *const T,
    _guard: L::Shared<'a>,
}

impl<L: ReaderWriterLatch, T> Deref for LatchedByShared<'_, L, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the latch in shared mode, so no worker writes; the data lives as long as
        // the latch.
        unsafe { &*self.pointer }
    }
}

impl<L: ReaderWriterLatch, T: core::fmt::Debug> core::fmt::Debug for LatchedByShared<'_, L, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("LatchedByShared").field(&**self).finish()
    }
}

/// Exclusive access to [`LatchedBy`] data.
pub struct LatchedByExclusive<'a, L: ReaderWriterLatch + 'a, T> {
    pointer: *mut T,
    _guard: L::Exclusive<'a>,
}

impl<L: ReaderWriterLatch, T> Deref for LatchedByExclusive<'_, L, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the latch exclusively.
        unsafe { &*self.pointer }
    }
}

impl<L: ReaderWriterLatch, T> DerefMut for LatchedByExclusive<'_, L, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the latch exclusively, and `&mut self` makes this the only reference
        // through it.
        unsafe { &mut *self.pointer }
    }
}

impl<L: ReaderWriterLatch, T: core::fmt::Debug> core::fmt::Debug for LatchedByExclusive<'_, L, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("LatchedByExclusive").field(&**self).finish()
    }
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<LatchedBy<LwLock<Host>, u64>>() == 32);
