//! The start of a descent, without asking the tree's first page.
//!
//! The first page names the root. To read it costs as much as one more level: a pin and a latch on a page
//! that every descent reads. So the number is remembered in memory.
//!
//! A remembered root may have split since. That is harmless: it is then the leftmost page of its level, and
//! everything on that level is reached from it by moving right (R3 of `btree`: pages are never given back, and a
//! relation's number is never used again). It is only slower; and a root has no right neighbour, so a descent
//! that finds one there forgets the number.

use std::sync::atomic::Ordering;

use clearway_machine::{AtomicWord, Machine, Native};

use crate::page::RelId;

/// Trees remembered at a time; two whose numbers collide take turns.
const HINTS: usize = 256;

/// The roots of the trees used last: relation and block in one word, 0 for none.
#[derive(Debug)]
pub struct RootHints<M: Machine = Native>(Box<[M::U64]>);

impl<M: Machine> Default for RootHints<M> {
    fn default() -> Self {
        RootHints((0..HINTS).map(|_| M::U64::new(0)).collect())
    }
}

impl<M: Machine> RootHints<M> {
    fn of(&self, rel: RelId) -> &M::U64 {
        &self.0[rel.0 as usize % HINTS]
    }

    /// A page of `rel` that is or was its root.
    #[inline]
    pub(crate) fn get(&self, rel: RelId) -> Option<u32> {
        // Relaxed: the number says where to look; what is there is read under the page's latch.
        let hint = self.of(rel).load(Ordering::Relaxed);
        (hint >> 32 == u64::from(rel.0) && hint != 0).then_some(hint as u32)
    }

    pub(crate) fn set(&self, rel: RelId, root: u32) {
        self.of(rel)
            .store(u64::from(rel.0) << 32 | u64::from(root), Ordering::Relaxed);
    }

    #[cold]
    pub(crate) fn forget(&self, rel: RelId) {
        self.of(rel).store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two trees whose numbers collide take turns; a number has no bound.
    #[test]
    fn a_root_is_that_of_its_own_tree() {
        let hints = RootHints::<Native>::default();
        let collides = 16 + HINTS as u32;
        for (rel, root) in [
            (16, 3),
            (17, 1),
            (collides, 5),
            (16, 7),
            (70_000, 4),
            (u32::MAX, u32::MAX),
        ] {
            assert_eq!(hints.get(RelId(rel)), None, "the root of another tree for {rel}");
            hints.set(RelId(rel), root);
            assert_eq!(hints.get(RelId(rel)), Some(root));
        }
        assert_eq!(hints.get(RelId(17)), Some(1));
        hints.forget(RelId(17));
        assert_eq!(hints.get(RelId(17)), None);
    }
}
