//! Latches as the simulated machine runs them: each guards two words that lie behind it.

use std::rc::Rc;

use clearway_latch::{
    AdaptiveLatch, ClassOf, HolderProtocol, HybridLatch, LatchClass, LwLock, ReadBiasedLatch, SpinPolicy,
    SrwMutex, SsuxLock, SsuxProtocol,
};
use clearway_machine::{AtomicWord, Padded, WaitEvent};
use clearway_sim::{Simulated, SimulatedU64};
use serde::{Deserialize, Serialize};

/// The way in which workers that wait for a latch pass the time before they sleep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpinKind {
    /// Poll as long as each worker has learned to be worth it.
    #[default]
    Adaptive,
    /// Nothing.
    None,
}

/// The class of latches whose workers poll before they sleep: [`SpinKind::Adaptive`].
#[derive(Debug)]
pub(super) struct PollThenSleep;

impl ClassOf for PollThenSleep {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass = LatchClass::new("LatchMix", WaitEvent::UserLatch, 0);
        &CLASS
    }
}

/// The class of latches whose workers sleep at once: [`SpinKind::None`].
#[derive(Debug)]
pub(super) struct SleepAtOnce;

impl ClassOf for SleepAtOnce {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass =
            LatchClass::new("LatchMix", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
        &CLASS
    }
}

/// A latch that runs a critical section. A mutex has no readers of its own: they take it as writers do.
pub(super) trait RunsSection {
    fn read(&self, section: &dyn Fn());
    fn write(&self, section: &dyn Fn());
}

/// A latch of any kind with the two words that it guards.
pub(crate) trait LatchWithWords {
    fn read(&self, section: &dyn Fn());
    fn write(&self, section: &dyn Fn());
    fn words(&self) -> &[SimulatedU64; 2];
}

#[repr(C)]
struct LatchThenWords<L> {
    latch: L,
    words: [SimulatedU64; 2],
}

impl<L: RunsSection> LatchWithWords for Padded<LatchThenWords<L>> {
    fn read(&self, section: &dyn Fn()) {
        self.latch.read(section);
    }
    fn write(&self, section: &dyn Fn()) {
        self.latch.write(section);
    }
    fn words(&self) -> &[SimulatedU64; 2] {
        &self.words
    }
}

/// `latch` and two words, on cache lines of their own.
pub(super) fn with_words<L: RunsSection + 'static>(latch: L) -> Rc<dyn LatchWithWords> {
    Rc::new(Padded(LatchThenWords {
        latch,
        words: [SimulatedU64::new(0), SimulatedU64::new(0)],
    }))
}

/// In the place of a latch, for the cost of the loop by itself.
#[derive(Debug)]
struct NoLatch;

impl RunsSection for NoLatch {
    fn read(&self, section: &dyn Fn()) {
        section();
    }
    fn write(&self, section: &dyn Fn()) {
        section();
    }
}

/// Two words without a latch.
pub(crate) fn words_without_latch() -> Rc<dyn LatchWithWords> {
    with_words(NoLatch)
}

macro_rules! runs_section_under_a_guard {
    ($({$($parameters:tt)*} $latch:ty;)*) => {$(
        impl<$($parameters)*> RunsSection for $latch {
            fn read(&self, section: &dyn Fn()) {
                let _guard = self.shared();
                section();
            }
            fn write(&self, section: &dyn Fn()) {
                let _guard = self.exclusive();
                section();
            }
        }
    )*};
}

runs_section_under_a_guard! {
    {} LwLock<Simulated>;
    {const K: usize} ReadBiasedLatch<K, Simulated>;
    {const K: usize} AdaptiveLatch<K, Simulated>;
    {C: ClassOf, P: SsuxProtocol} SsuxLock<C, Simulated, P>;
    {C: ClassOf} HybridLatch<C, Simulated>;
}

/// A hybrid latch whose readers acquire nothing unless a writer comes between.
pub(super) struct OptimisticReads<C: ClassOf>(pub(super) HybridLatch<C, Simulated>);

impl<C: ClassOf> RunsSection for OptimisticReads<C> {
    fn read(&self, section: &dyn Fn()) {
        self.0.read(section);
    }
    fn write(&self, section: &dyn Fn()) {
        let _guard = self.0.exclusive();
        section();
    }
}

impl<C: ClassOf, P: HolderProtocol> RunsSection for SrwMutex<C, Simulated, P> {
    fn read(&self, section: &dyn Fn()) {
        self.write(section);
    }
    fn write(&self, section: &dyn Fn()) {
        let _guard = self.exclusive();
        section();
    }
}
