//! The seeds with which every point of an experiment runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Seeds of an experiment, each once and one at least: `1..5` (both ends belong to it), `7`, or `1,4,9`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>")]
pub struct Seeds(Vec<u64>);

/// The most seeds of an experiment.
const SEEDS_MAX: usize = 1_000;

impl Seeds {
    /// One seed alone.
    pub fn one(seed: u64) -> Self {
        Self(vec![seed])
    }

    /// The seeds, in the order in which they were named.
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// Number of seeds, 1 at least.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    fn range(first: u64, last: u64) -> Option<Self> {
        let count = last.checked_sub(first)?;
        (count < SEEDS_MAX as u64).then(|| Self((first..=last).collect()))
    }
}

impl Default for Seeds {
    /// 1 to 3.
    fn default() -> Self {
        Self(vec![1, 2, 3])
    }
}

impl TryFrom<Vec<u64>> for Seeds {
    type Error = String;

    fn try_from(seeds: Vec<u64>) -> Result<Self, String> {
        if seeds.is_empty() || seeds.len() > SEEDS_MAX {
            return Err(format!("there must be 1 to {SEEDS_MAX} seeds"));
        }
        let mut sorted = seeds.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            // The same run twice would look like an agreement of two.
            Some(pair) => Err(format!("seed {} is named twice", pair[0])),
            None => Ok(Self(seeds)),
        }
    }
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("write 1..5, 7 or 1,4,9: 1 to {SEEDS_MAX} seeds");
        if let Some((first, last)) = text.split_once("..") {
            let (first, last) = (first.parse().ok(), last.parse().ok());
            let range = first.zip(last).and_then(|(first, last)| Self::range(first, last));
            return range.ok_or_else(wrong);
        }
        let seeds: Option<Vec<u64>> = text.split(',').map(|seed| seed.parse().ok()).collect();
        Self::try_from(seeds.ok_or_else(wrong)?)
    }
}

impl fmt::Display for Seeds {
    /// `seed 7`, `seeds 1 to 5`, or `seeds 1, 4, 9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_range = self
            .0
            .windows(2)
            .all(|pair| pair[0].checked_add(1) == Some(pair[1]));
        match self.0.as_slice() {
            [seed] => write!(f, "seed {seed}"),
            [first, .., last] if is_range => write!(f, "seeds {first} to {last}"),
            seeds => {
                let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
                write!(f, "seeds {}", seeds.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_a_list() {
        for (text, seeds, said) in [
            ("7", &[7][..], "seed 7"),
            ("1..5", &[1, 2, 3, 4, 5], "seeds 1 to 5"),
            ("4..4", &[4], "seed 4"),
            ("9,1,4", &[9, 1, 4], "seeds 9, 1, 4"),
        ] {
            let parsed: Seeds = text.parse().unwrap();
            assert_eq!((parsed.as_slice(), &*parsed.to_string()), (seeds, said), "{text}");
        }
        for wrong in [
            "",
            "a",
            "5..1",
            "1..",
            "1..5000",
            "1,,2",
            "-1",
            "0..18446744073709551615",
            "1..2..3",
        ] {
            assert!(wrong.parse::<Seeds>().unwrap_err().contains("1..5"), "{wrong}");
        }
        assert_eq!("1,2,1".parse::<Seeds>().unwrap_err(), "seed 1 is named twice");
        assert!(
            serde_json::from_str::<Seeds>("[]").is_err() && serde_json::from_str::<Seeds>("[3, 3]").is_err()
        );
        assert_eq!(serde_json::to_string(&Seeds::default()).unwrap(), "[1,2,3]");
    }
}
