//! Variants that no number of clients tells from the first one are shown as one with it.
//!
//! A variant is folded if, with each number of clients, its throughput is level with the first one's ([`Verdict::Level`])
//! and its CPU time of a transaction is within a thousandth of the first one's under every seed. Where throughput is the
//! device's, CPU time tells variants apart, and those stay. `result.json` has all of them.

use crate::simulate::order::Verdict;
use crate::simulate::run::SimulationResult;

/// Least number of variants that are folded; fewer are shown.
const FOLDED_MIN: usize = 4;

/// The part by which two CPU times differ at least if they are told apart: most of a transaction's is work that all
/// variants have.
const CPU_TIME_STEP: f64 = 0.001;

/// True if a transaction takes as much CPU time under every seed.
fn is_as_dear(times: &[f64], base: &[f64]) -> bool {
    let mut pairs = times.iter().zip(base);
    pairs.all(|(time, base)| (time - base).abs() <= CPU_TIME_STEP * base)
}

/// The variants of a result that are folded.
pub(crate) struct Folded {
    /// By variant.
    is_folded: Vec<bool>,
    first: String,
    names: Vec<String>,
}

impl Folded {
    pub(crate) fn of(result: &SimulationResult) -> Self {
        let variants = &result.experiment.variants;
        let is_level = |variant: usize| {
            let figures = |cell: usize| -> (Vec<f64>, Vec<f64>) {
                let points = result.points_of(cell).iter();
                points.map(|point| (point.tps, point.cpu_us)).unzip()
            };
            (0..result.cells.len()).step_by(variants.len()).all(|first| {
                let ((rates, times), (base, base_times)) = (figures(first + variant), figures(first));
                Verdict::of(&rates, &base) == Verdict::Level && is_as_dear(&times, &base_times)
            })
        };
        let mut is_folded: Vec<bool> = (0..variants.len())
            .map(|variant| variant > 0 && is_level(variant))
            .collect();
        if is_folded.iter().filter(|folded| **folded).count() < FOLDED_MIN {
            is_folded.fill(false);
        }
        let folded = variants.iter().zip(&is_folded).filter(|(_, folded)| **folded);
        Self {
            names: folded.map(|(variant, _)| variant.name.clone()).collect(),
            first: variants
                .first()
                .map(|variant| variant.name.clone())
                .unwrap_or_default(),
            is_folded,
        }
    }

    /// True if the cell's variant is shown; cells and variants are counted from 0.
    pub(crate) fn shows(&self, cell: usize) -> bool {
        let variants = self.is_folded.len().max(1);
        self.is_folded.get(cell % variants).is_none_or(|folded| !folded)
    }

    /// A shown variant's name in a legend.
    pub(crate) fn name(&self, name: &str, variant: usize) -> String {
        match self.names.len() {
            0 => name.to_owned(),
            folded if variant == 0 => format!("{name}, and {folded} level with it"),
            _ => name.to_owned(),
        }
    }

    /// A line that names those that are not shown; empty if all are.
    pub(crate) fn text(&self) -> String {
        if self.names.is_empty() {
            return String::new();
        }
        format!(
            "\nLevel with {} in throughput and in CPU time, and not shown: {} variants ({}).\n",
            self.first,
            self.names.len(),
            self.names.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_tells_apart_what_a_device_makes_level() {
        assert!(is_as_dear(&[100.05, 99.95], &[100.0, 100.0]));
        assert!(!is_as_dear(&[100.05, 100.5], &[100.0, 100.0]));
    }
}
