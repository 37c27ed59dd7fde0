//! The tables of `simulate here`.

use std::fmt::Write;

use super::{HereCell, HereResult, agrees};
use crate::latches::catalogue::BenchLatch;
use crate::latches::table::{rate, section};
use crate::layout::lines;

/// The result as text: calibration, single lines, every cell, and the summary.
pub fn here_text(result: &HereResult) -> String {
    let mut text = String::from("This host, measured (ns):");
    for (name, nanoseconds) in &result.measured {
        let _ = write!(text, "  {name} {nanoseconds:.1}");
    }
    text.push('\n');
    for (number, placement) in result.placements.iter().enumerate() {
        let _ = writeln!(
            text,
            "  {}: {} ({:.0} % of the time)",
            letter(Some(number)),
            placement.name(),
            placement.share * 100.0
        );
    }
    text.push_str("\nThe bench's loop without a latch (ns a turn):\n\n");
    let mut rows = vec![
        [
            "section",
            "reads",
            "alone",
            "charged outside",
            "inside",
            "speed beside another",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for cost in &result.loops {
        rows.push(vec![
            section(cost.section_ns),
            format!("{} %", cost.read_share),
            format!("{:.1}", cost.alone_ns),
            format!("{:.1}", cost.outside_ns),
            format!("{:.1}", cost.inside_ns),
            cost.sibling_speed
                .map_or_else(|| "–".to_owned(), |speed| format!("{speed:.2}")),
        ]);
    }
    text.push_str(&lines(&rows, &[false, true, true, true, true, true]));
    if !result.lines.is_empty() {
        text.push_str("\nOne line under two threads (ns, both together):\n\n");
        let mut rows = vec![
            ["", "apart", "here", "simulated", "ratio"]
                .map(str::to_owned)
                .to_vec(),
        ];
        for line in &result.lines {
            rows.push(vec![
                line.what.to_owned(),
                letter(Some(line.placement)),
                format!("{:.1}", line.native_ns),
                format!("{:.1}", line.simulated_ns),
                format!("{:.2}", line.simulated_ns / line.native_ns),
            ]);
        }
        text.push_str(&lines(&rows, &[false, false, true, true, true]));
    }
    text.push_str(
        "\nAcquisitions a second here / simulated, and simulated by here, by the share of readers; ! is beyond 30 %:\n\n",
    );
    text.push_str(&cells(result));
    text.push('\n');
    let mut rows = vec![
        ["threads", "apart", "cells", "within 30 %", "median", "worst"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for summary in &result.summaries {
        rows.push(vec![
            summary.threads.to_string(),
            letter(summary.placement),
            summary.cells.to_string(),
            summary.within.to_string(),
            format!("{:.2}", summary.median),
            format!("{:.2}  {}", summary.worst.0, summary.worst.1),
        ]);
    }
    text.push_str(&lines(&rows, &[true, false, true, true, true, false]));
    let _ = writeln!(
        text,
        "\n{} of {} samples were thrown away because the CPUs stood otherwise or ran at another speed afterwards.",
        result.thrown_away.0, result.thrown_away.1
    );
    if result.missing > 0 {
        let _ = writeln!(
            text,
            "{} cells have too few samples: the CPUs stood as they want too seldom. Give it more --time.",
            result.missing
        );
    }
    text
}

fn letter(placement: Option<usize>) -> String {
    placement.map_or_else(
        || "–".to_owned(),
        |number| char::from(b'A' + (number % 26) as u8).to_string(),
    )
}

fn cell(cell: &HereCell) -> String {
    let mark = if agrees(cell.ratio) { " " } else { "!" };
    format!(
        "{} / {} {:.2}{mark}",
        rate(cell.native),
        rate(cell.simulated),
        cell.ratio
    )
}

fn cells(result: &HereResult) -> String {
    let mut shares: Vec<f64> = result.cells.iter().map(|cell| cell.read_share).collect();
    shares.sort_by(f64::total_cmp);
    shares.dedup();
    let mut keys: Vec<(u64, usize, Option<usize>)> = result
        .cells
        .iter()
        .map(|cell| (cell.section_ns, cell.threads, cell.placement))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let mut rows = vec![
        ["section", "threads", "apart", "latch"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows[0].extend(shares.iter().map(|share| format!("{share} %")));
    let latches = BenchLatch::all_simulated();
    for (section_ns, threads, placement) in keys {
        for latch in &latches {
            let of = |share: &f64| {
                result.cells.iter().find(|cell| {
                    (cell.section_ns, cell.threads, cell.placement) == (section_ns, threads, placement)
                        && cell.latch == latch.name
                        && cell.read_share == *share
                })
            };
            if shares.iter().all(|share| of(share).is_none()) {
                continue;
            }
            let mut row = vec![
                section(section_ns),
                threads.to_string(),
                letter(placement),
                latch.name.clone(),
            ];
            row.extend(
                shares
                    .iter()
                    .map(|share| of(share).map_or_else(String::new, cell)),
            );
            rows.push(row);
        }
    }
    let right: Vec<bool> = (0..rows[0].len()).map(|column| column > 3).collect();
    lines(&rows, &right)
}
