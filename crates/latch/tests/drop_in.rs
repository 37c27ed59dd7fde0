//! `Mutex<T>` and `RwLock<T>` in the way that parking_lot's are used.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use clearway_latch::{
    ClassOf, Condvar, LatchClass, Mutex, RecursiveRwLock, RwLock, RwLockReadGuard, RwLockUpgradableReadGuard,
    RwLockWriteGuard, SpinPolicy, SrwMutex, lock_api,
};
use clearway_machine::WaitEvent;

static COUNT: Mutex<u64> = Mutex::new(0);
static TABLE: RwLock<Vec<u64>> = RwLock::new(Vec::new());

const THREADS: u64 = 4;
const STEPS: u64 = 2_000;

#[test]
fn statics_need_no_initialisation() {
    std::thread::scope(|scope| {
        for number in 0..THREADS {
            scope.spawn(move || {
                for step in 0..STEPS {
                    *COUNT.lock() += 1;
                    let table = TABLE.upgradable_read();
                    if step % 100 == 0 {
                        RwLockUpgradableReadGuard::upgrade(table).push(number);
                    } else {
                        let table = RwLockUpgradableReadGuard::downgrade(table);
                        assert!(table.iter().all(|number| *number < THREADS));
                    }
                }
            });
        }
    });
    assert_eq!(*COUNT.lock(), THREADS * STEPS);
    assert_eq!(TABLE.read().len() as u64, THREADS * STEPS / 100);
}

#[test]
fn a_latch_is_as_small_as_it_says() {
    assert_eq!(size_of::<Mutex<u32>>(), 8);
    assert_eq!(size_of::<Mutex<()>>(), 4);
    assert_eq!(size_of::<RwLock<()>>(), 8);
}

#[test]
fn guards_map_downgrade_and_upgrade() {
    let pair = RwLock::new((1, 2));
    let first = RwLockReadGuard::map(pair.read(), |pair| &pair.0);
    assert!(pair.is_locked() && !pair.is_locked_exclusive());
    assert!(pair.try_write().is_none() && pair.try_read().is_some());
    assert!(RwLockUpgradableReadGuard::try_upgrade(pair.try_upgradable_read().unwrap()).is_err());
    assert_eq!(*first, 1);
    drop(first);

    let mut writer = pair.write();
    assert!(pair.is_locked_exclusive() && pair.try_read().is_none());
    writer.0 = 3;
    let upgradable = RwLockWriteGuard::downgrade_to_upgradable(writer);
    assert_eq!(pair.try_read().map(|pair| pair.0), Some(3));
    assert!(pair.try_upgradable_read().is_none());
    let writer = RwLockUpgradableReadGuard::upgrade(upgradable);
    let reader = RwLockWriteGuard::downgrade(writer);
    assert_eq!(pair.try_upgradable_read().map(|pair| pair.1), Some(2));
    drop(reader);
    assert!(!pair.is_locked());
}

#[test]
fn a_panic_releases_and_does_not_poison() {
    let count = Mutex::new(0);
    let table = RwLock::new(0);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        *table.write() += 1;
        let _upgradable = table.upgradable_read();
        let mut count = count.lock();
        *count += 1;
        panic!("a user fails");
    }));
    assert!(panicked.is_err());
    assert_eq!((*count.lock(), *table.write()), (1, 1));
}

/// A second read of one thread enters though a writer waits for the first.
#[test]
fn a_recursive_read_passes_a_waiting_writer() {
    let table = RecursiveRwLock::new(0);
    let written = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let outer = table.read();
        scope.spawn(|| {
            *table.write() += 1;
            written.store(true, Relaxed);
        });
        // Time for the writer to come; whether it has does not change what follows.
        std::thread::sleep(Duration::from_millis(50));
        let inner = table.read();
        assert!(table.try_write().is_none() && table.try_write_for(Duration::from_millis(1)).is_none());
        assert_eq!((*inner, table.try_read().map(|inner| *inner)), (0, Some(0)));
        assert!(table.try_read_for(LONG).is_some() && table.try_read_until(Instant::now() + LONG).is_some());
        drop(outer);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!written.load(Relaxed), "the writer waits for this one, too");
        drop(inner);
    });
    let writer = table.write();
    assert!(table.try_read().is_none() && table.try_read_for(Duration::ZERO).is_none());
    let reader = lock_api::RwLockWriteGuard::downgrade(writer);
    assert_eq!((*reader, *table.read()), (1, 1));
}

/// The promise of the debug build: a message instead of a hang.
#[test]
#[cfg(debug_assertions)]
fn coming_again_is_a_panic_that_names_both_places() {
    let table = RwLock::new(0);
    let _reader = table.read();
    let panic = catch_unwind(AssertUnwindSafe(|| drop(table.read()))).expect_err("refused");
    let message = panic.downcast_ref::<String>().expect("a message");
    assert_eq!(message.matches("drop_in.rs").count(), 2, "{message}");
}

#[derive(Debug)]
struct Accounts;

impl ClassOf for Accounts {
    fn class() -> &'static LatchClass {
        static CLASS: LatchClass =
            LatchClass::new("accounts", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
        &CLASS
    }
}

#[test]
fn a_class_counts_its_waits() {
    let accounts = lock_api::Mutex::<SrwMutex<Accounts>, u64>::new(0);
    let sleeps = || Accounts::class().statistics().exclusive.sleeps;
    let mut waiters = 0;
    // Only the class's counters show whether the other thread slept, and only afterwards.
    while sleeps() == 0 {
        std::thread::scope(|scope| {
            let guard = accounts.lock();
            scope.spawn(|| *accounts.lock() += 1);
            std::thread::sleep(std::time::Duration::from_millis(20));
            drop(guard);
        });
        waiters += 1;
        assert!(waiters < 500, "no waiter ever slept");
    }
    assert_eq!(*accounts.lock(), waiters);
    assert_eq!(
        Accounts::class().statistics().exclusive.spins,
        0,
        "the policy is to sleep at once"
    );
}

/// A time that no test waits for.
const LONG: Duration = Duration::from_secs(600);

/// An attempt at one of the two, for a time; true if it was acquired.
type Attempt = fn(&Mutex<u64>, &RwLock<u64>, Duration) -> bool;

#[test]
fn attempts_last_for_their_time_and_no_shorter() {
    let (count, table) = (Mutex::new(0), RwLock::new(0));
    let time = Duration::from_millis(20);
    let (counted, written) = (count.lock(), table.write());
    std::thread::scope(|scope| {
        let attempts: [Attempt; 7] = [
            |count, _, time| count.try_lock_for(time).is_some(),
            |count, _, time| count.try_lock_until(Instant::now() + time).is_some(),
            |_, table, time| table.try_read_for(time).is_some(),
            |_, table, time| table.try_write_for(time).is_some(),
            |_, table, time| table.try_write_until(Instant::now() + time).is_some(),
            |_, table, time| table.try_upgradable_read_for(time).is_some(),
            |_, table, time| table.try_read_until(Instant::now() + time).is_some(),
        ];
        for attempt in attempts {
            let (count, table) = (&count, &table);
            scope.spawn(move || {
                let before = Instant::now();
                assert!(!attempt(count, table, time), "both are held");
                assert!(before.elapsed() >= time);
                assert!(!attempt(count, table, Duration::ZERO));
            });
        }
    });
    drop((counted, written));
    // Nothing of the attempts is left, and a time without an end is one.
    *count.try_lock_for(Duration::MAX).unwrap() += 1;
    *table.try_write_for(LONG).unwrap() += 1;
    assert_eq!((*count.lock(), *table.try_read_for(LONG).unwrap()), (1, 1));
}

#[test]
fn an_upgrade_that_takes_too_long_leaves_an_upgradable_read() {
    let table = RwLock::new(0);
    let (begun, upgraded) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let reader = table.read();
            begun.wait();
            upgraded.wait();
            drop(reader);
        });
        begun.wait();
        let upgradable = table.upgradable_read();
        let time = Duration::from_millis(1);
        let upgradable = RwLockUpgradableReadGuard::try_upgrade_for(upgradable, time).unwrap_err();
        assert!(table.try_upgradable_read().is_none());
        let reads = scope.spawn(|| table.try_read_for(LONG).is_some());
        assert!(reads.join().unwrap(), "new readers are admitted again");
        upgraded.wait();
        *RwLockUpgradableReadGuard::try_upgrade_for(upgradable, LONG).unwrap() += 1;
    });
    assert_eq!(table.into_inner(), 1);
}

#[test]
fn a_condition_variable_needs_no_initialisation() {
    static QUEUE: Mutex<Vec<u64>> = Mutex::new(Vec::new());
    static MORE: Condvar = Condvar::new();
    assert!(!MORE.notify_one(), "none waits");
    let taken = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut queue = QUEUE.lock();
            MORE.wait_while(&mut queue, |queue| queue.is_empty());
            queue.pop()
        });
        QUEUE.lock().push(7);
        MORE.notify_all();
        waiter.join().unwrap()
    });
    assert_eq!(taken, Some(7));

    let mut queue = QUEUE.lock();
    let (before, time) = (Instant::now(), Duration::from_millis(20));
    let result = MORE.wait_while_for(&mut queue, |queue| queue.is_empty(), time);
    assert!(result.timed_out() && before.elapsed() >= time);
    assert!(QUEUE.is_locked());
    let until = Instant::now() + time;
    assert!(
        MORE.wait_while_until(&mut queue, |queue| queue.is_empty(), until)
            .timed_out()
    );
    queue.push(8);
    assert!(
        !MORE
            .wait_while_for(&mut queue, |queue| queue.is_empty(), LONG)
            .timed_out()
    );
}
