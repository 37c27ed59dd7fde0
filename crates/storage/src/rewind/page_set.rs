//! A set of pages: a bit for each page of the stretches that have one in it.
//!
//! A stretch is 4,096 pages, 32 MiB of a relation, and takes 512 bytes. So the set of all pages of a terabyte takes 16 MiB,
//! and that of a thousand pages far apart 0.5 MiB.

use std::collections::BTreeMap;

use crate::page::{PageId, RelId};

/// Pages in a stretch.
const STRETCH: u32 = 4_096;
const WORDS: usize = STRETCH as usize / 64;

/// Pages, in the order of their relations and numbers.
#[derive(Debug, Default)]
pub(super) struct PageSet {
    stretches: BTreeMap<(RelId, u32), Box<[u64; WORDS]>>,
}

impl PageSet {
    pub(super) fn insert(&mut self, page: PageId) {
        let key = (page.rel, page.block / STRETCH);
        let words = self.stretches.entry(key).or_insert_with(|| Box::new([0; WORDS]));
        let bit = (page.block % STRETCH) as usize;
        words[bit / 64] |= 1 << (bit % 64);
    }

    pub(super) fn contains(&self, page: PageId) -> bool {
        let words = self.stretches.get(&(page.rel, page.block / STRETCH));
        let bit = (page.block % STRETCH) as usize;
        words.is_some_and(|words| words[bit / 64] >> (bit % 64) & 1 == 1)
    }

    /// The pages of a relation, ascending.
    pub(super) fn blocks_of(&self, rel: RelId) -> impl Iterator<Item = u32> {
        let stretches = self.stretches.range((rel, 0)..=(rel, u32::MAX));
        stretches.flat_map(|(&(_, stretch), words)| {
            let bits = (0..STRETCH).filter(|&bit| words[bit as usize / 64] >> (bit % 64) & 1 == 1);
            bits.map(move |bit| stretch * STRETCH + bit)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back_in_order_and_once() {
        let mut set = PageSet::default();
        let blocks = [0, 63, 64, STRETCH - 1, STRETCH, 7 * STRETCH + 5, u32::MAX];
        let page = |rel, block| PageId {
            rel: RelId(rel),
            block,
        };
        for block in blocks.into_iter().rev().chain([64]) {
            set.insert(page(16, block));
        }
        set.insert(page(17, 1));
        assert_eq!(set.blocks_of(RelId(16)).collect::<Vec<_>>(), blocks);
        assert_eq!(set.blocks_of(RelId(17)).collect::<Vec<_>>(), [1]);
        assert_eq!(set.blocks_of(RelId(15)).count(), 0);
        assert!(set.contains(page(16, 63)) && set.contains(page(16, u32::MAX)));
        assert!(!set.contains(page(16, 62)) && !set.contains(page(15, 63)));
    }
}
