//! Inserting entries, and checking uniqueness.

use clearway_machine::Machine;
use clearway_txn::Xid;

use crate::btree::descend::Descent;
use crate::btree::node::{Bound, Entry, Node};
use crate::btree::{BTree, KEY_MAX, TreeStorage};
use crate::buffer::PageUpdate;
use crate::error::{Result, StorageError};
use crate::heap::{Heap, Liveness, Tid, TxnContext};

/// Result of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The entry is in the tree.
    Inserted,
    /// Another row has the key.
    Duplicate {
        /// That row.
        tid: Tid,
    },
    /// True if another row has the key depends on how this transaction ends: wait for that, and try again.
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
        let liveness = unique.map(|heap| move |tid| Heap::new(heap).liveness(ctx, tid));
        self.insert_entry(ctx.storage, key, tid, liveness)
    }

    /// As [`insert`](Self::insert), for rows that are anywhere. With `liveness`, which tells whether the row
    /// at a place is alive, the entry is inserted only if no row with the key is alive.
    pub fn insert_entry<S: TreeStorage>(
        &self,
        storage: &S,
        key: &[u8],
        tid: Tid,
        liveness: Option<impl Fn(Tid) -> Result<Liveness>>,
    ) -> Result<InsertOutcome> {
        let mut descent = Descent::default();
        let page = match self.find_place(storage, key, tid, liveness, &mut descent)? {
            Place::Leaf(page) => page,
            Place::Taken(outcome) => return Ok(outcome),
        };
        let entry = Entry {
            key: key.into(),
            tid,
            child: 0,
        };
        self.insert_into(storage, page, entry, &mut descent)?;
        self.complete_splits(storage, descent.crossed)?;
        Ok(InsertOutcome::Inserted)
    }

    /// The liveness of the rows other than that at `own` which have a key, in the heap of this number.
    ///
    /// Asked under the same latches as an insertion does (R4): an entry of the key whose inserter has not seen the one
    /// that leads to `own` is found.
    pub fn liveness_of_others(
        &self,
        ctx: &TxnContext<'_>,
        key: &[u8],
        own: Tid,
        heap: u32,
    ) -> Result<Liveness> {
        let heap = Heap::new(heap);
        self.liveness_of_others_by(ctx.storage, key, own, |tid| heap.liveness(ctx, tid))
    }

    /// As [`liveness_of_others`](Self::liveness_of_others), for rows that are anywhere: `liveness` tells whether the row at a
    /// place is alive.
    pub fn liveness_of_others_by<S: TreeStorage>(
        &self,
        storage: &S,
        key: &[u8],
        own: Tid,
        liveness: impl Fn(Tid) -> Result<Liveness>,
    ) -> Result<Liveness> {
        let liveness = |tid| match tid == own {
            true => Ok(Liveness::Dead),
            false => liveness(tid),
        };
        let mut descent = Descent::default();
        let place = self.find_place(storage, key, own, Some(liveness), &mut descent)?;
        let found = match place {
            Place::Leaf(_) | Place::Taken(InsertOutcome::Inserted) => Liveness::Dead,
            Place::Taken(InsertOutcome::Duplicate { .. }) => Liveness::Alive,
            Place::Taken(InsertOutcome::WaitFor(xid)) => Liveness::DependsOn(xid),
        };
        self.complete_splits(storage, descent.crossed)?;
        Ok(found)
    }

    /// The leaf for an entry, latched in update mode. With `liveness`, only if no row with the key is alive.
    pub(super) fn find_place<'s, S: TreeStorage>(
        &self,
        storage: &'s S,
        key: &[u8],
        tid: Tid,
        liveness: Option<impl Fn(Tid) -> Result<Liveness>>,
        descent: &mut Descent,
    ) -> Result<Place<'s, S::Machine>> {
        if key.len() > KEY_MAX {
            return Err(StorageError::TooLarge {
                what: "index key",
                size: key.len(),
                max: KEY_MAX,
            });
        }
        storage.make_log_room()?;
        let bound = Bound { key, tid };
        // With a unique check: to the first leaf that may hold the key.
        let start = if liveness.is_some() {
            Bound {
                key,
                tid: Tid::default(),
            }
        } else {
            bound
        };
        let leaf = self.descend_to_leaf(storage, start, descent)?;
        let leaf = self.update(storage, leaf)?;
        let mut page = self.move_right_update(storage, leaf, start, |left| descent.crossed.push(left))?;
        if let Some(liveness) = liveness {
            match self.find_duplicate(storage, &page, key, liveness)? {
                InsertOutcome::Inserted => {}
                outcome => return Ok(Place::Taken(outcome)),
            }
            // R4: the first leaf stays latched until the right one is.
            page = self.move_right_update(storage, page, bound, |_| {})?;
        }
        Ok(Place::Leaf(page))
    }

    /// Looks at all entries with `key`, from `first` to the right. `Inserted` stands for "none alive".
    ///
    /// R4: `first` stays latched, so that no inserter of the key comes from the left. One that passed there
    /// before holds the page that it inserts into, or one on the way to it, in update mode; this look latches
    /// these pages in update mode too, and so waits until that entry can be seen. A shared latch would not
    /// wait: an update holder lets readers in.
    pub(super) fn find_duplicate<S: TreeStorage>(
        &self,
        storage: &S,
        first: &PageUpdate<'_, S::Machine>,
        key: &[u8],
        liveness: impl Fn(Tid) -> Result<Liveness>,
    ) -> Result<InsertOutcome> {
        let mut next = match equal_entries(Node(first.bytes()), key, &liveness)? {
            PageSearch::Found(outcome) => return Ok(outcome),
            PageSearch::Next(next) => next,
        };
        while let Some(block) = next {
            let page = self.update(storage, block)?;
            next = match equal_entries(Node(page.bytes()), key, &liveness)? {
                PageSearch::Found(outcome) => return Ok(outcome),
                PageSearch::Next(next) => next,
            };
        }
        Ok(InsertOutcome::Inserted)
    }
}

/// Result of looking for the place of an entry.
pub(super) enum Place<'s, M: Machine> {
    /// On this leaf.
    Leaf(PageUpdate<'s, M>),
    /// None: another row has the key, or may have it.
    Taken(InsertOutcome),
}

/// Result of looking for equal entries on one page.
enum PageSearch {
    Found(InsertOutcome),
    /// Nothing; go on at this page, if any.
    Next(Option<u32>),
}

fn equal_entries(
    node: Node<'_>,
    key: &[u8],
    liveness: impl Fn(Tid) -> Result<Liveness>,
) -> Result<PageSearch> {
    let start = node.lower_bound(Bound {
        key,
        tid: Tid::default(),
    });
    for index in start..node.len() {
        let bound = node.bound(index);
        if bound.key != key {
            return Ok(PageSearch::Next(None));
        }
        match liveness(bound.tid)? {
            Liveness::Dead => {}
            Liveness::Alive => return Ok(PageSearch::Found(InsertOutcome::Duplicate { tid: bound.tid })),
            Liveness::DependsOn(xid) => return Ok(PageSearch::Found(InsertOutcome::WaitFor(xid))),
        }
    }
    // The page's end: equal keys may go on to the right if its high key is not above them.
    Ok(PageSearch::Next(
        node.high()
            .filter(|high| high.key <= key)
            .and_then(|_| node.right()),
    ))
}
