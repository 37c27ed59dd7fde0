//! A latch with shared, update and exclusive modes in a segment: the word of an [`SsuxLock`](crate::SsuxLock), with a number for
//! its class.

use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ptr;
use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use clearway_machine::{AtomicWord, CoreU32, Interprocess, LatchSleep, SegmentError, SegmentMode};

use super::class::ClassNumber;
use super::placed::Placed;
use super::worker::SegmentWorker;
use crate::class::{ClassHandle, Wait};
use crate::futex::{ConstState, InOneWord, LastSleep, Readers, SingleWake, SsuxState, SsuxWaits};
use crate::order;
use crate::waiting::Waiting;

/// In `kind`: a latch with three modes.
const RWLOCK: u32 = 0x5253_5831;

/// A latch with shared, update and exclusive modes in a segment, used by a [`SegmentWorker`]. An exclusive waits for the readers
/// inside when it becomes the owner, and for no later ones; waiters have no other order.
///
/// 16,383 readers and 16,383 others can wait for one at a time.
//
// repr(C) because programs that were compiled apart use it.
#[derive(Debug)]
#[repr(C)]
pub struct SegmentRwLock {
    kind: CoreU32,
    class: ClassNumber,
    /// 0, so that no byte is without a value.
    reserved: [u8; 3],
    state: InOneWord<SingleWake, Interprocess>,
}

const _: () = assert!(size_of::<SegmentRwLock>() == 16 && align_of::<SegmentRwLock>() == 8);

// SAFETY: of atomics and a class number, without invalid values.
unsafe impl Placed for SegmentRwLock {
    fn is_made(&self) -> bool {
        self.kind.load(Relaxed) == RWLOCK
    }
}

fn wait_of(mode: SegmentMode) -> Wait {
    match mode {
        SegmentMode::Shared => Wait::Shared,
        SegmentMode::Update => Wait::Update,
        SegmentMode::Exclusive => Wait::Exclusive,
    }
}

impl SegmentRwLock {
    /// Makes an idle latch of `class` at `place`, for latches inside of data of the program's own in a segment.
    ///
    /// # Safety
    /// As of [`SegmentMutex::make_at`](super::SegmentMutex::make_at).
    pub unsafe fn make_at(place: *mut Self, class: ClassNumber) {
        // SAFETY: the caller's.
        unsafe { place.write(Self::idle(class)) };
    }

    pub(super) fn idle(class: ClassNumber) -> Self {
        Self {
            kind: CoreU32::new_const(RWLOCK),
            class,
            reserved: [0; 3],
            state: InOneWord::IDLE,
        }
    }

    /// True if the latch is held in any mode at this instant: for assertions. Relaxed.
    pub fn is_held(&self) -> bool {
        self.state.is_owned() || self.state.shared_holders() != 0
    }

    fn address(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    /// Stands in for a worker that has died in `sleep` on the latch.
    ///
    /// # Safety
    /// As of [`SsuxLock::recover_waiter`](crate::SsuxLock::recover_waiter).
    pub(super) unsafe fn recover_waiter(&self, sleep: LatchSleep) {
        let wants_shared = sleep.mode == SegmentMode::Shared;
        self.state.leave_for_dead(LastSleep::of(wants_shared, sleep.half));
    }

    fn try_take(&self, mode: SegmentMode) -> bool {
        match mode {
            SegmentMode::Shared => self.state.enter(),
            SegmentMode::Update => self.state.try_take_update(),
            SegmentMode::Exclusive => self.state.try_take_exclusive(),
        }
    }

    #[track_caller]
    fn acquire(&self, mode: SegmentMode) {
        order::acquiring::<Interprocess>(self.class.class(), self.address());
        if !self.try_take(mode) {
            self.wait(mode, None);
        }
        self.note_acquired(mode);
    }

    #[track_caller]
    fn try_acquire_for(&self, mode: SegmentMode, timeout: Duration) -> bool {
        let acquired = self.try_take(mode) || (timeout > Duration::ZERO && self.wait(mode, Some(timeout)));
        if acquired {
            self.note_acquired(mode);
        }
        acquired
    }

    #[track_caller]
    fn note_acquired(&self, mode: SegmentMode) {
        let class = self.class.class();
        order::acquired::<Interprocess>(class, self.address());
        class.count::<Interprocess>(wait_of(mode));
    }

    fn begin(&self, mode: SegmentMode, timeout: Option<Duration>) -> Waiting {
        let (class, address) = (self.class.class(), self.address());
        Waiting::begin_for::<Interprocess>(class, wait_of(mode), address, timeout)
    }

    /// Waits as long as it takes, or for a time. Returns whether the caller holds the latch.
    #[cold]
    fn wait(&self, mode: SegmentMode, timeout: Option<Duration>) -> bool {
        let mut waiting = self.begin(mode, timeout);
        let taken = match mode {
            SegmentMode::Shared => self.state.enter_slow(&mut waiting),
            SegmentMode::Update => self.state.take_update(&mut waiting),
            SegmentMode::Exclusive => self.state.take_exclusive_slow(&mut waiting),
        };
        waiting.finish::<Interprocess>();
        taken
    }

    fn release(&self, mode: SegmentMode) {
        order::released::<Interprocess>(self.address());
        match mode {
            SegmentMode::Shared => self.state.exit(),
            SegmentMode::Update => self.state.release_update(),
            SegmentMode::Exclusive => self.state.release_exclusive(),
        }
    }

    /// From update to exclusive mode; waits until the readers inside have left.
    fn update_to_exclusive(&self) {
        if self.state.update_to_exclusive() == Readers::Inside {
            let mut waiting = self.begin(SegmentMode::Exclusive, None);
            let drained = self.state.drain(&mut waiting);
            debug_assert!(drained, "a wait without a limit was given up");
            waiting.finish::<Interprocess>();
        }
    }
}

impl SegmentWorker<'_> {
    /// Acquires the latch in shared mode, waiting as long as it takes.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire), here and of the next three.
    #[track_caller]
    pub fn read<'w>(&'w self, latch: &'w SegmentRwLock) -> Result<SegmentRwShared<'w>, SegmentError> {
        self.acquire_rwlock(latch, SegmentMode::Shared)?;
        Ok(SegmentRwShared::new(self, latch))
    }

    /// Acquires the latch in update mode: with readers, and as the only worker that may become exclusive.
    #[track_caller]
    pub fn update<'w>(&'w self, latch: &'w SegmentRwLock) -> Result<SegmentRwUpdate<'w>, SegmentError> {
        self.acquire_rwlock(latch, SegmentMode::Update)?;
        Ok(SegmentRwUpdate::new(self, latch))
    }

    /// Acquires the latch in exclusive mode.
    #[track_caller]
    pub fn write<'w>(&'w self, latch: &'w SegmentRwLock) -> Result<SegmentRwExclusive<'w>, SegmentError> {
        self.acquire_rwlock(latch, SegmentMode::Exclusive)?;
        Ok(SegmentRwExclusive::new(self, latch))
    }

    /// Acquires the latch in `mode` without a guard: paired with [`release_rwlock`](Self::release_rwlock). Acquire: what earlier
    /// holders wrote is visible.
    #[track_caller]
    pub fn acquire_rwlock(&self, latch: &SegmentRwLock, mode: SegmentMode) -> Result<(), SegmentError> {
        let acquiring = self.begin_acquiring(latch.address(), mode)?;
        latch.acquire(mode);
        acquiring.end(true);
        Ok(())
    }

    /// As [`acquire_rwlock`](Self::acquire_rwlock) if that takes no longer than `timeout`, at once or not at all if that is 0;
    /// whether it did.
    ///
    /// # Errors
    /// Those of [`acquire`](Self::acquire).
    #[track_caller]
    pub fn try_acquire_rwlock_for(
        &self,
        latch: &SegmentRwLock,
        mode: SegmentMode,
        timeout: Duration,
    ) -> Result<bool, SegmentError> {
        let acquiring = self.begin_acquiring(latch.address(), mode)?;
        Ok(acquiring.end(latch.try_acquire_for(mode, timeout)))
    }

    /// Releases the latch, which the worker holds in `mode`. Release: the next holder that it excluded sees what was written. In
    /// a broken segment it clears the worker's note, and the latch itself stays as it is.
    ///
    /// # Errors
    /// [`NotHeld`](SegmentError::NotHeld) if the worker does not hold it so, [`NotRegistered`](SegmentError::NotRegistered)
    /// in a child of `fork`. Nothing is released then.
    ///
    /// # Safety
    /// No guard of the latch is used later: it was acquired without one, or its guard is forgotten.
    pub unsafe fn release_rwlock(
        &self,
        latch: &SegmentRwLock,
        mode: SegmentMode,
    ) -> Result<(), SegmentError> {
        self.release_by(latch.address(), mode, |is_broken| {
            if is_broken {
                order::released::<Interprocess>(latch.address());
            } else {
                latch.release(mode);
            }
        })
    }

    /// From the mode `before`, in which the worker holds the latch, to `after`; whether it did. From update to exclusive mode it
    /// waits until the readers inside have left. From shared to update mode is an attempt, which fails if another worker is the
    /// owner. From shared to exclusive is refused (`false`): two that waited so would wait for each other.
    ///
    /// # Errors
    /// [`NotHeld`](SegmentError::NotHeld) if the worker does not hold it as `before`; and those of [`acquire`](Self::acquire).
    /// The latch is held as before then.
    ///
    /// # Safety
    /// As of [`release_rwlock`](Self::release_rwlock).
    pub unsafe fn change_rwlock(
        &self,
        latch: &SegmentRwLock,
        before: SegmentMode,
        after: SegmentMode,
    ) -> Result<bool, SegmentError> {
        use SegmentMode::{Exclusive, Shared, Update};
        self.change_by(latch.address(), [before, after], || {
            match (before, after) {
                (Update, Exclusive) => latch.update_to_exclusive(),
                (Update, Shared) => latch.state.update_to_shared(),
                (Exclusive, Update) => latch.state.exclusive_to_update(),
                (Exclusive, Shared) => latch.state.exclusive_to_shared(),
                (Shared, Update) => return latch.state.try_shared_to_update(),
                (Shared, Exclusive) => return false,
                (Shared, Shared) | (Update, Update) | (Exclusive, Exclusive) => (),
            }
            true
        })
    }
}

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $mode:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "the latch is released at once if its guard is dropped"]
        pub struct $name<'a> {
            worker: &'a SegmentWorker<'a>,
            latch: &'a SegmentRwLock,
            // A latch is released by the worker that acquired it.
            not_send: PhantomData<*const ()>,
        }

        impl<'a> $name<'a> {
            fn new(worker: &'a SegmentWorker<'a>, latch: &'a SegmentRwLock) -> Self {
                Self { worker, latch, not_send: PhantomData }
            }

            /// The latch this guard holds.
            pub fn latch(&self) -> &'a SegmentRwLock {
                self.latch
            }
        }

        impl Drop for $name<'_> {
            fn drop(&mut self) {
                // An error means that this is the copy of a guard in a child of `fork`, which holds nothing.
                // SAFETY: the guard holds the latch in that mode, and ends here.
                let _ = unsafe { self.worker.release_rwlock(self.latch, $mode) };
            }
        }
    };
}

guard! {
    /// Holds a [`SegmentRwLock`] in shared mode.
    SegmentRwShared, SegmentMode::Shared
}
guard! {
    /// Holds a [`SegmentRwLock`] in update mode.
    SegmentRwUpdate, SegmentMode::Update
}
guard! {
    /// Holds a [`SegmentRwLock`] in exclusive mode.
    SegmentRwExclusive, SegmentMode::Exclusive
}

/// The worker and the latch of a guard that is held in another mode from now on. After an error the guard is dropped.
macro_rules! change {
    ($guard:ident, $before:ident, $after:ident) => {{
        // SAFETY: the guard holds the latch in that mode, and is dropped or gone by no longer.
        unsafe {
            $guard
                .worker
                .change_rwlock($guard.latch, SegmentMode::$before, SegmentMode::$after)?
        };
        let held = ManuallyDrop::new($guard);
        (held.worker, held.latch)
    }};
}

impl<'a> SegmentRwShared<'a> {
    /// Becomes the updater if there is no owner; the guard back otherwise.
    ///
    /// # Errors
    /// Those of [`SegmentWorker::acquire`]. The latch is released then, here and in the next three.
    pub fn try_update(self) -> Result<Result<SegmentRwUpdate<'a>, Self>, SegmentError> {
        // SAFETY: the guard holds the latch in shared mode, and is handed back, dropped, or gone by no longer.
        let changed = unsafe {
            self.worker
                .change_rwlock(self.latch, SegmentMode::Shared, SegmentMode::Update)?
        };
        if !changed {
            return Ok(Err(self));
        }
        let held = ManuallyDrop::new(self);
        Ok(Ok(SegmentRwUpdate::new(held.worker, held.latch)))
    }
}

impl<'a> SegmentRwUpdate<'a> {
    /// Becomes exclusive, when the readers inside have left.
    ///
    /// # Errors
    /// Those of [`SegmentWorker::acquire`].
    pub fn exclusive(self) -> Result<SegmentRwExclusive<'a>, SegmentError> {
        let (worker, latch) = change!(self, Update, Exclusive);
        Ok(SegmentRwExclusive::new(worker, latch))
    }

    /// Becomes a reader.
    ///
    /// # Errors
    /// Those of [`SegmentWorker::acquire`].
    pub fn shared(self) -> Result<SegmentRwShared<'a>, SegmentError> {
        let (worker, latch) = change!(self, Update, Shared);
        Ok(SegmentRwShared::new(worker, latch))
    }
}

impl<'a> SegmentRwExclusive<'a> {
    /// Admits readers again, and stays the only worker that may become exclusive.
    ///
    /// # Errors
    /// Those of [`SegmentWorker::acquire`].
    pub fn update(self) -> Result<SegmentRwUpdate<'a>, SegmentError> {
        let (worker, latch) = change!(self, Exclusive, Update);
        Ok(SegmentRwUpdate::new(worker, latch))
    }

    /// Becomes a reader.
    ///
    /// # Errors
    /// Those of [`SegmentWorker::acquire`].
    pub fn shared(self) -> Result<SegmentRwShared<'a>, SegmentError> {
        let (worker, latch) = change!(self, Exclusive, Shared);
        Ok(SegmentRwShared::new(worker, latch))
    }
}
