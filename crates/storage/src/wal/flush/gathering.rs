//! Gathering flush: `group`, whose leader waits until those that the last flush released have come again, if that pays.
//!
//! Invariant: as in [`group`](super::group). A leader waits before it takes its list, for at most half of the time that
//! a flush usually takes, and for no particular worker.
//!
//! # Why
//! `n` clients commit in a closed loop, and together work for `W` between two commits of each, on all CPUs; a flush
//! takes `S`. A leader that begins at once leaves behind those that the last flush has just released: two halves take
//! turns, and a flush carries n/2 every S. One that waits for them carries n every S + W. So waiting wins while W < S
//! (`docs/mechanisms/log.md`, "How many commits a sync can carry"), and doubles the commits where S is much longer, as
//! on a disk that spins, or one that others keep busy.
//!
//! # Steps
//! Under the write latch, the leader
//! 1. waits until as many workers have come, since the last flush ended, as it released; but for S/2 at most;
//! 2. takes its list, and notes how many have come since the list before was taken: this flush releases that many;
//! 3. flushes, and notes how many have come in all, and how long the flush took.
//!
//! A wait in vain costs S/2. After one the next flush begins at once, after two in a row the next two, then four, up
//! to [`PAUSE_MAX`]: where waiting does not pay, less than 1 % is lost. One that succeeds resets this.
//!
//! A short wait is a yield. Where another program wants the CPU too, a yield costs the leader that program's slice, some
//! milliseconds, in which the device is idle. So a wait that has taken longer than S was in vain, even if all have come,
//! and one that has taken k times S/2 is followed by k times as many flushes that begin at once.
//!
//! # How the rules are kept
//! - R2: the leader waits for a time, as with `commit_delay`. An inserter that finds the ring full is on the list, and
//!   may be what the leader waits for in vain; it goes on when the time is over.
//! - R3, R5: as in `group`. What the leaders note is ordered by the write latch; `arrivals` is a number and tells of
//!   nothing else.
//!
//! # Cost
//! One more atomic addition a commit, and the clock three times a flush. A worker alone never waits: it has come again
//! when it leads.
//!
//! Origin: ours. PostgreSQL's `commit_delay` waits for a time that the administrator guesses, if `commit_siblings`
//! transactions are open; MySQL's binary log waits for a number that is a guess, too. Here both follow from what the
//! last flush was like.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use clearway_machine::{AtomicWord, Machine, Padded, WaitEvent, WaitScope};

use super::group::{self, Pace};

/// The usual duration of a flush moves by this part of each one's difference from it.
const SMOOTHING: u64 = 8;

/// The most flushes that begin at once after one has waited in vain, for each S/2 of that wait.
const PAUSE_MAX: u64 = 64;

/// The most looks of a leader while it waits; with naps between, unless they are too short to sleep.
const LOOKS: u64 = 32;

/// A shorter nap is a yield, nanoseconds: the kernel rounds sleeps up by about this.
const NAP_MIN_NS: u64 = 50_000;

pub(in crate::wal) type Flusher<M> = group::Flusher<M, Gatherer<M>>;

/// Knows how many workers a flush released, and how many have come since. All but `arrivals` is read and written by
/// leaders.
pub(in crate::wal) struct Gatherer<M: Machine> {
    /// Workers that have come to wait for a flush, ever.
    arrivals: Padded<M::U64>,
    led: Padded<LeaderState<M>>,
}

struct LeaderState<M: Machine> {
    /// `arrivals` when the last list was taken.
    taken: M::U64,
    /// Number of workers that came with the last list.
    group_size: M::U64,
    /// The number of arrivals that the leader waits for.
    wanted: M::U64,
    /// The start of the flush in progress, nanoseconds.
    begun: M::U64,
    /// The usual duration of a flush, nanoseconds; 0 before the first.
    usual_ns: M::U64,
    /// Number of flushes that are still to begin at once.
    pause: M::U64,
    /// Number of those after the last wait in vain; 0 after one that succeeded.
    last_pause: M::U64,
}

impl<M: Machine> Pace<M> for Gatherer<M> {
    fn new() -> Self {
        let zero = || M::U64::new(0);
        Self {
            arrivals: Padded(zero()),
            led: Padded(LeaderState {
                taken: zero(),
                group_size: zero(),
                wanted: zero(),
                begun: zero(),
                usual_ns: zero(),
                pause: zero(),
                last_pause: zero(),
            }),
        }
    }

    fn arrived(&self) {
        self.arrivals.fetch_add(1, Relaxed);
    }

    fn wait(&self) {
        let led = &self.led;
        if !self.all_came() {
            let pause = led.pause.load(Relaxed);
            if pause > 0 {
                led.pause.store(pause - 1, Relaxed);
            } else {
                let usual_ns = led.usual_ns.load(Relaxed);
                let waited = self.wait_for_all(usual_ns / 2);
                let next_pause = pause_after(waited, usual_ns, led.last_pause.load(Relaxed));
                led.last_pause.store(next_pause, Relaxed);
                led.pause.store(next_pause, Relaxed);
            }
        }
        let arrivals = self.arrivals.load(Relaxed);
        let group_size = arrivals - led.taken.load(Relaxed);
        led.taken.store(arrivals, Relaxed);
        led.group_size.store(group_size, Relaxed);
        led.begun.store(M::now(), Relaxed);
    }

    fn flushed(&self, _target: u64, _followed: bool) {
        let led = &self.led;
        let ns = M::now().saturating_sub(led.begun.load(Relaxed));
        let usual = match led.usual_ns.load(Relaxed) {
            0 => ns,
            usual => usual - usual / SMOOTHING + ns / SMOOTHING,
        };
        led.usual_ns.store(usual, Relaxed);
        let wanted = self.arrivals.load(Relaxed) + led.group_size.load(Relaxed);
        led.wanted.store(wanted, Relaxed);
    }
}

impl<M: Machine> Gatherer<M> {
    /// The start of the last flush of a group, nanoseconds. Called by a leader.
    pub(super) fn begun_ns(&self) -> u64 {
        self.led.begun.load(Relaxed)
    }

    /// True if as many have come again as the last flush released.
    fn all_came(&self) -> bool {
        self.arrivals.load(Relaxed) >= self.led.wanted.load(Relaxed)
    }

    /// Waits until all have come, but not on after `budget_ns`.
    fn wait_for_all(&self, budget_ns: u64) -> Waited {
        let _wait = WaitScope::<M>::enter(WaitEvent::CommitDelay);
        if M::EXPLORED {
            // The clock of a checker says nothing, and it explores what comes before the yield and behind it.
            M::yield_now();
            return Waited {
                all_came: self.all_came(),
                ns: 0,
            };
        }
        let (begun, nap_ns) = (M::now(), budget_ns / LOOKS);
        let mut waited = Waited {
            all_came: false,
            ns: 0,
        };
        while waited.ns < budget_ns && !waited.all_came {
            if nap_ns < NAP_MIN_NS {
                M::yield_now();
            } else {
                M::sleep(Duration::from_nanos(nap_ns));
            }
            waited = Waited {
                all_came: self.all_came(),
                ns: M::now().saturating_sub(begun),
            };
        }
        waited
    }
}

/// The outcome of a wait, and its length.
#[derive(Debug, Clone, Copy)]
struct Waited {
    all_came: bool,
    ns: u64,
}

/// Number of flushes that are to begin at once after this wait, where a flush usually takes `usual_ns`, and
/// `last_pause` of them were to after the wait before.
fn pause_after(waited: Waited, usual_ns: u64, last_pause: u64) -> u64 {
    if waited.all_came && waited.ns <= usual_ns {
        return 0;
    }
    let budgets = (2 * waited.ns / usual_ns.max(1)).max(1);
    (2 * last_pause)
        .max(budgets)
        .min(budgets.saturating_mul(PAUSE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USUAL_NS: u64 = 100_000;

    fn pause(all_came: bool, ns: u64, last_pause: u64) -> u64 {
        pause_after(Waited { all_came, ns }, USUAL_NS, last_pause)
    }

    #[test]
    fn a_wait_that_has_paid_is_followed_by_others() {
        assert_eq!(pause(true, 10_000, 32), 0);
        assert_eq!(pause(true, USUAL_NS, PAUSE_MAX), 0);
    }

    #[test]
    fn waits_in_vain_become_fewer() {
        let pauses = [0, 1, 2, 32, PAUSE_MAX].map(|last| pause(false, USUAL_NS / 2, last));
        assert_eq!(pauses, [1, 2, 4, PAUSE_MAX, PAUSE_MAX]);
    }

    /// A yield beside another program. Mutations that it should catch (`crates/storage/mutations/wal.toml`): that all have
    /// come is enough; a long wait is followed by as many flushes as a short one.
    #[test]
    fn a_wait_that_has_lasted_longer_than_a_flush_was_in_vain() {
        let long_ns = 30 * USUAL_NS;
        for all_came in [false, true] {
            assert_eq!(pause(all_came, long_ns, 0), 60);
            assert_eq!(pause(all_came, long_ns, 60 * PAUSE_MAX), 60 * PAUSE_MAX);
        }
        let lost = long_ns as f64 / (60 * PAUSE_MAX * USUAL_NS) as f64;
        assert!(lost < 0.01, "{lost} of the time");
    }
}
