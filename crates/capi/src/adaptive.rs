//! A reader-writer latch that turns read-biased while that pays: `AdaptiveLatch`.

use std::mem::MaybeUninit;

use clearway_latch::{AdaptiveExclusive, AdaptiveLatch, AdaptiveShared};

use crate::{at, clearway_class_t};

/// An adaptive latch. It is 2,176 bytes, on cache lines of its own.
pub struct clearway_adaptive_t(AdaptiveLatch);

/// A holder's mark, which it gives back with the latch.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_adaptive_held_t {
    words: [MaybeUninit<u64>; 2],
}

const _: () = {
    assert!(size_of::<clearway_adaptive_held_t>() == size_of::<AdaptiveShared<'static>>());
    assert!(size_of::<clearway_adaptive_held_t>() == size_of::<AdaptiveExclusive<'static>>());
    assert!(align_of::<clearway_adaptive_held_t>() >= align_of::<AdaptiveShared<'static>>());
    assert!(align_of::<clearway_adaptive_held_t>() >= align_of::<AdaptiveExclusive<'static>>());
};

/// A new latch of `class`; freed by `clearway_adaptive_free`.
///
/// # Safety
/// `class` was made by `clearway_class_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_adaptive_new(class: *const clearway_class_t) -> *mut clearway_adaptive_t {
    // SAFETY: the caller's.
    let class = unsafe { clearway_class_t::of(class) };
    Box::into_raw(Box::new(clearway_adaptive_t(AdaptiveLatch::new(class))))
}

/// Frees a latch.
///
/// # Safety
/// `latch` is NULL or was made by `clearway_adaptive_new`; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_adaptive_free(latch: *mut clearway_adaptive_t) {
    if !latch.is_null() {
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(latch) });
    }
}

/// Takes the latch in shared mode, and writes the mark to `held`.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold; `held` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_adaptive_lock_shared(
    latch: *mut clearway_adaptive_t,
    held: *mut clearway_adaptive_held_t,
) {
    // SAFETY: the caller's; the sizes are checked above.
    unsafe { held.cast::<AdaptiveShared<'_>>().write(at(latch).0.shared()) };
}

/// Releases the latch that the thread holds in shared mode.
///
/// # Safety
/// `held` was written by `clearway_adaptive_lock_shared` in this thread, and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_adaptive_unlock_shared(held: *mut clearway_adaptive_held_t) {
    // SAFETY: the caller's.
    drop(unsafe { held.cast::<AdaptiveShared<'_>>().read() });
}

/// Takes the latch in exclusive mode, and writes the mark to `held`.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold; `held` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_adaptive_lock_exclusive(
    latch: *mut clearway_adaptive_t,
    held: *mut clearway_adaptive_held_t,
) {
    // SAFETY: the caller's; the sizes are checked above.
    unsafe {
        held.cast::<AdaptiveExclusive<'_>>()
            .write(at(latch).0.exclusive())
    };
}

/// Releases the latch that the thread holds in exclusive mode.
///
/// # Safety
/// `held` was written by `clearway_adaptive_lock_exclusive` in this thread, and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_adaptive_unlock_exclusive(held: *mut clearway_adaptive_held_t) {
    // SAFETY: the caller's.
    drop(unsafe { held.cast::<AdaptiveExclusive<'_>>().read() });
}
