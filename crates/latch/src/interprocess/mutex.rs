//! A mutex in a segment: the word of an [`SrwMutex`](crate::SrwMutex), with a number for its class.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use clearway_machine::{AtomicWord, CoreU32, Interprocess, SegmentError, SegmentMode};

use super::class::ClassNumber;
use super::placed::Placed;
use super::worker::SegmentWorker;
use crate::class::{ClassHandle, Wait};
use crate::futex::{HolderWord, SingleWake};
use crate::order;
use crate::waiting::Waiting;

/// In `kind`: a mutex.
const MUTEX: u32 = 0x4d54_5831;

/// A mutex in a segment, used by a [`SegmentWorker`]. Its waiters have no order.
//
// repr(C) because programs that were compiled apart use it.
#[derive(Debug)]
#[repr(C)]
pub struct SegmentMutex {
    kind: CoreU32,
    class: ClassNumber,
    /// 0, so that no byte is without a value.
    reserved: [u8; 3],
    word: HolderWord<SingleWake, Interprocess>,
}

const _: () = assert!(size_of::<SegmentMutex>() == 12 && align_of::<SegmentMutex>() == 4);

// SAFETY: of atomics and a class number, without invalid values.
unsafe impl Placed for SegmentMutex {
    fn is_made(&self) -> bool {
        self.kind.load(Relaxed) == MUTEX
    }
}

impl SegmentMutex {
    /// Makes an idle mutex of `class` at `place`, for mutexes inside of data of the program's own in a segment.
    ///
    /// # Safety
    /// The place may be written, is aligned, lies in what [`Segment::reserve`](super::Segment::reserve) has returned, and no
    /// worker uses a latch there.
    pub unsafe fn make_at(place: *mut Self, class: ClassNumber) {
        // SAFETY: the caller's.
        unsafe { place.write(Self::idle(class)) };
    }

    pub(super) fn idle(class: ClassNumber) -> Self {
        Self {
            kind: CoreU32::new_const(MUTEX),
            class,
            reserved: [0; 3],
            word: HolderWord::IDLE,
        }
    }

    /// True if the mutex is held at this instant: for assertions. Relaxed.
    pub fn is_held(&self) -> bool {
        self.word.is_held()
    }

    fn address(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    /// Stands in for a worker that has died asleep on the mutex.
    ///
    /// # Safety
    /// As of [`SrwMutex::recover_waiter`](crate::SrwMutex::recover_waiter).
    pub(super) unsafe fn recover_waiter(&self) {
        self.word.leave_for_dead();
    }

    #[inline]
    #[track_caller]
    fn acquire(&self) {
        order::acquiring::<Interprocess>(self.class.class(), self.address());
        if !self.word.try_take(0) {
            self.wait(None);
        }
        self.note_acquired();
    }

    #[track_caller]
    fn try_acquire_for(&self, timeout: Duration) -> bool {
        let acquired = self.word.try_take(0) || (timeout > Duration::ZERO && self.wait(Some(timeout)));
        if acquired {
            self.note_acquired();
        }
        acquired
    }

    #[track_caller]
    fn note_acquired(&self) {
        let class = self.class.class();
        order::acquired::<Interprocess>(class, self.address());
        class.count::<Interprocess>(Wait::Exclusive);
    }

    /// Waits as long as it takes, or for a time. Returns whether the caller holds the mutex.
    #[cold]
    fn wait(&self, timeout: Option<Duration>) -> bool {
        let mut waiting =
            Waiting::begin_for::<Interprocess>(self.class.class(), Wait::Exclusive, self.address(), timeout);
        let taken = self.word.take_slow(&mut waiting, 0);
        waiting.finish::<Interprocess>();
        taken
    }

    fn release(&self) {
        order::released::<Interprocess>(self.address());
        self.word.release(0);
    }
}

impl SegmentWorker<'_> {
    /// Acquires the mutex, waiting as long as it takes.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn lock<'w>(&'w self, mutex: &'w SegmentMutex) -> Result<SegmentMutexGuard<'w>, SegmentError> {
        self.acquire_mutex(mutex)?;
        Ok(SegmentMutexGuard::new(self, mutex))
    }

    /// Acquires the mutex if that takes no longer than `timeout`; at once or not at all if that is 0.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_lock_for<'w>(
        &'w self,
        mutex: &'w SegmentMutex,
        timeout: Duration,
    ) -> Result<Option<SegmentMutexGuard<'w>>, SegmentError> {
        let acquired = self.try_acquire_mutex_for(mutex, timeout)?;
        Ok(acquired.then(|| SegmentMutexGuard::new(self, mutex)))
    }

    /// As [`lock`](Self::lock), without a guard: paired with [`release_mutex`](Self::release_mutex). Acquire: what earlier
    /// holders wrote is visible.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_mutex(&self, mutex: &SegmentMutex) -> Result<(), SegmentError> {
        let acquiring = self.begin_acquiring(mutex.address(), SegmentMode::Exclusive)?;
        mutex.acquire();
        acquiring.end(true);
        Ok(())
    }

    /// As [`try_lock_for`](Self::try_lock_for), without a guard; whether the mutex was acquired.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire_mutex_for(
        &self,
        mutex: &SegmentMutex,
        timeout: Duration,
    ) -> Result<bool, SegmentError> {
        let acquiring = self.begin_acquiring(mutex.address(), SegmentMode::Exclusive)?;
        Ok(acquiring.end(mutex.try_acquire_for(timeout)))
    }

    /// Releases the mutex. Release: the next holder sees what was written. In a broken segment it clears the worker's note, and
    /// the mutex itself stays as it is.
    ///
    /// # Errors
    /// [`NotHeld`](SegmentError::NotHeld), [`NotRegistered`](SegmentError::NotRegistered) in a child of `fork`. Nothing is
    /// released then.
    ///
    /// # Safety
    /// No guard of the mutex is used later: it was acquired without one, or its guard is forgotten.
    pub unsafe fn release_mutex(&self, mutex: &SegmentMutex) -> Result<(), SegmentError> {
        self.release_by(mutex.address(), SegmentMode::Exclusive, |is_broken| {
            if is_broken {
                order::released::<Interprocess>(mutex.address());
            } else {
                mutex.release();
            }
        })
    }
}

/// Holds a [`SegmentMutex`].
#[derive(Debug)]
#[must_use = "the mutex is released at once if its guard is dropped"]
pub struct SegmentMutexGuard<'a> {
    worker: &'a SegmentWorker<'a>,
    mutex: &'a SegmentMutex,
    // A latch is released by the worker that acquired it.
    not_send: PhantomData<*const ()>,
}

impl<'a> SegmentMutexGuard<'a> {
    fn new(worker: &'a SegmentWorker<'a>, mutex: &'a SegmentMutex) -> Self {
        Self {
            worker,
            mutex,
            not_send: PhantomData,
        }
    }

    /// The mutex this guard holds.
    pub fn latch(&self) -> &'a SegmentMutex {
        self.mutex
    }
}

impl Drop for SegmentMutexGuard<'_> {
    fn drop(&mut self) {
        // An error means that this is the copy of a guard in a child of `fork`, which holds nothing.
        // SAFETY: the guard holds the mutex, and ends here.
        let _ = unsafe { self.worker.release_mutex(self.mutex) };
    }
}
