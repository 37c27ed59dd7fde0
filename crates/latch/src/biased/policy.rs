//! When an [`AdaptiveLatch`](crate::AdaptiveLatch) is biased: by a trial of both states, at a bounded cost.
//!
//! Whether bias pays depends on the share of readers, on how many CPUs they run on, on how the latch inside waits, and
//! on the machine. So it is not computed from counts. It is tried, and what is compared is what counts: how long it
//! takes until so many writers have passed. The mix of readers and writers is that of the workload, so a state in which
//! writers pass faster is one in which readers pass faster, too.
//!
//! | state | the word has | left when |
//! | --- | --- | --- |
//! | plain | | readers have met others: a trial begins, biased |
//! | trial, biased | `BIASED`, `TRIAL` | enough writers have passed: plain, or the trial ends |
//! | trial, plain | `TRIAL` | enough writers have passed: biased, or the trial ends |
//! | biased | `BIASED` | the next trial is due |
//!
//! 1. **Nomination.** At every `CONFLICTS`th conflict of a worker, at whatever latch: begin a trial of that latch,
//!    unless it is too early. A conflict is a reader that has to wait, or one whose compare-and-swap failed although no
//!    writer was there: another reader changed the word between this reader's look and its CAS. Each worker has its own
//!    count, because a count in the latch would be one more write of the contended line. So a latch is tried in
//!    proportion to its share of the conflicts.
//! 2. **Trial.** `PAIRS` times, biased and then plain: let `SETTLE` writers and `SETTLE_NS` pass, so that what the other
//!    state has left behind is over (sleepers, a queue); take the time of `MEASURE` writers or more, for `MEASURE_NS` or
//!    longer. Add up the time a writer of each state, without the longest one of each: a worker that loses its CPU while
//!    it holds the latch makes one window as long as all others. The latch leaves the state in which it has rested if
//!    the other one's sum is shorter by a part in `MARGIN`.
//! 3. **Rest.** Whatever the outcome, the next trial comes after `INHIBITION` times the time that this one took.
//! 4. If the writers of a window take `RARE_NS` or longer, writers are so few that their price does not matter, and the
//!    trial ends with bias. In a plain window a reader's nomination finds this out, since no writer may come.
//!
//! **Bound.** Trials take one part in `INHIBITION` + 1 of the time, 0.8 %, and half of a trial is spent in the better
//! state. A workload that changes has the wrong state for one rest at most. A writer that finds the latch biased in vain
//! pays for reading K slots, and between two trials come some 100,000 writers: 0.1 s if each read took a microsecond.
//! Without a writer the latch stays biased for any time, since no writer pays for it.
//!
//! **What this cannot see.** Two states that differ by less than the noise of `PAIRS` windows are told apart by chance,
//! and the choice stays until the next trial. Where the latch does not limit the workload both states take the same
//! time, and the latch stays as it is. And a state whose consequences come later than a window lasts is judged by its
//! beginning: waiters that poll longer and longer for the list's lock (`lwlock = single-cas`,
//! `docs/mechanisms/lwlock.md`) make the plain state worse over many milliseconds.
//!
//! A latch whose readers never meet, because it has one thread or is hardly used, is never biased at all.
//!
//! The counts on the reader's side are made without atomic RMWs and may lose some; they are samples. `TRIAL` is in the
//! word so that writers of a resting plain latch count nothing: their one compare-and-swap from zero fails during a
//! trial, and the slow way counts.
//!
//! Why not by the number of readers a writer, as this module did once: the ratio at which bias pays differs between
//! machines, sections, and ways to wait (`docs/mechanisms/read-biased.md`, "When it turns").
//!
//! Origin: BRAVO (Dice and Kogan, USENIX ATC 2019) inhibits bias for a multiple of the time of the last revocation. It
//! compares nothing. Here a writer leaves the bias as it is, and both states are measured by turns.

use core::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine};

/// Whether a latch is biased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BiasPolicy {
    /// While it pays, by the latch's own measurement.
    #[default]
    Adaptive,
    /// Never: a plain latch, for comparison.
    Never,
    /// Always, whatever that costs its writers.
    Always,
}

/// How often a latch has turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BiasStatistics {
    /// Times that it was turned biased.
    pub turned_biased: u32,
    /// Times that it was turned plain.
    pub turned_plain: u32,
}

/// Conflicts of a worker between two nominations of a latch for bias. Prime, so that a fixed order of
/// visiting latches does not always nominate the same latch.
const CONFLICTS: u32 = 61;
/// Writers of a biased latch, or of one in a trial, between two looks at the clock.
const LOOK: u32 = 16;
/// Writers that pass in a trial after each turn, at least, before the time is taken.
const SETTLE: u32 = 32;
/// Time that passes until then, at least.
const SETTLE_NS: u64 = 50_000;
/// Writers whose time is taken, at least.
const MEASURE: u32 = 64;
/// Time that is taken, at least: that of a few sleeps and wake-ups.
const MEASURE_NS: u64 = 100_000;
/// How often a trial measures each state.
const PAIRS: u32 = 4;
/// By what part of its time the state that the latch rested in must be beaten.
const MARGIN: u64 = 32;
/// Time to the next trial, as a multiple of the last one's duration.
const INHIBITION: u64 = 128;
/// A window of a trial of this duration or longer ends it: writers are rare.
const RARE_NS: u64 = 20_000_000;

/// What the word says of the bias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) biased: bool,
    pub(crate) trial: bool,
}

impl Turn {
    pub(crate) const PLAIN: Turn = Turn {
        biased: false,
        trial: false,
    };
    pub(crate) const BIASED: Turn = Turn {
        biased: true,
        trial: false,
    };
    pub(crate) const TRIAL: Turn = Turn {
        biased: true,
        trial: true,
    };
}

/// The windows of one state in a trial.
#[derive(Debug)]
struct Windows<M: Machine> {
    sum_ns: M::U64,
    longest_ns: M::U64,
}

impl<M: Machine> Windows<M> {
    fn new() -> Self {
        Self {
            sum_ns: M::U64::new(0),
            longest_ns: M::U64::new(0),
        }
    }

    fn add(&self, took: u64) {
        self.sum_ns.store(self.sum_ns.load(Relaxed) + took, Relaxed);
        self.longest_ns
            .store(self.longest_ns.load(Relaxed).max(took), Relaxed);
    }

    /// The sum without the longest.
    fn sum_of_others(&self) -> u64 {
        self.sum_ns.load(Relaxed) - self.longest_ns.load(Relaxed)
    }

    fn clear(&self) {
        self.sum_ns.store(0, Relaxed);
        self.longest_ns.store(0, Relaxed);
    }
}

/// What the decision is made from, behind the latch's word. All of it is written by exclusive holders only, but for the
/// statistics. In this order, so that what each writer of a biased latch changes lies on the line of the word, which it
/// has just fetched: on another one it cost 5 % in the simulation of 8 clients on 4 sockets.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Bias<M: Machine> {
    /// Writers in the current window; 0 before its first.
    writers: M::U32,
    /// Those of them that came before the time is taken; 0 as long as the latch settles.
    settled: M::U32,
    policy: BiasPolicy,
    /// When the current window, or its settling, began.
    window_ns: M::U64,
    /// No trial before this time.
    inhibited_ns: M::U64,
    /// 1: the last trial ended with bias.
    verdict: M::U32,
    /// Windows of the trial that are over. The even ones are biased, the odd ones plain.
    windows: M::U32,
    /// When the trial began.
    trial_ns: M::U64,
    biased: Windows<M>,
    plain: Windows<M>,
    turned_biased: M::U32,
    turned_plain: M::U32,
}

impl<M: Machine> Bias<M> {
    /// Under a checker the thresholds are so low that the latch turns whenever it may.
    const CONFLICTS: u32 = if M::EXPLORED { 1 } else { CONFLICTS };
    const LOOK: u32 = if M::EXPLORED { 1 } else { LOOK };
    const SETTLE: u32 = if M::EXPLORED { 0 } else { SETTLE };
    const SETTLE_NS: u64 = if M::EXPLORED { 0 } else { SETTLE_NS };
    const MEASURE: u32 = if M::EXPLORED { 1 } else { MEASURE };
    const MEASURE_NS: u64 = if M::EXPLORED { 0 } else { MEASURE_NS };
    const PAIRS: u32 = if M::EXPLORED { 2 } else { PAIRS };
    const INHIBITION: u64 = if M::EXPLORED { 0 } else { INHIBITION };

    pub(crate) fn new(policy: BiasPolicy) -> Self {
        Self {
            policy,
            writers: M::U32::new(0),
            settled: M::U32::new(0),
            window_ns: M::U64::new(0),
            windows: M::U32::new(0),
            trial_ns: M::U64::new(0),
            inhibited_ns: M::U64::new(0),
            verdict: M::U32::new(0),
            biased: Windows::new(),
            plain: Windows::new(),
            turned_biased: M::U32::new(0),
            turned_plain: M::U32::new(0),
        }
    }

    pub(crate) fn policy(&self) -> BiasPolicy {
        self.policy
    }

    pub(crate) fn statistics(&self) -> BiasStatistics {
        BiasStatistics {
            turned_biased: self.turned_biased.load(Relaxed),
            turned_plain: self.turned_plain.load(Relaxed),
        }
    }

    /// Counts a conflict of a reader on the plain path, in a `trial` or not. Returns whether the latch should turn
    /// biased, and then, unless in a trial already, begin one.
    pub(crate) fn conflict(&self, trial: bool, clock: impl FnOnce() -> u64) -> bool {
        let met = &M::workers().slot(M::worker()).reader_conflicts;
        let conflicts = met.load(Relaxed).wrapping_add(1);
        met.store(conflicts, Relaxed);
        if !conflicts.is_multiple_of(Self::CONFLICTS) || self.policy != BiasPolicy::Adaptive {
            return false;
        }
        let since = if trial {
            self.window_ns.load(Relaxed).saturating_add(RARE_NS)
        } else {
            self.inhibited_ns.load(Relaxed)
        };
        clock() >= since
    }

    /// The latch was turned biased.
    pub(crate) fn turned_biased(&self) {
        self.turned_biased.fetch_add(1, Relaxed);
    }

    /// The latch was turned plain.
    pub(crate) fn turned_plain(&self) {
        self.turned_plain.fetch_add(1, Relaxed);
    }

    /// Counts a writer that found the word as `turn`, biased or in a trial. Returns what the word shall say from now on.
    /// Called by the exclusive holder.
    #[inline]
    pub(crate) fn next_turn(&self, turn: Turn, clock: impl FnOnce() -> u64) -> Turn {
        if self.policy != BiasPolicy::Adaptive {
            return turn;
        }
        let writers = self.writers.load(Relaxed);
        if !writers.is_multiple_of(Self::LOOK) {
            self.writers.store(writers + 1, Relaxed);
            return turn;
        }
        let now = clock();
        if turn.trial {
            self.try_on(turn, writers, now)
        } else {
            self.rest(now)
        }
    }

    /// A window, with its settling, begins with this writer.
    fn begin_window(&self, now: u64) {
        self.window_ns.store(now, Relaxed);
        self.settled.store(u32::from(Self::SETTLE == 0), Relaxed);
        self.writers.store(1, Relaxed);
    }

    /// The first writer of a trial, or one that looks at the clock.
    #[cold]
    #[inline(never)]
    fn try_on(&self, turn: Turn, writers: u32, now: u64) -> Turn {
        if writers == 0 {
            self.trial_ns.store(now, Relaxed);
            self.begin_window(now);
            if !M::EXPLORED {
                return turn;
            }
            // To a checker the first writer of a trial is also the last one of its first window.
        }
        let windows = self.windows.load(Relaxed);
        if turn.biased != windows.is_multiple_of(2) {
            // A reader has turned a plain window's latch: no writer had come for so long.
            return self.end_trial(now, true);
        }
        let took = now.saturating_sub(self.window_ns.load(Relaxed));
        let settled = self.settled.load(Relaxed);
        if settled == 0 && writers >= Self::SETTLE && took >= Self::SETTLE_NS {
            self.settled.store(writers, Relaxed);
            self.window_ns.store(now, Relaxed);
        }
        let passed = writers.max(1) + 1 - settled;
        if settled == 0 || passed < Self::MEASURE || took < Self::MEASURE_NS {
            self.writers.store(writers + 1, Relaxed);
            return turn;
        }
        if took >= RARE_NS {
            return self.end_trial(now, true);
        }
        // A thousandth of a nanosecond, a writer.
        let each = took * 1_000 / u64::from(passed);
        if turn.biased { &self.biased } else { &self.plain }.add(each);
        if windows + 1 == 2 * Self::PAIRS {
            let (biased, plain) = (self.biased.sum_of_others(), self.plain.sum_of_others());
            let (rested, other) = match self.verdict.load(Relaxed) {
                0 => (plain, biased),
                _ => (biased, plain),
            };
            let change = other < rested - rested / MARGIN;
            return self.end_trial(now, change != (self.verdict.load(Relaxed) != 0));
        }
        self.windows.store(windows + 1, Relaxed);
        self.begin_window(now);
        Turn {
            biased: !turn.biased,
            trial: true,
        }
    }

    fn end_trial(&self, now: u64, biased: bool) -> Turn {
        self.biased.clear();
        self.plain.clear();
        self.windows.store(0, Relaxed);
        self.writers.store(0, Relaxed);
        self.verdict.store(u32::from(biased), Relaxed);
        let took = now.saturating_sub(self.trial_ns.load(Relaxed));
        self.inhibited_ns
            .store(now.saturating_add(took.saturating_mul(Self::INHIBITION)), Relaxed);
        if biased { Turn::BIASED } else { Turn::PLAIN }
    }

    /// A writer of a biased latch that rests looks at the clock.
    #[cold]
    #[inline(never)]
    fn rest(&self, now: u64) -> Turn {
        if now < self.inhibited_ns.load(Relaxed) {
            self.writers.store(1, Relaxed);
            return Turn::BIASED;
        }
        // The next writer is the trial's first.
        self.writers.store(0, Relaxed);
        Turn::TRIAL
    }
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use clearway_machine::Native;

    use super::*;

    /// A policy and a clock, and how long a writer takes in each state.
    struct Driven {
        bias: Bias<Native>,
        now: Cell<u64>,
    }

    impl Driven {
        fn new(policy: BiasPolicy) -> Self {
            Self {
                bias: Bias::new(policy),
                now: Cell::new(1),
            }
        }

        fn writer(&self, turn: Turn, took: u64) -> Turn {
            self.now.set(self.now.get() + took);
            self.bias.next_turn(turn, || self.now.get())
        }

        /// Begins a trial and runs it to its end. `took` tells how long a writer takes, biased or not, in a window.
        fn trial(&self, took: impl Fn(bool, u32) -> u64) -> Turn {
            let (mut turn, mut window) = (Turn::TRIAL, 0);
            while turn.trial {
                let next = self.writer(turn, took(turn.biased, window));
                window += u32::from(next != turn);
                turn = next;
            }
            turn
        }

        fn nominations(&self) -> usize {
            (0..CONFLICTS)
                .filter(|_| self.bias.conflict(false, || self.now.get()))
                .count()
        }
    }

    #[test]
    fn the_faster_state_stays_and_a_change_needs_a_margin() {
        for (biased, plain, from_plain, from_biased) in [
            (500, 1_000, Turn::BIASED, Turn::BIASED),
            (1_000, 500, Turn::PLAIN, Turn::PLAIN),
            (1_000, 1_000, Turn::PLAIN, Turn::BIASED),
            (990, 1_000, Turn::PLAIN, Turn::BIASED),
            (1_000, 990, Turn::PLAIN, Turn::BIASED),
            (940, 1_000, Turn::BIASED, Turn::BIASED),
            (1_000, 940, Turn::PLAIN, Turn::PLAIN),
        ] {
            let took = |is_biased, _| if is_biased { biased } else { plain };
            let driven = Driven::new(BiasPolicy::Adaptive);
            assert_eq!(driven.trial(took), from_plain, "{biased} {plain}");
            driven.bias.verdict.store(1, Relaxed);
            assert_eq!(driven.trial(took), from_biased, "{biased} {plain}, biased before");
        }
    }

    /// Mutation: take the longest window into the sum → the holder that lost its CPU decides.
    #[test]
    fn one_long_window_does_not_decide() {
        for slow_window in 0..2 * PAIRS {
            let driven = Driven::new(BiasPolicy::Adaptive);
            let took = |biased, window| {
                let slow = if window == slow_window { 50_000 } else { 0 };
                slow + if biased { 900 } else { 1_000 }
            };
            assert_eq!(driven.trial(took), Turn::BIASED, "window {slow_window}");
        }
    }

    /// Mutation: do not wait until the latch has settled → the first writers of a window count.
    #[test]
    fn what_the_other_state_has_left_behind_does_not_count() {
        let driven = Driven::new(BiasPolicy::Adaptive);
        let since_turn = Cell::new((0, 0));
        let took = |biased, window| {
            let (of, writers) = since_turn.get();
            let writers = if of == window { writers + 1 } else { 0 };
            since_turn.set((window, writers));
            match (biased, writers < SETTLE / 2) {
                (true, true) => 9_000,
                (true, false) => 900,
                (false, _) => 1_000,
            }
        };
        assert_eq!(driven.trial(took), Turn::BIASED);
    }

    #[test]
    fn rare_writers_leave_the_latch_biased() {
        let driven = Driven::new(BiasPolicy::Adaptive);
        let windows = Cell::new(0);
        let turn = driven.trial(|_, window| {
            windows.set(window + 1);
            RARE_NS / 8
        });
        assert_eq!((turn, windows.get()), (Turn::BIASED, 1));
    }

    #[test]
    fn readers_end_a_plain_window_without_writers() {
        let driven = Driven::new(BiasPolicy::Adaptive);
        let mut turn = Turn::TRIAL;
        while turn.biased {
            turn = driven.writer(turn, 1_000);
        }
        let asks = |trial| (0..CONFLICTS).any(|_| driven.bias.conflict(trial, || driven.now.get()));
        assert!(!asks(true));
        driven.now.set(driven.now.get() + RARE_NS);
        assert!(asks(true), "a trial's window without writers");
        // The reader turns it biased. A writer finds that, at its next look at the clock.
        turn = Turn::TRIAL;
        for _ in 0..=LOOK {
            turn = driven.writer(turn, 1_000);
            if !turn.trial {
                break;
            }
        }
        assert_eq!(turn, Turn::BIASED);
    }

    #[test]
    fn the_next_trial_comes_after_a_rest() {
        for (biased, expected) in [(500, Turn::BIASED), (2_000, Turn::PLAIN)] {
            let driven = Driven::new(BiasPolicy::Adaptive);
            assert_eq!(driven.nominations(), 1);
            let began = driven.now.get();
            assert_eq!(
                driven.trial(|is_biased, _| if is_biased { biased } else { 1_000 }),
                expected
            );
            let rest = (driven.now.get() - began) * (INHIBITION - 1);
            let end = driven.now.get() + rest;
            while driven.now.get() < end {
                assert_eq!(driven.nominations(), 0);
                if expected.biased {
                    assert_eq!(driven.writer(Turn::BIASED, 0), Turn::BIASED);
                }
                driven.now.set(driven.now.get() + rest / 20);
            }
            driven.now.set(end + rest);
            assert_eq!(driven.nominations(), 1);
            if expected.biased {
                assert!((0..LOOK).any(|_| driven.writer(Turn::BIASED, 0) == Turn::TRIAL));
            }
        }
    }

    #[test]
    fn fixed_policies_do_not_decide() {
        for policy in [BiasPolicy::Never, BiasPolicy::Always] {
            let driven = Driven::new(policy);
            assert_eq!(driven.nominations(), 0);
            for _ in 0..LOOK * 3 {
                assert_eq!(driven.writer(Turn::BIASED, 1_000_000), Turn::BIASED);
            }
        }
    }
}
