//! One wait for a latch: its start, its polls, its sleeps, and what its class records of them.
//!
//! Most conflicts end by the first look after a short pause. Reading the clock twice takes longer than that,
//! so the clock is read from the second look on, and a wait that ended before is recorded with a duration of
//! 0.

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
}

impl Waiting {
    /// Begins a wait for the latch at `address`. Reads the class's spin policy, once for the whole wait.
    pub(crate) fn begin<M: Machine>(class: &'static LatchClass, mode: Wait, address: *const ()) -> Self {
        M::label(address, class.name);
        Self {
            class,
            mode,
            started: None,
            spin: Spin::begin::<M>(class),
            sleeps: 0,
        }
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

    /// As `sleep`, by a futex wait.
    pub(crate) fn sleep_on_futex<M: Machine>(&mut self, wait: impl FnOnce() -> FutexOutcome) -> bool {
        self.sleep::<M>(|class| {
            let _published = WaitScope::<M>::enter(class.wait_event);
            wait() != FutexOutcome::Changed
        })
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
