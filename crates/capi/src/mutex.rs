//! A mutex of four bytes, and a condition variable: `SrwMutex` and `SrwCondvar`.

use std::time::{Duration, Instant};

use clearway_latch::lock_api::{GuardNoSend, RawCondvar, RawCondvarTimed, RawMutex, RawMutexTimed};
use clearway_latch::{SrwCondvar, SrwMutex};

use crate::at;

/// A mutex. Idle when its bytes are zero. Not recursive.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_mutex_t {
    word: u32,
}

/// A condition variable, whose waiters all hold the same mutex. Without waiters when its bytes are zero.
#[repr(C)]
#[derive(Debug)]
pub struct clearway_condition_t {
    words: [u32; 2],
}

// The words of C are those of the latch, and zero is idle.
const _: () = {
    assert!(size_of::<clearway_mutex_t>() == size_of::<SrwMutex>());
    assert!(align_of::<clearway_mutex_t>() == align_of::<SrwMutex>());
    assert!(size_of::<clearway_condition_t>() == size_of::<SrwCondvar>());
    assert!(align_of::<clearway_condition_t>() == align_of::<SrwCondvar>());
    // SAFETY: of the same size, and every value of a word is one.
    assert!(unsafe { std::mem::transmute::<SrwMutex, u32>(SrwMutex::new()) } == 0);
    // SAFETY: as above, with two words.
    assert!(unsafe { std::mem::transmute::<SrwCondvar, u64>(SrwCondvar::new()) } == 0);
};

/// # Safety
/// `mutex` leads to a mutex.
#[inline(always)]
unsafe fn mutex_at<'a>(mutex: *mut clearway_mutex_t) -> &'a SrwMutex {
    // SAFETY: of the same form, as is checked above.
    unsafe { at(mutex.cast_const().cast()) }
}

/// # Safety
/// `condition` leads to a condition variable.
#[inline(always)]
unsafe fn condition_at<'a>(condition: *mut clearway_condition_t) -> &'a SrwCondvar {
    // SAFETY: of the same form, as is checked above.
    unsafe { at(condition.cast_const().cast()) }
}

/// Takes the mutex, and waits as long as that takes. What its holders before have written is visible.
///
/// # Safety
/// `mutex` leads to a mutex, which the thread does not hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_mutex_lock(mutex: *mut clearway_mutex_t) {
    // SAFETY: the caller's.
    unsafe { mutex_at(mutex) }.lock();
}

/// Takes the mutex if it is free; whether it did.
///
/// # Safety
/// `mutex` leads to a mutex.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_mutex_try_lock(mutex: *mut clearway_mutex_t) -> bool {
    // SAFETY: the caller's.
    unsafe { mutex_at(mutex) }.try_lock().is_some()
}

/// Takes the mutex within so many nanoseconds; whether it did.
///
/// # Safety
/// `mutex` leads to a mutex, which the thread does not hold.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn clearway_mutex_try_lock_for(mutex: *mut clearway_mutex_t, nanoseconds: u64) -> bool {
    // SAFETY: the caller's.
    let mutex = unsafe { mutex_at(mutex) };
    mutex.try_lock_for(Duration::from_nanos(nanoseconds)).is_some()
}

/// Releases the mutex.
///
/// # Safety
/// The thread holds the mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_mutex_unlock(mutex: *mut clearway_mutex_t) {
    // SAFETY: the caller's.
    unsafe { mutex_at(mutex).unlock(GuardNoSend::new()) };
}

/// Waits for a notification, without the mutex, which the thread holds again when this returns. May return without a
/// notification, so the caller looks at what it waits for again.
///
/// # Safety
/// The thread holds the mutex, and all waiters of `condition` hold the same one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_condition_wait(
    condition: *mut clearway_condition_t,
    mutex: *mut clearway_mutex_t,
) {
    // SAFETY: the caller's.
    unsafe { RawCondvar::wait(condition_at(condition), mutex_at(mutex), &mut GuardNoSend::new()) };
}

/// As `clearway_condition_wait`, for so many nanoseconds at most; whether it ended before the time was over.
///
/// # Safety
/// The thread holds the mutex, and all waiters of `condition` hold the same one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_condition_wait_for(
    condition: *mut clearway_condition_t,
    mutex: *mut clearway_mutex_t,
    nanoseconds: u64,
) -> bool {
    // SAFETY: the caller's.
    let (condition, mutex) = unsafe { (condition_at(condition), mutex_at(mutex)) };
    let Some(until) = Instant::now().checked_add(Duration::from_nanos(nanoseconds)) else {
        // Longer than the clock can tell.
        // SAFETY: the caller's.
        unsafe { RawCondvar::wait(condition, mutex, &mut GuardNoSend::new()) };
        return true;
    };
    // SAFETY: the caller's.
    !unsafe { condition.wait_until(mutex, &mut GuardNoSend::new(), &until) }
}

/// Wakes one waiter, if there is one. The caller need not hold the mutex, but has changed what is waited for under it.
///
/// # Safety
/// `condition` leads to a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_condition_notify_one(condition: *mut clearway_condition_t) {
    // SAFETY: the caller's.
    unsafe { condition_at(condition) }.notify_one();
}

/// Wakes all waiters.
///
/// # Safety
/// `condition` leads to a condition variable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clearway_condition_notify_all(condition: *mut clearway_condition_t) {
    // SAFETY: the caller's.
    unsafe { condition_at(condition) }.notify_all();
}
