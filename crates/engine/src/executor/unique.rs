//! Index entries for new row versions, and the duplicates they find.
//!
//! A unique index is checked under the latch of the leaf where the entry goes, so two sessions cannot both find the key
//! absent. An entry with the same key may belong to a row that is dead (no conflict), alive (23505), or in the hands
//! of a transaction that still runs: then only its end tells, so the session waits and asks again.
//!
//! The entry of a *deferrable* constraint goes in all the same, and its row is noted: it is checked later
//! (`session::checks::unique_key`, U1).

use clearway_storage::btree::{BTree, InsertOutcome};
use clearway_storage::heap::Tid;

use crate::convert::index_error;
use crate::executor::marks::mark_key;
use crate::executor::shown_values::with_key;
use crate::executor::{Execution, heap_rel};
use clearway_sql::error::{EngineError, Result, SqlState};
use clearway_sql::value::Value;
use clearway_sql::{IndexDef, IndexEntry, TableDef};

/// Enters a row version into all of its table's indexes.
pub(crate) fn insert_entries(
    execution: &mut Execution<'_>,
    table: &TableDef,
    row: &[Value],
    tid: Tid,
) -> Result<()> {
    for index in table.written_indexes() {
        insert_entry(execution, table, index, row, tid)?;
    }
    Ok(())
}

/// Enters a row version into one index.
pub(crate) fn insert_entry(
    execution: &mut Execution<'_>,
    table: &TableDef,
    index: &IndexDef,
    row: &[Value],
    tid: Tid,
) -> Result<()> {
    let mut key = std::mem::take(&mut execution.scratch.key);
    let entry = index.entry(row, &execution.eval, &mut key);
    let result = match entry {
        Ok(IndexEntry::Absent) => Ok(()),
        Ok(entry) => {
            let unique = index.unique && entry == IndexEntry::Whole;
            insert_key(execution, table, index, row, &key, unique, tid)
        }
        Err(error) => Err(error),
    };
    execution.scratch.key = key;
    result
}

fn insert_key(
    execution: &mut Execution<'_>,
    table: &TableDef,
    index: &IndexDef,
    row: &[Value],
    key: &[u8],
    unique: bool,
    tid: Tid,
) -> Result<()> {
    mark_key(execution, table, index, key)?;
    let tree = BTree::new(index.rel);
    loop {
        let context = execution.txn.context();
        let outcome = tree.insert(&context, key, tid, unique.then_some(heap_rel(table)));
        let outcome = outcome.map_err(|error| refers_to(index_error(error, table, index), table, tid));
        match outcome? {
            InsertOutcome::Inserted => return Ok(()),
            InsertOutcome::Duplicate { .. } | InsertOutcome::WaitFor(_) if index.check_time.deferrable => {
                insert_in_doubt(execution, table, index, key, tid)?;
                return note_doubt(execution, table, index, tid);
            }
            InsertOutcome::Duplicate { .. } => {
                execution.txn.check_serializable()?;
                return Err(violation(execution, table, index, row));
            }
            InsertOutcome::WaitFor(xid) => {
                execution
                    .txn
                    .wait_for_transaction(xid, execution.interrupts, execution.lock_timeout)?;
            }
        }
    }
}

/// Enters a row under a key of a deferrable constraint that another row may have.
#[cold]
pub(crate) fn insert_in_doubt(
    execution: &Execution<'_>,
    table: &TableDef,
    index: &IndexDef,
    key: &[u8],
    tid: Tid,
) -> Result<()> {
    let entered = BTree::new(index.rel).insert(&execution.txn.context(), key, tid, None);
    entered.map_err(|error| refers_to(index_error(error, table, index), table, tid))?;
    Ok(())
}

/// Notes that a row was stored under a key which another row may have, for the constraint that the key belongs to.
#[cold]
pub(crate) fn note_doubt(
    execution: &mut Execution<'_>,
    table: &TableDef,
    index: &IndexDef,
    tid: Tid,
) -> Result<()> {
    // A left-over of a constraint that was dropped since has none.
    let Some(constraint) = constraint_of(table, index) else {
        return Ok(());
    };
    let spill = execution.spill;
    execution.txn.checks_mut().push_doubt(constraint, tid, spill)
}

/// The index of the constraint that an index's key belongs to: itself, or the one beside which REINDEX CONCURRENTLY makes
/// it, or has made another (rule U5 of `session::checks::unique_key`).
fn constraint_of<'t>(table: &'t TableDef, index: &'t IndexDef) -> Option<&'t IndexDef> {
    if index.constraint {
        return Some(index);
    }
    let is_it = |other: &&IndexDef| {
        other.constraint
            && other.check_time == index.check_time
            && other.keys == index.keys
            && other.nulls_not_distinct == index.nulls_not_distinct
    };
    table.all_indexes().map(|other| &**other).find(is_it)
}

/// An error of an index entry with the row that it is for, if it is about the entry.
#[cold]
pub(crate) fn refers_to(error: EngineError, table: &TableDef, tid: Tid) -> EngineError {
    if error.sqlstate() != SqlState::PROGRAM_LIMIT_EXCEEDED {
        return error;
    }
    error.with_detail(format!(
        "Index row references tuple ({},{}) in relation \"{}\".",
        tid.block, tid.slot, table.name
    ))
}

/// 23505, with the key if the role may see it.
#[cold]
pub(crate) fn violation(
    execution: &Execution<'_>,
    table: &TableDef,
    index: &IndexDef,
    row: &[Value],
) -> EngineError {
    with_key(duplicate(table, index), execution, table, index, row)
}

/// 23505 in PostgreSQL's words.
#[cold]
pub(crate) fn duplicate(table: &TableDef, index: &IndexDef) -> EngineError {
    EngineError::new(
        SqlState::UNIQUE_VIOLATION,
        format!(
            "duplicate key value violates unique constraint \"{}\"",
            index.name
        ),
    )
    .with_table(&table.schema.name, &table.name)
    .with_constraint(&index.name)
}
