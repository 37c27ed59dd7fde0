//! The columns that an UPDATE changes, by their values: they decide which indexes need an entry, and how strongly the row is
//! locked.

use clearway_sql::error::Result;
use clearway_sql::value::{ColumnSet, Value};
use clearway_sql::{EvalContext, IndexEntry, TableDef};
use clearway_storage::heap::ChangedColumns;

/// The columns in which two versions of a row differ.
pub(super) fn changed_columns(
    table: &TableDef,
    old: &[u8],
    new: &[u8],
    eval: &EvalContext<'_>,
) -> Result<ChangedColumns> {
    let mut needed = ColumnSet::new();
    for index in table.all_indexes() {
        index.each_read_column(|column| needed.insert(column));
    }
    let mut before = vec![Value::Null; table.columns.len()];
    let mut after = before.clone();
    table.codec.decode(old, &needed, &mut before)?;
    table.codec.decode(new, &needed, &mut after)?;
    changed_between(table, &before, &after, eval)
}

/// The columns in which two versions of a row differ. The key is that of each index that has one entry a key: one that a
/// foreign key may lead to.
pub(super) fn changed_between(
    table: &TableDef,
    before: &[Value],
    after: &[Value],
    eval: &EvalContext<'_>,
) -> Result<ChangedColumns> {
    let (mut key_before, mut key_after) = (Vec::new(), Vec::new());
    let mut changed = ChangedColumns::NotIndexed;
    for index in table.all_indexes() {
        let entry_before = index.entry(before, eval, &mut key_before)?;
        let entry_after = index.entry(after, eval, &mut key_after)?;
        let is_absent = |entry: IndexEntry| entry == IndexEntry::Absent;
        if is_absent(entry_before) && is_absent(entry_after) {
            continue;
        }
        if is_absent(entry_before) != is_absent(entry_after) || key_before != key_after {
            if index.unique {
                return Ok(ChangedColumns::Key);
            }
            changed = ChangedColumns::Indexed;
        }
    }
    Ok(changed)
}
