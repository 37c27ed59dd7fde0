//! The calling thread as a worker of a segment: the notes of what it does (S1), and LwLocks with their guards.

use core::marker::PhantomData;
use core::ptr;

use clearway_machine::{CoreU64, HeldLatch, Interprocess, Registration, SegmentError, SegmentMode, WorkerId};

use super::lwlock::SegmentLwLock;
use crate::{LatchMode, order};

/// The calling thread as a worker of a segment. Its guards borrow it; dropping it gives its slot back.
#[derive(Debug)]
pub struct SegmentWorker<'a> {
    registration: Registration<'a>,
}

impl<'a> SegmentWorker<'a> {
    pub(super) fn new(registration: Registration<'a>) -> Self {
        Self { registration }
    }

    /// The number of its slot.
    pub fn id(&self) -> WorkerId {
        self.registration.worker()
    }

    /// Number of latches that it holds.
    pub fn held_count(&self) -> usize {
        self.registration.held_count()
    }

    /// True if the worker holds a latch, and the caller is no child of `fork` with a copy of it.
    pub fn is_current_and_holds(&self) -> bool {
        self.registration.is_current() && self.held_count() > 0
    }

    /// The offset of the latch at `address`, which this worker may use now.
    #[inline]
    fn offset_of(&self, address: *const ()) -> Result<u64, SegmentError> {
        if !self.registration.is_current() {
            return Err(SegmentError::NotRegistered);
        }
        let memory = self.registration.memory();
        if memory.is_broken() {
            return Err(SegmentError::Broken);
        }
        memory.offset_of(address).ok_or(SegmentError::NotThere)
    }

    /// Notes that the worker is about to acquire the latch at `address`, until [`Acquiring::end`].
    #[inline]
    pub(super) fn begin_acquiring(
        &self,
        address: *const (),
        mode: SegmentMode,
    ) -> Result<Acquiring<'_>, SegmentError> {
        if !self.registration.has_room() {
            return Err(SegmentError::TooManyHeld);
        }
        let offset = self.offset_of(address)?;
        let latch = HeldLatch { offset, mode };
        // S1.
        self.registration.enter(latch);
        Ok(Acquiring {
            registration: &self.registration,
            latch,
        })
    }

    /// Notes that the latch at `address` is not held any more, and releases it by `release`, which is told whether the segment
    /// is broken: then the latch itself stays as it is, since a release that has to wake could wait for a dead worker for ever.
    #[inline]
    pub(super) fn release_by(
        &self,
        address: *const (),
        mode: SegmentMode,
        release: impl FnOnce(bool),
    ) -> Result<(), SegmentError> {
        if !self.registration.is_current() {
            return Err(SegmentError::NotRegistered);
        }
        let offset = self.registration.memory().offset_of(address);
        let offset = offset.ok_or(SegmentError::NotThere)?;
        let latch = HeldLatch { offset, mode };
        // S1: the note of the use first, so that the death of a worker whose note of holding is gone is found.
        self.registration.enter(latch);
        let is_held = self.registration.remove_held(latch);
        if is_held {
            release(self.registration.memory().is_broken());
        }
        self.registration.leave();
        if is_held {
            Ok(())
        } else {
            Err(SegmentError::NotHeld)
        }
    }

    /// Changes the mode in which the worker holds the latch at `address`, by `change`, which returns whether it did.
    pub(super) fn change_by(
        &self,
        address: *const (),
        [before, after]: [SegmentMode; 2],
        change: impl FnOnce() -> bool,
    ) -> Result<bool, SegmentError> {
        let offset = self.offset_of(address)?;
        let latch = HeldLatch { offset, mode: before };
        if !self.registration.holds(latch) {
            return Err(SegmentError::NotHeld);
        }
        // Held in the one mode or in the other at each instant, so a death is found.
        self.registration.enter(HeldLatch { offset, mode: after });
        let changed = change();
        if changed {
            self.registration.change_held(latch, after);
        }
        self.registration.leave();
        Ok(changed)
    }

    /// Acquires the latch in shared mode, waiting as long as it takes.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn shared<'w>(&'w self, latch: &'w SegmentLwLock) -> Result<SegmentShared<'w>, SegmentError>
    where
        'a: 'w,
    {
        self.acquire(latch, LatchMode::Shared)?;
        Ok(SegmentShared::new(self, latch))
    }

    /// Acquires the latch in exclusive mode, waiting as long as it takes.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn exclusive<'w>(&'w self, latch: &'w SegmentLwLock) -> Result<SegmentExclusive<'w>, SegmentError>
    where
        'a: 'w,
    {
        self.acquire(latch, LatchMode::Exclusive)?;
        Ok(SegmentExclusive::new(self, latch))
    }

    /// Acquires the latch without a guard; the caller pairs it with [`release`](Self::release) of the same mode. Acquire:
    /// what earlier holders wrote is visible.
    ///
    /// # Errors
    /// [`Broken`](SegmentError::Broken); [`NotRegistered`](SegmentError::NotRegistered) in a child of `fork`;
    /// [`NotThere`](SegmentError::NotThere) for a latch that is not in this segment;
    /// [`TooManyHeld`](SegmentError::TooManyHeld). The latch is not acquired then.
    #[track_caller]
    pub fn acquire(&self, latch: &SegmentLwLock, mode: LatchMode) -> Result<(), SegmentError> {
        let acquiring = self.begin_acquiring(latch.address(), mode_of(mode))?;
        latch.latch.acquire(mode);
        acquiring.end(true);
        Ok(())
    }

    /// Acquires the latch if that needs no waiting; whether it did.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire(&self, latch: &SegmentLwLock, mode: LatchMode) -> Result<bool, SegmentError> {
        let acquiring = self.begin_acquiring(latch.address(), mode_of(mode))?;
        Ok(acquiring.end(latch.latch.try_acquire(mode)))
    }

    /// Acquires the latch exclusively (`true`), or sleeps until a wake-up reaches the caller, and returns `false` without it
    /// ([`LwLock::acquire_or_wait`](crate::LwLock::acquire_or_wait)).
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn acquire_or_wait(&self, latch: &SegmentLwLock) -> Result<bool, SegmentError> {
        let acquiring = self.begin_acquiring(latch.address(), SegmentMode::Exclusive)?;
        let acquired = latch.latch.acquire_or_wait().map(core::mem::forget).is_some();
        Ok(acquiring.end(acquired))
    }

    /// Waits until the latch is not held exclusively (`None`), or `variable` differs from `old` (its value). Acquire.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    pub fn wait_for_var(
        &self,
        latch: &SegmentLwLock,
        variable: &CoreU64,
        old: u64,
    ) -> Result<Option<u64>, SegmentError> {
        let offset = self.offset_of(latch.address())?;
        let mode = SegmentMode::Shared;
        self.registration.enter(HeldLatch { offset, mode });
        let result = latch.latch.wait_for_var(variable, old);
        self.registration.leave();
        Ok(result.err())
    }

    /// Sets `variable` and wakes the workers that wait for it to change. Release.
    ///
    /// # Errors
    /// [`NotHeld`](SegmentError::NotHeld) unless the caller holds the latch exclusively; and those of
    /// [`acquire`](Self::acquire).
    pub fn update_var(
        &self,
        latch: &SegmentLwLock,
        variable: &CoreU64,
        value: u64,
    ) -> Result<(), SegmentError> {
        self.change_by(latch.address(), [SegmentMode::Exclusive; 2], || {
            latch.latch.update_var(variable, value);
            false
        })
        .map(drop)
    }

    /// Releases what [`acquire`](Self::acquire) acquired in `mode`. Release: the next holder sees what was written. In a broken
    /// segment it clears the worker's note, and the latch itself stays as it is.
    ///
    /// # Errors
    /// [`NotHeld`](SegmentError::NotHeld) if the worker does not hold it so, [`NotRegistered`](SegmentError::NotRegistered)
    /// in a child of `fork`. Nothing is released then.
    ///
    /// # Safety
    /// No guard of the latch is used later: it was acquired without one, or its guard is forgotten.
    #[inline]
    pub unsafe fn release(&self, latch: &SegmentLwLock, mode: LatchMode) -> Result<(), SegmentError> {
        self.release_by(latch.address(), mode_of(mode), |is_broken| {
            if is_broken {
                order::released::<Interprocess>(ptr::from_ref(&latch.latch).cast());
            } else {
                // SAFETY: by the worker's notes it holds the latch in this mode, and by the caller no guard does.
                unsafe { latch.latch.release(mode) };
            }
        })
    }
}

fn mode_of(mode: LatchMode) -> SegmentMode {
    match mode {
        LatchMode::Shared => SegmentMode::Shared,
        LatchMode::Exclusive => SegmentMode::Exclusive,
    }
}

/// An acquisition that is noted (S1).
#[must_use]
pub(super) struct Acquiring<'a> {
    registration: &'a Registration<'a>,
    latch: HeldLatch,
}

impl Acquiring<'_> {
    /// The acquisition has ended; whether the worker holds the latch now, which this returns.
    #[inline]
    pub(super) fn end(self, acquired: bool) -> bool {
        if acquired {
            self.registration.add_held(self.latch);
        }
        self.registration.leave();
        acquired
    }
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $mode:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the latch is released at once if its guard is dropped"]
        pub struct $name<'a> {
            worker: &'a SegmentWorker<'a>,
            latch: &'a SegmentLwLock,
            // A latch is released by the worker that acquired it.
            not_send: PhantomData<*const ()>,
        }

        impl<'a> $name<'a> {
            fn new(worker: &'a SegmentWorker<'a>, latch: &'a SegmentLwLock) -> Self {
                Self { worker, latch, not_send: PhantomData }
            }

            /// The latch this guard holds.
            pub fn latch(&self) -> &'a SegmentLwLock {
                self.latch
            }
        }

        impl Drop for $name<'_> {
            #[inline]
            fn drop(&mut self) {
                // An error means that this is the copy of a guard in a child of `fork`, which holds nothing.
                // SAFETY: the guard holds the latch in that mode, and ends here.
                let _ = unsafe { self.worker.release(self.latch, $mode) };
            }
        }
    };
}

guard! {
    /// Holds a [`SegmentLwLock`] in shared mode.
    SegmentShared, LatchMode::Shared
}
guard! {
    /// Holds a [`SegmentLwLock`] in exclusive mode.
    SegmentExclusive, LatchMode::Exclusive
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::Ordering::Relaxed;
    use core::time::Duration;
    use std::time::Instant;

    use clearway_machine::AtomicWord;

    use super::*;
    use crate::LwLockFairnessVariant;
    use crate::interprocess::testing::{one_at_a_time, segment};
    use crate::interprocess::{ClassNumber, Segment};
    use crate::lwlock::state::{HAS_WAITERS, LOCKED};

    const PATIENCE: Duration = Duration::from_secs(120);

    #[test]
    fn a_release_in_a_broken_segment_waits_for_no_dead_worker() {
        let _one = one_at_a_time();
        // Not freed if the test fails: a thread that waits for ever goes on then.
        let made = Box::into_raw(Box::new(segment(2)));
        // SAFETY: made above, and freed below.
        let segment: &'static Segment = unsafe { &*made };
        let offset = segment.place_lwlock(ClassNumber(1), LwLockFairnessVariant::Barging);
        let latch = segment.lwlock(offset.unwrap()).unwrap();
        let holder = std::thread::spawn(move || {
            let worker = segment.register().unwrap();
            worker.acquire(latch, LatchMode::Exclusive).unwrap();
            // Workers sleep on the list, and one has died that had locked it.
            latch.latch.state.fetch_or(HAS_WAITERS | LOCKED, Relaxed);
            segment.memory.begin_recovery().unwrap().unwrap().break_for_all();
            // SAFETY: acquired above.
            unsafe { worker.release(latch, LatchMode::Exclusive) }.unwrap();
            assert_eq!(worker.held_count(), 0);
            assert!(order::held_classes().is_empty());
            assert!(latch.is_held(), "the word is left as it was");
        });
        let start = Instant::now();
        while !holder.is_finished() {
            assert!(start.elapsed() < PATIENCE, "the release waits for a dead worker");
            std::thread::sleep(Duration::from_millis(1));
        }
        holder.join().unwrap();
        assert!(segment.processes().is_empty(), "the slot is given back");
        // SAFETY: the thread that has used it has ended.
        drop(unsafe { Box::from_raw(made) });
    }
}
