//! Mutexes between processes: `SegmentMutex` of `clearway_latch::interprocess`.

use std::time::Duration;

use clearway_latch::interprocess::{ClassNumber, SegmentMutex};

use crate::segment::{result_of, worker_at};
use crate::{at, clearway_segment_result_t, clearway_segment_worker_t};

/// A mutex in a segment. Made by `clearway_segment_mutex_init`, anywhere in the memory of `clearway_segment_reserve`.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_segment_mutex_t {
    words: [u32; 3],
}

const _: () = {
    assert!(size_of::<clearway_segment_mutex_t>() == size_of::<SegmentMutex>());
    assert!(align_of::<clearway_segment_mutex_t>() == align_of::<SegmentMutex>());
};

/// # Safety
/// `mutex` leads to a mutex that was made.
#[inline(always)]
unsafe fn mutex_at<'a>(mutex: *mut clearway_segment_mutex_t) -> &'a SegmentMutex {
    // SAFETY: of the same form, as is checked above.
    unsafe { at(mutex.cast_const().cast()) }
}

/// Makes an idle mutex of the class with this number.
///
/// # Safety
/// `mutex` leads into memory that `clearway_segment_reserve` has taken, and no worker uses a latch there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_mutex_init(mutex: *mut clearway_segment_mutex_t, class_number: u8) {
    // SAFETY: the caller's; the sizes are checked above.
    unsafe { SegmentMutex::make_at(mutex.cast(), ClassNumber(class_number)) };
}

/// Takes the mutex, and waits as long as that takes.
///
/// # Safety
/// `worker` is the calling thread's, `mutex` leads to a mutex that it does not hold.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_mutex_lock(
    worker: *const clearway_segment_worker_t,
    mutex: *mut clearway_segment_mutex_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, mutex) = unsafe { (worker_at(worker), mutex_at(mutex)) };
    result_of(worker.acquire_mutex(mutex))
}

/// Takes the mutex within so many nanoseconds, at once or not at all for 0; whether it did is written to `taken`.
///
/// # Safety
/// As of `clearway_segment_mutex_lock`; `taken` may be written.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_segment_mutex_try_lock_for(
    worker: *const clearway_segment_worker_t,
    mutex: *mut clearway_segment_mutex_t,
    nanoseconds: u64,
    taken: *mut bool,
) -> clearway_segment_result_t {
    // SAFETY: the caller's.
    let (worker, mutex) = unsafe { (worker_at(worker), mutex_at(mutex)) };
    let result = worker.try_acquire_mutex_for(mutex, Duration::from_nanos(nanoseconds));
    // SAFETY: the caller's.
    unsafe { taken.write(result == Ok(true)) };
    result_of(result.map(drop))
}

/// Releases the mutex.
///
/// # Safety
/// `worker` is the calling thread's, and `mutex` leads to a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_segment_mutex_unlock(
    worker: *const clearway_segment_worker_t,
    mutex: *mut clearway_segment_mutex_t,
) -> clearway_segment_result_t {
    // SAFETY: the caller's; there are no guards in C.
    result_of(unsafe { worker_at(worker).release_mutex(mutex_at(mutex)) })
}
