//! The tables of a bench, as lines of Markdown.

use crate::losses::{Loss, Measure};
use crate::measure::{Figures, Tail};
use crate::schedule::Cell;

/// A point as its columns say it.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    /// Length of the section, nanoseconds.
    pub section_ns: u64,
    /// Number of threads.
    pub threads: usize,
    /// Share of reads, in percent.
    pub reads_percent: u32,
}

impl Place {
    fn columns(self) -> String {
        let section = match self.section_ns {
            0 => "empty".to_owned(),
            ns => time(ns as f64),
        };
        format!("| {section} | {} | {} %", self.threads, self.reads_percent)
    }
}

/// The head of a table of cells.
pub const CELLS_HEAD: &str = "\
| section | threads | reads | lock | acquisitions/s | read p99 | p99.9 | write p99 | p99.9 | CPU each |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// The head of a table of losses.
pub const LOSSES_HEAD: &str = "\
| section | threads | reads | ours | figure | ours | best other | its figure | ratio | rounds |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// The line of a cell.
pub fn cell_line(place: Place, cell: &Cell) -> String {
    let percentile = |of: fn(&Figures) -> Option<Tail>, value: fn(Tail) -> u64| {
        let median = cell.median(|figures| of(figures).map(|tail| value(tail) as f64));
        median.map_or_else(|| "–".to_owned(), time)
    };
    let (read, write) = (
        |figures: &Figures| figures.read,
        |figures: &Figures| figures.write,
    );
    let (p99, p999) = (|tail: Tail| tail.p99_ns, |tail: Tail| tail.p999_ns);
    format!(
        "{} | {} | {} | {} | {} | {} | {} | {} |",
        place.columns(),
        cell.subject.name,
        cell.median(|figures| Some(figures.rate))
            .map_or_else(String::new, rate),
        percentile(read, p99),
        percentile(read, p999),
        percentile(write, p99),
        percentile(write, p999),
        cell.median(|figures| Some(figures.cpu_ns))
            .map_or_else(String::new, cpu_time),
    )
}

/// The line of a loss.
pub fn loss_line(place: Place, loss: &Loss) -> String {
    let figure = match loss.measure {
        Measure::Throughput => rate,
        Measure::ReadP99 | Measure::WriteP99 => time,
    };
    format!(
        "{} | {} | {} | {} | {} | {} | {:.2} | {} of {} |",
        place.columns(),
        loss.ours,
        loss.measure.name(),
        figure(loss.our_median),
        loss.other,
        figure(loss.other_median),
        loss.ratio,
        loss.rounds[0],
        loss.rounds[1],
    )
}

/// Acquisitions a second, with three digits.
fn rate(rate: f64) -> String {
    match rate {
        few if few < 1e3 => format!("{few:.0}"),
        few if few < 1e6 => three_digits(few / 1e3, "k"),
        many => three_digits(many / 1e6, "M"),
    }
}

/// A time in nanoseconds, with three digits.
fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => three_digits(ns / 1e3, "µs"),
        ns if ns < 1e9 => three_digits(ns / 1e6, "ms"),
        ns => three_digits(ns / 1e9, "s"),
    }
}

/// As `time`, with a tenth of a nanosecond.
fn cpu_time(ns: f64) -> String {
    if ns < 1e3 {
        three_digits(ns, "ns")
    } else {
        time(ns)
    }
}

fn three_digits(value: f64, unit: &str) -> String {
    let decimals = match value {
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::losses::losses;
    use crate::schedule::tests::cell;

    #[test]
    fn lines_have_the_columns_of_their_heads() {
        let place = Place {
            section_ns: 1_000,
            threads: 16,
            reads_percent: 95,
        };
        let ours = cell("ours", true, &[(1_234_567.0, 40_000)]);
        let line = cell_line(place, &ours);
        assert_eq!(
            line,
            "| 1.00 µs | 16 | 95 % | ours | 1.23 M | – | – | 40.0 µs | 400 µs | 810 ns |"
        );
        let columns = |line: &str| line.matches('|').count();
        assert_eq!(columns(&line), columns(CELLS_HEAD.lines().next().unwrap()));

        let other = cell("other", false, &[(1_300_000.0, 4_000)]);
        let lost = losses(&[ours, other]);
        let line = loss_line(
            Place {
                section_ns: 0,
                ..place
            },
            &lost[0],
        );
        assert_eq!(
            line,
            "| empty | 16 | 95 % | ours | write p99 | 40.0 µs | other | 4.00 µs | 0.10 | 1 of 1 |"
        );
        assert_eq!(columns(&line), columns(LOSSES_HEAD.lines().next().unwrap()));
    }

    #[test]
    fn rates_and_times_have_three_digits_and_a_unit() {
        assert_eq!(
            [12.0, 12_345.0, 1e6, 1.5e8].map(rate),
            ["12", "12.3 k", "1.00 M", "150 M"]
        );
        assert_eq!(
            [7.0, 1_500.0, 33e6, 2e9].map(time),
            ["7 ns", "1.50 µs", "33.0 ms", "2.00 s"]
        );
        assert_eq!(
            [5.25, 33.0, 1_500.0].map(cpu_time),
            ["5.25 ns", "33.0 ns", "1.50 µs"]
        );
    }
}
