//! The CPU time that workers spend in acquiring and releasing ProcArray: what a profiler would show of those functions.
//!
//! All acquisitions go through [`TimedLatch`], so the account is the same for each variant of the latch. A simulation keeps
//! it ([`Machine::begin_cpu_time`]). Natively it compiles to nothing: the types have the size of what they hold, and what
//! they call is empty.

use std::marker::PhantomData;

use clearway_machine::{Machine, Native};

use super::latch::{ProcArrayExclusive, ProcArrayLatch, ProcArrayShared};

/// The name of that CPU time in a simulation's report.
pub const PROC_ARRAY_LATCH_TIME: &str = "ProcArray acquire and release";

/// The latch, with an account of the CPU time in its functions.
#[derive(Debug)]
#[repr(transparent)]
pub(super) struct TimedLatch<M: Machine>(pub(super) ProcArrayLatch<M>);

impl<M: Machine> TimedLatch<M> {
    #[inline(always)]
    #[track_caller]
    pub(super) fn shared(&self) -> Timed<ProcArrayShared<'_, M>, M> {
        let _time = LatchTime::<M>::begin();
        Timed::new(self.0.shared())
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn exclusive(&self) -> Timed<ProcArrayExclusive<'_, M>, M> {
        let _time = LatchTime::<M>::begin();
        Timed::new(self.0.exclusive())
    }

    #[inline(always)]
    #[track_caller]
    pub(super) fn try_exclusive(&self) -> Option<Timed<ProcArrayExclusive<'_, M>, M>> {
        let _time = LatchTime::<M>::begin();
        self.0.try_exclusive().map(Timed::new)
    }
}

/// The time runs until this is dropped.
#[must_use = "the time ends where this is dropped"]
struct LatchTime<M: Machine>(PhantomData<M>);

impl<M: Machine> LatchTime<M> {
    #[inline(always)]
    fn begin() -> Self {
        M::begin_cpu_time(PROC_ARRAY_LATCH_TIME);
        Self(PhantomData)
    }
}

impl<M: Machine> Drop for LatchTime<M> {
    #[inline(always)]
    fn drop(&mut self) {
        M::end_cpu_time(PROC_ARRAY_LATCH_TIME);
    }
}

/// The time begins when this is dropped.
struct BeginsAtDrop<M: Machine>(PhantomData<M>);

impl<M: Machine> Drop for BeginsAtDrop<M> {
    #[inline(always)]
    fn drop(&mut self) {
        M::begin_cpu_time(PROC_ARRAY_LATCH_TIME);
    }
}

/// A guard of the latch whose release is accounted for. Fields are dropped in this order.
#[must_use = "the latch is released at once if its guard is dropped"]
pub(super) struct Timed<G, M: Machine> {
    _begins: BeginsAtDrop<M>,
    _guard: G,
    _ends: LatchTime<M>,
}

impl<G, M: Machine> Timed<G, M> {
    #[inline(always)]
    fn new(guard: G) -> Self {
        Self {
            _begins: BeginsAtDrop(PhantomData),
            _guard: guard,
            _ends: LatchTime(PhantomData),
        }
    }
}

const _: () = assert!(size_of::<Timed<u64, Native>>() == size_of::<u64>());
