//! Words of `core`: the atomics of every machine that is made of hardware.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::DataCell;
use crate::atomic::{forward_atomic_pointer, forward_atomic_word};

/// A 32-bit atomic of `Native` and [`Bare`](crate::Bare).
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct CoreU32(pub(crate) AtomicU32);

/// A 64-bit atomic of `Native` and [`Bare`](crate::Bare).
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct CoreU64(pub(crate) AtomicU64);

/// An atomic pointer of `Native` and [`Bare`](crate::Bare).
#[derive(Debug)]
#[repr(transparent)]
pub struct CorePtr<T>(AtomicPtr<T>);

/// A latch-guarded cell of `Native` and [`Bare`](crate::Bare).
#[derive(Debug)]
#[repr(transparent)]
pub struct CoreData<T>(UnsafeCell<T>);

impl CoreU32 {
    /// A word usable in statics.
    pub const fn new_const(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }
}

impl CoreU64 {
    /// A word usable in statics.
    pub const fn new_const(value: u64) -> Self {
        Self(AtomicU64::new(value))
    }
}

impl<T> CoreData<T> {
    /// Data usable in statics.
    pub const fn new_const(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
}

forward_atomic_word!(CoreU32, AtomicU32, u32);
forward_atomic_word!(CoreU64, AtomicU64, u64);
forward_atomic_pointer!(CorePtr, AtomicPtr::<T>);

// SAFETY: the cell's own pointer, which is the same as long as the cell stays where it is.
unsafe impl<T> DataCell<T> for CoreData<T> {
    fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }
    #[inline(always)]
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
        read(self.0.get())
    }
    #[inline(always)]
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
        write(self.0.get())
    }
}
