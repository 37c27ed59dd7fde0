//! The tables a latch bench prints.

use super::{LatchBenchResult, LatchCell, ModeWait};
use crate::layout::{latency, lines};
use crate::stats::is_unsteady;

/// Operations a second with three digits and a unit.
pub(crate) fn rate(operations: f64) -> String {
    match operations {
        few if few < 1e3 => format!("{few:.0}"),
        few if few < 1e6 => format!("{:.1} k", few / 1e3),
        many if many < 1e7 => format!("{:.2} M", many / 1e6),
        many => format!("{:.1} M", many / 1e6),
    }
}

/// A section's length in words.
pub(crate) fn section(section_ns: u64) -> String {
    match section_ns {
        0 => "empty".to_owned(),
        ns if ns < 1_000 => format!("{ns} ns"),
        ns => format!("{} µs", ns as f64 / 1e3),
    }
}

fn throughput(cell: &LatchCell) -> String {
    let ratio = match cell.ratio.zip(cell.ratio_spread) {
        None => String::new(),
        Some((ratio, spread)) if is_unsteady(ratio, spread) => " unsteady".to_owned(),
        Some((ratio, _)) => format!(" {ratio:.2}×"),
    };
    format!("{}{ratio}", rate(cell.operations))
}

/// A time in nanoseconds with a unit that suits it.
pub(super) fn time(ns: u64) -> String {
    if ns < 1_000 {
        return format!("{ns} ns");
    }
    latency(ns as f64 / 1e3)
}

/// The most rows of a table of tails that is printed unasked.
const TAIL_ROWS: usize = 100;

/// Throughput of every point, then the tail of the waits.
///
/// The tail is a row for each latch at each point. If it would be longer than a hundred rows and is not `tail_asked` for, the
/// writers' 99.9th percentile and the slowest thread's share come instead, with a column for each share of readers.
pub fn text(result: &LatchBenchResult, tail_asked: bool) -> String {
    let mut text = String::new();
    text.push_str(
        "Operations a second, all threads together, and the ratio to parking_lot's lock of the same kind in the same rounds, by \
         the share of readers (unsteady: the rounds' ratios are so far apart that their median says nothing):\n\n",
    );
    text.push_str(&matrix(result, throughput));
    if tail_asked || result.cells.len() <= TAIL_ROWS {
        text.push_str(
            "\nTime to acquire, the slowest thread's acquisitions as a share of the fastest's, and CPUs kept busy:\n\n",
        );
        text.push_str(&tail(result));
        return text;
    }
    text.push_str(
        "\n99.9th percentile of a writer's wait (--tail prints all percentiles of both modes):\n\n",
    );
    text.push_str(&matrix(result, |cell| {
        cell.write
            .as_ref()
            .map_or_else(|| "–".to_owned(), |wait| time(wait.p999_ns))
    }));
    text.push_str("\nThe slowest thread's acquisitions as a share of the fastest's:\n\n");
    text.push_str(&matrix(result, |cell| format!("{:.2}", cell.slowest_to_fastest)));
    text
}

/// A row per cell: both modes' percentiles.
fn tail(result: &LatchBenchResult) -> String {
    let percentiles = ["p50", "p99", "p99.9", "max"];
    let heads = ["section", "threads", "reads", "latch"]
        .map(str::to_owned)
        .into_iter();
    let of = |mode: &'static str| percentiles.map(|percentile| format!("{mode} {percentile}"));
    let mut rows = vec![
        heads
            .chain(of("read"))
            .chain(of("write"))
            .chain(["slowest".to_owned(), "CPUs".to_owned()])
            .collect::<Vec<_>>(),
    ];
    let times = |wait: &Option<ModeWait>| match wait {
        Some(wait) => wait.tail().map(|(_, ns)| time(ns)),
        None => percentiles.map(|_| "–".to_owned()),
    };
    for cell in &result.cells {
        let point = [
            section(cell.section_ns),
            cell.threads.to_string(),
            format!("{} %", cell.read_share),
            cell.latch.clone(),
        ];
        rows.push(
            point
                .into_iter()
                .chain(times(&cell.read))
                .chain(times(&cell.write))
                .chain([
                    format!("{:.2}", cell.slowest_to_fastest),
                    format!("{:.2}", cell.cpus),
                ])
                .collect(),
        );
    }
    let right: Vec<bool> = (0..rows[0].len())
        .map(|column| column != 0 && column != 3)
        .collect();
    lines(&rows, &right)
}

/// A row per latch and number of threads, a column per share of readers.
fn matrix(result: &LatchBenchResult, entry: impl Fn(&LatchCell) -> String) -> String {
    let asked = &result.parameters;
    let heads = ["section", "threads", "latch", "bytes"];
    let mut rows = vec![
        heads
            .into_iter()
            .map(str::to_owned)
            .chain(asked.read_shares.iter().map(|share| format!("{share} %")))
            .collect::<Vec<_>>(),
    ];
    for &section_ns in &asked.sections_ns {
        for &threads in &asked.threads {
            for latch in &asked.latches {
                let cells: Vec<Option<&LatchCell>> = asked
                    .read_shares
                    .iter()
                    .map(|share| result.cell(section_ns, *share, threads, latch))
                    .collect();
                let Some(bytes) = cells.iter().flatten().next().map(|cell| cell.bytes) else {
                    continue;
                };
                let mut row = vec![
                    section(section_ns),
                    threads.to_string(),
                    latch.clone(),
                    bytes.to_string(),
                ];
                row.extend(
                    cells
                        .into_iter()
                        .map(|cell| cell.map_or_else(String::new, &entry)),
                );
                rows.push(row);
            }
        }
    }
    let right: Vec<bool> = (0..rows[0].len()).map(|column| column > 2).collect();
    lines(&rows, &right)
}
