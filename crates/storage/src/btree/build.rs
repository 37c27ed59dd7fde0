//! Making a tree of sorted entries: leaves from left to right, filled to nine tenths, then each level above.

use clearway_txn::Xid;

use crate::btree::descend::META_ROOT;
use crate::btree::node::{self, CAPACITY, Entry, entry_size};
use crate::btree::{BTree, KEY_MAX, TreeStorage};
use crate::error::{Result, StorageError};
use crate::heap::Tid;
use crate::page::{PageId, RelId};

/// Bytes up to which pages are filled.
const FILL: usize = CAPACITY * 9 / 10;

impl BTree {
    /// Fills an empty tree, made by [`create`](Self::create), with `entries` in ascending order. No other
    /// worker uses the tree.
    pub fn bulk_load<K: Into<Box<[u8]>>>(
        storage: &impl TreeStorage,
        rel: RelId,
        entries: impl IntoIterator<Item = (K, Tid)>,
    ) -> Result<()> {
        let tree = BTree { rel };
        let mut first_leaf = Some(tree.root(storage)?);
        let mut above = Vec::new();
        {
            let mut level = LevelBuilder::new(storage, rel, 0, first_leaf.take());
            for (key, tid) in entries {
                let key = key.into();
                if key.len() > KEY_MAX {
                    return Err(StorageError::TooLarge {
                        what: "index key",
                        size: key.len(),
                        max: KEY_MAX,
                    });
                }
                level.add(Entry { key, tid, child: 0 }, &mut above)?;
            }
            level.finish(&mut above)?;
        }
        let mut number = 0;
        while above.len() > 1 {
            number += 1;
            let mut next = Vec::new();
            let mut level = LevelBuilder::new(storage, rel, number, None);
            for entry in above {
                level.add(entry, &mut next)?;
            }
            level.finish(&mut next)?;
            above = next;
        }
        let Some(root) = above.pop() else { return Ok(()) };
        let meta = storage.pin(PageId { rel, block: 0 })?;
        let mut change = storage.begin_change(Xid::INVALID)?;
        let mut meta = meta.exclusive();
        change.write(&mut meta, META_ROOT, &root.child.to_le_bytes());
        change.finish()?;
        Ok(())
    }
}

/// One level under construction.
struct LevelBuilder<'s, S> {
    storage: &'s S,
    rel: RelId,
    level: u16,
    /// The page that the collected entries will go to.
    block: Option<u32>,
    entries: Vec<Entry>,
    size: usize,
}

impl<'s, S: TreeStorage> LevelBuilder<'s, S> {
    fn new(storage: &'s S, rel: RelId, level: u16, block: Option<u32>) -> Self {
        Self {
            storage,
            rel,
            level,
            block,
            entries: Vec::new(),
            size: 0,
        }
    }

    fn add(&mut self, entry: Entry, above: &mut Vec<Entry>) -> Result<()> {
        // Room for the high key, which is as long as this entry's key.
        let with_high = self.size + entry.size() + entry_size(entry.key.len());
        if self.entries.len() > 1 && with_high > FILL.max(3 * entry.size()) {
            self.write(Some(&entry), above)?;
        }
        self.size += entry.size();
        self.entries.push(entry);
        Ok(())
    }

    fn finish(mut self, above: &mut Vec<Entry>) -> Result<()> {
        self.write(None, above)
    }

    /// Writes the collected entries as a page; `next` is the first of the page to its right.
    fn write(&mut self, next: Option<&Entry>, above: &mut Vec<Entry>) -> Result<()> {
        let block = match self.block {
            Some(block) => block,
            None => self.storage.extend(self.rel)?.page_id().block,
        };
        let right = match next {
            Some(_) => Some(self.storage.extend(self.rel)?.page_id().block),
            None => None,
        };
        let mut separator = match self.entries.first() {
            // The leftmost page of a level covers everything below.
            Some(first) if !above.is_empty() => first.clone(),
            _ => Entry {
                key: Box::default(),
                tid: Tid::default(),
                child: 0,
            },
        };
        separator.child = block;
        if self.level > 0
            && let Some(first) = self.entries.first_mut()
        {
            first.key = Box::default();
            first.tid = Tid::default();
        }
        let page = self.storage.pin(PageId { rel: self.rel, block })?;
        let mut change = self.storage.begin_change(Xid::INVALID)?;
        let mut page = page.exclusive();
        let high = next.map(|next| Entry {
            key: next.key.clone(),
            tid: next.tid,
            child: 0,
        });
        node::fill(
            &mut change,
            &mut page,
            self.level,
            right,
            high.as_ref(),
            &self.entries,
        );
        change.finish()?;
        above.push(separator);
        self.block = right;
        self.entries.clear();
        self.size = 0;
        Ok(())
    }
}
