//! Which of two ways to wait lets the log grow faster, found out by going both in turn.
//!
//! # An example
//! Polling is the *incumbent*, sleeping the *challenger*. A trial is made of pairs of epochs; an epoch is [`EPOCH`]
//! flushes:
//!
//! | pair | 1 | 2 | 3 | 4 | … |
//! | --- | --- | --- | --- | --- | --- |
//! | bytes of log a microsecond: poll, then sleep | 61, 72 | 60, 74 | 55, 12 | 63, 75 | |
//! | points for sleeping | 1 | 2 | 2 | 3 | |
//! | points for polling | 0 | 0 | 3 | 3 | |
//!
//! The challenger takes over with [`WINS`] points; the trial ends without a change once it has lost
//! [`LOSSES`]. Pairs are counted, and rates not added up: in the third, one sync of 20 ms says more about the disk than
//! about the way. But a pair in which one rate was more than twice the other counts for [`CLEAR`] points, so that a way
//! that does great harm is left after two or three epochs.
//!
//! # Steps
//! 1. A trial, as above. An epoch ends early once it has lasted longer than the other's before it and goes at less than
//!    half of its rate: the slower the way, the less is tried of it.
//! 2. The winner is held for [`HOLD`] epochs; for twice as many after each trial that has changed nothing, up to
//!    [`HOLD_MAX`]. Then the next trial.
//!
//! Only flushes that others waited for are counted: a worker alone waits in neither way, and its rate says nothing. An
//! epoch begins anew with such a flush, since there may have been a pause before it. So with two clients, of whose flushes
//! one in three has no waiter, hardly an epoch is ever whole, and no trial ends.
//!
//! Invariant: one worker at a time calls [`Trial::flushed`], and acquires what the one before has stored, because it owns
//! the log's device. `poll` and `waited` are hints that carry nothing else: a worker that reads an old one waits in the
//! other way once more, and a flush whose waiter is not seen is not counted.
//!
//! Origin: ours, after the interleaved runs by which `clearway bench` compares.

use std::sync::atomic::Ordering::Relaxed;

use clearway_machine::{AtomicWord, Machine, Padded};

/// Flushes in an epoch.
const EPOCH: u64 = 32;

/// The challenger takes over with so many points.
const WINS: u64 = 11;

/// The challenger gives up if the incumbent has so many.
const LOSSES: u64 = 6;

/// Points for a rate of more than twice the other.
const CLEAR: u64 = 3;

/// Epochs between a trial that has changed the way and the next trial.
const HOLD: u64 = 512;

/// Most epochs between two trials.
const HOLD_MAX: u64 = 4096;

/// How a worker waits for a flush that another makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It sleeps until it is woken.
    Sleep,
    /// It looks again and again.
    Poll,
}

impl Way {
    fn other(self) -> Self {
        match self {
            Self::Sleep => Self::Poll,
            Self::Poll => Self::Sleep,
        }
    }
}

pub(super) struct Trial<M: Machine> {
    shown: Padded<Shown<M>>,
    owned: Padded<Owned<M>>,
}

struct Shown<M: Machine> {
    /// 1: poll now.
    poll: M::U32,
    /// 1: a worker has waited since the last flush.
    waited: M::U32,
}

/// Read and stored by the owner of the device alone.
struct Owned<M: Machine> {
    /// 1: the challenger's epoch.
    challenging: M::U32,
    /// Flushes of this epoch so far.
    flushes: M::U64,
    /// Where and when it began: bytes of log, nanoseconds.
    begun: Stretch<M>,
    /// What the last epoch brought.
    last: Stretch<M>,
    /// Points of this trial for the challenger, and for the incumbent.
    won: M::U64,
    lost: M::U64,
    /// Epochs until the next trial, and how many there were after the last.
    hold: M::U64,
    last_hold: M::U64,
}

/// A position in the log and in time, or a distance.
struct Stretch<M: Machine> {
    bytes: M::U64,
    ns: M::U64,
}

impl<M: Machine> Stretch<M> {
    fn new() -> Self {
        Self {
            bytes: M::U64::new(0),
            ns: M::U64::new(0),
        }
    }

    fn set(&self, bytes: u64, ns: u64) {
        self.bytes.store(bytes, Relaxed);
        self.ns.store(ns, Relaxed);
    }

    fn get(&self) -> (u64, u64) {
        (self.bytes.load(Relaxed), self.ns.load(Relaxed))
    }
}

impl<M: Machine> Trial<M> {
    /// Begins with sleeping, which does no great harm anywhere, and a trial.
    pub(super) fn new() -> Self {
        let zero = || M::U64::new(0);
        Self {
            shown: Padded(Shown {
                poll: M::U32::new(0),
                waited: M::U32::new(0),
            }),
            owned: Padded(Owned {
                challenging: M::U32::new(0),
                flushes: zero(),
                begun: Stretch::new(),
                last: Stretch::new(),
                won: zero(),
                lost: zero(),
                hold: zero(),
                last_hold: zero(),
            }),
        }
    }

    /// How to wait.
    pub(super) fn way(&self) -> Way {
        if self.shown.poll.load(Relaxed) == 1 {
            Way::Poll
        } else {
            Way::Sleep
        }
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

    /// The caller, which owns the device, has made the log durable up to `target`, at `now_ns`.
    pub(super) fn flushed(&self, target: u64, now_ns: u64) {
        if M::EXPLORED {
            // The clock of a checker says nothing, and nothing here orders anything.
            return;
        }
        if self.shown.waited.load(Relaxed) == 0 {
            // The time since the last flush is not time in which workers waited.
            self.begin_epoch(target, now_ns);
            return;
        }
        self.shown.waited.store(0, Relaxed);
        let owned = &self.owned;
        let (begun_at, begun_ns) = owned.begun.get();
        let (bytes, ns) = (target.saturating_sub(begun_at), now_ns.saturating_sub(begun_ns));
        let flushes = owned.flushes.load(Relaxed) + 1;
        owned.flushes.store(flushes, Relaxed);
        if flushes >= EPOCH || self.lags(bytes, ns) {
            self.end_epoch(bytes, ns);
            self.begin_epoch(target, now_ns);
        }
    }

    /// Whether this epoch of a trial, which has brought so much, is far behind the last.
    fn lags(&self, bytes: u64, ns: u64) -> bool {
        let last = self.owned.last.get();
        self.owned.hold.load(Relaxed) == 0 && ns > last.1 && faster(last, doubled((bytes, ns)))
    }

    fn begin_epoch(&self, target: u64, now_ns: u64) {
        self.owned.flushes.store(0, Relaxed);
        self.owned.begun.set(target, now_ns);
    }

    fn end_epoch(&self, bytes: u64, ns: u64) {
        let owned = &self.owned;
        let (this, last) = ((bytes, ns), owned.last.get());
        owned.last.set(bytes, ns);
        if owned.challenging.load(Relaxed) == 0 {
            match owned.hold.load(Relaxed) {
                0 => self.turn(1),
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
        points.store(points.load(Relaxed) + if clear { CLEAR } else { 1 }, Relaxed);
        if owned.won.load(Relaxed) >= WINS {
            // The challenger's way goes on.
            owned.challenging.store(0, Relaxed);
            self.end_trial(HOLD);
            return;
        }
        self.turn(0);
        if owned.lost.load(Relaxed) >= LOSSES {
            self.end_trial((2 * owned.last_hold.load(Relaxed)).clamp(HOLD, HOLD_MAX));
        }
    }

    /// The next epoch is the other's.
    fn turn(&self, challenging: u32) {
        self.owned.challenging.store(challenging, Relaxed);
        let other = self.way().other();
        self.shown.poll.store(u32::from(other == Way::Poll), Relaxed);
    }

    fn end_trial(&self, hold: u64) {
        self.owned.hold.store(hold, Relaxed);
        self.owned.last_hold.store(hold, Relaxed);
        self.owned.won.store(0, Relaxed);
        self.owned.lost.store(0, Relaxed);
    }
}

/// Twice the rate.
fn doubled((bytes, ns): (u64, u64)) -> (u64, u64) {
    (bytes.saturating_mul(2), ns)
}

/// Whether `one`, bytes and nanoseconds, has the higher rate.
fn faster(one: (u64, u64), other: (u64, u64)) -> bool {
    u128::from(one.0) * u128::from(other.1) > u128::from(other.0) * u128::from(one.1)
}

#[cfg(test)]
mod tests {
    use clearway_machine::Native;

    use super::*;

    /// Pairs in the longest trial.
    const TRIAL: u64 = WINS + LOSSES;

    /// A log whose rate depends on the way that is gone, in bytes a microsecond.
    struct Log {
        trial: Trial<Native>,
        durable: u64,
        now_ns: u64,
        flushes: [u64; 2],
    }

    impl Log {
        fn new() -> Self {
            Self {
                trial: Trial::new(),
                durable: 0,
                now_ns: 0,
                flushes: [0; 2],
            }
        }

        /// Flushes `count` times, of `bytes` each; a flush takes `sleep_us` or `poll_us`, and sometimes a hundred times
        /// as long.
        fn flush(&mut self, count: u64, sleep_us: u64, poll_us: u64) {
            for flush in 0..count {
                self.trial.waits();
                let way = self.trial.way();
                self.flushes[way as usize] += 1;
                let us = if way == Way::Poll { poll_us } else { sleep_us };
                let stalls = flush % 997 == 500;
                self.durable += 1_000;
                self.now_ns += 1_000 * us * if stalls { 100 } else { 1 };
                self.trial.flushed(self.durable, self.now_ns);
            }
        }
    }

    #[test]
    fn the_faster_way_is_held() {
        for (sleep_us, poll_us, faster) in [(100, 70, Way::Poll), (100, 300, Way::Sleep)] {
            let mut log = Log::new();
            log.flush(EPOCH * 2 * TRIAL, sleep_us, poll_us);
            assert_eq!(log.trial.way(), faster);
            log.flush(EPOCH * 80_000, sleep_us, poll_us);
            let slower = log.flushes[faster.other() as usize];
            assert!(slower * 150 < log.flushes[faster as usize], "{:?}", log.flushes);
        }
    }

    /// A machine that becomes busy, or free, is noticed.
    #[test]
    fn a_change_is_noticed() {
        let mut log = Log::new();
        for (sleep_us, poll_us, faster) in
            [(100, 70, Way::Poll), (100, 300, Way::Sleep), (100, 70, Way::Poll)]
        {
            log.flush(EPOCH * 2 * (HOLD_MAX + 2 * TRIAL), sleep_us, poll_us);
            log.flushes = [0; 2];
            log.flush(EPOCH * HOLD, sleep_us, poll_us);
            assert!(log.flushes[faster as usize] > log.flushes[faster.other() as usize]);
        }
    }

    /// A trial of a way that is a hundred times slower ends after two epochs, each of a flush.
    #[test]
    fn a_way_that_does_great_harm_is_left_soon() {
        let mut log = Log::new();
        log.flush(EPOCH * 8, 100, 10_000);
        assert_eq!(log.trial.way(), Way::Sleep);
        assert_eq!(log.flushes[Way::Poll as usize], LOSSES / CLEAR);
    }

    /// Flushes that no other worker waited for are no trial.
    #[test]
    fn without_waiters_there_is_no_trial() {
        let trial = Trial::<Native>::new();
        for flush in 0..10_000 {
            trial.flushed(flush * 1_000, flush * 50_000);
            assert_eq!(trial.way(), Way::Sleep);
        }
        assert_eq!(trial.owned.last.get(), (0, 0));
    }
}
