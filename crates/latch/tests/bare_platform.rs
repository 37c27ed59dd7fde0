//! The machine without an operating system under a platform made of std's threads: workers that sleep on a
//! condition variable, as a small kernel's would on a queue of its own.

use std::cell::Cell;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Condvar, Mutex, Once};
use std::time::{Duration, Instant};

use clearway_latch::{
    AdaptiveLatch, AdaptiveOptions, BiasPolicy, HybridLatch, LatchClass, Latched, LwLockOptions,
    ReadBiasedLatch, SpinPolicy, SuxLock, Unclassed,
};
use clearway_machine::{
    Bare, CpuCounts, CpuHint, FutexOutcome, FutexWord, Machine, Platform, WaitEvent, WaitScope, WorkerId,
    WorkerMemory, WorkerSlot, Workers,
};

const THREADS: u64 = 6;
const STEPS: u64 = 2_000;

static MEMORY: WorkerMemory<64> = WorkerMemory::new();
static WORKERS: Workers<Bare> = Workers::within(&MEMORY);

/// A slot for as long as the thread lives.
struct Claim(Cell<Option<WorkerId>>);

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some(worker) = self.0.take() {
            // SAFETY: the thread's own slot, which ends with it.
            unsafe { WORKERS.release(worker) };
        }
    }
}

thread_local! {
    static CLAIM: Claim = const { Claim(Cell::new(None)) };
}

fn worker() -> Option<WorkerId> {
    CLAIM.with(|claim| {
        let worker = claim.0.get().or_else(|| WORKERS.claim());
        claim.0.set(worker);
        worker
    })
}

/// The address of the word that each sleeper sleeps on. All share one condition variable, which is correct,
/// since a wait may end early. But a wake must count only sleepers of its own word.
static SLEEPERS: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static WOKEN: Condvar = Condvar::new();

fn wait(word: FutexWord<'_>, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
    let address = word.address().addr();
    let mut sleepers = SLEEPERS.lock().unwrap();
    // Under the lock that `wake` takes: a worker that changes the word and wakes either comes before this
    // look or finds the sleeper.
    if word.load() != expected {
        return FutexOutcome::Changed;
    }
    sleepers.push(address);
    let (mut sleepers, outcome) = match timeout {
        None => (WOKEN.wait(sleepers).unwrap(), FutexOutcome::Woken),
        Some(timeout) => match WOKEN.wait_timeout(sleepers, timeout).unwrap() {
            (sleepers, result) if result.timed_out() => (sleepers, FutexOutcome::TimedOut),
            (sleepers, _) => (sleepers, FutexOutcome::Woken),
        },
    };
    let own = sleepers.iter().position(|other| *other == address).unwrap();
    sleepers.swap_remove(own);
    outcome
}

fn wake(word: FutexWord<'_>, count: u32) -> u32 {
    let address = word.address().addr();
    let sleepers = SLEEPERS.lock().unwrap();
    WOKEN.notify_all();
    let asleep = sleepers.iter().filter(|other| **other == address).count();
    (asleep as u32).min(count)
}

fn now() -> u64 {
    static START: Mutex<Option<Instant>> = Mutex::new(None);
    let start = *START.lock().unwrap().get_or_insert_with(Instant::now);
    // Past 0, which would say that there is no clock.
    start.elapsed().as_nanos() as u64 + 1
}

static PLATFORM: Platform = Platform {
    workers: &WORKERS,
    worker,
    now,
    cpu: || CpuHint {
        cpu: 1,
        core: 1,
        node: 0,
    },
    cpu_counts: CpuCounts::default,
    wait,
    wake,
    yield_now: std::thread::yield_now,
    sleep: std::thread::sleep,
};

fn installed() {
    static ONCE: Once = Once::new();
    // SAFETY: each thread has the slot that it has claimed, for as long as it lives.
    ONCE.call_once(|| unsafe { Bare::install(&PLATFORM) });
}

static SLEEPING: LatchClass =
    LatchClass::new("platform sleeping", WaitEvent::UserLatch, 0).spinning(SpinPolicy::None);
static LEARNING: LatchClass = LatchClass::new("platform learning", WaitEvent::UserLatch, 0);

/// Runs `step` in threads that begin together.
fn threads(step: impl Fn(u64) + Sync) {
    installed();
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                barrier.wait();
                (0..STEPS).for_each(&step);
            });
        }
    });
}

/// Adds one, not atomically.
fn add(word: &AtomicU64) {
    word.store(word.load(Relaxed) + 1, Relaxed);
}

#[test]
fn lwlocks_queue_their_waiters() {
    for class in [&SLEEPING, &LEARNING] {
        for options in LwLockOptions::all() {
            let count = Latched::<u64, Bare>::new(class, options, 0);
            threads(|step| {
                *count.exclusive() += 1;
                assert!(*count.shared() > step);
            });
            assert_eq!(*count.shared(), THREADS * STEPS);
        }
    }
}

#[test]
fn a_waiter_sleeps_until_it_is_posted() {
    // An event that no other test publishes.
    static CLASS: LatchClass =
        LatchClass::new("platform asleep", WaitEvent::ProcArray, 0).spinning(SpinPolicy::None);
    installed();
    let count = Latched::<u64, Bare>::new(&CLASS, LwLockOptions::default(), 0);
    let mut held = count.exclusive();
    std::thread::scope(|scope| {
        scope.spawn(|| *count.exclusive() += 1);
        let asleep = |slot: &WorkerSlot<Bare>| slot.wait_event() == WaitEvent::ProcArray;
        while !Bare::workers().claimed().any(|(_, slot)| asleep(slot)) {
            std::thread::yield_now();
        }
        *held += 1;
        drop(held);
    });
    assert_eq!(*count.shared(), 2);
    assert_eq!(CLASS.statistics().exclusive.sleeps, 1);
}

#[test]
fn readers_slots_and_owners_are_told_apart() {
    let read_biased = ReadBiasedLatch::<4, Bare>::new(&SLEEPING, LwLockOptions::default());
    let biased = AdaptiveLatch::<4, Bare>::with_options(
        &SLEEPING,
        AdaptiveOptions {
            bias: BiasPolicy::Always,
            ..AdaptiveOptions::default()
        },
    );
    let owned = SuxLock::<Unclassed, Bare>::idle();
    let hybrid = HybridLatch::<Unclassed, Bare>::idle();
    let words = [const { AtomicU64::new(0) }; 4];
    threads(|step| {
        if step % 4 != 0 {
            drop((read_biased.shared(), biased.shared(), owned.shared()));
            hybrid.read(|| words[3].load(Relaxed));
            return;
        }
        let held = (read_biased.exclusive(), biased.exclusive(), owned.exclusive());
        let again = owned.exclusive();
        let hybrid = hybrid.exclusive();
        words.iter().for_each(add);
        drop((hybrid, again, held));
    });
    assert!(words.iter().all(|word| word.load(Relaxed) == THREADS * STEPS / 4));
}

#[test]
fn waits_are_published_and_timed() {
    installed();
    let worker = Bare::worker();
    let slot = Bare::workers().slot(worker);
    {
        let _waiting = WaitScope::<Bare>::enter(WaitEvent::UserLatch);
        assert_eq!(slot.wait_event(), WaitEvent::UserLatch);
        assert!(Bare::workers().claimed().any(|(claimed, _)| claimed == worker));
    }
    assert_eq!(slot.wait_event(), WaitEvent::Running);
    let before = Bare::now();
    assert!(!slot.semaphore.wait_timeout(Duration::from_millis(2)));
    assert!(Bare::now() - before >= 2_000_000);
}

#[test]
fn a_second_platform_is_refused() {
    installed();
    // SAFETY: it is the same, and not installed.
    let refused = catch_unwind(|| unsafe { Bare::install(&PLATFORM) });
    let message = *refused.unwrap_err().downcast::<&str>().unwrap();
    assert!(message.contains("a second time"), "{message}");
}
