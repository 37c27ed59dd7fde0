//! A random sample of a table's rows, the same for the same table and seed.
//!
//! # Two stages
//! 1. Of B pages b = min(B, wanted) are chosen, each set of b as likely as any other ([`BlockSample`], Knuth's algorithm S):
//!    page after page is taken with the probability (still wanted) / (still there).
//! 2. Of the rows on these pages as many as are wanted are kept ([`RowSample`], a reservoir): the n-th row replaces a
//!    random one of those kept with the probability wanted / n.
//!
//! # Invariants
//! - S1. Pages come in ascending order, none twice, exactly b of them.
//! - S2. Each row that was offered is in the sample with the same probability.
//! - S3. The sample has at most `bytes_max` bytes and one row. When a row makes it longer, half of it is thrown away at
//!   random and the number wanted becomes what is left, which keeps S2.
//!
//! Origin: as PostgreSQL's. Cost: a random number a page and a row.

/// A generator of random numbers from a seed (SplitMix64).
#[derive(Debug, Clone)]
pub struct Seed(u64);

impl Seed {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Seed {
        Seed(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// The pages that are looked at.
#[derive(Debug)]
pub struct BlockSample {
    next: u32,
    blocks: u32,
    wanted: u32,
    seed: Seed,
}

impl BlockSample {
    /// `wanted` of so many pages.
    pub fn new(blocks: u32, wanted: usize, seed: Seed) -> BlockSample {
        BlockSample {
            next: 0,
            blocks,
            wanted: u32::try_from(wanted).unwrap_or(u32::MAX).min(blocks),
            seed,
        }
    }
}

impl Iterator for BlockSample {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.wanted > 0 {
            let (block, left) = (self.next, self.blocks - self.next);
            self.next += 1;
            if self.seed.below(u64::from(left)) < u64::from(self.wanted) {
                self.wanted -= 1;
                return Some(block);
            }
        }
        None
    }
}

/// The rows that are kept: each with its place among all rows that were offered.
#[derive(Debug)]
pub struct RowSample {
    rows: Vec<(u64, Box<[u8]>)>,
    wanted: usize,
    offered: u64,
    bytes: usize,
    bytes_max: usize,
    seed: Seed,
}

impl RowSample {
    /// A sample of at most so many rows and bytes.
    pub fn new(wanted: usize, bytes_max: usize, seed: Seed) -> RowSample {
        RowSample {
            rows: Vec::new(),
            wanted: wanted.max(1),
            offered: 0,
            bytes: 0,
            bytes_max,
            seed,
        }
    }

    /// Offers a row.
    pub fn offer(&mut self, row: &[u8]) {
        let place = self.offered;
        self.offered += 1;
        if self.rows.len() < self.wanted {
            self.rows.push((place, row.into()));
        } else {
            let at = self.seed.below(self.offered);
            let Some(kept) = usize::try_from(at).ok().and_then(|at| self.rows.get_mut(at)) else {
                return;
            };
            self.bytes -= kept.1.len();
            *kept = (place, row.into());
        }
        self.bytes += row.len();
        while self.bytes > self.bytes_max && self.rows.len() > 1 {
            self.halve();
        }
    }

    /// S3.
    fn halve(&mut self) {
        let left = self.rows.len() / 2;
        while self.rows.len() > left {
            let at = self.seed.below(self.rows.len() as u64) as usize;
            self.bytes -= self.rows.swap_remove(at).1.len();
        }
        self.wanted = left.max(1);
    }

    /// The number of rows that were offered.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// The rows that were kept, in the order in which they came.
    pub fn finish(mut self) -> Vec<Box<[u8]>> {
        self.rows.sort_unstable_by_key(|(place, _)| *place);
        self.rows.into_iter().map(|(_, row)| row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_in_order_and_as_many_as_are_wanted() {
        for (blocks, wanted, expected) in [(0, 10, 0), (5, 10, 5), (1_000, 10, 10), (1_000, 999, 999)] {
            let found: Vec<u32> = BlockSample::new(blocks, wanted, Seed::new(7)).collect();
            assert_eq!(found.len(), expected);
            assert!(found.is_sorted_by(|a, b| a < b) && found.iter().all(|block| *block < blocks));
        }
    }

    #[test]
    fn each_row_is_kept_as_often_as_any_other() {
        let mut kept = [0u32; 100];
        for seed in 0..2_000 {
            let mut sample = RowSample::new(10, usize::MAX, Seed::new(seed));
            (0..100u8).for_each(|row| sample.offer(&[row]));
            let rows = sample.finish();
            assert_eq!(rows.len(), 10);
            assert!(rows.is_sorted());
            rows.iter().for_each(|row| kept[usize::from(row[0])] += 1);
        }
        // 200 expected, standard deviation 13.4.
        assert!(kept.iter().all(|count| (140..=260).contains(count)), "{kept:?}");
    }

    #[test]
    fn a_sample_of_long_rows_stays_within_its_bytes_and_is_as_fair() {
        let mut kept = [0u32; 4];
        for seed in 0..500 {
            let mut sample = RowSample::new(1_000, 16_000, Seed::new(seed));
            for row in 0..400u16 {
                sample.offer(&[(row / 100) as u8; 160]);
            }
            let rows = sample.finish();
            assert!((25..=100).contains(&rows.len()), "{}", rows.len());
            rows.iter().for_each(|row| kept[usize::from(row[0])] += 1);
        }
        let all: u32 = kept.iter().sum();
        assert!(
            kept.iter().all(|count| (all / 5..all * 3 / 10).contains(count)),
            "{kept:?}"
        );
    }
}
