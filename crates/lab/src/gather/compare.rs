//! Two results of the same kind side by side.

use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use crate::error::{LabError, Result};
use crate::layout::{grouped, latency};
use crate::report::{escaped, page};
use crate::result::write_files;
use crate::simulate::{Spread, aligned};

/// The name of a point's rate in a kind of result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Simulation,
    Bench,
    Latches,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Kind::Simulation => "an experiment",
            Kind::Bench => "a bench",
            Kind::Latches => "a bench of latches",
        }
    }
}

/// A point: its name, its rate a second, of a simulation the lowest and highest of the seeds, and its 99th percentile in µs.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    name: String,
    rate: f64,
    range: Option<(f64, f64)>,
    p99_us: Option<f64>,
}

/// Two results.
#[derive(Debug)]
pub struct Comparison {
    kind: Kind,
    names: [String; 2],
    /// Points in the order of the first result, and then those that only the second has.
    rows: Vec<(String, Option<Figure>, Option<Figure>)>,
}

#[derive(Deserialize)]
struct SimulatedCells {
    cells: Vec<SimulatedCell>,
}

#[derive(Deserialize)]
struct SimulatedCell {
    clients: usize,
    variant: String,
    tps: Spread,
    p99_us: Spread,
}

#[derive(Deserialize)]
struct Cells {
    cells: Vec<BenchCell>,
}

#[derive(Deserialize)]
struct BenchCell {
    workload: String,
    clients: usize,
    variant: String,
    tps: f64,
    p99_us: f64,
}

#[derive(Deserialize)]
struct LatchCells {
    cells: Vec<LatchCell>,
}

#[derive(Deserialize)]
struct LatchCell {
    latch: String,
    threads: usize,
    section_ns: u64,
    read_share: f64,
    operations: f64,
}

/// True if the seeds of two points overlap, so that they have no order; points that are equal are told by their ratio.
fn seeds_overlap(a: &Figure, b: &Figure) -> bool {
    match (a.range, b.range) {
        (Some(a), Some(b)) => a != b && a.0 < a.1 && b.0 < b.1 && a.0 <= b.1 && b.0 <= a.1,
        _ => false,
    }
}

/// The result in `directory`: `result.json`, or else `latches.json`.
fn figures(directory: &Path) -> Result<(Kind, Vec<Figure>)> {
    let path = directory.join("result.json");
    let latches = directory.join("latches.json");
    if !path.exists() && latches.exists() {
        let cells: LatchCells = super::read(&latches)?;
        let figure = |cell: LatchCell| Figure {
            name: format!(
                "{}, {} threads, {} ns, {} % reads",
                cell.latch, cell.threads, cell.section_ns, cell.read_share
            ),
            rate: cell.operations,
            range: None,
            p99_us: None,
        };
        return Ok((Kind::Latches, cells.cells.into_iter().map(figure).collect()));
    }
    if super::is_simulation(directory)? {
        let cells: SimulatedCells = super::read(&path)?;
        let figure = |cell: SimulatedCell| Figure {
            name: format!("{} clients, {}", cell.clients, cell.variant),
            rate: cell.tps.median,
            range: Some((cell.tps.low, cell.tps.high)),
            p99_us: Some(cell.p99_us.median),
        };
        return Ok((Kind::Simulation, cells.cells.into_iter().map(figure).collect()));
    }
    let cells: Cells = super::read(&path)?;
    let figure = |cell: BenchCell| Figure {
        name: format!("{}, {} clients, {}", cell.workload, cell.clients, cell.variant),
        rate: cell.tps,
        range: None,
        p99_us: Some(cell.p99_us),
    };
    Ok((Kind::Bench, cells.cells.into_iter().map(figure).collect()))
}

/// Sets the results in two directories side by side.
///
/// # Errors
/// A directory without a result, and results of different kinds.
pub fn compare(a: &Path, b: &Path) -> Result<Comparison> {
    let ((kind, of_a), (other, mut of_b)) = (figures(a)?, figures(b)?);
    if kind != other {
        return Err(LabError::NotOneResult {
            directory: b.to_owned(),
            why: format!("it is {}, and {} is {}", other.name(), a.display(), kind.name()),
        });
    }
    let mut rows = Vec::new();
    for figure in of_a {
        let place = of_b.iter().position(|other| other.name == figure.name);
        let other = place.map(|place| of_b.remove(place));
        rows.push((figure.name.clone(), Some(figure), other));
    }
    rows.extend(
        of_b.into_iter()
            .map(|figure| (figure.name.clone(), None, Some(figure))),
    );
    Ok(Comparison {
        kind,
        names: [a.display().to_string(), b.display().to_string()],
        rows,
    })
}

impl Comparison {
    /// Title line and rows: a point, both rates, their ratio, both percentiles.
    fn table(&self) -> Vec<Vec<String>> {
        let none = || "–".to_owned();
        let mut table = vec![
            ["point", "A", "B", "B/A", "p99 of A", "p99 of B"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for (name, a, b) in &self.rows {
            let rate =
                |figure: &Option<Figure>| figure.as_ref().map_or_else(none, |figure| grouped(figure.rate));
            let p99 = |figure: &Option<Figure>| {
                let p99_us = figure.as_ref().and_then(|figure| figure.p99_us);
                p99_us.map_or_else(none, latency)
            };
            let ratio = match (a, b) {
                (Some(a), Some(b)) if seeds_overlap(a, b) => "the seeds overlap".to_owned(),
                (Some(a), Some(b)) if a.rate > 0.0 => format!("{:.2}", b.rate / a.rate),
                _ => none(),
            };
            table.push(vec![name.clone(), rate(a), rate(b), ratio, p99(a), p99(b)]);
        }
        table
    }

    /// The table for a terminal.
    pub fn text(&self) -> String {
        let [a, b] = &self.names;
        let about = match self.kind {
            Kind::Simulation => "Simulated rates a second.",
            Kind::Bench | Kind::Latches => {
                "Rates a second. The two were not interleaved: what the machine did meanwhile is in their ratio."
            }
        };
        format!("A: {a}\nB: {b}\n{about}\n\n{}", aligned(&self.table()))
    }

    /// Writes `report.html` into `directory`.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let mut body = "<div class=\"scroll\"><table>\n".to_owned();
        for (number, row) in self.table().iter().enumerate() {
            let tag = if number == 0 { "th" } else { "td" };
            body.push_str("<tr>");
            for (column, text) in row.iter().enumerate() {
                let class = if column == 0 { "" } else { " class=\"r\"" };
                let _ = write!(body, "<{tag}{class}>{}</{tag}>", escaped(text));
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</table></div>\n");
        let [a, b] = &self.names;
        let lead = format!("A is {a}, B is {b}. Rates a second, and 99th percentiles.");
        write_files(
            directory,
            &[("report.html", page("Two results side by side", &lead, &body))],
        )
    }
}
