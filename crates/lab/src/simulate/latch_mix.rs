//! One latch, so many readers and writers.

use std::rc::Rc;

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, CasLoop, ClassOf, FetchAddBts, HolderProtocol, HybridLatch, LatchClass,
    LatchMode, LwLock, LwLockOptions, OneWord, ReadBiasedLatch, SingleWake, SpinPolicy, SrwMutex, SsuxLock,
    SsuxProtocol,
};
use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, Work};
use clearway_sim::{Simulated, SimulatedU64, Simulation, clock_ns, random_below};

use crate::simulate::experiment::{Experiment, LatchKind, SpinKind, Variant};
use crate::simulate::point::Meter;

/// The class of latches whose workers poll before they sleep, as far as each has learned that it pays.
#[derive(Debug)]
struct Polls;

impl ClassOf for Polls {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass = LatchClass::new("LatchMix", WaitEvent::UserLatch, 0);
        &CLASS
    }
}

/// The class of latches whose workers sleep at once.
#[derive(Debug)]
struct Sleeps;

impl ClassOf for Sleeps {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass =
            LatchClass::new("LatchMix", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
        &CLASS
    }
}

/// A latch in the mix. A mutex has no readers of its own: they take it as writers do.
trait Mixed {
    fn read(&self, section: &dyn Fn());
    fn write(&self, section: &dyn Fn());
}

/// A latch of some kind with the two words that it guards behind it.
pub(crate) trait Guarding {
    fn read(&self, section: &dyn Fn());
    fn write(&self, section: &dyn Fn());
    fn words(&self) -> &[SimulatedU64; 2];
}

#[repr(C)]
struct Beside<L> {
    latch: L,
    words: [SimulatedU64; 2],
}

impl<L: Mixed> Guarding for Padded<Beside<L>> {
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

fn beside<L: Mixed + 'static>(latch: L) -> Rc<dyn Guarding> {
    Rc::new(Padded(Beside {
        latch,
        words: [SimulatedU64::new(0), SimulatedU64::new(0)],
    }))
}

/// No latch.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Mixed for Nothing {
    fn read(&self, section: &dyn Fn()) {
        section();
    }
    fn write(&self, section: &dyn Fn()) {
        section();
    }
}

/// Words that nothing guards.
pub(crate) fn nothing() -> Rc<dyn Guarding> {
    beside(Nothing)
}

impl Mixed for LwLock<Simulated> {
    fn read(&self, section: &dyn Fn()) {
        self.acquire(LatchMode::Shared);
        section();
        self.release(LatchMode::Shared);
    }
    fn write(&self, section: &dyn Fn()) {
        self.acquire(LatchMode::Exclusive);
        section();
        self.release(LatchMode::Exclusive);
    }
}

macro_rules! guarded {
    ($({$($parameters:tt)*} $latch:ty;)*) => {$(
        impl<$($parameters)*> Mixed for $latch {
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

guarded! {
    {} ReadBiasedLatch<16, Simulated>;
    {} AdaptiveLatch<16, Simulated>;
    {C: ClassOf, P: SsuxProtocol} SsuxLock<C, Simulated, P>;
    {C: ClassOf} HybridLatch<C, Simulated>;
}

/// A hybrid latch whose readers acquire nothing unless a writer comes between.
struct Optimistic<C: ClassOf>(HybridLatch<C, Simulated>);

impl<C: ClassOf> Mixed for Optimistic<C> {
    fn read(&self, section: &dyn Fn()) {
        self.0.read(section);
    }
    fn write(&self, section: &dyn Fn()) {
        let _guard = self.0.exclusive();
        section();
    }
}

impl<C: ClassOf, P: HolderProtocol> Mixed for SrwMutex<C, Simulated, P> {
    fn read(&self, section: &dyn Fn()) {
        self.write(section);
    }
    fn write(&self, section: &dyn Fn()) {
        let _guard = self.exclusive();
        section();
    }
}

/// A latch of `kind` on lines of its own.
fn latch<C: ClassOf>(kind: LatchKind, lwlock: LwLockOptions) -> Rc<dyn Guarding> {
    let class = C::class();
    match kind {
        LatchKind::Lwlock => beside(LwLock::<Simulated>::new(class, lwlock)),
        LatchKind::ReadBiased => beside(ReadBiasedLatch::<16, Simulated>::new(class, lwlock)),
        LatchKind::Adaptive => beside(AdaptiveLatch::<16, Simulated>::with_options(
            class,
            AdaptiveOptions {
                lwlock,
                ..AdaptiveOptions::default()
            },
        )),
        LatchKind::Ssux => beside(SsuxLock::<C, Simulated, OneWord>::idle()),
        LatchKind::SsuxTwoWords => beside(SsuxLock::<C, Simulated, SingleWake>::idle()),
        LatchKind::Hybrid => beside(HybridLatch::<C, Simulated>::idle()),
        LatchKind::HybridOptimistic => beside(Optimistic(HybridLatch::<C, Simulated>::idle())),
        LatchKind::SrwCasLoop => beside(SrwMutex::<C, Simulated, CasLoop>::idle()),
        LatchKind::SrwFetchAddBts => beside(SrwMutex::<C, Simulated, FetchAddBts>::idle()),
        LatchKind::SrwSingleWake => beside(SrwMutex::<C, Simulated, SingleWake>::idle()),
    }
}

/// A latch whose waiters poll or sleep as `spin` says.
pub(crate) fn latch_of(kind: LatchKind, lwlock: LwLockOptions, spin: SpinKind) -> Rc<dyn Guarding> {
    match spin {
        SpinKind::Adaptive => latch::<Polls>(kind, lwlock),
        SpinKind::None => latch::<Sleeps>(kind, lwlock),
    }
}

pub(crate) fn spawn(
    simulation: &mut Simulation,
    experiment: &Experiment,
    variant: &Variant,
    clients: usize,
    meter: &Rc<Meter>,
) {
    let options = variant.mechanisms.lwlock_options();
    let latch = simulation.enter(|| latch_of(variant.latch, options, variant.spin));
    simulation.name(&*latch, "latch");
    let parameters = &experiment.parameters;
    let reads_per_million = (parameters.read_percent * 1e4) as u64;
    let (critical, outside) = (parameters.critical_ns as u64, parameters.outside_ns as u64);
    for _ in 0..clients {
        let (latch, meter) = (Rc::clone(&latch), Rc::clone(meter));
        simulation.spawn(move || {
            let section = || Simulated::charge(Work::Nanos(critical));
            while meter.goes_on() {
                // Between half and one and a half times as long, so that clients do not march in step.
                Simulated::charge(Work::Nanos(outside / 2 + random_below(outside + 1)));
                let reads = random_below(1_000_000) < reads_per_million;
                let began = clock_ns();
                if reads {
                    latch.read(&section);
                } else {
                    latch.write(&section);
                }
                meter.done(began);
            }
        });
    }
}
