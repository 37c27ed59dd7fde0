//! The calendar: the CPU that acts next.
//!
//! A tournament tree with one leaf a CPU and one for the timers. A leaf's key is its next instant with its
//! own number in the low bits, so that keys are unique and ties are always decided alike. Changing a leaf
//! costs a walk to the root, eight comparisons for 144 CPUs, and the root holds the earliest key. That is
//! cheaper than a heap, since a CPU has exactly one next instant and only replaces it. (Four children a node
//! take half as many steps and are a sixth slower: the four that are read have just been written one by one.)
//!
//! While a CPU's worker runs on the host, its own leaf must be ignored. Taking it out and putting it back
//! would be two walks. Instead the leaf stays as it was, and the earliest of all others, the *horizon*, is
//! found once by a walk that changes nothing. Each later change of a leaf keeps it up to date.

/// Bits of a key that hold the leaf's number.
const LEAF_BITS: u32 = 10;
/// The most leaves a tree can have.
pub(crate) const LEAVES_MAX: usize = 1 << LEAF_BITS;
/// Nodes of the array. Masking an index to it spares the bounds check of each step.
const NODES: usize = 2 * LEAVES_MAX;
/// The key of a leaf without a next instant.
pub(crate) const NEVER: u64 = u64::MAX;
/// The latest instant a key can hold, in picoseconds: about five hours.
pub(crate) const TIME_MAX: u64 = (u64::MAX >> LEAF_BITS) - 1;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Tree {
    /// 1 is the root, `2i` and `2i + 1` are the children of `i`, the leaves are in the second half of those
    /// in use.
    nodes: Box<[u64; NODES]>,
    depth: u32,
    first_leaf: usize,
    /// At most the least key of all leaves but the one that was last passed to [`Tree::look_past`].
    horizon: u64,
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
            nodes: Box::new([NEVER; NODES]),
            depth: first_leaf.ilog2(),
            first_leaf,
            horizon: NEVER,
        }
    }

    /// The least key of all.
    #[inline(always)]
    pub(crate) fn first(&self) -> u64 {
        self.nodes[1]
    }

    /// From now on the horizon is that of `leaf`.
    #[inline]
    pub(crate) fn look_past(&mut self, leaf: usize) {
        let mut node = self.first_leaf + leaf;
        let mut least = NEVER;
        for _ in 0..self.depth {
            least = least.min(self.nodes[(node ^ 1) % NODES]);
            node /= 2;
        }
        self.horizon = least;
    }

    /// No other leaf is due before this key. It may be too early, by the former key of a leaf that has been
    /// put off since.
    #[inline(always)]
    pub(crate) fn horizon(&self) -> u64 {
        self.horizon
    }

    /// Gives `leaf` a new key.
    #[inline]
    pub(crate) fn set(&mut self, leaf: usize, key: u64) {
        self.horizon = self.horizon.min(key);
        let mut node = self.first_leaf + leaf;
        let mut least = key;
        self.nodes[node % NODES] = key;
        // To the root whatever is found on the way: an early end would be a branch that nothing predicts.
        for _ in 0..self.depth {
            least = least.min(self.nodes[(node ^ 1) % NODES]);
            node /= 2;
            self.nodes[node % NODES] = least;
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
            let past = (random >> 20) as usize % 145;
            tree.look_past(past);
            let others = || keys.iter().enumerate().filter(|(leaf, _)| *leaf != past);
            assert_eq!(Some(tree.horizon()), others().map(|(_, key)| *key).min());
        }
    }

    #[test]
    fn keys_hold_both_parts() {
        assert_eq!(parts(key(TIME_MAX, LEAVES_MAX - 1)), (TIME_MAX, LEAVES_MAX - 1));
        assert_eq!(parts(key(0, 3)), (0, 3));
    }
}
