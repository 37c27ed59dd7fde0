//! The LwLock word, 32 bits:
//!
//! | bits | name | meaning |
//! | --- | --- | --- |
//! | 0–17 | shared count | holders in shared mode |
//! | 18 | `EXCLUSIVE` | held in exclusive mode |
//! | 19–25 | `GRANTS` | grants to newcomers while workers wait, up to the limit of the fairness policy; 0 under barging |
//! | 26 | `OVERDUE` | the top bit of `GRANTS`: a sleeper has waited past the bound of `hand-over`; no newcomer gets the latch. Under `writer-claims` also `CLAIMED`: an exclusive that waits stops newcomers |
//! | 27, 31 | | left to the [`AdaptiveLatch`](crate::AdaptiveLatch): `TRIAL` and `BIASED` |
//! | 28 | `LOCKED` | a spin mutex over the wait list |
//! | 29 | `WAKE_IN_PROGRESS` | a woken worker that wants the latch has not looked yet: wake no other |
//! | 30 | `HAS_WAITERS` | the wait list is not empty; under `writer-claims` also from the wake-up of the last on it to its release |
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

/// The grants that a worker may get while others wait. A limit is below `OVERDUE`, which is thus past any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Any, and no heed of `OVERDUE`.
    None,
    /// As many in shared mode, by all newcomers together.
    OfReaders(u32),
    /// As many in both modes together.
    OfAll(u32),
    /// As `OfAll`, for the exclusive whose claim is in the word. It is not refused, and its grant is counted, so that workers
    /// which claim the latch in turn reach the limit.
    OfClaimant(u32),
}

impl Limit {
    /// True if the count in `state` refuses a worker that wants the latch in `mode`.
    #[inline(always)]
    const fn refuses(self, state: u32, mode: LatchMode) -> bool {
        match (self, mode) {
            (Limit::None | Limit::OfClaimant(_), _) => false,
            (Limit::OfReaders(_), LatchMode::Exclusive) => state & OVERDUE != 0,
            (Limit::OfReaders(limit) | Limit::OfAll(limit), _) => (state & GRANTS) / GRANT_UNIT >= limit,
        }
    }

    /// The units that a grant in `mode` adds to the count.
    #[inline(always)]
    const fn counted(self, state: u32, mode: LatchMode) -> u32 {
        match (self, mode) {
            (Limit::None, _) | (Limit::OfReaders(_), LatchMode::Exclusive) => 0,
            (Limit::OfReaders(limit) | Limit::OfAll(limit) | Limit::OfClaimant(limit), _) => {
                if state & HAS_WAITERS != 0 && (state & GRANTS) / GRANT_UNIT < limit {
                    GRANT_UNIT
                } else {
                    0
                }
            }
        }
    }

    /// True if an exclusive that gets the latch leaves the count, for workers that wait.
    #[inline(always)]
    const fn keeps_count(self, state: u32) -> bool {
        matches!(self, Limit::OfAll(_) | Limit::OfClaimant(_)) && state & HAS_WAITERS != 0
    }

    /// True if the count is at the limit, and the word does not say more than that.
    #[inline(always)]
    pub(super) const fn is_reached(self, state: u32) -> bool {
        match self {
            Limit::None => false,
            Limit::OfReaders(limit) | Limit::OfAll(limit) | Limit::OfClaimant(limit) => {
                (state & GRANTS) / GRANT_UNIT == limit
            }
        }
    }

    /// The limit of a worker that has claimed the latch under this one.
    #[inline(always)]
    pub(super) const fn of_claimant(self) -> Self {
        match self {
            Limit::OfAll(limit) => Limit::OfClaimant(limit),
            Limit::None | Limit::OfReaders(_) | Limit::OfClaimant(_) => self,
        }
    }
}

/// True if the latch can be granted in `mode` under `limit`, and while no worker is overdue.
/// Waiters do not matter otherwise: barging is allowed.
#[inline(always)]
pub(crate) const fn grantable(state: u32, mode: LatchMode, limit: Limit) -> bool {
    let refusing = match mode {
        LatchMode::Exclusive => EXCLUSIVE | SHARED_MASK,
        LatchMode::Shared => EXCLUSIVE,
    };
    state & refusing == 0 && !limit.refuses(state, mode)
}

/// The word after a grant in `mode`. Grants while workers wait are counted, up to `limit`; an exclusive whose own
/// grant is not counted clears the count.
#[inline(always)]
pub(crate) const fn word_after_grant(state: u32, mode: LatchMode, limit: Limit) -> u32 {
    let state = match limit {
        // Its grant ends its claim.
        Limit::OfClaimant(_) => state & !CLAIMED,
        Limit::None | Limit::OfReaders(_) | Limit::OfAll(_) => state,
    };
    let counted = limit.counted(state, mode);
    match mode {
        LatchMode::Exclusive if !limit.keeps_count(state) => (state & !GRANTS) + EXCLUSIVE,
        LatchMode::Exclusive => state + EXCLUSIVE + counted,
        LatchMode::Shared => state + SHARED_UNIT + counted,
    }
}

/// True if an exclusive that the word `state` refuses can claim the latch from readers: they are inside, and no other claims it.
#[inline(always)]
pub(super) const fn claimable_from_readers(state: u32) -> bool {
    state & SHARED_MASK != 0 && state & (EXCLUSIVE | CLAIMED) == 0
}

/// True if an exclusive that the word `state` refuses can claim the latch from another exclusive.
#[inline(always)]
pub(super) const fn claimable_from_exclusive(state: u32) -> bool {
    state & (EXCLUSIVE | CLAIMED) == EXCLUSIVE
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
            let free_for = |state, mode| grantable(state, mode, Limit::None);
            assert!(free_for(flags, LatchMode::Exclusive) && free_for(flags, LatchMode::Shared));
            assert!(!free_for(flags | 3, LatchMode::Exclusive) && free_for(flags | 3, LatchMode::Shared));
            assert!(!free_for(flags | EXCLUSIVE, LatchMode::Exclusive));
            assert!(!free_for(flags | EXCLUSIVE, LatchMode::Shared));
        }
    }

    #[test]
    fn shared_grants_are_counted_while_workers_wait() {
        let mut state = SHARED_UNIT;
        state = word_after_grant(state, LatchMode::Shared, Limit::OfReaders(2));
        assert_eq!(state, 2, "no worker waits");
        state |= HAS_WAITERS;
        for _ in 0..2 {
            assert!(grantable(state, LatchMode::Shared, Limit::OfReaders(2)));
            state = word_after_grant(state, LatchMode::Shared, Limit::OfReaders(2));
        }
        assert!(
            !grantable(state, LatchMode::Shared, Limit::OfReaders(2))
                && grantable(state, LatchMode::Shared, Limit::None)
        );
        let woken = word_after_grant(state, LatchMode::Shared, Limit::OfReaders(2));
        assert_eq!(woken - state, SHARED_UNIT, "the count stays at its limit");
        let free = state - 4 * SHARED_UNIT;
        assert_eq!(
            word_after_grant(free, LatchMode::Exclusive, Limit::OfReaders(2)),
            HAS_WAITERS | EXCLUSIVE
        );
        assert!(must_wake(free));
        let mut state = HAS_WAITERS;
        for _ in 0..300 {
            state = word_after_grant(state, LatchMode::Shared, Limit::OfReaders(127));
        }
        assert_eq!(state, HAS_WAITERS | (GRANTS & !OVERDUE) | 300);
    }

    #[test]
    fn an_overdue_worker_stops_newcomers_of_both_modes_and_no_woken_worker() {
        let free = HAS_WAITERS | OVERDUE;
        for mode in [LatchMode::Exclusive, LatchMode::Shared] {
            assert!(
                !grantable(free, mode, Limit::OfReaders(127)),
                "{mode:?}, a newcomer"
            );
            assert!(grantable(free, mode, Limit::None), "{mode:?}, a woken worker");
        }
        assert_eq!(
            word_after_grant(free, LatchMode::Exclusive, Limit::None),
            HAS_WAITERS | EXCLUSIVE
        );
        assert!(must_wake(free));
    }

    #[test]
    fn a_claim_is_set_in_a_held_word_and_once() {
        assert!(claimable_from_readers(1) && claimable_from_readers(3 | HAS_WAITERS | LOCKED));
        assert!(claimable_from_exclusive(EXCLUSIVE | HAS_WAITERS));
        for claimable in [claimable_from_readers, claimable_from_exclusive] {
            for refusing in [0, HAS_WAITERS, 3 | CLAIMED, EXCLUSIVE | CLAIMED] {
                assert!(!claimable(refusing), "{refusing:#x}");
            }
        }
        assert!(
            !claimable_from_readers(EXCLUSIVE | 1) && claimable_from_exclusive(EXCLUSIVE | 1),
            "the reader adds its unit in vain"
        );
        let claimed = HAS_WAITERS | CLAIMED;
        for mode in [LatchMode::Exclusive, LatchMode::Shared] {
            assert!(
                !grantable(claimed, mode, Limit::OfAll(64)),
                "{mode:?}, a newcomer"
            );
        }
        assert!(grantable(claimed, LatchMode::Exclusive, Limit::None), "its own");
        assert_eq!(
            word_after_grant(claimed, LatchMode::Exclusive, Limit::None),
            HAS_WAITERS | EXCLUSIVE
        );
    }

    #[test]
    fn a_limit_of_all_counts_both_modes_while_workers_wait() {
        let limit = Limit::OfAll(2);
        assert_eq!(word_after_grant(0, LatchMode::Exclusive, limit), EXCLUSIVE);
        let mut state = HAS_WAITERS;
        for mode in [LatchMode::Exclusive, LatchMode::Shared] {
            assert!(grantable(state, mode, limit) && !limit.is_reached(state));
            state = word_after_grant(state, mode, limit) & !(EXCLUSIVE | SHARED_MASK);
        }
        assert_eq!(state, HAS_WAITERS | (2 * GRANT_UNIT));
        assert!(limit.is_reached(state) && !limit.is_reached(state | OVERDUE));
        for mode in [LatchMode::Exclusive, LatchMode::Shared] {
            assert!(!grantable(state, mode, limit) && grantable(state, mode, Limit::None));
        }
        assert_eq!(
            word_after_grant(state, LatchMode::Exclusive, Limit::None),
            HAS_WAITERS | EXCLUSIVE,
            "the grant to a woken exclusive clears the count"
        );
        let mut state = HAS_WAITERS | CLAIMED;
        for grants in [1, 2, 2] {
            state = word_after_grant(state, LatchMode::Exclusive, limit.of_claimant());
            assert_eq!(state, HAS_WAITERS | EXCLUSIVE | (grants * GRANT_UNIT));
            state = (state - EXCLUSIVE) | CLAIMED;
        }
        assert_eq!(Limit::None.of_claimant(), Limit::None, "a woken worker");
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
