//! Switches: which variant of a mechanism runs.
//!
//! A mechanism with variants is a folder: `mod.rs` holds the contract, the rules and the dispatch, the
//! baseline has a file, and so has each variant. Beside the contract is one enum, made by
//! [`switch!`](crate::switch), that names the variants. Configuration, `clearway mechanisms`, bench,
//! simulator and test scripts take their lists from the enum, so a new variant is listed once.

use core::fmt::Debug;

/// The enum of one switch.
pub trait Switch: Copy + Eq + Debug + Send + Sync + 'static {
    /// The switch's name in a configuration, such as `lwlock`.
    const NAME: &'static str;
    /// The decision that the switch makes, in a sentence or two.
    const ABOUT: &'static str;
    /// Every variant, the baseline first. Test suites run over it.
    const ALL: &'static [Self];
    /// The name and the text of each of [`ALL`](Self::ALL), in the same order.
    const TEXTS: &'static [VariantText];
    /// The names of variants that are planned and not built.
    const PLANNED: &'static [&'static str];
    /// The variant of the preset `clearway`, and the enum's default.
    const BEST: Self;
    /// The evidence for [`BEST`](Self::BEST), and for not choosing, or not yet, variants that were expected to win.
    /// Empty while a single variant is built.
    const WHY: &'static [Evidence];

    /// Beside which variants of another switch this one decides anything; `None`: beside all.
    const ONLY_BESIDE: Option<OnlyBeside>;

    /// The switch without its type: its texts, variants and evidence.
    const DESCRIPTION: SwitchDescription = SwitchDescription {
        name: Self::NAME,
        about: Self::ABOUT,
        variants: Self::TEXTS,
        planned: Self::PLANNED,
        why: Self::WHY,
        only_beside: Self::ONLY_BESIDE,
    };

    /// The variant's name in a configuration.
    fn name(self) -> &'static str;

    /// The variant of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|variant| variant.name() == name)
    }

    /// True if this switch decides anything beside that variant of another one.
    fn is_obeyed_beside<S: Switch>(other: S) -> bool {
        Self::ONLY_BESIDE.is_none_or(|beside| beside.admits(S::NAME, other.name()))
    }
}

/// A variant, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariantText {
    /// Its name in a configuration.
    pub name: &'static str,
    /// The way it works, in a sentence or two.
    pub text: &'static str,
}

/// Evidence for or against a variant in the preset `clearway`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// The variant's name in a configuration.
    pub variant: &'static str,
    /// The finding, in a line.
    pub text: &'static str,
    /// The section of the documentation that has the figures, as `docs/PAGE.md#SECTION`.
    pub section: &'static str,
}

/// The variants of another switch beside which a switch decides anything. Beside the others it is ignored, or changes
/// nothing that it is there for, so a test that runs it there tests none of its variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnlyBeside {
    /// The other switch's name in a configuration.
    pub switch: &'static str,
    /// The names of its variants.
    pub variants: &'static [&'static str],
}

impl OnlyBeside {
    /// True if this allows that variant of that switch; it allows each of any other switch.
    pub fn admits(&self, switch: &str, variant: &str) -> bool {
        self.switch != switch || self.variants.contains(&variant)
    }
}

/// A switch, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchDescription {
    /// Its name in a configuration.
    pub name: &'static str,
    /// The decision that it makes.
    pub about: &'static str,
    /// The variants, the baseline first.
    pub variants: &'static [VariantText],
    /// The names of variants that are planned and not built.
    pub planned: &'static [&'static str],
    /// The evidence for the best variant.
    pub why: &'static [Evidence],
    /// Beside which variants of another switch this one decides anything; `None`: beside all.
    pub only_beside: Option<OnlyBeside>,
}

/// Defines the enum of a switch. The doc comments are the texts that `clearway mechanisms` prints; the first
/// variant is the baseline, and `best` names the default. `why`, which only a switch with a single variant lacks,
/// has the evidence that `clearway mechanisms --why` prints. A switch that only some variants of another one obey says
/// so behind `planned`: `, only beside "doors" ["front", "garden"]`. Suites and the sets of variants for tests go by it.
///
/// ```
/// use clearway_machine::{Switch, switch};
///
/// switch! {
///     /// How a guest is greeted.
///     pub enum GreetingVariant = "greeting", best Warm, planned ["song"] {
///         /// With a nod.
///         Nod = "nod",
///         /// With both hands.
///         Warm = "warm",
///     }
///     why {
///         Warm: "9 of 10 guests came again." in "docs/guests.md#who-came-again";
///     }
/// }
///
/// assert_eq!(GreetingVariant::ALL, [GreetingVariant::Nod, GreetingVariant::Warm]);
/// assert_eq!(GreetingVariant::named("warm"), Some(GreetingVariant::default()));
/// assert_eq!(GreetingVariant::DESCRIPTION.variants[0].text, "With a nod.");
/// assert_eq!(GreetingVariant::WHY[0].variant, "warm");
/// ```
#[macro_export]
macro_rules! switch {
    (
        $(#[doc = $about:literal])+
        $visibility:vis enum $switch:ident = $name:literal, best $best:ident, planned [$($planned:literal),*]
            $(, only beside $other:literal [$($admitted:literal),+])?
        {
            $( $(#[doc = $text:literal])+ $variant:ident = $variant_name:literal ),+ $(,)?
        }
        $( why { $( $evident:ident: $evidence:literal in $section:literal; )+ } )?
    ) => {
        $(#[doc = $about])+
        #[doc = concat!("The switch `", $name, "`.")]
        // repr(u8) because a latch in memory that processes share keeps its variants.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        $visibility enum $switch {
            $( $(#[doc = $text])+ $variant, )+
        }

        impl $crate::Switch for $switch {
            const NAME: &'static str = $name;
            const ABOUT: &'static str = concat!($($about),+).trim_ascii();
            const ALL: &'static [Self] = &[$($switch::$variant),+];
            const TEXTS: &'static [$crate::VariantText] = &[
                $( $crate::VariantText { name: $variant_name, text: concat!($($text),+).trim_ascii() } ),+
            ];
            const PLANNED: &'static [&'static str] = &[$($planned),*];
            const BEST: Self = $switch::$best;
            const WHY: &'static [$crate::Evidence] = &[$($(
                $crate::Evidence {
                    // ALL and TEXTS are in the order of the enum.
                    variant: <Self as $crate::Switch>::TEXTS[$switch::$evident as usize].name,
                    text: $evidence,
                    section: $section,
                }
            ),+)?];
            const ONLY_BESIDE: Option<$crate::OnlyBeside> = $crate::switch!(
                @only_beside $($other [$($admitted),+])?
            );

            #[inline]
            fn name(self) -> &'static str {
                match self { $( $switch::$variant => $variant_name ),+ }
            }
        }

        impl Default for $switch {
            fn default() -> Self {
                <Self as $crate::Switch>::BEST
            }
        }
    };
    (@only_beside) => { None };
    (@only_beside $other:literal [$($admitted:literal),+]) => {
        Some($crate::OnlyBeside { switch: $other, variants: &[$($admitted),+] })
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    switch! {
        /// The way a cup is filled,
        /// and how far.
        enum CupVariant = "cup", best Slow, planned ["never"] {
            /// At once.
            Fast = "fast",
            /// Drop by
            /// drop.
            Slow = "slow",
        }
        why {
            Slow: "Spills nothing." in "docs/cups.md#spills";
            Fast: "Spills." in "docs/cups.md#spills";
        }
    }

    switch! {
        /// The way a drop falls.
        enum DropVariant = "drop", best Straight, planned [], only beside "cup" ["slow"] {
            /// Down.
            Straight = "straight",
        }
    }

    #[test]
    fn a_switch_says_which_variants_of_another_obey_it() {
        assert!(DropVariant::is_obeyed_beside(CupVariant::Slow));
        assert!(!DropVariant::is_obeyed_beside(CupVariant::Fast));
        assert!(DropVariant::is_obeyed_beside(DropVariant::Straight));
        assert!(CupVariant::is_obeyed_beside(DropVariant::Straight));
        let beside = DropVariant::DESCRIPTION.only_beside.unwrap();
        assert_eq!((beside.switch, beside.variants), ("cup", &["slow"][..]));
    }

    #[test]
    fn names_and_texts_come_from_the_definition() {
        assert_eq!(CupVariant::DESCRIPTION.name, "cup");
        assert_eq!(
            CupVariant::DESCRIPTION.about,
            "The way a cup is filled, and how far."
        );
        assert_eq!(CupVariant::TEXTS[1].text, "Drop by drop.");
        assert_eq!(CupVariant::PLANNED, ["never"]);
        assert_eq!(CupVariant::ALL[0], CupVariant::Fast, "the baseline comes first");
        assert_eq!(CupVariant::default(), CupVariant::Slow);
        assert_eq!(CupVariant::named("fast"), Some(CupVariant::Fast));
        assert_eq!(CupVariant::named("never"), None);
        let evidence: Vec<_> = CupVariant::WHY
            .iter()
            .map(|why| (why.variant, why.text))
            .collect();
        assert_eq!(evidence, [("slow", "Spills nothing."), ("fast", "Spills.")]);
        for (variant, text) in CupVariant::ALL.iter().zip(CupVariant::TEXTS) {
            assert_eq!(variant.name(), text.name);
        }
    }
}
