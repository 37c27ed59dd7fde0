//! Removing the entries of rows that vacuum removes.
//!
//! Vacuum goes through the leaves from left to right. A split moves entries to the right only, so none is
//! missed. Pages left empty stay in the tree (R3) and are filled again by keys of their range.

use std::collections::HashSet;

use clearway_txn::Xid;

use crate::btree::descend::Descent;
use crate::btree::node::{self, Bound, Entry, Node};
use crate::btree::{BTree, TreeStorage};
use crate::error::Result;
use crate::heap::Tid;

impl BTree {
    /// Removes the entries that lead to `dead`; returns how many there were.
    pub fn vacuum_delete<S: TreeStorage>(&self, storage: &S, dead: &HashSet<Tid>) -> Result<u64> {
        let lowest = Bound {
            key: &[],
            tid: Tid::default(),
        };
        let mut next = Some(self.descend_to_leaf(storage, lowest, &mut Descent::default())?);
        let mut removed = 0;
        while let Some(block) = next {
            storage.make_log_room()?;
            let page = self.update(storage, block)?;
            let node = Node(page.bytes());
            next = node.right();
            if !(0..node.len()).any(|index| dead.contains(&node.bound(index).tid)) {
                continue;
            }
            let mut entries = node.entries();
            let before = entries.len();
            entries.retain(|entry| !dead.contains(&entry.tid));
            removed += (before - entries.len()) as u64;
            let high = node.high().map(|high| Entry {
                key: high.key.into(),
                tid: high.tid,
                child: 0,
            });
            let mut change = storage.begin_change_latched(Xid::INVALID)?;
            let mut page = page.upgrade();
            node::fill(&mut change, &mut page, 0, next, high.as_ref(), &entries);
            change.finish()?;
        }
        Ok(removed)
    }
}
