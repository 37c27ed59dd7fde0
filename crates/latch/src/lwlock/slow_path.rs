//! The contract of a variant of the switch `lwlock`: how a worker waits when the word refuses it.

use clearway_machine::{Machine, WorkerId};

use super::{LatchMode, LwLock};
use crate::delay::Delay;

/// The three waits of an [`LwLock`]. `worker` is the caller; polls are counted in `delay`.
pub(super) trait SlowPath<M: Machine>: Sync {
    /// Acquires the latch in `mode`, in a wait that began at `started`. Returns the word that granted it, or a later one if it
    /// was handed over; and how often the worker slept.
    fn acquire(
        &self,
        latch: &LwLock<M>,
        mode: LatchMode,
        worker: WorkerId,
        started: u64,
        delay: &mut Delay,
    ) -> (u32, u64);

    /// Acquires the latch exclusively (`true`), or sleeps until it is free and returns `false` without it.
    fn acquire_or_wait(&self, latch: &LwLock<M>, worker: WorkerId, delay: &mut Delay) -> bool;

    /// Waits until the latch is not held exclusively (`Ok`) or `variable` differs from `old` (`Err` with its
    /// value). Returns also how often the worker slept. Acquire.
    fn wait_for_var(
        &self,
        latch: &LwLock<M>,
        variable: &M::U64,
        old: u64,
        worker: WorkerId,
        delay: &mut Delay,
    ) -> (Result<(), u64>, u64);
}
