//! Condition variables.
//!
//! | bytes | hold, under libc | hold, if the variable is ours |
//! | --- | --- | --- |
//! | 0–7 | a sequence number | an `SrwCondvar` |
//! | 36–39 | waiters, and flags: process-shared, monotonic clock | the flags: the mark (L1) |
//!
//! The mutex of a wait is any of ours, or one that libc has: it is released and acquired again as the program itself would.
//!
//! A variable that is libc's cannot release a mutex that is ours. A wait that needs that is a poll: it returns early, after a
//! pause without the mutex, and its caller looks at its condition again.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32};
use core::time::Duration;
use std::os::raw::c_int;

use libc::{ETIMEDOUT, clockid_t, pthread_cond_t, pthread_mutex_t};

use crate::cancellation::{self, Wait};
use crate::deadline::Deadline;
use crate::latch::Condvar;
use crate::layout::{self, COND_MONOTONIC, COND_SHARED};
use crate::libc_functions as real;
use crate::platform::{sleep, yield_now};
use crate::setting::Setting;
use crate::tell::tell;

/// The pause of a wait that is a poll.
const POLL: Duration = Duration::from_millis(1);

/// The bytes of a condition variable.
#[repr(C, align(8))]
struct Bytes {
    variable: Condvar,
    _groups: [u32; 7],
    flags: AtomicU32,
}

const _: () = {
    assert!(size_of::<Bytes>() <= size_of::<pthread_cond_t>());
    assert!(core::mem::offset_of!(Bytes, flags) == layout::COND_FLAGS);
};

impl Bytes {
    /// The variable at `cond`.
    ///
    /// # Safety
    /// `cond` leads to one.
    #[inline(always)]
    unsafe fn at<'a>(cond: *mut pthread_cond_t) -> &'a Self {
        // SAFETY: the caller's; all that is accessed is atomic.
        unsafe { &*cond.cast() }
    }

    fn is_libc(&self, setting: Setting) -> bool {
        self.flags.load(Relaxed) & COND_SHARED != 0 || setting.is_libc()
    }
}

/// The mutex of a wait, as the program would release and acquire it.
pub(crate) trait Mutex {
    /// The result of `pthread_mutex_unlock`.
    fn unlock(&self) -> c_int;
    /// The result of `pthread_mutex_lock`.
    fn lock(&self) -> c_int;
    /// libc is about to release it for a wait, as it does what `wait` does.
    fn is_given_up(&self);
    /// libc has acquired it again, if `result` is not that of a failed wait.
    fn is_taken_again(&self, result: c_int);
}

/// A wait that libc has to do.
pub(crate) struct HandedOn;

/// Waits. Unwinds if the thread is cancelled, with the mutex.
///
/// # Errors
/// [`HandedOn`] if the variable is libc's, and so is the mutex.
unsafe fn wait(
    setting: Setting,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    through: &impl Mutex,
    deadline: impl FnOnce(u32) -> Result<Option<Deadline>, c_int>,
) -> Result<c_int, HandedOn> {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(cond) };
    let is_libc = bytes.is_libc(setting);
    // SAFETY: the caller's.
    if is_libc && unsafe { crate::mutex::is_libc(setting, mutex) } {
        return Err(HandedOn);
    }
    let (deadline, left) = match deadline(bytes.flags.load(Relaxed)) {
        Err(error) => return Ok(error),
        Ok(None) => (None, None),
        Ok(Some(deadline)) => match deadline.left() {
            Err(error) => return Ok(error),
            Ok(left) => (Some(deadline), Some(left)),
        },
    };
    if is_libc {
        return Ok(poll(through, deadline, left));
    }
    let (mut unlocked, mut was_cancelled) = (0, false);
    let timed_out = loop {
        let mut wait = Wait::new(&bytes.variable);
        let mut is_listed = false;
        // Both closures change it, one after the other.
        let of_closures = &raw mut wait;
        let timed_out = bytes.variable.wait_without(
            left,
            || {
                // SAFETY: counted; the wait stays where it is.
                is_listed = unsafe { (*of_closures).begin() };
                if is_listed {
                    unlocked = through.unlock();
                }
                is_listed && unlocked == 0
            },
            // SAFETY: counted still.
            || was_cancelled = unsafe { (*of_closures).end() },
        );
        if is_listed {
            break timed_out;
        }
    };
    if unlocked != 0 {
        // Not the caller's, as libc's mutex says.
        return Ok(unlocked);
    }
    let locked = through.lock();
    if was_cancelled {
        cancellation::test();
    }
    // By the monotonic clock; the other one may have been set back.
    Ok(ended(locked, timed_out && is_past(deadline)))
}

fn is_past(deadline: Option<Deadline>) -> bool {
    deadline.is_some_and(|deadline| deadline.left().is_ok_and(|left| left.is_zero()))
}

/// The result of a wait after which locking the mutex has given `locked`.
fn ended(locked: c_int, is_late: bool) -> c_int {
    match locked {
        0 if is_late => ETIMEDOUT,
        error => error,
    }
}

/// Pauses without the mutex. Unwinds if a cancellation is pending, before the pause or behind it, with the mutex (L7).
fn poll(through: &impl Mutex, deadline: Option<Deadline>, left: Option<Duration>) -> c_int {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Relaxed) {
        tell(format_args!(
            "a condition variable that processes share is waited for with a mutex that they do not share: such waits poll"
        ));
    }
    cancellation::test();
    match through.unlock() {
        0 => {}
        // Not the caller's, as libc's mutex says.
        error => return error,
    }
    sleep(left.map_or(POLL, |left| left.min(POLL)));
    let locked = through.lock();
    cancellation::test();
    ended(locked, is_past(deadline))
}

/// Has libc wait.
fn handed_on(through: &impl Mutex, wait: impl FnOnce() -> c_int) -> c_int {
    through.is_given_up();
    let result = wait();
    through.is_taken_again(result);
    result
}

/// `pthread_cond_wait`.
pub(crate) unsafe fn wait_for_ever(
    setting: Setting,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    through: &impl Mutex,
) -> c_int {
    // SAFETY: the caller's.
    match unsafe { wait(setting, cond, mutex, through, |_| Ok(None)) } {
        Ok(result) => result,
        // SAFETY: the caller's.
        Err(HandedOn) => handed_on(through, || unsafe { real::pthread_cond_wait(cond, mutex) }),
    }
}

/// `pthread_cond_timedwait`.
pub(crate) unsafe fn wait_until(
    setting: Setting,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    at: *const libc::timespec,
    through: &impl Mutex,
) -> c_int {
    let deadline = |flags: u32| {
        let clock = if flags & COND_MONOTONIC != 0 {
            libc::CLOCK_MONOTONIC
        } else {
            libc::CLOCK_REALTIME
        };
        // SAFETY: the caller's.
        unsafe { Deadline::new(clock, at) }.map(Some)
    };
    // SAFETY: the caller's.
    match unsafe { wait(setting, cond, mutex, through, deadline) } {
        Ok(result) => result,
        // SAFETY: the caller's.
        Err(HandedOn) => handed_on(through, || unsafe {
            real::pthread_cond_timedwait(cond, mutex, at)
        }),
    }
}

/// `pthread_cond_clockwait`.
pub(crate) unsafe fn wait_by(
    setting: Setting,
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    at: *const libc::timespec,
    through: &impl Mutex,
) -> c_int {
    // SAFETY: the caller's.
    match unsafe {
        wait(setting, cond, mutex, through, |_| {
            Deadline::new(clock, at).map(Some)
        })
    } {
        Ok(result) => result,
        // SAFETY: the caller's.
        Err(HandedOn) => handed_on(through, || unsafe {
            real::pthread_cond_clockwait(cond, mutex, clock, at)
        }),
    }
}

/// `pthread_cond_signal`.
pub(crate) unsafe fn notify_one(setting: Setting, cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(cond) };
    if bytes.is_libc(setting) {
        // SAFETY: the caller's.
        return unsafe { real::pthread_cond_signal(cond) };
    }
    bytes.variable.notify_one();
    0
}

/// `pthread_cond_broadcast`.
pub(crate) unsafe fn notify_all(setting: Setting, cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(cond) };
    if bytes.is_libc(setting) {
        // SAFETY: the caller's.
        return unsafe { real::pthread_cond_broadcast(cond) };
    }
    bytes.variable.notify_all();
    0
}

/// `pthread_cond_destroy`. Waiters that were notified may still be on their way out (L3).
pub(crate) unsafe fn destroy(setting: Setting, cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(cond) };
    if bytes.is_libc(setting) {
        // SAFETY: the caller's.
        return unsafe { real::pthread_cond_destroy(cond) };
    }
    for round in 0_u32.. {
        if bytes.variable.waiters() == 0 {
            break;
        }
        // Those of a parent of this process stay counted (L6), and then this has no end.
        match round {
            0..100 => yield_now(),
            _ => sleep(Duration::from_micros(1 << (round - 100).min(15))),
        }
    }
    0
}
