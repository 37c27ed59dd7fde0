//! The machine without an operating system, before a platform is installed. Threads of std serve as its CPUs.
//!
//! `bare_platform.rs` is the same with a platform installed, which is once a process.

use std::cell::UnsafeCell;
use std::sync::Barrier;
use std::time::Duration;

use clearway_latch::{
    ClassOf, HybridLatch, LatchClass, LwLock, LwLockVariant, SpinPolicy, SrwMutex, SsuxLock, SuxLock,
    Unclassed, classes, lock_api,
};
use clearway_machine::{AtomicWord, Bare, CoreU32, FutexOutcome, Machine, Semaphore, WaitEvent};

const STEPS: u64 = 20_000;

#[derive(Debug)]
struct Sleeping;

impl ClassOf for Sleeping {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass =
            LatchClass::new("bare sleeping", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
        &CLASS
    }
}

/// A count under a latch, in no atomic.
struct Count(UnsafeCell<u64>);

// SAFETY: the tests reach it under a latch that admits one at a time, which is what they check.
unsafe impl Sync for Count {}

impl Count {
    fn add(&self) {
        // SAFETY: as above.
        unsafe { *self.0.get() += 1 };
    }
}

/// Runs `step` in two threads at once.
fn two_threads(step: impl Fn(u64) + Sync) {
    let barrier = Barrier::new(2);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                barrier.wait();
                (0..STEPS).for_each(&step);
            });
        }
    });
}

fn contend_on_a_mutex<C: ClassOf>() {
    let mutex = SrwMutex::<C, Bare>::idle();
    let count = Count(UnsafeCell::new(0));
    two_threads(|_| {
        let _held = mutex.exclusive();
        count.add();
    });
    assert_eq!(count.0.into_inner(), 2 * STEPS);
}

#[test]
fn two_threads_count_under_a_mutex_that_polls() {
    contend_on_a_mutex::<Unclassed>();
}

#[test]
fn a_mutex_whose_class_sleeps_at_once_polls_all_the_same() {
    contend_on_a_mutex::<Sleeping>();
}

#[test]
fn a_waiter_on_record_sees_the_release_that_wakes_no_worker() {
    let mutex = SrwMutex::<Sleeping, Bare>::idle();
    let held = mutex.exclusive();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(mutex.exclusive()));
        // The owner and one that waits: two units.
        while !format!("{mutex:?}").contains("0x40000002") {
            std::thread::yield_now();
        }
        drop(held);
    });
    assert!(!mutex.is_held());
    let counted = classes().find(|class| class.name == "bare sleeping").unwrap();
    assert!(counted.statistics().exclusive.conflicts > 0);
}

#[test]
fn readers_updates_and_writers_share_a_lock_that_polls() {
    let lock = SsuxLock::<Sleeping, Bare>::idle();
    let count = Count(UnsafeCell::new(0));
    two_threads(|step| match step % 4 {
        0 => {
            let _held = lock.update().exclusive();
            count.add();
        }
        1 => {
            let _held = lock.exclusive();
            count.add();
        }
        2 => drop(lock.update()),
        _ => drop(lock.shared()),
    });
    assert_eq!(count.0.into_inner(), STEPS);
}

#[test]
fn statics_and_lock_api_work_on_it() {
    static TABLE: lock_api::RwLock<SsuxLock<Unclassed, Bare>, Vec<u64>> = lock_api::RwLock::new(Vec::new());
    static COUNT: lock_api::Mutex<SrwMutex<Unclassed, Bare>, u64> = lock_api::Mutex::new(0);
    two_threads(|step| {
        *COUNT.lock() += 1;
        if step % 100 == 0 {
            TABLE.write().push(step);
        }
        assert!(TABLE.read().iter().all(|step| step % 100 == 0));
    });
    assert_eq!(
        (*COUNT.lock(), TABLE.read().len() as u64),
        (2 * STEPS, STEPS / 50)
    );
}

#[test]
fn a_hybrid_latch_of_one_worker_needs_no_platform() {
    let latch = HybridLatch::<Unclassed, Bare>::idle();
    let version = latch.optimistic().unwrap();
    assert!(latch.validate(version));
    drop(latch.exclusive());
    assert!(!latch.validate(version));
    assert_eq!(latch.read(|| 7), 7);
}

#[test]
fn a_wait_ends_although_nothing_changes_and_there_is_no_clock() {
    let word = CoreU32::new(1);
    assert_eq!(Bare::futex_wait(&word, 0, None), FutexOutcome::Changed);
    assert_eq!(Bare::futex_wait(&word, 1, None), FutexOutcome::Woken);
    let second = Some(Duration::from_secs(1));
    assert_eq!(Bare::futex_wait(&word, 1, second), FutexOutcome::TimedOut);
    assert_eq!(Bare::futex_wake(&word, 1), 0);
    assert!(!Semaphore::<Bare>::new().wait_timeout(Duration::from_secs(1)));
    Bare::sleep(Duration::from_secs(1));
    assert_eq!((Bare::now(), Bare::known_worker()), (0, None));
}

/// The message of the panic of `attempt`.
fn complaint(attempt: impl FnOnce() + Send) -> String {
    let message = std::thread::scope(|scope| scope.spawn(attempt).join()).unwrap_err();
    *message
        .downcast::<String>()
        .or_else(|message| {
            message
                .downcast::<&str>()
                .map(|text| Box::new((*text).to_owned()))
        })
        .unwrap()
}

#[test]
fn a_latch_that_must_know_its_waiters_says_what_is_missing() {
    static CLASS: LatchClass = LatchClass::new("bare listed", WaitEvent::UserLatch, 0);
    for algorithm in [LwLockVariant::Queued, LwLockVariant::SingleCas] {
        let latch = LwLock::<Bare>::new(&CLASS, algorithm);
        let held = latch.exclusive();
        let message = complaint(|| drop(latch.shared()));
        assert!(message.contains("Bare::install"), "{message}");
        drop(held);
        assert!(!latch.is_held(), "no worker was admitted");
        assert!(latch.try_exclusive().is_some(), "and nothing was left behind");
    }

    let hybrid = HybridLatch::<Unclassed, Bare>::idle();
    let held = hybrid.exclusive();
    let message = complaint(|| drop(hybrid.shared()));
    assert!(message.contains("Bare::install"), "{message}");
    drop(held);
    assert!(hybrid.try_exclusive().is_some());

    let owned = SuxLock::<Unclassed, Bare>::idle();
    let message = complaint(|| drop(owned.update()));
    assert!(message.contains("Bare::install"), "{message}");
    assert!(!owned.is_held());
}
