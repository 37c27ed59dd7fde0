//! The contract of a variant of the switch `lwlock`: how a worker waits when the word refuses it.

use clearway_machine::{Machine, WorkerId};

use super::{LatchMode, LwLock};
use crate::class::ClassHandle;
use crate::delay::Delay;

/// A grant after a wait.
#[derive(Debug)]
#[must_use = "a grant that came twice is to be given back once"]
pub(crate) struct Granted {
    /// The word that granted the latch, or a later one if it was handed over.
    pub(crate) from: u32,
    /// Number of times that the worker slept.
    pub(crate) sleeps: u64,
    /// The word counts the worker twice (R10): one of the two is to be given back, as a holder of the same mode does.
    pub(crate) twice: bool,
}

/// The three waits of an [`LwLock`]. `worker` is the caller; polls are counted in `delay`.
pub(super) trait SlowPath<M: Machine, K: ClassHandle>: Sync {
    /// Acquires the latch in `mode`, in a wait that began at `started`. A variant does not give back what came twice: what
    /// else a holder does that leaves is known to the latch that this one is a part of.
    fn acquire(
        &self,
        latch: &LwLock<M, K>,
        mode: LatchMode,
        worker: WorkerId,
        started: u64,
        delay: &mut Delay,
    ) -> Granted;

    /// Acquires the latch exclusively (`true`), or sleeps until it is woken and returns `false` without it.
    fn acquire_or_wait(&self, latch: &LwLock<M, K>, worker: WorkerId, delay: &mut Delay) -> bool;

    /// Waits until the latch is not held exclusively (`Ok`) or `variable` differs from `old` (`Err` with its
    /// value). Returns also how often the worker slept. Acquire.
    fn wait_for_var(
        &self,
        latch: &LwLock<M, K>,
        variable: &M::U64,
        old: u64,
        worker: WorkerId,
        delay: &mut Delay,
    ) -> (Result<(), u64>, u64);
}
