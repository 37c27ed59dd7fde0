//! The adaptive spin delay: how long to poll before sleeping, learned per worker.
//!
//! Each worker has `spins_per_delay` (S, 10 to 1000, from 100). A failed poll pauses once. After S polls the
//! worker sleeps, first for about 1 ms, then longer by a random factor of 1 to 2 each time, and from 1 ms
//! again past 1 s. A wait that ended without a sleep raises S by 100, since polling paid. A wait with a sleep
//! lowers S by 1. After 1000 sleeps, minutes, a line on standard error names the latch as stuck, once for that
//! wait, and the wait goes on.
//!
//! One delay serves one acquisition, not one inner loop, so that a worker that keeps losing backs off. It is
//! built on the slow path only.
//!
//! # Brief delays
//! A [brief](Delay::brief) delay learns nothing: after [`BRIEF_SPINS`] polls the worker sleeps, first for about 0.1 ms.
//! S goes up because polling paid for the one that polled. What it cost the others does not count: each poll takes the
//! polled line from the worker that has to change it next. With tens of workers that is most of what the line does, and
//! the holder of what is polled waits for it longest (docs/mechanisms/lwlock.md).
//!
//! Origin: PostgreSQL's s_lock.c; brief delays are ours.

use core::sync::atomic::Ordering;
use core::time::Duration;

use clearway_machine::{AtomicWord, Machine, WaitEvent, WaitScope, WorkerId, report};

const SPINS_MIN: u32 = 10;
const SPINS_MAX: u32 = 1000;
/// Under a checker: no poll before an exclusive queues, one before a shared does.
const SPINS_EXPLORED: u32 = 2;
const SLEEP_US_MIN: u64 = 1_000;
/// Polls of a brief delay.
const BRIEF_SPINS: u32 = 3;
const BRIEF_SLEEP_US_MIN: u64 = 100;
const SLEEP_US_MAX: u64 = 1_000_000;
/// Sleeps of a wait after which an operator is told.
const SLEEPS_TO_TELL: u32 = 1000;

/// The state of one acquisition's polling.
#[derive(Debug)]
pub(crate) struct Delay {
    /// `None`: the machine knows the worker by no slot, so it learns nothing.
    worker: Option<WorkerId>,
    spins_per_delay: u32,
    /// Polls before a sleep.
    spins_before_sleep: u32,
    spins: u32,
    pub(crate) total_spins: u64,
    sleeps: u32,
    /// The next sleep.
    sleep_us: u64,
    sleep_us_min: u64,
    learns: bool,
    /// True if a step promises the polls that follow it.
    promises: bool,
    random: u64,
}

impl Delay {
    #[cold]
    pub(crate) fn new<M: Machine>(worker: Option<WorkerId>) -> Self {
        let learned = worker.map_or(Self::UNTAUGHT, Self::learned_by::<M>);
        Self {
            worker,
            spins_per_delay: learned,
            spins_before_sleep: learned,
            spins: 0,
            total_spins: 0,
            sleeps: 0,
            sleep_us: SLEEP_US_MIN,
            sleep_us_min: SLEEP_US_MIN,
            learns: true,
            promises: true,
            random: 0x9E37_79B9_7F4A_7C15 ^ (worker.map_or(0, |worker| u64::from(worker.0)) << 20),
        }
    }

    /// A delay of few polls and short sleeps, from which the worker learns nothing.
    #[cold]
    pub(crate) fn brief<M: Machine>(worker: Option<WorkerId>) -> Self {
        let spins = if M::EXPLORED { SPINS_EXPLORED } else { BRIEF_SPINS };
        Self {
            spins_per_delay: spins,
            learns: false,
            ..Self::fair::<M>(worker)
        }
    }

    /// As `brief`, for a caller that does other things between two polls.
    #[cold]
    pub(crate) fn brief_without_promise<M: Machine>(worker: Option<WorkerId>) -> Self {
        Self {
            promises: false,
            ..Self::brief::<M>(worker)
        }
    }

    /// A delay of few polls and short sleeps, whose [`budget`](Self::budget) is learned for other polls all the same.
    #[cold]
    pub(crate) fn fair<M: Machine>(worker: Option<WorkerId>) -> Self {
        Self {
            spins_before_sleep: if M::EXPLORED { SPINS_EXPLORED } else { BRIEF_SPINS },
            sleep_us: BRIEF_SLEEP_US_MIN,
            sleep_us_min: BRIEF_SLEEP_US_MIN,
            ..Self::new::<M>(worker)
        }
    }

    /// S of a worker that the machine does not know.
    pub(crate) const UNTAUGHT: u32 = 100;

    /// The worker's S, or the shared estimate for a worker that has not spun yet.
    pub(crate) fn learned_by<M: Machine>(worker: WorkerId) -> u32 {
        if M::EXPLORED {
            return SPINS_EXPLORED;
        }
        let workers = M::workers();
        match workers.slot(worker).spins_per_delay.load(Ordering::Relaxed) {
            0 => workers.spins_per_delay_estimate.load(Ordering::Relaxed) / 16,
            spins => spins,
        }
        .clamp(SPINS_MIN, SPINS_MAX)
    }

    /// The value that a worker has learned in `taught`, a word of its own beside its S.
    pub(crate) fn learned_in<M: Machine>(taught: &M::U32) -> u32 {
        if M::EXPLORED {
            return SPINS_EXPLORED;
        }
        match taught.load(Ordering::Relaxed) {
            0 => Self::UNTAUGHT,
            spins => spins,
        }
    }

    /// The worker has slept on its semaphore in between: the count of polls restarts, but an acquisition that
    /// keeps losing keeps its longer sleeps.
    pub(crate) fn woken(&mut self) {
        self.spins = 0;
    }

    /// True if no poll of a series has been made that ends with a sleep, so that the caller may do something else first.
    pub(crate) fn at_start(&self) -> bool {
        self.spins == 0
    }

    /// Number of polls that this worker currently spends before it sleeps.
    pub(crate) fn budget(&self) -> u32 {
        self.spins_per_delay
    }

    /// Pauses after a failed poll, or sleeps. `latch` names what is polled, for the stuck report. The caller's last
    /// access was to the polled word (`spin_hint_of`), and it polls on while the word is unchanged.
    pub(crate) fn step<M: Machine>(&mut self, latch: &'static str) {
        // The last poll of the budget is followed by a sleep, not by another look.
        let polls = self.spins_before_sleep.saturating_sub(self.spins + 1);
        M::spin_hint_of(if self.promises { polls } else { 0 });
        self.spins += 1;
        self.total_spins += 1;
        if self.spins < self.spins_before_sleep {
            return;
        }
        self.sleeps = self.sleeps.saturating_add(1);
        if self.sleeps == SLEEPS_TO_TELL {
            report(format_args!(
                "stuck latch {latch}: worker {:?} has polled it {} times and slept {} times, and goes on; \
                 a holder has died or two latches wait for each other",
                self.worker.map(|worker| worker.0),
                self.total_spins,
                self.sleeps
            ));
        }
        {
            let _wait = WaitScope::<M>::enter(WaitEvent::SpinDelay);
            M::sleep(Duration::from_micros(self.sleep_us));
        }
        self.sleep_us += self.sleep_us * self.random_256() / 256;
        if self.sleep_us > SLEEP_US_MAX {
            self.sleep_us = self.sleep_us_min;
        }
        self.spins = 0;
    }

    /// Ends the acquisition; the worker learns from it.
    pub(crate) fn finish<M: Machine>(self) {
        if let Some(worker) = self.worker
            && self.learns
            && self.total_spins > 0
        {
            Self::learn::<M>(worker, self.spins_per_delay, self.sleeps > 0);
        }
    }

    /// Teaches `worker` by a wait with a budget of `spins` polls: a larger budget if polling ended the wait,
    /// a smaller one if the worker `slept`.
    pub(crate) fn learn<M: Machine>(worker: WorkerId, spins: u32, slept: bool) {
        // Under a checker the word is not even looked for.
        if !M::EXPLORED {
            Self::learn_in::<M>(&M::workers().slot(worker).spins_per_delay, spins, slept);
        }
    }

    /// As `learn`, in a word that is not the worker's S.
    pub(crate) fn learn_in<M: Machine>(taught: &M::U32, spins: u32, slept: bool) {
        if M::EXPLORED {
            return;
        }
        let learned = if slept {
            (spins - 1).max(SPINS_MIN)
        } else {
            (spins + 100).min(SPINS_MAX)
        };
        taught.store(learned, Ordering::Relaxed);
    }

    /// A pseudo-random number below 256 (xorshift): only its spread matters.
    fn random_256(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random & 255
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    fn spins_of_this_worker() -> u32 {
        Native::workers()
            .slot(Native::worker())
            .spins_per_delay
            .load(Ordering::Relaxed)
    }

    #[test]
    fn learns_from_each_acquisition() {
        // A thread of its own, so that nothing else has taught its worker.
        std::thread::spawn(|| {
            let worker = Native::known_worker();
            let mut delay = Delay::new::<Native>(worker);
            let start = delay.budget();
            assert!((SPINS_MIN..=SPINS_MAX).contains(&start));
            delay.step::<Native>("test");
            delay.finish::<Native>();
            let raised = spins_of_this_worker();
            assert_eq!(raised, (start + 100).min(SPINS_MAX), "polling alone paid");

            let mut delay = Delay::new::<Native>(worker);
            for _ in 0..raised {
                delay.step::<Native>("test");
            }
            assert_eq!(delay.sleeps, 1);
            delay.finish::<Native>();
            assert_eq!(spins_of_this_worker(), raised - 1, "polling did not pay");

            Delay::new::<Native>(worker).finish::<Native>();
            assert_eq!(spins_of_this_worker(), raised - 1, "no polling teaches nothing");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn waking_in_between_postpones_the_sleep() {
        std::thread::spawn(|| {
            let mut delay = Delay::new::<Native>(Native::known_worker());
            for _ in 0..10 {
                for _ in 0..delay.budget() / 2 {
                    delay.step::<Native>("test");
                }
                delay.woken();
            }
            assert_eq!(delay.sleeps, 0);
        })
        .join()
        .unwrap();
    }

    // Mutation: the report ends the process, as it once did.
    #[test]
    fn a_stuck_wait_is_told_of_and_goes_on() {
        let mut delay = Delay::new::<Native>(None);
        delay.spins_before_sleep = 1;
        for sleeps in [SLEEPS_TO_TELL - 1, u32::MAX] {
            delay.sleeps = sleeps;
            delay.sleep_us = 1;
            delay.step::<Native>("test");
            assert_eq!(delay.sleeps, sleeps.saturating_add(1));
        }
    }

    #[test]
    fn sleeps_grow_and_start_over() {
        let mut delay = Delay::new::<Native>(None);
        let mut sleep_us = SLEEP_US_MIN;
        for _ in 0..1_000 {
            let factor = delay.random_256();
            assert!(factor < 256);
            let next = sleep_us + sleep_us * factor / 256;
            assert!((sleep_us..sleep_us * 2).contains(&next));
            sleep_us = if next > SLEEP_US_MAX { SLEEP_US_MIN } else { next };
        }
    }
}
