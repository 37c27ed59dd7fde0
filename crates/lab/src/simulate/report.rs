//! The report of an experiment: one HTML file with everything in it.

use std::fmt::Write as _;

use clearway_sim::Activity;

use crate::error::Result;
use crate::layout::{grouped, latency};
use crate::report::{Curve, Curves, curve_legend, curves, escaped, legend, page};
use crate::simulate::fold::Folded;
use crate::simulate::point::Point;
use crate::simulate::run::SimulationResult;
use crate::simulate::spread::nearest_to_median;
use crate::simulate::table;

type Colour = (u8, u8, u8);

fn colour(activity: Activity) -> Colour {
    match activity {
        Activity::Work => (76, 153, 99),
        Activity::Client => (150, 200, 160),
        Activity::Latch => (66, 117, 186),
        Activity::Stall => (214, 96, 77),
        Activity::Spin => (240, 160, 80),
        Activity::Syscall => (146, 98, 170),
        Activity::Switch => (120, 120, 130),
        Activity::Idle => (222, 226, 230),
        Activity::OtherPrograms => (90, 90, 60),
    }
}

/// The result as it is written to `result.json`.
pub fn json(result: &SimulationResult) -> String {
    serde_json::to_string_pretty(result).unwrap_or_default()
}

/// The report.
pub fn html(result: &SimulationResult) -> Result<String> {
    let experiment = &result.experiment;
    let mut body = String::new();
    let unit = match experiment.workload {
        crate::simulate::WorkloadKind::LatchMix => "Acquisitions",
        _ => "Transactions",
    };
    let _ = writeln!(
        body,
        "<h2>Throughput</h2>\n<p>{unit} a simulated second over clients: medians of {}, with bars from the lowest to the highest. What the model leaves out, and how far it agrees \
         with measurements, is in docs/simulator.md: believe orderings and ratios, with their sensitivity, not absolute \
         throughput.</p>",
        result.seeds
    );
    throughput(&mut body, result)?;
    body.push_str("<h2>Where the CPUs' time went</h2>\n<p>Shares of all hardware threads' time in the measured window.</p>\n");
    legend(
        &mut body,
        Activity::ALL
            .iter()
            .map(|activity| (activity.name(), colour(*activity))),
    );
    shares(&mut body, result);
    body.push_str(
        "<h2>Hottest lines</h2>\n<p>By structure, over the whole run: how long CPUs waited for a line to travel, for \
         earlier requests to the same line, and how long they polled it.</p>\n",
    );
    let folded = Folded::of(result);
    let of_most_clients = result.cells.len().saturating_sub(experiment.variants.len());
    for cell in (of_most_clients..result.cells.len()).filter(|cell| folded.shows(*cell)) {
        if let Some(point) = nearest_to_median(result.points_of(cell)) {
            hottest(&mut body, point);
        }
    }
    let _ = writeln!(
        body,
        "<h2>All numbers</h2>\n<div class=\"scroll\"><pre>{}</pre></div>",
        escaped(&table::text(result))
    );
    let machine = &result.machine;
    let _ = writeln!(
        body,
        "<h2>The machine</h2>\n<p>{}: {}</p>\n<div class=\"scroll\"><table><tr><th>cost</th><th>value</th><th>source</th></tr>",
        escaped(&machine.name),
        escaped(&machine.description)
    );
    for (name, value) in machine.clone().costs_mut() {
        let _ = writeln!(
            body,
            "<tr><td>{name}</td><td class=\"r\">{value}</td><td>{}</td></tr>",
            escaped(
                machine
                    .sources
                    .get(name)
                    .map_or("the crate's default, sourced in model.rs", |source| source)
            )
        );
    }
    body.push_str("</table></div>\n");
    Ok(page(
        &format!("Clearway simulate: {}", experiment.name),
        &format!(
            "{}. Machine {}, {}.",
            experiment.description, machine.name, result.seeds
        ),
        &body,
    ))
}

fn throughput(body: &mut String, result: &SimulationResult) -> Result<()> {
    let experiment = &result.experiment;
    let (variants, folded) = (experiment.variants.len(), Folded::of(result));
    let shown: Vec<usize> = (0..variants).filter(|variant| folded.shows(*variant)).collect();
    let mut names: Vec<String> = shown
        .iter()
        .map(|variant| folded.name(&experiment.variants[*variant].name, *variant))
        .collect();
    let single = |tps: f64| (tps, (tps, tps));
    let mut all: Vec<Curve> = shown
        .iter()
        .map(|variant| Curve {
            points: result
                .cells
                .iter()
                .skip(*variant)
                .step_by(variants)
                .map(|cell| Some((cell.tps.median, (cell.tps.low, cell.tps.high))))
                .collect(),
        })
        .collect();
    if let Some(published) = &experiment.published {
        names.push(format!("{}, as published", published.variant));
        all.push(Curve {
            points: experiment
                .clients
                .iter()
                .map(|clients| published.tps(*clients).map(single))
                .collect(),
        });
    }
    curve_legend(body, names.iter().map(String::as_str));
    let labels: Vec<String> = experiment.clients.iter().map(usize::to_string).collect();
    let drawing = curves(&Curves {
        title: "throughput over clients",
        x_desc: "clients",
        x_labels: &labels,
        y_label: &|value| grouped(value),
        curves: all,
    })?;
    let _ = writeln!(body, "<div class=\"plots\"><figure>{drawing}</figure></div>");
    Ok(())
}

fn shares(body: &mut String, result: &SimulationResult) {
    body.push_str("<div class=\"scroll\"><table>\n");
    let folded = Folded::of(result);
    let shown = (0..result.cells.len()).filter(|cell| folded.shows(*cell));
    for point in shown.filter_map(|cell| nearest_to_median(result.points_of(cell))) {
        let _ = write!(
            body,
            "<tr><td class=\"r\">{}</td><td>{}</td><td><svg viewBox=\"0 0 1000 22\" style=\"width:760px\" role=\"img\" \
             aria-label=\"shares of time\">",
            point.clients,
            escaped(&point.variant)
        );
        let mut from = 0.0;
        for (activity, share) in Activity::ALL.iter().zip(&point.shares) {
            let width = share.share * 1_000.0;
            let (red, green, blue) = colour(*activity);
            if width >= 0.5 {
                let _ = write!(
                    body,
                    "<rect x=\"{from:.1}\" y=\"2\" width=\"{width:.1}\" height=\"18\" fill=\"rgb({red},{green},{blue})\">\
                     <title>{} {:.1} %</title></rect>",
                    activity.name(),
                    share.share * 100.0
                );
            }
            from += width;
        }
        body.push_str("</svg></td></tr>\n");
    }
    body.push_str("</table></div>\n");
}

fn hottest(body: &mut String, point: &Point) {
    let _ = writeln!(
        body,
        "<h3>{} clients, {}</h3>\n<div class=\"scroll\"><table><tr><th>lines of</th><th class=\"r\">lines</th>\
         <th class=\"r\">accesses</th><th class=\"r\">misses</th><th class=\"r\">travelling</th><th class=\"r\">queueing</th>\
         <th class=\"r\">polled</th></tr>",
        point.clients,
        escaped(&point.variant)
    );
    for lines in point.report.lines.iter().take(10) {
        let time = |nanoseconds: u64| latency(nanoseconds as f64 / 1e3);
        let _ = writeln!(
            body,
            "<tr><td>{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td><td class=\"r\">{}</td>\
             <td class=\"r\">{}</td><td class=\"r\">{}</td></tr>",
            escaped(&lines.name),
            lines.lines,
            grouped(lines.accesses as f64),
            grouped(lines.misses as f64),
            time(lines.transfer_ns),
            time(lines.queue_ns),
            time(lines.spin_ns)
        );
    }
    body.push_str("</table></div>\n");
}
