//! Devices: how long an operation takes, as a distribution.

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// A distribution of durations, given by quantiles and linear between them. Integers only: no host's
/// mathematical library has a say.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(f64, f64)>", into = "Vec<(f64, f64)>")]
pub struct Latency {
    /// Probability in millionths, duration in nanoseconds; both ascend.
    points: Vec<(u64, u64)>,
}

/// A distribution that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("quantiles must ascend from [0, shortest µs] to [1, longest µs], and durations with them")]
pub struct LatencyError;

impl TryFrom<Vec<(f64, f64)>> for Latency {
    type Error = LatencyError;

    /// Pairs of a probability and microseconds.
    fn try_from(pairs: Vec<(f64, f64)>) -> Result<Self, LatencyError> {
        let fits = pairs.len() >= 2
            && pairs
                .first()
                .is_some_and(|first| first.0 == 0.0 && first.1 >= 0.0)
            && pairs.last().is_some_and(|last| last.0 == 1.0 && last.1 <= 1e9)
            && pairs
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1);
        if !fits {
            return Err(LatencyError);
        }
        let points = pairs
            .into_iter()
            .map(|(probability, microseconds)| {
                (
                    (probability * 1e6).round() as u64,
                    (microseconds * 1e3).round() as u64,
                )
            })
            .collect();
        Ok(Self { points })
    }
}

impl From<Latency> for Vec<(f64, f64)> {
    fn from(latency: Latency) -> Self {
        latency
            .points
            .iter()
            .map(|(probability, nanoseconds)| (*probability as f64 / 1e6, *nanoseconds as f64 / 1e3))
            .collect()
    }
}

impl Latency {
    /// Always the same.
    pub fn constant(nanoseconds: u64) -> Self {
        Self {
            points: vec![(0, nanoseconds), (1_000_000, nanoseconds)],
        }
    }

    /// Each duration times `factor`, which is not negative.
    pub fn times(&self, factor: f64) -> Self {
        let points = self.points.iter();
        Self {
            points: points
                .map(|(probability, nanoseconds)| {
                    (*probability, (*nanoseconds as f64 * factor).round() as u64)
                })
                .collect(),
        }
    }

    /// Draws a duration in nanoseconds.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let at = random.below(1_000_000);
        let above = self
            .points
            .iter()
            .position(|(probability, _)| *probability > at)
            .unwrap_or(self.points.len() - 1)
            .max(1);
        let ((p0, d0), (p1, d1)) = (self.points[above - 1], self.points[above]);
        d0 + (d1 - d0) * (at - p0) / (p1 - p0)
    }

    /// The mean in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.points
            .windows(2)
            .map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e6 * (pair[0].1 + pair[1].1) as f64 / 2.0)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_the_quantiles() {
        let latency =
            Latency::try_from(vec![(0.0, 10.0), (0.5, 20.0), (0.99, 100.0), (1.0, 1000.0)]).unwrap();
        let mut random = Random::new(7);
        let mut draws: Vec<u64> = (0..100_000).map(|_| latency.draw(&mut random)).collect();
        draws.sort_unstable();
        assert!((19_500..20_500).contains(&draws[50_000]), "{}", draws[50_000]);
        assert!((97_000..103_000).contains(&draws[99_000]), "{}", draws[99_000]);
        assert!(draws[0] >= 10_000 && draws[99_999] <= 1_000_000);
        let mean = draws.iter().sum::<u64>() as f64 / 1e5;
        assert!((mean / latency.mean() - 1.0).abs() < 0.02);
    }

    #[test]
    fn nonsense_is_refused() {
        for pairs in [
            vec![],
            vec![(0.0, 1.0)],
            vec![(0.0, 5.0), (1.0, 4.0)],
            vec![(0.1, 1.0), (1.0, 2.0)],
        ] {
            assert_eq!(Latency::try_from(pairs), Err(LatencyError));
        }
    }
}
