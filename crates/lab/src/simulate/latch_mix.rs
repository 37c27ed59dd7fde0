//! One latch, so many readers and writers.

use std::rc::Rc;

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, CasLoop, ClassOf, FetchAddBts, HolderProtocol, HybridLatch, LatchClass,
    LatchMode, LwLock, LwLockOptions, ReadBiasedLatch, SingleWake, SpinPolicy, SrwMutex, SsuxLock,
};
use clearway_machine::{Machine, Padded, WaitEvent, Work};
use clearway_sim::{Simulated, Simulation, clock_ns, random_below};

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

impl<T: Mixed> Mixed for Padded<T> {
    fn read(&self, section: &dyn Fn()) {
        self.0.read(section);
    }
    fn write(&self, section: &dyn Fn()) {
        self.0.write(section);
    }
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
    {C: ClassOf} SsuxLock<C, Simulated>;
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
fn latch<C: ClassOf>(kind: LatchKind, lwlock: LwLockOptions) -> Rc<dyn Mixed> {
    let class = C::class();
    match kind {
        LatchKind::Lwlock => Rc::new(Padded(LwLock::<Simulated>::new(class, lwlock))),
        LatchKind::ReadBiased => Rc::new(Padded(ReadBiasedLatch::<16, Simulated>::new(class, lwlock))),
        LatchKind::Adaptive => Rc::new(Padded(AdaptiveLatch::<16, Simulated>::with_options(
            class,
            AdaptiveOptions {
                lwlock,
                ..AdaptiveOptions::default()
            },
        ))),
        LatchKind::Ssux => Rc::new(Padded(SsuxLock::<C, Simulated>::idle())),
        LatchKind::Hybrid => Rc::new(Padded(HybridLatch::<C, Simulated>::idle())),
        LatchKind::HybridOptimistic => Rc::new(Padded(Optimistic(HybridLatch::<C, Simulated>::idle()))),
        LatchKind::SrwCasLoop => Rc::new(Padded(SrwMutex::<C, Simulated, CasLoop>::idle())),
        LatchKind::SrwFetchAddBts => Rc::new(Padded(SrwMutex::<C, Simulated, FetchAddBts>::idle())),
        LatchKind::SrwSingleWake => Rc::new(Padded(SrwMutex::<C, Simulated, SingleWake>::idle())),
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
    let latch = simulation.enter(|| match variant.spin {
        SpinKind::Adaptive => latch::<Polls>(variant.latch, options),
        SpinKind::None => latch::<Sleeps>(variant.latch, options),
    });
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
