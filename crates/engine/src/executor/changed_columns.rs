//! The columns that an UPDATE changes, by their values: they decide which indexes need an entry, and how strongly the row is
//! locked.

use clearway_sql::TableDef;
use clearway_sql::error::Result;
use clearway_sql::value::key::encode_key_of_row;
use clearway_sql::value::{ColumnSet, Value};
use clearway_storage::heap::ChangedColumns;

/// The columns in which two versions of a row differ.
pub(super) fn changed_columns(table: &TableDef, old: &[u8], new: &[u8]) -> Result<ChangedColumns> {
    let mut needed = ColumnSet::new();
    for index in table.all_indexes() {
        index.columns.iter().for_each(|column| needed.insert(*column));
    }
    let mut before = vec![Value::Null; table.columns.len()];
    let mut after = before.clone();
    table.codec.decode(old, &needed, &mut before)?;
    table.codec.decode(new, &needed, &mut after)?;
    Ok(changed_between(table, &before, &after))
}

/// The columns in which two versions of a row differ. The key is that of each index that has one entry a key: one that a
/// foreign key may lead to.
pub(super) fn changed_between(table: &TableDef, before: &[Value], after: &[Value]) -> ChangedColumns {
    let (mut key_before, mut key_after) = (Vec::new(), Vec::new());
    let mut changed = ChangedColumns::NotIndexed;
    for index in table.all_indexes() {
        encode_key_of_row(before, &index.columns, &index.types, &mut key_before);
        encode_key_of_row(after, &index.columns, &index.types, &mut key_after);
        if key_before != key_after {
            if index.unique {
                return ChangedColumns::Key;
            }
            changed = ChangedColumns::Indexed;
        }
    }
    changed
}
