//! SrwCondvar: a condition variable of eight bytes for an [`SrwMutex`].
//!
//! A worker that holds the mutex and finds that it has nothing to do waits here without it. A worker that has changed, with
//! the mutex, what others may wait for notifies one or all of them.
//!
//! # State
//! | word | holds |
//! | --- | --- |
//! | `notifications` | notifications so far, wrapping; what waiters sleep on |
//! | `waiters` | workers between steps 1 and 4 below |
//!
//! # Protocol
//! 1. *Wait*: with the mutex, count oneself in `waiters` and read `notifications`.
//! 2. Release the mutex.
//! 3. Sleep while `notifications` is what was read, or until the time is over.
//! 4. Take oneself off `waiters`, and acquire the mutex.
//! 5. *Notify*: if `waiters` is 0, do nothing. Else add one to `notifications`, then wake one sleeper, or all.
//!
//! # Rules
//! - C1. A waiter is counted, and has read `notifications`, before it releases the mutex. A notifier changes what the
//!   waiter looks at with the mutex, after that release, and notifies afterwards. So it sees the waiter counted, and what it
//!   adds is not what the waiter has read.
//! - C2. The kernel compares `notifications` and queues the sleeper in one step. So a notification between step 1 and the
//!   sleep keeps the waiter awake, and a later one finds it asleep.
//! - C3. A waiter that is woken goes on, whatever the number is. A wake-up may reach a worker that has begun to wait after the
//!   number had changed, since the kernel wakes workers of a higher priority first. If that one slept again, the one for which
//!   the wake-up was would sleep on, too.
//!
//! A simpler version lets waiters sleep on a flag that the notifier sets and the waiter clears: one waiter clears what
//! another one needs.
//!
//! # What it does not do
//! A waiter may return without a notification for it: one that was not asleep yet at the time of another's sees the number
//! changed. Callers look at their condition again (`wait_while`). 2^32 notifications between a waiter's step 1 and its
//! sleep would be missed. A notifier that changes the condition without the mutex has no promise (C1).
//!
//! Costs: two locked instructions for a wait beside those of the mutex; a notification without waiters is one load. All that
//! are notified at once wake, and then want the mutex one after the other.
//!
//! Origin: the condition variable of Rust's std on futexes; parking_lot's makes no call either when none waits.

use core::marker::PhantomData;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::time::Duration;

use clearway_machine::{AtomicWord, CoreU32, FutexOutcome, Host, Machine, WaitScope};

use super::holder::{HolderProtocol, SingleWake};
use super::srw_mutex::{SrwMutex, SrwMutexGuard};
use crate::class::{ClassOf, Unclassed};
use crate::waiting::deadline;

/// A condition variable for an [`SrwMutex`] of the same class, whose wait event its waiters publish.
#[derive(Debug)]
pub struct SrwCondvar<C: ClassOf = Unclassed, M: Machine = Host, P: HolderProtocol = SingleWake> {
    notifications: M::U32,
    waiters: M::U32,
    mutex: PhantomData<fn() -> (C, P)>,
}

const _: () = assert!(size_of::<SrwCondvar>() == 8);

impl<C: ClassOf, P: HolderProtocol> SrwCondvar<C, Host, P> {
    /// Without waiters.
    pub const fn new() -> Self {
        Self::const_idle()
    }
}

impl<C: ClassOf, M: Machine<U32 = CoreU32>, P: HolderProtocol> SrwCondvar<C, M, P> {
    /// Without waiters, for a static of any machine that uses core's words.
    pub(crate) const fn const_idle() -> Self {
        Self {
            notifications: CoreU32::new_const(0),
            waiters: CoreU32::new_const(0),
            mutex: PhantomData,
        }
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> Default for SrwCondvar<C, M, P> {
    fn default() -> Self {
        Self::idle()
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> SrwCondvar<C, M, P> {
    /// Without waiters, of any machine.
    pub fn idle() -> Self {
        Self {
            notifications: M::U32::new(0),
            waiters: M::U32::new(0),
            mutex: PhantomData,
        }
    }

    /// Waits for a notification, without the mutex that `guard` holds. May return without one.
    ///
    /// All waiters of a variable hold the same mutex: with another one C1 does not hold, and a notification may be missed.
    #[track_caller]
    pub fn wait(&self, guard: &mut SrwMutexGuard<'_, C, M, P>) {
        self.wait_with(guard.latch(), None);
    }

    /// As [`wait`](Self::wait), for `timeout` at most. Returns whether that time was over.
    #[track_caller]
    pub fn wait_for(&self, guard: &mut SrwMutexGuard<'_, C, M, P>, timeout: Duration) -> bool {
        self.wait_with(guard.latch(), Some(timeout))
    }

    /// Steps 1 to 4. The caller holds `mutex`. Returns whether the wait ended because the time was over.
    #[track_caller]
    pub(crate) fn wait_with(&self, mutex: &SrwMutex<C, M, P>, timeout: Option<Duration>) -> bool {
        mutex.check_wait_without();
        let give_up = || {
            mutex.release();
            true
        };
        let timed_out = self.wait_without(timeout, give_up, || ());
        mutex.acquire_again();
        timed_out
    }

    /// Waits for a notification, for `timeout` at most, by a caller with a mutex of any kind, which `give_up` releases, and
    /// which the caller acquires again when this has returned. If `give_up` returns `false` there is no wait. `awake` is called
    /// when the sleep is over, and is the last for which the variable is sure to be there ([`waiters`](Self::waiters)). If one
    /// of them unwinds the caller waits no more. Returns whether the time was over.
    ///
    /// C1 needs that what `give_up` releases is what notifiers hold while they change what is waited for.
    pub fn wait_without(
        &self,
        timeout: Option<Duration>,
        give_up: impl FnOnce() -> bool,
        awake: impl FnOnce(),
    ) -> bool {
        let deadline = timeout.and_then(deadline::<M>);
        // Relaxed: C1 is by the mutex, which orders this for every notifier that comes after.
        self.waiters.fetch_add(1, Relaxed);
        let _counted = Counted(&self.waiters);
        let seen = self.notifications.load(Relaxed);
        let timed_out = give_up() && self.sleep(seen, deadline);
        awake();
        timed_out
    }

    /// Step 3. Returns whether the time was over first.
    fn sleep(&self, seen: u32, deadline: Option<u64>) -> bool {
        let _published = WaitScope::<M>::enter(C::class().wait_event);
        while self.notifications.load(Relaxed) == seen {
            let left = deadline.map(|deadline| deadline.saturating_sub(M::now()));
            if left == Some(0) {
                return true;
            }
            let outcome = M::futex_wait(&self.notifications, seen, left.map(Duration::from_nanos));
            match outcome {
                // C3.
                FutexOutcome::Woken => return false,
                // Also the end on a machine without a clock.
                FutexOutcome::TimedOut => return self.notifications.load(Relaxed) == seen,
                FutexOutcome::Changed => {}
            }
        }
        false
    }

    /// Number of workers that wait, or have been told to go on and have not yet. None of those that are not counted any more
    /// accesses the variable again (Acquire), so a caller that finds 0, and knows that no worker will wait from now on, may
    /// free it.
    pub fn waiters(&self) -> u32 {
        self.waiters.load(Acquire)
    }

    /// Ends the wait of one worker, if any waits. Returns whether it woke one; one that was not asleep yet goes on by
    /// itself, and is not counted.
    pub fn notify_one(&self) -> bool {
        self.notify(1) != 0
    }

    /// Ends the wait of all workers that wait. Returns how many were asleep.
    pub fn notify_all(&self) -> usize {
        self.notify(u32::MAX) as usize
    }

    #[inline]
    fn notify(&self, count: u32) -> u32 {
        // C1: a waiter that this notification is for is seen here.
        if self.waiters.load(Relaxed) == 0 {
            return 0;
        }
        self.notify_slow(count)
    }

    #[cold]
    fn notify_slow(&self, count: u32) -> u32 {
        self.notifications.fetch_add(1, Relaxed);
        M::futex_wake(&self.notifications, count)
    }
}

/// A worker that is counted as a waiter until this is dropped.
struct Counted<'a, W: AtomicWord<u32>>(&'a W);

impl<W: AtomicWord<u32>> Drop for Counted<'_, W> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `waiters`; a caller that finds none may free the variable.
        self.0.fetch_sub(1, Release);
    }
}
