//! Sets of variants under which test suites run again, so that each variant is tested and the sets are few.
//!
//! # Example
//! The preset has `log_flush = polling` and `log_wake = leader`. The suites have run under it; what is left are six
//! variants of the one switch and one of the other, and a set costs minutes. Put side by side they make six sets, but
//! `single`, `split`, `self-clocking` and `overlapped` wake by a way of their own: a `log_wake` beside one of
//! them is chosen and never runs. So `one-word` stands beside `group` or `gathering`. Where these are fewer than the
//! variants of `log_wake`, each of the rest gets a set in which `log_flush` is left at `polling`.
//!
//! # Rules
//! - C1: each variant that the preset does not choose is in exactly one set.
//! - C2: a set has at most one variant of a switch; the switches that it leaves out are as in the preset.
//! - C3: a variant of a switch that only some variants of another one obey
//!   ([`Switch::ONLY_BESIDE`](clearway_machine::Switch::ONLY_BESIDE)) is in a set with one of these.
//!
//! # Steps
//! 1. As many sets as the switch with the most variants left has of them. The first switch begins with the first set, the
//!    next with the second: so one with few variants is also tested with its default beside other switches' variants.
//! 2. Then the switches that others have to obey, in the same turn, but each variant into the first set that obeys it and
//!    has none of its switch. Where there is none, a further set begins with it.
//!
//! A set too many costs CI minutes, so a test says how few will do.

use clearway_machine::SwitchDescription;

use super::Mechanisms;

/// One variant chosen: a switch's name and the variant's.
type Assignment = (&'static str, &'static str);

impl Mechanisms {
    /// Sets of assignments for test suites that have run under the default preset. Each variant that the preset does not
    /// choose is in exactly one set, beside variants that obey it; and a set has at most one variant of a switch.
    pub fn covering_sets() -> Vec<Vec<Assignment>> {
        covering_sets(Mechanisms::SWITCHES, &Mechanisms::default().list())
    }
}

/// As [`Mechanisms::covering_sets`], for these switches and what the preset chooses of each.
fn covering_sets(switches: &[SwitchDescription], preset: &[Assignment]) -> Vec<Vec<Assignment>> {
    let left = |switch: &SwitchDescription| {
        let (name, names) = (switch.name, switch.variants.iter().map(|variant| variant.name));
        let others = names.filter(|variant| !preset.contains(&(name, variant)));
        others.map(|variant| (name, variant)).collect::<Vec<_>>()
    };
    let (dependent, independent): (Vec<_>, Vec<_>) = switches
        .iter()
        .filter(|switch| !left(switch).is_empty())
        .partition(|switch| switch.only_beside.is_some());
    let count = independent.iter().map(|switch| left(switch).len()).max();
    let count = count.unwrap_or(0);
    let mut sets: Vec<Vec<Assignment>> = vec![Vec::new(); count];
    for (turn, switch) in independent.iter().enumerate() {
        for (number, assignment) in left(switch).into_iter().enumerate() {
            sets[(turn + number) % count].push(assignment);
        }
    }
    for (turn, switch) in dependent.iter().enumerate() {
        for (number, assignment) in left(switch).into_iter().enumerate() {
            let mut places = (0..sets.len()).map(|place| (turn + number + place) % sets.len());
            let fits = |place: &usize| {
                let set = &sets[*place];
                is_obeyed_in(set, switch, preset) && set.iter().all(|(name, _)| *name != switch.name)
            };
            match places.find(fits) {
                Some(place) => sets[place].push(assignment),
                None => sets.push(vec![assignment]),
            }
        }
    }
    sets
}

/// True if `switch` decides anything under these assignments, with all other switches as in the preset.
fn is_obeyed_in(set: &[Assignment], switch: &SwitchDescription, preset: &[Assignment]) -> bool {
    let Some(beside) = switch.only_beside else {
        return true;
    };
    let mut chosen = set
        .iter()
        .chain(preset)
        .filter(|(name, _)| *name == beside.switch);
    chosen
        .next()
        .is_some_and(|(name, variant)| beside.admits(name, variant))
}

#[cfg(test)]
mod tests {
    use clearway_machine::{OnlyBeside, VariantText};

    use super::*;

    /// Rules C1 to C3.
    fn assert_cover(sets: &[Vec<Assignment>], switches: &[SwitchDescription], preset: &[Assignment]) {
        for switch in switches {
            for variant in switch.variants {
                let assignment = (switch.name, variant.name);
                let mut having = sets.iter().filter(|set| set.contains(&assignment));
                if preset.contains(&assignment) {
                    assert_eq!(having.next(), None, "{assignment:?} is the preset's");
                    continue;
                }
                let set = having
                    .next()
                    .unwrap_or_else(|| panic!("{assignment:?} is in no set"));
                assert_eq!(having.next(), None, "{assignment:?} is in two sets");
                assert!(
                    is_obeyed_in(set, switch, preset),
                    "{assignment:?} decides nothing in {set:?}"
                );
            }
        }
        for set in sets {
            assert!(!set.is_empty());
            let mut names: Vec<_> = set.iter().map(|(name, _)| name).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), set.len(), "two variants of one switch: {set:?}");
        }
    }

    #[test]
    fn each_variant_but_the_default_is_in_one_set_that_obeys_it() {
        let (switches, preset) = (Mechanisms::SWITCHES, Mechanisms::default().list());
        assert_cover(&Mechanisms::covering_sets(), switches, &preset);
    }

    /// Each variant of `log_flush` needs a set. Those of `time_slice` obey the preset's alone, and need sets without any
    /// other; those of `log_wake` for which the sets of its obeying variants are too few go into these, too.
    #[test]
    fn there_is_no_set_too_many() {
        let left = |name| Mechanisms::switch(name).unwrap().variants.len() - 1;
        let beside = |name| Mechanisms::switch(name).unwrap().only_beside.unwrap().variants;
        assert_eq!(beside("time_slice"), ["polling"]);
        // The preset's variant is among those that obey, and has no set of its own.
        let obeying = beside("log_wake").len() - 1;
        let without = left("time_slice").max(left("log_wake").saturating_sub(obeying));
        assert_eq!(Mechanisms::covering_sets().len(), left("log_flush") + without);
    }

    #[test]
    fn what_a_switch_is_obeyed_beside_exists() {
        for switch in Mechanisms::SWITCHES {
            let Some(beside) = switch.only_beside else {
                continue;
            };
            let other = Mechanisms::switch(beside.switch).unwrap();
            assert_eq!(
                other.only_beside, None,
                "{} depends on a dependent one",
                switch.name
            );
            for variant in beside.variants {
                let mut names = other.variants.iter().map(|known| known.name);
                assert!(
                    names.any(|name| name == *variant),
                    "{} has no variant {variant}",
                    other.name
                );
            }
        }
    }

    const fn text(name: &'static str) -> VariantText {
        VariantText { name, text: "" }
    }

    const fn switch(name: &'static str, variants: &'static [VariantText]) -> SwitchDescription {
        SwitchDescription {
            name,
            about: "",
            variants,
            planned: &[],
            why: &[],
            only_beside: None,
        }
    }

    /// No variant of `door` but the preset's obeys a `lock`: those of `lock` get sets in which `door` is left alone.
    #[test]
    fn a_variant_that_no_set_obeys_begins_one() {
        const DOORS: &[VariantText] = &[text("oak"), text("glass"), text("none")];
        const LOCKS: &[VariantText] = &[text("bolt"), text("latch"), text("chain")];
        let switches = [
            switch("door", DOORS),
            SwitchDescription {
                only_beside: Some(OnlyBeside {
                    switch: "door",
                    variants: &["oak"],
                }),
                ..switch("lock", LOCKS)
            },
        ];
        let preset = [("door", "oak"), ("lock", "bolt")];
        let sets = covering_sets(&switches, &preset);
        assert_cover(&sets, &switches, &preset);
        assert_eq!(sets.len(), 4);
    }
}
