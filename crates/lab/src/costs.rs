//! Costs of commits beside time: syncs of the log, wake-ups, context switches, CPU time.
//!
//! All four are counters that rise whether a bench runs or not: of the log, of the worker slots, and of the kernel. A
//! point reads them when its measured window opens and when it closes, so they cost its clients nothing. They count
//! what the whole process did in between, background workers included. What the sampler's thread used is taken off
//! again.

use std::ops::{AddAssign, Sub};

use clearway_engine::Engine;
use clearway_machine::{Machine, Native, Usage, WakeUps};
use serde::{Deserialize, Serialize};

/// The counters at one time, or what they rose by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    syncs: u64,
    wake_ups: WakeUps,
    usage: Usage,
}

impl Counters {
    /// The counters now; syncs are those of `engine`.
    pub(crate) fn now(engine: &Engine) -> Counters {
        Counters {
            syncs: engine.log_syncs(),
            wake_ups: Native::workers().wake_ups(),
            usage: Native::usage_of_process(),
        }
    }

    /// Takes off what a thread used that only looked on.
    pub(crate) fn without(mut self, onlooker: Usage) -> Counters {
        self.usage = self.usage - onlooker;
        self
    }

    /// The share of one of `commits`.
    pub(crate) fn per_commit(&self, commits: u64) -> CommitCosts {
        let share = |count: u64| count as f64 / commits.max(1) as f64;
        CommitCosts {
            syncs: share(self.syncs),
            wake_ups: share(self.wake_ups.woken),
            wake_up_calls: share(self.wake_ups.calls),
            voluntary_switches: share(self.usage.voluntary_switches),
            involuntary_switches: share(self.usage.involuntary_switches),
            cpu_us: self.usage.cpu_time.as_secs_f64() * 1e6 / commits.max(1) as f64,
        }
    }
}

impl Sub for Counters {
    type Output = Counters;

    fn sub(self, earlier: Counters) -> Counters {
        Counters {
            syncs: self.syncs - earlier.syncs,
            wake_ups: WakeUps {
                calls: self.wake_ups.calls - earlier.wake_ups.calls,
                woken: self.wake_ups.woken - earlier.wake_ups.woken,
            },
            usage: self.usage - earlier.usage,
        }
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        self.syncs += other.syncs;
        self.wake_ups.calls += other.wake_ups.calls;
        self.wake_ups.woken += other.wake_ups.woken;
        self.usage.voluntary_switches += other.usage.voluntary_switches;
        self.usage.involuntary_switches += other.usage.involuntary_switches;
        self.usage.cpu_time += other.usage.cpu_time;
    }
}

/// The mean costs of one transaction, of writing and only reading ones alike.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CommitCosts {
    /// Syncs of the log.
    pub syncs: f64,
    /// Sleeping workers that were woken.
    pub wake_ups: f64,
    /// Calls of the kernel to wake workers, also those that found none asleep.
    pub wake_up_calls: f64,
    /// Times that a thread went to sleep.
    pub voluntary_switches: f64,
    /// Times that the kernel took the CPU from a thread.
    pub involuntary_switches: f64,
    /// Microseconds on a CPU, of the program and of the kernel for it.
    pub cpu_us: f64,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn shares_are_of_all_windows_together() {
        let at = |syncs, calls, woken, voluntary_switches, involuntary_switches, us| Counters {
            syncs,
            wake_ups: WakeUps { calls, woken },
            usage: Usage {
                voluntary_switches,
                involuntary_switches,
                cpu_time: Duration::from_micros(us),
            },
        };
        let mut sum = Counters::default();
        sum += at(15, 30, 25, 50, 7, 300) - at(10, 10, 10, 10, 2, 100);
        sum += at(20, 30, 25, 60, 7, 300).without(Usage {
            voluntary_switches: 10,
            ..Usage::default()
        }) - at(15, 30, 25, 50, 7, 300);
        assert_eq!(
            sum.per_commit(10),
            CommitCosts {
                syncs: 1.0,
                wake_ups: 1.5,
                wake_up_calls: 2.0,
                voluntary_switches: 4.0,
                involuntary_switches: 0.5,
                cpu_us: 20.0,
            }
        );
        assert_eq!(Counters::default().per_commit(0), CommitCosts::default());
    }
}
