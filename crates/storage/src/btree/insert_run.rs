//! Inserting entries that are in order, a leaf at a time.
//!
//! A bulk load sorts the entries of many rows, and neighbours go on one leaf. One descent, one latch and one log record
//! then do for all of them:
//!
//! 1. Find the leaf of the first entry, as for a single one, with its unique check.
//! 2. Without room for it, insert it alone, which splits the leaf.
//! 3. Otherwise take the entries behind it, as long as each belongs on this leaf, fits beside those taken, and passes
//!    its unique check, which is made while the leaf is latched.
//! 4. Write all that were taken as one change.
//!
//! # Why the leaf of the first entry is right for the others
//! Of a unique key R4 asks for the latch of the first leaf that may hold it. That is the leaf which covers (key, the
//! lowest tid). The latched leaf covers the first entry (k, t), and perhaps begins behind (k, the lowest tid). A
//! *greater* key k' has (k', the lowest tid) above (k, t), hence not left of this leaf, and the high key tells that it is
//! not right of it. Of a key *equal* to the one before, the entry before counts in the check and is not on the page yet.
//! So such an entry ends the run, and the next descent begins where that key does.
//!
//! # Rules
//! - I1: entries are taken in the order given, which ascends by key and then tid. Whatever conflict ends a run, all
//!   before it is in the tree and nothing behind it is. After an error a run may be in or not: the transaction ends.
//! - I2: of two unique entries with one key, a run takes the first only.
//! - I3: an entry is taken only below the leaf's high key.

use clearway_txn::Xid;

use crate::btree::descend::Descent;
use crate::btree::insert::Place;
use crate::btree::node::{self, Entry, NewEntry, Node};
use crate::btree::{BTree, InsertOutcome, KEY_MAX, TreeStorage};
use crate::buffer::PageUpdate;
use crate::error::Result;
use crate::heap::{Heap, Liveness, Tid, TxnContext};

/// Result of inserting a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct InsertedRun {
    /// Number of entries that are in the tree now: the first ones.
    pub count: usize,
    /// The reason why the entry behind them is not. `None`: it belongs elsewhere, or there is none.
    pub conflict: Option<InsertOutcome>,
}

impl BTree {
    /// Inserts the first of `entries`, as many as go on one leaf. They ascend by key and tid. `heap` is the number of the
    /// heap whose rows count in the check of unique ones.
    pub fn insert_run(
        &self,
        ctx: &TxnContext<'_>,
        entries: &[NewEntry<'_>],
        heap: u32,
    ) -> Result<InsertedRun> {
        self.insert_run_of(ctx.storage, entries, |tid| Heap::new(heap).liveness(ctx, tid))
    }

    /// As [`insert_run`](Self::insert_run), for rows that are anywhere: `liveness` tells whether the row at a place is
    /// alive.
    pub fn insert_run_of<S: TreeStorage>(
        &self,
        storage: &S,
        entries: &[NewEntry<'_>],
        liveness: impl Fn(Tid) -> Result<Liveness>,
    ) -> Result<InsertedRun> {
        debug_assert!(entries.is_sorted_by(|a, b| a.bound() < b.bound()), "I1");
        let Some(first) = entries.first() else {
            return Ok(InsertedRun {
                count: 0,
                conflict: None,
            });
        };
        let mut descent = Descent::default();
        let check = first.unique.then_some(&liveness);
        let page = match self.find_place(storage, first.key, first.tid, check, &mut descent)? {
            Place::Leaf(page) => page,
            Place::Taken(outcome) => {
                return Ok(InsertedRun {
                    count: 0,
                    conflict: Some(outcome),
                });
            }
        };
        let run = if Node(page.bytes()).free() < first.size() {
            let entry = Entry {
                key: first.key.into(),
                tid: first.tid,
                child: 0,
            };
            self.insert_into(storage, page, entry, &mut descent)?;
            InsertedRun {
                count: 1,
                conflict: None,
            }
        } else {
            let run = self.run_on(storage, &page, entries, liveness)?;
            let mut change = storage.begin_change_latched(Xid::INVALID)?;
            let mut page = page.upgrade();
            node::insert_run_at(&mut change, &mut page, &entries[..run.count]);
            change.finish()?;
            run
        };
        self.complete_splits(storage, descent.crossed)?;
        Ok(run)
    }

    /// Number of `entries` that go on `page`, where the first one fits and has been checked.
    fn run_on<S: TreeStorage>(
        &self,
        storage: &S,
        page: &PageUpdate<'_, S::Machine>,
        entries: &[NewEntry<'_>],
        liveness: impl Fn(Tid) -> Result<Liveness>,
    ) -> Result<InsertedRun> {
        let node = Node(page.bytes());
        let high = node.high();
        let mut free = node.free() - entries[0].size();
        let mut count = 1;
        let mut conflict = None;
        for (before, entry) in entries.iter().zip(&entries[1..]) {
            let belongs = entry.key.len() <= KEY_MAX
                && high.is_none_or(|high| entry.bound() < high)
                && !(entry.unique && entry.key == before.key);
            if !belongs || free < entry.size() {
                break;
            }
            if entry.unique {
                match self.find_duplicate(storage, page, entry.key, &liveness)? {
                    InsertOutcome::Inserted => {}
                    outcome => {
                        conflict = Some(outcome);
                        break;
                    }
                }
            }
            free -= entry.size();
            count += 1;
        }
        Ok(InsertedRun { count, conflict })
    }
}
