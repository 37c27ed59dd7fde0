//! The page around the plots. Nothing in it points outside: no scripts, fonts or pictures from elsewhere.

use std::fmt::Write as _;

use super::plot;
use crate::error::Result;
use crate::result::{BenchResult, Provenance, VariedSwitch};
use crate::workload::Workload;
use crate::{kinds_table, table};

const STYLE: &str = "
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5a6675; --paper: #ffffff; --card: #f5f7f9; --line: #d9dfe5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ee; --soft: #9aa7b4; --paper: #14181d; --card: #1d232a; --line: #323b45; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1480px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 6px; } h3 { font-size: 15px; margin: 0 0 4px; }
p, .note { color: var(--soft); margin: 4px 0 12px; max-width: 95ch; }
.plots { display: grid; gap: 16px; grid-template-columns: repeat(auto-fit, minmax(min(400px, 100%), 1fr)); }
figure { margin: 0; padding: 14px 14px 6px; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
svg { width: 100%; height: auto; display: block; color: var(--ink); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 12px; padding: 0; list-style: none; }
.legend i { display: inline-block; width: 12px; height: 12px; border-radius: 3px; margin-right: 6px; vertical-align: -1px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 3px 12px 3px 0; text-align: left; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } .r { text-align: right; }
tr.first td { border-top: 2px solid var(--line); }
pre { font: 12px/1.4 ui-monospace, monospace; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; white-space: normal; }
";

/// Text with the characters escaped that mean something in a page.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// A page with this title, a first sentence below it, and a body in HTML.
pub(crate) fn page(title: &str, lead: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n<p>{lead}</p>\n\
         {body}</main>\n</body>\n</html>\n",
        title = escaped(title),
        lead = escaped(lead),
    )
}

/// The whole report.
pub fn html(result: &BenchResult) -> Result<String> {
    let from = &result.provenance;
    let names: Vec<&str> = result
        .variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    let title = match &result.varied {
        Some(switch) => format!("Clearway bench: {}, {}", switch.name, names.join(" against ")),
        None => format!("Clearway bench: {}", names.join(" against ")),
    };
    let lead = format!(
        "{}, in process, synchronous commit {}. {} on {} CPUs, {}.",
        of_what(result),
        if result.parameters.synchronous_commit {
            "on"
        } else {
            "off"
        },
        from.machine.cpu_model,
        from.machine.cpus,
        from.date,
    );
    let mut body = String::new();
    if let Some(switch) = &result.varied {
        variants_of(&mut body, switch, result);
    }
    body.push_str("<h2>Throughput</h2>\n");
    let _ = writeln!(
        body,
        "<p>Transactions a second over clients: the median of {} rounds, and a bar from the lowest to the highest.</p>",
        from.samples_per_cell
    );
    curve_legend(&mut body, names.iter().copied());
    figures(&mut body, result, |workload| plot::throughput(result, workload))?;

    body.push_str("<h2>Where the clients' time went</h2>\n");
    body.push_str(
        "<p>Shares of the samples of each client's wait event; a bar per number of clients and variant. \
         <em>running</em> is on a CPU or ready to be.</p>\n",
    );
    let waits = plot::wait_legend(result);
    legend(
        &mut body,
        waits.iter().map(|(event, colour)| (event.as_str(), *colour)),
    );
    figures(&mut body, result, |workload| {
        plot::waits(result, workload, &waits)
    })?;

    body.push_str("<h2>All numbers</h2>\n");
    for line in table::footer(result) {
        let _ = writeln!(body, "<p>{}</p>", escaped(&line));
    }
    numbers(&mut body, &table::rows(result), &table::right(result));
    let kinds = kinds_table::rows(result);
    if !kinds.is_empty() {
        let _ = writeln!(
            body,
            "<h2>By transaction</h2>\n<p>{}</p>",
            escaped(kinds_table::LEGEND)
        );
        numbers(&mut body, &kinds, &kinds_table::right(&kinds));
    }
    body.push_str("<h2>Where this comes from</h2>\n");
    provenance(&mut body, result);
    Ok(page(&title, &lead, &body))
}

/// Whose transactions were run, on how much.
fn of_what(result: &BenchResult) -> String {
    let of_pgbench = format!("pgbench's transactions, scale {}", result.parameters.scale);
    let Some(warehouses) = result.parameters.warehouses else {
        return of_pgbench;
    };
    let plural = if warehouses == 1 { "" } else { "s" };
    let of_tpcc = format!("TPC-C's transactions, {warehouses} warehouse{plural}");
    let only_tpcc = |name: &String| name == Workload::Tpcc.name();
    match result.parameters.workloads.iter().all(only_tpcc) {
        true => of_tpcc,
        false => format!("{of_pgbench}, and {of_tpcc}"),
    }
}

/// The decision of the switch, and the way each of its variants works.
fn variants_of(page: &mut String, switch: &VariedSwitch, result: &BenchResult) {
    let _ = writeln!(
        page,
        "<h2>The switch <code>{}</code></h2>\n<p>{} Everything else is equal.</p>\n<div class=\"scroll\"><table>",
        escaped(&switch.name),
        escaped(&switch.about)
    );
    for variant in &result.variants {
        row(
            page,
            &escaped(&variant.name),
            variant.text.as_deref().unwrap_or_default(),
        );
    }
    page.push_str("</table></div>\n");
}

/// The names of curves, in their order, with their colours and marks.
pub(crate) fn curve_legend<'a>(page: &mut String, names: impl Iterator<Item = &'a str>) {
    page.push_str("<ul class=\"legend\">");
    for (place, name) in names.enumerate() {
        let (red, green, blue) = plot::curve_colour(place);
        let shape = match plot::curve_mark(place) {
            plot::Mark::Disc => "border-radius:50%;background:currentColor",
            plot::Mark::Ring => "border-radius:50%;border:2px solid",
            plot::Mark::Square => "border-radius:0;background:currentColor",
        };
        let _ = write!(
            page,
            "<li><i style=\"color:rgb({red},{green},{blue});{shape}\"></i>{}</li>",
            escaped(name)
        );
    }
    page.push_str("</ul>\n");
}

/// Names with their colours.
pub(crate) fn legend<'a>(page: &mut String, entries: impl Iterator<Item = (&'a str, plot::Colour)>) {
    page.push_str("<ul class=\"legend\">");
    for (name, (red, green, blue)) in entries {
        let _ = write!(
            page,
            "<li><i style=\"background:rgb({red},{green},{blue})\"></i>{}</li>",
            escaped(name)
        );
    }
    page.push_str("</ul>\n");
}

fn figures(page: &mut String, result: &BenchResult, draw: impl Fn(&str) -> Result<String>) -> Result<()> {
    page.push_str("<div class=\"plots\">\n");
    for workload in &result.parameters.workloads {
        let _ = writeln!(
            page,
            "<figure><h3>{}</h3>{}</figure>",
            escaped(workload),
            draw(workload)?
        );
    }
    page.push_str("</div>\n");
    Ok(())
}

/// A table of these rows, head first.
fn numbers(page: &mut String, rows: &[Vec<String>], right: &[bool]) {
    page.push_str("<div class=\"scroll\"><table>\n");
    let mut before = "";
    for (number, row) in rows.iter().enumerate() {
        let tag = if number == 0 { "th" } else { "td" };
        let first = number > 1 && row[0] != before;
        page.push_str(if first { "<tr class=\"first\">" } else { "<tr>" });
        for (entry, right) in row.iter().zip(right) {
            let class = if *right { " class=\"r\"" } else { "" };
            let _ = write!(page, "<{tag}{class}>{}</{tag}>", escaped(entry));
        }
        page.push_str("</tr>\n");
        before = &row[0];
    }
    page.push_str("</table></div>\n");
}

fn row(page: &mut String, name: &str, value: &str) {
    let _ = writeln!(
        page,
        "<tr><th>{name}</th><td><code>{}</code></td></tr>",
        escaped(value)
    );
}

/// The rows that tell where any result comes from.
pub(crate) fn provenance_rows(page: &mut String, from: &Provenance) {
    let machine = format!(
        "{} (family {}), {} CPUs, {} GiB, Linux {}",
        from.machine.cpu_model,
        from.machine.cpu_family,
        from.machine.cpus,
        from.machine.memory_gib,
        from.machine.kernel
    );
    row(page, "command", &from.command);
    row(page, "commit", &from.commit);
    row(page, "build", &from.build);
    row(page, "configuration hash", &from.config_hash);
    row(page, "machine", &machine);
    row(page, "seed", &from.seed.to_string());
    row(page, "date", &from.date);
    if let Some(share) = from.others_share {
        row(
            page,
            "CPU time of other programs",
            &format!("{:.0} %", share * 100.0),
        );
    }
}

fn provenance(page: &mut String, result: &BenchResult) {
    let from = &result.provenance;
    let samples = format!(
        "{} rounds of {} s a point, each after {} s of warm-up, variants interleaved",
        from.samples_per_cell, result.parameters.duration_s, result.parameters.warm_up_s
    );
    page.push_str("<div class=\"scroll\"><table>\n");
    provenance_rows(page, from);
    let mut row = |name: &str, value: &str| row(page, name, value);
    row("samples", &samples);
    if !result.parameters.beside.is_none() {
        row("beside", &result.parameters.beside.to_string());
    }
    for variant in &result.variants {
        let switches: Vec<String> = variant
            .config
            .mechanisms
            .list()
            .iter()
            .map(|(name, variant)| format!("{name}={variant}"))
            .collect();
        row(
            &format!("variant {}", escaped(&variant.name)),
            &switches.join(" "),
        );
    }
    for check in &result.balances {
        let sums = format!(
            "accounts {} = history {}; tellers {} = branches {}; {} writing transactions acknowledged, all there",
            check.accounts, check.history, check.tellers, check.branches, check.acknowledged_writes
        );
        row(&format!("sums of {}", escaped(&check.variant)), &sums);
    }
    for check in &result.consistency {
        let conditions = format!(
            "conditions 1 to 4 hold; {} new orders, {} payments and {} delivered orders acknowledged, all there",
            check.new_orders, check.payments, check.delivered
        );
        row(
            &format!("consistency of {}", escaped(&check.variant)),
            &conditions,
        );
    }
    page.push_str("</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::example;

    #[test]
    fn a_report_needs_nothing_else_and_escapes_names() {
        let page = html(&example()).unwrap();
        assert_eq!(page.matches("<svg").count(), 4);
        let outside = page.replace("http://www.w3.org/2000/svg", "");
        for sign in [
            "http://", "https://", "<script", "<link", "src=", "@import", "url(",
        ] {
            assert!(!outside.contains(sign), "the report points outside with {sign}");
        }
        assert!(page.contains("clearway bench &lt;test&gt;"));
        assert!(page.contains("prefers-color-scheme: dark"));
    }

    #[test]
    fn a_report_says_what_ran_beside() {
        let mut result = example();
        assert!(!html(&result).unwrap().contains("<tr><th>beside</th>"));
        result.parameters.beside.busy_loops = 4;
        result.provenance.others_share = Some(0.5);
        let page = html(&result).unwrap();
        assert!(
            page.contains("<tr><th>beside</th><td><code>4 busy loops</code></td></tr>"),
            "{page}"
        );
        assert!(
            page.contains("<p>Measured beside 4 busy loops.</p>\n<p>The host is busy"),
            "{page}"
        );
        assert!(page.contains("<tr><th>CPU time of other programs</th><td><code>50 %</code></td></tr>"));
    }
}
