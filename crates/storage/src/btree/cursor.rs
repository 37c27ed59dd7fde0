//! Reading ranges, forwards and backwards.
//!
//! A cursor holds no latch between calls: each call descends to where the last one stopped, copies entries of
//! one or more leaves, and remembers the last one. Whatever splits in between, entries keep their order, so
//! nothing is skipped or repeated.

use crate::btree::node::{Bound, Node};
use crate::btree::{BTree, TreeStorage};
use crate::error::Result;
use crate::heap::Tid;
use crate::storage::Storage;

/// The direction in which a range is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Ascending.
    Forward,
    /// Descending.
    Backward,
}

/// Reads the entries with `lower` ≤ key < `upper`.
#[derive(Debug)]
pub struct TreeCursor {
    tree: BTree,
    direction: Direction,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
    /// The place where reading goes on: forwards, behind this entry; backwards, before it.
    position: Option<(Vec<u8>, Tid)>,
    done: bool,
}

impl BTree {
    /// A cursor over the entries with `lower` ≤ key < `upper` (`None`: to the end).
    pub fn range(&self, lower: &[u8], upper: Option<&[u8]>, direction: Direction) -> TreeCursor {
        TreeCursor {
            tree: *self,
            direction,
            lower: lower.to_vec(),
            upper: upper.map(<[u8]>::to_vec),
            position: None,
            done: false,
        }
    }
}

impl BTree {
    /// Appends the tids of all entries with exactly `key`. Allocates nothing but what `out` needs.
    #[inline]
    pub fn lookup<S: TreeStorage>(&self, storage: &S, key: &[u8], out: &mut Vec<Tid>) -> Result<()> {
        let start = Bound {
            key,
            tid: Tid::default(),
        };
        if storage.reads_unpinned() && self.lookup_unpinned(storage, start, out)? {
            return Ok(());
        }
        let mut page = self.find_leaf(storage, start)?;
        loop {
            let node = Node(page.bytes());
            for index in node.lower_bound(start)..node.len() {
                let bound = node.bound(index);
                if bound.key != key {
                    return Ok(());
                }
                out.push(bound.tid);
            }
            match node
                .right()
                .filter(|_| node.high().is_some_and(|high| high.key <= key))
            {
                Some(right) => page = self.read(storage, right)?,
                None => return Ok(()),
            }
        }
    }
}

impl BTree {
    /// As [`lookup`](Self::lookup), in code of its own: in an engine that calls that from one place, it is inlined there,
    /// which makes a point SELECT cheaper.
    #[inline(never)]
    pub fn lookup_apart(&self, storage: &Storage, key: &[u8], out: &mut Vec<Tid>) -> Result<()> {
        self.lookup(storage, key, out)
    }
}

impl TreeCursor {
    /// Appends the tids of the next entries, about `count` of them; `false` when there are no more after these.
    pub fn next_batch<S: TreeStorage>(
        &mut self,
        storage: &S,
        count: usize,
        out: &mut Vec<Tid>,
    ) -> Result<bool> {
        let wanted = out.len() + count;
        self.advance(storage, &mut |bound| {
            out.push(bound.tid);
            out.len() >= wanted
        })
    }

    /// As [`next_batch`](Self::next_batch), with the keys.
    pub fn next_entries<S: TreeStorage>(
        &mut self,
        storage: &S,
        count: usize,
        out: &mut Vec<(Vec<u8>, Tid)>,
    ) -> Result<bool> {
        let wanted = out.len() + count;
        self.advance(storage, &mut |bound| {
            out.push((bound.key.to_vec(), bound.tid));
            out.len() >= wanted
        })
    }

    /// Gives entries to `take` until it says that it has enough.
    fn advance<S: TreeStorage>(
        &mut self,
        storage: &S,
        take: &mut dyn FnMut(Bound<'_>) -> bool,
    ) -> Result<bool> {
        while !self.done {
            let enough = match self.direction {
                Direction::Forward => self.forward(storage, take)?,
                Direction::Backward => self.backward(storage, take)?,
            };
            if enough {
                break;
            }
        }
        Ok(!self.done)
    }

    fn forward<S: TreeStorage>(
        &mut self,
        storage: &S,
        take: &mut dyn FnMut(Bound<'_>) -> bool,
    ) -> Result<bool> {
        let after = self.position.take();
        let start = match &after {
            Some((key, tid)) => Bound { key, tid: *tid },
            None => Bound {
                key: &self.lower,
                tid: Tid::default(),
            },
        };
        let mut page = self.tree.find_leaf(storage, start)?;
        loop {
            let node = Node(page.bytes());
            let mut index = node.lower_bound(start);
            if after.is_some() && index < node.len() && node.bound(index) == start {
                index += 1;
            }
            while index < node.len() {
                let bound = node.bound(index);
                if self.upper.as_deref().is_some_and(|upper| bound.key >= upper) {
                    self.done = true;
                    return Ok(true);
                }
                if take(bound) {
                    self.position = Some((bound.key.to_vec(), bound.tid));
                    self.look_ahead(node, index + 1);
                    return Ok(true);
                }
                index += 1;
            }
            // R3: the right neighbour, whatever it has become, begins at or before what comes next.
            match node.right() {
                Some(right) if !self.ends_before(node) => page = self.tree.read(storage, right)?,
                _ => {
                    self.done = true;
                    return Ok(true);
                }
            }
        }
    }

    /// True if everything right of the node is past the range.
    fn ends_before(&self, node: Node<'_>) -> bool {
        match (node.high(), &self.upper) {
            (Some(high), Some(upper)) => high.key >= upper.as_slice(),
            _ => false,
        }
    }

    /// Notes that the range is exhausted, if the page shows it. This saves a call that would find nothing.
    fn look_ahead(&mut self, node: Node<'_>, next: usize) {
        let Some(upper) = &self.upper else { return };
        self.done = if next < node.len() {
            node.bound(next).key >= upper.as_slice()
        } else {
            node.right().is_none() || self.ends_before(node)
        };
    }

    fn backward<S: TreeStorage>(
        &mut self,
        storage: &S,
        take: &mut dyn FnMut(Bound<'_>) -> bool,
    ) -> Result<bool> {
        let before = self.position.take();
        // Everything strictly below this; `None`: from the tree's end.
        let end = match (&before, &self.upper) {
            (Some((key, tid)), _) => Some(Bound { key, tid: *tid }),
            (None, Some(upper)) => Some(Bound {
                key: upper,
                tid: Tid::default(),
            }),
            (None, None) => None,
        };
        let mut fence = None;
        let mut block = self.tree.root(storage)?;
        let page = loop {
            let page = self.tree.read(storage, block)?;
            let node = Node(page.bytes());
            // The page wanted is the last one whose lowest possible entry is below `end`.
            let goes_on = node.high().is_some_and(|high| end.is_none_or(|end| high < end));
            if let (true, Some(right), Some(high)) = (goes_on, node.right(), node.high()) {
                fence = Some((high.key.to_vec(), high.tid));
                block = right;
                continue;
            }
            if node.level() == 0 {
                break page;
            }
            let index = match end {
                None => node.len() - 1,
                // Strictly below: an entry equal to `end` leads to pages that begin at it.
                Some(end) => (1..node.len())
                    .take_while(|&index| node.bound(index) < end)
                    .last()
                    .unwrap_or(0),
            };
            if index > 0 {
                let low = node.bound(index);
                fence = Some((low.key.to_vec(), low.tid));
            }
            block = node.child(index);
        };
        let node = Node(page.bytes());
        let mut index = end.map_or(node.len(), |end| node.lower_bound(end));
        while index > 0 {
            index -= 1;
            let bound = node.bound(index);
            if bound.key < self.lower.as_slice() {
                self.done = true;
                return Ok(true);
            }
            if take(bound) {
                self.position = Some((bound.key.to_vec(), bound.tid));
                return Ok(true);
            }
        }
        // On to the left: below this page's lowest possible entry.
        match fence {
            Some(fence) if fence.0.as_slice() >= self.lower.as_slice() => {
                self.position = Some(fence);
                Ok(false)
            }
            _ => {
                self.done = true;
                Ok(true)
            }
        }
    }
}
