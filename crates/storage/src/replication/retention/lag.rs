//! The lag of a follower: the time from when log was sent until the follower has said that it has it.
//!
//! 1. When log is sent, a sample is kept of the position and the time, for each of the three things that a follower says.
//! 2. When it says a position, all samples up to there are taken away; the lag is the age of the last of them.
//! 3. A follower that says nothing new and has no sample left is idle: its lags, which are of some time ago, are forgotten.
//!
//! There are [`SAMPLES_MAX`] samples at most. When there is no room, the newest sample moves on: a follower that is so far
//! behind is measured more coarsely.
//!
//! Origin: PostgreSQL's samples of positions and times.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::page::Lsn;

/// Samples that are kept.
const SAMPLES_MAX: usize = 256;

/// The lags of a follower lately; `None` if it is idle or has not said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FollowerLags {
    /// To write.
    pub written: Option<Duration>,
    /// To make durable.
    pub flushed: Option<Duration>,
    /// To replay.
    pub replayed: Option<Duration>,
}

/// The samples of one of the three.
#[derive(Debug, Default)]
struct Samples {
    sent: VecDeque<(Lsn, Instant)>,
    lag: Option<Duration>,
}

impl Samples {
    fn sent(&mut self, position: Lsn, now: Instant) {
        if self.sent.len() == SAMPLES_MAX {
            self.sent.pop_back();
        }
        self.sent.push_back((position, now));
    }

    /// True if there was something new in it.
    fn said(&mut self, position: Lsn, now: Instant) -> bool {
        let mut last = None;
        while let Some((_, time)) = self.sent.pop_front_if(|(sent, _)| *sent <= position) {
            last = Some(time);
        }
        if let Some(time) = last {
            self.lag = Some(now.saturating_duration_since(time));
        }
        last.is_some()
    }
}

/// The samples of one follower.
#[derive(Debug, Default)]
pub(super) struct LagSamples {
    written: Samples,
    flushed: Samples,
    replayed: Samples,
}

impl LagSamples {
    /// The log was sent up to `position`.
    pub(super) fn sent(&mut self, position: Lsn, now: Instant) {
        for samples in [&mut self.written, &mut self.flushed, &mut self.replayed] {
            samples.sent(position, now);
        }
    }

    /// The follower says how far it is.
    pub(super) fn said(&mut self, written: Lsn, flushed: Lsn, replayed: Lsn, now: Instant) -> FollowerLags {
        let news = [
            self.written.said(written, now),
            self.flushed.said(flushed, now),
            self.replayed.said(replayed, now),
        ];
        for samples in [&mut self.written, &mut self.flushed, &mut self.replayed] {
            if news == [false; 3] && samples.sent.is_empty() {
                samples.lag = None;
            }
        }
        FollowerLags {
            written: self.written.lag,
            flushed: self.flushed.lag,
            replayed: self.replayed.lag,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn a_lag_is_the_age_of_what_was_said_last() {
        let (mut samples, start) = (LagSamples::default(), Instant::now());
        samples.sent(Lsn(100), start);
        samples.sent(Lsn(200), start + MS(10));
        let lags = samples.said(Lsn(150), Lsn(0), Lsn(0), start + MS(30));
        assert_eq!((lags.written, lags.flushed), (Some(MS(30)), None));
        let lags = samples.said(Lsn(200), Lsn(200), Lsn(0), start + MS(40));
        assert_eq!((lags.written, lags.flushed), (Some(MS(30)), Some(MS(30))));
        // Nothing new: what has no sample left is idle, and what never said anything has no lag.
        let lags = samples.said(Lsn(200), Lsn(200), Lsn(0), start + MS(50));
        assert_eq!(lags, FollowerLags::default());
        let lags = samples.said(Lsn(200), Lsn(200), Lsn(150), start + MS(60));
        assert_eq!(lags.replayed, Some(MS(60)));
    }

    #[test]
    fn many_samples_become_coarse() {
        let (mut samples, start) = (LagSamples::default(), Instant::now());
        for number in 1..=2 * SAMPLES_MAX as u64 {
            samples.sent(Lsn(number), start + MS(number));
        }
        assert_eq!(samples.written.sent.len(), SAMPLES_MAX);
        let end = Lsn(2 * SAMPLES_MAX as u64);
        let lags = samples.said(end, Lsn(1), Lsn(0), start + MS(end.0 + 5));
        assert_eq!((lags.written, lags.flushed), (Some(MS(5)), Some(MS(end.0 + 4))));
    }
}
