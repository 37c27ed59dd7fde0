//! A reader-writer latch whose readers meet at no line: `ReadBiasedLatch`.

use std::ffi::c_void;
use std::mem::MaybeUninit;

use clearway_latch::{ReadBiasedExclusive, ReadBiasedLatch, ReadBiasedOptions, ReadBiasedShared};

use crate::{at, clearway_class_t};

/// The bytes of a read-biased latch.
pub const CLEARWAY_READ_BIASED_SIZE: usize = 2304;
/// The alignment of a read-biased latch.
pub const CLEARWAY_READ_BIASED_ALIGNMENT: usize = 128;

/// A read-biased latch. A reader takes one of 16 slots, which lie on cache lines of their own; a writer takes all.
pub struct clearway_read_biased_t(ReadBiasedLatch);

/// A holder's mark, which it gives back with the latch.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_read_biased_held_t {
    words: [MaybeUninit<u64>; 2],
}

const _: () = {
    assert!(size_of::<clearway_read_biased_t>() == CLEARWAY_READ_BIASED_SIZE);
    assert!(align_of::<clearway_read_biased_t>() == CLEARWAY_READ_BIASED_ALIGNMENT);
    assert!(!std::mem::needs_drop::<clearway_read_biased_t>());
    assert!(size_of::<clearway_read_biased_held_t>() >= size_of::<ReadBiasedShared<'static>>());
    assert!(size_of::<clearway_read_biased_held_t>() >= size_of::<ReadBiasedExclusive<'static>>());
    assert!(align_of::<clearway_read_biased_held_t>() >= align_of::<ReadBiasedShared<'static>>());
    assert!(align_of::<clearway_read_biased_held_t>() >= align_of::<ReadBiasedExclusive<'static>>());
};

/// Makes an idle latch of `class` at `place`, and returns it. Nothing has to be called before the memory is used again.
///
/// # Safety
/// `place` leads to `CLEARWAY_READ_BIASED_SIZE` bytes that may be written, aligned to `CLEARWAY_READ_BIASED_ALIGNMENT`, which
/// no thread uses as a latch; `class` was made by `clearway_class_new`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_read_biased_init(
    place: *mut c_void,
    class: *const clearway_class_t,
) -> *mut clearway_read_biased_t {
    let place = place.cast::<clearway_read_biased_t>();
    debug_assert!(
        !place.is_null() && place.is_aligned(),
        "no place for a read-biased latch"
    );
    // SAFETY: the caller's.
    let class = unsafe { clearway_class_t::of(class) };
    let latch = ReadBiasedLatch::new(class, ReadBiasedOptions::default());
    // SAFETY: the caller's; size and alignment are checked above.
    unsafe { place.write(clearway_read_biased_t(latch)) };
    place
}

/// Takes the latch in shared mode, and writes the mark to `held`.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold; `held` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_read_biased_lock_shared(
    latch: *mut clearway_read_biased_t,
    held: *mut clearway_read_biased_held_t,
) {
    // SAFETY: the caller's; the sizes are checked above.
    unsafe { held.cast::<ReadBiasedShared<'_>>().write(at(latch).0.shared()) };
}

/// As `clearway_read_biased_lock_shared`, if that needs no waiting; false, and nothing is written, otherwise.
///
/// # Safety
/// As of `clearway_read_biased_lock_shared`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_read_biased_try_lock_shared(
    latch: *mut clearway_read_biased_t,
    held: *mut clearway_read_biased_held_t,
) -> bool {
    // SAFETY: the caller's.
    let guard = unsafe { at(latch) }.0.try_shared();
    // SAFETY: the caller's; the sizes are checked above.
    guard
        .map(|guard| unsafe { held.cast::<ReadBiasedShared<'_>>().write(guard) })
        .is_some()
}

/// Releases the latch that the thread holds in shared mode.
///
/// # Safety
/// `held` was written by a function that took the latch in shared mode in this thread, and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_read_biased_unlock_shared(held: *mut clearway_read_biased_held_t) {
    // SAFETY: the caller's.
    drop(unsafe { held.cast::<ReadBiasedShared<'_>>().read() });
}

/// Takes the latch in exclusive mode, and writes the mark to `held`.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold; `held` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_read_biased_lock_exclusive(
    latch: *mut clearway_read_biased_t,
    held: *mut clearway_read_biased_held_t,
) {
    // SAFETY: the caller's; the sizes are checked above.
    unsafe {
        held.cast::<ReadBiasedExclusive<'_>>()
            .write(at(latch).0.exclusive())
    };
}

/// As `clearway_read_biased_lock_exclusive`, if that needs no waiting; false, and nothing is written, otherwise.
///
/// # Safety
/// As of `clearway_read_biased_lock_exclusive`.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_read_biased_try_lock_exclusive(
    latch: *mut clearway_read_biased_t,
    held: *mut clearway_read_biased_held_t,
) -> bool {
    // SAFETY: the caller's.
    let guard = unsafe { at(latch) }.0.try_exclusive();
    // SAFETY: the caller's; the sizes are checked above.
    guard
        .map(|guard| unsafe { held.cast::<ReadBiasedExclusive<'_>>().write(guard) })
        .is_some()
}

/// Releases the latch that the thread holds in exclusive mode.
///
/// # Safety
/// `held` was written by a function that took the latch in exclusive mode in this thread, and was not given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_read_biased_unlock_exclusive(held: *mut clearway_read_biased_held_t) {
    // SAFETY: the caller's.
    drop(unsafe { held.cast::<ReadBiasedExclusive<'_>>().read() });
}
