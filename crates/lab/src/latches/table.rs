//! The tables a latch bench prints.

use super::{LatchBenchResult, LatchCell};
use crate::table::{latency, lines};

/// Operations a second with three digits and a unit.
pub(super) fn rate(operations: f64) -> String {
    match operations {
        few if few < 1e3 => format!("{few:.0}"),
        few if few < 1e6 => format!("{:.1} k", few / 1e3),
        many if many < 1e7 => format!("{:.2} M", many / 1e6),
        many => format!("{:.1} M", many / 1e6),
    }
}

/// A section's length in words.
pub(super) fn section(section_ns: u64) -> String {
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

/// Throughput of every point, then what writers waited, then sizes.
pub fn text(result: &LatchBenchResult) -> String {
    let mut text = String::new();
    text.push_str(
        "Operations a second, all threads together, and the ratio to parking_lot's in the same rounds:\n\n",
    );
    text.push_str(&matrix(result, throughput));
    text.push_str("\n99th percentile of a writer's wait:\n\n");
    text.push_str(&matrix(result, writers_p99));
    text.push_str("\nBytes without data: ");
    let sizes = result.parameters.latches.iter().filter_map(|name| {
        let cell = result.cells.iter().find(|cell| cell.latch == *name)?;
        Some(format!("{name} {}", cell.bytes))
    });
    text.push_str(&sizes.collect::<Vec<_>>().join(", "));
    text.push('\n');
    text
}

/// A row per point, a column per latch.
fn matrix(result: &LatchBenchResult, entry: impl Fn(&LatchCell) -> String) -> String {
    let asked = &result.parameters;
    let mut rows = vec![
        ["section", "threads", "reads"]
            .into_iter()
            .map(str::to_owned)
            .chain(asked.latches.iter().cloned())
            .collect::<Vec<_>>(),
    ];
    for &section_ns in &asked.sections_ns {
        for &threads in &asked.threads {
            for &share in &asked.read_shares {
                let mut row = vec![section(section_ns), threads.to_string(), format!("{share} %")];
                row.extend(asked.latches.iter().map(|latch| {
                    result
                        .cell(section_ns, share, threads, latch)
                        .map_or_else(String::new, &entry)
                }));
                rows.push(row);
            }
        }
    }
    let right: Vec<bool> = (0..rows[0].len()).map(|column| column > 0).collect();
    lines(&rows, &right)
}
