//! The order of variants that all seeds share.
//!
//! # Rules
//! O1. Two variants are compared seed by seed: their ratios are of equal seeds.
//! O2. One is *better* if it is so under every seed, and by [`STEP`] or more by the median of the ratios.
//! O3. The seeds *disagree* about two variants if each of the two is ahead under some seed, and under some seed by more
//!     than [`STEP`]. They then have no order, however far their medians are apart.
//! O4. All other pairs are *level*.
//! O5. A number of clients has its variants in groups, best first: each variant of a group is better than each of every
//!     later group. So no step of the list claims more than O2 does.
//!
//! An order by medians alone would call one in each case of O3: three seeds with ratios of 0.91, 1.20 and 1.13 have a
//! median of 1.13, and two such seeds more may turn it.

use serde::{Deserialize, Serialize};

use crate::stats::median;

/// The part by which two rates differ at least if one of them is called better.
pub(crate) const STEP: f64 = 0.01;

/// Result of the comparison of one variant with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It is better under every seed.
    Better,
    /// It is worse under every seed.
    Worse,
    /// No seed tells them apart, or all do by less than a hundredth in the median.
    Level,
    /// Each of the two is ahead under some seed.
    SeedsDisagree,
}

impl Verdict {
    /// The comparison of `rates` with `base`, which are of the same seeds.
    pub(crate) fn of(rates: &[f64], base: &[f64]) -> Self {
        let is_better = |rates: &[f64], base: &[f64]| {
            let ratios: Vec<f64> = rates.iter().zip(base).map(|(rate, base)| rate / base).collect();
            rates.iter().zip(base).all(|(rate, base)| rate > base) && median(&ratios) >= 1.0 + STEP
        };
        if is_better(rates, base) {
            return Self::Better;
        }
        if is_better(base, rates) {
            return Self::Worse;
        }
        let pairs = || rates.iter().zip(base);
        let is_ahead = pairs().any(|(rate, base)| rate > base);
        let is_behind = pairs().any(|(rate, base)| rate < base);
        let is_far = pairs().any(|(rate, base)| rate.max(*base) > rate.min(*base) * (1.0 + STEP));
        if is_ahead && is_behind && is_far {
            Self::SeedsDisagree
        } else {
            Self::Level
        }
    }
}

/// Variants that have no order among themselves; or one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Their names, in the order of their medians.
    pub variants: Vec<String>,
    /// True if the seeds disagree about two of them; false if they are level.
    pub seeds_disagree: bool,
}

/// The order of the variants with one number of clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Number of clients.
    pub clients: usize,
    /// Best first: each variant of a group is better than each of every later one.
    pub groups: Vec<Group>,
}

impl Order {
    /// The order of variants by their rates under each seed.
    pub(crate) fn of(clients: usize, variants: &[(&str, Vec<f64>)]) -> Self {
        let mut sorted: Vec<&(&str, Vec<f64>)> = variants.iter().collect();
        sorted.sort_by(|(_, one), (_, other)| median(other).total_cmp(&median(one)));
        let ends_group = |end: usize| {
            let (before, after) = sorted.split_at(end);
            let pairs = before
                .iter()
                .flat_map(|(_, one)| after.iter().map(move |(_, other)| (one, other)));
            pairs
                .into_iter()
                .all(|(one, other)| Verdict::of(one, other) == Verdict::Better)
        };
        let mut groups = Vec::new();
        let mut from = 0;
        for end in 1..=sorted.len() {
            if end == sorted.len() || ends_group(end) {
                groups.push(group(&sorted[from..end]));
                from = end;
            }
        }
        Self { clients, groups }
    }

    /// The variant that is better than all others; none if there is no such one, or no other.
    pub(crate) fn best(&self) -> Option<&str> {
        match self.groups.as_slice() {
            [first, _, ..] if first.variants.len() == 1 => Some(&first.variants[0]),
            _ => None,
        }
    }
}

fn group(variants: &[&(&str, Vec<f64>)]) -> Group {
    let disagree = |(one, (_, rates)): (usize, &&(&str, Vec<f64>))| {
        let others = variants[..one].iter();
        others
            .into_iter()
            .any(|(_, other)| Verdict::of(rates, other) == Verdict::SeedsDisagree)
    };
    Group {
        variants: variants.iter().map(|(name, _)| (*name).to_owned()).collect(),
        seeds_disagree: variants.iter().enumerate().any(disagree),
    }
}

/// Orders as lines of text, with numbers of clients that have the same order in one line.
pub(crate) fn lines(orders: &[Order]) -> String {
    let mut text = String::new();
    let mut rest = orders;
    while let Some(first) = rest.first() {
        let same = rest
            .iter()
            .take_while(|order| order.groups == first.groups)
            .count();
        let clients: Vec<String> = rest[..same]
            .iter()
            .map(|order| order.clients.to_string())
            .collect();
        let groups: Vec<String> = first.groups.iter().map(group_text).collect();
        text.push_str(&format!(
            "  {} clients: {}\n",
            clients.join(", "),
            groups.join(" > ")
        ));
        rest = &rest[same..];
    }
    text
}

fn group_text(group: &Group) -> String {
    let names = group.variants.join(", ");
    match (group.variants.len(), group.seeds_disagree) {
        (1, _) => names,
        (_, true) => format!("{names} (no order: the seeds disagree)"),
        (_, false) => format!("{names} (level)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_is_better_only_if_every_seed_says_so() {
        let base = [100.0, 100.0, 100.0];
        for (rates, verdict) in [
            ([102.0, 101.0, 140.0], Verdict::Better),
            ([98.0, 90.0, 97.0], Verdict::Worse),
            ([91.0, 120.0, 113.0], Verdict::SeedsDisagree),
            ([93.0, 101.0, 102.0], Verdict::SeedsDisagree),
            ([99.5, 100.5, 100.0], Verdict::Level),
            ([100.1, 100.5, 103.0], Verdict::Level),
            ([100.0, 100.0, 100.0], Verdict::Level),
        ] {
            assert_eq!(Verdict::of(&rates, &base), verdict, "{rates:?}");
        }
        // Equal seeds are compared: what all points of a seed share is no disagreement.
        assert_eq!(Verdict::of(&[52.0, 104.0], &[50.0, 100.0]), Verdict::Better);
        assert_eq!(Verdict::of(&[0.0], &[0.0]), Verdict::Level);
        assert_eq!(Verdict::of(&[1.0], &[0.0]), Verdict::Better);
    }

    #[test]
    fn no_step_of_the_list_claims_what_a_seed_denies() {
        let order = Order::of(
            8,
            &[
                ("slow", vec![50.0, 51.0, 52.0]),
                ("wide", vec![80.0, 130.0, 99.0]),
                ("steady", vec![100.0, 100.0, 100.0]),
                ("fast", vec![200.0, 210.0, 220.0]),
                ("twin", vec![201.0, 209.5, 220.5]),
            ],
        );
        let names: Vec<&[String]> = order.groups.iter().map(|group| &*group.variants).collect();
        assert_eq!(names, [&["fast", "twin"][..], &["steady", "wide"], &["slow"]]);
        let disagree: Vec<bool> = order.groups.iter().map(|group| group.seeds_disagree).collect();
        assert_eq!(disagree, [false, true, false]);
        assert_eq!(order.best(), None);
        assert_eq!(
            lines(&[order.clone(), Order { clients: 9, ..order }]),
            "  8, 9 clients: fast, twin (level) > steady, wide (no order: the seeds disagree) > slow\n"
        );
        let one = Order::of(1, &[("a", vec![3.0]), ("b", vec![2.0])]);
        assert_eq!(one.best(), Some("a"));
        assert_eq!(Order::of(1, &[("a", vec![3.0])]).best(), None);
    }

    /// `middle` lies between the other two for two seeds and outside for one: nothing separates the three.
    #[test]
    fn a_variant_without_an_order_to_two_others_joins_them() {
        let order = Order::of(
            8,
            &[
                ("high", vec![120.0, 121.0, 122.0]),
                ("middle", vec![125.0, 110.0, 95.0]),
                ("low", vec![100.0, 101.0, 102.0]),
            ],
        );
        assert_eq!(order.groups.len(), 1);
        assert!(order.groups[0].seeds_disagree);
    }
}
