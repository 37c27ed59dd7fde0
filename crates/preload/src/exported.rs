//! The functions that the program calls.
//!
//! Each reads the settings, counts if they ask for it, and calls the object's function. Objects are initialised by libc (L1),
//! so but for spinlocks there is no `init` here.

use std::os::raw::c_int;

use libc::{
    clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_spinlock_t, pthread_t, timespec,
};

use crate::call_site::exported;
use crate::deadline::Deadline;
use crate::libc_functions as real;
use crate::report::{self, Mode};
use crate::setting::Setting;
use crate::{cancellation, condition, mutex, rwlock, spin};

exported! {
    pthread_mutex_lock(mutex: *mut pthread_mutex_t), 1 => mutex_lock_first;
    pthread_mutex_trylock(mutex: *mut pthread_mutex_t), 1 => mutex_trylock;
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, at: *const timespec), 2 => mutex_timedlock;
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, at: *const timespec), 3 => mutex_clocklock;
    pthread_rwlock_rdlock(rwlock: *mut pthread_rwlock_t), 1 => rwlock_rdlock_first;
    pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t), 1 => rwlock_tryrdlock;
    pthread_rwlock_timedrdlock(rwlock: *mut pthread_rwlock_t, at: *const timespec), 2 => rwlock_timedrdlock;
    pthread_rwlock_clockrdlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, at: *const timespec), 3
        => rwlock_clockrdlock;
    pthread_rwlock_wrlock(rwlock: *mut pthread_rwlock_t), 1 => rwlock_wrlock_first;
    pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t), 1 => rwlock_trywrlock;
    pthread_rwlock_timedwrlock(rwlock: *mut pthread_rwlock_t, at: *const timespec), 2 => rwlock_timedwrlock;
    pthread_rwlock_clockwrlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, at: *const timespec), 3
        => rwlock_clockwrlock;
    pthread_spin_lock(spin: *mut pthread_spinlock_t), 1 => spin_lock;
    pthread_spin_trylock(spin: *mut pthread_spinlock_t), 1 => spin_trylock;
    pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t), 2 => cond_wait;
    pthread_cond_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, at: *const timespec), 3
        => cond_timedwait;
    pthread_cond_clockwait(
        cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t, at: *const timespec
    ), 4 => cond_clockwait;
}

/// `lock` and `trylock` of an object: what they do, and what they count as.
macro_rules! acquisitions {
    ($($name:ident, $name_of_try:ident, $type:ty, $mode:expr, $lock:path, $try_lock:path;)*) => { $(
        #[inline(never)]
        unsafe extern "C-unwind" fn $name(object: *mut $type, site: usize) -> c_int {
            let setting = Setting::current();
            if setting.reports() {
                // SAFETY: the caller's, here and below.
                return report::acquire(
                    object.addr(), site, $mode,
                    // SAFETY: as above.
                    || unsafe { $try_lock(setting, object) },
                    // SAFETY: as above.
                    || unsafe { $lock(setting, object) },
                );
            }
            // SAFETY: as above.
            unsafe { $lock(setting, object) }
        }

        unsafe extern "C-unwind" fn $name_of_try(object: *mut $type, site: usize) -> c_int {
            let setting = Setting::current();
            // SAFETY: the caller's.
            let result = unsafe { $try_lock(setting, object) };
            if setting.reports() {
                report::attempted(object.addr(), site, $mode, result);
            }
            result
        }
    )* };
}

acquisitions! {
    mutex_lock, mutex_trylock, pthread_mutex_t, Mode::Mutex, mutex::lock, mutex::try_lock;
    rwlock_rdlock, rwlock_tryrdlock, pthread_rwlock_t, Mode::Read, rwlock::read, rwlock::try_read;
    rwlock_wrlock, rwlock_trywrlock, pthread_rwlock_t, Mode::Write, rwlock::write, rwlock::try_write;
    spin_lock, spin_trylock, pthread_spinlock_t, Mode::Spin, spin::lock, spin::try_lock;
}

/// Acquisitions of the usual object that is free, in few instructions.
macro_rules! first_attempts {
    ($($name:ident, $type:ty, $try_lock:path, $lock:path;)*) => { $(
        unsafe extern "C-unwind" fn $name(object: *mut $type, site: usize) -> c_int {
            let setting = Setting::known();
            // SAFETY: the caller's, here and below.
            if setting.is_ours_uncounted() && unsafe { $try_lock(setting, object) } {
                return 0;
            }
            // SAFETY: as above.
            unsafe { $lock(object, site) }
        }
    )* };
}

first_attempts! {
    mutex_lock_first, pthread_mutex_t, mutex::try_lock_usual, mutex_lock;
    rwlock_rdlock_first, pthread_rwlock_t, rwlock::try_read_ours, rwlock_rdlock;
    rwlock_wrlock_first, pthread_rwlock_t, rwlock::try_write_ours, rwlock_wrlock;
}

/// The two forms of an acquisition with a time limit.
macro_rules! timed_acquisitions {
    ($($timed:ident, $clocked:ident, $type:ty, $mode:expr, $try_lock:path, $lock_by:path, $libc_timed:path, $libc_clocked:path;)*) => { $(
        unsafe extern "C-unwind" fn $timed(object: *mut $type, at: *const timespec, site: usize) -> c_int {
            // SAFETY: the caller's, here and below.
            let deadline = unsafe { Deadline::new(libc::CLOCK_REALTIME, at) };
            // SAFETY: as above.
            timed(object.addr(), site, $mode, deadline, |setting| unsafe { $try_lock(setting, object) }, |setting, deadline| {
                // SAFETY: as above.
                unsafe { $lock_by(setting, object, deadline).unwrap_or_else(|| $libc_timed(object, at)) }
            })
        }

        unsafe extern "C-unwind" fn $clocked(
            object: *mut $type, clock: clockid_t, at: *const timespec, site: usize,
        ) -> c_int {
            // SAFETY: the caller's, here and below.
            let deadline = unsafe { Deadline::new(clock, at) };
            // SAFETY: as above.
            timed(object.addr(), site, $mode, deadline, |setting| unsafe { $try_lock(setting, object) }, |setting, deadline| {
                // SAFETY: as above.
                unsafe { $lock_by(setting, object, deadline).unwrap_or_else(|| $libc_clocked(object, clock, at)) }
            })
        }
    )* };
}

timed_acquisitions! {
    mutex_timedlock, mutex_clocklock, pthread_mutex_t, Mode::Mutex, mutex::try_lock, mutex::lock_by,
        real::pthread_mutex_timedlock, real::pthread_mutex_clocklock;
    rwlock_timedrdlock, rwlock_clockrdlock, pthread_rwlock_t, Mode::Read, rwlock::try_read, rwlock::read_by,
        real::pthread_rwlock_timedrdlock, real::pthread_rwlock_clockrdlock;
    rwlock_timedwrlock, rwlock_clockwrlock, pthread_rwlock_t, Mode::Write, rwlock::try_write, rwlock::write_by,
        real::pthread_rwlock_timedwrlock, real::pthread_rwlock_clockwrlock;
}

/// An acquisition with a time limit, counted if the settings ask for it.
fn timed(
    object: usize,
    site: usize,
    mode: Mode,
    deadline: Result<Deadline, c_int>,
    attempt: impl FnOnce(Setting) -> c_int,
    acquire: impl FnOnce(Setting, Deadline) -> c_int,
) -> c_int {
    let setting = Setting::current();
    let deadline = match deadline {
        Ok(deadline) => deadline,
        Err(error) => return error,
    };
    // A time that makes no sense is told of by the acquisition, which must not be preceded by an attempt then.
    if setting.reports() && deadline.left().is_ok() {
        return report::acquire(
            object,
            site,
            mode,
            || attempt(setting),
            || acquire(setting, deadline),
        );
    }
    acquire(setting, deadline)
}

/// The mutex of a wait for a condition.
struct MutexOfWait {
    setting: Setting,
    mutex: *mut pthread_mutex_t,
    site: usize,
}

impl condition::Mutex for MutexOfWait {
    fn unlock(&self) -> c_int {
        // SAFETY: of the caller of the wait.
        unsafe { mutex_unlock(self.setting, self.mutex) }
    }

    fn lock(&self) -> c_int {
        // SAFETY: of the caller of the wait.
        unsafe { mutex_lock(self.mutex, self.site) }
    }

    fn is_given_up(&self) {
        if self.setting.reports() {
            report::releases(self.mutex.addr());
        }
    }

    fn is_taken_again(&self, result: c_int) {
        if self.setting.reports() {
            // A wait that has timed out has the mutex, too.
            let result = if result == libc::ETIMEDOUT { 0 } else { result };
            report::attempted(self.mutex.addr(), self.site, Mode::Mutex, result);
        }
    }
}

unsafe extern "C-unwind" fn cond_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    site: usize,
) -> c_int {
    let setting = Setting::current();
    let through = MutexOfWait { setting, mutex, site };
    // SAFETY: the caller's.
    unsafe { condition::wait_for_ever(setting, cond, mutex, &through) }
}

unsafe extern "C-unwind" fn cond_timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    at: *const timespec,
    site: usize,
) -> c_int {
    let setting = Setting::current();
    let through = MutexOfWait { setting, mutex, site };
    // SAFETY: the caller's.
    unsafe { condition::wait_until(setting, cond, mutex, at, &through) }
}

unsafe extern "C-unwind" fn cond_clockwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    at: *const timespec,
    site: usize,
) -> c_int {
    let setting = Setting::current();
    let through = MutexOfWait { setting, mutex, site };
    // SAFETY: the caller's.
    unsafe { condition::wait_by(setting, cond, mutex, clock, at, &through) }
}

/// Releases a mutex, and counts how long it was held.
#[inline(never)]
unsafe fn mutex_unlock(setting: Setting, mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's, here and below.
    if setting.reports() && !unsafe { mutex::is_of_another(setting, mutex) } {
        report::releases(mutex.addr());
    }
    // SAFETY: as above.
    unsafe { mutex::unlock(setting, mutex) }
}

/// POSIX's `pthread_mutex_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    let setting = Setting::known();
    // SAFETY: the caller's, here and below.
    if setting.is_ours_uncounted() && unsafe { mutex::unlock_usual(setting, mutex) } {
        return 0;
    }
    // SAFETY: as above.
    unsafe { mutex_unlock(Setting::current(), mutex) }
}

/// POSIX's `pthread_mutex_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_destroy(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { mutex::destroy(Setting::current(), mutex) }
}

/// POSIX's `pthread_rwlock_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's, here and below.
    if Setting::known().is_ours_uncounted() && unsafe { rwlock::unlock_ours(rwlock) } {
        return 0;
    }
    // SAFETY: as above.
    unsafe { rwlock_unlock(Setting::current(), rwlock) }
}

/// Releases a reader-writer lock, and counts how long it was held.
#[inline(never)]
unsafe fn rwlock_unlock(setting: Setting, rwlock: *mut pthread_rwlock_t) -> c_int {
    if setting.reports() {
        report::releases(rwlock.addr());
    }
    // SAFETY: the caller's.
    unsafe { rwlock::unlock(setting, rwlock) }
}

/// POSIX's `pthread_spin_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_init(spin: *mut pthread_spinlock_t, shared: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { spin::init(Setting::current(), spin, shared) }
}

/// POSIX's `pthread_spin_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_unlock(spin: *mut pthread_spinlock_t) -> c_int {
    let setting = Setting::current();
    if setting.reports() {
        report::releases(spin.addr());
    }
    // SAFETY: the caller's.
    unsafe { spin::unlock(setting, spin) }
}

/// POSIX's `pthread_cond_signal`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { condition::notify_one(Setting::current(), cond) }
}

/// POSIX's `pthread_cond_broadcast`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { condition::notify_all(Setting::current(), cond) }
}

/// POSIX's `pthread_cond_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_destroy(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { condition::destroy(Setting::current(), cond) }
}

/// POSIX's `pthread_cancel`. Unwinds if the thread cancels itself and may be cancelled at any point.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_cancel(thread: pthread_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { cancellation::cancel(thread) }
}
