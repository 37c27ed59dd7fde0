//! The acquisitions that are timed, and the distribution of the times.
//!
//! To time every acquisition would measure the clock: two looks at it take as long as two empty sections. So one in
//! [`TIMED_EVERY`] is timed. Readers and writers have half of those each, whatever their shares are, because the 99.9th
//! percentile of a few writers among many readers needs a thousand of their waits. A mode with less than that is timed
//! whole.
//!
//! Each thread notes its own times in a histogram of logarithmic buckets, exact to two digits; they are added up after the
//! run.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Acquisitions for each one that is timed, both modes together.
pub(crate) const TIMED_EVERY: u64 = 32;

/// Longest wait that the histograms tell from longer ones.
const WAIT_NS_MAX: u64 = 60_000_000_000;

/// Acquisitions of a mode for each one that is timed, if the mode makes `share` (0 to 1) of all.
fn period(share: f64) -> u64 {
    let of_one_mode = if share < 1.0 { 2 * TIMED_EVERY } else { TIMED_EVERY };
    ((of_one_mode as f64 * share) as u64).max(1)
}

/// One mode's acquisitions in one thread.
#[derive(Debug)]
pub(super) struct ModeTimes {
    pub(super) acquisitions: u64,
    period: u64,
    /// Acquisitions before the next that is timed.
    before_timed: u64,
    waits: Histogram<u64>,
}

impl ModeTimes {
    /// Nothing so far of a mode that makes `share` (0 to 1) of all acquisitions.
    pub(super) fn new(share: f64) -> Self {
        Self {
            acquisitions: 0,
            period: period(share),
            before_timed: 0,
            waits: waits(),
        }
    }

    /// Counts an acquisition; `true`: it is to be timed.
    #[inline]
    pub(super) fn next_is_timed(&mut self) -> bool {
        self.acquisitions += 1;
        if self.before_timed == 0 {
            self.before_timed = self.period - 1;
            return true;
        }
        self.before_timed -= 1;
        false
    }

    pub(super) fn note(&mut self, waited: Duration) {
        self.waits.saturating_record(waited.as_nanos() as u64);
    }

    pub(super) fn waits(&self) -> &Histogram<u64> {
        &self.waits
    }
}

/// No waits.
pub(super) fn waits() -> Histogram<u64> {
    Histogram::new_with_bounds(1, WAIT_NS_MAX, 2).expect("the bounds are constants that fit")
}

/// Waits for one mode, from asking to being inside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModeWait {
    /// Number of timed acquisitions.
    pub samples: u64,
    /// Median, nanoseconds; the clock's own cost, some 20 to 40, is in it.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// 99.9th percentile, nanoseconds; with less than 1,000 samples the longest.
    pub p999_ns: u64,
    /// The longest seen, nanoseconds.
    pub max_ns: u64,
    /// The 99.9th percentile of each round that has samples, nanoseconds.
    pub p999_ns_rounds: Vec<u64>,
}

impl ModeWait {
    /// All rounds as one; `None` if none has a sample.
    pub(super) fn merged<'a>(rounds: impl Iterator<Item = &'a Histogram<u64>>) -> Option<ModeWait> {
        let mut all = waits();
        let mut p999_ns_rounds = Vec::new();
        for round in rounds.filter(|round| !round.is_empty()) {
            // Equal bounds: nothing can be out of range.
            let _ = all.add(round);
            p999_ns_rounds.push(round.value_at_quantile(0.999));
        }
        (!all.is_empty()).then(|| ModeWait {
            samples: all.len(),
            p50_ns: all.value_at_quantile(0.5),
            p99_ns: all.value_at_quantile(0.99),
            p999_ns: all.value_at_quantile(0.999),
            max_ns: all.max(),
            p999_ns_rounds,
        })
    }

    /// The four figures of the tail, with their names, in nanoseconds.
    pub(super) fn tail(&self) -> [(&'static str, u64); 4] {
        [
            ("p50", self.p50_ns),
            ("p99", self.p99_ns),
            ("p99.9", self.p999_ns),
            ("max", self.max_ns),
        ]
    }
}

/// The slowest thread's acquisitions as a share of the fastest's, 0 to 1.
pub(super) fn slowest_to_fastest(acquisitions: impl Iterator<Item = u64> + Clone) -> f64 {
    let fastest = acquisitions.clone().max().unwrap_or(0);
    let slowest = acquisitions.min().unwrap_or(0);
    if fastest == 0 {
        return 1.0;
    }
    slowest as f64 / fastest as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A histogram of these waits, each in nanoseconds and as often as said.
    fn noted(waits_ns: &[(u64, u64)]) -> Histogram<u64> {
        let mut times = ModeTimes::new(0.5);
        for &(wait_ns, times_seen) in waits_ns {
            for _ in 0..times_seen {
                times.note(Duration::from_nanos(wait_ns));
            }
        }
        times.waits().clone()
    }

    /// True if `ns` is `wanted` as exactly as two digits are.
    fn about(ns: u64, wanted: u64) -> bool {
        ns.abs_diff(wanted) * 100 <= wanted
    }

    #[test]
    fn percentiles_of_known_waits() {
        // Of 10,000 waits the 5,000th, the 9,900th, the 9,990th and the last.
        let round = noted(&[(40, 9_900), (3_000, 90), (700_000, 9), (50_000_000, 1)]);
        let wait = ModeWait::merged([&round].into_iter()).unwrap();
        assert_eq!(wait.samples, 10_000);
        assert!(about(wait.p50_ns, 40) && about(wait.p99_ns, 40), "{wait:?}");
        assert!(
            about(wait.p999_ns, 3_000) && about(wait.max_ns, 50_000_000),
            "{wait:?}"
        );
        // One more that is long, and the 9,990th of 10,001 is still short; ten more, and it is not.
        let longer = noted(&[(700_000, 10)]);
        let wait = ModeWait::merged([&round, &longer].into_iter()).unwrap();
        assert!(about(wait.p999_ns, 700_000), "{wait:?}");
        assert_eq!(wait.p999_ns_rounds.len(), 2);
        assert!(
            about(wait.p999_ns_rounds[0], 3_000) && about(wait.p999_ns_rounds[1], 700_000),
            "{wait:?}"
        );
    }

    #[test]
    fn few_waits_and_none_and_one_past_the_longest() {
        assert_eq!(ModeWait::merged([].into_iter()), None);
        assert_eq!(ModeWait::merged([&waits(), &waits()].into_iter()), None);
        let wait = ModeWait::merged([&noted(&[(100, 2), (9_000, 1)]), &waits()].into_iter()).unwrap();
        assert!(about(wait.p50_ns, 100) && about(wait.p999_ns, 9_000), "{wait:?}");
        assert_eq!(
            wait.p999_ns_rounds.len(),
            1,
            "a round without samples has no percentile"
        );
        let wait = ModeWait::merged([&noted(&[(2 * WAIT_NS_MAX, 1)])].into_iter()).unwrap();
        assert!(about(wait.max_ns, WAIT_NS_MAX), "{wait:?}");
    }

    #[test]
    fn one_acquisition_in_32_is_timed_and_each_mode_has_half_of_them() {
        let timed = |share: f64, acquisitions: u64| {
            let mut mode = ModeTimes::new(share);
            let timed = (0..acquisitions).filter(|_| mode.next_is_timed()).count() as u64;
            assert_eq!(mode.acquisitions, acquisitions);
            timed
        };
        assert_eq!(timed(1.0, 32_000), 1_000, "there is one mode");
        assert_eq!(timed(0.5, 16_000), 500);
        assert_eq!(timed(0.95, 30_400), 507);
        assert_eq!(timed(0.05, 1_600), 534, "a few more, as a period is whole");
        assert_eq!(timed(0.01, 320), 320, "all of less than a sixty-fourth");
        assert_eq!(timed(0.5, 1), 1, "the first is timed");
    }

    #[test]
    fn the_slowest_thread_to_the_fastest() {
        assert_eq!(slowest_to_fastest([40, 100, 80].into_iter()), 0.4);
        assert_eq!(slowest_to_fastest([7].into_iter()), 1.0);
        assert_eq!(slowest_to_fastest([0, 9].into_iter()), 0.0);
        assert_eq!(slowest_to_fastest([0, 0].into_iter()), 1.0);
    }
}
