//! A node: an entry of the table, on one half of a cache line.

use clearway_machine::{AtomicWord, Machine, Native};

/// In place of a reference to a node.
pub(super) const NO_NODE: u32 = 0;
/// In `next`: the entry of this node is removed.
pub(super) const MARK: u32 = 1;

#[repr(C, align(32))]
pub(super) struct Node<M: Machine> {
    pub(super) page: M::U64,
    pub(super) frame: M::U32,
    /// Reference to the next node of the bucket's list, and the mark.
    pub(super) next: M::U32,
    /// Reference to the next node on a free list or a garbage list.
    pub(super) link: M::U32,
}

const _: () = assert!(size_of::<Node<Native>>() == 32);

impl<M: Machine> Node<M> {
    pub(super) fn new() -> Self {
        Self {
            page: M::U64::new(0),
            frame: M::U32::new(0),
            next: M::U32::new(NO_NODE),
            link: M::U32::new(NO_NODE),
        }
    }
}

/// Reference to the node of this number.
pub(super) const fn reference(number: u32) -> u32 {
    (number + 1) << 1
}
