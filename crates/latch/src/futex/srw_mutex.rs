//! SrwMutex: a mutex of four bytes. Its protocol is that of the word, in `holder`.
//!
//! Uncontended, an acquisition is one CAS and a release one subtraction. Waiters sleep on the word itself, so
//! a latch needs no memory beside it. A waiter needs a worker slot only to publish its wait event.
//!
//! There is no order among waiters and no bound on a wait. A worker that finds the mutex free takes it.

use core::marker::PhantomData;
use core::time::Duration;

use clearway_machine::{CoreU32, Host, Machine};

use super::holder::{HolderProtocol, HolderWord, SingleWake};
use crate::class::{ClassOf, Unclassed, Wait};
use crate::order;
use crate::waiting::Waiting;

/// A mutex of four bytes. `C` names its class, `P` the variant that changes its word.
#[derive(Debug)]
pub struct SrwMutex<C: ClassOf = Unclassed, M: Machine = Host, P: HolderProtocol = SingleWake> {
    word: HolderWord<P, M>,
    class: PhantomData<fn() -> C>,
}

const _: () = assert!(size_of::<SrwMutex>() == 4);

impl<C: ClassOf, P: HolderProtocol> SrwMutex<C, Host, P> {
    /// An idle mutex.
    pub const fn new() -> Self {
        Self::const_idle()
    }
}

impl<C: ClassOf, M: Machine<U32 = CoreU32>, P: HolderProtocol> SrwMutex<C, M, P> {
    /// An idle mutex for a static of any machine that uses core's words.
    pub(crate) const fn const_idle() -> Self {
        Self {
            word: HolderWord::IDLE,
            class: PhantomData,
        }
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> Default for SrwMutex<C, M, P> {
    fn default() -> Self {
        Self::idle()
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> SrwMutex<C, M, P> {
    /// An idle mutex of any machine.
    pub fn idle() -> Self {
        Self {
            word: HolderWord::new(),
            class: PhantomData,
        }
    }

    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Panics
    /// In debug builds, if the calling thread holds this mutex or a latch of a higher rank.
    #[inline]
    #[track_caller]
    pub fn exclusive(&self) -> SrwMutexGuard<'_, C, M, P> {
        self.acquire();
        SrwMutexGuard::new(self)
    }

    /// Acquires the mutex if that needs no waiting.
    #[inline]
    #[track_caller]
    pub fn try_exclusive(&self) -> Option<SrwMutexGuard<'_, C, M, P>> {
        self.try_acquire().then(|| SrwMutexGuard::new(self))
    }

    /// Acquires the mutex if that takes no longer than `timeout`. An attempt that fails has lasted that long, or longer. As
    /// no attempt waits for ever, the order of latches is not checked.
    ///
    /// A time that the clock cannot say is no limit. A machine without a clock does not keep the time: the attempt ends when a
    /// sleep says that its time is over, on [`Platform::polling`](clearway_machine::Platform::polling) after 1,024 looks.
    #[track_caller]
    pub fn try_exclusive_for(&self, timeout: Duration) -> Option<SrwMutexGuard<'_, C, M, P>> {
        self.try_acquire_for(timeout).then(|| SrwMutexGuard::new(self))
    }

    /// True if the mutex was held at some instant during the call.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.word.is_held()
    }

    /// For the worker that stands in for a dead one.
    pub(super) fn word(&self) -> &HolderWord<P, M> {
        &self.word
    }

    fn address(&self) -> *const () {
        core::ptr::from_ref(self).cast()
    }

    /// Acquires without a guard; the caller pairs it with [`release`](Self::release).
    #[inline]
    #[track_caller]
    pub(crate) fn acquire(&self) {
        order::acquiring::<M>(C::class(), self.address());
        if !self.word.take_idle(0) {
            self.acquire_slow();
        }
        self.note_acquired();
    }

    #[inline]
    #[track_caller]
    pub(crate) fn try_acquire(&self) -> bool {
        let acquired = self.word.try_take(0);
        if acquired {
            self.note_acquired();
        }
        acquired
    }

    #[track_caller]
    pub(crate) fn try_acquire_for(&self, timeout: Duration) -> bool {
        let acquired = self.word.try_take(0) || self.acquire_within(timeout);
        if acquired {
            self.note_acquired();
        }
        acquired
    }

    #[cold]
    #[track_caller]
    fn acquire_within(&self, timeout: Duration) -> bool {
        let mut waiting = Waiting::begin_within::<M>(C::class(), Wait::Exclusive, self.address(), timeout);
        let acquired = self.word.take_slow(&mut waiting, 0);
        waiting.finish::<M>();
        acquired
    }

    /// In debug builds, panics if the thread, which holds the mutex, has taken another latch behind it: it will want the
    /// mutex again while it holds that one.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check_wait_without(&self) {
        order::waiting_without::<M>(C::class(), self.address());
    }

    /// As [`acquire`](Self::acquire), for a worker that has given the mutex up for a while, and has checked the order before
    /// by [`check_wait_without`](Self::check_wait_without).
    #[track_caller]
    pub(super) fn acquire_again(&self) {
        if !self.word.take_idle(0) {
            self.acquire_slow();
        }
        self.note_acquired();
    }

    /// Gives back what [`acquire`](Self::acquire) or [`try_acquire`](Self::try_acquire) took.
    #[inline]
    pub(crate) fn release(&self) {
        order::released::<M>(self.address());
        self.word.release(0);
    }

    /// Releases the mutex, whose memory the next holder may free or use for something else as soon as it has it: the release
    /// is one access to the word, and after that at most a wake-up by its address.
    ///
    /// That is what POSIX asks of `pthread_mutex_unlock`, and what the release of a guard, which looks at the word again, does
    /// not promise.
    ///
    /// # Safety
    /// The caller holds the mutex, without a guard or by one that it has forgotten.
    #[inline]
    pub unsafe fn release_to_be_freed(&self) {
        order::released::<M>(self.address());
        self.word.release_to_be_freed(0);
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn acquire_slow(&self) {
        // Not a conflict if there are only waiters. A woken waiter is registered all the time, and may wait
        // for a CPU for long.
        if self.word.try_take_from(self.word.look(), 0) {
            return;
        }
        let mut waiting = Waiting::begin::<M>(C::class(), Wait::Exclusive, self.address());
        let taken = self.word.take_slow(&mut waiting, 0);
        debug_assert!(taken, "a wait without a limit was given up");
        waiting.finish::<M>();
    }

    #[inline]
    #[track_caller]
    fn note_acquired(&self) {
        order::acquired::<M>(C::class(), self.address());
        C::class().count::<M>(Wait::Exclusive);
    }
}

/// Holds an [`SrwMutex`].
#[derive(Debug)]
#[must_use = "the mutex is released at once if its guard is dropped"]
pub struct SrwMutexGuard<'a, C: ClassOf = Unclassed, M: Machine = Host, P: HolderProtocol = SingleWake> {
    mutex: &'a SrwMutex<C, M, P>,
    // A latch is released by the worker that acquired it.
    not_send: PhantomData<*const ()>,
}

impl<'a, C: ClassOf, M: Machine, P: HolderProtocol> SrwMutexGuard<'a, C, M, P> {
    fn new(mutex: &'a SrwMutex<C, M, P>) -> Self {
        Self {
            mutex,
            not_send: PhantomData,
        }
    }

    /// The mutex this guard holds.
    pub fn latch(&self) -> &'a SrwMutex<C, M, P> {
        self.mutex
    }
}

impl<C: ClassOf, M: Machine, P: HolderProtocol> Drop for SrwMutexGuard<'_, C, M, P> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.release();
    }
}
