//! libc's own functions of the names that this library exports, for what is handed on.
//!
//! Each is looked up at its first use. The lookup takes the loader's own lock, which is none of ours, and allocates nothing when
//! it finds the name; so it may happen inside of the program's `malloc`. A name without a version is the newest version.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::os::raw::{c_int, c_void};

use libc::{
    clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_spinlock_t, pthread_t, timespec,
};

use crate::tell::tell;

/// Looks `name` up in the libraries behind this one.
#[cold]
fn find(place: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    // SAFETY: a name that ends with a zero.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        tell(format_args!(
            "no library has the function {name:?} that a lock is handed on to"
        ));
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
    place.store(found, Ordering::Relaxed);
    found
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => { $(
        /// libc's.
        ///
        /// # Safety
        /// As POSIX has it.
        pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
            const NAME: &CStr = match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!("a name with a zero in it"),
            };
            static PLACE: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
            let mut found = PLACE.load(Ordering::Relaxed);
            if found.is_null() {
                found = find(&PLACE, NAME);
            }
            // SAFETY: POSIX's function of that name, with the arguments that it has. It may be cancelled, and unwinds then.
            let function = unsafe {
                core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> c_int>(found)
            };
            // SAFETY: the caller's.
            unsafe { function($($argument),*) }
        }
    )* };
}

functions! {
    pthread_mutex_lock(mutex: *mut pthread_mutex_t);
    pthread_mutex_trylock(mutex: *mut pthread_mutex_t);
    pthread_mutex_timedlock(mutex: *mut pthread_mutex_t, at: *const timespec);
    pthread_mutex_clocklock(mutex: *mut pthread_mutex_t, clock: clockid_t, at: *const timespec);
    pthread_mutex_unlock(mutex: *mut pthread_mutex_t);
    pthread_mutex_destroy(mutex: *mut pthread_mutex_t);
    pthread_rwlock_rdlock(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_tryrdlock(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_timedrdlock(rwlock: *mut pthread_rwlock_t, at: *const timespec);
    pthread_rwlock_clockrdlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, at: *const timespec);
    pthread_rwlock_wrlock(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_trywrlock(rwlock: *mut pthread_rwlock_t);
    pthread_rwlock_timedwrlock(rwlock: *mut pthread_rwlock_t, at: *const timespec);
    pthread_rwlock_clockwrlock(rwlock: *mut pthread_rwlock_t, clock: clockid_t, at: *const timespec);
    pthread_rwlock_unlock(rwlock: *mut pthread_rwlock_t);
    pthread_spin_init(spin: *mut pthread_spinlock_t, shared: c_int);
    pthread_spin_lock(spin: *mut pthread_spinlock_t);
    pthread_spin_trylock(spin: *mut pthread_spinlock_t);
    pthread_spin_unlock(spin: *mut pthread_spinlock_t);
    pthread_cond_wait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t);
    pthread_cond_timedwait(cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, at: *const timespec);
    pthread_cond_clockwait(
        cond: *mut pthread_cond_t, mutex: *mut pthread_mutex_t, clock: clockid_t, at: *const timespec
    );
    pthread_cond_signal(cond: *mut pthread_cond_t);
    pthread_cond_broadcast(cond: *mut pthread_cond_t);
    pthread_cond_destroy(cond: *mut pthread_cond_t);
    pthread_cancel(thread: pthread_t);
}
