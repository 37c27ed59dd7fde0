//! The latch bench's files, and its page: throughput over the share of reads, a figure per section and number of threads.

use std::fmt::Write as _;
use std::path::Path;

use super::table::{rate, section, text};
use super::{LatchBenchResult, LatchCell};
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
    let _ = writeln!(
        body,
        "<h2>All numbers</h2>\n<div class=\"scroll\"><pre>{}</pre></div>\n<h2>Where this comes from</h2>\n\
         <div class=\"scroll\"><table>",
        escaped(&text(result))
    );
    provenance_rows(&mut body, from);
    body.push_str("</table></div>\n");
    let lead = format!(
        "{} on {} CPUs, {}. {} s a point, latches measured side by side in every round.",
        from.machine.cpu_model, from.machine.cpus, from.date, asked.duration_s
    );
    Ok(page("Clearway bench: latches", &lead, &body))
}

fn range(cell: &LatchCell) -> (f64, f64) {
    cell.operations_rounds
        .iter()
        .fold((cell.operations, cell.operations), |(low, high), rate| {
            (low.min(*rate), high.max(*rate))
        })
}
