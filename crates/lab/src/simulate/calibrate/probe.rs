//! The placement of two CPUs at one moment: their distance, and if they share a core.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use clearway_machine::{Native, Padded};

use crate::latches::section::Section;

/// Transfers that differ by less than this factor are of one placement.
pub(super) const SAME_PLACE: f64 = 1.25;

pub(in crate::simulate) fn within(value: f64, of: f64, factor: f64) -> bool {
    (of / factor..=of * factor).contains(&value)
}

/// Arithmetic that keeps a core's multiplier busy all the time, so that two hardware threads of one core take turns.
/// Nanoseconds of a round, the best of three.
fn arithmetic() -> f64 {
    const ROUNDS: u32 = 600;
    let run = || {
        let before = Instant::now();
        let mut values = black_box([1_u64, 2, 3, 4, 5, 6, 7, 8]);
        for _ in 0..ROUNDS {
            for value in &mut values {
                *value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            }
        }
        black_box(values);
        before.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
    };
    run().min(run()).min(run())
}

/// A measurement of two CPUs at one moment.
#[derive(Debug, Clone, Copy)]
pub(in crate::simulate) struct Probe {
    /// Half of a round trip of a line, by compare-and-swap alone, as core-to-core matrices are made.
    pub(in crate::simulate) transfer: f64,
    /// A round of arithmetic on the first with the other at rest, at the same, and polling with pauses.
    pub(in crate::simulate) alone: f64,
    pub(super) together: f64,
    pub(super) beside_pauses: f64,
    /// An increment of a line that the other increments too.
    pub(super) contended: f64,
}

/// Takes about half a millisecond.
pub(in crate::simulate) fn probe(cpus: [usize; 2]) -> Probe {
    const TRIPS: u64 = 400;
    // Long enough that the two run side by side for nearly all of it.
    const INCREMENTS: u32 = 20_000;
    let word = Padded(AtomicU64::new(0));
    let phase = Padded(AtomicU32::new(0));
    let meet = |number: u32| {
        phase.fetch_add(1, Ordering::AcqRel);
        // Before the fourth meeting the first thread takes one step more, which ends the second one's
        // polling.
        let all = 2 * number + u32::from(number == 4);
        while phase.load(Ordering::Acquire) < all {
            spin_loop();
        }
    };
    let turn = |mine: u64| {
        for trip in 0..TRIPS {
            let (from, to) = (2 * trip + mine, 2 * trip + mine + 1);
            while word
                .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {}
        }
    };
    let increment = || increments(&word, INCREMENTS, Section::NONE);
    let stay = |cpu| {
        // If this is refused, the probe shows threads on the CPUs that the kernel chose.
        let _ = Native::stay_on(cpu);
    };
    let mut found = std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            stay(cpus[0]);
            meet(1);
            let before = Instant::now();
            turn(0);
            let transfer = before.elapsed().as_secs_f64() * 1e9 / (2 * TRIPS) as f64;
            meet(2);
            let together = arithmetic();
            meet(3);
            let beside_pauses = arithmetic();
            phase.fetch_add(1, Ordering::AcqRel);
            meet(4);
            Probe {
                transfer,
                alone: 0.0,
                together,
                beside_pauses,
                contended: increment(),
            }
        });
        let second = scope.spawn(|| {
            stay(cpus[1]);
            meet(1);
            turn(1);
            meet(2);
            arithmetic();
            arithmetic();
            meet(3);
            while phase.load(Ordering::Relaxed) < 7 {
                spin_loop();
            }
            meet(4);
            increment()
        });
        let mut found = first
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let others = second
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        found.contended = f64::midpoint(found.contended, others);
        found
    });
    found.alone = std::thread::scope(|scope| {
        let alone = scope.spawn(|| {
            stay(cpus[0]);
            arithmetic()
        });
        alone
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    found
}

/// Nanoseconds of two threads together for one of the increments that each makes of `word`, with `between` after each.
pub(super) fn increments(word: &AtomicU64, count: u32, between: Section) -> f64 {
    let before = Instant::now();
    for _ in 0..count {
        word.fetch_add(1, Ordering::AcqRel);
        between.work();
    }
    before.elapsed().as_secs_f64() * 1e9 / f64::from(2 * count)
}

/// The pairs of CPUs to probe: the first with each other one.
pub(in crate::simulate) fn pair(cpus: &[usize], turn: usize) -> [usize; 2] {
    [cpus[0], cpus[1 + turn % (cpus.len() - 1)]]
}
