//! One wait for a latch: its start, its polls, its sleeps, and what its class records of them.
//!
//! Most conflicts end by the first look after a short pause. Reading the clock twice takes longer than that,
//! so the clock is read from the second look on, and a wait that ended before is recorded with a duration of
//! 0.

use core::time::Duration;

use clearway_machine::{FutexOutcome, Machine, WaitScope};

use crate::class::{LatchClass, Wait};
use crate::spin::Spin;

/// A wait that has begun. Made on the slow path only.
#[derive(Debug)]
pub struct Waiting {
    class: &'static LatchClass,
    mode: Wait,
    /// The start of the second look, or of the sleep that came before it.
    started: Option<u64>,
    spin: Spin,
    sleeps: u64,
    limit: Option<Limit>,
}

/// The end of a wait whose caller has set one.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// On the machine's clock, nanoseconds.
    deadline: u64,
    /// A sleep has lasted until then: what is known of the end without a clock.
    is_over: bool,
}

/// The time on the machine's clock, in nanoseconds, that is `timeout` from now. A time that the clock cannot say is no limit.
pub(crate) fn deadline<M: Machine>(timeout: Duration) -> Option<u64> {
    let nanoseconds = u64::try_from(timeout.as_nanos()).ok()?;
    M::now().checked_add(nanoseconds)
}

impl Waiting {
    /// Begins a wait for the latch at `address`. Reads the class's spin policy, once for the whole wait.
    #[track_caller]
    pub(crate) fn begin<M: Machine>(class: &'static LatchClass, mode: Wait, address: *const ()) -> Self {
        M::label(address, class.name);
        class.begin_wait();
        Self {
            class,
            mode,
            started: None,
            spin: Spin::begin::<M>(class),
            sleeps: 0,
            limit: None,
        }
    }

    /// As [`begin`](Self::begin), for a wait that its caller gives up `timeout` from now.
    #[track_caller]
    pub(crate) fn begin_within<M: Machine>(
        class: &'static LatchClass,
        mode: Wait,
        address: *const (),
        timeout: Duration,
    ) -> Self {
        Self {
            limit: deadline::<M>(timeout).map(|deadline| Limit {
                deadline,
                is_over: false,
            }),
            ..Self::begin::<M>(class, mode, address)
        }
    }

    /// As [`begin`](Self::begin), or [`begin_within`](Self::begin_within) if there is a limit.
    #[cfg(feature = "std")]
    #[track_caller]
    pub(crate) fn begin_for<M: Machine>(
        class: &'static LatchClass,
        mode: Wait,
        address: *const (),
        timeout: Option<Duration>,
    ) -> Self {
        match timeout {
            Some(timeout) => Self::begin_within::<M>(class, mode, address, timeout),
            None => Self::begin::<M>(class, mode, address),
        }
    }

    /// True if the caller should give up, which it asks before it registers and, once registered, before each poll and each
    /// sleep. A wait without a limit reads no clock.
    pub(crate) fn is_over<M: Machine>(&self) -> bool {
        self.limit
            .is_some_and(|limit| limit.is_over || M::now() >= limit.deadline)
    }

    /// The time left for a sleep.
    fn time_left<M: Machine>(&self) -> Option<Duration> {
        let limit = self.limit?;
        Some(Duration::from_nanos(limit.deadline.saturating_sub(M::now())))
    }

    /// Pauses after a failed look and returns `true`, or `false` if the caller should sleep.
    #[inline]
    pub(crate) fn poll<M: Machine>(&mut self) -> bool {
        if self.spin.polls() > 0 {
            self.start::<M>();
        }
        self.spin.poll::<M>()
    }

    fn start<M: Machine>(&mut self) {
        if self.started.is_none() {
            self.started = Some(M::now());
        }
    }

    /// From now on the worker is the owner and waits for others to leave. Restores the budget of polls.
    pub(crate) fn poll_as_owner<M: Machine>(&mut self) {
        self.spin.poll_as_owner::<M>();
    }

    /// Calls `sleep`, which returns whether it slept, and returns the same. After a sleep the budget of polls
    /// is restored. Without one, because the word had changed, the worker has consumed no wake either, and
    /// should sleep again unless its next look succeeds.
    pub(crate) fn sleep<M: Machine>(&mut self, sleep: impl FnOnce(&'static LatchClass) -> bool) -> bool {
        self.start::<M>();
        let slept = sleep(self.class);
        if slept {
            self.sleeps += 1;
            self.spin.restart::<M>();
        }
        slept
    }

    /// As `sleep`, by a futex wait, which gets the time that is left.
    pub(crate) fn sleep_on_futex<M: Machine>(
        &mut self,
        wait: impl FnOnce(Option<Duration>) -> FutexOutcome,
    ) -> bool {
        let left = self.time_left::<M>();
        let mut timed_out = false;
        let slept = self.sleep::<M>(|class| {
            let _published = WaitScope::<M>::enter(class.wait_event);
            let outcome = wait(left);
            timed_out = outcome == FutexOutcome::TimedOut;
            outcome != FutexOutcome::Changed
        });
        if let Some(limit) = &mut self.limit {
            limit.is_over |= timed_out;
        }
        slept
    }

    /// True if the worker has slept.
    pub(crate) fn has_slept(&self) -> bool {
        self.sleeps > 0
    }

    /// The wait is over.
    pub(crate) fn finish<M: Machine>(self) {
        let waited = self.started.map_or(0, |started| M::now().saturating_sub(started));
        self.class
            .record(self.mode, self.spin.polls(), self.sleeps, waited);
        self.spin.finish::<M>(self.sleeps > 0);
    }
}
