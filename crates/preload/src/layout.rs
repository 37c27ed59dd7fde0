//! The places where glibc keeps the marks of an object (L1), and a check that this libc keeps them there.
//!
//! That of a mutex is a part of every program: a static initialiser of a recursive mutex writes it. The others could change with
//! a version of glibc, so they are looked for in objects that libc initialises.

use std::os::raw::c_int;

use libc::{pthread_cond_t, pthread_mutex_t, pthread_rwlock_t};

/// Offset of a mutex's kind, which has no flag set if the mutex is ours.
pub(crate) const MUTEX_KIND: usize = 16;
/// Offset of an rwlock's word that is not 0 if processes share it.
pub(crate) const RWLOCK_SHARED: usize = 28;
/// Offset of an rwlock's kind.
pub(crate) const RWLOCK_KIND: usize = 48;
/// The kind `PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`.
pub(crate) const WRITERS_FIRST: u32 = 2;
/// Offset of a condition variable's flags.
pub(crate) const COND_FLAGS: usize = 36;
/// In a condition variable's flags: processes share it.
pub(crate) const COND_SHARED: u32 = 1;
/// In a condition variable's flags: points in time are of the monotonic clock.
pub(crate) const COND_MONOTONIC: u32 = 2;

unsafe extern "C" {
    fn pthread_rwlockattr_setkind_np(attributes: *mut libc::pthread_rwlockattr_t, kind: c_int) -> c_int;
}

/// The word at `offset` of `object`.
fn word<T>(object: &T, offset: usize) -> u32 {
    assert!(offset + size_of::<u32>() <= size_of::<T>());
    // SAFETY: inside of the object, whose bytes are all initialised; no thread uses it.
    unsafe {
        core::ptr::from_ref(object)
            .cast::<u8>()
            .add(offset)
            .cast::<u32>()
            .read_unaligned()
    }
}

/// True if libc leaves zeros in the first `count` bytes of an object, where a latch will be.
fn is_idle<T>(object: &T, count: usize) -> bool {
    (0..count / 4).all(|number| word(object, 4 * number) == 0)
}

/// True if libc's marks are where this library looks for them.
pub(crate) fn is_as_expected() -> bool {
    mutex_is_as_expected() && rwlock_is_as_expected() && cond_is_as_expected()
}

fn mutex_is_as_expected() -> bool {
    // SAFETY: bytes that libc initialises and that no thread locks; zeros are a value of each type.
    unsafe {
        let (mut mutex, mut attributes): (pthread_mutex_t, _) = core::mem::zeroed();
        libc::pthread_mutexattr_init(&mut attributes);
        libc::pthread_mutexattr_settype(&mut attributes, libc::PTHREAD_MUTEX_RECURSIVE);
        libc::pthread_mutex_init(&mut mutex, &attributes);
        let recursive = word(&mutex, MUTEX_KIND);
        let idle = is_idle(&mutex, MUTEX_KIND);
        libc::pthread_mutexattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
        libc::pthread_mutex_init(&mut mutex, &attributes);
        let shared = word(&mutex, MUTEX_KIND);
        libc::pthread_mutexattr_destroy(&mut attributes);
        idle && recursive == libc::PTHREAD_MUTEX_RECURSIVE as u32 && shared > 3
    }
}

fn rwlock_is_as_expected() -> bool {
    // SAFETY: as above.
    unsafe {
        let (mut rwlock, mut attributes): (pthread_rwlock_t, _) = core::mem::zeroed();
        libc::pthread_rwlockattr_init(&mut attributes);
        pthread_rwlockattr_setkind_np(&mut attributes, WRITERS_FIRST as c_int);
        libc::pthread_rwlock_init(&mut rwlock, &attributes);
        let private = (word(&rwlock, RWLOCK_SHARED), word(&rwlock, RWLOCK_KIND));
        let idle = is_idle(&rwlock, 16);
        libc::pthread_rwlockattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
        libc::pthread_rwlock_init(&mut rwlock, &attributes);
        let shared = word(&rwlock, RWLOCK_SHARED);
        libc::pthread_rwlockattr_destroy(&mut attributes);
        idle && private == (0, WRITERS_FIRST) && shared != 0
    }
}

fn cond_is_as_expected() -> bool {
    // SAFETY: as above.
    unsafe {
        let (mut cond, mut attributes): (pthread_cond_t, _) = core::mem::zeroed();
        libc::pthread_condattr_init(&mut attributes);
        libc::pthread_cond_init(&mut cond, &attributes);
        let private = word(&cond, COND_FLAGS);
        let idle = is_idle(&cond, 8);
        libc::pthread_condattr_setclock(&mut attributes, libc::CLOCK_MONOTONIC);
        libc::pthread_cond_init(&mut cond, &attributes);
        let monotonic = word(&cond, COND_FLAGS);
        libc::pthread_condattr_setpshared(&mut attributes, libc::PTHREAD_PROCESS_SHARED);
        libc::pthread_cond_init(&mut cond, &attributes);
        let shared = word(&cond, COND_FLAGS);
        libc::pthread_condattr_destroy(&mut attributes);
        idle && private == 0 && monotonic == COND_MONOTONIC && shared == COND_MONOTONIC | COND_SHARED
    }
}
