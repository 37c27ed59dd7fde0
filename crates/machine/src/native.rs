//! Production: core's atomics, Linux futexes, one worker slot a thread.

use core::cell::Cell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::OnceLock;
use std::time::Instant;

use crate::core_words::{CoreData, CorePtr, CoreU32, CoreU64};
use crate::current_cpu::current_cpu;
use crate::futex::Reach;
use crate::places::{Place, Places};
use crate::{
    CpuCounts, CpuHint, FutexOutcome, FutexWord, Half, Machine, Work, WorkerId, Workers, fatal, futex, report,
};

/// The machine this program runs on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Native;

/// Slots from the start: as many as a server with 2,000 connections needs, with the background workers and room to spare.
const WORKERS_AT_FIRST: usize = 1 << 12;

/// The most slots, unless the program chooses: more threads than fit into the memory of most machines.
const WORKERS_MAX: usize = 1 << 20;

/// More workers than that a program cannot ask for: Linux has no more threads.
const WORKERS_LIMIT: usize = 1 << 22;

/// The time between two looks of a wait that the system refuses.
const REFUSED: Duration = Duration::from_millis(1);

static WORKERS: OnceLock<Workers<Native>> = OnceLock::new();

/// The number of worker slots can no more be chosen: a thread has used the table already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkersInUse;

impl core::fmt::Display for WorkersInUse {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the table of worker slots is in use, so that its size cannot be chosen any more")
    }
}

impl core::error::Error for WorkersInUse {}

impl Native {
    /// Chooses the most worker slots that there may be, 1,048,576 otherwise: a bound on the memory that they take. A slot is
    /// 128 bytes. There are 4,096 from the start, or `count` if that is less; later ones are added as threads need them.
    /// `count` is raised to 16, and lowered to 4,194,304, the most threads that Linux has.
    ///
    /// # Errors
    /// [`WorkersInUse`] once a thread has waited, or anything has asked for the table. So a program calls this first.
    pub fn set_workers_max(count: usize) -> Result<(), WorkersInUse> {
        let mut first = false;
        WORKERS.get_or_init(|| {
            first = true;
            Workers::growing(WORKERS_AT_FIRST, count.clamp(16, WORKERS_LIMIT))
        });
        if first { Ok(()) } else { Err(WorkersInUse) }
    }
}

/// Returns the slot when the thread ends.
struct SlotReturn(Cell<u32>);

impl Drop for SlotReturn {
    fn drop(&mut self) {
        let number = self.0.get();
        if number != WorkerId::NONE {
            CURRENT.with(|current| current.set(WorkerId::NONE));
            // SAFETY: the thread's own slot, which it goes by no longer.
            unsafe { Native::workers().release(WorkerId(number)) };
        }
    }
}

thread_local! {
    // Two cells: the fast path reads one that has no destructor, hence no registration check.
    static CURRENT: Cell<u32> = const { Cell::new(WorkerId::NONE) };
    static RETURN: SlotReturn = const { SlotReturn(Cell::new(WorkerId::NONE)) };
}

/// Gives the calling thread, which has none, a slot, if one is free.
#[cold]
fn claim_slot() -> Option<WorkerId> {
    let worker = Native::workers().claim()?;
    CURRENT.with(|current| current.set(worker.0));
    // A thread that waits inside its own destructors, after RETURN is gone, keeps the slot until the process
    // ends.
    let _ = RETURN.try_with(|slot| slot.0.set(worker.0));
    Some(worker)
}

/// Gives the calling thread, which has none, a slot, as soon as one is free. By polling: threads end seldom, and what ends
/// is not worth a system call of each.
#[cold]
fn wait_for_slot() -> WorkerId {
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(worker) = claim_slot() {
            return worker;
        }
        static TOLD: AtomicU32 = AtomicU32::new(0);
        if TOLD.swap(1, Ordering::Relaxed) == 0 {
            report(format_args!(
                "all {} worker slots are taken; a thread waits until another one ends",
                Native::workers().capacity()
            ));
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(Duration::from_millis(100));
    }
}

/// Sleeps while `word` is `expected`. Ends the process on an error that cannot be.
pub(crate) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>, reach: Reach) -> FutexOutcome {
    let Err(error) = futex::wait(word, expected, timeout, reach) else {
        return FutexOutcome::Woken;
    };
    match error.raw_os_error() {
        Some(libc::EINTR) => FutexOutcome::Woken,
        Some(libc::EAGAIN) => FutexOutcome::Changed,
        Some(libc::ETIMEDOUT) => FutexOutcome::TimedOut,
        // As a filter of system calls may. Then a wait is a poll: callers look again.
        Some(libc::ENOSYS | libc::EPERM | libc::EACCES) => {
            static TOLD: AtomicU32 = AtomicU32::new(0);
            if TOLD.swap(1, Ordering::Relaxed) == 0 {
                report(format_args!(
                    "the system refuses futexes ({error}): threads that wait poll"
                ));
            }
            std::thread::sleep(timeout.map_or(REFUSED, |timeout| timeout.min(REFUSED)));
            FutexOutcome::Woken
        }
        _ => fatal(format_args!("a futex wait failed: {error}")),
    }
}

fn wake(word: &AtomicU32, count: u32) -> u32 {
    let woken = futex::wake(word, count, Reach::OneProcess);
    let number = CURRENT.with(Cell::get);
    // A thread without a slot is not given one for the sake of a statistic.
    if number != WorkerId::NONE {
        Native::workers().slot(WorkerId(number)).count_wake_up(woken);
    }
    woken
}

/// Half of a word, for the futex calls, which use only its address.
pub(crate) fn half_for_the_kernel(word: &AtomicU64, half: Half) -> &AtomicU32 {
    let address = FutexWord::half(word, half).address().cast_mut();
    // SAFETY: the address is inside `word`, which the reference keeps alive, and aligned. The program neither
    // loads nor stores through the result, so no two accesses of different size race. The kernel does, but it
    // is outside the program's memory model.
    unsafe { AtomicU32::from_ptr(address) }
}

/// The places of the CPUs, read at the first call.
#[inline]
fn places() -> &'static Places {
    static PLACES: OnceLock<Places> = OnceLock::new();
    PLACES.get_or_init(|| {
        // Those of the main thread: the calling one may have been kept on a single CPU.
        let main = std::process::id() as libc::pid_t;
        let allowed = Native::cpus_allowed_to(main).unwrap_or_default();
        Places::of_this_host(&allowed)
    })
}

// SAFETY: core's atomics; a thread keeps the number of the slot that it has claimed until it ends, and the table, which is
// one for the process, gives a slot to one thread at a time.
unsafe impl Machine for Native {
    const THREADS_ARE_WORKERS: bool = true;

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
        std::thread::yield_now();
    }

    fn futex_wait(word: &CoreU32, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        wait(&word.0, expected, timeout, Reach::OneProcess)
    }

    fn futex_wake(word: &CoreU32, count: u32) -> u32 {
        wake(&word.0, count)
    }

    fn futex_wait_half(word: &CoreU64, half: Half, expected: u32, timeout: Option<Duration>) -> FutexOutcome {
        let word = half_for_the_kernel(&word.0, half);
        wait(word, expected, timeout, Reach::OneProcess)
    }

    fn futex_wake_half(word: &CoreU64, half: Half, count: u32) -> u32 {
        wake(half_for_the_kernel(&word.0, half), count)
    }

    fn sleep(duration: Duration) {
        std::thread::sleep(duration);
    }

    fn now() -> u64 {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }

    #[inline]
    fn cpu() -> CpuHint {
        let cpu = current_cpu();
        let Place { core, node } = places().of(cpu);
        CpuHint { cpu, core, node }
    }

    fn cpu_counts() -> CpuCounts {
        places().counts()
    }

    #[inline(always)]
    fn charge(_work: Work) {}

    fn workers() -> &'static Workers<Native> {
        WORKERS.get_or_init(|| Workers::growing(WORKERS_AT_FIRST, WORKERS_MAX))
    }

    #[inline]
    fn worker() -> WorkerId {
        let number = CURRENT.with(Cell::get);
        if number == WorkerId::NONE {
            wait_for_slot()
        } else {
            WorkerId(number)
        }
    }

    #[inline]
    fn known_worker() -> Option<WorkerId> {
        let number = CURRENT.with(Cell::get);
        if number == WorkerId::NONE {
            claim_slot()
        } else {
            Some(WorkerId(number))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AtomicWord, Semaphore, WaitEvent, WaitScope};

    #[test]
    fn a_thread_keeps_its_slot_and_returns_it() {
        let inner = std::thread::spawn(|| {
            let first = Native::worker();
            assert_eq!(first, Native::worker());
            first
        })
        .join()
        .unwrap();
        // Another test's thread may take the slot at once, so only its owner's own view is asserted.
        assert!((inner.0 as usize) < Native::workers().capacity());
    }

    #[test]
    fn a_worker_counts_its_wake_ups_and_the_sleepers_that_they_found() {
        let before = Native::workers().wake_ups();
        Native::worker();
        let word = CoreU32::new(0);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| {
                while word.load(Ordering::Acquire) == 0 {
                    Native::futex_wait(&word, 0, None);
                }
            });
            std::thread::sleep(Duration::from_millis(5));
            word.store(1, Ordering::Release);
            let mut found = Native::futex_wake(&word, 1);
            while !sleeper.is_finished() {
                found += Native::futex_wake(&word, 1);
            }
            let after = Native::workers().wake_ups();
            // Other tests wake at the same time, so these are lower bounds.
            assert!(after.calls > before.calls && after.woken >= before.woken + u64::from(found));
        });
    }

    #[test]
    fn a_cpu_is_among_those_counted() {
        let counts = Native::cpu_counts();
        let here = Native::cpu();
        assert!(
            counts.nodes >= 1 && counts.nodes <= counts.cores && counts.cores <= counts.cpus,
            "{counts:?}"
        );
        assert!(
            here.core < counts.cores && here.node < counts.nodes,
            "{here:?} of {counts:?}"
        );
    }

    #[test]
    fn semaphore_counts_posts() {
        let semaphore = Semaphore::<Native>::new();
        semaphore.post();
        semaphore.post();
        semaphore.wait();
        assert!(semaphore.try_wait());
        assert!(!semaphore.try_wait());
        assert!(!semaphore.wait_timeout(Duration::from_millis(1)));
    }

    #[test]
    fn semaphore_hands_over_between_threads() {
        let ping = Semaphore::<Native>::new();
        let pong = Semaphore::<Native>::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    ping.wait();
                    pong.post();
                }
            });
            for _ in 0..10_000 {
                ping.post();
                pong.wait();
            }
        });
    }

    // Mutation: hand the kernel the count as it is. It wakes one.
    #[test]
    fn the_greatest_count_wakes_all_sleepers() {
        const SLEEPERS: u32 = 3;
        // A thread that is not asleep yet when the others are woken is no fault, so there are several tries.
        let all_at_once = (0..20).any(|_| {
            let word = CoreU32::new(0);
            std::thread::scope(|scope| {
                for _ in 0..SLEEPERS {
                    scope.spawn(|| while Native::futex_wait(&word, 0, None) != FutexOutcome::Changed {});
                }
                std::thread::sleep(Duration::from_millis(20));
                let woken = Native::futex_wake(&word, u32::MAX);
                word.store(1, Ordering::Release);
                while Native::futex_wake(&word, 1) != 0 {}
                woken == SLEEPERS
            })
        });
        assert!(all_at_once, "sleepers were left asleep");
    }

    #[test]
    fn wait_events_nest() {
        let slot = Native::workers().slot(Native::worker());
        let outer = WaitScope::<Native>::enter(WaitEvent::WalWriteLatch);
        {
            let _inner = WaitScope::<Native>::enter(WaitEvent::SpinDelay);
            assert_eq!(slot.wait_event(), WaitEvent::SpinDelay);
        }
        assert_eq!(slot.wait_event(), WaitEvent::WalWriteLatch);
        drop(outer);
        assert_eq!(slot.wait_event(), WaitEvent::Running);
    }
}
