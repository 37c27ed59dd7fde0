//! The figures of all seeds of one number of clients and variant.

use serde::{Deserialize, Serialize};

use crate::simulate::order::{Order, Verdict};
use crate::simulate::point::Point;
use crate::stats::median;

/// A figure under all seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The lowest.
    pub low: f64,
    /// The highest.
    pub high: f64,
}

impl Spread {
    pub(crate) fn of(figures: &[f64]) -> Self {
        Self {
            median: median(figures),
            low: figures.iter().copied().fold(f64::INFINITY, f64::min),
            high: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The ratios of the rates of equal seeds; those to a rate of 0 are left out.
pub(crate) fn ratios(rates: &[f64], base: &[f64]) -> Option<Spread> {
    let pairs = rates.iter().zip(base).filter(|(_, base)| **base > 0.0);
    let ratios: Vec<f64> = pairs.map(|(rate, base)| rate / base).collect();
    (!ratios.is_empty()).then(|| Spread::of(&ratios))
}

/// One number of clients under one variant: the figures of all its seeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Number of clients.
    pub clients: usize,
    /// The variant's name.
    pub variant: String,
    /// Transactions (or acquisitions) a simulated second.
    pub tps: Spread,
    /// To those of the first variant, ratios of equal seeds; none for the first itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_first: Option<Spread>,
    /// The comparison with the first variant; none for the first itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// CPU time of a transaction, µs.
    pub cpu_us: Spread,
    /// 99th percentile of the latency, µs.
    pub p99_us: Spread,
}

/// Cells and orders of points: clients outermost, then variants, then seeds.
pub(crate) fn summarize(points: &[Point], variants: usize, seeds: usize) -> (Vec<Cell>, Vec<Order>) {
    let rates = |points: &[Point]| points.iter().map(|point| point.tps).collect::<Vec<f64>>();
    let (mut cells, mut orders) = (Vec::new(), Vec::new());
    for of_clients in points.chunks(variants * seeds) {
        let base = rates(&of_clients[..seeds.min(of_clients.len())]);
        let mut all = Vec::new();
        for (number, of_variant) in of_clients.chunks(seeds).enumerate() {
            let figures =
                |figure: fn(&Point) -> f64| Spread::of(&of_variant.iter().map(figure).collect::<Vec<f64>>());
            let tps = rates(of_variant);
            let is_first = number == 0;
            cells.push(Cell {
                clients: of_variant[0].clients,
                variant: of_variant[0].variant.clone(),
                tps: Spread::of(&tps),
                to_first: ratios(&tps, &base).filter(|_| !is_first),
                verdict: (!is_first).then(|| Verdict::of(&tps, &base)),
                cpu_us: figures(|point| point.cpu_us),
                p99_us: figures(|point| point.p99_us),
            });
            all.push((&*of_variant[0].variant, tps));
        }
        orders.push(Order::of(of_clients[0].clients, &all));
    }
    (cells, orders)
}

/// The point of the seed whose rate is nearest to the median: it stands for all of them in the columns that have no
/// spread of their own.
pub(crate) fn nearest_to_median(points: &[Point]) -> Option<&Point> {
    let middle = median(&points.iter().map(|point| point.tps).collect::<Vec<f64>>());
    let off = |point: &&Point| (point.tps - middle).abs();
    points.iter().min_by(|one, other| off(one).total_cmp(&off(other)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_median_and_both_ends() {
        let spread = Spread::of(&[3.0, 1.0, 2.0]);
        assert_eq!((spread.median, spread.low, spread.high), (2.0, 1.0, 3.0));
        let ratio = ratios(&[3.0, 1.0, 2.0], &[1.0, 0.0, 4.0]).unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (1.75, 0.5, 3.0));
        assert_eq!(ratios(&[3.0], &[0.0]), None);
    }
}
