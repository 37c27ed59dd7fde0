//! The order of measurements (P1).

use crate::measure::{Figures, NotExcluded, Point};

/// A lock that can be measured.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// Its name.
    pub name: &'static str,
    /// True if it has a mode for readers; one that has not is measured without reads alone.
    pub has_readers: bool,
    /// True if it is Clearway's.
    pub is_ours: bool,
    /// [`measure`](crate::measure::measure) of its type.
    pub measure: fn(&Point) -> Result<Figures, NotExcluded>,
}

/// A lock at a point.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The lock.
    pub subject: Subject,
    /// A measurement of each round.
    pub rounds: Vec<Figures>,
}

/// A subject did not exclude.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {cause}")]
pub struct Failed {
    /// Its name.
    pub name: &'static str,
    /// The cause.
    pub cause: NotExcluded,
}

/// Measures each subject that has the point, `rounds` times, in an order that turns by one from round to round.
///
/// # Errors
/// A subject did not exclude.
pub fn measure_all(subjects: &[Subject], point: &Point, rounds: usize) -> Result<Vec<Cell>, Failed> {
    let admitted = subjects
        .iter()
        .filter(|subject| subject.has_readers || point.reads_percent == 0);
    let mut cells: Vec<Cell> = admitted
        .map(|&subject| Cell {
            subject,
            rounds: Vec::new(),
        })
        .collect();
    for round in 0..rounds {
        for step in 0..cells.len() {
            let place = (round + step) % cells.len();
            let cell = &mut cells[place];
            let seed = point.seed.wrapping_add(1_000 * round as u64);
            let figures = (cell.subject.measure)(&Point { seed, ..*point }).map_err(|cause| Failed {
                name: cell.subject.name,
                cause,
            })?;
            cell.rounds.push(figures);
        }
    }
    Ok(cells)
}

impl Cell {
    /// The median of a figure over the rounds that have it.
    pub fn median(&self, figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        median(self.rounds.iter().filter_map(figure).collect())
    }

    /// The median of the rounds' ratios of a figure to that of `base`.
    pub fn ratio_to(&self, base: &Self, figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
        median(self.ratios_to(base, figure))
    }

    /// The rounds' ratios of a figure to that of `base`, of the rounds in which both have it.
    pub fn ratios_to(&self, base: &Self, figure: impl Fn(&Figures) -> Option<f64>) -> Vec<f64> {
        let rounds = self.rounds.iter().zip(&base.rounds);
        rounds
            .filter_map(|(ours, base)| Some(figure(ours)? / figure(base)?))
            .collect()
    }
}

/// The middle value, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some((values[middle - 1] + upper) / 2.0)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::measure::Tail;
    use crate::section::Section;

    /// A cell with these rates and a writer's 99th percentile each.
    pub(crate) fn cell(name: &'static str, is_ours: bool, rounds: &[(f64, u64)]) -> Cell {
        let figures = |&(rate, p99_ns): &(f64, u64)| Figures {
            rate,
            cpu_ns: 1e9 / rate,
            read: None,
            write: Some(Tail {
                p99_ns,
                p999_ns: 10 * p99_ns,
            }),
        };
        Cell {
            subject: Subject {
                name,
                has_readers: true,
                is_ours,
                measure: |_| unreachable!("the cell is made up"),
            },
            rounds: rounds.iter().map(figures).collect(),
        }
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let ours = cell("ours", true, &[(10.0, 1), (100.0, 1), (1_000.0, 1)]);
        let other = cell("other", false, &[(20.0, 1), (200.0, 1), (1_000.0, 1)]);
        let rate = |figures: &Figures| Some(figures.rate);
        assert_eq!(other.ratios_to(&ours, rate), [2.0, 2.0, 1.0]);
        assert_eq!(other.ratio_to(&ours, rate), Some(2.0));
        assert_eq!(ours.median(rate), Some(100.0));
        assert_eq!(
            ours.median(|figures| figures.read.map(|tail| tail.p99_ns as f64)),
            None
        );
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    /// The questions to the two subjects below, in their order.
    static ASKED: Mutex<Vec<(&str, u64)>> = Mutex::new(Vec::new());

    fn asked(name: &'static str, point: &Point) -> Result<Figures, NotExcluded> {
        ASKED.lock().unwrap().push((name, point.seed));
        Ok(cell("", true, &[(1.0, 1)]).rounds[0])
    }

    #[test]
    fn the_order_turns_and_a_mutex_has_no_point_with_reads() {
        let subject = |name, has_readers, measure| Subject {
            name,
            has_readers,
            is_ours: true,
            measure,
        };
        let subjects = [
            subject("rwlock", true, |point| asked("rwlock", point)),
            subject("mutex", false, |point| asked("mutex", point)),
        ];
        let mut point = Point {
            threads: 1,
            section: Section::EMPTY,
            reads_percent: 0,
            duration: Duration::ZERO,
            seed: 5,
        };
        assert_eq!(measure_all(&subjects, &point, 2).unwrap().len(), 2);
        point.reads_percent = 50;
        assert_eq!(measure_all(&subjects, &point, 1).unwrap().len(), 1);
        assert_eq!(
            *ASKED.lock().unwrap(),
            [
                ("rwlock", 5),
                ("mutex", 5),
                ("mutex", 1_005),
                ("rwlock", 1_005),
                ("rwlock", 5)
            ]
        );
    }
}
