//! The machine under the latches: [`Bare`] with Linux's futexes, and without workers.
//!
//! The futex latches need no worker's number. Without one a thread has nothing that its end would have to give back, and its
//! first wait allocates nothing (L2). Each function keeps `errno` (L5), and none is a cancellation point (L7).

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::os::raw::c_int;
use std::ptr;

use clearway_machine::{Bare, FutexOutcome, FutexWord, Platform};

static PLATFORM: Platform = Platform {
    now,
    wait,
    wake,
    yield_now,
    sleep,
    ..Platform::polling()
};

/// Installs the platform. Called again, it does nothing.
pub(crate) fn install() {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if !INSTALLED.swap(true, Ordering::Relaxed) {
        // SAFETY: there are no workers, so none has another's number.
        unsafe { Bare::install(&PLATFORM) };
    }
}

/// `errno`, put back when it is dropped.
struct SavedErrno(c_int);

impl SavedErrno {
    fn now() -> Self {
        // SAFETY: the calling thread's own word.
        Self(unsafe { *libc::__errno_location() })
    }

    /// The error of the call since then.
    fn found(&self) -> c_int {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() }
    }
}

impl Drop for SavedErrno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

/// Nanoseconds of the monotonic clock; never 0, which would say that there is no clock.
pub(crate) fn now() -> u64 {
    let time = crate::deadline::time_of(libc::CLOCK_MONOTONIC);
    (time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64).max(1)
}

fn timespec(duration: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(duration.subsec_nanos() as i32),
    }
}

fn wait(word: FutexWord<'_>, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
    let errno = SavedErrno::now();
    let timeout = timeout.map(timespec);
    let time = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word and the time outlive the call, which reads both and writes neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.address(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            expected,
            time,
        )
    };
    if result == 0 {
        return FutexOutcome::Woken;
    }
    match errno.found() {
        libc::EAGAIN => FutexOutcome::Changed,
        libc::ETIMEDOUT => FutexOutcome::TimedOut,
        libc::EINTR => FutexOutcome::Woken,
        // A filter of system calls refuses it: then a wait is a poll, since callers look again.
        _ => {
            yield_now();
            FutexOutcome::Woken
        }
    }
}

fn wake(word: FutexWord<'_>, count: u32) -> u32 {
    let _errno = SavedErrno::now();
    // The kernel takes the count for a signed number, and a negative one for 1.
    let count = c_int::try_from(count).unwrap_or(c_int::MAX);
    // SAFETY: the kernel uses the word's address and accesses nothing behind it. The memory may be freed (L3): an address where
    // nothing is is an error, and a sleeper on something else that is there now is woken for no reason, which every
    // caller of a futex allows for.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.address(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            count,
        )
    };
    u32::try_from(woken).unwrap_or(0)
}

/// Gives the CPU to another thread that wants it.
pub(crate) fn yield_now() {
    let _errno = SavedErrno::now();
    // SAFETY: a system call without arguments.
    unsafe { libc::sched_yield() };
}

/// Sleeps, for `duration` or until a signal.
pub(crate) fn sleep(duration: Duration) {
    let _errno = SavedErrno::now();
    let time = timespec(duration);
    // SAFETY: the time outlives the call; the rest of it is not wanted.
    unsafe {
        libc::syscall(
            libc::SYS_nanosleep,
            &raw const time,
            ptr::null_mut::<libc::timespec>(),
        )
    };
}

/// Opens the file at `path` for what is written to be appended, and creates it if there is none. `None` if that is refused.
pub(crate) fn open_to_append(path: &CStr) -> Option<c_int> {
    let _errno = SavedErrno::now();
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: a path that ends with a zero.
    let descriptor = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o644) };
    c_int::try_from(descriptor)
        .ok()
        .filter(|descriptor| *descriptor >= 0)
}

/// Writes the first of `bytes`. Returns how many were written; `None` if the system refuses them.
pub(crate) fn write(descriptor: c_int, bytes: &[u8]) -> Option<usize> {
    let _errno = SavedErrno::now();
    // SAFETY: the bytes are there for the length of the call.
    let written = unsafe { libc::syscall(libc::SYS_write, descriptor, bytes.as_ptr(), bytes.len()) };
    usize::try_from(written).ok()
}

/// Closes a descriptor that the caller has opened.
pub(crate) fn close(descriptor: c_int) {
    let _errno = SavedErrno::now();
    // SAFETY: the caller's own.
    unsafe { libc::syscall(libc::SYS_close, descriptor) };
}
