//! TPC-C's tables, folded: with just enough pages that two of a few hundred clients rarely meet where they would not at
//! the real size.
//!
//! A warehouse's row has a page of its own, and so have its ten districts' rows together; each client is at home in a
//! warehouse of its own, as long as there are no more clients than warehouses. A session inserts into heap pages of its
//! own, and into the leaf of its warehouse.

use clearway_storage::RelId;

/// Warehouses, whatever the number of clients.
pub(super) const WAREHOUSES: u32 = 1_024;
/// Heap pages of each table that a session inserts into.
pub(super) const OWN_PAGES: u32 = 2;
/// The first heap, and the most relations of a heap with its indexes.
const FIRST_REL: u32 = 16;
const RELS: u32 = 4;
/// Leaves for each inner page.
const LEAVES_AN_INNER_PAGE: u32 = 64;

/// One of the nine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    Warehouse,
    District,
    Customer,
    Item,
    Stock,
    Orders,
    NewOrder,
    OrderLine,
    History,
}

/// An index: a root, inner pages if it has many leaves, leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Index {
    pub(super) rel: RelId,
    pub(super) leaves: u32,
}

impl Index {
    /// Pages between root and leaves.
    pub(super) const fn inner(self) -> u32 {
        self.leaves / LEAVES_AN_INNER_PAGE
    }

    /// The pages on the way to a leaf, beside it.
    pub(super) fn way_to(self, leaf: u32) -> impl Iterator<Item = u32> {
        let inner = self.inner();
        std::iter::once(0).chain((inner > 0).then(|| 1 + leaf % inner.max(1)))
    }

    /// The block of a leaf.
    pub(super) const fn block_of(self, leaf: u32) -> u32 {
        1 + self.inner() + leaf % self.leaves
    }

    const fn pages(self) -> u32 {
        1 + self.inner() + self.leaves
    }
}

impl Table {
    const ALL: [Self; 9] = [
        Self::Warehouse,
        Self::District,
        Self::Customer,
        Self::Item,
        Self::Stock,
        Self::Orders,
        Self::NewOrder,
        Self::OrderLine,
        Self::History,
    ];

    /// Its heap.
    pub(super) const fn rel(self) -> RelId {
        RelId(FIRST_REL + RELS * self as u32)
    }

    /// Heap pages beside those that sessions insert into.
    pub(super) const fn heap_pages(self) -> u32 {
        match self {
            // An item takes less than 100 bytes.
            Self::Warehouse | Self::District | Self::Item | Self::NewOrder => 1_024,
            Self::Customer => 8_192,
            Self::Stock => 16_384,
            Self::Orders => 2_048,
            Self::OrderLine => 4_096,
            Self::History => 0,
        }
    }

    /// Its indexes: the primary key, and that beside it.
    pub(super) fn indexes(self) -> impl Iterator<Item = Index> {
        let leaves: &[u32] = match self {
            Self::Warehouse => &[4],
            Self::District => &[32],
            Self::Item => &[256],
            Self::Customer => &[2_048, 2_048],
            Self::Stock => &[2_048],
            Self::Orders => &[WAREHOUSES, WAREHOUSES],
            Self::NewOrder | Self::OrderLine => &[WAREHOUSES],
            Self::History => &[],
        };
        leaves.iter().zip(1..).map(move |(&leaves, number)| Index {
            rel: RelId(self.rel().0 + number),
            leaves,
        })
    }

    /// Bytes that a log record of a changed or new row carries: about the row's length.
    pub(super) const fn row_bytes(self) -> usize {
        match self {
            Self::Warehouse | Self::District => 110,
            Self::Customer => 600,
            Self::Stock => 310,
            Self::OrderLine => 90,
            Self::Item | Self::History => 80,
            Self::Orders => 60,
            Self::NewOrder => 40,
        }
    }
}

/// True if it is no heap.
pub(super) const fn is_index(rel: RelId) -> bool {
    !(rel.0 - FIRST_REL).is_multiple_of(RELS)
}

/// All heaps and indexes with their pages.
pub(super) fn all(clients: usize) -> Vec<(RelId, u32)> {
    let mut all = Vec::new();
    for table in Table::ALL {
        all.push((table.rel(), table.heap_pages() + OWN_PAGES * clients as u32));
        all.extend(table.indexes().map(|index| (index.rel, index.pages())));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_leaf_and_each_page_on_the_way_to_it_is_a_page_of_its_index() {
        let all = all(3);
        let mut rels: Vec<_> = all.iter().map(|(rel, _)| *rel).collect();
        rels.sort_unstable();
        rels.dedup();
        assert_eq!(rels.len(), all.len(), "two relations have one number");
        for table in Table::ALL {
            assert!(!is_index(table.rel()));
            for index in table.indexes() {
                assert!(is_index(index.rel));
                let (_, pages) = all.iter().find(|(rel, _)| *rel == index.rel).unwrap();
                for leaf in 0..index.leaves {
                    assert!((1 + index.inner()..*pages).contains(&index.block_of(leaf)));
                    for block in index.way_to(leaf) {
                        assert!(block <= index.inner(), "{block} is a leaf");
                    }
                }
            }
        }
    }
}
