//! Marks of the writes of serializable transactions: one look at a pointer for any other.

use clearway_sql::error::Result;
use clearway_sql::{IndexDef, TableDef};
use clearway_storage::heap::Tid;

use crate::executor::Execution;

/// A version of a row was replaced or deleted.
#[inline]
pub(crate) fn mark_written(execution: &mut Execution<'_>, table: &TableDef, tid: Tid) -> Result<()> {
    if !execution.txn.marks_writes() || table.schema.is_temporary() {
        return Ok(());
    }
    execution.txn.mark_row_written(table.oid, tid)
}

/// Rows were added.
#[inline]
pub(crate) fn mark_added(execution: &mut Execution<'_>, table: &TableDef) -> Result<()> {
    if !execution.txn.marks_writes() || table.schema.is_temporary() {
        return Ok(());
    }
    execution.txn.mark_rows_added(table.oid)
}

/// A key is entered.
#[inline]
pub(crate) fn mark_key(
    execution: &mut Execution<'_>,
    table: &TableDef,
    index: &IndexDef,
    key: &[u8],
) -> Result<()> {
    if !execution.txn.marks_writes() || table.schema.is_temporary() {
        return Ok(());
    }
    execution.txn.mark_key_written(index.oid, key)
}

/// A row was looked at to see what stands in the way of another.
#[inline]
pub(crate) fn mark_read(execution: &mut Execution<'_>, table: &TableDef, tid: Tid) -> Result<()> {
    if !execution.txn.marks_reads() || table.schema.is_temporary() {
        return Ok(());
    }
    execution.txn.mark_row_read(table.oid, tid)
}
