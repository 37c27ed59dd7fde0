//! The polling of a worker before it sleeps: by which policy, and for how long.
//!
//! Polling saves two context switches if the latch is held for less time than they take. It wastes a CPU,
//! which the holder may need, if the latch is held for longer or across I/O. Which one applies is a property
//! of the latch's class, so the policy is the class's
//! ([`LatchClass::spin_policy`](crate::LatchClass::spin_policy)).
//!
//! # Steps
//! 1. Three looks, after 8, 16 and 32 pauses. Looks are plain loads: a failed RMW would take the line away
//!    from the holder, which needs it to release. Even a load takes the line from a worker that acquires and
//!    releases again and again; therefore the first look comes late and the others later. An owner that waits
//!    only for others to leave excludes all workers meanwhile, so it looks after 2, 4 and 8 pauses. A worker
//!    that waits for an LwLock does so too, because its budget is a part of the learned one.
//! 2. Up to eight times: yield the CPU, and look. With more workers than CPUs the holder, or a worker that is
//!    about to finish, may be waiting for a CPU; a look after it has run costs less than a sleep and a
//!    wake-up. A yield that returns at once shows that no other thread wanted the CPU, and is the last.
//! 3. More looks, after up to 32 pauses each, until the budget of pauses is used up. Then sleep.
//!
//! A woken worker starts again with step 1. With more workers than CPUs, a few workers that stay awake and
//! take turns do better than many that sleep after each failed attempt.
//!
//! Origin: yielding after a few rounds is parking_lot's (Amanieu d'Antras). Measuring by the yield's duration
//! whether it helped, and polling on if not, is ours.

use clearway_machine::{Machine, WorkerId};

use crate::class::{LatchClass, SpinPolicy};
use crate::delay::Delay;

/// Looks before the first yield.
const LOOKS: u32 = 3;

/// Binary logarithm of the pauses before the first look of a worker that wants the latch.
const NEWCOMER_PAUSES_LOG2: u32 = 3;

/// The same for an owner that waits for others to leave.
const OWNER_PAUSES_LOG2: u32 = 1;

/// Binary logarithm of the most pauses between two looks.
const PAUSES_MAX_LOG2: u32 = 5;

/// Yields in one wait, or since the last sleep.
const YIELDS: u32 = 8;

/// A yield of this duration or longer has let another thread run.
const TAKEN_NS: u64 = 2_000;

/// The polling of one wait.
#[derive(Debug)]
pub(crate) struct Spin {
    worker: Option<WorkerId>,
    /// Binary logarithm of the pauses before the first look.
    first: u32,
    /// Pauses before the first look, if not 0; the others come as if it were the beginning.
    before_first_look: u32,
    /// Pauses before sleeping.
    budget: u32,
    /// Pauses since the wait began, or since the last sleep.
    paused: u32,
    /// Looks that came after pauses, since then.
    looks: u32,
    /// Yields left.
    yields: u32,
    /// Looks of the whole wait.
    total: u64,
}

impl Spin {
    /// Reads the class's policy, once for the whole wait.
    pub(crate) fn begin<M: Machine>(class: &LatchClass) -> Self {
        let worker = match class.spin_policy() {
            SpinPolicy::Adaptive => M::known_worker(),
            SpinPolicy::None | SpinPolicy::Fixed(_) => None,
        };
        let learned = worker.map_or(Delay::UNTAUGHT, Delay::learned_by::<M>);
        Self {
            worker,
            ..Self::of_class::<M>(class, learned)
        }
    }

    /// As `begin`, with what the worker has learned in `taught` instead of its S, and ended by
    /// [`finish_in`](Self::finish_in).
    pub(crate) fn begin_in<M: Machine>(class: &LatchClass, taught: &M::U32) -> Self {
        Self::of_class::<M>(class, Delay::learned_in::<M>(taught))
    }

    /// The same without step 2, for a worker that goes on to a queue whose rule has yields of its own.
    pub(crate) fn without_yields(self) -> Self {
        Self { yields: 0, ..self }
    }

    /// A wait under the class's policy, with `adaptive` pauses under [`SpinPolicy::Adaptive`].
    fn of_class<M: Machine>(class: &LatchClass, adaptive: u32) -> Self {
        let budget = match class.spin_policy() {
            SpinPolicy::None => 0,
            // Under a checker one look serves as well as many.
            SpinPolicy::Fixed(pauses) => {
                if M::EXPLORED {
                    pauses.min(1)
                } else {
                    pauses
                }
            }
            SpinPolicy::Adaptive => adaptive,
        };
        Self {
            first: NEWCOMER_PAUSES_LOG2,
            ..Self::with_budget::<M>(budget)
        }
    }

    /// A wait of at most `budget` pauses that looks early and from which the worker learns nothing: for a
    /// latch with its own rule for polling.
    pub(crate) fn with_budget<M: Machine>(budget: u32) -> Self {
        Self {
            worker: None,
            first: OWNER_PAUSES_LOG2,
            before_first_look: 0,
            budget,
            paused: 0,
            looks: 0,
            yields: Self::yields::<M>(budget),
            total: 0,
        }
    }

    /// Pauses, or yields, and returns `true`; returns `false` once the budget is used up and the worker
    /// should sleep. The caller looks with a plain load after each `true`.
    #[inline]
    pub(crate) fn poll<M: Machine>(&mut self) -> bool {
        if self.yields > 0 && (self.looks >= LOOKS || self.paused >= self.budget) {
            let before = M::now();
            M::yield_now();
            let taken = M::now().saturating_sub(before) >= TAKEN_NS;
            self.yields = if taken { self.yields - 1 } else { 0 };
        } else if self.paused < self.budget {
            let pauses = if self.before_first_look > 0 {
                core::mem::take(&mut self.before_first_look)
            } else {
                self.looks += 1;
                1 << (self.first + self.looks - 1).min(PAUSES_MAX_LOG2)
            };
            // To a checker each pause is a step of its own, and one serves as well as many.
            let pauses = if M::EXPLORED { 1 } else { pauses };
            for _ in 0..pauses {
                M::spin_hint();
            }
            self.paused += pauses;
        } else {
            return false;
        }
        self.total += 1;
        true
    }

    /// The yields of a wait. None without a budget, and none under a checker, which takes a yield as a
    /// promise that another thread will act.
    fn yields<M: Machine>(budget: u32) -> u32 {
        if budget == 0 || M::EXPLORED { 0 } else { YIELDS }
    }

    /// Restores the budget: the worker has slept, or waits for something else now.
    pub(crate) fn restart<M: Machine>(&mut self) {
        self.paused = 0;
        self.looks = 0;
        self.yields = Self::yields::<M>(self.budget);
    }

    /// From now on the worker is the owner and waits for others to leave. Restores the budget.
    pub(crate) fn poll_as_owner<M: Machine>(&mut self) {
        self.first = OWNER_PAUSES_LOG2;
        self.restart::<M>();
    }

    /// As this, with the first look after `pauses`.
    pub(crate) fn looking_after(self, pauses: u32) -> Self {
        Self {
            before_first_look: pauses,
            ..self
        }
    }

    /// From now on the first look comes as early as any.
    pub(crate) fn look_soon(&mut self) {
        self.before_first_look = 0;
    }

    /// True if the worker has paused and looked since the wait began, or since the last sleep.
    pub(crate) fn has_looked(&self) -> bool {
        self.paused > 0
    }

    /// Polls so far.
    pub(crate) fn polls(&self) -> u64 {
        self.total
    }

    /// Ends a wait that [`begin_in`](Self::begin_in) began. As `finish`, but what is learned goes into `taught`.
    pub(crate) fn finish_in<M: Machine>(self, class: &LatchClass, taught: &M::U32, slept: bool) {
        if self.total > 0 && class.spin_policy() == SpinPolicy::Adaptive {
            Delay::learn_in::<M>(taught, self.budget, slept);
        }
    }

    /// Ends the wait. Under [`SpinPolicy::Adaptive`] the worker learns from whether it `slept`.
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
    fn a_budget_ends_and_begins_again_after_a_sleep() {
        // 8 + 16 + 32 + 32 + 32 pauses.
        static CLASS: LatchClass =
            LatchClass::new("spin", WaitEvent::UserLatch, 0).spinning(SpinPolicy::Fixed(100));
        let mut spin = Spin::begin::<Native>(&CLASS);
        CLASS.set_spin_policy(SpinPolicy::None);
        let mut looks = || (0..100).filter(|_| spin.poll::<Native>()).count() as u32;
        let (first, second) = (looks(), looks());
        assert!(
            (5 + 1..=5 + YIELDS).contains(&first),
            "the policy is read once: {first} looks"
        );
        assert_eq!(second, 0);
        spin.restart::<Native>();
        assert!(spin.poll::<Native>());
        assert_eq!(spin.polls(), u64::from(first) + 1);
        assert!(!Spin::begin::<Native>(&CLASS).poll::<Native>());
    }

    #[test]
    fn looks_become_rarer() {
        static CLASS: LatchClass =
            LatchClass::new("looks", WaitEvent::UserLatch, 0).spinning(SpinPolicy::Fixed(1_000));
        let mut spin = Spin::begin::<Native>(&CLASS);
        spin.yields = 0;
        let looks = |spin: &mut Spin| {
            let pauses = core::iter::from_fn(|| {
                let before = spin.paused;
                spin.poll::<Native>().then(|| spin.paused - before)
            });
            pauses.take(7).collect::<Vec<_>>()
        };
        assert_eq!(looks(&mut spin), [8, 16, 32, 32, 32, 32, 32]);
        spin.poll_as_owner::<Native>();
        spin.yields = 0;
        assert_eq!(looks(&mut spin), [2, 4, 8, 16, 32, 32, 32]);
    }
}
