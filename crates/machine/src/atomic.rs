//! The contract of a machine's atomics and latch-guarded cells.
//!
//! Constructors are run-time functions because loom and shuttle must register each location with the
//! execution that is being explored; `Native` compiles them to nothing.

use core::sync::atomic::Ordering;

/// One atomic integer of type `V` (`u32` or `u64`). The methods mean what those of `std::sync::atomic` mean.
///
/// # Safety
/// Unsafe code relies on it: a latch is as exclusive as its word is atomic. Each method is one step, at least as strongly
/// ordered as it is asked to be; all steps of a word have one order, in which each reads what the one before left; and
/// `new` makes a word of its own that holds `value`.
pub unsafe trait AtomicWord<V: Copy>: core::fmt::Debug + Send + Sync + 'static {
    /// A word holding `value`.
    fn new(value: V) -> Self;
    /// Reads the word.
    fn load(&self, order: Ordering) -> V;
    /// Writes the word.
    fn store(&self, value: V, order: Ordering);
    /// Writes `value`, returns what was there.
    fn swap(&self, value: V, order: Ordering) -> V;
    /// Writes `new` if the word equals `current`; `Err` carries what was found.
    fn compare_exchange(&self, current: V, new: V, success: Ordering, failure: Ordering) -> Result<V, V>;
    /// As [`compare_exchange`](Self::compare_exchange), but may fail although the word equals `current`.
    fn compare_exchange_weak(&self, current: V, new: V, success: Ordering, failure: Ordering)
    -> Result<V, V>;
    /// Adds (wrapping), returns the old value.
    fn fetch_add(&self, value: V, order: Ordering) -> V;
    /// Subtracts (wrapping), returns the old value.
    fn fetch_sub(&self, value: V, order: Ordering) -> V;
    /// Sets bits, returns the old value.
    fn fetch_or(&self, value: V, order: Ordering) -> V;
    /// Keeps bits, returns the old value.
    fn fetch_and(&self, value: V, order: Ordering) -> V;
}

/// One atomic pointer to `T`.
///
/// # Safety
/// As [`AtomicWord`]: what is read is what was stored, by steps in one order and with the order that is asked for.
pub unsafe trait AtomicPointer<T>: Send + Sync {
    /// A pointer cell holding `pointer`.
    fn new(pointer: *mut T) -> Self;
    /// Reads the pointer.
    fn load(&self, order: Ordering) -> *mut T;
    /// Writes the pointer.
    fn store(&self, pointer: *mut T, order: Ordering);
    /// Writes `pointer`, returns what was there.
    fn swap(&self, pointer: *mut T, order: Ordering) -> *mut T;
    /// Writes `new` if the cell equals `current`; `Err` carries what was found.
    fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T>;
}

/// Plain memory that a latch protects. Natively an `UnsafeCell`. Under loom every access is checked against
/// every concurrent one, so that a latch that admits two workers fails the test.
///
/// # Safety
/// Unsafe code reads and writes through what `with` and `with_mut` hand out. Each calls its closure once, with a pointer
/// to the value that `new` was given: the same for all calls, aligned, valid for reads and, of `with_mut`, for writes,
/// as long as the cell is neither moved nor dropped, also after the closure has returned. It keeps no reference to the
/// value itself.
pub unsafe trait DataCell<T> {
    /// A cell holding `value`.
    fn new(value: T) -> Self;
    /// Reads through a shared pointer. The caller holds the protecting latch in a mode that excludes writers.
    fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R;
    /// Writes through a unique pointer. The caller holds the protecting latch exclusively.
    fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R;
}

/// Implements [`AtomicWord`] by forwarding to inherent methods of the same names.
macro_rules! forward_atomic_word {
    ($wrapper:ty, $inner:path, $value:ty) => {
        // SAFETY: the inner word's own methods, with the orders as they are.
        unsafe impl $crate::AtomicWord<$value> for $wrapper {
            #[inline(always)]
            fn new(value: $value) -> Self {
                Self(<$inner>::new(value))
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }
            #[inline(always)]
            fn store(&self, value: $value, order: Ordering) {
                self.0.store(value, order)
            }
            #[inline(always)]
            fn swap(&self, value: $value, order: Ordering) -> $value {
                self.0.swap(value, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange(current, new, success, failure)
            }
            #[inline(always)]
            fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.0.compare_exchange_weak(current, new, success, failure)
            }
            #[inline(always)]
            fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_add(value, order)
            }
            #[inline(always)]
            fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_sub(value, order)
            }
            #[inline(always)]
            fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_or(value, order)
            }
            #[inline(always)]
            fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.0.fetch_and(value, order)
            }
        }
    };
}

/// Implements [`AtomicPointer`] by forwarding to inherent methods of the same names.
macro_rules! forward_atomic_pointer {
    ($wrapper:ident, $inner:ty) => {
        // SAFETY: the inner pointer's own methods, with the orders as they are.
        unsafe impl<T: 'static> $crate::AtomicPointer<T> for $wrapper<T> {
            #[inline(always)]
            fn new(pointer: *mut T) -> Self {
                Self(<$inner>::new(pointer))
            }
            #[inline(always)]
            fn load(&self, order: Ordering) -> *mut T {
                self.0.load(order)
            }
            #[inline(always)]
            fn store(&self, pointer: *mut T, order: Ordering) {
                self.0.store(pointer, order)
            }
            #[inline(always)]
            fn swap(&self, pointer: *mut T, order: Ordering) -> *mut T {
                self.0.swap(pointer, order)
            }
            #[inline(always)]
            fn compare_exchange(
                &self,
                current: *mut T,
                new: *mut T,
                success: Ordering,
                failure: Ordering,
            ) -> Result<*mut T, *mut T> {
                self.0.compare_exchange(current, new, success, failure)
            }
        }
    };
}

pub(crate) use {forward_atomic_pointer, forward_atomic_word};
