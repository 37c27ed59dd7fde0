//! The queued reader-writer latch with wait events and counts: `LwLock`.

use std::mem::forget;

use clearway_latch::{LatchMode, LwLock, LwLockFairnessVariant, LwLockOptions, LwLockVariant};
use clearway_machine::CoreU64;

use crate::{at, clearway_class_t};

/// A queued reader-writer latch. Made by `clearway_lwlock_init`.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_lwlock_t {
    words: [u64; 3],
}

const _: () = {
    assert!(size_of::<clearway_lwlock_t>() == size_of::<LwLock>());
    assert!(align_of::<clearway_lwlock_t>() >= align_of::<LwLock>());
    assert!(size_of::<CoreU64>() == size_of::<u64>() && align_of::<CoreU64>() <= align_of::<u64>());
};

/// The mode in which a latch is held.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum clearway_mode_t {
    /// With others that hold it shared.
    CLEARWAY_SHARED = 0,
    /// Alone.
    CLEARWAY_EXCLUSIVE = 1,
}

/// A worker that finds the latch taken: its way to wait, and its turn.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum clearway_lwlock_variant_t {
    /// Polls, then queues by one compare-and-swap. Newcomers may pass those that sleep.
    CLEARWAY_LWLOCK_SINGLE_CAS = 0,
    /// Queues, looks again, and leaves the queue if the latch is free by then: PostgreSQL's way.
    CLEARWAY_LWLOCK_QUEUED = 1,
    /// As `CLEARWAY_LWLOCK_SINGLE_CAS`, until a sleeper has waited for a millisecond: it has the next turn.
    CLEARWAY_LWLOCK_HAND_OVER = 2,
    /// As `CLEARWAY_LWLOCK_HAND_OVER`, and none passes a writer that claims the latch.
    CLEARWAY_LWLOCK_WRITER_CLAIMS = 3,
}

/// # Safety
/// `latch` leads to a latch that was made.
#[inline(always)]
unsafe fn lwlock_at<'a>(latch: *mut clearway_lwlock_t) -> &'a LwLock {
    // SAFETY: of the same form, as is checked above.
    unsafe { at(latch.cast_const().cast()) }
}

/// # Safety
/// `variable` leads to a number that is changed by this library's functions alone.
pub(crate) unsafe fn variable_at<'a>(variable: *mut u64) -> &'a CoreU64 {
    // SAFETY: of the same form, as is checked above.
    unsafe { at(variable.cast_const().cast()) }
}

pub(crate) fn mode_of(mode: clearway_mode_t) -> LatchMode {
    match mode {
        clearway_mode_t::CLEARWAY_SHARED => LatchMode::Shared,
        clearway_mode_t::CLEARWAY_EXCLUSIVE => LatchMode::Exclusive,
    }
}

/// Makes an idle latch of `class` at `latch`.
///
/// # Safety
/// `latch` may be written, and no thread uses a latch there; `class` was made by `clearway_class_new`; `variant` is one of
/// the names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_lwlock_init(
    latch: *mut clearway_lwlock_t,
    class: *const clearway_class_t,
    variant: clearway_lwlock_variant_t,
) {
    // SAFETY: the caller's.
    let class = unsafe { clearway_class_t::of(class) };
    let (algorithm, fairness) = match variant {
        clearway_lwlock_variant_t::CLEARWAY_LWLOCK_SINGLE_CAS => {
            (LwLockVariant::SingleCas, LwLockFairnessVariant::Barging)
        }
        clearway_lwlock_variant_t::CLEARWAY_LWLOCK_QUEUED => {
            (LwLockVariant::Queued, LwLockFairnessVariant::Barging)
        }
        clearway_lwlock_variant_t::CLEARWAY_LWLOCK_HAND_OVER => {
            (LwLockVariant::SingleCas, LwLockFairnessVariant::HandOver)
        }
        clearway_lwlock_variant_t::CLEARWAY_LWLOCK_WRITER_CLAIMS => {
            (LwLockVariant::SingleCas, LwLockFairnessVariant::WriterClaims)
        }
    };
    let options = LwLockOptions {
        algorithm,
        fairness,
        ..LwLockOptions::default()
    };
    // SAFETY: the caller's; the sizes are checked above.
    unsafe { latch.cast::<LwLock>().write(LwLock::new(class, options)) };
}

/// Takes the latch, and waits as long as that takes.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold; `mode` is one of the names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_lwlock_acquire(latch: *mut clearway_lwlock_t, mode: clearway_mode_t) {
    // SAFETY: the caller's.
    unsafe { lwlock_at(latch) }.acquire(mode_of(mode));
}

/// Takes the latch if that needs no waiting; whether it did.
///
/// # Safety
/// `latch` leads to a latch; `mode` is one of the names.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_lwlock_try_acquire(
    latch: *mut clearway_lwlock_t,
    mode: clearway_mode_t,
) -> bool {
    // SAFETY: the caller's.
    unsafe { lwlock_at(latch) }.try_acquire(mode_of(mode))
}

/// Releases the latch.
///
/// # Safety
/// The thread holds the latch in `mode`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_lwlock_release(latch: *mut clearway_lwlock_t, mode: clearway_mode_t) {
    // SAFETY: the caller's.
    unsafe { lwlock_at(latch).release(mode_of(mode)) };
}

/// Takes the latch exclusively, or sleeps until a holder has released it and returns false without it. For work that one
/// thread does for all: the others see whether theirs is done, and call again if not.
///
/// # Safety
/// `latch` leads to a latch, which the thread does not hold.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_lwlock_acquire_or_wait(latch: *mut clearway_lwlock_t) -> bool {
    // SAFETY: the caller's.
    let held = unsafe { lwlock_at(latch) }.acquire_or_wait();
    // Released by `clearway_lwlock_release`.
    held.map(forget).is_some()
}

/// Waits until no thread holds the latch exclusively, or `variable` differs from `old`: then its value is written to
/// `value` and the answer is true. A variable is changed by the holder of its latch alone.
///
/// # Safety
/// `latch` leads to a latch, `variable` to a number that is changed by `clearway_lwlock_update_var` alone; `value` may be
/// written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_lwlock_wait_for_var(
    latch: *mut clearway_lwlock_t,
    variable: *mut u64,
    old: u64,
    value: *mut u64,
) -> bool {
    // SAFETY: the caller's.
    let (latch, variable) = unsafe { (lwlock_at(latch), variable_at(variable)) };
    match latch.wait_for_var(variable, old) {
        Ok(()) => false,
        Err(found) => {
            // SAFETY: the caller's.
            unsafe { value.write(found) };
            true
        }
    }
}

/// Sets `variable` and wakes the threads that wait for it.
///
/// # Safety
/// The thread holds the latch exclusively; `variable` is as for `clearway_lwlock_wait_for_var`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_lwlock_update_var(
    latch: *mut clearway_lwlock_t,
    variable: *mut u64,
    value: u64,
) {
    // SAFETY: the caller's.
    let (latch, variable) = unsafe { (lwlock_at(latch), variable_at(variable)) };
    latch.update_var(variable, value);
}
