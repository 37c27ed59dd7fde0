//! The critical section: a stretch of arithmetic of a known length.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A number of steps that take about the wanted time on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section {
    steps: u64,
}

/// Each step needs the last one's result, so that the CPU cannot overlap them. One copy of the loop for all
/// subjects and for the calibration: inlined, it came out with steps of different lengths (12 % at one
/// latch).
#[inline(never)]
fn work(steps: u64) -> u64 {
    let mut value = black_box(1_u64);
    for _ in 0..steps {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    }
    black_box(value)
}

impl Section {
    /// Nothing.
    pub(crate) const NONE: Section = Section { steps: 0 };

    /// Finds the number of steps, by the fastest of several tries: what the machine does undisturbed.
    pub(crate) fn calibrate(length: Duration) -> Section {
        const STEPS: u64 = 200_000;
        let fastest = (0..15)
            .map(|_| {
                let started = Instant::now();
                work(STEPS);
                started.elapsed()
            })
            .min()
            .unwrap_or(Duration::from_nanos(STEPS));
        let step_ns = (fastest.as_nanos() as f64 / STEPS as f64).max(0.01);
        Section {
            steps: (length.as_nanos() as f64 / step_ns).round() as u64,
        }
    }

    /// Works for about the section's length.
    #[inline]
    pub(crate) fn work(self) {
        if self.steps > 0 {
            work(self.steps);
        }
    }
}
