//! Optimistic reads of a hybrid latch (protocol, step 6; R3).

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine};

use super::{COUNT, EXCLUSIVE, HybridExclusive, HybridLatch, HybridUpdate, UPDATE, VERSION_SHIFT};
use crate::class::{ClassOf, Wait};

/// Number of times that [`HybridLatch::read`] tries without the latch.
const OPTIMISTIC_ATTEMPTS: u32 = 3;

/// The version an optimistic read began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version(u64);

impl Version {
    /// True if `word` has this version.
    #[inline]
    pub(super) fn is_of(self, word: u64) -> bool {
        word >> VERSION_SHIFT == self.0
    }
}

impl<C: ClassOf, M: Machine> HybridLatch<C, M> {
    /// Begins an optimistic read; `None` while a worker writes. Acquire: what the last exclusive section
    /// wrote is visible.
    #[inline]
    pub fn optimistic(&self) -> Option<Version> {
        let word = self.word.load(Acquire);
        (word & EXCLUSIVE == 0).then_some(Version(word >> VERSION_SHIFT))
    }

    /// True if there was no exclusive section since `version` was taken: only then may what was read be used.
    #[inline]
    pub fn validate(&self, version: Version) -> bool {
        // R3: the reads come before the look.
        M::fence(Acquire);
        let word = self.word.load(Relaxed);
        word & EXCLUSIVE == 0 && version.is_of(word)
    }

    /// Calls `read` without the latch until a call validates, a few times at most; then with the latch in
    /// shared mode.
    ///
    /// `read` may see data that is being changed. It must not panic on such data, and must give up rather
    /// than loop; its result is then dropped.
    #[track_caller]
    pub fn read<R>(&self, read: impl Fn() -> R) -> R {
        for _ in 0..OPTIMISTIC_ATTEMPTS {
            if let Some(version) = self.optimistic() {
                let result = read();
                if self.validate(version) {
                    return result;
                }
            }
            M::spin_hint();
        }
        let _shared = self.shared();
        read()
    }

    /// Turns an optimistic read into an update, if there was no exclusive section since `version` was taken
    /// and that needs no waiting.
    #[track_caller]
    pub fn try_update_at(&self, version: Version) -> Option<HybridUpdate<'_, C, M>> {
        self.try_acquire_bits(UPDATE, 0, Some(version), Wait::Update)
            .then(|| HybridUpdate::new(self))
    }

    /// Turns an optimistic read into an exclusive, if there was no exclusive section since `version` was
    /// taken and that needs no waiting.
    #[track_caller]
    pub fn try_exclusive_at(&self, version: Version) -> Option<HybridExclusive<'_, C, M>> {
        let acquired = self.try_acquire_bits(UPDATE | EXCLUSIVE, COUNT, Some(version), Wait::Exclusive);
        if !acquired {
            return None;
        }
        // R3: EXCLUSIVE comes before the writes.
        M::fence(Release);
        Some(HybridExclusive::new(self))
    }
}
