//! The tables a latch bench prints.

use super::{LatchBenchResult, LatchCell};
use crate::layout::{latency, lines};

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
    let ratio = cell
        .ratio
        .map_or_else(String::new, |ratio| format!(" {ratio:.2}×"));
    format!("{}{ratio}", rate(cell.operations))
}

fn writers_p99(cell: &LatchCell) -> String {
    match cell.write {
        None => "–".to_owned(),
        Some(wait) if wait.p99_ns < 1_000 => format!("{} ns", wait.p99_ns),
        Some(wait) => latency(wait.p99_ns as f64 / 1e3),
    }
}

/// Throughput of every point, then what writers waited.
pub fn text(result: &LatchBenchResult) -> String {
    let mut text = String::new();
    text.push_str(
        "Operations a second, all threads together, and the ratio to parking_lot's lock of the same kind in the same rounds, by \
         the share of readers:\n\n",
    );
    text.push_str(&matrix(result, throughput));
    text.push_str("\n99th percentile of a writer's wait:\n\n");
    text.push_str(&matrix(result, writers_p99));
    text
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
