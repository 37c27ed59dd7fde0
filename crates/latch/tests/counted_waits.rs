//! A wait for a latch of any kind is counted, and makes its class's counters when it begins.

use std::time::Duration;

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, ClassOf, HybridLatch, LatchClass, LatchClassStatistics,
    LwLock, LwLockOptions, ReadBiasedLatch, ReadBiasedOptions, SpinLatch, SpinPolicy, SrwMutex, SsuxLock,
    SuxLock,
};
use clearway_machine::{AtomicWord, CoreU64, Native, WaitEvent};

/// Holds a latch while another thread wants it, until a wait has been counted. A hold that ends before the thread has looked
/// shows nothing, so there are as many as are needed, up to a number that only counters that are never made use up.
fn first_wait_is_counted<G>(
    class: &'static LatchClass,
    waits: fn(&LatchClassStatistics) -> u64,
    hold: impl Fn() -> G,
    wait: impl Fn() + Sync,
) {
    for _ in 0..1_000 {
        std::thread::scope(|scope| {
            let held = hold();
            scope.spawn(&wait);
            std::thread::sleep(Duration::from_millis(2));
            drop(held);
        });
        if waits(&class.statistics()) > 0 {
            return;
        }
    }
    panic!("{}: no wait is counted", class.name);
}

/// A class of this file's, by its name.
macro_rules! class {
    ($name:ident) => {
        class!($name, SpinPolicy::Adaptive);
    };
    ($name:ident, $spin:expr) => {
        #[derive(Debug)]
        struct $name;
        impl ClassOf for $name {
            fn class() -> &'static LatchClass {
                static CLASS: LatchClass =
                    LatchClass::new(stringify!($name), WaitEvent::UserLatch, 0).spinning($spin);
                &CLASS
            }
        }
    };
}

fn exclusive(class: &LatchClassStatistics) -> u64 {
    class.exclusive.conflicts
}

fn until_free(class: &LatchClassStatistics) -> u64 {
    class.until_free.conflicts
}

#[test]
fn of_a_spin_latch() {
    class!(Spins);
    let latch = SpinLatch::<Native>::new(Spins::class());
    first_wait_is_counted(Spins::class(), exclusive, || latch.lock(), || drop(latch.lock()));
}

#[test]
fn of_an_lwlock_in_each_of_its_three_ways() {
    class!(Acquires);
    class!(AcquiresOrWaits);
    class!(WaitsForVariable);
    let of = |class| LwLock::<Native>::new(class, LwLockOptions::default());
    let latch = of(Acquires::class());
    first_wait_is_counted(
        Acquires::class(),
        exclusive,
        || latch.exclusive(),
        || drop(latch.exclusive()),
    );
    let latch = of(AcquiresOrWaits::class());
    first_wait_is_counted(
        AcquiresOrWaits::class(),
        until_free,
        || latch.exclusive(),
        || drop(latch.acquire_or_wait()),
    );
    let latch = of(WaitsForVariable::class());
    let variable = CoreU64::new(0);
    first_wait_is_counted(
        WaitsForVariable::class(),
        until_free,
        || latch.exclusive(),
        || assert_eq!(latch.wait_for_var(&variable, 0), Ok(())),
    );
}

#[test]
fn of_the_latches_of_one_word() {
    class!(Mutexes);
    class!(Shares);
    class!(Owns);
    class!(Versions);
    let mutex = SrwMutex::<Mutexes>::new();
    first_wait_is_counted(
        Mutexes::class(),
        exclusive,
        || mutex.exclusive(),
        || drop(mutex.exclusive()),
    );
    let latch = SsuxLock::<Shares>::new();
    first_wait_is_counted(
        Shares::class(),
        exclusive,
        || latch.shared(),
        || drop(latch.exclusive()),
    );
    let latch = SuxLock::<Owns>::new();
    first_wait_is_counted(
        Owns::class(),
        exclusive,
        || latch.exclusive(),
        || drop(latch.exclusive()),
    );
    let latch = HybridLatch::<Versions>::new();
    first_wait_is_counted(
        Versions::class(),
        exclusive,
        || latch.exclusive(),
        || drop(latch.exclusive()),
    );
}

#[test]
fn of_a_read_biased_latch() {
    class!(Slots);
    let latch = ReadBiasedLatch::<4>::new(Slots::class(), ReadBiasedOptions::default());
    first_wait_is_counted(
        Slots::class(),
        exclusive,
        || latch.shared(),
        || drop(latch.exclusive()),
    );
}

#[test]
fn of_a_biased_latch_for_its_readers_and_for_its_writer() {
    class!(WaitsForReaders);
    // It polls for as long as it takes: behind the queue, the queue would count its wait.
    class!(WaitsForWriter, SpinPolicy::Fixed(1 << 30));
    let of = |class| {
        let options = AdaptiveOptions {
            bias: BiasPolicy::Always,
            ..AdaptiveOptions::default()
        };
        AdaptiveLatch::<4>::with_options(class, options)
    };
    let latch = of(WaitsForReaders::class());
    first_wait_is_counted(
        WaitsForReaders::class(),
        exclusive,
        || latch.shared(),
        || drop(latch.exclusive()),
    );
    let latch = of(WaitsForWriter::class());
    first_wait_is_counted(
        WaitsForWriter::class(),
        |class| class.shared.conflicts,
        || latch.exclusive(),
        || drop(latch.shared()),
    );
}
