//! Writing the table to a file or standard error, when the process exits and on a signal.
//!
//! Each process appends a table of its own, in one piece if the system writes it so: a program may fork, and a shell before it
//! has locks as well.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::os::raw::{c_char, c_int};

use super::table;
use crate::platform;
use crate::setting::Setting;
use crate::tell::{Descriptor, tell};

extern "C" fn on_signal(_signal: c_int) {
    // SAFETY: the thread's own word.
    let errno = unsafe { *libc::__errno_location() };
    write();
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// The name of this program.
fn program() -> &'static CStr {
    unsafe extern "C" {
        static program_invocation_short_name: *const c_char;
    }
    // SAFETY: libc's, set before any library is initialised.
    unsafe { CStr::from_ptr(program_invocation_short_name) }
}

/// True while a thread writes the table.
static WRITING: AtomicBool = AtomicBool::new(false);

fn write() {
    // A signal, and an exit in another thread.
    if WRITING.swap(true, Ordering::Acquire) {
        return;
    }
    let path = Setting::current().place();
    let is_stderr = path == c"stderr";
    let descriptor = if is_stderr {
        Some(libc::STDERR_FILENO)
    } else {
        platform::open_to_append(path)
    };
    if let Some(descriptor) = descriptor {
        let mut out = Descriptor::new(descriptor);
        let _ = table::write(&mut out, program());
        out.flush();
        if !is_stderr {
            platform::close(descriptor);
        }
    } else {
        tell(format_args!(
            "the file that CLEARWAY_REPORT names cannot be written"
        ));
    }
    WRITING.store(false, Ordering::Release);
}

/// Writes the table when the process exits by `exit` or a return from `main`.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        if Setting::current().reports() {
            write();
        }
    }
    at_exit
};

/// A child of a fork begins a table of its own.
unsafe extern "C" fn begin_again() {
    super::forget();
    // Another thread of the parent may have been writing.
    WRITING.store(false, Ordering::Relaxed);
}

/// Has the table written when the signal comes that the settings name, and begun again in each child of a fork.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        if Setting::current().reports() {
            // SAFETY: a function that may run in the child. Without memory for it the child goes on with its parent's counts.
            unsafe { libc::pthread_atfork(None, None, Some(begin_again)) };
        }
        let Some(signal) = Setting::current().signal() else {
            return;
        };
        // SAFETY: all zeros are such a value.
        let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
        action.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: a handler that may run at any time: it allocates nothing and takes none of the program's locks. It takes the
        // loader's lock, to find the names of addresses: a thread that holds that one may take it again, another one waits.
        if unsafe { libc::sigaction(signal, &action, core::ptr::null_mut()) } != 0 {
            tell(format_args!(
                "signal {signal} cannot be handled: no table is written for it"
            ));
        }
    }
    at_load
};
