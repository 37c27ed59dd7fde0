use core::cell::Cell;

use clearway_machine::Native;

use super::*;

impl Turn {
    /// The state of the word when a trial begins.
    const TRIAL: Turn = Turn {
        biased: true,
        trial: true,
    };
}

/// A policy and a clock, and how long a writer takes in each state.
struct Driven {
    bias: Bias<Native>,
    now: Cell<u64>,
    /// Windows of the last trial.
    windows: Cell<u32>,
}

impl Driven {
    fn new(policy: BiasPolicy) -> Self {
        Self {
            bias: Bias::new(policy),
            now: Cell::new(1),
            windows: Cell::new(0),
        }
    }

    fn rested_biased() -> Self {
        let driven = Self::new(BiasPolicy::Adaptive);
        driven.bias.past.store(1, Relaxed);
        driven
    }

    fn writer(&self, turn: Turn, took: u64) -> Turn {
        self.now.set(self.now.get() + took);
        if self.bias.share_of_this_writer().counted {
            self.bias.next_turn(turn, false, || self.now.get())
        } else {
            turn
        }
    }

    /// As [`trial`](Self::trial); `took` gets the time since the state has turned, ns, instead of the window.
    fn trial_by_age(&self, took: impl Fn(bool, u64) -> u64) -> Turn {
        let since_turn = Cell::new((0, 0));
        self.trial(|biased, window| {
            let (of, passed) = since_turn.get();
            let passed = if of == window { passed } else { 0 };
            let took = took(biased, passed);
            since_turn.set((window, passed + took));
            took
        })
    }

    /// Begins a trial and runs it to its end. `took` tells how long a writer takes, biased or not, in a window.
    fn trial(&self, took: impl Fn(bool, u32) -> u64) -> Turn {
        let (mut turn, mut window) = (Turn::TRIAL, 0);
        while turn.trial {
            let next = self.writer(turn, took(turn.biased, window));
            window += u32::from(next != turn);
            assert!(window < 10_000, "a trial without an end");
            turn = next;
        }
        self.windows.set(window);
        turn
    }

    /// The time that the latch rests from now on.
    fn rest(&self) -> u64 {
        self.bias.inhibited_ns.load(Relaxed) - self.now.get()
    }

    /// Number of nominations in this many meetings of readers.
    fn nominations(&self, meetings: u32) -> usize {
        (0..meetings)
            .filter(|_| self.bias.nominated_by_meeting(false, || self.now.get()))
            .count()
    }

    /// Number of waits, each a nanosecond later than the one before, that find that `look` is due. Time goes on by as
    /// much.
    fn waits(&self, waits: u64, look: impl Fn(u64) -> bool) -> usize {
        let begin = self.now.get();
        self.now.set(begin + waits);
        (begin..begin + waits).filter(|&time| look(time)).count()
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
        (980, 1_000, Turn::BIASED, Turn::BIASED),
        (1_000, 980, Turn::PLAIN, Turn::PLAIN),
    ] {
        let took = |is_biased, _| if is_biased { biased } else { plain };
        let driven = Driven::new(BiasPolicy::Adaptive);
        assert_eq!(driven.trial(took), from_plain, "{biased} {plain}");
        let driven = Driven::rested_biased();
        assert_eq!(driven.trial(took), from_biased, "{biased} {plain}, biased before");
    }
}

/// Mutation: end at the first look, whatever the difference → a few windows decide what only many can.
#[test]
fn the_smaller_the_difference_the_longer_the_trial() {
    for (plain, pairs) in [
        (2_000, 2),
        (1_400, 2),
        (1_200, 4),
        (1_100, 8),
        // 8 with the shortest windows, 4 with longer ones, and 2 with the longest.
        (1_050, 12),
        (1_020, 14),
        (1_000, 14),
    ] {
        let driven = Driven::new(BiasPolicy::Adaptive);
        driven.trial(|biased, _| if biased { 1_000 } else { plain });
        assert_eq!(driven.windows.get(), 2 * pairs, "1,000 against {plain}");
    }
}

/// A state that is the faster one for 10 ms and the slower one after that is left by the third trial.
///
/// Mutation: all trials have windows of the same length → what comes late is never seen.
#[test]
fn later_trials_have_longer_windows() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    let took = |biased, passed| match (biased, passed < 10_000_000) {
        (true, true) => 800,
        (true, false) => 1_200,
        (false, _) => 1_000,
    };
    let trial = || {
        let began = driven.now.get();
        let turn = driven.trial_by_age(took);
        (turn, driven.windows.get(), (driven.now.get() - began) / 1_000_000)
    };
    let (turn, windows, ms) = trial();
    assert_eq!((turn, windows / 2), (Turn::BIASED, 4));
    assert!(ms < 30, "{ms} ms");
    let (_, windows, ms) = trial();
    assert!(
        windows / 2 <= 4 && (40..120).contains(&ms),
        "{windows} windows, {ms} ms"
    );
    for _ in 0..2 {
        let (turn, windows, ms) = trial();
        assert_eq!((turn, windows / 2), (Turn::PLAIN, 2));
        assert!((190..230).contains(&ms), "{ms} ms");
    }
}

/// A state that is 5 % faster, but not in the first 4 ms: windows of 2 ms do not see it. They show states that hardly differ,
/// so the same trial looks for longer.
///
/// Mutation: never longer windows → the latch stays plain.
#[test]
fn states_that_hardly_differ_are_looked_at_for_longer() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    let took = |biased, passed| match (biased, passed < 4_000_000) {
        (true, true) => 1_010,
        (true, false) => 950,
        (false, _) => 1_000,
    };
    assert_eq!(driven.trial_by_age(took), Turn::BIASED);
    assert_eq!(driven.windows.get(), 2 * (8 + 4));
}

/// Two windows of chance at the begin of a trial do not decide it.
#[test]
fn a_trial_that_begins_misleading_goes_on() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    let took = |biased, window| match (biased, window) {
        (true, 0..4) => 1_200,
        (true, _) => 900,
        (false, _) => 1_000,
    };
    assert_eq!(driven.trial(took), Turn::BIASED);
    assert_eq!(driven.windows.get(), 2 * (8 + 2));
}

/// A writer each 100 µs: 128 of them make a window.
///
/// Mutation: take `LONG_NS` out → the trial takes 13 s, as long as `WRITERS` do.
#[test]
fn a_trial_with_few_writers_ends_after_a_while() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    assert_eq!(driven.trial(|_, _| 100_000), Turn::PLAIN);
    let took = driven.now.get();
    assert!((LONG_NS..2 * LONG_NS).contains(&took), "{took} ns");
    assert!(driven.rest() <= REST_NS_MAX, "{} ns", driven.rest());
}

/// Writers are a random part of all acquisitions, one in a hundred, and bias makes these 3 % faster.
///
/// Mutation: end without `WRITERS` → 73 of 100 trials find it.
#[test]
fn what_differs_by_chance_is_measured_until_it_does_not() {
    let mut drawn = 1_u64;
    let found = (0..100).filter(|_| {
        let driven = Driven::new(BiasPolicy::Adaptive);
        let random = Cell::new(drawn);
        let turn = driven.trial(|biased, _| {
            random.set(
                random
                    .get()
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1),
            );
            let uniform = (random.get() >> 40) as f64 / f64::from(1 << 24);
            let acquisitions = 1.0 - 100.0 * (1.0 - uniform).ln();
            (acquisitions * if biased { 194.0 } else { 200.0 }) as u64
        });
        drawn = random.get();
        turn == Turn::BIASED
    });
    let found = found.count();
    assert!(found >= 90, "{found} of 100");
}

/// Mutation: take the longest window into the sum → the holder that lost its CPU decides.
#[test]
fn one_long_window_does_not_decide() {
    for slow_window in 0..2 * PAIRS_MAX {
        let driven = Driven::new(BiasPolicy::Adaptive);
        let took = |biased, window| {
            let slow = if window == slow_window { 50_000 } else { 0 };
            slow + if biased { 950 } else { 1_000 }
        };
        assert_eq!(driven.trial(took), Turn::BIASED, "window {slow_window}");
    }
}

/// Mutation: do not wait until the latch has settled → the first writers of a window count.
#[test]
fn what_the_other_state_has_left_behind_does_not_count() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    let took = |biased, passed| match (biased, passed < SETTLE_NS / 2) {
        (true, true) => 9_000,
        (true, false) => 900,
        (false, _) => 1_000,
    };
    assert_eq!(driven.trial_by_age(took), Turn::BIASED);
}

#[test]
fn rare_writers_leave_the_latch_biased() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    let turn = driven.trial(|_, _| RARE_NS / u64::from(MEASURE));
    assert_eq!((turn, driven.windows.get()), (Turn::BIASED, 1));
}

#[test]
fn readers_end_a_plain_window_without_writers() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    let mut turn = Turn::TRIAL;
    while turn.biased {
        turn = driven.writer(turn, 1_000);
    }
    let asks = |trial| {
        let by_meeting = (0..SAMPLE).any(|_| driven.bias.nominated_by_meeting(trial, || driven.now.get()));
        let by_wait = driven.waits(1_000, |time| driven.bias.nominated_by_wait(trial, time)) > 0;
        assert_eq!(by_meeting, by_wait);
        by_wait
    };
    assert!(!asks(true));
    driven.now.set(driven.now.get() + RARE_NS - 2_000);
    assert!(!asks(true));
    driven.now.set(driven.now.get() + SETTLE_NS + MEASURE_NS);
    assert!(asks(true), "a trial's window without writers");
    // The reader turns it biased. A writer finds that, at its next look at the clock.
    turn = Turn::TRIAL;
    for _ in 0..=LOOK * COUNTED {
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
        assert_eq!(driven.nominations(SAMPLE), 1);
        let took = |is_biased: bool, _: u32| if is_biased { biased } else { 1_000 };
        assert_eq!(driven.trial(took), expected);
        let rest = driven.rest();
        let end = driven.now.get() + rest;
        let writer_begins = || (0..SAMPLE_UNWAITED).any(|_| driven.bias.trial_is_due(|| driven.now.get()));
        while driven.now.get() < end - 2_000 {
            assert_eq!(driven.nominations(SAMPLE * SAMPLE_TRIED), 0);
            assert!(!writer_begins());
            assert_eq!(
                driven.waits(1_000, |time| driven.bias.nominated_by_wait(false, time)),
                0
            );
            assert_eq!(
                driven.waits(1_000, |time| driven.bias.trial_is_due_after_wait(time)),
                0
            );
            driven.now.set(driven.now.get() + rest / 20);
        }
        driven.now.set(end);
        // Readers of a latch that has been tried look more rarely.
        assert_eq!(driven.nominations(SAMPLE * SAMPLE_TRIED), 1);
        assert!(writer_begins());
        assert_ne!(
            driven.waits(1_000, |time| driven.bias.nominated_by_wait(false, time)),
            0
        );
        assert_ne!(
            driven.waits(1_000, |time| driven.bias.trial_is_due_after_wait(time)),
            0
        );
    }
}

/// A clock that ticks in steps has as many samples as one that does not.
///
/// Mutation: take the time modulo `SAMPLE` → a clock with steps of 13 ns has all or none.
#[test]
fn one_wait_in_thirteen_is_a_sample_whatever_the_clocks_steps() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    for step in [1, 13, 40, 100, 1_000, 1 << 20] {
        let samples = (1..=13_000)
            .filter(|wait| driven.bias.nominated_by_wait(false, wait * step))
            .count();
        assert!(
            (500..2_000).contains(&samples),
            "{samples} of 1,000, steps of {step}"
        );
    }
}

/// Mutation: let all writers of a biased window have the compare-and-swap → bias seems worse than it is.
#[test]
fn as_many_writers_are_handicapped_as_found_the_plain_word_idle() {
    let driven = Driven::new(BiasPolicy::Adaptive);
    let handicapped = || {
        let shares = (0..HANDICAP_OF).map(|_| driven.bias.share_of_this_writer());
        shares.filter(|share| share.handicapped).count() as u32
    };
    assert_eq!(handicapped(), HANDICAP_OF, "before the first plain window");
    for idle in [0, 4, 8, 16] {
        let (mut turn, mut window) = (Turn::TRIAL, 0);
        let mut number = 0;
        while turn.trial && window < 2 {
            driven.now.set(driven.now.get() + 10_000);
            number = (number + 1) % HANDICAP_OF;
            let found_idle = !turn.biased && number < idle;
            let next = driven.bias.next_turn(turn, found_idle, || driven.now.get());
            window += u32::from(next != turn);
            turn = next;
        }
        let expected = idle.min(HANDICAP_OF);
        assert!(
            handicapped().abs_diff(expected) <= 1,
            "{} of {idle}",
            handicapped()
        );
        while turn.trial {
            driven.now.set(driven.now.get() + 10_000);
            turn = driven.bias.next_turn(turn, false, || driven.now.get());
        }
    }
}

/// Mutation: rest by the time that the trial took alone → a trial of a state that is eight times slower costs 3 %.
#[test]
fn a_trial_that_lost_much_is_followed_by_a_longer_rest() {
    let rest = |biased: u64| {
        let driven = Driven::new(BiasPolicy::Adaptive);
        driven.trial(|is_biased, _| if is_biased { biased } else { 1_000 });
        let took = driven.now.get() - driven.bias.trial_ns.load(Relaxed);
        assert!(driven.rest() >= REST * took);
        (driven.rest(), took)
    };
    let (level, level_took) = rest(1_000);
    assert_eq!(level, REST * level_took, "nothing was lost");
    let (slow, slow_took) = rest(8_000);
    // Half of the time went into the slow state, which did an eighth; and the next trial is four times as long.
    let lost = slow_took / 2 * 7 / 8 * 4;
    let expected = lost * INHIBITION;
    assert!(
        slow.abs_diff(expected) < expected / 10,
        "{slow}, expected {expected}"
    );
    // Windows as long as their writers need: the next trial has the same.
    let driven = Driven::new(BiasPolicy::Adaptive);
    driven.trial(|biased, _| if biased { 150_000 } else { 75_000 });
    let took = driven.now.get() - driven.bias.trial_ns.load(Relaxed);
    let (rest, expected) = (driven.rest(), took / 3 * INHIBITION);
    assert!(
        rest.abs_diff(expected) < expected / 10,
        "{rest}, expected {expected}"
    );
}

/// Whichever trials there have been, they and the rests before them lose one part in `INHIBITION`. The first one,
/// before which there was no rest, is the exception.
///
/// Mutation: rest by what this trial has lost, though the next one is longer → the second and third cost 3 %.
#[test]
fn each_trial_is_paid_for_by_the_rest_before_it() {
    for slower in [2_000, 8_000] {
        let driven = Driven::new(BiasPolicy::Adaptive);
        let took = |biased, _| if biased { slower } else { 1_000 };
        driven.trial(took);
        for trial in 2..6 {
            let rest = driven.rest();
            driven.now.set(driven.now.get() + rest);
            let began = driven.now.get();
            driven.trial(took);
            let lost = (driven.now.get() - began) / 2 * (slower - 1_000) / slower;
            assert!(
                lost * INHIBITION <= (rest + rest / 10),
                "trial {trial} lost {lost} ns after a rest of {rest}"
            );
        }
    }
}

#[test]
fn fixed_policies_do_not_decide() {
    for policy in [BiasPolicy::Never, BiasPolicy::Always] {
        let driven = Driven::new(policy);
        assert_eq!(driven.nominations(SAMPLE * SAMPLE_TRIED), 0);
        assert!((0..SAMPLE_UNWAITED * 3).all(|_| !driven.bias.trial_is_due(|| u64::MAX)));
        assert_eq!(
            driven.waits(1_000, |time| driven.bias.nominated_by_wait(false, time)),
            0
        );
        assert_eq!(
            driven.waits(1_000, |time| driven.bias.trial_is_due_after_wait(time)),
            0
        );
    }
}
