//! `pthread_cancel` of a thread that waits for a condition variable of ours.
//!
//! POSIX has such a thread end its wait, acquire the mutex, and unwind. libc does that by a system call that it can
//! interrupt; ours is none. So threads that wait are on a list (`registry`, with the rules), and a thread that cancels another one
//! notifies the variable for which that one waits. All its waiters then return early, which a caller allows for; the cancelled
//! one acquires its mutex and unwinds.
//!
//! A child of `fork` has no waiter, and empties the lists before anything else runs in it.

mod registry;

use std::os::raw::c_int;

use clearway_machine::Bare;
use libc::pthread_t;

use self::registry::{Entry, Registry};
use crate::latch::{Condvar, Preloaded};
use crate::mutex::caller;
use crate::setting::Setting;

// SAFETY: all words of the registry are atomics, latches and pointers, for which zero is 0, idle and null.
static WAITING: Registry<Preloaded, Bare> = unsafe { core::mem::zeroed() };

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Unwinds if the thread is cancelled and has not disabled that. The caller has nothing to drop, nor have the frames between it
/// and the program's.
pub(crate) fn test() {
    // SAFETY: by the caller.
    unsafe { pthread_testcancel() };
}

/// A wait of the calling thread.
pub(crate) struct Wait {
    entry: Entry<Preloaded, Bare>,
    cancels: u32,
    is_listed: bool,
}

impl Wait {
    /// A wait for `variable`. Unwinds if a cancellation is pending.
    pub(crate) fn new(variable: &Condvar) -> Self {
        let cancels = WAITING.cancels();
        test();
        Self {
            entry: Entry::new(caller(), variable),
            cancels,
            is_listed: false,
        }
    }

    /// Has the wait end when the thread is cancelled. False if it may have been cancelled since `new`.
    ///
    /// # Safety
    /// The thread is counted by the variable, and the wait does not move until `end`.
    pub(crate) unsafe fn begin(&mut self) -> bool {
        // SAFETY: the caller's.
        self.is_listed = unsafe { WAITING.join(&self.entry, self.cancels) };
        self.is_listed
    }

    /// Ends what `begin` has begun, if it has. Returns whether the thread was cancelled meanwhile.
    ///
    /// # Safety
    /// The thread is counted by the variable still.
    pub(crate) unsafe fn end(&mut self) -> bool {
        // SAFETY: the caller's.
        self.is_listed && unsafe { WAITING.leave(&self.entry) }
    }
}

/// `pthread_cancel`.
pub(crate) unsafe fn cancel(thread: pthread_t) -> c_int {
    // SAFETY: the caller's.
    let result = unsafe { crate::libc_functions::pthread_cancel(thread) };
    if !Setting::current().is_libc() {
        WAITING.cancel(thread as usize);
    }
    result
}

unsafe extern "C" fn forget() {
    // SAFETY: the child of a fork has one thread, and it waits for nothing.
    unsafe { WAITING.forget() };
}

/// Has the lists emptied in each child of a fork.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = {
    extern "C" fn at_load() {
        // SAFETY: a function that may run in the child. Without memory for it nothing can be done.
        unsafe { libc::pthread_atfork(None, None, Some(forget)) };
    }
    at_load
};
