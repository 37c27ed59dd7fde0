//! Whether a worker polls before it sleeps, and for how long.
//!
//! Polling saves two context switches when the latch is held for less than they take, and burns a CPU that the holder may
//! need when it is held for longer or across I/O. Nobody but the class of the latch knows which, so the policy is the
//! class's ([`LatchClass::spin_policy`](crate::LatchClass::spin_policy)). Polls are plain loads: a failed
//! read-modify-write would take the line away from the holder that wants to release.

use clearway_machine::{Machine, WorkerId};

use crate::class::LatchClass;
use crate::delay::Delay;

/// What a worker does before it sleeps on a latch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpinPolicy {
    /// Sleeps at once: for latches that are held long.
    None,
    /// Polls at most so many times.
    Fixed(u32),
    /// Polls as many times as this worker has learned to be worth it: more after a wait that polling ended, fewer after one
    /// that ended asleep.
    #[default]
    Adaptive,
}

const ADAPTIVE: u32 = u32::MAX;

/// How often a worker that has polled in vain gives its CPU away, and looks again, before it sleeps for the first time. With more
/// workers than CPUs the holder may be waiting for a CPU; and a look after it has run costs less than a sleep and a wake-up.
const YIELDS: u32 = 8;

impl SpinPolicy {
    pub(crate) const fn to_word(self) -> u32 {
        match self {
            SpinPolicy::None => 0,
            SpinPolicy::Fixed(ADAPTIVE) => ADAPTIVE - 1,
            SpinPolicy::Fixed(polls) => polls,
            SpinPolicy::Adaptive => ADAPTIVE,
        }
    }

    pub(crate) const fn from_word(word: u32) -> Self {
        match word {
            0 => SpinPolicy::None,
            ADAPTIVE => SpinPolicy::Adaptive,
            polls => SpinPolicy::Fixed(polls),
        }
    }
}

/// The polling of one wait on a latch whose sleepers use a futex.
#[derive(Debug)]
pub(crate) struct Spin {
    worker: Option<WorkerId>,
    budget: u32,
    polls: u32,
    /// Turns left in which the CPU is given away before sleeping.
    yields: u32,
    total: u64,
}

impl Spin {
    /// Reads the class's policy, once for the whole wait.
    pub(crate) fn begin<M: Machine>(class: &LatchClass) -> Self {
        let (worker, budget) = match class.spin_policy() {
            SpinPolicy::None => (None, 0),
            // Under a checker one poll is as good as many.
            SpinPolicy::Fixed(polls) => (None, if M::EXPLORED { polls.min(1) } else { polls }),
            SpinPolicy::Adaptive => {
                let worker = M::known_worker();
                (worker, worker.map_or(Delay::UNTAUGHT, Delay::learned_by::<M>))
            }
        };
        Self {
            worker,
            budget,
            polls: 0,
            yields: Self::yields::<M>(budget),
            total: 0,
        }
    }

    /// One failed poll: pauses and says `true`, or `false` once the budget is used up and the worker should sleep. The caller
    /// looks with a plain load after each `true`.
    #[inline]
    pub(crate) fn poll<M: Machine>(&mut self) -> bool {
        if self.polls >= self.budget {
            if self.yields == 0 {
                return false;
            }
            self.yields -= 1;
            self.total += 1;
            M::yield_now();
            return true;
        }
        self.polls += 1;
        self.total += 1;
        M::spin_hint_of(self.budget - self.polls);
        true
    }

    /// None for those who sleep at once; and a checker takes a yield for a promise that somebody else will act.
    fn yields<M: Machine>(budget: u32) -> u32 {
        if budget == 0 || M::EXPLORED { 0 } else { YIELDS }
    }

    /// The worker has slept and was woken: it may poll afresh.
    pub(crate) fn woken(&mut self) {
        self.polls = 0;
    }

    /// Polls so far.
    pub(crate) fn polls(&self) -> u64 {
        self.total
    }

    /// The wait is over; under [`SpinPolicy::Adaptive`] the worker learns from whether it `slept`.
    pub(crate) fn finish<M: Machine>(self, slept: bool) {
        if let Some(worker) = self.worker
            && self.total > 0
        {
            Delay::learn::<M>(worker, self.budget, slept);
        }
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::{Native, WaitEvent};

    use super::*;

    #[test]
    fn policies_are_kept_in_a_word() {
        for policy in [
            SpinPolicy::None,
            SpinPolicy::Fixed(1),
            SpinPolicy::Fixed(30),
            SpinPolicy::Adaptive,
        ] {
            assert_eq!(SpinPolicy::from_word(policy.to_word()), policy);
        }
        assert_eq!(
            SpinPolicy::from_word(SpinPolicy::Fixed(0).to_word()),
            SpinPolicy::None
        );
        assert_ne!(
            SpinPolicy::from_word(SpinPolicy::Fixed(u32::MAX).to_word()),
            SpinPolicy::Adaptive
        );
    }

    #[test]
    fn a_budget_ends_and_begins_again_after_a_sleep() {
        static CLASS: LatchClass =
            LatchClass::new("spin", WaitEvent::UserLatch, 0).spinning(SpinPolicy::Fixed(3));
        let mut spin = Spin::begin::<Native>(&CLASS);
        CLASS.set_spin_policy(SpinPolicy::None);
        let looks = 3 + YIELDS;
        assert_eq!(
            (0..2 * looks).filter(|_| spin.poll::<Native>()).count(),
            looks as usize,
            "the policy is read once"
        );
        spin.woken();
        assert_eq!(
            (0..9).filter(|_| spin.poll::<Native>()).count(),
            3,
            "who was woken does not give its CPU away again"
        );
        assert_eq!(spin.polls(), u64::from(looks) + 3);
        assert!(!Spin::begin::<Native>(&CLASS).poll::<Native>());
    }
}
