//! The picture of a bench: the throughput of each workload over clients, in one SVG that a page can show as an image.

use std::fmt::Write as _;

use super::html::escaped;
use super::plot;
use crate::error::Result;
use crate::result::BenchResult;

/// The size of a plot, and the space around it.
const PLOT_WIDTH: usize = 460;
const PLOT_HEIGHT: usize = 300;
const MARGIN: usize = 16;
/// Lines of text above the plots: the legend, and the names of the workloads.
const HEAD: usize = 62;
/// Plots side by side.
const PER_ROW: usize = 3;

/// An image has no page around it that gives it its colours.
const STYLE: &str = "text { font: 15px system-ui, sans-serif; fill: currentColor } svg { color: #1c2430 } .paper { fill: #ffffff } \
     @media (prefers-color-scheme: dark) { svg { color: #e4e9ee } .paper { fill: #14181d } }";

/// The picture. Its `desc` says where it comes from.
pub(super) fn picture(result: &BenchResult) -> Result<String> {
    let workloads: Vec<&str> = result.parameters.workloads.iter().map(String::as_str).collect();
    let columns = workloads.len().clamp(1, PER_ROW);
    let rows = workloads.len().div_ceil(PER_ROW);
    let row_height = PLOT_HEIGHT + HEAD / 2;
    let width = columns * (PLOT_WIDTH + MARGIN) + MARGIN;
    let height = HEAD / 2 + rows * row_height + MARGIN;
    let from = &result.provenance;
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg viewBox=\"0 0 {width} {height}\" xmlns=\"http://www.w3.org/2000/svg\" role=\"img\">\n\
         <title>Transactions a second over clients</title>\n<desc>{}; {}, {} CPUs; {}</desc>\n<style>{STYLE}</style>\n\
         <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n",
        escaped(&from.command),
        escaped(&from.machine.cpu_model),
        from.machine.cpus,
        escaped(&from.date),
    );
    let mut x = MARGIN;
    for (place, variant) in result.variants.iter().enumerate() {
        let (red, green, blue) = plot::curve_colour(place);
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"12\" width=\"14\" height=\"14\" rx=\"3\" fill=\"rgb({red},{green},{blue})\"/>\
             <text x=\"{}\" y=\"24\">{}</text>",
            x + 20,
            escaped(&variant.name),
        );
        x += 40 + 9 * variant.name.len();
    }
    for (place, workload) in workloads.iter().enumerate() {
        let x = MARGIN + place % PER_ROW * (PLOT_WIDTH + MARGIN);
        let y = HEAD / 2 + place / PER_ROW * row_height;
        let drawing = plot::throughput(result, workload)?;
        let sized = format!(
            "<svg x=\"{x}\" y=\"{}\" width=\"{PLOT_WIDTH}\" height=\"{PLOT_HEIGHT}\" ",
            y + HEAD / 2
        );
        let _ = writeln!(
            svg,
            "<text x=\"{x}\" y=\"{}\" font-weight=\"600\">{}, transactions a second</text>\n{}",
            y + HEAD / 2 - 8,
            escaped(workload),
            drawing.replacen("<svg ", &sized, 1),
        );
    }
    svg.push_str("</svg>\n");
    Ok(svg)
}
