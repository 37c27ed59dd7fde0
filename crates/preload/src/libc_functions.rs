//! libc's own functions of the names that this library exports, for what is handed on.
//!
//! All are looked up when the library is loaded. A lookup takes the loader's lock, and allocates in some versions of glibc: at a
//! lock call it could wait for a constructor that waits for that call, or be inside of the program's `malloc`. Only a library
//! that is initialised before this one, and hands a lock on then, has a function looked up at its first use.
//!
//! On x86-64 the functions of condition variables exist twice. glibc before 2.36 finds the old ones by a name without a version
//! (its bug 14932), and those expect a variable of another layout. So the version is named.

use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};
use std::os::raw::{c_int, c_void};

use libc::{
    clockid_t, pthread_cond_t, pthread_mutex_t, pthread_rwlock_t, pthread_spinlock_t, pthread_t, timespec,
};

use crate::tell::tell;

/// A function of the libraries behind this one.
struct Function {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

/// The version of the functions of condition variables.
const OF_CONDITIONS: Option<&CStr> = if cfg!(target_arch = "x86_64") {
    Some(c"GLIBC_2.3.2")
} else {
    None
};

impl Function {
    const fn named(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Looks the function up. Null if there is none.
    fn look_up(&self) -> *mut c_void {
        let mut found = core::ptr::null_mut();
        if let Some(version) = OF_CONDITIONS
            && self.name.to_bytes().starts_with(b"pthread_cond_")
        {
            // SAFETY: names that end with a zero.
            found = unsafe { libc::dlvsym(libc::RTLD_NEXT, self.name.as_ptr(), version.as_ptr()) };
        }
        // A function that came later has no such version.
        if found.is_null() {
            // SAFETY: as above.
            found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        }
        self.address.store(found, Ordering::Relaxed);
        found
    }

    /// Ends the process if there is no such function.
    #[cold]
    fn look_up_late(&self) -> *mut c_void {
        let found = self.look_up();
        if found.is_null() {
            tell(format_args!(
                "no library has the function {:?} that a lock is handed on to",
                self.name
            ));
            // SAFETY: ends the process.
            unsafe { libc::abort() };
        }
        found
    }

    #[inline(always)]
    fn address(&self) -> *mut c_void {
        let address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            self.look_up_late()
        } else {
            address
        }
    }
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// The functions, each by its own name.
        #[allow(non_upper_case_globals)]
        mod functions {
            use core::ffi::CStr;

            use super::Function;

            $(
                pub(super) static $name: Function = Function::named(
                    match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                        Ok(name) => name,
                        Err(_) => panic!("a name with a zero in it"),
                    }
                );
            )*
        }

        /// Looks all functions up. A message about one that this libc does not have comes when it is called.
        pub(crate) fn look_up_all() {
            $( functions::$name.look_up(); )*
            // SAFETY: no arguments. The program must not find an error of these look-ups.
            unsafe { libc::dlerror() };
        }

        $(
        /// libc's.
        ///
        /// # Safety
        /// As POSIX has it.
        pub(crate) unsafe fn $name($($argument: $type),*) -> c_int {
            let found = functions::$name.address();
            // SAFETY: POSIX's function of that name, with the arguments that it has. It may be cancelled, and unwinds then.
            let function = unsafe {
                core::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> c_int>(found)
            };
            // SAFETY: the caller's.
            unsafe { function($($argument),*) }
        }
        )*
    };
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
