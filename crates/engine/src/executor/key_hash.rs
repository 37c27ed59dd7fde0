//! The hash of a key's bytes, for tables of one statement.
//!
//! Eight bytes at a time are mixed by a multiplication whose upper half is folded onto its lower half. Each table has a
//! random start, so that no data are bad for all tables. It is no defence against a client that looks for bad data with
//! patience: such a client would slow down its own statement. SipHash, which is one, took 5 % of a hash join's time.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes the hashers of one table.
#[derive(Debug, Clone)]
pub(crate) struct KeyHash(u64);

impl Default for KeyHash {
    fn default() -> KeyHash {
        KeyHash(RandomState::new().hash_one(0_u8))
    }
}

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(self.0)
    }
}

/// Hashes one key.
#[derive(Debug)]
pub(crate) struct KeyHasher(u64);

/// An odd number without a pattern: the fraction of the golden ratio.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl KeyHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(FACTOR);
        // The length and the order of words count: what was there before stays in.
        self.0 = (product as u64 ^ (product >> 64) as u64).wrapping_add(self.0.rotate_left(29));
    }
}

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // A table takes its place from the lower bits and a tag from the upper ones.
        let product = u128::from(self.0) * u128::from(FACTOR);
        product as u64 ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeSet, HashSet};

    use super::*;

    /// Keys as indexes have them: numbers that differ in few bits, at either end, and texts of which one begins another.
    fn keys() -> Vec<Vec<u8>> {
        let numbers = 0..20_000_u64;
        let behind = numbers.clone().map(|number| number.to_be_bytes().to_vec());
        let before = numbers.clone().map(|number| number.to_le_bytes().to_vec());
        let strided = numbers.map(|number| (number << 20).to_be_bytes().repeat(2));
        let texts = (0..200).map(|length| vec![0; length]);
        let mut all: Vec<_> = behind.chain(before).chain(strided).chain(texts).collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn keys_are_spread_over_places_and_tags() {
        for _ in 0..20 {
            let (hash, keys) = (KeyHash::default(), keys());
            let hashes: Vec<u64> = keys.iter().map(|key| hash.hash_one(&key[..])).collect();
            assert_eq!(hashes.iter().collect::<HashSet<_>>().len(), keys.len());
            for part in [|hash: u64| hash & 0xFFFF, |hash: u64| hash >> 48] {
                let met: BTreeSet<u64> = hashes.iter().map(|hash| part(*hash)).collect();
                // 60,000 balls thrown at 65,536 places meet about 39,000 of them.
                assert!((37_000..42_000).contains(&met.len()), "{}", met.len());
            }
        }
    }

    #[test]
    fn tables_differ() {
        let (one, other) = (KeyHash::default(), KeyHash::default());
        assert_ne!(one.hash_one([1, 2]), other.hash_one([1, 2]));
    }
}
