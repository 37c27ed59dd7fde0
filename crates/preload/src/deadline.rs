//! Points in time of a clock, as POSIX's timed functions have them.
//!
//! A wait is for the time that is left at its beginning, by the monotonic clock. When that is over, the clock that was asked
//! for is read again; if it was set back meanwhile, the wait goes on. One that is set forward does not end the wait.

use core::time::Duration;
use std::os::raw::c_int;

use libc::{EINVAL, clockid_t, timespec};

/// A point in time of a clock, which the caller keeps for the length of the call.
#[derive(Clone, Copy)]
pub(crate) struct Deadline {
    clock: clockid_t,
    at: timespec,
}

/// The time of a clock that exists.
pub(crate) fn time_of(clock: clockid_t) -> timespec {
    let mut time = timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time outlives the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time
}

impl Deadline {
    /// The point `at` of `clock`.
    ///
    /// # Errors
    /// `EINVAL` for a clock that no lock waits by.
    ///
    /// # Safety
    /// `at` leads to a time.
    pub(crate) unsafe fn new(clock: clockid_t, at: *const timespec) -> Result<Self, c_int> {
        if !matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
            return Err(EINVAL);
        }
        // SAFETY: the caller's.
        let at = unsafe { *at };
        Ok(Self { clock, at })
    }

    /// The time until then, zero if it is past.
    ///
    /// # Errors
    /// `EINVAL` if the nanoseconds are no part of a second.
    pub(crate) fn left(&self) -> Result<Duration, c_int> {
        if !(0..1_000_000_000).contains(&self.at.tv_nsec) {
            return Err(EINVAL);
        }
        let now = time_of(self.clock);
        let seconds = i128::from(self.at.tv_sec) - i128::from(now.tv_sec);
        let nanoseconds = seconds * 1_000_000_000 + i128::from(self.at.tv_nsec) - i128::from(now.tv_nsec);
        // What 64 bits cannot hold is later than any program lives.
        Ok(Duration::from_nanos(
            u64::try_from(nanoseconds.max(0)).unwrap_or(u64::MAX),
        ))
    }
}
