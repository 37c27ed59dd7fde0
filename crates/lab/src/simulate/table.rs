//! The table of an experiment.

use std::fmt::Write;

use crate::layout::{grouped, latency};
use crate::simulate::run::SimulationResult;

/// The result as text.
pub fn text(result: &SimulationResult) -> String {
    let variants = result.experiment.variants.len();
    let of_standby = result.points.iter().any(|point| point.standby.is_some());
    let mut heading = vec![
        "clients",
        "variant",
        "TPS",
        "to the first",
        "published",
        "shared changes",
        "p50",
        "p99",
    ];
    if of_standby {
        heading.extend(["ended/s", "in snapshots", "readers wait", "replay waits"]);
    }
    let of_replay = result.points.iter().any(|point| point.replay.is_some());
    if of_replay {
        heading[0] = "workers";
        heading.extend(["reader waits", "no stretch", "at meetings"]);
    }
    let of_tpcc = result.points.iter().any(|point| point.tpcc.is_some());
    if of_tpcc {
        heading.extend([
            "NOPM",
            "snapshots",
            "shared",
            "at the latch",
            "in acquire and release",
        ]);
    }
    heading.push("where the CPUs' time went");
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for (number, point) in result.points.iter().enumerate() {
        let base = &result.points[number - number % variants];
        let published = result.experiment.published.as_ref();
        let published = published
            .filter(|published| published.variant == point.variant)
            .and_then(|published| published.tps(point.clients));
        let shares: Vec<String> = point
            .shares
            .iter()
            .filter(|share| share.share >= 0.01)
            .map(|share| format!("{} {:.0}%", share.activity, share.share * 100.0))
            .collect();
        let mut row = vec![
            point.clients.to_string(),
            point.variant.clone(),
            grouped(point.tps),
            if number % variants == 0 {
                "–".to_owned()
            } else {
                format!("{:.2}", point.tps / base.tps)
            },
            published.map_or_else(
                || "–".to_owned(),
                |tps| format!("{} ({:+.0}%)", grouped(tps), (point.tps / tps - 1.0) * 100.0),
            ),
            format!("{:.2}", point.shared_changes),
            latency(point.p50_us),
            latency(point.p99_us),
        ];
        if let Some(standby) = &point.standby {
            row.extend([
                grouped(standby.ended_per_second),
                percent(standby.snapshot_share),
                percent(standby.readers_wait_share),
                percent(standby.replay_waits_share),
            ]);
        }
        if let Some(replay) = &point.replay {
            row.extend([
                percent(replay.reader_waits_share),
                percent(replay.no_stretch_share),
                percent(replay.meetings_share),
            ]);
        }
        if let Some(tpcc) = &point.tpcc {
            row.extend([
                grouped(tpcc.new_orders_per_minute),
                format!("{:.2}", tpcc.snapshots),
                percent(tpcc.shared_share),
                percent(tpcc.latch_share),
                percent(tpcc.acquire_release_share),
            ]);
        }
        row.push(shares.join(", "));
        rows.push(row);
    }
    let mut text = aligned(&rows);
    if of_standby {
        text.push_str(
            "\nended/s: transactions that replay ended; in snapshots: of the CPU time of the readers' transactions; wait: asleep \
             at the latch of the known xids, of the readers' transactions' time and of replay's\n",
        );
    }
    if of_replay {
        text.push_str(
            "\nTPS: transactions replayed; p50, p99: from reading a transaction's end to showing it; reader waits: part of its time \
             that the worker that reads the log sleeps until a stretch is done; no stretch, at meetings: parts in which the others \
             sleep\n",
        );
    }
    if of_tpcc {
        text.push_str(
            "\nNOPM: new-orders a minute; snapshots: a transaction; shared: snapshots, of snapshots and ends of transactions that \
             changed rows; at the latch: CPU time that waited for the cache lines of the ProcArray latch or polled them, of what \
             was not idle; in acquire and release: CPU time in the functions of that latch, of the same, as a profiler shows it: \
             hits, atomic instructions, waiting for lines, polls, calls that sleep and wake, and switches back, but no time asleep\n",
        );
    }
    for point in result.points.iter().rev().take(variants).rev() {
        let _ = writeln!(
            text,
            "\n{} clients, {}: hottest lines, and sleeps",
            point.clients, point.variant
        );
        for lines in point.report.lines.iter().take(6) {
            let _ = writeln!(
                text,
                "  {:16} {:>6} lines  {:>12} accesses  {:>5.1}% misses  transfer {:>8} queue {:>8} spin {:>8}  \
                 {:>10} shared changes",
                lines.name,
                lines.lines,
                grouped(lines.accesses as f64),
                lines.misses as f64 * 100.0 / lines.accesses.max(1) as f64,
                latency(lines.transfer_ns as f64 / 1e3),
                latency(lines.queue_ns as f64 / 1e3),
                latency(lines.spin_ns as f64 / 1e3),
                grouped(lines.shared_changes as f64),
            );
        }
        for wait in point.report.waits.iter().take(6) {
            let _ = writeln!(
                text,
                "  {:24} {:>10} sleeps, {} on average",
                wait.event,
                grouped(wait.count as f64),
                latency(wait.total_ns as f64 / wait.count.max(1) as f64 / 1e3)
            );
        }
    }
    if !result.sweep.is_empty() {
        let mut rows = vec![vec!["number".to_owned(), "×".to_owned()]];
        rows[0].extend(
            result
                .experiment
                .variants
                .iter()
                .map(|variant| format!("{} TPS", variant.name)),
        );
        rows[0].push("ratio".to_owned());
        for sweep in &result.sweep {
            let mut row = vec![sweep.number.to_string(), sweep.factor.to_string()];
            row.extend(sweep.tps.iter().map(|tps| grouped(*tps)));
            row.push(match sweep.tps.as_slice() {
                [first, .., last] => format!("{:.2}", last / first),
                _ => "–".to_owned(),
            });
            rows.push(row);
        }
        let _ = write!(
            text,
            "\nEach number alone, at the most clients:\n{}",
            aligned(&rows)
        );
    }
    text
}

/// Results of one experiment on several machines: the throughput of each variant as a ratio to the first one's.
pub fn overview(results: &[SimulationResult]) -> String {
    let Some(first) = results.first() else {
        return String::new();
    };
    let variants = &first.experiment.variants;
    let mut rows = vec![vec!["machine".to_owned(), "clients".to_owned()]];
    for (number, variant) in variants.iter().enumerate() {
        let unit = if number == 0 { ", TPS" } else { "" };
        rows[0].push(format!("{}{unit}", variant.name));
    }
    rows[0].push("fastest".to_owned());
    for result in results {
        for points in result.points.chunks(variants.len().max(1)) {
            let mut row = vec![result.machine.name.clone(), points[0].clients.to_string()];
            row.push(grouped(points[0].tps));
            row.extend(
                points[1..]
                    .iter()
                    .map(|point| format!("{:.2}", point.tps / points[0].tps)),
            );
            let fastest = points.iter().max_by(|one, other| one.tps.total_cmp(&other.tps));
            let slowest = points.iter().map(|point| point.tps).fold(f64::INFINITY, f64::min);
            // A difference below a hundredth has no winner.
            let ahead = fastest.filter(|point| point.tps > slowest * 1.01);
            row.push(ahead.map_or_else(|| "–".to_owned(), |point| point.variant.clone()));
            rows.push(row);
        }
    }
    aligned(&rows)
}

fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

pub(crate) fn aligned<R: AsRef<[String]>>(rows: &[R]) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.as_ref().iter().zip(&widths).enumerate();
        let line: Vec<String> = cells
            .map(|(column, (cell, width))| {
                let pad = " ".repeat(width - cell.chars().count());
                // Numbers to the right, words to the left.
                if (2..columns - 1).contains(&column) {
                    format!("{pad}{cell}")
                } else {
                    format!("{cell}{pad}")
                }
            })
            .collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}
