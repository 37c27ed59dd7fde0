//! The columns that an UPDATE changes, by their values: they decide which indexes need an entry, and how strongly the row is
//! locked.

use clearway_sql::error::Result;
use clearway_sql::value::Value;
use clearway_sql::{EvalContext, TableDef};
use clearway_storage::heap::ChangedColumns;

use crate::executor::Execution;

/// The columns in which two versions of a row differ.
pub(super) fn changed_columns(
    execution: &Execution<'_>,
    table: &TableDef,
    old: &[u8],
    new: &[u8],
) -> Result<ChangedColumns> {
    let before = execution.row_for_indexes(table, old)?;
    let after = execution.row_for_indexes(table, new)?;
    changed_between(table, &before, &after, &execution.eval)
}

/// The columns in which two versions of a row differ. The row's key is that of [`TableDef::row_keys`]: an UPDATE for which
/// [`TableDef::may_change_row_key`] says no is never one of the key here.
pub(super) fn changed_between(
    table: &TableDef,
    before: &[Value],
    after: &[Value],
    eval: &EvalContext<'_>,
) -> Result<ChangedColumns> {
    let (mut key_before, mut key_after) = (Vec::new(), Vec::new());
    let mut changed = ChangedColumns::NotIndexed;
    for (index, stage) in table.indexes_and_stages() {
        index.entry(before, eval, &mut key_before)?;
        index.entry(after, eval, &mut key_after)?;
        // Without an entry there is no byte of a key, and each part of a key has some.
        if key_before != key_after {
            if stage.is_none() && index.unique && index.is_plain() {
                return Ok(ChangedColumns::Key);
            }
            changed = ChangedColumns::Indexed;
        }
    }
    Ok(changed)
}
