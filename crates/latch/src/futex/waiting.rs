//! One wait for a futex latch: when it began, how it polls, how often it slept.

use clearway_machine::{Machine, WaitScope};

use crate::class::{LatchClass, Wait};
use crate::spin::Spin;

/// A wait that has begun. Made on the slow path only.
#[derive(Debug)]
pub(crate) struct Waiting {
    class: &'static LatchClass,
    mode: Wait,
    started: u64,
    spin: Spin,
    sleeps: u64,
}

impl Waiting {
    /// Begins to wait for the latch at `address`. Reads the class's spin policy, once for the whole wait.
    pub(crate) fn begin<M: Machine>(class: &'static LatchClass, mode: Wait, address: *const ()) -> Self {
        M::label(address, class.name);
        Self {
            class,
            mode,
            started: M::now(),
            spin: Spin::begin::<M>(class),
            sleeps: 0,
        }
    }

    /// One failed look: pauses and says `true`, or `false` if the caller should sleep.
    pub(crate) fn poll<M: Machine>(&mut self) -> bool {
        self.spin.poll::<M>()
    }

    /// The worker waits for something else from now on, and may poll for it afresh.
    pub(crate) fn afresh<M: Machine>(&mut self) {
        self.spin.afresh::<M>();
    }

    /// Sleeps while `word` is `seen`, until woken. May return for no reason.
    pub(crate) fn sleep<M: Machine>(&mut self, word: &M::U32, seen: u32) {
        self.sleeps += 1;
        let _published = WaitScope::<M>::enter(self.class.wait_event);
        M::futex_wait(word, seen, None);
        self.spin.afresh::<M>();
    }

    /// The wait is over.
    pub(crate) fn finish<M: Machine>(self) {
        self.class.record(
            self.mode,
            self.spin.polls(),
            self.sleeps,
            M::now().saturating_sub(self.started),
        );
        self.spin.finish::<M>(self.sleeps > 0);
    }
}
