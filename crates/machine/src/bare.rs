//! The machine without an operating system: core's atomics, and a table of functions that the embedding
//! program installs.
//!
//! A kernel, a hypervisor or a program on bare metal knows how its own threads sleep and which number each
//! has; this crate does not. So [`Bare`] calls a [`Platform`], which the program installs once. Without one
//! it does what polling can do:
//!
//! | asked for | without an installation |
//! | --- | --- |
//! | wait for a word | polls it |
//! | wake waiters | nothing: they poll |
//! | the time | 0, always |
//! | the CPU | CPU 0 of node 0 |
//! | yield, sleep | some polls |
//! | the calling worker | unknown |
//!
//! That is enough for latches whose waiters sleep on the latch's own word: a waiter polls until the word
//! changes. Latches that have a list of waiters, or an owner, must know the caller. There [`Bare::worker`]
//! panics and names [`Bare::install`], since a guess would lose a waiter or admit two workers.
//!
//! A program that polls but knows its workers, such as a kernel that numbers them by CPU, needs only
//! [`Platform::polling`] with `workers` and `worker` set.

use core::sync::atomic::AtomicPtr;
use core::sync::atomic::Ordering::{self, Acquire, Relaxed, Release};
use core::time::Duration;

use crate::core_words::{CoreData, CorePtr, CoreU32, CoreU64};
use crate::{
    CpuCounts, CpuHint, FutexOutcome, FutexWord, Half, Machine, Work, WorkerId, WorkerMemory, Workers,
};

/// The machine of a program without an operating system; see [`Platform`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Bare;

/// The functions that [`Bare`] needs from the embedding program. Any thread may call them, while it holds or
/// waits for any latch, so they must not use a latch of `Bare` themselves.
#[derive(Debug, Clone, Copy)]
pub struct Platform {
    /// The slots of all workers.
    pub workers: &'static Workers<Bare>,
    /// The number of the calling worker, below the capacity of [`workers`](Self::workers). `None` for a
    /// caller that is no worker; it may use only the latches of a single word. Numbers may be given out by
    /// [`Workers::claim`] or by any rule of the program's own.
    pub worker: fn() -> Option<WorkerId>,
    /// Monotonic nanoseconds since some fixed instant; 0 if there is no clock. Without a clock waits are
    /// recorded with a duration of 0, and the bound on the cost of an adaptive latch's wrong guesses does not
    /// hold.
    pub now: fn() -> u64,
    /// The caller's CPU.
    pub cpu: fn() -> CpuHint,
    /// Numbers of CPUs, cores and nodes that `cpu` may report, each 0 if that is not known. Always the same.
    pub cpu_counts: fn() -> CpuCounts,
    /// Sleeps while the word holds the value, until woken or until the time has passed. May return early.
    /// Must not sleep if the word changed and a `wake` followed before the sleeper could be found: compare
    /// the word and enqueue the sleeper in one step. [`FutexOutcome::Changed`] says that it did not sleep.
    /// After a sleep that a wake ended it returns `Woken`, whatever the word is by then.
    pub wait: fn(FutexWord<'_>, u32, Option<Duration>) -> FutexOutcome,
    /// Wakes up to this many sleepers of the word, all of them if it is `u32::MAX`; returns how many. A latch makes no
    /// further wake-up call while a woken worker is awake, so a sleeper of another word must not be counted.
    pub wake: fn(FutexWord<'_>, u32) -> u32,
    /// Yields the CPU once.
    pub yield_now: fn(),
    /// Sleeps for about this long.
    pub sleep: fn(Duration),
}

/// Looks at a word before a polling wait returns early. So even a wake without a change is noticed in the
/// end, and a worker that began to wait before an installation continues under the installed platform.
const POLLS: u32 = 1024;

/// No workers at all.
static NO_MEMORY: WorkerMemory<0, 1> = WorkerMemory::new();
static NO_WORKERS: Workers<Bare> = Workers::within(&NO_MEMORY);

static POLLING: Platform = Platform::polling();

/// The installed platform, or `POLLING`. Never anything that is not `'static`.
static PLATFORM: AtomicPtr<Platform> = AtomicPtr::new((&raw const POLLING).cast_mut());

impl Platform {
    /// Everything by polling: no workers, no clock, one CPU. For programs that have some of it:
    ///
    /// ```
    /// use clearway_machine::{Bare, Platform, WorkerId, WorkerMemory, Workers};
    ///
    /// static MEMORY: WorkerMemory<4> = WorkerMemory::new();
    /// static WORKERS: Workers<Bare> = Workers::within(&MEMORY);
    /// static PLATFORM: Platform = Platform {
    ///     workers: &WORKERS,
    ///     worker: || Some(WorkerId(0)), // really: the number of the CPU
    ///     ..Platform::polling()
    /// };
    /// ```
    pub const fn polling() -> Self {
        Self {
            workers: &NO_WORKERS,
            worker: || None,
            now: || 0,
            cpu: CpuHint::default,
            cpu_counts: CpuCounts::default,
            wait: poll,
            wake: |_, _| 0,
            yield_now: core::hint::spin_loop,
            sleep: pause,
        }
    }
}

fn poll(word: FutexWord<'_>, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
    for _ in 0..POLLS {
        if word.load() != expected {
            return FutexOutcome::Changed;
        }
        core::hint::spin_loop();
    }
    // With a clock the caller checks the time; without one it must not wait without end.
    if timeout.is_some() && Bare::now() == 0 {
        FutexOutcome::TimedOut
    } else {
        FutexOutcome::Woken
    }
}

fn pause(duration: Duration) {
    let end = Bare::now().saturating_add(duration.as_nanos().min(u128::from(u64::MAX)) as u64);
    loop {
        for _ in 0..POLLS {
            core::hint::spin_loop();
        }
        let now = Bare::now();
        if now == 0 || now >= end {
            return;
        }
    }
}

impl Bare {
    /// Installs the platform, once for the whole program, before any latch but those of a single word is
    /// used. Workers that wait already keep waiting, under the new platform.
    ///
    /// # Safety
    /// [`Platform::worker`] gives different numbers to workers that live at the same time, and always the
    /// same number to one worker: a latch with an owner admits any caller with the owner's number. No other
    /// promise is needed for safety. A platform that breaks others makes workers wait too long or too short,
    /// and nothing else.
    ///
    /// # Panics
    /// If a platform is installed already.
    pub unsafe fn install(platform: &'static Platform) {
        let polling = (&raw const POLLING).cast_mut();
        // Release: pairs with the Acquire in `platform`.
        let installed =
            PLATFORM.compare_exchange(polling, (&raw const *platform).cast_mut(), Release, Relaxed);
        assert!(
            installed.is_ok(),
            "clearway: Bare::install is called a second time"
        );
    }

    fn platform() -> &'static Platform {
        // SAFETY: `PLATFORM` only ever points to `POLLING` or to what `install` was given, both `'static` and
        // never changed.
        unsafe { &*PLATFORM.load(Acquire) }
    }
}

#[cold]
#[inline(never)]
fn unknown_worker() -> ! {
    panic!(
        "clearway: a latch that keeps a list of its waiters, or an owner, is used by an unknown worker; \
         give Bare::install a platform that knows the workers, and call it first"
    );
}

// SAFETY: core's atomics; that the numbers of workers differ is the promise of `install`, and without it there are none.
unsafe impl Machine for Bare {
    type U32 = CoreU32;
    type U64 = CoreU64;
    type Ptr<T: 'static> = CorePtr<T>;
    type Data<T> = CoreData<T>;

    #[inline(always)]
    fn fence(order: Ordering) {
        core::sync::atomic::fence(order);
    }

    #[inline(always)]
    fn spin_hint() {
        core::hint::spin_loop();
    }

    fn yield_now() {
        (Self::platform().yield_now)();
    }

    fn futex_wait(word: &CoreU32, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        (Self::platform().wait)(FutexWord::whole(&word.0), expected, timeout)
    }

    fn futex_wake(word: &CoreU32, count: u32) -> u32 {
        (Self::platform().wake)(FutexWord::whole(&word.0), count)
    }

    fn futex_wait_half(word: &CoreU64, half: Half, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        (Self::platform().wait)(FutexWord::half(&word.0, half), expected, timeout)
    }

    fn futex_wake_half(word: &CoreU64, half: Half, count: u32) -> u32 {
        (Self::platform().wake)(FutexWord::half(&word.0, half), count)
    }

    fn sleep(duration: Duration) {
        (Self::platform().sleep)(duration);
    }

    fn now() -> u64 {
        (Self::platform().now)()
    }

    fn cpu() -> CpuHint {
        (Self::platform().cpu)()
    }

    fn cpu_counts() -> CpuCounts {
        (Self::platform().cpu_counts)()
    }

    #[inline(always)]
    fn charge(_work: Work) {}

    fn workers() -> &'static Workers<Bare> {
        let workers = Self::platform().workers;
        if workers.capacity() == 0 {
            unknown_worker();
        }
        workers
    }

    /// The installed platform's number for the caller.
    ///
    /// # Panics
    /// If there is none.
    fn worker() -> WorkerId {
        match Self::known_worker() {
            Some(worker) => worker,
            None => unknown_worker(),
        }
    }

    fn known_worker() -> Option<WorkerId> {
        (Self::platform().worker)()
    }
}
