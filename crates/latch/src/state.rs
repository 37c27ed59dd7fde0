//! The LwLock word, 32 bits:
//!
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–17 | shared count | holders in shared mode |
//! | 18 | `EXCLUSIVE` | held in exclusive mode |
//! | 28 | `LOCKED` | a spin mutex over the wait list |
//! | 29 | `WAKE_IN_PROGRESS` | a worker that wants the latch was woken and has not yet looked: wake nobody else |
//! | 30 | `HAS_WAITERS` | the wait list is not empty |
//!
//! All zero is an idle latch nobody waits for.

use crate::LatchMode;

pub(crate) const SHARED_UNIT: u32 = 1;
pub(crate) const SHARED_MASK: u32 = (1 << 18) - 1;
pub(crate) const EXCLUSIVE: u32 = 1 << 18;
pub(crate) const LOCKED: u32 = 1 << 28;
pub(crate) const WAKE_IN_PROGRESS: u32 = 1 << 29;
pub(crate) const HAS_WAITERS: u32 = 1 << 30;

const _: () = assert!(SHARED_MASK & EXCLUSIVE == 0);
const _: () = assert!((SHARED_MASK | EXCLUSIVE) & (LOCKED | WAKE_IN_PROGRESS | HAS_WAITERS) == 0);

/// Whether the latch can be granted in `mode`. Waiters do not matter: barging is allowed.
#[inline(always)]
pub(crate) const fn grantable(state: u32, mode: LatchMode) -> bool {
    match mode {
        LatchMode::Exclusive => state & (EXCLUSIVE | SHARED_MASK) == 0,
        LatchMode::Shared => state & EXCLUSIVE == 0,
    }
}

/// What a holder in `mode` adds to the word.
#[inline(always)]
pub(crate) const fn unit(mode: LatchMode) -> u32 {
    match mode {
        LatchMode::Exclusive => EXCLUSIVE,
        LatchMode::Shared => SHARED_UNIT,
    }
}

/// Whether whoever made the word `state` by releasing must wake somebody.
#[inline(always)]
pub(crate) const fn must_wake(state: u32) -> bool {
    state & (HAS_WAITERS | WAKE_IN_PROGRESS | EXCLUSIVE | SHARED_MASK) == HAS_WAITERS
}
