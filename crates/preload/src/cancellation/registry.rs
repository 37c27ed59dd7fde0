//! The threads that wait for a condition, so that one that is cancelled can be notified.
//!
//! # Protocol
//! 1. *To wait*: read `cancels`; give up if a cancellation is pending. Do step 1 of the variable's protocol: be counted, and
//!    read its number. Lock the list. If `cancels` has changed, unlock, and begin again. Join the list; unlock; sleep.
//!    When the sleep is over, leave the list under its lock, and only then be counted no more.
//! 2. *To cancel*, when the cancellation is pending: add one to `cancels`; lock the list; mark each entry of that thread, and
//!    notify its variable; unlock.
//!
//! # Rules
//! - K1. An entry is on the list only while its thread is counted as a waiter of its variable. So the variable is there for a
//!   thread that cancels, which looks at it under the list's lock.
//! - K2. A waiter that the look of step 2 does not find joins after it, or has left. One that joins has locked the list after
//!   that look. So it sees `cancels` changed, unless it had read it after the change, and then the cancellation was
//!   pending when it looked for that.
//! - K3. A waiter that the look finds has been counted and has read the number before it joined. So the notification ends its
//!   sleep, or keeps it from beginning.
//! - K4. A thread gives up off the list, without its lock, and not counted: it may unwind.
//!
//! A simpler version joins before it is counted. Then a notification in between finds no waiter, changes nothing, and the
//! thread sleeps although it is cancelled.
//!
//! There are [`LISTS`] lists, chosen by the thread's number, so that threads that wait seldom meet at one. A wait costs two
//! acquisitions of its list's latch, beside a system call.

use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_latch::{ClassOf, FetchAddBts, SrwCondvar, SrwMutex};
use clearway_machine::{AtomicWord, Machine};

/// Lists; a power of two.
const LISTS: usize = 64;

/// Threads that wait, in lists.
pub(crate) struct Registry<C: ClassOf, M: Machine> {
    /// Cancellations so far, wrapping.
    cancels: M::U32,
    lists: [List<C, M>; LISTS],
}

/// Threads that wait, under a latch.
#[repr(align(64))]
struct List<C: ClassOf, M: Machine> {
    latch: SrwMutex<C, M, FetchAddBts>,
    first: UnsafeCell<*const Entry<C, M>>,
}

/// A thread that waits. It stays where it is while it is on a list.
pub(crate) struct Entry<C: ClassOf, M: Machine> {
    thread: usize,
    variable: *const SrwCondvar<C, M, FetchAddBts>,
    /// The rest is read and written under the list's latch.
    links: UnsafeCell<Links<C, M>>,
}

struct Links<C: ClassOf, M: Machine> {
    is_cancelled: bool,
    next: *const Entry<C, M>,
    previous: *const Entry<C, M>,
}

// SAFETY: the lists are read and written under their latches, and of an entry of another thread nothing but what that thread has
// written before it joined, or what is under the latch.
unsafe impl<C: ClassOf, M: Machine> Sync for Registry<C, M> {}
// SAFETY: as above.
unsafe impl<C: ClassOf, M: Machine> Send for Registry<C, M> {}

impl<C: ClassOf, M: Machine> Registry<C, M> {
    /// Without a thread. For model checks; the library's own is zeros.
    #[allow(dead_code)]
    pub(crate) fn new() -> Self {
        Self {
            cancels: M::U32::new(0),
            lists: core::array::from_fn(|_| List {
                latch: SrwMutex::idle(),
                first: UnsafeCell::new(ptr::null()),
            }),
        }
    }

    fn list_of(&self, thread: usize) -> &List<C, M> {
        // Numbers of threads are addresses, aligned to more than this.
        &self.lists[(thread >> 6).wrapping_mul(0x9E37_79B1) >> 16 & (LISTS - 1)]
    }

    /// The cancellations so far. A caller looks afterwards for one that is pending, and gives [`join`](Self::join) the number.
    pub(crate) fn cancels(&self) -> u32 {
        // Acquire: pairs with the Release in `cancel`; a cancellation that is counted is pending (K2).
        self.cancels.load(Acquire)
    }

    /// Puts `entry` on its list, unless there were cancellations since they were `before`. Returns whether it did so.
    ///
    /// # Safety
    /// The thread is counted by the entry's variable (K3). The entry is on no list, and stays where it is until
    /// [`leave`](Self::leave).
    pub(crate) unsafe fn join(&self, entry: &Entry<C, M>, before: u32) -> bool {
        let list = self.list_of(entry.thread);
        let _held = list.latch.exclusive();
        if self.cancels.load(Relaxed) != before {
            return false;
        }
        // SAFETY: under the latch, with entries that are there (K1).
        unsafe {
            let second = *list.first.get();
            *entry.links.get() = Links {
                is_cancelled: false,
                next: second,
                previous: ptr::null(),
            };
            if let Some(second) = second.as_ref() {
                (*second.links.get()).previous = entry;
            }
            *list.first.get() = entry;
        }
        true
    }

    /// Takes `entry` off its list. Returns whether its thread was cancelled meanwhile.
    ///
    /// # Safety
    /// The entry has joined, and the thread is counted by its variable still (K1).
    pub(crate) unsafe fn leave(&self, entry: &Entry<C, M>) -> bool {
        let list = self.list_of(entry.thread);
        let _held = list.latch.exclusive();
        // SAFETY: as in `join`.
        unsafe {
            let Links {
                is_cancelled,
                next,
                previous,
            } = *entry.links.get();
            match previous.as_ref() {
                Some(previous) => (*previous.links.get()).next = next,
                None => *list.first.get() = next,
            }
            if let Some(next) = next.as_ref() {
                (*next.links.get()).previous = previous;
            }
            is_cancelled
        }
    }

    /// Ends the waits of `thread`, of which a cancellation is pending.
    pub(crate) fn cancel(&self, thread: usize) {
        // Release: pairs with the Acquire in `cancels`.
        self.cancels.fetch_add(1, Release);
        let list = self.list_of(thread);
        let _held = list.latch.exclusive();
        // SAFETY: as in `join`; the variables are there (K1).
        unsafe {
            let mut next = *list.first.get();
            while let Some(entry) = next.as_ref() {
                let links = &mut *entry.links.get();
                if entry.thread == thread {
                    links.is_cancelled = true;
                    (*entry.variable).notify_all();
                }
                next = links.next;
            }
        }
    }

    /// Forgets all threads that wait, and those that hold a latch.
    ///
    /// # Safety
    /// No other thread uses the registry, and none will that does so now.
    pub(crate) unsafe fn forget(&self) {
        for list in &self.lists {
            let latch = ptr::from_ref(&list.latch)
                .cast_mut()
                .cast::<ManuallyDrop<SrwMutex<C, M, FetchAddBts>>>();
            // SAFETY: the caller's; the latch is made of cells, and nothing is lost with the one that was there.
            unsafe {
                latch.write(ManuallyDrop::new(SrwMutex::idle()));
                *list.first.get() = ptr::null();
            }
        }
    }
}

impl<C: ClassOf, M: Machine> Entry<C, M> {
    /// The thread `thread`, which is about to wait for `variable`.
    pub(crate) fn new(thread: usize, variable: &SrwCondvar<C, M, FetchAddBts>) -> Self {
        Self {
            thread,
            variable,
            links: UnsafeCell::new(Links {
                is_cancelled: false,
                next: ptr::null(),
                previous: ptr::null(),
            }),
        }
    }
}
