//! The events of foreign keys that a statement notes row by row; the session looks at them when it has ended
//! (`session::references`).
//!
//! | change of a row | event |
//! | --- | --- |
//! | stored | of each foreign key of the table |
//! | replaced | the same, of keys whose columns have other values; and of each key that names this table, if its columns have others |
//! | deleted | of each key that names this table |
//!
//! A check finds its row by its place, and leaves it out if the transaction has replaced it meanwhile. So a replaced row
//! whose columns are as they were has an event of its own while others wait.

use std::sync::Arc;

use clearway_storage::heap::Tid;

use crate::executor::Execution;
use crate::transaction::RowChange;
use clearway_sql::error::Result;
use clearway_sql::value::{Value, compare};
use clearway_sql::{ForeignKeyDef, TableDef};

/// A row was stored.
#[inline]
pub(crate) fn row_stored(
    execution: &mut Execution<'_>,
    table: &TableDef,
    row: &[Value],
    tid: Tid,
) -> Result<()> {
    if table.foreign_keys.is_empty() {
        return Ok(());
    }
    note_stored(execution, table, row, tid)
}

#[inline(never)]
fn note_stored(execution: &mut Execution<'_>, table: &TableDef, row: &[Value], tid: Tid) -> Result<()> {
    for key in &table.foreign_keys {
        let values = values_of(row, &key.places(table));
        if needs_check(key, &values) {
            push(execution, key, RowChange::Stored(tid, values))?;
        }
    }
    Ok(())
}

/// True if the update of these columns may concern a foreign key.
#[inline]
pub(crate) fn concern_update<'a, T: 'a>(
    execution: &Execution<'_>,
    table: &TableDef,
    assigned: impl IntoIterator<Item = &'a (u16, T)>,
) -> bool {
    if table.foreign_keys.is_empty() && !table.is_referenced {
        return false;
    }
    let waits = execution.txn.has_pending_checks();
    let is_part = |column: &u16| {
        let number = table.attribute_number(*column);
        let mut keys = table.foreign_keys.iter();
        keys.any(|key| key.columns.contains(&number)) || table.is_referenced && table.is_indexed(*column)
    };
    waits || assigned.into_iter().any(|(column, _)| is_part(column))
}

/// A row was replaced by another version, which is at `tid`.
#[inline(never)]
pub(crate) fn row_replaced(
    execution: &mut Execution<'_>,
    table: &TableDef,
    (before, after): (&[Value], &[Value]),
    tid: Tid,
) -> Result<()> {
    if table.is_referenced {
        for key in keys_to(execution, table).iter() {
            let places = key.parent_places(table);
            let (old, new) = (values_of(before, &places), values_of(after, &places));
            if !old.iter().any(Value::is_null) && !are_identical(&old, &new) {
                push(execution, key, RowChange::Rekeyed(old, new))?;
            }
        }
    }
    let waits = execution.txn.has_pending_checks();
    for key in &table.foreign_keys {
        let places = key.places(table);
        let (old, new) = (values_of(before, &places), values_of(after, &places));
        let is_other = waits || !are_equal(&old, &new, table, &places);
        if is_other && needs_check(key, &new) {
            push(execution, key, RowChange::Stored(tid, new))?;
        }
    }
    Ok(())
}

/// A row was deleted.
#[inline]
pub(crate) fn row_deleted(execution: &mut Execution<'_>, table: &TableDef, row: &[Value]) -> Result<()> {
    if !table.is_referenced {
        return Ok(());
    }
    note_deleted(execution, table, row)
}

#[inline(never)]
fn note_deleted(execution: &mut Execution<'_>, table: &TableDef, row: &[Value]) -> Result<()> {
    for key in keys_to(execution, table).iter() {
        let values = values_of(row, &key.parent_places(table));
        if !values.iter().any(Value::is_null) {
            push(execution, key, RowChange::Deleted(values))?;
        }
    }
    Ok(())
}

fn push(execution: &mut Execution<'_>, key: &ForeignKeyDef, change: RowChange) -> Result<()> {
    let spill = execution.spill;
    execution.txn.checks_mut().push(key, change, spill)
}

/// The foreign keys that name rows of a table.
fn keys_to(execution: &mut Execution<'_>, table: &TableDef) -> Arc<[Arc<ForeignKeyDef>]> {
    let state = execution.txn.catalog_state();
    let references = execution.txn.checks_mut();
    references.keys_to(table.oid, state.version(), || {
        let found = state.references_to(table.oid).into_iter();
        found.map(|reference| reference.key).collect()
    })
}

fn values_of(row: &[Value], places: &[u16]) -> Vec<Value> {
    let values = places.iter().map(|place| row[usize::from(*place)].clone());
    values.collect()
}

/// False for a row that names none: one with a NULL, and under MATCH FULL one of NULLs alone.
fn needs_check(key: &ForeignKeyDef, values: &[Value]) -> bool {
    match key.is_full {
        true => !values.iter().all(Value::is_null),
        false => !values.iter().any(Value::is_null),
    }
}

/// True if the values are equal; NULL is to NULL.
fn are_equal(one: &[Value], other: &[Value], table: &TableDef, places: &[u16]) -> bool {
    let pairs = one.iter().zip(other).zip(places);
    pairs.into_iter().all(|((one, other), place)| {
        let data_type = table.columns[usize::from(*place)].data_type;
        match (one.is_null(), other.is_null()) {
            (false, false) => compare(one, other, data_type).is_eq(),
            (one, other) => one == other,
        }
    })
}

/// True if the values are the same to the last digit: `1.0` and `1.00` are equal, but referencing rows get the new one.
fn are_identical(one: &[Value], other: &[Value]) -> bool {
    let mut bytes = (Vec::new(), Vec::new());
    crate::spill::record::write_row(one, &mut bytes.0);
    crate::spill::record::write_row(other, &mut bytes.1);
    bytes.0 == bytes.1
}
