//! The lag of a follower: the time from when log was sent until the follower has said that it has it.
//!
//! 1. When log is sent, a sample is kept of the position and the time, for each of the three things that a follower says.
//! 2. When it says a position, all samples up to there are taken away; the lag is the age of the last of them.
//! 3. A follower that says nothing new and has no sample left is idle: its lags, which are of some time ago, are forgotten.
//! 4. A reader is told the age of the oldest sample that is left, if that is more: a follower that stands still, or has not
//!    said anything yet, lags more from second to second, although nothing is taken away. One that says what it has written
//!    and never what it has replayed is an archive, which replays nothing and has no lag in that.
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

/// The lags of a follower lately; `None` if it is idle: it has all that it was sent, or does not replay.
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

    /// The lag at the time `now`; `None` is less than any.
    fn at(&self, now: Instant) -> Option<Duration> {
        let oldest = self.sent.front();
        let waiting = oldest.map(|(_, time)| now.saturating_duration_since(*time));
        self.lag.max(waiting)
    }
}

/// The samples of one follower.
#[derive(Debug, Default)]
pub(super) struct LagSamples {
    written: Samples,
    flushed: Samples,
    replayed: Samples,
    is_archive: bool,
}

impl LagSamples {
    /// The log was sent up to `position`.
    pub(super) fn sent(&mut self, position: Lsn, now: Instant) {
        for samples in [&mut self.written, &mut self.flushed, &mut self.replayed] {
            samples.sent(position, now);
        }
    }

    /// The follower says how far it is.
    pub(super) fn said(&mut self, written: Lsn, flushed: Lsn, replayed: Lsn, now: Instant) {
        self.is_archive = replayed == Lsn(0);
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
    }

    /// The lags at the time `now`.
    pub(super) fn at(&self, now: Instant) -> FollowerLags {
        FollowerLags {
            written: self.written.at(now),
            flushed: self.flushed.at(now),
            replayed: self.replayed.at(now).filter(|_| !self.is_archive),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The lags after the follower has said these positions.
    fn said(samples: &mut LagSamples, [written, flushed, replayed]: [u64; 3], now: Instant) -> FollowerLags {
        samples.said(Lsn(written), Lsn(flushed), Lsn(replayed), now);
        samples.at(now)
    }

    #[test]
    fn a_lag_is_the_age_of_what_was_said_last() {
        let (mut samples, start) = (LagSamples::default(), Instant::now());
        samples.sent(Lsn(100), start);
        samples.sent(Lsn(200), start + MS(10));
        let lags = said(&mut samples, [150, 0, 0], start + MS(30));
        assert_eq!(lags.written, Some(MS(30)));
        let lags = said(&mut samples, [200, 200, 0], start + MS(40));
        assert_eq!((lags.written, lags.flushed), (Some(MS(30)), Some(MS(30))));
        // Nothing new: what has no sample left is idle.
        let lags = said(&mut samples, [200, 200, 0], start + MS(50));
        assert_eq!((lags.written, lags.flushed), (None, None));
        let lags = said(&mut samples, [200, 200, 200], start + MS(60));
        assert_eq!(lags.replayed, Some(MS(50)));
    }

    #[test]
    fn a_follower_that_stands_still_lags_more_and_more() {
        let (mut samples, start) = (LagSamples::default(), Instant::now());
        assert_eq!(samples.at(start), FollowerLags::default());
        samples.sent(Lsn(100), start);
        // It has not said anything.
        assert_eq!(samples.at(start + MS(70)).replayed, Some(MS(70)));
        said(&mut samples, [100, 100, 100], start + MS(80));
        assert_eq!(samples.at(start + MS(90)).replayed, Some(MS(80)));
        // It writes, and replays no more.
        samples.sent(Lsn(200), start + MS(100));
        let lags = said(&mut samples, [200, 200, 100], start + MS(110));
        assert_eq!((lags.written, lags.replayed), (Some(MS(10)), Some(MS(80))));
        samples.sent(Lsn(300), start + MS(5_000));
        let lags = said(&mut samples, [300, 300, 100], start + MS(5_010));
        assert_eq!((lags.written, lags.replayed), (Some(MS(10)), Some(MS(4_910))));
        // Without a word from it too.
        assert_eq!(samples.at(start + MS(60_100)).replayed, Some(MS(60_000)));
        let lags = said(&mut samples, [300, 300, 300], start + MS(60_200));
        assert_eq!(lags.replayed, Some(MS(55_200)));
        said(&mut samples, [300, 300, 300], start + MS(60_300));
        assert_eq!(samples.at(start + MS(60_300)), FollowerLags::default());
    }

    #[test]
    fn an_archive_does_not_lag_in_what_it_never_does() {
        let (mut samples, start) = (LagSamples::default(), Instant::now());
        samples.sent(Lsn(100), start);
        let lags = said(&mut samples, [100, 0, 0], start + MS(10));
        assert_eq!((lags.written, lags.replayed), (Some(MS(10)), None));
        assert_eq!(samples.at(start + MS(60_000)).replayed, None);
    }

    #[test]
    fn many_samples_become_coarse() {
        let (mut samples, start) = (LagSamples::default(), Instant::now());
        for number in 1..=2 * SAMPLES_MAX as u64 {
            samples.sent(Lsn(number), start + MS(number));
        }
        assert_eq!(samples.written.sent.len(), SAMPLES_MAX);
        let end = 2 * SAMPLES_MAX as u64;
        let lags = said(&mut samples, [end, 1, 0], start + MS(end + 5));
        assert_eq!((lags.written, lags.flushed), (Some(MS(5)), Some(MS(end + 4))));
    }
}
