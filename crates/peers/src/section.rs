//! The section: dependent arithmetic for about a stated time, which the CPU cannot overlap.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Steps that take about a wanted time on this host.
#[derive(Debug, Clone, Copy)]
pub struct Section {
    steps: u64,
}

/// Not inlined: every lock runs the same loop as the calibration.
#[inline(never)]
fn work(steps: u64) {
    let mut value = black_box(1_u64);
    for _ in 0..steps {
        value = black_box(value.rotate_left(5) ^ steps);
    }
}

impl Section {
    /// No work.
    pub const EMPTY: Self = Self { steps: 0 };

    /// A section of `length`, by the fastest of 20 tries of 0.1 ms or more: what an undisturbed CPU does.
    pub fn of(length: Duration) -> Self {
        const STEPS: u64 = 100_000;
        let tries = (0..20).map(|_| {
            let started = Instant::now();
            work(STEPS);
            started.elapsed()
        });
        let fastest = tries.min().unwrap_or_default().max(Duration::from_nanos(1));
        let steps = length.as_secs_f64() / fastest.as_secs_f64() * STEPS as f64;
        Self {
            steps: steps.round() as u64,
        }
    }

    /// Works for about the section's length.
    #[inline]
    pub fn work(self) {
        if self.steps != 0 {
            work(self.steps);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_section_has_more_steps() {
        let [empty, short, long] = [0, 1, 1_000].map(|us| Section::of(Duration::from_micros(us)).steps);
        assert_eq!(empty, 0);
        // The calibrations differ by what disturbs them, not by a hundred times.
        assert!(0 < short && short < long, "{short} and {long}");
    }
}
