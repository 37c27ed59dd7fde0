//! The calendar: which CPU acts next.
//!
//! A tournament tree with one leaf a CPU and one for the timers. A leaf's key is its next instant with its own number in
//! the low bits, so that keys are unique and ties are always decided alike. Changing a leaf costs a walk to the root, eight
//! comparisons for 144 CPUs, and the earliest key is read off the root: cheaper than a heap, since a CPU has exactly one
//! next instant and only ever replaces it.

/// Bits of a key that hold the leaf's number.
const LEAF_BITS: u32 = 10;
/// The most leaves a tree can have.
pub(crate) const LEAVES_MAX: usize = 1 << LEAF_BITS;
/// The key of a leaf that has nothing to do.
pub(crate) const NEVER: u64 = u64::MAX;
/// The latest instant a key can hold, in picoseconds: about five hours.
pub(crate) const TIME_MAX: u64 = (u64::MAX >> LEAF_BITS) - 1;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Tree {
    /// 1 is the root, `2i` and `2i + 1` are the children of `i`, the leaves stand in the second half.
    nodes: Box<[u64]>,
    first_leaf: usize,
}

/// The key of `leaf` at `time`.
#[inline(always)]
pub(crate) fn key(time: u64, leaf: usize) -> u64 {
    debug_assert!(time <= TIME_MAX, "simulated time has run out");
    time << LEAF_BITS | leaf as u64
}

/// The instant and the leaf of a key.
#[inline(always)]
pub(crate) fn parts(key: u64) -> (u64, usize) {
    (key >> LEAF_BITS, (key & (LEAVES_MAX as u64 - 1)) as usize)
}

impl Tree {
    pub(crate) fn new(leaves: usize) -> Self {
        assert!(leaves <= LEAVES_MAX, "a tree of {leaves} leaves");
        let first_leaf = leaves.next_power_of_two().max(2);
        Self {
            nodes: vec![NEVER; 2 * first_leaf].into(),
            first_leaf,
        }
    }

    /// The least key of all.
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.nodes[1]
    }

    /// Gives `leaf` a new key.
    #[inline]
    pub(crate) fn set(&mut self, leaf: usize, key: u64) {
        let mut node = self.first_leaf + leaf;
        self.nodes[node] = key;
        while node > 1 {
            let least = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == least {
                return;
            }
            self.nodes[node] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_always_the_least() {
        let mut tree = Tree::new(145);
        let mut keys = vec![NEVER; 145];
        let mut random = 1_u64;
        for _ in 0..10_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let leaf = (random >> 33) as usize % 145;
            let at = if random >> 62 == 0 {
                NEVER
            } else {
                key(random >> 40, leaf)
            };
            keys[leaf] = at;
            tree.set(leaf, at);
            assert_eq!(tree.first(), *keys.iter().min().unwrap());
        }
    }

    #[test]
    fn keys_hold_both_parts() {
        assert_eq!(parts(key(TIME_MAX, LEAVES_MAX - 1)), (TIME_MAX, LEAVES_MAX - 1));
        assert_eq!(parts(key(0, 3)), (0, 3));
    }
}
