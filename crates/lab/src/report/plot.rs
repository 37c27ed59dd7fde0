//! The plots, as SVG to be put inside a page.
//!
//! Black is drawn as `currentColor`, so that axes and words take the page's colour, in light and in dark; the other
//! colours are of middle lightness and stand out from both.

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::error::{LabError, Result};
use crate::layout::grouped;
use crate::result::BenchResult;
use crate::sampler::RUNNING;

/// A colour and its name for CSS.
pub(crate) type Colour = (u8, u8, u8);

/// Of curves, in their order.
const CURVE_COLOURS: [Colour; 6] = [
    (217, 119, 6),
    (47, 126, 216),
    (22, 160, 110),
    (190, 70, 150),
    (130, 100, 220),
    (120, 130, 140),
];

/// Of the wait events, those with the largest shares first.
const WAIT_COLOURS: [Colour; 9] = [
    (214, 72, 72),
    (47, 126, 216),
    (226, 155, 32),
    (130, 100, 220),
    (22, 160, 110),
    (200, 90, 160),
    (30, 160, 190),
    (150, 120, 70),
    (120, 160, 50),
];

/// Of time without a wait, and of waits too small to be told apart.
const RUNNING_COLOUR: Colour = (176, 186, 196);
const OTHER_COLOUR: Colour = (110, 118, 126);

/// The name of the waits too small to be told apart.
pub(super) const OTHER: &str = "other waits";

/// The colour of a curve, or of a variant, by its place.
pub(crate) fn curve_colour(place: usize) -> Colour {
    CURVE_COLOURS[place % CURVE_COLOURS.len()]
}

/// The mark that tells curves of the same colour apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A full line with discs.
    Disc,
    /// A dashed line with rings.
    Ring,
    /// A dotted line with squares.
    Square,
}

/// The mark of a curve by its place: the colours are gone through once with each.
pub(crate) fn curve_mark(place: usize) -> Mark {
    match place / CURVE_COLOURS.len() % 3 {
        0 => Mark::Disc,
        1 => Mark::Ring,
        _ => Mark::Square,
    }
}

/// The events of a result that get a colour of their own, with it: running first, then by share.
pub(super) fn wait_legend(result: &BenchResult) -> Vec<(String, Colour)> {
    let mut totals: Vec<(String, f64)> = Vec::new();
    for wait in result.cells.iter().flat_map(|cell| &cell.waits) {
        match totals.iter_mut().find(|(event, _)| *event == wait.event) {
            Some((_, share)) => *share += wait.share,
            None => totals.push((wait.event.clone(), wait.share)),
        }
    }
    totals.retain(|(event, _)| event != RUNNING);
    totals.sort_by(|a, b| b.1.total_cmp(&a.1));
    let others = totals.len() > WAIT_COLOURS.len();
    let mut legend = vec![(RUNNING.to_owned(), RUNNING_COLOUR)];
    legend.extend(totals.into_iter().map(|(event, _)| event).zip(WAIT_COLOURS));
    if others {
        legend.push((OTHER.to_owned(), OTHER_COLOUR));
    }
    legend
}

fn failed(error: impl std::fmt::Display) -> LabError {
    LabError::Plot(error.to_string())
}

fn rgb(colour: Colour) -> RGBColor {
    RGBColor(colour.0, colour.1, colour.2)
}

fn words(pixels: i32) -> TextStyle<'static> {
    ("sans-serif", pixels).into_font().color(&BLACK)
}

/// Makes the page's colour out of black and lets the drawing shrink with the page.
fn finish(svg: String, width: u32, height: u32, title: &str) -> String {
    let svg = svg.replace("\"#000000\"", "\"currentColor\"");
    let start = svg.find("<svg").unwrap_or(0);
    let end = svg[start..]
        .find('>')
        .map_or(svg.len(), |place| start + place + 1);
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\" xmlns=\"http://www.w3.org/2000/svg\">{}",
        &svg[end..]
    )
}

/// Curves over places along an axis that have names, such as numbers of clients.
pub(crate) struct Curves<'a> {
    /// Text for readers who cannot see the plot.
    pub(crate) title: &'a str,
    pub(crate) x_desc: &'a str,
    pub(crate) x_labels: &'a [String],
    pub(crate) y_label: &'a dyn Fn(f64) -> String,
    pub(crate) curves: Vec<Curve>,
}

/// By place: the value, and the lowest and highest of the rounds behind it.
pub(crate) struct Curve {
    pub(crate) points: Vec<Option<(f64, (f64, f64))>>,
}

/// Draws curves, each with a bar that spans the rounds at every point.
pub(crate) fn curves(drawing: &Curves<'_>) -> Result<String> {
    const SIZE: (u32, u32) = (460, 300);
    let labels = drawing.x_labels;
    let points = drawing
        .curves
        .iter()
        .flat_map(|curve| curve.points.iter().flatten());
    let most = points.map(|(_, (_, high))| *high).fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(12)
            .x_label_area_size(36)
            .y_label_area_size(72)
            .build_cartesian_2d(0..(labels.len() as i32 - 1).max(1), 0.0..most * 1.08)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(BLACK.mix(0.12))
            .light_line_style(BLACK.mix(0.0))
            .axis_style(BLACK.mix(0.5))
            .x_labels(labels.len().max(2))
            .y_labels(6)
            .label_style(words(13))
            .axis_desc_style(words(13))
            .x_desc(drawing.x_desc)
            .x_label_formatter(&|place| labels.get(*place as usize).cloned().unwrap_or_default())
            .y_label_formatter(&|value| (drawing.y_label)(*value))
            .draw()
            .map_err(failed)?;
        for (place, curve) in drawing.curves.iter().enumerate() {
            let colour = rgb(curve_colour(place));
            let points: Vec<_> = curve
                .points
                .iter()
                .enumerate()
                .filter_map(|(x, point)| Some((x as i32, (*point)?)))
                .collect();
            let mark = curve_mark(place);
            let line = points.iter().map(|(x, (value, _))| (*x, *value));
            let style = colour.stroke_width(2);
            match mark {
                Mark::Disc => chart.draw_series(LineSeries::new(line, style)).map(drop),
                Mark::Ring => chart
                    .draw_series(DashedLineSeries::new(line, 7, 4, style))
                    .map(drop),
                Mark::Square => chart
                    .draw_series(DashedLineSeries::new(line, 2, 4, style))
                    .map(drop),
            }
            .map_err(failed)?;
            chart
                .draw_series(points.iter().map(|(x, (_, (low, high)))| {
                    PathElement::new(vec![(*x, *low), (*x, *high)], colour.mix(0.5).stroke_width(4))
                }))
                .map_err(failed)?;
            let at = points
                .iter()
                .map(|(x, (value, _))| EmptyElement::at((*x, *value)));
            match mark {
                Mark::Disc => chart
                    .draw_series(at.map(|at| at + Circle::new((0, 0), 4, colour.filled())))
                    .map(drop),
                Mark::Ring => chart
                    .draw_series(at.map(|at| at + Circle::new((0, 0), 4, style)))
                    .map(drop),
                Mark::Square => chart
                    .draw_series(at.map(|at| at + Rectangle::new([(-4, -4), (4, 4)], colour.filled())))
                    .map(drop),
            }
            .map_err(failed)?;
        }
        root.present().map_err(failed)?;
    }
    Ok(finish(svg, SIZE.0, SIZE.1, drawing.title))
}

/// Transactions a second over clients, a curve per variant.
pub(super) fn throughput(result: &BenchResult, workload: &str) -> Result<String> {
    let clients = &result.parameters.clients;
    let curve = |variant: &crate::result::VariantInfo| Curve {
        points: clients
            .iter()
            .map(|count| {
                let cell = result.cell(workload, *count, &variant.name)?;
                let rounds = cell.tps_rounds.iter();
                let range = rounds.fold((cell.tps, cell.tps), |(low, high), tps| {
                    (low.min(*tps), high.max(*tps))
                });
                Some((cell.tps, range))
            })
            .collect(),
    };
    curves(&Curves {
        title: &format!("throughput of {workload} over clients"),
        x_desc: "clients",
        x_labels: &clients.iter().map(usize::to_string).collect::<Vec<_>>(),
        y_label: &grouped,
        curves: result.variants.iter().map(curve).collect(),
    })
}

/// The clients' time by wait, a bar per client count and variant.
pub(super) fn waits(result: &BenchResult, workload: &str, legend: &[(String, Colour)]) -> Result<String> {
    const WIDTH: u32 = 460;
    const LEFT: i32 = 46;
    const BAR: i32 = 13;
    const GROUP_GAP: i32 = 10;
    const TOP: i32 = 6;
    let groups = result.parameters.clients.len() as i32;
    let bars = result.variants.len() as i32;
    let bottom = TOP + groups * (bars * (BAR + 2) + GROUP_GAP);
    let size = (WIDTH, bottom as u32 + 34);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let right = WIDTH as i32 - 12;
        let x_of = |share: f64| LEFT + ((right - LEFT) as f64 * share).round() as i32;
        let mut y = TOP;
        for clients in &result.parameters.clients {
            let middle = y + bars * (BAR + 2) / 2;
            let style = words(13).pos(Pos::new(HPos::Right, VPos::Center));
            root.draw(&Text::new(clients.to_string(), (LEFT - 14, middle), style))
                .map_err(failed)?;
            for (place, variant) in result.variants.iter().enumerate() {
                // A strip in the variant's colour tells whose bar it is.
                let strip = [(LEFT - 8, y), (LEFT - 3, y + BAR)];
                root.draw(&Rectangle::new(strip, rgb(curve_colour(place)).filled()))
                    .map_err(failed)?;
                if let Some(cell) = result.cell(workload, *clients, &variant.name) {
                    let mut from = 0.0;
                    for (event, colour) in legend {
                        let share = if event == OTHER {
                            1.0 - from
                        } else {
                            cell.waits
                                .iter()
                                .find(|wait| wait.event == *event)
                                .map_or(0.0, |wait| wait.share)
                        };
                        let bar = [(x_of(from), y), (x_of((from + share).min(1.0)), y + BAR)];
                        if bar[0].0 < bar[1].0 {
                            root.draw(&Rectangle::new(bar, rgb(*colour).filled()))
                                .map_err(failed)?;
                        }
                        from += share;
                    }
                }
                y += BAR + 2;
            }
            y += GROUP_GAP;
        }
        axis(&root, bottom, x_of)?;
        root.present().map_err(failed)?;
    }
    Ok(finish(
        svg,
        size.0,
        size.1,
        &format!("what the clients of {workload} waited for"),
    ))
}

fn axis(root: &DrawingArea<SVGBackend<'_>, Shift>, y: i32, x_of: impl Fn(f64) -> i32) -> Result<()> {
    let line = PathElement::new(vec![(x_of(0.0), y), (x_of(1.0), y)], BLACK.mix(0.5));
    root.draw(&line).map_err(failed)?;
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        let tick = PathElement::new(vec![(x_of(share), y), (x_of(share), y + 4)], BLACK.mix(0.5));
        root.draw(&tick).map_err(failed)?;
        let side = if quarter == 4 { HPos::Right } else { HPos::Center };
        let style = words(13).pos(Pos::new(side, VPos::Top));
        root.draw(&Text::new(
            format!("{:.0} %", share * 100.0),
            (x_of(share), y + 8),
            style,
        ))
        .map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::tests::example;

    #[test]
    fn words_take_the_pages_colour() {
        let result = example();
        let legend = wait_legend(&result);
        assert_eq!(legend[0].0, RUNNING);
        for svg in [
            throughput(&result, "tpcb-like").unwrap(),
            waits(&result, "tpcb-like", &legend).unwrap(),
        ] {
            assert!(svg.contains("currentColor") && !svg.contains("#000000"), "{svg}");
            assert!(
                svg.starts_with("<svg viewBox=") && svg.trim_end().ends_with("</svg>"),
                "{svg}"
            );
        }
    }

    #[test]
    fn eighteen_curves_are_told_apart() {
        let keys: Vec<_> = (0..18)
            .map(|place| (curve_colour(place), curve_mark(place)))
            .collect();
        for (place, key) in keys.iter().enumerate() {
            assert!(
                !keys[..place].contains(key),
                "curve {place} looks like an earlier one"
            );
        }
        let value = |place: usize| Some((place as f64, (place as f64, place as f64)));
        let svg = curves(&Curves {
            title: "all marks",
            x_desc: "clients",
            x_labels: &["1".to_owned(), "2".to_owned()],
            y_label: &grouped,
            curves: (0..18)
                .map(|place| Curve {
                    points: vec![value(place), value(place + 1)],
                })
                .collect(),
        })
        .unwrap();
        let (red, green, blue) = curve_colour(0);
        let hex = format!("#{red:02X}{green:02X}{blue:02X}");
        let drawn = |element: &str| {
            svg.lines()
                .filter(|line| line.contains(element) && line.contains(&hex))
                .count()
        };
        assert_eq!(drawn("<circle"), 4, "two discs and two rings");
        assert_eq!(drawn("<rect"), 2, "two squares");
    }

    #[test]
    fn one_client_count_can_be_drawn() {
        let mut result = example();
        result.parameters.clients = vec![4];
        throughput(&result, "tpcb-like").unwrap();
        waits(&result, "tpcb-like", &wait_legend(&result)).unwrap();
    }
}
