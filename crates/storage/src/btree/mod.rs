//! B+trees: from keys to the rows that have them.
//!
//! Keys are byte strings that compare as unsigned bytes; entries are ordered by (key, tid), so that no two
//! are equal. A page of every level has a link to its right neighbour and, unless it is the rightmost, a
//! *high key*: all its entries are below it (Lehman and Yao, 1981). So a descent holds one latch at a time:
//! if the page split between reading its parent and latching it, the key that the descent looks for is at or
//! above the high key, and the descent moves right.
//!
//! # Rules
//! - R1: one latch at a time going down; going right, the left one first. Never up or left.
//! - R2: a split is one atomic change of the two halves; the separator goes into the parent in a change of
//!   its own. Between the two, and after a crash between them, the right half is reached by the link.
//! - R3: pages are never given back, so a page number that was once read leads to a page from which a descent
//!   can move right.
//! - R4: inserters of equal unique keys meet at one latch in update mode: that of the first leaf that may
//!   hold the key. An inserter keeps it until it holds the latch of the leaf for its entry. It looks at the
//!   leaves right of the first one in update mode too: an inserter that has left the first leaf holds one of
//!   them until its entry is in. Readers are let in while inserters look for duplicates, and while a split is
//!   prepared. An inserter of several entries keeps the leaf for those that belong there (`insert_run`).
//! - R5: an inserter whose descent was led right by a link makes sure that the level above names that right
//!   neighbour. So a split that was interrupted costs later descents a step until the next inserter comes by.
//!
//! | file | holds |
//! | --- | --- |
//! | `node` | the layout of a page |
//! | `tree_storage` | the storage under a tree |
//! | `descend` | from the root to a leaf |
//! | `optimistic` | the same without latches |
//! | `insert` | inserting, unique checks |
//! | `insert_run` | inserting many entries, a leaf at a time |
//! | `split` | splitting pages, and telling the level above |
//! | `cursor` | reading ranges |
//! | `build` | making a tree of sorted entries |
//! | `delete` | what vacuum removes |
//! | `check` | whether a tree keeps these rules |

mod build;
mod check;
mod cursor;
mod delete;
mod descend;
mod insert;
mod insert_run;
mod node;
mod optimistic;
mod split;
mod tree_storage;

pub use crate::storage::root_hints::RootHints;
pub use check::TreeShape;
pub use cursor::{Direction, TreeCursor};
pub use insert::InsertOutcome;
pub use insert_run::InsertedRun;
pub use node::NewEntry;
pub use tree_storage::TreeStorage;

use crate::error::Result;
use crate::page::{PageKind, RelId};
use clearway_txn::Xid;

/// The longest key, in bytes: so that a page holds at least three entries.
pub const KEY_MAX: usize = 2_600;

/// A B+tree.
#[derive(Debug, Clone, Copy)]
pub struct BTree {
    rel: RelId,
}

impl BTree {
    /// The tree in relation `rel`.
    pub fn new(rel: u32) -> Self {
        Self { rel: RelId(rel) }
    }

    /// Lays out an empty relation as an empty tree: a page that names the root, and the root, a leaf.
    pub fn create<S: TreeStorage>(storage: &S, rel: RelId) -> Result<()> {
        let meta = storage.extend(rel)?;
        let root = storage.extend(rel)?;
        let mut change = storage.begin_change(Xid::INVALID)?;
        let (mut meta, mut root) = (meta.exclusive(), root.exclusive());
        change.init_page(&mut meta, PageKind::BTREE_META, 0);
        change.write(&mut meta, descend::META_ROOT, &root.page_id().block.to_le_bytes());
        node::init(&mut change, &mut root, 0, None);
        change.finish()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
