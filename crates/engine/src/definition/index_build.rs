//! Building an index over the rows that are there.
//!
//! The table is locked against writers, so no other transaction changes a row version. The heap is
//! read once under a fresh snapshot (also in a REPEATABLE READ transaction, whose old snapshot would miss
//! rows), the rows' keys are sorted within `maintenance_work_mem` (the rest in temporary files), and the tree
//! is loaded from left to right. Duplicates are neighbours then. Entries point at the roots of the version
//! chains, with the key of the version that is live now: older versions may have had other values, which is
//! why older snapshots are turned away (rule 4 of [`crate::catalog`]).

use std::sync::Arc;

use clearway_storage::btree::BTree;
use clearway_storage::heap::{Heap, Tid};
use clearway_storage::{RelId, Storage};

use crate::activity::Running;
use crate::activity::progress::index as shown;
use crate::convert::{index_error, storage_error};
use crate::executor::long_values::{restore, whole_row};
use crate::executor::{heap_rel, shown_values};
use crate::interrupt::Interrupts;
use crate::spill::{Sorted, Sorter, SpillOptions};
use crate::transaction::Transaction;
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::{ColumnSet, Decoded, Value};
use clearway_sql::{EvalContext, IndexDef, IndexEntry, TableDef};

/// Rows between two looks at the interrupts.
const ROWS_PER_CHECK: usize = 1_024;

/// The bytes of a place at the end of a sort key, so that entries of one key are in the order of their places.
const TID_BYTES: usize = 6;

/// Fills a new index from the table's live rows.
pub(crate) fn build(
    storage: &Arc<Storage>,
    txn: &Transaction,
    interrupts: &Interrupts,
    spill: &SpillOptions,
    (table, index): (&TableDef, &IndexDef),
    eval: &EvalContext<'_>,
) -> Result<()> {
    let progress = interrupts.progress().index_of(table.oid, index.oid);
    let (sorted, keys) = sorted_keys(txn, interrupts, spill, (table, index), (eval, &progress))?;
    progress.index_phase(shown::LOADS);
    progress.set(shown::ENTRIES, keys);
    let mut entries = Entries {
        progress,
        sorted,
        last: Vec::new(),
        duplicate: None,
        unique: index.unique,
        count: 0,
        interrupts,
        error: None,
    };
    BTree::bulk_load(storage, RelId(index.rel), &mut entries)
        .map_err(|error| index_error(error, table, index))?;
    match (entries.error, entries.duplicate) {
        (Some(error), _) => Err(error),
        (None, Some(root)) => Err(duplicated(txn, interrupts, (table, index), root, eval)),
        (None, None) => Ok(()),
    }
}

/// The keys of the table's rows, each with its row's place behind it, and their number; the payload tells whether a column is
/// NULL.
fn sorted_keys(
    txn: &Transaction,
    interrupts: &Interrupts,
    spill: &SpillOptions,
    (table, index): (&TableDef, &IndexDef),
    (eval, progress): (&EvalContext<'_>, &Running<'_>),
) -> Result<(Sorted, u64)> {
    progress.index_phase(shown::SCANS_TABLE);
    let pages = txn.storage().block_count(RelId(heap_rel(table)));
    progress.set(shown::PAGES, u64::from(pages.map_err(storage_error)?));
    let mut needed = ColumnSet::new();
    index.each_read_column(|column| needed.insert(column));
    let mut row = vec![Value::Null; table.columns.len()];
    let mut key = Vec::new();
    let mut sorter = Sorter::new(spill);
    let context = txn.context();
    let mut rows = Heap::new(heap_rel(table)).scan(&context).map_err(storage_error)?;
    let mut count = 0usize;
    loop {
        let next = rows.next_with_root(&context, |root, bytes| {
            let decoded = table.codec.decode(bytes, &needed, &mut row)?;
            Ok((root, decoded))
        });
        // The row's page is not latched any more: what follows may write to a file.
        let Some(found) = next.map_err(storage_error)? else {
            break;
        };
        let (root, decoded) = found?;
        // Pages are read in their order.
        progress.set(shown::PAGES_DONE, u64::from(root.block));
        if decoded == Decoded::Apart {
            restore(txn.storage(), interrupts, table, &mut row)?;
        }
        let entry = index.entry(&row, eval, &mut key)?;
        if entry == IndexEntry::Absent {
            continue;
        }
        let any_null = entry == IndexEntry::WithNull;
        if any_null && index.primary {
            return Err(null_in_key(table, index, &row));
        }
        key.extend_from_slice(&root.block.to_be_bytes());
        key.extend_from_slice(&root.slot.to_be_bytes());
        sorter.push(&key, &[u8::from(any_null)], interrupts)?;
        count += 1;
        if count.is_multiple_of(ROWS_PER_CHECK) {
            interrupts.check()?;
        }
    }
    progress.index_phase(shown::SORTS);
    Ok((sorter.finish(interrupts)?, count as u64))
}

/// The entries in order; ends early at an error or at a duplicate.
struct Entries<'a> {
    progress: Running<'a>,
    sorted: Sorted,
    /// The key before, without its place; empty when it had a NULL.
    last: Vec<u8>,
    duplicate: Option<Tid>,
    unique: bool,
    count: usize,
    interrupts: &'a Interrupts,
    error: Option<EngineError>,
}

impl Entries<'_> {
    fn try_next(&mut self) -> Result<Option<(Box<[u8]>, Tid)>> {
        self.progress.set(shown::ENTRIES_DONE, self.count as u64);
        self.count += 1;
        if self.count.is_multiple_of(ROWS_PER_CHECK) {
            self.interrupts.check()?;
        }
        let Some((record, payload)) = self.sorted.next()? else {
            return Ok(None);
        };
        let (key, place) = record.split_at(record.len() - TID_BYTES);
        let [a, b, c, d, e, f] = place else {
            return Err(EngineError::internal("a sort key has no place"));
        };
        let root = Tid {
            block: u32::from_be_bytes([*a, *b, *c, *d]),
            slot: u16::from_be_bytes([*e, *f]),
        };
        if self.unique {
            let any_null = payload == [1];
            if !any_null && self.last == key {
                self.duplicate = Some(root);
                return Ok(None);
            }
            self.last.clear();
            if !any_null {
                self.last.extend_from_slice(key);
            }
        }
        Ok(Some((key.into(), root)))
    }
}

impl Iterator for &mut Entries<'_> {
    type Item = (Box<[u8]>, Tid);

    fn next(&mut self) -> Option<(Box<[u8]>, Tid)> {
        self.try_next().unwrap_or_else(|error| {
            self.error = Some(error);
            None
        })
    }
}

fn null_in_key(table: &TableDef, index: &IndexDef, row: &[Value]) -> EngineError {
    let column = index
        .key_columns()
        .find(|column| row[usize::from(*column)].is_null());
    let name = column.map_or("", |column| table.columns[usize::from(column)].name.as_str());
    EngineError::new(
        SqlState::NOT_NULL_VIOLATION,
        format!(
            "column \"{name}\" of relation \"{}\" contains null values",
            table.name
        ),
    )
    .with_table(&table.schema.name, &table.name)
    .with_column(name)
}

fn duplicated(
    txn: &Transaction,
    interrupts: &Interrupts,
    (table, index): (&TableDef, &IndexDef),
    root: Tid,
    eval: &EvalContext<'_>,
) -> EngineError {
    let error = EngineError::new(
        SqlState::UNIQUE_VIOLATION,
        format!("could not create unique index \"{}\"", index.name),
    )
    .with_table(&table.schema.name, &table.name)
    .with_constraint(&index.name);
    let heap = Heap::new(heap_rel(table));
    let Ok(Some(bytes)) = heap.fetch(&txn.context(), root, |_, bytes| bytes.to_vec()) else {
        return error;
    };
    match whole_row(txn.storage(), interrupts, table, &bytes) {
        Ok(row) => error.with_detail(format!(
            "Key {} is duplicated.",
            shown_values::describe_key(table, index, &row, eval)
        )),
        _ => error,
    }
}
