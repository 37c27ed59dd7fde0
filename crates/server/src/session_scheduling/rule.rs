//! The rule that finds out that other programs keep the CPUs from sessions.
//!
//! Invariant: sessions wait for the running thread ([`Choice::Wait`]), unless a look has found them *crowded* since the
//! last trial of waiting.
//!
//! 1. A look compares the sessions that it samples with the look before: the time that a session waited for a CPU, a
//!    turn ([`WAIT_MIN`]), and the server's share of the CPUs ([`SHARE_MAX`]). Sessions that wait for long while their
//!    server has little of the CPUs wait for others: they are crowded. Looks with fewer than [`TURNS_MIN`] turns add up,
//!    for [`ADDED_MAX`].
//! 2. Crowded while they wait: they interrupt from now on, for [`PAUSE_MIN`]. At once, with a short slice, while fewer
//!    of them run than there are CPUs.
//! 3. Then they wait again, as a trial. If a look finds them crowded, they interrupt for twice as long as before, up to
//!    [`PAUSE_MAX`]. If none does for [`CALM`], the next pause is [`PAUSE_MIN`] again.
//!
//! # Why a trial
//! Sessions that interrupt get their share of the CPUs without waiting, so nothing that can be seen of them tells that
//! the other programs have ended.
//!
//! # Why at once
//! The kernel lets the running thread finish its slice before a woken one with a slice as long gets the CPU; one with a
//! shorter slice need not wait. A single client's transactions are 1.8 times as many by that. With more sessions than CPUs
//! it is a session that is interrupted, and they make 0.6 to 0.7 times as many.
//!
//! # Why the share
//! A session also waits for other sessions: with 64 clients on two CPUs for 0.2 ms a turn, and there to interrupt costs
//! and gains nothing. All sessions together then use most of the CPUs. Clients on the same machine use about as much as
//! their server.
//!
//! # What it does not see
//! Clients on the same machine that use two thirds of its CPUs are other programs by this rule. Then a session
//! interrupts its client, and reads are up to a third slower than under `batch`.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use clearway_machine::CpuTurns;

/// The least mean wait of crowded sessions for a CPU, a turn: longer than a wake-up takes, and a small part of the slice
/// of a program that does not sleep.
const WAIT_MIN: Duration = Duration::from_micros(50);

/// The server's largest share of the CPUs while its sessions are crowded.
const SHARE_MAX: f64 = 1.0 / 3.0;

/// The least number of turns that say something.
pub(super) const TURNS_MIN: u64 = 16;

/// Looks with fewer turns add up for as long.
pub(super) const ADDED_MAX: Duration = Duration::from_secs(2);

/// The first pause between two trials.
const PAUSE_MIN: Duration = Duration::from_secs(1);

/// The longest pause between two trials.
const PAUSE_MAX: Duration = Duration::from_secs(64);

/// A trial that goes on for as long has shown that sessions are alone.
const CALM: Duration = Duration::from_secs(10);

/// The behaviour of a session that wakes while another thread runs on its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Choice {
    /// It waits for that thread.
    #[default]
    Wait,
    /// It interrupts that thread as any woken thread does: when that one has had its slice.
    Interrupt,
    /// It interrupts that thread at once.
    InterruptAtOnce,
}

/// The use of the CPUs by a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// The session's number in the registry.
    pub(super) number: u64,
    /// Its turns since it began.
    pub(super) turns: CpuTurns,
    /// Its waits for a message of the client since it began.
    pub(super) messages: u64,
}

/// The end of a look, with which the next one is compared.
#[derive(Debug, Default)]
struct Look {
    at: Duration,
    cpu_time: Duration,
    sessions: HashMap<u64, CpuTurns>,
}

#[derive(Debug)]
pub(super) struct Rule {
    cpus: f64,
    choice: Choice,
    /// The time of the last change.
    since: Duration,
    pause: Duration,
    last: Look,
    /// True if the last look was compared with the one before.
    compared: bool,
    share: f64,
    wait: Duration,
    /// Sessions that had a turn, of all.
    active: f64,
}

impl Rule {
    pub(super) fn new(cpus: usize) -> Self {
        Self {
            cpus: cpus as f64,
            choice: Choice::Wait,
            since: Duration::ZERO,
            pause: PAUSE_MIN,
            last: Look::default(),
            compared: false,
            share: 0.0,
            wait: Duration::ZERO,
            active: 0.0,
        }
    }

    /// A look at the time `now` at some of `sessions`, when the server has used `cpu_time` of the CPUs since it began. A
    /// new choice, if there is one.
    pub(super) fn look(
        &mut self,
        now: Duration,
        cpu_time: Duration,
        sessions: usize,
        samples: &[Sample],
    ) -> Option<Choice> {
        let crowded = self.compare(now, cpu_time, sessions, samples);
        let lasted = now.saturating_sub(self.since);
        let next = match (self.choice, crowded) {
            (Choice::Wait, Some(true)) => self.interruption(),
            (Choice::Wait, _) => {
                if lasted >= CALM {
                    self.pause = PAUSE_MIN;
                }
                return None;
            }
            (_, _) if lasted >= self.pause => {
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                Choice::Wait
            }
            (_, Some(_)) if self.choice != self.interruption() => {
                self.choice = self.interruption();
                return Some(self.choice);
            }
            _ => return None,
        };
        self.choice = next;
        self.since = now;
        Some(next)
    }

    /// The way to interrupt with as many sessions as the last look has found.
    fn interruption(&self) -> Choice {
        match self.active < self.cpus {
            true => Choice::InterruptAtOnce,
            false => Choice::Interrupt,
        }
    }

    /// True if sessions are crowded; `None` if this look says nothing.
    fn compare(
        &mut self,
        now: Duration,
        cpu_time: Duration,
        sessions: usize,
        samples: &[Sample],
    ) -> Option<bool> {
        let (mut turns, mut waited_ns, mut active) = (0, 0, 0);
        for sample in samples {
            if let Some(before) = self.last.sessions.get(&sample.number) {
                let had = sample.turns.turns.saturating_sub(before.turns);
                turns += had;
                active += usize::from(had > 0);
                waited_ns += sample.turns.waited_ns.saturating_sub(before.waited_ns);
            }
        }
        let elapsed = now.saturating_sub(self.last.at);
        let known = samples
            .iter()
            .any(|sample| self.last.sessions.contains_key(&sample.number));
        self.compared = turns >= TURNS_MIN && !elapsed.is_zero();
        if known && !self.compared && elapsed < ADDED_MAX {
            // The next look is compared with the same one.
            return None;
        }
        if self.compared {
            self.wait = Duration::from_nanos(waited_ns / turns);
            self.active = (active * sessions) as f64 / samples.len() as f64;
            let used = cpu_time.saturating_sub(self.last.cpu_time);
            self.share = used.as_secs_f64() / (elapsed.as_secs_f64() * self.cpus);
        }
        self.last = Look {
            at: now,
            cpu_time,
            sessions: samples
                .iter()
                .map(|sample| (sample.number, sample.turns))
                .collect(),
        };
        self.compared
            .then_some(self.wait >= WAIT_MIN && self.share < SHARE_MAX)
    }

    /// True if the sessions of the last look were compared with the one before, so that others may be sampled.
    pub(super) fn has_compared(&self) -> bool {
        self.compared
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "a turn has waited {} µs for a CPU, {:.0} sessions ran, and the server had {:.0} % of the CPUs",
            self.wait.as_micros(),
            self.active,
            self.share * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server on two CPUs, looked at every 200 ms.
    struct Server {
        rule: Rule,
        now: Duration,
        cpu_time: Duration,
        turns: CpuTurns,
        sessions: usize,
    }

    const LOOK: Duration = Duration::from_millis(200);

    impl Server {
        fn new() -> Self {
            let mut server = Self {
                rule: Rule::new(2),
                now: Duration::ZERO,
                cpu_time: Duration::ZERO,
                turns: CpuTurns::default(),
                sessions: 16,
            };
            server.look(0, 0, 0);
            server
        }

        /// A look at the end of 200 ms with so many turns, each after a wait, and a use of the CPUs of the server.
        fn look(&mut self, turns: u64, wait_us: u64, cpu_ms: u64) -> Option<Choice> {
            self.now += LOOK;
            self.cpu_time += Duration::from_millis(cpu_ms);
            self.turns.turns += turns;
            self.turns.waited_ns += turns * wait_us * 1_000;
            let sample = Sample {
                number: 1,
                turns: self.turns,
                messages: 0,
            };
            self.rule.look(self.now, self.cpu_time, self.sessions, &[sample])
        }

        /// Looks until a choice is made; the choice, and the time that it took.
        fn until_choice(&mut self, turns: u64, wait_us: u64, cpu_ms: u64) -> (Choice, Duration) {
            let began = self.now;
            for _ in 0..1_000 {
                if let Some(choice) = self.look(turns, wait_us, cpu_ms) {
                    return (choice, self.now - began);
                }
            }
            panic!("no choice in {:?}", self.now - began);
        }
    }

    #[test]
    fn sessions_that_are_alone_wait() {
        let mut server = Server::new();
        for _ in 0..1_000 {
            // 16 clients on two CPUs; then one.
            assert_eq!(server.look(20_000, 70, 200), None);
            assert_eq!(server.look(4_000, 3, 80), None);
        }
    }

    #[test]
    fn sessions_that_wait_for_other_programs_interrupt_at_the_next_look() {
        let mut server = Server::new();
        assert_eq!(server.look(200, 980, 6), Some(Choice::Interrupt));
    }

    /// Mutation that it should catch (`crates/server/mutations/session_scheduling.toml`): the share does not count.
    #[test]
    fn sessions_that_wait_for_each_other_do_not_interrupt() {
        let mut server = Server::new();
        // 64 clients on two CPUs, of which the server has half.
        assert_eq!(server.look(30_000, 240, 200), None);
    }

    /// Mutation that it should catch: the number of sessions does not count.
    #[test]
    fn a_single_session_interrupts_at_once_and_many_do_not() {
        let mut server = Server::new();
        server.sessions = 1;
        assert_eq!(server.look(200, 980, 6), Some(Choice::InterruptAtOnce));
        assert_eq!(server.look(200, 300, 10), None);
        server.sessions = 2;
        assert_eq!(server.look(200, 300, 10), Some(Choice::Interrupt));
        server.sessions = 1;
        assert_eq!(server.look(200, 300, 10), Some(Choice::InterruptAtOnce));
        assert_eq!(server.until_choice(1_000, 100, 60).0, Choice::Wait);
    }

    #[test]
    fn few_turns_add_up() {
        let mut server = Server::new();
        for _ in 0..3 {
            assert_eq!(server.look(5, 2_000, 1), None);
        }
        assert_eq!(server.look(1, 2_000, 1), Some(Choice::Interrupt));
    }

    /// Mutation that it should catch: a trial in vain does not lengthen the pause.
    #[test]
    fn waiting_is_tried_again_and_again_ever_more_seldom() {
        let mut server = Server::new();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert_eq!(server.until_choice(200, 980, 6).0, Choice::Interrupt);
            let (choice, pause) = server.until_choice(1_000, 100, 60);
            assert_eq!(choice, Choice::Wait);
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        // Then the other programs end, and come back after a while.
        for _ in 0..60 {
            assert_eq!(server.look(20_000, 70, 200), None);
        }
        assert_eq!(server.look(200, 980, 6), Some(Choice::Interrupt));
        assert_eq!(server.until_choice(1_000, 100, 60).1.as_secs(), 1);
    }

    #[test]
    fn a_session_that_has_just_come_says_nothing() {
        let mut rule = Rule::new(2);
        for at in 1..10 {
            let turns = CpuTurns {
                turns: 1_000,
                waited_ns: 10_000_000_000,
            };
            let new = Sample {
                number: at,
                turns,
                messages: 0,
            };
            assert_eq!(rule.look(LOOK * at as u32, Duration::ZERO, 1, &[new]), None);
        }
    }

    #[test]
    fn a_kernel_without_figures_changes_nothing() {
        let mut rule = Rule::new(2);
        for at in 1..100 {
            assert_eq!(rule.look(LOOK * at, LOOK * at, 4, &[]), None);
        }
    }
}
