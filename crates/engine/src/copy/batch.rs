//! Rows of a COPY on their way to the table.
//!
//! Rows are stored many at a time: the heap takes them page by page, and each index leaf by leaf, in the order of its
//! keys. Rows of one batch go to the heap before their entries go to the indexes, so a unique violation is found when
//! its row is stored already; like all rows of a transaction that fails, it is never seen.
//!
//! Keys are made when a row is added, from the values in hand. So no row is decoded again.

use clearway_storage::FrameRing;
use clearway_storage::heap::Heap;

use crate::convert::storage_error;
use crate::copy::entries::{IndexKeys, insert_entries_of};
use crate::copy::strings::Strings;
use crate::executor::long_values;
use crate::executor::marks::mark_added;
use crate::executor::references::row_stored;
use crate::executor::{Execution, heap_rel};
use clearway_sql::TableDef;
use clearway_sql::error::Result;
use clearway_sql::value::Value;

/// A batch is stored when it holds this many rows
const BATCH_ROWS: usize = 2_000;
/// or this many bytes, keys included.
const BATCH_BYTES: usize = 512 << 10;

/// Encoded rows and their keys.
pub(super) struct Batch<'t> {
    table: &'t TableDef,
    rows: Strings,
    /// The keys in each of the table's indexes.
    keys: Vec<IndexKeys<'t>>,
    /// The row or the key that is added.
    one: Vec<u8>,
    /// The frames that the table's pages use.
    ring: FrameRing,
    /// The number of each row's line.
    lines: Vec<u64>,
}

impl<'t> Batch<'t> {
    pub(super) fn new(table: &'t TableDef, ring: FrameRing) -> Batch<'t> {
        Batch {
            table,
            rows: Strings::default(),
            keys: table
                .written_indexes()
                .map(|index| IndexKeys::new(index))
                .collect(),
            one: Vec::new(),
            ring,
            lines: Vec::new(),
        }
    }

    /// Adds the row of a line.
    pub(super) fn add(&mut self, row: &[Value], execution: &Execution<'_>, line: u64) -> Result<()> {
        self.lines.push(line);
        let (txn, interrupts) = (&*execution.txn, execution.interrupts);
        long_values::encode(txn, interrupts, self.table, row, &mut self.one)?;
        self.rows.push(&self.one);
        for keys in &mut self.keys {
            keys.add(row, &execution.eval, &mut self.one)?;
        }
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        let keys: usize = self.keys.iter().map(IndexKeys::byte_count).sum();
        self.rows.len() >= BATCH_ROWS || self.rows.byte_count() + keys >= BATCH_BYTES
    }

    /// Stores the rows and their index entries; then the batch is empty.
    pub(super) fn store(&mut self, execution: &mut Execution<'_>) -> Result<()> {
        let rows: Vec<&[u8]> = self.rows.iter().collect();
        let tids = Heap::new(heap_rel(self.table))
            .insert_many(&execution.txn.context(), &rows, &mut self.ring)
            .map_err(storage_error)?;
        mark_added(execution, self.table)?;
        insert_entries_of(execution, self.table, &self.rows, &self.keys, &tids).map_err(|(error, row)| {
            let line = self.lines[row];
            error.with_context(format!("COPY {}, line {line}", self.table.name))
        })?;
        if !self.table.foreign_keys.is_empty() {
            for (row, tid) in self.rows.iter().zip(&tids) {
                let values = execution.whole_row(self.table, row)?;
                row_stored(execution, self.table, &values, *tid)?;
            }
        }
        self.rows.clear();
        self.lines.clear();
        self.keys.iter_mut().for_each(IndexKeys::clear);
        Ok(())
    }
}
