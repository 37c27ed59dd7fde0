//! Shared acquire by one addition: variant `fetch-add` of `lwlock_shared`.
//!
//! A CAS fails whenever another reader came first, and each failure costs the line another trip. An addition
//! cannot fail. A reader looks at the word, adds its unit, and subtracts it again if an exclusive was granted
//! in between (R6). After two additions in vain it waits like any refused worker.
//!
//! Between its look and its addition each worker has at most one unit in the word that it does not own, so
//! the count of 18 bits does not overflow.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use clearway_machine::{AtomicWord, Machine};

use super::LwLock;
use super::options::LwLockSharedVariant;
use super::state::{EXCLUSIVE, GRANTS, HAS_WAITERS, Limit, SHARED_UNIT, last_shared_must_wake};
use crate::class::ClassHandle;

/// Additions in vain before a reader waits.
const ADDITIONS: u32 = 2;

impl<M: Machine, K: ClassHandle> LwLock<M, K> {
    /// True if a shared grant from `word` is made by addition. A grant that `GRANTS` must count is not, so
    /// that the count cannot exceed its limit.
    pub(super) fn grants_by_addition(&self, word: u32) -> bool {
        self.shared_path == LwLockSharedVariant::FetchAdd
            && (self.newcomer_limit() == Limit::None || word & (HAS_WAITERS | GRANTS) == 0)
    }

    /// Adds a shared unit to a word that was seen without `EXCLUSIVE`. If an exclusive was granted first,
    /// subtracts the unit again and retries.
    #[inline]
    pub(super) fn try_shared_by_addition(&self) -> bool {
        let before = self.state.fetch_add(SHARED_UNIT, Acquire);
        before & EXCLUSIVE == 0 || self.undo_addition_and_retry()
    }

    /// R6: subtracting the unit is a release. While the unit was in the word the exclusive may have released,
    /// seen a shared holder, and woken no worker; then this worker must wake.
    #[cold]
    #[inline(never)]
    fn undo_addition_and_retry(&self) -> bool {
        for _ in 1..ADDITIONS {
            if last_shared_must_wake(self.state.fetch_sub(SHARED_UNIT, Release)) {
                self.wake();
            }
            // Look before the next addition: an exclusive that waits for a count of zero must not wait for
            // this worker.
            let found = self.state.load(Relaxed);
            if found & (EXCLUSIVE | HAS_WAITERS) != 0 {
                return false;
            }
            if self.state.fetch_add(SHARED_UNIT, Acquire) & EXCLUSIVE == 0 {
                return true;
            }
        }
        if last_shared_must_wake(self.state.fetch_sub(SHARED_UNIT, Release)) {
            self.wake();
        }
        false
    }
}
