//! Costs of the operating system and of single instructions.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clearway_machine::{AtomicWord, Machine, Native, Padded};

use crate::stats::median;

/// Median nanoseconds of one call of `step`, over rounds with rests between them: a host that others use is
/// slow for some milliseconds at a time.
pub(super) fn time_of(steps: u32, mut step: impl FnMut()) -> f64 {
    const ROUNDS: u32 = 25;
    let steps = steps / ROUNDS;
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            for _ in 0..steps / 4 {
                step();
            }
            let before = Instant::now();
            for _ in 0..steps {
                step();
            }
            before.elapsed().as_secs_f64() * 1e9 / f64::from(steps)
        })
        .collect();
    median(&rounds)
}

/// One burst of wake-ups. For each, in nanoseconds: what it cost the waker, and how long after the call began
/// the woken thread ran again.
///
/// The burst is short and begins right after both CPUs were busy. If threads only sleep and wake each other
/// for tens of milliseconds, the host of a virtual machine gives them one CPU, and a call then lasts until
/// the woken thread sleeps again (up to 58 microseconds instead of 10).
pub(super) fn wake_ups(cpus: [usize; 2]) -> Vec<(f64, f64)> {
    const TURNS: u32 = 12;
    /// Time between falling asleep and being woken; a worker that waits for a latch sleeps no longer. After 1
    /// microsecond the CPU is often not idle yet; after 300 it takes half as long again to come back as after
    /// 4.
    const ASLEEP: Duration = Duration::from_micros(4);
    let word = Padded(<Native as Machine>::U32::new(0));
    let began = Instant::now();
    let now = || began.elapsed().as_nanos() as u64;
    let (asleep, woken_at) = (Padded(AtomicU32::new(0)), Padded(AtomicU64::new(0)));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _ = Native::stay_on(cpus[1]);
            for turn in 0..TURNS {
                asleep.store(turn + 1, Ordering::Release);
                while word.load(Ordering::Acquire) == turn {
                    Native::futex_wait(&word, turn, None);
                }
                woken_at.store(now(), Ordering::Release);
            }
        });
        let waker = scope.spawn(|| {
            let _ = Native::stay_on(cpus[0]);
            let turn = |turn| {
                while asleep.load(Ordering::Acquire) <= turn {
                    spin_loop();
                }
                let rest = Instant::now();
                while rest.elapsed() < ASLEEP {
                    spin_loop();
                }
                woken_at.store(0, Ordering::Relaxed);
                let before = now();
                word.store(turn + 1, Ordering::Release);
                Native::futex_wake(&word, 1);
                let waker = now() - before;
                let woken = loop {
                    match woken_at.load(Ordering::Acquire) {
                        0 => spin_loop(),
                        at => break at,
                    }
                };
                (waker as f64, woken.saturating_sub(before) as f64)
            };
            (0..TURNS).map(turn).collect()
        });
        waker
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Two threads on one CPU that give it away to each other: nanoseconds of a turn.
pub(super) fn switching(cpu: usize) -> f64 {
    const TURNS: u32 = 3_000;
    let times: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let _ = Native::stay_on(cpu);
                    Native::sleep(Duration::from_millis(2));
                    let before = Instant::now();
                    for _ in 0..TURNS {
                        Native::yield_now();
                    }
                    before.elapsed().as_secs_f64() * 1e9 / f64::from(2 * TURNS)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    median(&times)
}
