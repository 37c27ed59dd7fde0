//! `pthread_cancel` of a thread that waits for a condition variable of ours.
//!
//! POSIX has such a thread end its wait, acquire the mutex, and unwind. libc does that by a system call that it can
//! interrupt; ours is none. So threads that wait are listed here, and a thread that cancels another one notifies the
//! variable for which that one waits. All its waiters then return early, which a caller allows for; the cancelled one acquires its
//! mutex and unwinds.
//!
//! # Protocol
//! 1. *To wait*: read `CANCELS`; unwind if a cancellation is pending; lock the list; if `CANCELS` has changed, unlock, and
//!    begin again; join the list; unlock. When the sleep is over, leave the list under its lock.
//! 2. *To cancel*: libc's own function, which notes that the thread is cancelled; add one to `CANCELS`; lock the list; notify
//!    the variable of each entry of that thread, and mark the entry; unlock.
//!
//! # Rules
//! - K1. An entry is on the list only while its thread is counted as a waiter of its variable. So the variable is there for a
//!   thread that cancels, which looks at it under the list's lock.
//! - K2. A waiter that the look of step 2 does not find has locked the list after it. Then it sees `CANCELS` changed, or
//!   had read it after the change, and in both cases sees the cancellation pending before it waits.
//! - K3. A waiter that the look finds is counted, so the notification ends its sleep, or keeps it from beginning
//!   (C1 and C2 of the variable).
//! - K4. A thread unwinds without the list's lock and off the list.
//!
//! A child of `fork` has no waiter, and empties the lists before anything else runs in it.
//!
//! There are [`LISTS`] lists, chosen by the thread's number, so that threads that wait seldom meet at one. A wait costs two
//! acquisitions of its list's latch more, beside a system call.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32};
use std::os::raw::c_int;

use libc::pthread_t;

use crate::latch::{Condvar, Exclusive, FetchAdd};
use crate::mutex::caller;
use crate::setting::Setting;

/// Lists; a power of two.
const LISTS: usize = 64;

/// Cancellations so far, wrapping.
static CANCELS: AtomicU32 = AtomicU32::new(0);

static WAITING: [List; LISTS] = [const { List::new() }; LISTS];

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Unwinds if the thread is cancelled and has not disabled that.
pub(crate) fn test() {
    // SAFETY: the frames up to the program's have nothing to drop.
    unsafe { pthread_testcancel() };
}

/// Threads that wait.
#[repr(align(64))]
struct List {
    latch: UnsafeCell<FetchAdd>,
    /// Changed and followed under the latch.
    first: AtomicPtr<Waiter>,
}

// SAFETY: the latch and the pointer are atomics; `forget` writes the latch where there is one thread.
unsafe impl Sync for List {}

impl List {
    const fn new() -> Self {
        Self {
            // SAFETY: the latch is four bytes, and zero is idle.
            latch: UnsafeCell::new(unsafe { core::mem::transmute::<u32, FetchAdd>(0) }),
            first: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn of(thread: usize) -> &'static Self {
        // Numbers of threads are addresses, aligned to more than this.
        &WAITING[(thread >> 6).wrapping_mul(0x9E37_79B1) >> 16 & (LISTS - 1)]
    }

    /// Calls `act` with the latch.
    fn locked<R>(&self, act: impl FnOnce() -> R) -> R {
        // SAFETY: a latch, for as long as the process lives.
        let latch = unsafe { &*self.latch.get() };
        latch.acquire();
        let result = act();
        // SAFETY: held.
        unsafe { latch.release() };
        result
    }
}

/// A thread that waits, on its stack.
pub(crate) struct Waiter {
    thread: usize,
    variable: *const Condvar,
    is_cancelled: AtomicBool,
    next: AtomicPtr<Waiter>,
    previous: AtomicPtr<Waiter>,
}

impl Waiter {
    /// The calling thread, which is about to wait for `variable`.
    pub(crate) fn new(variable: &Condvar) -> Self {
        Self {
            thread: caller(),
            variable,
            is_cancelled: AtomicBool::new(false),
            next: AtomicPtr::new(ptr::null_mut()),
            previous: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Joins the list. Unwinds if a cancellation is pending (K4). The caller does not move the entry until it has left.
    pub(crate) fn enter(&self) {
        let list = List::of(self.thread);
        loop {
            // Acquire: pairs with the Release in `cancel`; a cancellation that is counted is pending (K2).
            let before = CANCELS.load(Acquire);
            test();
            let entered = list.locked(|| {
                let is_current = CANCELS.load(Relaxed) == before;
                if is_current {
                    self.push(list);
                }
                is_current
            });
            if entered {
                return;
            }
        }
    }

    /// Puts the entry in front of `list`, which is locked.
    fn push(&self, list: &List) {
        let me = ptr::from_ref(self).cast_mut();
        let second = list.first.load(Relaxed);
        self.next.store(second, Relaxed);
        // SAFETY: null, or an entry of the list, which is there until it leaves under the lock.
        if let Some(second) = unsafe { second.as_ref() } {
            second.previous.store(me, Relaxed);
        }
        list.first.store(me, Relaxed);
    }

    /// Leaves the list. Returns whether the thread was cancelled meanwhile.
    pub(crate) fn leave(&self) -> bool {
        let list = List::of(self.thread);
        list.locked(|| {
            let (next, previous) = (self.next.load(Relaxed), self.previous.load(Relaxed));
            // SAFETY: null, or an entry of the list, as in `push`.
            match unsafe { previous.as_ref() } {
                Some(previous) => previous.next.store(next, Relaxed),
                None => list.first.store(next, Relaxed),
            }
            // SAFETY: as above.
            if let Some(next) = unsafe { next.as_ref() } {
                next.previous.store(previous, Relaxed);
            }
            self.is_cancelled.load(Relaxed)
        })
    }
}

/// `pthread_cancel`.
pub(crate) unsafe fn cancel(thread: pthread_t) -> c_int {
    // SAFETY: the caller's.
    let result = unsafe { crate::libc_functions::pthread_cancel(thread) };
    if Setting::current().is_libc() {
        return result;
    }
    // Release: pairs with the Acquire in `enter`.
    CANCELS.fetch_add(1, Release);
    let thread = thread as usize;
    let list = List::of(thread);
    list.locked(|| {
        let mut entry = list.first.load(Relaxed);
        // SAFETY: null, or an entry of the list, as in `push`.
        while let Some(waiter) = unsafe { entry.as_ref() } {
            if waiter.thread == thread {
                waiter.is_cancelled.store(true, Relaxed);
                // SAFETY: K1.
                unsafe { &*waiter.variable }.notify_all();
            }
            entry = waiter.next.load(Relaxed);
        }
    });
    result
}

/// Empties the lists, in the child of a fork.
unsafe extern "C" fn forget() {
    for list in &WAITING {
        // SAFETY: there is one thread, and it waits for nothing.
        unsafe { list.latch.get().cast::<u32>().write(0) };
        list.first.store(ptr::null_mut(), Relaxed);
    }
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
