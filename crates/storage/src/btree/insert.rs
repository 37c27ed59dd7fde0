//! Inserting entries, splitting pages, checking uniqueness.

use clearway_txn::Xid;

use crate::btree::descend::META_ROOT;
use crate::btree::node::{self, Bound, Entry, Node, entry_size};
use crate::btree::{BTree, KEY_MAX};
use crate::buffer::PageUpdate;
use crate::error::{Result, StorageError};
use crate::heap::visibility::Liveness;
use crate::heap::{Heap, Tid, TxnContext};
use crate::page::get_u32;
use crate::storage::Storage;

/// What came of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertOutcome {
    /// Done.
    Inserted,
    /// Another row has the key.
    Duplicate {
        /// That row.
        tid: Tid,
    },
    /// Whether another row has the key depends on how this transaction ends: wait for that, and try again.
    WaitFor(Xid),
}

impl BTree {
    /// Inserts an entry. With `unique`, the number of the heap, it is inserted only if no row there has the key.
    pub fn insert(
        &self,
        ctx: &TxnContext<'_>,
        key: &[u8],
        tid: Tid,
        unique: Option<u32>,
    ) -> Result<InsertOutcome> {
        if key.len() > KEY_MAX {
            return Err(StorageError::TooLarge {
                what: "index key",
                size: key.len(),
                max: KEY_MAX,
            });
        }
        let storage = ctx.storage;
        let bound = Bound { key, tid };
        // With a unique check: to the first leaf that may hold the key.
        let start = if unique.is_some() {
            Bound {
                key,
                tid: Tid::default(),
            }
        } else {
            bound
        };
        let mut path = Vec::new();
        let leaf = self.descend(storage, start, 0, &mut path)?;
        let mut page = self.move_right_update(storage, self.update(storage, leaf)?, start)?;
        if let Some(heap) = unique {
            match self.find_duplicate(ctx, &page, key, &Heap::new(heap))? {
                InsertOutcome::Inserted => {}
                outcome => return Ok(outcome),
            }
            // R4: the first leaf stays latched until the right one is.
            page = self.move_right_update(storage, page, bound)?;
        }
        let entry = Entry {
            key: key.into(),
            tid,
            child: 0,
        };
        self.insert_into(storage, page, entry, path)?;
        Ok(InsertOutcome::Inserted)
    }

    /// Looks at all entries with `key`, from `first` to the right. `Inserted` stands for "none alive".
    fn find_duplicate(
        &self,
        ctx: &TxnContext<'_>,
        first: &PageUpdate<'_>,
        key: &[u8],
        heap: &Heap,
    ) -> Result<InsertOutcome> {
        let mut next = match equal_entries(ctx, Node(first.bytes()), key, heap)? {
            Looked::Found(outcome) => return Ok(outcome),
            Looked::Next(next) => next,
        };
        while let Some(block) = next {
            let page = self.read(ctx.storage, block)?;
            next = match equal_entries(ctx, Node(page.bytes()), key, heap)? {
                Looked::Found(outcome) => return Ok(outcome),
                Looked::Next(next) => next,
            };
        }
        Ok(InsertOutcome::Inserted)
    }

    /// Inserts `entry` into `page`, which covers it; splits if it must.
    fn insert_into<'s>(
        &self,
        storage: &'s Storage,
        mut page: PageUpdate<'s>,
        mut entry: Entry,
        mut path: Vec<u32>,
    ) -> Result<()> {
        loop {
            let node = Node(page.bytes());
            if node.free() >= entry.size() {
                let index = node.lower_bound(entry.bound());
                let mut change = storage.begin_change(Xid::INVALID)?;
                let mut page = page.upgrade();
                node::insert_at(&mut change, &mut page, index, &entry);
                change.finish()?;
                return Ok(());
            }
            let level = node.level();
            let left = page.page_id().block;
            // R2.
            let separator = self.split(storage, page, entry)?;
            if path.is_empty() && self.grow_root(storage, left, level, &separator)? {
                return Ok(());
            }
            let parent = match path.pop() {
                Some(parent) => parent,
                // The root has grown since we came down.
                None => self.descend(storage, separator.bound(), level + 1, &mut path)?,
            };
            page = self.move_right_update(storage, self.update(storage, parent)?, separator.bound())?;
            entry = separator;
        }
    }

    /// Splits `page` around `entry`, which does not fit; returns the separator that the parent must get.
    pub(super) fn split(&self, storage: &Storage, page: PageUpdate<'_>, entry: Entry) -> Result<Entry> {
        let new_pin = storage.extend(page.page_id().rel)?;
        let mut change = storage.begin_change(Xid::INVALID)?;
        let node = Node(page.bytes());
        let (level, old_right) = (node.level(), node.right());
        let old_high = node.high().map(|high| Entry {
            key: high.key.into(),
            tid: high.tid,
            child: 0,
        });
        let mut entries = node.entries();
        let index = node.lower_bound(entry.bound());
        entries.insert(index, entry);
        // Rows inserted in key order fill the rightmost page: leave the left one full rather than half empty.
        let ascending = old_right.is_none() && index + 1 == entries.len();
        let middle = split_point(&entries, ascending);
        let right_entries = entries.split_off(middle);
        let mut separator = right_entries[0].clone();
        let mut new_page = new_pin.exclusive();
        let new_block = new_page.page_id().block;
        let mut right_entries = right_entries;
        if level > 0 {
            // The first entry of an inner page stands for everything below the second; its key moves up.
            right_entries[0].key = Box::default();
            right_entries[0].tid = Tid::default();
        }
        // Readers were welcome until here.
        let mut page = page.upgrade();
        node::fill(
            &mut change,
            &mut new_page,
            level,
            old_right,
            old_high.as_ref(),
            &right_entries,
        );
        node::fill(
            &mut change,
            &mut page,
            level,
            Some(new_block),
            Some(&separator),
            &entries,
        );
        change.finish()?;
        separator.child = new_block;
        Ok(separator)
    }

    /// Puts a new root above `left` and the separator's child, if `left` is still the root.
    fn grow_root(&self, storage: &Storage, left: u32, level: u16, separator: &Entry) -> Result<bool> {
        let meta_pin = storage.pin(self.page(0))?;
        let mut meta = meta_pin.exclusive();
        if get_u32(meta.bytes(), META_ROOT) != left {
            return Ok(false);
        }
        let root_pin = storage.extend(self.rel)?;
        let mut change = storage.begin_change(Xid::INVALID)?;
        let mut root = root_pin.exclusive();
        let lowest = Entry {
            key: Box::default(),
            tid: Tid::default(),
            child: left,
        };
        node::fill(
            &mut change,
            &mut root,
            level + 1,
            None,
            None,
            &[lowest, separator.clone()],
        );
        change.write(&mut meta, META_ROOT, &root.page_id().block.to_le_bytes());
        change.finish()?;
        Ok(true)
    }
}

/// What a look at one page for equal entries has shown.
enum Looked {
    Found(InsertOutcome),
    /// Nothing; go on at this page, if any.
    Next(Option<u32>),
}

fn equal_entries(ctx: &TxnContext<'_>, node: Node<'_>, key: &[u8], heap: &Heap) -> Result<Looked> {
    let start = node.lower_bound(Bound {
        key,
        tid: Tid::default(),
    });
    for index in start..node.len() {
        let bound = node.bound(index);
        if bound.key != key {
            return Ok(Looked::Next(None));
        }
        match heap.liveness(ctx, bound.tid)? {
            Liveness::Dead => {}
            Liveness::Alive => return Ok(Looked::Found(InsertOutcome::Duplicate { tid: bound.tid })),
            Liveness::DependsOn(xid) => return Ok(Looked::Found(InsertOutcome::WaitFor(xid))),
        }
    }
    // The page's end: equal keys may go on to the right if its high key is not above them.
    Ok(Looked::Next(
        node.high()
            .filter(|high| high.key <= key)
            .and_then(|_| node.right()),
    ))
}

/// How many entries stay on the left page.
fn split_point(entries: &[Entry], ascending: bool) -> usize {
    let total: usize = entries.iter().map(Entry::size).sum();
    let wanted = if ascending { total * 9 / 10 } else { total / 2 };
    let mut left = 0;
    for (index, entry) in entries.iter().enumerate() {
        if index > 0 && left + entry.size() > wanted {
            return index;
        }
        left += entry.size();
    }
    entries.len() - 1
}

const _: () = assert!(3 * entry_size(KEY_MAX) <= node::CAPACITY);
