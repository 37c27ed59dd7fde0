//! Spinlocks: an `SrwMutex` that no thread sleeps on.
//!
//! A spinlock is four bytes, so there is no room for a mark that says that processes share it. A thread that waits
//! registers nowhere: it looks, and after [`LOOKS`] looks it yields its CPU after each further one, for the holder may be
//! waiting for it. So the lock works in shared memory as well, if each
//! process has this library: under glibc a free lock is 1 on x86-64, and here it is 0.

use core::sync::atomic::{AtomicU32, Ordering};
use std::os::raw::c_int;

use libc::{EBUSY, pthread_spinlock_t};

use crate::latch::{Exclusive, FetchAdd};
use crate::libc_functions as real;
use crate::platform::yield_now;
use crate::setting::Setting;

/// Looks before the first yield.
const LOOKS: u32 = 100;

const _: () = assert!(size_of::<FetchAdd>() == size_of::<pthread_spinlock_t>());

/// The lock at `spin`.
///
/// # Safety
/// `spin` leads to an initialised spinlock.
unsafe fn at<'a>(spin: *mut pthread_spinlock_t) -> &'a FetchAdd {
    // SAFETY: the caller's.
    unsafe { &*spin.cast() }
}

/// `pthread_spin_init`.
pub(crate) unsafe fn init(setting: Setting, spin: *mut pthread_spinlock_t, shared: c_int) -> c_int {
    if setting.is_libc() {
        // SAFETY: the caller's.
        return unsafe { real::pthread_spin_init(spin, shared) };
    }
    // SAFETY: the caller's.
    unsafe { &*spin.cast::<AtomicU32>() }.store(0, Ordering::Relaxed);
    0
}

/// `pthread_spin_lock`.
pub(crate) unsafe fn lock(setting: Setting, spin: *mut pthread_spinlock_t) -> c_int {
    if setting.is_libc() {
        // SAFETY: the caller's.
        return unsafe { real::pthread_spin_lock(spin) };
    }
    // SAFETY: the caller's.
    let latch = unsafe { at(spin) };
    let mut looks = 0;
    while latch.is_held() || !latch.try_acquire() {
        looks += 1;
        if looks < LOOKS {
            core::hint::spin_loop();
        } else {
            yield_now();
        }
    }
    0
}

/// `pthread_spin_trylock`.
pub(crate) unsafe fn try_lock(setting: Setting, spin: *mut pthread_spinlock_t) -> c_int {
    if setting.is_libc() {
        // SAFETY: the caller's.
        return unsafe { real::pthread_spin_trylock(spin) };
    }
    // SAFETY: the caller's.
    if unsafe { at(spin) }.try_acquire() {
        0
    } else {
        EBUSY
    }
}

/// `pthread_spin_unlock`. A lock that is not held is left as it is.
pub(crate) unsafe fn unlock(setting: Setting, spin: *mut pthread_spinlock_t) -> c_int {
    if setting.is_libc() {
        // SAFETY: the caller's.
        return unsafe { real::pthread_spin_unlock(spin) };
    }
    // SAFETY: the caller's.
    let latch = unsafe { at(spin) };
    if latch.is_held() {
        // SAFETY: held.
        unsafe { latch.release() };
    }
    0
}
