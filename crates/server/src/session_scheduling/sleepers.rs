//! The rule that finds the few sessions that sleep in the middle of their work.
//!
//! A client's message takes a session one turn on a CPU, and one more after each sleep before the answer: for the sync of
//! its commit, for a row, for a page. A session that waits for the running thread (SCHED_BATCH) stands behind all others
//! at each turn. Beside many sessions that read without a sleep, one that commits gets a fraction of what they get, and
//! of what it would get if it interrupted one of them. It does so seldom: they have nearly all of the turns. But the
//! kernel lets a thread interrupt only while it has had less than its share of the CPUs, and a commit costs several reads:
//! one session of 64 that commits has had its share after a few hundred commits a second. So it gets a larger one.
//!
//! Invariant: a session is *preferred* only if it slept within its messages when it was compared last, and those that did
//! have a small share of all turns.
//!
//! 1. A session is compared with an earlier sample of itself that is [`TURNS_MIN`] turns or [`ADDED_MAX`] old. It sleeps
//!    within its messages if it had [`TURNS_PER_MESSAGE`] turns for each. Its turns a second are noted.
//! 2. If those that sleep have at most [`FEW`] of all turns, they are preferred more, by one of the [`STEPS`]; by all of
//!    them if they have at most [`VERY_FEW`]; beyond [`FEW_STILL`] less, by one. So few commit beside many readers with a share that lies between the two, and where most
//!    sessions commit none is preferred: each would interrupt another one's commit, and none gain.
//! 3. A step after which they had more than [`FEW_STILL`] is not taken again for [`OVERSHOT`]: one step can be the whole way.
//! 4. A step is taken only after one that sleeps was compared anew: what the last step has done is seen first.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use super::rule::{ADDED_MAX, Sample, TURNS_MIN};

/// The least number of turns a message of a session that sleeps within its messages. A turn that ends with the slice, or
/// by an interruption, is one more, too; those are few beside many short messages.
const TURNS_PER_MESSAGE: f64 = 1.5;

/// The largest share of all turns of sessions that become preferred, or more so.
const FEW: f64 = 1.0 / 8.0;

/// The largest share of all turns of sessions that the last step cannot bring beyond [`FEW`] by much: it multiplies their
/// turns by ten or twenty.
const VERY_FEW: f64 = 1.0 / 64.0;

/// The largest share of all turns that preferred sessions keep.
const FEW_STILL: f64 = 1.0 / 4.0;

/// The nice values of preferred sessions, relative to that of the others. With the first one a session may interrupt, and
/// its share of the CPUs is theirs; with the last one it is nearly ten times theirs.
const STEPS: [i32; 3] = [0, -5, -10];

/// A session as it was compared last.
#[derive(Debug)]
struct Known {
    at: Duration,
    sample: Sample,
    turns_per_second: f64,
    sleeps: bool,
}

/// The time for which a step that was too large is not taken again.
const OVERSHOT: Duration = Duration::from_secs(10);

/// The sessions that are preferred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Preferred {
    /// Their numbers.
    pub(super) sessions: HashSet<u64>,
    /// Their nice value, relative to that of the others.
    pub(super) nice: i32,
}

/// All sessions that were sampled and are there still.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    sessions: HashMap<u64, Known>,
    /// The number of steps taken.
    steps: usize,
    /// The number of steps that was too large, and when.
    overshot: Option<(usize, Duration)>,
}

impl fmt::Display for Sleepers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sleeping = self.sessions.values().filter(|known| known.sleeps).count();
        write!(
            f,
            "{sleeping} of {} sessions sleep within their messages, {:.3} of all turns; {} steps",
            self.sessions.len(),
            self.share_of_sleepers(),
            self.steps
        )
    }
}

impl Sleepers {
    /// Compares the sampled sessions at the time `now`, forgets each session for whose number `is_there` is false, and returns
    /// the preferred sessions.
    pub(super) fn look(
        &mut self,
        now: Duration,
        samples: &[Sample],
        is_there: impl Fn(u64) -> bool,
    ) -> Preferred {
        self.sessions.retain(|number, _| is_there(*number));
        let mut is_news = false;
        for sample in samples {
            is_news |= self.compare(now, *sample);
        }
        let share = self.share_of_sleepers();
        let most = match self.overshot {
            Some((steps, at)) if now.saturating_sub(at) < OVERSHOT => steps - 1,
            _ => STEPS.len(),
        };
        if share == 0.0 {
            self.steps = 0;
        } else if is_news && share <= VERY_FEW {
            self.steps = most;
        } else if is_news && share <= FEW {
            self.steps = (self.steps + 1).min(most);
        } else if is_news && share > FEW_STILL && self.steps > 0 {
            self.overshot = Some((self.steps, now));
            self.steps -= 1;
        }
        let Some(step) = self.steps.checked_sub(1) else {
            return Preferred::default();
        };
        let sleepers = self.sessions.iter().filter(|(_, known)| known.sleeps);
        Preferred {
            sessions: sleepers.map(|(number, _)| *number).collect(),
            nice: STEPS[step],
        }
    }

    /// True if the session was compared with an earlier sample, and sleeps within its messages.
    fn compare(&mut self, now: Duration, sample: Sample) -> bool {
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
            return false;
        }
        *known = Known {
            at: now,
            sample,
            turns_per_second: turns as f64 / elapsed.as_secs_f64(),
            sleeps: messages > 0 && turns as f64 >= messages as f64 * TURNS_PER_MESSAGE,
        };
        known.sleeps
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
        /// A look after each session has had so many messages, with so many turns each: the preferred sessions.
        fn look(&mut self, sessions: &[(u64, u64)]) -> Vec<u64> {
            self.preferred(sessions).0
        }

        /// As [`look`](Self::look), with their nice value.
        fn preferred(&mut self, sessions: &[(u64, u64)]) -> (Vec<u64>, i32) {
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
            let mut numbers: Vec<_> = preferred.sessions.into_iter().collect();
            numbers.sort_unstable();
            (numbers, preferred.nice)
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

    /// Mutations that it should catch: a step without news; a step down is not taken.
    #[test]
    fn the_share_is_raised_and_lowered_in_steps() {
        let mut server = Server::default();
        let among_six = |commits| [(commits, 2), READS, READS, READS, READS, READS];
        server.preferred(&among_six(20));
        for nice in [0, -5, -10, -10] {
            assert_eq!(server.preferred(&among_six(20)), (vec![0], nice));
            // It has not done enough to be compared.
            assert_eq!(server.preferred(&among_six(1)), (vec![0], nice));
        }
        for nice in [-5, 0] {
            assert_eq!(server.preferred(&among_six(400)), (vec![0], nice));
            assert_eq!(server.preferred(&among_six(150)), (vec![0], nice));
        }
        assert_eq!(server.preferred(&among_six(400)), (vec![], 0));
    }

    /// Mutation that it should catch: a step that was too large is taken again.
    #[test]
    fn a_step_that_was_too_large_is_not_taken_again_at_once() {
        let mut server = Server::default();
        // The commits of one among six, by its nice value: a step makes three times as many.
        let commits = |nice| match nice {
            0 => 40,
            -5 => 60,
            _ => 240,
        };
        let among_six = |nice| [(commits(nice), 2), READS, READS, READS, READS, READS];
        let mut nice = 0;
        let mut changes = 0;
        for _ in 0..40 {
            let next = server.preferred(&among_six(nice)).1;
            changes += usize::from(next != nice);
            nice = next;
        }
        // Down to -10 and back: each is tried once, and once more in 8 s.
        assert!(changes <= 4, "{changes}");
        assert_eq!(nice, -5);
    }

    /// Mutation that it should catch: those that stopped committing keep their steps.
    #[test]
    fn one_that_begins_again_begins_with_the_first_step() {
        let mut server = Server::default();
        let among_six = [(20, 2), READS, READS, READS, READS, READS];
        for _ in 0..5 {
            server.preferred(&among_six);
        }
        assert_eq!(server.preferred(&among_six), (vec![0], -10));
        assert_eq!(server.look(&[READS; 6]), NONE);
        assert_eq!(server.preferred(&among_six), (vec![0], 0));
    }

    /// Mutation that it should catch: very few come in small steps.
    #[test]
    fn one_among_a_hundred_gets_the_largest_share_at_once() {
        let mut server = Server::default();
        let mut sessions = vec![READS; 100];
        sessions[7] = (20, 2);
        server.preferred(&sessions);
        assert_eq!(server.preferred(&sessions), (vec![7], -10));
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
