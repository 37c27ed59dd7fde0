//! The cells that a latch of ours loses (P5).

use crate::measure::Figures;
use crate::schedule::Cell;

/// A figure that a cell may be lost by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Acquisitions a second.
    Throughput,
    /// A reader's 99th percentile.
    ReadP99,
    /// A writer's 99th percentile.
    WriteP99,
}

impl Measure {
    const ALL: [Self; 3] = [Self::Throughput, Self::ReadP99, Self::WriteP99];

    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::ReadP99 => "read p99",
            Self::WriteP99 => "write p99",
        }
    }

    /// The figure: acquisitions a second, or nanoseconds.
    pub fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Self::Throughput => Some(figures.rate),
            Self::ReadP99 => figures.read.map(|tail| tail.p99_ns as f64),
            Self::WriteP99 => figures.write.map(|tail| tail.p99_ns as f64),
        }
    }

    /// True if another lock's figure is `ratio` times ours, and that is a loss.
    fn is_lost(self, ratio: f64) -> bool {
        match self {
            Self::Throughput => ratio > 1.1,
            Self::ReadP99 | Self::WriteP99 => ratio < 0.5,
        }
    }
}

/// A figure of one of our cells that another lock is better by.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss {
    /// Our lock.
    pub ours: &'static str,
    /// The best of the other locks.
    pub other: &'static str,
    /// The figure.
    pub measure: Measure,
    /// Our median.
    pub our_median: f64,
    /// The other's median.
    pub other_median: f64,
    /// The median ratio of the other's to ours.
    pub ratio: f64,
    /// Rounds in which the ratio is a loss too, and all.
    pub rounds: [usize; 2],
}

impl Loss {
    /// True if three quarters of the rounds show it. With several other locks the best of some noisy medians is often a loss
    /// that the rounds do not share.
    pub fn is_steady(&self) -> bool {
        4 * self.rounds[0] >= 3 * self.rounds[1]
    }
}

/// The losses of all cells of ours at a point: for each figure the lock that wins in most rounds, and of those the one that
/// wins by most.
///
/// A mutex of ours is compared with mutexes, and any other latch of ours with locks that have readers.
pub fn losses(cells: &[Cell]) -> Vec<Loss> {
    let mut losses = Vec::new();
    for ours in cells.iter().filter(|cell| cell.subject.is_ours) {
        let others = cells
            .iter()
            .filter(|cell| !cell.subject.is_ours && cell.subject.has_readers == ours.subject.has_readers);
        for measure in Measure::ALL {
            let lost = others.clone().filter_map(|other| loss(ours, other, measure));
            let gain = |loss: &Loss| loss.ratio.max(1.0 / loss.ratio);
            losses.extend(lost.max_by(|a, b| {
                let by_rounds = a.rounds[0].cmp(&b.rounds[0]);
                by_rounds.then_with(|| gain(a).total_cmp(&gain(b)))
            }));
        }
    }
    losses
}

fn loss(ours: &Cell, other: &Cell, measure: Measure) -> Option<Loss> {
    let figure = |figures: &Figures| measure.of(figures);
    let ratio = other.ratio_to(ours, figure)?;
    let ratios = other.ratios_to(ours, figure);
    let lost = ratios.iter().filter(|ratio| measure.is_lost(**ratio)).count();
    measure.is_lost(ratio).then_some(Loss {
        ours: ours.subject.name,
        other: other.subject.name,
        measure,
        our_median: ours.median(figure)?,
        other_median: other.median(figure)?,
        ratio,
        rounds: [lost, ratios.len()],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::tests::cell;

    #[test]
    fn a_tenth_of_the_throughput_and_half_of_the_percentile_are_kept() {
        let ours = cell("ours", true, &[(100.0, 100); 3]);
        let level = cell("level", false, &[(110.0, 50), (110.0, 50), (500.0, 1)]);
        assert_eq!(losses(&[ours.clone(), level]), []);
        let quicker = cell("quicker", false, &[(111.0, 50), (111.0, 50), (50.0, 50)]);
        let lost = losses(&[ours.clone(), quicker]);
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].measure, lost[0].rounds), (Measure::Throughput, [2, 3]));
        assert!(!lost[0].is_steady());
        let steadier = cell("steadier", false, &[(90.0, 49); 3]);
        let lost = losses(&[ours, steadier]);
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].measure, lost[0].rounds), (Measure::WriteP99, [3, 3]));
        assert!(lost[0].is_steady());
        assert_eq!((lost[0].our_median, lost[0].other_median), (100.0, 49.0));
    }

    #[test]
    fn the_best_other_lock_of_the_same_kind_is_named() {
        let mut mutex = cell("mutex", false, &[(900.0, 100)]);
        mutex.subject.has_readers = false;
        let cells = [
            cell("ours", true, &[(100.0, 100)]),
            cell("better", false, &[(200.0, 100)]),
            cell("best", false, &[(300.0, 100)]),
            cell("ours-too", true, &[(400.0, 100)]),
            mutex,
        ];
        let lost = losses(&cells);
        assert_eq!(
            lost.iter()
                .map(|loss| (loss.ours, loss.other))
                .collect::<Vec<_>>(),
            [("ours", "best")]
        );
    }

    #[test]
    fn a_lock_that_wins_in_more_rounds_is_named_before_one_that_wins_by_more() {
        let cells = [
            cell("ours", true, &[(100.0, 100); 4]),
            cell("often", false, &[(120.0, 100); 4]),
            cell(
                "far",
                false,
                &[(90.0, 100), (500.0, 100), (500.0, 100), (500.0, 100)],
            ),
        ];
        let lost = losses(&cells);
        assert_eq!((lost.len(), lost[0].other, lost[0].rounds), (1, "often", [4, 4]));
        let lost = losses(&[cells[0].clone(), cells[2].clone()]);
        assert_eq!(
            (lost[0].other, lost[0].is_steady()),
            ("far", true),
            "three of four"
        );
    }
}
