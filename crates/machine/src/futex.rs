//! Linux futexes: the two calls that the machine of an operating system needs.
//!
//! A private one is keyed by its address: no other process maps the word. One of all processes is keyed by the memory
//! itself, so that each process finds it wherever it has mapped it; the kernel needs longer to find it.

use core::ffi::{c_int, c_long};
use core::ptr;
use core::sync::atomic::AtomicU32;
use core::time::Duration;
use std::io;

/// The processes that sleep on a word and wake its sleepers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The caller's alone.
    OneProcess,
    /// All that map the memory.
    AllProcesses,
}

impl Reach {
    fn flag(self) -> c_int {
        match self {
            Reach::OneProcess => libc::FUTEX_PRIVATE_FLAG,
            Reach::AllProcesses => 0,
        }
    }
}

/// A time as the kernel reads it in this call: two words of the machine, whatever the C library's `timespec` is.
#[repr(C)]
struct KernelTime {
    seconds: c_long,
    nanoseconds: c_long,
}

impl KernelTime {
    /// Longer than the kernel can say is as long as it can say: the caller is told that the time is over, and looks.
    fn of(duration: Duration) -> Self {
        Self {
            seconds: c_long::try_from(duration.as_secs()).unwrap_or(c_long::MAX),
            nanoseconds: c_long::from(duration.subsec_nanos() as i32),
        }
    }
}

/// Sleeps while `word` is `expected`, at most for `timeout`.
///
/// # Errors
/// The kernel's: `EAGAIN` if the word was something else, `EINTR` after a signal, `ETIMEDOUT`.
pub(crate) fn wait(
    word: &AtomicU32,
    expected: u32,
    timeout: Option<Duration>,
    reach: Reach,
) -> io::Result<()> {
    let timeout = timeout.map(KernelTime::of);
    let time = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word and the time outlive the call, which reads both and writes neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | reach.flag(),
            expected,
            time,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Wakes up to `count` sleepers of `word`. Returns how many there were.
pub(crate) fn wake(word: &AtomicU32, count: u32, reach: Reach) -> u32 {
    // The kernel takes the count for a signed number, and a negative one for 1.
    let count = c_int::try_from(count).unwrap_or(c_int::MAX);
    // SAFETY: the kernel uses the word's address and accesses nothing behind it.
    let woken = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | reach.flag(),
            count,
        )
    };
    // Waking cannot fail on a word that exists; the count is for statistics only.
    u32::try_from(woken).unwrap_or(0)
}
