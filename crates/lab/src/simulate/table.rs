//! The table of an experiment.

use std::fmt::Write;

use crate::layout::{grouped, latency};
use crate::simulate::fold::Folded;
use crate::simulate::order::{self, Verdict};
use crate::simulate::point::Point;
use crate::simulate::run::SimulationResult;
use crate::simulate::spread::{Spread, nearest_to_median};
use crate::simulate::trust;

/// The result as text: a row a number of clients and variant, what its columns mean, the order that all seeds share, the
/// hottest lines at the most clients, the sweep, and how far to trust it.
pub fn text(result: &SimulationResult) -> String {
    let groups = Groups::of(result);
    let folded = Folded::of(result);
    let shown = (0..result.cells.len()).filter(|cell| folded.shows(*cell));
    let mut rows = vec![groups.heading()];
    rows.extend(shown.filter_map(|cell| row(result, cell)));
    let mut text = aligned(&rows);
    text.push_str(&folded.text());
    text.push_str(&groups.legend());
    push_orders(&mut text, result);
    let variants = result.experiment.variants.len();
    for cell in result.cells.len().saturating_sub(variants)..result.cells.len() {
        if let Some(point) = nearest_to_median(result.points_of(cell)).filter(|_| folded.shows(cell)) {
            push_hottest(&mut text, point);
        }
    }
    if !result.sweep.is_empty() {
        push_sweep(&mut text, result);
    }
    let _ = write!(text, "\nHow far to trust it:\n{}", trust::text(result));
    text
}

/// The order that all seeds share, by number of clients.
fn push_orders(text: &mut String, result: &SimulationResult) {
    if result.experiment.variants.len() > 1 {
        let _ = write!(
            text,
            "\nBest first, under {}:\n{}",
            result.seeds,
            order::lines(&result.orders)
        );
    }
}

/// The groups of columns that a result has beside those of all.
struct Groups {
    standby: bool,
    replay: bool,
    tpcc: bool,
    hot_parent: bool,
}

impl Groups {
    fn of(result: &SimulationResult) -> Self {
        let any = |has: fn(&Point) -> bool| result.points.iter().any(has);
        Self {
            standby: any(|point| point.standby.is_some()),
            replay: any(|point| point.replay.is_some()),
            tpcc: any(|point| point.tpcc.is_some()),
            hot_parent: any(|point| point.hot_parent.is_some()),
        }
    }

    fn heading(&self) -> Vec<String> {
        let mut heading = vec![
            if self.replay { "workers" } else { "clients" },
            "variant",
            "TPS",
            "lowest–highest",
            "to the first",
            "published",
            "CPU time",
            "shared changes",
            "p50",
            "p99",
        ];
        if self.standby {
            heading.extend(["ended/s", "in snapshots", "readers wait", "replay waits"]);
        }
        if self.replay {
            heading.extend(["reader waits", "no stretch", "at meetings"]);
        }
        if self.tpcc {
            heading.extend([
                "NOPM",
                "snapshots",
                "shared",
                "at the latch",
                "in acquire and release",
            ]);
        }
        if self.hot_parent {
            heading.extend(["sharers", "for the row"]);
        }
        heading.push("where the CPUs' time went");
        heading.into_iter().map(str::to_owned).collect()
    }

    /// The meaning of the columns of each group.
    fn legend(&self) -> String {
        let mut text = "\nTPS and CPU time of a transaction: medians of the seeds; to the first: ratios of equal seeds; other columns: those of \
             the seed next to the median\n"
            .to_owned();
        if self.standby {
            text.push_str(
                "\nended/s: transactions that replay ended; in snapshots: of the CPU time of the readers' transactions; wait: asleep \
                 at the latch of the known xids, of the readers' transactions' time and of replay's\n",
            );
        }
        if self.replay {
            text.push_str(
                "\nTPS: transactions replayed; p50, p99: from reading a transaction's end to showing it; reader waits: part of its time \
                 that the worker that reads the log sleeps until a stretch is done; no stretch, at meetings: parts in which the others \
                 sleep\n",
            );
        }
        if self.tpcc {
            text.push_str(
                "\nNOPM: new-orders a minute; snapshots: a transaction; shared: snapshots, of snapshots and ends of transactions that \
                 changed rows; at the latch: CPU time that waited for the cache lines of the ProcArray latch or polled them, of what \
                 was not idle; in acquire and release: CPU time in the functions of that latch, of the same, as a profiler shows it: \
                 hits, atomic instructions, waiting for lines, polls, calls that sleep and wake, and switches back, but no time asleep\n",
            );
        }
        if self.hot_parent {
            text.push_str(
                "\nsharers: transactions that had the row and had not ended when one got it, itself among them; for the row: part of the \
                 transactions' time from asking for it to having it\n",
            );
        }
        text
    }
}

/// The row of a cell, beside the first variant with as many clients.
fn row(result: &SimulationResult, number: usize) -> Option<Vec<String>> {
    let cell = &result.cells[number];
    let point = nearest_to_median(result.points_of(number))?;
    let published = result.experiment.published.as_ref();
    let published = published
        .filter(|published| published.variant == cell.variant)
        .and_then(|published| published.tps(cell.clients));
    let shares: Vec<String> = point
        .shares
        .iter()
        .filter(|share| share.share >= 0.01)
        .map(|share| format!("{} {:.0}%", share.activity, share.share * 100.0))
        .collect();
    let none = || "–".to_owned();
    let is_one = result.seeds.count() == 1;
    let mut row = vec![
        cell.clients.to_string(),
        cell.variant.clone(),
        grouped(cell.tps.median),
        if is_one {
            none()
        } else {
            format!("{}–{}", grouped(cell.tps.low), grouped(cell.tps.high))
        },
        cell.to_first
            .map_or_else(none, |ratio| ratio_text(ratio, cell.verdict, is_one)),
        published.map_or_else(none, |tps| {
            format!(
                "{} ({:+.0}%)",
                grouped(tps),
                (cell.tps.median / tps - 1.0) * 100.0
            )
        }),
        cpu_time(cell.cpu_us.median),
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
    if let Some(parent) = &point.hot_parent {
        row.extend([format!("{:.1}", parent.sharers), percent(parent.lock_share)]);
    }
    row.push(shares.join(", "));
    Some(row)
}

/// A ratio to the first variant with its lowest and highest; no number in the place of an order that there is not.
pub(crate) fn ratio_text(ratio: Spread, verdict: Option<Verdict>, is_one_seed: bool) -> String {
    let range = format!("{:.2}–{:.2}", ratio.low, ratio.high);
    match verdict {
        Some(Verdict::SeedsDisagree) => format!("no order ({range})"),
        _ if is_one_seed => format!("{:.2}", ratio.median),
        _ => format!("{:.2} ({range})", ratio.median),
    }
}

/// A transaction's CPU time; four digits, since variants differ little at one client.
fn cpu_time(microseconds: f64) -> String {
    if microseconds < 1.0 {
        format!("{:.1} ns", microseconds * 1e3)
    } else {
        format!("{microseconds:.2} µs")
    }
}

/// The hottest lines of a point and its sleeps.
fn push_hottest(text: &mut String, point: &Point) {
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

/// Results of the experiment with one number changed at a time.
fn push_sweep(text: &mut String, result: &SimulationResult) {
    let variants = result.experiment.variants.iter();
    let mut rows = vec![vec!["number".to_owned(), "×".to_owned()]];
    rows[0].extend(variants.map(|variant| format!("{} TPS", variant.name)));
    rows[0].push("last to first".to_owned());
    for sweep in &result.sweep {
        let mut row = vec![sweep.number.to_string(), sweep.factor.to_string()];
        row.extend(sweep.tps.iter().map(|tps| grouped(*tps)));
        row.push(sweep.last_to_first.map_or_else(
            || "–".to_owned(),
            |ratio| ratio_text(ratio, sweep.verdict, result.seeds.count() == 1),
        ));
        rows.push(row);
    }
    let _ = write!(
        text,
        "\nEach number alone, at the most clients:\n{}",
        aligned(&rows)
    );
}

/// Results of one experiment on several machines: the throughput of each variant as a ratio to the first one's, and the
/// variant that is better than all others under every seed.
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
        let is_one = result.seeds.count() == 1;
        for (cells, order) in result.cells.chunks(variants.len().max(1)).zip(&result.orders) {
            let mut row = vec![result.machine.name.clone(), cells[0].clients.to_string()];
            row.push(grouped(cells[0].tps.median));
            row.extend(cells[1..].iter().map(|cell| match cell.to_first {
                Some(ratio) => ratio_text(ratio, cell.verdict, is_one),
                None => "–".to_owned(),
            }));
            row.push(order.best().unwrap_or("–").to_owned());
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
