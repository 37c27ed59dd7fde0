//! The LwLock word, 32 bits:
//!
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–17 | shared count | holders in shared mode |
//! | 18 | `EXCLUSIVE` | held in exclusive mode |
//! | 19–25 | `GRANTS` | shared grants while workers wait, up to the limit of the fairness policy; 0 under barging |
//! | 26 | `OVERDUE` | the top bit of `GRANTS`: a sleeper has waited past the bound of `hand-over`; no newcomer gets the latch. Under `writer-claims` also `CLAIMED`: an exclusive waits until the readers have left |
//! | 27, 31 | | left to the [`AdaptiveLatch`](crate::AdaptiveLatch): `TRIAL` and `BIASED` |
//! | 28 | `LOCKED` | a spin mutex over the wait list |
//! | 29 | `WAKE_IN_PROGRESS` | a woken worker that wants the latch has not looked yet: wake no other |
//! | 30 | `HAS_WAITERS` | the wait list is not empty |
//!
//! All zero is an idle latch without waiters.

use super::LatchMode;

pub(crate) const SHARED_UNIT: u32 = 1;
pub(crate) const SHARED_MASK: u32 = (1 << 18) - 1;
pub(crate) const EXCLUSIVE: u32 = 1 << 18;
pub(crate) const GRANT_UNIT: u32 = 1 << 19;
pub(crate) const GRANTS: u32 = 0xff << 19;
/// More than any limit of grants, and cleared with them.
pub(crate) const OVERDUE: u32 = 1 << 26;
/// The same bit, when an exclusive that waits sets it under `writer-claims`.
pub(super) const CLAIMED: u32 = OVERDUE;
pub(crate) const LOCKED: u32 = 1 << 28;
pub(crate) const WAKE_IN_PROGRESS: u32 = 1 << 29;
pub(crate) const HAS_WAITERS: u32 = 1 << 30;

const _: () = assert!(SHARED_MASK & EXCLUSIVE == 0);
const _: () = assert!(GRANTS & OVERDUE == OVERDUE && OVERDUE << 1 & GRANTS == 0);
const _: () = assert!((SHARED_MASK | EXCLUSIVE) & GRANTS == 0);
const _: () = assert!((SHARED_MASK | EXCLUSIVE | GRANTS) & (LOCKED | WAKE_IN_PROGRESS | HAS_WAITERS) == 0);

/// A count past any limit, under `writer-claims`: no newcomer gets the latch shared, because an exclusive is on the list or
/// has been woken.
pub(super) const READERS_STOPPED: u32 = GRANTS & !OVERDUE;

/// No limit to the shared grants while workers wait, and no heed of `OVERDUE`.
pub(crate) const UNLIMITED: u32 = u32::MAX;

/// True if the latch can be granted in `mode` under a limit of `limit` shared grants, and while no worker is overdue.
/// Waiters do not matter otherwise: barging is allowed.
#[inline(always)]
pub(crate) const fn grantable(state: u32, mode: LatchMode, limit: u32) -> bool {
    match mode {
        LatchMode::Exclusive => {
            state & (EXCLUSIVE | SHARED_MASK) == 0 && (state & OVERDUE == 0 || limit == UNLIMITED)
        }
        LatchMode::Shared => state & EXCLUSIVE == 0 && (state & GRANTS) / GRANT_UNIT < limit,
    }
}

/// The word after a grant in `mode`. Shared grants while workers wait are counted, up to `limit`.
#[inline(always)]
pub(crate) const fn word_after_grant(state: u32, mode: LatchMode, limit: u32) -> u32 {
    match mode {
        LatchMode::Exclusive if limit != UNLIMITED && keeps_readers_stopped(state) => state + EXCLUSIVE,
        LatchMode::Exclusive => (state & !GRANTS) + EXCLUSIVE,
        LatchMode::Shared => {
            let counts =
                limit != UNLIMITED && state & HAS_WAITERS != 0 && (state & GRANTS) / GRANT_UNIT < limit;
            state + SHARED_UNIT + if counts { GRANT_UNIT } else { 0 }
        }
    }
}

/// True if an exclusive that the word `state` refuses can claim the latch: readers are inside, and no other claims it.
#[inline(always)]
pub(super) const fn claimable(state: u32) -> bool {
    state & SHARED_MASK != 0 && state & (EXCLUSIVE | CLAIMED) == 0
}

/// True if an exclusive newcomer leaves the readers stopped: a woken worker is on its way, for which they are stopped.
#[inline(always)]
const fn keeps_readers_stopped(state: u32) -> bool {
    state & WAKE_IN_PROGRESS != 0 && state & GRANTS == READERS_STOPPED
}

/// True if a release that made the word `state` must wake.
#[inline(always)]
pub(crate) const fn must_wake(state: u32) -> bool {
    state & (HAS_WAITERS | WAKE_IN_PROGRESS | EXCLUSIVE | SHARED_MASK) == HAS_WAITERS
}

/// [`must_wake`] after a shared release, from the word before it.
#[inline(always)]
pub(crate) const fn last_shared_must_wake(before: u32) -> bool {
    before & (HAS_WAITERS | WAKE_IN_PROGRESS | EXCLUSIVE | SHARED_MASK) == HAS_WAITERS | SHARED_UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_by_mode_and_word() {
        for flags in [0, LOCKED, HAS_WAITERS, WAKE_IN_PROGRESS | HAS_WAITERS] {
            let free_for = |state, mode| grantable(state, mode, UNLIMITED);
            assert!(free_for(flags, LatchMode::Exclusive) && free_for(flags, LatchMode::Shared));
            assert!(!free_for(flags | 3, LatchMode::Exclusive) && free_for(flags | 3, LatchMode::Shared));
            assert!(!free_for(flags | EXCLUSIVE, LatchMode::Exclusive));
            assert!(!free_for(flags | EXCLUSIVE, LatchMode::Shared));
        }
    }

    #[test]
    fn shared_grants_are_counted_while_workers_wait() {
        let mut state = SHARED_UNIT;
        state = word_after_grant(state, LatchMode::Shared, 2);
        assert_eq!(state, 2, "no worker waits");
        state |= HAS_WAITERS;
        for _ in 0..2 {
            assert!(grantable(state, LatchMode::Shared, 2));
            state = word_after_grant(state, LatchMode::Shared, 2);
        }
        assert!(!grantable(state, LatchMode::Shared, 2) && grantable(state, LatchMode::Shared, UNLIMITED));
        let woken = word_after_grant(state, LatchMode::Shared, 2);
        assert_eq!(woken - state, SHARED_UNIT, "the count stays at its limit");
        let free = state - 4 * SHARED_UNIT;
        assert_eq!(
            word_after_grant(free, LatchMode::Exclusive, 2),
            HAS_WAITERS | EXCLUSIVE
        );
        assert!(must_wake(free));
        let mut state = HAS_WAITERS;
        for _ in 0..300 {
            state = word_after_grant(state, LatchMode::Shared, 127);
        }
        assert_eq!(state, HAS_WAITERS | (GRANTS & !OVERDUE) | 300);
    }

    #[test]
    fn an_overdue_worker_stops_newcomers_of_both_modes_and_no_woken_worker() {
        let free = HAS_WAITERS | OVERDUE;
        for mode in [LatchMode::Exclusive, LatchMode::Shared] {
            assert!(!grantable(free, mode, 127), "{mode:?}, a newcomer");
            assert!(grantable(free, mode, UNLIMITED), "{mode:?}, a woken worker");
        }
        assert_eq!(
            word_after_grant(free, LatchMode::Exclusive, UNLIMITED),
            HAS_WAITERS | EXCLUSIVE
        );
        assert!(must_wake(free));
    }

    #[test]
    fn a_claim_is_set_among_readers_alone_and_once() {
        assert!(claimable(1) && claimable(3 | HAS_WAITERS | LOCKED));
        assert!(!claimable(0) && !claimable(EXCLUSIVE) && !claimable(3 | CLAIMED));
        assert!(
            !claimable(EXCLUSIVE | 1),
            "the reader adds its unit in vain, and an exclusive's own word is not claimed"
        );
        let claimed = HAS_WAITERS | CLAIMED;
        for mode in [LatchMode::Exclusive, LatchMode::Shared] {
            assert!(!grantable(claimed, mode, 64), "{mode:?}, a newcomer");
        }
        assert!(grantable(claimed, LatchMode::Exclusive, UNLIMITED), "its own");
        assert_eq!(
            word_after_grant(claimed, LatchMode::Exclusive, UNLIMITED),
            HAS_WAITERS | EXCLUSIVE
        );
    }

    #[test]
    fn readers_stay_stopped_until_an_exclusive_that_was_woken_has_the_latch() {
        let stopped = HAS_WAITERS | WAKE_IN_PROGRESS | READERS_STOPPED;
        assert!(!grantable(stopped, LatchMode::Shared, 64) && grantable(stopped, LatchMode::Exclusive, 64));
        assert_eq!(
            word_after_grant(stopped, LatchMode::Exclusive, 64),
            stopped | EXCLUSIVE,
            "a newcomer comes before the woken worker"
        );
        let looked = stopped & !WAKE_IN_PROGRESS;
        for limit in [64, UNLIMITED] {
            assert_eq!(
                word_after_grant(looked, LatchMode::Exclusive, limit),
                HAS_WAITERS | EXCLUSIVE
            );
        }
    }

    #[test]
    fn last_holder_must_wake() {
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
