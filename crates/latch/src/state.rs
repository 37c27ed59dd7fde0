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

/// [`must_wake`] after a shared release, asked of the word before it.
#[inline(always)]
pub(crate) const fn last_shared_must_wake(before: u32) -> bool {
    before & (HAS_WAITERS | WAKE_IN_PROGRESS | EXCLUSIVE | SHARED_MASK) == HAS_WAITERS | SHARED_UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_come_in() {
        for flags in [0, LOCKED, HAS_WAITERS, WAKE_IN_PROGRESS | HAS_WAITERS] {
            assert!(grantable(flags, LatchMode::Exclusive) && grantable(flags, LatchMode::Shared));
            assert!(!grantable(flags | 3, LatchMode::Exclusive) && grantable(flags | 3, LatchMode::Shared));
            assert!(!grantable(flags | EXCLUSIVE, LatchMode::Exclusive));
            assert!(!grantable(flags | EXCLUSIVE, LatchMode::Shared));
        }
    }

    #[test]
    fn who_must_wake() {
        assert!(must_wake(HAS_WAITERS) && must_wake(HAS_WAITERS | LOCKED));
        assert!(!must_wake(0) && !must_wake(HAS_WAITERS | WAKE_IN_PROGRESS));
        assert!(!must_wake(HAS_WAITERS | 1) && !must_wake(HAS_WAITERS | EXCLUSIVE));
        for flags in [
            0,
            LOCKED,
            HAS_WAITERS,
            HAS_WAITERS | LOCKED,
            HAS_WAITERS | WAKE_IN_PROGRESS,
        ] {
            for holders in 1..4 {
                let before = flags | holders;
                assert_eq!(last_shared_must_wake(before), must_wake(before - SHARED_UNIT));
            }
        }
    }
}
