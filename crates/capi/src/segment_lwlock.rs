//! LwLocks between processes: `SegmentLwLock` of `clearway_latch::interprocess`.

use clearway_latch::LwLockFairnessVariant;
use clearway_latch::interprocess::{ClassNumber, SegmentLwLock};

use crate::lwlock::{mode_of, variable_at};
use crate::segment::{result_of, worker_at};
use crate::{at, clearway_mode_t, clearway_segment_result_t, clearway_segment_worker_t};

/// A reader-writer latch in a segment. Made by `clearway_segment_lwlock_init`, anywhere in the memory of
/// `clearway_segment_reserve`.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_segment_lwlock_t {
    words: [u32; 6],
}

const _: () = {
    assert!(size_of::<clearway_segment_lwlock_t>() == size_of::<SegmentLwLock>());
    assert!(align_of::<clearway_segment_lwlock_t>() == align_of::<SegmentLwLock>());
};

/// Workers that may pass those that wait for a latch in a segment.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum clearway_segment_fairness_t {
    /// All.
    CLEARWAY_SEGMENT_BARGING = 0,
    /// All, until a sleeper has waited for a millisecond: it has the next turn.
    CLEARWAY_SEGMENT_HAND_OVER = 1,
    /// As `CLEARWAY_SEGMENT_HAND_OVER`, and none passes a writer that claims the latch.
    CLEARWAY_SEGMENT_WRITER_CLAIMS = 2,
}

/// # Safety
/// `latch` leads to a latch that was made.
#[inline(always)]
unsafe fn lwlock_at<'a>(latch: *mut clearway_segment_lwlock_t) -> &'a SegmentLwLock {
    // SAFETY: of the same form, as is checked above.
    unsafe { at(latch.cast_const().cast()) }
}

/// Makes an idle latch of the class with this number.
///
/// # Safety
/// `latch` leads into memory that `clearway_segment_reserve` has taken, and no worker uses a latch there; `fairness` is one of
/// the names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_lwlock_init(
    latch: *mut clearway_segment_lwlock_t,
    class_number: u8,
    fairness: clearway_segment_fairness_t,
) {
    let fairness = match fairness {
        clearway_segment_fairness_t::CLEARWAY_SEGMENT_BARGING => LwLockFairnessVariant::Barging,
        clearway_segment_fairness_t::CLEARWAY_SEGMENT_HAND_OVER => LwLockFairnessVariant::HandOver,
        clearway_segment_fairness_t::CLEARWAY_SEGMENT_WRITER_CLAIMS => LwLockFairnessVariant::WriterClaims,
    };
    // SAFETY: the caller's; the sizes are checked above.
    unsafe { SegmentLwLock::make_at(latch.cast(), ClassNumber(class_number), fairness) };
}

/// Takes the latch, and waits as long as that takes.
///
/// # Safety
/// `worker` is the calling thread's, `latch` leads to a latch that it does not hold; `mode` is one of the names.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_lwlock_acquire(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_lwlock_t,
    mode: clearway_mode_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, latch) = unsafe { (worker_at(worker), lwlock_at(latch)) };
    result_of(worker.acquire(latch, mode_of(mode)))
}

/// Takes the latch if that needs no waiting; whether it did is written to `taken`.
///
/// # Safety
/// As of `clearway_segment_lwlock_acquire`; `taken` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_lwlock_try_acquire(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_lwlock_t,
    mode: clearway_mode_t,
    taken: *mut bool,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, latch) = unsafe { (worker_at(worker), lwlock_at(latch)) };
    let result = worker.try_acquire(latch, mode_of(mode));
    // SAFETY: the caller's.
    unsafe { taken.write(result == Ok(true)) };
    result_of(result.map(drop))
}

/// Releases the latch.
///
/// # Safety
/// `worker` is the calling thread's, and `latch` leads to a latch.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_lwlock_release(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_lwlock_t,
    mode: clearway_mode_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's; there are no guards in C.
    result_of(unsafe { worker_at(worker).release(lwlock_at(latch), mode_of(mode)) })
}

/// Takes the latch exclusively (`acquired`), or sleeps until a wake-up reaches the caller and returns without it. For work that
/// one worker does for all: the others see whether theirs is done, and call again if not.
///
/// # Safety
/// As of `clearway_segment_lwlock_acquire`; `acquired` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_lwlock_acquire_or_wait(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_lwlock_t,
    acquired: *mut bool,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, latch) = unsafe { (worker_at(worker), lwlock_at(latch)) };
    let result = worker.acquire_or_wait(latch);
    // SAFETY: the caller's.
    unsafe { acquired.write(result == Ok(true)) };
    result_of(result.map(drop))
}

/// Waits until no worker holds the latch exclusively, or `variable` differs from `old` (`changed`): then its value is written to
/// `value`. A variable is changed by the holder of its latch alone.
///
/// # Safety
/// `worker` is the calling thread's, `latch` leads to a latch, `variable` to a number in the segment that is changed by
/// `clearway_segment_lwlock_update_var` alone; `value` and `changed` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_lwlock_wait_for_var(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_lwlock_t,
    variable: *mut u64,
    old: u64,
    value: *mut u64,
    changed: *mut bool,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, latch) = unsafe { (worker_at(worker), lwlock_at(latch)) };
    // SAFETY: the caller's.
    let result = worker.wait_for_var(latch, unsafe { variable_at(variable) }, old);
    // SAFETY: the caller's.
    unsafe { changed.write(matches!(result, Ok(Some(_)))) };
    result_of(result.map(|found| {
        if let Some(found) = found {
            // SAFETY: the caller's.
            unsafe { value.write(found) };
        }
    }))
}

/// Sets `variable` and wakes the workers that wait for it. `CLEARWAY_SEGMENT_NOT_HELD` unless the caller holds the latch
/// exclusively: then nothing is set.
///
/// # Safety
/// `worker` is the calling thread's, `latch` leads to a latch; `variable` is as for `clearway_segment_lwlock_wait_for_var`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_lwlock_update_var(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_lwlock_t,
    variable: *mut u64,
    value: u64,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, latch) = unsafe { (worker_at(worker), lwlock_at(latch)) };
    // SAFETY: the caller's.
    result_of(worker.update_var(latch, unsafe { variable_at(variable) }, value))
}
