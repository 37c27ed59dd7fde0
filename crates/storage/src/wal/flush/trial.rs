//! The way to wait, of three, that lets most workers commit, found out by going each in turn.
//!
//! # An example
//! Polling is the *incumbent*, sleeping the *challenger*. A trial is made of pairs of epochs; an epoch is [`EPOCH`]
//! flushes, or, where flushes are long, as many as [`EPOCH_NS`] takes, but no fewer than [`EPOCH_MIN`]:
//!
//! | pair | 1 | 2 | 3 | 4 | … |
//! | --- | --- | --- | --- | --- | --- |
//! | commits a millisecond: poll, then sleep | 61, 72 | 60, 74 | 55, 12 | 63, 75 | |
//! | points for sleeping | 1 | 2 | 2 | 3 | |
//! | points for polling | 0 | 0 | 3 | 3 | |
//!
//! The challenger takes over with [`WINS`] points; the trial ends without a change once it has lost
//! [`LOSSES`]. Pairs are counted, and rates not added up: in the third, one sync of 20 ms says more about the disk than
//! about the way. But a pair in which one rate was more than twice the other counts for [`CLEAR_WIN_POINTS`] points, so that a way
//! that does great harm is left after two or three epochs.
//!
//! # Steps
//! 1. A trial, as above. An epoch ends early once it has lasted longer than the other's before it and goes at less than
//!    half of its rate: the slower the way, the less is tried of it.
//! 2. A trial of the third way against the winner.
//! 3. The winner of both is held for [`HOLD`] epochs; for twice as many after each two trials that have changed nothing,
//!    up to [`HOLD_MAX`]. Then the next two trials. They come at once if the load has changed: if in two epochs in a row
//!    a flush carries more than twice the commits of the second epoch of the hold, or less than half of them. What is
//!    best for 4 clients is not for 16, and with 16 a flush carries more.
//!
//! Commits are counted and not bytes: after a checkpoint most changes log an image of their page, so bytes tell of the
//! time since then, and trials that went by them began anew each 0.3 s.
//!
//! Only flushes that others waited for are counted: a worker alone waits in no way, and its rate says nothing. An
//! epoch begins anew with such a flush, since there may have been a pause before it. Polling late makes a worker alone
//! wait in vain, so it is left when [`LONELY_FLUSHES`] flushes in a row have had no waiter. If it was only tried it has lost its
//! trial; if it was the incumbent, trials begin anew.
//!
//! Invariant: one worker at a time calls [`Trial::flushed`], and acquires what the one before has stored, because it owns
//! the log's device. `way` and `waited` are hints that carry nothing else: a worker that reads an old one waits in the
//! other way once more, and a flush whose waiter is not seen is not counted.
//!
//! Under a checker there is no trial, and the way stays `Sleep`; `polling` says what is explored then.
//!
//! Origin: ours, after the interleaved runs by which `clearway bench` compares.

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Padded};

/// Most flushes in an epoch.
const EPOCH: u64 = 32;

/// Fewest flushes in an epoch that ends for its length.
const EPOCH_MIN: u64 = 8;

/// Duration of an epoch, nanoseconds, that is long enough.
const EPOCH_NS: u64 = 4_000_000;

/// Consecutive flushes without waiters that end late polling.
const LONELY_FLUSHES: u64 = 2;

/// Points with which the challenger takes over.
const WINS: u64 = 11;

/// Points of the incumbent at which the challenger gives up.
const LOSSES: u64 = 6;

/// Points for a rate of more than twice the other.
const CLEAR_WIN_POINTS: u64 = 3;

/// Fixed-point scale of commits per flush.
const PER_FLUSH: u64 = 16;

/// Epochs between a trial that has changed the way and the next trial.
const HOLD: u64 = 512;

/// Most epochs between two trials.
const HOLD_MAX: u64 = 4096;

/// The way in which a worker waits for a flush that another makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlushWait {
    /// It sleeps until it is woken.
    Sleep,
    /// It looks again and again, and takes the device as soon as it is free.
    Poll,
    /// As `Poll`; but the device has to be free for as long as a flush takes, so that a flush carries more commits.
    PollLate,
}

impl FlushWait {
    const ALL: [Self; 3] = [Self::Sleep, Self::Poll, Self::PollLate];

    fn from_index(index: u32) -> Self {
        Self::ALL[index as usize % Self::ALL.len()]
    }

    /// The next in turn.
    fn next(self) -> Self {
        Self::from_index(self as u32 + 1)
    }

    /// The way that is neither of these two.
    fn third(self, other: Self) -> Self {
        debug_assert_ne!(self, other);
        Self::from_index(3 - self as u32 - other as u32)
    }
}

pub(super) struct Trial<M: Machine> {
    shown: Padded<PublishedWait<M>>,
    owned: Padded<Owned<M>>,
}

struct PublishedWait<M: Machine> {
    /// The way to go now, as its index.
    way: M::U32,
    /// 1: a worker has waited since the last flush.
    waited: M::U32,
}

/// Read and stored by the owner of the device alone.
struct Owned<M: Machine> {
    /// 1: the challenger's epoch.
    challenging: M::U32,
    /// The way that is held or defended, and the one that is tried against it, as their indices.
    incumbent: M::U32,
    challenger: M::U32,
    /// 1: the third way is to be tried when this trial is over.
    third_untried: M::U32,
    /// 1: a trial since the last hold has changed the way.
    changed: M::U32,
    /// Flushes of this epoch so far.
    flushes: M::U64,
    /// Its start: commits until then, nanoseconds.
    begun: Stretch<M>,
    /// Commits and time of the last epoch.
    last: Stretch<M>,
    /// Points of this trial for the challenger, and for the incumbent.
    won: M::U64,
    lost: M::U64,
    /// Epochs until the next trial, and how many there were after the last.
    hold: M::U64,
    last_hold: M::U64,
    /// Commits per flush in the second epoch of this hold, times [`PER_FLUSH`].
    usual_commits: M::U64,
    /// Flushes in a row that no other worker has waited for.
    lone: M::U64,
    /// 1 if the last epoch was far from that, else 0.
    unusual: M::U64,
}

/// A number of commits and a time: since the beginning, or of an epoch.
struct Stretch<M: Machine> {
    commits: M::U64,
    ns: M::U64,
}

impl<M: Machine> Stretch<M> {
    fn new() -> Self {
        Self {
            commits: M::U64::new(0),
            ns: M::U64::new(0),
        }
    }

    fn set(&self, commits: u64, ns: u64) {
        self.commits.store(commits, Relaxed);
        self.ns.store(ns, Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        (self.commits.load(Relaxed), self.ns.load(Relaxed))
    }
}

impl<M: Machine> Trial<M> {
    /// Begins with sleeping, which does no great harm anywhere, and trials of the others.
    pub(super) fn new() -> Self {
        let zero = || M::U64::new(0);
        Self {
            shown: Padded(PublishedWait {
                way: M::U32::new(FlushWait::Sleep as u32),
                waited: M::U32::new(0),
            }),
            owned: Padded(Owned {
                challenging: M::U32::new(0),
                incumbent: M::U32::new(FlushWait::Sleep as u32),
                challenger: M::U32::new(FlushWait::Sleep.next() as u32),
                third_untried: M::U32::new(1),
                changed: M::U32::new(0),
                flushes: zero(),
                begun: Stretch::new(),
                last: Stretch::new(),
                won: zero(),
                lost: zero(),
                hold: zero(),
                last_hold: zero(),
                usual_commits: zero(),
                lone: zero(),
                unusual: zero(),
            }),
        }
    }

    /// The way to wait.
    pub(super) fn way(&self) -> FlushWait {
        FlushWait::from_index(self.shown.way.load(Relaxed))
    }

    /// The caller waits: once more before each look.
    pub(super) fn waits(&self) {
        if M::EXPLORED {
            return;
        }
        // Looked at first: most find it set, and leave the line shared.
        if self.shown.waited.load(Relaxed) == 0 {
            self.shown.waited.store(1, Relaxed);
        }
    }

    /// The caller, which owns the device, has flushed the log, at `now_ns`. `commits`: how many have come to have their
    /// record flushed so far.
    pub(super) fn flushed(&self, commits: u64, now_ns: u64) {
        if M::EXPLORED {
            // The clock of a checker says nothing, and nothing here orders anything.
            return;
        }
        if self.shown.waited.load(Relaxed) == 0 {
            // The time since the last flush is not time in which workers waited.
            self.begin_epoch(commits, now_ns);
            let lone = self.owned.lone.load(Relaxed) + 1;
            self.owned.lone.store(lone, Relaxed);
            if lone >= LONELY_FLUSHES && self.way() == FlushWait::PollLate {
                self.leave_polling_late();
            }
            return;
        }
        self.shown.waited.store(0, Relaxed);
        let owned = &self.owned;
        owned.lone.store(0, Relaxed);
        let (before, begun_ns) = owned.begun.get();
        let (carried, ns) = (commits.saturating_sub(before), now_ns.saturating_sub(begun_ns));
        let flushes = owned.flushes.load(Relaxed) + 1;
        owned.flushes.store(flushes, Relaxed);
        let long = flushes >= EPOCH_MIN && ns >= EPOCH_NS;
        if flushes >= EPOCH || long || self.lags(carried, ns) {
            self.end_epoch(carried, ns);
            self.begin_epoch(commits, now_ns);
        }
    }

    /// A worker alone waits in vain.
    fn leave_polling_late(&self) {
        let incumbent = FlushWait::from_index(self.owned.incumbent.load(Relaxed));
        if incumbent == FlushWait::PollLate {
            self.begin_trials(FlushWait::Sleep, 0);
            self.go(FlushWait::Sleep, 0);
        } else {
            self.end_trial(incumbent, FlushWait::PollLate);
        }
    }

    /// True if this epoch of a trial, which has brought so much, is far behind the last.
    fn lags(&self, commits: u64, ns: u64) -> bool {
        let last = self.owned.last.get();
        self.owned.hold.load(Relaxed) == 0 && ns > last.1 && faster(last, doubled((commits, ns)))
    }

    fn begin_epoch(&self, commits: u64, now_ns: u64) {
        self.owned.flushes.store(0, Relaxed);
        self.owned.begun.set(commits, now_ns);
    }

    fn end_epoch(&self, commits: u64, ns: u64) {
        let owned = &self.owned;
        let (this, last) = ((commits, ns), owned.last.get());
        owned.last.set(commits, ns);
        let incumbent = FlushWait::from_index(owned.incumbent.load(Relaxed));
        let challenger = FlushWait::from_index(owned.challenger.load(Relaxed));
        if owned.challenging.load(Relaxed) == 0 {
            match owned.hold.load(Relaxed) {
                0 => self.go(challenger, 1),
                _ if self.load_changed(PER_FLUSH * commits / owned.flushes.load(Relaxed)) => {
                    self.begin_trials(incumbent, 0);
                    self.go(incumbent.next(), 1);
                }
                hold => owned.hold.store(hold - 1, Relaxed),
            }
            return;
        }
        let points = if faster(this, last) {
            &owned.won
        } else {
            &owned.lost
        };
        let clear = faster(this, doubled(last)) || faster(last, doubled(this));
        points.store(
            points.load(Relaxed) + if clear { CLEAR_WIN_POINTS } else { 1 },
            Relaxed,
        );
        if owned.won.load(Relaxed) >= WINS {
            owned.changed.store(1, Relaxed);
            self.end_trial(challenger, incumbent);
        } else if owned.lost.load(Relaxed) >= LOSSES {
            self.end_trial(incumbent, challenger);
        } else {
            self.go(incumbent, 0);
        }
    }

    /// True if the flushes of this epoch of a hold, each of `commits` / [`PER_FLUSH`] commits, and of the one before
    /// carried much more or much less than those of the second.
    fn load_changed(&self, commits: u64) -> bool {
        let owned = &self.owned;
        let held = owned.last_hold.load(Relaxed) - owned.hold.load(Relaxed);
        match held {
            // There are still workers that wait in the way that has been left.
            0 => return false,
            1 => owned.usual_commits.store(commits, Relaxed),
            _ => {}
        }
        let usual = owned.usual_commits.load(Relaxed);
        let unusual = commits > usual.saturating_mul(2) || usual > commits.saturating_mul(2);
        let again = owned.unusual.load(Relaxed) == 1;
        owned.unusual.store(u64::from(unusual), Relaxed);
        unusual && again
    }

    /// The next epoch goes `way`.
    fn go(&self, way: FlushWait, challenging: u32) {
        self.owned.challenging.store(challenging, Relaxed);
        self.shown.way.store(way as u32, Relaxed);
    }

    /// The winner goes on: with a trial against the third way, or for a hold.
    fn end_trial(&self, winner: FlushWait, loser: FlushWait) {
        let owned = &self.owned;
        if owned.third_untried.load(Relaxed) == 1 {
            self.begin_trial(winner, winner.third(loser), 0);
        } else {
            let hold = match owned.changed.load(Relaxed) {
                1 => HOLD,
                _ => (2 * owned.last_hold.load(Relaxed)).clamp(HOLD, HOLD_MAX),
            };
            self.begin_trials(winner, hold);
        }
        self.go(winner, 0);
    }

    /// Both other ways are to be tried against `incumbent`, after a hold of `hold` epochs.
    fn begin_trials(&self, incumbent: FlushWait, hold: u64) {
        let owned = &self.owned;
        owned.hold.store(hold, Relaxed);
        owned.last_hold.store(hold, Relaxed);
        owned.unusual.store(0, Relaxed);
        owned.changed.store(0, Relaxed);
        self.begin_trial(incumbent, incumbent.next(), 1);
    }

    fn begin_trial(&self, incumbent: FlushWait, challenger: FlushWait, third_untried: u32) {
        let owned = &self.owned;
        owned.incumbent.store(incumbent as u32, Relaxed);
        owned.challenger.store(challenger as u32, Relaxed);
        owned.third_untried.store(third_untried, Relaxed);
        owned.won.store(0, Relaxed);
        owned.lost.store(0, Relaxed);
    }
}

/// Twice the rate.
fn doubled((commits, ns): (u64, u64)) -> (u64, u64) {
    (commits.saturating_mul(2), ns)
}

/// True if `one`, commits and nanoseconds, has the higher rate.
fn faster(one: (u64, u64), other: (u64, u64)) -> bool {
    u128::from(one.0) * u128::from(other.1) > u128::from(other.0) * u128::from(one.1)
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    /// Epochs in the longest two trials.
    const TRIALS: u64 = 2 * 2 * (WINS + LOSSES);

    /// A log whose rate depends on the way that is gone.
    struct Log {
        trial: Trial<Native>,
        commits: u64,
        now_ns: u64,
        /// Commits of a flush.
        carried: u64,
        /// Flushes in each way.
        flushes: [u64; 3],
    }

    impl Log {
        fn new() -> Self {
            Self {
                trial: Trial::new(),
                commits: 0,
                now_ns: 0,
                carried: 10,
                flushes: [0; 3],
            }
        }

        /// Flushes `count` times; a flush takes as many microseconds as its way says, and sometimes a hundred times as
        /// long.
        fn flush(&mut self, count: u64, us: [u64; 3]) {
            for flush in 0..count {
                self.trial.waits();
                let way = self.trial.way() as usize;
                self.flushes[way] += 1;
                let stalls = flush % 997 == 500;
                self.commits += self.carried;
                self.now_ns += 1_000 * us[way] * if stalls { 100 } else { 1 };
                self.trial.flushed(self.commits, self.now_ns);
            }
        }

        /// Goes on until `epochs` epochs of the hold are left.
        fn flush_until_held(&mut self, epochs: u64, us: [u64; 3]) {
            while self.trial.owned.hold.load(Relaxed) != epochs {
                self.flush(1, us);
            }
        }
    }

    #[test]
    fn the_fastest_way_is_held() {
        for (us, fastest) in [
            ([100, 70, 85], FlushWait::Poll),
            ([100, 70, 60], FlushWait::PollLate),
            ([100, 110, 60], FlushWait::PollLate),
            ([100, 300, 200], FlushWait::Sleep),
        ] {
            let mut log = Log::new();
            log.flush(EPOCH * TRIALS, us);
            assert_eq!(log.trial.way(), fastest);
            log.flush(EPOCH * 80_000, us);
            let slower = log.flushes.iter().sum::<u64>() - log.flushes[fastest as usize];
            assert!(slower * 80 < log.flushes[fastest as usize], "{:?}", log.flushes);
        }
    }

    /// A machine that becomes busy, or free, is noticed.
    #[test]
    fn a_change_is_noticed() {
        let mut log = Log::new();
        for (us, fastest) in [
            ([100, 70, 90], FlushWait::Poll),
            ([100, 300, 300], FlushWait::Sleep),
            ([100, 70, 60], FlushWait::PollLate),
        ] {
            log.flush(EPOCH * 2 * (HOLD_MAX + TRIALS), us);
            log.flushes = [0; 3];
            log.flush(EPOCH * HOLD, us);
            let [sleep, poll, late] = log.flushes;
            assert!(2 * log.flushes[fastest as usize] > sleep + poll + late);
        }
    }

    /// With more clients a flush carries more, and another way may be better: the next trial does not wait for the end of
    /// the hold.
    #[test]
    fn another_load_is_tried_at_once() {
        let (few, many) = ([100, 110, 120], [100, 70, 90]);
        let mut log = Log::new();
        log.flush(EPOCH * 40 * HOLD_MAX, few);
        assert_eq!(log.trial.owned.last_hold.load(Relaxed), HOLD_MAX);
        log.flush_until_held(HOLD_MAX - 10, few);
        log.carried = 21;
        log.flush(EPOCH * (3 + TRIALS), many);
        assert_eq!(log.trial.way(), FlushWait::Poll);
    }

    /// A single epoch of much larger flushes is no other load.
    #[test]
    fn one_unusual_epoch_is_no_other_load() {
        let us = [100, 110, 120];
        let mut log = Log::new();
        log.flush(EPOCH, us);
        log.flush_until_held(HOLD - 10, us);
        for carried in [90, 10, 90, 10] {
            log.carried = carried;
            log.flush(EPOCH, us);
        }
        assert_eq!(log.trial.owned.hold.load(Relaxed), HOLD - 14);
    }

    /// A trial of a way that is a hundred times slower ends after two epochs, each of a flush.
    #[test]
    fn a_way_that_does_great_harm_is_left_soon() {
        let mut log = Log::new();
        log.flush(EPOCH * 12, [100, 10_000, 10_000]);
        assert_eq!(log.trial.way(), FlushWait::Sleep);
        assert_eq!(log.flushes[1..], [LOSSES / CLEAR_WIN_POINTS; 2]);
    }

    /// Flushes that no other worker waited for are no trial.
    #[test]
    fn without_waiters_there_is_no_trial() {
        let trial = Trial::<Native>::new();
        for flush in 0..10_000 {
            trial.flushed(flush, flush * 50_000);
            assert_eq!(trial.way(), FlushWait::Sleep);
        }
        assert_eq!(trial.owned.last.get(), (0, 0));
    }

    /// Flushes without a waiter while polling late is tried end this trial, and not all that was found out before.
    #[test]
    fn polling_late_has_lost_its_trial_when_no_worker_waits() {
        let us = [100, 150, 160];
        let mut log = Log::new();
        while log.trial.way() != FlushWait::PollLate {
            log.flush(1, us);
        }
        for lone in 1..=LONELY_FLUSHES {
            assert_eq!(log.trial.way(), FlushWait::PollLate);
            log.trial.flushed(log.commits + lone, log.now_ns + 100_000 * lone);
        }
        assert_eq!(log.trial.way(), FlushWait::Sleep);
        assert_eq!(log.trial.owned.hold.load(Relaxed), HOLD);
    }

    /// A worker that is alone does not leave the device idle.
    #[test]
    fn polling_late_ends_when_all_others_have_gone() {
        let us = [100, 70, 60];
        let mut log = Log::new();
        log.flush(EPOCH * TRIALS, us);
        assert_eq!(log.trial.way(), FlushWait::PollLate);
        for lone in 1..=LONELY_FLUSHES {
            assert_eq!(log.trial.way(), FlushWait::PollLate);
            log.trial.flushed(log.commits + lone, log.now_ns + 100_000 * lone);
        }
        assert_eq!(log.trial.way(), FlushWait::Sleep);
        log.flush(EPOCH * (1 + TRIALS), us);
        assert_eq!(log.trial.way(), FlushWait::PollLate);
    }
}
