//! [`RecursiveRwLock`]: a reader-writer lock that a thread may read again while it reads.
//!
//! A reader enters beside readers though a writer waits, so a second read never waits for a writer that waits for the first.
//! For that writers have no priority: one waits as long as readers follow each other.

use clearway_machine::Host;
use lock_api::{GuardNoSend, RawRwLock, RawRwLockDowngrade};

use crate::class::{ClassOf, Unclassed};
use crate::futex::{OneWord, SsuxLock};

/// Data behind an [`SsuxLock`] whose readers enter beside each other, also one that reads already.
///
/// ```
/// use clearway_latch::RecursiveRwLock;
///
/// static TREE: RecursiveRwLock<[u64; 3]> = RecursiveRwLock::new([1, 2, 3]);
///
/// fn sum(from: usize) -> u64 {
///     let tree = TREE.read(); // held below it, too
///     if from == 3 { 0 } else { tree[from] + sum(from + 1) }
/// }
///
/// assert_eq!(sum(0), 6);
/// TREE.write()[0] = 0;
/// assert_eq!(sum(0), 5);
/// ```
pub type RecursiveRwLock<T> = lock_api::RwLock<RawRecursiveRwLock, T>;

/// The latch of a [`RecursiveRwLock`]; `C` names its class.
#[derive(Debug, Default)]
pub struct RawRecursiveRwLock<C: ClassOf = Unclassed>(SsuxLock<C, Host, OneWord>);

// SAFETY: an exclusive excludes every other holder (S2 of the lock), a shared every exclusive, however it entered (S6).
unsafe impl<C: ClassOf> RawRwLock for RawRecursiveRwLock<C> {
    // A new latch wherever it is named, as lock_api requires.
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self = Self(SsuxLock::new());
    type SharedGuard = GuardNoSend;
    type ExclusiveGuard = GuardNoSend;

    #[inline]
    #[track_caller]
    fn lock_shared(&self) -> GuardNoSend {
        self.0.acquire_shared_recursive();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_shared(&self) -> Option<GuardNoSend> {
        self.0.try_acquire_shared_recursive().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_shared(&self, _guard: GuardNoSend) {
        // SAFETY: the caller holds the latch shared, as the trait demands.
        unsafe { self.0.release_shared() };
    }

    #[inline]
    #[track_caller]
    fn lock_exclusive(&self) -> GuardNoSend {
        self.0.acquire_exclusive();
        GuardNoSend::new()
    }

    #[inline]
    #[track_caller]
    fn try_lock_exclusive(&self) -> Option<GuardNoSend> {
        self.0.try_acquire_exclusive().then(GuardNoSend::new)
    }

    #[inline]
    unsafe fn unlock_exclusive(&self, _guard: GuardNoSend) {
        // SAFETY: the caller holds the latch exclusively, as the trait demands.
        unsafe { self.0.release_exclusive() };
    }

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.is_held()
    }

    #[inline]
    fn is_locked_exclusive(&self) -> bool {
        self.0.is_held_exclusively()
    }
}

// SAFETY: an exclusive that has become shared admits readers and no exclusive.
unsafe impl<C: ClassOf> RawRwLockDowngrade for RawRecursiveRwLock<C> {
    #[inline]
    unsafe fn downgrade(&self, guard: GuardNoSend) -> GuardNoSend {
        self.0.exclusive_to_shared();
        guard
    }
}

#[cfg(feature = "std")]
mod timed {
    use core::time::Duration;
    use std::time::Instant;

    use lock_api::{GuardNoSend, RawRwLockTimed};

    use super::RawRecursiveRwLock;
    use crate::class::ClassOf;
    use crate::drop_in::timed::time_until;

    // SAFETY: an attempt that succeeds is an acquisition like any other.
    unsafe impl<C: ClassOf> RawRwLockTimed for RawRecursiveRwLock<C> {
        type Duration = Duration;
        type Instant = Instant;

        #[track_caller]
        fn try_lock_shared_for(&self, timeout: Duration) -> Option<GuardNoSend> {
            self.0
                .try_acquire_shared_recursive_for(timeout)
                .then(GuardNoSend::new)
        }

        #[track_caller]
        fn try_lock_shared_until(&self, timeout: Instant) -> Option<GuardNoSend> {
            self.try_lock_shared_for(time_until(timeout))
        }

        #[track_caller]
        fn try_lock_exclusive_for(&self, timeout: Duration) -> Option<GuardNoSend> {
            self.0.try_acquire_exclusive_for(timeout).then(GuardNoSend::new)
        }

        #[track_caller]
        fn try_lock_exclusive_until(&self, timeout: Instant) -> Option<GuardNoSend> {
            self.try_lock_exclusive_for(time_until(timeout))
        }
    }
}
