//! A latch together with the data it protects.

use core::ops::{Deref, DerefMut};

use clearway_machine::{DataCell, Host, Machine};

use crate::class::LatchClass;
use crate::guard::{LwLockExclusive, LwLockShared};
use crate::lwlock::LwLock;
use crate::options::LwLockOptions;

/// Data of type `T` behind an [`LwLock`].
pub struct Latched<T: 'static, M: Machine = Host> {
    latch: LwLock<M>,
    data: M::Data<T>,
}

// SAFETY: the data is reached only through guards, which the latch grants either to one exclusive holder or to shared
// holders; so sharing a `Latched` needs of T what sharing an RwLock needs.
unsafe impl<T: Send + Sync, M: Machine> Sync for Latched<T, M> {}
// SAFETY: sending a `Latched` sends its T.
unsafe impl<T: Send, M: Machine> Send for Latched<T, M> {}

impl<T, M: Machine> Latched<T, M> {
    /// `value` behind an idle latch of `class`.
    pub fn new(class: &'static LatchClass, options: impl Into<LwLockOptions>, value: T) -> Self {
        Self {
            latch: LwLock::new(class, options),
            data: M::Data::new(value),
        }
    }

    /// Acquires the latch in shared mode.
    #[inline]
    #[track_caller]
    pub fn shared(&self) -> LatchedShared<'_, T, M> {
        let guard = self.latch.shared();
        LatchedShared {
            pointer: self.data.with(|pointer| pointer),
            _guard: guard,
        }
    }

    /// Acquires the latch in exclusive mode.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> LatchedExclusive<'_, T, M> {
        let guard = self.latch.exclusive();
        LatchedExclusive {
            pointer: self.data.with_mut(|pointer| pointer),
            _guard: guard,
        }
    }

    /// Acquires the latch in exclusive mode if it can be had now.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<LatchedExclusive<'_, T, M>> {
        let guard = self.latch.try_exclusive()?;
        Some(LatchedExclusive {
            pointer: self.data.with_mut(|pointer| pointer),
            _guard: guard,
        })
    }

    /// The data, when nobody else can reach it.
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: `&mut self` excludes every guard.
        unsafe { &mut *self.data.with_mut(|pointer| pointer) }
    }

    /// The latch alone.
    pub fn latch(&self) -> &LwLock<M> {
        &self.latch
    }
}

impl<T, M: Machine> core::fmt::Debug for Latched<T, M> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Latched")
            .field("latch", &self.latch)
            .finish_non_exhaustive()
    }
}

/// Shared access to [`Latched`] data.
#[derive(Debug)]
pub struct LatchedShared<'a, T, M: Machine = Host> {
    pointer: *const T,
    _guard: LwLockShared<'a, M>,
}

impl<T, M: Machine> Deref for LatchedShared<'_, T, M> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the latch in shared mode, so nobody writes; the data lives as long as the latch.
        unsafe { &*self.pointer }
    }
}

/// Exclusive access to [`Latched`] data.
#[derive(Debug)]
pub struct LatchedExclusive<'a, T, M: Machine = Host> {
    pointer: *mut T,
    _guard: LwLockExclusive<'a, M>,
}

impl<T, M: Machine> Deref for LatchedExclusive<'_, T, M> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the latch exclusively.
        unsafe { &*self.pointer }
    }
}

impl<T, M: Machine> DerefMut for LatchedExclusive<'_, T, M> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the latch exclusively, and `&mut self` makes this the only reference through it.
        unsafe { &mut *self.pointer }
    }
}
