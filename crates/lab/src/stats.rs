//! Medians and spreads of a handful of samples.

/// The median; the mean of the middle two for an even count, 0 for none.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => (sorted[count / 2 - 1] + sorted[count / 2]) / 2.0,
    }
}

/// Half the range of the samples, as a share of their median: the number behind the ±.
pub(crate) fn spread(samples: &[f64]) -> f64 {
    let middle = median(samples);
    let (low, high) = samples
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), sample| {
            (low.min(*sample), high.max(*sample))
        });
    if samples.is_empty() || middle == 0.0 {
        0.0
    } else {
        (high - low) / 2.0 / middle
    }
}

/// The median of the ratios of samples taken side by side.
pub(crate) fn paired_ratio(base: &[f64], other: &[f64]) -> Option<f64> {
    let ratios = paired_ratios(base, other);
    (!ratios.is_empty()).then(|| median(&ratios))
}

/// The bounds of the ratios of samples taken side by side: their quartiles, or the least and the greatest of fewer than
/// [`QUARTILES_FROM`].
pub(crate) fn paired_bounds(base: &[f64], other: &[f64]) -> Option<[f64; 2]> {
    let mut ratios = paired_ratios(base, other);
    ratios.sort_by(f64::total_cmp);
    let outside = if ratios.len() < QUARTILES_FROM { 0.0 } else { 0.25 };
    (!ratios.is_empty()).then(|| [quantile(&ratios, outside), quantile(&ratios, 1.0 - outside)])
}

/// The [`spread`] of the ratios of samples taken side by side.
pub(crate) fn paired_spread(base: &[f64], other: &[f64]) -> Option<f64> {
    let ratios = paired_ratios(base, other);
    (!ratios.is_empty()).then(|| spread(&ratios))
}

/// The spread from which on ratios are [unsteady](is_unsteady).
const UNSTEADY: f64 = 0.5;

/// True if a ratio lies within a spread of half of it and more: the host's noise is larger than what it tells apart, whatever
/// the middle half of the rounds says.
pub(crate) fn is_unsteady(ratio: f64, spread: f64) -> bool {
    spread >= UNSTEADY && (ratio - 1.0).abs() < spread * ratio.max(1.0)
}

/// Ratios whose quartiles bound their middle half. Those of fewer leave out next to nothing, or half of them.
const QUARTILES_FROM: usize = 5;

fn paired_ratios(base: &[f64], other: &[f64]) -> Vec<f64> {
    let pairs = base.iter().zip(other).filter(|(base, _)| **base > 0.0);
    pairs.map(|(base, other)| other / base).collect()
}

/// The quantile of sorted samples, of which there are some, between the two that are next to it.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 5.0]), 5.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }

    #[test]
    fn the_spread_is_half_the_range() {
        assert_eq!(spread(&[]), 0.0);
        assert_eq!(spread(&[10.0]), 0.0);
        assert_eq!(spread(&[90.0, 100.0, 110.0]), 0.1);
    }

    #[test]
    fn ratios_are_taken_between_neighbours() {
        // The machine was twice as fast in the second round; B was a tenth faster in both.
        assert_eq!(paired_ratio(&[100.0, 200.0], &[110.0, 220.0]), Some(1.1));
        assert_eq!(paired_ratio(&[], &[]), None);
        assert_eq!(paired_ratio(&[0.0], &[1.0]), None);
    }

    #[test]
    fn the_bounds_of_few_ratios_are_the_outermost_and_of_more_the_quartiles() {
        let bounds = |ratios: &[f64]| paired_bounds(&vec![1.0; ratios.len()], ratios);
        assert_eq!(bounds(&[]), None);
        assert_eq!(bounds(&[1.5]), Some([1.5, 1.5]));
        assert_eq!(bounds(&[3.0, 1.0, 2.0, 4.0]), Some([1.0, 4.0]));
        assert_eq!(bounds(&[5.0, 1.0, 3.0, 2.0, 9.0]), Some([2.0, 5.0]));
        assert_eq!(bounds(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), Some([1.25, 3.75]));
    }
}
