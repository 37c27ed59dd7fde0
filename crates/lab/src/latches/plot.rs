//! The latch bench's files, and its page: throughput over the share of reads, a figure per section and number of threads,
//! and with the most threads the tail of both modes' waits, a figure per section and share of reads.

use std::fmt::Write as _;
use std::path::Path;

use super::table::{rate, section, text, time};
use super::{LatchBenchResult, LatchCell, ModeWait};
use crate::error::Result;
use crate::report::{Curve, Curves, curve_legend, curves, escaped, page, provenance_rows};
use crate::result::{json, write_files};

impl LatchBenchResult {
    /// Writes `latches.json` and `latches.html` into `directory`, which is created if need be.
    pub fn write(&self, directory: &Path) -> Result<()> {
        write_files(
            directory,
            &[("latches.json", json(self)), ("latches.html", html(self)?)],
        )
    }
}

fn html(result: &LatchBenchResult) -> Result<String> {
    let asked = &result.parameters;
    let from = &result.provenance;
    let mut body = String::from("<h2>Throughput</h2>\n");
    let _ = writeln!(
        body,
        "<p>Operations a second, all threads together, over the share of reads: the median of {} rounds, and a bar from the \
         lowest to the highest. Each figure has its own scale.</p>",
        asked.rounds
    );
    curve_legend(&mut body, asked.latches.iter().map(String::as_str));
    for &section_ns in &asked.sections_ns {
        let _ = writeln!(
            body,
            "<h2>Critical section: {}</h2>\n<div class=\"plots\">",
            section(section_ns)
        );
        for &threads in &asked.threads {
            let title = format!("{threads} {}", if threads == 1 { "thread" } else { "threads" });
            let drawing = curves(&Curves {
                title: &format!(
                    "throughput of {title} over the share of reads, section {}",
                    section(section_ns)
                ),
                x_desc: "reads, %",
                x_labels: &asked.read_shares.iter().map(f64::to_string).collect::<Vec<_>>(),
                y_label: &|value| rate(value),
                curves: asked
                    .latches
                    .iter()
                    .map(|latch| Curve {
                        points: asked
                            .read_shares
                            .iter()
                            .map(|share| {
                                let cell = result.cell(section_ns, *share, threads, latch)?;
                                Some((cell.operations, range(cell)))
                            })
                            .collect(),
                    })
                    .collect(),
            })?;
            let _ = writeln!(body, "<figure><h3>{title}</h3>{drawing}</figure>");
        }
        body.push_str("</div>\n");
    }
    tails(&mut body, result)?;
    let _ = writeln!(
        body,
        "<h2>All numbers</h2>\n<div class=\"scroll\"><pre>{}</pre></div>\n<h2>Where this comes from</h2>\n\
         <div class=\"scroll\"><table>",
        escaped(&text(result, true))
    );
    provenance_rows(&mut body, from);
    body.push_str("</table></div>\n");
    let lead = format!(
        "{} on {} CPUs, {}. {} s a point, latches measured side by side in every round.",
        from.machine.cpu_model, from.machine.cpus, from.date, asked.duration_s
    );
    Ok(page("Clearway bench: latches", &lead, &body))
}

/// The tail of the waits where it is longest, with the most threads. One place of the scale up is ten times as long.
fn tails(body: &mut String, result: &LatchBenchResult) -> Result<()> {
    let asked = &result.parameters;
    let Some(&threads) = asked.threads.iter().max() else {
        return Ok(());
    };
    let _ = writeln!(
        body,
        "<h2>Time to acquire, {threads} {}</h2>\n<p>From asking to being inside, all rounds together, on a logarithmic scale. \
         Of 1,000 acquisitions one takes longer than p99.9.</p>",
        if threads == 1 { "thread" } else { "threads" }
    );
    curve_legend(body, asked.latches.iter().map(String::as_str));
    for &section_ns in &asked.sections_ns {
        let _ = writeln!(
            body,
            "<h2>Time to acquire, critical section: {}</h2>\n<div class=\"plots\">",
            section(section_ns)
        );
        for &share in &asked.read_shares {
            let point = format!("{share} % reads, section {}", section(section_ns));
            for who in ["readers", "writers"] {
                let wait = |cell: &LatchCell| {
                    if who == "readers" {
                        cell.read.clone()
                    } else {
                        cell.write.clone()
                    }
                };
                let waits: Vec<_> = asked
                    .latches
                    .iter()
                    .map(|latch| result.cell(section_ns, share, threads, latch).and_then(wait))
                    .collect();
                if waits.iter().all(Option::is_none) {
                    continue;
                }
                let drawing = tail_curves(&format!("time to acquire of {who}, {point}"), &waits)?;
                let _ = writeln!(body, "<figure><h3>{who}, {share} % reads</h3>{drawing}</figure>");
            }
        }
        body.push_str("</div>\n");
    }
    Ok(())
}

/// The percentiles of a latch each, over their names.
fn tail_curves(title: &str, waits: &[Option<ModeWait>]) -> Result<String> {
    // A place for each percentile, also where no latch has a wait.
    let names = ["p50", "p99", "p99.9", "max"].map(str::to_owned);
    let power = |ns: u64| (ns.max(1) as f64).log10();
    curves(&Curves {
        title,
        x_desc: "percentile",
        x_labels: &names,
        y_label: &|power| time(10_f64.powf(power).round() as u64),
        curves: waits
            .iter()
            .map(|wait| Curve {
                points: match wait {
                    Some(wait) => wait
                        .tail()
                        .map(|(_, ns)| Some((power(ns), (power(ns), power(ns)))))
                        .to_vec(),
                    None => vec![None; names.len()],
                },
            })
            .collect(),
    })
}

fn range(cell: &LatchCell) -> (f64, f64) {
    cell.operations_rounds
        .iter()
        .fold((cell.operations, cell.operations), |(low, high), rate| {
            (low.min(*rate), high.max(*rate))
        })
}
