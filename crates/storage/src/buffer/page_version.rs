//! The version of a frame: how a reader without a pin or a latch sees that the frame changes.
//!
//! The rules, V1 to V5, are those of [`page_read`](super::page_read), whose `optimistic` reads by it.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine, Native};

/// The version of a frame.
pub(in crate::buffer) struct PageVersion<M: Machine = Native>(M::U64);

impl<M: Machine> PageVersion<M> {
    /// Of a frame without a page.
    pub(in crate::buffer) fn without_page() -> Self {
        Self(M::U64::new(1))
    }

    /// Makes the version odd, unless it is. The caller is the worker of V2.
    #[inline]
    pub(in crate::buffer) fn begin_change(&self) {
        let version = self.0.load(Relaxed);
        if is_stable(version) {
            self.0.store(version + 1, Relaxed);
            // Pairs with the fence in `is_still`: a reader that sees a byte or a tag of this change sees that the
            // version is odd, or has been.
            M::fence(Release);
        }
    }

    /// Makes the version even, unless it is.
    #[inline]
    pub(in crate::buffer) fn end_change(&self) {
        let version = self.0.load(Relaxed);
        if !is_stable(version) {
            // Release: pairs with the Acquire in `stable`; publishes the tag and the bytes.
            self.0.store(version + 1, Release);
        }
    }

    /// The version, if no worker changes the frame and it holds a page.
    #[inline]
    pub(in crate::buffer) fn stable(&self) -> Option<u64> {
        Some(self.0.load(Acquire)).filter(|&version| is_stable(version))
    }

    /// True if no worker has stored another version, for checkers.
    pub(in crate::buffer) fn is_newest(&self, version: u64) -> bool {
        self.0.fetch_add(0, Relaxed) == version
    }

    /// True if the frame has not changed since `version` was loaded.
    #[inline]
    pub(in crate::buffer) fn is_still(&self, version: u64) -> bool {
        // The reads come before the look.
        M::fence(Acquire);
        self.0.load(Relaxed) == version
    }
}

#[inline]
fn is_stable(version: u64) -> bool {
    version.is_multiple_of(2)
}
