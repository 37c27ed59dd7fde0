//! Rows that are deleted or replaced: steps 4 and 5.

use clearway_sql::TableDef;
use clearway_sql::error::Result;
use clearway_sql::expr::Expr;
use clearway_sql::value::Value;
use clearway_sql::value::long::Pointer;
use clearway_storage::RelId;
use clearway_storage::heap::{Heap, Tid};

use crate::convert::storage_error;
use crate::executor::long_values::{Written, encode, heap_of, pieces_of};
use crate::executor::{Execution, heap_rel};

impl Execution<'_> {
    /// True if some row of a table may have a value apart.
    fn may_have_values_apart(&self, table: &TableDef) -> Result<bool> {
        let Some(rel) = table.long_rel else {
            return Ok(false);
        };
        let blocks = self.storage.block_count(RelId(rel)).map_err(storage_error)?;
        Ok(blocks > 0)
    }

    fn bytes_at(&self, table: &TableDef, tid: Tid) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Heap::new(heap_rel(table))
            .bytes_at(self.storage, tid, &mut bytes)
            .map_err(storage_error)?;
        Ok(bytes)
    }
}

/// Tells which columns an UPDATE gives values to: those of its assignments, and generated ones.
pub(crate) fn assigned<'t>(table: &'t TableDef, assignments: &'t [(u16, Expr)]) -> impl Fn(u16) -> bool + 't {
    |column| {
        assignments.iter().any(|(assigned, _)| *assigned == column)
            || table.columns[usize::from(column)].generated().is_some()
    }
}

/// Writes the bytes of the row `new`, which is to replace the one at `tid`, into `payload`. Of columns that are not
/// assigned the stored forms stay.
pub(crate) fn encode_new(
    execution: &Execution<'_>,
    table: &TableDef,
    tid: Tid,
    new: &[Value],
    is_assigned: impl Fn(u16) -> bool,
    payload: &mut Vec<u8>,
) -> Result<Written> {
    let (txn, interrupts) = (&*execution.txn, execution.interrupts);
    if !execution.may_have_values_apart(table)? {
        return encode(txn, interrupts, table, new, payload);
    }
    let old = execution.bytes_at(table, tid)?;
    let mut has_pointer = false;
    table.codec.each_pointer(&old, |_| has_pointer = true)?;
    if !has_pointer {
        return encode(txn, interrupts, table, new, payload);
    }
    let columns = (0..).zip(new);
    let assigned = columns.filter(|(column, _)| is_assigned(*column));
    let assigned = assigned.map(|(column, value)| (column, value.clone()));
    let row = table.codec.updated(&old, assigned)?;
    encode(txn, interrupts, table, &row, payload)
}

/// Deletes what the row version at `tid`, which this transaction has ended just now, has apart and its successor `new`
/// has not.
pub(crate) fn delete_of(
    execution: &Execution<'_>,
    table: &TableDef,
    tid: Tid,
    new: Option<&[u8]>,
) -> Result<()> {
    if !execution.may_have_values_apart(table)? {
        return Ok(());
    }
    let old = execution.bytes_at(table, tid)?;
    delete_replaced(execution, table, &old, new)
}

/// Deletes what the row `old` has apart and `new`, which has replaced it, has not.
#[inline]
pub(crate) fn delete_replaced(
    execution: &Execution<'_>,
    table: &TableDef,
    old: &[u8],
    new: Option<&[u8]>,
) -> Result<()> {
    let mut gone = Vec::new();
    table.codec.each_pointer(old, |pointer| gone.push(pointer))?;
    match gone.is_empty() {
        true => Ok(()),
        false => delete_pieces(execution, table, gone, new),
    }
}

#[cold]
fn delete_pieces(
    execution: &Execution<'_>,
    table: &TableDef,
    mut gone: Vec<Pointer>,
    new: Option<&[u8]>,
) -> Result<()> {
    let Some(rel) = table.long_rel else { return Ok(()) };
    if let Some(new) = new {
        table
            .codec
            .each_pointer(new, |kept| gone.retain(|pointer| *pointer != kept))?;
    }
    let mut count = 0;
    for pointer in &gone {
        count += heap_of(rel)
            .delete_pieces(&execution.txn.context(), &pieces_of(pointer), &|| {
                execution.interrupts.pending()
            })
            .map_err(storage_error)?;
    }
    execution.txn.count_pieces(table.oid, 0, count);
    Ok(())
}
