//! The rule that finds the few sessions that sleep in the middle of their work.
//!
//! A client's message takes a session one turn on a CPU, and one more after each sleep before the answer: for the sync of
//! its commit, for a row, for a page. A session that waits for the running thread (SCHED_BATCH) stands behind all others
//! at each turn. Beside many sessions that read without a sleep, one that commits gets a fraction of what they get, and
//! of what it would get if it interrupted one of them. It does so seldom: they have nearly all of the turns.
//!
//! Invariant: a session is *preferred* only if it slept within its messages when it was compared last, and those that did
//! have a small share of all turns.
//!
//! 1. A session is compared with an earlier sample of itself that is [`TURNS_MIN`] turns or [`ADDED_MAX`] old. It sleeps
//!    within its messages if it had [`TURNS_PER_MESSAGE`] turns for each. Its turns a second are noted.
//! 2. Those that sleep are preferred if they have [`FEW`] of all turns, and from then on up to [`FEW_STILL`]: what is
//!    preferred makes more turns.
//! 3. Beyond that none is. If most sessions commit, each interrupts another one's commit, and none gains.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::rule::{ADDED_MAX, Sample, TURNS_MIN};

/// The least number of turns a message of a session that sleeps within its messages. A turn that ends with the slice, or
/// by an interruption, is one more, too; those are few beside many short messages.
const TURNS_PER_MESSAGE: f64 = 1.5;

/// The largest share of all turns that sessions have which become preferred.
const FEW: f64 = 1.0 / 8.0;

/// The largest share of all turns that preferred sessions have.
const FEW_STILL: f64 = 1.0 / 4.0;

/// A session as it was compared last.
#[derive(Debug)]
struct Known {
    at: Duration,
    sample: Sample,
    turns_per_second: f64,
    sleeps: bool,
}

/// All sessions that were sampled and are there still.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    sessions: HashMap<u64, Known>,
    are_preferred: bool,
}

impl Sleepers {
    /// Compares the sampled sessions at the time `now`, forgets each session for whose number `is_there` is false, and returns
    /// the numbers of the preferred sessions.
    pub(super) fn look(
        &mut self,
        now: Duration,
        samples: &[Sample],
        is_there: impl Fn(u64) -> bool,
    ) -> HashSet<u64> {
        self.sessions.retain(|number, _| is_there(*number));
        for sample in samples {
            self.compare(now, *sample);
        }
        let share = self.share_of_sleepers();
        let share_max = if self.are_preferred { FEW_STILL } else { FEW };
        self.are_preferred = share > 0.0 && share <= share_max;
        if !self.are_preferred {
            return HashSet::new();
        }
        let sleepers = self.sessions.iter().filter(|(_, known)| known.sleeps);
        sleepers.map(|(number, _)| *number).collect()
    }

    fn compare(&mut self, now: Duration, sample: Sample) {
        let first = Known {
            at: now,
            sample,
            turns_per_second: 0.0,
            sleeps: false,
        };
        let known = self.sessions.entry(sample.number).or_insert(first);
        let turns = sample.turns.turns.saturating_sub(known.sample.turns.turns);
        let messages = sample.messages.saturating_sub(known.sample.messages);
        let elapsed = now.saturating_sub(known.at);
        if elapsed.is_zero() || (turns < TURNS_MIN && elapsed < ADDED_MAX) {
            return;
        }
        *known = Known {
            at: now,
            sample,
            turns_per_second: turns as f64 / elapsed.as_secs_f64(),
            sleeps: messages > 0 && turns as f64 >= messages as f64 * TURNS_PER_MESSAGE,
        };
    }

    /// The share of all turns that sessions have which sleep within their messages; 0 without turns.
    fn share_of_sleepers(&self) -> f64 {
        let (mut all, mut sleeping) = (0.0, 0.0);
        for known in self.sessions.values() {
            all += known.turns_per_second;
            sleeping += if known.sleeps { known.turns_per_second } else { 0.0 };
        }
        if all > 0.0 { sleeping / all } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use clearway_machine::CpuTurns;

    use super::*;

    const LOOK: Duration = Duration::from_millis(200);

    /// Sessions with the numbers 0, 1, …, looked at every 200 ms.
    #[derive(Default)]
    struct Server {
        sleepers: Sleepers,
        now: Duration,
        samples: Vec<Sample>,
    }

    impl Server {
        /// A look after each session has had so many messages, with so many turns each.
        fn look(&mut self, sessions: &[(u64, u64)]) -> Vec<u64> {
            self.now += LOOK;
            for (number, (messages, turns_each)) in sessions.iter().enumerate() {
                if self.samples.len() == number {
                    self.samples.push(Sample {
                        number: number as u64,
                        turns: CpuTurns::default(),
                        messages: 0,
                    });
                }
                self.samples[number].messages += messages;
                self.samples[number].turns.turns += messages * turns_each;
            }
            let there = sessions.len() as u64;
            let seen = &self.samples[..sessions.len()];
            let preferred = self.sleepers.look(self.now, seen, |number| number < there);
            let mut preferred: Vec<_> = preferred.into_iter().collect();
            preferred.sort_unstable();
            preferred
        }
    }

    const READS: (u64, u64) = (200, 1);
    const NONE: [u64; 0] = [];

    /// Mutation that it should catch (`crates/server/mutations/session_scheduling.toml`): a session with a turn a message
    /// sleeps.
    #[test]
    fn one_that_commits_among_readers_is_preferred() {
        let mut server = Server::default();
        let sessions = [(60, 2), READS, READS, READS, READS, READS];
        assert_eq!(server.look(&sessions), NONE);
        assert_eq!(server.look(&sessions), [0]);
        assert_eq!(server.look(&[READS; 6]), NONE);
    }

    /// Mutation that it should catch: the share of those that sleep does not count.
    #[test]
    fn none_is_preferred_if_most_commit() {
        let mut server = Server::default();
        for _ in 0..10 {
            assert_eq!(server.look(&[(60, 2), (60, 2), (60, 2), READS]), NONE);
            assert_eq!(server.look(&[(60, 2); 4]), NONE);
        }
    }

    /// Mutation that it should catch: what is preferred may not make more turns.
    #[test]
    fn one_that_makes_more_since_it_is_preferred_stays_so() {
        let mut server = Server::default();
        let among_six = |commits| [(commits, 2), READS, READS, READS, READS, READS];
        server.look(&among_six(60));
        assert_eq!(server.look(&among_six(100)), NONE);
        assert_eq!(server.look(&among_six(60)), [0]);
        assert_eq!(server.look(&among_six(150)), [0]);
        assert_eq!(server.look(&among_six(180)), NONE);
        assert_eq!(server.look(&among_six(150)), NONE);
    }

    #[test]
    fn a_session_that_ends_does_not_count() {
        let mut server = Server::default();
        server.look(&[(60, 2), READS, READS, READS, READS, READS]);
        assert_eq!(server.look(&[(60, 2), READS, READS, READS, READS, READS]), [0]);
        assert_eq!(server.look(&[(60, 2), READS]), NONE);
    }

    #[test]
    fn few_turns_add_up_and_none_for_long_are_none() {
        let mut server = Server::default();
        let seldom = [(3, 2), READS, READS];
        for _ in 0..3 {
            assert_eq!(server.look(&seldom), NONE);
        }
        assert_eq!(server.look(&seldom), [0]);
        for _ in 0..20 {
            server.look(&[(0, 0), READS, READS]);
        }
        assert_eq!(server.look(&[(0, 0), READS, READS]), NONE);
    }
}
