//! Matrices of the time that a cache line takes between two CPUs, as public tools write them.
//!
//! | tool | form |
//! | --- | --- |
//! | `core-to-core-latency --csv` | a line a CPU, a comma between two columns; cells of the upper triangle are empty |
//! | `c2clat` | a head line `CPU 0 1 …`, then a line a CPU that begins with its number |
//! | `c2clat -p` | the same cells without numbers, between `$data << EOD` and `EOD` of a plot |
//!
//! Both tools write nanoseconds of one way: half of a round trip.

use super::{Fault, number};

/// Nanoseconds from CPU to CPU.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    /// Numbers of the CPUs, if the tool writes them.
    pub(super) numbers: Option<Vec<usize>>,
    /// By row and column; a cell that the tool leaves empty is `None`, and so is the diagonal.
    cells: Vec<Vec<Option<f64>>>,
}

/// Longer than any transfer of a line: something else was measured, or in another unit.
const NANOSECONDS_MAX: f64 = 100_000.0;

impl Matrix {
    pub(super) fn parse(text: &str) -> Result<Self, Fault> {
        let lines = || (1..).zip(text.lines().map(str::trim));
        let begins = |start: &'static str| lines().find(|(_, line)| line.starts_with(start));
        if let Some((head, _)) = begins("$data") {
            let plotted = lines().skip(head).take_while(|(_, line)| *line != "EOD");
            return Self::of_rows(
                None,
                plotted.map(|(number, line)| (number, line.split_whitespace().collect())),
            );
        }
        if let Some((head, names)) = begins("CPU") {
            let numbers: Option<Vec<usize>> = names
                .split_whitespace()
                .skip(1)
                .map(|name| name.parse().ok())
                .collect();
            let Some(numbers) = numbers else {
                return Err(Fault::new(
                    head,
                    "the head line must be CPU and the numbers of the CPUs".to_owned(),
                ));
            };
            let rows = lines().skip(head).filter(|(_, line)| !line.is_empty());
            let cells = rows.map(|(number, line)| (number, line.split_whitespace().skip(1).collect()));
            return Self::of_rows(Some(numbers), cells);
        }
        // The first row of a triangle is commas alone, and a matrix of one CPU an empty line.
        let rows = lines().filter(|(_, line)| !line.is_empty());
        Self::of_rows(
            None,
            rows.map(|(number, line)| (number, line.split(',').collect())),
        )
    }

    fn of_rows<'a>(
        numbers: Option<Vec<usize>>,
        rows: impl Iterator<Item = (usize, Vec<&'a str>)>,
    ) -> Result<Self, Fault> {
        let rows: Vec<(usize, Vec<&str>)> = rows.collect();
        let count = numbers.as_ref().map_or(rows.len(), Vec::len);
        let last = rows.last().map_or(1, |(line, _)| *line);
        if count < 2 || rows.len() != count {
            return Err(Fault::new(
                last,
                format!(
                    "there are {} rows; a matrix of {count} CPUs has as many, and two at least",
                    rows.len()
                ),
            ));
        }
        let mut cells = Vec::with_capacity(count);
        for (row, (line, texts)) in rows.into_iter().enumerate() {
            if texts.len() != count {
                return Err(Fault::new(
                    line,
                    format!("there are {} columns in the place of {count}", texts.len()),
                ));
            }
            let cell = |(column, text): (usize, &str)| cell(line, column, text, column == row);
            cells.push(
                texts
                    .into_iter()
                    .enumerate()
                    .map(cell)
                    .collect::<Result<_, _>>()?,
            );
        }
        Ok(Self { numbers, cells })
    }

    /// Number of CPUs.
    pub(super) fn cpus(&self) -> usize {
        self.cells.len()
    }

    /// Nanoseconds between two CPUs, by their places: the mean if both directions were measured.
    pub(super) fn between(&self, one: usize, other: usize) -> Option<f64> {
        match (self.cells[one][other], self.cells[other][one]) {
            (Some(there), Some(back)) => Some(f64::midpoint(there, back)),
            (there, back) => there.or(back),
        }
    }
}

fn cell(line: usize, column: usize, text: &str, is_diagonal: bool) -> Result<Option<f64>, Fault> {
    let text = text.trim();
    if is_diagonal || text.is_empty() || text.eq_ignore_ascii_case("nan") {
        return Ok(None);
    }
    let wrong = || {
        Fault::new(
            line,
            format!("column {}: \"{text}\" is no number of nanoseconds", column + 1),
        )
    };
    let nanoseconds = number(text).ok_or_else(wrong)?;
    if nanoseconds > 0.0 && nanoseconds <= NANOSECONDS_MAX {
        Ok(Some(nanoseconds))
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangle_and_a_whole_matrix_are_read() {
        let triangle = Matrix::parse(",,\n7.25,,\n20.5,21,\n").unwrap();
        assert_eq!((triangle.cpus(), &triangle.numbers), (3, &None));
        assert_eq!(triangle.between(0, 1), Some(7.25));
        assert_eq!(triangle.between(1, 2), Some(21.0));
        assert_eq!(triangle.between(2, 2), None);
        let table = Matrix::parse(" CPU    0    4\n   0    0   30\n   4   34    0\n").unwrap();
        assert_eq!(
            (&table.numbers, table.between(0, 1)),
            (&Some(vec![0, 4]), Some(32.0))
        );
        let plot =
            Matrix::parse("reset\nunset key\n$data << EOD\n    0   30\n   34    0\nEOD\nplot '$data'\n")
                .unwrap();
        assert_eq!((plot.cpus(), plot.between(1, 0)), (2, Some(32.0)));
    }

    #[test]
    fn a_fault_has_its_line() {
        for (text, line, hint) in [
            ("", 1, "two at least"),
            (",\n", 1, "two at least"),
            (",,\n1,,\n", 1, "3 columns"),
            (",,\n1,2\n3,4,\n", 2, "2 columns"),
            (",\n-4,\n", 2, "\"-4\""),
            (",\nfast,\n", 2, "column 1"),
            (",\n1e9,\n", 2, "1e9"),
            (",\ninf,\n", 2, "inf"),
            ("CPU a b\n", 1, "head line"),
            ("CPU 0 1\n0 0 3\n", 2, "1 rows"),
        ] {
            let fault = Matrix::parse(text).unwrap_err();
            assert_eq!(fault.line, line, "{text:?}: {}", fault.message);
            assert!(fault.message.contains(hint), "{text:?}: {}", fault.message);
        }
    }
}
