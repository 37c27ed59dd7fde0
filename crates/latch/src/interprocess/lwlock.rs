//! An LwLock in a segment.

use core::ptr;
use core::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, CoreU32, Interprocess};

use super::class::ClassNumber;
use super::placed::Placed;
use crate::LwLock;
use crate::lwlock::options::{LwLockFairnessVariant, LwLockOptions, LwLockSharedVariant, LwLockVariant};

/// In `kind`: an LwLock. Other kinds have other numbers.
const LWLOCK: u32 = 0x4c57_4c31;

/// A reader-writer latch in a segment, used by a [`SegmentWorker`](super::SegmentWorker).
//
// repr(C) because programs that were compiled apart use it.
#[derive(Debug)]
#[repr(C)]
pub struct SegmentLwLock {
    /// `LWLOCK`, so that an offset which leads elsewhere is seen.
    kind: CoreU32,
    pub(super) latch: LwLock<Interprocess, ClassNumber>,
}

const _: () = assert!(size_of::<SegmentLwLock>() == 24 && align_of::<SegmentLwLock>() == 4);

impl SegmentLwLock {
    /// Makes an idle latch of `class` at `place`, for latches inside of data of the program's own in a segment.
    ///
    /// # Safety
    /// The place may be written, is aligned, lies in what [`Segment::reserve`](super::Segment::reserve) has returned, and no
    /// worker uses a latch there.
    pub unsafe fn make_at(place: *mut Self, class: ClassNumber, fairness: LwLockFairnessVariant) {
        // SAFETY: the caller's.
        unsafe { place.write(Self::idle(class, fairness)) };
    }

    pub(super) fn idle(class: ClassNumber, fairness: LwLockFairnessVariant) -> Self {
        let options = LwLockOptions {
            // S4.
            algorithm: LwLockVariant::SingleCas,
            shared_path: LwLockSharedVariant::Cas,
            fairness,
        };
        Self {
            kind: CoreU32::new_const(LWLOCK),
            latch: LwLock::of_class(class, options),
        }
    }

    pub(super) fn address(&self) -> *const () {
        ptr::from_ref(self).cast()
    }

    /// True if the latch is held at this instant: for assertions. Relaxed.
    pub fn is_held(&self) -> bool {
        self.latch.is_held()
    }
}

// SAFETY: of atomics, a class number and other numbers without invalid values in front of the kind.
unsafe impl Placed for SegmentLwLock {
    fn is_made(&self) -> bool {
        self.kind.load(Relaxed) == LWLOCK
    }
}
