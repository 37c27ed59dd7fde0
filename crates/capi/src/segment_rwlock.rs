//! Latches with shared, update and exclusive modes between processes: `SegmentRwLock` of `clearway_latch::interprocess`.

use std::time::Duration;

use clearway_latch::interprocess::{ClassNumber, SegmentMode, SegmentRwLock};

use crate::segment::{result_of, worker_at};
use crate::{at, clearway_segment_result_t, clearway_segment_worker_t};

/// A latch with shared, update and exclusive modes in a segment. Made by `clearway_segment_rwlock_init`, anywhere in the memory
/// of `clearway_segment_reserve`.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_segment_rwlock_t {
    words: [u64; 2],
}

const _: () = {
    assert!(size_of::<clearway_segment_rwlock_t>() == size_of::<SegmentRwLock>());
    assert!(align_of::<clearway_segment_rwlock_t>() >= align_of::<SegmentRwLock>());
};

/// The mode in which a worker holds a `clearway_segment_rwlock_t`, or wants it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum clearway_segment_mode_t {
    /// With others that hold it shared, and one in update mode.
    CLEARWAY_SEGMENT_SHARED = 0,
    /// With others that hold it shared, and as the only one that may become exclusive.
    CLEARWAY_SEGMENT_UPDATE = 1,
    /// Alone.
    CLEARWAY_SEGMENT_EXCLUSIVE = 2,
}

fn mode_of(mode: clearway_segment_mode_t) -> SegmentMode {
    match mode {
        clearway_segment_mode_t::CLEARWAY_SEGMENT_SHARED => SegmentMode::Shared,
        clearway_segment_mode_t::CLEARWAY_SEGMENT_UPDATE => SegmentMode::Update,
        clearway_segment_mode_t::CLEARWAY_SEGMENT_EXCLUSIVE => SegmentMode::Exclusive,
    }
}

/// # Safety
/// `latch` leads to a latch that was made.
#[inline(always)]
unsafe fn rwlock_at<'a>(latch: *mut clearway_segment_rwlock_t) -> &'a SegmentRwLock {
    // SAFETY: of the same form, as is checked above.
    unsafe { at(latch.cast_const().cast()) }
}

/// Makes an idle latch of the class with this number.
///
/// # Safety
/// `latch` leads into memory that `clearway_segment_reserve` has taken, and no worker uses a latch there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_rwlock_init(
    latch: *mut clearway_segment_rwlock_t,
    class_number: u8,
) {
    // SAFETY: the caller's; the sizes are checked above.
    unsafe { SegmentRwLock::make_at(latch.cast(), ClassNumber(class_number)) };
}

/// Takes the latch, and waits as long as that takes.
///
/// # Safety
/// `worker` is the calling thread's, `latch` leads to a latch that it does not hold; `mode` is one of the names.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_rwlock_acquire(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_rwlock_t,
    mode: clearway_segment_mode_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, latch) = unsafe { (worker_at(worker), rwlock_at(latch)) };
    result_of(worker.acquire_rwlock(latch, mode_of(mode)))
}

/// Takes the latch within so many nanoseconds, at once or not at all for 0; whether it did is written to `taken`.
///
/// # Safety
/// As of `clearway_segment_rwlock_acquire`; `taken` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_rwlock_try_acquire_for(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_rwlock_t,
    mode: clearway_segment_mode_t,
    nanoseconds: u64,
    taken: *mut bool,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, latch) = unsafe { (worker_at(worker), rwlock_at(latch)) };
    let result = worker.try_acquire_rwlock_for(latch, mode_of(mode), Duration::from_nanos(nanoseconds));
    // SAFETY: the caller's.
    unsafe { taken.write(result == Ok(true)) };
    result_of(result.map(drop))
}

/// From the mode `before`, in which the worker holds the latch, to `after`; whether it did is written to `changed`. From update to
/// exclusive mode it waits until the readers inside have left. From shared to update mode it fails if another worker is the
/// owner, and from shared to exclusive mode always: two that waited so would wait for each other.
///
/// # Safety
/// `worker` is the calling thread's, `latch` leads to a latch; the modes are of the names, and `changed` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_rwlock_change(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_rwlock_t,
    before: clearway_segment_mode_t,
    after: clearway_segment_mode_t,
    changed: *mut bool,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, latch) = unsafe { (worker_at(worker), rwlock_at(latch)) };
    // SAFETY: there are no guards in C.
    let result = unsafe { worker.change_rwlock(latch, mode_of(before), mode_of(after)) };
    // SAFETY: the caller's.
    unsafe { changed.write(result == Ok(true)) };
    result_of(result.map(drop))
}

/// Releases the latch.
///
/// # Safety
/// `worker` is the calling thread's, `latch` leads to a latch; `mode` is one of the names.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_rwlock_release(
    worker: *const clearway_segment_worker_t,
    latch: *mut clearway_segment_rwlock_t,
    mode: clearway_segment_mode_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's; there are no guards in C.
    result_of(unsafe { worker_at(worker).release_rwlock(rwlock_at(latch), mode_of(mode)) })
}
