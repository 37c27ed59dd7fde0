//! Completing an index that was built while others wrote: the entries of rows that it lacks.
//!
//! The index was built under an earlier snapshot, and every transaction that began to write since enters its rows. What a
//! snapshot of now sees and the index lacks are the rows that transactions wrote in between. They are found by comparing
//! places: those that the tree leads to, sorted, with the places of the rows that the snapshot sees, page by page.
//!
//! # Rules
//! - V1: the snapshot is taken first, then the tree is read, and then the heap. An entry that a row of the snapshot has from
//!   its writer was made before that one's commit, so the reading of the tree finds it; one that it does not find is missing.
//! - V2: no vacuum runs meanwhile (the table's lock), and the snapshot keeps each row that it sees in its place: no other row
//!   comes to a place between the two readings, so no entry is made twice.
//! - V3: in a unique index, a row whose key another row has is an error only while the row is alive itself. A deleted one is
//!   entered beside the other, for the older snapshots that see it.

use std::collections::HashSet;

use clearway_storage::RelId;
use clearway_storage::btree::{BTree, Direction, InsertOutcome};
use clearway_storage::heap::{Heap, Rival, Tid};
use clearway_txn::Xid;

use crate::activity::progress::index as shown;
use crate::convert::{index_error, storage_error};
use crate::executor::long_values::{restore, whole_row};
use crate::executor::shown_values::key_that_exists;
use crate::executor::unique::duplicate;
use crate::executor::{Execution, heap_rel};
use crate::interrupt::Interrupts;
use crate::spill::{Sorted, Sorter, SpillOptions};
use crate::transaction::Transaction;
use clearway_sql::error::{EngineError, Result};
use clearway_sql::value::{ColumnSet, Decoded, Value};
use clearway_sql::{IndexDef, IndexEntry, TableDef};

/// Entries that are read between two looks at the interrupts, and rows.
const BATCH: usize = 1_024;

/// Enters the rows that an index lacks. The transaction that it returns is this one; a snapshot that sees it finds all of
/// its rows by the index.
pub(super) fn complete(
    execution: &mut Execution<'_>,
    spill: &SpillOptions,
    table: &TableDef,
    index: &IndexDef,
) -> Result<Xid> {
    let (interrupts, timeout) = (execution.interrupts, execution.lock_timeout);
    let (storage, eval) = (execution.storage, execution.eval);
    let progress = interrupts.progress().index_of(table.oid, index.oid);
    progress.index_phase(shown::READS_INDEX);
    execution.txn.with_fresh_snapshot(|txn| {
        // Behind the snapshot: who sees this transaction has a later one.
        let xid = txn.assign_xid()?;
        let mut places = Places::of_tree(
            |batch, cursor| cursor.next_entries(storage, BATCH, batch).map_err(storage_error),
            index,
            spill,
            interrupts,
        )?;
        progress.index_phase(shown::VALIDATES);
        let pages = storage.block_count(RelId(heap_rel(table)));
        progress.set(shown::PAGES, u64::from(pages.map_err(storage_error)?));
        let mut needed = ColumnSet::new();
        index.each_read_column(|column| needed.insert(column));
        let mut row = vec![Value::Null; table.columns.len()];
        let mut key = Vec::new();
        let mut rows = Heap::new(heap_rel(table))
            .scan(&txn.context())
            .map_err(storage_error)?;
        let mut count = 0usize;
        loop {
            let next = rows.next_with_root(&txn.context(), |root, bytes| {
                let decoded = table.codec.decode(bytes, &needed, &mut row)?;
                Ok::<_, EngineError>((root, decoded))
            });
            let Some(root) = next.map_err(storage_error)? else {
                return Ok(xid);
            };
            let (root, decoded) = root?;
            // Pages are read in their order.
            progress.set(shown::PAGES_DONE, u64::from(root.block));
            count += 1;
            if count.is_multiple_of(BATCH) {
                interrupts.check()?;
            }
            if places.has(root)? {
                continue;
            }
            if decoded == Decoded::Apart {
                restore(storage, interrupts, table, &mut row)?;
            }
            let entry = index.entry(&row, &eval, &mut key)?;
            if entry == IndexEntry::Absent {
                continue;
            }
            let missing = Missing {
                table,
                index,
                root,
                key: &key,
                unique: index.unique && entry == IndexEntry::Whole,
            };
            if missing.enter(txn, |txn, xid| txn.wait_for_transaction(xid, interrupts, timeout))? {
                continue;
            }
            let all = rows_value(txn, interrupts, table, root)?;
            // All of the key may be seen: as in PostgreSQL, an index is made in the name of its table's owner.
            return Err(duplicate(table, index).with_detail(key_that_exists(table, index, &all, &eval)));
        }
    })
}

/// The row at a place, for an error.
fn rows_value(txn: &Transaction, interrupts: &Interrupts, table: &TableDef, root: Tid) -> Result<Vec<Value>> {
    let heap = Heap::new(heap_rel(table));
    let found = heap.fetch(&txn.context(), root, |_, bytes| bytes.to_vec());
    match found.map_err(storage_error)? {
        Some(bytes) => whole_row(txn.storage(), interrupts, table, &bytes),
        None => Err(EngineError::internal("a row that a snapshot sees is gone")),
    }
}

/// A row without an entry.
struct Missing<'m> {
    table: &'m TableDef,
    index: &'m IndexDef,
    root: Tid,
    key: &'m [u8],
    unique: bool,
}

impl Missing<'_> {
    /// Enters the row; `false` if it is alive and another row has its key (V3).
    fn enter(
        &self,
        txn: &mut Transaction,
        mut wait: impl FnMut(&mut Transaction, Xid) -> Result<()>,
    ) -> Result<bool> {
        let tree = BTree::new(self.index.rel);
        let heap = Heap::new(heap_rel(self.table));
        loop {
            let unique = self.unique.then_some(heap_rel(self.table));
            let outcome = tree.insert(&txn.context(), self.key, self.root, unique);
            let outcome = outcome.map_err(|error| index_error(error, self.table, self.index))?;
            if outcome == InsertOutcome::Inserted {
                return Ok(true);
            }
            match (
                heap.rival(&txn.context(), self.root).map_err(storage_error)?,
                outcome,
            ) {
                (Rival::None, _) => {
                    let entered = tree.insert(&txn.context(), self.key, self.root, None);
                    entered.map_err(storage_error)?;
                    return Ok(true);
                }
                (Rival::DependsOn(xid), _) | (Rival::Alive(_), InsertOutcome::WaitFor(xid)) => {
                    wait(txn, xid)?
                }
                (Rival::Alive(_), _) => return Ok(false),
            }
        }
    }
}

/// The places that a tree leads to, in their order.
struct Places {
    sorted: Sorted,
    next: Option<Tid>,
    block: u32,
    /// Those on that page.
    slots: HashSet<u16>,
}

impl Places {
    fn of_tree(
        mut read: impl FnMut(&mut Vec<(Vec<u8>, Tid)>, &mut clearway_storage::btree::TreeCursor) -> Result<bool>,
        index: &IndexDef,
        spill: &SpillOptions,
        interrupts: &Interrupts,
    ) -> Result<Places> {
        let mut sorter = Sorter::new(spill);
        let mut cursor = BTree::new(index.rel).range(&[], None, Direction::Forward);
        let mut batch = Vec::new();
        let mut more = true;
        while more {
            interrupts.check()?;
            batch.clear();
            more = read(&mut batch, &mut cursor)?;
            for (_, place) in &batch {
                let mut key = [0; 6];
                key[..4].copy_from_slice(&place.block.to_be_bytes());
                key[4..].copy_from_slice(&place.slot.to_be_bytes());
                sorter.push(&key, &[], interrupts)?;
            }
        }
        let mut places = Places {
            sorted: sorter.finish(interrupts)?,
            next: None,
            block: 0,
            slots: HashSet::new(),
        };
        places.advance()?;
        Ok(places)
    }

    fn advance(&mut self) -> Result<()> {
        self.next = match self.sorted.next()? {
            None => None,
            Some((&[a, b, c, d, e, f], _)) => Some(Tid {
                block: u32::from_be_bytes([a, b, c, d]),
                slot: u16::from_be_bytes([e, f]),
            }),
            Some(_) => return Err(EngineError::internal("a place in an index has another length")),
        };
        Ok(())
    }

    /// True if the tree leads to this place. Pages are asked for in their order.
    fn has(&mut self, place: Tid) -> Result<bool> {
        if self.block != place.block {
            self.slots.clear();
            self.block = place.block;
        }
        while let Some(next) = self.next.filter(|next| next.block <= place.block) {
            if next.block == place.block {
                self.slots.insert(next.slot);
            }
            self.advance()?;
        }
        Ok(self.slots.contains(&place.slot))
    }
}
