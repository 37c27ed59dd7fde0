//! Reader-writer locks.
//!
//! | bytes | hold, under libc | hold, if the lock is ours |
//! | --- | --- | --- |
//! | 0–7 | readers, writers | an `SsuxLock` |
//! | 8–15 | futex words | the exclusive holder (L4) |
//! | 28–31 | process-shared | the same: the mark (L1) |
//! | 48–51 | whether writers go first | the same |
//!
//! As under glibc, a reader enters beside other readers though a writer waits, so that a thread may read twice, unless the
//! lock was initialised with `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.

use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicU32, AtomicUsize};
use core::time::Duration;
use std::os::raw::c_int;

use clearway_latch::lock_api::RawRwLockTimed;
use libc::{EBUSY, EDEADLK, ETIMEDOUT, pthread_rwlock_t};

use crate::deadline::Deadline;
use crate::latch::{Exclusive, Ssux};
use crate::layout;
use crate::libc_functions as real;
use crate::mutex::caller;
use crate::setting::Setting;

/// The bytes of a reader-writer lock.
#[repr(C, align(8))]
struct Bytes {
    latch: Ssux,
    writer: AtomicUsize,
    _pads: [u32; 3],
    shared: AtomicU32,
    _more: [u64; 2],
    flags: AtomicU32,
}

const _: () = {
    assert!(size_of::<Bytes>() <= size_of::<pthread_rwlock_t>());
    assert!(
        core::mem::offset_of!(Bytes, shared) == layout::RWLOCK_SHARED
            && core::mem::offset_of!(Bytes, flags) == layout::RWLOCK_KIND
    );
};

impl Bytes {
    /// The lock at `rwlock`.
    ///
    /// # Safety
    /// `rwlock` leads to one.
    #[inline(always)]
    unsafe fn at<'a>(rwlock: *mut pthread_rwlock_t) -> &'a Self {
        // SAFETY: the caller's; all that is accessed is atomic.
        unsafe { &*rwlock.cast() }
    }

    #[inline(always)]
    fn is_libc(&self, setting: Setting) -> bool {
        self.shared.load(Relaxed) != 0 || setting.is_libc()
    }

    /// L4.
    fn is_written_by_caller(&self) -> bool {
        self.writer.load(Relaxed) == caller()
    }

    /// Releases what the caller holds.
    #[inline(always)]
    fn release(&self) {
        if self.latch.is_held_exclusively() {
            self.writer.store(0, Relaxed);
            // SAFETY: held exclusively, and then by the caller alone.
            unsafe { self.latch.release_exclusive_to_be_freed() };
        } else if self.latch.shared_holders() > 0 {
            // SAFETY: held shared, by the caller among others.
            unsafe { self.latch.release_shared() };
        }
    }

    #[inline(always)]
    fn try_enter(&self) -> bool {
        if self.flags.load(Relaxed) == layout::WRITERS_FIRST {
            self.latch.try_acquire_shared()
        } else {
            self.latch.try_acquire_shared_recursive()
        }
    }
}

/// Acquires a lock that is ours for reading, if that needs no waiting. Returns whether it did so.
#[inline(always)]
pub(crate) unsafe fn try_read_ours(_setting: Setting, rwlock: *mut pthread_rwlock_t) -> bool {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    bytes.shared.load(Relaxed) == 0 && bytes.try_enter()
}

/// Acquires a lock that is ours for writing, if that needs no waiting. Returns whether it did so.
#[inline(always)]
pub(crate) unsafe fn try_write_ours(_setting: Setting, rwlock: *mut pthread_rwlock_t) -> bool {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    let is_written = bytes.shared.load(Relaxed) == 0 && bytes.latch.try_acquire_exclusive();
    if is_written {
        bytes.writer.store(caller(), Relaxed);
    }
    is_written
}

/// Releases a lock that is ours. Returns whether it is.
#[inline(always)]
pub(crate) unsafe fn unlock_ours(rwlock: *mut pthread_rwlock_t) -> bool {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    let is_ours = bytes.shared.load(Relaxed) == 0;
    if is_ours {
        bytes.release();
    }
    is_ours
}

/// Acquires for the caller by `attempt`, at once or for the time that is left until the deadline. As under glibc, a time that
/// makes no sense is an error even if the lock is free.
fn acquire_by(bytes: &Bytes, deadline: Deadline, attempt: impl Fn(Option<Duration>) -> bool) -> c_int {
    match deadline.left() {
        Err(error) => return error,
        Ok(_) if bytes.is_written_by_caller() => return EDEADLK,
        Ok(_) if attempt(None) => return 0,
        Ok(_) => {}
    }
    loop {
        match deadline.left() {
            Err(error) => return error,
            Ok(left) if left.is_zero() => return ETIMEDOUT,
            Ok(left) if attempt(Some(left)) => return 0,
            // The clock may have been set back.
            Ok(_) => {}
        }
    }
}

/// `pthread_rwlock_rdlock`.
#[inline(always)]
pub(crate) unsafe fn read(setting: Setting, rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    if bytes.is_libc(setting) {
        // SAFETY: the caller's.
        return unsafe { real::pthread_rwlock_rdlock(rwlock) };
    }
    if bytes.try_enter() {
        return 0;
    }
    if bytes.is_written_by_caller() {
        return EDEADLK;
    }
    if bytes.flags.load(Relaxed) == layout::WRITERS_FIRST {
        bytes.latch.acquire_shared();
    } else {
        bytes.latch.acquire_shared_recursive();
    }
    0
}

/// `pthread_rwlock_tryrdlock`.
pub(crate) unsafe fn try_read(setting: Setting, rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    if bytes.is_libc(setting) {
        // SAFETY: the caller's.
        return unsafe { real::pthread_rwlock_tryrdlock(rwlock) };
    }
    if bytes.try_enter() { 0 } else { EBUSY }
}

/// `pthread_rwlock_clockrdlock` and `pthread_rwlock_timedrdlock`, of a lock that is not handed on; `None` if it is.
pub(crate) unsafe fn read_by(
    setting: Setting,
    rwlock: *mut pthread_rwlock_t,
    deadline: Deadline,
) -> Option<c_int> {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    if bytes.is_libc(setting) {
        return None;
    }
    Some(acquire_by(bytes, deadline, |left| match left {
        None => bytes.try_enter(),
        Some(left) if bytes.flags.load(Relaxed) == layout::WRITERS_FIRST => {
            bytes.latch.try_lock_shared_for(left).is_some()
        }
        Some(left) => bytes.latch.try_acquire_shared_recursive_for(left),
    }))
}

/// `pthread_rwlock_wrlock`.
#[inline(always)]
pub(crate) unsafe fn write(setting: Setting, rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    if bytes.is_libc(setting) {
        // SAFETY: the caller's.
        return unsafe { real::pthread_rwlock_wrlock(rwlock) };
    }
    if bytes.is_written_by_caller() {
        return EDEADLK;
    }
    bytes.latch.acquire_exclusive();
    bytes.writer.store(caller(), Relaxed);
    0
}

/// `pthread_rwlock_trywrlock`.
pub(crate) unsafe fn try_write(setting: Setting, rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    if bytes.is_libc(setting) {
        // SAFETY: the caller's.
        return unsafe { real::pthread_rwlock_trywrlock(rwlock) };
    }
    if !bytes.latch.try_acquire_exclusive() {
        return EBUSY;
    }
    bytes.writer.store(caller(), Relaxed);
    0
}

/// `pthread_rwlock_clockwrlock` and `pthread_rwlock_timedwrlock`, of a lock that is not handed on; `None` if it is.
pub(crate) unsafe fn write_by(
    setting: Setting,
    rwlock: *mut pthread_rwlock_t,
    deadline: Deadline,
) -> Option<c_int> {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    if bytes.is_libc(setting) {
        return None;
    }
    let result = acquire_by(bytes, deadline, |left| match left {
        None => bytes.latch.try_acquire(),
        Some(left) => bytes.latch.try_acquire_for(left),
    });
    if result == 0 {
        bytes.writer.store(caller(), Relaxed);
    }
    Some(result)
}

/// `pthread_rwlock_unlock`. A lock that is not held is left as it is.
#[inline(always)]
pub(crate) unsafe fn unlock(setting: Setting, rwlock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's.
    let bytes = unsafe { Bytes::at(rwlock) };
    if bytes.is_libc(setting) {
        // SAFETY: the caller's.
        return unsafe { real::pthread_rwlock_unlock(rwlock) };
    }
    bytes.release();
    0
}
