//! An experiment in pieces, so that several machines share it.
//!
//! The pieces of an experiment are numbered from 0: its points, clients outermost, then variants, then seeds, and after
//! them the changes of a sweep, each with all its variants and seeds. Shard K of N, from 1, has the pieces K − 1, K − 1 + N,
//! K − 1 + 2 N, and so on. Neighbours are points of the same number of clients, which take about as long; so the shards
//! take about as long.
//!
//! A point depends on nothing but its own options. So all shards together, put back in the order of the pieces
//! ([`gather`](crate::gather)), are the result of the whole experiment, byte for byte.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// The pieces of an experiment to run: number `number` of `of`, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// From 1.
    pub number: usize,
    /// Number of shards.
    pub of: usize,
}

impl Shard {
    /// True if it has the piece of this number, from 0.
    pub(crate) fn has(self, piece: usize) -> bool {
        piece % self.of == self.number - 1
    }

    /// An error if none of the `pieces` pieces is its own.
    pub(crate) fn check(self, pieces: usize) -> Result<()> {
        if self.number <= pieces {
            return Ok(());
        }
        Err(LabError::EmptyShard {
            shard: self.to_string(),
            pieces,
        })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(number, of)| {
            let shard = Shard {
                number: number.parse().ok()?,
                of: of.parse().ok()?,
            };
            (1..=shard.of).contains(&shard.number).then_some(shard)
        });
        numbers.ok_or_else(|| "write K/N with K from 1 to N, as in 2/8: the second of eight".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_written_as_two_numbers() {
        let shard: Shard = "2/8".parse().unwrap();
        assert_eq!(
            (shard.number, shard.of, shard.to_string()),
            (2, 8, "2/8".to_owned())
        );
        for wrong in ["", "2", "0/8", "9/8", "2/", "/8", "a/b", "2/8/3", "-1/8", "1/0"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn each_piece_is_in_one_shard() {
        let shards: Vec<Shard> = (1..=5).map(|number| Shard { number, of: 5 }).collect();
        for piece in 0..23 {
            assert_eq!(shards.iter().filter(|shard| shard.has(piece)).count(), 1);
        }
        assert!(shards[4].check(5).is_ok() && shards[4].check(4).is_err());
    }
}
